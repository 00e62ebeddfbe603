//! The driver: compiles a workload once, sends each step once before load, then drives phases.

use std::sync::Arc;
use std::time::{Duration, Instant};

use super::draw::Seed;
use super::environment::Environment;
use super::open::OpenLoop;
use super::pace::Crowd;
use super::phase::{Setup, Tickets};
use super::plan::Plan;
use super::preflight::{self, Preflight};
use super::running::Running;
use super::stream::Connector;
use super::target::{Scheme, Target};
use super::thread::{LoadThread, Loop, Order, Start};
use super::tls;
use crate::experiment::{Clients, Load, Workload};
use crate::measure::Phase as PhaseName;

/// When a phase ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StopRule {
    /// After so long.
    After(Duration),
    /// When so many requests have been sent and have ended.
    Requests(u64),
}

/// One phase.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PhaseSpec {
    /// `Warmup` or `Measuring`: each draws from its own stream, the same in both arms. A warm-up holds the first stage.
    pub phase: PhaseName,
    /// When it ends.
    pub stop: StopRule,
}

/// Drives one target with one workload.
#[derive(Debug)]
pub struct Driver {
    setup: Arc<Setup>,
    threads: Vec<LoadThread>,
    load: Load,
    seed: u64,
    ramped: bool,
}

impl Driver {
    /// Compiles everything and starts the load threads, which wait. `environment`: what the templates take from it.
    ///
    /// # Errors
    /// Templates or pointers that don't compile, a CA file that can't be read, processors that can't be pinned to.
    pub fn new(
        clients: &Clients,
        workload: &Workload,
        target: Target,
        seed: u64,
        environment: Environment,
    ) -> anyhow::Result<Driver> {
        let plan = Plan::compile(clients, workload, &target.authority(), environment)?;
        let tls = match target.scheme {
            Scheme::Https => Some(tls::config(clients)?),
            Scheme::Http => None,
        };
        let setup = Arc::new(Setup {
            plan,
            connector: Connector {
                target,
                tls,
                timeout: clients.connect_timeout,
            },
            protocol: clients.protocol,
            timeout: clients.timeout,
        });
        let count = thread_count(clients);
        let threads = (0..count)
            .map(|number| {
                let pin = clients
                    .pin
                    .as_ref()
                    .map(|processors| vec![processors[number % processors.len()]]);
                LoadThread::spawn(setup.clone(), number, count, pin)
            })
            .collect::<anyhow::Result<Vec<_>>>()?;
        Ok(Driver {
            setup,
            threads,
            load: clients.load.clone(),
            seed,
            ramped: false,
        })
    }

    /// Where the load goes, with its addresses.
    pub fn target(&self) -> &Target {
        &self.setup.connector.target
    }

    /// Load threads.
    pub fn threads(&self) -> usize {
        self.threads.len()
    }

    /// The most closed-loop clients at any time; for an open loop the most in flight.
    pub fn clients(&self) -> u64 {
        match &self.load {
            Load::Closed { stages, ramp, .. } => Crowd::new(stages, *ramp).most(),
            Load::Open { max_in_flight, .. } => *max_in_flight as u64,
        }
    }

    /// Sends each step once, in file order, by a client of its own; values that it keeps serve the steps that follow.
    pub async fn preflight(&mut self) -> Vec<Preflight> {
        preflight::run(
            &self.setup,
            Seed::new(self.seed, stream(PhaseName::Preflight)),
        )
        .await
    }

    /// Starts a phase. A ramp is part of the first one only.
    pub fn start(&mut self, spec: PhaseSpec) -> Running {
        let seed = Seed::new(self.seed, stream(spec.phase));
        let warmup = spec.phase == PhaseName::Warmup;
        let loops = match &self.load {
            Load::Closed {
                stages,
                think,
                ramp,
            } => {
                let ramp = if self.ramped { Duration::ZERO } else { *ramp };
                self.ramped = true;
                let crowd = if warmup {
                    Crowd::first_level(stages, ramp)
                } else {
                    Crowd::new(stages, ramp)
                };
                let think = *think;
                Loop::Closed { crowd, think }
            }
            Load::Open {
                stages,
                arrival,
                max_in_flight,
            } => Loop::Open(OpenLoop::new(
                stages,
                warmup,
                *arrival,
                *max_in_flight,
                seed,
            )),
        };
        let tickets = match spec.stop {
            StopRule::Requests(requests) => Some(Arc::new(Tickets::new(requests))),
            StopRule::After(_) => None,
        };
        let (told, receiver) = tokio::sync::mpsc::unbounded_channel();
        let origin = Instant::now();
        for thread in &self.threads {
            thread.order(Order::Start(Box::new(Start {
                seed,
                origin,
                stop: spec.stop,
                tickets: tickets.clone(),
                loops: loops.clone(),
                told: told.clone(),
            })));
        }
        let steps = self.setup.plan.steps.len();
        Running::new(
            origin,
            self.threads.clone(),
            receiver,
            steps,
            self.clients(),
        )
    }
}

/// The stream of draws of a phase.
fn stream(phase: PhaseName) -> u64 {
    phase as u64
}

/// One load thread a pinned processor; else one for four processors, at most four, and never more than clients.
fn thread_count(clients: &Clients) -> usize {
    let wanted = match &clients.load {
        Load::Closed { stages, .. } => Crowd::new(stages, Duration::ZERO).most() as usize,
        Load::Open { max_in_flight, .. } => *max_in_flight,
    };
    let threads = match &clients.pin {
        Some(processors) => processors.len(),
        None => {
            let processors = std::thread::available_parallelism().map_or(1, usize::from);
            (processors / 4).clamp(1, 4)
        }
    };
    threads.min(wanted).max(1)
}
