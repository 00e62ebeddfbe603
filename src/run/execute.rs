//! A whole run: the folder first, then preparation, then trial after trial, each written as it happens.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, Result};
use jiff::Timestamp;
use tokio::sync::watch;

use super::machine::{git_state, machine};
use super::plan::{Trial, plan};
use super::progress::Progress;
use super::trial::{self, Reference, TrialEnd};
use crate::deploy;
use crate::deploy::RowCount;
use crate::experiment::{Experiment, Stop};
use crate::measure::{EqualityItem, ServiceFacts, StopReason};
use crate::name::{Arm, Arms};
use crate::results::{Manifest, RunFolder, SCHEMA, ToolFacts, TrialRecord, interval_seconds};

/// The caller's environment: the only way in for a secret.
pub type ReadEnv = Arc<dyn Fn(&str) -> Option<String> + Send + Sync>;

/// How a run is made.
#[derive(Clone)]
pub struct Options {
    /// Where runs are kept.
    pub results: PathBuf,
    /// The shortened measured time of a smoke run.
    pub smoke: Option<Duration>,
    /// Leave the services' own folders behind.
    pub keep_services: bool,
    /// As typed.
    pub command_line: Vec<String>,
    /// What relative paths in the file start from.
    pub working_dir: PathBuf,
    /// The program that has the supervisor's subcommand.
    pub supervisor_exe: PathBuf,
    /// The caller's environment.
    pub env: ReadEnv,
}

/// How far the user wants the run to go. Whoever wants to stop at once drops the run: its services are killed then.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub enum Cancel {
    /// To its end.
    #[default]
    No,
    /// Stop the load, let requests in flight end, keep and report what was measured.
    Gracefully,
}

/// How a run ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outcome {
    /// Every arm was run to its end.
    Complete,
    /// By the user.
    Interrupted,
    /// Something failed; the text says what, where and when.
    Failed(String),
}

/// A run that has ended, one way or the other.
#[derive(Debug, Clone)]
pub struct Finished {
    /// Where everything is.
    pub folder: RunFolder,
    /// How it ended.
    pub outcome: Outcome,
}

/// Runs an experiment: everything is written as it happens, so an error in the middle loses nothing.
///
/// # Errors
/// Only when the run's own folder can't be written; every other fault is an [`Outcome`].
pub async fn execute(
    experiment: &Experiment,
    options: &Options,
    cancel: watch::Receiver<Cancel>,
    tell: &mut dyn FnMut(Progress),
) -> Result<Finished> {
    let started = Timestamp::now();
    let stamp = started.strftime("%Y%m%dT%H%M%SZ").to_string();
    // Services run elsewhere, so every path that they get must be whole.
    let results = std::path::absolute(&options.results)
        .with_context(|| format!("finding the folder {}", options.results.display()))?;
    let folder = RunFolder::create(&results, &experiment.header.name, &stamp, rand::random())?;
    // Criteria and predictions are on disk before the first request.
    RunFolder::write_whole(&folder.experiment(), experiment.source.text.as_bytes())?;
    let trials = plan(&experiment.schedule);
    let mut manifest = first_manifest(experiment, options, &trials, started)?;
    manifest.write(&folder)?;
    tell(Progress::RunStarted {
        folder: folder.path().to_owned(),
        planned_s: planned_seconds(experiment, &trials),
        trials: trials.clone(),
    });

    let mut scene = Scene {
        experiment,
        options,
        folder: &folder,
        cancel,
        manifest: &mut manifest,
        references: Arms::default(),
    };
    let outcome = match scene.all_trials(&trials, tell).await {
        Ok(outcome) => outcome,
        Err(error) => Outcome::Failed(format!("{error:#}")),
    };
    manifest.ended = Some(format!("{:.3}", Timestamp::now()));
    manifest.outcome = Some(match &outcome {
        Outcome::Complete => "complete".to_owned(),
        Outcome::Interrupted => "interrupted".to_owned(),
        Outcome::Failed(why) => format!("failed: {why}"),
    });
    manifest.write(&folder)?;
    Ok(Finished { folder, outcome })
}

/// Notes that the user stopped a run at once: it was dropped and could not do so itself.
///
/// # Errors
/// When the manifest can't be read or written.
pub fn stopped_at_once(folder: &RunFolder) -> Result<()> {
    let mut manifest = Manifest::read(&folder.manifest())?;
    manifest.ended = Some(format!("{:.3}", Timestamp::now()));
    manifest.outcome = Some("interrupted".to_owned());
    manifest.write(folder)
}

/// Planned seconds of a whole run: warm-up, measured time, rest and probe; starts and stops are not foreseen.
fn planned_seconds(experiment: &Experiment, trials: &[Trial]) -> Option<f64> {
    let schedule = &experiment.schedule;
    let Stop::Duration(durations) = &schedule.stop else {
        return None;
    };
    let arms: Duration = trials
        .iter()
        .map(|trial| schedule.warmup + *durations.get(trial.arm))
        .sum();
    let rests = schedule.rest * u32::try_from(trials.len().saturating_sub(1)).unwrap_or(u32::MAX);
    let probe = experiment.probe.as_ref().map_or(Duration::ZERO, |probe| {
        probe.each * u32::try_from(probe.clients.len() + 1).unwrap_or(u32::MAX)
    });
    Some((arms + rests + probe).as_secs_f64())
}

fn first_manifest(
    experiment: &Experiment,
    options: &Options,
    trials: &[Trial],
    started: Timestamp,
) -> Result<Manifest> {
    let git = git_state(&options.working_dir);
    Ok(Manifest {
        schema: SCHEMA,
        tool: ToolFacts {
            version: env!("CARGO_PKG_VERSION").to_owned(),
            sha256: deploy::sha256(&options.supervisor_exe).ok(),
        },
        experiment_sha256: experiment.source.sha256.clone(),
        experiment_path: experiment.source.path.display().to_string(),
        started: format!("{started:.3}"),
        ended: None,
        outcome: None,
        command_line: options.command_line.clone(),
        smoke_s: options.smoke.map(|length| length.as_secs_f64()),
        seed: experiment.schedule.seed,
        order: trials
            .iter()
            .map(|trial| TrialRecord {
                pair: trial.pair,
                arm: trial.arm,
                measured_from: None,
                services: Vec::new(),
                addresses: Vec::new(),
            })
            .collect(),
        arms: Arms {
            treatment: resolved(experiment, Arm::Treatment)?,
            control: resolved(experiment, Arm::Control)?,
        },
        programs: Default::default(),
        machine: machine(),
        equality: Vec::new(),
        git_commit: git.as_ref().map(|(commit, _)| commit.clone()),
        git_clean: git.as_ref().map(|(_, clean)| *clean),
        latency_interval_s: interval_seconds(experiment.schedule.window),
        not_whole: Default::default(),
    })
}

/// One arm with every default filled in.
fn resolved(experiment: &Experiment, arm: Arm) -> Result<serde_json::Value> {
    serde_json::to_value(experiment.arms.get(arm)).context("writing a resolved arm as JSON")
}

/// What all trials of one run share.
pub(super) struct Scene<'a> {
    pub(super) experiment: &'a Experiment,
    pub(super) options: &'a Options,
    pub(super) folder: &'a RunFolder,
    pub(super) cancel: watch::Receiver<Cancel>,
    pub(super) manifest: &'a mut Manifest,
    /// What each arm was like when it first came up.
    pub(super) references: Arms<Option<Reference>>,
}

impl Scene<'_> {
    async fn all_trials(
        &mut self,
        trials: &[Trial],
        tell: &mut dyn FnMut(Progress),
    ) -> Result<Outcome> {
        tell(Progress::Preparing {
            what: "preparing: building and finding programs, making the data that both arms start from".to_owned(),
        });
        let token = self.folder.id();
        let base = std::env::temp_dir();
        // What a run left that was killed together with its supervisor would disturb this one.
        let swept = deploy::sweep(&base)?;
        if !swept.is_empty() {
            tracing::info!(?swept, "removed what killed runs had left");
        }
        let scratch = deploy::Scratch::create(&base, &token)?;
        let around = context(
            self.options,
            self.folder,
            scratch.path(),
            self.cancel.clone(),
        );
        let prepared = match deploy::prepare(&self.experiment.arms, around).await {
            Ok(prepared) => prepared,
            Err(_) if *self.cancel.borrow() > Cancel::No => return Ok(Outcome::Interrupted),
            Err(error) => return Err(error),
        };
        self.manifest.programs = prepared.programs();
        let exempt = deploy::Exempt::new(&self.experiment.control);
        let items = deploy::compare(
            prepared.facts(Arm::Treatment),
            prepared.facts(Arm::Control),
            &exempt,
        );
        let difference = deploy::undeclared(&items);
        self.compared(items);
        let outcome = match (self.manifest.write(self.folder), difference) {
            (Err(error), _) => Err(error),
            (Ok(()), Some(difference)) => Ok(Outcome::Failed(difference)),
            (Ok(()), None) => match self.each_trial(&prepared, trials, tell).await {
                Ok(Outcome::Complete) => self.apart(&prepared, tell).await,
                other => other,
            },
        };
        // Whatever became of it, nothing of it stays.
        let finished = prepared.finish().await;
        if self.options.keep_services {
            tell(Progress::Warning(format!(
                "the services' own folders are kept in {}: remove it when you have looked",
                scratch.path().display()
            )));
        }
        outcome.and_then(|outcome| finished.map(|()| outcome))
    }

    async fn each_trial(
        &mut self,
        prepared: &deploy::Prepared,
        trials: &[Trial],
        tell: &mut dyn FnMut(Progress),
    ) -> Result<Outcome> {
        for (i, trial) in trials.iter().enumerate() {
            if i > 0 && !self.rest(tell).await {
                return Ok(Outcome::Interrupted);
            }
            let TrialEnd { reason, detail } = trial::run(self, prepared, *trial, tell).await?;
            let place = format!("{} of pair {}", trial.arm, trial.pair);
            match reason {
                StopReason::Complete => {}
                StopReason::Interrupted => return Ok(Outcome::Interrupted),
                StopReason::ServiceDied
                | StopReason::GateFailed
                | StopReason::DiskFull
                | StopReason::Failed => return Ok(Outcome::Failed(format!("{place}: {detail}"))),
            }
        }
        Ok(Outcome::Complete)
    }

    /// Quiet time between arms; false when the user asked to stop.
    async fn rest(&mut self, tell: &mut dyn FnMut(Progress)) -> bool {
        let rest = self.experiment.schedule.rest;
        tell(Progress::Resting {
            seconds: rest.as_secs_f64(),
        });
        tokio::select! {
            () = tokio::time::sleep(rest) => true,
            asked = self.cancel.wait_for(|cancel| *cancel > Cancel::No) => asked.is_err(),
        }
    }

    fn record(&mut self, trial: Trial) -> Option<&mut TrialRecord> {
        self.manifest
            .order
            .iter_mut()
            .find(|record| record.pair == trial.pair && record.arm == trial.arm)
    }

    /// Holds an arm that is up, before its load, against the other one. Returns what differs without being declared.
    pub(super) fn hold_against(
        &mut self,
        trial: Trial,
        facts: Vec<ServiceFacts>,
        rows: Vec<RowCount>,
    ) -> Result<Option<String>> {
        if let Some(record) = self.record(trial) {
            record.services = facts.clone();
        }
        let own = Reference { facts, rows };
        let items = self
            .references
            .get(trial.arm.other())
            .as_ref()
            .map(|other| {
                let (treatment, control) = match trial.arm {
                    Arm::Treatment => (&own, other),
                    Arm::Control => (other, &own),
                };
                let exempt = deploy::Exempt::new(&self.experiment.control);
                let mut items = deploy::compare(&treatment.facts, &control.facts, &exempt);
                items.extend(deploy::compare_rows(
                    &treatment.rows,
                    &control.rows,
                    &exempt,
                ));
                items
            });
        let difference = items.as_deref().and_then(deploy::undeclared);
        self.compared(items.unwrap_or_default());
        self.references.get_mut(trial.arm).get_or_insert(own);
        self.manifest.write(self.folder)?;
        Ok(difference)
    }

    /// Keeps comparisons in the manifest; a later one of the same thing takes the place of the earlier.
    fn compared(&mut self, items: Vec<EqualityItem>) {
        let known = &mut self.manifest.equality;
        known.retain(|old| !items.iter().any(|new| new.what == old.what));
        known.extend(items);
    }

    /// Notes where the load of a trial goes.
    pub(super) fn addresses(&mut self, trial: Trial, addresses: Vec<String>) -> Result<()> {
        if let Some(record) = self.record(trial) {
            record.addresses = addresses;
        }
        self.manifest.write(self.folder)
    }

    /// Notes when the measured time of a trial begins.
    pub(super) fn measured_from(&mut self, trial: Trial, moment: String) -> Result<()> {
        if let Some(record) = self.record(trial) {
            record.measured_from = Some(moment);
        }
        self.manifest.write(self.folder)
    }
}

/// What a deployment is prepared with.
pub(super) fn context(
    options: &Options,
    folder: &RunFolder,
    scratch: &Path,
    cancel: watch::Receiver<Cancel>,
) -> deploy::Context {
    deploy::Context {
        scratch: scratch.to_owned(),
        logs: folder.path().join("logs"),
        run_token: folder.id(),
        env: options.env.clone(),
        working_dir: options.working_dir.clone(),
        supervisor_exe: options.supervisor_exe.clone(),
        keep_services: options.keep_services,
        cancel: asked_to_stop(cancel),
    }
}

/// Becomes true when the user asks to stop.
fn asked_to_stop(mut cancel: watch::Receiver<Cancel>) -> watch::Receiver<bool> {
    let (sender, receiver) = watch::channel(*cancel.borrow() > Cancel::No);
    tokio::spawn(async move {
        if cancel.wait_for(|cancel| *cancel > Cancel::No).await.is_ok() {
            sender.send_replace(true);
        } else {
            // Nobody can ask any more; the channel stays as it is for as long as it is listened to.
            sender.closed().await;
        }
    });
    receiver
}
