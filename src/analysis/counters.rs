//! Running totals: compared within one life only, so that an interval across a restart or a reset is void, never negative.

use super::measured::Measured;
use super::series::EDGE_S;
use crate::measure::RUNNER;
use crate::results::SampleSeries;

/// The increase of a counter between two readings of one life.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Increase {
    pub(super) from_s: f64,
    pub(super) to_s: f64,
    pub(super) by: f64,
}

/// Increases between neighbouring readings within the measured time; across lives, and where a counter fell, there is none.
pub(super) fn increases(series: &SampleSeries, seconds: f64) -> impl Iterator<Item = Increase> {
    series.points.windows(2).filter_map(move |pair| {
        let ((from_s, before, epoch), (to_s, after, later)) = (pair[0], pair[1]);
        let inside = from_s >= -EDGE_S && to_s <= seconds + EDGE_S && to_s > from_s;
        (inside && epoch == later && after >= before).then_some(Increase {
            from_s,
            to_s,
            by: after - before,
        })
    })
}

/// Whether readings of this unit are running totals.
pub(super) fn is_counter(unit: &str) -> bool {
    unit == "cpu_s" || unit.ends_with("_total")
}

/// Completed requests by moment: as the samplers read them, else from the seconds' rows.
pub(super) struct Completed<'r> {
    readings: Vec<(f64, f64)>,
    rows: Vec<f64>,
    measured: &'r Measured<'r>,
}

impl<'r> Completed<'r> {
    pub(super) fn of(measured: &'r Measured<'r>) -> Self {
        let mut readings: Vec<(f64, f64)> = measured
            .trial
            .samples
            .get(&(RUNNER.to_owned(), "requests_completed".to_owned()))
            .map(|s| s.points.iter().map(|p| (p.0, p.1)).collect())
            .unwrap_or_default();
        readings.sort_by(|a, b| a.0.total_cmp(&b.0));
        let mut rows = vec![0.0; measured.seconds.ceil() as usize + 1];
        for row in measured.trial.seconds.iter() {
            if let Some(slot) = rows.get_mut(row.at_s as usize + 1) {
                *slot = row.counts.completed() as f64;
            }
        }
        let mut sum = 0.0;
        for slot in &mut rows {
            sum += *slot;
            *slot = sum;
        }
        Self {
            readings,
            rows,
            measured,
        }
    }

    /// Requests completed between two moments; both from the same source.
    pub(super) fn between(&self, from_s: f64, to_s: f64) -> f64 {
        if let (Some(before), Some(after)) = (self.read_at(from_s), self.read_at(to_s))
            && after >= before
        {
            return after - before;
        }
        self.counted_at(to_s) - self.counted_at(from_s)
    }

    fn read_at(&self, at_s: f64) -> Option<f64> {
        /// The files keep six digits behind the point.
        const SAME_MOMENT_S: f64 = 2e-6;
        let i = self
            .readings
            .partition_point(|r| r.0 < at_s - SAME_MOMENT_S);
        let reading = self.readings.get(i)?;
        (reading.0 <= at_s + SAME_MOMENT_S).then_some(reading.1)
    }

    /// Within a second, completions are taken as spread evenly.
    fn counted_at(&self, at_s: f64) -> f64 {
        let at = at_s.clamp(0.0, self.measured.seconds);
        let second = at.floor() as usize;
        let below = self.rows.get(second).copied().unwrap_or_default();
        let above = self.rows.get(second + 1).copied().unwrap_or(below);
        below + (above - below) * (at - at.floor())
    }
}

/// The sum of counters that were read together: moments and lives that all have.
pub(super) fn joined(parts: &[&SampleSeries]) -> Option<SampleSeries> {
    let (first, rest) = parts.split_first()?;
    let mut points = first.points.clone();
    for part in rest {
        let mut at = 0;
        points.retain_mut(|point| {
            while part.points.get(at).is_some_and(|p| p.0 < point.0) {
                at += 1;
            }
            match part.points.get(at) {
                Some(p) if p.0 == point.0 && p.2 == point.2 => {
                    point.1 += p.1;
                    true
                }
                _ => false,
            }
        });
    }
    Some(SampleSeries {
        unit: first.unit.clone(),
        points,
    })
}

/// Seconds between readings: the declared period, or the median distance where the instrument is slower than that.
pub(super) fn spacing(series: &SampleSeries, period_s: f64) -> f64 {
    let n = series.points.len();
    if n < 2 {
        return period_s;
    }
    let mut gaps: Vec<f64> = series
        .points
        .windows(2)
        .map(|pair| pair[1].0 - pair[0].0)
        .collect();
    let middle = gaps.len() / 2;
    let (_, gap, _) = gaps.select_nth_unstable_by(middle, f64::total_cmp);
    if *gap > 1.5 * period_s {
        gap.round().max(period_s)
    } else {
        period_s
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn series(points: &[(f64, f64, u32)]) -> SampleSeries {
        SampleSeries {
            unit: "count_total".into(),
            points: points.to_vec(),
        }
    }

    #[test]
    fn an_interval_across_a_restart_or_a_reset_is_void() {
        let counter = series(&[
            (-5.0, 1.0, 0),
            (0.0, 10.0, 0),
            (1.0, 14.0, 0),
            (2.0, 3.0, 1),
            (3.0, 5.0, 1),
            (4.0, 1.0, 1),
            (9.0, 2.0, 1),
        ]);
        let all: Vec<f64> = increases(&counter, 4.0).map(|i| i.by).collect();
        assert_eq!(all, [4.0, 2.0]);
    }

    #[test]
    fn counters_join_only_where_both_were_read() {
        let both = joined(&[
            &series(&[(0.0, 1.0, 0), (1.0, 2.0, 0), (2.0, 3.0, 1)]),
            &series(&[(0.0, 10.0, 0), (2.0, 30.0, 1)]),
        ])
        .unwrap();
        assert_eq!(both.points, [(0.0, 11.0, 0), (2.0, 33.0, 1)]);
    }

    #[test]
    fn a_slow_instrument_is_known_by_its_readings() {
        let slow = series(&[(0.0, 1.0, 0), (60.0, 1.0, 0), (120.0, 1.0, 0)]);
        assert_eq!(spacing(&slow, 1.0), 60.0);
        assert_eq!(spacing(&series(&[(0.0, 1.0, 0)]), 1.0), 1.0);
    }
}
