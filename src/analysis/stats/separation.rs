//! Rule 3 of the trend: the two ends do not overlap.
//!
//! A decay that is steep at first looks like strong autocorrelation to the line and like scatter to the contrast. Here
//! only the order of values counts: nine tenths of the last third lie beyond nine tenths of the first by the margin.
//! It can establish a fall or a rise; it must never establish `flat`.

use serde::{Deserialize, Serialize};

use super::series::quantile;

/// The four quantiles the rule compares.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Separation {
    /// 10 % and 90 % quantile of the first third.
    pub first_p10: f64,
    pub first_p90: f64,
    /// 10 % and 90 % quantile of the last third.
    pub last_p10: f64,
    pub last_p90: f64,
}

impl Separation {
    /// The quantiles of the thirds of `y`; `None` below 3 values.
    pub fn of(y: &[f64]) -> Option<Self> {
        let m = y.len() / 3;
        if m == 0 {
            return None;
        }
        let (first, last) = (&y[..m], &y[y.len() - m..]);
        Some(Self {
            first_p10: quantile(first, 0.1),
            first_p90: quantile(first, 0.9),
            last_p10: quantile(last, 0.1),
            last_p90: quantile(last, 0.9),
        })
    }

    /// The last third lies below (1 − margin) times the first.
    pub fn below(&self, margin: f64) -> bool {
        self.first_p10 > 0.0 && self.last_p90 < (1.0 - margin) * self.first_p10
    }

    /// The last third lies above (1 + margin) times the first.
    pub fn above(&self, margin: f64) -> bool {
        self.first_p90 > 0.0 && self.last_p10 > (1.0 + margin) * self.first_p90
    }

    /// The same quantiles in other units.
    pub fn scaled(&self, factor: f64) -> Self {
        Self {
            first_p10: self.first_p10 * factor,
            first_p90: self.first_p90 * factor,
            last_p10: self.last_p10 * factor,
            last_p90: self.last_p90 * factor,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ends_that_do_not_touch_are_separated_by_the_margin_and_no_more() {
        let y: Vec<f64> = (0..90).map(|t| if t < 45 { 100.0 } else { 79.0 }).collect();
        let ends = Separation::of(&y).unwrap();
        assert!(ends.below(0.20) && !ends.below(0.21) && !ends.above(0.20));
        let back: Vec<f64> = y.iter().rev().copied().collect();
        let ends = Separation::of(&back).unwrap();
        assert!(ends.above(0.26) && !ends.above(0.27) && !ends.below(0.20));
    }

    #[test]
    fn a_tenth_of_a_third_may_overlap_and_more_may_not() {
        let mut y: Vec<f64> = (0..90).map(|t| if t < 45 { 100.0 } else { 70.0 }).collect();
        y[..2].fill(60.0);
        assert!(Separation::of(&y).unwrap().below(0.20));
        y[..5].fill(60.0);
        assert!(!Separation::of(&y).unwrap().below(0.20));
    }

    #[test]
    fn the_same_holds_for_the_last_third_and_for_a_rise() {
        let falling: Vec<f64> = (0..90).map(|t| if t < 45 { 100.0 } else { 70.0 }).collect();
        let rising: Vec<f64> = (0..90)
            .map(|t| if t < 45 { 100.0 } else { 140.0 })
            .collect();
        for (outliers, separated) in [(2, true), (5, false)] {
            let mut y = falling.clone();
            y[90 - outliers..].fill(95.0);
            assert_eq!(Separation::of(&y).unwrap().below(0.20), separated);
            let mut y = rising.clone();
            y[90 - outliers..].fill(105.0);
            assert_eq!(Separation::of(&y).unwrap().above(0.20), separated);
            let mut y = rising.clone();
            y[..outliers].fill(135.0);
            assert_eq!(Separation::of(&y).unwrap().above(0.20), separated);
        }
    }

    #[test]
    fn nothing_is_relative_to_zero() {
        let ends = Separation::of(&[0.0, 0.0, 0.0, 1.0, 1.0, 1.0]).unwrap();
        assert!(!ends.above(0.2) && !ends.below(0.2));
    }
}
