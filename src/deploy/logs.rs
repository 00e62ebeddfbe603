//! The last lines of a log, for messages about what went wrong.

use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::path::Path;

/// Lines that a message quotes.
pub(crate) const LINES: usize = 20;
const BYTES: u64 = 32 * 1024;

/// The last lines of a log; empty when there is none.
pub(crate) fn tail(path: &Path) -> Vec<String> {
    let mut text = since(path, 0);
    if text.ends_with('\n') {
        text.pop();
    }
    if text.is_empty() {
        return Vec::new();
    }
    let lines: Vec<&str> = text.lines().collect();
    lines[lines.len().saturating_sub(LINES)..]
        .iter()
        .map(|line| (*line).to_owned())
        .collect()
}

/// The log from a byte position on, at most its last 32 KiB.
pub(crate) fn since(path: &Path, from: u64) -> String {
    let read = || -> std::io::Result<Vec<u8>> {
        let mut file = File::open(path)?;
        let length = file.metadata()?.len();
        file.seek(SeekFrom::Start(from.max(length.saturating_sub(BYTES))))?;
        let mut bytes = Vec::new();
        file.take(BYTES).read_to_end(&mut bytes)?;
        Ok(bytes)
    };
    String::from_utf8_lossy(&read().unwrap_or_default()).into_owned()
}

/// Bytes written so far.
pub(crate) fn length(path: &Path) -> u64 {
    path.metadata().map_or(0, |data| data.len())
}

/// The last lines as the end of a message.
pub(crate) fn quoted(path: &Path) -> String {
    let lines = tail(path);
    if lines.is_empty() {
        return format!("its log {} is empty", path.display());
    }
    format!(
        "the end of its log {}:\n  {}",
        path.display(),
        lines.join("\n  ")
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_tail_is_short_and_never_fails() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("x.log");
        assert!(tail(&path).is_empty());
        let text: String = (0..50_000).map(|i| format!("line {i}\n")).collect();
        std::fs::write(&path, text).unwrap();
        let lines = tail(&path);
        assert_eq!(lines.len(), LINES);
        assert_eq!(lines.last().map(String::as_str), Some("line 49999"));
    }
}
