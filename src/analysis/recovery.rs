//! What each execution of an action did: how long until an ok answer came again, and what failed meanwhile.
//!
//! Recovery is read from the longest silence that the execution's seconds touch, to the millisecond; of runs that kept no
//! silences it is rounded up to a whole second's end. A burst of clients is load and no disturbance: nothing is recovered
//! from it, and no failure is excused by it.

use std::collections::BTreeMap;

use super::aftermath;
use super::measured::Measured;
use super::summary::ActionResult;
use crate::experiment::{Action, ActionKind, ArmSetup};
use crate::measure::{EventKind, FailureClass};
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

/// One execution as its event tells it.
struct Execution<'e> {
    action: &'e Action,
    at_s: f64,
    /// Of a burst, when its clients leave.
    ended_s: f64,
    ok: bool,
    detail: &'e str,
}

impl Recoveries {
    /// Reads the executions of one run from its events.
    pub(super) fn of(measured: &Measured<'_>, setup: &ArmSetup) -> Self {
        let mut found: Vec<Execution<'_>> = measured
            .trial
            .events
            .iter()
            .filter(|event| event.at_s >= 0.0 && event.at_s <= measured.seconds)
            .filter_map(|event| {
                let EventKind::Action {
                    name,
                    ended_s,
                    ok,
                    detail,
                    ..
                } = &event.kind
                else {
                    return None;
                };
                let action = setup.actions.iter().find(|action| action.name == *name)?;
                let ended_s = match &action.what {
                    ActionKind::Clients { length, .. } => {
                        (event.at_s + length.as_secs_f64()).min(measured.seconds)
                    }
                    _ => ended_s.max(event.at_s),
                };
                Some(Execution {
                    action,
                    at_s: event.at_s,
                    ended_s,
                    ok: *ok,
                    detail,
                })
            })
            .collect();
        found.sort_by(|a, b| a.at_s.total_cmp(&b.at_s));
        let mut all = Self::default();
        let mut spans: Vec<(u64, u64)> = Vec::new();
        for (i, execution) in found.iter().enumerate() {
            // The last reading of all is taken when the load has ended.
            let until_s = found.get(i + 1).map_or(f64::INFINITY, |next| next.at_s);
            let (mut result, span) = judged(measured, execution, until_s);
            result.memory = aftermath::memory(
                measured,
                setup,
                execution.action,
                (execution.at_s, execution.ended_s, until_s),
            );
            all.executions.push(result);
            spans.extend(span);
        }
        spans.sort_unstable();
        let mut done = 0;
        for (from, to) in spans {
            all.failed_inside += rows(measured, from.max(done), to)
                .map(|row| row.counts.failed_total())
                .sum::<u64>();
            done = done.max(to);
        }
        all
    }
}

pub(super) fn rows(measured: &Measured<'_>, from: u64, to: u64) -> impl Iterator<Item = SecondRow> {
    measured.trial.seconds.between(from, to)
}

/// One execution, and the seconds from its start until it was recovered from.
fn judged(
    measured: &Measured<'_>,
    execution: &Execution<'_>,
    until_s: f64,
) -> (ActionResult, Option<(u64, u64)>) {
    let mut result = ActionResult {
        name: execution.action.name.clone(),
        figure: execution.action.figure.clone(),
        pair: measured.trial.pair,
        arm: measured.trial.arm,
        at_s: execution.at_s,
        ended_s: execution.ended_s,
        ok: execution.ok,
        detail: execution.detail.to_owned(),
        recovery_ms: None,
        failed: BTreeMap::new(),
        slow_seconds: 0,
        throughput: None,
        memory: Vec::new(),
    };
    if matches!(execution.action.what, ActionKind::Clients { .. }) {
        result.throughput = aftermath::throughput(measured, execution.at_s, execution.ended_s);
        return (result, None);
    }
    let from = execution.at_s.floor() as u64;
    let end = measured.trial.seconds.last().map_or(from, |r| r.at_s + 1);
    let ended = execution.ended_s.floor() as u64;
    let before: Vec<SecondRow> = rows(measured, from.saturating_sub(BEFORE_S), from).collect();
    let usual =
        before.iter().map(|row| row.counts.ok).sum::<u64>() as f64 / before.len().max(1) as f64;
    // Where nothing was sent, nothing could be answered.
    let silent = |row: &SecondRow| row.counts.ok == 0 && (usual > 0.0 || row.counts.sent > 0);
    // What it disturbs shows in its own seconds or the next one: a kill late in a second fails requests of the next.
    let disturbed = rows(measured, from, ended.max(from + 1) + 1)
        .find(|row| silent(row) || row.counts.failed_total() > 0)
        .map(|row| row.at_s);
    // It is over in the first second in which requests are ok and none fails.
    let clean = disturbed.and_then(|second| {
        rows(measured, (second + 1).max(ended), end)
            .find(|row| row.counts.ok > 0 && row.counts.failed_total() == 0)
            .map(|row| row.at_s)
    });
    let to = match disturbed {
        None => from,
        Some(_) => clean.unwrap_or(end),
    };
    // What the next execution disturbs is its own.
    let to = if until_s.is_finite() {
        to.min((until_s.floor() as u64).max(from + 1))
    } else {
        to
    };
    let mut failed = [0u64; FailureClass::ALL.len()];
    for row in rows(measured, from, to) {
        for (total, part) in failed.iter_mut().zip(row.counts.failed) {
            *total += part;
        }
    }
    result.failed = FailureClass::ALL
        .into_iter()
        .zip(failed)
        .filter(|(_, count)| *count > 0)
        .map(|(class, count)| (class.to_string(), count))
        .collect();
    if !before.is_empty() {
        result.slow_seconds = rows(measured, from, to.max(from + 1))
            .filter(|row| (row.counts.ok as f64) < 0.5 * usual)
            .count() as u64;
    }
    result.recovery_ms = match disturbed {
        None => Some(0.0),
        Some(second) => answered_again_ms(measured, (execution.at_s, until_s), (from, to + 1))
            .unwrap_or_else(|| whole_second_ms(measured, execution.at_s, second, end)),
    };
    let excused_to = match result.recovery_ms {
        // No second was clean again: what fails after the answers came back is a failure like any other.
        Some(ms) if disturbed.is_some() && clean.is_none() => {
            to.min((execution.at_s + ms / 1e3).floor() as u64 + 1)
        }
        // Never recovered from, though nothing else was done: nothing excuses the rest of the arm.
        None if until_s.is_infinite() => from,
        _ => to,
    };
    (result, Some((from, excused_to.max(from))))
}

/// From the start until the end of the longest silence that ended after it. One that lasts beyond the start of the next
/// execution belongs to the one of the two whose start it began nearer to. The outer `None`: these rows tell of none; the
/// inner one: it did not end.
fn answered_again_ms(
    measured: &Measured<'_>,
    (at_s, until_s): (f64, f64),
    (from, to): (u64, u64),
) -> Option<Option<f64>> {
    let mut longest: Option<(u64, Option<f64>)> = None;
    let mut last = from;
    for row in rows(measured, from, to) {
        let silence = row.silence?;
        let ends_s = row.at_s as f64 + silence.until_ms as f64 / 1e3;
        let ended = (silence.until_ms < 1_000).then_some(ends_s);
        let begins_s = ends_s - silence.length_ms as f64 / 1e3;
        // The same silence is longer in the second in which it ends.
        let is_next = ends_s > until_s && begins_s > 0.5 * (at_s + until_s);
        if ends_s > at_s
            && !is_next
            && longest.is_none_or(|(length, _)| silence.length_ms >= length)
        {
            longest = Some((silence.length_ms, ended));
            last = row.at_s;
        }
    }
    let (_, ended) = longest?;
    let is_hidden = || rows(measured, last + 1, u64::MAX).any(|row| row.counts.ok > 0);
    if ended.is_none() && is_hidden() {
        // It ended in a second whose longest silence is another execution's.
        return None;
    }
    Some(ended.map(|ends_s| (ends_s - at_s) * 1e3))
}

/// Rounded up: to the end of the first second after the disturbed one that has an ok answer. Ok answers of the disturbed
/// second itself may have come before.
fn whole_second_ms(measured: &Measured<'_>, at_s: f64, disturbed: u64, end: u64) -> Option<f64> {
    let after = rows(measured, disturbed + 1, end).find(|row| row.counts.ok > 0)?;
    let until = ((after.at_s + 1) as f64).min(measured.seconds);
    Some(((until - at_s) * 1e3).max(0.0))
}
