//! Services up and down: one file a kind behind one trait, readiness, the supervisor, control groups.
//!
//! `prepare` runs once and makes what both arms start from; `Deployment::start` brings one arm up from it as often as needed;
//! `stop` takes it down in reverse. The supervisor process owns everything that runs, so that nothing is left on any way out.
//! This room must never know about load, and never touch what it did not start.

mod account;
mod act;
mod cache;
mod caddy;
mod cgroup;
mod command;
mod database;
mod deployment;
mod equality;
mod external;
mod fetch;
mod kind;
mod leftover;
mod live;
mod logs;
mod lookup;
mod nginx;
mod port;
mod postgres;
mod prepare;
mod process;
mod program;
mod proxy;
mod ready;
mod render;
pub mod supervisor;

pub use cache::root as cache_folder;
pub use cgroup::{Cgroups, LimitsSeen, layout_word};
pub use database::RowCount;
pub use deployment::{Deployment, Endpoint, ServiceExit, StartError, StopReport, Watched};
pub use equality::{Exempt, compare, compare_rows, undeclared};
pub use fetch::{Fetchable, Fetched, fetch};
pub use leftover::{Scratch, Swept, sweep};
pub use live::{Life, ServiceStarted};
pub use lookup::where_is;
pub use prepare::{Context, Prepared, prepare};
pub use program::sha256;
pub use render::ReadEnv;
pub use supervisor::SUBCOMMAND;
