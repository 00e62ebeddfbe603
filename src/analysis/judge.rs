//! The composer: a checked experiment and a run's files in, a [`Summary`] out.

use std::time::Duration;

use anyhow::{Context, Result};

use super::arm::ArmRuns;
use super::between::{self, NullRun, run_sd};
use super::claims::{self, Evidence};
use super::conduct::{self, Bars};
use super::explanations::{self, Seen};
use super::figures::Figures;
use super::limits::{self, Made};
use super::measured::{Cut, Measured};
use super::observed::{Basis, Observed};
use super::stats::multiplicity;
use super::summary::{ArmSummary, ExplanationResult, Note, SUMMARY_SCHEMA, Summary, Word};
use super::{
    actions, arm_figures, difference, gates, littles, micro, present, probe, setup, statements,
};
use crate::experiment::{Control, Experiment};
use crate::figure::{Declared, Place};
use crate::name::{Arm, Arms};
use crate::results::Run;

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
            Some(runs) => arm_figures::add(runs, experiment.arms.get(arm), &mut figures)?,
            None => figures.absent(arm.as_str(), format!("the {arm} was never measured")),
        }
    }
    let actions = actions::figures(experiment, &arms, &mut figures);
    if let Some(margin) = experiment.analysis.margin {
        figures.number("margin", margin);
    } else {
        figures.absent("margin", "no margin is declared");
    }
    let not_whole = &run.manifest.not_whole;
    let probe = probe::judge(&run.probe, not_whole.get("probe").map(String::as_str));
    probe::figures(probe.as_ref(), &mut figures);
    let micro = micro::judge(&experiment.micro, &run.micro, not_whole);
    micro::figures(&experiment.micro, &micro, &mut figures);

    let is_null = experiment.control == Control::Null;
    let pairs = between::complete(&arms, &order);
    let sd = run_sd(experiment.analysis.run_sd, &context.null_runs);
    let between = between::judge(&pairs, sd.as_ref(), is_null, alpha);
    between::figures(between.as_ref(), &mut figures);

    let took_effect = statements::took_effect(experiment, &declared, &figures);
    let gates = gates::all(experiment, &run.manifest.equality, &arms, &took_effect);
    let facts = conduct::facts(experiment, run, &arms);
    let validity = conduct::validity(experiment, run, &facts, &gates, &arms);
    let bars = conduct::bars(&facts, &validity, &gates);

    let criteria = conduct::barred(
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
        valid: validity.valid,
        gates: &gates,
        equality: &run.manifest.equality,
        between: between.as_ref(),
        pairs: &pairs,
        data_bytes: data_bytes(&arms),
    });
    let exit_code = conduct::exit_code(&facts.ended, validity.valid, &criteria);
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
        probe,
        micro,
        notes: context.notes.clone(),
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
