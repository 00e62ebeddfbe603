//! Asking a server that may be slow, stopped, restarting or gone.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use tokio::sync::watch;
use tokio_postgres::error::SqlState;
use tokio_postgres::types::ToSql;
use tokio_postgres::{Error, Row, Statement};

use crate::sample::output::Output;
use crate::sample::spec::{ProcessRoot, WatchedSql};
use crate::sql::{Role, Session, connect, server_version_num};

/// After this long a server counts as not answering.
const PATIENCE: Duration = Duration::from_millis(500);
/// The server's own bound on each of our statements, below [`PATIENCE`] so that it usually speaks first.
const STATEMENT_TIMEOUT_MS: u32 = 400;
/// Longest wait for a lock: a reading must not queue behind, and so block, the application's statements.
const LOCK_TIMEOUT_MS: u32 = 200;
/// After this long without an answer the session is given up.
const GIVE_UP: Duration = Duration::from_secs(30);
/// For this long a server that was just started may refuse sessions: it replays what a crash left, and that is no fault of
/// the sampling.
const STARTUP: Duration = Duration::from_secs(30);
/// Pause between attempts to connect again.
const RETRY: Duration = Duration::from_secs(1);

/// Name under which the sampler's sessions are listed.
const APPLICATION: &str = "ceteris-sample";

/// Why nothing came back.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Trouble {
    /// The service is down or just starting, and the deployment knows.
    Down,
    /// No answer in time.
    Late,
    /// The session broke or could not be made.
    Broken,
}

/// Asks one server: one session a database, made when needed.
pub(super) struct Asker {
    pub(super) sql: WatchedSql,
    pub(super) out: Output,
    process: watch::Receiver<Option<ProcessRoot>>,
    stop: watch::Receiver<bool>,
    /// Whether the deployment ever said that the service is up: one that it only knows the address of never is.
    started: bool,
    /// When its present life began, until it first accepted a session.
    starting: Option<Instant>,
    sessions: HashMap<String, Open>,
    failed: Option<Instant>,
    silent: Option<Instant>,
}

/// A session, the version that it speaks to, and what was prepared in it.
struct Open {
    session: Session,
    version: u32,
    prepared: HashMap<String, Statement>,
}

impl Asker {
    pub(super) fn new(
        sql: WatchedSql,
        process: watch::Receiver<Option<ProcessRoot>>,
        out: Output,
        stop: watch::Receiver<bool>,
    ) -> Self {
        Self {
            sql,
            out,
            process,
            stop,
            started: false,
            starting: None,
            sessions: HashMap::new(),
            failed: None,
            silent: None,
        }
    }

    /// Which life of the server process this is; 0 for a server that isn't ours to start.
    pub(super) fn epoch(&self) -> u32 {
        self.process.borrow().map_or(0, |root| root.epoch)
    }

    /// The database for what the whole server counts.
    pub(super) fn main_database(&self) -> String {
        self.sql
            .databases
            .first()
            .cloned()
            .unwrap_or_else(|| "postgres".to_string())
    }

    /// The server's version as a number (150019 is 15.19).
    pub(super) async fn version(&mut self) -> Result<u32, Trouble> {
        let database = self.main_database();
        Ok(self.open(&database).await?.version)
    }

    /// Rows of a query in one database. `None`: the server refuses this one query; `metrics` are then not observed. A query
    /// that ran into its time or lock limit gives `None` too, without a word about the metrics: the next round asks again.
    pub(super) async fn ask(
        &mut self,
        database: &str,
        query: &str,
        parameters: &[&(dyn ToSql + Sync)],
        metrics: &[&str],
    ) -> Result<Option<Vec<Row>>, Trouble> {
        self.open(database).await?;
        let Some(open) = self.sessions.get_mut(database) else {
            return Err(Trouble::Broken);
        };
        let work = async {
            let statement = match open.prepared.get(query) {
                Some(statement) => statement.clone(),
                None => {
                    let statement = open.session.prepare(query).await?;
                    open.prepared.insert(query.to_string(), statement.clone());
                    statement
                }
            };
            open.session.query(&statement, parameters).await
        };
        let answer = patiently(work, &mut self.stop, &self.out, &mut self.silent).await;
        match answer {
            Err(trouble) => {
                if trouble == Trouble::Broken {
                    self.sessions.remove(database);
                }
                Err(trouble)
            }
            Ok(Ok(rows)) => Ok(Some(rows)),
            Ok(Err(error)) => self.failure(database, error, metrics),
        }
    }

    fn failure(
        &mut self,
        database: &str,
        error: Error,
        metrics: &[&str],
    ) -> Result<Option<Vec<Row>>, Trouble> {
        let Some(said) = error.as_db_error() else {
            self.sessions.remove(database);
            return Err(Trouble::Broken);
        };
        let code = said.code();
        if *code == SqlState::QUERY_CANCELED || *code == SqlState::LOCK_NOT_AVAILABLE {
            return Ok(None);
        }
        // Classes of "the server goes away": the session is of no use any more.
        if code.code().starts_with("57P") || code.code().starts_with("08") {
            self.sessions.remove(database);
            return Err(Trouble::Broken);
        }
        for metric in metrics {
            let reason = format!("PostgreSQL refused the query: {}", said.message());
            self.out.not_observed(metric, reason);
        }
        Ok(None)
    }

    /// The session with a database, made when there is none.
    async fn open(&mut self, database: &str) -> Result<&mut Open, Trouble> {
        let changed = self.process.has_changed().unwrap_or(false);
        let up = self.process.borrow_and_update().is_some();
        self.started |= up;
        if changed {
            // Another life of the server: what is open belongs to the last one.
            self.sessions.clear();
            self.failed = None;
            self.starting = Some(Instant::now());
        }
        if self.started && !up {
            return Err(Trouble::Down);
        }
        if !self.sessions.contains_key(database) {
            let open = self.connect(database).await?;
            self.sessions.insert(database.to_string(), open);
        }
        self.sessions.get_mut(database).ok_or(Trouble::Broken)
    }

    async fn connect(&mut self, database: &str) -> Result<Open, Trouble> {
        let without = match self.starting {
            Some(since) if since.elapsed() < STARTUP => Trouble::Down,
            _ => Trouble::Broken,
        };
        if self.failed.is_some_and(|when| when.elapsed() < RETRY) {
            return Err(without);
        }
        let server = &self.sql.server;
        let work = async {
            let session = connect(server, Role::Sample, database, APPLICATION).await?;
            session
                .batch_execute(&format!(
                    "SET statement_timeout = {STATEMENT_TIMEOUT_MS}; SET lock_timeout = {LOCK_TIMEOUT_MS}; \
                     SET default_transaction_read_only = on; SET jit = off"
                ))
                .await?;
            let version = server_version_num(&session).await?;
            anyhow::Ok(Open {
                session,
                version,
                prepared: HashMap::new(),
            })
        };
        match patiently(work, &mut self.stop, &self.out, &mut self.silent).await? {
            Ok(open) => {
                self.failed = None;
                self.starting = None;
                Ok(open)
            }
            Err(error) => {
                if self.failed.is_none() && without == Trouble::Broken {
                    self.out.not_observed_again(
                        "sql_calls",
                        format!("the sampler has no session for a while: {error:#}"),
                    );
                }
                self.failed = Some(Instant::now());
                Err(without)
            }
        }
    }
}

/// Waits for an answer. When it does not come in time, says so and goes on waiting: an answer that comes late is thrown away,
/// since it speaks of another moment, but a slow server is not burdened with ever new sessions either.
async fn patiently<T>(
    work: impl Future<Output = T>,
    stop: &mut watch::Receiver<bool>,
    out: &Output,
    silent: &mut Option<Instant>,
) -> Result<T, Trouble> {
    tokio::pin!(work);
    if let Ok(answer) = tokio::time::timeout(PATIENCE, &mut work).await {
        if let Some(since) = silent.take() {
            let length = since.elapsed().as_secs_f64();
            let detail = format!("PostgreSQL answers the sampler again after {length:.1} s");
            out.server(out.clock.now(), "answers_again", detail);
        }
        return Ok(answer);
    }
    if silent.is_none() {
        *silent = Some(Instant::now());
        let detail = format!(
            "PostgreSQL did not answer the sampler for {} ms",
            PATIENCE.as_millis()
        );
        out.server(out.clock.now(), "no_answer", detail);
    }
    if *stop.borrow() {
        return Err(Trouble::Broken);
    }
    tokio::select! {
        _ = &mut work => Err(Trouble::Late),
        () = tokio::time::sleep(GIVE_UP) => Err(Trouble::Broken),
        _ = stop.changed() => Err(Trouble::Broken),
    }
}
