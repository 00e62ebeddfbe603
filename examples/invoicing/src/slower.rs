//! A fault on purpose: each request takes a given share longer than it would. What it spent on a processor is spent there
//! again, what it waited is waited again: the service becomes slower as it is, not slower in another way.
//!
//! Waiting needs no processor. Where processors are the bottleneck, a request that is slower by a tenth therefore costs less
//! than a tenth of the throughput.

use std::future::Future;
use std::pin::Pin;
use std::sync::atomic::{AtomicI64, Ordering};
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use crate::arguments::Share;

/// Makes futures slower.
#[derive(Debug)]
pub struct Slower {
    share: Share,
    /// Nanoseconds waited beyond what was due: sleepers wake late, and the next wait is shorter for it.
    overslept: AtomicI64,
}

impl Slower {
    /// Slower by `share`.
    #[must_use]
    pub fn new(share: Share) -> Self {
        Self {
            share,
            overslept: AtomicI64::new(0),
        }
    }

    /// Does `work`, then takes its share longer.
    pub async fn slow<F: Future>(&self, work: F) -> F::Output {
        let start = Instant::now();
        let (output, busy) = Timed::new(work).await;
        let waited = start.elapsed().saturating_sub(busy);
        spin(busy.mul_f64(self.share.0));
        self.wait(waited.mul_f64(self.share.0)).await;
        output
    }

    async fn wait(&self, due: Duration) {
        let carried = self.overslept.swap(0, Ordering::Relaxed);
        let due = nanoseconds(due) - carried;
        let Ok(pause) = u64::try_from(due).map(Duration::from_nanos) else {
            self.overslept.fetch_sub(due, Ordering::Relaxed);
            return;
        };
        let start = Instant::now();
        pause_exactly(pause).await;
        let beyond = nanoseconds(start.elapsed()) - due;
        self.overslept.fetch_add(beyond, Ordering::Relaxed);
    }
}

fn nanoseconds(duration: Duration) -> i64 {
    i64::try_from(duration.as_nanos()).unwrap_or(i64::MAX)
}

/// Keeps the processor busy.
fn spin(time: Duration) {
    let start = Instant::now();
    while start.elapsed() < time {
        std::hint::spin_loop();
    }
}

/// Sleeps on a thread apart: the runtime's own timer counts in milliseconds, longer than a request takes.
async fn pause_exactly(pause: Duration) {
    if !pause.is_zero()
        && let Err(error) = tokio::task::spawn_blocking(move || std::thread::sleep(pause)).await
    {
        tracing::error!("a pause was cut short: {error}");
    }
}

/// A future that sums up how long it kept a processor: the time within its polls.
struct Timed<F> {
    work: Pin<Box<F>>,
    busy: Duration,
}

impl<F: Future> Timed<F> {
    fn new(work: F) -> Self {
        Self {
            work: Box::pin(work),
            busy: Duration::ZERO,
        }
    }
}

impl<F: Future> Future for Timed<F> {
    type Output = (F::Output, Duration);

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let start = Instant::now();
        let polled = self.work.as_mut().poll(context);
        self.busy += start.elapsed();
        polled.map(|output| (output, self.busy))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn busy_time_and_waiting_are_told_apart() {
        let (output, busy) = Timed::new(async {
            spin(Duration::from_millis(5));
            tokio::time::sleep(Duration::from_millis(300)).await;
            7
        })
        .await;
        assert_eq!(output, 7);
        assert!(busy >= Duration::from_millis(5));
    }

    #[tokio::test]
    async fn a_request_takes_at_least_its_share_longer() {
        let slower = Slower::new(Share(1.0));
        let start = Instant::now();
        slower
            .slow(tokio::time::sleep(Duration::from_millis(20)))
            .await;
        assert!(start.elapsed() >= Duration::from_millis(40));
    }

    #[tokio::test]
    async fn what_was_overslept_is_taken_off_the_next_wait() {
        let slower = Slower::new(Share(1.0));
        slower.overslept.store(5_000_000, Ordering::Relaxed);
        slower.wait(Duration::from_millis(2)).await;
        assert_eq!(slower.overslept.load(Ordering::Relaxed), 3_000_000);
    }
}
