//! Instruments whose cost depends on what they meet: they are read less often the more they cost.

use std::time::{Duration, Instant};

/// The time between two readings is at least this many times what one of them takes.
const TIMES: u32 = 500;

/// When a costly instrument may be read again.
#[derive(Debug, Default)]
pub(super) struct Thrift {
    least: Duration,
    next: Option<Instant>,
}

impl Thrift {
    /// Readings at least this far apart, however little they take.
    pub(super) fn at_least(least: Duration) -> Self {
        Self { least, next: None }
    }

    /// Whether it may be read now.
    pub(super) fn is_due(&self, now: Instant) -> bool {
        self.next.is_none_or(|next| next <= now)
    }

    /// Books that a reading that began at `began` took `cost`.
    pub(super) fn spent(&mut self, began: Instant, cost: Duration) {
        self.next = Some(began + cost.saturating_mul(TIMES).max(self.least));
    }
}

/// CPU seconds used by this thread so far.
pub(super) fn thread_cpu_s() -> f64 {
    let used = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    used.tv_sec as f64 + used.tv_nsec as f64 / 1e9
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_costs_more_is_read_less_often() {
        let mut thrift = Thrift::default();
        let now = Instant::now();
        assert!(thrift.is_due(now));
        thrift.spent(now, Duration::from_millis(10));
        assert!(!thrift.is_due(now + Duration::from_millis(4999)));
        assert!(thrift.is_due(now + Duration::from_secs(5)));
        let mut thrift = Thrift::at_least(Duration::from_secs(10));
        thrift.spent(now, Duration::from_millis(1));
        assert!(!thrift.is_due(now + Duration::from_millis(9999)));
    }
}
