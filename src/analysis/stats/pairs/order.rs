//! The order of runs, and what a drift of the machine does to it.
//!
//! Quartets ABBA or BAAB cancel a linear drift; their contrasts are the replicates where there are three or more. Below
//! that adjacent pairs are. Must never average an arm's runs over a drift.

use anyhow::{Result, ensure};
use serde::{Deserialize, Serialize};

use super::super::distribution::{t_two_sided, t_upper};
use super::super::series::Interval;
use super::{Paired, paired};

/// Fewest quartets whose contrasts are replicates.
const FEWEST_QUARTETS: usize = 3;

/// Which arm a run was, here without a name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Arm {
    Treatment,
    Control,
}

/// One run: its arm and the natural logarithm of its figure.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Run {
    pub arm: Arm,
    pub log: f64,
}

/// The arms of `pairs` pairs in order: quartets ABBA whose first letters follow Thue and Morse, so that ABBA is followed
/// by BAAB and a curved drift cancels too. `first` is drawn by the caller.
pub fn sequence(pairs: usize, first: Arm) -> Vec<Arm> {
    let other = match first {
        Arm::Treatment => Arm::Control,
        Arm::Control => Arm::Treatment,
    };
    (0..2 * pairs)
        .map(|slot: usize| {
            if slot.count_ones().is_multiple_of(2) {
                first
            } else {
                other
            }
        })
        .collect()
}

/// (control + control − treatment − treatment)/2 of consecutive quartets; `None` unless all runs form balanced quartets
/// whose outer two are one arm and whose inner two the other.
pub fn quartets(runs: &[Run]) -> Option<Vec<f64>> {
    if runs.is_empty() || !runs.len().is_multiple_of(4) {
        return None;
    }
    runs.chunks_exact(4)
        .map(|q| {
            let mirrored = q[0].arm == q[3].arm && q[1].arm == q[2].arm && q[0].arm != q[1].arm;
            mirrored.then(|| q.iter().map(signed).sum::<f64>() / 2.0)
        })
        .collect()
}

/// Control − treatment of consecutive pairs.
///
/// # Errors
/// A pair that holds the same arm twice, or a run left over.
pub fn adjacent_pairs(runs: &[Run]) -> Result<Vec<f64>> {
    ensure!(
        runs.len().is_multiple_of(2),
        "{} runs do not form pairs: leave the incomplete pair out",
        runs.len()
    );
    runs.chunks_exact(2)
        .enumerate()
        .map(|(index, pair)| {
            ensure!(
                pair[0].arm != pair[1].arm,
                "pair {} holds the same arm twice",
                index + 1
            );
            Ok(pair.iter().map(signed).sum())
        })
        .collect()
}

/// The log ratios to analyse: quartet contrasts from three quartets on, adjacent pairs below; and whether they are quartets.
///
/// # Errors
/// As [`adjacent_pairs`].
pub fn replicates(runs: &[Run]) -> Result<(Vec<f64>, bool)> {
    match quartets(runs) {
        Some(contrasts) if contrasts.len() >= FEWEST_QUARTETS => Ok((contrasts, true)),
        _ => Ok((adjacent_pairs(runs)?, false)),
    }
}

fn signed(run: &Run) -> f64 {
    match run.arm {
        Arm::Control => run.log,
        Arm::Treatment => -run.log,
    }
}

/// ln(second run/first run) over the pairs: what running first or second does, whichever arm it is.
///
/// # Errors
/// As [`adjacent_pairs`], and no pair at all.
pub fn order_effect(runs: &[Run], tail: f64) -> Result<Paired> {
    adjacent_pairs(runs)?;
    let d: Vec<f64> = runs
        .chunks_exact(2)
        .map(|pair| pair[1].log - pair[0].log)
        .collect();
    paired(&d, tail)
}

/// Effect and drift fitted together by least squares: log = level + effect (control) + drift x slot.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct DriftModel {
    /// Control − treatment on logarithms.
    pub effect: f64,
    /// Change of the logarithm a slot.
    pub drift: f64,
    /// Standard error of the effect.
    pub se: f64,
    pub interval: Interval,
    pub df: f64,
    /// Two-sided p of the effect.
    pub p: f64,
}

/// Fits [`DriftModel`]. `None` below 4 runs or where the arms and the slots cannot be told apart.
pub fn drift_model(runs: &[Run], tail: f64) -> Option<DriftModel> {
    let n = runs.len();
    if n < 4 {
        return None;
    }
    // Centring removes the level; two regressors are left.
    let slot = |t: usize| t as f64 - (n as f64 - 1.0) / 2.0;
    let control = |run: &Run| f64::from(run.arm == Arm::Control);
    let share = runs.iter().map(control).sum::<f64>() / n as f64;
    let level = runs.iter().map(|r| r.log).sum::<f64>() / n as f64;
    let (mut aa, mut ab, mut bb, mut ay, mut by) = (0.0, 0.0, 0.0, 0.0, 0.0);
    for (t, run) in runs.iter().enumerate() {
        let (a, b, y) = (control(run) - share, slot(t), run.log - level);
        aa += a * a;
        ab += a * b;
        bb += b * b;
        ay += a * y;
        by += b * y;
    }
    let determinant = aa * bb - ab * ab;
    if determinant <= 1e-12 * aa * bb {
        return None;
    }
    let effect = (bb * ay - ab * by) / determinant;
    let drift = (aa * by - ab * ay) / determinant;
    let squares: f64 = runs
        .iter()
        .enumerate()
        .map(|(t, run)| {
            (run.log - level - effect * (control(run) - share) - drift * slot(t)).powi(2)
        })
        .sum();
    let df = n as f64 - 3.0;
    let se = (squares / df * bb / determinant).sqrt();
    let half = if se > 0.0 {
        t_upper(tail, df) * se
    } else {
        0.0
    };
    let p = if se > 0.0 {
        t_two_sided(effect / se, df)
    } else {
        f64::from(effect == 0.0)
    };
    Some(DriftModel {
        effect,
        drift,
        se,
        interval: Interval {
            lower: effect - half,
            upper: effect + half,
            level: 1.0 - 2.0 * tail,
        },
        df,
        p,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn letters(arms: &[Arm]) -> String {
        arms.iter()
            .map(|arm| if *arm == Arm::Treatment { 'A' } else { 'B' })
            .collect()
    }

    /// Runs in the order of the letters, drifting by `drift` a slot, the control (B) higher by `effect`.
    fn runs(letters: &str, drift: f64, effect: f64) -> Vec<Run> {
        letters
            .chars()
            .enumerate()
            .map(|(t, letter)| {
                let arm = if letter == 'B' {
                    Arm::Control
                } else {
                    Arm::Treatment
                };
                Run {
                    arm,
                    log: 9.0 + drift * t as f64 + if arm == Arm::Control { effect } else { 0.0 },
                }
            })
            .collect()
    }

    #[test]
    fn quartets_follow_thue_and_morse() {
        assert_eq!(letters(&sequence(8, Arm::Treatment)), "ABBABAABBAABABBA");
        assert_eq!(letters(&sequence(2, Arm::Control)), "BAAB");
        assert_eq!(letters(&sequence(1, Arm::Control)), "BA");
        assert!(sequence(0, Arm::Control).is_empty());
    }

    #[test]
    fn quartets_cancel_a_drift_and_blocks_do_not() {
        let contrasts = quartets(&runs("ABBABAABABBA", -0.01, 0.06)).unwrap();
        assert_eq!(contrasts.len(), 3);
        assert!(
            contrasts.iter().all(|c| (c - 0.06).abs() < 1e-12),
            "{contrasts:?}"
        );
        assert!(
            quartets(&runs("AABB", 0.0, 0.0)).is_none()
                && quartets(&runs("ABAB", 0.0, 0.0)).is_none()
        );
        assert!(quartets(&runs("ABBAAB", 0.0, 0.0)).is_none() && quartets(&[]).is_none());
        assert!(quartets(&runs("AAAA", 0.0, 0.0)).is_none());
    }

    #[test]
    fn two_quartets_are_read_as_four_pairs() {
        let (d, by_quartet) = replicates(&runs("ABBABAAB", -0.01, 0.06)).unwrap();
        assert_eq!((d.len(), by_quartet), (4, false));
        let (d, by_quartet) = replicates(&runs("ABBABAABABBA", -0.01, 0.06)).unwrap();
        assert_eq!((d.len(), by_quartet), (3, true));
        assert!(
            replicates(&runs("AAB", 0.0, 0.0)).is_err()
                && replicates(&runs("AABB", 0.0, 0.0)).is_err()
        );
    }

    #[test]
    fn the_order_effect_is_what_the_second_run_gains() {
        let effect = order_effect(&runs("ABBAABBA", 0.02, 0.5), 0.025).unwrap();
        assert!((effect.mean_log - 0.02).abs() < 1e-12);
        assert!(order_effect(&[], 0.025).is_err());
    }

    #[test]
    fn effect_and_drift_are_told_apart_where_the_order_allows() {
        let fit = drift_model(&runs("ABBABAAB", -0.01, 0.06), 0.025).unwrap();
        assert!((fit.effect - 0.06).abs() < 1e-12 && (fit.drift + 0.01).abs() < 1e-12);
        assert!(drift_model(&runs("AAAA", -0.01, 0.0), 0.025).is_none());
        assert!(drift_model(&runs("ABB", 0.0, 0.0), 0.025).is_none());
    }
}
