//! A stored run of schema 1: it must be readable, judged and verified by every later version, and nothing in it may change
//! unnoticed.

use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};

use ceteris::analysis::Summary;
use ceteris::analysis::summary::FigureValue;
use ceteris::archive::{self, Redaction, Verification};
use ceteris::name::Arm;
use ceteris::report::{Format, TemplateSource};
use ceteris::results::{RunFolder, read_run};
use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};
use serde_json::Value;

use super::every_file;

/// Name of the stored run's folder when it was run.
const ID: &str = "20261201T024240Z-171b";

fn stored() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/golden/run-schema-1")
}

/// Its summary, as the version that stored it judged.
fn stored_summary() -> String {
    let bytes = fs::read(stored().join("summary.json.gz")).unwrap();
    let mut text = String::new();
    flate2::read::GzDecoder::new(bytes.as_slice())
        .read_to_string(&mut text)
        .unwrap();
    text
}

/// A copy among results, as it was left by the run: not judged, no report.
fn copy(results: &Path) -> RunFolder {
    let to = results.join("small").join(ID);
    for file in every_file(&stored()) {
        let name = file.strip_prefix(stored()).unwrap();
        if name == Path::new("summary.json.gz") {
            continue;
        }
        let target = to.join(name);
        fs::create_dir_all(target.parent().unwrap()).unwrap();
        fs::copy(&file, target).unwrap();
    }
    RunFolder::open(&to).unwrap()
}

fn reported(results: &Path) -> (RunFolder, Summary) {
    let folder = copy(results);
    let summary = archive::report(&folder, &Format::ALL, &TemplateSource::built_in()).unwrap();
    (folder, summary)
}

fn verify(folder: &RunFolder) -> anyhow::Result<Verification> {
    archive::verify(folder, &archive::judged)
}

fn is_same(folder: &RunFolder) -> bool {
    verify(folder).is_ok_and(|found| found.same())
}

fn number(summary: &Summary, name: &str) -> f64 {
    match summary.figures.get(name) {
        Some(FigureValue::Number(value)) => *value,
        other => panic!("{name}: {other:?}"),
    }
}

#[test]
fn it_is_read_whole_and_judged_as_it_was() {
    let dir = tempfile::tempdir().unwrap();
    let folder = copy(dir.path());
    let run = read_run(&folder).unwrap();
    assert_eq!(run.trials.len(), 2);
    for trial in &run.trials {
        assert_eq!(trial.seconds.len(), 6);
        assert!(trial.latency.intervals().count() >= 6);
        assert!(trial.samples.len() > 10, "{}", trial.samples.len());
        assert!(trial.events.len() > 10, "{}", trial.events.len());
    }
    let then: Summary = serde_json::from_str(&stored_summary()).unwrap();
    let now = archive::judged(&folder).unwrap();
    assert_eq!((now.validity.valid, now.exit_code), (true, 0));
    assert_eq!(now.criteria, then.criteria);
    assert_eq!(now.difference.took_effect, then.difference.took_effect);
    for arm in Arm::BOTH {
        for figure in [
            "requests.sent",
            "requests.ok",
            "requests.failed",
            "throughput.mean",
            "latency.p50",
            "latency.p99",
            "latency.max",
            "services.app.memory.rss.last",
        ] {
            let name = format!("{arm}.{figure}");
            assert_eq!(number(&now, &name), number(&then, &name), "{name}");
        }
    }
}

#[test]
fn a_newer_schema_is_refused_by_its_number() {
    let dir = tempfile::tempdir().unwrap();
    let (folder, _) = reported(dir.path());
    for path in [folder.manifest(), folder.summary()] {
        let text = fs::read_to_string(&path).unwrap();
        fs::write(&path, text.replacen("\"schema\": 1", "\"schema\": 7", 1)).unwrap();
        archive::seal(folder.path()).unwrap();
        let error = format!("{:#}", verify(&folder).unwrap_err());
        let name = path.file_name().unwrap().to_str().unwrap();
        assert!(error.contains(name) && error.contains('7'), "{error}");
        fs::write(&path, text).unwrap();
    }
    archive::seal(folder.path()).unwrap();
    assert!(is_same(&folder));
}

/// Changes a bit, and tells whether the checksums alone name the file; then puts the bit back.
fn is_noticed(folder: &RunFolder, path: &Path, at: usize, bit: u8) -> bool {
    let bytes = fs::read(path).unwrap();
    let mut other = bytes.clone();
    other[at] ^= 1 << bit;
    fs::write(path, other).unwrap();
    let found = archive::verify(folder, &|_| anyhow::bail!("judging is another test's"));
    fs::write(path, bytes).unwrap();
    // A changed line of the checksums themselves names the file that it speaks of, or the checksums.
    let name = path.strip_prefix(folder.path()).unwrap();
    let is_sums = name == Path::new("SHA256SUMS");
    match found {
        // Checksums that are no text can't be compared with at all.
        Err(_) => is_sums,
        Ok(found) => {
            let mut named = found.differences.iter().filter(|d| d.file != "the rest");
            !found.same() && named.any(|d| Path::new(&d.file) == name || is_sums)
        }
    }
}

#[test]
fn no_bit_of_any_file_can_change_unnoticed() {
    let dir = tempfile::tempdir().unwrap();
    let (folder, _) = reported(dir.path());
    assert!(is_same(&folder));
    let files: Vec<PathBuf> = every_file(folder.path())
        .into_iter()
        .filter(|path| fs::metadata(path).unwrap().len() > 0)
        .collect();
    assert!(files.len() > 20, "{files:?}");
    // Each file at its first byte, its last and somewhere, the headers of packed files (time, system) among them; then
    // wherever chance leads.
    for path in &files {
        let length = fs::metadata(path).unwrap().len() as usize;
        let header = if path.extension().is_some_and(|end| end == "gz") {
            5
        } else {
            length / 2
        };
        for (at, bit) in [(0, 0), (header.min(length - 1), 3), (length - 1, 6)] {
            assert!(
                is_noticed(&folder, path, at, bit),
                "{} at {at}",
                path.display()
            );
        }
    }
    let mut runner = TestRunner::new(Config {
        failure_persistence: None,
        ..Config::with_cases(200)
    });
    let any_place = (
        any::<prop::sample::Index>(),
        any::<prop::sample::Index>(),
        0_u8..8,
    );
    runner
        .run(&any_place, |(file, at, bit)| {
            let path = file.get(&files);
            let at = at.index(fs::metadata(path).unwrap().len() as usize);
            prop_assert!(
                is_noticed(&folder, path, at, bit),
                "{} at {at}",
                path.display()
            );
            Ok(())
        })
        .unwrap();
    assert!(is_same(&folder));
}

/// Paths of every leaf of a JSON value.
fn leaves(value: &Value, at: &str, found: &mut Vec<String>) {
    match value {
        Value::Object(fields) if !fields.is_empty() => {
            for (key, field) in fields {
                let key = key.replace('~', "~0").replace('/', "~1");
                leaves(field, &format!("{at}/{key}"), found);
            }
        }
        Value::Array(items) if !items.is_empty() => {
            for (i, item) in items.iter().enumerate() {
                leaves(item, &format!("{at}/{i}"), found);
            }
        }
        _ => found.push(at.to_owned()),
    }
}

fn another(value: &Value) -> Value {
    match value {
        Value::Number(n) => (n.as_f64().unwrap() * 1.001 + 0.001).into(),
        Value::String(text) => format!("{text}x").into(),
        Value::Bool(yes) => (!yes).into(),
        Value::Null => 1.into(),
        Value::Array(_) | Value::Object(_) => Value::Null,
    }
}

#[test]
fn no_figure_and_no_word_can_change_unnoticed_when_the_checksums_are_made_anew() {
    let dir = tempfile::tempdir().unwrap();
    let (folder, judged) = reported(dir.path());
    let verify = |folder: &RunFolder| archive::verify(folder, &|_| Ok(judged.clone()));
    let text = fs::read_to_string(folder.summary()).unwrap();
    let summary: Value = serde_json::from_str(&text).unwrap();
    let mut paths = Vec::new();
    leaves(&summary, "", &mut paths);
    // The name of the folder is taken as stored: a published copy may lie anywhere.
    // Another schema number is refused, which a test of its own tells.
    paths.retain(|path| path != "/run/id" && path != "/schema");
    assert!(paths.len() > 500, "{}", paths.len());
    for path in paths.iter().step_by(paths.len() / 24) {
        let mut other = summary.clone();
        let leaf = other.pointer_mut(path).unwrap();
        *leaf = another(leaf);
        fs::write(folder.summary(), serde_json::to_vec_pretty(&other).unwrap()).unwrap();
        archive::seal(folder.path()).unwrap();
        let found = verify(&folder).unwrap();
        assert!(!found.same(), "{path}");
        assert_eq!(found.differences[0].file, "summary.json", "{path}");
    }
    fs::write(folder.summary(), text).unwrap();
    for path in every_file(folder.path()) {
        let name = path.strip_prefix(folder.path()).unwrap().to_str().unwrap();
        let is_rendered =
            name.starts_with("charts/") || Format::ALL.iter().any(|format| format.file() == name);
        if !is_rendered {
            continue;
        }
        let bytes = fs::read(&path).unwrap();
        for at in [bytes.len() / 3, bytes.len() - 1] {
            let mut other = bytes.clone();
            other[at] ^= 4;
            fs::write(&path, other).unwrap();
            archive::seal(folder.path()).unwrap();
            let found = verify(&folder).unwrap();
            assert_eq!(found.differences.len(), 1, "{name} at {at}");
            assert_eq!(found.differences[0].file, name);
        }
        fs::write(&path, bytes).unwrap();
    }
    archive::seal(folder.path()).unwrap();
    assert!(is_same(&folder));
}

#[test]
fn another_experiment_file_is_noticed_when_the_checksums_are_made_anew() {
    let dir = tempfile::tempdir().unwrap();
    let (folder, _) = reported(dir.path());
    let text = fs::read_to_string(folder.experiment()).unwrap();
    fs::write(folder.experiment(), format!("{text}\n# afterwards\n")).unwrap();
    archive::seal(folder.path()).unwrap();
    let found = verify(&folder).unwrap();
    assert_eq!(found.differences.len(), 1, "{:?}", found.differences);
    assert_eq!(found.differences[0].file, "experiment.toml");
}

#[test]
fn a_report_by_own_templates_verifies_and_keeps_them_with_a_remark() {
    let dir = tempfile::tempdir().unwrap();
    let own = tempfile::tempdir().unwrap();
    fs::write(
        own.path().join("report.md"),
        "# Ours: {{ title }}\n\n{% for line in notes %}\n- {{ line.text }}\n{% endfor %}\n",
    )
    .unwrap();
    let folder = copy(dir.path());
    let templates = TemplateSource::folder(own.path()).unwrap();
    archive::report(&folder, &[Format::Md, Format::Html], &templates).unwrap();
    drop(own);
    assert!(is_same(&folder));
    archive::note(&folder, None, "a backup ran", "2026-12-02T00:00:00Z").unwrap();
    assert!(!is_same(&folder));
    archive::analyze(&folder).unwrap();
    let report = fs::read_to_string(folder.path().join("report.md")).unwrap();
    assert_eq!(report, "# Ours: A small run\n\n- a backup ran\n");
    assert!(is_same(&folder));
    // And so does a published copy, elsewhere.
    let target = dir.path().join("site");
    archive::publish(&folder, &target, &Redaction::new(None).unwrap()).unwrap();
    let copy = RunFolder::open(&target).unwrap();
    assert_eq!(
        fs::read_to_string(target.join("report.md")).unwrap(),
        report
    );
    let found = verify(&copy).unwrap();
    assert!(found.same(), "{:?}", found.differences);
}

#[test]
fn another_format_leaves_no_older_one_behind() {
    let dir = tempfile::tempdir().unwrap();
    let folder = copy(dir.path());
    let built_in = TemplateSource::built_in();
    archive::report(&folder, &[Format::Md], &built_in).unwrap();
    // A later run joins the list that a report prints.
    let later = RunFolder::create(dir.path(), "small", "20270101T000000Z", 7).unwrap();
    fs::write(later.experiment(), "").unwrap();
    archive::report(&folder, &[Format::Junit], &built_in).unwrap();
    let report = fs::read_to_string(folder.path().join("report.md")).unwrap();
    assert!(report.contains(&later.id()), "{report}");
    assert!(is_same(&folder));
}

#[test]
fn a_run_that_was_never_reported_is_judged_and_sealed_without_a_report() {
    let dir = tempfile::tempdir().unwrap();
    let folder = copy(dir.path());
    archive::analyze(&folder).unwrap();
    assert!(folder.summary().is_file() && folder.checksums().is_file());
    assert!(!folder.path().join("report.md").exists());
    let error = format!("{:#}", verify(&folder).unwrap_err());
    assert!(error.contains("holds no report"), "{error}");
}
