//! Reading a run back, also one that never ended.

use std::collections::{BTreeMap, HashMap};
use std::io::BufRead;
use std::path::Path;

use anyhow::{Context, Result, anyhow};

use super::folder::{ArmFolder, RunFolder};
use super::hlog::LatencyData;
use super::lines::{whole_lines, whole_lines_of};
use super::manifest::{Manifest, TrialRecord};
use super::probe::{MicroRow, ProbeRow, read_micro, read_probe};
use super::rows::{FailureLine, read_failures, read_seconds};
use super::seconds::Seconds;
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
    pub seconds: Seconds,
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
    let trials = read_trials(folder, &manifest.order)?;
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

/// Arms that are read at the same time: a pair's.
const AT_ONCE: usize = 2;

/// Reads every arm that began, a pair's arms beside each other: parsing is what takes the time.
fn read_trials(folder: &RunFolder, order: &[TrialRecord]) -> Result<Vec<Trial>> {
    let mut trials = Vec::with_capacity(order.len());
    for some in order.chunks(AT_ONCE) {
        let read: Vec<Result<Option<Trial>>> = std::thread::scope(|scope| {
            let threads: Vec<_> = some
                .iter()
                .map(|record| {
                    scope.spawn(move || {
                        let arm = folder.arm(record.pair, record.arm);
                        arm.path()
                            .is_dir()
                            .then(|| read_trial(&arm, record.pair, record.arm))
                            .transpose()
                    })
                })
                .collect();
            threads
                .into_iter()
                .map(|thread| {
                    thread
                        .join()
                        .unwrap_or_else(|_| Err(anyhow!("the reader of an arm broke off")))
                })
                .collect()
        });
        for trial in read {
            trials.extend(trial?);
        }
    }
    Ok(trials)
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
    let mut all = Instruments::default();
    let Some(lines) = whole_lines_of(path)? else {
        return Ok(BTreeMap::new());
    };
    let mut reader = csv::Reader::from_reader(lines);
    let mut record = csv::StringRecord::new();
    let mut line = 1usize;
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
        let series = all.series(field(1)?, field(2)?);
        if series.points.is_empty() {
            field(3)?.clone_into(&mut series.unit);
        }
        series.points.push(point);
    }
    Ok(all.done())
}

/// Series by service and metric while they are read. Instruments are read in rounds, so what followed a series last time
/// follows it again: most lines find their series without a search.
#[derive(Default)]
struct Instruments {
    names: Vec<(String, String)>,
    series: Vec<SampleSeries>,
    place: HashMap<(String, String), usize>,
    /// By series: which one followed it.
    next: Vec<usize>,
    last: usize,
}

impl Instruments {
    fn series(&mut self, service: &str, metric: &str) -> &mut SampleSeries {
        let is = |names: &[(String, String)], i: usize| {
            names
                .get(i)
                .is_some_and(|(s, m)| s == service && m == metric)
        };
        let guess = self.next.get(self.last).copied().unwrap_or_default();
        let found = if is(&self.names, guess) {
            guess
        } else {
            let name = (service.to_owned(), metric.to_owned());
            let new = self.names.len();
            let found = *self.place.entry(name.clone()).or_insert(new);
            if found == new {
                self.names.push(name);
                self.series.push(SampleSeries::default());
                self.next.push(0);
            }
            if let Some(next) = self.next.get_mut(self.last) {
                *next = found;
            }
            found
        };
        self.last = found;
        &mut self.series[found]
    }

    fn done(self) -> BTreeMap<(String, String), SampleSeries> {
        let mut series = self.series;
        for one in &mut series {
            // Growing leaves up to half of a list unused.
            one.points.shrink_to_fit();
            // An instrument that waited for its answer writes later than it read.
            if !one.points.is_sorted_by(|a, b| a.0 <= b.0) {
                one.points.sort_by(|a, b| a.0.total_cmp(&b.0));
            }
        }
        self.names.into_iter().zip(series).collect()
    }
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
    fn instruments_keep_their_readings_apart_in_whatever_order_they_come() {
        let mut all = Instruments::default();
        for (i, (service, metric)) in [
            ("app", "rss"),
            ("db", "rss"),
            ("app", "rss"),
            ("app", "pss"),
            ("db", "rss"),
            ("app", "rss"),
            ("db", "rss"),
            ("db", "rss"),
        ]
        .into_iter()
        .enumerate()
        {
            all.series(service, metric).points.push((i as f64, 0.0, 0));
        }
        let times: Vec<(String, Vec<f64>)> = all
            .done()
            .into_iter()
            .map(|((service, metric), series)| {
                let times = series.points.iter().map(|point| point.0).collect();
                (format!("{service} {metric}"), times)
            })
            .collect();
        let of = |name: &str, times: &[f64]| (name.to_owned(), times.to_vec());
        assert_eq!(
            times,
            [
                of("app pss", &[3.0]),
                of("app rss", &[0.0, 2.0, 5.0]),
                of("db rss", &[1.0, 4.0, 6.0, 7.0]),
            ]
        );
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
        let read: Vec<_> = trial.seconds.iter().collect();
        assert_eq!(read, written);
        assert_eq!(read[0].counts.class(FailureClass::Status5xx), 2);
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
