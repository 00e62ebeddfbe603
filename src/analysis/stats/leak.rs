//! Leaks: a trend of troughs against a budget.
//!
//! Garbage collection and checkpoints draw saw-teeth that fool a straight line. What grows in a leak is what is left after
//! each of them: the minimum of windows at least one period long. A p value alone misleads, so a leak needs a growth over
//! a declared horizon above a declared budget. Must never judge without both.

use anyhow::{Result, ensure};
use serde::{Deserialize, Serialize};

use super::described::autocorrelation;
use super::distribution::t_upper;
use super::prais_winsten::{Fit, prais_winsten_at};
use super::series::{Interval, batch_means, constant, mean};
use super::trend::Word;

/// A period is looked for in at most so many values.
const MOST_FOR_PERIOD: usize = 5_000;
/// The head left out as allocator warm-up: this part of the run.
const WARM_UP_PART: f64 = 24.0;

/// The default window is this part of the run.
const WINDOW_PART: f64 = 36.0;

/// Fewest windows that make a line.
pub const FEWEST_WINDOWS: usize = 8;

/// What growth matters.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Limit {
    /// Seconds over which growth is told.
    pub horizon_s: f64,
    /// Growth over the horizon that is acceptable, in the units of the series.
    pub budget: f64,
}

/// Why the word is what it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Reason {
    /// Rises or falls: the growth over the horizon exceeds the budget and its interval leaves zero out.
    BeyondBudget,
    /// Flat: the interval of the growth lies within the budget.
    WithinBudget,
    /// Unclear: the interval reaches across the budget or zero.
    Wide,
    /// Unclear: fewer than eight windows of a period's length.
    Few,
    /// Described only: no horizon and budget were declared.
    NoBudget,
}

/// A minimum and when it was.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Trough {
    pub at_s: f64,
    pub value: f64,
}

/// What the troughs do.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Leak {
    pub word: Word,
    pub reason: Reason,
    pub troughs: Vec<Trough>,
    /// Length of a window in seconds.
    pub window_s: f64,
    /// The period found, in seconds; absent where there is none.
    pub period_s: Option<f64>,
    /// Growth of the troughs a second; absent below four windows.
    pub per_second: Option<f64>,
    /// Growth over the horizon with its 95 % interval; absent without a horizon.
    pub growth: Option<f64>,
    pub growth_interval: Option<Interval>,
    /// The horizon is longer than what was observed: the growth is an extrapolation.
    pub extrapolated: bool,
}

/// Judges a sampled series by its troughs. `tail` is the one-sided error rate of `flat`; `rises` uses half of it.
///
/// # Errors
/// Times and values of different length, not finite, or times that do not increase; a limit that is not positive.
pub fn judge(times_s: &[f64], values: &[f64], limit: Option<Limit>, tail: f64) -> Result<Leak> {
    super::series::finite(values)?;
    super::series::finite(times_s)?;
    ensure!(
        times_s.len() == values.len(),
        "{} times for {} values",
        times_s.len(),
        values.len()
    );
    ensure!(
        times_s.windows(2).all(|w| w[0] < w[1]),
        "the times of the samples do not increase"
    );
    if let Some(limit) = limit {
        ensure!(
            limit.horizon_s > 0.0
                && limit.budget > 0.0
                && limit.horizon_s.is_finite()
                && limit.budget.is_finite(),
            "horizon {} s and budget {} must both be positive",
            limit.horizon_s,
            limit.budget
        );
    }
    let start = times_s[0];
    let span = times_s[times_s.len() - 1] - start;
    let from = times_s.partition_point(|t| *t < start + span / WARM_UP_PART);
    let (times, values) = (&times_s[from..], &values[from..]);
    let observed = times[times.len() - 1] - times[0];
    let step = observed / (times.len().max(2) - 1) as f64;
    // Every lag is looked at, which is quadratic: a long series is looked at by its batch means.
    let batch = values.len().div_ceil(MOST_FOR_PERIOD).max(1);
    let period_s = period(&batch_means(values, batch)).map(|lag| (lag * batch) as f64 * step);
    let default = (span / WINDOW_PART).max(step);
    let window_s = period_s.unwrap_or(0.0).max(default);
    let troughs = troughs(times, values, window_s);
    let at: Vec<f64> = troughs.iter().map(|t| t.at_s).collect();
    let minima: Vec<f64> = troughs.iter().map(|t| t.value).collect();
    let line = prais_winsten_at(&at, &minima);
    let mut leak = Leak {
        word: Word::Unclear,
        reason: Reason::NoBudget,
        window_s,
        period_s,
        per_second: line.map(|fit| fit.slope),
        growth: None,
        growth_interval: None,
        extrapolated: limit.is_some_and(|limit| limit.horizon_s > observed),
        troughs,
    };
    if let Some(limit) = limit {
        leak.decide(line, limit, tail);
    }
    Ok(leak)
}

impl Leak {
    fn decide(&mut self, line: Option<Fit>, limit: Limit, tail: f64) {
        let Some(fit) = line.filter(|_| self.troughs.len() >= FEWEST_WINDOWS) else {
            self.reason = Reason::Few;
            return;
        };
        let growth = fit.slope * limit.horizon_s;
        let half = |tail: f64| t_upper(tail, fit.df) * fit.se * limit.horizon_s;
        let (wide, narrow) = (half(tail / 2.0), half(tail));
        self.growth = Some(growth);
        self.growth_interval = Some(Interval {
            lower: growth - wide,
            upper: growth + wide,
            level: 1.0 - tail,
        });
        (self.word, self.reason) = if growth - wide > 0.0 && growth > limit.budget {
            (Word::Rises, Reason::BeyondBudget)
        } else if growth + wide < 0.0 && growth < -limit.budget {
            (Word::Falls, Reason::BeyondBudget)
        } else if growth + narrow < limit.budget && growth - narrow > -limit.budget {
            (Word::Flat, Reason::WithinBudget)
        } else {
            (Word::Unclear, Reason::Wide)
        };
    }
}

/// The minimum of each whole window of `window_s` seconds, with its time; a last partial window is left out.
pub fn troughs(times_s: &[f64], values: &[f64], window_s: f64) -> Vec<Trough> {
    let Some(first) = times_s.first().copied() else {
        return Vec::new();
    };
    if window_s.is_nan() || window_s <= 0.0 {
        return Vec::new();
    }
    // A window is whole when the samples go on to its end; half a sampling step is the slack of a regular sampler.
    let last = times_s[times_s.len() - 1];
    let step = (last - first) / (times_s.len().max(2) - 1) as f64;
    let mut found: Vec<(usize, Trough)> = Vec::new();
    for (at_s, value) in times_s.iter().copied().zip(values.iter().copied()) {
        let window = ((at_s - first) / window_s + 1e-9).floor() as usize;
        match found.last_mut() {
            Some((index, lowest)) if *index == window => {
                if value < lowest.value {
                    *lowest = Trough { at_s, value };
                }
            }
            _ => found.push((window, Trough { at_s, value })),
        }
    }
    found
        .into_iter()
        .filter(|(index, _)| (*index as f64 + 1.0) * window_s <= last - first + 1.5 * step)
        .map(|(_, trough)| trough)
        .collect()
}

/// The longest period of a series in samples: the highest peak of the autocorrelation around its line, beyond the first
/// sign change and beyond what white noise shows (2/sqrt(n)); of peaks nearly as high the first, since multiples of a
/// period repeat it. `None` where there is none.
pub fn period(values: &[f64]) -> Option<usize> {
    let n = values.len();
    if n < 16 || constant(values) {
        return None;
    }
    let around = detrended(values);
    let acf: Vec<f64> = (0..n / 2)
        .map(|lag| autocorrelation(&around, lag))
        .collect();
    let crossing = acf.iter().position(|r| *r < 0.0)?;
    let peaks: Vec<usize> = (crossing.max(1)..acf.len() - 1)
        .filter(|lag| {
            acf[*lag] >= acf[lag - 1]
                && acf[*lag] > acf[lag + 1]
                && acf[*lag] > 2.0 / (n as f64).sqrt()
        })
        .collect();
    let highest = peaks.iter().map(|lag| acf[*lag]).fold(0.0, f64::max);
    peaks.into_iter().find(|lag| acf[*lag] >= 0.8 * highest)
}

/// Residuals around the least-squares line.
fn detrended(values: &[f64]) -> Vec<f64> {
    let middle = (values.len() as f64 - 1.0) / 2.0;
    let centre = mean(values);
    let (mut xy, mut xx) = (0.0, 0.0);
    for (t, v) in values.iter().enumerate() {
        let x = t as f64 - middle;
        xy += x * (v - centre);
        xx += x * x;
    }
    values
        .iter()
        .enumerate()
        .map(|(t, v)| v - centre - xy / xx * (t as f64 - middle))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::super::simulate::Simulation;
    use super::*;

    /// Memory in MiB each 10 s: a saw-tooth of 20 samples and 40 MiB, a leak an hour, a little noise.
    fn memory(n: usize, leak_per_hour: f64) -> (Vec<f64>, Vec<f64>) {
        let mut noise = Simulation::new(3, 0);
        (0..n)
            .map(|t| {
                let at = 10.0 * t as f64;
                (
                    at,
                    300.0
                        + 2.0 * (t % 20) as f64
                        + leak_per_hour * at / 3_600.0
                        + 0.5 * noise.normal(),
                )
            })
            .unzip()
    }

    const HOUR: Limit = Limit {
        horizon_s: 3_600.0,
        budget: 4.0,
    };

    #[test]
    fn a_leak_under_a_saw_tooth_is_found_and_a_saw_tooth_alone_is_not() {
        let (times, leaking) = memory(1_080, 10.0);
        let found = judge(&times, &leaking, Some(HOUR), 0.05).unwrap();
        assert_eq!(
            (found.word, found.reason),
            (Word::Rises, Reason::BeyondBudget),
            "{found:?}"
        );
        assert!((found.growth.unwrap() - 10.0).abs() < 1.0);
        assert!((found.period_s.unwrap() - 200.0).abs() <= 10.0);
        let (times, healthy) = memory(1_080, 0.0);
        let found = judge(&times, &healthy, Some(HOUR), 0.05).unwrap();
        assert_eq!(
            (found.word, found.reason),
            (Word::Flat, Reason::WithinBudget),
            "{found:?}"
        );
    }

    #[test]
    fn a_growth_within_the_budget_is_no_leak_however_sure() {
        let (times, slow) = memory(1_080, 1.0);
        let found = judge(&times, &slow, Some(HOUR), 0.05).unwrap();
        assert!(found.growth_interval.unwrap().lower > 0.0, "{found:?}");
        assert_eq!(found.word, Word::Flat);
    }

    #[test]
    fn what_shrinks_falls() {
        let (times, leaking) = memory(1_080, -10.0);
        assert_eq!(
            judge(&times, &leaking, Some(HOUR), 0.05).unwrap().word,
            Word::Falls
        );
    }

    #[test]
    fn without_horizon_and_budget_memory_is_described() {
        let (times, leaking) = memory(1_080, 10.0);
        let found = judge(&times, &leaking, None, 0.05).unwrap();
        assert_eq!(
            (found.word, found.reason, found.growth),
            (Word::Unclear, Reason::NoBudget, None)
        );
        assert!((found.per_second.unwrap() * 3_600.0 - 10.0).abs() < 1.0);
    }

    #[test]
    fn seven_windows_are_few() {
        let times: Vec<f64> = (0..150).map(|t| 10.0 * f64::from(t)).collect();
        // Period 20 samples in 144: seven windows.
        let values: Vec<f64> = (0..150).map(|t| f64::from(t % 20) + f64::from(t)).collect();
        let found = judge(&times, &values, Some(HOUR), 0.05).unwrap();
        assert!(
            found.troughs.len() < FEWEST_WINDOWS,
            "{}",
            found.troughs.len()
        );
        assert_eq!((found.word, found.reason), (Word::Unclear, Reason::Few));
        assert!(found.extrapolated);
    }

    #[test]
    fn the_first_part_is_allocator_warm_up() {
        let (times, mut values) = memory(1_080, 0.0);
        values[..45].fill(1.0);
        let found = judge(&times, &values, Some(HOUR), 0.05).unwrap();
        assert!(
            found
                .troughs
                .iter()
                .all(|t| t.value > 200.0 && t.at_s >= 450.0)
        );
        assert_eq!(found.word, Word::Flat);
    }

    #[test]
    fn noise_has_no_period_and_a_constant_has_none() {
        let mut noise = Simulation::new(8, 0);
        let slow: Vec<f64> = (0..40).map(|_| noise.normal()).collect();
        assert!(period(&[1.0; 100]).is_none() && period(&slow[..10]).is_none());
        let found = judge(
            &(0..100).map(f64::from).collect::<Vec<_>>(),
            &[5.0; 100],
            Some(HOUR),
            0.05,
        )
        .unwrap();
        assert_eq!(found.word, Word::Flat);
    }

    #[test]
    fn what_is_no_series_is_refused() {
        assert!(judge(&[0.0, 0.0], &[1.0, 2.0], None, 0.05).is_err());
        assert!(judge(&[0.0], &[1.0, 2.0], None, 0.05).is_err());
        assert!(judge(&[], &[], None, 0.05).is_err());
        let bad = Limit {
            horizon_s: 0.0,
            budget: 1.0,
        };
        assert!(judge(&[0.0, 1.0], &[1.0, 2.0], Some(bad), 0.05).is_err());
        assert!(judge(&[0.0], &[1.0], Some(HOUR), 0.05).is_ok());
    }

    #[test]
    fn an_offset_of_time_changes_nothing() {
        let (times, leaking) = memory(500, 10.0);
        let later: Vec<f64> = times.iter().map(|t| t + 1e6).collect();
        let (a, b) = (
            judge(&times, &leaking, Some(HOUR), 0.05).unwrap(),
            judge(&later, &leaking, Some(HOUR), 0.05).unwrap(),
        );
        assert_eq!(a.word, b.word);
        assert!((a.growth.unwrap() - b.growth.unwrap()).abs() < 1e-6);
    }
}
