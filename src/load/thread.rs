//! A load thread: one `current_thread` runtime, its clients, and the phases they are driven through.
//!
//! Clients and their connections outlive a phase. A thread must never run longer than its driver is there.

use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::Context;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::task::{JoinSet, LocalSet};

use super::client::Client;
use super::closed;
use super::draw::Seed;
use super::driver::StopRule;
use super::open::{self, OpenLoop};
use super::pace::Crowd;
use super::phase::{Phase, Setup, Tickets};
use super::record::{Recorder, Told};
use super::running::ThreadEnd;
use super::selfcheck;

/// What a thread is asked to do.
#[derive(Debug)]
pub(super) enum Order {
    /// Drive a phase.
    Start(Box<Start>),
    /// End the phase as of then.
    Stop(Instant),
    /// More closed-loop clients for some time, with these numbers.
    Burst { clients: Vec<u64>, until: Instant },
}

/// One phase, as a thread sees it.
#[derive(Debug)]
pub(super) struct Start {
    pub seed: Seed,
    pub origin: Instant,
    pub stop: StopRule,
    pub tickets: Option<Arc<Tickets>>,
    pub loops: Loop,
    pub told: UnboundedSender<Told>,
}

/// The loop to run.
#[derive(Debug, Clone)]
pub(super) enum Loop {
    Closed { crowd: Crowd, think: Duration },
    Open(OpenLoop),
}

/// A thread, from outside.
#[derive(Debug, Clone)]
pub(super) struct LoadThread {
    orders: UnboundedSender<Order>,
}

impl LoadThread {
    /// Starts one; `number` of `threads`.
    pub(super) fn spawn(
        setup: Arc<Setup>,
        number: usize,
        threads: usize,
        pin: Option<Vec<usize>>,
    ) -> anyhow::Result<Self> {
        let (orders, receiver) = unbounded_channel();
        let (ready, is_ready) = std::sync::mpsc::channel();
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .context("preparing a load thread's runtime")?;
        std::thread::Builder::new()
            .name(format!("load-{number}"))
            .spawn(move || {
                let pinned = pin.map_or(Ok(()), |processors| selfcheck::pin(&processors));
                let go = pinned.is_ok();
                let _ = ready.send(pinned);
                if go {
                    let worker = Worker {
                        setup,
                        number,
                        threads,
                        clients: Rc::default(),
                    };
                    LocalSet::new().block_on(&runtime, worker.run(receiver));
                }
            })
            .context("starting a load thread")?;
        is_ready
            .recv()
            .context("a load thread ended at its start")??;
        Ok(LoadThread { orders })
    }

    /// Gives an order.
    pub(super) fn order(&self, order: Order) {
        // A thread is only gone when its driver is.
        let _ = self.orders.send(order);
    }
}

struct Worker {
    setup: Arc<Setup>,
    number: usize,
    threads: usize,
    /// Clients between phases.
    clients: Rc<RefCell<Vec<Client>>>,
}

impl Worker {
    async fn run(self, mut orders: UnboundedReceiver<Order>) {
        while let Some(order) = orders.recv().await {
            // Stop and burst speak of a phase that is over.
            if let Order::Start(start) = order {
                self.drive(*start, &mut orders).await;
            }
        }
    }

    async fn drive(&self, start: Start, orders: &mut UnboundedReceiver<Order>) {
        let end = match start.stop {
            StopRule::After(length) => Some(start.origin + length),
            StopRule::Requests(_) => None,
        };
        let steps = self.setup.plan.steps.len();
        let recorder = Recorder::new(self.number, steps, start.origin, end, start.told.clone());
        let think = match &start.loops {
            Loop::Closed { think, .. } => *think,
            Loop::Open(_) => Duration::ZERO,
        };
        let phase = Rc::new(Phase::new(
            self.setup.clone(),
            start.seed,
            recorder,
            start.tickets.clone(),
            think,
        ));
        let cpu = selfcheck::thread_cpu_s();
        let waited = selfcheck::thread_run_queue_s();
        let mut tasks = JoinSet::new();
        match &start.loops {
            Loop::Closed { crowd, .. } => {
                let crowd = Rc::new(crowd.clone());
                let mine = (0..crowd.most()).filter(|i| self.is_mine(*i));
                for index in mine {
                    self.spawn_closed(&mut tasks, index, &phase, &crowd);
                }
            }
            Loop::Open(open) => {
                let (open, phase, clients) = (open.clone(), phase.clone(), self.clients.clone());
                let (number, threads) = (self.number as u64, self.threads as u64);
                tasks.spawn_local(async move {
                    open::run(&open, &phase, &clients, number, threads).await;
                });
            }
        }
        let ticker = tokio::task::spawn_local(tick(phase.clone()));
        let ended = async {
            self.attend(&phase, &mut tasks, orders, end).await;
        };
        ended.await;
        if !phase.recorder.borrow().is_ended() {
            phase.end(Instant::now());
        }
        // Each request that is still under way has a deadline of its own, so this ends.
        while tasks.join_next().await.is_some() {}
        ticker.abort();
        let drained = ThreadEnd {
            cpu_s: selfcheck::thread_cpu_s() - cpu,
            run_queue_s: waited.and_then(|w| Some(selfcheck::thread_run_queue_s()? - w)),
            cut: phase.take_cut(),
        };
        let _ = start.told.send(Told::Drained(self.number, drained));
    }

    /// Follows orders until the phase has ended or every client is done.
    async fn attend(
        &self,
        phase: &Rc<Phase>,
        tasks: &mut JoinSet<()>,
        orders: &mut UnboundedReceiver<Order>,
        end: Option<Instant>,
    ) {
        loop {
            let at_end = async {
                match end {
                    Some(end) => tokio::time::sleep_until(end.into()).await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                () = at_end => {
                    phase.is_over(Instant::now());
                    return;
                }
                () = phase.ended() => return,
                joined = tasks.join_next() => {
                    // With a length, the phase goes on though all have left (a stage of none).
                    if joined.is_none() && end.is_none() {
                        return;
                    }
                    if joined.is_none() {
                        self.attend_idle(phase, tasks, orders, end).await;
                    }
                }
                order = orders.recv() => match order {
                    Some(order) => self.follow(order, phase, tasks),
                    None => {
                        phase.end(Instant::now());
                        return;
                    }
                },
            }
        }
    }

    /// The same while there is no client.
    async fn attend_idle(
        &self,
        phase: &Rc<Phase>,
        tasks: &mut JoinSet<()>,
        orders: &mut UnboundedReceiver<Order>,
        end: Option<Instant>,
    ) {
        let Some(end) = end else { return };
        tokio::select! {
            () = tokio::time::sleep_until(end.into()) => {}
            order = orders.recv() => match order {
                Some(order) => self.follow(order, phase, tasks),
                None => phase.end(Instant::now()),
            },
        }
    }

    fn follow(&self, order: Order, phase: &Rc<Phase>, tasks: &mut JoinSet<()>) {
        match order {
            Order::Start(_) => {}
            Order::Stop(at) => phase.end(at),
            Order::Burst { clients, until } => {
                let now = Instant::now();
                let crowd = Rc::new(Crowd::until(phase.at(now), phase.at(until)));
                for index in clients.into_iter().filter(|i| self.is_mine(*i)) {
                    self.spawn_closed(tasks, index, phase, &crowd);
                }
            }
        }
    }

    fn is_mine(&self, client: u64) -> bool {
        client % self.threads as u64 == self.number as u64
    }

    fn spawn_closed(
        &self,
        tasks: &mut JoinSet<()>,
        index: u64,
        phase: &Rc<Phase>,
        crowd: &Rc<Crowd>,
    ) {
        let known = {
            let mut clients = self.clients.borrow_mut();
            let place = clients.iter().position(|client| client.index == index);
            place.map(|place| clients.swap_remove(place))
        };
        let mut client = known.unwrap_or_else(|| Client::new(index, &self.setup.plan));
        let (phase, crowd, home) = (phase.clone(), crowd.clone(), self.clients.clone());
        let watch = phase.watch(Instant::now());
        tasks.spawn_local(async move {
            let gone = closed::run(&mut client, &phase, &watch, &crowd).await;
            if !gone {
                home.borrow_mut().push(client);
            }
        });
    }
}

/// Closes seconds that no request closes.
async fn tick(phase: Rc<Phase>) {
    loop {
        let closes = phase.recorder.borrow().closes();
        if phase.sleep_until(closes).await {
            return;
        }
        let now = Instant::now();
        if !phase.is_over(now) {
            phase.recorder.borrow_mut().roll(now);
        }
    }
}
