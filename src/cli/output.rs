//! The only place that writes to the terminal.

use std::io::{self, IsTerminal, Write};

use anyhow::{Context, Result};

/// Writes to standard output. A reader that went away (`| head`) is no fault.
///
/// # Errors
/// When standard output can't be written for another reason.
pub(super) fn print(text: &str) -> Result<()> {
    let mut out = io::stdout().lock();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        result => result.context("writing to standard output"),
    }
}

/// Writes a line to standard error. Nothing is left to do when that fails.
pub(super) fn tell(line: &str) {
    let mut err = io::stderr().lock();
    let _ = writeln!(err, "{line}");
}

/// Tells what went wrong: what was being done, then why, one cause a line.
pub(super) fn complain(error: &anyhow::Error) {
    tell(&format!("error: {error}"));
    for cause in error.chain().skip(1) {
        tell(&format!("  because: {cause}"));
    }
}

/// Whether a person watches.
pub(super) fn is_watched() -> bool {
    io::stderr().is_terminal()
}
