//! Judging runs with known truths in them.

mod made;
mod play;
mod truths;
