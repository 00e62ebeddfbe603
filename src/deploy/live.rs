//! One service of a running arm: its life, its place, and how it is started and ended.

use std::collections::HashSet;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use tokio::sync::{mpsc, watch};

use super::cgroup::{self, Cgroups};
use super::deployment::ServiceExit;
use super::kind::{Kind, Material, Place, Told};
use super::logs;
use super::port::{self, HeldPort, Listener};
use super::prepare::{Site, cancelled, service_env};
use super::program;
use super::ready::{self, Attempt, Question};
use super::render::{Names, Offer};
use super::supervisor::tree::Table;
use super::supervisor::{Child, Ended, Spawn};
use crate::experiment::{Limits, Service, ServiceKind};
use crate::name::Arm;
use crate::sql;

/// Between two questions whether a service is ready.
const SHORTEST_PAUSE: Duration = Duration::from_millis(2);
const LONGEST_PAUSE: Duration = Duration::from_millis(50);

/// Which process a service is just now.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Life {
    /// The first process of its tree; `None` while it is down.
    pub pid: Option<u32>,
    /// Which life: 0 for the first, the next after each restart.
    pub epoch: u32,
}

/// A service that came up.
#[derive(Debug, Clone, PartialEq)]
pub struct ServiceStarted {
    /// Its name.
    pub service: String,
    /// First process of its tree; 0 for what runs already.
    pub pid: u32,
    /// From its start to its first right answer, in milliseconds.
    pub ready_ms: f64,
    /// Which life.
    pub epoch: u32,
}

/// A service of one arm.
#[derive(Debug)]
pub(crate) struct Live {
    pub(crate) service: Service,
    pub(crate) kind: Box<dyn Kind>,
    pub(crate) material: Material,
    pub(crate) offer: Offer,
    pub(crate) dir: PathBuf,
    pub(crate) socket: PathBuf,
    pub(crate) log: PathBuf,
    pub(crate) key: String,
    pub(crate) cgroups: Cgroups,
    pub(crate) life: watch::Sender<Life>,
    /// Whether an end is asked for; shared with the task that waits for it.
    expected: Arc<AtomicBool>,
    exits: mpsc::UnboundedSender<ServiceExit>,
    held: Mutex<Option<HeldPort>>,
    told: Mutex<Told>,
    limits: Mutex<Limits>,
    arm: Arm,
    /// One action at a time.
    pub(crate) turn: tokio::sync::Mutex<bool>,
}

pub(crate) struct Parts {
    pub(crate) service: Service,
    pub(crate) kind: Box<dyn Kind>,
    pub(crate) material: Material,
    pub(crate) offer: Offer,
    pub(crate) dir: PathBuf,
    pub(crate) socket: PathBuf,
    pub(crate) log: PathBuf,
    pub(crate) key: String,
    pub(crate) cgroups: Cgroups,
    pub(crate) held: Option<HeldPort>,
    pub(crate) exits: mpsc::UnboundedSender<ServiceExit>,
    pub(crate) arm: Arm,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Live {
    pub(crate) fn new(parts: Parts) -> Self {
        let limits = parts.service.limits;
        Self {
            service: parts.service,
            kind: parts.kind,
            material: parts.material,
            offer: parts.offer,
            dir: parts.dir,
            socket: parts.socket,
            log: parts.log,
            key: parts.key,
            cgroups: parts.cgroups,
            life: watch::Sender::new(Life::default()),
            expected: Arc::new(AtomicBool::new(true)),
            exits: parts.exits,
            held: Mutex::new(parts.held),
            told: Mutex::new(Told::default()),
            limits: Mutex::new(limits),
            arm: parts.arm,
            turn: tokio::sync::Mutex::new(false),
        }
    }

    pub(crate) fn place(&self) -> Place<'_> {
        Place {
            service: &self.service,
            material: &self.material,
            offer: &self.offer,
            dir: &self.dir,
            socket: &self.socket,
            arm: self.arm,
        }
    }

    pub(crate) fn told(&self) -> Told {
        lock(&self.told).clone()
    }

    pub(crate) fn limits(&self) -> Limits {
        *lock(&self.limits)
    }

    pub(crate) fn sql(&self) -> Option<sql::Server> {
        self.kind.sql(&self.place())
    }

    /// Says beforehand that its end is asked for.
    pub(crate) fn expect_end(&self) {
        self.expected.store(true, Ordering::SeqCst);
    }

    /// Once its grace is over, an end is asked for no longer if the signal did not end it: programs handle signals, and a
    /// crash later is a crash.
    pub(crate) fn expect_end_for_a_while(self: &Arc<Self>) {
        self.expect_end();
        let live = self.clone();
        let pid = live.life.borrow().pid;
        tokio::spawn(async move {
            tokio::time::sleep(live.service.grace).await;
            let turn = live.turn.lock().await;
            if pid.is_some() && live.life.borrow().pid == pid {
                live.expected.store(false, Ordering::SeqCst);
            }
            drop(turn);
        });
    }

    /// Starts it and waits until it is ready.
    pub(crate) async fn start(&self, site: &Site, names: &Names) -> Result<ServiceStarted> {
        let mut furnished = self.turn.lock().await;
        let begun = Instant::now();
        if !self.kind.is_started() {
            self.until_ready(site, names, begun, 0).await?;
            let started = self.started(0, begun, 0);
            // Also what is half made has to go at the end.
            *furnished = true;
            self.kind
                .furnish(&self.place())
                .await
                .with_context(|| self.service.name.to_string())?;
            self.ask().await?;
            return Ok(started);
        }
        if self.life.borrow().pid.is_some() {
            bail!("{} runs already", self.service.name);
        }
        if let Some(program) = &self.material.program {
            program
                .unchanged()
                .with_context(|| self.service.name.to_string())?;
        }
        let material = &self.material;
        program::files_unchanged(&material.named_files, &material.named_in)
            .with_context(|| self.service.name.to_string())?;
        let first = !*furnished;
        if first {
            std::fs::create_dir_all(&self.dir)
                .with_context(|| format!("creating the folder {}", self.dir.display()))?;
            self.kind
                .furnish(&self.place())
                .await
                .with_context(|| format!("{}: preparing its folder", self.service.name))?;
            *furnished = true;
        }
        let spawn = self.spawn(site, names)?;
        let log_from = logs::length(&self.log);
        // From here until it starts nobody else can take the port by chance: it lies outside the range of local ports.
        drop(lock(&self.held).take());
        let begun = Instant::now();
        self.expect_end();
        // What never came up must not run on, also when nobody waits for it any more.
        let guard = site.guard(&self.key);
        let child = site
            .supervisor
            .spawn(spawn)
            .await
            .with_context(|| self.service.name.to_string())?;
        let pid = child.pid;
        let epoch = if first {
            0
        } else {
            self.life.borrow().epoch + 1
        };
        self.life.send_replace(Life {
            pid: Some(pid),
            epoch,
        });
        self.watch_end(child);
        self.until_ready(site, names, begun, log_from).await?;
        let started = self.started(pid, begun, epoch);
        self.ask().await?;
        guard.disarm();
        self.expected.store(false, Ordering::SeqCst);
        if self.life.borrow().pid.is_none() {
            bail!(
                "{}: it ended right after it was ready; {}",
                self.service.name,
                logs::quoted(&self.log)
            );
        }
        Ok(started)
    }

    /// Asks a ready server for its version and settings.
    pub(crate) async fn ask(&self) -> Result<()> {
        let told = self.kind.told(&self.place()).await;
        *lock(&self.told) = told.with_context(|| {
            format!("{}: asking for its version and settings", self.service.name)
        })?;
        Ok(())
    }

    fn started(&self, pid: u32, begun: Instant, epoch: u32) -> ServiceStarted {
        ServiceStarted {
            service: self.service.name.to_string(),
            pid,
            ready_ms: begun.elapsed().as_secs_f64() * 1e3,
            epoch,
        }
    }

    /// Renders the command and the files, and writes the files.
    fn spawn(&self, site: &Site, names: &Names) -> Result<Spawn> {
        let plan = self.kind.plan(&self.service, &self.material, names)?;
        for (name, text) in &plan.files {
            let path = self.dir.join(name);
            std::fs::write(&path, text).with_context(|| format!("writing {}", path.display()))?;
            super::account::give(&path, self.material.user.as_ref())?;
        }
        let program = self
            .material
            .program
            .as_ref()
            .with_context(|| format!("{} has no program", self.service.name))?;
        let mut args = plan.args;
        args.extend(self.kind.extra_args(&self.place()));
        let dir = match plan.dir {
            Some(dir) => site.working_dir.join(dir),
            None => self.dir.clone(),
        };
        Ok(Spawn {
            key: self.key.clone(),
            program: program.path.clone(),
            args,
            env: service_env(site, &self.key, &self.service, &plan.env, names)?,
            dir,
            log: self.log.clone(),
            user: self.material.user.clone(),
            last_signal: self.kind.ending().last.to_owned(),
            pin: self.service.pin.clone(),
            cgroups: self.cgroups.procs(),
        })
    }

    /// Waits for the end of the process and says so to whoever must know.
    fn watch_end(&self, child: Child) {
        let life = self.life.clone();
        let expected = self.expected.clone();
        let exits = self.exits.clone();
        let service = self.service.name.clone();
        let log = self.log.clone();
        let cgroups = self.cgroups.clone();
        let killed_before = cgroup::seen(&cgroups).oom_kills;
        let limits = self.limits();
        tokio::spawn(async move {
            let ended = child.ended.await.unwrap_or(Ended::Unknown);
            life.send_modify(|life| {
                if life.pid == Some(child.pid) {
                    life.pid = None;
                }
            });
            let mut status = ended.to_string();
            if cgroup::seen(&cgroups).oom_kills > killed_before {
                status.push_str("; the kernel killed it for memory");
                if let Some(bytes) = limits.memory {
                    status.push_str(&format!(" (its limit is {} MiB)", bytes >> 20));
                }
            }
            // Nobody listens any more when the arm is over.
            let _ = exits.send(ServiceExit {
                service,
                status,
                expected: expected.load(Ordering::SeqCst),
                log_tail: logs::tail(&log),
            });
        });
    }

    async fn until_ready(
        &self,
        site: &Site,
        names: &Names,
        begun: Instant,
        log_from: u64,
    ) -> Result<()> {
        let name = &self.service.name;
        let what = format!("{name}: ready");
        let by = self.service.ready.by.as_ref();
        let question = Question::new(by, names, &self.offer.address, &what)?;
        let deadline = begun + self.service.ready.within;
        let mut cancel = site.cancel.clone();
        let own = matches!(question, Question::Own);
        // A worker that is given no address listens nowhere: it is ready when it runs.
        let silent = own && self.kind.is_started() && !self.mentions_itself();
        loop {
            if self.kind.is_started() && self.life.borrow().pid.is_none() {
                bail!(
                    "{name}: it ended before it was ready; {}",
                    logs::quoted(&self.log)
                );
            }
            let attempt = if silent {
                Attempt::Ready
            } else if own {
                match self.kind.answers(&self.place()).await {
                    Ok(()) => Attempt::Ready,
                    Err(error) => Attempt::NotYet(format!("{error:#}")),
                }
            } else {
                let dir = &site.working_dir;
                ready::ask(
                    &question,
                    &self.log,
                    log_from,
                    &site.run_token,
                    dir,
                    &site.env,
                )
                .await
            };
            let why = match attempt {
                Attempt::Ready => {
                    let listens = question.implies_listener(&self.offer.address);
                    return self.prove_listener((own && !silent) || listens);
                }
                Attempt::Wrong(why) => bail!("{name}: {why}"),
                Attempt::NotYet(why) => why,
            };
            if Instant::now() >= deadline {
                bail!(
                    "{name}: not ready within {:?}: waited for {} ({why}); {}",
                    self.service.ready.within,
                    ready::describe(by, &self.offer.address),
                    logs::quoted(&self.log)
                );
            }
            // How long it took is read to a twentieth of itself, and no finer than 2 ms: asking costs the service too.
            let pause = (begun.elapsed() / 20).clamp(SHORTEST_PAUSE, LONGEST_PAUSE);
            tokio::select! {
                () = tokio::time::sleep(pause) => {}
                () = cancelled(&mut cancel) => bail!("interrupted while {name} was starting"),
            }
        }
    }

    /// Whether its command, environment or kind hands it its own address.
    fn mentions_itself(&self) -> bool {
        let ServiceKind::Process(process) = &self.service.kind else {
            return true;
        };
        let own = |text: &str| {
            ["url", "address", "port"]
                .iter()
                .any(|what| text.contains(&format!("{}.{what}", self.service.name)))
        };
        process.command.iter().any(|argument| own(argument))
            || self.service.env.values().any(|value| own(value))
    }

    /// The port trap: that something answers proves nothing until the listening socket is found in the started tree.
    fn prove_listener(&self, must: bool) -> Result<()> {
        let (true, Ok(port)) = (self.kind.is_started(), self.offer.port.parse::<u16>()) else {
            return Ok(());
        };
        let name = &self.service.name;
        let mut own: HashSet<u32> = self.pids();
        own.extend(
            self.cgroups
                .procs()
                .iter()
                .flat_map(|procs| super::supervisor::tree::in_cgroup(procs)),
        );
        match port::listener(port, &own) {
            Listener::Own { .. } => Ok(()),
            Listener::Nobody if !must => Ok(()),
            Listener::Nobody => bail!(
                "{name}: it answers, but nothing listens on 127.0.0.1:{port} any more; {}",
                logs::quoted(&self.log)
            ),
            Listener::Other(who) => bail!(
                "{name}: port {port} is held by {who}, not by the process that was started: every request would measure the \
                 wrong server"
            ),
        }
    }

    /// Its process tree now.
    pub(crate) fn pids(&self) -> HashSet<u32> {
        let Some(root) = self.life.borrow().pid else {
            return HashSet::new();
        };
        let mut all = Table::read().descendants(root);
        all.insert(root);
        all
    }

    /// Stops it: asks, waits for its grace, kills what is left. Returns whether KILL was needed.
    pub(crate) async fn stop(&self, site: &Site, signal: Option<&str>) -> Result<bool> {
        let mut furnished = self.turn.lock().await;
        if !self.kind.is_started() {
            if std::mem::take(&mut *furnished) {
                self.kind
                    .dismantle(&self.place())
                    .await
                    .with_context(|| self.service.name.to_string())?;
            }
            return Ok(false);
        }
        self.expect_end();
        let ending = self.kind.ending();
        let killed = site
            .supervisor
            .stop(
                &self.key,
                signal.unwrap_or(ending.signal),
                ending.group && signal.is_none(),
                self.service.grace,
            )
            .await
            .with_context(|| format!("stopping {}", self.service.name))?;
        self.life.send_modify(|life| life.pid = None);
        Ok(killed)
    }

    /// Changes its limits while it runs.
    pub(crate) fn set_limits(&self, limits: Limits) -> Result<()> {
        cgroup::set(&self.cgroups, limits)
            .with_context(|| format!("{}: changing its limits", self.service.name))?;
        *lock(&self.limits) = limits;
        Ok(())
    }
}
