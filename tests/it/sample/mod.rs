//! Sampling and pruning on real processes and a real PostgreSQL.

mod memory;
pub mod postgres;
mod process;
mod prune;
mod server;
