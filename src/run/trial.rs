//! One arm of one pair: services up, each step once, warm-up, settling, measuring, services down.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result};
use jiff::Timestamp;
use tokio::sync::mpsc::unbounded_channel;

use super::drive::Drive;
use super::execute::Scene;
use super::ledger::Ledger;
use super::plan::Trial;
use super::progress::Progress;
use super::timeline::timeline;
use super::watch::watched_services;
use crate::deploy::{Deployment, Prepared, RowCount, StartError};
use crate::experiment::{ArmSetup, ServiceKind, Stop};
use crate::load::{Driver, Environment, PhaseSpec, PhaseTotals, StopRule, Target};
use crate::measure::{EventKind, Phase, ServiceFacts, StopReason};
use crate::prune;
use crate::results::{ArmLayout, ArmWriter, interval_seconds};
use crate::sample::{self, SampleSpec};

/// Free disk space below which a run stops while it can still write.
const MIN_FREE_BYTES: u64 = 512 << 20;

/// How an arm ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct TrialEnd {
    /// Why.
    pub(super) reason: StopReason,
    /// In words; empty when it is complete.
    pub(super) detail: String,
}

impl TrialEnd {
    pub(super) fn new(reason: StopReason, detail: impl Into<String>) -> Self {
        Self {
            reason,
            detail: detail.into(),
        }
    }

    fn complete() -> Self {
        Self::new(StopReason::Complete, "")
    }
}

/// What an arm was like when it first came up: what the other arm is held against.
#[derive(Debug, Clone)]
pub(super) struct Reference {
    pub(super) facts: Vec<ServiceFacts>,
    pub(super) rows: Vec<RowCount>,
}

/// Runs one trial and writes it. The deployment is down when this returns.
///
/// # Errors
/// When the arm's files can't be written; every other fault is a [`TrialEnd`].
pub(super) async fn run(
    scene: &mut Scene<'_>,
    prepared: &Prepared,
    trial: Trial,
    tell: &mut dyn FnMut(Progress),
) -> Result<TrialEnd> {
    let setup = scene.experiment.arms.get(trial.arm);
    let steps: Vec<String> = setup
        .workload
        .steps
        .iter()
        .map(|step| step.name.to_string())
        .collect();
    let folder = scene.folder.arm(trial.pair, trial.arm);
    let layout = ArmLayout {
        steps: steps.clone(),
        latency_interval_s: interval_seconds(scene.experiment.schedule.window),
    };
    let writer = ArmWriter::create(&folder, &layout)?;
    // An estimate that samplers can bear until measuring begins and sets it right.
    let expected = Instant::now() + scene.experiment.schedule.warmup + Duration::from_secs(5);
    let mut stage = Stage {
        trial,
        setup,
        steps,
        ledger: Ledger::new(writer, expected),
        tell,
    };
    stage.phase(Phase::Starting)?;
    let end = match Deployment::start(prepared, setup, trial.arm, &folder.logs()).await {
        Ok(deployment) => {
            let end = stage.with_services(scene, &deployment).await;
            // Services are taken down and the files are closed, whatever failed before.
            let told = stage.phase(Phase::Stopping);
            let down = stage.take_down(deployment).await;
            end.and_then(|end| told.and(down).map(|()| end))
        }
        Err(StartError::Interrupted) => Ok(TrialEnd::new(
            StopReason::Interrupted,
            "by the user, while services were starting",
        )),
        Err(error) => Ok(TrialEnd::new(StopReason::Failed, error.to_string())),
    };
    let end = end.unwrap_or_else(|error| TrialEnd::new(StopReason::Failed, format!("{error:#}")));
    let told = stage.ledger.event(EventKind::Stopped {
        reason: end.reason,
        detail: end.detail.clone(),
    });
    let (ok, failed) = stage.ledger.totals();
    stage.ledger.finish().and(told)?;
    tell(Progress::TrialEnded { trial, ok, failed });
    Ok(end)
}

/// One trial while it runs.
struct Stage<'a> {
    trial: Trial,
    setup: &'a ArmSetup,
    steps: Vec<String>,
    ledger: Ledger,
    tell: &'a mut dyn FnMut(Progress),
}

impl Stage<'_> {
    fn phase(&mut self, phase: Phase) -> Result<()> {
        self.ledger.event(EventKind::Phase { phase })?;
        (self.tell)(Progress::Phase {
            trial: self.trial,
            phase,
            planned_s: None,
        });
        Ok(())
    }

    async fn take_down(&mut self, deployment: Deployment) -> Result<()> {
        let report = deployment.stop().await?;
        for service in report.killed {
            (self.tell)(Progress::Warning(format!(
                "service {service} did not end within its grace and was killed"
            )));
        }
        for problem in report.problems {
            (self.tell)(Progress::Warning(problem));
        }
        Ok(())
    }

    /// Everything between the services' start and their stop.
    async fn with_services(
        &mut self,
        scene: &mut Scene<'_>,
        deployment: &Deployment,
    ) -> Result<TrialEnd> {
        for started in deployment.started() {
            self.ledger.event(EventKind::ServiceStarted {
                service: started.service.clone(),
                pid: started.pid,
                ready_ms: started.ready_ms,
                epoch: started.epoch,
            })?;
            (self.tell)(Progress::ServiceReady {
                service: started.service.clone(),
                ready_ms: started.ready_ms,
            });
        }
        deployment.ask_again().await?;
        let rows = deployment
            .row_counts()
            .await
            .context("counting rows before load")?;
        for count in &rows {
            self.ledger.event(EventKind::RowCount {
                service: count.service.to_string(),
                database: count.database.clone(),
                table: count.table.clone(),
                rows: count.rows,
            })?;
        }
        if let Some(difference) = scene.hold_against(self.trial, deployment.facts(), rows)? {
            return Ok(TrialEnd::new(StopReason::GateFailed, difference));
        }

        let endpoint = deployment.endpoint(&self.setup.clients.target)?;
        let mut clients = self.setup.clients.clone();
        if let Some(socket) = &clients.socket {
            clients.socket = Some(deployment.render(socket, "clients: socket")?);
        }
        let target = Target::resolve(&endpoint.url, &clients).await?;
        scene.addresses(
            self.trial,
            target.addresses.iter().map(ToString::to_string).collect(),
        )?;
        let seed = scene.experiment.schedule.seed;
        let workload = &self.setup.workload;
        let environment = Environment::gather(&clients, workload, &*scene.options.env)?;
        let mut driver = Driver::new(&clients, workload, target, seed, environment)?;
        if let Some(end) = self.preflight(&mut driver).await? {
            return Ok(end);
        }

        let (observed, mut observations) = unbounded_channel();
        let sampler = sample::start(
            SampleSpec {
                services: watched_services(deployment, self.setup),
                period: scene.experiment.schedule.sample,
                window: scene.experiment.schedule.window,
                origin: self.ledger.origin(),
                disks: vec![scene.folder.path().to_owned()],
                min_free_bytes: MIN_FREE_BYTES,
                completed: None,
            },
            observed,
        )?;
        let (pruned, mut passes) = unbounded_channel();
        let pruner = match &self.setup.pruning {
            Some(pruning) if pruning.enabled => {
                let server = deployment.sql(&pruning.service).with_context(|| {
                    format!(
                        "pruning needs SQL access to the service {}",
                        pruning.service
                    )
                })?;
                Some(prune::start(pruning, server, pruned)?)
            }
            _ => None,
        };
        let mut drive = Drive {
            trial: self.trial,
            ledger: &mut self.ledger,
            deployment,
            actions: &self.setup.actions,
            logs: scene.folder.arm(self.trial.pair, self.trial.arm).logs(),
            sampler: Some(sampler),
            observations: &mut observations,
            passes: &mut passes,
            cancel: scene.cancel.clone(),
            tell: self.tell,
            steps: &self.steps,
            recent: VecDeque::new(),
            failed_rows: Default::default(),
        };
        let end = phases(scene, &mut drive, &mut driver, self.setup).await;
        if let Some(pruner) = pruner {
            pruner.stop().await;
        }
        // The last readings belong to the measured state, so the services still run.
        let totals = match drive.sampler.take() {
            Some(sampler) => sampler.stop().await,
            None => Default::default(),
        };
        drive.take_waiting()?;
        drive.ledger.event(EventKind::SamplingEnd {
            planned: totals.planned,
            taken: totals.taken,
            gaps: totals.gaps,
            cost_cpu_s: totals.cost_cpu_s,
            pss_s: totals.pss_s,
        })?;
        end
    }

    /// Sends each step once; a step that does not answer as it expects ends the arm before any load.
    async fn preflight(&mut self, driver: &mut Driver) -> Result<Option<TrialEnd>> {
        self.phase(Phase::Preflight)?;
        let mut refused = Vec::new();
        for result in driver.preflight().await {
            if !result.ok {
                refused.push(format!("step {}: {}", result.step, result.detail));
            }
            self.ledger.event(EventKind::Preflight {
                step: result.step,
                ok: result.ok,
                detail: result.detail,
            })?;
        }
        if refused.is_empty() {
            return Ok(None);
        }
        Ok(Some(TrialEnd::new(
            StopReason::GateFailed,
            format!(
                "before load, a step did not answer as it expects: {}",
                refused.join("; ")
            ),
        )))
    }
}

/// Warm-up, settling, measuring.
async fn phases(
    scene: &mut Scene<'_>,
    drive: &mut Drive<'_>,
    driver: &mut Driver,
    setup: &ArmSetup,
) -> Result<TrialEnd> {
    let schedule = scene.experiment.schedule.clone();
    if !schedule.warmup.is_zero() {
        let spec = PhaseSpec {
            phase: Phase::Warmup,
            stop: StopRule::After(schedule.warmup),
        };
        let planned = Some(schedule.warmup.as_secs_f64());
        let warmed = drive.phase(driver, spec, planned, VecDeque::new()).await?;
        if let Some(end) = warmed.stopped {
            return Ok(end);
        }
    }
    let settles = setup
        .services
        .iter()
        .any(|service| matches!(&service.kind, ServiceKind::Postgres(postgres) if postgres.settle));
    if settles {
        drive.ledger.event(EventKind::Phase {
            phase: Phase::Settling,
        })?;
        (drive.tell)(Progress::Phase {
            trial: drive.trial,
            phase: Phase::Settling,
            planned_s: None,
        });
        drive
            .deployment
            .settle()
            .await
            .context("settling the database between warm-up and measured time")?;
    }
    let (stop, planned) = match &schedule.stop {
        Stop::Duration(lengths) => {
            let length = *lengths.get(drive.trial.arm);
            (StopRule::After(length), Some(length.as_secs_f64()))
        }
        Stop::Requests(requests) => (StopRule::Requests(*requests), None),
    };
    let spec = PhaseSpec {
        phase: Phase::Measuring,
        stop,
    };
    let due = timeline(&setup.actions, drive.trial.arm);
    scene.measured_from(drive.trial, format!("{:.3}", Timestamp::now()))?;
    let driven = drive.phase(driver, spec, planned, due).await?;
    drive.ledger.event(load_end(&driven.totals))?;
    drive.last_host().await?;
    Ok(driven.stopped.unwrap_or_else(TrialEnd::complete))
}

/// The driver's own account, to be held against the sum of the seconds.
fn load_end(totals: &PhaseTotals) -> EventKind {
    let counts = &totals.counts;
    EventKind::LoadEnd {
        sent: counts.sent,
        ok: counts.ok,
        failed: counts.failed_total(),
        cut: counts.cut,
        cut_ages_ms: totals
            .cut
            .iter()
            .map(|cut| cut.age.as_secs_f64() * 1e3)
            .collect(),
        seconds: totals.seconds,
        driver_cpu_s: totals.threads.iter().map(|thread| thread.cpu_s).sum(),
        busiest_share: totals.busiest_share,
        unlisted: totals.unlisted.iter().sum(),
    }
}
