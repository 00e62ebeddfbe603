//! A phase's totals as figures: quantiles from merged histograms, Little's law, and what the driver itself used.

use hdrhistogram::Histogram;
use serde::Serialize;

use super::record::{latency_histogram, merge};
use super::running::PhaseTotals;
use crate::measure::{Counts, FailureClass};

/// A load thread that uses more of a processor than this is near its own limit.
const BUSY_SHARE: f64 = 0.8;
/// A send delay below this never matters, in microseconds.
const DELAY_FLOOR_US: f64 = 100.0;

/// A quantile: seen, or known to be no less than a value, or not to be had from so few requests.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
#[serde(untagged)]
pub enum Quantile {
    /// Milliseconds.
    Seen(f64),
    /// More requests than lie above it ended without a latency (timed out, never connected): it is at least the timeout.
    AtLeast {
        /// Milliseconds.
        at_least: f64,
    },
    /// Too few requests.
    TooFew(()),
}

impl Quantile {
    /// Milliseconds, when it was seen.
    pub fn ms(self) -> Option<f64> {
        match self {
            Quantile::Seen(ms) => Some(ms),
            Quantile::AtLeast { .. } | Quantile::TooFew(()) => None,
        }
    }
}

/// Times in milliseconds; quantiles below their least number of requests are null.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Times {
    /// How many were timed.
    pub n: u64,
    pub min: Option<f64>,
    pub mean: Option<f64>,
    pub p50: Quantile,
    pub p90: Quantile,
    pub p95: Quantile,
    pub p99: Quantile,
    pub p999: Quantile,
    pub max: Option<f64>,
}

/// What the driver used, and whether it may have been the limit.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct DriverUse {
    /// Load threads.
    pub threads: usize,
    /// User and system time of the load threads a completed request, in microseconds.
    pub cpu_us_per_request: Option<f64>,
    /// The busiest load thread's largest share of a processor in a second.
    pub busiest_share: f64,
    /// Seconds that load threads were ready and had no processor; null where the kernel does not tell.
    pub run_queue_s: Option<f64>,
    /// Median delay from when a request could be sent to its first byte, in microseconds.
    pub send_delay_us: f64,
    /// The same, 99 % quantile.
    pub send_delay_p99_us: f64,
    /// Whether the rate may be the driver's own rather than the target's.
    pub was_the_limit: bool,
    /// Why, in words.
    pub because: Vec<String>,
}

/// Latencies of all steps together.
pub fn latency_us(totals: &PhaseTotals) -> Histogram<u64> {
    let mut all = latency_histogram();
    for step in &totals.latency_us {
        merge(&mut all, step);
    }
    all
}

/// Times of a histogram of microseconds, beside so many completed requests that have none: they timed out after
/// `timeout_ms`, or never had a connection, and stand above all that were seen.
pub fn times(histogram: &Histogram<u64>, censored: u64, timeout_ms: f64) -> Times {
    let seen = histogram.len();
    let all = seen + censored;
    let ms = |us: u64| us as f64 / 1e3;
    // The least n at which a two-sided 95 % interval of order statistics exists.
    let quantile = |q: f64, least: u64| {
        let rank = q * all as f64;
        if all < least {
            Quantile::TooFew(())
        } else if rank > seen as f64 {
            Quantile::AtLeast {
                at_least: timeout_ms,
            }
        } else {
            let value = histogram.value_at_quantile(rank / seen as f64);
            Quantile::Seen(ms(value.min(histogram.max())))
        }
    };
    let some = |value: f64| (seen > 0).then_some(value);
    Times {
        n: seen,
        min: some(ms(histogram.min())),
        mean: some(histogram.mean() / 1e3),
        p50: quantile(0.5, 6),
        p90: quantile(0.9, 36),
        p95: quantile(0.95, 72),
        p99: quantile(0.99, 368),
        p999: quantile(0.999, 3688),
        max: some(ms(histogram.max())),
    }
}

/// Latencies of all steps, those without one above all that were seen.
pub fn latencies(totals: &PhaseTotals, timeout_ms: f64) -> Times {
    let seen = latency_us(totals);
    let censored = totals.counts.completed().saturating_sub(seen.len());
    times(&seen, censored, timeout_ms)
}

/// Requests that ended with a whole answer: ok, another status than expected, or another body.
pub fn answered(counts: &Counts) -> u64 {
    use FailureClass::{UnexpectedBody, UnexpectedStatus};
    // `status_503` is counted in `status_5xx` too.
    let classes = [
        FailureClass::Status4xx,
        FailureClass::Status5xx,
        UnexpectedStatus,
        UnexpectedBody,
    ];
    counts.ok + classes.map(|class| counts.class(class)).iter().sum::<u64>()
}

/// What the driver used. `p50_ms`: of the latency.
pub fn driver_use(totals: &PhaseTotals, p50_ms: Option<f64>) -> DriverUse {
    let cpu_s: f64 = totals.threads.iter().map(|thread| thread.cpu_s).sum();
    let completed = totals.counts.completed();
    let delay = totals.send_delay_us.value_at_quantile(0.5) as f64;
    let allowed = (p50_ms.unwrap_or(0.0) * 1e3 * 0.05).max(DELAY_FLOOR_US);
    let mut because = Vec::new();
    if totals.busiest_share >= BUSY_SHARE {
        let percent = 100.0 * totals.busiest_share;
        because.push(format!(
            "a load thread used {percent:.0} % of a processor (80 % is too much)"
        ));
    }
    if !totals.send_delay_us.is_empty() && delay > allowed {
        because.push(format!(
            "half of the requests left {delay:.0} us or more after they could have ({allowed:.0} us are allowed)"
        ));
    }
    if totals.counts.class(FailureClass::ClientSide) > 0 {
        because.push("some requests failed on the client's own side".into());
    }
    let waits = totals.threads.iter().map(|thread| thread.run_queue_s);
    DriverUse {
        threads: totals.threads.len(),
        cpu_us_per_request: (completed > 0).then(|| cpu_s * 1e6 / completed as f64),
        busiest_share: totals.busiest_share,
        run_queue_s: waits.sum(),
        send_delay_us: delay,
        send_delay_p99_us: totals.send_delay_us.value_at_quantile(0.99) as f64,
        was_the_limit: !because.is_empty(),
        because,
    }
}

/// Little's law for a closed loop: the time that requests took by their own records, with think time, connecting and pauses,
/// over clients × time. 1 when nothing is lost; `None` without clients.
pub fn littles_ratio(totals: &PhaseTotals, clients: u64, timeout_s: f64) -> Option<f64> {
    let all = latency_us(totals);
    let recorded_s = all.mean() * all.len() as f64 / 1e6;
    // What a cut request spent on its connection stands among the time of connecting.
    let cut_s: f64 = totals.cut.iter().map(|cut| cut.sent.as_secs_f64()).sum();
    let timed_out = totals.counts.class(FailureClass::Timeout) as f64 * timeout_s;
    let account = &totals.account;
    let rest = account.think_s + account.connect_s + account.pause_s;
    let available = clients as f64 * totals.seconds;
    (available > 0.0).then(|| (recorded_s + cut_s + timed_out + rest) / available)
}

/// Failed requests by class, as figures count them; classes without any are left out.
pub fn failures(counts: &Counts) -> std::collections::BTreeMap<FailureClass, u64> {
    FailureClass::ALL
        .into_iter()
        .map(|class| (class, counts.class(class)))
        .filter(|(_, count)| *count > 0)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_lie_between_the_ends_and_need_their_numbers() {
        let mut histogram = latency_histogram();
        for us in 1..=1000 {
            histogram.record(us * 1000).unwrap();
        }
        let times = times(&histogram, 0, 10_000.0);
        let (min, max) = (times.min.unwrap(), times.max.unwrap());
        for quantile in [times.p50, times.p90, times.p95, times.p99] {
            let ms = quantile.ms().unwrap();
            assert!(min <= ms && ms <= max);
        }
        assert!((times.p99.ms().unwrap() - 990.0).abs() < 1.0);
        assert_eq!(times.p999, Quantile::TooFew(()));
        let none = super::times(&latency_histogram(), 0, 1.0);
        assert_eq!(
            (none.n, none.max, none.p50),
            (0, None, Quantile::TooFew(()))
        );
    }

    #[test]
    fn requests_that_timed_out_push_the_tail_up_and_are_never_a_value() {
        let mut histogram = latency_histogram();
        for _ in 0..980 {
            histogram.record(1000).unwrap();
        }
        let times = times(&histogram, 20, 10_000.0);
        assert_eq!(times.p95.ms(), Some(1.0));
        assert_eq!(times.p99, Quantile::AtLeast { at_least: 10_000.0 });
        assert_eq!(
            serde_json::to_string(&times.p99).unwrap(),
            "{\"at_least\":10000.0}"
        );
        assert_eq!(serde_json::to_string(&times.p999).unwrap(), "null");
    }
}
