//! Order and time: which arm runs when, and what happens in it.
//!
//! Plans (pure), executes, acts, shuts down, and tells what happens as one enum. It must never print and never judge.

mod action;
mod apart;
mod drive;
mod execute;
mod ledger;
mod machine;
mod plan;
mod probe;
mod progress;
mod timeline;
mod trial;
mod watch;

pub use apart::{ProbedAlone, probe_alone};
pub use execute::{Cancel, Finished, Options, Outcome, ReadEnv, execute, stopped_at_once};
pub use machine::{git_state, machine};
pub use plan::{Trial, plan};
pub use probe::row as probe_row;
pub use progress::{Progress, Pulse};
