//! What happens once, before the first arm: programs are found and hashed, builds run, data folders made.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Context as _, Result, anyhow, bail};
use tokio::sync::{Mutex, watch};

use super::kind::{self, Material};
use super::leftover;
use super::program;
use super::render::{Names, ReadEnv};
use super::supervisor::tree::{KEY, MARK};
use super::supervisor::{Child, Ended, Spawn, Supervisor, User};
use crate::experiment::{ArmSetup, Service};
use crate::measure::ServiceFacts;
use crate::name::{Arm, Arms, ServiceName};

/// Where and how an experiment's services are run.
#[derive(Clone)]
pub struct Context {
    /// A folder inside a [`Scratch`](super::Scratch), which it bears the mark of.
    pub scratch: PathBuf,
    /// Where logs of builds and preparations go.
    pub logs: PathBuf,
    /// Given to every process as `RUN_TOKEN`; a health check that echoes it proves who answers.
    pub run_token: String,
    /// The caller's environment.
    pub env: ReadEnv,
    /// What paths in the file are relative to.
    pub working_dir: PathBuf,
    /// The program that has the subcommand [`SUBCOMMAND`](super::SUBCOMMAND): the running one, but in tests.
    pub supervisor_exe: PathBuf,
    /// Keep the services' folders after the arm.
    pub keep_services: bool,
    /// Becomes true when the user asks to stop.
    pub cancel: watch::Receiver<bool>,
}

impl fmt::Debug for Context {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Context")
            .field("scratch", &self.scratch)
            .field("logs", &self.logs)
            .finish_non_exhaustive()
    }
}

/// The context, and the supervisor that runs everything in it.
#[derive(Clone)]
pub(crate) struct Site {
    pub(crate) context: Context,
    pub(crate) root: PathBuf,
    pub(crate) supervisor: Arc<Supervisor>,
    /// Builds that ran: each runs once, whatever number of services and arms declares it.
    pub(crate) built: Arc<Mutex<BTreeSet<Vec<String>>>>,
}

impl fmt::Debug for Site {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.context.fmt(f)
    }
}

impl std::ops::Deref for Site {
    type Target = Context;

    fn deref(&self) -> &Context {
        &self.context
    }
}

impl Site {
    /// Environment variables that mark a process as ours.
    pub(crate) fn mark(&self, key: &str) -> [(String, String); 2] {
        [
            (MARK.to_owned(), self.root.display().to_string()),
            (KEY.to_owned(), key.to_owned()),
        ]
    }

    /// Starts a helper program under the supervisor.
    #[expect(
        clippy::too_many_arguments,
        reason = "each is one property of a process"
    )]
    pub(crate) async fn start(
        &self,
        key: &str,
        program: PathBuf,
        args: Vec<String>,
        mut env: BTreeMap<String, String>,
        log: &Path,
        user: Option<&User>,
        dir: Option<&Path>,
    ) -> Result<Child> {
        env.extend(self.mark(key));
        self.supervisor
            .spawn(Spawn {
                key: key.to_owned(),
                program,
                args,
                env,
                dir: dir.unwrap_or(&self.working_dir).to_owned(),
                log: log.to_owned(),
                user: user.cloned(),
                last_signal: "KILL".to_owned(),
                pin: None,
                cgroups: Vec::new(),
            })
            .await
    }

    /// Ends what runs under this key unless it is disarmed.
    pub(crate) fn guard(&self, key: &str) -> Guard {
        Guard {
            supervisor: self.supervisor.clone(),
            key: Some(key.to_owned()),
        }
    }

    /// Runs a helper program to its end; a cancelled run ends it, and so does whoever no longer waits for it.
    #[expect(
        clippy::too_many_arguments,
        reason = "each is one property of a process"
    )]
    pub(crate) async fn run(
        &self,
        key: &str,
        program: PathBuf,
        args: Vec<String>,
        env: BTreeMap<String, String>,
        log: &Path,
        user: Option<&User>,
        dir: Option<&Path>,
    ) -> Result<Ended> {
        let guard = self.guard(key);
        let child = self.start(key, program, args, env, log, user, dir).await?;
        let mut cancel = self.cancel.clone();
        tokio::select! {
            ended = child.ended => {
                guard.disarm();
                ended.map_err(|_| anyhow!("the supervisor has ended"))
            }
            () = cancelled(&mut cancel) => bail!("interrupted"),
        }
    }
}

/// Kills what runs under a key when it is dropped: a future that is dropped (a deadline, the end of the arm) leaves nothing
/// running that would burden what comes after.
pub(crate) struct Guard {
    supervisor: Arc<Supervisor>,
    /// Absent when it has ended by itself.
    key: Option<String>,
}

impl Guard {
    /// It may live on, or has ended.
    pub(crate) fn disarm(mut self) {
        self.key = None;
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        if let Some(key) = &self.key {
            self.supervisor.kill_now(key);
        }
    }
}

/// Resolves when the user asks to stop.
pub(crate) async fn cancelled(cancel: &mut watch::Receiver<bool>) {
    if cancel.wait_for(|stop| *stop).await.is_err() {
        // Nobody is left who could ask.
        std::future::pending::<()>().await;
    }
}

/// Both arms' services, ready to be started any number of times. Dropping it stops and removes everything.
#[derive(Debug)]
pub struct Prepared {
    pub(crate) site: Site,
    pub(crate) materials: Arms<BTreeMap<ServiceName, Material>>,
    facts: Arms<Vec<ServiceFacts>>,
}

/// Prepares both arms. What is the same in both (a build, a data folder) is made once and shared.
///
/// # Errors
/// A program that is missing (with the remedies), a build that fails (with its log's end), a schema file that PostgreSQL
/// refuses (with file, line and reason).
pub async fn prepare(arms: &Arms<ArmSetup>, context: Context) -> Result<Prepared> {
    std::fs::create_dir_all(&context.logs)
        .with_context(|| format!("creating the folder {}", context.logs.display()))?;
    let root = leftover::marked(&context.scratch)?;
    if context.keep_services {
        leftover::keep(&root)?;
    }
    let supervisor =
        Supervisor::start(&context.supervisor_exe, &root, context.keep_services).await?;
    let site = Site {
        context,
        root,
        supervisor: Arc::new(supervisor),
        built: Arc::default(),
    };
    let mut prepared = Prepared {
        site,
        materials: Arms::default(),
        facts: Arms::default(),
    };
    match prepared.make(arms).await {
        Ok(()) => Ok(prepared),
        Err(error) => {
            // The error that stopped it says more than one of the clearing up.
            let _ = prepared.dispose().await;
            Err(error)
        }
    }
}

impl Prepared {
    async fn make(&mut self, arms: &Arms<ArmSetup>) -> Result<()> {
        for (arm, setup) in arms.iter() {
            for service in &setup.services {
                let kind = kind::of(service);
                let twin = (arm == Arm::Control)
                    .then(|| {
                        arms.treatment
                            .services
                            .iter()
                            .find(|s| s.name == service.name)
                    })
                    .flatten();
                let shared = twin
                    .filter(|twin| kind.shares(&twin.kind))
                    .and_then(|twin| self.materials.treatment.get(&twin.name));
                let material = match shared {
                    Some(material) => material.clone(),
                    None => kind.prepare(service, &self.site).await?,
                };
                self.materials
                    .get_mut(arm)
                    .insert(service.name.clone(), material);
            }
            for service in &setup.services {
                let material = &self.materials.get(arm)[&service.name];
                let facts = declared(setup, service, material)?;
                self.facts.get_mut(arm).push(facts);
            }
        }
        Ok(())
    }

    /// Drops what was made in servers that run on.
    async fn dispose(&self) -> Result<()> {
        let mut failed = Ok(());
        for (_, materials) in self.materials.iter() {
            for (service, material) in materials {
                if let Some(running) = &material.running {
                    // An arm's own are gone when it was taken down whole.
                    for part in ["seed", Arm::Treatment.as_str(), Arm::Control.as_str()] {
                        let dropped = running.drop_part(part).await;
                        failed = failed.and(dropped.with_context(|| service.to_string()));
                    }
                }
            }
        }
        failed
    }

    /// What is known of an arm's services before it starts: programs, commands, files; settings come with the start.
    pub fn facts(&self, arm: Arm) -> &[ServiceFacts] {
        self.facts.get(arm)
    }

    /// Hex SHA-256 of every program and file that is named or built, by path.
    pub fn programs(&self) -> BTreeMap<String, String> {
        let mut all = BTreeMap::new();
        for (_, materials) in self.materials.iter() {
            for material in materials.values() {
                if let Some(program) = &material.program {
                    all.insert(program.path.display().to_string(), program.sha256.clone());
                }
                all.extend(material.named_files.clone());
            }
        }
        all
    }

    /// Stops what still runs, removes folders and control groups, and waits until that is done.
    ///
    /// # Errors
    /// When the supervisor can't be reached any more, or a running server did not let its templates be dropped.
    pub async fn finish(self) -> Result<()> {
        let disposed = self.dispose().await;
        self.site.supervisor.finish().await?;
        disposed
    }
}

/// Facts that need no start, with placeholders in place of ports, folders and secrets.
fn declared(setup: &ArmSetup, service: &Service, material: &Material) -> Result<ServiceFacts> {
    let kind = kind::of(service);
    let names = Names::placeholders(setup.services.iter().map(|s| s.name.as_str()));
    let plan = kind.plan(service, material, &names)?;
    let mut command = Vec::new();
    if let Some(program) = &material.program {
        command.push(program.path.display().to_string());
    }
    command.extend(plan.args);
    let mut env = BTreeMap::new();
    for (name, value) in &service.env {
        let what = format!("{}: env.{name}", service.name);
        env.insert(name.clone(), names.render(value, &what)?);
    }
    Ok(ServiceFacts {
        service: service.name.to_string(),
        kind: service.kind.as_str().to_owned(),
        program: material
            .program
            .as_ref()
            .map(|program| program.path.display().to_string()),
        sha256: material
            .program
            .as_ref()
            .map(|program| program.sha256.clone()),
        named_files: material.named_files.clone(),
        version: material.version.clone(),
        command,
        env,
        settings: BTreeMap::new(),
        computed_settings: Vec::new(),
        declared_settings: plan.settings,
        files: plan.files,
        memory_limit: service.limits.memory,
        cpu_limit: service.limits.cpus,
        pin: service.pin.clone().unwrap_or_default(),
    })
}

/// The environment of a service's process: the base, what the file declares, the run token and the mark.
pub(crate) fn service_env(
    site: &Site,
    key: &str,
    service: &Service,
    own: &BTreeMap<String, String>,
    names: &Names,
) -> Result<BTreeMap<String, String>> {
    let mut env = program::base_env(&site.env);
    env.extend(own.clone());
    env.insert("RUN_TOKEN".to_owned(), site.run_token.clone());
    for (name, value) in &service.env {
        let what = format!("{}: env.{name}", service.name);
        env.insert(name.clone(), names.render(value, &what)?);
    }
    env.extend(site.mark(key));
    Ok(env)
}
