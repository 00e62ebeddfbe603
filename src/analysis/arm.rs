//! One arm over all pairs.
//!
//! Counts are sums, histograms are merged, means are total by total; a trend is the word that all runs share, else `unclear`.

use anyhow::Result;

use super::latency::Latencies;
use super::observed::{JudgedSeries, Observed};
use super::summary::{Littles, Word};
use crate::measure::Counts;
use crate::name::Arm;

/// All runs of one arm, in order of pairs.
#[derive(Debug)]
pub(super) struct ArmRuns<'r> {
    pub(super) arm: Arm,
    pub(super) runs: Vec<Observed<'r>>,
    /// The clients' timeout.
    pub(super) timeout_us: u64,
    /// Where the clients' time went; absent for an open loop.
    pub(super) littles: Option<Littles>,
}

impl<'r> ArmRuns<'r> {
    /// Sums over all runs.
    pub(super) fn totals(&self) -> Counts {
        let mut totals = Counts::default();
        for run in &self.runs {
            totals.add(&run.measured.totals);
        }
        totals
    }

    /// Measured seconds over all runs.
    pub(super) fn seconds(&self) -> f64 {
        self.runs.iter().map(|run| run.measured.seconds).sum()
    }

    /// Ok requests a second, total by total.
    pub(super) fn mean(&self) -> Option<f64> {
        let seconds = self.seconds();
        (seconds > 0.0).then(|| self.totals().ok as f64 / seconds)
    }

    /// Ok requests a second in the first or the last window, total by total; absent unless every run has it.
    pub(super) fn window(&self, last: bool) -> Option<f64> {
        let (mut ok, mut seconds) = (0.0, 0.0);
        for run in &self.runs {
            let m = &run.measured;
            let window = if last {
                m.last_window()
            } else {
                m.first_window()
            }?;
            ok += window.ok as f64;
            seconds += window.to_s - window.from_s;
        }
        (seconds > 0.0).then(|| ok / seconds)
    }

    /// The word that all runs share.
    pub(super) fn word(&self) -> Option<Word> {
        shared(
            self.runs
                .iter()
                .map(|run| Some(run.throughput.finding.word)),
        )
    }

    /// The word of a sampled series that all runs share; `None` when it was not judged in one of them.
    pub(super) fn series_word(&self, name: &str) -> Option<Word> {
        shared(self.runs.iter().map(|run| {
            let found = run.series.iter().find(|s| s.series.name == name)?;
            word_of(found)
        }))
    }

    /// Why throughput's word is what it is.
    pub(super) fn reason(&self) -> String {
        let mut reasons = self.runs.iter().map(|run| &run.throughput.finding.reason);
        match reasons.next() {
            Some(first) if self.runs.len() == 1 => first.clone(),
            Some(_) => "runs_disagree".to_owned(),
            None => "not measured".to_owned(),
        }
    }

    /// Why a sampled series has the word that it has, or none.
    pub(super) fn series_reason(&self, name: &str) -> String {
        let found = self
            .runs
            .iter()
            .flat_map(|run| &run.series)
            .find(|s| s.series.name == name);
        match found {
            Some(judged) => judged.not_judged.map_or_else(
                || {
                    judged
                        .trend
                        .as_ref()
                        .map_or_else(String::new, |t| t.reason.clone())
                },
                str::to_owned,
            ),
            None => "it was not sampled".to_owned(),
        }
    }

    /// Latencies of all runs.
    ///
    /// # Errors
    /// When a count overflows.
    pub(super) fn latency(&self) -> Result<Latencies> {
        let mut all = Latencies::new(self.timeout_us)?;
        for run in &self.runs {
            all.merge(&run.measured.latency.whole)?;
        }
        Ok(all)
    }
}

/// `few` bins are an unclear trend; a series that is only described has none.
pub(super) fn word_of(judged: &JudgedSeries) -> Option<Word> {
    match (&judged.trend, judged.not_judged) {
        (Some(trend), _) => Some(trend.word),
        (None, Some("few" | "gaps" | "no_margin")) => Some(Word::Unclear),
        (None, _) => None,
    }
}

fn shared(mut words: impl Iterator<Item = Option<Word>>) -> Option<Word> {
    let first = words.next()??;
    for word in words {
        if word? != first {
            return Some(Word::Unclear);
        }
    }
    Some(first)
}
