//! Reading a run back, also one that never ended.

use std::collections::BTreeMap;
use std::io::BufRead;
use std::path::Path;

use anyhow::{Context, Result, anyhow};

use super::folder::{ArmFolder, RunFolder};
use super::hlog::LatencyData;
use super::manifest::Manifest;
use super::probe::{MicroRow, ProbeRow, read_micro, read_probe};
use super::rows::{FailureLine, SecondRow, read_failures, read_seconds, whole_lines};
use crate::measure::Event;
use crate::name::Arm;

/// A run as its files tell it.
#[derive(Debug, Clone)]
pub struct Run {
    /// Name of its folder.
    pub id: String,
    /// What ran.
    pub manifest: Manifest,
    /// The experiment file's text.
    pub experiment: String,
    /// Its arms, in the realised order, those that never began left out.
    pub trials: Vec<Trial>,
    /// Levels of the saturation probe, in the order in which they ran.
    pub probe: Vec<ProbeRow>,
    /// Rounds of counted calls.
    pub micro: Vec<MicroRow>,
    /// Lines of notes.jsonl.
    pub notes: Vec<serde_json::Value>,
}

/// One arm of one pair as its files tell it.
#[derive(Debug, Clone)]
pub struct Trial {
    /// From 1.
    pub pair: u32,
    /// Which arm.
    pub arm: Arm,
    /// Steps, as the columns name them.
    pub steps: Vec<String>,
    /// Measured seconds, in order.
    pub seconds: Vec<SecondRow>,
    /// Latencies.
    pub latency: LatencyData,
    /// Samples by service and metric.
    pub samples: BTreeMap<(String, String), SampleSeries>,
    /// Events in the order of writing.
    pub events: Vec<Event>,
    /// Failed requests that were kept as examples.
    pub failures: Vec<FailureLine>,
}

/// The readings of one instrument.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct SampleSeries {
    /// Unit, as written with the first reading.
    pub unit: String,
    /// Second, value, epoch; in the order of reading.
    pub points: Vec<(f64, f64, u32)>,
}

/// Reads a run.
///
/// # Errors
/// When the experiment or the manifest can't be read, or a file is damaged elsewhere than in its last line.
pub fn read_run(folder: &RunFolder) -> Result<Run> {
    let path = folder.experiment();
    let experiment =
        std::fs::read_to_string(&path).with_context(|| format!("reading {}", path.display()))?;
    let manifest = Manifest::read(&folder.manifest())?;
    let mut trials = Vec::new();
    for record in &manifest.order {
        let arm = folder.arm(record.pair, record.arm);
        if arm.path().is_dir() {
            trials.push(read_trial(&arm, record.pair, record.arm)?);
        }
    }
    Ok(Run {
        id: folder.id(),
        manifest,
        experiment,
        trials,
        probe: read_probe(&folder.probe())?,
        micro: read_micro(&folder.micro())?,
        notes: json_lines(&folder.notes())?,
    })
}

fn read_trial(folder: &ArmFolder, pair: u32, arm: Arm) -> Result<Trial> {
    let (steps, seconds) = read_seconds(&folder.seconds())?;
    Ok(Trial {
        pair,
        arm,
        steps,
        seconds,
        latency: LatencyData::read(&folder.latency())?,
        samples: read_samples(&folder.samples())?,
        events: json_lines(&folder.events())?,
        failures: read_failures(&folder.failures())?,
    })
}

fn read_samples(path: &Path) -> Result<BTreeMap<(String, String), SampleSeries>> {
    let mut all: BTreeMap<(String, String), SampleSeries> = BTreeMap::new();
    let Some(bytes) = whole_lines(path)? else {
        return Ok(all);
    };
    let mut reader = csv::Reader::from_reader(bytes.as_slice());
    let mut record = csv::StringRecord::new();
    let mut line = 1usize;
    let mut key = (String::new(), String::new());
    while reader
        .read_record(&mut record)
        .with_context(|| format!("reading {}", path.display()))?
    {
        line += 1;
        let field = |i: usize| {
            record.get(i).ok_or_else(|| {
                anyhow!(
                    "{}, line {line}: field {} is missing",
                    path.display(),
                    i + 1
                )
            })
        };
        let real = |i: usize| -> Result<f64> {
            field(i)?.parse().with_context(|| {
                format!(
                    "{}, line {line}: '{}' is not a number",
                    path.display(),
                    &record[i]
                )
            })
        };
        let point = (
            real(0)?,
            real(4)?,
            field(5)?.parse().with_context(|| {
                format!(
                    "{}, line {line}: '{}' is no epoch",
                    path.display(),
                    &record[5]
                )
            })?,
        );
        key.0.clear();
        key.0.push_str(field(1)?);
        key.1.clear();
        key.1.push_str(field(2)?);
        match all.get_mut(&key) {
            Some(series) => series.points.push(point),
            None => {
                all.insert(
                    key.clone(),
                    SampleSeries {
                        unit: field(3)?.to_owned(),
                        points: vec![point],
                    },
                );
            }
        }
    }
    for series in all.values_mut() {
        // An instrument that waited for its answer writes later than it read.
        if !series.points.is_sorted_by(|a, b| a.0 <= b.0) {
            series.points.sort_by(|a, b| a.0.total_cmp(&b.0));
        }
    }
    Ok(all)
}

/// Every whole line of a file as JSON; a missing file has none.
fn json_lines<T: serde::de::DeserializeOwned>(path: &Path) -> Result<Vec<T>> {
    let Some(bytes) = whole_lines(path)? else {
        return Ok(Vec::new());
    };
    let mut values = Vec::new();
    for (i, line) in bytes.lines().enumerate() {
        let line = line.with_context(|| format!("reading {}", path.display()))?;
        values.push(
            serde_json::from_str(&line)
                .with_context(|| format!("{}, line {}", path.display(), i + 1))?,
        );
    }
    Ok(values)
}

#[cfg(test)]
mod tests {
    use hdrhistogram::Histogram;

    use super::super::arm::{ArmLayout, ArmWriter};
    use super::*;
    use crate::measure::{
        Account, Counts, EventKind, FailureClass, FailureRow, HostSecond, LoadSecond, Outcome,
        Phase, Sample,
    };

    fn second(index: u64) -> LoadSecond {
        let mut counts = Counts {
            sent: 12,
            connects: 1,
            ..Counts::default()
        };
        let mut histogram = Histogram::new(3).unwrap();
        for i in 0..10 {
            counts.record(Outcome::Ok);
            histogram.record(1_000 + 100 * i).unwrap();
        }
        counts.record(Outcome::Failed(FailureClass::Status503));
        counts.record(Outcome::Failed(FailureClass::Status5xx));
        LoadSecond {
            index,
            counts,
            ok_by_step: vec![7, 3],
            latency_us: vec![histogram, Histogram::new(3).unwrap()],
            in_flight: 8,
            account: Account {
                in_flight_s: 7.5,
                overhead_s: 0.25,
                ..Account::default()
            },
            driver_cpu_s: 0.125,
            send_delay_us: 2.5,
            silence: None,
        }
    }

    #[test]
    fn an_arm_reads_back_what_was_written_without_an_end() {
        let dir = tempfile::tempdir().unwrap();
        let run = RunFolder::create(dir.path(), "x", "20260101T000000Z", 1).unwrap();
        let folder = run.arm(1, Arm::Treatment);
        let layout = ArmLayout {
            steps: vec!["list".into(), "create".into()],
            latency_interval_s: 1,
        };
        let mut writer = ArmWriter::create(&folder, &layout).unwrap();
        let host = HostSecond {
            busy: 1.5,
            pressure_cpu: Some(0.25),
            run_queue: 3,
            ..HostSecond::default()
        };
        let written = [
            writer.second(&second(0), Some(host)).unwrap(),
            writer.second(&second(1), None).unwrap(),
        ];
        let failure = FailureRow {
            at_s: 0.5,
            step: "list".into(),
            class: FailureClass::Status503,
            status: Some(503),
            latency_ms: Some(1.25),
            received: 4,
            promised: None,
            said: "a \"quoted\",\nline|".into(),
        };
        writer.failures(std::slice::from_ref(&failure)).unwrap();
        let sample = Sample {
            at_s: 1.0,
            service: "app".into(),
            metric: "memory.rss".into(),
            unit: "MiB".into(),
            value: 12.5,
            epoch: 0,
        };
        let earlier = Sample {
            at_s: 0.5,
            value: 12.0,
            ..sample.clone()
        };
        writer.samples(&[sample, earlier]).unwrap();
        let event = Event {
            at_s: -1.0,
            wall: "2026-01-01T00:00:00Z".into(),
            kind: EventKind::Phase {
                phase: Phase::Warmup,
            },
        };
        writer.event(&event).unwrap();
        // Dropped without `finish`, as by a kill; and the last line of a file is cut.
        drop(writer);
        let mut cut = std::fs::read(folder.samples()).unwrap();
        cut.extend_from_slice(b"2,app,memory.r");
        std::fs::write(folder.samples(), cut).unwrap();

        let trial = read_trial(&folder, 1, Arm::Treatment).unwrap();
        assert_eq!(trial.steps, layout.steps);
        assert_eq!(trial.seconds, written);
        assert_eq!(trial.seconds[0].counts.class(FailureClass::Status5xx), 2);
        assert_eq!(trial.failures, [failure]);
        assert_eq!(trial.events, [event]);
        let series = &trial.samples[&("app".to_owned(), "memory.rss".to_owned())];
        assert_eq!(
            (series.unit.as_str(), series.points.as_slice()),
            ("MiB", &[(0.5, 12.0, 0), (1.0, 12.5, 0)][..])
        );
        assert_eq!(trial.latency.intervals().count(), 1);
    }
}
