//! How the run went: whole or not, valid or not, what gates bar, and the exit code that follows.
//!
//! The only place that decides whether a run can support anything at all.

use super::arm::ArmRuns;
use super::summary::{CriterionResult, Gate, RunEnd, RunFacts, TrialFacts, Validity};
use super::verdict::Verdict;
use crate::experiment::{Control, Experiment};
use crate::measure::{EventKind, StopReason};
use crate::name::Arm;
use crate::results::{Run, Trial};

/// What bars claims, beside their own `when`.
#[derive(Debug, Clone, Default)]
pub(super) struct Bars {
    /// Why the run supports nothing at all.
    pub(super) run: Option<String>,
    /// Arms whose every figure is barred.
    pub(super) arms: Vec<Arm>,
    /// Arms whose latencies are barred.
    pub(super) latency: Vec<Arm>,
    /// Why nothing between the arms is supported.
    pub(super) between: Option<String>,
}

/// The run itself, as its manifest and files tell it.
pub(super) fn facts(experiment: &Experiment, run: &Run, arms: &[ArmRuns<'_>]) -> RunFacts {
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
pub(super) fn validity(
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
        RunEnd::Failed(why) => reasons.push(format!("it failed: {}", one_line(why))),
        RunEnd::Unfinished => {
            reasons.push("it never ended: the runner was killed, or still runs".to_owned());
        }
    }
    for trial in &run.trials {
        // What ended the run is told already.
        let told = |detail: &str| matches!(&facts.ended, RunEnd::Failed(why) if why.contains(detail.trim()));
        if let Some((what, detail)) = stopped(trial)
            && !told(detail)
        {
            reasons.push(format!(
                "pair {}, {}: {what}: {}",
                trial.pair,
                trial.arm,
                one_line(detail)
            ));
        }
    }
    for arm in Arm::BOTH {
        let measured = arms
            .iter()
            .find(|runs| runs.arm == arm)
            .map_or(0, |runs| runs.runs.len());
        let planned = experiment.schedule.pairs.max(1) as usize;
        if measured < planned {
            reasons.push(match (measured, planned) {
                (_, 1) => format!("the {arm} was never measured"),
                _ => format!("the {arm} was measured in {measured} of {planned} pairs"),
            });
        }
    }
    for runs in arms {
        let untimed = runs.runs.iter().map(|run| run.measured.untimed_s);
        let untimed_s: u64 = untimed.sum();
        if untimed_s > 0 {
            reasons.push(format!(
                "the {}'s last {untimed_s} s have no latencies, which were lost with the runner; their requests are counted",
                runs.arm
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

/// A text of several lines as one sentence part.
fn one_line(text: &str) -> String {
    let lines: Vec<&str> = text
        .lines()
        .map(str::trim)
        .filter(|line| !line.is_empty())
        .collect();
    lines.join("; ").replace(":; ", ": ")
}

/// Why an arm stopped early.
fn stopped(trial: &Trial) -> Option<(&'static str, &str)> {
    trial.events.iter().find_map(|event| match &event.kind {
        EventKind::Stopped { reason, detail } => {
            let what = match reason {
                StopReason::Complete | StopReason::Interrupted => return None,
                StopReason::ServiceDied => "a service died",
                StopReason::GateFailed => "a gate failed before the load",
                StopReason::DiskFull => "the disk was about to be full",
                StopReason::Failed => "the runner could not go on",
            };
            Some((what, detail.as_str()))
        }
        _ => None,
    })
}

/// What failed gates bar. Why a run is not valid is told once, in its validity.
pub(super) fn bars(facts: &RunFacts, validity: &Validity, gates: &[Gate]) -> Bars {
    let failed = |number: u8| {
        gates
            .iter()
            .filter(move |gate| gate.number == number && !gate.verdict.is_supported())
    };
    let run = if !validity.valid {
        Some("the run is not valid".to_owned())
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

/// A criterion over figures that are barred is undetermined: over an arm's, or between arms that no difference was shown
/// to part.
pub(super) fn barred(mut criteria: Vec<CriterionResult>, bars: &Bars) -> Vec<CriterionResult> {
    for criterion in &mut criteria {
        let names = || criterion.observed.keys();
        let ratio = names().any(|name| name.starts_with("ratio."));
        let latency = names().any(|name| name.contains(".latency."));
        let of = |arm: Arm| names().any(|name| name.starts_with(&format!("{arm}.")));
        let uses = |arm: &Arm| criterion.arm == *arm || ratio || of(*arm);
        let by = if bars.arms.iter().any(uses) {
            Some("gate_5")
        } else if latency && bars.latency.iter().any(uses) {
            Some("gate_6")
        } else if bars.between.is_some() && (ratio || of(Arm::Treatment) && of(Arm::Control)) {
            Some("not_applied")
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

/// The exit code of `run`, `analyze` and `report`: 130 wins over 3, 3 over 1.
pub(super) fn exit_code(ended: &RunEnd, valid: bool, criteria: &[CriterionResult]) -> u8 {
    let hold = criteria.iter().all(|c| c.verdict.is_supported());
    match (ended, valid, hold) {
        (RunEnd::Interrupted, _, _) => 130,
        (RunEnd::Failed(_) | RunEnd::Unfinished, _, _) | (RunEnd::Complete, false, _) => 3,
        (RunEnd::Complete, true, false) => 1,
        (RunEnd::Complete, true, true) => 0,
    }
}
