//! One integration binary.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod analysis;
mod analysis_reference;
mod archive;
mod check;
mod deploy;
mod load;
mod load_faults;
mod misbehaving;
mod report;
mod sample;
mod tidy;
