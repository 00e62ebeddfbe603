//! What is printed beside a trend and decides nothing.
//!
//! Theil-Sen slope (Theil 1950, Sen 1968), Mann-Kendall's test with the variance factor of AR(1) noise, the best single
//! change point by least squares, and last quarter over first quarter. Each is known to mislead on autocorrelated
//! series, so a verdict must never be built on one.

use serde::{Deserialize, Serialize};

use super::distribution::normal_sf;
use super::ends::variance_factor;
use super::series::{batch_means, constant, mean, normalised};

/// Fewest values on either side of a change point.
pub const SMALLEST_SEGMENT: usize = 10;

/// Longer series are described by batch means, since Theil-Sen compares every pair of values.
const MOST_VALUES: usize = 2_000;

/// Mann-Kendall's test for a monotone trend.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct MannKendall {
    /// Concordant less discordant pairs.
    pub s: f64,
    /// Variance of S under independence, ties taken into account.
    pub variance: f64,
    /// The factor by which AR(1) noise inflates it; 1 in the classical test.
    pub factor: f64,
    /// Lag-1 correlation behind the factor; 0 in the classical test.
    pub rho: f64,
    pub z: f64,
    /// Two-sided, normal approximation.
    pub p: f64,
    /// S over the number of pairs.
    pub tau: f64,
}

/// The split into two means that leaves the least squared error.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct ChangePoint {
    /// Index of the first value after the change.
    pub at: usize,
    pub mean_before: f64,
    pub mean_after: f64,
    /// Share of the squared deviation that the two means explain, 0 to 1.
    pub explained: f64,
}

/// The description of one series.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Described {
    /// Median of the slopes of all pairs, per value of the series.
    pub theil_sen_slope: Option<f64>,
    pub mann_kendall: Option<MannKendall>,
    /// `None` below 20 values or for a constant series.
    pub change_point: Option<ChangePoint>,
    pub first: f64,
    pub last: f64,
    /// Mean of the last quarter over that of the first; `None` where that is not positive or below 4 values.
    pub last_quarter_over_first: Option<f64>,
}

/// Describes a series of finite values; an empty one has zeros for its ends.
pub fn describe(y: &[f64]) -> Described {
    // On a common scale, where no square overflows; what has a unit gets it back.
    let (scaled, unit) = normalised(y);
    let batch = scaled.len().div_ceil(MOST_VALUES).max(1);
    let values = batch_means(&scaled, batch);
    let slope = theil_sen(&values);
    Described {
        theil_sen_slope: slope
            .map(|s| s / batch as f64 * unit)
            .filter(|s| s.is_finite()),
        mann_kendall: slope.and_then(|s| mann_kendall_ar1(&values, s)),
        change_point: change_point(&scaled).map(|found| ChangePoint {
            mean_before: found.mean_before * unit,
            mean_after: found.mean_after * unit,
            ..found
        }),
        first: y.first().copied().unwrap_or_default(),
        last: y.last().copied().unwrap_or_default(),
        last_quarter_over_first: quarters(&scaled)
            .and_then(|(first, last)| (first > 0.0).then(|| last / first))
            .filter(|ratio| ratio.is_finite()),
    }
}

/// Median slope of all pairs of values at distance one bin; `None` below two values.
pub fn theil_sen(y: &[f64]) -> Option<f64> {
    if y.len() < 2 {
        return None;
    }
    let mut slopes = Vec::with_capacity(y.len() * (y.len() - 1) / 2);
    for (i, a) in y.iter().enumerate() {
        slopes.extend(
            y[i + 1..]
                .iter()
                .enumerate()
                .map(|(d, b)| (b - a) / (d + 1) as f64),
        );
    }
    // The middle by selection: sorting half a million slopes is what would make the description slow.
    let half = slopes.len() / 2;
    let (below, middle, _) = slopes.select_nth_unstable_by(half, f64::total_cmp);
    let upper = *middle;
    if slopes_are_odd(y.len()) {
        return Some(upper);
    }
    let lower = below.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    Some(0.5 * (lower + upper))
}

fn slopes_are_odd(n: usize) -> bool {
    (n * (n - 1) / 2) % 2 == 1
}

/// The classical test (Mann 1945, Kendall 1975). `None` below 3 values.
pub fn mann_kendall(y: &[f64]) -> Option<MannKendall> {
    mann_kendall_with(y, 0.0, 1.0)
}

/// With the variance multiplied by that of AR(1) noise: rho of the residuals around the Theil-Sen line, corrected for bias.
pub fn mann_kendall_ar1(y: &[f64], slope: f64) -> Option<MannKendall> {
    if y.len() < 3 {
        return None;
    }
    let residuals: Vec<f64> = y
        .iter()
        .enumerate()
        .map(|(t, v)| v - slope * t as f64)
        .collect();
    let rho = autocorrelation(&residuals, 1);
    let rho = (rho + (2.0 + 4.0 * rho) / y.len() as f64).clamp(0.0, 0.98);
    mann_kendall_with(y, rho, variance_factor(rho, y.len()))
}

fn mann_kendall_with(y: &[f64], rho: f64, factor: f64) -> Option<MannKendall> {
    let n = y.len();
    if n < 3 {
        return None;
    }
    let mut s = 0i64;
    for (i, a) in y.iter().enumerate() {
        for b in &y[i + 1..] {
            s += i64::from(b > a) - i64::from(b < a);
        }
    }
    let pairs_term = |k: f64| k * (k - 1.0) * (2.0 * k + 5.0);
    let mut sorted = y.to_vec();
    sorted.sort_by(f64::total_cmp);
    let ties: f64 = sorted
        .chunk_by(|a, b| a == b)
        .map(|run| pairs_term(run.len() as f64))
        .sum();
    let variance = (pairs_term(n as f64) - ties) / 18.0;
    let s = s as f64;
    let z = if variance > 0.0 {
        (s - s.signum() * f64::from(s != 0.0)) / (variance * factor).sqrt()
    } else {
        0.0
    };
    Some(MannKendall {
        s,
        variance,
        factor,
        rho,
        z,
        p: (2.0 * normal_sf(z.abs())).min(1.0),
        tau: s / (n as f64 * (n as f64 - 1.0) / 2.0),
    })
}

/// Correlation of the values with themselves `lag` later, around their mean; 0 for a constant series.
pub fn autocorrelation(y: &[f64], lag: usize) -> f64 {
    let centre = mean(y);
    let total: f64 = y.iter().map(|v| (v - centre).powi(2)).sum();
    if constant(y) || lag >= y.len() || total == 0.0 {
        return 0.0;
    }
    y.iter()
        .zip(&y[lag..])
        .map(|(a, b)| (a - centre) * (b - centre))
        .sum::<f64>()
        / total
}

/// The exact search for one change point with segments of at least [`SMALLEST_SEGMENT`]: for a single split this is what
/// PELT (Killick 2012) finds. `None` where two segments do not fit or nothing varies.
pub fn change_point(y: &[f64]) -> Option<ChangePoint> {
    let n = y.len();
    if n < 2 * SMALLEST_SEGMENT || constant(y) {
        return None;
    }
    // Centred first: the sums then hold no large common part to cancel.
    let centre = mean(y);
    let total: f64 = y.iter().map(|v| v - centre).sum();
    let squares: f64 = y.iter().map(|v| (v - centre).powi(2)).sum();
    if squares == 0.0 {
        return None;
    }
    let mut before: f64 = y[..SMALLEST_SEGMENT - 1].iter().map(|v| v - centre).sum();
    let mut best: Option<(usize, f64)> = None;
    for at in SMALLEST_SEGMENT..=n - SMALLEST_SEGMENT {
        before += y[at - 1] - centre;
        let after = total - before;
        let gain = before * before / at as f64 + after * after / (n - at) as f64;
        if best.is_none_or(|(_, most)| gain > most) {
            best = Some((at, gain));
        }
    }
    let (at, gain) = best?;
    Some(ChangePoint {
        at,
        mean_before: mean(&y[..at]),
        mean_after: mean(&y[at..]),
        explained: (gain / squares).clamp(0.0, 1.0),
    })
}

/// Means of the first and the last quarter; `None` below 4 values.
pub fn quarters(y: &[f64]) -> Option<(f64, f64)> {
    let quarter = y.len() / 4;
    (quarter > 0).then(|| (mean(&y[..quarter]), mean(&y[y.len() - quarter..])))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_median_slope_of_an_even_and_an_odd_number_of_pairs() {
        assert_eq!(theil_sen(&[0.0, 1.0, 4.0]), Some(2.0));
        assert_eq!(
            theil_sen(&[0.0, 1.0, 4.0, 4.0]),
            Some(4.0 / 3.0 / 2.0 + 0.75)
        );
        assert_eq!(theil_sen(&[1.0]), None);
    }

    #[test]
    fn a_step_is_found_where_it_is() {
        let y: Vec<f64> = (0..60).map(|t| if t < 37 { 5.0 } else { 4.0 }).collect();
        let found = change_point(&y).unwrap();
        assert_eq!(
            (found.at, found.mean_before, found.mean_after),
            (37, 5.0, 4.0)
        );
        assert!((found.explained - 1.0).abs() < 1e-12);
        assert!(change_point(&y[..19]).is_none() && change_point(&[2.0; 40]).is_none());
    }

    #[test]
    fn a_step_too_near_the_end_is_put_at_the_last_allowed_place() {
        let y: Vec<f64> = (0..40).map(|t| if t < 37 { 5.0 } else { 4.0 }).collect();
        assert_eq!(change_point(&y).unwrap().at, 30);
    }

    #[test]
    fn a_constant_series_has_no_trend_statistic() {
        let flat = describe(&[7.0; 50]);
        let test = flat.mann_kendall.unwrap();
        assert_eq!((test.s, test.z, test.p), (0.0, 0.0, 1.0));
        assert_eq!(flat.theil_sen_slope, Some(0.0));
        assert_eq!(flat.last_quarter_over_first, Some(1.0));
    }

    #[test]
    fn a_long_series_is_described_per_value_all_the_same() {
        let y: Vec<f64> = (0..10_000).map(|t| 3.0 + 0.5 * f64::from(t)).collect();
        let slope = describe(&y).theil_sen_slope.unwrap();
        assert!((slope - 0.5).abs() < 1e-9, "{slope}");
    }
}
