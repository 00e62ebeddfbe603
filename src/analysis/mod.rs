//! Judging a run: from its files to verdicts.
//!
//! Pure: trials in, [`Summary`] out. This room must never do I/O, be async, or know HTTP.
//!
//! ```text
//! trial -> measured -> observed (trends, series, bad seconds) -> arm -> figures
//!       -> between, gates -> criteria, explanations, claims, limits -> Summary
//! ```

mod actions;
mod arm;
mod between;
pub mod calibrate;
mod claims;
mod coincidence;
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
mod measured;
mod observed;
mod present;
pub mod saturation;
mod series;
mod setup;
mod statements;
pub mod stats;
pub mod summary;
pub mod trend_csv;
mod verdict;

pub use judge::{JudgeContext, NullRun, judge};
pub use summary::Summary;
pub use verdict::Verdict;
