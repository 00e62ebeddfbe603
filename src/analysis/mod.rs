//! Judging a run: from its files to verdicts.
//!
//! Pure: trials in, [`Summary`] out. This room must never do I/O, be async, or know HTTP.

pub mod calibrate;
pub mod stats;
pub mod summary;
pub mod trend_csv;
mod verdict;

pub use summary::Summary;
pub use verdict::Verdict;
