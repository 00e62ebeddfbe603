//! Rule 1 of the trend: the straight line under autocorrelated noise.
//!
//! Generalised least squares with AR(1) errors (Prais and Winsten 1954), the lag-1 correlation corrected for its bias
//! (Marriott and Pope 1954: about −(1 + 4 rho)/n around a mean, −(2 + 4 rho)/n around a line), degrees of freedom by the
//! effective number of values n (1 − rho)/(1 + rho). Ordinary least squares, Mann-Kendall and their usual corrections call
//! trends in flat autocorrelated series far too often. The same estimate is made on 20 batch means, which see slow noise
//! that one lag does not, and the wider interval counts.
//!
//! Must never report a relative change where there is no positive level to relate it to.

use serde::{Deserialize, Serialize};

use super::distribution::{chi_square_sf, t_upper};
use super::series::{Interval, batch_means, constant};

/// The number of batch means of the second estimate.
pub const BATCHES: usize = 20;

/// Beyond this relative change the line is fitted to logarithms: a fall cannot exceed 100 %.
pub const LOG_BEYOND: f64 = 0.30;

/// An interval narrower than this share of the level is rounding, and its width says nothing.
const ROUNDING: f64 = 1e-9;

/// A level below this share of the largest value is zero with rounding on it.
const NO_LEVEL: f64 = 1e-9;

/// Passes of estimating rho and fitting again.
const PASSES: usize = 5;

/// The scale the line is straight on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Scale {
    /// A change by so many units a bin.
    Linear,
    /// A change by so many per cent a bin.
    Log,
}

/// One fitted line, in the units of the values it was fitted to, per value.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Fit {
    /// Number of values.
    pub n: usize,
    /// Bias-corrected lag-1 correlation of the residuals, clipped to [−0.5, 0.98].
    pub rho: f64,
    /// Change per value.
    pub slope: f64,
    /// The line at the centre of the series.
    pub level: f64,
    /// Standard error of the slope.
    pub se: f64,
    /// Effective number of independent values.
    pub n_eff: f64,
    /// Degrees of freedom of the t quantile, real-valued.
    pub df: f64,
}

/// Fits level and slope at equally spaced times with AR(1) errors.
///
/// Five passes of (rho from the residuals of the untransformed model, then GLS), started by ordinary least squares.
/// `None` below 4 values.
pub fn prais_winsten(y: &[f64]) -> Option<Fit> {
    let n = y.len();
    if n < 4 {
        return None;
    }
    if constant(y) {
        // The residuals are exactly zero, and so is what they say about correlation; arithmetic would leave dust.
        return Some(Fit {
            n,
            rho: 0.0,
            slope: 0.0,
            level: y[0],
            se: 0.0,
            n_eff: n as f64,
            df: n as f64 - 2.0,
        });
    }
    let mut line = Gls::solve(y, 0.0);
    let mut rho = 0.0;
    for _ in 0..PASSES {
        rho = corrected_rho(y, &line);
        line = Gls::solve(y, rho);
    }
    let count = n as f64;
    let residual_variance = line.whitened(y, rho).map(|e| e * e).sum::<f64>() / (count - 2.0);
    let n_eff = if rho > 0.0 {
        (count * (1.0 - rho) / (1.0 + rho)).max(4.0)
    } else {
        count
    };
    Some(Fit {
        n,
        rho,
        slope: line.slope,
        level: line.level,
        se: (residual_variance * line.inverse_22).sqrt(),
        n_eff,
        df: n_eff - 2.0,
    })
}

/// The Ljung-Box statistic of what the AR(1) fit leaves unexplained, over min(10, n/5) lags, and its p value with one
/// degree of freedom spent on rho (Ljung and Box 1978). Described, never deciding. `None` where it cannot be computed.
pub fn ljung_box(y: &[f64], fit: &Fit) -> Option<(f64, f64)> {
    let lags = 10.min(y.len() / 5);
    if lags < 2 {
        return None;
    }
    let line = Gls {
        level: fit.level,
        slope: fit.slope,
        inverse_22: 0.0,
    };
    let e: Vec<f64> = line.innovations(y, fit.rho).collect();
    let centre = super::series::mean(&e);
    let total: f64 = e.iter().map(|v| (v - centre).powi(2)).sum();
    if total <= 0.0 {
        return None;
    }
    let n = e.len() as f64;
    let q = n
        * (n + 2.0)
        * (1..=lags)
            .map(|k| {
                let r = e
                    .iter()
                    .zip(&e[k..])
                    .map(|(a, b)| (a - centre) * (b - centre))
                    .sum::<f64>()
                    / total;
                r * r / (n - k as f64)
            })
            .sum::<f64>();
    Some((q, chi_square_sf(q, lags as f64 - 1.0)))
}

/// rho = sum e_t e_{t−1} / sum e^2, corrected by (2 + 4 rho)/n and clipped.
fn corrected_rho(y: &[f64], line: &Gls) -> f64 {
    let (mut products, mut squares, mut before) = (0.0, 0.0, 0.0);
    for (t, e) in line.residuals(y).enumerate() {
        if t > 0 {
            products += e * before;
        }
        squares += e * e;
        before = e;
    }
    let rho = if squares > 0.0 {
        products / squares
    } else {
        0.0
    };
    (rho + (2.0 + 4.0 * rho) / y.len() as f64).clamp(-0.5, 0.98)
}

/// A solution of the 2 x 2 normal equations of the transformed model.
struct Gls {
    level: f64,
    slope: f64,
    /// [X'X]^-1 at the slope.
    inverse_22: f64,
}

impl Gls {
    fn solve(y: &[f64], rho: f64) -> Self {
        let (mut aa, mut ab, mut bb, mut ay, mut by) = (0.0, 0.0, 0.0, 0.0, 0.0);
        for (a, b, v) in transformed(y, rho) {
            aa += a * a;
            ab += a * b;
            bb += b * b;
            ay += a * v;
            by += b * v;
        }
        let determinant = aa * bb - ab * ab;
        Self {
            level: (bb * ay - ab * by) / determinant,
            slope: (aa * by - ab * ay) / determinant,
            inverse_22: aa / determinant,
        }
    }

    /// Residuals of the untransformed model.
    fn residuals<'a>(&'a self, y: &'a [f64]) -> impl Iterator<Item = f64> + 'a {
        y.iter()
            .enumerate()
            .map(|(t, v)| v - self.level - self.slope * centred(t, y.len()))
    }

    /// Residuals of the transformed model, the scaled first row included.
    fn whitened<'a>(&'a self, y: &'a [f64], rho: f64) -> impl Iterator<Item = f64> + 'a {
        transformed(y, rho).map(|(a, b, v)| v - a * self.level - b * self.slope)
    }

    /// e_t − rho e_{t−1}, the first row left out.
    fn innovations<'a>(&'a self, y: &'a [f64], rho: f64) -> impl Iterator<Item = f64> + 'a {
        self.residuals(y)
            .zip(self.residuals(y).skip(1))
            .map(move |(before, e)| e - rho * before)
    }
}

fn centred(t: usize, n: usize) -> f64 {
    t as f64 - (n as f64 - 1.0) / 2.0
}

/// Rows (constant, time, value) of the Prais-Winsten transformation.
fn transformed(y: &[f64], rho: f64) -> impl Iterator<Item = (f64, f64, f64)> + '_ {
    let n = y.len();
    let first = (1.0 - rho * rho).sqrt();
    y.iter().enumerate().map(move |(t, v)| {
        if t == 0 {
            (first, first * centred(0, n), first * v)
        } else {
            (
                1.0 - rho,
                centred(t, n) - rho * centred(t - 1, n),
                v - rho * y[t - 1],
            )
        }
    })
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
        let raw = self.slope_width(&self.raw, 1, tail);
        let (fit, batch) = match self.batched {
            Some((fit, batch)) if self.slope_width(&fit, batch, tail) > raw => (fit, batch),
            _ => (self.raw, 1),
        };
        let half = t_upper(tail, fit.df) * fit.se;
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
        let batched = self.slope_width(&fit, batch, tail);
        if self.relative(batched, &fit, batch)?.abs() <= ROUNDING {
            return None;
        }
        Some(batched / self.slope_width(&self.raw, 1, tail))
    }

    /// Width of the slope's interval per original value.
    fn slope_width(&self, fit: &Fit, batch: usize, tail: f64) -> f64 {
        2.0 * t_upper(tail, fit.df) * fit.se / batch as f64
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
