//! How many pairs an effect needs: the noncentral t distribution.
//!
//! Must never promise a power that the t test does not have: the normal approximation is too hopeful at few pairs.

use serde::{Deserialize, Serialize};

use super::super::distribution::{normal_sf, t_upper};
use statrs::function::gamma::ln_gamma;

/// More pairs than this are "too many": an experiment of days cannot be asked for them.
const MOST_PAIRS: usize = 100_000;

/// Pairs needed, and the power they give.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Required {
    pub pairs: usize,
    pub power: f64,
}

/// The power of the two-sided t test on `k` log ratios of mean `effect` and standard deviation `sd` (of the log ratio of a
/// pair, sqrt(2) times that of a run), `tail` in each tail. 0 below two pairs.
pub fn power(effect: f64, sd: f64, k: usize, tail: f64) -> f64 {
    if k < 2 || effect.is_nan() || sd.is_nan() {
        return 0.0;
    }
    if sd <= 0.0 {
        return f64::from(effect != 0.0);
    }
    let df = k as f64 - 1.0;
    let noncentrality = effect.abs() / sd * (k as f64).sqrt();
    let critical = t_upper(tail, df);
    beyond(critical, df, noncentrality) + beyond(critical, df, -noncentrality)
}

/// P(T > t) of the noncentral t distribution: the normal tail beyond t s, averaged over s = sqrt(chi-square/df), by
/// Gauss-Legendre quadrature on panels that resolve both factors.
fn beyond(t: f64, df: f64, noncentrality: f64) -> f64 {
    const PANELS: usize = 400;
    const NODES: [(f64, f64); 5] = [
        (0.148_874_338_981_631_2, 0.295_524_224_714_752_9),
        (0.433_395_394_129_247_2, 0.269_266_719_309_996_35),
        (0.679_409_568_299_024_4, 0.219_086_362_515_982_04),
        (0.865_063_366_688_984_5, 0.149_451_349_150_580_6),
        (0.973_906_528_517_171_7, 0.066_671_344_308_688_14),
    ];
    let log_norm = 2f64.ln() + 0.5 * df * (0.5 * df).ln() - ln_gamma(0.5 * df);
    let value = |s: f64| {
        (log_norm + (df - 1.0) * s.ln() - 0.5 * df * s * s).exp() * normal_sf(t * s - noncentrality)
    };
    // Nine standard deviations on either side hold all but 1e-17 of the density.
    let from = (1.0 - 9.0 / df.sqrt()).max(0.0);
    let width = (1.0 + 9.0 / df.sqrt() - from) / PANELS as f64;
    (0..PANELS)
        .map(|panel| {
            let middle = from + (panel as f64 + 0.5) * width;
            let half = 0.5 * width;
            NODES
                .iter()
                .map(|(x, w)| w * (value(middle - half * x) + value(middle + half * x)))
                .sum::<f64>()
                * half
        })
        .sum()
}

/// The standard deviation of a pair's log ratio when that of one run's log figure is `run_sd`.
pub fn pair_sd(run_sd: f64) -> f64 {
    std::f64::consts::SQRT_2 * run_sd
}

/// The fewest pairs with which a log ratio of `effect` is found with probability `wanted`. `None` for no effect or more
/// than 100,000 pairs.
pub fn required_pairs(effect: f64, sd: f64, wanted: f64, tail: f64) -> Option<Required> {
    let enough = |k: usize| power(effect, sd, k, tail) >= wanted;
    if effect == 0.0 || !enough(MOST_PAIRS) {
        return None;
    }
    // Power grows with the number of pairs: double, then bisect.
    let mut high = 2;
    while !enough(high) {
        high = (2 * high).min(MOST_PAIRS);
    }
    let mut low = (high / 2).max(1);
    while high - low > 1 {
        let middle = low + (high - low) / 2;
        if enough(middle) {
            high = middle;
        } else {
            low = middle;
        }
    }
    Some(Required {
        pairs: high,
        power: power(effect, sd, high, tail),
    })
}

/// The smallest log ratio that `k` pairs find with probability `wanted`; `None` below two pairs.
pub fn smallest_effect(sd: f64, k: usize, wanted: f64, tail: f64) -> Option<f64> {
    if k < 2 || sd.is_nan() || sd < 0.0 {
        return None;
    }
    if sd == 0.0 {
        return Some(0.0);
    }
    let (mut low, mut high) = (0.0, sd);
    while power(high, sd, k, tail) < wanted {
        low = high;
        high *= 2.0;
        if !high.is_finite() {
            return None;
        }
    }
    for _ in 0..60 {
        let middle = 0.5 * (low + high);
        if power(middle, sd, k, tail) < wanted {
            low = middle;
        } else {
            high = middle;
        }
    }
    Some(high)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn without_an_effect_the_power_is_the_error_rate() {
        for k in [2, 3, 8, 40, 400] {
            assert!(
                (power(0.0, 0.1, k, 0.025) - 0.05).abs() < 1e-10,
                "{k}: {}",
                power(0.0, 0.1, k, 0.025)
            );
        }
    }

    #[test]
    fn power_grows_with_pairs_and_with_the_effect() {
        for k in 2..60 {
            assert!(
                power(0.05, 0.1, k + 1, 0.025) > power(0.05, 0.1, k, 0.025),
                "{k}"
            );
        }
        assert!(power(-0.05, 0.1, 9, 0.025) == power(0.05, 0.1, 9, 0.025));
        assert!(power(0.06, 0.1, 9, 0.025) > power(0.05, 0.1, 9, 0.025));
    }

    #[test]
    fn one_fewer_than_required_is_not_enough() {
        let found = required_pairs(0.1, 0.1, 0.8, 0.025).unwrap();
        assert!(found.power >= 0.8 && power(0.1, 0.1, found.pairs - 1, 0.025) < 0.8);
        assert!(required_pairs(0.0, 0.1, 0.8, 0.025).is_none());
        assert!(required_pairs(1e-6, 0.1, 0.8, 0.025).is_none());
        assert_eq!(required_pairs(0.1, 0.0, 0.8, 0.025).unwrap().pairs, 2);
        assert_eq!(power(0.1, 0.1, 1, 0.025), 0.0);
    }

    #[test]
    fn the_smallest_effect_is_the_inverse_of_the_required_pairs() {
        let smallest = smallest_effect(0.1, 9, 0.8, 0.025).unwrap();
        assert!((power(smallest, 0.1, 9, 0.025) - 0.8).abs() < 1e-9);
        assert_eq!(
            required_pairs(smallest * 1.000_001, 0.1, 0.8, 0.025)
                .unwrap()
                .pairs,
            9
        );
        assert!(smallest_effect(0.1, 1, 0.8, 0.025).is_none());
    }
}
