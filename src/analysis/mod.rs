//! Judging a run: from its files to verdicts.
//!
//! Pure: trials in, [`Summary`] out. This room must never do I/O, be async, or know HTTP.
//!
//! ```text
//! trial -> measured -> observed (trends, series, bad seconds) -> arm -> figures
//!       -> between, gates -> criteria, explanations, claims, limits -> Summary
//! ```

mod actions;
mod aftermath;
mod arm;
mod arm_figures;
mod beside;
mod between;
pub mod calibrate;
mod claims;
mod coincidence;
mod conduct;
mod counters;
mod difference;
mod episodes;
mod explanations;
mod figures;
mod finding;
mod gates;
mod judge;
mod latency;
mod limits;
mod littles;
mod load_gates;
mod measured;
mod memory;
mod micro;
mod moments;
mod observed;
mod present;
pub mod probe;
mod recovery;
pub mod saturation;
mod series;
mod setup;
mod statements;
pub mod stats;
pub mod summary;
pub mod trend_csv;
mod verdict;

pub use between::NullRun;
pub use judge::{JudgeContext, judge};
pub use summary::Summary;
pub use verdict::Verdict;
