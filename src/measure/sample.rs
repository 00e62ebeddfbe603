//! One reading of one instrument.

use serde::{Deserialize, Serialize};

/// The name that samples of the host bear in place of a service's. Not a legal service name, so it can't collide.
pub const HOST: &str = "-host";
/// The name that samples of the runner itself bear.
pub const RUNNER: &str = "-runner";

/// One reading: what was read of which service, when.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Sample {
    /// Seconds since the start of the measured time; negative during warm-up.
    pub at_s: f64,
    /// The service, or [`HOST`] or [`RUNNER`].
    pub service: String,
    /// The metric's name as in the catalogue of figures, without `services.<s>.`: `memory.rss`, `table.jobs.rows`.
    /// Counters are written as read (cumulative within one `epoch`), with the unit's name telling so.
    pub metric: String,
    /// The unit: `MiB`, `cpu_s` (cumulative CPU seconds), `count`, `rows`, `bytes`, `ms`, `share`, `cores`, `sessions`,
    /// `transactions`; counters have `_total` at its end: `count_total`, `bytes_total`, `ms_total`, `s_total`.
    pub unit: String,
    /// The value in that unit.
    pub value: f64,
    /// Which life of what counts (0 for the first): counters are compared within one epoch only. For the process tree it is
    /// the process's; a counter kept by a server begins the next one also when it falls or an interval of it is void.
    pub epoch: u32,
}
