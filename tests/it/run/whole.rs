//! One whole small run: everything that it writes, and everything that is done with a run afterwards.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use ceteris::measure::{EventKind, FailureClass, StopReason};
use ceteris::results::{RunFolder, Trial, read_run};
use serde_json::Value;

use super::site::{Ran, Site, copy, files_below, pruned, ran, turn, with};

const SECRET: &str = "correct-horse-battery-staple";

/// A run that is shared: nobody changes its folder.
struct Whole {
    site: Site,
    ran: Ran,
}

/// Both arms measured for six seconds, long enough between readings that a busy machine misses none.
fn whole() -> &'static Whole {
    static WHOLE: OnceLock<Whole> = OnceLock::new();
    WHOLE.get_or_init(|| {
        let _turn = turn();
        let site = Site::new();
        let peek = format!("PEEK = \"{}\", FAULT", site.at("peek").display());
        let text = with(&pruned(), "FAULT", &peek);
        let text = with(&text, "duration = \"3s\"", "duration = \"6s\"");
        let text = with(&text, "window   = \"1s\"", "window   = \"2s\"");
        let text = with(&text, "sample   = \"1s\"", "sample   = \"3s\"");
        site.write("experiment.toml", &text);
        let mut command = site.command(&["run", "experiment.toml"]);
        let ran = ran(command.env("SMALL_PASSWORD", SECRET));
        Whole { site, ran }
    })
}

/// A copy of the run to change, in a folder of results of its own.
fn copied() -> (Site, PathBuf) {
    let site = Site::new();
    let from = whole().site.folder();
    let to = site.at("results/small").join(from.file_name().unwrap());
    copy(&from, &to);
    (site, to)
}

fn trials() -> Vec<Trial> {
    let run = read_run(&RunFolder::open(&whole().site.folder()).unwrap()).unwrap();
    assert_eq!(run.trials.len(), 2);
    run.trials
}

fn number(value: &Value, path: &str) -> f64 {
    let found = value.pointer(path);
    found
        .and_then(Value::as_f64)
        .unwrap_or_else(|| panic!("{path} is {found:?}"))
}

#[test]
fn it_ends_well_and_leaves_nothing_but_its_folder() {
    let Whole { site, ran } = whole();
    assert_eq!(ran.code, Some(0), "{}\n{}", ran.out, ran.err);
    assert!(!ran.err.contains("panicked"), "{}", ran.err);
    site.nothing_is_left();
    let folder = site.folder();
    for name in [
        "experiment.toml",
        "manifest.json",
        "summary.json",
        "report.md",
        "report.html",
        "SHA256SUMS",
        "charts/throughput.svg",
    ] {
        assert!(folder.join(name).is_file(), "{name}");
    }
    for arm in ["treatment", "control"] {
        for name in [
            "seconds.csv",
            "warmup.csv",
            "latency.hlog",
            "failures.csv",
            "samples.csv",
            "events.jsonl",
            "logs/app.log",
            "logs/db.log",
        ] {
            let file = folder.join("pairs/01").join(arm).join(name);
            assert!(file.is_file(), "{}", file.display());
        }
    }
    let half: Vec<PathBuf> = files_below(&folder)
        .into_iter()
        .filter(|file| file.extension().is_some_and(|ending| ending == "new"))
        .collect();
    assert_eq!(half, Vec::<PathBuf>::new());
    assert_eq!(
        fs::read(folder.join("experiment.toml")).unwrap(),
        fs::read(site.at("experiment.toml")).unwrap()
    );
}

#[test]
fn the_report_opens_with_what_is_supported_and_what_is_not() {
    let report = whole().site.report();
    let mut at = 0;
    for part in [
        "A small run",
        "Does one thing differ?",
        "Status",
        "Setup",
        "Supports",
        "requests were answered, none with an error",
        "Does not support",
        "one pair was run",
        "Source data",
    ] {
        let found = report[at..].find(part);
        at += found.unwrap_or_else(|| panic!("no '{part}' after {at} in:\n{report}"));
    }
    assert!(whole().ran.out.contains("Supports:"));
}

#[test]
fn every_request_is_counted_once_everywhere() {
    let summary = whole().site.summary();
    for trial in trials() {
        let seconds = &trial.seconds;
        let indexes: Vec<u64> = seconds.iter().map(|row| row.at_s).collect();
        assert_eq!(indexes, (0..6).collect::<Vec<_>>());
        let sum = |count: &dyn Fn(&ceteris::results::SecondRow) -> u64| -> u64 {
            seconds.iter().map(|row| count(&row)).sum()
        };
        let sent = sum(&|row| row.counts.sent);
        let ok = sum(&|row| row.counts.ok);
        let failed = sum(&|row| row.counts.failed_total());
        let cut = sum(&|row| row.counts.cut);
        assert!(ok > 100, "{ok}");
        assert_eq!(sent, ok + failed + cut);
        assert_eq!(sum(&|row| row.ok_by_step.iter().sum()), ok);

        let ends: Vec<&EventKind> = trial
            .events
            .iter()
            .map(|event| &event.kind)
            .filter(|kind| matches!(kind, EventKind::LoadEnd { .. }))
            .collect();
        let [
            EventKind::LoadEnd {
                sent: told_sent,
                ok: told_ok,
                failed: told_failed,
                cut: told_cut,
                cut_ages_ms,
                seconds: length,
                ..
            },
        ] = ends[..]
        else {
            panic!("{ends:?}")
        };
        assert_eq!(
            (*told_sent, *told_ok, *told_failed, *told_cut),
            (sent, ok, failed, cut)
        );
        assert_eq!(cut_ages_ms.len() as u64, cut);
        assert_eq!(*length, 6.0);

        let figure = |name: &str| number(&summary, &format!("/figures/{}.{name}", trial.arm));
        assert_eq!(figure("seconds"), 6.0);
        assert_eq!(figure("requests.sent"), sent as f64);
        assert_eq!(figure("requests.ok"), ok as f64);
        assert_eq!(figure("requests.failed"), failed as f64);
        assert_eq!(figure("requests.cut"), cut as f64);
        for (i, step) in trial.steps.iter().enumerate() {
            let name = format!("requests.steps.{step}.ok");
            assert_eq!(figure(&name), sum(&|row| row.ok_by_step[i]) as f64);
        }
        let mean = figure("throughput.mean");
        assert!((mean - ok as f64 / 6.0).abs() < 1e-6, "{mean}");
    }
}

#[test]
fn windows_are_the_merged_histograms_of_their_seconds() {
    let summary = whole().site.summary();
    for trial in trials() {
        let intervals: Vec<_> = trial.latency.intervals().map(Result::unwrap).collect();
        let windows = summary
            .pointer(&format!("/arms/{}/windows", trial.arm))
            .and_then(Value::as_array)
            .unwrap();
        assert_eq!(windows.len(), 3);
        for window in windows {
            let (from, to) = (number(window, "/from_s"), number(window, "/to_s"));
            let within = |at: f64| at >= from && at < to;
            let mut merged = hdrhistogram::Histogram::<u64>::new(3).unwrap();
            for interval in intervals.iter().filter(|interval| within(interval.from_s)) {
                merged.add(&interval.histogram).unwrap();
            }
            let rows = trial.seconds.iter().filter(|row| within(row.at_s as f64));
            let completed: u64 = rows.clone().map(|row| row.counts.completed()).sum();
            let ok: u64 = rows.map(|row| row.counts.ok).sum();
            assert_eq!(merged.len(), completed);
            let throughput = number(window, "/throughput");
            assert!((throughput - ok as f64 / (to - from)).abs() < 1e-6);
            for (name, quantile) in [("/p50", 0.5), ("/p99", 0.99)] {
                let told = number(window, name);
                let found = merged.value_at_quantile(quantile) as f64 / 1e3;
                assert!((told - found).abs() <= found * 2e-3, "{told} {found}");
            }
        }
    }
    for arm in ["treatment", "control"] {
        let figure = |name: &str| number(&summary, &format!("/figures/{arm}.latency.{name}"));
        let order = ["p50", "p90", "p99", "max"].map(figure);
        assert!(order.is_sorted(), "{order:?}");
        let classes: f64 = FailureClass::ALL
            .iter()
            .map(|class| {
                number(
                    &summary,
                    &format!("/figures/{arm}.failures.{}", class.as_str()),
                )
            })
            .sum();
        assert_eq!(classes, 0.0);
    }
}

/// What each client asked first, in its order: step and drawn number.
fn asked(log: &Path) -> BTreeMap<String, Vec<String>> {
    let mut clients: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for line in fs::read_to_string(log).unwrap().lines() {
        let Some((method, query)) = line
            .strip_prefix("asked ")
            .and_then(|rest| rest.split_once(' '))
        else {
            continue;
        };
        let (client, rest) = query.split_once('&').unwrap();
        let asked = clients.entry(client.to_owned()).or_default();
        asked.push(format!("{method} {rest}"));
    }
    clients
}

#[test]
fn both_arms_ask_the_same_in_the_same_order() {
    let folder = whole().site.folder().join("pairs/01");
    let [treatment, control] =
        ["treatment", "control"].map(|arm| asked(&folder.join(arm).join("logs/app.log")));
    assert_eq!(treatment.len(), 4);
    assert_eq!(
        treatment.keys().collect::<Vec<_>>(),
        control.keys().collect::<Vec<_>>()
    );
    let mut numbers = BTreeSet::new();
    for (client, asked) in &treatment {
        // Within warm-up, whose length in requests differs between the arms.
        let first = &asked[..50];
        assert_eq!(first, &control[client][..50], "{client}");
        assert!(first.iter().any(|line| line.starts_with("POST")));
        numbers.extend(first.iter().filter_map(|line| line.split_once("number=")));
    }
    assert!(numbers.len() > 20, "clients draw numbers of their own");
}

#[test]
fn the_change_took_effect_and_nothing_else_differs() {
    let summary = whole().site.summary();
    assert!(number(&summary, "/figures/control.pruned.jobs") > 0.0);
    assert_eq!(number(&summary, "/figures/treatment.pruned.jobs"), 0.0);
    let rows = |arm: &str, end: &str| {
        let name = format!("/figures/{arm}.services.db.table.jobs.rows.{end}");
        number(&summary, &name)
    };
    assert_eq!(rows("treatment", "first"), rows("treatment", "last"));
    assert!(rows("control", "last") < rows("treatment", "last"));
    for trial in trials() {
        let stopped = trial
            .events
            .iter()
            .rev()
            .find_map(|event| match &event.kind {
                EventKind::Stopped { reason, .. } => Some(*reason),
                _ => None,
            });
        assert_eq!(stopped, Some(StopReason::Complete));
    }
}

#[test]
fn no_password_is_written_anywhere() {
    let site = &whole().site;
    let peek = fs::read_to_string(site.at("peek")).unwrap();
    let mut secrets: BTreeSet<String> = peek
        .lines()
        .map(|url| {
            let credentials = url.split_once("://").unwrap().1.rsplit_once('@').unwrap().0;
            credentials.split_once(':').unwrap().1.to_owned()
        })
        .collect();
    assert!(!secrets.is_empty() && secrets.iter().all(|secret| secret.len() >= 16));
    secrets.insert(SECRET.to_owned());
    for file in files_below(&site.folder()) {
        let bytes = fs::read(&file).unwrap();
        for secret in &secrets {
            let found = bytes
                .windows(secret.len())
                .any(|window| window == secret.as_bytes());
            assert!(!found, "{} holds a password", file.display());
        }
    }
    for secret in &secrets {
        assert!(!whole().ran.out.contains(secret) && !whole().ran.err.contains(secret));
    }
}

#[test]
fn a_kept_run_is_judged_and_verified_from_anywhere() {
    let (site, folder) = copied();
    let run = folder.to_str().unwrap();
    // Neither the schema file nor the variable of the environment is there any more.
    fs::remove_file(site.at("schema.sql")).unwrap();
    let before = fs::read(folder.join("summary.json")).unwrap();
    let told = site.ceteris(&["verify", run]).ends(0);
    assert!(told.out.contains("the same"), "{}", told.out);
    site.ceteris(&["analyze", run]).ends(0);
    assert_eq!(fs::read(folder.join("summary.json")).unwrap(), before);
    let report = fs::read(folder.join("report.md")).unwrap();
    site.ceteris(&["report", run]).ends(0);
    assert_eq!(fs::read(folder.join("report.md")).unwrap(), report);
    site.ceteris(&["verify", run]).ends(0);
}

#[test]
fn one_changed_byte_does_not_verify() {
    for name in [
        "pairs/01/treatment/seconds.csv",
        "summary.json",
        "report.md",
    ] {
        let (site, folder) = copied();
        let file = folder.join(name);
        let mut bytes = fs::read(&file).unwrap();
        let digit = bytes.iter().rposition(u8::is_ascii_digit).unwrap();
        bytes[digit] = if bytes[digit] == b'7' { b'8' } else { b'7' };
        fs::write(&file, bytes).unwrap();
        let told = site.ceteris(&["verify", folder.to_str().unwrap()]).ends(1);
        assert!(told.out.contains(name), "{}", told.out);
    }
}

#[test]
fn a_remark_a_list_other_formats_and_a_published_copy() {
    let (site, folder) = copied();
    let run = folder.to_str().unwrap();
    let list = site.ceteris(&["list", "results"]).ends(0).out;
    assert_eq!(list.lines().count(), 1);
    for part in [run.rsplit('/').next().unwrap(), "complete", "valid"] {
        assert!(list.contains(part), "{list}");
    }

    site.ceteris(&["report", run, "--format", "junit,github-summary"])
        .ends(0);
    let junit = fs::read_to_string(folder.join("junit.xml")).unwrap();
    assert!(junit.contains("<testsuite") && junit.contains("no request is refused"));
    let short = fs::read_to_string(folder.join("github-summary.md")).unwrap();
    assert!(short.contains("A small run"), "{short}");

    site.ceteris(&["note", run, "--at", "2s", "a neighbour began to build"])
        .ends(0);
    site.ceteris(&["note", run, "--at", "soon", "x"])
        .ends(2)
        .names(&["--at"]);
    let report = fs::read_to_string(folder.join("report.md")).unwrap();
    assert!(report.contains("a neighbour began to build"), "{report}");
    site.ceteris(&["verify", run]).ends(0);

    site.ceteris(&["publish", run, "published"]).ends(0);
    let published = site.at("published");
    assert!(published.join("report.md").is_file());
    site.ceteris(&["verify", published.to_str().unwrap()])
        .ends(0);
}
