//! The experiment file: from TOML to a checked [`Experiment`], or to all its problems at once.
//!
//! This room resolves both arms and proves that they differ in one declared thing. It must never start anything.

mod model;

pub use model::*;
