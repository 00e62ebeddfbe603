//! A request's deadline, cheap enough to have one on every request.
//!
//! A deadline that moves with each request would be taken out of the timer wheel and put in again each time. This one stays
//! where it is: when it fires too early it is set again, once a timeout's length instead of once a request.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Instant;

use tokio::time::Sleep;

/// One client's deadline.
#[derive(Debug, Default)]
pub(super) struct Timer {
    sleep: Option<Pin<Box<Sleep>>>,
}

impl Timer {
    /// Ready once `deadline` has passed. Must be polled by the same task all along a request.
    pub(super) fn poll(&mut self, cx: &mut Context<'_>, deadline: Instant) -> Poll<()> {
        let deadline = tokio::time::Instant::from_std(deadline);
        let sleep = self
            .sleep
            .get_or_insert_with(|| Box::pin(tokio::time::sleep_until(deadline)));
        if sleep.deadline() > deadline {
            sleep.as_mut().reset(deadline);
        }
        loop {
            // Out of its budget, a task that reads without end would find the clock pending for ever.
            let mut unconstrained = tokio::task::unconstrained(sleep.as_mut());
            match Pin::new(&mut unconstrained).poll(cx) {
                Poll::Pending => return Poll::Pending,
                Poll::Ready(()) if sleep.deadline() >= deadline => return Poll::Ready(()),
                Poll::Ready(()) => sleep.as_mut().reset(deadline),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[tokio::test]
    async fn a_task_that_has_used_up_its_budget_still_sees_the_time() {
        let mut timer = Timer::default();
        let deadline = Instant::now() + Duration::from_millis(20);
        // A body that never ends: always ready, until the runtime sends the task to the back of the queue.
        std::future::poll_fn(|cx| {
            while let Poll::Ready(turn) = tokio::task::coop::poll_proceed(cx) {
                turn.made_progress();
            }
            timer.poll(cx, deadline)
        })
        .await;
        assert!(Instant::now() >= deadline);
    }
}
