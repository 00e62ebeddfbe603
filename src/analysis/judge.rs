//! The composer: a checked experiment and a run's files in, a [`Summary`] out.

use std::time::Duration;

use anyhow::{Context, Result};
use serde::{Deserialize, Serialize};

use super::actions::Recoveries;
use super::arm::{self, ArmRuns};
use super::between::{self, run_sd};
use super::claims::{self, Bars, Evidence};
use super::explanations::{self, Seen};
use super::figures::Figures;
use super::limits::{self, Made};
use super::measured::{Cut, Measured};
use super::observed::{Basis, Observed};
use super::stats::multiplicity;
use super::summary::{
    ActionResult, ArmSummary, CriterionResult, ExplanationResult, Gate, Note, RunEnd, RunFacts,
    SUMMARY_SCHEMA, Summary, TrialFacts, Validity, Word,
};
use super::verdict::Verdict;
use super::{difference, gates, littles, present, setup, statements};
use crate::experiment::{Control, Experiment};
use crate::figure::{Declared, Place};
use crate::measure::{EventKind, StopReason};
use crate::name::{Arm, Arms};
use crate::results::{Run, Trial};

/// Most points of a picture.
const POINTS: u64 = 400;

/// What judging needs beside the run's own files. Found by the caller, since this room reads nothing.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct JudgeContext {
    /// Remarks that the author added afterwards.
    pub notes: Vec<Note>,
    /// Null experiments of the same deployment.
    pub null_runs: Vec<NullRun>,
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

/// Judges a run: pure, and the same for a fresh run, an old one, an interrupted one and one whose runner was killed.
///
/// # Errors
/// When a stored file is damaged elsewhere than at its end.
pub fn judge(experiment: &Experiment, run: &Run, context: &JudgeContext) -> Result<Summary> {
    // A smoke run was shortened as a whole: its windows, samples and actions too.
    let shortened = run
        .manifest
        .smoke_s
        .filter(|s| s.is_finite() && *s > 0.0)
        .map(|s| experiment.smoke(Duration::from_secs_f64(s)).experiment);
    let experiment = shortened.as_ref().unwrap_or(experiment);
    let declared = experiment.declared();
    let alpha = alpha(experiment, &declared);
    let arms = read(experiment, run, &declared, alpha)?;
    let order: Vec<(u32, Arm)> = run.manifest.order.iter().map(|t| (t.pair, t.arm)).collect();

    let mut figures = Figures::default();
    for arm in Arm::BOTH {
        match arms.iter().find(|runs| runs.arm == arm) {
            Some(runs) => arm::figures(runs, experiment.arms.get(arm), &mut figures)?,
            None => figures.absent(arm.as_str(), format!("the {arm} was never measured")),
        }
    }
    let actions = actions(experiment, &arms, &mut figures);
    if let Some(margin) = experiment.analysis.margin {
        figures.number("margin", margin);
    } else {
        figures.absent("margin", "no margin is declared");
    }
    figures.absent("probe", "no probe was run");
    figures.absent("micro", "no counted calls were run");

    let is_null = experiment.control == Control::Null;
    let pairs = between::complete(&arms, &order);
    let sd = run_sd(experiment.analysis.run_sd, &context.null_runs);
    let between = between::judge(&pairs, sd.as_ref(), is_null, alpha);
    between::figures(between.as_ref(), &mut figures);

    let took_effect = statements::took_effect(experiment, &declared, &figures);
    let gates = gates::all(experiment, &run.manifest.equality, &arms, &took_effect);
    let facts = facts(experiment, run, &arms);
    let validity = validity(experiment, run, &facts, &gates, &arms);
    let bars = bars(&facts, &validity, &gates);

    let criteria = barred(
        statements::criteria(&experiment.criteria, &declared, &figures),
        &bars,
    );
    let explanations = explanations(experiment, &arms, &bars);
    let summaries = summaries(&arms);
    let permitted = difference::permitted(&run.manifest.equality);
    let claims = claims::judge(&Evidence {
        experiment,
        declared: &declared,
        figures: &figures,
        arms: &summaries,
        explanations: &explanations,
        between: between.as_ref(),
        one_sign: between::one_sign(&pairs),
        permitted: &permitted,
        bars: &bars,
    });
    let setup = setup::of(experiment, &run.manifest, &arms, &figures);
    let limits = limits::of(&Made {
        experiment,
        setup: &setup,
        run: &facts,
        gates: &gates,
        equality: &run.manifest.equality,
        between: between.as_ref(),
        pairs: &pairs,
        data_bytes: data_bytes(&arms),
    });
    let exit_code = exit_code(&facts.ended, validity.valid, &criteria);
    Ok(Summary {
        schema: SUMMARY_SCHEMA,
        tool: run.manifest.tool.version.clone(),
        experiment: experiment.header.clone(),
        experiment_sha256: run.manifest.experiment_sha256.clone(),
        run: facts,
        validity,
        exit_code,
        setup,
        difference: difference::summary(experiment, run, took_effect),
        arms: summaries,
        pairs: between::pairs(&arms, &order),
        between,
        figures: figures.values,
        not_observed: figures.reasons,
        gates,
        criteria,
        explanations,
        claims,
        limits,
        actions,
        notes: notes(run, context),
    })
}

/// The one-sided error rate of each trend: the declared one, shared by the primary claims that rest on different trends or
/// ratios. What must all hold within one claim needs no correction.
fn alpha(experiment: &Experiment, declared: &Declared) -> f64 {
    // 1 − 0.95 is not 0.05 in binary, and levels are printed.
    let alpha = ((1.0 - experiment.analysis.confidence) * 1e9).round() / 1e9;
    let alpha = alpha.clamp(1e-6, 0.5);
    let mut distinct: Vec<Vec<String>> = Vec::new();
    for (i, claim) in experiment.claims.iter().enumerate() {
        if !claims::is_primary(claim, i, &experiment.analysis.primary) {
            continue;
        }
        let mut verdicts: Vec<String> = statements::named(&claim.when, Place::Claim, declared)
            .into_iter()
            .filter(|(_, name)| name.ends_with(".trend") || name.starts_with("ratio."))
            .map(|(scope, name)| format!("{scope:?} {name}"))
            .collect();
        verdicts.sort();
        let any = claims::is_any(&claim.when);
        let sets: Vec<Vec<String>> = if any {
            verdicts.into_iter().map(|v| vec![v]).collect()
        } else if verdicts.is_empty() {
            Vec::new()
        } else {
            vec![verdicts]
        };
        for set in sets {
            if !distinct.contains(&set) {
                distinct.push(set);
            }
        }
    }
    multiplicity::shared(alpha, distinct.len())
}

/// Reads every run of every arm; arms that never measured are left out.
fn read<'r>(
    experiment: &Experiment,
    run: &'r Run,
    declared: &Declared,
    alpha: f64,
) -> Result<Vec<ArmRuns<'r>>> {
    let of = |arm: Arm| -> Result<Option<ArmRuns<'r>>> {
        let timeout = experiment.arms.get(arm).clients.timeout;
        let timeout_us = u64::try_from(timeout.as_micros()).unwrap_or(u64::MAX);
        let cut = Cut {
            window_s: experiment.schedule.window.as_secs_f64(),
            interval_s: run.manifest.latency_interval_s.max(1),
            points: POINTS,
            timeout_us,
        };
        let basis = Basis {
            setup: experiment.arms.get(arm),
            plan: &experiment.analysis,
            declared,
            period_s: experiment.schedule.sample.as_secs_f64().max(1e-3),
            alpha,
        };
        let mut runs = Vec::new();
        for trial in run.trials.iter().filter(|trial| trial.arm == arm) {
            if let Some(measured) = Measured::of(trial, &cut)? {
                runs.push(Observed::of(measured, &basis)?);
            }
        }
        runs.sort_by_key(|run| run.measured.trial.pair);
        let littles = littles::of(
            &runs,
            experiment.arms.get(arm),
            experiment.schedule.warmup.as_secs_f64(),
        );
        Ok((!runs.is_empty()).then_some(ArmRuns {
            arm,
            runs,
            timeout_us,
            littles,
        }))
    };
    // The arms share nothing, so each has a core of its own.
    let (treatment, control) = std::thread::scope(|scope| {
        let control = scope.spawn(|| of(Arm::Control));
        (of(Arm::Treatment), control.join())
    });
    let control = control.map_err(|_| anyhow::anyhow!("judging the control ended in a fault"))?;
    Ok([
        treatment.context("judging the treatment")?,
        control.context("judging the control")?,
    ]
    .into_iter()
    .flatten()
    .collect())
}

/// Executions of actions, and their figures.
fn actions(
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
            let name = |rest: &str| format!("{}.actions.{}.{rest}", runs.arm, action.figure);
            let done = of.iter().filter(|a| a.ok).count();
            figures.number(name("done"), done as f64);
            figures.number(name("failed"), (of.len() - done) as f64);
            let failed: u64 = of.iter().flat_map(|a| a.failed.values()).sum();
            figures.number(name("failed_requests"), failed as f64);
            let recoveries: Option<Vec<f64>> = of.iter().map(|a| a.recovery_ms).collect();
            let mean = recoveries
                .filter(|r| !r.is_empty())
                .map(|r| r.iter().sum::<f64>() / r.len() as f64);
            figures.maybe(name("recovery_ms"), mean, || {
                "it was not executed, or no ok answer came after it".to_owned()
            });
        }
        all.extend(own);
    }
    all
}

fn facts(experiment: &Experiment, run: &Run, arms: &[ArmRuns<'_>]) -> RunFacts {
    let manifest = &run.manifest;
    let ended = match manifest.outcome.as_deref() {
        None => RunEnd::Unfinished,
        Some("complete") => RunEnd::Complete,
        Some("interrupted") => RunEnd::Interrupted,
        Some(other) => RunEnd::Failed(
            other
                .strip_prefix("failed:")
                .unwrap_or(other)
                .trim()
                .to_owned(),
        ),
    };
    let seconds = |pair: u32, arm: Arm| {
        arms.iter()
            .find(|runs| runs.arm == arm)
            .and_then(|runs| runs.runs.iter().find(|r| r.measured.trial.pair == pair))
            .map_or(0.0, |r| r.measured.seconds)
    };
    RunFacts {
        id: run.id.clone(),
        started: manifest.started.clone(),
        ended,
        smoke: manifest.smoke_s.is_some(),
        null: experiment.control == Control::Null,
        seed: manifest.seed,
        order: manifest
            .order
            .iter()
            .map(|t| TrialFacts {
                pair: t.pair,
                arm: t.arm,
                started: t.measured_from.clone(),
                seconds: seconds(t.pair, t.arm),
            })
            .collect(),
        command_line: manifest.command_line.clone(),
        git_commit: manifest.git_commit.clone(),
        git_clean: manifest.git_clean,
    }
}

/// Whether the run can support anything, and if not, why.
fn validity(
    experiment: &Experiment,
    run: &Run,
    facts: &RunFacts,
    gates: &[Gate],
    arms: &[ArmRuns<'_>],
) -> Validity {
    let mut reasons = Vec::new();
    match &facts.ended {
        RunEnd::Complete => {}
        RunEnd::Interrupted => reasons.push("it was interrupted, so it is not whole".to_owned()),
        RunEnd::Failed(why) => reasons.push(format!("it failed: {why}")),
        RunEnd::Unfinished => {
            reasons.push("it never ended: the runner was killed, or still runs".to_owned());
        }
    }
    for trial in &run.trials {
        reasons.extend(stopped(trial));
    }
    for arm in Arm::BOTH {
        let measured = arms
            .iter()
            .find(|runs| runs.arm == arm)
            .map_or(0, |runs| runs.runs.len());
        let planned = experiment.schedule.pairs.max(1) as usize;
        if measured < planned {
            reasons.push(format!(
                "the {arm} was measured in {measured} of {planned} pairs"
            ));
        }
    }
    for gate in gates.iter().filter(|gate| gate.number <= 4) {
        if !gate.verdict.is_supported() {
            let arm = gate.arm.map_or(String::new(), |arm| format!("{arm}: "));
            reasons.push(format!(
                "gate {} ({}): {arm}{}",
                gate.number, gate.name, gate.detail
            ));
        }
    }
    Validity {
        valid: reasons.is_empty(),
        reasons,
    }
}

/// Why an arm stopped early.
fn stopped(trial: &Trial) -> Option<String> {
    trial.events.iter().find_map(|event| match &event.kind {
        EventKind::Stopped { reason, detail } => {
            let what = match reason {
                StopReason::Complete | StopReason::Interrupted => return None,
                StopReason::ServiceDied => "a service died",
                StopReason::GateFailed => "a gate failed before the load",
                StopReason::DiskFull => "the disk was about to be full",
                StopReason::Failed => "the runner could not go on",
            };
            Some(format!(
                "pair {}, {}: {what}: {detail}",
                trial.pair, trial.arm
            ))
        }
        _ => None,
    })
}

fn bars(facts: &RunFacts, validity: &Validity, gates: &[Gate]) -> Bars {
    let failed = |number: u8| {
        gates
            .iter()
            .filter(move |gate| gate.number == number && !gate.verdict.is_supported())
    };
    let run = if !validity.valid {
        Some(format!(
            "the run is not valid: {}",
            validity.reasons.join("; ")
        ))
    } else if facts.smoke {
        Some("a smoke run is never evidence".to_owned())
    } else {
        None
    };
    Bars {
        run,
        arms: failed(5).filter_map(|gate| gate.arm).collect(),
        latency: failed(6).filter_map(|gate| gate.arm).collect(),
        between: failed(7)
            .next()
            .map(|gate| format!("the change was not shown to take effect: {}", gate.detail)),
    }
}

/// A criterion in an arm whose figures are barred is undetermined.
fn barred(mut criteria: Vec<CriterionResult>, bars: &Bars) -> Vec<CriterionResult> {
    for criterion in &mut criteria {
        let latency = criterion
            .observed
            .keys()
            .any(|name| name.contains(".latency."));
        let by = if bars.arms.contains(&criterion.arm) {
            Some("gate_5")
        } else if latency && bars.latency.contains(&criterion.arm) {
            Some("gate_6")
        } else {
            None
        };
        if let Some(gate) = by {
            let held = std::mem::replace(&mut criterion.verdict, Verdict::Supported);
            criterion.verdict = held.worst(Verdict::Undetermined(gate.to_owned()));
        }
    }
    criteria
}

fn explanations(
    experiment: &Experiment,
    arms: &[ArmRuns<'_>],
    bars: &Bars,
) -> Vec<ExplanationResult> {
    let seen = |arm: Arm, figure: &str| -> Seen {
        let Some(runs) = arms.iter().find(|runs| runs.arm == arm) else {
            return Seen::Missing(format!("the {arm} was never measured"));
        };
        if bars.arms.contains(&arm) {
            return Seen::Barred("gate_5".to_owned());
        }
        let (word, reason) = if figure == "throughput" {
            (runs.word(), runs.reason())
        } else {
            (runs.series_word(figure), runs.series_reason(figure))
        };
        match word {
            Some(word) => Seen::Word(
                word,
                if word == Word::Unclear {
                    reason
                } else {
                    String::new()
                },
            ),
            None => Seen::Missing(reason),
        }
    };
    explanations::judge(
        &experiment.explanations,
        seen,
        bars.between.is_none(),
        bars.run.as_deref(),
    )
}

fn summaries(arms: &[ArmRuns<'_>]) -> Arms<Option<ArmSummary>> {
    let of = |arm: Arm| {
        arms.iter()
            .find(|runs| runs.arm == arm)
            .and_then(present::arm)
    };
    Arms {
        treatment: of(Arm::Treatment),
        control: of(Arm::Control),
    }
}

/// The largest sum of observed tables in any run.
fn data_bytes(arms: &[ArmRuns<'_>]) -> Option<f64> {
    arms.iter()
        .flat_map(|runs| &runs.runs)
        .filter_map(|run| {
            run.series
                .iter()
                .filter(|s| s.series.name.contains(".table.") && s.series.name.ends_with(".bytes"))
                .map(|s| s.series.max)
                .reduce(|a, b| a + b)
        })
        .reduce(f64::max)
}

fn notes(run: &Run, context: &JudgeContext) -> Vec<Note> {
    if !context.notes.is_empty() {
        return context.notes.clone();
    }
    run.notes
        .iter()
        .filter_map(|line| serde_json::from_value(line.clone()).ok())
        .collect()
}

/// The exit code of `run`, `analyze` and `report`: 130 wins over 3, 3 over 1.
fn exit_code(ended: &RunEnd, valid: bool, criteria: &[CriterionResult]) -> u8 {
    let hold = criteria.iter().all(|c| c.verdict.is_supported());
    match (ended, valid, hold) {
        (RunEnd::Interrupted, _, _) => 130,
        (RunEnd::Failed(_) | RunEnd::Unfinished, _, _) | (RunEnd::Complete, false, _) => 3,
        (RunEnd::Complete, true, false) => 1,
        (RunEnd::Complete, true, true) => 0,
    }
}
