//! What is measured apart from the pairs: the saturation probe and counted calls.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::analysis::saturation::Saturation;

/// A saturation probe.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ProbeSummary {
    /// Levels by clients; the repeated one after its first.
    pub levels: Vec<ProbeLevel>,
    /// The knee and what belongs to it; absent when the levels can't be judged.
    pub found: Option<Saturation>,
    /// The verdict in a sentence or two; when there is none, why.
    pub verdict: String,
    /// Why levels are missing; absent when all were run.
    pub not_whole: Option<String>,
}

/// One level.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ProbeLevel {
    /// Closed-loop clients.
    pub clients: u32,
    /// Its place in the order in which levels ran, from 0.
    pub place: u32,
    /// The first level once more.
    pub repeated: bool,
    /// Measured seconds.
    pub seconds: f64,
    /// Ok requests a second.
    pub rate: f64,
    /// Requests begun.
    pub sent: u64,
    /// Answered in whole as expected.
    pub ok: u64,
    /// Failed.
    pub failed: u64,
    /// In flight at the end.
    pub cut: u64,
    /// Failed requests by class; classes without any are left out.
    pub failures: BTreeMap<String, u64>,
    /// Median latency; absent when there are too few requests for it.
    pub p50: Option<Bound>,
    /// 95th percentile.
    pub p95: Option<Bound>,
    /// 99th percentile.
    pub p99: Option<Bound>,
    /// Largest latency in ms.
    pub max_ms: Option<f64>,
    /// The driver's busiest thread, as share of a processor.
    pub driver_share: f64,
    /// Median delay before sending in microseconds.
    pub send_delay_us: f64,
    /// Processor time of the load threads a completed request, in microseconds.
    pub driver_cpu_us: Option<f64>,
    /// Why the rate may be the driver's own; empty when it is not.
    pub driver_limits: Vec<String>,
    /// What each service used.
    pub services: Vec<LevelService>,
}

/// A latency that was seen, or that is known to be no less.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Bound {
    /// In ms.
    pub ms: f64,
    /// It is this or more: the requests beyond it timed out.
    pub at_least: bool,
}

/// What one service used during a level.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct LevelService {
    /// Its name.
    pub service: String,
    /// Processor time a second, in cores.
    pub cpu_cores: Option<f64>,
    /// Memory in MiB.
    pub memory_mib: Option<f64>,
}

/// Counted calls of one kind.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct MicroSummary {
    /// Name as written.
    pub name: String,
    /// Name in figures.
    pub figure: String,
    /// Rounds in which both the program and its empty loop ran.
    pub rounds: u32,
    /// Calls in all rounds.
    pub calls: u64,
    /// Nanoseconds a call, the loop subtracted: mean over the rounds; absent when no round ended.
    pub ns_per_call: Option<f64>,
    /// 95 % t interval over the rounds; absent below two.
    pub interval: Option<[f64; 2]>,
    /// Smallest and largest round.
    pub range: Option<[f64; 2]>,
    /// Nanoseconds of the empty loop a call.
    pub baseline_ns: Option<f64>,
    /// Calls a second that the figure means; absent unless its whole interval is above zero.
    pub per_second: Option<f64>,
    /// Why rounds are missing; absent when all were run.
    pub not_whole: Option<String>,
}
