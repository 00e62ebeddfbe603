//! Whole runs of the real program: what it writes, how it stops, what it refuses, and that nothing is left behind.

mod acted_upon;
mod apart;
mod ordinary;
mod refused;
pub mod site;
mod stopped;
mod whole;
