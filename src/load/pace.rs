//! Who sends when, as values: clients over time, requests over time.
//!
//! Pure: time in, decisions out. It must never look at a clock itself.

use std::time::Duration;

use super::draw::{Lane, Seed};
use crate::experiment::{Arrival, Stage};

/// Where a client is at some time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Presence {
    /// Among those that send.
    Here,
    /// Not before then.
    From(Duration),
    /// Never again in this phase.
    Gone,
}

/// Clients over time: stages, and a ramp at the start.
#[derive(Debug, Clone)]
pub(super) struct Crowd {
    stages: Vec<Stage>,
    ramp: Duration,
}

impl Crowd {
    /// Stages follow each other from the start of the phase.
    pub(super) fn new(stages: &[Stage], ramp: Duration) -> Self {
        Crowd {
            stages: stages.to_vec(),
            ramp,
        }
    }

    /// The same level to the end: for warm-up, which holds the first one.
    pub(super) fn first_level(stages: &[Stage], ramp: Duration) -> Self {
        let held = stages.first().map(|stage| Stage {
            level: stage.level,
            length: None,
        });
        Crowd {
            stages: held.into_iter().collect(),
            ramp,
        }
    }

    /// Whoever is asked about, from one time to another: a burst.
    pub(super) fn until(from: Duration, until: Duration) -> Self {
        let stage = |level, length| Stage { level, length };
        Crowd {
            stages: vec![
                stage(0.0, Some(from)),
                stage(f64::from(u32::MAX), Some(until.saturating_sub(from))),
            ],
            ramp: Duration::ZERO,
        }
    }

    /// The most clients at any time.
    pub(super) fn most(&self) -> u64 {
        let levels = self.stages.iter().map(level);
        levels.max().unwrap_or(0)
    }

    /// When a client that sends so long after the start is sent away; `None`: not before the phase ends.
    pub(super) fn leaves(&self, client: u64, at: Duration) -> Option<Duration> {
        let mut begins = Duration::ZERO;
        for stage in &self.stages {
            let Some(length) = stage.length else {
                return (client >= level(stage)).then_some(begins);
            };
            let ends = begins + length;
            if at < ends && client >= level(stage) {
                return Some(begins);
            }
            begins = ends;
        }
        Some(begins)
    }

    /// Where client number `client` is, so long after the start.
    pub(super) fn presence(&self, client: u64, at: Duration) -> Presence {
        let most = self.most().max(1);
        let joins = self.ramp.mul_f64(client as f64 / most as f64);
        let mut begins = Duration::ZERO;
        for stage in &self.stages {
            let ends = stage.length.map(|length| begins + length);
            if client < level(stage) && ends.is_none_or(|ends| at.max(joins) < ends) {
                let from = begins.max(joins);
                return if at >= from {
                    Presence::Here
                } else {
                    Presence::From(from)
                };
            }
            match ends {
                Some(ends) => begins = ends,
                None => return Presence::Gone,
            }
        }
        Presence::Gone
    }
}

fn level(stage: &Stage) -> u64 {
    stage.level.max(0.0).round() as u64
}

/// When requests of an open loop are due; the same sequence whatever becomes of them.
#[derive(Debug, Clone)]
pub(super) struct Arrivals {
    stages: Vec<Stage>,
    kind: Arrival,
    seed: Seed,
    next: u64,
    /// Seconds from the start of the phase.
    at_s: f64,
}

impl Arrivals {
    /// Stages follow each other from the start of the phase.
    pub(super) fn new(stages: &[Stage], kind: Arrival, seed: Seed) -> Self {
        Arrivals {
            stages: stages.to_vec(),
            kind,
            seed,
            next: 0,
            at_s: 0.0,
        }
    }

    /// The next request's number and when it is due; `None` when no more come.
    pub(super) fn next(&mut self) -> Option<(u64, Duration)> {
        // In units of mean intervals: how far to go along the rate's integral.
        let mut left = match self.kind {
            Arrival::Uniform => 1.0,
            Arrival::Poisson => -self.seed.at(Lane::Arrival, 0, self.next).unit().ln(),
        };
        let mut begins = 0.0;
        for stage in &self.stages {
            let ends = stage
                .length
                .map_or(f64::INFINITY, |l| begins + l.as_secs_f64());
            if self.at_s < ends {
                let rate = stage.level.max(0.0);
                let from = self.at_s.max(begins);
                let room = if rate > 0.0 {
                    (ends - from) * rate
                } else {
                    0.0
                };
                if left < room {
                    self.at_s = from + left / rate;
                    let number = self.next;
                    self.next += 1;
                    return Some((number, Duration::from_secs_f64(self.at_s)));
                }
                left -= room;
                self.at_s = ends;
            }
            begins = ends;
        }
        None
    }
}

/// One thread's share of the arrivals, one at a time: what is due stays due until it is dealt with.
#[derive(Debug, Clone)]
pub(super) struct Schedule {
    arrivals: Arrivals,
    number: u64,
    threads: u64,
    next: Option<(u64, Duration)>,
}

impl Schedule {
    /// Every `threads`-th request, from `number` on.
    pub(super) fn new(arrivals: Arrivals, number: u64, threads: u64) -> Self {
        let mut schedule = Schedule {
            arrivals,
            number,
            threads,
            next: None,
        };
        schedule.advance();
        schedule
    }

    /// The request that is due next, and when.
    pub(super) fn next(&self) -> Option<(u64, Duration)> {
        self.next
    }

    /// The next one has been dealt with.
    pub(super) fn advance(&mut self) {
        self.next = loop {
            match self.arrivals.next() {
                Some((request, _)) if request % self.threads != self.number => {}
                next => break next,
            }
        };
    }

    /// How many are due before `end` and have not been dealt with; they are taken.
    pub(super) fn left_before(&mut self, end: Duration) -> u64 {
        let mut left = 0;
        while self.next.is_some_and(|(_, due)| due < end) {
            left += 1;
            self.advance();
        }
        left
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stage(level: f64, seconds: Option<u64>) -> Stage {
        Stage {
            level,
            length: seconds.map(Duration::from_secs),
        }
    }

    fn s(seconds: f64) -> Duration {
        Duration::from_secs_f64(seconds)
    }

    #[test]
    fn a_ramp_spreads_the_start() {
        let crowd = Crowd::new(&[stage(4.0, None)], s(8.0));
        assert_eq!(crowd.presence(0, s(0.0)), Presence::Here);
        assert_eq!(crowd.presence(3, s(0.0)), Presence::From(s(6.0)));
        assert_eq!(crowd.presence(3, s(6.0)), Presence::Here);
        assert_eq!(crowd.presence(4, s(9.0)), Presence::Gone);
    }

    #[test]
    fn stages_call_clients_and_send_them_away() {
        let stages = [
            stage(0.0, Some(10)),
            stage(8.0, Some(5)),
            stage(2.0, Some(5)),
        ];
        let crowd = Crowd::new(&stages, Duration::ZERO);
        assert_eq!(crowd.most(), 8);
        assert_eq!(crowd.presence(7, s(0.0)), Presence::From(s(10.0)));
        assert_eq!(crowd.presence(7, s(12.0)), Presence::Here);
        assert_eq!(crowd.presence(7, s(15.0)), Presence::Gone);
        assert_eq!(crowd.presence(1, s(15.0)), Presence::Here);
        assert_eq!(crowd.presence(1, s(20.0)), Presence::Gone);
        // Called once, it stays over an edge between two stages that both have it.
        assert_eq!(crowd.leaves(7, s(12.0)), Some(s(15.0)));
        assert_eq!(crowd.leaves(1, s(12.0)), Some(s(20.0)));
        assert_eq!(crowd.leaves(1, s(16.0)), Some(s(20.0)));
        let burst = Crowd::until(s(3.0), s(7.0));
        assert_eq!(burst.leaves(9, s(3.0)), Some(s(7.0)));
        let endless = Crowd::new(&[stage(0.0, Some(1)), stage(4.0, None)], s(0.0));
        assert_eq!(endless.leaves(3, s(2.0)), None);
        let warm = Crowd::first_level(&[stage(3.0, Some(1)), stage(9.0, None)], s(0.0));
        assert_eq!(warm.presence(2, s(100.0)), Presence::Here);
        assert_eq!(warm.presence(3, s(100.0)), Presence::Gone);
    }

    fn due(kind: Arrival, stages: &[Stage], count: usize) -> Vec<f64> {
        let mut arrivals = Arrivals::new(stages, kind, Seed::new(1, 0));
        (0..count)
            .map_while(|_| arrivals.next())
            .map(|(_, at)| at.as_secs_f64())
            .collect()
    }

    #[test]
    fn uniform_arrivals_keep_their_distance_over_stages() {
        let stages = [
            stage(10.0, Some(1)),
            stage(0.0, Some(1)),
            stage(100.0, Some(1)),
        ];
        let due = due(Arrival::Uniform, &stages, 1000);
        assert!((due[0] - 0.1).abs() < 1e-9);
        assert!((due[8] - 0.9).abs() < 1e-9);
        assert!(due[10] >= 2.0, "{:?}", &due[9..12]);
        assert!((109..=110).contains(&due.len()), "{}", due.len());
        assert!(due.windows(2).all(|pair| pair[0] < pair[1]));
    }

    #[test]
    fn poisson_arrivals_have_the_asked_rate_and_an_exponential_spread() {
        let due = due(Arrival::Poisson, &[stage(1000.0, None)], 100_000);
        let gaps: Vec<f64> = due.windows(2).map(|pair| pair[1] - pair[0]).collect();
        let mean = gaps.iter().sum::<f64>() / gaps.len() as f64;
        let sd = (gaps.iter().map(|g| (g - mean).powi(2)).sum::<f64>() / gaps.len() as f64).sqrt();
        assert!((mean - 1e-3).abs() < 2e-5, "{mean}");
        assert!((sd / mean - 1.0).abs() < 0.02, "{}", sd / mean);
    }
}
