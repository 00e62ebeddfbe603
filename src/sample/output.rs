//! Where readings go, and what life a counter is in.

use std::collections::{HashMap, HashSet};
use std::time::Instant;

use tokio::sync::mpsc::UnboundedSender;
use tokio::sync::watch;

use super::spec::Observation;
use crate::measure::{EventKind, Sample};

/// Time as seconds from the origin.
#[derive(Debug, Clone)]
pub(super) struct Clock {
    pub(super) origin: watch::Receiver<Instant>,
}

impl Clock {
    /// Seconds from the origin to `moment`, negative before it.
    pub(super) fn at(&self, moment: Instant) -> f64 {
        seconds_between(*self.origin.borrow(), moment)
    }

    /// Seconds from the origin to now.
    pub(super) fn now(&self) -> f64 {
        self.at(Instant::now())
    }
}

/// Signed seconds from `from` to `to`.
pub(super) fn seconds_between(from: Instant, to: Instant) -> f64 {
    match to.checked_duration_since(from) {
        Some(after) => after.as_secs_f64(),
        None => -(from - to).as_secs_f64(),
    }
}

/// The way out for the readings of one service.
pub(super) struct Output {
    service: String,
    sink: UnboundedSender<Observation>,
    pub(super) clock: Clock,
    said: HashSet<String>,
    lives: HashMap<String, Life>,
}

/// A counter's present life.
struct Life {
    number: u32,
    process_epoch: u32,
    last: f64,
    over: bool,
}

impl Output {
    pub(super) fn new(
        service: impl Into<String>,
        sink: UnboundedSender<Observation>,
        clock: Clock,
    ) -> Self {
        Self {
            service: service.into(),
            sink,
            clock,
            said: HashSet::new(),
            lives: HashMap::new(),
        }
    }

    /// Another way out, for another service.
    pub(super) fn of(&self, service: impl Into<String>) -> Output {
        Output::new(service, self.sink.clone(), self.clock.clone())
    }

    pub(super) fn service(&self) -> &str {
        &self.service
    }

    pub(super) fn send(&self, observation: Observation) {
        // The receiver is gone only when the run is over; nothing is left to tell then.
        let _ = self.sink.send(observation);
    }

    /// A reading that belongs to one life of the process.
    pub(super) fn reading(&self, at_s: f64, metric: &str, unit: &str, value: f64, epoch: u32) {
        self.send(Observation::Sample(Sample {
            at_s,
            service: self.service.clone(),
            metric: metric.to_string(),
            unit: unit.to_string(),
            value,
            epoch,
        }));
    }

    /// A counter that something other than the process tree keeps. It begins a new life when its process does, when it
    /// falls, and when [`Output::void`] said so.
    pub(super) fn counter(&mut self, at_s: f64, metric: &str, unit: &str, value: f64, epoch: u32) {
        let life = self.lives.entry(metric.to_string()).or_insert(Life {
            number: 0,
            process_epoch: epoch,
            last: value,
            over: false,
        });
        if life.over || value < life.last || epoch != life.process_epoch {
            life.number += 1;
        }
        life.over = false;
        life.last = value;
        life.process_epoch = epoch;
        let number = life.number;
        self.reading(at_s, metric, unit, value, number);
    }

    /// Ends the life of a counter: its next reading isn't compared with its last.
    pub(super) fn void(&mut self, metric: &str) {
        if let Some(life) = self.lives.get_mut(metric) {
            life.over = true;
        }
    }

    pub(super) fn event(&self, at_s: f64, kind: EventKind) {
        self.send(Observation::Event { at_s, kind });
    }

    /// Something in the service's own account.
    pub(super) fn server(&self, at_s: f64, what: &str, detail: String) {
        self.event(
            at_s,
            EventKind::Server {
                service: self.service.clone(),
                what: what.to_string(),
                detail,
            },
        );
    }

    /// Says that a metric can't be read, the first time that it is so.
    pub(super) fn not_observed(&mut self, metric: &str, reason: impl Into<String>) {
        if self.said.insert(metric.to_string()) {
            self.not_observed_again(metric, reason);
        }
    }

    /// Says that a metric wasn't read, however often that was said before.
    pub(super) fn not_observed_again(&self, metric: &str, reason: impl Into<String>) {
        self.event(
            self.clock.now(),
            EventKind::NotObserved {
                service: self.service.clone(),
                metric: metric.to_string(),
                reason: reason.into(),
            },
        );
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};

    /// An output whose readings a test can look at.
    pub(in super::super) fn output(service: &str) -> (Output, UnboundedReceiver<Observation>) {
        let (sink, received) = unbounded_channel();
        let clock = Clock {
            origin: watch::channel(Instant::now()).1,
        };
        (Output::new(service, sink, clock), received)
    }

    #[test]
    fn a_counter_that_falls_begins_a_new_life() {
        let (mut out, mut received) = output("db");
        for (value, epoch) in [(5.0, 0), (9.0, 0), (1.0, 0), (4.0, 1)] {
            out.counter(0.0, "calls", "count_total", value, epoch);
        }
        out.void("calls");
        out.counter(0.0, "calls", "count_total", 6.0, 1);
        let mut lives = Vec::new();
        while let Ok(Observation::Sample(sample)) = received.try_recv() {
            lives.push(sample.epoch);
        }
        assert_eq!(lives, [0, 0, 1, 2, 3]);
    }

    #[test]
    fn what_is_not_observed_is_said_once() {
        let (mut out, mut received) = output("db");
        out.not_observed("memory.pss", "no permission");
        out.not_observed("memory.pss", "no permission");
        assert!(received.try_recv().is_ok());
        assert!(received.try_recv().is_err());
    }
}
