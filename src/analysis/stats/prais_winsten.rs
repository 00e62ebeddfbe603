//! A straight line under AR(1) noise, by generalised least squares.
//!
//! Prais and Winsten (1954), the lag-1 correlation corrected for its bias (Marriott and Pope 1954: about −(2 + 4 rho)/n
//! around a line), degrees of freedom by the effective number of values n (1 − rho)/(1 + rho). Must never treat
//! correlated values as independent ones.

use serde::{Deserialize, Serialize};

use super::distribution::chi_square_sf;
use super::series::{constant, mean};

/// Passes of estimating rho and fitting again.
const PASSES: usize = 5;

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
    let centre = (y.len() as f64 - 1.0) / 2.0;
    let times: Vec<f64> = (0..y.len()).map(|t| t as f64 - centre).collect();
    fit(&times, y)
}

/// The same at given times, not necessarily equally spaced; neighbours correlate by their order. The slope is per unit of
/// time, the level that of the mean time. `None` below 4 values, or where the times do not vary.
pub fn prais_winsten_at(times: &[f64], y: &[f64]) -> Option<Fit> {
    if times.len() != y.len() || constant(times) {
        return None;
    }
    let centre = mean(times);
    let times: Vec<f64> = times.iter().map(|t| t - centre).collect();
    fit(&times, y)
}

/// On centred times.
fn fit(times: &[f64], y: &[f64]) -> Option<Fit> {
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
    let mut line = Gls::solve(times, y, 0.0);
    let mut rho = 0.0;
    for _ in 0..PASSES {
        rho = corrected_rho(times, y, &line);
        line = Gls::solve(times, y, rho);
    }
    let count = n as f64;
    let residual_variance =
        line.whitened(times, y, rho).map(|e| e * e).sum::<f64>() / (count - 2.0);
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
    let middle = (y.len() as f64 - 1.0) / 2.0;
    let residual = |t: usize| y[t] - fit.level - fit.slope * (t as f64 - middle);
    let e: Vec<f64> = (1..y.len())
        .map(|t| residual(t) - fit.rho * residual(t - 1))
        .collect();
    let centre = mean(&e);
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
fn corrected_rho(times: &[f64], y: &[f64], line: &Gls) -> f64 {
    let (mut products, mut squares, mut before) = (0.0, 0.0, 0.0);
    for (t, (x, v)) in times.iter().zip(y).enumerate() {
        let e = v - line.level - line.slope * x;
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
    fn solve(times: &[f64], y: &[f64], rho: f64) -> Self {
        let (mut aa, mut ab, mut bb, mut ay, mut by) = (0.0, 0.0, 0.0, 0.0, 0.0);
        for (a, b, v) in transformed(times, y, rho) {
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

    /// Residuals of the transformed model, the scaled first row included.
    fn whitened<'a>(
        &'a self,
        times: &'a [f64],
        y: &'a [f64],
        rho: f64,
    ) -> impl Iterator<Item = f64> + 'a {
        transformed(times, y, rho).map(|(a, b, v)| v - a * self.level - b * self.slope)
    }
}

/// Rows (constant, time, value) of the Prais-Winsten transformation: the first scaled by sqrt(1 − rho^2), the others
/// less rho times the one before.
fn transformed<'a>(
    times: &'a [f64],
    y: &'a [f64],
    rho: f64,
) -> impl Iterator<Item = (f64, f64, f64)> + 'a {
    let first = (1.0 - rho * rho).sqrt();
    (0..y.len()).map(move |t| {
        if t == 0 {
            (first, first * times[0], first * y[0])
        } else {
            (
                1.0 - rho,
                times[t] - rho * times[t - 1],
                y[t] - rho * y[t - 1],
            )
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_without_noise_is_found_at_any_times() {
        let times = [0.0, 1.0, 4.0, 9.0, 11.0, 20.0];
        let y: Vec<f64> = times.iter().map(|t| 7.0 - 0.5 * t).collect();
        let fit = prais_winsten_at(&times, &y).unwrap();
        assert!((fit.slope + 0.5).abs() < 1e-12 && (fit.level - (7.0 - 0.5 * 7.5)).abs() < 1e-12);
    }

    #[test]
    fn equal_spacing_is_a_special_case() {
        let y = [3.0, 1.0, 4.0, 1.0, 5.0, 9.0, 2.0, 6.0];
        let times: Vec<f64> = (0..8).map(|t| 100.0 + 10.0 * f64::from(t)).collect();
        let (plain, timed) = (
            prais_winsten(&y).unwrap(),
            prais_winsten_at(&times, &y).unwrap(),
        );
        assert!((plain.slope - 10.0 * timed.slope).abs() < 1e-12);
        assert!(
            (plain.se - 10.0 * timed.se).abs() < 1e-12 && (plain.level - timed.level).abs() < 1e-12
        );
    }

    #[test]
    fn too_little_has_no_line() {
        assert!(prais_winsten(&[1.0, 2.0, 3.0]).is_none());
        assert!(prais_winsten_at(&[1.0; 5], &[1.0, 2.0, 3.0, 4.0, 5.0]).is_none());
        assert!(prais_winsten_at(&[1.0, 2.0], &[1.0]).is_none());
    }

    #[test]
    fn correlation_is_corrected_for_its_bias_and_clipped() {
        let alternating: Vec<f64> = (0..50)
            .map(|t| if t % 2 == 0 { 1.0 } else { 3.0 })
            .collect();
        let fit = prais_winsten(&alternating).unwrap();
        assert_eq!((fit.rho, fit.n_eff, fit.df), (-0.5, 50.0, 48.0));
        let parabola: Vec<f64> = (0..50).map(|t| f64::from(t * t)).collect();
        let fit = prais_winsten(&parabola).unwrap();
        assert_eq!((fit.rho, fit.n_eff, fit.df), (0.98, 4.0, 2.0));
    }
}
