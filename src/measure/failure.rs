//! A failed request, kept as an example.

use super::outcome::FailureClass;

/// One failed request. Kept in bounded number; what is beyond the bound is still counted by class.
#[derive(Debug, Clone, PartialEq)]
pub struct FailureRow {
    /// Seconds since the start of the measured time at which it ended.
    pub at_s: f64,
    /// Its step.
    pub step: String,
    /// Why it failed.
    pub class: FailureClass,
    /// Status of the answer, when one came.
    pub status: Option<u16>,
    /// From the first byte written to its end, in ms; absent when nothing was written.
    pub latency_ms: Option<f64>,
    /// Bytes of the body received.
    pub received: u64,
    /// Bytes of the body promised, when the answer told.
    pub promised: Option<u64>,
    /// The first 200 bytes of what was said or of the error: text from outside.
    pub said: String,
}
