//! The summary: every figure that a report prints, and every verdict with what it rests on.
//!
//! Written as `summary.json`; the report reads nothing else about the run. It must never hold a sentence whose verdict is
//! missing.

use std::collections::BTreeMap;

mod apart;
mod arm;

use serde::{Deserialize, Serialize};

pub use apart::*;
pub use arm::*;

use super::verdict::Verdict;
use crate::experiment::{Header, Pick, TrendWord};
use crate::measure::{EqualityItem, MachineFacts, ServiceFacts};
use crate::name::{Arm, Arms};

/// Version of this layout; readers refuse what they don't know.
pub const SUMMARY_SCHEMA: u32 = 1;

/// A judged run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Summary {
    /// [`SUMMARY_SCHEMA`].
    pub schema: u32,
    /// Version and commit of the tool that ran (not of the one that judged).
    pub tool: String,
    /// `[experiment]`.
    pub experiment: Header,
    /// Hex SHA-256 of the experiment file.
    pub experiment_sha256: String,
    /// The run itself.
    pub run: RunFacts,
    /// Whether it can support anything at all.
    pub validity: Validity,
    /// Exit code of `run`, `analyze` and `report`.
    pub exit_code: u8,
    /// What ran.
    pub setup: Setup,
    /// What differed, and the proof that nothing else did.
    pub difference: DifferenceSummary,
    /// What each arm did; absent when the arm never measured.
    pub arms: Arms<Option<ArmSummary>>,
    /// One row a pair, in order.
    pub pairs: Vec<PairSummary>,
    /// What can be said between the arms.
    pub between: Option<Between>,
    /// Every figure by its name in the catalogue. Absent means not observed.
    pub figures: BTreeMap<String, FigureValue>,
    /// Why a figure is absent, where that is known, by figure name or prefix.
    pub not_observed: BTreeMap<String, String>,
    /// Gates, all of them, in order.
    pub gates: Vec<Gate>,
    /// Criteria in file order, one entry an arm.
    pub criteria: Vec<CriterionResult>,
    /// Explanations in file order.
    pub explanations: Vec<ExplanationResult>,
    /// Claims in file order.
    pub claims: Vec<ClaimResult>,
    /// Limits that follow from how the run was made, then the author's own.
    pub limits: Vec<LimitResult>,
    /// Actions, by arm and in time order.
    pub actions: Vec<ActionResult>,
    /// The saturation probe.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub probe: Option<ProbeSummary>,
    /// Counted calls, in file order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub micro: Vec<MicroSummary>,
    /// Remarks that the author added afterwards.
    pub notes: Vec<Note>,
}

/// A value in the catalogue of figures.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum FigureValue {
    /// A number in the catalogue's unit.
    Number(f64),
    /// A word: `flat`, `falls`, `rises`, `unclear`.
    Word(String),
}

/// Facts of the run as a whole.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RunFacts {
    /// Name of its folder.
    pub id: String,
    /// Start in UTC, RFC 3339.
    pub started: String,
    /// How it ended.
    pub ended: RunEnd,
    /// Shortened: kept and labelled, never evidence.
    pub smoke: bool,
    /// The same arm twice: it measures the noise between runs.
    pub null: bool,
    /// Seed of every draw.
    pub seed: u64,
    /// Realised order.
    pub order: Vec<TrialFacts>,
    /// As typed.
    pub command_line: Vec<String>,
    /// Commit of the working folder, when it is a git checkout.
    pub git_commit: Option<String>,
    /// Whether that folder had no uncommitted changes.
    pub git_clean: Option<bool>,
}

/// How a run ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "how", content = "detail")]
pub enum RunEnd {
    /// Every arm complete.
    Complete,
    /// By the user.
    Interrupted,
    /// By a failure; the text says which, when.
    Failed(String),
    /// No end was written: the runner was killed.
    Unfinished,
}

/// One arm of one pair, as it was run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TrialFacts {
    /// From 1.
    pub pair: u32,
    /// Which arm.
    pub arm: Arm,
    /// Start of its measured time in UTC; absent when it never came to that.
    pub started: Option<String>,
    /// Measured seconds.
    pub seconds: f64,
}

/// Whether the run can support anything.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Validity {
    /// False: the first line of the report says so, and nothing is supported.
    pub valid: bool,
    /// Why not, in plain sentences.
    pub reasons: Vec<String>,
}

/// What ran, for the evidence box and for those who want to run it again.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Setup {
    /// The machine.
    pub machine: MachineFacts,
    /// Services as found in the treatment (what differs in the control stands in the difference).
    pub services: Vec<ServiceFacts>,
    /// Service that the clients drive.
    pub target: String,
    /// `8 closed-loop clients, no think time` and the like: generated from what ran.
    pub clients: String,
    /// Closed or open loop.
    pub closed_loop: bool,
    /// Clients of a closed loop at full level.
    pub closed_clients: Option<u32>,
    /// How steps are picked.
    pub pick: Option<Pick>,
    /// The workload: name, `GET /invoices?limit=25`, weight, share of the ok requests (measured, absent when none).
    pub steps: Vec<StepSetup>,
    /// The pruning policy in words, arm by arm.
    pub pruning: Arms<Option<String>>,
    /// Warm-up, measured time, window, in seconds.
    pub warmup_s: f64,
    /// Planned measured time of each arm in seconds; absent when a number of requests ends the arm.
    pub duration_s: Arms<Option<f64>>,
    /// Window in seconds.
    pub window_s: f64,
    /// Processors of the load driver; empty: any.
    pub driver_pin: Vec<usize>,
    /// Whether driver and services may run on the same processors.
    pub shares_cores: bool,
}

/// One step of the workload as it was run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct StepSetup {
    /// Its name.
    pub name: String,
    /// Method and path as written.
    pub request: String,
    /// Weight as written.
    pub weight: u32,
    /// Ok requests in each arm.
    pub ok: Arms<Option<u64>>,
    /// p50, p99 and max in ms in each arm.
    pub latency: Arms<Option<StepLatency>>,
}

/// Latency of one step over an arm, in ms; a quantile is absent when n is too small for it.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct StepLatency {
    /// Median.
    pub p50: Option<f64>,
    /// 99th percentile.
    pub p99: Option<f64>,
    /// Largest.
    pub max: f64,
}

/// What differed, and the proof that nothing else did.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct DifferenceSummary {
    /// The control variable; absent in a null experiment.
    pub variable: Option<String>,
    /// Its value in each arm, as TOML writes it; absent: the key is not there.
    pub values: Arms<Option<String>>,
    /// Everything that was compared.
    pub items: Vec<EqualityItem>,
    /// The same data, row by row count, before load.
    pub same_start: Verdict,
    /// Whether the change took effect.
    pub took_effect: TookEffect,
}

/// Whether the change took effect.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TookEffect {
    /// The expression that decided; absent when none is written and none follows.
    pub expression: Option<String>,
    /// The figures that it names, as observed.
    pub observed: BTreeMap<String, Option<FigureValue>>,
    /// Supported: applied. Refuted: not applied.
    pub verdict: Verdict,
}

/// One pair.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PairSummary {
    /// From 1.
    pub pair: u32,
    /// Which arm ran first.
    pub first: Arm,
    /// Mean throughput of each arm.
    pub mean: Arms<Option<f64>>,
    /// Last window's throughput of each arm.
    pub last: Arms<Option<f64>>,
    /// Trend word of each arm.
    pub trend: Arms<Option<Word>>,
}

/// What can be said between the arms.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Between {
    /// Number of pairs.
    pub pairs: usize,
    /// Control ÷ treatment, last window.
    pub ratio_last: Option<f64>,
    /// Control ÷ treatment, whole run.
    pub ratio_mean: Option<f64>,
    /// Interval of the ratio that is argued with, at several pairs.
    pub ratio_ci95: Option<[f64; 2]>,
    /// Exact sign-flip p, at several pairs.
    pub sign_flip_p: Option<f64>,
    /// Difference of the two trends (treatment − control) as share of the level over the run, with its 95 % interval.
    pub trend_difference: Option<[f64; 3]>,
    /// Whether the trends' difference excludes 0.
    pub trends_differ: bool,
    /// Run-to-run standard deviation of log throughput, and where it is from.
    pub run_sd: Option<f64>,
    /// `declared in the file`, `null run 20261130T...-ab12 (6 pairs, upper bound)`.
    pub run_sd_source: Option<String>,
    /// Whether |ln ratio| > 3 √2 run_sd on end rates.
    pub beyond_noise_last: Option<bool>,
    /// The same on whole-run means.
    pub beyond_noise_mean: Option<bool>,
    /// The sentence about run-to-run variation that must stand beside any comparison.
    pub wording: String,
}

/// One gate.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Gate {
    /// Its number in the documentation, 1 to 7.
    pub number: u8,
    /// In plain words.
    pub name: String,
    /// The arm that it speaks of; absent: the run.
    pub arm: Option<Arm>,
    /// Passed, failed, or not observed (which counts as failed).
    pub verdict: Verdict,
    /// What was measured, against what.
    pub detail: String,
    /// What it blocks when it fails.
    pub blocks: String,
}

/// A criterion in one arm.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CriterionResult {
    /// Its name.
    pub name: String,
    /// The expression.
    pub holds: String,
    /// Which arm.
    pub arm: Arm,
    /// Supported: holds.
    pub verdict: Verdict,
    /// The figures that it names, as observed.
    pub observed: BTreeMap<String, Option<FigureValue>>,
}

/// An explanation against what was observed.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ExplanationResult {
    /// Its name.
    pub name: String,
    /// Why one would believe it.
    pub because: String,
    /// `Supported` here means consistent: surviving is not proof.
    pub verdict: Verdict,
    /// Every prediction.
    pub predictions: Vec<PredictionResult>,
}

/// One prediction.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PredictionResult {
    /// Figure without the arm.
    pub figure: String,
    /// Which arm.
    pub arm: Arm,
    /// The word written beforehand.
    pub predicted: TrendWord,
    /// The word observed; absent: not observed.
    pub observed: Option<Word>,
    /// What follows.
    pub verdict: Verdict,
}

/// A claim.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ClaimResult {
    /// The text with its figures filled in; when it is not supported, as written.
    pub text: String,
    /// The expression.
    pub when: String,
    /// The explanation that makes it causal.
    pub explanation: Option<String>,
    /// Supported: printed under "Supports".
    pub verdict: Verdict,
    /// Why not, in plain sentences, each with the figure that refused it.
    pub refused_by: Vec<String>,
    /// Other explanations that survive as well.
    pub also_survive: Vec<String>,
    /// Whether it is exploratory.
    pub exploratory: bool,
}

/// One line under "Does not support".
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LimitResult {
    /// The line.
    pub text: String,
    /// Whether the author wrote it (else it follows from the run).
    pub from_author: bool,
}

/// One execution of an action.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ActionResult {
    /// Name as written.
    pub name: String,
    /// Name in figures.
    #[serde(default)]
    pub figure: String,
    /// Which pair.
    pub pair: u32,
    /// Which arm.
    pub arm: Arm,
    /// Start and end in seconds of measured time.
    pub at_s: f64,
    /// End.
    pub ended_s: f64,
    /// Whether it did what it should.
    pub ok: bool,
    /// What it said.
    pub detail: String,
    /// From its start until an ok answer came again; 0: nothing was disturbed; absent: none came, or it is a burst.
    pub recovery_ms: Option<f64>,
    /// Failed requests by class from its start until recovery.
    pub failed: BTreeMap<String, u64>,
    /// Seconds below half of the throughput before it.
    pub slow_seconds: u64,
    /// Ok requests a second while it lasted, of a burst.
    #[serde(default)]
    pub throughput: Option<f64>,
    /// Memory of the service that it is about, by instrument.
    #[serde(default)]
    pub memory: Vec<MemoryAround>,
}

/// Memory of one service around one execution of an action, in MiB, all of one life of the service.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct MemoryAround {
    /// The service.
    pub service: String,
    /// `rss` or `cgroup`: never compared with each other.
    pub instrument: String,
    /// The last reading before it.
    pub before: f64,
    /// The largest from its start to its end.
    pub most: f64,
    /// The last reading before the next execution of any action, or the arm's end.
    pub after: f64,
}

/// A remark added afterwards.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Note {
    /// Second of measured time that it speaks of.
    pub at_s: Option<f64>,
    /// When it was written, UTC.
    pub written: String,
    /// The text.
    pub text: String,
}
