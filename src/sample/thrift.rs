//! Instruments whose cost depends on what they meet: they are read less often the more they cost.

use std::time::{Duration, Instant};

/// A reading may take this share of the time between two of them.
const SHARE: u32 = 300;

/// When a costly instrument may be read again.
#[derive(Debug, Default)]
pub(super) struct Thrift {
    next: Option<Instant>,
}

impl Thrift {
    /// Whether it may be read now.
    pub(super) fn is_due(&self, now: Instant) -> bool {
        self.next.is_none_or(|next| next <= now)
    }

    /// Books that a reading that began at `began` took `cost`.
    pub(super) fn spent(&mut self, began: Instant, cost: Duration) {
        self.next = Some(began + cost.saturating_mul(SHARE));
    }
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
        assert!(!thrift.is_due(now + Duration::from_millis(2999)));
        assert!(thrift.is_due(now + Duration::from_secs(3)));
    }
}
