//! Memory: described, unless a horizon and a budget are declared; then judged by its troughs.
//!
//! A saw-tooth of garbage collection fools a straight line, so memory never goes through the rule of the other series.

use std::collections::BTreeSet;

use super::measured::Measured;
use super::series::EDGE_S;
use super::stats::leak::{self, Leak, Limit, Reason};
use super::summary::{TrendFinding, Word};
use super::{finding, series::Series};
use crate::experiment::AnalysisPlan;

/// Bytes in a MiB, the unit of memory series.
const MIB: f64 = 1024.0 * 1024.0;

/// Whether a series tells of memory.
pub(super) fn is_memory(name: &str) -> bool {
    name.contains(".memory.")
}

/// Judges a memory series by its troughs; `None` when no horizon and budget are declared for it.
pub(super) fn judge(
    series: &Series,
    measured: &Measured<'_>,
    plan: &AnalysisPlan,
    alpha: f64,
) -> Option<TrendFinding> {
    let horizon_s = plan.horizon?.as_secs_f64();
    let budget = *plan.budget.get(&series.name)? as f64 / MIB;
    let (service, metric) = series.name.strip_prefix("services.")?.split_once('.')?;
    let readings = measured
        .trial
        .samples
        .get(&(service.to_owned(), metric.to_owned()))?;
    let (mut times, mut values): (Vec<f64>, Vec<f64>) = (Vec::new(), Vec::new());
    let mut lives = BTreeSet::new();
    for &(at_s, value, epoch) in &readings.points {
        let inside = at_s >= -EDGE_S && at_s <= measured.seconds + EDGE_S;
        if inside {
            lives.insert(epoch);
        }
        if inside && times.last().is_none_or(|last| at_s > *last) {
            times.push(at_s);
            values.push(value);
        }
    }
    let limit = Limit { horizon_s, budget };
    let found = leak::judge(&times, &values, Some(limit), alpha).ok()?;
    let mut finding = told(&found, series.first, budget);
    if lives.len() > 1 {
        // What grew in one life of the processes is gone in the next: together they are no one trend.
        finding.word = Word::Unclear;
        finding.reason = "restarted".to_owned();
    }
    Some(finding)
}

/// Growth and budget as shares of the first reading.
fn told(found: &Leak, first: f64, budget: f64) -> TrendFinding {
    let share = |value: f64| Some(value / first).filter(|v| v.is_finite());
    TrendFinding {
        word: finding::word(found.word),
        reason: match found.reason {
            Reason::BeyondBudget => "beyond_budget",
            Reason::WithinBudget => "within_budget",
            Reason::Wide => "wide",
            Reason::Few => "few",
            Reason::NoBudget => "no_budget",
        }
        .to_owned(),
        rule: "troughs".to_owned(),
        margin: share(budget).unwrap_or_default(),
        estimate: found.growth.and_then(share),
        ci90: None,
        ci95: found
            .growth_interval
            .and_then(|i| Some([share(i.lower)?, share(i.upper)?])),
        n: found.troughs.len(),
        bin_s: found.window_s,
        n_eff: None,
        smallest_flat_margin: None,
        more_s: None,
        warmup: "first 1/24 left out".to_owned(),
        detail: serde_json::to_value(found).unwrap_or_default(),
    }
}
