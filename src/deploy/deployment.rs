//! The services of one running arm.
//!
//! Starting follows what services need of each other, in parallel where they are independent; stopping goes the other way.
//! `stop` consumes the deployment; `Drop` is the last resort, and the supervisor the one behind it.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Context, Result, anyhow};
use tokio::sync::{Mutex, mpsc, watch};
use tokio::task::JoinSet;

use super::cgroup::{self, Cgroups, LimitsSeen};
use super::kind;
use super::leftover;
use super::live::{Life, Live, Parts, ServiceStarted};
use super::port;
use super::prepare::{Prepared, Site};
use super::render::{Names, Offer};
use crate::experiment::{ActionKind, ArmSetup, Limits};
use crate::measure::ServiceFacts;
use crate::name::{Arm, ServiceName};
use crate::sql;

/// Why a deployment did not come up. What had come up is stopped again.
#[derive(Debug)]
pub enum StartError {
    /// The user asked to stop.
    Interrupted,
    /// A service failed.
    Failed {
        /// Which.
        service: ServiceName,
        /// Why, with the end of its log.
        error: anyhow::Error,
    },
    /// Something that belongs to no single service.
    Other(anyhow::Error),
}

impl fmt::Display for StartError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            StartError::Interrupted => f.write_str("interrupted while services were starting"),
            StartError::Failed { error, .. } | StartError::Other(error) => write!(f, "{error:#}"),
        }
    }
}

impl std::error::Error for StartError {}

/// Where a service is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Endpoint {
    /// With scheme; may hold a password, so it must not be printed.
    pub url: String,
    /// Name or number.
    pub host: String,
    /// TCP port.
    pub port: u16,
}

/// What a sampler needs to follow a service.
#[derive(Debug, Clone)]
pub struct Watched {
    /// Its name.
    pub service: ServiceName,
    /// `postgres`, `process`, ...
    pub kind: &'static str,
    /// Its first process and which life it is; changes with each restart.
    pub life: watch::Receiver<Life>,
    /// Its control groups.
    pub cgroups: Cgroups,
    /// Its log.
    pub log: PathBuf,
}

/// The end of a service's first process.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServiceExit {
    /// Which.
    pub service: ServiceName,
    /// How, in words.
    pub status: String,
    /// Whether somebody asked for it.
    pub expected: bool,
    /// The last lines of its log.
    pub log_tail: Vec<String>,
}

/// How an arm's services ended.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct StopReport {
    /// Services that did not end within their grace and were killed.
    pub killed: Vec<ServiceName>,
    /// What could not be stopped or removed, in words.
    pub problems: Vec<String>,
}

/// The services of one running arm.
pub struct Deployment {
    pub(super) site: Site,
    pub(super) names: Names,
    services: BTreeMap<ServiceName, Arc<Live>>,
    /// Services in the order of the setup.
    order: Vec<ServiceName>,
    facts: Vec<ServiceFacts>,
    started: Vec<ServiceStarted>,
    exits: Mutex<mpsc::UnboundedReceiver<ServiceExit>>,
    home: PathBuf,
    stopped: bool,
}

impl fmt::Debug for Deployment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Deployment")
            .field("services", &self.order)
            .finish_non_exhaustive()
    }
}

impl Deployment {
    /// Starts the services of an arm; logs go to `logs/<service>.log`. Returns when all are ready.
    ///
    /// # Errors
    /// See [`StartError`]; nothing is left running then.
    pub async fn start(
        prepared: &Prepared,
        setup: &ArmSetup,
        arm: Arm,
        logs: &Path,
    ) -> Result<Self, StartError> {
        let mut deployment = Self::lay_out(prepared, setup, arm, logs)
            .await
            .map_err(StartError::Other)?;
        match deployment.start_all().await {
            Ok(()) => Ok(deployment),
            Err(error) => {
                let interrupted = *deployment.site.cancel.borrow();
                // Whatever can't be stopped here is the supervisor's when it ends.
                let _ = deployment.stop().await;
                Err(if interrupted {
                    StartError::Interrupted
                } else {
                    error
                })
            }
        }
    }

    /// Ports, folders and control groups of all services, so that every name has its value before anything starts.
    async fn lay_out(prepared: &Prepared, setup: &ArmSetup, arm: Arm, logs: &Path) -> Result<Self> {
        let site = prepared.site.clone();
        let home = site.scratch.join(arm.as_str());
        std::fs::create_dir_all(&home)
            .with_context(|| format!("creating the folder {}", home.display()))?;
        std::fs::create_dir_all(logs)
            .with_context(|| format!("creating the folder {}", logs.display()))?;
        let mark = site
            .root
            .file_name()
            .map_or_else(String::new, |name| name.to_string_lossy().into_owned());
        let (sender, exits) = mpsc::unbounded_channel();
        let mut services = BTreeMap::new();
        let mut offers: BTreeMap<String, Offer> = BTreeMap::new();
        for service in &setup.services {
            let name = &service.name;
            let kind = kind::of(service);
            let material = prepared
                .materials
                .get(arm)
                .get(name)
                .with_context(|| format!("{name} was not prepared"))?
                .clone();
            let dir = home.join(name.as_str());
            let held = kind.is_started().then(port::hold).transpose()?;
            let names = Names::real(offers.clone(), site.env.clone());
            let number = held.as_ref().map_or(0, |held| held.number);
            let offer = kind
                .offer(&material, &names, number, &dir, arm)
                .with_context(|| name.to_string())?;
            offers.insert(name.to_string(), offer.clone());
            let key = format!("{arm}/{name}");
            let cgroups = if kind.is_started() {
                let groups = cgroup::make(&mark, &key, service.limits, later(setup, name))
                    .with_context(|| format!("{name}: limits"))?;
                for folder in groups.folders() {
                    site.supervisor.own_cgroup(folder).await?;
                }
                groups
            } else {
                Cgroups::default()
            };
            let socket = match material.seed {
                Some(_) => super::postgres::socket_folder(
                    &dir,
                    &site.root,
                    name.as_str(),
                    material.user.as_ref(),
                )?,
                None => dir.clone(),
            };
            services.insert(
                name.clone(),
                Arc::new(Live::new(Parts {
                    service: service.clone(),
                    kind,
                    material,
                    offer,
                    dir,
                    socket,
                    log: logs.join(format!("{name}.log")),
                    key,
                    cgroups,
                    held,
                    exits: sender.clone(),
                    arm,
                })),
            );
        }
        Ok(Self {
            names: Names::real(offers, site.env.clone()),
            site,
            services,
            order: setup.services.iter().map(|s| s.name.clone()).collect(),
            facts: prepared.facts(arm).to_vec(),
            started: Vec::new(),
            exits: Mutex::new(exits),
            home,
            stopped: false,
        })
    }

    async fn start_all(&mut self) -> Result<(), StartError> {
        let mut running: JoinSet<(ServiceName, Result<ServiceStarted>)> = JoinSet::new();
        let mut open: BTreeSet<ServiceName> = self.order.iter().cloned().collect();
        let mut ready: BTreeSet<ServiceName> = BTreeSet::new();
        loop {
            let next: Vec<ServiceName> = open
                .iter()
                .filter(|name| {
                    self.services[*name]
                        .service
                        .needs
                        .iter()
                        .all(|need| ready.contains(need))
                })
                .cloned()
                .collect();
            for name in next {
                open.remove(&name);
                let live = self.services[&name].clone();
                let (site, names) = (self.site.clone(), self.names.clone());
                running.spawn(async move {
                    let result = live.start(&site, &names).await;
                    (name, result)
                });
            }
            match running.join_next().await {
                Some(Ok((service, Ok(started)))) => {
                    self.started.push(started);
                    ready.insert(service);
                }
                Some(Ok((service, Err(error)))) => {
                    running.shutdown().await;
                    return Err(StartError::Failed { service, error });
                }
                Some(Err(error)) => {
                    return Err(StartError::Other(
                        anyhow!(error).context("starting a service"),
                    ));
                }
                None if open.is_empty() => return Ok(()),
                None => {
                    return Err(StartError::Other(anyhow!(
                        "these services wait for each other: {}",
                        open.iter()
                            .map(ServiceName::as_str)
                            .collect::<Vec<_>>()
                            .join(", ")
                    )));
                }
            }
        }
    }

    /// The services that came up, in the order in which they were ready.
    pub fn started(&self) -> &[ServiceStarted] {
        &self.started
    }

    /// Where a service is.
    ///
    /// # Errors
    /// When there is no such service.
    pub fn endpoint(&self, service: &ServiceName) -> Result<Endpoint> {
        let offer = &self.live(service)?.offer;
        Ok(Endpoint {
            url: offer.url.clone(),
            host: offer.host.clone(),
            port: offer
                .port
                .parse()
                .with_context(|| format!("{service} has no port"))?,
        })
    }

    /// Renders a template that stands outside the services, such as a command of an action.
    ///
    /// # Errors
    /// When it names what is not there.
    pub fn render(&self, template: &str, what: &str) -> Result<String> {
        self.names.render(template, what)
    }

    /// What samplers follow: every service that has processes.
    pub fn watched(&self) -> Vec<Watched> {
        self.in_order()
            .filter(|live| live.kind.is_started())
            .map(|live| Watched {
                service: live.service.name.clone(),
                kind: live.service.kind.as_str(),
                life: live.life.subscribe(),
                cgroups: live.cgroups.clone(),
                log: live.log.clone(),
            })
            .collect()
    }

    /// How to reach a service by SQL, as its owner, as the sampler and as the pruner.
    pub fn sql(&self, service: &ServiceName) -> Option<sql::Server> {
        self.services.get(service)?.sql()
    }

    /// The next end of a service, asked for or not. May be dropped and called again without losing one.
    pub async fn next_exit(&self) -> ServiceExit {
        let mut exits = self.exits.lock().await;
        match exits.recv().await {
            Some(exit) => exit,
            // All senders live as long as the services.
            None => std::future::pending().await,
        }
    }

    /// What the limits of a service did so far.
    ///
    /// # Errors
    /// When there is no such service.
    pub fn limits_seen(&self, service: &ServiceName) -> Result<LimitsSeen> {
        Ok(cgroup::seen(&self.live(service)?.cgroups))
    }

    /// Asks every server for its version and settings once more: another service may have changed them since it was ready.
    ///
    /// # Errors
    /// When one can't be asked.
    pub async fn ask_again(&self) -> Result<()> {
        for live in self.in_order() {
            live.ask().await?;
        }
        Ok(())
    }

    /// What every service really is: declared, rendered, hashed, told.
    pub fn facts(&self) -> Vec<ServiceFacts> {
        let mut all = self.facts.clone();
        for facts in &mut all {
            let Some(live) = self.services.get(facts.service.as_str()) else {
                continue;
            };
            let told = live.told();
            facts.settings = told.settings;
            facts.computed_settings = told.computed;
            if told.version.is_some() {
                facts.version = told.version;
            }
        }
        all
    }

    /// Stops everything in reverse order and removes the arm's folders.
    ///
    /// # Errors
    /// Never at once: what went wrong is in the report, and the rest is still stopped.
    pub async fn stop(mut self) -> Result<StopReport> {
        let mut report = StopReport::default();
        let mut open: BTreeSet<ServiceName> = self.order.iter().cloned().collect();
        while !open.is_empty() {
            // Those that nobody who is still there needs; in a circle, which never started, all.
            let mut next: Vec<ServiceName> = open
                .iter()
                .filter(|name| {
                    !open
                        .iter()
                        .any(|other| self.services[other].service.needs.contains(name))
                })
                .cloned()
                .collect();
            if next.is_empty() {
                next = open.iter().cloned().collect();
            }
            let mut stopping = JoinSet::new();
            for name in next {
                open.remove(&name);
                let (live, site) = (self.services[&name].clone(), self.site.clone());
                stopping.spawn(async move { (name, live.stop(&site, None).await) });
            }
            while let Some(done) = stopping.join_next().await {
                match done {
                    Ok((name, Ok(true))) => report.killed.push(name),
                    Ok((_, Ok(false))) => {}
                    Ok((_, Err(error))) => report.problems.push(format!("{error:#}")),
                    Err(error) => report.problems.push(error.to_string()),
                }
            }
        }
        self.stopped = true;
        self.clear(&mut report).await;
        Ok(report)
    }

    async fn clear(&self, report: &mut StopReport) {
        let mut groups = Vec::new();
        let mut folders = vec![self.home.clone()];
        for live in self.services.values() {
            groups.extend(live.cgroups.folders().into_iter().map(Path::to_owned));
            if !live.socket.starts_with(&self.home) {
                folders.push(live.socket.clone());
            }
        }
        let keep = self.site.keep_services;
        let home = self.home.clone();
        let cleared = tokio::task::spawn_blocking(move || {
            for group in groups {
                leftover::remove_cgroup(&group);
            }
            if keep {
                return leftover::set_aside(&home);
            }
            for folder in folders {
                if folder.exists() {
                    std::fs::remove_dir_all(&folder)
                        .with_context(|| format!("removing {}", folder.display()))?;
                }
            }
            anyhow::Ok(())
        })
        .await;
        match cleared {
            Ok(Ok(())) => {}
            Ok(Err(error)) => report.problems.push(format!("{error:#}")),
            Err(error) => report.problems.push(error.to_string()),
        }
    }

    pub(crate) fn in_order(&self) -> impl Iterator<Item = &Arc<Live>> {
        self.order.iter().filter_map(|name| self.services.get(name))
    }

    pub(super) fn live(&self, service: &ServiceName) -> Result<&Arc<Live>> {
        self.services
            .get(service)
            .with_context(|| format!("there is no service {service} in this arm"))
    }
}

/// Limits that the arm's actions will set for a service.
fn later(setup: &ArmSetup, name: &ServiceName) -> Limits {
    let mut all = Limits::default();
    for action in &setup.actions {
        if let ActionKind::Limits { service, limits } = &action.what
            && service == name
        {
            all.memory = all.memory.or(limits.memory);
            all.cpus = all.cpus.or(limits.cpus);
        }
    }
    all
}

impl Drop for Deployment {
    fn drop(&mut self) {
        if !self.stopped {
            for live in self.services.values() {
                live.expect_end();
                self.site.supervisor.kill_now(&live.key);
            }
        }
    }
}
