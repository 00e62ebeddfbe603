//! The pruning policy, carried out beside the load: each period, table by table, and what it deleted and cost.
//!
//! It acts under a role of its own, so that its statements are not taken for the application's. It must never end a run: an
//! error is recorded, and the next pass tries again, over a new session if need be.

mod statement;

use std::time::{Duration, Instant};

use anyhow::Context;
use tokio::sync::mpsc::UnboundedSender;
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio_postgres::NoTls;

use self::statement::Statements;
use crate::experiment::Pruning;
use crate::measure::EventKind;
use crate::sql::{Role, Server, Session, connect};

/// Name under which the pruner's sessions are listed.
const APPLICATION: &str = "ceteris-prune";
/// The longest that one statement may take: a bound, not an expectation.
const STATEMENT_TIMEOUT: &str = "60s";
/// How long the pass under way may go on after the stop.
const FAREWELL: Duration = Duration::from_secs(2);

/// One pass over one table, as it happened.
#[derive(Debug, Clone, PartialEq)]
pub struct Pass {
    /// When it began.
    pub began: Instant,
    /// An [`EventKind::Prune`].
    pub kind: EventKind,
}

/// Pruning under way.
pub struct Pruner {
    stop: watch::Sender<bool>,
    task: JoinHandle<()>,
}

/// Starts pruning on the current runtime, the first pass at once, then one each period.
///
/// Fails when a table's name or rule can't be written as SQL.
pub fn start(
    pruning: &Pruning,
    server: Server,
    sink: UnboundedSender<Pass>,
) -> anyhow::Result<Pruner> {
    let tables = pruning
        .tables
        .iter()
        .map(|table| {
            Statements::of(table, pruning.vacuum)
                .with_context(|| format!("preparing to prune table {}", table.table))
        })
        .collect::<anyhow::Result<Vec<_>>>()?;
    let (stop, stopped) = watch::channel(false);
    let worker = Worker {
        server,
        database: pruning.database.clone(),
        tables,
        sink,
        session: None,
        stopped,
    };
    let task = tokio::spawn(worker.run(pruning.every));
    Ok(Pruner { stop, task })
}

impl Pruner {
    /// Ends pruning. The pass under way may finish for two seconds; then its statement is cancelled.
    pub async fn stop(mut self) {
        // A worker that has ended needs no telling.
        let _ = self.stop.send(true);
        if tokio::time::timeout(2 * FAREWELL, &mut self.task)
            .await
            .is_err()
        {
            self.task.abort();
        }
    }
}

struct Worker {
    server: Server,
    database: String,
    tables: Vec<Statements>,
    sink: UnboundedSender<Pass>,
    session: Option<Session>,
    stopped: watch::Receiver<bool>,
}

impl Worker {
    async fn run(mut self, every: Duration) {
        let mut due = tokio::time::interval(every.max(Duration::from_millis(1)));
        due.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Skip);
        loop {
            tokio::select! {
                biased;
                _ = self.stopped.changed() => return,
                _ = due.tick() => {}
            }
            for table in 0..self.tables.len() {
                if *self.stopped.borrow() {
                    return;
                }
                self.pass(table).await;
            }
        }
    }

    /// Prunes one table and tells what became of it.
    async fn pass(&mut self, index: usize) {
        let began = Instant::now();
        let mut rows = 0;
        let result = self.prune(index, &mut rows).await;
        if self.session.as_ref().is_some_and(|s| s.is_closed()) {
            self.session = None;
        }
        let kind = EventKind::Prune {
            table: self.tables[index].name.clone(),
            rows,
            ms: began.elapsed().as_secs_f64() * 1e3,
            error: result.err().map(|error| format!("{error:#}")),
        };
        // The receiver is gone only when the run is over.
        let _ = self.sink.send(Pass { began, kind });
    }

    async fn prune(&mut self, index: usize, rows: &mut u64) -> anyhow::Result<()> {
        let table = &self.tables[index];
        let session = match &mut self.session {
            Some(session) => session,
            none => none.insert(open(&self.server, &self.database).await?),
        };
        let cancel = session.cancel_token();
        let work = async {
            loop {
                if *self.stopped.borrow() {
                    return Ok(());
                }
                let deleted = session
                    .execute(table.delete.as_str(), &[])
                    .await
                    .with_context(|| format!("deleting from table {}", table.name))?;
                *rows += deleted;
                if deleted < table.batch {
                    break;
                }
            }
            if let Some(vacuum) = &table.vacuum {
                session
                    .batch_execute(vacuum)
                    .await
                    .with_context(|| format!("vacuuming table {}", table.name))?;
            }
            Ok(())
        };
        tokio::pin!(work);
        let mut stopped = self.stopped.clone();
        let overdue = async {
            // A sender that is gone means stop as well.
            let _ = stopped.wait_for(|stop| *stop).await;
            tokio::time::sleep(FAREWELL).await;
        };
        tokio::select! {
            result = &mut work => return result,
            () = overdue => {}
        }
        cancel
            .cancel_query(NoTls)
            .await
            .context("cancelling the pruning statement")?;
        work.await
    }
}

async fn open(server: &Server, database: &str) -> anyhow::Result<Session> {
    let session = connect(server, Role::Prune, database, APPLICATION).await?;
    session
        .batch_execute(&format!("SET statement_timeout = '{STATEMENT_TIMEOUT}'"))
        .await
        .context("setting up the pruner's session")?;
    Ok(session)
}
