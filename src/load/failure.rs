//! Rows of failed requests, and of requests that the end of a phase cut.

use std::time::Duration;

use crate::measure::{FailureClass, Outcome};

/// One failed request.
#[derive(Debug, Clone, PartialEq)]
pub struct FailureRow {
    /// Seconds since the start of the phase, at its end.
    pub at_s: f64,
    /// Place of its step in the workload.
    pub step: usize,
    /// Why it failed, by type.
    pub class: FailureClass,
    /// Status, if a head was read.
    pub status: Option<u16>,
    /// Microseconds from the first byte written (open loop: from the intended start) to the failure; from the start of
    /// connecting when there was no connection.
    pub latency_us: u64,
    /// Bytes of the body that came.
    pub received: u64,
    /// Bytes of the body that were promised, as far as the head told.
    pub promised: Option<u64>,
    /// For people: what was wrong, then the first 200 bytes of what the peer said.
    pub said: String,
}

/// One request that was in flight when the phase ended.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct CutRequest {
    /// Place of its step in the workload.
    pub step: usize,
    /// How long it had been under way at the end of the phase.
    pub age: Duration,
    /// How much of that came after its first byte was written.
    pub sent: Duration,
    /// What became of it afterwards and how long it took in all; `None`: it never left, or was given up.
    pub drained: Option<(Outcome, Duration)>,
}

/// The text of a row: the reason, and the first bytes of what came.
pub(super) fn said(why: &str, body: &[u8]) -> String {
    let body = &body[..body.len().min(super::expect::SAID)];
    let text = String::from_utf8_lossy(body);
    match (why.is_empty(), text.is_empty()) {
        (_, true) => why.to_owned(),
        (true, _) => text.into_owned(),
        _ => format!("{why}: {text}"),
    }
}
