//! What one arm did: windows, trends, series, bad seconds, and what the pictures show.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::experiment::TrendWord;

/// One arm, all pairs together.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ArmSummary {
    /// Measured seconds over all pairs.
    pub seconds: f64,
    /// Windows of the first pair's run of this arm.
    pub windows: Vec<WindowRow>,
    /// The trend of throughput.
    pub throughput: TrendFinding,
    /// Sampled series, in catalogue order.
    pub series: Vec<SeriesSummary>,
    /// Bad seconds, grouped.
    pub episodes: Vec<Episode>,
    /// Seconds with a failed request, and slow seconds.
    pub bad_seconds: u64,
    /// Seconds below half of the arm's median throughput.
    pub slow_seconds: u64,
    /// Requests ended ok outside the episodes, and hours outside them.
    pub clean_requests: u64,
    /// Hours outside the episodes.
    pub clean_hours: f64,
    /// Little's law over the arm.
    pub littles: Option<Littles>,
    /// The sampler's own account; absent when a run's sampler wrote none.
    pub sampling: Option<Sampling>,
    /// First examples of failed requests, bounded.
    pub failure_examples: Vec<FailureExample>,
    /// What the pictures show.
    pub plot: Plot,
}

/// What the sampler planned, took and cost over the measured time of all runs.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct Sampling {
    /// Readings due.
    pub planned: u64,
    /// Readings taken in their time.
    pub taken: u64,
    /// Readings late or not taken.
    pub gaps: u64,
    /// CPU seconds of the sampling thread, warm-up included.
    pub cost_cpu_s: f64,
}

/// One window.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct WindowRow {
    /// Start in seconds of measured time.
    pub from_s: f64,
    /// End in seconds.
    pub to_s: f64,
    /// Requests ended ok.
    pub ok: u64,
    /// Ok requests a second.
    pub throughput: f64,
    /// Median in ms; absent when n is too small.
    pub p50: Option<f64>,
    /// 99th percentile in ms; absent when n is too small.
    pub p99: Option<f64>,
    /// Largest in ms; absent without any request.
    pub max: Option<f64>,
    /// Failed requests.
    pub failed: u64,
}

/// A trend's word.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Word {
    /// Stays within the margin.
    Flat,
    /// Goes down by more than the margin.
    Falls,
    /// Goes up by more than the margin.
    Rises,
    /// Cannot be said.
    Unclear,
}

impl Word {
    /// As files and figures write it.
    pub fn as_str(self) -> &'static str {
        match self {
            Word::Flat => "flat",
            Word::Falls => "falls",
            Word::Rises => "rises",
            Word::Unclear => "unclear",
        }
    }

    /// Whether this is the word that was predicted.
    pub fn is(self, predicted: TrendWord) -> bool {
        matches!(
            (self, predicted),
            (Word::Flat, TrendWord::Flat)
                | (Word::Falls, TrendWord::Falls)
                | (Word::Rises, TrendWord::Rises)
        )
    }
}

/// A judged trend with all that it rests on.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TrendFinding {
    /// The word.
    pub word: Word,
    /// Reason code: `inside_margin`, `below_margin`, `separated`, `few`, `wide`, `warm_up_sensitive`, ...
    pub reason: String,
    /// The rule that decided: `linear`, `ends`, `separation`.
    pub rule: String,
    /// The declared margin as a share.
    pub margin: f64,
    /// Relative change over the run, as a share (negative: fell).
    pub estimate: Option<f64>,
    /// 90 % interval of the deciding rule, as shares; one-sided 5 % each side.
    pub ci90: Option<[f64; 2]>,
    /// 95 % interval of the deciding rule.
    pub ci95: Option<[f64; 2]>,
    /// Bins judged.
    pub n: usize,
    /// Seconds a bin.
    pub bin_s: f64,
    /// Effective number of bins.
    pub n_eff: Option<f64>,
    /// Smallest margin at which `flat` would hold.
    pub smallest_flat_margin: Option<f64>,
    /// About how many more seconds would be needed for a verdict; absent when that can't be told.
    pub more_s: Option<f64>,
    /// What became of the head: `declared warm-up only`, `cut 15 bins`, `not cut (few)`, `no steady state`.
    pub warmup: String,
    /// Everything else that the statistics tell, as they serialise it (both intervals, described trends).
    pub detail: serde_json::Value,
}

/// One sampled series of one arm.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SeriesSummary {
    /// Figure's name without the arm: `services.app.memory.rss`.
    pub name: String,
    /// Unit.
    pub unit: String,
    /// First, last, smallest, largest value, and last − first.
    pub first: f64,
    /// Last value.
    pub last: f64,
    /// Smallest.
    pub min: f64,
    /// Largest.
    pub max: f64,
    /// Its trend, when it was judged.
    pub trend: Option<TrendFinding>,
    /// Why it was not judged, when it was not: `few`, `described`.
    pub not_judged: Option<String>,
}

/// Bad seconds that belong together (gaps under 5 s joined).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Episode {
    /// Pair, from 1.
    pub pair: u32,
    /// First second.
    pub from_s: u64,
    /// Second after the last.
    pub to_s: u64,
    /// Seconds of it that are bad.
    pub bad_seconds: u64,
    /// Failed requests by class.
    pub failed: BTreeMap<String, u64>,
    /// Ok requests a second inside.
    pub throughput: f64,
    /// The arm's median ok requests a second.
    pub median_throughput: f64,
    /// What coincided, in plain words; empty: unexplained.
    pub coincides: Vec<String>,
    /// What the servers themselves saw, and CPU inside against outside.
    pub beside: Vec<String>,
}

/// Little's law over an arm.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Littles {
    /// Client-seconds accounted for ÷ clients × time.
    pub ratio: f64,
    /// The client's own overhead as a share of clients × time.
    pub overhead: f64,
    /// Request-seconds lost to stalls.
    pub stalled_s: f64,
}

/// A failed request, as an example.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct FailureExample {
    /// Second of measured time.
    pub at_s: f64,
    /// Step.
    pub step: String,
    /// Class.
    pub class: String,
    /// Status, when there was one.
    pub status: Option<u16>,
    /// First bytes of what was said: text from outside.
    pub said: String,
}

/// What the pictures show: at most 400 points a line.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Plot {
    /// Seconds a point.
    pub bin_s: f64,
    /// Ok requests a second.
    pub throughput: Vec<f64>,
    /// Median latency in ms of each point; `null` when n is too small.
    pub p50: Vec<Option<f64>>,
    /// 99th percentile.
    pub p99: Vec<Option<f64>>,
    /// Largest.
    pub max: Vec<Option<f64>>,
    /// Sampled lines by figure name: (second, value).
    pub sampled: BTreeMap<String, Vec<(f64, f64)>>,
    /// Seconds at which a prune pass ran (thinned to 400).
    pub prunes: Vec<f64>,
    /// Seconds and names of actions.
    pub actions: Vec<(f64, String)>,
    /// Latency counts of the first window: (upper bound in ms, count).
    pub first_histogram: Vec<(f64, u64)>,
    /// Latency counts of the last window.
    pub last_histogram: Vec<(f64, u64)>,
}
