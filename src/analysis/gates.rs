//! Gates: what must hold before anything is said.
//!
//! A failed gate of the first four makes the run invalid; the others block a part of the claims. What a gate rests on must
//! have been observed: absent is never passed.

use super::arm::ArmRuns;
use super::figures::{brief, percent};
use super::load_gates::{driver, littles};
use super::recovery::Recoveries;
use super::setup::planned;
use super::summary::{Gate, TookEffect};
use super::verdict::Verdict;
use crate::experiment::{ArmSetup, Experiment, ServiceKind};
use crate::measure::{Equality, EqualityItem, Event, EventKind, Phase};
use crate::name::Arm;

/// Share of the planned samples that must be there.
const SAMPLES: f64 = 0.95;
/// Most that wall clock and monotonic clock may differ by.
const CLOCKS: f64 = 0.001;

const WHOLE: &str = "the whole run: it supports nothing";

fn gate(number: u8, name: &str, arm: Option<Arm>, verdict: Verdict, detail: String) -> Gate {
    Gate {
        number,
        name: name.to_owned(),
        arm,
        verdict,
        detail,
        blocks: match number {
            1..=4 => WHOLE,
            5 => "every figure of this arm",
            6 => "claims about latency and saturation",
            _ => "everything between the arms",
        }
        .to_owned(),
    }
}

pub(super) fn passed(holds: bool) -> Verdict {
    if holds {
        Verdict::Supported
    } else {
        Verdict::Refuted
    }
}

pub(super) fn unseen(what: &str) -> (Verdict, String) {
    (Verdict::NotObserved(what.to_owned()), what.to_owned())
}

/// All gates in order: 1, 2, 4, 5 and 6 arm by arm, 3 and 7 for the run.
pub(super) fn all(
    experiment: &Experiment,
    equality: &[EqualityItem],
    arms: &[ArmRuns<'_>],
    took_effect: &TookEffect,
) -> Vec<Gate> {
    let mut gates = Vec::new();
    let planned_s = planned(&experiment.schedule);
    for runs in arms {
        let (verdict, detail) = preflight(runs, experiment.arms.get(runs.arm));
        let name = "each step, sent once before load, answers as it expects";
        gates.push(gate(1, name, Some(runs.arm), verdict, detail));
    }
    for runs in arms {
        let (verdict, detail) = served(
            runs,
            experiment.arms.get(runs.arm),
            experiment.analysis.served_at_least,
        );
        let name = "enough of the requests are served";
        gates.push(gate(2, name, Some(runs.arm), verdict, detail));
    }
    let (verdict, detail) = equal(equality);
    gates.push(gate(3, "no undeclared difference", None, verdict, detail));
    for runs in arms {
        let setup = experiment.arms.get(runs.arm);
        let period_s = experiment.schedule.sample.as_secs_f64();
        let (verdict, detail) = sampled(runs, setup, period_s, *planned_s.get(runs.arm));
        let name = "95 % of the planned samples are there";
        gates.push(gate(4, name, Some(runs.arm), verdict, detail));
        let (verdict, detail) = clocks(runs);
        let name = "wall clock and monotonic clock agree to 0.1 %";
        gates.push(gate(4, name, Some(runs.arm), verdict, detail));
        let (verdict, detail) = lived(runs);
        let name = "every service lived to the end unless an action ended it";
        gates.push(gate(4, name, Some(runs.arm), verdict, detail));
    }
    for runs in arms {
        let (verdict, detail) = littles(runs, experiment.arms.get(runs.arm));
        let name = "Little's law holds: the clients' time is accounted for";
        gates.push(gate(5, name, Some(runs.arm), verdict, detail));
    }
    for runs in arms {
        let (verdict, detail) = driver(runs);
        let name = "the load driver is not the limit";
        gates.push(gate(6, name, Some(runs.arm), verdict, detail));
    }
    let told: Vec<String> = took_effect
        .observed
        .iter()
        .map(|(name, value)| match value {
            Some(super::summary::FigureValue::Number(n)) => format!("{name} = {}", brief(*n)),
            Some(super::summary::FigureValue::Word(word)) => format!("{name} = {word}"),
            None => format!("{name} was not observed"),
        })
        .collect();
    let detail = match &took_effect.expression {
        Some(expression) => format!("{expression}: {}", told.join(", ")),
        None => "nothing is written that would show it".to_owned(),
    };
    let verdict = took_effect.verdict.clone();
    gates.push(gate(7, "the change took effect", None, verdict, detail));
    gates
}

fn preflight(runs: &ArmRuns<'_>, setup: &ArmSetup) -> (Verdict, String) {
    let mut failed = Vec::new();
    for run in &runs.runs {
        for step in &setup.workload.steps {
            let mut seen = false;
            for event in &run.measured.trial.events {
                if let EventKind::Preflight {
                    step: name,
                    ok,
                    detail,
                } = &event.kind
                    && name == step.name.as_str()
                {
                    seen = true;
                    if !ok {
                        failed.push(format!("{name}: {detail}"));
                    }
                }
            }
            if !seen {
                return unseen(&format!("step {} was not sent before the load", step.name));
            }
        }
    }
    let n = setup.workload.steps.len();
    if failed.is_empty() {
        (Verdict::Supported, format!("{n} of {n} steps"))
    } else {
        (Verdict::Refuted, failed.join("; "))
    }
}

fn served(runs: &ArmRuns<'_>, setup: &ArmSetup, at_least: f64) -> (Verdict, String) {
    let totals = runs.totals();
    let completed = totals.completed();
    if completed == 0 {
        return (Verdict::Refuted, "no request was answered".to_owned());
    }
    let all = totals.ok as f64 / completed as f64;
    let excused: u64 = runs
        .runs
        .iter()
        .map(|run| Recoveries::of(&run.measured, setup).failed_inside)
        .sum();
    let rest = completed.saturating_sub(excused);
    let mut detail = format!(
        "{} of the {completed} completed requests are ok; at least {} must be",
        percent(all),
        percent(at_least)
    );
    let mut share = all;
    if excused > 0 && rest > 0 {
        share = totals.ok as f64 / rest as f64;
        detail.push_str(&format!(
            "; without the {excused} that failed while an action was being recovered from, {}",
            percent(share)
        ));
    }
    (passed(totals.ok > 0 && share >= at_least), detail)
}

fn equal(items: &[EqualityItem]) -> (Verdict, String) {
    if items.is_empty() {
        return unseen("nothing was compared between the arms");
    }
    let undeclared: Vec<String> = items
        .iter()
        .filter(|item| item.verdict == Equality::Undeclared)
        .map(|item| {
            format!(
                "{} ({} in the treatment, {} in the control)",
                item.what, item.treatment, item.control
            )
        })
        .collect();
    if undeclared.is_empty() {
        (
            Verdict::Supported,
            format!("{} items compared", items.len()),
        )
    } else {
        (Verdict::Refuted, undeclared.join("; "))
    }
}

/// Of each service that the runner starts, its best-read metric; the worst service counts.
fn sampled(
    runs: &ArmRuns<'_>,
    setup: &ArmSetup,
    period_s: f64,
    planned_s: Option<f64>,
) -> (Verdict, String) {
    /// Readings this near to the measured time's ends belong to it.
    const EDGE_S: f64 = 0.25;
    let started: Vec<&str> = setup
        .services
        .iter()
        .filter(|s| match &s.kind {
            ServiceKind::External { .. } => false,
            ServiceKind::Postgres(postgres) => postgres.url.is_none(),
            _ => true,
        })
        .map(|s| s.name.as_str())
        .collect();
    let mut worst: Option<(f64, String)> = None;
    for run in &runs.runs {
        let m = &run.measured;
        // An arm that ended early is not whole, which is told elsewhere; here its own length counts.
        let seconds = planned_s.map_or(m.seconds, |planned| planned.min(m.seconds));
        let mut seen = vec![(
            "the host",
            m.trial.seconds.iter().filter(|r| r.host.is_some()).count() as f64,
            m.seconds.floor(),
        )];
        for service in &started {
            let planned = readings_due(&m.trial.events, service, period_s, seconds);
            let taken = m
                .trial
                .samples
                .iter()
                .filter(|((name, _), _)| name == service)
                .map(|(_, series)| {
                    series
                        .points
                        .iter()
                        .filter(|p| p.0 >= -EDGE_S && p.0 <= m.seconds + EDGE_S)
                        .count()
                })
                .max()
                .unwrap_or(0);
            seen.push((service, taken as f64, planned));
        }
        if m.missing_rows > 0 {
            let rows = m.trial.seconds.len() as f64;
            seen.push(("seconds.csv", rows, rows + m.missing_rows as f64));
        }
        for (what, taken, planned) in seen {
            if planned < 1.0 {
                continue;
            }
            let share = (taken / planned).min(1.0);
            if worst.as_ref().is_none_or(|(least, _)| share < *least) {
                worst = Some((
                    share,
                    format!("{what}: {taken} of {planned} planned ({})", percent(share)),
                ));
            }
        }
    }
    match worst {
        Some((share, detail)) => (passed(share >= SAMPLES), detail),
        None => unseen("the arm is shorter than one sample's period"),
    }
}

/// Readings of a service that were due in the measured time: nothing can be read of one that is down, or was an instant ago.
fn readings_due(events: &[Event], service: &str, period_s: f64, seconds: f64) -> f64 {
    /// A round takes its time, and is paced, not exact.
    const NEAR_S: f64 = 0.25;
    let mut down: Vec<(f64, f64)> = Vec::new();
    let mut since = None;
    for event in events {
        match &event.kind {
            EventKind::ServiceExited { service: name, .. } if name == service => {
                since.get_or_insert(event.at_s);
            }
            EventKind::ServiceStarted { service: name, .. } if name == service => {
                down.extend(since.take().map(|from| (from, event.at_s)));
            }
            _ => {}
        }
    }
    down.extend(since.map(|from| (from, f64::INFINITY)));
    let due = (1..=(seconds / period_s).floor() as u64)
        .map(|round| round as f64 * period_s)
        .filter(|at_s| {
            !down
                .iter()
                .any(|(from, to)| (from - NEAR_S..=to + NEAR_S).contains(at_s))
        });
    due.count() as f64
}

fn clocks(runs: &ArmRuns<'_>) -> (Verdict, String) {
    let mut worst = 0.0f64;
    for run in &runs.runs {
        let mut readings = run
            .measured
            .trial
            .events
            .iter()
            .filter_map(|e| match e.kind {
                EventKind::Clock {
                    monotonic_s,
                    wall_s,
                } => Some((monotonic_s, wall_s)),
                _ => None,
            });
        let Some(first) = readings.next() else {
            return unseen("the clocks were not read together");
        };
        let Some(last) = readings.next_back().filter(|last| last.0 > first.0) else {
            return unseen("the clocks were read together only once");
        };
        let elapsed = last.0 - first.0;
        worst = worst.max(((last.1 - first.1) - elapsed).abs() / elapsed);
    }
    (
        passed(worst <= CLOCKS),
        format!("they differ by {} % of the time", brief(worst * 100.0)),
    )
}

fn lived(runs: &ArmRuns<'_>) -> (Verdict, String) {
    let mut died = Vec::new();
    let mut asked = 0u64;
    for run in &runs.runs {
        let mut stopping = false;
        for event in &run.measured.trial.events {
            match &event.kind {
                EventKind::Phase {
                    phase: Phase::Stopping,
                } => stopping = true,
                EventKind::ServiceExited {
                    service,
                    status,
                    expected: false,
                    ..
                } if !stopping => died.push(format!(
                    "{service} ended after {} s ({status})",
                    brief(event.at_s)
                )),
                EventKind::ServiceExited { expected: true, .. } if !stopping => asked += 1,
                _ => {}
            }
        }
    }
    if died.is_empty() {
        let detail = match asked {
            0 => "none ended".to_owned(),
            n => format!("none ended of itself; actions ended one {n} times"),
        };
        (Verdict::Supported, detail)
    } else {
        (Verdict::Refuted, died.join("; "))
    }
}
