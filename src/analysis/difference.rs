//! What differed between the arms, and the proof that they started from the same data.

use std::collections::BTreeMap;

use super::summary::{DifferenceSummary, TookEffect};
use super::verdict::Verdict;
use crate::experiment::{Control, Experiment};
use crate::measure::{Equality, EqualityItem, Event, EventKind, Phase};
use crate::name::{Arm, Arms};
use crate::results::Run;

/// The declared difference, everything that was compared, and whether the change took effect.
pub(super) fn summary(
    experiment: &Experiment,
    run: &Run,
    took_effect: TookEffect,
) -> DifferenceSummary {
    let (variable, values) = match &experiment.control {
        Control::Variable(difference) => (
            Some(difference.variable.clone()),
            difference.values.map(|_, value| value.clone()),
        ),
        Control::Null => (
            None,
            Arms {
                treatment: None,
                control: None,
            },
        ),
    };
    DifferenceSummary {
        variable,
        values,
        items: run.manifest.equality.clone(),
        same_start: same_start(run),
        took_effect,
    }
}

/// Items that differ as `also_differs` permits.
pub(super) fn permitted(items: &[EqualityItem]) -> Vec<String> {
    items
        .iter()
        .filter(|item| matches!(item.verdict, Equality::Permitted(_)))
        .map(|item| item.what.clone())
        .collect()
}

type Table = (String, String, String);

/// The first count of each table before the arm's warm-up.
fn counts(events: &[Event]) -> BTreeMap<Table, u64> {
    let mut counts = BTreeMap::new();
    for event in events {
        match &event.kind {
            EventKind::Phase {
                phase: Phase::Warmup | Phase::Measuring,
            } => break,
            EventKind::RowCount {
                service,
                database,
                table,
                rows,
            } => {
                counts
                    .entry((service.clone(), database.clone(), table.clone()))
                    .or_insert(*rows);
            }
            _ => {}
        }
    }
    counts
}

/// The same rows in every table of every run, counted before load.
fn same_start(run: &Run) -> Verdict {
    let mut all = run.trials.iter().map(|trial| counts(&trial.events));
    let arms = |arm: Arm| run.trials.iter().any(|trial| trial.arm == arm);
    let Some(first) = all.next().filter(|first| !first.is_empty()) else {
        return Verdict::NotObserved("no table was counted before load".to_owned());
    };
    if !(arms(Arm::Treatment) && arms(Arm::Control)) {
        return Verdict::NotObserved("only one arm began".to_owned());
    }
    for other in all {
        if other.is_empty() {
            return Verdict::NotObserved("no table was counted before load in one arm".to_owned());
        }
        if other != first {
            return Verdict::Refuted;
        }
    }
    Verdict::Supported
}
