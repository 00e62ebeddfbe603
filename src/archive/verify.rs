//! Whether a run's figures still follow from its raw files: judged again, rendered again, compared.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result, bail};
use serde_json::Value;

use super::checksums;
use super::rendered::{Rendered, present};
use crate::analysis::Summary;
use crate::analysis::summary::SUMMARY_SCHEMA;
use crate::report::{self, KEPT_FILE, KeptRun, TemplateSource};
use crate::results::{Manifest, RunFolder};

/// Relative difference up to which two figures are the same: another processor may round the last digit differently.
const TOLERANCE: f64 = 1e-9;

/// One thing that is not as it should be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Difference {
    /// The file, relative to the run's folder.
    pub file: String,
    /// Which figure, line or checksum of it.
    pub what: String,
    /// As stored.
    pub stored: String,
    /// As it is found, computed or rendered now.
    pub now: String,
}

impl Difference {
    pub(super) fn new(file: &str, what: &str, stored: &str, now: &str) -> Self {
        Difference {
            file: file.to_owned(),
            what: what.to_owned(),
            stored: stored.to_owned(),
            now: now.to_owned(),
        }
    }
}

/// What was compared, and every difference.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Verification {
    /// Files whose checksum was compared.
    pub files: usize,
    /// Values of summary.json that were compared.
    pub values: usize,
    /// Files of the report that were rendered again and compared.
    pub rendered: usize,
    /// Version of the tool that rendered the report, where it is another one and the report differs: its words may be
    /// those of that version.
    pub rendered_by: Option<String>,
    /// What differs.
    pub differences: Vec<Difference>,
}

impl Verification {
    /// Whether nothing differs. Nothing compared is not the same as nothing different.
    pub fn same(&self) -> bool {
        self.differences.is_empty() && self.files > 0 && self.values > 0 && self.rendered > 0
    }
}

/// Verifies a run: checksums of every file, every value of summary.json against `judge` applied to the raw files, every
/// line of the report against the report rendered from that.
///
/// The report is rendered with the templates that the folder keeps. The name of the run's folder is taken as stored, so that
/// a published copy may lie in a folder of another name.
///
/// # Errors
/// When the folder can't be read, was never judged, reported or sealed, or can't be judged again.
pub fn verify(
    folder: &RunFolder,
    judge: &dyn Fn(&RunFolder) -> Result<Summary>,
) -> Result<Verification> {
    let (files, differences) = checksums::compare(folder.path())?;
    let mut found = Verification {
        files,
        differences,
        ..Verification::default()
    };
    match follow(folder, judge, &mut found) {
        Ok(()) => Ok(found),
        Err(error) if found.differences.is_empty() => Err(error),
        // A file that was changed may be unreadable for it: then its checksum says which one it is.
        Err(error) => {
            let said = cut(&format!("{error:#}"));
            let rest = Difference::new("the rest", "comparing", "readable", &said);
            found.differences.push(rest);
            Ok(found)
        }
    }
}

/// Compares what follows from the raw files: the summary, and the report.
fn follow(
    folder: &RunFolder,
    judge: &dyn Fn(&RunFolder) -> Result<Summary>,
    found: &mut Verification,
) -> Result<()> {
    let stored = read_json(&folder.summary())?;
    let schema = stored.get("schema").and_then(Value::as_u64);
    if schema != Some(u64::from(SUMMARY_SCHEMA)) {
        bail!(
            "{} has schema {}; this version compares schema {SUMMARY_SCHEMA}",
            folder.summary().display(),
            schema.map_or_else(|| "none".to_owned(), |n| n.to_string())
        );
    }
    // The file was registered before the first request; what lies there must be that one.
    let registered = Manifest::read(&folder.manifest())?.experiment_sha256;
    let now = checksums::sha256(&folder.experiment())?;
    if registered != now {
        found.differences.push(Difference::new(
            "experiment.toml",
            "SHA-256 as registered in manifest.json",
            &registered,
            &now,
        ));
    }
    let mut again = judge(folder).context("judging the run again")?;
    if let Some(id) = stored.pointer("/run/id").and_then(Value::as_str) {
        id.clone_into(&mut again.run.id);
    }
    let computed = serde_json::to_value(&again).context("writing the summary as JSON")?;
    compare(
        "",
        &stored,
        &computed,
        &mut found.values,
        &mut found.differences,
    );
    let with = Rendered::read(folder.path())?;
    let before = found.differences.len();
    found.rendered = compare_report(
        folder.path(),
        &again,
        &with.templates,
        &mut found.differences,
    )?;
    if found.differences.len() > before && with.by_another_version() {
        found.rendered_by = Some(with.tool);
    }
    Ok(())
}

fn read_json(path: &Path) -> Result<Value> {
    let text = fs::read_to_string(path).with_context(|| format!("reading {}", path.display()))?;
    serde_json::from_str(&text).with_context(|| format!("reading {} as JSON", path.display()))
}

/// Compares two values leaf by leaf; a path reads `arms.treatment.windows.3.p99`.
fn compare(
    path: &str,
    stored: &Value,
    now: &Value,
    leaves: &mut usize,
    differences: &mut Vec<Difference>,
) {
    let child = |key: &str| {
        if path.is_empty() {
            key.to_owned()
        } else {
            format!("{path}.{key}")
        }
    };
    match (stored, now) {
        (Value::Object(left), Value::Object(right)) => {
            for (key, value) in left {
                let other = right.get(key).unwrap_or(&Value::Null);
                if right.contains_key(key) {
                    compare(&child(key), value, other, leaves, differences);
                } else {
                    differ(&child(key), value, other, differences);
                }
            }
            for (key, value) in right {
                if !left.contains_key(key) {
                    differences.push(Difference::new(
                        "summary.json",
                        &child(key),
                        "absent",
                        &short(value),
                    ));
                }
            }
        }
        (Value::Array(left), Value::Array(right)) if left.len() == right.len() => {
            for (i, (value, other)) in left.iter().zip(right).enumerate() {
                compare(&child(&i.to_string()), value, other, leaves, differences);
            }
        }
        (Value::Number(left), Value::Number(right)) => {
            *leaves += 1;
            let close = match (left.as_f64(), right.as_f64()) {
                (Some(a), Some(b)) => (a - b).abs() <= TOLERANCE * a.abs().max(b.abs()),
                _ => left == right,
            };
            if !close {
                differ(path, stored, now, differences);
            }
        }
        _ => {
            *leaves += 1;
            if stored != now {
                differ(path, stored, now, differences);
            }
        }
    }
}

fn differ(path: &str, stored: &Value, now: &Value, differences: &mut Vec<Difference>) {
    let now = if now.is_null() {
        "absent".to_owned()
    } else {
        short(now)
    };
    differences.push(Difference::new("summary.json", path, &short(stored), &now));
}

fn short(value: &Value) -> String {
    cut(&value.to_string())
}

fn cut(text: &str) -> String {
    const MOST: usize = 160;
    if text.chars().count() <= MOST {
        return text.to_owned();
    }
    let head: String = text.chars().take(MOST).collect();
    format!("{head}…")
}

/// Renders what is there again and compares it line by line.
fn compare_report(
    folder: &Path,
    summary: &Summary,
    templates: &TemplateSource,
    differences: &mut Vec<Difference>,
) -> Result<usize> {
    let formats = present(folder);
    if formats.is_empty() {
        bail!(
            "{} holds no report; ceteris report makes it",
            folder.display()
        );
    }
    let kept_path = folder.join(KEPT_FILE);
    let text = fs::read_to_string(&kept_path)
        .with_context(|| format!("reading {}", kept_path.display()))?;
    let kept: Vec<KeptRun> =
        serde_json::from_str(&text).with_context(|| format!("reading {}", kept_path.display()))?;
    let files = report::render(summary, &kept, &formats, templates)?;
    for (name, bytes) in &files {
        let path = folder.join(name);
        if !path.is_file() {
            differences.push(Difference::new(name, "the file", "missing", "rendered"));
            continue;
        }
        let stored = fs::read(&path).with_context(|| format!("reading {}", path.display()))?;
        if stored != *bytes {
            let (line, stored, now) = first_difference(&stored, bytes);
            differences.push(Difference::new(
                name,
                &format!("line {line}"),
                &stored,
                &now,
            ));
        }
    }
    Ok(files.len())
}

/// The first line that differs, from 1, in both texts.
fn first_difference(stored: &[u8], now: &[u8]) -> (usize, String, String) {
    let (stored, now) = (
        String::from_utf8_lossy(stored),
        String::from_utf8_lossy(now),
    );
    let (mut left, mut right) = (stored.split('\n'), now.split('\n'));
    let mut line = 1;
    loop {
        match (left.next(), right.next()) {
            (Some(a), Some(b)) if a == b => line += 1,
            (a, b) => {
                let said = |text: Option<&str>| text.map_or_else(|| "the end".to_owned(), cut);
                return (line, said(a), said(b));
            }
        }
    }
}
