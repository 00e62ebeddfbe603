//! Instruments: what is read of a deployment, its host and the runner, at a known period and at known cost.
//!
//! One thread of its own with a single-threaded runtime takes every reading, so that the load can't delay it; each
//! instrument paces itself against the same origin and says when it was late. A value that can't be read is *not observed*,
//! with the reason, once. Counters are passed on as read, within one life of whatever counts. This room must never judge
//! what it sees, never wait without a bound for something that it observes, and never change it.

mod account;
mod cgroup;
mod disk;
mod history;
mod host;
mod log;
mod others;
mod output;
mod pace;
mod postgres;
mod process;
mod rounds;
mod runner;
mod sampler;
mod smaps;
mod sockets;
mod spec;
mod status;
mod thrift;
mod tree;

pub use sampler::{Sampler, SamplingTotals, start};
pub use spec::{
    Observation, ProcessRoot, SampleSpec, WatchedLog, WatchedService, WatchedSql, WatchedStatus,
};
