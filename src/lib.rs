//! ceteris: a declarative experiment runner for backends.
//!
//! One TOML file declares a deployment, its load and one control variable; both arms run from equal starts, everything is
//! sampled, and a report opens with what the data supports and what it does not.
//!
//! Data flows one way:
//!
//! ```text
//! experiment file -> plan -> deployment + load + sampling + pruning -> the run's folder -> analysis -> report
//! ```
//!
//! `run` and `analysis` meet only on disk, so judging an old folder is the same code path as judging a fresh run.
//!
//! A module imports only from strictly lower ranks; modules of one rank never import each other (a test enforces it):
//!
//! | rank | modules |
//! |---|---|
//! | 0 | [`name`], `quantity` |
//! | 1 | `figure`, `template`, [`measure`] |
//! | 2 | `expression`, [`sql`] |
//! | 3 | [`experiment`] |
//! | 4 | [`deploy`], `load`, [`sample`], [`prune`], `results` |
//! | 5 | `run`, `analysis` |
//! | 6 | [`report`] |
//! | 7 | [`archive`] |
//! | 8 | `cli` |
//! | 9 | `main` |
//!
//! Invariants that hold everywhere: every request has exactly one outcome; percentiles come from merged histograms and
//! are never averaged; "not observed" is a value of its own and never becomes a pass; nothing that was measured is lost
//! when something fails.

pub mod analysis;
pub mod archive;
pub mod cli;
pub mod deploy;
pub mod experiment;
pub mod expression;
pub mod figure;
pub mod load;
pub mod measure;
pub mod name;
pub mod prune;
pub mod quantity;
pub mod report;
pub mod results;
pub mod run;
pub mod sample;
pub mod sql;
pub mod template;
