//! An alarm with the kernel's precision: the runtime's own timers round up to a millisecond, which an open loop of some
//! thousand requests a second can't live with.

use std::time::{Duration, Instant};

use rustix::fd::OwnedFd;
use rustix::time::{
    Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec, timerfd_create,
    timerfd_settime,
};
use tokio::io::unix::AsyncFd;

use super::phase::Phase;

/// A timer of the kernel; where there is none to be had, the runtime's own.
#[derive(Debug)]
pub(super) struct Alarm {
    timer: Option<AsyncFd<OwnedFd>>,
}

impl Alarm {
    /// One for the calling thread's runtime.
    #[expect(
        deprecated,
        reason = "its successor is unsafe to call; a descriptor that is owned and never replaced is what it asks for"
    )]
    pub(super) fn new() -> Self {
        let flags = TimerfdFlags::NONBLOCK | TimerfdFlags::CLOEXEC;
        let timer = timerfd_create(TimerfdClockId::Monotonic, flags).ok();
        Alarm {
            timer: timer.and_then(|timer| AsyncFd::new(timer).ok()),
        }
    }

    /// Waits until `due`; true when the phase ended meanwhile.
    pub(super) async fn wait(&mut self, due: Instant, phase: &Phase) -> bool {
        let Some(timer) = &self.timer else {
            return phase.sleep_until(due).await;
        };
        let left = due.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return false;
        }
        if set(timer.get_ref(), left).is_err() {
            return phase.sleep_until(due).await;
        }
        tokio::select! {
            () = phase.ended() => true,
            () = rung(timer) => false,
        }
    }
}

fn set(timer: &OwnedFd, left: Duration) -> rustix::io::Result<()> {
    let once = Itimerspec {
        it_interval: Timespec::default(),
        it_value: Timespec {
            tv_sec: left.as_secs() as i64,
            tv_nsec: i64::from(left.subsec_nanos()),
        },
    };
    timerfd_settime(timer, TimerfdTimerFlags::empty(), &once)?;
    Ok(())
}

/// Waits for the timer and takes its count, so that it can ring again.
async fn rung(timer: &AsyncFd<OwnedFd>) {
    loop {
        let Ok(mut guard) = timer.readable().await else {
            return;
        };
        let mut count = [0; 8];
        match rustix::io::read(timer.get_ref(), &mut count) {
            Err(rustix::io::Errno::AGAIN) => guard.clear_ready(),
            _ => {
                guard.clear_ready();
                return;
            }
        }
    }
}
