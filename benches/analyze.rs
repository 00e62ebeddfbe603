//! Judging a run of 72 hours: 259,200 seconds, 4,320 samples of 200 metrics, a histogram log of some 60 MB, over two arms.
//!
//! `cargo bench --bench analyze` makes such a run in a temporary folder, judges and renders it in a process of its own, and
//! prints the times, the peak memory of that process and the size of the page. The aim is under 2 s and 200 MiB for judging,
//! under 3 s and 2 MB for rendering. With `make DIR` the run is made in DIR and stays there;
//! `CETERIS_BENCH_HOURS=72` makes each arm so long.
#![allow(
    clippy::print_stdout,
    clippy::unwrap_used,
    reason = "a benchmark prints its figures and fails by panicking"
)]

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;

use ceteris::analysis::{JudgeContext, Summary, judge};
use ceteris::experiment::{Experiment, LoadOptions, load};
use ceteris::measure::{
    Account, Counts, Equality, EqualityItem, Event, EventKind, HostSecond, LoadSecond,
    MachineFacts, Sample,
};
use ceteris::name::{Arm, Arms};
use ceteris::report::{self, Format, TemplateSource};
use ceteris::results::{
    ArmLayout, ArmWriter, Manifest, RunFolder, SCHEMA, ToolFacts, TrialRecord, read_run,
};
use hdrhistogram::Histogram;

/// Seconds an interval of the latency log.
const INTERVAL_S: u64 = 24;
const METRICS: usize = 200;

const EXPERIMENT: &str = r#"
[experiment]
name = "soak"
title = "Soak"
question = "Does throughput hold for three days?"

[schedule]
duration = "HOURSh"
window = "3h"

[deployment.app.process]
command = ["true"]

[clients]
target = "app"
closed = 8

[[workload.step]]
name = "list"
get = "/list"

[[workload.step]]
name = "fetch"
get = "/fetch"

[[workload.step]]
name = "create"
post = "/create"

[control]
variable = "deployment.app.process.env.MODE"
treatment = "a"
control = "b"

[analysis]
margin = "20%"
"#;

fn main() {
    let mut arguments = std::env::args().skip(1).filter(|a| !a.starts_with("--"));
    match (arguments.next().as_deref(), arguments.next()) {
        (Some("make"), Some(dir)) => {
            println!("{}", generate(Path::new(&dir)).display());
            return;
        }
        (Some(folder), _) => {
            judge_once(Path::new(folder));
            return;
        }
        (None, _) => {}
    }
    let dir = tempfile::tempdir().unwrap();
    let began = Instant::now();
    let folder = generate(dir.path());
    println!("made in {:.1} s", began.elapsed().as_secs_f64());
    for arm in ["treatment", "control"] {
        for file in ["seconds.csv", "samples.csv", "latency.hlog"] {
            let path = folder.join("pairs/01").join(arm).join(file);
            let bytes = std::fs::metadata(&path).unwrap().len();
            println!("{arm}/{file}: {:.1} MB", bytes as f64 / 1e6);
        }
    }
    let own = std::env::current_exe().unwrap();
    for _ in 0..3 {
        let status = Command::new(&own).arg(&folder).status().unwrap();
        assert!(status.success());
    }
}

fn judge_once(folder: &Path) {
    let began = Instant::now();
    let folder = RunFolder::open(folder).unwrap();
    let experiment = experiment(&folder.experiment());
    let run = read_run(&folder).unwrap();
    let read = began.elapsed().as_secs_f64();
    let summary = judge(&experiment, &run, &JudgeContext::default()).unwrap();
    let whole = began.elapsed().as_secs_f64();
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let peak: f64 = status
        .lines()
        .find_map(|line| line.strip_prefix("VmHWM:"))
        .and_then(|rest| rest.trim().trim_end_matches(" kB").trim().parse().ok())
        .unwrap();
    println!(
        "read {read:.2} s, judged {:.2} s, together {whole:.2} s; peak {:.0} MiB; {} figures",
        whole - read,
        peak / 1024.0,
        summary.figures.len()
    );
    render(&summary);
}

fn render(summary: &Summary) {
    let began = Instant::now();
    let templates = TemplateSource::built_in();
    let files = report::render(summary, &[], &Format::ALL, &templates).unwrap();
    let seconds = began.elapsed().as_secs_f64();
    let size = |name: &str| {
        let (_, bytes) = files.iter().find(|(file, _)| file == name).unwrap();
        bytes.len() as f64 / 1e6
    };
    println!(
        "rendered in {seconds:.2} s; report.html {:.2} MB, report.md {:.2} MB",
        size("report.html"),
        size("report.md")
    );
}

fn experiment(path: &Path) -> Experiment {
    match load(path, &LoadOptions::default()) {
        Ok(checked) => checked.experiment,
        Err(error) => panic!("{error}"),
    }
}

fn generate(dir: &Path) -> PathBuf {
    let folder = RunFolder::create(dir, "soak", "20260101T000000Z", 1).unwrap();
    let text = EXPERIMENT.replace("HOURS", &hours().to_string());
    std::fs::write(folder.experiment(), text).unwrap();
    let experiment = experiment(&folder.experiment());
    let manifest = Manifest {
        schema: SCHEMA,
        tool: ToolFacts {
            version: "0".into(),
            sha256: None,
        },
        experiment_sha256: experiment.source.sha256.clone(),
        experiment_path: "soak.toml".into(),
        started: "2026-01-01T00:00:00Z".into(),
        ended: Some("2026-01-07T00:00:00Z".into()),
        outcome: Some("complete".into()),
        command_line: Vec::new(),
        smoke_s: None,
        seed: 1,
        order: Arm::BOTH
            .iter()
            .map(|&arm| TrialRecord {
                pair: 1,
                arm,
                measured_from: None,
                services: Vec::new(),
                addresses: Vec::new(),
            })
            .collect(),
        arms: Arms {
            treatment: serde_json::Value::Null,
            control: serde_json::Value::Null,
        },
        programs: Default::default(),
        machine: MachineFacts::default(),
        equality: vec![EqualityItem {
            what: "app".into(),
            treatment: String::new(),
            control: String::new(),
            verdict: Equality::Equal,
        }],
        git_commit: None,
        git_clean: None,
        latency_interval_s: INTERVAL_S,
        not_whole: Default::default(),
    };
    manifest.write(&folder).unwrap();
    for arm in Arm::BOTH {
        arm_files(&folder, arm);
    }
    folder.path().to_owned()
}

/// Of each arm.
fn hours() -> u64 {
    std::env::var("CETERIS_BENCH_HOURS").map_or(36, |hours| hours.parse().unwrap())
}

/// A value that looks drawn and is always the same.
fn noise(i: u64) -> u64 {
    let mut x = i.wrapping_mul(0x9E37_79B9_7F4A_7C15);
    x ^= x >> 31;
    x = x.wrapping_mul(0x94D0_49BB_1331_11EB);
    x ^ (x >> 29)
}

fn arm_files(folder: &RunFolder, arm: Arm) {
    let layout = ArmLayout {
        steps: ["list", "fetch", "create"].map(str::to_owned).to_vec(),
        latency_interval_s: INTERVAL_S,
    };
    let mut writer = ArmWriter::create(&folder.arm(1, arm), &layout).unwrap();
    let mut latency_us: Vec<Histogram<u64>> = (0..3).map(|_| Histogram::new(3).unwrap()).collect();
    for second in 0..hours() * 3_600 {
        let ok = 800 - second / 500 + noise(second) % 40;
        for (step, histogram) in latency_us.iter_mut().enumerate() {
            histogram.reset();
            for i in 0..40 {
                let drawn = noise(second * 997 + i * 31 + step as u64);
                let us = 500 + drawn % 4_000 + (drawn % 97) * (drawn % 89) * 10;
                histogram.record_n(us, ok / 120).unwrap();
            }
        }
        let counts = Counts {
            sent: ok,
            ok,
            ..Counts::default()
        };
        let load = LoadSecond {
            index: second,
            counts,
            ok_by_step: vec![ok / 3; 3],
            latency_us: latency_us.clone(),
            in_flight: 8,
            account: Account {
                in_flight_s: 7.9,
                overhead_s: 0.1,
                ..Account::default()
            },
            driver_cpu_s: 0.12,
            send_delay_us: 20.0,
            silence: None,
        };
        let host = HostSecond {
            busy: 1.2,
            other_cpu: 0.05 + (noise(second) % 100) as f64 / 1e3,
            pressure_cpu: Some(0.2),
            pressure_io: Some(0.01),
            pressure_memory: Some(0.0),
            ..HostSecond::default()
        };
        writer.second(&load, Some(host)).unwrap();
        if second % 60 == 0 {
            samples(&mut writer, second);
            let kind = EventKind::Clock {
                monotonic_s: second as f64,
                wall_s: second as f64,
            };
            let event = Event {
                at_s: second as f64,
                wall: "2026-01-01T00:00:00Z".into(),
                kind,
            };
            writer.event(&event).unwrap();
        }
    }
    writer.finish().unwrap();
}

fn samples(writer: &mut ArmWriter, second: u64) {
    let all: Vec<Sample> = (0..METRICS)
        .map(|i| {
            let counter = i % 2 == 0;
            let (metric, unit) = match i {
                0 => ("cpu_user_s".to_owned(), "cpu_s"),
                1 => ("memory.rss".to_owned(), "MiB"),
                2 => ("cpu_system_s".to_owned(), "cpu_s"),
                3 => ("descriptors".to_owned(), "count"),
                _ if counter => (format!("counter_{i}"), "count_total"),
                _ => (format!("gauge_{i}"), "count"),
            };
            let value = if counter {
                second as f64 * 0.4
            } else {
                100.0 + (noise(second + i as u64) % 1_000) as f64 / 37.0
            };
            Sample {
                at_s: second as f64 + 0.01,
                service: "app".into(),
                metric,
                unit: unit.into(),
                value,
                epoch: 0,
            }
        })
        .collect();
    writer.samples(&all).unwrap();
}
