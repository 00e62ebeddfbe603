//! What happened, and when: phases, services, prunes, actions, clocks.

use serde::{Deserialize, Serialize};

/// One line of `events.jsonl`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Event {
    /// Seconds since the start of the measured time; negative before it.
    pub at_s: f64,
    /// Wall clock in UTC, RFC 3339: a label, never used for a duration.
    pub wall: String,
    /// What happened.
    #[serde(flatten)]
    pub kind: EventKind,
}

/// What happened.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "event", rename_all = "snake_case")]
pub enum EventKind {
    /// A phase of the arm began.
    Phase { phase: Phase },
    /// A service is up and ready; `ready_ms` from its start.
    ServiceStarted {
        service: String,
        pid: u32,
        ready_ms: f64,
        epoch: u32,
    },
    /// A service ended; `expected` when an action or the arm's end asked for it.
    ServiceExited {
        service: String,
        status: String,
        expected: bool,
        log_tail: Vec<String>,
    },
    /// A step sent once before load, and whether it answered as it expects.
    Preflight {
        step: String,
        ok: bool,
        detail: String,
    },
    /// One pass of the pruning policy over one table.
    Prune {
        table: String,
        rows: u64,
        ms: f64,
        error: Option<String>,
    },
    /// One execution of an action; `at_s` of the event is its start.
    Action {
        name: String,
        index: u32,
        ended_s: f64,
        ok: bool,
        detail: String,
    },
    /// Rows of a table, counted exactly while no load runs.
    RowCount {
        service: String,
        database: String,
        table: String,
        rows: u64,
    },
    /// Monotonic seconds since measuring began beside the wall clock's, read together.
    Clock { monotonic_s: f64, wall_s: f64 },
    /// The host around a bad second.
    Host(HostFacts),
    /// A sampler could not read something; the reason stands for "not observed".
    NotObserved {
        service: String,
        metric: String,
        reason: String,
    },
    /// A sampling round that came late or not at all.
    SampleGap { planned_s: f64, taken_s: f64 },
    /// Something remarkable in the server's own account: a checkpoint, an autovacuum, an out-of-memory kill.
    Server {
        service: String,
        what: String,
        detail: String,
    },
    /// One of the statements that took most time in the first or the last window, as the server counts it.
    Statement {
        service: String,
        window: String,
        from_s: f64,
        to_s: f64,
        rank: u32,
        query: String,
        calls: f64,
        total_ms: f64,
    },
    /// A line of a service's log that matched a pattern: one of the first three examples.
    LogLine {
        service: String,
        pattern: String,
        line: String,
    },
    /// Load phase totals as the driver kept them, to hold against the sum of seconds.
    LoadEnd {
        /// Requests whose sending began.
        sent: u64,
        /// Whole answers as expected.
        ok: u64,
        /// Failed requests.
        failed: u64,
        /// In flight at the end.
        cut: u64,
        /// Their ages at the end, in ms.
        cut_ages_ms: Vec<f64>,
        /// Length of the measured time in seconds: what rates are divided by.
        seconds: f64,
        /// CPU seconds of all load threads.
        driver_cpu_s: f64,
        /// The busiest load thread's largest share of a processor in any whole second.
        busiest_share: f64,
        /// Failed requests that are counted by class only, without a row in failures.csv.
        unlisted: u64,
    },
    /// The sampler's own account.
    SamplingEnd {
        /// Readings due in the measured time.
        planned: u64,
        /// Readings taken in their time.
        taken: u64,
        /// Readings late or not taken.
        gaps: u64,
        /// CPU seconds of the sampling thread.
        cost_cpu_s: f64,
        /// Wall-clock seconds spent on proportional set sizes.
        pss_s: f64,
    },
    /// The arm ended.
    Stopped { reason: StopReason, detail: String },
}

/// The phases of an arm, in order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Phase {
    /// Services come up.
    Starting,
    /// Each step is sent once.
    Preflight,
    /// Driven, recorded apart, never counted.
    Warmup,
    /// VACUUM (ANALYZE) and CHECKPOINT, so that warm-up's debts aren't paid in the measured time.
    Settling,
    /// What counts.
    Measuring,
    /// Services go down.
    Stopping,
}

/// Why an arm ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StopReason {
    /// Its time or its number of requests was complete.
    Complete,
    /// The user asked to stop.
    Interrupted,
    /// A service died without an action asking for it.
    ServiceDied,
    /// A gate failed before the load began.
    GateFailed,
    /// The disk was about to be full.
    DiskFull,
    /// The runner could not go on.
    Failed,
}

/// The host around a bad second.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct HostFacts {
    /// The second it speaks of.
    pub second: u64,
    /// The biggest processes that are neither the deployment nor the runner, by CPU, biggest first.
    pub others: Vec<ProcessLoad>,
}

/// One process's use of processors over a second.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ProcessLoad {
    /// Command name only: arguments may hold secrets.
    pub command: String,
    /// Cores used.
    pub cores: f64,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_event_is_one_flat_line_that_reads_back() {
        let event = Event {
            at_s: 1.5,
            wall: "2026-01-01T00:00:00Z".into(),
            kind: EventKind::Host(HostFacts {
                second: 1,
                others: vec![ProcessLoad {
                    command: "cc1".into(),
                    cores: 0.9,
                }],
            }),
        };
        let line = serde_json::to_string(&event).unwrap();
        assert!(line.contains("\"event\":\"host\""), "{line}");
        assert_eq!(serde_json::from_str::<Event>(&line).unwrap(), event);
    }
}
