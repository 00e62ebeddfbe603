//! One arm of one pair as numbers: totals, whole seconds, windows, merged latencies.
//!
//! Totals are sums of the stored seconds and of nothing else, so that they can't differ from them. Warm-up is in another
//! file and never gets here.

use anyhow::{Context, Result};

use super::latency::{self, Merged, Parts};
use super::summary::WindowRow;
use crate::measure::{Account, Counts, EventKind};
use crate::results::{Seconds, Trial};

/// How time is cut, and what a request without a latency took at least.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Cut {
    /// Seconds a window.
    pub(super) window_s: f64,
    /// Seconds an interval of the latency log, which no edge of a window may cut.
    pub(super) interval_s: u64,
    /// Most points that a picture has.
    pub(super) points: u64,
    /// The clients' timeout.
    pub(super) timeout_us: u64,
}

/// One arm of one pair.
#[derive(Debug)]
pub(super) struct Measured<'r> {
    pub(super) trial: &'r Trial,
    /// Measured time in seconds.
    pub(super) seconds: f64,
    /// Sums over all seconds.
    pub(super) totals: Counts,
    pub(super) ok_by_step: Vec<u64>,
    pub(super) account: Account,
    /// Ok requests of each whole second; a second without a row has none.
    pub(super) ok: Vec<f64>,
    /// Whole seconds that have no row.
    pub(super) missing_rows: u64,
    /// Windows, the last perhaps shorter than the others.
    pub(super) windows: Vec<WindowRow>,
    /// How many of them are whole.
    pub(super) whole_windows: usize,
    pub(super) latency: Merged,
    /// Seconds at the end whose latencies were lost with a runner that was killed; their requests are counted all the same.
    pub(super) untimed_s: u64,
    /// Seconds a point of a picture.
    pub(super) point_s: u64,
}

/// Sums over consecutive parts of time.
#[derive(Debug, Clone, Default)]
struct PartSums {
    parts: Parts,
    ok: Vec<u64>,
    failed: Vec<u64>,
}

impl PartSums {
    /// `timed_s`: requests of later seconds are no part of what has latencies.
    fn of(rows: &Seconds, ends: Vec<u64>, timed_s: u64) -> Self {
        let n = ends.len();
        let mut sums = PartSums {
            parts: Parts {
                ends,
                completed: vec![0; n],
            },
            ok: vec![0; n],
            failed: vec![0; n],
        };
        let mut part = 0;
        for row in rows.iter() {
            while sums
                .parts
                .ends
                .get(part)
                .is_some_and(|&end| end <= row.at_s)
            {
                part += 1;
            }
            if part == n {
                break;
            }
            if row.at_s < timed_s {
                sums.parts.completed[part] += row.counts.completed();
            }
            sums.ok[part] += row.counts.ok;
            sums.failed[part] += row.counts.failed_total();
        }
        sums
    }
}

/// Seconds from the start whose latencies are in the log. A killed runner takes those of the last interval with it: without
/// this their requests would look as if they had never had an answer.
fn timed_seconds(trial: &Trial, rows_end: u64, interval_s: u64) -> u64 {
    let closed = trial
        .events
        .iter()
        .rev()
        .any(|event| matches!(event.kind, EventKind::Stopped { .. }));
    if closed {
        return rows_end;
    }
    // An interval is written before the first row that follows it.
    let last_row = rows_end.saturating_sub(1);
    last_row - last_row % interval_s.max(1)
}

impl<'r> Measured<'r> {
    /// Reads one arm's rows and its latency log, each once. `None` when nothing was measured.
    ///
    /// # Errors
    /// When the latency log is damaged.
    pub(super) fn of(trial: &'r Trial, cut: &Cut) -> Result<Option<Self>> {
        let Some(last) = trial.seconds.last() else {
            return Ok(None);
        };
        let rows_end = last.at_s + 1;
        let seconds = measured_seconds(trial, rows_end);
        let mut totals = Counts::default();
        let mut account = Account::default();
        let mut ok_by_step = vec![0; trial.steps.len()];
        let mut ok = vec![0.0; seconds.floor() as usize];
        let mut missing_rows = rows_end;
        for row in trial.seconds.iter() {
            totals.add(&row.counts);
            account.add(&row.account);
            for (total, part) in ok_by_step.iter_mut().zip(&row.ok_by_step) {
                *total += part;
            }
            if let Some(second) = ok.get_mut(row.at_s as usize) {
                *second += row.counts.ok as f64;
            }
            missing_rows = missing_rows.saturating_sub(1);
        }

        let edges = window_ends(rows_end, cut);
        let timed_s = timed_seconds(trial, rows_end, cut.interval_s);
        let by_window = PartSums::of(&trial.seconds, edges.clone(), timed_s);
        let point_s = rows_end
            .div_ceil(cut.points.max(1))
            .next_multiple_of(cut.interval_s.max(1));
        let point_ends = (1..=rows_end.div_ceil(point_s))
            .map(|i| (i * point_s).min(rows_end))
            .collect();
        let by_point = PartSums::of(&trial.seconds, point_ends, timed_s);
        let whole_windows = whole_windows(&edges, seconds, cut);
        let latency = latency::merge(
            &trial.latency,
            &by_window.parts,
            whole_windows.checked_sub(1),
            &by_point.parts,
            by_point.parts.completed.iter().sum(),
            cut.timeout_us,
        )
        .with_context(|| format!("pair {}, {}", trial.pair, trial.arm))?;
        let mut from = 0u64;
        let mut windows = Vec::with_capacity(edges.len());
        for (i, &end) in edges.iter().enumerate() {
            let to_s = (end as f64).min(seconds);
            let length = to_s - from as f64;
            let point = latency.windows.get(i).copied().unwrap_or_default();
            windows.push(WindowRow {
                from_s: from as f64,
                to_s,
                ok: by_window.ok[i],
                throughput: if length > 0.0 {
                    by_window.ok[i] as f64 / length
                } else {
                    0.0
                },
                p50: point.p50,
                p99: point.p99,
                max: point.max,
                failed: by_window.failed[i],
            });
            from = end;
        }
        Ok(Some(Self {
            trial,
            seconds,
            totals,
            ok_by_step,
            account,
            ok,
            missing_rows,
            windows,
            whole_windows,
            latency,
            untimed_s: rows_end - timed_s,
            point_s,
        }))
    }

    /// Ok requests a second over the arm.
    pub(super) fn mean(&self) -> Option<f64> {
        (self.seconds > 0.0).then(|| self.totals.ok as f64 / self.seconds)
    }

    /// Ok requests a second over the first `seconds` seconds.
    pub(super) fn mean_until(&self, seconds: f64) -> Option<f64> {
        if seconds >= self.seconds {
            return self.mean();
        }
        let n = (seconds.floor() as usize).min(self.ok.len());
        (n > 0).then(|| self.ok[..n].iter().sum::<f64>() / n as f64)
    }

    /// The first whole window, when there are at least two.
    pub(super) fn first_window(&self) -> Option<&WindowRow> {
        (self.whole_windows >= 2).then(|| &self.windows[0])
    }

    /// The last whole window, when there are at least two.
    pub(super) fn last_window(&self) -> Option<&WindowRow> {
        (self.whole_windows >= 2).then(|| &self.windows[self.whole_windows - 1])
    }

    /// Ok requests of each whole second of a window.
    pub(super) fn ok_within(&self, window: &WindowRow) -> &[f64] {
        let to = (window.to_s as usize).min(self.ok.len());
        let from = (window.from_s as usize).min(to);
        &self.ok[from..to]
    }

    /// The steps' names and ok requests.
    pub(super) fn steps(&self) -> impl Iterator<Item = (&str, u64)> {
        self.trial
            .steps
            .iter()
            .map(String::as_str)
            .zip(self.ok_by_step.iter().copied())
    }
}

/// How long was measured, in seconds: as the driver tells it, within the last second that has a row; else to that one's end.
fn measured_seconds(trial: &Trial, rows_end: u64) -> f64 {
    let end = rows_end as f64;
    let told = trial
        .events
        .iter()
        .rev()
        .find_map(|event| match event.kind {
            EventKind::LoadEnd { seconds, .. } => Some(seconds),
            _ => None,
        });
    told.filter(|s| *s > end - 1.0 && *s < end).unwrap_or(end)
}

/// Ends of the windows in whole seconds, none inside an interval of the latency log; the last one is the end of the rows.
fn window_ends(rows_end: u64, cut: &Cut) -> Vec<u64> {
    let step = cut.interval_s.max(1) as f64;
    let window_s = cut.window_s.max(step);
    let mut ends = Vec::new();
    for i in 1.. {
        let end = ((f64::from(i) * window_s / step).round() * step) as u64;
        if end >= rows_end {
            break;
        }
        ends.push(end);
    }
    ends.push(rows_end);
    ends
}

/// Whether the last window is as long as the others decides whether it counts.
fn whole_windows(ends: &[u64], seconds: f64, cut: &Cut) -> usize {
    let Some(&last) = ends.last() else { return 0 };
    let from = ends.len().checked_sub(2).map_or(0, |i| ends[i]);
    let length = (last as f64).min(seconds) - from as f64;
    let step = cut.interval_s.max(1) as f64;
    // Edges are rounded to intervals, so a whole window may be an interval shorter.
    if length + step > cut.window_s || length >= cut.window_s {
        ends.len()
    } else {
        ends.len() - 1
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cut(window_s: f64, interval_s: u64) -> Cut {
        Cut {
            window_s,
            interval_s,
            points: 400,
            timeout_us: 10_000_000,
        }
    }

    #[test]
    fn windows_end_at_whole_intervals_and_a_short_last_one_does_not_count() {
        assert_eq!(window_ends(120, &cut(20.0, 1)), [20, 40, 60, 80, 100, 120]);
        assert_eq!(window_ends(100, &cut(16.667, 1)), [17, 33, 50, 67, 83, 100]);
        assert_eq!(window_ends(45, &cut(20.0, 5)), [20, 40, 45]);
        assert_eq!(window_ends(5, &cut(20.0, 1)), [5]);
        let whole = |rows: u64, c: Cut| whole_windows(&window_ends(rows, &c), rows as f64, &c);
        assert_eq!(whole(120, cut(20.0, 1)), 6);
        assert_eq!(whole(100, cut(16.667, 1)), 6);
        assert_eq!(whole(45, cut(20.0, 1)), 2);
        assert_eq!(whole(5, cut(20.0, 1)), 0);
    }
}
