//! What sessions do and wait for, looked at each second.

use std::collections::BTreeMap;

use super::session::{Asker, Trouble};
use crate::name::is_name;
use crate::sql::Role;

const SESSIONS: &str = "SELECT coalesce(state, 'starting'), wait_event_type, wait_event, count(*)::float8 \
     FROM pg_stat_activity WHERE backend_type = 'client backend' AND pid <> pg_backend_pid() \
     AND usename IS NOT NULL AND usename <> ALL($1) GROUP BY 1, 2, 3";

/// The instrument for sessions.
#[derive(Debug, Default)]
pub(super) struct Waits {
    /// Looks since the last round.
    looks: u32,
    /// Active sessions seen in these looks, by what they waited for.
    waiting: BTreeMap<String, f64>,
    /// Sessions by state, at the last look.
    states: BTreeMap<&'static str, f64>,
}

impl Waits {
    /// Looks once.
    pub(super) async fn pulse(&mut self, asker: &mut Asker) -> Result<(), Trouble> {
        let database = asker.main_database();
        let own = [Role::SAMPLE_USER, Role::PRUNE_USER].map(str::to_string);
        let own: &[String] = &own;
        let metrics = ["connections", "waits"];
        let Some(rows) = asker.ask(&database, SESSIONS, &[&own], &metrics).await? else {
            return Ok(());
        };
        self.looks += 1;
        self.states = ["active", "idle", "idle_in_transaction", "other"]
            .map(|state| (state, 0.0))
            .into();
        for row in rows {
            let state: String = row.get(0);
            let state = match state.as_str() {
                "active" => "active",
                "idle" => "idle",
                "idle in transaction" | "idle in transaction (aborted)" => "idle_in_transaction",
                _ => "other",
            };
            let count: f64 = row.get(3);
            *self.states.entry(state).or_default() += count;
            if state == "active" {
                let name = wait_name(row.get(1), row.get(2));
                *self.waiting.entry(name).or_default() += count;
            }
        }
        Ok(())
    }

    /// Emits sessions by state at the last look, and the mean number of active sessions by what they waited for.
    pub(super) fn emit(&mut self, asker: &Asker) {
        let (at_s, epoch) = (asker.out.clock.now(), asker.epoch());
        for (state, count) in &self.states {
            let metric = format!("connections.{state}");
            asker.out.reading(at_s, &metric, "count", *count, epoch);
        }
        let looks = f64::from(std::mem::take(&mut self.looks));
        for (name, seen) in std::mem::take(&mut self.waiting) {
            let metric = format!("waits.{name}");
            asker
                .out
                .reading(at_s, &metric, "sessions", seen / looks, epoch);
        }
    }
}

/// What a session waits for, as part of a metric's name. Extensions name events as they like: a name that can't stand in a
/// figure is counted as `other`.
fn wait_name(kind: Option<&str>, event: Option<&str>) -> String {
    let Some(kind) = kind else {
        return "running".to_string();
    };
    let name = format!("{kind}_{}", event.unwrap_or("unknown")).to_ascii_lowercase();
    if is_name(&name) && name.len() <= 64 {
        name
    } else {
        "other".to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_have_names_that_a_figure_can_bear() {
        assert_eq!(wait_name(None, None), "running");
        assert_eq!(
            wait_name(Some("LWLock"), Some("WALWrite")),
            "lwlock_walwrite"
        );
        assert_eq!(
            wait_name(Some("Extension"), Some("x\",1\nservice")),
            "other"
        );
    }
}
