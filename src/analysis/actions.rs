//! Figures of actions, and of the starts that they lead to.

use std::collections::BTreeMap;

use super::arm::ArmRuns;
use super::figures::Figures;
use super::recovery::Recoveries;
use super::stats::quantile::fewest;
use super::summary::{ActionResult, MemoryAround};
use crate::experiment::{ActionKind, Experiment};
use crate::figure::SPREAD;

/// Executions of actions, and their figures.
pub(super) fn figures(
    experiment: &Experiment,
    arms: &[ArmRuns<'_>],
    figures: &mut Figures,
) -> Vec<ActionResult> {
    let mut all = Vec::new();
    for runs in arms {
        let setup = experiment.arms.get(runs.arm);
        let mut own: Vec<ActionResult> = Vec::new();
        for run in &runs.runs {
            own.extend(Recoveries::of(&run.measured, setup).executions);
        }
        for action in &setup.actions {
            let of: Vec<&ActionResult> = own.iter().filter(|a| a.name == action.name).collect();
            let base = format!("{}.actions.{}", runs.arm, action.figure);
            let name = |rest: &str| format!("{base}.{rest}");
            let done = of.iter().filter(|a| a.ok).count();
            figures.number(name("done"), done as f64);
            figures.number(name("failed"), (of.len() - done) as f64);
            let failed: u64 = of.iter().flat_map(|a| a.failed.values()).sum();
            figures.number(name("failed_requests"), failed as f64);
            let slow: u64 = of.iter().map(|a| a.slow_seconds).sum();
            figures.number(name("slow_seconds"), slow as f64);
            if matches!(action.what, ActionKind::Clients { .. }) {
                figures.absent(
                    name("recovery_ms"),
                    "a burst of clients is load: nothing is recovered from it",
                );
                let rates: Option<Vec<f64>> = of.iter().map(|a| a.throughput).collect();
                figures.maybe(name("throughput"), mean(rates.as_deref()), || {
                    "it was not executed, or shorter than a second".to_owned()
                });
            } else {
                let recoveries: Option<Vec<f64>> = of.iter().map(|a| a.recovery_ms).collect();
                figures.absent(
                    name("throughput"),
                    "only a burst of clients has a throughput of its own",
                );
                spread(figures, &name("recovery_ms"), recoveries.as_deref(), || {
                    "it was not executed, or no ok answer came after one of its executions"
                        .to_owned()
                });
            }
            memory(figures, &base, &of);
        }
        all.extend(own);
    }
    all
}

fn mean(values: Option<&[f64]>) -> Option<f64> {
    let values = values.filter(|values| !values.is_empty())?;
    Some(values.iter().sum::<f64>() / values.len() as f64)
}

/// The mean of some values under `name`, and their spread below it: order statistics, none below its smallest n.
pub(super) fn spread(
    figures: &mut Figures,
    name: &str,
    values: Option<&[f64]>,
    reason: impl FnOnce() -> String,
) {
    let Some(values) = values.filter(|values| !values.is_empty()) else {
        figures.absent(name, reason());
        return;
    };
    figures.maybe(name, mean(Some(values)), reason);
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    for which in SPREAD {
        let own = format!("{name}.{which}");
        let q = match which {
            "min" => 0.0,
            "p50" => 0.5,
            "p90" => 0.9,
            _ => 1.0,
        };
        let needed = if q > 0.0 && q < 1.0 {
            fewest(q, 0.025)
        } else {
            1
        };
        let rank = ((sorted.len() as f64 * q).ceil() as usize).max(1);
        let value = sorted
            .get(rank - 1)
            .copied()
            .filter(|_| sorted.len() as u64 >= needed);
        figures.maybe(own, value, || {
            format!(
                "n too small: {} values, and {which} needs {needed}",
                sorted.len()
            )
        });
    }
}

/// Changes of memory: a mean over executions, and the share of what they added at most that came back by the end.
fn memory(figures: &mut Figures, base: &str, of: &[&ActionResult]) {
    const NONE: &str = "no two readings of one life of the service stand around it";
    for instrument in ["rss", "cgroup"] {
        let mut pairs: BTreeMap<u32, Vec<&MemoryAround>> = BTreeMap::new();
        for action in of {
            let around = action.memory.iter().filter(|m| m.instrument == instrument);
            pairs.entry(action.pair).or_default().extend(around);
        }
        let changes: Vec<f64> = pairs
            .values()
            .flatten()
            .map(|m| m.after - m.before)
            .collect();
        let name = |rest: &str| format!("{base}.{instrument}_{rest}");
        figures.maybe(name("change"), mean(Some(&changes)), || NONE.to_owned());
        let (mut added, mut returned) = (0.0, 0.0);
        for around in pairs.values() {
            let most = around.iter().map(|m| m.most).reduce(f64::max);
            if let (Some(first), Some(last), Some(most)) = (around.first(), around.last(), most) {
                added += most - first.before;
                returned += most - last.after;
            }
        }
        let share = (added > 0.0).then(|| returned / added);
        figures.maybe(name("returned"), share, || match changes.is_empty() {
            true => NONE.to_owned(),
            false => "it added nothing that could come back".to_owned(),
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::figure::Value;

    #[test]
    fn a_spread_has_no_quantile_below_its_smallest_n() {
        let mut figures = Figures::default();
        let ten: Vec<f64> = (1..=10).rev().map(f64::from).collect();
        spread(&mut figures, "x", Some(&ten), String::new);
        let number = |name: &str| match figures.value(name) {
            Some(Value::Number(number)) => Some(number),
            _ => None,
        };
        assert_eq!(number("x"), Some(5.5));
        assert_eq!(number("x.min"), Some(1.0));
        assert_eq!(number("x.p50"), Some(5.0));
        assert_eq!(number("x.p90"), None);
        assert!(figures.why_absent("x.p90").unwrap().contains("36"));
        assert_eq!(number("x.max"), Some(10.0));
    }

    #[test]
    fn what_was_never_executed_has_a_reason_and_no_figure() {
        let mut figures = Figures::default();
        spread(&mut figures, "x", Some(&[]), || "never".to_owned());
        spread(&mut figures, "y", None, || "never".to_owned());
        assert!(figures.values.is_empty());
        assert_eq!(figures.why_absent("x.p50"), Some("never"));
        assert_eq!(figures.why_absent("y"), Some("never"));
    }
}
