//! Bad seconds, grouped: when, how long, what failed, and what coincided.
//!
//! A second is bad when a request failed in it, or when it is slow: below half of the median of the seconds with the same
//! declared load. Where no load was declared no second is slow. It says *coincides with*,
//! never *caused by*; an episode that coincides with nothing stays unexplained.

use std::collections::BTreeMap;

use super::coincidence::Surroundings;
use super::load_gates::declared_level;
use super::measured::Measured;
use super::summary::Episode;
use crate::experiment::ArmSetup;
use crate::measure::FailureClass;

/// Bad seconds less far apart than this belong together.
const JOINED_BELOW_S: u64 = 5;

/// The bad seconds of one run, and what the rest looks like.
#[derive(Debug, Clone, PartialEq, Default)]
pub(super) struct BadTime {
    pub(super) episodes: Vec<Episode>,
    /// Seconds with a failed request.
    pub(super) bad_seconds: u64,
    /// Seconds below half of the median.
    pub(super) slow_seconds: u64,
    /// Requests ended ok outside the episodes.
    pub(super) clean_requests: u64,
    pub(super) clean_hours: f64,
    /// Seconds lost in slow seconds: for each, the share by which it missed the median.
    pub(super) lost_share_s: f64,
}

/// From the first bad second to the second after the last.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Span {
    from: u64,
    to: u64,
    bad: u64,
}

/// Finds them.
pub(super) fn of(measured: &Measured<'_>, setup: &ArmSetup) -> BadTime {
    let levels = Levels::of(measured, setup);
    let whole = measured.ok.len() as u64;
    let mut spans: Vec<Span> = Vec::new();
    let (mut bad_seconds, mut slow_seconds) = (0, 0);
    let mut lost_share_s = 0.0;
    for row in measured.trial.seconds.iter() {
        let failed = row.counts.failed_total() > 0;
        let median = levels.median(row.at_s);
        let slow = row.at_s < whole && (row.counts.ok as f64) < 0.5 * median;
        bad_seconds += u64::from(failed);
        slow_seconds += u64::from(slow);
        if slow {
            lost_share_s += 1.0 - row.counts.ok as f64 / median;
        }
        if !(failed || slow) {
            continue;
        }
        match spans.last_mut() {
            Some(span) if row.at_s - span.to < JOINED_BELOW_S => {
                span.to = row.at_s + 1;
                span.bad += 1;
            }
            _ => spans.push(Span {
                from: row.at_s,
                to: row.at_s + 1,
                bad: 1,
            }),
        }
    }
    let inside: u64 = spans.iter().map(|s| s.to - s.from).sum();
    // What disturbs begins before a second is bad and ends after it, so the neighbours are no measure of what is usual.
    let surroundings = Surroundings::of(measured, |second| {
        let i = spans.partition_point(|span| span.to + JOINED_BELOW_S <= second);
        spans
            .get(i)
            .is_some_and(|span| span.from <= second + JOINED_BELOW_S)
    });
    let episodes: Vec<Episode> = spans
        .iter()
        .map(|span| {
            let median = levels.median(span.from);
            episode(measured, *span, median, &surroundings)
        })
        .collect();
    let inside_ok: u64 = spans
        .iter()
        .map(|span| {
            rows_of(measured, *span)
                .map(|row| row.counts.ok)
                .sum::<u64>()
        })
        .sum();
    BadTime {
        episodes,
        bad_seconds,
        slow_seconds,
        clean_requests: measured.totals.ok - inside_ok,
        clean_hours: (measured.seconds - inside as f64).max(0.0) / 3_600.0,
        lost_share_s,
    }
}

fn rows_of(measured: &Measured<'_>, span: Span) -> impl Iterator<Item = crate::results::SecondRow> {
    measured.trial.seconds.between(span.from, span.to)
}

fn episode(
    measured: &Measured<'_>,
    span: Span,
    median: f64,
    surroundings: &Surroundings<'_>,
) -> Episode {
    let mut failed = [0u64; FailureClass::ALL.len()];
    let mut ok = 0;
    for row in rows_of(measured, span) {
        ok += row.counts.ok;
        for (total, part) in failed.iter_mut().zip(row.counts.failed) {
            *total += part;
        }
    }
    let failed: BTreeMap<String, u64> = FailureClass::ALL
        .into_iter()
        .zip(failed)
        .filter(|(_, count)| *count > 0)
        .map(|(class, count)| (class.to_string(), count))
        .collect();
    let (coincides, mut beside) = surroundings.around(span.from, span.to);
    let server: u64 = [FailureClass::Status5xx, FailureClass::Status503]
        .iter()
        .filter_map(|class| failed.get(class.as_str()))
        .sum();
    if !failed.is_empty() {
        beside.push(match server {
            0 => "no failed request was answered with a 5xx".to_owned(),
            n => format!("{n} of the failed requests were answered with a 5xx"),
        });
    }
    let length = (span.to as f64).min(measured.seconds) - span.from as f64;
    Episode {
        pair: measured.trial.pair,
        from_s: span.from,
        to_s: span.to,
        bad_seconds: span.bad,
        failed,
        throughput: if length > 0.0 {
            ok as f64 / length
        } else {
            0.0
        },
        median_throughput: median,
        coincides,
        beside,
    }
}

/// The usual of each declared load.
struct Levels {
    /// The load of each whole second, in thousandths of a client or request a second.
    of_second: Vec<u64>,
    medians: BTreeMap<u64, f64>,
}

impl Levels {
    fn of(measured: &Measured<'_>, setup: &ArmSetup) -> Self {
        let of_second: Vec<u64> = (0..measured.ok.len())
            .map(|second| (declared_level(setup, second as f64 + 0.5) * 1e3).round() as u64)
            .collect();
        let mut by_level: BTreeMap<u64, Vec<f64>> = BTreeMap::new();
        for (level, ok) in of_second.iter().zip(&measured.ok) {
            by_level.entry(*level).or_default().push(*ok);
        }
        let medians = by_level
            .into_iter()
            .map(|(level, ok)| (level, if level == 0 { 0.0 } else { median(&ok) }))
            .collect();
        Self { of_second, medians }
    }

    /// The median of the seconds with the same load as this one; 0 where none was declared.
    fn median(&self, second: u64) -> f64 {
        let level = usize::try_from(second)
            .ok()
            .and_then(|second| self.of_second.get(second).or(self.of_second.last()));
        level
            .and_then(|level| self.medians.get(level))
            .copied()
            .unwrap_or_default()
    }
}

/// The middle of the seconds' ok requests; 0 without any second.
fn median(ok: &[f64]) -> f64 {
    if ok.is_empty() {
        return 0.0;
    }
    let mut values = ok.to_vec();
    let middle = values.len() / 2;
    let (below, upper, _) = values.select_nth_unstable_by(middle, f64::total_cmp);
    let upper = *upper;
    if ok.len() % 2 == 1 {
        return upper;
    }
    let lower = below.iter().copied().fold(f64::MIN, f64::max);
    0.5 * (lower + upper)
}
