//! Rows of a table: counted once, then followed by what was inserted and deleted.
//!
//! The server's own number of live rows (`n_live_tup`) is an estimate that each VACUUM makes anew from the pages it
//! visited; under frequent vacuuming it wanders by a quarter while the table stands still. Must never pass it off as a count.
//! Backends report what they inserted about a second late, so a count that is taken under load is off by as much.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use super::session::{Asker, Trouble};
use crate::sql::quote_identifier;

/// A count is taken anew after rollbacks, whose inserts stay in the server's counters, but not more often than this.
const RECOUNT: Duration = Duration::from_secs(60);

/// What the server's statistics say of a table.
#[derive(Debug, Clone, Copy)]
pub(super) struct Statistics {
    pub(super) inserted: f64,
    pub(super) deleted: f64,
    /// The server's estimate of live rows.
    pub(super) live: f64,
    /// Transactions of this database that were rolled back.
    pub(super) rollbacks: f64,
}

/// A table by database, schema and name.
type Key = (String, String, String);

/// The counts that were taken, by table.
#[derive(Debug, Default)]
pub(super) struct Rows {
    counted: HashMap<Key, Counted>,
    epoch: u32,
}

#[derive(Debug, Clone, Copy)]
struct Counted {
    /// `None`: it took longer than a reading may.
    rows: Option<f64>,
    then: Statistics,
    at: Instant,
}

impl Counted {
    fn now(&self, now: Statistics) -> Option<f64> {
        let change = (now.inserted - self.then.inserted) - (now.deleted - self.then.deleted);
        self.rows.map(|rows| rows + change)
    }

    /// Whether the counters no longer continue those of the count.
    fn is_stale(&self, now: Statistics) -> bool {
        now.inserted < self.then.inserted
            || now.deleted < self.then.deleted
            || self.now(now).is_some_and(|rows| {
                rows < 0.0 || (now.live == 0.0 && self.then.live > 0.0 && rows > 0.0)
            })
            || (now.rollbacks > self.then.rollbacks && self.at.elapsed() >= RECOUNT)
    }
}

impl Rows {
    /// The table's rows at the moment of `now`; `None` where they could not be counted, and the reason is told.
    pub(super) async fn of(
        &mut self,
        asker: &mut Asker,
        (database, schema, name): (&str, &str, &str),
        now: Statistics,
    ) -> Result<Option<f64>, Trouble> {
        if asker.epoch() != self.epoch {
            // A server that crashed begins its counters anew.
            self.epoch = asker.epoch();
            self.counted.clear();
        }
        let key = (database.to_owned(), schema.to_owned(), name.to_owned());
        if let Some(counted) = self.counted.get(&key)
            && !counted.is_stale(now)
        {
            return Ok(counted.now(now));
        }
        let metric = format!("table.{name}.rows");
        let answer = match (quote_identifier(schema), quote_identifier(name)) {
            (Ok(schema), Ok(name)) => {
                let query = format!("SELECT count(*)::float8 FROM {schema}.{name}");
                asker.ask(database, &query, &[], &[&metric]).await?
            }
            _ => None,
        };
        let rows = answer.and_then(|rows| rows.first().map(|row| row.get(0)));
        if rows.is_none() {
            asker.out.not_observed(
                &metric,
                "the table could not be counted within the time of a reading; rows_estimate is the server's own estimate"
                    .to_owned(),
            );
        }
        let counted = Counted {
            rows,
            then: now,
            at: Instant::now(),
        };
        self.counted.insert(key, counted);
        Ok(rows)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn statistics(inserted: f64, deleted: f64, live: f64, rollbacks: f64) -> Statistics {
        Statistics {
            inserted,
            deleted,
            live,
            rollbacks,
        }
    }

    #[test]
    fn a_count_is_followed_by_inserts_and_deletes_whatever_the_estimate_says() {
        let counted = Counted {
            rows: Some(20_000.0),
            then: statistics(20_000.0, 0.0, 20_000.0, 3.0),
            at: Instant::now(),
        };
        let now = statistics(21_500.0, 1_480.0, 14_816.0, 3.0);
        assert_eq!(counted.now(now), Some(20_020.0));
        assert!(!counted.is_stale(now));
        // Not so soon after the count.
        assert!(!counted.is_stale(statistics(21_500.0, 1_480.0, 14_816.0, 4.0)));
    }

    #[test]
    fn counters_that_went_back_and_a_truncated_table_are_counted_anew() {
        let counted = Counted {
            rows: Some(100.0),
            then: statistics(100.0, 50.0, 100.0, 0.0),
            at: Instant::now(),
        };
        assert!(counted.is_stale(statistics(99.0, 50.0, 100.0, 0.0)));
        assert!(counted.is_stale(statistics(100.0, 49.0, 100.0, 0.0)));
        assert!(counted.is_stale(statistics(100.0, 151.0, 1.0, 0.0)));
        assert!(counted.is_stale(statistics(100.0, 50.0, 0.0, 0.0)));
        let too_large = Counted {
            rows: None,
            ..counted
        };
        assert!(!too_large.is_stale(statistics(100.0, 50.0, 0.0, 0.0)));
        assert_eq!(too_large.now(counted.then), None);
    }
}
