//! The open loop: requests leave by a clock, whatever the answers do.
//!
//! Latency counts from the intended start. A request that is due while as many as permitted are in flight, or that the
//! driver is late for by more than the timeout, is counted as not sent; it is never caught up silently.

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::time::Instant;

use tokio::sync::Notify;
use tokio::task::JoinSet;

use super::alarm::Alarm;
use super::client::{After, Client};
use super::draw::Seed;
use super::pace::{Arrivals, Schedule};
use super::phase::Phase;
use super::plan::Turn;
use super::record::Part;
use crate::experiment::{Arrival, Stage};

/// One client number for all draws: requests are numbered by arrival.
const DRAWS: u64 = u64::MAX;

/// The schedule of an open loop.
#[derive(Debug, Clone)]
pub(super) struct OpenLoop {
    arrivals: Arrivals,
    max_in_flight: usize,
}

impl OpenLoop {
    /// A warm-up holds the first stage.
    pub(super) fn new(
        stages: &[Stage],
        warmup: bool,
        arrival: Arrival,
        max_in_flight: usize,
        seed: Seed,
    ) -> Self {
        let held = stages.first().map(|stage| Stage {
            level: stage.level,
            length: None,
        });
        let arrivals = match held {
            Some(held) if warmup => Arrivals::new(&[held], arrival, seed),
            _ => Arrivals::new(stages, arrival, seed),
        };
        OpenLoop {
            arrivals,
            max_in_flight,
        }
    }
}

/// A client that waits for its next request.
struct Slot {
    next: Cell<Option<(u64, Instant)>>,
    /// No request comes after the one it may hold.
    closing: Cell<bool>,
    wake: Notify,
}

/// Sends this thread's share: every `threads`-th request.
pub(super) async fn run(
    open: &OpenLoop,
    phase: &Rc<Phase>,
    home: &Rc<RefCell<Vec<Client>>>,
    number: u64,
    threads: u64,
) {
    let share = open.max_in_flight as u64;
    let most = share / threads + u64::from(number < share % threads);
    let origin = phase.recorder.borrow().origin();
    *phase.schedule.borrow_mut() = Some(Schedule::new(open.arrivals.clone(), number, threads));
    let mut alarm = Alarm::new();
    let mut slots: Vec<Rc<Slot>> = Vec::new();
    // The last to become free is the first to be used: its connection is the warmest.
    let free: Rc<RefCell<Vec<usize>>> = Rc::default();
    let mut tasks = JoinSet::new();
    loop {
        let next = phase.schedule.borrow().as_ref().and_then(Schedule::next);
        let Some((request, at)) = next else { break };
        let due = origin + at;
        let now = Instant::now();
        if phase.is_over(now) {
            break;
        }
        if due > now && alarm.wait(due, phase).await {
            break;
        }
        if phase
            .tickets
            .as_ref()
            .is_some_and(|tickets| !tickets.take())
        {
            // All that were asked for are on their way: what would be due next was never to be sent.
            phase.schedule.borrow_mut().take();
            break;
        }
        let now = Instant::now();
        if phase.is_over(now) {
            break;
        }
        phase.recorder.borrow_mut().roll(now);
        if let Some(schedule) = &mut *phase.schedule.borrow_mut() {
            schedule.advance();
        }
        let taken = free.borrow_mut().pop();
        let late = now.saturating_duration_since(due) > phase.setup.timeout;
        let slot = match taken {
            Some(slot) => slot,
            None if (slots.len() as u64) < most => {
                let slot = spawn(
                    &mut tasks,
                    phase,
                    home,
                    &free,
                    slots.len(),
                    number + threads * slots.len() as u64,
                );
                slots.push(slot);
                slots.len() - 1
            }
            None => {
                not_sent(phase);
                continue;
            }
        };
        if late {
            free.borrow_mut().push(slot);
            not_sent(phase);
            continue;
        }
        phase.handed.set(phase.handed.get() + 1);
        slots[slot].next.set(Some((request, due)));
        slots[slot].wake.notify_one();
    }
    // With a length the phase goes on to its end; without one it ends with its last request.
    if phase.tickets.is_none() {
        phase.ended().await;
    }
    for slot in &slots {
        slot.closing.set(true);
        slot.wake.notify_one();
    }
    while tasks.join_next().await.is_some() {}
}

fn not_sent(phase: &Phase) {
    // One that was not sent has not used its ticket.
    if let Some(tickets) = &phase.tickets {
        tickets.give_back();
    }
    phase.recorder.borrow_mut().not_sent(1);
}

fn spawn(
    tasks: &mut JoinSet<()>,
    phase: &Rc<Phase>,
    home: &Rc<RefCell<Vec<Client>>>,
    free: &Rc<RefCell<Vec<usize>>>,
    place: usize,
    index: u64,
) -> Rc<Slot> {
    let slot = Rc::new(Slot {
        next: Cell::new(None),
        closing: Cell::new(false),
        wake: Notify::new(),
    });
    let known = {
        let mut clients = home.borrow_mut();
        let at = clients.iter().position(|client| client.index == index);
        at.map(|at| clients.swap_remove(at))
    };
    let mut client = known.unwrap_or_else(|| Client::new(index, &phase.setup.plan));
    let (phase, home, free) = (phase.clone(), home.clone(), free.clone());
    let mine = slot.clone();
    let watch = phase.watch(Instant::now());
    tasks.spawn_local(async move {
        loop {
            // Two wake-ups before the first look are one: what there is to do is looked up, never counted.
            let Some((request, due)) = mine.next.take() else {
                if mine.closing.get() {
                    break;
                }
                mine.wake.notified().await;
                continue;
            };
            let turn = Turn {
                key: DRAWS,
                client: index,
                iteration: request,
            };
            phase.enter(&watch, Part::Overhead, Instant::now());
            let after = client.turn(&phase, &watch, turn, Some(due)).await;
            let now = watch.since();
            phase.enter(&watch, Part::Away, now);
            match after {
                After::Stop => break,
                After::Pause(_) | After::Go => free.borrow_mut().push(place),
            }
        }
        home.borrow_mut().push(client);
    });
    slot
}
