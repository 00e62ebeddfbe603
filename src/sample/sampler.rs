//! The sampling thread: every instrument at its pace, until told to stop.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant, SystemTime};

use anyhow::Context;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::sync::{oneshot, watch};
use tokio::task::JoinSet;

use super::host::HostReading;
use super::output::{Clock, Output};
use super::pace::{Pace, Tally, Tick};
use super::postgres;
use super::process::{Processes, Sharing};
use super::runner::Runner;
use super::spec::{Observation, SampleSpec};
use crate::measure::{EventKind, HOST, RUNNER};

/// How long an instrument may take for its last readings.
const FAREWELL: Duration = Duration::from_secs(3);
/// The host is read once a second, whatever the period of samples.
const SECOND: Duration = Duration::from_secs(1);

/// What became of the sampling plan, and what it cost.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct SamplingTotals {
    /// Readings due in the measured time, over all instruments.
    pub planned: u64,
    /// Readings taken in their time.
    pub taken: u64,
    /// Readings late by more than half a period, or not taken.
    pub gaps: u64,
    /// CPU seconds of the sampling thread; reading proportional set sizes comes on top, on a thread of its own.
    pub cost_cpu_s: f64,
    /// Wall-clock seconds spent reading proportional set sizes.
    pub pss_s: f64,
}

/// A running sampler. [`Sampler::stop`] takes the last readings; dropping it ends sampling without them.
pub struct Sampler {
    commands: UnboundedSender<Command>,
    totals: oneshot::Receiver<SamplingTotals>,
}

/// What a running sampler can be asked.
enum Command {
    BadSecond(u64),
    Stop,
}

/// Starts sampling on a thread of its own.
///
/// Fails when the operating system gives no thread; what can't be read later is not observed, never an error.
pub fn start(spec: SampleSpec, sink: UnboundedSender<Observation>) -> anyhow::Result<Sampler> {
    let (commands, received) = unbounded_channel();
    let (done, totals) = oneshot::channel();
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .max_blocking_threads(4)
        .build()
        .context("building the sampler's runtime")?;
    thread::Builder::new()
        .name("sampler".into())
        .spawn(move || {
            let totals = runtime.block_on(sample(spec, sink, received));
            // Nobody may be waiting any more; the totals are then of no use.
            let _ = done.send(totals);
            // A reading that hangs in the kernel must not hold up the end of the arm.
            runtime.shutdown_background();
        })
        .context("starting the sampler's thread")?;
    Ok(Sampler { commands, totals })
}

impl Sampler {
    /// Asks to record what else ran during a second of the measured time in which requests failed or were slow.
    pub fn bad_second(&self, second: u64) {
        // A sampler that has ended has nothing to tell about it.
        let _ = self.commands.send(Command::BadSecond(second));
    }

    /// Takes the last readings and ends. Call it while the services still run.
    pub async fn stop(self) -> SamplingTotals {
        let _ = self.commands.send(Command::Stop);
        self.totals.await.unwrap_or_default()
    }
}

async fn sample(
    spec: SampleSpec,
    sink: UnboundedSender<Observation>,
    mut commands: UnboundedReceiver<Command>,
) -> SamplingTotals {
    let clock = Clock {
        origin: spec.origin.clone(),
    };
    let out = Output::new(HOST, sink, clock);
    let (stop, stopped) = watch::channel(false);
    let mut actors = JoinSet::new();
    for service in &spec.services {
        if let Some(sql) = &service.sql {
            actors.spawn(postgres::observe(
                postgres::Assignment {
                    sql: sql.clone(),
                    process: service.process.clone(),
                    period: spec.period,
                    window: spec.window,
                    completed: spec.completed.clone(),
                },
                out.of(service.name.as_str()),
                stopped.clone(),
            ));
        }
    }
    let mut rounds = Rounds::new(&spec, &out);
    let mut host = Pace::new(spec.origin.clone(), SECOND);
    let mut pace = Pace::new(spec.origin.clone(), spec.period);
    loop {
        tokio::select! {
            biased;
            command = commands.recv() => match command {
                Some(Command::BadSecond(second)) => rounds.bad_second(second),
                Some(Command::Stop) | None => break,
            },
            tick = host.next() => {
                rounds.second(tick);
                host.taken(tick, out.clock.now(), &out);
            }
            tick = pace.next() => {
                let began_s = out.clock.now();
                rounds.round();
                pace.taken(tick, began_s, &out);
            }
        }
    }
    rounds.close();
    let mut tally = host.tally;
    tally.add(pace.tally);
    // An actor whose channel is gone has ended by itself.
    let _ = stop.send(true);
    tally.add(collect(&mut actors).await);
    SamplingTotals {
        planned: tally.planned,
        taken: tally.taken,
        gaps: tally.gaps,
        cost_cpu_s: thread_cpu_s(),
        pss_s: 0.0,
    }
}

/// Waits for the instruments' ends, for a bounded time, and sums what became of their plans.
async fn collect(actors: &mut JoinSet<Tally>) -> Tally {
    let mut tally = Tally::default();
    let all = async {
        while let Some(ended) = actors.join_next().await {
            match ended {
                Ok(one) => tally.add(one),
                Err(error) => tracing::warn!(%error, "an instrument ended early"),
            }
        }
    };
    if tokio::time::timeout(FAREWELL, all).await.is_err() {
        tracing::warn!("an instrument did not end in time; its last readings are lost");
    }
    tally
}

/// The readings that the sampling thread takes itself.
struct Rounds {
    out: Output,
    services: Vec<(Processes, Output)>,
    runner: Runner,
    completed: Option<Arc<AtomicU64>>,
    /// The last reading of the host, the tick that it belongs to, and the origin that the tick counts from.
    host: Option<(HostReading, i64, Instant)>,
    /// CPU seconds of deployment and runner since that reading.
    own_cpu_s: f64,
    looked: Option<Instant>,
    /// Origin and the wall clock at it.
    wall: Option<(Instant, SystemTime)>,
}

impl Rounds {
    fn new(spec: &SampleSpec, out: &Output) -> Self {
        let services = spec.services.iter().map(|service| {
            let sharing = match service.sql {
                Some(_) => Sharing::Segment,
                None => Sharing::Private,
            };
            let processes =
                Processes::new(service.process.clone(), service.cgroups.clone(), sharing);
            (processes, out.of(service.name.as_str()))
        });
        Self {
            services: services.collect(),
            runner: Runner::new(out.of(RUNNER)),
            completed: spec.completed.clone(),
            host: None,
            own_cpu_s: 0.0,
            looked: None,
            wall: None,
            out: out.of(HOST),
        }
    }

    fn bad_second(&mut self, _second: u64) {}

    fn look(&mut self) {
        for (processes, out) in &mut self.services {
            self.own_cpu_s += processes.look(out);
        }
        self.own_cpu_s += self.runner.look();
        self.looked = Some(Instant::now());
    }

    /// Closes a second of the host.
    fn second(&mut self, tick: Tick) {
        self.look();
        let now = match HostReading::take() {
            Ok(now) => now,
            Err(error) => {
                return self
                    .out
                    .not_observed("host", format!("the host can't be read: {error:#}"));
            }
        };
        let origin = *self.out.clock.origin.borrow();
        if let Some((before, index, counted_from)) = &self.host
            && *counted_from == origin
        {
            let host = now.since(before, self.own_cpu_s);
            // A late reading speaks for all seconds that it covers.
            for second in (*index..tick.index).filter_map(|s| u64::try_from(s).ok()) {
                self.out.send(Observation::Host { second, host });
            }
        }
        self.host = Some((now, tick.index, origin));
        self.own_cpu_s = 0.0;
        if tick.index >= 0 && tick.index % 60 == 0 {
            self.clocks();
        }
    }

    /// Reads both clocks together.
    fn clocks(&mut self) {
        let origin = *self.out.clock.origin.borrow();
        let (monotonic, wall) = (Instant::now(), SystemTime::now());
        let Some(since) = monotonic.checked_duration_since(origin) else {
            return;
        };
        if self.wall.is_none_or(|(from, _)| from != origin) {
            self.wall = Some((origin, wall.checked_sub(since).unwrap_or(wall)));
        }
        let Some((_, wall_at_origin)) = self.wall else {
            return;
        };
        let wall_s = match wall.duration_since(wall_at_origin) {
            Ok(after) => after.as_secs_f64(),
            Err(before) => -before.duration().as_secs_f64(),
        };
        self.out.event(
            since.as_secs_f64(),
            EventKind::Clock {
                monotonic_s: since.as_secs_f64(),
                wall_s,
            },
        );
    }

    /// One round of resource samples.
    fn round(&mut self) {
        let fresh = Duration::from_millis(100).min(SECOND);
        if self.looked.is_none_or(|looked| looked.elapsed() > fresh) {
            self.look();
        }
        let at_s = self.out.clock.now();
        if let Some(completed) = &self.completed {
            let count = completed.load(Ordering::Relaxed) as f64;
            self.runner
                .out
                .reading(at_s, "requests_completed", "count_total", count, 0);
        }
        for (processes, out) in &mut self.services {
            processes.round(at_s, Instant::now(), out);
        }
        self.runner.round(at_s);
    }

    /// The last readings.
    fn close(&mut self) {
        self.round();
        self.clocks();
        for (processes, out) in &mut self.services {
            processes.close(out);
        }
    }
}

/// CPU seconds used by this thread so far.
fn thread_cpu_s() -> f64 {
    let used = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    used.tv_sec as f64 + used.tv_nsec as f64 / 1e9
}
