//! The experiment file: from TOML to a checked [`Experiment`], or to all its problems at once.
//!
//! This room resolves both arms and proves that they differ in one declared thing. It must never start anything.

mod model;
mod setup;
mod traffic;

pub use model::*;
pub use setup::*;
pub use traffic::*;
