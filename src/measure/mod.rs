//! The vocabulary of what is observed: outcomes of requests, seconds, samples, events.
//!
//! Makers (load, sample, prune, run) and readers (results, analysis) share these types and meet nowhere else.
//! This room must never do I/O or decide what an observation means.

mod event;
mod facts;
mod failure;
mod outcome;
mod sample;
mod second;

pub use event::{Event, EventKind, HostFacts, Phase, ProcessLoad, StopReason};
pub use facts::{Equality, EqualityItem, MachineFacts, ServiceFacts};
pub use failure::FailureRow;
pub use outcome::{FailureClass, Outcome};
pub use sample::{HOST, RUNNER, Sample};
pub use second::{Account, Counts, HostSecond, LoadSecond, Silence};
