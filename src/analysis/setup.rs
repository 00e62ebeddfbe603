//! What ran, for the evidence box: generated from the manifest and the checked experiment, never from what the author hoped.

use super::arm::ArmRuns;
use super::figures::{Figures, brief};
use super::summary::{FigureValue, Setup, StepLatency, StepSetup};
use crate::experiment::{
    ActionKind, Arrival, Clients, Experiment, Load, PruneRule, Pruning, Schedule, Stage, Stop,
};
use crate::name::{Arm, Arms};
use crate::results::Manifest;

/// Seconds in words: `2 min`, `72 h`, `0.5 s`.
pub(super) fn seconds(s: f64) -> String {
    if s >= 7_200.0 {
        format!("{} h", brief(s / 3_600.0))
    } else if s >= 120.0 {
        format!("{} min", brief(s / 60.0))
    } else if s >= 1.0 || s == 0.0 {
        format!("{} s", brief(s))
    } else {
        format!("{} ms", brief(s * 1e3))
    }
}

/// The load in words.
fn load(clients: &Clients) -> String {
    let levels = |stages: &[Stage]| -> String {
        let all: Vec<String> = stages.iter().map(|s| brief(s.level)).collect();
        all.join(" then ")
    };
    match &clients.load {
        Load::Closed {
            stages,
            think,
            ramp,
        } => {
            let think = match think.as_secs_f64() {
                0.0 => "no think time".to_owned(),
                s => format!("think time {}", seconds(s)),
            };
            let ramp = match ramp.as_secs_f64() {
                0.0 => String::new(),
                s => format!(", started over {}", seconds(s)),
            };
            format!("{} closed-loop clients, {think}{ramp}", levels(stages))
        }
        Load::Open {
            stages,
            arrival,
            max_in_flight,
        } => {
            let arrival = match arrival {
                Arrival::Poisson => "at random intervals",
                Arrival::Uniform => "at equal intervals",
            };
            format!(
                "open loop, {} requests a second {arrival}, at most {max_in_flight} in flight",
                levels(stages)
            )
        }
    }
}

fn pruning(policy: Option<&Pruning>) -> Option<String> {
    let policy = policy?;
    if !policy.enabled {
        return Some("none".to_owned());
    }
    let tables: Vec<String> = policy
        .tables
        .iter()
        .map(|table| match &table.rule {
            PruneRule::KeepNewest { rows, by } => {
                format!("from {} all but the newest {rows} by {by}", table.table)
            }
            PruneRule::DeleteWhere(condition) => format!("from {} where {condition}", table.table),
        })
        .collect();
    let vacuum = if policy.vacuum { ", then VACUUM" } else { "" };
    Some(format!(
        "every {} rows are deleted{vacuum}: {}",
        seconds(policy.every.as_secs_f64()),
        tables.join("; ")
    ))
}

/// Whether driver and services may run on the same processors: unless both are pinned, and apart.
fn shares_cores(experiment: &Experiment) -> bool {
    experiment.arms.iter().any(|(_, setup)| {
        let Some(driver) = &setup.clients.pin else {
            return true;
        };
        setup.services.iter().any(|service| match &service.pin {
            Some(pin) => pin.iter().any(|core| driver.contains(core)),
            None => !matches!(
                service.kind,
                crate::experiment::ServiceKind::External { .. }
            ),
        })
    })
}

/// Measured time as planned; absent when a number of requests ends the arm.
pub(super) fn planned(schedule: &Schedule) -> Arms<Option<f64>> {
    match schedule.stop {
        Stop::Duration(arms) => arms.map(|_, length| Some(length.as_secs_f64())),
        Stop::Requests(_) => Arms {
            treatment: None,
            control: None,
        },
    }
}

/// What ran.
pub(super) fn of(
    experiment: &Experiment,
    manifest: &Manifest,
    arms: &[ArmRuns<'_>],
    figures: &Figures,
) -> Setup {
    let setup = &experiment.arms.treatment;
    let services = [Arm::Treatment, Arm::Control]
        .iter()
        .find_map(|arm| {
            manifest
                .order
                .iter()
                .find(|t| t.arm == *arm && !t.services.is_empty())
        })
        .map(|t| t.services.clone())
        .unwrap_or_default();
    let (closed_loop, closed_clients) = match &setup.clients.load {
        Load::Closed { stages, .. } => {
            let most = stages.iter().map(|s| s.level).fold(0.0, f64::max);
            (true, Some(most.round() as u32))
        }
        Load::Open { .. } => (false, None),
    };
    let mut clients = load(&setup.clients);
    let other = load(&experiment.arms.control.clients);
    if other != clients {
        clients = format!("{clients} (control: {other})");
    }
    let bursts = setup
        .actions
        .iter()
        .filter(|a| matches!(a.what, ActionKind::Clients { .. }))
        .count();
    if bursts > 0 {
        clients.push_str(", with bursts by actions");
    }
    Setup {
        machine: manifest.machine.clone(),
        services,
        target: setup.clients.target.as_str().to_owned(),
        clients,
        closed_loop,
        closed_clients,
        pick: Some(setup.workload.pick),
        steps: steps(experiment, arms, figures),
        pruning: experiment.arms.map(|_, s| pruning(s.pruning.as_ref())),
        warmup_s: experiment.schedule.warmup.as_secs_f64(),
        duration_s: planned(&experiment.schedule),
        window_s: experiment.schedule.window.as_secs_f64(),
        driver_pin: setup.clients.pin.clone().unwrap_or_default(),
        shares_cores: shares_cores(experiment),
    }
}

fn steps(experiment: &Experiment, arms: &[ArmRuns<'_>], figures: &Figures) -> Vec<StepSetup> {
    let number = |name: String| match figures.values.get(&name) {
        Some(FigureValue::Number(number)) => Some(*number),
        _ => None,
    };
    let measured = |arm: Arm| {
        arms.iter()
            .any(|runs| runs.arm == arm && !runs.runs.is_empty())
    };
    experiment
        .arms
        .treatment
        .workload
        .steps
        .iter()
        .map(|step| {
            let both = Arms {
                treatment: Arm::Treatment,
                control: Arm::Control,
            };
            StepSetup {
                name: step.name.as_str().to_owned(),
                request: format!("{} {}", step.method, step.path),
                weight: step.weight,
                ok: both.map(|_, &arm| {
                    number(format!("{arm}.requests.steps.{}.ok", step.name))
                        .filter(|_| measured(arm))
                        .map(|n| n as u64)
                }),
                latency: both.map(|_, &arm| {
                    let of =
                        |which: &str| number(format!("{arm}.latency.steps.{}.{which}", step.name));
                    of("max").map(|max| StepLatency {
                        p50: of("p50"),
                        p99: of("p99"),
                        max,
                    })
                }),
            }
        })
        .collect()
}
