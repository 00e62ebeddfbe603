//! `list`, `note`, `verify`, `publish`: runs that were kept.

use std::path::Path;

use anyhow::{Context, Result};
use jiff::Timestamp;

use super::exit::Exit;
use super::output::{print, tell};
use crate::archive::{self, Redaction};
use crate::quantity;
use crate::report::Format;
use crate::results::RunFolder;

/// Lists every run, oldest first.
///
/// # Errors
/// When the folder can't be read.
pub(super) fn list(dir: &Path) -> Result<Exit> {
    let runs = archive::list(dir, None)?;
    if runs.is_empty() {
        tell(&format!("no run is kept in {}", dir.display()));
        return Ok(Exit::Fine);
    }
    let mut text = String::new();
    for kept in runs {
        let valid = match (kept.run.smoke, kept.run.valid) {
            (true, _) => "smoke",
            (_, Some(true)) => "valid",
            (_, Some(false)) => "not valid",
            (_, None) => "not judged",
        };
        text.push_str(&format!(
            "{}  {:<12}  {:<10}  {}\n",
            kept.path.display(),
            kept.run.ended,
            valid,
            kept.run.result
        ));
    }
    print(&text)?;
    Ok(Exit::Fine)
}

/// Adds a remark and renders the report again.
///
/// # Errors
/// When the folder can't be read or written.
pub(super) fn note(run: &Path, at: Option<&str>, text: &str) -> Result<Exit> {
    let at_s = match at.map(quantity::duration) {
        None => None,
        Some(Ok(at)) => Some(at.as_secs_f64()),
        Some(Err(error)) => {
            tell(&format!("error: --at: {error}"));
            return Ok(Exit::Wrong);
        }
    };
    let folder = RunFolder::open(run)?;
    if let Err(error) = archive::note(&folder, at_s, text, &format!("{:.0}", Timestamp::now())) {
        super::output::complain(&error);
        return Ok(Exit::Wrong);
    }
    // Summary, report and checksums follow the remark, or the run would no longer verify.
    archive::analyze(&folder)?;
    print(if folder.path().join(Format::Md.file()).is_file() {
        "the remark is kept and printed in the report\n"
    } else {
        "the remark is kept; ceteris report prints it\n"
    })?;
    Ok(Exit::Fine)
}

/// Computes and renders a run again and compares.
///
/// # Errors
/// When the folder can't be read.
pub(super) fn verify(run: &Path) -> Result<Exit> {
    let folder = RunFolder::open(run)?;
    let found = archive::verify(&folder, &archive::judged)?;
    let mut text = String::new();
    for difference in &found.differences {
        text.push_str(&format!(
            "{}: {}: stored {}, now {}\n",
            difference.file, difference.what, difference.stored, difference.now
        ));
    }
    text.push_str(&format!(
        "{} files, {} values of summary.json and {} rendered files compared: {}\n",
        found.files,
        found.values,
        found.rendered,
        match found.differences.len() {
            0 if found.same() => "the same".to_owned(),
            0 => "nothing to compare".to_owned(),
            n => format!("{n} differ"),
        }
    ));
    if let Some(version) = &found.rendered_by {
        text.push_str(&format!(
            "the report was rendered by ceteris {version}, this is {}: its words may differ where its figures do not\n",
            env!("CARGO_PKG_VERSION")
        ));
    }
    print(&text)?;
    Ok(if found.same() {
        Exit::Fine
    } else {
        Exit::DoesNotHold
    })
}

/// Makes a folder that is ready for a site or a repository.
///
/// # Errors
/// When the run can't be read, the folder can't be written, or something must be redacted first.
pub(super) fn publish(run: &Path, dir: &Path, with_host: bool) -> Result<Exit> {
    let folder = RunFolder::open(run)?;
    let host = std::fs::read_to_string("/proc/sys/kernel/hostname")
        .context("reading this machine's name, which is left out")?;
    let redaction = Redaction::new((!with_host).then(|| host.trim()))?;
    let published = archive::publish(&folder, dir, &redaction)?;
    print(&format!(
        "{}: {} files, {} of them redacted, {} compressed\n",
        dir.display(),
        published.files,
        published.redacted,
        published.compressed
    ))?;
    Ok(Exit::Fine)
}
