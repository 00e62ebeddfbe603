//! The numerical rules behind every verdict: pure functions over `&[f64]` and small structs.
//!
//! This room knows numbers only. It must never do I/O, be async, know what an experiment is, or turn "not enough
//! data" into a number: what cannot be computed is an error or a `None` with a reason beside it.
//!
//! Words used throughout: a *bin* is one point of an equally spaced series; a *relative change* is the change over the
//! whole series divided by its level (−0.2 is "fell by 20 %"); a *margin* is the relative change that the experiment
//! declares to matter.

pub mod bins;
pub mod described;
pub mod difference;
pub mod distribution;
pub mod ends;
pub mod leak;
pub mod linear;
pub mod littles;
pub mod multiplicity;
pub mod null;
pub mod pairs;
pub mod prais_winsten;
pub mod quantile;
pub mod saturation;
pub mod separation;
pub mod series;
pub mod simulate;
pub mod trend;
pub mod warmup;
