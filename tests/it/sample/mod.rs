//! Sampling and pruning on real processes and a real PostgreSQL.

mod postgres;
mod prune;
mod server;
