//! The run's folder: the name of every path, the schema number, writers and readers.
//!
//! Everything is appended as it happens and flushed at least once an interval, so a killed runner loses at most the
//! current interval, and a half-finished run reads back like a finished one. This room must never compute a figure.

mod arm;
mod folder;
mod hlog;
mod lines;
mod manifest;
mod probe;
mod read;
mod rows;
mod seconds;

pub use arm::{ArmLayout, ArmWriter};
pub use folder::{ArmFolder, RunFolder, list_runs};
pub use hlog::{LatencyData, LatencyInterval, LatencyLog, interval_seconds};
pub use manifest::{Manifest, SCHEMA, ToolFacts, TrialRecord};
pub use probe::{
    MicroRow, MicroWriter, ProbeRow, ProbeWriter, Reading, ServiceUse, read_micro, read_probe,
};
pub use read::{Run, SampleSeries, Trial, read_run};
pub use rows::{FailureLine, SecondRow};
pub use seconds::Seconds;
