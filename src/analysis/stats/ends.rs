//! Rule 2 of the trend: the last third against the first.
//!
//! A straight line reads a clean step as scatter; the difference of the ends sees it. Its standard error is that of two
//! means under AR(1) noise: pooled lag-1 correlation with its bias correction, the variance factor of a mean, and the
//! variance corrected for having been taken around an estimated mean. Counted again on batch means; the wider counts.
//!
//! Must never relate a difference to a first third whose mean is not positive.

use super::distribution::t_upper;
use super::series::{Interval, batch_means, constant, mean};

/// Batches a third is divided into for the second estimate.
const BATCHES_A_THIRD: usize = 10;

/// The last third over the first, less one, with its standard error.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Contrast {
    /// Values in a third.
    pub m: usize,
    /// Mean of the first third.
    pub first: f64,
    /// Mean of the last third.
    pub last: f64,
    /// last/first − 1.
    pub change: f64,
    /// Pooled, bias-corrected lag-1 correlation around the two means, clipped to [0, 0.95].
    pub rho: f64,
    /// The factor by which correlation inflates the variance of a third's mean.
    pub variance_factor: f64,
    /// Standard error of the change.
    pub se: f64,
    /// Degrees of freedom of the t quantile, real-valued.
    pub df: f64,
    /// Values a batch mean holds; 1 for the raw contrast.
    pub batch: usize,
}

impl Contrast {
    /// The contrast of the thirds of `y`. `None` below 6 values or where the first third's mean is not positive.
    pub fn of(y: &[f64]) -> Option<Self> {
        Self::with_batch(y, 1)
    }

    fn with_batch(y: &[f64], batch: usize) -> Option<Self> {
        let m = y.len() / 3;
        if m < 2 {
            return None;
        }
        if constant(y) && y[0] > 0.0 {
            // No residual exists; arithmetic would leave dust.
            return Some(Self {
                m,
                first: y[0],
                last: y[0],
                change: 0.0,
                rho: 0.0,
                variance_factor: 1.0,
                se: 0.0,
                df: 2.0 * (m as f64 - 1.0),
                batch,
            });
        }
        let count = m as f64;
        let (head, tail) = (&y[..m], &y[y.len() - m..]);
        let (first, last) = (mean(head), mean(tail));
        if first <= 0.0 {
            return None;
        }
        let change = last / first - 1.0;
        let (mut products, mut squares) = (0.0, 0.0);
        for (segment, centre) in [(head, first), (tail, last)] {
            squares += segment.iter().map(|v| (v - centre).powi(2)).sum::<f64>();
            products += segment
                .windows(2)
                .map(|w| (w[0] - centre) * (w[1] - centre))
                .sum::<f64>();
        }
        let rho = if squares > 0.0 {
            products / squares
        } else {
            0.0
        };
        let rho = (rho + (1.0 + 4.0 * rho) / count).clamp(0.0, 0.95);
        let variance_factor = variance_factor(rho, m);
        let s2 = squares / (2.0 * (count - 1.0));
        let g0 = s2 * (1.0 - 1.0 / count) / (1.0 - variance_factor / count).max(0.05);
        let se = (2.0 * g0 * variance_factor / count).sqrt() / first
            * ((1.0 + (1.0 + change).powi(2)) / 2.0).sqrt();
        let df = (2.0 * (count / variance_factor - 1.0)).max(2.0);
        Some(Self {
            m,
            first,
            last,
            change,
            rho,
            variance_factor,
            se,
            df,
            batch,
        })
    }

    /// The interval of the change with `tail` in each tail.
    pub fn interval(&self, tail: f64) -> Interval {
        let half = t_upper(tail, self.df) * self.se;
        Interval {
            lower: self.change - half,
            upper: self.change + half,
            level: 1.0 - 2.0 * tail,
        }
    }
}

/// f = 1 + 2 sum over k < m of (1 − k/m) rho^k: the variance of a mean of m AR(1) values over that of independent ones.
pub fn variance_factor(rho: f64, m: usize) -> f64 {
    let (mut sum, mut power) = (0.0, 1.0);
    for k in 1..m {
        power *= rho;
        sum += (1.0 - k as f64 / m as f64) * power;
    }
    1.0 + 2.0 * sum
}

/// The contrast on the values and on their batch means.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Ends {
    pub raw: Contrast,
    /// On batches of a tenth of a third, counted from the tail; `None` below 60 values.
    pub batched: Option<Contrast>,
}

impl Ends {
    /// Both contrasts of `y`; `None` where [`Contrast::of`] gives none.
    pub fn of(y: &[f64]) -> Option<Self> {
        let raw = Contrast::of(y)?;
        let batch = raw.m / BATCHES_A_THIRD;
        let batched = if batch >= 2 {
            Contrast::with_batch(&batch_means(y, batch), batch)
        } else {
            None
        };
        Some(Self { raw, batched })
    }

    /// The contrast whose interval with `tail` in each tail is the wider.
    pub fn counted(&self, tail: f64) -> (Contrast, Interval) {
        let raw = self.raw.interval(tail);
        match self
            .batched
            .map(|contrast| (contrast, contrast.interval(tail)))
        {
            Some((batched, interval)) if interval.width() > raw.width() => (batched, interval),
            _ => (self.raw, raw),
        }
    }
}
