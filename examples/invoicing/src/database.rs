//! The pool of connections to PostgreSQL, and what its errors mean. A database that went away is asked again with growing
//! pauses, never in a hot loop; meanwhile requests are refused at once rather than kept waiting.

use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use anyhow::Context;
use deadpool_postgres::{
    Manager, ManagerConfig, Object, Pool, PoolError, RecyclingMethod, Runtime, TimeoutType,
};
use tokio_postgres::NoTls;
use tokio_postgres::error::SqlState;

use crate::answer::Problem;

const FIRST_PAUSE: Duration = Duration::from_millis(50);
const LONGEST_PAUSE: Duration = Duration::from_secs(1);

/// The database behind the service.
pub struct Database {
    pool: Pool,
    outage: Mutex<Option<Outage>>,
}

/// A database that could not be reached, and when to ask again.
#[derive(Debug, Clone, Copy)]
struct Outage {
    pause: Duration,
    ask_again: Instant,
}

impl Database {
    /// A pool of at most `connections`; none is opened before it is needed.
    ///
    /// # Errors
    /// When the pool's settings contradict each other.
    pub fn new(config: tokio_postgres::Config, connections: usize) -> anyhow::Result<Self> {
        let recycling = ManagerConfig {
            recycling_method: RecyclingMethod::Fast,
        };
        let pool = Pool::builder(Manager::from_config(config, NoTls, recycling))
            .max_size(connections)
            .runtime(Runtime::Tokio1)
            .wait_timeout(Some(Duration::from_secs(5)))
            .create_timeout(Some(Duration::from_secs(5)))
            .build()
            .context("the pool of database connections cannot be made")?;
        Ok(Self {
            pool,
            outage: Mutex::new(None),
        })
    }

    /// A connection, from the pool or new.
    ///
    /// # Errors
    /// `Unavailable` when the database does not let one in, or none comes free in time.
    pub async fn connection(&self) -> Result<Object, Problem> {
        if let Some(outage) = *self.outage()
            && Instant::now() < outage.ask_again
        {
            return Err(Problem::Unavailable(
                "the database was away a moment ago".into(),
            ));
        }
        match self.pool.get().await {
            Ok(connection) => {
                if self.outage().take().is_some() {
                    tracing::info!("the database is back");
                }
                Ok(connection)
            }
            Err(PoolError::Timeout(TimeoutType::Wait)) => Err(Problem::Unavailable(
                "no database connection came free in 5 s".into(),
            )),
            Err(error) => {
                let reason = match &error {
                    PoolError::Backend(error) => chain(error),
                    other => other.to_string(),
                };
                self.went_away(&reason);
                Err(Problem::Unavailable(reason))
            }
        }
    }

    /// Requests that wait for a connection.
    #[must_use]
    pub fn waiting(&self) -> usize {
        self.pool.status().waiting
    }

    fn outage(&self) -> std::sync::MutexGuard<'_, Option<Outage>> {
        self.outage.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn went_away(&self, reason: &str) {
        let now = Instant::now();
        let mut outage = self.outage();
        let next = longer(*outage, now);
        if let Some(next) = next {
            *outage = Some(next);
            tracing::warn!(
                "the database cannot be reached, asking again in {:?}: {reason}",
                next.pause
            );
        }
    }
}

/// The next pause. None while one runs: of many requests that fail together, one makes the pause longer.
fn longer(outage: Option<Outage>, now: Instant) -> Option<Outage> {
    let pause = match outage {
        Some(outage) if now < outage.ask_again => return None,
        Some(outage) => (outage.pause * 2).min(LONGEST_PAUSE),
        None => FIRST_PAUSE,
    };
    Some(Outage {
        pause,
        ask_again: now + pause,
    })
}

/// What an error of a statement means for the request.
#[must_use]
pub fn problem(error: &tokio_postgres::Error) -> Problem {
    let text = chain(error);
    let away = match error.code() {
        Some(code) => {
            [
                SqlState::ADMIN_SHUTDOWN,
                SqlState::CRASH_SHUTDOWN,
                SqlState::CANNOT_CONNECT_NOW,
                SqlState::TOO_MANY_CONNECTIONS,
                SqlState::T_R_DEADLOCK_DETECTED,
                SqlState::T_R_SERIALIZATION_FAILURE,
            ]
            .contains(code)
                || code.code().starts_with("08")
        }
        // Without a code it did not come from the server: the connection broke.
        None => {
            error.is_closed()
                || std::error::Error::source(error)
                    .is_some_and(|cause| cause.is::<std::io::Error>())
        }
    };
    if away {
        tracing::warn!("a request was cut off from the database: {text}");
        Problem::Unavailable(text)
    } else {
        Problem::Fault(text)
    }
}

/// An error with its causes: the driver's own text alone is only "db error".
fn chain(error: &tokio_postgres::Error) -> String {
    let mut text = error.to_string();
    let mut cause = std::error::Error::source(error);
    while let Some(error) = cause {
        text.push_str(": ");
        text.push_str(&error.to_string());
        cause = error.source();
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_grow_to_a_limit_and_once_for_many_failures() {
        let start = Instant::now();
        let first = longer(None, start).unwrap();
        assert_eq!(first.pause, FIRST_PAUSE);
        assert!(longer(Some(first), start).is_none());
        let mut outage = first;
        for _ in 0..10 {
            let next = longer(Some(outage), outage.ask_again).unwrap();
            assert!(next.pause >= outage.pause);
            outage = next;
        }
        assert_eq!(outage.pause, LONGEST_PAUSE);
    }
}
