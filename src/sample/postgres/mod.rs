//! One PostgreSQL server, as its own views tell: an actor that asks at its pace and never makes anyone else wait.

mod cluster;
mod rows;
mod session;
mod statements;
mod tables;
mod waits;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use tokio::sync::watch;

use self::cluster::Cluster;
use self::session::{Asker, Trouble};
use self::statements::Statements;
use self::tables::Tables;
use self::waits::Waits;
use super::output::Output;
use super::pace::{Pace, Tally, Tick};
use super::spec::{ProcessRoot, WatchedSql};
use crate::measure::RUNNER;

/// How often waiting sessions are looked at.
const PULSE: Duration = Duration::from_secs(1);

/// What one actor observes.
pub(super) struct Assignment {
    pub(super) sql: WatchedSql,
    pub(super) process: watch::Receiver<Option<ProcessRoot>>,
    pub(super) period: Duration,
    pub(super) window: Duration,
    pub(super) completed: Option<Arc<AtomicU64>>,
}

/// Observes a server until told to stop, then takes the last readings.
pub(super) async fn observe(
    work: Assignment,
    out: Output,
    mut stop: watch::Receiver<bool>,
) -> Tally {
    let origin = out.clock.origin.clone();
    let mut pulse = Pace::new(origin.clone(), PULSE);
    let mut rounds = Pace::new(origin, work.period);
    let mut observer = Observer::new(work, out, stop.clone());
    loop {
        tokio::select! {
            biased;
            _ = stop.changed() => break,
            tick = pulse.next() => {
                let at_s = observer.asker.out.clock.now();
                let result = observer.pulse(tick).await;
                observer.book(&mut pulse, tick, at_s, result);
            }
            tick = rounds.next() => {
                let at_s = observer.asker.out.clock.now();
                let result = observer.round().await;
                observer.book(&mut rounds, tick, at_s, result);
            }
        }
    }
    observer.close().await;
    let mut tally = pulse.tally;
    tally.add(rounds.tally);
    tally
}

struct Observer {
    asker: Asker,
    runner: Output,
    completed: Option<Arc<AtomicU64>>,
    cluster: Cluster,
    tables: Tables,
    statements: Statements,
    waits: Waits,
}

impl Observer {
    fn new(work: Assignment, out: Output, stop: watch::Receiver<bool>) -> Self {
        let runner = out.of(RUNNER);
        Self {
            tables: Tables::new(work.sql.tables.clone()),
            statements: Statements::new(work.window),
            asker: Asker::new(work.sql, work.process, out, stop),
            runner,
            completed: work.completed,
            cluster: Cluster::default(),
            waits: Waits::default(),
        }
    }

    /// What is looked at each second: sessions that wait, checkpoints as they begin, statements at a window's edge.
    async fn pulse(&mut self, tick: Tick) -> Result<(), Trouble> {
        if tick.index == 0 {
            // What began before the measured time (the checkpoint that settles warm-up's debts) is no event of it.
            self.cluster.begin_anew();
            self.waits = Waits::default();
        }
        self.waits.pulse(&mut self.asker).await?;
        self.cluster.checkpoints(&mut self.asker).await?;
        self.statements.edge(&mut self.asker, tick.planned_s).await
    }

    /// What is read each period.
    async fn round(&mut self) -> Result<(), Trouble> {
        if let Some(at_s) = self.statements.calls(&mut self.asker).await?
            && let Some(completed) = &self.completed
        {
            // Read together with the statements, so that their quotient has both sides from one moment.
            let count = completed.load(Ordering::Relaxed) as f64;
            self.runner
                .reading(at_s, "requests_completed", "count_total", count, 0);
        }
        self.cluster.round(&mut self.asker).await?;
        self.tables.round(&mut self.asker).await?;
        self.waits.emit(&self.asker);
        Ok(())
    }

    /// Books what became of a reading.
    fn book(&mut self, pace: &mut Pace, tick: Tick, at_s: f64, result: Result<(), Trouble>) {
        match result {
            Ok(()) => pace.taken(tick, at_s, &self.asker.out),
            Err(Trouble::Down) => pace.excused(tick),
            Err(Trouble::Late | Trouble::Broken) => {
                pace.gap(tick, self.asker.out.clock.now(), &self.asker.out);
            }
        }
    }

    async fn close(&mut self) {
        // The last readings are worth an attempt, and no more than one.
        if self.round().await.is_ok() {
            let _ = self.statements.close(&mut self.asker).await;
        }
    }
}
