//! When the next reading is due.

use std::time::{Duration, Instant};

use tokio::sync::watch;

use super::output::{Output, seconds_between};
use crate::measure::EventKind;

/// One instrument's plan: a reading each `period` from the origin on (and back from it, before it).
pub(super) struct Pace {
    origin: watch::Receiver<Instant>,
    period: Duration,
    counted_from: Option<Instant>,
    last: Option<i64>,
    /// What became of the plan so far, in the measured time.
    pub(super) tally: Tally,
}

/// Readings planned and taken in the measured time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Tally {
    pub(super) planned: u64,
    pub(super) taken: u64,
    pub(super) gaps: u64,
}

impl Tally {
    pub(super) fn add(&mut self, other: Tally) {
        self.planned += other.planned;
        self.taken += other.taken;
        self.gaps += other.gaps;
    }
}

/// A reading that is due now.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Tick {
    /// Its number; 0 at the origin, negative before.
    pub(super) index: i64,
    /// When it was due, in seconds from the origin.
    pub(super) planned_s: f64,
    /// Due readings just before it that were missed.
    pub(super) missed: u64,
}

impl Pace {
    pub(super) fn new(origin: watch::Receiver<Instant>, period: Duration) -> Self {
        Self {
            origin,
            period: period.max(Duration::from_millis(1)),
            counted_from: None,
            last: None,
            tally: Tally::default(),
        }
    }

    /// Waits for the next reading's time. A new origin begins the plan anew.
    pub(super) async fn next(&mut self) -> Tick {
        loop {
            let origin = *self.origin.borrow_and_update();
            if self.counted_from != Some(origin) {
                self.counted_from = Some(origin);
                self.last = None;
                self.tally = Tally::default();
            }
            let now = Instant::now();
            let tick = due(seconds_between(origin, now), self.period, self.last);
            let wait = tick.planned_s - seconds_between(origin, now);
            if wait > 0.0 {
                let set_anew = async {
                    if self.origin.changed().await.is_err() {
                        std::future::pending::<()>().await;
                    }
                };
                tokio::select! {
                    () = tokio::time::sleep(Duration::from_secs_f64(wait)) => {}
                    () = set_anew => continue,
                }
            }
            self.last = Some(tick.index);
            self.tally.planned += u64::from(tick.index >= 0);
            // Missed readings from before the origin don't count.
            self.tally.planned += tick.missed.min(u64::try_from(tick.index).unwrap_or(0));
            return tick;
        }
    }

    /// Books that the reading was taken, `late_s` after its time. A reading late by more than half a period is a gap: it
    /// stands nearer to the next one's time than to its own.
    pub(super) fn taken(&mut self, tick: Tick, taken_s: f64, out: &Output) {
        let late = taken_s - tick.planned_s > self.period.as_secs_f64() / 2.0;
        if late {
            return self.gap(tick, taken_s, out);
        }
        if tick.index >= 0 {
            self.tally.taken += 1;
        }
        self.missed(tick, taken_s, out);
    }

    /// Books that the reading was not taken in its time, as known at `known_s`.
    pub(super) fn gap(&mut self, tick: Tick, known_s: f64, out: &Output) {
        self.missed(tick, known_s, out);
        self.tally.gaps += u64::from(tick.index >= 0);
        out.event(
            known_s,
            EventKind::SampleGap {
                planned_s: tick.planned_s,
                taken_s: known_s,
            },
        );
    }

    /// Books the readings just before this one that were not taken at all, as one gap from the first of them.
    fn missed(&mut self, tick: Tick, known_s: f64, out: &Output) {
        if tick.missed > 0 {
            self.tally.gaps += tick.missed.min(u64::try_from(tick.index).unwrap_or(0));
            let first = tick.planned_s - tick.missed as f64 * self.period.as_secs_f64();
            out.event(
                known_s,
                EventKind::SampleGap {
                    planned_s: first,
                    taken_s: known_s,
                },
            );
        }
    }

    /// Takes a reading out of the plan: there was nothing to read, and that was expected.
    pub(super) fn excused(&mut self, tick: Tick) {
        let index = u64::try_from(tick.index).unwrap_or(0);
        self.tally.planned -= u64::from(tick.index >= 0) + tick.missed.min(index);
    }
}

/// The reading to take next, when the last one was number `last`, `now_s` seconds after the origin.
fn due(now_s: f64, period: Duration, last: Option<i64>) -> Tick {
    let period_s = period.as_secs_f64();
    let begun = (now_s / period_s).floor() as i64;
    let (index, missed) = match last {
        // At the origin itself the first reading is due at once, even if waking up took a moment.
        None if begun == 0 => (0, 0),
        None => ((now_s / period_s).ceil() as i64, 0),
        Some(last) => {
            let index = begun.max(last + 1);
            (index, u64::try_from(index - last - 1).unwrap_or(0))
        }
    };
    Tick {
        index,
        planned_s: index as f64 * period_s,
        missed,
    }
}

#[cfg(test)]
mod tests {
    use super::super::output::tests::output;
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    #[test]
    fn readings_keep_to_the_grid_of_the_origin() {
        let tick = due(-2.4, SECOND, None);
        assert_eq!((tick.index, tick.planned_s), (-2, -2.0));
        assert_eq!(due(0.003, SECOND, None).index, 0);
        assert_eq!(due(5.2, SECOND, None).index, 6);
        let next = due(6.1, SECOND, Some(6));
        assert_eq!((next.index, next.missed), (7, 0));
    }

    #[test]
    fn missed_readings_are_counted_and_never_made_up() {
        let tick = due(9.3, SECOND, Some(5));
        assert_eq!((tick.index, tick.missed), (9, 3));
        let late = due(7.2, SECOND, Some(6));
        assert_eq!((late.index, late.missed), (7, 0));
    }

    #[tokio::test]
    async fn the_tally_holds_planned_taken_and_gaps() {
        let (out, mut received) = output("db");
        let origin = Instant::now() - Duration::from_millis(3500);
        let mut pace = Pace::new(watch::channel(origin).1, SECOND);
        pace.counted_from = Some(origin);
        pace.last = Some(0);
        let tick = pace.next().await;
        assert_eq!((tick.index, tick.missed), (3, 2));
        pace.taken(tick, 3.4, &out);
        assert_eq!(
            pace.tally,
            Tally {
                planned: 3,
                taken: 1,
                gaps: 2
            }
        );
        assert!(received.try_recv().is_ok());
        // What was excused was never planned, with what was missed before it.
        pace.tally = Tally {
            planned: 3,
            ..Tally::default()
        };
        pace.excused(tick);
        assert_eq!(pace.tally, Tally::default());
    }

    #[tokio::test]
    async fn a_new_origin_begins_the_plan_anew() {
        let far = Instant::now() + Duration::from_secs(3600);
        let (set, origin) = watch::channel(far);
        let mut pace = Pace::new(origin, Duration::from_secs(1000));
        let moved = async {
            tokio::task::yield_now().await;
            set.send(Instant::now()).ok();
        };
        let (tick, ()) = tokio::join!(pace.next(), moved);
        assert_eq!(tick.index, 0);
    }
}
