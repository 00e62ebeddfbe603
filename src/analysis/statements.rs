//! Expressions against figures: criteria, and what a claim's `when` or `took_effect` says.
//!
//! *Not observed* is decided before an expression is evaluated. Nothing here turns an unknown into a yes or a no.

use std::collections::BTreeMap;

use super::figures::Figures;
use super::summary::{CriterionResult, FigureValue, TookEffect};
use super::verdict::Verdict;
use crate::experiment::{Control, Criterion, Experiment};
use crate::expression::{Answer, Expression};
use crate::figure::{Declared, Place, Scope};
use crate::name::Arm;

/// What an expression says of what was observed.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Ruling {
    pub(super) verdict: Verdict,
    /// The figures that it names, as observed.
    pub(super) observed: BTreeMap<String, Option<FigureValue>>,
    /// Sentences with the figures that refused it, or that are missing.
    pub(super) because: Vec<String>,
}

/// Judges an expression; `arm` stands for `arm.` where that is written.
pub(super) fn rule(
    source: &str,
    place: Place,
    declared: &Declared,
    figures: &Figures,
    arm: Option<Arm>,
) -> Ruling {
    let expression = match Expression::parse(source, place, declared) {
        Ok(expression) => expression,
        Err(errors) => {
            let why: Vec<String> = errors.into_iter().map(|e| e.message).collect();
            return Ruling {
                verdict: Verdict::Undetermined("unreadable_expression".to_owned()),
                observed: BTreeMap::new(),
                because: vec![format!("the expression can't be read: {}", why.join("; "))],
            };
        }
    };
    let own = |path: &str| match (path.strip_prefix("arm."), arm) {
        (Some(rest), Some(arm)) => format!("{arm}.{rest}"),
        _ => path.to_owned(),
    };
    let names: Vec<String> = expression.figures().iter().map(|f| own(&f.path)).collect();
    let observed = figures.observed(names.iter().map(String::as_str));
    let told = |paths: &[String]| -> Vec<String> {
        paths.iter().map(|path| figures.told(&own(path))).collect()
    };
    match expression.evaluate(|path| figures.value(&own(path))) {
        Answer::Yes => Ruling {
            verdict: Verdict::Supported,
            observed,
            because: Vec::new(),
        },
        Answer::No { because } => Ruling {
            verdict: Verdict::Refuted,
            observed,
            because: told(&because),
        },
        Answer::NotObserved { paths, reason } => {
            let because = if paths.is_empty() {
                vec![reason.clone()]
            } else {
                told(&paths)
            };
            let names: Vec<String> = paths.iter().map(|path| own(path)).collect();
            Ruling {
                verdict: Verdict::NotObserved(if names.is_empty() {
                    reason
                } else {
                    names.join(", ")
                }),
                observed,
                because,
            }
        }
    }
}

/// The figures that an expression names.
pub(super) fn named(source: &str, place: Place, declared: &Declared) -> Vec<(Scope, String)> {
    Expression::parse(source, place, declared)
        .map(|e| {
            e.figures()
                .iter()
                .map(|f| (f.scope, f.name.clone()))
                .collect()
        })
        .unwrap_or_default()
}

/// Judges the criteria: in each arm where `arm.` is written, else once, told of the treatment.
pub(super) fn criteria(
    criteria: &[Criterion],
    declared: &Declared,
    figures: &Figures,
) -> Vec<CriterionResult> {
    let mut results = Vec::new();
    for criterion in criteria {
        let scopes = named(&criterion.holds, Place::Criterion, declared);
        let arms: &[Arm] = if scopes.iter().any(|(scope, _)| *scope == Scope::EachArm) {
            &Arm::BOTH
        } else if scopes
            .iter()
            .any(|(scope, _)| *scope == Scope::Arm(Arm::Treatment))
        {
            &[Arm::Treatment]
        } else if scopes
            .iter()
            .any(|(scope, _)| *scope == Scope::Arm(Arm::Control))
        {
            &[Arm::Control]
        } else {
            &[Arm::Treatment]
        };
        for &arm in arms {
            let ruling = rule(
                &criterion.holds,
                Place::Criterion,
                declared,
                figures,
                Some(arm),
            );
            results.push(CriterionResult {
                name: criterion.name.clone(),
                holds: criterion.holds.clone(),
                arm,
                verdict: ruling.verdict,
                observed: ruling.observed,
            });
        }
    }
    results
}

/// Whether the change took effect: as written, else for a pruning variable that rows were deleted in one arm and none in the
/// other. Where nothing is written and nothing follows, that is not observed.
pub(super) fn took_effect(
    experiment: &Experiment,
    declared: &Declared,
    figures: &Figures,
) -> TookEffect {
    let Control::Variable(difference) = &experiment.control else {
        return TookEffect {
            expression: None,
            observed: BTreeMap::new(),
            verdict: Verdict::Supported,
        };
    };
    let expression = difference
        .took_effect
        .clone()
        .or_else(|| pruning_default(experiment, &difference.variable));
    match expression {
        Some(expression) => {
            let ruling = rule(&expression, Place::Claim, declared, figures, None);
            TookEffect {
                expression: Some(expression),
                observed: ruling.observed,
                verdict: ruling.verdict,
            }
        }
        None => TookEffect {
            expression: None,
            observed: BTreeMap::new(),
            verdict: Verdict::NotObserved(
                "no `took_effect` is written for this variable".to_owned(),
            ),
        },
    }
}

/// Rows were deleted in the arm that prunes, and none in the other.
fn pruning_default(experiment: &Experiment, variable: &str) -> Option<String> {
    if variable != "pruning.enabled" {
        return None;
    }
    let enabled = experiment
        .arms
        .map(|_, setup| setup.pruning.as_ref().is_some_and(|p| p.enabled));
    let (prunes, other) = match (enabled.treatment, enabled.control) {
        (true, false) => (Arm::Treatment, Arm::Control),
        (false, true) => (Arm::Control, Arm::Treatment),
        _ => return None,
    };
    let tables = &experiment.arms.get(prunes).pruning.as_ref()?.tables;
    let sum = |arm: Arm| {
        tables
            .iter()
            .map(|t| format!("{arm}.pruned.{}", t.table))
            .collect::<Vec<_>>()
            .join(" + ")
    };
    (!tables.is_empty()).then(|| format!("{} > 0 and {} == 0", sum(prunes), sum(other)))
}
