//! One second of an arm, as the load driver and the host saw it.

use hdrhistogram::Histogram;
use serde::{Deserialize, Serialize};

use super::outcome::{FailureClass, Outcome};

/// Counts of requests over some time. `sent` counts at the moment of sending, everything else at the moment of its end, so
/// within a second they need not balance; over a whole arm `sent = ok + failed + cut`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Counts {
    /// Requests whose sending began.
    pub sent: u64,
    /// Whole answers as expected.
    pub ok: u64,
    /// Failed requests by class; a request is in exactly one, so `Status5xx` here leaves out `Status503`.
    pub failed: [u64; FailureClass::ALL.len()],
    /// In flight when the arm ended.
    pub cut: u64,
    /// Open loop: due, but not sent in time.
    pub not_sent: u64,
    /// Steps drawn again since a kept value was missing.
    pub redrawn: u64,
    /// Idle keep-alive connections that the peer closed before any byte of an answer.
    pub stale_connections: u64,
    /// Connections opened.
    pub connects: u64,
}

impl Counts {
    /// Failed requests of all classes.
    pub fn failed_total(&self) -> u64 {
        self.failed.iter().sum()
    }

    /// Requests with an answer or an error: `ok` and `failed`, without `cut`.
    pub fn completed(&self) -> u64 {
        self.ok + self.failed_total()
    }

    /// Failed requests of one class as figures count them: `status_5xx` holds `status_503` too.
    pub fn class(&self, class: FailureClass) -> u64 {
        let own = self.failed[class.index()];
        match class {
            FailureClass::Status5xx => own + self.failed[FailureClass::Status503.index()],
            _ => own,
        }
    }

    /// Counts the end of one request.
    pub fn record(&mut self, outcome: Outcome) {
        match outcome {
            Outcome::Ok => self.ok += 1,
            Outcome::Failed(class) => self.failed[class.index()] += 1,
            Outcome::Cut => self.cut += 1,
        }
    }

    /// Adds another count to this one.
    pub fn add(&mut self, other: &Counts) {
        self.sent += other.sent;
        self.ok += other.ok;
        for (mine, theirs) in self.failed.iter_mut().zip(other.failed) {
            *mine += theirs;
        }
        self.cut += other.cut;
        self.not_sent += other.not_sent;
        self.redrawn += other.redrawn;
        self.stale_connections += other.stale_connections;
        self.connects += other.connects;
    }
}

/// Where the clients' time went, in client-seconds, each request clipped to the measured time. The parts are booked in the
/// second in which they end; their sum over an arm is clients × time, which is Little's law as an account.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
pub struct Account {
    /// From the first byte written to the last byte read (or the failure, or the cut).
    pub in_flight_s: f64,
    /// Think time.
    pub think_s: f64,
    /// Opening connections.
    pub connect_s: f64,
    /// Pauses after a failure.
    pub pause_s: f64,
    /// The client's own work between requests.
    pub overhead_s: f64,
}

impl Account {
    /// Adds another account to this one.
    pub fn add(&mut self, other: &Account) {
        self.in_flight_s += other.in_flight_s;
        self.think_s += other.think_s;
        self.connect_s += other.connect_s;
        self.pause_s += other.pause_s;
        self.overhead_s += other.overhead_s;
    }

    /// All parts together, in client-seconds.
    pub fn total_s(&self) -> f64 {
        self.in_flight_s + self.think_s + self.connect_s + self.pause_s + self.overhead_s
    }
}

/// One closed second of the load, all load threads merged.
#[derive(Debug, Clone)]
pub struct LoadSecond {
    /// Whole seconds since the start of the phase: the second covers `index..index + 1`.
    pub index: u64,
    /// Requests over all steps.
    pub counts: Counts,
    /// Ok requests of each step, in the order of the workload.
    pub ok_by_step: Vec<u64>,
    /// Latencies in microseconds of completed requests (ok, and failed ones that have an end of their own: not timeouts and
    /// failed connects, which are censored), one histogram a step, in the order of the workload.
    pub latency_us: Vec<Histogram<u64>>,
    /// Clients (closed loop) or requests (open loop) in flight at the second's end.
    pub in_flight: u64,
    /// Where the clients' time went.
    pub account: Account,
    /// CPU seconds used by the busiest load thread in this second.
    pub driver_cpu_s: f64,
    /// Median delay between the moment when a request could be sent and its first byte written, in microseconds.
    pub send_delay_us: f64,
    /// The longest time without an ok answer that touches this second; `None` when nobody kept it.
    pub silence: Option<Silence>,
}

/// A time without an ok answer, to the millisecond.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Silence {
    /// Its length in milliseconds, what lies in earlier seconds included; of one that goes on, its length so far.
    pub length_ms: u64,
    /// The millisecond of this second in which it ended; 1000: not within this second.
    pub until_ms: u64,
}

/// The host over one second.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
pub struct HostSecond {
    /// Cores busy (all but idle, iowait and steal), in cores.
    pub busy: f64,
    /// Cores taken by the hypervisor.
    pub steal: f64,
    /// Cores idle while waiting for a disk.
    pub iowait: f64,
    /// Busy cores that are neither the deployment's nor the runner's.
    pub other_cpu: f64,
    /// Share of the second in which some task waited for a processor (PSI `some`); `None` where the kernel has no PSI.
    pub pressure_cpu: Option<f64>,
    /// The same for block I/O.
    pub pressure_io: Option<f64>,
    /// The same for memory.
    pub pressure_memory: Option<f64>,
    /// Tasks ready to run at the second's end.
    pub run_queue: u64,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_is_counted_once_and_503_also_as_5xx() {
        let mut counts = Counts {
            sent: 4,
            ..Counts::default()
        };
        counts.record(Outcome::Ok);
        counts.record(Outcome::Failed(FailureClass::Status503));
        counts.record(Outcome::Failed(FailureClass::Status5xx));
        counts.record(Outcome::Cut);
        assert_eq!(counts.sent, counts.ok + counts.failed_total() + counts.cut);
        assert_eq!(counts.class(FailureClass::Status5xx), 2);
        assert_eq!(counts.class(FailureClass::Status503), 1);
        let mut twice = counts;
        twice.add(&counts);
        assert_eq!(twice.completed(), 2 * counts.completed());
    }
}
