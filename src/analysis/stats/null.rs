//! What a null experiment tells: the same arm twice, so every difference is noise.
//!
//! It gives the run-to-run standard deviation with an upper bound, the smallest effect that can be seen over it, whether
//! one side wins too often, and how many false alarms are still possible. Must never print "0 %" for an error rate:
//! none in twenty still allows 16.8 %.

use anyhow::{Result, ensure};
use serde::{Deserialize, Serialize};
use statrs::function::beta::beta_reg;

use super::distribution::chi_square_quantile;
use super::pairs::{FEWEST_NULL_RUNS, one_pair_threshold, pair_sd, smallest_effect};
use super::series::{Interval, variance};

/// Run-to-run standard deviation of a log figure.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct RunSd {
    pub estimate: f64,
    /// One-sided 90 % upper bound by chi-square: the value that comparisons use.
    pub upper: f64,
    pub df: f64,
    pub runs: usize,
}

impl RunSd {
    fn new(estimate: f64, df: f64, runs: usize) -> Self {
        Self {
            estimate,
            upper: estimate * (df / chi_square_quantile(0.10, df)).sqrt(),
            df,
            runs,
        }
    }

    /// From the log ratios of null pairs: their standard deviation over sqrt(2). Neighbouring runs are compared, as in an
    /// experiment, so a slow drift of the machine does not count as noise twice.
    ///
    /// # Errors
    /// Fewer than 6 runs (3 pairs), or a log ratio that is not finite.
    pub fn of_pairs(log_ratios: &[f64]) -> Result<Self> {
        super::series::finite(log_ratios)?;
        let runs = 2 * log_ratios.len();
        ensure!(
            runs >= FEWEST_NULL_RUNS,
            "{runs} runs do not measure the variation between runs: a null experiment needs at least {FEWEST_NULL_RUNS}"
        );
        Ok(Self::new(
            (variance(log_ratios) / 2.0).sqrt(),
            log_ratios.len() as f64 - 1.0,
            runs,
        ))
    }

    /// From the log figures of single runs, where they are not paired.
    ///
    /// # Errors
    /// Fewer than 6 runs, or a value that is not finite.
    pub fn of_runs(logs: &[f64]) -> Result<Self> {
        super::series::finite(logs)?;
        ensure!(
            logs.len() >= FEWEST_NULL_RUNS,
            "{} runs do not measure the variation between runs: at least {FEWEST_NULL_RUNS} are needed",
            logs.len()
        );
        Ok(Self::new(
            variance(logs).sqrt(),
            logs.len() as f64 - 1.0,
            logs.len(),
        ))
    }
}

/// What a null experiment of some pairs tells.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct NullStudy {
    pub pairs: usize,
    pub run_sd: RunSd,
    /// The smallest relative effect that one pair may be called different by.
    pub smallest_effect_one_pair: f64,
    /// The smallest relative effect that as many pairs find with 80 % power.
    pub smallest_effect_pairs: Option<f64>,
    pub signs: SignBalance,
}

/// Studies the log ratios of null pairs.
///
/// # Errors
/// As [`RunSd::of_pairs`].
pub fn study(log_ratios: &[f64]) -> Result<NullStudy> {
    let run_sd = RunSd::of_pairs(log_ratios)?;
    Ok(NullStudy {
        pairs: log_ratios.len(),
        run_sd,
        smallest_effect_one_pair: one_pair_threshold(run_sd.upper).exp_m1(),
        smallest_effect_pairs: smallest_effect(pair_sd(run_sd.upper), log_ratios.len(), 0.8, 0.025)
            .map(f64::exp_m1),
        signs: SignBalance::of(log_ratios),
    })
}

/// How often either side won.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct SignBalance {
    pub positive: usize,
    pub negative: usize,
    /// Two-sided binomial p of a balance as uneven as this; 1 when nothing differed.
    pub p: f64,
}

impl SignBalance {
    /// Counts signs; exact zeros count for neither side.
    pub fn of(values: &[f64]) -> Self {
        let positive = values.iter().filter(|v| **v > 0.0).count();
        let negative = values.iter().filter(|v| **v < 0.0).count();
        let n = positive + negative;
        let fewer = positive.min(negative);
        let p = if n == 0 {
            1.0
        } else {
            (2.0 * binomial_cdf(fewer, n, 0.5)).min(1.0)
        };
        Self {
            positive,
            negative,
            p,
        }
    }
}

/// P(B <= x) of the binomial distribution.
fn binomial_cdf(x: usize, n: usize, p: f64) -> f64 {
    if x >= n {
        return 1.0;
    }
    beta_reg((n - x) as f64, x as f64 + 1.0, 1.0 - p)
}

/// The exact interval of a share by `x` of `n` (Clopper and Pearson 1934), `tail` in each tail. `None` unless x <= n > 0.
pub fn clopper_pearson(x: usize, n: usize, tail: f64) -> Option<Interval> {
    if n == 0 || x > n || !(tail > 0.0 && tail < 0.5) {
        return None;
    }
    let lower = if x == 0 {
        0.0
    } else {
        beta_quantile(tail, x as f64, (n - x) as f64 + 1.0)
    };
    let upper = if x == n {
        1.0
    } else {
        beta_quantile(1.0 - tail, x as f64 + 1.0, (n - x) as f64)
    };
    Some(Interval {
        lower,
        upper,
        level: 1.0 - 2.0 * tail,
    })
}

/// Bisection on the incomplete beta function.
fn beta_quantile(p: f64, a: f64, b: f64) -> f64 {
    let (mut low, mut high) = (0.0, 1.0);
    for _ in 0..200 {
        let middle = 0.5 * (low + high);
        if middle <= low || middle >= high {
            break;
        }
        if beta_reg(a, b, middle) < p {
            low = middle;
        } else {
            high = middle;
        }
    }
    0.5 * (low + high)
}

/// The most rejections among `n` null tests at `alpha` that are still no alarm: beyond it lies at most 2.5 %.
pub fn most_rejections(n: usize, alpha: f64) -> usize {
    (0..n)
        .find(|c| 1.0 - binomial_cdf(*c, n, alpha) <= 0.025)
        .unwrap_or(n)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_bound_lies_above_the_estimate_and_nears_it_with_more_runs() {
        let few = RunSd::of_pairs(&[0.01, -0.02, 0.015]).unwrap();
        let many: Vec<f64> = (0..60).map(|i| [0.01, -0.02, 0.015][i % 3]).collect();
        let many = RunSd::of_pairs(&many).unwrap();
        assert!(few.upper > 2.0 * few.estimate && few.runs == 6);
        assert!(many.upper > many.estimate && many.upper < 1.2 * many.estimate);
        // Chi-square, 5 degrees, 10 %: 1.6103.
        let six = RunSd::of_runs(&[1.0, 2.0, 3.0, 4.0, 5.0, 6.0]).unwrap();
        assert!(
            (six.upper / six.estimate - (5.0f64 / 1.610_307_986_962_322_7).sqrt()).abs() < 1e-9
        );
        assert!((six.estimate - 3.5f64.sqrt()).abs() < 1e-12);
    }

    #[test]
    fn pairs_and_runs_estimate_the_same_spread() {
        let pairs = RunSd::of_pairs(&[0.1, -0.1, 0.1, -0.1]).unwrap();
        assert!((pairs.estimate - (0.04f64 / 3.0 / 2.0).sqrt()).abs() < 1e-12);
    }

    #[test]
    fn five_runs_measure_nothing() {
        assert!(RunSd::of_runs(&[1.0; 5]).is_err() && RunSd::of_pairs(&[0.1, 0.2]).is_err());
        assert!(RunSd::of_pairs(&[0.1, f64::NAN, 0.2]).is_err());
    }

    #[test]
    fn one_side_that_always_wins_is_told() {
        assert!((SignBalance::of(&[0.1; 6]).p - 2.0 / 64.0).abs() < 1e-12);
        assert_eq!(SignBalance::of(&[0.1, -0.1]).p, 1.0);
        let none = SignBalance::of(&[0.0]);
        assert_eq!((none.positive, none.negative, none.p), (0, 0, 1.0));
    }

    #[test]
    fn a_study_names_the_smallest_effects() {
        let study = study(&[0.02, -0.01, 0.015, -0.02, 0.01, -0.015]).unwrap();
        let threshold = (3.0 * std::f64::consts::SQRT_2 * study.run_sd.upper).exp() - 1.0;
        assert!((study.smallest_effect_one_pair - threshold).abs() < 1e-12);
        assert!(study.smallest_effect_pairs.unwrap() < study.smallest_effect_one_pair);
        assert_eq!(study.signs.positive, 3);
    }

    #[test]
    fn what_is_no_share_has_no_interval() {
        assert!(clopper_pearson(1, 0, 0.025).is_none() && clopper_pearson(3, 2, 0.025).is_none());
        assert_eq!(clopper_pearson(2, 2, 0.025).unwrap().upper, 1.0);
    }
}
