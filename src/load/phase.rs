//! What the clients of one load thread share during a phase, and its exact end.
//!
//! Everything lives on one thread. The end of a phase books each client's time up to it and counts what is in flight as
//! cut; nothing that happens later is counted, only noted.

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use tokio::sync::{Notify, watch};

use super::draw::Seed;
use super::failure::CutRequest;
use super::pace::Schedule;
use super::plan::Plan;
use super::record::{Part, Recorder};
use super::stream::Connector;
use crate::experiment::Protocol;
use crate::measure::Outcome;

/// What does not change over an arm.
#[derive(Debug)]
pub(super) struct Setup {
    pub plan: Plan,
    pub connector: Connector,
    pub protocol: Protocol,
    /// For a whole answer.
    pub timeout: Duration,
}

/// Requests that may still be sent, drawn by the clients of all threads.
#[derive(Debug)]
pub(super) struct Tickets {
    left: AtomicU64,
    /// The last one was taken.
    out: watch::Sender<bool>,
}

impl Tickets {
    /// So many.
    pub(super) fn new(requests: u64) -> Self {
        Tickets {
            left: AtomicU64::new(requests),
            out: watch::Sender::new(requests == 0),
        }
    }

    /// Takes one, if there is one left.
    pub(super) fn take(&self) -> bool {
        let before = self
            .left
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| {
                left.checked_sub(1)
            });
        if before == Ok(1) {
            self.out.send_replace(true);
        }
        before.is_ok()
    }

    /// Completes once the last one was taken. Only a closed loop asks: in an open one a ticket may come back.
    async fn out(&self) {
        // It can't close while this is borrowed.
        let _ = self.out.subscribe().wait_for(|out| *out).await;
    }

    /// Gives back one that was not used.
    pub(super) fn give_back(&self) {
        self.left.fetch_add(1, Ordering::Relaxed);
    }
}

/// One thread's share of a phase.
#[derive(Debug)]
pub(super) struct Phase {
    pub setup: Arc<Setup>,
    pub seed: Seed,
    pub recorder: RefCell<Recorder>,
    pub tickets: Option<Arc<Tickets>>,
    pub think: Duration,
    /// What an open loop still has to send.
    pub schedule: RefCell<Option<Schedule>>,
    /// Requests of an open loop that a client has been given and has not begun.
    pub handed: Cell<u64>,
    watches: RefCell<Vec<Rc<Watch>>>,
    cut: RefCell<Vec<CutRequest>>,
    /// Wakes those that sleep when the phase ends.
    over: Notify,
}

/// What one client is at.
#[derive(Debug)]
pub(super) struct Watch {
    part: Cell<Part>,
    since: Cell<Instant>,
    /// When it is sent away: what it has in flight then runs on, but is no part of the clients' time.
    leaves: Cell<Option<Instant>>,
    /// Step and start of the request under way.
    request: Cell<Option<(usize, Instant)>>,
    /// Its place among the cut ones.
    cut: Cell<Option<usize>>,
}

impl Watch {
    /// When it began what it is at.
    pub(super) fn since(&self) -> Instant {
        self.since.get()
    }

    /// Says when it will be sent away.
    pub(super) fn leaves_at(&self, leaves: Option<Instant>) {
        self.leaves.set(leaves);
    }

    /// No later than when it is sent away.
    fn within(&self, now: Instant) -> Instant {
        self.leaves.get().map_or(now, |leaves| now.min(leaves))
    }

    /// The request that the end of the phase cut never left; it stays cut.
    pub(super) fn give_up(&self) {
        self.request.take();
        self.cut.take();
    }
}

impl Phase {
    /// A phase that has not begun.
    pub(super) fn new(
        setup: Arc<Setup>,
        seed: Seed,
        recorder: Recorder,
        tickets: Option<Arc<Tickets>>,
        think: Duration,
    ) -> Self {
        Phase {
            setup,
            seed,
            recorder: RefCell::new(recorder),
            tickets,
            think,
            schedule: RefCell::default(),
            handed: Cell::new(0),
            watches: RefCell::default(),
            cut: RefCell::default(),
            over: Notify::new(),
        }
    }

    /// A new client's watch.
    pub(super) fn watch(&self, now: Instant) -> Rc<Watch> {
        let watch = Rc::new(Watch {
            part: Cell::new(Part::Away),
            since: Cell::new(now),
            leaves: Cell::new(None),
            request: Cell::new(None),
            cut: Cell::new(None),
        });
        self.watches.borrow_mut().push(watch.clone());
        watch
    }

    /// Time since the start of the phase.
    pub(super) fn at(&self, now: Instant) -> Duration {
        now.saturating_duration_since(self.recorder.borrow().origin())
    }

    /// Whether the phase has ended, by `now`; ends it when its time has come.
    pub(super) fn is_over(&self, now: Instant) -> bool {
        let (ended, end) = {
            let recorder = self.recorder.borrow();
            (recorder.is_ended(), recorder.end())
        };
        if !ended && let Some(end) = end.filter(|end| now >= *end) {
            self.end(end);
            return true;
        }
        ended
    }

    /// The client turns to something else.
    pub(super) fn enter(&self, watch: &Watch, part: Part, now: Instant) {
        let before = watch.part.replace(part);
        let since = watch.since.replace(now);
        let within = watch.within(now);
        self.recorder.borrow_mut().book(before, since, within, now);
    }

    /// A request is under way.
    pub(super) fn begin(&self, watch: &Watch, step: usize, now: Instant, redrawn: u64) {
        self.handed.set(self.handed.get().saturating_sub(1));
        watch.request.set(Some((step, now)));
        self.recorder.borrow_mut().sent(redrawn);
    }

    /// A request has ended. False when the end of the phase had cut it: then it is only noted.
    pub(super) fn conclude(&self, watch: &Watch, outcome: Outcome, now: Instant) -> bool {
        let request = watch.request.take();
        let Some(place) = watch.cut.take() else {
            return true;
        };
        if let (Some(cut), Some((_, begun))) = (self.cut.borrow_mut().get_mut(place), request) {
            cut.drained = Some((outcome, now.saturating_duration_since(begun)));
        }
        false
    }

    /// Ends the phase at `end`.
    pub(super) fn end(&self, end: Instant) {
        let mut recorder = self.recorder.borrow_mut();
        if recorder.is_ended() {
            return;
        }
        let mut cut = self.cut.borrow_mut();
        for watch in self.watches.borrow().iter() {
            let within = watch.within(end);
            recorder.book_end(watch.part.get(), watch.since.get(), within, end);
            if let Some((step, begun)) = watch.request.get() {
                recorder.outcome(step, Outcome::Cut, None, end);
                watch.cut.set(Some(cut.len()));
                cut.push(CutRequest {
                    step,
                    age: end.saturating_duration_since(begun),
                    sent: match watch.part.get() {
                        Part::InFlight => end.saturating_duration_since(watch.since.get()),
                        _ => Duration::ZERO,
                    },
                    drained: None,
                });
            }
        }
        if let Some(schedule) = &mut *self.schedule.borrow_mut() {
            let length = end.saturating_duration_since(recorder.origin());
            recorder.not_sent(schedule.left_before(length) + self.handed.get());
        }
        recorder.finish(end);
        self.over.notify_waiters();
    }

    /// Sleeps; true when the phase ended meanwhile.
    pub(super) async fn sleep_until(&self, until: Instant) -> bool {
        if self.recorder.borrow().is_ended() {
            return true;
        }
        tokio::select! {
            () = self.over.notified() => true,
            () = tokio::time::sleep_until(until.into()) => false,
        }
    }

    /// A client's pause: true when the phase ended meanwhile, or when nobody may send any more.
    pub(super) async fn rest_until(&self, until: Instant) -> bool {
        let Some(tickets) = &self.tickets else {
            return self.sleep_until(until).await;
        };
        tokio::select! {
            () = tickets.out() => true,
            ended = self.sleep_until(until) => ended,
        }
    }

    /// Waits for the end of the phase.
    pub(super) async fn ended(&self) {
        if !self.recorder.borrow().is_ended() {
            self.over.notified().await;
        }
    }

    /// What was in flight at the end.
    pub(super) fn take_cut(&self) -> Vec<CutRequest> {
        self.cut.take()
    }
}
