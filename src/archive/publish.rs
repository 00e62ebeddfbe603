//! A run as a folder that is ready for a static site or a repository.

use std::borrow::Cow;
use std::fs;
use std::io::Write;
use std::path::Path;

use anyhow::{Context, Result, bail};
use serde_json::{Value, json};

use super::redact::Redaction;
use super::rendered::{INDEX, Rendered};
use super::{checksums, dictionary};
use crate::analysis::Summary;
use crate::report::{self, Format, KEPT_FILE, KeptRun};
use crate::results::RunFolder;

/// Raw files above this size are compressed, in bytes.
const LARGE: usize = 256 * 1024;

/// What was published.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Published {
    /// Files written.
    pub files: usize,
    /// Files in which something was redacted.
    pub redacted: usize,
    /// Files that were compressed.
    pub compressed: usize,
}

/// Publishes a run into `dir`, which must be empty or absent: the report rendered from the redacted summary, raw data
/// (compressed where large), a data dictionary, RO-Crate metadata, checksums. The copy is a run's folder like any other:
/// it can be judged, rendered and verified again.
///
/// # Errors
/// When the run was not judged, the experiment file holds a secret, or a file can't be read or written.
pub fn publish(folder: &RunFolder, dir: &Path, redaction: &Redaction) -> Result<Published> {
    prepare(dir)?;
    let experiment = read(&folder.experiment())?;
    if let Cow::Owned(_) = redaction.apply(&String::from_utf8_lossy(&experiment)) {
        bail!(
            "{} holds a password, a user's folder or the host's name; it is published byte for byte, so take it from {{{{ env.NAME }}}} and run again",
            folder.experiment().display()
        );
    }
    let mut published = Published::default();
    for name in checksums::files(folder.path())? {
        if is_rendered(&name) {
            continue;
        }
        let bytes = read(&folder.path().join(&name))?;
        let clean = redacted(&name, &bytes, redaction);
        published.redacted += usize::from(clean != bytes);
        if name.starts_with("pairs/") && clean.len() > LARGE {
            write(&dir.join(format!("{name}.gz")), &packed(&clean)?)?;
            published.compressed += 1;
        } else {
            write(&dir.join(&name), &clean)?;
        }
        published.files += 1;
    }
    let copy = RunFolder::open(dir)?;
    published.files += render(folder, &copy, redaction)?;
    checksums::seal(copy.path())?;
    published.files += 1;
    Ok(published)
}

fn prepare(dir: &Path) -> Result<()> {
    if dir.exists() {
        let mut entries =
            fs::read_dir(dir).with_context(|| format!("reading the folder {}", dir.display()))?;
        if entries.next().is_some() {
            bail!(
                "{} is not empty; publish writes into a new folder only, so that nothing is overwritten",
                dir.display()
            );
        }
    }
    fs::create_dir_all(dir).with_context(|| format!("making the folder {}", dir.display()))
}

/// Whether a file is made again from the summary instead of being copied.
fn is_rendered(name: &str) -> bool {
    name.starts_with("charts/")
        || Format::ALL.iter().any(|format| format.file() == name)
        || [INDEX, "DATA.md", "ro-crate-metadata.json"].contains(&name)
}

fn render(folder: &RunFolder, copy: &RunFolder, redaction: &Redaction) -> Result<usize> {
    let templates = Rendered::read(copy.path())?.templates;
    let text = read(&copy.summary())
        .context("publishing needs a judged run; ceteris analyze judges it")?;
    let summary: Summary = serde_json::from_slice(&text)
        .with_context(|| format!("reading {}", copy.summary().display()))?;
    let kept_path = copy.path().join(KEPT_FILE);
    let kept: Vec<KeptRun> = if kept_path.is_file() {
        serde_json::from_slice(&read(&kept_path)?)
            .with_context(|| format!("reading {}", kept_path.display()))?
    } else {
        let mut kept = json!(super::kept_runs(folder)?);
        redaction.apply_json(&mut kept);
        serde_json::from_value(kept).context("reading the list of kept runs")?
    };
    let mut formats = vec![Format::Md, Format::Html];
    formats.extend(
        [Format::Json, Format::Junit, Format::GithubSummary]
            .into_iter()
            .filter(|format| folder.path().join(format.file()).is_file()),
    );
    let mut files = report::render(&summary, &kept, &formats, &templates)?;
    let page = files.iter().find(|(name, _)| name == Format::Html.file());
    if let Some((_, page)) = page.cloned() {
        files.push((INDEX.to_owned(), page));
    }
    let steps: Vec<String> = summary
        .setup
        .steps
        .iter()
        .map(|step| step.name.clone())
        .collect();
    files.push((
        "DATA.md".to_owned(),
        dictionary::markdown(&steps).into_bytes(),
    ));
    for (name, bytes) in &files {
        write(&copy.path().join(name), bytes)?;
    }
    Rendered::now(&templates).write(copy.path())?;
    let mut listed = checksums::files(copy.path())?;
    listed.sort();
    let mut crate_text = serde_json::to_vec_pretty(&ro_crate(&summary, &listed))
        .context("writing the RO-Crate metadata")?;
    crate_text.push(b'\n');
    write(&copy.path().join("ro-crate-metadata.json"), &crate_text)?;
    Ok(files.len() + 1)
}

/// RO-Crate 1.1 metadata: the run as a data set, its files by name.
fn ro_crate(summary: &Summary, files: &[String]) -> Value {
    let name = "ro-crate-metadata.json";
    let parts: Vec<Value> = files.iter().map(|file| json!({ "@id": file })).collect();
    let mut graph = vec![
        json!({
            "@id": name,
            "@type": "CreativeWork",
            "conformsTo": { "@id": "https://w3id.org/ro/crate/1.1" },
            "about": { "@id": "./" },
        }),
        json!({
            "@id": "./",
            "@type": "Dataset",
            "name": summary.experiment.title,
            "description": summary.experiment.question,
            "identifier": summary.run.id,
            "datePublished": summary.run.started,
            "hasPart": parts,
        }),
    ];
    graph.extend(
        files
            .iter()
            .map(|file| json!({ "@id": file, "@type": "File", "name": file })),
    );
    json!({ "@context": "https://w3id.org/ro/crate/1.1/context", "@graph": graph })
}

/// A file without what must not be published. Files of numbers and encoded histograms hold no text from outside.
fn redacted(name: &str, bytes: &[u8], redaction: &Redaction) -> Vec<u8> {
    let file = name.rsplit('/').next().unwrap_or(name);
    match file.rsplit('.').next() {
        _ if file == "experiment.toml" => bytes.to_vec(),
        Some("json") => {
            json_text(bytes, redaction, true).unwrap_or_else(|| plain(bytes, redaction))
        }
        Some("jsonl") => {
            let mut out = Vec::with_capacity(bytes.len());
            for line in bytes.split_inclusive(|byte| *byte == b'\n') {
                match json_text(line, redaction, false) {
                    Some(clean) => out.extend(clean),
                    None => out.extend(plain(line, redaction)),
                }
            }
            out
        }
        Some("csv") if file == "failures.csv" => {
            fields(bytes, redaction).unwrap_or_else(|| plain(bytes, redaction))
        }
        Some("csv" | "hlog") => bytes.to_vec(),
        _ => plain(bytes, redaction),
    }
}

fn plain(bytes: &[u8], redaction: &Redaction) -> Vec<u8> {
    let text = String::from_utf8_lossy(bytes);
    match redaction.apply(&text) {
        Cow::Borrowed(_) => bytes.to_vec(),
        Cow::Owned(clean) => clean.into_bytes(),
    }
}

/// JSON redacted value by value; untouched bytes when nothing had to be; `None` when it is no JSON.
fn json_text(bytes: &[u8], redaction: &Redaction, pretty: bool) -> Option<Vec<u8>> {
    let value: Value = serde_json::from_slice(bytes).ok()?;
    let mut clean = value.clone();
    redaction.apply_json(&mut clean);
    if clean == value {
        return Some(bytes.to_vec());
    }
    let mut text = if pretty {
        serde_json::to_vec_pretty(&clean).ok()?
    } else {
        serde_json::to_vec(&clean).ok()?
    };
    if bytes.ends_with(b"\n") {
        text.push(b'\n');
    }
    Some(text)
}

/// CSV redacted field by field.
fn fields(bytes: &[u8], redaction: &Redaction) -> Option<Vec<u8>> {
    let mut reader = csv::ReaderBuilder::new()
        .has_headers(false)
        .flexible(true)
        .from_reader(bytes);
    let mut writer = csv::WriterBuilder::new()
        .flexible(true)
        .from_writer(Vec::new());
    let mut changed = false;
    for record in reader.records() {
        let record = record.ok()?;
        let clean: Vec<Cow<'_, str>> = record.iter().map(|field| redaction.apply(field)).collect();
        changed |= clean.iter().any(|field| matches!(field, Cow::Owned(_)));
        writer
            .write_record(clean.iter().map(|field| field.as_bytes()))
            .ok()?;
    }
    if changed {
        writer.into_inner().ok()
    } else {
        Some(bytes.to_vec())
    }
}

fn packed(bytes: &[u8]) -> Result<Vec<u8>> {
    // No name and no time in the header: the same data gives the same file.
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::best());
    encoder
        .write_all(bytes)
        .and_then(|()| encoder.finish())
        .context("compressing raw data")
}

fn read(path: &Path) -> Result<Vec<u8>> {
    fs::read(path).with_context(|| format!("reading {}", path.display()))
}

fn write(path: &Path, bytes: &[u8]) -> Result<()> {
    if let Some(parent) = path.parent() {
        fs::create_dir_all(parent)
            .with_context(|| format!("making the folder {}", parent.display()))?;
    }
    fs::write(path, bytes).with_context(|| format!("writing {}", path.display()))
}
