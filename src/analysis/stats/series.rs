//! What every rule needs of a series: finite values, a common scale, means, batches, quantiles of a part.
//!
//! Must never drop, replace or clamp a value: a NaN is refused with its place.

use anyhow::{Result, ensure};
use serde::{Deserialize, Serialize};

/// A two-sided interval and the probability with which its method covers the truth.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Interval {
    pub lower: f64,
    pub upper: f64,
    /// Nominal two-sided coverage, 0.90 or 0.95 unless several claims share one error rate.
    pub level: f64,
}

impl Interval {
    pub fn width(&self) -> f64 {
        self.upper - self.lower
    }

    /// Whether `value` lies strictly inside.
    pub fn contains(&self, value: f64) -> bool {
        self.lower < value && value < self.upper
    }
}

/// Refuses an empty series and any value that is not a finite number, naming its place (counted from 1).
pub fn finite(values: &[f64]) -> Result<()> {
    ensure!(
        !values.is_empty(),
        "the series is empty: nothing can be judged"
    );
    for (index, value) in values.iter().enumerate() {
        ensure!(
            value.is_finite(),
            "value {} of the series is {value}: a series holds finite numbers only; leave the bin out or fix its source",
            index + 1
        );
    }
    Ok(())
}

/// The series divided by a power of two near its largest magnitude, and that divisor.
///
/// Sums of squares of 1e200 overflow; relative figures do not care about the scale. A power of two changes no digit.
pub fn normalised(values: &[f64]) -> (Vec<f64>, f64) {
    let largest = values.iter().fold(0.0f64, |a, v| a.max(v.abs()));
    if largest == 0.0 {
        return (values.to_vec(), 1.0);
    }
    if largest < f64::MIN_POSITIVE * 4.0 {
        return (values.iter().map(|v| v / largest).collect(), largest);
    }
    let divisor = 2f64.powi(largest.log2().floor() as i32);
    (values.iter().map(|v| v / divisor).collect(), divisor)
}

/// Arithmetic mean; NaN for an empty slice.
pub fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}

/// Sample variance with n − 1; NaN below two values.
pub fn variance(values: &[f64]) -> f64 {
    if values.len() < 2 {
        return f64::NAN;
    }
    let centre = mean(values);
    values.iter().map(|v| (v - centre).powi(2)).sum::<f64>() / (values.len() - 1) as f64
}

/// Whether all values are equal.
pub fn constant(values: &[f64]) -> bool {
    values.windows(2).all(|pair| pair[0] == pair[1])
}

/// Means of consecutive batches of `size`, counted from the tail; the `len % size` values that do not fill a batch are
/// dropped from the head, where a warm-up would be.
pub fn batch_means(values: &[f64], size: usize) -> Vec<f64> {
    let size = size.max(1);
    let head = values.len() % size;
    values[head..].chunks_exact(size).map(mean).collect()
}

/// The `p` quantile with linear interpolation between order statistics (type 7 of Hyndman and Fan 1996); NaN for an
/// empty slice.
pub fn quantile(values: &[f64], p: f64) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    quantile_of_sorted(&sorted, p)
}

/// The same on values already in ascending order.
pub fn quantile_of_sorted(sorted: &[f64], p: f64) -> f64 {
    if sorted.is_empty() {
        return f64::NAN;
    }
    let place = p.clamp(0.0, 1.0) * (sorted.len() - 1) as f64;
    let below = place.floor() as usize;
    let above = (below + 1).min(sorted.len() - 1);
    sorted[below] + (place - below as f64) * (sorted[above] - sorted[below])
}

/// The middle of the values; NaN for an empty slice.
pub fn median(values: &[f64]) -> f64 {
    quantile(values, 0.5)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_that_is_no_number_is_refused_with_its_place() {
        let message = finite(&[1.0, f64::NAN]).unwrap_err().to_string();
        assert!(message.contains("value 2"), "{message}");
        assert!(finite(&[f64::INFINITY]).is_err() && finite(&[]).is_err());
        assert!(finite(&[0.0, -1e308]).is_ok());
    }

    #[test]
    fn batches_are_counted_from_the_tail() {
        assert_eq!(batch_means(&[9.0, 1.0, 3.0, 5.0, 7.0], 2), [2.0, 6.0]);
        assert!(batch_means(&[1.0], 2).is_empty());
    }

    #[test]
    fn quantiles_interpolate() {
        assert_eq!(quantile(&[4.0, 1.0, 2.0, 3.0], 0.5), 2.5);
        assert_eq!(quantile(&[10.0, 20.0], 0.1), 11.0);
        assert!(quantile(&[], 0.5).is_nan());
    }

    #[test]
    fn the_common_scale_is_a_power_of_two_and_survives_the_extremes() {
        assert_eq!(normalised(&[3.0, 5.0]), (vec![0.75, 1.25], 4.0));
        for extreme in [1e308, 1e-308, 5e-324] {
            let (scaled, divisor) = normalised(&[extreme, extreme / 2.0]);
            assert!((0.5..2.0).contains(&scaled[0]), "{extreme}: {}", scaled[0]);
            assert!(divisor > 0.0);
        }
    }
}
