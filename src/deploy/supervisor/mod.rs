//! The supervisor: a process of its own, the same program under a hidden subcommand, which owns everything that runs.
//!
//! The runner may be killed at any moment, by any signal. The supervisor sees the end of their socket, stops every process
//! that descends from it (also what forked away: the kernel hands it over) and removes folders and control groups. If the
//! supervisor is killed as well, its children get a death signal, and the next start of ceteris removes what bears the mark.
//!
//! It must never decide what to run: every name that it gets is resolved.

mod client;
mod protocol;
mod server;
pub(crate) mod signal;
mod spawn;
pub(crate) mod tree;

pub(crate) use client::{Child, Supervisor};
pub use protocol::Ended;
pub(crate) use protocol::{Spawn, User};
pub use server::main;

/// The hidden subcommand that calls [`main`].
pub const SUBCOMMAND: &str = "__supervise";
