//! The load driver: it sends requests and writes down what became of each.
//!
//! One client is one task with one connection; a load thread is one `current_thread` runtime with its clients and its own
//! record. The monotonic clock is read once at each end of a request: latency is from the first byte written to the last
//! byte read (open loop: from the intended start), connecting is timed apart. A phase ends at an exact instant: what is in
//! flight then is *cut* (neither ok nor failed), drained for at most the timeout, and listed with its age.
//!
//! This room must never know what is being compared, never retry, and never invent a sample.

mod adhoc;
mod alarm;
mod classify;
mod client;
mod closed;
mod connection;
mod draw;
mod driver;
mod encode;
mod environment;
mod exchange;
mod expect;
mod failure;
mod framing;
mod general;
mod http1;
mod http2;
mod micro;
mod open;
mod pace;
mod phase;
mod pick;
mod plan;
mod pointer;
mod preflight;
mod probe;
mod record;
mod running;
mod selfcheck;
mod silence;
mod stream;
mod summary;
mod target;
mod template;
mod thread;
mod timer;
mod tls;

pub use adhoc::{Adhoc, AdhocReport, Cut, Rate, Requests, ShownFailure, adhoc};
pub use driver::{Driver, PhaseSpec, StopRule};
pub use environment::Environment;
pub use failure::{CutRequest, FailureRow};
pub use micro::{Calls, MicroRound, micro};
pub use preflight::Preflight;
pub use probe::{Level, Probed, order, probe, probe_url};
pub use running::{PhaseTotals, Running, ThreadEnd};
pub use summary::{
    DriverUse, Quantile, Times, driver_use, failures, latency_us, littles_ratio, times,
};
pub use target::{Scheme, Target};
