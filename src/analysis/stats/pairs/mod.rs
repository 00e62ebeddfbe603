//! Control against treatment over pairs of runs: one number a run, one log ratio a pair.
//!
//! The interval is Student's t on the log ratios, the p value beside it an exact sign flip. A percentile bootstrap over
//! few pairs finds effects that are not there, and the bins of a run are not replicates of it. Must never compare bins,
//! and must never claim from fewer than [`FEWEST_FOR_CLAIM`] pairs.

mod order;
mod power;

use anyhow::{Result, ensure};
use serde::{Deserialize, Serialize};

pub use order::{
    Arm, DriftModel, Run, adjacent_pairs, drift_model, order_effect, quartets, replicates, sequence,
};
pub use power::{Required, pair_sd, power, required_pairs, smallest_effect};

use super::distribution::{t_two_sided, t_upper};
use super::series::{Interval, mean, variance};

/// Below this many pairs: estimate and interval only, at most "same direction in k of k".
pub const FEWEST_FOR_CLAIM: usize = 4;

/// Fewest runs of a null experiment whose spread may carry a comparison of one pair.
pub const FEWEST_NULL_RUNS: usize = 6;

/// More pairs than this and the exact enumeration of signs is left out.
const MOST_EXACT: usize = 40;

/// ln(control/treatment) of each pair.
///
/// # Errors
/// A figure that is not positive has no logarithm; slices of different lengths are no pairs.
pub fn log_ratios(control: &[f64], treatment: &[f64]) -> Result<Vec<f64>> {
    ensure!(
        control.len() == treatment.len(),
        "{} control runs and {} treatment runs are no pairs: compare complete pairs only",
        control.len(),
        treatment.len()
    );
    control
        .iter()
        .zip(treatment)
        .enumerate()
        .map(|(index, (c, t))| {
            ensure!(
                c.is_finite() && t.is_finite() && *c > 0.0 && *t > 0.0,
                "pair {}: {c} against {t} has no ratio; both figures must be positive",
                index + 1
            );
            Ok(c.ln() - t.ln())
        })
        .collect()
}

/// The paired estimate.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Paired {
    /// Number of pairs.
    pub k: usize,
    /// Whether the interval is that of quartet contrasts, half as many as pairs; else that of the pairs.
    pub by_quartets: bool,
    pub mean_log: f64,
    /// Standard deviation of the log ratios (of the contrasts, by quartets); absent for one.
    pub sd_log: Option<f64>,
    /// exp of the mean: 1.08 is "8 % more in the control".
    pub ratio: f64,
    /// t interval, one degree of freedom less than log ratios; absent for one pair.
    pub ratio_interval: Option<Interval>,
    /// The same on logarithms.
    pub log_interval: Option<Interval>,
    pub t: Option<f64>,
    /// Two-sided p of the t statistic.
    pub p_t: Option<f64>,
    /// Exact two-sided sign-flip p; below 0.05 only from 6 pairs on. Absent above 40.
    pub sign_flip_p: Option<f64>,
    /// How many log ratios have the sign of their mean.
    pub same_direction: usize,
    /// Whether there are enough of them to claim a difference at all.
    pub enough_for_claim: bool,
}

impl Paired {
    /// Whether a difference is established: enough pairs, and the interval leaves a ratio of 1 out.
    pub fn excludes_one(&self) -> bool {
        self.enough_for_claim
            && self
                .log_interval
                .is_some_and(|i| i.lower > 0.0 || i.upper < 0.0)
    }
}

/// Estimate and interval from the log ratios, `tail` in each tail.
///
/// # Errors
/// No log ratio at all, or one that is not finite.
pub fn paired(d: &[f64], tail: f64) -> Result<Paired> {
    super::series::finite(d)?;
    let k = d.len();
    let mean_log = mean(d);
    let mut result = Paired {
        k,
        by_quartets: false,
        mean_log,
        sd_log: None,
        ratio: mean_log.exp(),
        ratio_interval: None,
        log_interval: None,
        t: None,
        p_t: None,
        sign_flip_p: sign_flip_p(d),
        same_direction: same_direction(d, mean_log),
        enough_for_claim: k >= FEWEST_FOR_CLAIM,
    };
    if k >= 2 {
        let df = k as f64 - 1.0;
        let sd = variance(d).sqrt();
        let se = sd / (k as f64).sqrt();
        let half = if se > 0.0 {
            t_upper(tail, df) * se
        } else {
            0.0
        };
        let interval = Interval {
            lower: mean_log - half,
            upper: mean_log + half,
            level: 1.0 - 2.0 * tail,
        };
        result.sd_log = Some(sd);
        result.log_interval = Some(interval);
        result.ratio_interval = Some(Interval {
            lower: interval.lower.exp(),
            upper: interval.upper.exp(),
            level: interval.level,
        });
        if se > 0.0 {
            result.t = Some(mean_log / se);
            result.p_t = Some(t_two_sided(mean_log / se, df));
        }
    }
    Ok(result)
}

/// The estimate of runs in their order: the interval is that of quartet contrasts from three balanced quartets on, else
/// that of adjacent pairs; signs are always those of the pairs.
///
/// # Errors
/// No runs, runs that do not form pairs, or a log figure that is not finite.
pub fn of_runs(runs: &[Run], tail: f64) -> Result<Paired> {
    let pairs = adjacent_pairs(runs)?;
    let by_pairs = paired(&pairs, tail)?;
    let (contrasts, by_quartets) = replicates(runs)?;
    if !by_quartets {
        return Ok(by_pairs);
    }
    Ok(Paired {
        k: by_pairs.k,
        by_quartets,
        sign_flip_p: by_pairs.sign_flip_p,
        same_direction: by_pairs.same_direction,
        enough_for_claim: by_pairs.enough_for_claim,
        ..paired(&contrasts, tail)?
    })
}

/// How many have the sign of `of`.
fn same_direction(d: &[f64], of: f64) -> usize {
    d.iter()
        .filter(|v| (**v > 0.0 && of > 0.0) || (**v < 0.0 && of < 0.0))
        .count()
}

/// Exact two-sided p of the mean under random signs: the share of all 2^k sign patterns whose sum is at least as far from
/// zero (Fisher 1935). `None` for no pair and above 40.
///
/// Meets in the middle: the sums of either half are sorted, and pairs of them counted, so 40 pairs take 2^20 steps.
pub fn sign_flip_p(d: &[f64]) -> Option<f64> {
    if d.is_empty() || d.len() > MOST_EXACT {
        return None;
    }
    let observed = d.iter().sum::<f64>().abs();
    // Sums in another order differ in their last digits; a pattern equal to the observed one must count.
    let threshold = observed - 1e-12 * d.iter().map(|v| v.abs()).sum::<f64>();
    let (left, right) = d.split_at(d.len() / 2);
    let left = signed_sums(left);
    let mut right = signed_sums(right);
    right.sort_by(f64::total_cmp);
    let mut far = 0usize;
    for sum in &left {
        let above = right.len() - right.partition_point(|r| sum + r < threshold);
        let below = right.partition_point(|r| sum + r <= -threshold);
        far += if threshold <= 0.0 {
            right.len()
        } else {
            above + below
        };
    }
    Some(far as f64 / (left.len() as f64 * right.len() as f64))
}

/// All sums of the values with every pattern of signs.
fn signed_sums(d: &[f64]) -> Vec<f64> {
    let mut sums = vec![0.0];
    for v in d {
        sums = sums.iter().flat_map(|s| [s + v, s - v]).collect();
    }
    sums
}

/// What one pair must exceed before it may be called a difference: three standard deviations of the difference of two
/// runs, as |ln ratio|.
pub fn one_pair_threshold(sigma_run: f64) -> f64 {
    3.0 * std::f64::consts::SQRT_2 * sigma_run
}

/// Whether the log ratio of one pair exceeds what runs of one arm differ by.
pub fn one_pair_differs(log_ratio: f64, sigma_run: f64) -> bool {
    log_ratio.abs() > one_pair_threshold(sigma_run)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn figures_without_a_ratio_are_refused() {
        for (c, t) in [
            (&[0.0][..], &[1.0][..]),
            (&[1.0], &[-1.0]),
            (&[f64::NAN], &[1.0]),
            (&[1.0, 2.0], &[1.0]),
        ] {
            assert!(log_ratios(c, t).is_err(), "{c:?} {t:?}");
        }
        assert!((log_ratios(&[8.0], &[4.0]).unwrap()[0] - 2f64.ln()).abs() < 1e-15);
    }

    #[test]
    fn one_pair_has_an_estimate_and_nothing_else() {
        let one = paired(&[0.1], 0.025).unwrap();
        assert_eq!(
            (one.k, one.log_interval, one.t, one.same_direction),
            (1, None, None, 1)
        );
        assert!(!one.excludes_one());
        assert!(paired(&[], 0.025).is_err() && paired(&[f64::NAN], 0.025).is_err());
    }

    #[test]
    fn three_pairs_never_claim_and_four_may() {
        let d = [0.10, 0.11, 0.09, 0.10];
        assert!(!paired(&d[..3], 0.025).unwrap().excludes_one());
        assert!(paired(&d, 0.025).unwrap().excludes_one());
        assert!(
            !paired(&[0.10, -0.11, 0.09, -0.10], 0.025)
                .unwrap()
                .excludes_one()
        );
        assert!(
            paired(&[-0.10, -0.11, -0.09, -0.10], 0.025)
                .unwrap()
                .excludes_one()
        );
    }

    #[test]
    fn six_pairs_in_quartets_are_six_pairs_and_three_contrasts() {
        let order = sequence(6, Arm::Treatment);
        let runs: Vec<Run> = order
            .into_iter()
            .enumerate()
            .map(|(slot, arm)| {
                let effect = if arm == Arm::Control { 0.1 } else { 0.0 };
                Run {
                    arm,
                    log: effect + 0.01 * slot as f64 + 0.001 * (slot % 3) as f64,
                }
            })
            .collect();
        let found = of_runs(&runs, 0.025).unwrap();
        assert_eq!(
            (found.k, found.by_quartets, found.same_direction),
            (6, true, 6)
        );
        assert_eq!(found.sign_flip_p, Some(2.0 / 64.0));
        assert!(found.enough_for_claim && found.excludes_one());
        let half = found.log_interval.unwrap().width() / 2.0;
        let se = found.sd_log.unwrap() / 3f64.sqrt();
        assert!(
            (half / se - t_upper(0.025, 2.0)).abs() < 1e-9,
            "two degrees of freedom"
        );
        let four = of_runs(&runs[..8], 0.025).unwrap();
        assert_eq!((four.k, four.by_quartets), (4, false));
        assert!(of_runs(&[], 0.025).is_err() && of_runs(&runs[..3], 0.025).is_err());
    }

    #[test]
    fn equal_pairs_have_no_spread_and_no_division_by_zero() {
        let equal = paired(&[0.0; 5], 0.025).unwrap();
        assert_eq!(
            (equal.ratio, equal.t, equal.sign_flip_p),
            (1.0, None, Some(1.0))
        );
        assert!(!equal.excludes_one());
    }

    #[test]
    fn the_smallest_p_of_k_pairs_is_two_of_all_patterns() {
        for k in 1..=12 {
            let d = vec![0.3; k];
            assert_eq!(
                sign_flip_p(&d),
                Some(2.0 / 2f64.powi(k as i32)),
                "{k} pairs"
            );
        }
        assert!(sign_flip_p(&[0.3; 6]).unwrap() < 0.05 && sign_flip_p(&[0.3; 5]).unwrap() > 0.05);
        assert!(sign_flip_p(&[]).is_none() && sign_flip_p(&[0.1; 41]).is_none());
    }

    #[test]
    fn one_pair_must_exceed_three_standard_deviations_of_a_difference() {
        assert!((one_pair_threshold(0.1) - 0.424_264_068_711_928_5).abs() < 1e-15);
        assert!(one_pair_differs(-0.43, 0.1) && one_pair_differs(0.43, 0.1));
        assert!(!one_pair_differs(0.42, 0.1) && !one_pair_differs(-0.42, 0.1));
    }

    /// The definition, pattern by pattern.
    fn sign_flip_by_enumeration(d: &[f64]) -> f64 {
        let observed = d.iter().sum::<f64>().abs();
        let slack = 1e-12 * d.iter().map(|v| v.abs()).sum::<f64>();
        let all = 1u32 << d.len();
        let far = (0..all).filter(|pattern| {
            let sum: f64 = d
                .iter()
                .enumerate()
                .map(|(i, v)| if pattern >> i & 1 == 1 { -v } else { *v })
                .sum();
            sum.abs() >= observed - slack
        });
        far.count() as f64 / f64::from(all)
    }

    proptest! {
        #[test]
        fn meeting_in_the_middle_counts_what_enumeration_counts(d in proptest::collection::vec(-1.0f64..1.0, 1..11)) {
            prop_assert_eq!(sign_flip_p(&d).unwrap(), sign_flip_by_enumeration(&d));
        }

        #[test]
        fn permuting_pairs_changes_nothing(mut d in proptest::collection::vec(-0.5f64..0.5, 2..13), turn in 0usize..13) {
            let before = paired(&d, 0.025).unwrap();
            let k = d.len();
            d.rotate_left(turn % k);
            d.swap(0, k - 1);
            let after = paired(&d, 0.025).unwrap();
            prop_assert!((before.mean_log - after.mean_log).abs() < 1e-12);
            prop_assert!((before.sd_log.unwrap() - after.sd_log.unwrap()).abs() < 1e-12);
            prop_assert_eq!(before.sign_flip_p, after.sign_flip_p);
            prop_assert_eq!(before.same_direction, after.same_direction);
        }

        #[test]
        fn no_finite_input_panics(d in proptest::collection::vec(proptest::num::f64::NORMAL, 1..13)) {
            prop_assert!(paired(&d, 0.025).is_ok());
        }
    }
}
