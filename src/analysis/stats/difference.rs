//! The difference of two estimates of unequal precision: Welch and Satterthwaite.
//!
//! Used for the trends of two runs. It speaks of these two runs only; it must never be read as an effect of what differed
//! between them, since runs of one and the same arm differ too.

use serde::{Deserialize, Serialize};

use super::distribution::{t_two_sided, t_upper};
use super::linear::{Line, Scale};
use super::series::{Interval, finite, mean, normalised, variance};

/// An estimate with its standard error and degrees of freedom.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Estimate {
    pub value: f64,
    pub se: f64,
    pub df: f64,
}

/// a − b with its interval.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Difference {
    pub estimate: f64,
    pub interval: Interval,
    pub df: f64,
    /// Two-sided.
    pub p: f64,
}

impl Difference {
    /// Whether the interval leaves zero out.
    pub fn excludes_zero(&self) -> bool {
        self.interval.lower > 0.0 || self.interval.upper < 0.0
    }
}

/// a − b, `tail` in each tail, degrees of freedom by Satterthwaite (1946).
pub fn welch(a: Estimate, b: Estimate, tail: f64) -> Difference {
    let (va, vb) = (a.se * a.se, b.se * b.se);
    let total = va + vb;
    let df = if total > 0.0 {
        let (share_a, share_b) = (va / total, vb / total);
        1.0 / (share_a * share_a / a.df + share_b * share_b / b.df)
    } else {
        a.df + b.df
    };
    let estimate = a.value - b.value;
    let se = total.sqrt();
    let half = if se > 0.0 {
        t_upper(tail, df) * se
    } else {
        0.0
    };
    let p = match (se > 0.0, estimate == 0.0) {
        (true, _) => t_two_sided(estimate / se, df),
        (false, true) => 1.0,
        (false, false) => 0.0,
    };
    Difference {
        estimate,
        interval: Interval {
            lower: estimate - half,
            upper: estimate + half,
            level: 1.0 - 2.0 * tail,
        },
        df,
        p,
    }
}

/// Mean of `a` − mean of `b` for two independent samples of two or more; `None` below.
pub fn welch_of_means(a: &[f64], b: &[f64], tail: f64) -> Option<Difference> {
    if a.len() < 2 || b.len() < 2 {
        return None;
    }
    let estimate = |y: &[f64]| Estimate {
        value: mean(y),
        se: (variance(y) / y.len() as f64).sqrt(),
        df: y.len() as f64 - 1.0,
    };
    Some(welch(estimate(a), estimate(b), tail))
}

/// The trend of `a` less that of `b`, as a share of the level over the whole series, `tail` in each tail.
///
/// Where one of the two changes lies beyond ±30 % both lines are taken on logarithms and the difference is that of what
/// is left: one that falls by half against one that stays is −0.5 on either scale. `None` where a series has no positive
/// level, is not finite, or is too short for a line.
pub fn of_trends(a: &[f64], b: &[f64], tail: f64) -> Option<Difference> {
    finite(a).and_then(|()| finite(b)).ok()?;
    let (a, b) = (normalised(a).0, normalised(b).0);
    let fitting = [Line::on_fitting_scale(&a)?, Line::on_fitting_scale(&b)?];
    if fitting.iter().any(|line| line.scale == Scale::Log)
        && let (Some(log_a), Some(log_b)) = (Line::fit(&a, Scale::Log), Line::fit(&b, Scale::Log))
    {
        let d = welch(change(&log_a, tail)?, change(&log_b, tail)?, tail);
        return Some(Difference {
            estimate: d.estimate.exp_m1(),
            interval: Interval {
                lower: d.interval.lower.exp_m1(),
                upper: d.interval.upper.exp_m1(),
                level: d.interval.level,
            },
            ..d
        });
    }
    let (line_a, line_b) = (Line::fit(&a, Scale::Linear)?, Line::fit(&b, Scale::Linear)?);
    Some(welch(change(&line_a, tail)?, change(&line_b, tail)?, tail))
}

/// The change over the run with its standard error, on the scale of the line, from the fit whose interval counts.
fn change(line: &Line, tail: f64) -> Option<Estimate> {
    let counted = line.counted(tail)?;
    let steps = (line.raw.n as f64 - 1.0) / counted.batch as f64;
    let level = match line.scale {
        Scale::Linear => counted.fit.level,
        Scale::Log => 1.0,
    };
    Some(Estimate {
        value: counted.fit.slope * steps / level,
        se: counted.fit.se * steps / level,
        df: counted.fit.df,
    })
}

#[cfg(test)]
mod tests {
    use super::super::simulate::{Drift, Noise, Simulation};
    use super::*;

    fn series(stream: u64, drift: Drift) -> Vec<f64> {
        Simulation::new(21, stream).series(200, 0.04, Noise::Ar1 { phi: 0.3 }, drift)
    }

    #[test]
    fn equal_precision_adds_the_degrees_of_freedom() {
        let one = Estimate {
            value: 3.0,
            se: 2.0,
            df: 7.0,
        };
        let d = welch(one, Estimate { value: 1.0, ..one }, 0.025);
        assert!((d.df - 14.0).abs() < 1e-12);
        assert_eq!(d.estimate, 2.0);
        let swapped = welch(Estimate { value: 1.0, ..one }, one, 0.025);
        assert!((swapped.interval.lower + d.interval.upper).abs() < 1e-12);
    }

    #[test]
    fn no_uncertainty_is_no_division_by_zero() {
        let exact = |value| Estimate {
            value,
            se: 0.0,
            df: 5.0,
        };
        assert!(welch(exact(2.0), exact(1.0), 0.025).excludes_zero());
        assert_eq!(welch(exact(1.0), exact(1.0), 0.025).p, 1.0);
    }

    #[test]
    fn a_fall_beside_a_flat_run_differs_and_two_flat_runs_do_not() {
        let flat = series(1, Drift::None);
        let false_alarms = (0..200)
            .filter(|i| {
                let (one, other) = (
                    series(10 + 2 * i, Drift::None),
                    series(11 + 2 * i, Drift::None),
                );
                of_trends(&one, &other, 0.025).unwrap().excludes_zero()
            })
            .count();
        assert!(false_alarms <= 16, "{false_alarms} of 200 at a nominal 5 %");
        for drift in [Drift::Linear(-0.25), Drift::Exponential(-0.6)] {
            let d = of_trends(&series(3, drift), &flat, 0.025).unwrap();
            assert!(d.interval.upper < 0.0, "{drift:?}: {d:?}");
        }
    }

    #[test]
    fn a_halving_is_minus_one_half_on_the_log_scale() {
        let d = of_trends(
            &series(4, Drift::Exponential(-0.5)),
            &series(5, Drift::None),
            0.025,
        )
        .unwrap();
        assert!((d.estimate + 0.5).abs() < 0.05, "{d:?}");
    }

    #[test]
    fn nothing_is_said_without_a_level() {
        assert!(of_trends(&[0.0; 100], &series(1, Drift::None), 0.025).is_none());
        assert!(of_trends(&[1.0, f64::NAN, 1.0, 1.0], &series(1, Drift::None), 0.025).is_none());
        assert!(of_trends(&[1.0; 3], &series(1, Drift::None), 0.025).is_none());
        assert!(welch_of_means(&[1.0], &[1.0, 2.0], 0.025).is_none());
    }
}
