//! The saturation probe of an experiment: its levels against a deployment of their own, each written as it ends.
//!
//! The deployment is the control's, started afresh, so that the pairs have left nothing in it. A probe never makes or breaks
//! a run: what stops it is written down, and the levels until then are kept.

use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result};
use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};
use tokio::sync::watch;

use super::execute::{Cancel, ReadEnv};
use super::progress::Progress;
use super::watch::watched_services;
use crate::deploy::{Deployment, Prepared, StartError};
use crate::experiment::{ArmSetup, Experiment, Probe};
use crate::load::{self, Environment, Level, Probed, Quantile, Target};
use crate::measure::Sample;
use crate::prune;
use crate::results::{ProbeRow, ProbeWriter, Reading, ServiceUse};
use crate::sample::{self, Observation, SampleSpec};

/// Readings of the services a level.
const READINGS: u32 = 10;

/// What a probe needs.
pub(super) struct Probing<'a> {
    pub(super) experiment: &'a Experiment,
    pub(super) levels: &'a Probe,
    pub(super) env: &'a ReadEnv,
    /// Of the services.
    pub(super) logs: &'a Path,
    /// Where levels are written.
    pub(super) file: &'a Path,
    pub(super) cancel: watch::Receiver<Cancel>,
}

/// How a probe ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum ProbeEnd {
    Whole,
    Interrupted,
    /// Something stopped it before its last level.
    Short(String),
}

impl Probing<'_> {
    /// Starts the deployment, drives every level, and takes the deployment down.
    ///
    /// # Errors
    /// When a file can't be written, or a service can't be taken down.
    pub(super) async fn run(
        mut self,
        prepared: &Prepared,
        tell: &mut dyn FnMut(Progress),
    ) -> Result<ProbeEnd> {
        let setup = self.experiment.arms.get(Probe::ARM);
        let deployment = match Deployment::start(prepared, setup, Probe::ARM, self.logs).await {
            Ok(deployment) => deployment,
            Err(StartError::Interrupted) => return Ok(ProbeEnd::Interrupted),
            Err(error) => return Ok(ProbeEnd::Short(error.to_string())),
        };
        let end = self.with_services(setup, &deployment, tell).await;
        let report = deployment.stop().await?;
        for problem in report.problems {
            tell(Progress::Warning(problem));
        }
        Ok(end.unwrap_or_else(|error| ProbeEnd::Short(format!("{error:#}"))))
    }

    async fn with_services(
        &mut self,
        setup: &ArmSetup,
        deployment: &Deployment,
        tell: &mut dyn FnMut(Progress),
    ) -> Result<ProbeEnd> {
        let endpoint = deployment.endpoint(&setup.clients.target)?;
        let mut clients = setup.clients.clone();
        if let Some(socket) = &clients.socket {
            clients.socket = Some(deployment.render(socket, "clients: socket")?);
        }
        let target = Target::resolve(&endpoint.url, &clients).await?;
        let environment = Environment::gather(&clients, &setup.workload, &**self.env)?;
        let origin = watch::Sender::new(Instant::now());
        let pruner = match &setup.pruning {
            Some(pruning) if pruning.enabled => {
                let server = deployment.sql(&pruning.service).with_context(|| {
                    format!(
                        "pruning needs SQL access to the service {}",
                        pruning.service
                    )
                })?;
                // What it deletes is the policy's business here, not a figure.
                let (unread, _) = unbounded_channel();
                Some(prune::start(pruning, server, unread)?)
            }
            _ => None,
        };
        let (observed, observations) = unbounded_channel();
        let sampler = sample::start(
            SampleSpec {
                services: watched_services(deployment, setup),
                period: (self.levels.each / READINGS)
                    .clamp(Duration::from_millis(200), Duration::from_secs(1)),
                window: self.levels.each,
                origin: origin.subscribe(),
                disks: Vec::new(),
                min_free_bytes: 0,
                completed: None,
            },
            observed,
        )?;
        let names: Vec<String> = setup.services.iter().map(|s| s.name.to_string()).collect();
        let mut writer = ProbeWriter::create(self.file, &names)?;
        let mut readings = Readings {
            origin: *origin.borrow(),
            observations,
            samples: Vec::new(),
        };
        let probed = Probed {
            clients: &clients,
            workload: &setup.workload,
            target: &target,
            environment: &environment,
            levels: self.levels,
            seed: self.experiment.schedule.seed,
        };
        let levels = load::probe(&probed, |level| {
            let row = row(level, readings.used(level, &names));
            writer.level(&row)?;
            tell(Progress::Level(row));
            Ok(())
        });
        let end = tokio::select! {
            biased;
            _ = self.cancel.wait_for(|cancel| *cancel > Cancel::No) => Ok(ProbeEnd::Interrupted),
            exit = deployment.next_exit() => Ok(ProbeEnd::Short(format!(
                "service {} ended without being asked: {}",
                exit.service, exit.status
            ))),
            levels = levels => levels.map(|_| ProbeEnd::Whole),
        };
        if let Some(pruner) = pruner {
            pruner.stop().await;
        }
        sampler.stop().await;
        end
    }
}

/// A level as it is written.
pub fn row(level: &Level, services: Vec<ServiceUse>) -> ProbeRow {
    let reading = |quantile: Quantile| match quantile {
        Quantile::Seen(ms) => Some(Reading::Seen(ms)),
        Quantile::AtLeast { at_least } => Some(Reading::AtLeast(at_least)),
        Quantile::TooFew(()) => None,
    };
    let latency = &level.latency_ms;
    ProbeRow {
        place: u32::try_from(level.place).unwrap_or(u32::MAX),
        clients: level.clients,
        repeated: level.repeated,
        seconds: level.seconds,
        counts: level.counts,
        p50: reading(latency.p50),
        p95: reading(latency.p95),
        p99: reading(latency.p99),
        max_ms: latency.max,
        driver_share: level.driver.busiest_share,
        send_delay_us: level.driver.send_delay_us,
        driver_cpu_us: level.driver.cpu_us_per_request,
        services,
    }
}

/// What the sampler has read so far of the services.
struct Readings {
    origin: Instant,
    observations: UnboundedReceiver<Observation>,
    samples: Vec<Sample>,
}

impl Readings {
    /// What each service used within a level's measured time. Readings of earlier levels are let go.
    fn used(&mut self, level: &Level, names: &[String]) -> Vec<ServiceUse> {
        while let Ok(observation) = self.observations.try_recv() {
            if let Observation::Sample(sample) = observation {
                self.samples.push(sample);
            }
        }
        let from = level
            .began
            .saturating_duration_since(self.origin)
            .as_secs_f64();
        let to = from + level.seconds;
        self.samples.retain(|sample| sample.at_s >= from);
        let within: Vec<&Sample> = self.samples.iter().filter(|s| s.at_s <= to).collect();
        names.iter().map(|name| used(name, &within)).collect()
    }
}

fn used(name: &str, samples: &[&Sample]) -> ServiceUse {
    let of = |metric: &str| -> Vec<&Sample> {
        let own = |sample: &&&Sample| sample.service == name && sample.metric == metric;
        samples.iter().filter(own).copied().collect()
    };
    // Processor times are cumulative: the last reading less the first, over the time between them, within one life.
    let cores = |metric: &str| -> Option<f64> {
        let readings = of(metric);
        let (first, last) = (readings.first()?, readings.last()?);
        let time = last.at_s - first.at_s;
        (time > 0.0 && first.epoch == last.epoch).then(|| (last.value - first.value) / time)
    };
    let largest = |metric: &str| of(metric).iter().map(|s| s.value).reduce(f64::max);
    ServiceUse {
        service: name.to_owned(),
        cpu_cores: cores("cpu_user_s")
            .zip(cores("cpu_system_s"))
            .map(|(user, system)| user + system),
        memory_mib: largest("memory.rss").or_else(|| largest("memory.anon")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_service_used_comes_from_readings_of_one_life() {
        let sample = |at_s: f64, metric: &str, value: f64, epoch: u32| Sample {
            at_s,
            service: "app".into(),
            metric: metric.into(),
            unit: String::new(),
            value,
            epoch,
        };
        let mut samples = vec![
            sample(1.0, "cpu_user_s", 10.0, 0),
            sample(1.0, "cpu_system_s", 5.0, 0),
            sample(1.0, "memory.rss", 60.0, 0),
            sample(2.0, "memory.rss", 64.0, 0),
            sample(3.0, "cpu_user_s", 11.0, 0),
            sample(3.0, "cpu_system_s", 5.5, 0),
            sample(3.0, "memory.rss", 62.0, 0),
        ];
        let take = |samples: &[Sample]| used("app", &samples.iter().collect::<Vec<_>>());
        let whole = take(&samples);
        assert_eq!(
            (whole.cpu_cores, whole.memory_mib),
            (Some(0.75), Some(64.0))
        );
        assert_eq!(take(&samples[..1]).cpu_cores, None);
        samples[4].epoch = 1;
        assert_eq!(take(&samples).cpu_cores, None);
        assert_eq!(
            used("edge", &samples.iter().collect::<Vec<_>>()).memory_mib,
            None
        );
    }
}
