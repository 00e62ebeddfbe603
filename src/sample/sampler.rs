//! The sampling thread: every instrument at its pace, until told to stop.

use std::thread;
use std::time::Duration;

use anyhow::Context;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::sync::{oneshot, watch};
use tokio::task::JoinSet;

use super::output::{Clock, Output};
use super::pace::{Pace, Tally};
use super::rounds::Rounds;
use super::spec::{Observation, SampleSpec};
use super::thrift::thread_cpu_s;
use super::{disk, log, postgres, smaps, status};
use crate::measure::HOST;

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
    let mut actors = employ(&spec, &out, &stopped);
    let mut pss = JoinSet::new();
    let mut rounds = Rounds::new(&spec, &out, |output| {
        let (requests, received) = unbounded_channel();
        pss.spawn(smaps::observe(received, output));
        requests
    });
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
                rounds.second(tick.index);
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
    // Nobody asks for proportional set sizes any more: their readers end with what was asked.
    drop(rounds);
    let mut tally = host.tally;
    tally.add(pace.tally);
    // An instrument whose channel is gone has ended by itself.
    let _ = stop.send(true);
    let (mut actors_tally, mut pss_s) = (Tally::default(), 0.0);
    collect(&mut actors, |one| actors_tally.add(one)).await;
    collect(&mut pss, |seconds| pss_s += seconds).await;
    tally.add(actors_tally);
    SamplingTotals {
        planned: tally.planned,
        taken: tally.taken,
        gaps: tally.gaps,
        cost_cpu_s: thread_cpu_s(),
        pss_s,
    }
}

/// Sets every instrument that waits for an answer to work on its own.
fn employ(spec: &SampleSpec, out: &Output, stopped: &watch::Receiver<bool>) -> JoinSet<Tally> {
    let mut actors = JoinSet::new();
    for service in &spec.services {
        let out = || out.of(service.name.as_str());
        if let Some(sql) = &service.sql {
            let work = postgres::Assignment {
                sql: sql.clone(),
                process: service.process.clone(),
                period: spec.period,
                window: spec.window,
                completed: spec.completed.clone(),
            };
            actors.spawn(postgres::observe(work, out(), stopped.clone()));
        }
        if let Some(page) = &service.status {
            let (page, process) = (page.clone(), service.process.clone());
            let stopped = stopped.clone();
            actors.spawn(status::observe(page, process, spec.period, out(), stopped));
        }
        if let Some(log) = &service.log {
            let stopped = stopped.clone();
            actors.spawn(log::observe(log.clone(), spec.period, out(), stopped));
        }
    }
    if !spec.disks.is_empty() {
        let (disks, least) = (spec.disks.clone(), spec.min_free_bytes);
        actors.spawn(disk::observe(disks, least, out.of(HOST), stopped.clone()));
    }
    actors
}

/// Waits for instruments to end, for a bounded time.
async fn collect<T: 'static>(instruments: &mut JoinSet<T>, mut take: impl FnMut(T)) {
    let all = async {
        while let Some(ended) = instruments.join_next().await {
            match ended {
                Ok(one) => take(one),
                Err(error) => tracing::warn!(%error, "an instrument ended early"),
            }
        }
    };
    if tokio::time::timeout(FAREWELL, all).await.is_err() {
        tracing::warn!("an instrument did not end in time; its last readings are lost");
    }
}
