//! Judging runs with known truths in them.

mod acted_upon;
mod bad_seconds;
mod barriers;
mod made;
mod play;
mod several_pairs;
mod truths;
