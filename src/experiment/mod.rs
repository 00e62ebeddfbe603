//! The experiment file: from TOML to a checked [`Experiment`], or to all its problems at once.
//!
//! The text becomes a tree in which everything knows its place ([`document`]); [`difference`] makes both arms of it; [`check`]
//! turns each into checked parts against the keys of [`format`]. This room resolves both arms and proves that they differ in
//! one declared thing. It must never start anything.

mod check;
mod derived;
mod difference;
mod document;
mod format;
mod model;
mod path;
mod problem;
mod read;
mod review;
mod schema;
mod setup;
mod shape;
mod starter;
mod traffic;

pub use check::Lookup;
pub use derived::Smoke;
pub use model::*;
pub use problem::{Problem, Severity, Span, render};
pub use read::{Checked, Faults, LoadError, LoadOptions, check_bytes, load};
pub use review::{ArmReport, CheckReport, DifferenceReport, Program, StepReport, render_check};
pub use schema::schema;
pub use setup::*;
pub use starter::starter;
pub use traffic::*;
