//! Gives free heap back to the system when nobody asks for anything: glibc's allocator keeps what it once had.

use std::sync::Arc;
use std::time::Duration;

use crate::counters::Counters;
use crate::heap;

/// How long nothing must have come in.
const IDLE: Duration = Duration::from_secs(2);

/// Trims once after each busy time; never returns.
pub async fn when_idle(counters: Arc<Counters>) {
    let mut rest = Rest::new(counters.business());
    loop {
        tokio::time::sleep(IDLE).await;
        if rest.began(counters.business()) {
            trim();
        }
    }
}

/// Finds the moment when requests have ceased.
struct Rest {
    last: u64,
    trimmed_at: u64,
}

impl Rest {
    fn new(total: u64) -> Self {
        Self {
            last: total,
            trimmed_at: total,
        }
    }

    /// Whether nothing came since the last call, and something since the last rest.
    fn began(&mut self, total: u64) -> bool {
        let quiet = total == self.last && total != self.trimmed_at;
        self.last = total;
        if quiet {
            self.trimmed_at = total;
        }
        quiet
    }
}

fn trim() {
    match heap::trim() {
        Ok(returned) => tracing::info!(returned, "idle: heap trimmed"),
        Err(reason) => tracing::warn!("idle: the heap can't be trimmed: {reason}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rest_begins_once_after_each_busy_time() {
        let mut rest = Rest::new(0);
        let seen: Vec<bool> = [0, 0, 5, 9, 9, 9, 10, 10]
            .map(|total| rest.began(total))
            .into();
        assert_eq!(seen, [false, false, false, false, true, false, false, true]);
    }
}
