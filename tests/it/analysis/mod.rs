//! Judging runs with known truths in them.

mod bad_seconds;
mod barriers;
mod made;
mod play;
mod several_pairs;
mod truths;
