//! Kept runs: listing, verifying, remarks, publishing.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::Result;
use ceteris::analysis::Summary;
use ceteris::archive::{self, Redaction};
use ceteris::measure::{
    Account, Counts, Event, EventKind, FailureClass, FailureRow, LoadSecond, MachineFacts, Outcome,
    Phase, Sample,
};
use ceteris::name::{Arm, Arms};
use ceteris::report::{self, Format, TemplateSource};
use ceteris::results::{
    ArmLayout, ArmWriter, Manifest, RunFolder, SCHEMA, ToolFacts, TrialRecord, read_run,
};
use hdrhistogram::Histogram;
use proptest::prelude::*;
use sha2::Digest as _;

use crate::report::fixture;

mod old;

/// What the experiment file of the made runs holds.
const EXPERIMENT: &str = "[experiment]\nname = \"quickstart\"\n";
const SECRET: &str = "hunter2hunter2";

fn manifest(summary: &Summary) -> Manifest {
    let trial = |arm| TrialRecord {
        pair: 1,
        arm,
        measured_from: None,
        services: Vec::new(),
        addresses: Vec::new(),
    };
    Manifest {
        schema: SCHEMA,
        tool: ToolFacts {
            version: "0.1.0".into(),
            sha256: None,
        },
        experiment_sha256: sha2::Sha256::digest(EXPERIMENT)
            .iter()
            .map(|byte| format!("{byte:02x}"))
            .collect(),
        experiment_path: "experiments/quickstart.toml".into(),
        started: summary.run.started.clone(),
        ended: Some("2026-11-30T22:20:00Z".into()),
        outcome: Some("complete".into()),
        command_line: summary.run.command_line.clone(),
        smoke_s: None,
        seed: 7,
        order: vec![trial(Arm::Control), trial(Arm::Treatment)],
        arms: Arms {
            treatment: format!("url = \"postgres://app:{SECRET}@127.0.0.1/x\"").into(),
            control: "x = 2".into(),
        },
        programs: BTreeMap::new(),
        machine: MachineFacts::default(),
        equality: Vec::new(),
        git_commit: None,
        git_clean: None,
        latency_interval_s: 1,
        not_whole: Default::default(),
    }
}

fn second(index: u64) -> LoadSecond {
    let mut counts = Counts {
        sent: 11,
        ..Counts::default()
    };
    let mut histogram = Histogram::new(3).unwrap();
    for i in 0..10 {
        counts.record(Outcome::Ok);
        histogram.record(1_000 + 10 * i).unwrap();
    }
    counts.record(Outcome::Failed(FailureClass::Status503));
    LoadSecond {
        index,
        counts,
        ok_by_step: vec![10],
        latency_us: vec![histogram],
        in_flight: 8,
        account: Account::default(),
        driver_cpu_s: 0.1,
        send_delay_us: 2.0,
        silence: None,
    }
}

fn write_arm(folder: &RunFolder, arm: Arm, seconds: u64) {
    let layout = ArmLayout {
        steps: vec!["list".into()],
        latency_interval_s: 1,
    };
    let place = folder.arm(1, arm);
    let mut writer = ArmWriter::create(&place, &layout).unwrap();
    writer
        .event(&Event {
            at_s: 0.0,
            wall: "2026-11-30T22:15:20Z".into(),
            kind: EventKind::Phase {
                phase: Phase::Measuring,
            },
        })
        .unwrap();
    for index in 0..seconds {
        writer.second(&second(index), None).unwrap();
    }
    writer
        .failures(&[FailureRow {
            at_s: 0.5,
            step: "list".into(),
            class: FailureClass::Status503,
            status: Some(503),
            latency_ms: Some(1.0),
            received: 4,
            promised: None,
            said: format!("{{\"token\": \"{SECRET}\"}}"),
        }])
        .unwrap();
    writer
        .samples(&[Sample {
            at_s: 1.0,
            service: "app".into(),
            metric: "memory.rss".into(),
            unit: "MiB".into(),
            value: 12.5,
            epoch: 0,
        }])
        .unwrap();
    writer.finish().unwrap();
    fs::write(
        place.logs().join("app.log"),
        format!("connecting to postgres://app:{SECRET}@127.0.0.1/x from build-host-7\n"),
    )
    .unwrap();
}

/// A kept run, judged, reported and sealed; `seconds` decides how large its raw data are.
fn kept(results: &Path, seconds: u64) -> (RunFolder, Summary) {
    let mut summary = fixture::valid();
    let folder = RunFolder::create(results, "quickstart", "20261130T221500Z", 0x1a2b).unwrap();
    summary.run.id = folder.id();
    summary.notes.clear();
    fs::write(folder.experiment(), EXPERIMENT).unwrap();
    manifest(&summary).write(&folder).unwrap();
    write_arm(&folder, Arm::Treatment, seconds);
    write_arm(&folder, Arm::Control, 2);
    finish(&folder, &summary);
    (folder, summary)
}

/// Writes summary, report and checksums.
fn finish(folder: &RunFolder, summary: &Summary) {
    fs::write(
        folder.summary(),
        serde_json::to_vec_pretty(summary).unwrap(),
    )
    .unwrap();
    let runs = archive::kept_runs(folder).unwrap();
    for (name, bytes) in report::render(
        summary,
        &runs,
        &[Format::Md, Format::Html],
        &TemplateSource::built_in(),
    )
    .unwrap()
    {
        let path = folder.path().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, bytes).unwrap();
    }
    archive::seal(folder.path()).unwrap();
}

/// Judges as the test knows it: the raw files have to be readable, the verdicts are the fixture's.
fn judge(summary: &Summary) -> impl Fn(&RunFolder) -> Result<Summary> + '_ {
    |folder| {
        read_run(folder)?;
        Ok(summary.clone())
    }
}

fn verify(folder: &RunFolder, summary: &Summary) -> Result<archive::Verification> {
    archive::verify(folder, &judge(summary))
}

fn every_file(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.extend(every_file(&path));
        } else {
            found.push(path);
        }
    }
    found.sort();
    found
}

#[test]
fn an_untouched_run_is_the_same_and_says_how_much_was_compared() {
    let dir = tempfile::tempdir().unwrap();
    let (folder, summary) = kept(dir.path(), 3);
    let verification = verify(&folder, &summary).unwrap();
    assert!(verification.same(), "{:?}", verification.differences);
    assert_eq!(verification.files, every_file(folder.path()).len() - 1);
    assert!(verification.values > 500, "{}", verification.values);
}

#[test]
fn a_changed_figure_is_named_even_when_the_checksums_were_made_anew() {
    let dir = tempfile::tempdir().unwrap();
    let (folder, summary) = kept(dir.path(), 3);
    let mut other = summary.clone();
    other.arms.treatment.as_mut().unwrap().windows[5].throughput = 1_000.0;
    fs::write(folder.summary(), serde_json::to_vec_pretty(&other).unwrap()).unwrap();
    archive::seal(folder.path()).unwrap();
    let verification = verify(&folder, &summary).unwrap();
    let [difference] = verification.differences.as_slice() else {
        panic!("{:?}", verification.differences);
    };
    assert_eq!(difference.file, "summary.json");
    assert_eq!(difference.what, "arms.treatment.windows.5.throughput");
    assert_eq!(
        (difference.stored.as_str(), difference.now.as_str()),
        ("1000.0", "568.0")
    );
}

#[test]
fn a_changed_report_is_named_with_its_line_and_a_missing_file_by_name() {
    let dir = tempfile::tempdir().unwrap();
    let (folder, summary) = kept(dir.path(), 3);
    let path = folder.path().join("report.md");
    let text = fs::read_to_string(&path).unwrap();
    fs::write(&path, text.replace("fell by 64 %", "fell by 94 %")).unwrap();
    fs::remove_file(folder.path().join("charts/latency.svg")).unwrap();
    archive::seal(folder.path()).unwrap();
    let verification = verify(&folder, &summary).unwrap();
    let files: Vec<&str> = verification
        .differences
        .iter()
        .map(|d| d.file.as_str())
        .collect();
    assert_eq!(files, ["charts/latency.svg", "report.md"]);
    assert!(verification.differences[1].stored.contains("94 %"));
    assert!(verification.differences[1].now.contains("64 %"));
}

#[test]
fn what_was_never_judged_reported_or_sealed_cannot_be_verified() {
    let dir = tempfile::tempdir().unwrap();
    let (folder, summary) = kept(dir.path(), 2);
    for file in ["SHA256SUMS", "summary.json", "manifest.json", "runs.json"] {
        let path = folder.path().join(file);
        let (bytes, sums) = (
            fs::read(&path).unwrap(),
            fs::read(folder.checksums()).unwrap(),
        );
        fs::remove_file(&path).unwrap();
        if file != "SHA256SUMS" {
            // One that was there and is missing differs; one that never was can't be compared with.
            let found = verify(&folder, &summary).unwrap();
            assert!(!found.same());
            assert_eq!(found.differences[0].file, file, "{:?}", found.differences);
            archive::seal(folder.path()).unwrap();
        }
        let error = format!("{:#}", verify(&folder, &summary).unwrap_err());
        assert!(error.contains(file), "{error}");
        fs::write(&path, bytes).unwrap();
        fs::write(folder.checksums(), sums).unwrap();
    }
    assert!(verify(&folder, &summary).unwrap().same());
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]
    #[test]
    fn no_byte_can_change_unnoticed(file in any::<prop::sample::Index>(), at in any::<prop::sample::Index>(), flip in 1_u8..) {
        let dir = tempfile::tempdir().unwrap();
        let (folder, summary) = kept(dir.path(), 2);
        let files = every_file(folder.path());
        let path = file.get(&files);
        let mut bytes = fs::read(path).unwrap();
        prop_assume!(!bytes.is_empty());
        let at = at.index(bytes.len());
        bytes[at] ^= flip;
        fs::write(path, bytes).unwrap();
        let same = verify(&folder, &summary).is_ok_and(|verification| verification.same());
        prop_assert!(!same, "{} at {at}", path.display());
    }
}

#[test]
fn every_run_is_listed_also_what_cannot_be_read() {
    let dir = tempfile::tempdir().unwrap();
    let (folder, summary) = kept(dir.path(), 2);
    let unfinished = RunFolder::create(dir.path(), "quickstart", "20261130T230000Z", 1).unwrap();
    fs::write(unfinished.experiment(), "").unwrap();
    let mut facts = manifest(&summary);
    facts.outcome = None;
    facts.smoke_s = Some(20.0);
    facts.write(&unfinished).unwrap();
    let broken = RunFolder::create(dir.path(), "quickstart", "20261130T233000Z", 2).unwrap();
    fs::write(broken.experiment(), "").unwrap();
    fs::write(broken.manifest(), "{").unwrap();
    let runs = archive::list(dir.path(), Some("quickstart")).unwrap();
    let seen: Vec<(&str, &str, Option<bool>, bool)> = runs
        .iter()
        .map(|kept| {
            (
                kept.run.id.as_str(),
                kept.run.ended.as_str(),
                kept.run.valid,
                kept.run.smoke,
            )
        })
        .collect();
    assert_eq!(
        seen,
        [
            (folder.id().as_str(), "complete", Some(true), false),
            (unfinished.id().as_str(), "unfinished", None, true),
            (broken.id().as_str(), "not known", None, false),
        ]
    );
    assert_eq!(
        runs[0].run.result,
        "throughput: treatment falls, control flat; all 2 criteria hold; exit code 0"
    );
    assert!(
        runs[2].run.result.contains("manifest.json"),
        "{}",
        runs[2].run.result
    );
    // A report tells runs of another file, and lists no published copy beside its run.
    facts = manifest(&summary);
    facts.started = "2026-11-30T23:00:00.000Z".to_owned();
    facts.experiment_sha256 = "0".repeat(64);
    facts.write(&unfinished).unwrap();
    let copy = dir.path().join("quickstart/published");
    fs::create_dir(&copy).unwrap();
    fs::copy(folder.manifest(), copy.join("manifest.json")).unwrap();
    fs::copy(folder.experiment(), copy.join("experiment.toml")).unwrap();
    let everything = archive::list(dir.path(), Some("quickstart")).unwrap();
    assert_eq!(everything.len(), 4, "a copy is a folder of results too");
    let listed = archive::kept_runs(&folder).unwrap();
    let ids: Vec<&str> = listed.iter().map(|run| run.id.as_str()).collect();
    let all = [folder.id(), unfinished.id(), broken.id()];
    assert_eq!(ids, all.each_ref().map(String::as_str));
    assert!(!listed[0].result.contains("another experiment file"));
    assert!(
        listed[1].result.starts_with("another experiment file; "),
        "{}",
        listed[1].result
    );
    assert!(
        archive::list(&dir.path().join("absent"), None)
            .unwrap()
            .is_empty()
    );
}

#[test]
fn a_note_is_kept_as_written_and_an_empty_one_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let (folder, _) = kept(dir.path(), 2);
    archive::note(
        &folder,
        Some(60.0),
        "a backup\nran | here",
        "2026-12-01T00:00:00Z",
    )
    .unwrap();
    archive::note(&folder, None, "second", "2026-12-01T00:00:01Z").unwrap();
    let notes = read_run(&folder).unwrap().notes;
    assert_eq!(notes.len(), 2);
    assert_eq!(notes[0]["text"], "a backup\nran | here");
    assert_eq!(notes[0]["at_s"], 60.0);
    for (at, text) in [(None, "  "), (Some(-1.0), "x"), (Some(f64::NAN), "x")] {
        assert!(archive::note(&folder, at, text, "2026-12-01T00:00:00Z").is_err());
    }
    assert!(archive::note(&folder, None, &"x".repeat(3_000), "2026-12-01T00:00:00Z").is_err());
}

#[test]
fn a_published_run_verifies_and_holds_no_secret_and_no_host_name() {
    let dir = tempfile::tempdir().unwrap();
    let (folder, mut summary) = kept(dir.path(), 4_000);
    summary
        .limits
        .push(fixture::limit("it ran on build-host-7", true));
    finish(&folder, &summary);
    let target = dir.path().join("site/soak");
    let redaction = Redaction::new(Some("build-host-7")).unwrap();
    let published = archive::publish(&folder, &target, &redaction).unwrap();
    assert!(published.redacted >= 5, "{published:?}");
    assert!(published.compressed >= 1, "{published:?}");
    for path in every_file(&target) {
        let text = String::from_utf8_lossy(&fs::read(&path).unwrap()).into_owned();
        assert!(!text.contains(SECRET), "{}", path.display());
        assert!(!text.contains("build-host-7"), "{}", path.display());
    }
    for file in [
        "index.html",
        "DATA.md",
        "ro-crate-metadata.json",
        "report.md",
        "experiment.toml",
    ] {
        assert!(target.join(file).is_file(), "{file}");
    }
    let copy = RunFolder::open(&target).unwrap();
    let (ours, theirs) = (read_run(&folder).unwrap(), read_run(&copy).unwrap());
    assert_eq!(ours.trials[1].seconds, theirs.trials[1].seconds);
    assert_eq!(
        ours.trials[1].latency.intervals().count(),
        theirs.trials[1].latency.intervals().count()
    );
    let last = summary.limits.last_mut().unwrap();
    last.text = "it ran on host".into();
    let verification = verify(&copy, &summary).unwrap();
    assert!(verification.same(), "{:?}", verification.differences);
    // Never over something that is there.
    let again = archive::publish(&folder, &target, &redaction);
    assert!(format!("{:#}", again.unwrap_err()).contains("not empty"));
}

#[test]
fn an_experiment_file_with_a_secret_is_not_published() {
    let dir = tempfile::tempdir().unwrap();
    let (folder, _) = kept(dir.path(), 2);
    fs::write(
        folder.experiment(),
        format!("url = \"postgres://a:{SECRET}@h/x\"\n"),
    )
    .unwrap();
    let redaction = Redaction::new(None).unwrap();
    let target = dir.path().join("out");
    let error = archive::publish(&folder, &target, &redaction).unwrap_err();
    assert!(
        format!("{error:#}").contains("experiment.toml"),
        "{error:#}"
    );
    assert!(every_file(&target).is_empty());
}

#[test]
fn the_data_dictionary_names_every_column() {
    let dir = tempfile::tempdir().unwrap();
    let (folder, _) = kept(dir.path(), 2);
    let target = dir.path().join("out");
    let redaction = Redaction::new(None).unwrap();
    archive::publish(&folder, &target, &redaction).unwrap();
    let dictionary = fs::read_to_string(target.join("DATA.md")).unwrap();
    let arm = folder.arm(1, Arm::Control);
    for path in [arm.seconds(), arm.failures(), arm.samples()] {
        let text = fs::read_to_string(&path).unwrap();
        let mut columns = 0;
        for column in text.lines().next().unwrap().split(',') {
            let known = dictionary.contains(&format!("| `{column}` |"))
                || (column == "ok_list" && dictionary.contains("`ok_"));
            assert!(known, "{column} of {}", path.display());
            columns += 1;
        }
        assert!(columns > 5);
    }
}
