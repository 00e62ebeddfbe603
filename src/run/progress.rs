//! What happens during a run, told as it happens: one enum, one callback.

use std::path::PathBuf;

use super::plan::Trial;
use crate::measure::Phase;
use crate::results::ProbeRow;

/// Something that a person who waits wants to know.
#[derive(Debug, Clone, PartialEq)]
pub enum Progress {
    /// The run's folder exists; these trials follow.
    RunStarted {
        /// Where everything is written.
        folder: PathBuf,
        /// In their order.
        trials: Vec<Trial>,
        /// Planned seconds of the whole run, where that can be told.
        planned_s: Option<f64>,
    },
    /// Programs are built, found and hashed; the seed of the data is made.
    Preparing {
        /// What is being done.
        what: String,
    },
    /// An arm enters a phase.
    Phase {
        /// Which trial.
        trial: Trial,
        /// What begins.
        phase: Phase,
        /// Planned seconds of the phase, where that can be told.
        planned_s: Option<f64>,
    },
    /// A service is ready.
    ServiceReady {
        /// Its name.
        service: String,
        /// From its start.
        ready_ms: f64,
    },
    /// A second of load has passed.
    Second(Pulse),
    /// Something that should be seen at once: a service died, an action failed, the disk is nearly full.
    Warning(String),
    /// An arm has ended and everything is written.
    TrialEnded {
        /// Which trial.
        trial: Trial,
        /// Requests that ended ok in its measured time.
        ok: u64,
        /// Failed ones.
        failed: u64,
    },
    /// A level of the saturation probe has ended.
    Level(ProbeRow),
    /// Quiet time between arms.
    Resting {
        /// For so long.
        seconds: f64,
    },
}

/// The state of the load after one more second.
#[derive(Debug, Clone, PartialEq)]
pub struct Pulse {
    /// Which trial.
    pub trial: Trial,
    /// Warm-up or measuring.
    pub phase: Phase,
    /// Seconds of the phase so far.
    pub elapsed_s: u64,
    /// Ok requests in the last second.
    pub ok: u64,
    /// Median latency of the last second in ms.
    pub p50_ms: Option<f64>,
    /// 99th percentile of the last second in ms.
    pub p99_ms: Option<f64>,
    /// Failed requests of the phase so far.
    pub failed: u64,
    /// Rows of the tables, largest first, as last sampled.
    pub rows: Vec<(String, u64)>,
}
