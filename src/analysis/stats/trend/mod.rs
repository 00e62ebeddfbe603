//! The combined verdict on one series: flat, falls, rises, or unclear.
//!
//! Three rules, two error rates. `falls` and `rises` need one rule to place the change beyond the margin at one-sided
//! alpha/2; `flat` needs both intervals inside the margin at one-sided alpha. Everything else is `unclear`, with its
//! reason. Must never read "no significant change" as `flat`, and never let the description decide.

mod decide;
#[cfg(test)]
mod properties;
#[cfg(test)]
mod tests;

use anyhow::{Result, ensure};
use serde::{Deserialize, Serialize};

use super::described::{Described, describe};
use super::linear::Scale;
use super::separation::Separation;
use super::series::{Interval, finite, normalised};
use super::warmup::{self, WarmUp};
use decide::decide;

/// Fewer bins give neither `flat` nor `falls` nor `rises`.
pub const FEWEST_BINS: usize = 60;

/// Fewer bins give no direction either.
pub const FEWEST_FOR_DIRECTION: usize = 30;

/// Below this many bins, slow noise can hide from the raw interval.
pub const FEW_UNDER_SLOW_NOISE: usize = 240;

/// A batched interval this many times the raw one shows slow noise.
pub const SLOW_NOISE_WIDENING: f64 = 1.25;

/// What an interval under slow noise on few bins is widened by before `flat` is said: at 120 bins under white plus
/// AR(0.95) noise the nominal 90 % interval covers 81 %, and z(0.05)/z(0.095) of its width makes up for that.
pub const SLOW_NOISE_ALLOWANCE: f64 = 1.26;

/// What a series does over its length.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Word {
    Flat,
    Falls,
    Rises,
    Unclear,
}

/// Why the word is what it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Reason {
    /// Flat: both intervals lie inside the margin.
    InsideMargin,
    /// Falls or rises: an interval lies beyond the margin.
    BeyondMargin,
    /// Falls or rises: the ends do not overlap, by the margin.
    Separated,
    /// Unclear: too few bins, or too few for an interval this near to the margin under slow noise.
    Few,
    /// Unclear: an interval reaches across the margin.
    Wide,
    /// Unclear: the verdicts with and without the warm-up differ.
    WarmUpSensitive,
    /// Unclear: the rules point in opposite directions.
    Contradiction,
    /// Unclear: the level is zero or negative, so a relative change has no meaning.
    NoLevel,
}

/// The rule that decided, or that stood in the way of `flat`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Rule {
    /// The Prais-Winsten line.
    Linear,
    /// The last third against the first.
    Ends,
    /// Quantiles of the thirds that do not overlap.
    Separation,
}

/// The sign that the line's interval for directions excludes zero with; says nothing about the margin.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Direction {
    Down,
    Up,
    NotEstablished,
}

/// What one interval rule found, as relative change over the series.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct RuleFigures {
    /// Estimated change of the interval used for `flat`.
    pub change: f64,
    /// Must lie inside the margin for `flat`.
    pub flat_interval: Interval,
    /// Must lie beyond the margin for `falls` or `rises`.
    pub direction_interval: Interval,
    /// Lag-1 correlation, bias-corrected.
    pub phi: f64,
    /// Effective number of independent values.
    pub n_eff: f64,
    /// Bins a batch mean holds where the batched estimate was the wider; else 1.
    pub batch: usize,
    /// The scale of the line; the ends are always compared linearly.
    pub scale: Scale,
}

/// How to judge.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Options {
    /// The relative change that matters, 0.2 for 20 %.
    pub margin: f64,
    /// One-sided error rate of `flat`; `falls` and `rises` use half of it. 0.05 unless several claims share it.
    pub alpha: f64,
    /// Whether to look for a warm-up that the declared one did not cover.
    pub search_warm_up: bool,
}

impl Options {
    /// The usual error rates with the given margin.
    pub fn with_margin(margin: f64) -> Self {
        Self {
            margin,
            alpha: 0.05,
            search_warm_up: true,
        }
    }

    fn check(&self) -> Result<()> {
        ensure!(
            self.margin.is_finite() && self.margin > 0.0,
            "the margin {} is not a positive share: give the relative change that matters, such as 20%",
            self.margin
        );
        ensure!(
            self.alpha > 0.0 && self.alpha <= 0.5,
            "the error rate {} is not in (0, 0.5]: use 0.05, divided by the number of claims",
            self.alpha
        );
        Ok(())
    }
}

/// The verdict on one series, with everything it rests on.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Trend {
    pub word: Word,
    pub reason: Reason,
    /// The rule that established a direction; for `flat` and `unclear` the one whose interval reaches furthest.
    pub rule: Option<Rule>,
    pub direction: Direction,
    pub margin: f64,
    /// One-sided error rate of `flat`; half of it for a direction.
    pub alpha: f64,
    /// Relative change over the series by `rule` (by the ends where the separation decided).
    pub estimate: Option<f64>,
    /// The interval of `rule` that `flat` is judged by (90 % at alpha 0.05).
    pub flat_interval: Option<Interval>,
    /// The interval of `rule` that a direction is judged by (95 % at alpha 0.05).
    pub direction_interval: Option<Interval>,
    /// The fitted level at the centre, in the units of the series.
    pub level: Option<f64>,
    /// Bins judged, after any cut.
    pub n: usize,
    /// Effective number of independent values, by the line.
    pub n_eff: Option<f64>,
    /// Lag-1 correlation, by the line.
    pub phi: Option<f64>,
    /// Any margin above this would have given `flat`, were the bins not too few.
    pub smallest_flat_margin: Option<f64>,
    /// About how many times as long the series would have to be for `flat`, if its change stays what it is; `None`
    /// where no length would do.
    pub times_as_long_for_flat: Option<f64>,
    pub warm_up: WarmUp,
    /// The word without the cut, where one was made.
    pub word_without_cut: Option<Word>,
    pub linear: Option<RuleFigures>,
    pub ends: Option<RuleFigures>,
    pub separation: Option<Separation>,
    /// Described, never deciding; absent where only the verdict was asked for.
    pub described: Option<Described>,
}

/// Judges a series of equally spaced bins and describes it.
///
/// # Errors
/// An empty series, a value that is not finite, a margin or error rate out of range.
pub fn judge(y: &[f64], options: &Options) -> Result<Trend> {
    let mut trend = verdict(y, options)?;
    let cut = match trend.warm_up {
        WarmUp::Cut { bins } => bins,
        _ => 0,
    };
    trend.described = Some(describe(&y[cut..]));
    Ok(trend)
}

/// The verdict alone, without the description, whose cost is quadratic.
///
/// # Errors
/// As [`judge`].
pub fn verdict(y: &[f64], options: &Options) -> Result<Trend> {
    options.check()?;
    finite(y)?;
    let (scaled, unit) = normalised(y);
    let warm_up = if options.search_warm_up {
        warmup::search(&scaled)
    } else {
        WarmUp::NotSearched
    };
    let mut trend = match warm_up {
        WarmUp::Cut { bins } => {
            let without = decide(&scaled, options).word;
            let mut with = decide(&scaled[bins..], options);
            if with.word != without {
                with.word = Word::Unclear;
                with.reason = Reason::WarmUpSensitive;
                with.name_widest_rule();
            }
            with.word_without_cut = Some(without);
            with
        }
        _ => decide(&scaled, options),
    };
    trend.warm_up = warm_up;
    trend.level = trend.level.map(|level| level * unit);
    trend.separation = trend.separation.map(|s| s.scaled(unit));
    Ok(trend)
}
