//! PostgreSQL as a peer: how to reach a server, under which role, and how to write names and literals safely.
//!
//! Deployment, sampling and pruning share it. It must never know what a query is for, and never let a password reach a
//! message, a log or the server's own statement text.

mod connect;
mod quote;
mod roles;
mod server;

pub use connect::{Session, connect};
pub use quote::{quote_identifier, quote_literal};
pub use roles::make_roles;
pub use server::{Login, Password, Reach, Role, Server, server_version_num};
