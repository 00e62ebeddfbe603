//! What can be said between the arms: ratios, the difference of trends, and whether they exceed what two runs of one arm
//! differ by.
//!
//! One pair allows its own trends and their difference, never "x % faster" unless the ratio is beyond 3 √2 of the run-to-run
//! standard deviation. Where that was not measured, the sentence says so.

use serde::{Deserialize, Serialize};

use super::arm::ArmRuns;
use super::figures::{self, Figures, brief, percent};
use super::observed::Observed;
use super::stats::pairs::{self as paired_runs, Paired, one_pair_differs};
use super::stats::{bins, difference, distribution, null, series};
use super::summary::{Between, PairSummary, Summary};
use crate::name::{Arm, Arms};

/// One complete pair.
#[derive(Debug, Clone, Copy)]
pub(super) struct Pair<'o, 'r> {
    pub(super) pair: u32,
    pub(super) first: Arm,
    pub(super) treatment: &'o Observed<'r>,
    pub(super) control: &'o Observed<'r>,
}

/// What a null experiment measured, as a later run cites it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct NullRun {
    /// Its run's name.
    pub id: String,
    /// Upper 90 % bound of the run-to-run standard deviation of the last window's log throughput.
    pub sigma_last: f64,
    /// The same of the whole run's mean.
    pub sigma_mean: f64,
    /// Its pairs.
    pub pairs: usize,
}

impl NullRun {
    /// What a judged null experiment measured. `None` when it is none, is not valid, was shortened, or has fewer than three
    /// pairs.
    pub fn of(summary: &Summary) -> Option<Self> {
        if !summary.run.null || summary.run.smoke || !summary.validity.valid {
            return None;
        }
        let upper = |of: fn(&PairSummary) -> &Arms<Option<f64>>| -> Option<f64> {
            let logs: Option<Vec<f64>> = summary
                .pairs
                .iter()
                .map(|pair| {
                    let rates = of(pair);
                    let rates = Arms {
                        treatment: rates.treatment?,
                        control: rates.control?,
                    };
                    Some(ratio(rates)?.ln())
                })
                .collect();
            Some(null::study(&logs?).ok()?.run_sd.upper)
        };
        Some(Self {
            id: summary.run.id.clone(),
            sigma_last: upper(|pair| &pair.last)?,
            sigma_mean: upper(|pair| &pair.mean)?,
            pairs: summary.pairs.len(),
        })
    }
}

/// Where the run-to-run standard deviation is from.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct RunSd {
    pub(super) last: f64,
    pub(super) mean: f64,
    pub(super) source: String,
}

/// The newest null run's upper bound, else what the file declares.
pub(super) fn run_sd(declared: Option<f64>, null_runs: &[NullRun]) -> Option<RunSd> {
    let measured = null_runs.iter().max_by(|a, b| a.id.cmp(&b.id));
    match measured {
        Some(null) => Some(RunSd {
            last: null.sigma_last,
            mean: null.sigma_mean,
            source: format!("null run {} ({} pairs, upper bound)", null.id, null.pairs),
        }),
        None => declared.map(|sd| RunSd {
            last: sd,
            mean: sd,
            source: "declared in the file, not measured".to_owned(),
        }),
    }
}

/// Complete pairs in order.
pub(super) fn complete<'o, 'r>(arms: &'o [ArmRuns<'r>], order: &[(u32, Arm)]) -> Vec<Pair<'o, 'r>> {
    let of = |arm: Arm, pair: u32| {
        arms.iter()
            .find(|runs| runs.arm == arm)
            .and_then(|runs| runs.runs.iter().find(|r| r.measured.trial.pair == pair))
    };
    let mut pairs: Vec<Pair<'o, 'r>> = Vec::new();
    for &(pair, first) in order {
        if pairs.iter().any(|p| p.pair == pair) {
            continue;
        }
        if let (Some(treatment), Some(control)) = (of(Arm::Treatment, pair), of(Arm::Control, pair))
        {
            pairs.push(Pair {
                pair,
                first,
                treatment,
                control,
            });
        }
    }
    pairs
}

impl Pair<'_, '_> {
    /// The measured time that both arms have.
    fn common_s(&self) -> f64 {
        self.treatment
            .measured
            .seconds
            .min(self.control.measured.seconds)
    }

    fn means(&self) -> Option<Arms<f64>> {
        let s = self.common_s();
        Some(Arms {
            treatment: self.treatment.measured.mean_until(s)?,
            control: self.control.measured.mean_until(s)?,
        })
    }

    /// Rates of the last whole window that both arms have.
    fn last(&self) -> Option<Arms<f64>> {
        let rate = |run: &Observed<'_>| {
            let m = &run.measured;
            let n = self
                .treatment
                .measured
                .whole_windows
                .min(self.control.measured.whole_windows);
            (n >= 2).then(|| m.windows[n - 1].throughput)
        };
        Some(Arms {
            treatment: rate(self.treatment)?,
            control: rate(self.control)?,
        })
    }

    /// How far the first windows lie apart: control ÷ treatment − 1.
    pub(super) fn start_differs_by(&self) -> Option<f64> {
        let rate = |run: &Observed<'_>| Some(run.measured.first_window()?.throughput);
        let treatment = rate(self.treatment).filter(|r| *r > 0.0)?;
        Some(rate(self.control)? / treatment - 1.0)
    }
}

fn ratio(rates: Arms<f64>) -> Option<f64> {
    (rates.treatment > 0.0 && rates.control > 0.0).then(|| rates.control / rates.treatment)
}

/// One row a pair.
pub(super) fn pairs(arms: &[ArmRuns<'_>], order: &[(u32, Arm)]) -> Vec<PairSummary> {
    let mut rows: Vec<PairSummary> = Vec::new();
    for &(pair, first) in order {
        if rows.iter().any(|row| row.pair == pair) {
            continue;
        }
        let run = |arm: Arm| {
            arms.iter()
                .find(|runs| runs.arm == arm)
                .and_then(|runs| runs.runs.iter().find(|r| r.measured.trial.pair == pair))
        };
        let both = Arms {
            treatment: run(Arm::Treatment),
            control: run(Arm::Control),
        };
        rows.push(PairSummary {
            pair,
            first,
            mean: both.map(|_, r| r.and_then(|r| r.measured.mean())),
            last: both.map(|_, r| Some(r.as_ref()?.measured.last_window()?.throughput)),
            trend: both.map(|_, r| Some(r.as_ref()?.throughput.finding.word)),
        });
    }
    rows
}

/// One rate of each arm of a pair.
type Rates = dyn Fn(&Pair<'_, '_>) -> Option<Arms<f64>>;

/// Log ratios control ÷ treatment, by quartets where there are enough, and their estimate.
fn estimate(pairs: &[Pair<'_, '_>], rates: &Rates, alpha: f64) -> Option<(Vec<f64>, Paired)> {
    let mut runs = Vec::with_capacity(2 * pairs.len());
    for pair in pairs {
        let rates = rates(pair)?;
        ratio(rates)?;
        for arm in [pair.first, pair.first.other()] {
            runs.push(paired_runs::Run {
                arm: match arm {
                    Arm::Treatment => paired_runs::Arm::Treatment,
                    Arm::Control => paired_runs::Arm::Control,
                },
                log: rates.get(arm).ln(),
            });
        }
    }
    let estimate = paired_runs::of_runs(&runs, alpha / 2.0).ok()?;
    let logs = paired_runs::adjacent_pairs(&runs).ok()?;
    Some((logs, estimate))
}

/// Studies the pairs of a null experiment by their whole-run means; absent with fewer than three pairs.
fn null_study(pairs: &[Pair<'_, '_>]) -> Option<null::NullStudy> {
    let logs: Option<Vec<f64>> = pairs
        .iter()
        .map(|pair| Some(ratio(pair.means()?)?.ln()))
        .collect();
    null::study(&logs?).ok()
}

/// Judges between the arms. `None` without a complete pair.
pub(super) fn judge(
    pairs: &[Pair<'_, '_>],
    sd: Option<&RunSd>,
    is_null: bool,
    alpha: f64,
) -> Option<Between> {
    let k = pairs.len();
    if k == 0 {
        return None;
    }
    let last = estimate(pairs, &|p| p.last(), alpha);
    let mean = estimate(pairs, &|p| p.means(), alpha);
    let beyond = |found: &Option<(Vec<f64>, Paired)>, sd: Option<f64>| {
        let (_, estimate) = found.as_ref()?;
        Some(one_pair_differs(estimate.mean_log, sd?))
    };
    let trend_difference = match pairs {
        [only] => trend_difference(only, alpha),
        several => mean_trend_difference(several, alpha),
    };
    let several = mean.as_ref().filter(|_| k > 1).map(|(_, e)| e);
    let own = if is_null { null_study(pairs) } else { None };
    Some(Between {
        pairs: k,
        ratio_last: last.as_ref().map(|(_, e)| e.ratio),
        ratio_mean: mean.as_ref().map(|(_, e)| e.ratio),
        ratio_ci95: several
            .and_then(|e| e.ratio_interval)
            .map(|i| [i.lower, i.upper]),
        sign_flip_p: several.and_then(|e| e.sign_flip_p),
        trend_difference,
        trends_differ: trend_difference.is_some_and(|[_, low, high]| low > 0.0 || high < 0.0),
        run_sd: match own {
            Some(study) => Some(study.run_sd.upper),
            None => sd.map(|sd| sd.mean),
        },
        run_sd_source: match own {
            Some(_) => Some(format!("this null experiment ({k} pairs, upper bound)")),
            None => sd.map(|sd| sd.source.clone()),
        },
        beyond_noise_last: beyond(&last, sd.map(|sd| sd.last)),
        beyond_noise_mean: beyond(&mean, sd.map(|sd| sd.mean)),
        wording: wording(k, sd, last.as_ref(), several, own.as_ref(), is_null),
    })
}

/// The difference of the trends of one pair, over the time that both have, in equal bins.
fn trend_difference(pair: &Pair<'_, '_>, alpha: f64) -> Option<[f64; 3]> {
    let common = pair.common_s().floor() as usize;
    let width = bins::width(common as u64) as usize;
    let of = |run: &Observed<'_>| {
        let ok = &run.measured.ok;
        bins::sums(&ok[..common.min(ok.len())], width)
    };
    let found = difference::of_trends(&of(pair.treatment), &of(pair.control), alpha / 2.0)?;
    Some([found.estimate, found.interval.lower, found.interval.upper])
}

/// The mean of the pairs' differences with its t interval: each pair is one replicate.
fn mean_trend_difference(pairs: &[Pair<'_, '_>], alpha: f64) -> Option<[f64; 3]> {
    let each: Option<Vec<f64>> = pairs
        .iter()
        .map(|pair| Some(trend_difference(pair, alpha)?[0]))
        .collect();
    let each = each?;
    let k = each.len() as f64;
    let mean = series::mean(&each);
    let half = distribution::t_upper(alpha / 2.0, k - 1.0) * (series::variance(&each) / k).sqrt();
    half.is_finite().then_some([mean, mean - half, mean + half])
}

fn wording(
    k: usize,
    sd: Option<&RunSd>,
    last: Option<&(Vec<f64>, Paired)>,
    several: Option<&Paired>,
    own: Option<&null::NullStudy>,
    is_null: bool,
) -> String {
    if let Some(study) = own {
        return format!(
            "the same arm ran twice in each of {k} pairs: runs differ by a standard deviation of {} (upper bound {}); one pair can show differences of {} and more; the control had the higher rate in {} and the lower in {} of the pairs",
            percent(study.run_sd.estimate),
            percent(study.run_sd.upper),
            percent(study.smallest_effect_one_pair),
            study.signs.positive,
            study.signs.negative,
        );
    }
    if is_null {
        return format!(
            "the same arm ran twice in {k} pairs; 3 pairs are the fewest that measure run-to-run variation"
        );
    }
    let Some(several) = several else {
        return match (sd, last) {
            (None, Some((_, estimate))) => format!(
                "control ÷ treatment, throughput of the last window: {} in this one pair; run-to-run variation was not measured",
                figures::ratio(estimate.ratio)
            ),
            (None, None) => "in this one pair; run-to-run variation was not measured".to_owned(),
            (Some(sd), Some((_, estimate))) => format!(
                "control ÷ treatment, throughput of the last window: {} in this one pair, which is {} 3 √2 times the run-to-run standard deviation of {} ({})",
                figures::ratio(estimate.ratio),
                if one_pair_differs(estimate.mean_log, sd.last) {
                    "beyond"
                } else {
                    "not beyond"
                },
                percent(sd.last),
                sd.source
            ),
            (Some(sd), None) => format!(
                "in this one pair; the last windows could not be compared; the run-to-run standard deviation is {} ({})",
                percent(sd.mean),
                sd.source
            ),
        };
    };
    let interval = several.ratio_interval.map_or(String::new(), |i| {
        format!(
            ", 95 % interval {} to {}",
            figures::ratio(i.lower),
            figures::ratio(i.upper)
        )
    });
    let p = several.sign_flip_p.map_or(String::new(), |p| {
        format!(", exact sign-flip p {}", brief(p))
    });
    let direction = format!(
        "same direction in {} of {}",
        several.same_direction, several.k
    );
    if several.enough_for_claim {
        format!(
            "over {k} pairs control ÷ treatment is {}{interval}{p}; {direction}",
            figures::ratio(several.ratio)
        )
    } else {
        format!(
            "over {k} pairs control ÷ treatment is {}{interval}; too few pairs for more than: {direction}",
            figures::ratio(several.ratio)
        )
    }
}

/// Whether all of at least six pairs have one sign.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct OneSign {
    /// On the last windows.
    pub(super) last: bool,
    /// On whole-run means.
    pub(super) mean: bool,
}

/// Six of six by chance have one sign in 1 of 32 runs.
const FEWEST_FOR_SIGN: usize = 6;

/// Looks at the sign of each pair's log ratio.
pub(super) fn one_sign(pairs: &[Pair<'_, '_>]) -> OneSign {
    let all = |rates: &Rates| {
        let logs: Option<Vec<f64>> = pairs
            .iter()
            .map(|pair| Some(ratio(rates(pair)?)?.ln()))
            .collect();
        logs.is_some_and(|l| {
            l.len() >= FEWEST_FOR_SIGN && (l.iter().all(|x| *x > 0.0) || l.iter().all(|x| *x < 0.0))
        })
    };
    OneSign {
        last: all(&|p| p.last()),
        mean: all(&|p| p.means()),
    }
}

/// Adds the figures that belong to no arm.
pub(super) fn figures(between: Option<&Between>, figures: &mut Figures) {
    let Some(between) = between else {
        figures.absent("ratio", "there is no complete pair");
        return;
    };
    figures.maybe("ratio.throughput", between.ratio_mean, || {
        "an arm had no ok request".to_owned()
    });
    let ci = between.ratio_ci95;
    let one = || "one pair has no interval".to_owned();
    figures.maybe("ratio.throughput.low", ci.map(|c| c[0]), one);
    figures.maybe("ratio.throughput.high", ci.map(|c| c[1]), one);
}
