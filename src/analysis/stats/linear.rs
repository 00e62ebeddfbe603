//! Rule 1 of the trend: the straight line under autocorrelated noise.
//!
//! The line is fitted by generalised least squares ([`super::prais_winsten`]): ordinary least squares, Mann-Kendall and
//! their usual corrections call trends in flat autocorrelated series far too often. The same estimate is made on 20 batch
//! means, which see slow noise that one lag does not, and the wider interval counts.
//!
//! Must never report a relative change where there is no positive level to relate it to.

use serde::{Deserialize, Serialize};

use super::distribution::t_upper;
use super::prais_winsten::{Fit, prais_winsten};
use super::series::{Interval, batch_means};

/// The number of batch means of the second estimate.
pub const BATCHES: usize = 20;

/// Beyond this relative change the line is fitted to logarithms: a fall cannot exceed 100 %.
pub const LOG_BEYOND: f64 = 0.30;

/// An interval narrower than this share of the level is rounding, and its width says nothing.
const ROUNDING: f64 = 1e-9;

/// A level below this share of the largest value is zero with rounding on it.
const NO_LEVEL: f64 = 1e-9;

/// The scale the line is straight on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Scale {
    /// A change by so many units a bin.
    Linear,
    /// A change by so many per cent a bin.
    Log,
}

/// Both estimates of the line on one scale: on the values and on 20 batch means.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Line {
    pub scale: Scale,
    pub raw: Fit,
    /// The fit to batch means and the batch size; `None` below 40 values.
    pub batched: Option<(Fit, usize)>,
    /// Largest absolute value of the series.
    magnitude: f64,
}

/// The estimate whose interval counts, as a relative change over the whole series.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Counted {
    pub fit: Fit,
    /// Values a batch mean holds; 1 for the raw fit.
    pub batch: usize,
    /// (last − first)/level of the line, −0.2 for a fall by 20 %.
    pub change: f64,
    pub interval: Interval,
}

impl Line {
    /// Fits on the given scale. `None` below 4 values, or on the log scale unless all values are positive.
    pub fn fit(y: &[f64], scale: Scale) -> Option<Self> {
        let logs: Vec<f64>;
        let values = match scale {
            Scale::Linear => y,
            Scale::Log => {
                if y.iter().any(|v| *v <= 0.0) {
                    return None;
                }
                logs = y.iter().map(|v| v.ln()).collect();
                &logs
            }
        };
        let raw = prais_winsten(values)?;
        let batch = values.len() / BATCHES;
        let batched = if batch >= 2 {
            let means = batch_means(&values[values.len() % BATCHES..], batch);
            prais_winsten(&means).map(|fit| (fit, batch))
        } else {
            None
        };
        Some(Self {
            scale,
            raw,
            batched,
            magnitude: y.iter().fold(0.0, |most, v| v.abs().max(most)),
        })
    }

    /// The line on the scale that the rule prescribes: linear, or logarithmic where the raw linear estimate lies beyond
    /// ±30 % (or has no positive level) and all values are positive.
    pub fn on_fitting_scale(y: &[f64]) -> Option<Self> {
        let linear = Self::fit(y, Scale::Linear)?;
        match linear.change(&linear.raw, 1) {
            Some(change) if change.abs() <= LOG_BEYOND => Some(linear),
            _ => Some(Self::fit(y, Scale::Log).unwrap_or(linear)),
        }
    }

    /// The wider of the two intervals, with `tail` in each tail, relative to the level. `None` where the level is not
    /// positive, so that a relative change has no meaning.
    pub fn counted(&self, tail: f64) -> Option<Counted> {
        self.change(&self.raw, 1)?;
        let raw = Self::half_width(&self.raw, tail);
        let (fit, batch, half) = match self.batched {
            Some((fit, batch)) => {
                let half = Self::half_width(&fit, tail);
                if half / batch as f64 > raw {
                    (fit, batch, half)
                } else {
                    (self.raw, 1, raw)
                }
            }
            None => (self.raw, 1, raw),
        };
        let end = |slope: f64| self.relative(slope, &fit, batch);
        Some(Counted {
            fit,
            batch,
            change: end(fit.slope)?,
            interval: Interval {
                lower: end(fit.slope - half)?,
                upper: end(fit.slope + half)?,
                level: 1.0 - 2.0 * tail,
            },
        })
    }

    /// Width of the batched interval over that of the raw one, with `tail` in each tail; `None` without a batched fit
    /// or where both are nothing but rounding.
    pub fn widening(&self, tail: f64) -> Option<f64> {
        let (fit, batch) = self.batched?;
        let batched = Self::half_width(&fit, tail);
        if self.relative(2.0 * batched, &fit, batch)?.abs() <= ROUNDING {
            return None;
        }
        Some(batched / batch as f64 / Self::half_width(&self.raw, tail))
    }

    /// Half the width of the slope's interval, per value that was fitted.
    fn half_width(fit: &Fit, tail: f64) -> f64 {
        t_upper(tail, fit.df) * fit.se
    }

    fn change(&self, fit: &Fit, batch: usize) -> Option<f64> {
        self.relative(fit.slope, fit, batch)
    }

    /// A slope of `fit`'s own steps as a relative change over the whole series.
    fn relative(&self, slope: f64, fit: &Fit, batch: usize) -> Option<f64> {
        let over_run = slope / batch as f64 * (self.raw.n as f64 - 1.0);
        match self.scale {
            Scale::Log => Some(over_run.exp_m1()),
            Scale::Linear if fit.level > NO_LEVEL * self.magnitude => Some(over_run / fit.level),
            Scale::Linear => None,
        }
    }
}
