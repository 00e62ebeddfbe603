//! A checked experiment: what later rooms work with.
//!
//! Values of these types exist only after every check has passed, so nobody downstream checks again. Strings named
//! *template* are minijinja sources that were parsed and whose names were resolved against what is offered to them.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::setup::ArmSetup;
use crate::name::{Arm, Arms};

/// One experiment: two arms that differ in one declared thing, and everything written beforehand.
#[derive(Debug, Clone)]
pub struct Experiment {
    /// The file, byte for byte.
    pub source: Source,
    /// `[experiment]`.
    pub header: Header,
    /// `[schedule]`.
    pub schedule: Schedule,
    /// `[control]`: what differs.
    pub control: Control,
    /// Both arms, each fully resolved.
    pub arms: Arms<ArmSetup>,
    /// `[analysis]`.
    pub analysis: AnalysisPlan,
    /// `[[criterion]]`.
    pub criteria: Vec<Criterion>,
    /// `[[explanation]]`.
    pub explanations: Vec<Explanation>,
    /// `[[claim]]`.
    pub claims: Vec<Claim>,
    /// `[[limit]]`: the author's own.
    pub limits: Vec<String>,
    /// `[[micro]]`.
    pub micro: Vec<Micro>,
    /// `[probe]`.
    pub probe: Option<Probe>,
}

/// The experiment file as read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Source {
    /// As named on the command line.
    pub path: PathBuf,
    /// Its text.
    pub text: String,
    /// Hex SHA-256 of its bytes.
    pub sha256: String,
}

/// `[experiment]`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Header {
    /// `[a-z0-9-]+`: the folder under results/.
    pub name: String,
    /// The report's title.
    pub title: String,
    /// What is asked.
    pub question: String,
    /// First line of the evidence box.
    pub status: Option<String>,
    /// Printed last.
    pub footer: Option<String>,
    /// Links for "Source data".
    pub sources: Vec<String>,
}

/// `[schedule]`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Schedule {
    /// Driven before the measured time, recorded apart.
    pub warmup: Duration,
    /// When an arm ends.
    pub stop: Stop,
    /// Rows of the report's table.
    pub window: Duration,
    /// Period of resource samples.
    pub sample: Duration,
    /// Quiet time between arms.
    pub rest: Duration,
    /// How many times both arms run.
    pub pairs: u32,
    /// In which order.
    pub order: Order,
    /// Seed of every draw.
    pub seed: u64,
}

/// When an arm ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Stop {
    /// After this much measured time.
    Duration(Arms<Duration>),
    /// After this many requests.
    Requests(u64),
}

/// In which order arms run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Order {
    /// The first arm of each pair by seed.
    Random,
    /// The treatment first in each pair.
    TreatmentFirst,
    /// The control first in each pair.
    ControlFirst,
    /// Quartets A B B A, the first letter by seed.
    Abba,
}

/// `[control]`.
#[derive(Debug, Clone, PartialEq)]
pub enum Control {
    /// One thing differs.
    Variable(Difference),
    /// The same arm twice.
    Null,
}

/// The one declared difference.
#[derive(Debug, Clone, PartialEq)]
pub struct Difference {
    /// The path as written: `pruning.enabled`.
    pub variable: String,
    /// Its value in each arm, as TOML writes it; `None`: the key is absent in that arm.
    pub values: Arms<Option<String>>,
    /// Expression that shows that the change took effect, if written.
    pub took_effect: Option<String>,
    /// Names of further differences that are permitted.
    pub also_differs: Vec<String>,
}

/// `[analysis]`.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct AnalysisPlan {
    /// What "flat" may move, as a share.
    pub margin: Option<f64>,
    /// Margins of single figures, by name without the arm.
    pub margins: BTreeMap<String, f64>,
    /// 0.95: 90 % intervals for flat, 95 % for falls and rises.
    pub confidence: f64,
    /// Smallest share of ok requests in a valid run.
    pub served_at_least: f64,
    /// Declared run-to-run standard deviation of log throughput.
    pub run_sd: Option<f64>,
    /// Horizon of a leak.
    pub horizon: Option<Duration>,
    /// Growth of memory (bytes) permitted over the horizon, by figure.
    pub budget: BTreeMap<String, u64>,
    /// Primary claims: names of their explanations or indexes; empty: all.
    pub primary: Vec<String>,
}

/// `[[criterion]]`: written beforehand; must hold in every arm.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Criterion {
    /// Its name.
    pub name: String,
    /// An expression over figures.
    pub holds: String,
}

/// `[[explanation]]`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Explanation {
    /// Its name.
    pub name: String,
    /// Why one would believe it.
    pub because: String,
    /// Figure (without the arm) to predicted words.
    pub predicts: BTreeMap<String, Arms<Option<TrendWord>>>,
}

/// The words of a trend that one can predict.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum TrendWord {
    /// Stays within the margin.
    Flat,
    /// Goes down by more than the margin.
    Falls,
    /// Goes up by more than the margin.
    Rises,
}

/// `[[claim]]`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Claim {
    /// A template over figures.
    pub text: String,
    /// An expression over figures.
    pub when: String,
    /// The explanation that makes it causal.
    pub explanation: Option<String>,
}

/// `[[micro]]`: counted calls.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Micro {
    /// Its name as written.
    pub name: String,
    /// Name in figures.
    pub figure: String,
    /// Makes the calls.
    pub command: Vec<String>,
    /// The same loop, empty.
    pub baseline: Vec<String>,
    /// How often each runs.
    pub rounds: u32,
}

/// `[probe]`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Probe {
    /// Levels in file order.
    pub clients: Vec<u32>,
    /// Time a level.
    pub each: Duration,
}

impl Probe {
    /// The arm whose deployment is probed.
    pub const ARM: Arm = Arm::Control;
}
