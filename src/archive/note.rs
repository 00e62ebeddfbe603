//! Remarks that the author adds after the run: kept apart, dated, never part of what was measured.

use std::fs::OpenOptions;
use std::io::Write;

use anyhow::{Context, Result, bail};

use crate::analysis::summary::Note;
use crate::results::RunFolder;

/// Longest remark, in characters.
const LONGEST: usize = 2_000;

/// Appends a remark. `at_s` is the second of measured time that it speaks of; `written` is the UTC time now.
///
/// The run's summary, report and checksums have to be made again afterwards: `analyze` does.
///
/// # Errors
/// When the text is empty or too long, the time is negative, or notes.jsonl can't be written.
pub fn note(folder: &RunFolder, at_s: Option<f64>, text: &str, written: &str) -> Result<Note> {
    let text = text.trim();
    if text.is_empty() {
        bail!("a note needs a text: ceteris note RUN --at 1h \"what happened\"");
    }
    let length = text.chars().count();
    if length > LONGEST {
        bail!(
            "the note has {length} characters; {LONGEST} at most, since it is printed in the report"
        );
    }
    if at_s.is_some_and(|at| !at.is_finite() || at < 0.0) {
        bail!("a note speaks of a moment of the measured time: 0 s or later");
    }
    let note = Note {
        at_s,
        written: written.to_owned(),
        text: text.to_owned(),
    };
    let path = folder.notes();
    let mut line = serde_json::to_string(&note).context("writing the note as JSON")?;
    line.push('\n');
    OpenOptions::new()
        .create(true)
        .append(true)
        .open(&path)
        .and_then(|mut file| file.write_all(line.as_bytes()))
        .with_context(|| format!("writing {}", path.display()))?;
    Ok(note)
}
