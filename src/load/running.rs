//! A phase under way: its seconds as they close, merged over threads, and its totals at the end.
//!
//! Totals are the sum of the seconds, by construction. Percentiles come from merged histograms.

use std::collections::{BTreeMap, VecDeque};
use std::time::{Duration, Instant};

use hdrhistogram::Histogram;
use tokio::sync::mpsc::UnboundedReceiver;

use super::failure::{CutRequest, FailureRow};
use super::record::{ThreadSecond, Told, latency_histogram, merge};
use super::silence::Follower;
use super::thread::{LoadThread, Order};
use crate::measure::{Account, Counts, FailureClass, LoadSecond};

/// A phase that is being driven.
#[derive(Debug)]
pub struct Running {
    origin: Instant,
    threads: Vec<LoadThread>,
    told: UnboundedReceiver<Told>,
    /// Seconds that some thread has closed and another has not.
    open: BTreeMap<u64, Box<ThreadSecond>>,
    /// For each thread the first second that it has not closed.
    closed_upto: Vec<u64>,
    ended: Vec<Option<f64>>,
    drained: Vec<Option<ThreadEnd>>,
    ready: VecDeque<LoadSecond>,
    follower: Follower,
    failures: Vec<FailureRow>,
    totals: PhaseTotals,
    next_client: u64,
}

/// What one load thread used.
#[derive(Debug, Clone, PartialEq)]
pub struct ThreadEnd {
    /// CPU seconds, the drain included.
    pub cpu_s: f64,
    /// Seconds ready but without a processor; `None` where the kernel does not tell.
    pub run_queue_s: Option<f64>,
    /// Requests that were in flight at the end of the phase.
    pub cut: Vec<CutRequest>,
}

/// A phase, summed up.
#[derive(Debug, Clone)]
pub struct PhaseTotals {
    /// Its length in seconds: what rates are divided by.
    pub seconds: f64,
    /// The sum of its seconds' counts.
    pub counts: Counts,
    /// Ok requests of each step, in the order of the workload.
    pub ok_by_step: Vec<u64>,
    /// Latencies of completed requests in microseconds, by step.
    pub latency_us: Vec<Histogram<u64>>,
    /// Where the clients' time went.
    pub account: Account,
    /// Requests in flight at the end, with their age and what became of them.
    pub cut: Vec<CutRequest>,
    /// Microseconds to open a connection, TLS included.
    pub connect_us: Histogram<u64>,
    /// Microseconds from when a request could be sent (open loop: should have been) to its first byte.
    pub send_delay_us: Histogram<u64>,
    /// Each load thread's own use of its processor.
    pub threads: Vec<ThreadEnd>,
    /// Failed requests by class that have no row of their own.
    pub unlisted: [u64; FailureClass::ALL.len()],
    /// Bytes read off connections; of TLS and HTTP/2 those within.
    pub bytes_read: u64,
    /// Bytes of requests.
    pub bytes_written: u64,
    /// The busiest load thread's largest share of a processor in any second, or in what there was of the first.
    pub busiest_share: f64,
}

impl Running {
    pub(super) fn new(
        origin: Instant,
        threads: Vec<LoadThread>,
        told: UnboundedReceiver<Told>,
        steps: usize,
        next_client: u64,
    ) -> Self {
        let count = threads.len();
        Running {
            origin,
            threads,
            told,
            open: BTreeMap::new(),
            closed_upto: vec![0; count],
            ended: vec![None; count],
            drained: vec![None; count],
            ready: VecDeque::new(),
            follower: Follower::default(),
            failures: Vec::new(),
            totals: PhaseTotals {
                seconds: 0.0,
                counts: Counts::default(),
                ok_by_step: vec![0; steps],
                latency_us: (0..steps).map(|_| latency_histogram()).collect(),
                account: Account::default(),
                cut: Vec::new(),
                connect_us: latency_histogram(),
                send_delay_us: latency_histogram(),
                threads: Vec::new(),
                unlisted: [0; FailureClass::ALL.len()],
                bytes_read: 0,
                bytes_written: 0,
                busiest_share: 0.0,
            },
            next_client,
        }
    }

    /// Start of second 0, on the monotonic clock.
    pub fn origin(&self) -> Instant {
        self.origin
    }

    /// The next second that all load threads have closed, in order; the last one may be a part of a second. `None` when the
    /// phase has ended (what was in flight may still be draining). Safe to drop and call again.
    pub async fn next_second(&mut self) -> Option<LoadSecond> {
        loop {
            if let Some(second) = self.ready.pop_front() {
                return Some(second);
            }
            if self.ended.iter().all(Option::is_some) {
                return None;
            }
            let told = self.told.recv().await?;
            self.take(told);
        }
    }

    /// The rows of failed requests of the seconds handed out so far: the first ones of each second, those beyond are counted
    /// in [`PhaseTotals::unlisted`].
    pub fn take_failures(&mut self) -> Vec<FailureRow> {
        std::mem::take(&mut self.failures)
    }

    /// Stops sending now; what is in flight is cut and drained.
    pub fn stop(&self) {
        let now = Instant::now();
        for thread in &self.threads {
            thread.order(Order::Stop(now));
        }
    }

    /// Adds closed-loop clients for some time.
    pub fn burst(&mut self, clients: u32, length: Duration) {
        let until = Instant::now() + length;
        let numbers: Vec<u64> = (self.next_client..).take(clients as usize).collect();
        self.next_client += u64::from(clients);
        for thread in &self.threads {
            let clients = numbers.clone();
            thread.order(Order::Burst { clients, until });
        }
    }

    /// Waits for the end of the phase and its drain (at most the clients' timeouts). Seconds not yet taken are in the totals.
    pub async fn finish(mut self) -> PhaseTotals {
        while self.drained.iter().any(Option::is_none) {
            match self.told.recv().await {
                Some(told) => self.take(told),
                None => break,
            }
        }
        self.totals.seconds = self.ended.iter().flatten().fold(0.0, |a, b| b.max(a));
        for end in self.drained.into_iter().flatten() {
            self.totals.cut.extend_from_slice(&end.cut);
            self.totals.threads.push(end);
        }
        self.totals
    }

    fn take(&mut self, told: Told) {
        match told {
            Told::Second(thread, second) => {
                self.closed_upto[thread] = second.index + 1;
                match self.open.get_mut(&second.index) {
                    Some(open) => open.add(&second),
                    None => {
                        self.open.insert(second.index, second);
                    }
                }
            }
            Told::Ended(thread, length) => {
                self.closed_upto[thread] = u64::MAX;
                self.ended[thread] = Some(length);
            }
            Told::Drained(thread, end) => self.drained[thread] = Some(end),
        }
        let upto = self.closed_upto.iter().copied().min().unwrap_or(u64::MAX);
        while let Some(entry) = self.open.first_entry() {
            if *entry.key() >= upto {
                break;
            }
            let second = *entry.remove();
            self.emit(second);
        }
    }

    fn emit(&mut self, second: ThreadSecond) {
        let totals = &mut self.totals;
        totals.counts.add(&second.counts);
        for (mine, theirs) in totals.ok_by_step.iter_mut().zip(&second.ok_by_step) {
            *mine += theirs;
        }
        for (mine, theirs) in totals.latency_us.iter_mut().zip(&second.latency_us) {
            merge(mine, theirs);
        }
        totals.account.add(&second.account);
        merge(&mut totals.connect_us, &second.connect_us);
        merge(&mut totals.send_delay_us, &second.send_delay_us);
        for (mine, theirs) in totals.unlisted.iter_mut().zip(second.unlisted) {
            *mine += theirs;
        }
        totals.bytes_read += second.bytes_read;
        totals.bytes_written += second.bytes_written;
        totals.busiest_share = totals.busiest_share.max(second.busy);
        self.failures.extend(second.failures);
        let silence = self
            .follower
            .second(second.index, &second.answered, second.length_ms);
        self.ready.push_back(LoadSecond {
            index: second.index,
            counts: second.counts,
            ok_by_step: second.ok_by_step,
            latency_us: second.latency_us,
            in_flight: second.in_flight,
            account: second.account,
            driver_cpu_s: second.cpu_s,
            send_delay_us: second.send_delay_us.value_at_quantile(0.5) as f64,
            silence: Some(silence),
        });
    }
}
