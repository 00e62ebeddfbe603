//! One phase of load: takes what the driver, the samplers, the pruner and the services tell, and writes it as it comes.

use std::collections::VecDeque;
use std::future::Future;
use std::path::PathBuf;
use std::pin::Pin;
use std::time::{Duration, Instant};

use anyhow::Result;
use tokio::sync::mpsc::UnboundedReceiver;
use tokio::sync::watch;

use super::action::{self, Done};
use super::execute::Cancel;
use super::ledger::Ledger;
use super::plan::Trial;
use super::progress::{Progress, Pulse};
use super::timeline::Due;
use super::trial::TrialEnd;
use crate::deploy::{Deployment, ServiceExit};
use crate::experiment::{Action, ActionKind};
use crate::load::{self, Driver, PhaseSpec, PhaseTotals, Running};
use crate::measure::{EventKind, FailureClass, FailureRow, Phase, StopReason};
use crate::prune::Pass;
use crate::results::SecondRow;
use crate::sample::{Observation, Sampler};

/// A second below this share of the recent mean is told to the sampler as a slow one; the judge decides later by the
/// arm's own median.
const SLOW_SHARE: f64 = 0.5;
/// Lines of a dead service's log in a message, and characters of each.
const LAST_LINES: usize = 3;
const LAST_LINE_CHARACTERS: usize = 120;
/// Failed requests of an arm that have a row of their own, of each class; those beyond are counted by class only. A server
/// that is down for days must not fill the disk, or the memory of whoever reads the run.
const LISTED: u64 = 10_000;
/// Seconds that the recent mean looks back.
const RECENT: usize = 30;

/// The longest wait for the host's reading of the last second.
const LAST_HOST: Duration = Duration::from_millis(1500);

/// What a phase of load needs at hand.
pub(super) struct Drive<'a> {
    pub(super) trial: Trial,
    pub(super) ledger: &'a mut Ledger,
    pub(super) deployment: &'a Deployment,
    /// The arm's actions, in file order.
    pub(super) actions: &'a [Action],
    /// Where commands of actions write.
    pub(super) logs: PathBuf,
    /// Until it is stopped.
    pub(super) sampler: Option<Sampler>,
    pub(super) observations: &'a mut UnboundedReceiver<Observation>,
    pub(super) passes: &'a mut UnboundedReceiver<Pass>,
    pub(super) cancel: watch::Receiver<Cancel>,
    pub(super) tell: &'a mut dyn FnMut(Progress),
    /// Names of the workload's steps.
    pub(super) steps: &'a [String],
    /// Ok requests of the last seconds.
    pub(super) recent: VecDeque<u64>,
    /// Rows of failed requests so far, by class, [`LISTED`] of which were written.
    pub(super) failed_rows: [u64; FailureClass::ALL.len()],
}

/// A phase of load that has ended.
pub(super) struct Driven {
    /// `None` when it ran to its end.
    pub(super) stopped: Option<TrialEnd>,
    /// The driver's own account of it.
    pub(super) totals: PhaseTotals,
}

impl Drive<'_> {
    /// Drives one phase to its end, or to the first thing that stops it.
    ///
    /// # Errors
    /// When the arm's files can't be written.
    pub(super) async fn phase(
        &mut self,
        driver: &mut Driver,
        spec: PhaseSpec,
        planned_s: Option<f64>,
        mut due: VecDeque<Due>,
    ) -> Result<Driven> {
        let mut running = driver.start(spec);
        let origin = running.origin();
        if spec.phase == Phase::Measuring {
            self.ledger.set_origin(origin);
        }
        self.ledger.event(EventKind::Phase { phase: spec.phase })?;
        (self.tell)(Progress::Phase {
            trial: self.trial,
            phase: spec.phase,
            planned_s,
        });
        let mut stopped = None;
        let mut failed = 0u64;
        let mut doing: Option<Doing<'_>> = None;
        loop {
            // One action at a time: one that is due while another runs begins when that has ended, and its event says when.
            let next_action = due
                .front()
                .filter(|_| doing.is_none() && stopped.is_none())
                .map(|due| origin + due.at);
            tokio::select! {
                biased;
                second = running.next_second() => {
                    let Some(second) = second else { break };
                    let index = second.index;
                    failed += second.counts.failed_total();
                    self.failures(spec.phase, &mut running)?;
                    self.bad_or_slow(spec.phase, &second);
                    let rows = self.ledger.second(spec.phase, second)?;
                    self.pulse(spec.phase, index + 1, failed, &rows);
                }
                Some(observation) = self.observations.recv() => {
                    if let Some(end) = self.observe(observation)?
                        && stopped.is_none()
                    {
                        stopped = Some(end);
                        running.stop();
                    }
                }
                Some(pass) = self.passes.recv() => self.pass(pass)?,
                exit = self.deployment.next_exit() => {
                    let died = self.exited(exit)?;
                    if stopped.is_none() && died.is_some() {
                        stopped = died;
                        running.stop();
                    }
                }
                changed = self.cancel.changed(), if self.wants_on(&stopped) => {
                    if changed.is_ok() && *self.cancel.borrow() > Cancel::No {
                        stopped = Some(TrialEnd::new(StopReason::Interrupted, "by the user"));
                        running.stop();
                    }
                }
                () = until(next_action), if next_action.is_some() => {
                    if let Some(due) = due.pop_front() {
                        doing = self.begin(due, &mut running)?;
                    }
                }
                result = ended(&mut doing), if doing.is_some() => {
                    if let Some(done) = doing.take() {
                        self.acted(&done, result)?;
                    }
                }
            }
        }
        if let Some(done) = doing.take() {
            let cut = anyhow::anyhow!("the arm ended before it did");
            self.acted(&done, Err(cut))?;
        }
        self.failures(spec.phase, &mut running)?;
        let mut totals = self.drain(running).await?;
        for (unlisted, rows) in totals.unlisted.iter_mut().zip(self.failed_rows) {
            *unlisted += rows.saturating_sub(LISTED);
        }
        Ok(Driven { stopped, totals })
    }

    /// Begins an action that is due. A burst of clients is the driver's and takes no time.
    fn begin<'d>(&mut self, due: Due, running: &mut Running) -> Result<Option<Doing<'d>>>
    where
        Self: 'd,
    {
        let Some(action) = self.actions.get(due.action) else {
            return Ok(None);
        };
        let began_s = self.ledger.at(Instant::now());
        if let ActionKind::Clients { closed, length } = &action.what {
            running.burst(*closed, *length);
            let detail = format!("{closed} more clients for {} s", length.as_secs_f64());
            self.action_event(action, due.number, began_s, true, detail)?;
            return Ok(None);
        }
        let (deployment, logs) = (self.deployment, self.logs.clone());
        Ok(Some(Doing {
            action: due.action,
            number: due.number,
            began_s,
            future: Box::pin(async move { action::perform(deployment, action, &logs).await }),
        }))
    }

    /// Writes what became of an action; one that failed is a finding.
    fn acted(&mut self, doing: &Doing<'_>, result: Result<Done>) -> Result<()> {
        let Some(action) = self.actions.get(doing.action) else {
            return Ok(());
        };
        let (ok, detail) = match &result {
            Ok(done) => (true, done.detail.clone()),
            Err(error) => (false, format!("{error:#}")),
        };
        if !ok {
            (self.tell)(Progress::Warning(format!(
                "action {}: {detail}",
                action.name
            )));
        }
        if let Ok(Done {
            started: Some(started),
            ..
        }) = result
        {
            self.ledger.event(EventKind::ServiceStarted {
                service: started.service,
                pid: started.pid,
                ready_ms: started.ready_ms,
                epoch: started.epoch,
            })?;
        }
        self.action_event(action, doing.number, doing.began_s, ok, detail)
    }

    fn action_event(
        &mut self,
        action: &Action,
        number: u32,
        began_s: f64,
        ok: bool,
        detail: String,
    ) -> Result<()> {
        let ended_s = self.ledger.at(Instant::now());
        self.ledger.event_at(
            began_s,
            EventKind::Action {
                name: action.name.clone(),
                index: number,
                ended_s,
                ok,
                detail,
            },
        )
    }

    /// Whether the user's wish to stop still matters: the channel is looked at until it stopped the phase.
    fn wants_on(&self, stopped: &Option<TrialEnd>) -> bool {
        stopped
            .as_ref()
            .is_none_or(|end| end.reason != StopReason::Interrupted)
    }

    /// Waits for requests in flight, but not for a user in a hurry.
    async fn drain(&mut self, running: Running) -> Result<PhaseTotals> {
        let finish = running.finish();
        tokio::pin!(finish);
        loop {
            tokio::select! {
                biased;
                totals = &mut finish => return Ok(totals),
                Some(observation) = self.observations.recv() => {
                    self.observe(observation)?;
                }
                Some(pass) = self.passes.recv() => self.pass(pass)?,
            }
        }
    }

    /// Waits until the host's reading of the last second of load is there, which comes when that second is over.
    ///
    /// # Errors
    /// When the arm's files can't be written.
    pub(super) async fn last_host(&mut self) -> Result<()> {
        let deadline = tokio::time::Instant::now() + LAST_HOST;
        while self.ledger.waits_for_host() {
            match tokio::time::timeout_at(deadline, self.observations.recv()).await {
                Ok(Some(observation)) => {
                    self.observe(observation)?;
                }
                Ok(None) | Err(_) => break,
            }
        }
        Ok(())
    }

    /// Takes everything that is waiting to be written.
    ///
    /// # Errors
    /// When the arm's files can't be written.
    pub(super) fn take_waiting(&mut self) -> Result<()> {
        while let Ok(observation) = self.observations.try_recv() {
            self.observe(observation)?;
        }
        while let Ok(pass) = self.passes.try_recv() {
            self.pass(pass)?;
        }
        Ok(())
    }

    fn pass(&mut self, pass: Pass) -> Result<()> {
        let at_s = self.ledger.at(pass.began);
        self.ledger.event_at(at_s, pass.kind)
    }

    /// Writes one observation; a disk that is about to be full ends the arm.
    fn observe(&mut self, observation: Observation) -> Result<Option<TrialEnd>> {
        match observation {
            Observation::Sample(sample) => self.ledger.sample(&sample)?,
            Observation::Host { second, host } => {
                self.ledger.host(second, host)?;
            }
            Observation::Event { at_s, kind } => self.ledger.event_at(at_s, kind)?,
            Observation::DiskLow { path, free_bytes } => {
                let detail = format!(
                    "the disk below {} has only {} MiB left; make room, then run again",
                    path.display(),
                    free_bytes >> 20
                );
                (self.tell)(Progress::Warning(detail.clone()));
                return Ok(Some(TrialEnd::new(StopReason::DiskFull, detail)));
            }
        }
        Ok(None)
    }

    /// Writes the end of a service; one that nobody asked for ends the arm.
    fn exited(&mut self, exit: ServiceExit) -> Result<Option<TrialEnd>> {
        let at_s = self.ledger.at(Instant::now());
        if exit.expected {
            self.ledger.event(EventKind::ServiceExited {
                service: exit.service.to_string(),
                status: exit.status,
                expected: true,
                log_tail: Vec::new(),
            })?;
            return Ok(None);
        }
        let detail = format!(
            "service {} ended at {at_s:.1} s without being asked: {}{}",
            exit.service,
            exit.status,
            last_lines(&exit.log_tail)
        );
        (self.tell)(Progress::Warning(detail.clone()));
        self.ledger.event(EventKind::ServiceExited {
            service: exit.service.to_string(),
            status: exit.status,
            expected: false,
            log_tail: exit.log_tail,
        })?;
        Ok(Some(TrialEnd::new(StopReason::ServiceDied, detail)))
    }

    /// Failed requests of the measured time become rows; those of warm-up are only counted.
    fn failures(&mut self, phase: Phase, running: &mut Running) -> Result<()> {
        let rows = running.take_failures();
        if phase != Phase::Measuring || rows.is_empty() {
            return Ok(());
        }
        let rows = listed(rows, &mut self.failed_rows);
        let rows: Vec<FailureRow> = rows.into_iter().map(|row| self.row(row)).collect();
        self.ledger.failures(&rows)
    }

    fn row(&self, row: load::FailureRow) -> FailureRow {
        FailureRow {
            at_s: row.at_s,
            step: self.steps.get(row.step).cloned().unwrap_or_default(),
            class: row.class,
            status: row.status,
            latency_ms: Some(row.latency_us as f64 / 1e3),
            received: row.received,
            promised: row.promised,
            said: row.said,
        }
    }

    fn bad_or_slow(&mut self, phase: Phase, second: &crate::measure::LoadSecond) {
        if phase != Phase::Measuring {
            return;
        }
        let ok = second.counts.ok;
        let mean = self.recent.iter().sum::<u64>() as f64 / self.recent.len().max(1) as f64;
        let slow = self.recent.len() >= 5 && (ok as f64) < SLOW_SHARE * mean;
        if let Some(sampler) = &self.sampler
            && (slow || second.counts.failed_total() > 0)
        {
            sampler.bad_second(second.index);
        }
        self.recent.push_back(ok);
        if self.recent.len() > RECENT {
            self.recent.pop_front();
        }
    }

    fn pulse(&mut self, phase: Phase, elapsed_s: u64, failed: u64, rows: &[SecondRow]) {
        let Some(last) = rows.last() else { return };
        (self.tell)(Progress::Second(Pulse {
            trial: self.trial,
            phase,
            elapsed_s,
            ok: last.counts.ok,
            p50_ms: last.p50_ms,
            p99_ms: last.p99_ms,
            failed,
            rows: self.ledger.rows(),
        }));
    }
}

/// The first rows of each class, [`LISTED`] of them over the arm; `so_far` counts all.
fn listed(
    rows: Vec<load::FailureRow>,
    so_far: &mut [u64; FailureClass::ALL.len()],
) -> Vec<load::FailureRow> {
    rows.into_iter()
        .filter(|row| {
            let of_class = &mut so_far[row.class.index()];
            *of_class += 1;
            *of_class <= LISTED
        })
        .collect()
}

/// An action that is being executed.
struct Doing<'d> {
    action: usize,
    number: u32,
    began_s: f64,
    future: Pin<Box<dyn Future<Output = Result<Done>> + 'd>>,
}

/// Waits for the action that is being executed; for ever when there is none.
async fn ended(doing: &mut Option<Doing<'_>>) -> Result<Done> {
    match doing {
        Some(doing) => doing.future.as_mut().await,
        None => std::future::pending().await,
    }
}

/// Waits until a moment; for ever when there is none.
async fn until(moment: Option<Instant>) {
    match moment {
        Some(moment) => tokio::time::sleep_until(moment.into()).await,
        None => std::future::pending().await,
    }
}

/// The last lines of a log as a part of a message that is short enough to be printed whole; the event keeps more of them.
fn last_lines(lines: &[String]) -> String {
    let from = lines.len().saturating_sub(LAST_LINES);
    let last: Vec<String> = lines[from..]
        .iter()
        .map(|line| line.chars().take(LAST_LINE_CHARACTERS).collect())
        .collect();
    if last.is_empty() {
        return String::new();
    }
    format!("; the last lines of its log:\n    {}", last.join("\n    "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_class_has_its_first_rows_and_no_more() {
        let row = |class| load::FailureRow {
            at_s: 0.0,
            step: 0,
            class,
            status: None,
            latency_us: 1,
            received: 0,
            promised: None,
            said: String::new(),
        };
        let mut so_far = [0; FailureClass::ALL.len()];
        let many = (0..LISTED + 5)
            .map(|_| row(FailureClass::Refused))
            .collect();
        assert_eq!(listed(many, &mut so_far).len() as u64, LISTED);
        let more = vec![row(FailureClass::Refused), row(FailureClass::Timeout)];
        let kept = listed(more, &mut so_far);
        assert_eq!(kept.len(), 1);
        assert_eq!(kept[0].class, FailureClass::Timeout);
        assert_eq!(so_far[FailureClass::Refused.index()], LISTED + 6);
    }
}
