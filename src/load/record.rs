//! The record of one load thread: counts, histograms and the account of its clients' time, second by second.
//!
//! Plain numbers owned by the thread: no lock, no allocation per request. A second that is over is handed on whole. It must
//! never see a request twice, and never book time beyond the end of the phase.

use std::time::{Duration, Instant};

use hdrhistogram::Histogram;
use tokio::sync::mpsc::UnboundedSender;

use super::failure::FailureRow;
use super::silence::Answered;
use crate::measure::{Account, Counts, FailureClass, Outcome};

/// Failed requests that are kept in full, a thread and second; the others are only counted.
pub(super) const FAILURES_A_SECOND: usize = 20;
/// A part of a second that is shorter is no basis for a share of a processor: every thread is busy in its first millisecond.
const SLIVER_S: f64 = 0.1;

/// One second of one load thread.
#[derive(Debug)]
pub(super) struct ThreadSecond {
    pub index: u64,
    /// What there is of it: 1,000 but at the end of a phase.
    pub length_ms: u64,
    pub counts: Counts,
    pub ok_by_step: Vec<u64>,
    pub latency_us: Vec<Histogram<u64>>,
    pub in_flight: u64,
    pub account: Account,
    pub cpu_s: f64,
    /// The busier thread's use of its processor over what there is of this second.
    pub busy: f64,
    pub send_delay_us: Histogram<u64>,
    pub connect_us: Histogram<u64>,
    pub failures: Vec<FailureRow>,
    pub unlisted: [u64; FailureClass::ALL.len()],
    pub bytes_read: u64,
    pub bytes_written: u64,
    pub answered: Answered,
}

/// What a client's time goes to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Part {
    /// Not among the clients at present: nothing is booked.
    Away,
    /// Its own work between requests.
    Overhead,
    /// Opening a connection.
    Connecting,
    /// From the first byte written to the last byte read.
    InFlight,
    /// Think time.
    Thinking,
    /// After a failure.
    Pausing,
}

/// What a load thread tells.
#[derive(Debug)]
pub(super) enum Told {
    /// A second is over.
    Second(usize, Box<ThreadSecond>),
    /// The phase has ended for this thread, so many seconds after its start; no more seconds come.
    Ended(usize, f64),
    /// What was in flight at the end is drained: the thread's own use of its processor, and what was cut.
    Drained(usize, super::running::ThreadEnd),
}

/// The recorder of one thread and phase.
#[derive(Debug)]
pub(super) struct Recorder {
    thread: usize,
    origin: Instant,
    /// Nothing is booked from here on; known from the start when the phase has a length.
    end: Option<Instant>,
    ended: bool,
    second: Box<ThreadSecond>,
    closes: Instant,
    in_flight: u64,
    cpu_read_s: f64,
    steps: usize,
    told: UnboundedSender<Told>,
}

impl Recorder {
    /// For a phase that begins at `origin` with the second 0.
    pub(super) fn new(
        thread: usize,
        steps: usize,
        origin: Instant,
        end: Option<Instant>,
        told: UnboundedSender<Told>,
    ) -> Self {
        Recorder {
            thread,
            origin,
            end,
            ended: false,
            second: Box::new(ThreadSecond::new(0, steps)),
            closes: origin + Duration::from_secs(1),
            in_flight: 0,
            cpu_read_s: super::selfcheck::thread_cpu_s(),
            steps,
            told,
        }
    }

    /// Start of second 0.
    pub(super) fn origin(&self) -> Instant {
        self.origin
    }

    /// The end, when it is known.
    pub(super) fn end(&self) -> Option<Instant> {
        self.end
    }

    /// Hands on every second that is over at `now`; the one that ends with the phase stays open for what is booked at the
    /// end, or a phase of three seconds would have a fourth that holds nothing but its cut requests.
    pub(super) fn roll(&mut self, now: Instant) {
        while now >= self.closes && !self.ended && self.end.is_none_or(|end| self.closes < end) {
            self.close_second(1.0);
        }
    }

    /// When the present second ends.
    pub(super) fn closes(&self) -> Instant {
        self.closes
    }

    /// Closes the present second, of which there are `length` seconds.
    fn close_second(&mut self, length: f64) {
        let next = ThreadSecond::new(self.second.index + 1, self.steps);
        let mut full = std::mem::replace(&mut *self.second, next);
        full.in_flight = self.in_flight;
        let cpu = super::selfcheck::thread_cpu_s();
        full.cpu_s = cpu - self.cpu_read_s;
        self.cpu_read_s = cpu;
        full.length_ms = (length * 1e3).round() as u64;
        full.busy = (full.cpu_s / length.max(SLIVER_S)).min(1.0);
        self.closes += Duration::from_secs(1);
        // Whoever no longer listens has no use for it.
        let _ = self.told.send(Told::Second(self.thread, Box::new(full)));
    }

    /// Ends the phase at `end`: nothing later is booked. The part of a second that is left is handed on too.
    pub(super) fn finish(&mut self, end: Instant) {
        if self.ended {
            return;
        }
        self.roll_before(end);
        let left = self.closes.saturating_duration_since(end).as_secs_f64();
        self.close_second((1.0 - left).clamp(0.0, 1.0));
        self.ended = true;
        self.end = Some(end);
        let length = end.saturating_duration_since(self.origin).as_secs_f64();
        let _ = self.told.send(Told::Ended(self.thread, length));
    }

    /// Hands on every second that is over before `end`; one that ends there stays open for what is booked at the end.
    fn roll_before(&mut self, end: Instant) {
        while end > self.closes && !self.ended {
            self.close_second(1.0);
        }
    }

    /// Books what a client was at, up to `to`, when the phase ended.
    pub(super) fn book_end(&mut self, part: Part, from: Instant, to: Instant, end: Instant) {
        self.roll_before(end);
        self.add_time(part, from, to);
    }

    /// Whether the phase has ended.
    pub(super) fn is_ended(&self) -> bool {
        self.ended
    }

    /// Books a client's time up to `to`, in the second of `now`.
    pub(super) fn book(&mut self, part: Part, from: Instant, to: Instant, now: Instant) {
        self.roll(now);
        self.add_time(part, from, to);
    }

    fn add_time(&mut self, part: Part, from: Instant, to: Instant) {
        if self.ended {
            return;
        }
        let from = from.max(self.origin);
        let spent = to.saturating_duration_since(from).as_secs_f64();
        let account = &mut self.second.account;
        match part {
            Part::Away => {}
            Part::Overhead => account.overhead_s += spent,
            Part::Connecting => account.connect_s += spent,
            Part::InFlight => account.in_flight_s += spent,
            Part::Thinking => account.think_s += spent,
            Part::Pausing => account.pause_s += spent,
        }
    }

    /// The sending of a request begins (its connection may still have to be opened).
    pub(super) fn sent(&mut self, redrawn: u64) {
        self.second.counts.sent += 1;
        self.second.counts.redrawn += redrawn;
        self.in_flight += 1;
    }

    /// The first byte of a request is about to be written, so long after it could have been.
    pub(super) fn send_delay(&mut self, delay: Duration, bytes: usize) {
        let us = delay.as_micros().min(u128::from(u64::MAX)) as u64;
        let _ = self.second.send_delay_us.record(us.max(1));
        self.second.bytes_written += bytes as u64;
    }

    /// A connection was opened.
    pub(super) fn connected(&mut self, took: Duration) {
        self.second.counts.connects += 1;
        let _ = self.second.connect_us.record(micros(took));
    }

    /// An idle connection was found closed.
    pub(super) fn stale(&mut self) {
        self.second.counts.stale_connections += 1;
    }

    /// Requests of an open loop were due and could not be sent in time.
    pub(super) fn not_sent(&mut self, requests: u64) {
        self.second.counts.not_sent += requests;
    }

    /// Bytes came in.
    pub(super) fn read(&mut self, bytes: u64) {
        self.second.bytes_read += bytes;
    }

    /// A request has come to its end at `now`. `latency` is `None` for an end that is censored.
    pub(super) fn outcome(
        &mut self,
        step: usize,
        outcome: Outcome,
        latency: Option<Duration>,
        now: Instant,
    ) {
        self.in_flight = self.in_flight.saturating_sub(1);
        self.second.counts.record(outcome);
        if outcome == Outcome::Ok {
            self.second.ok_by_step[step] += 1;
            let left = self.closes.saturating_duration_since(now);
            let into = Duration::from_secs(1).saturating_sub(left);
            self.second
                .answered
                .mark(into.subsec_millis() + 1_000 * into.as_secs() as u32);
        }
        if let Some(latency) = latency {
            // The histograms grow with their values, so that none is lost or clamped.
            let _ = self.second.latency_us[step].record(micros(latency));
        }
    }

    /// Keeps a failed request's row if there is room for it in this second.
    pub(super) fn failure(&mut self, class: FailureClass, row: impl FnOnce(f64) -> FailureRow) {
        if self.second.failures.len() < FAILURES_A_SECOND {
            let at = self.origin.elapsed().as_secs_f64();
            self.second.failures.push(row(at));
        } else {
            self.second.unlisted[class.index()] += 1;
        }
    }
}

fn micros(duration: Duration) -> u64 {
    (duration.as_micros().min(u128::from(u64::MAX)) as u64).max(1)
}

impl ThreadSecond {
    fn new(index: u64, steps: usize) -> Self {
        ThreadSecond {
            index,
            length_ms: 1_000,
            counts: Counts::default(),
            ok_by_step: vec![0; steps],
            latency_us: (0..steps).map(|_| latency_histogram()).collect(),
            in_flight: 0,
            account: Account::default(),
            cpu_s: 0.0,
            busy: 0.0,
            send_delay_us: small_histogram(),
            connect_us: small_histogram(),
            failures: Vec::new(),
            unlisted: [0; FailureClass::ALL.len()],
            bytes_read: 0,
            bytes_written: 0,
            answered: Answered::default(),
        }
    }

    /// Adds another thread's same second.
    pub(super) fn add(&mut self, other: &ThreadSecond) {
        self.counts.add(&other.counts);
        for (mine, theirs) in self.ok_by_step.iter_mut().zip(&other.ok_by_step) {
            *mine += theirs;
        }
        for (mine, theirs) in self.latency_us.iter_mut().zip(&other.latency_us) {
            merge(mine, theirs);
        }
        self.length_ms = self.length_ms.max(other.length_ms);
        self.in_flight += other.in_flight;
        self.account.add(&other.account);
        self.cpu_s = self.cpu_s.max(other.cpu_s);
        self.busy = self.busy.max(other.busy);
        merge(&mut self.send_delay_us, &other.send_delay_us);
        merge(&mut self.connect_us, &other.connect_us);
        self.failures.extend_from_slice(&other.failures);
        for (mine, theirs) in self.unlisted.iter_mut().zip(other.unlisted) {
            *mine += theirs;
        }
        self.answered.add(&other.answered);
        self.bytes_read += other.bytes_read;
        self.bytes_written += other.bytes_written;
    }
}

/// Adds counts; the histograms resize themselves, so it can't fail for want of room.
pub(super) fn merge(mine: &mut Histogram<u64>, theirs: &Histogram<u64>) {
    let _ = mine.add(theirs);
}

/// Microseconds with three digits; begins with room for a minute and grows.
pub(super) fn latency_histogram() -> Histogram<u64> {
    histogram(60_000_000, 3)
}

fn small_histogram() -> Histogram<u64> {
    histogram(1_000_000, 2)
}

fn histogram(high: u64, digits: u8) -> Histogram<u64> {
    let mut made = Histogram::new_with_bounds(1, high, digits)
        .expect("the bounds are constants that the crate accepts");
    made.auto(true);
    made
}

#[cfg(test)]
mod tests {
    use tokio::sync::mpsc::unbounded_channel;

    use super::*;

    #[test]
    fn a_thread_that_works_through_a_quarter_of_a_second_is_busy() {
        let (told, mut heard) = unbounded_channel();
        let origin = Instant::now();
        let mut recorder = Recorder::new(0, 1, origin, None, told);
        let before = super::super::selfcheck::thread_cpu_s();
        while super::super::selfcheck::thread_cpu_s() - before < 0.22 {
            std::hint::spin_loop();
        }
        recorder.finish(origin + Duration::from_millis(250));
        let Ok(Told::Second(_, second)) = heard.try_recv() else {
            panic!("the part of a second is handed on");
        };
        assert!(second.cpu_s < 0.5, "{}", second.cpu_s);
        assert!(second.busy > 0.85, "{}", second.busy);
    }
}
