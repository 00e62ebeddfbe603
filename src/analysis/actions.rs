//! Actions: what each execution did, how long until an ok answer came again, what failed meanwhile.
//!
//! Seconds are the resolution of the rows: a recovery read from them is rounded up to a whole second's end and never given
//! finer than that, unless nothing failed at all.

use std::collections::BTreeMap;

use super::arm::ArmRuns;
use super::figures::Figures;
use super::measured::Measured;
use super::summary::ActionResult;
use crate::experiment::{ArmSetup, Experiment};
use crate::measure::{Event, EventKind, FailureClass};
use crate::results::SecondRow;

/// Seconds before an action that its slow seconds are measured against.
const BEFORE_S: u64 = 10;

/// Executions of one run, with what failed while they were being recovered from.
#[derive(Debug, Clone, Default)]
pub(super) struct Recoveries {
    pub(super) executions: Vec<ActionResult>,
    /// Requests that failed within some recovery, each counted once.
    pub(super) failed_inside: u64,
}

impl Recoveries {
    /// Reads the executions of one run from its events.
    pub(super) fn of(measured: &Measured<'_>, setup: &ArmSetup) -> Self {
        let mut executions = Vec::new();
        let mut spans: Vec<(u64, u64)> = Vec::new();
        if setup.actions.is_empty() {
            return Self::default();
        }
        for event in &measured.trial.events {
            let EventKind::Action {
                name,
                ended_s,
                ok,
                detail,
                ..
            } = &event.kind
            else {
                continue;
            };
            if event.at_s < 0.0 || event.at_s > measured.seconds {
                continue;
            }
            let (result, span) = execution(measured, event, name, *ended_s, *ok, detail);
            executions.push(result);
            spans.push(span);
        }
        spans.sort_unstable();
        let mut failed_inside = 0;
        let mut done = 0;
        for (from, to) in spans {
            failed_inside += rows(measured, from.max(done), to)
                .map(|row| row.counts.failed_total())
                .sum::<u64>();
            done = done.max(to);
        }
        Self {
            executions,
            failed_inside,
        }
    }
}

fn rows<'m>(measured: &'m Measured<'_>, from: u64, to: u64) -> impl Iterator<Item = &'m SecondRow> {
    let all = &measured.trial.seconds;
    let start = all.partition_point(|row| row.at_s < from);
    all[start..].iter().take_while(move |row| row.at_s < to)
}

/// One execution and the seconds from its start until it was recovered from.
fn execution(
    measured: &Measured<'_>,
    event: &Event,
    name: &str,
    ended_s: f64,
    ok: bool,
    detail: &str,
) -> (ActionResult, (u64, u64)) {
    let from = event.at_s.max(0.0).floor() as u64;
    let end = measured.trial.seconds.last().map_or(from, |r| r.at_s + 1);
    let ended = ended_s.max(event.at_s).floor() as u64;
    // What it disturbs shows in its own seconds or the next one: a kill late in a second fails requests of the next.
    let disturbed = rows(measured, from, ended.max(from + 1) + 1)
        .find(|row| row.counts.ok == 0 || row.counts.failed_total() > 0)
        .map(|row| row.at_s);
    let to = match disturbed {
        None => from,
        // It is over in the first second in which requests are ok and none fails.
        Some(second) => rows(measured, (second + 1).max(ended), end)
            .find(|row| row.counts.ok > 0 && row.counts.failed_total() == 0)
            .map_or(end, |row| row.at_s),
    };
    let mut failed = [0u64; FailureClass::ALL.len()];
    for row in rows(measured, from, to) {
        for (total, part) in failed.iter_mut().zip(row.counts.failed) {
            *total += part;
        }
    }
    let before: Vec<&SecondRow> = rows(measured, from.saturating_sub(BEFORE_S), from).collect();
    let usual =
        before.iter().map(|row| row.counts.ok).sum::<u64>() as f64 / before.len().max(1) as f64;
    let slow_seconds = if before.is_empty() {
        0
    } else {
        rows(measured, from, to.max(from + 1))
            .filter(|row| (row.counts.ok as f64) < 0.5 * usual)
            .count() as u64
    };
    let failed: BTreeMap<String, u64> = FailureClass::ALL
        .into_iter()
        .zip(failed)
        .filter(|(_, count)| *count > 0)
        .map(|(class, count)| (class.to_string(), count))
        .collect();
    let recovery_ms = first_ok_ms(measured, event.at_s, disturbed, end);
    let result = ActionResult {
        name: name.to_owned(),
        pair: measured.trial.pair,
        arm: measured.trial.arm,
        at_s: event.at_s,
        ended_s,
        ok,
        detail: detail.to_owned(),
        recovery_ms,
        failed,
        slow_seconds,
    };
    (result, (from, to))
}

/// Until the first ok answer after the start: 0 when nothing was disturbed, else the distance to the end of the first second
/// after the disturbed one that has an ok answer. Ok answers of the disturbed second itself may have come before.
fn first_ok_ms(
    measured: &Measured<'_>,
    at_s: f64,
    disturbed: Option<u64>,
    end: u64,
) -> Option<f64> {
    let Some(second) = disturbed else {
        return Some(0.0);
    };
    let after = rows(measured, second + 1, end).find(|row| row.counts.ok > 0)?;
    let until = ((after.at_s + 1) as f64).min(measured.seconds);
    Some(((until - at_s) * 1e3).max(0.0))
}

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
