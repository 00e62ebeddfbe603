//! One arm of one pair, judged: its trends beside its numbers.

use anyhow::{Context, Result};

use super::episodes::{self, BadTime};
use super::finding::{self, Judged, Rules};
use super::measured::Measured;
use super::memory;
use super::series::{self, Series};
use super::stats::{bins, trend};
use super::summary::TrendFinding;
use crate::experiment::{AnalysisPlan, ArmSetup};
use crate::figure::{Declared, has_trend};

/// What the judging of one run rests on.
#[derive(Debug, Clone, Copy)]
pub(super) struct Basis<'e> {
    pub(super) setup: &'e ArmSetup,
    pub(super) plan: &'e AnalysisPlan,
    pub(super) declared: &'e Declared,
    /// Declared period of samples in seconds.
    pub(super) period_s: f64,
    pub(super) alpha: f64,
}

/// One run of an arm.
#[derive(Debug)]
pub(super) struct Observed<'r> {
    pub(super) measured: Measured<'r>,
    pub(super) throughput: Judged,
    pub(super) series: Vec<JudgedSeries>,
    pub(super) bad: BadTime,
}

/// A sampled series with its trend, or the reason why there is none.
#[derive(Debug, Clone)]
pub(super) struct JudgedSeries {
    pub(super) series: Series,
    pub(super) trend: Option<TrendFinding>,
    /// `few`, `described`, `no_margin`, `gaps`.
    pub(super) not_judged: Option<&'static str>,
}

impl<'r> Observed<'r> {
    /// Judges the trends of one run.
    ///
    /// # Errors
    /// When a series holds a value that is no finite number.
    pub(super) fn of(measured: Measured<'r>, basis: &Basis<'_>) -> Result<Self> {
        let width = bins::width(measured.seconds.floor() as u64);
        let counts = bins::sums(&measured.ok, width as usize);
        let rules = Rules {
            margin: margin(basis.plan, "throughput"),
            alpha: basis.alpha,
        };
        let throughput = finding::judge(&counts, width as f64, rules, true).with_context(|| {
            format!(
                "judging the throughput of pair {}, {}",
                measured.trial.pair, measured.trial.arm
            )
        })?;
        let series = series::of(&measured, basis.setup, basis.period_s)
            .into_iter()
            .map(|series| judge(series, &measured, basis))
            .collect();
        let bad = episodes::of(&measured, basis.setup);
        Ok(Self {
            measured,
            throughput,
            series,
            bad,
        })
    }
}

/// The margin of a figure.
fn margin(plan: &AnalysisPlan, name: &str) -> Option<f64> {
    plan.margins.get(name).copied().or(plan.margin)
}

/// Whether a series is in the catalogue, and so may be argued with.
fn judge(series: Series, measured: &Measured<'_>, basis: &Basis<'_>) -> JudgedSeries {
    /// A series with more holes than this is not judged.
    const MOST_EMPTY: f64 = 0.05;
    let unjudged = |series, why| JudgedSeries {
        series,
        trend: None,
        not_judged: Some(why),
    };
    if !has_trend(&series.name, basis.declared) {
        return unjudged(series, "described");
    }
    if memory::is_memory(&series.name) {
        return match memory::judge(&series, measured, basis.plan, basis.alpha) {
            Some(trend) => JudgedSeries {
                series,
                trend: Some(trend),
                not_judged: None,
            },
            None => unjudged(series, "described"),
        };
    }
    let n = series.bins.len();
    if n < trend::FEWEST_BINS {
        return unjudged(series, "few");
    }
    let Some(margin) = margin(basis.plan, &series.name) else {
        return unjudged(series, "no_margin");
    };
    if series.empty_bins as f64 > MOST_EMPTY * (n + series.empty_bins) as f64 {
        return unjudged(series, "gaps");
    }
    match finding::verdict(&series.bins, series.bin_s, margin, basis.alpha) {
        Ok(trend) => JudgedSeries {
            series,
            trend: Some(trend),
            not_judged: None,
        },
        Err(_) => unjudged(series, "not_finite"),
    }
}
