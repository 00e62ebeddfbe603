//! One integration binary.
#![allow(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "a test fails by panicking and may print"
)]

mod analysis;
mod analysis_reference;
mod archive;
mod check;
mod cli;
mod deploy;
mod hlog;
mod load;
mod load_counted;
mod load_faults;
mod load_own_side;
mod load_stall;
mod load_ways;
mod misbehaving;
mod report;
mod run;
mod sample;
mod tidy;
