//! What the application's statements cost: calls as a running total, and the five costliest of the first and the last window.

use std::collections::{HashMap, VecDeque};
use std::time::Duration;

use super::session::{Asker, Trouble};
use crate::measure::EventKind;
use crate::sql::Role;

/// Calls without the texts, which would be read from a file. The sampler's and the pruner's own statements are left out.
const CALLS: &str = "SELECT coalesce(sum(s.calls), 0)::float8, i.dealloc::float8, \
     extract(epoch FROM i.stats_reset)::float8 \
     FROM pg_stat_statements_info AS i LEFT JOIN pg_stat_statements(false) AS s \
     ON s.dbid IN (SELECT oid FROM pg_database WHERE datname = ANY($1)) \
     AND s.userid NOT IN (SELECT oid FROM pg_roles WHERE rolname = ANY($2)) \
     GROUP BY i.dealloc, i.stats_reset";
const TIMES: &str = "SELECT s.queryid, sum(s.calls)::float8, sum(s.total_exec_time)::float8 \
     FROM pg_stat_statements(false) AS s \
     WHERE s.queryid IS NOT NULL AND s.dbid IN (SELECT oid FROM pg_database WHERE datname = ANY($1)) \
     AND s.userid NOT IN (SELECT oid FROM pg_roles WHERE rolname = ANY($2)) GROUP BY s.queryid";
const TEXTS: &str =
    "SELECT queryid, min(query) FROM pg_stat_statements WHERE queryid = ANY($1) GROUP BY queryid";

/// How many statements are told.
const TOP: usize = 5;
/// Longest statement text that is kept.
const TEXT_CHARS: usize = 500;

/// The instrument for statements.
#[derive(Debug)]
pub(super) struct Statements {
    window_s: f64,
    /// Evictions and time of the last reset, and the server's life.
    since: Option<(f64, f64, u32)>,
    /// Totals at the edges of the last windows, oldest first.
    edges: VecDeque<Edge>,
    first_told: bool,
}

/// Totals of every statement at one moment.
#[derive(Debug, Clone)]
struct Edge {
    at_s: f64,
    epoch: u32,
    totals: HashMap<i64, Total>,
}

#[derive(Debug, Clone, Copy, PartialEq, Default)]
struct Total {
    calls: f64,
    ms: f64,
}

impl Statements {
    pub(super) fn new(window: Duration) -> Self {
        Self {
            window_s: window.as_secs_f64().max(1.0),
            since: None,
            edges: VecDeque::new(),
            first_told: false,
        }
    }

    /// Emits the calls so far, and gives the moment of the reading.
    pub(super) async fn calls(&mut self, asker: &mut Asker) -> Result<Option<f64>, Trouble> {
        if !asker.sql.server.samples_apart() {
            asker.out.not_observed(
                "sql_calls",
                "the sampler works under the application's own role in a server that ceteris did not start, so their \
                 statements can't be told apart",
            );
            return Ok(None);
        }
        let database = asker.main_database();
        let databases = asker.sql.databases.clone();
        let own = own_roles();
        let rows = asker
            .ask(&database, CALLS, &[&databases, &own], &["sql_calls"])
            .await?;
        let Some(row) = rows.as_ref().and_then(|rows| rows.first()) else {
            return Ok(None);
        };
        let (at_s, epoch) = (asker.out.clock.now(), asker.epoch());
        let (calls, evicted, reset): (f64, f64, f64) = (row.get(0), row.get(1), row.get(2));
        if let Some((evicted_before, reset_before, life)) = self.since
            && life == epoch
        {
            let why = if reset != reset_before {
                Some("pg_stat_statements was reset")
            } else if evicted > evicted_before {
                Some("pg_stat_statements dropped its rarest statements (pg_stat_statements.max)")
            } else {
                None
            };
            if let Some(why) = why {
                asker.out.void("sql_calls");
                asker
                    .out
                    .not_observed_again("sql_calls", format!("{why}: this interval is void"));
            }
        }
        self.since = Some((evicted, reset, epoch));
        asker
            .out
            .counter(at_s, "sql_calls", "count_total", calls, epoch);
        Ok(Some(at_s))
    }

    /// Reads the totals when a window of the measured time begins, and tells the first window's costliest when it is over.
    pub(super) async fn edge(&mut self, asker: &mut Asker, planned_s: f64) -> Result<(), Trouble> {
        let due = match self.edges.back() {
            Some(last) => last.at_s + self.window_s - 0.5,
            None => 0.0,
        };
        if planned_s < due {
            return Ok(());
        }
        let Some(edge) = self.read(asker).await? else {
            return Ok(());
        };
        if let (false, Some(first)) = (self.first_told, self.edges.back()) {
            let top = costliest(first, &edge);
            self.first_told = true;
            tell(asker, "first", first.at_s, edge.at_s, top).await?;
        }
        self.edges.push_back(edge);
        // A whole window before the end lies between the last edge but one and the last, or starts at the former.
        while self.edges.len() > 3 {
            self.edges.pop_front();
        }
        Ok(())
    }

    /// Tells the last window's costliest.
    pub(super) async fn close(&mut self, asker: &mut Asker) -> Result<(), Trouble> {
        let Some(end) = self.read(asker).await? else {
            return Ok(());
        };
        // The youngest edge that leaves a whole window; a tenth less is near enough, since edges and the end don't meet.
        let from = self
            .edges
            .iter()
            .rev()
            .find(|edge| end.at_s - edge.at_s >= 0.9 * self.window_s);
        match from {
            Some(from) => {
                let top = costliest(from, &end);
                tell(asker, "last", from.at_s, end.at_s, top).await
            }
            None => Ok(()),
        }
    }

    async fn read(&self, asker: &mut Asker) -> Result<Option<Edge>, Trouble> {
        if !asker.sql.server.samples_apart() {
            return Ok(None);
        }
        let database = asker.main_database();
        let databases = asker.sql.databases.clone();
        let own = own_roles();
        let rows = asker
            .ask(&database, TIMES, &[&databases, &own], &["statements"])
            .await?;
        Ok(rows.map(|rows| Edge {
            at_s: asker.out.clock.now(),
            epoch: asker.epoch(),
            totals: rows
                .iter()
                .map(|row| {
                    let total = Total {
                        calls: row.get(1),
                        ms: row.get(2),
                    };
                    (row.get(0), total)
                })
                .collect(),
        }))
    }
}

/// The statements that took most time between two edges. A statement whose totals fell was reset; it is left out.
fn costliest(from: &Edge, to: &Edge) -> Vec<(i64, Total)> {
    if from.epoch != to.epoch {
        return Vec::new();
    }
    let mut spent: Vec<(i64, Total)> = to
        .totals
        .iter()
        .map(|(id, now)| {
            let before = from.totals.get(id).copied().unwrap_or_default();
            let total = Total {
                calls: now.calls - before.calls,
                ms: now.ms - before.ms,
            };
            (*id, total)
        })
        .filter(|(_, total)| total.calls > 0.0 && total.ms > 0.0)
        .collect();
    spent.sort_by(|a, b| b.1.ms.total_cmp(&a.1.ms).then(a.0.cmp(&b.0)));
    spent.truncate(TOP);
    spent
}

/// Emits one event a statement, with its text.
async fn tell(
    asker: &mut Asker,
    window: &str,
    from_s: f64,
    to_s: f64,
    top: Vec<(i64, Total)>,
) -> Result<(), Trouble> {
    let database = asker.main_database();
    let ids: Vec<i64> = top.iter().map(|(id, _)| *id).collect();
    let rows = asker
        .ask(&database, TEXTS, &[&ids], &["statements"])
        .await?
        .unwrap_or_default();
    let texts: HashMap<i64, Option<String>> =
        rows.iter().map(|row| (row.get(0), row.get(1))).collect();
    for (rank, (id, total)) in (1..).zip(top) {
        let text = texts.get(&id).cloned().flatten().unwrap_or_default();
        asker.out.event(
            to_s,
            EventKind::Statement {
                service: asker.out.service().to_string(),
                window: window.to_string(),
                from_s,
                to_s,
                rank,
                query: shown(&text),
                calls: total.calls,
                total_ms: total.ms,
            },
        );
    }
    Ok(())
}

/// A statement as it may be kept. PostgreSQL replaces the constants of queries by `$n`, not those of other commands, which may
/// hold a password: of these only the first words stay.
fn shown(text: &str) -> String {
    let mut words = text.split_whitespace();
    let verb = words.next().unwrap_or_default().to_ascii_uppercase();
    let is_query = [
        "SELECT", "INSERT", "UPDATE", "DELETE", "MERGE", "WITH", "VALUES",
    ]
    .contains(&verb.as_str());
    if !is_query {
        return verb;
    }
    let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    if line.chars().count() <= TEXT_CHARS {
        return line;
    }
    line.chars().take(TEXT_CHARS - 1).chain(['…']).collect()
}

fn own_roles() -> Vec<String> {
    vec![Role::SAMPLE_USER.to_string(), Role::PRUNE_USER.to_string()]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn edge(at_s: f64, totals: &[(i64, f64, f64)]) -> Edge {
        Edge {
            at_s,
            epoch: 0,
            totals: totals
                .iter()
                .map(|&(id, calls, ms)| (id, Total { calls, ms }))
                .collect(),
        }
    }

    #[test]
    fn the_costliest_are_ranked_by_time_in_between() {
        let from = edge(0.0, &[(1, 10.0, 100.0), (2, 1.0, 900.0), (3, 5.0, 50.0)]);
        let to = edge(
            9.0,
            &[
                (1, 20.0, 400.0),
                (2, 2.0, 910.0),
                (3, 1.0, 2.0),
                (4, 1.0, 20.0),
            ],
        );
        let ids: Vec<i64> = costliest(&from, &to).iter().map(|(id, _)| *id).collect();
        assert_eq!(ids, [1, 4, 2], "3 was reset in between");
        let other_life = Edge { epoch: 1, ..to };
        assert!(costliest(&from, &other_life).is_empty());
    }

    #[test]
    fn only_queries_are_shown_in_full() {
        assert_eq!(
            shown("SELECT *\n  FROM t WHERE a = $1"),
            "SELECT * FROM t WHERE a = $1"
        );
        assert_eq!(shown("create role x password 'secret'"), "CREATE");
        assert_eq!(
            shown(&format!("select {}", "é".repeat(900)))
                .chars()
                .count(),
            500
        );
    }
}
