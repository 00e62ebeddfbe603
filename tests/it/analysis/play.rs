//! What an arm did, second by second, and writing it down as a real arm is written.

use std::ops::Range;

use ceteris::experiment::Experiment;
use ceteris::measure::{
    Account, Counts, Event, EventKind, FailureClass, FailureRow, HostSecond, LoadSecond, Outcome,
    Phase, RUNNER, Sample, Silence, StopReason,
};
use ceteris::name::Arm;
use ceteris::results::{ArmLayout, ArmWriter, RunFolder, interval_seconds};
use hdrhistogram::Histogram;

/// Resident memory in MiB and the life of the application, by second.
type MemoryOf = Box<dyn Fn(u64) -> (f64, u32)>;

/// CPU seconds of a service in a second.
type CpuOf = Box<dyn Fn(&str, u64) -> f64>;

/// What one arm did, second by second.
pub struct Play {
    pub arm: Arm,
    pub pair: u32,
    /// Whole seconds with a row.
    pub seconds: u64,
    /// Ok requests in a second.
    pub ok: Box<dyn Fn(u64) -> u64>,
    /// Failed requests in a second.
    pub failed: Box<dyn Fn(u64) -> Vec<(FailureClass, u64)>>,
    /// The host in a second.
    pub host: Box<dyn Fn(u64) -> HostSecond>,
    /// CPU seconds of a service in a second.
    pub cpu: CpuOf,
    /// Rows that pruning deletes in a second.
    pub pruned: u64,
    /// Client-seconds accounted for in a second, of eight.
    pub accounted: f64,
    /// How far the wall clock has moved away by the end, in seconds.
    pub wall_offset_s: f64,
    /// Delay before sending in microseconds.
    pub delay_us: f64,
    /// The longest silence that touches a second.
    pub silence: Box<dyn Fn(u64) -> Option<Silence>>,
    pub memory: MemoryOf,
    /// A service of which nothing is read in these seconds.
    pub unread: Option<(&'static str, Range<u64>)>,
    pub events: Vec<Event>,
    /// Written to the end, or cut as by a kill.
    pub finished: bool,
}

/// A value that looks drawn and is always the same: 0 to 1.
pub fn noise(seed: u64, second: u64) -> f64 {
    let mut x = seed
        .wrapping_mul(0x9E37_79B9_7F4A_7C15)
        .wrapping_add(second.wrapping_mul(0xBF58_476D_1CE4_E5B9));
    x ^= x >> 31;
    x = x.wrapping_mul(0x94D0_49BB_1331_11EB);
    x ^= x >> 29;
    (x >> 11) as f64 / (1u64 << 53) as f64
}

impl Play {
    /// A calm arm of `rate` requests a second.
    pub fn flat(arm: Arm, rate: f64) -> Play {
        let seed = match arm {
            Arm::Treatment => 3,
            Arm::Control => 2,
        };
        Play {
            arm,
            pair: 1,
            seconds: 120,
            ok: Box::new(move |s| (rate * (0.97 + 0.06 * noise(seed, s))) as u64),
            failed: Box::new(|_| Vec::new()),
            host: Box::new(move |s| HostSecond {
                busy: 1.5,
                other_cpu: 0.1 + 0.02 * noise(seed + 10, s),
                pressure_cpu: Some(0.3 + 0.02 * noise(seed + 20, s)),
                ..HostSecond::default()
            }),
            cpu: Box::new(|service, _| if service == "app" { 0.5 } else { 0.8 }),
            pruned: match arm {
                Arm::Treatment => 0,
                Arm::Control => 50,
            },
            accounted: 8.0,
            wall_offset_s: 0.0001,
            delay_us: 20.0,
            silence: Box::new(|_| None),
            memory: Box::new(|t| (50.0 + 0.01 * t as f64, 0)),
            unread: None,
            events: Vec::new(),
            finished: true,
        }
    }

    /// An arm whose rate falls from `rate` to `rate · left`, exponentially.
    pub fn decays(arm: Arm, rate: f64, left: f64) -> Play {
        let seconds = 120.0;
        Play {
            ok: Box::new(move |s| {
                let share = left.powf(s as f64 / seconds);
                (rate * share * (0.97 + 0.06 * noise(5, s))) as u64
            }),
            ..Play::flat(arm, rate)
        }
    }

    /// An arm in which every request is refused.
    pub fn refused(arm: Arm) -> Play {
        Play {
            ok: Box::new(|_| 0),
            failed: Box::new(|_| vec![(FailureClass::Refused, 5_000)]),
            ..Play::flat(arm, 0.0)
        }
    }
}

/// An event at a second of measured time.
pub fn at(at_s: f64, kind: EventKind) -> Event {
    Event {
        at_s,
        wall: "2026-01-01T00:00:00Z".into(),
        kind,
    }
}

pub fn write(play: &Play, folder: &RunFolder, experiment: &Experiment) {
    let steps: Vec<String> = experiment
        .arms
        .treatment
        .workload
        .steps
        .iter()
        .map(|s| s.name.as_str().to_owned())
        .collect();
    let layout = ArmLayout {
        steps: steps.clone(),
        latency_interval_s: interval_seconds(experiment.schedule.window),
    };
    let mut writer = ArmWriter::create(&folder.arm(play.pair, play.arm), &layout).unwrap();
    let phase = |at_s: f64, phase: Phase| at(at_s, EventKind::Phase { phase });
    let mut events = vec![
        phase(-9.0, Phase::Starting),
        at(
            -6.0,
            EventKind::ServiceStarted {
                service: "app".into(),
                pid: 10,
                ready_ms: 40.0,
                epoch: 0,
            },
        ),
        at(
            -5.5,
            EventKind::RowCount {
                service: "db".into(),
                database: "made".into(),
                table: "jobs".into(),
                rows: 10,
            },
        ),
        phase(-5.0, Phase::Preflight),
    ];
    events.extend(steps.iter().map(|step| {
        at(
            -4.0,
            EventKind::Preflight {
                step: step.clone(),
                ok: true,
                detail: String::new(),
            },
        )
    }));
    events.push(phase(-1.0, Phase::Warmup));
    events.push(phase(0.0, Phase::Measuring));
    events.push(at(
        0.0,
        EventKind::Clock {
            monotonic_s: 0.0,
            wall_s: 0.0,
        },
    ));
    for event in &events {
        writer.event(event).unwrap();
    }
    let mut cpu = [("app", 0.0), ("db", 0.0)];
    let mut totals = Counts::default();
    samples(&mut writer, play, 0, &cpu, &totals);
    for second in 0..play.seconds {
        let row = load_second(play, second, steps.len());
        totals.add(&row.counts);
        writer.second(&row, Some((play.host)(second))).unwrap();
        for (service, total) in &mut cpu {
            *total += (play.cpu)(service, second);
        }
        samples(&mut writer, play, second + 1, &cpu, &totals);
        if play.pruned > 0 {
            let event = at(
                second as f64 + 0.5,
                EventKind::Prune {
                    table: "jobs".into(),
                    rows: play.pruned,
                    ms: 8.0 + noise(9, second),
                    error: None,
                },
            );
            writer.event(&event).unwrap();
        }
        let failures: Vec<FailureRow> = (play.failed)(second)
            .into_iter()
            .map(|(class, _)| FailureRow {
                at_s: second as f64 + 0.5,
                step: steps[0].clone(),
                class,
                status: None,
                latency_ms: None,
                received: 0,
                promised: None,
                said: "connection refused".into(),
            })
            .collect();
        writer.failures(&failures).unwrap();
    }
    for event in &play.events {
        writer.event(event).unwrap();
    }
    if !play.finished {
        return;
    }
    let end = play.seconds as f64;
    for kind in [
        EventKind::Clock {
            monotonic_s: end,
            wall_s: end + play.wall_offset_s,
        },
        EventKind::LoadEnd {
            sent: totals.sent,
            ok: totals.ok,
            failed: totals.failed_total(),
            cut: totals.cut,
            cut_ages_ms: Vec::new(),
            seconds: end,
            driver_cpu_s: 0.1 * end,
            busiest_share: 0.2,
            unlisted: 0,
        },
        EventKind::Phase {
            phase: Phase::Stopping,
        },
        EventKind::Stopped {
            reason: StopReason::Complete,
            detail: String::new(),
        },
    ] {
        writer.event(&at(end, kind)).unwrap();
    }
    writer.finish().unwrap();
}

fn load_second(play: &Play, second: u64, steps: usize) -> LoadSecond {
    let ok = (play.ok)(second);
    let mut counts = Counts::default();
    let mut latency_us: Vec<Histogram<u64>> =
        (0..steps).map(|_| Histogram::new(3).unwrap()).collect();
    let mut ok_by_step = vec![0; steps];
    let share = ok / 4;
    for (step, n) in [(0, ok - share), (1, share)] {
        ok_by_step[step] = n;
        // A hundredth is ten times as slow.
        latency_us[step]
            .record_n(2_000 + 100 * step as u64, n - n / 100)
            .unwrap();
        latency_us[step].record_n(20_000, n / 100).unwrap();
    }
    counts.ok = ok;
    for (class, n) in (play.failed)(second) {
        for _ in 0..n {
            counts.record(Outcome::Failed(class));
        }
        if matches!(class, FailureClass::Status5xx | FailureClass::Status503) {
            latency_us[0].record_n(5_000, n).unwrap();
        }
    }
    // The last second's cut requests balance the account: sent = ok + failed + cut.
    if second + 1 == play.seconds {
        counts.cut = 3;
    }
    counts.sent = counts.ok + counts.failed_total() + counts.cut;
    LoadSecond {
        index: second,
        counts,
        ok_by_step,
        latency_us,
        in_flight: 8,
        account: Account {
            in_flight_s: play.accounted * 0.99,
            overhead_s: play.accounted * 0.01,
            ..Account::default()
        },
        driver_cpu_s: 0.1,
        send_delay_us: play.delay_us,
        silence: (play.silence)(second),
    }
}

fn samples(
    writer: &mut ArmWriter,
    play: &Play,
    at_s: u64,
    cpu: &[(&str, f64); 2],
    totals: &Counts,
) {
    let sample = |service: &str, metric: &str, unit: &str, value: f64| Sample {
        at_s: at_s as f64,
        service: service.into(),
        metric: metric.into(),
        unit: unit.into(),
        value,
        epoch: 0,
    };
    let t = at_s as f64;
    let mut all = vec![
        sample(
            RUNNER,
            "requests_completed",
            "count_total",
            totals.completed() as f64,
        ),
        Sample {
            epoch: (play.memory)(at_s).1,
            ..sample("app", "memory.rss", "MiB", (play.memory)(at_s).0)
        },
        sample("app", "descriptors", "count", 20.0),
        sample("app", "status.depth", "", 3.0),
        sample("app", "status.done", "", 10.0 + 2.0 * t),
        sample("app", "log.error", "count_total", 0.0),
        sample(
            "db",
            "sql_calls",
            "count_total",
            4.0 * totals.completed() as f64,
        ),
        sample("db", "blocks_hit", "count_total", 900.0 * t),
        sample("db", "blocks_read", "count_total", 100.0 * t),
        sample("db", "table.jobs.rows", "rows", 10.0 + 5.0 * t),
    ];
    for (service, total) in cpu {
        all.push(sample(service, "cpu_user_s", "cpu_s", 0.75 * total));
        all.push(sample(service, "cpu_system_s", "cpu_s", 0.25 * total));
    }
    if let Some((service, seconds)) = &play.unread
        && seconds.contains(&at_s)
    {
        all.retain(|sample| sample.service != *service);
    }
    writer.samples(&all).unwrap();
}
