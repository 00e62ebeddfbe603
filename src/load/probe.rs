//! The levels of a saturation probe: each number of clients for some time, in seeded order, the first repeated last.
//!
//! Levels are only measured here; where the knee is, others judge.

use std::time::{Duration, Instant};

use super::adhoc::{self, Adhoc, drain};
use super::draw::{Lane, Seed};
use super::driver::{Driver, PhaseSpec, StopRule};
use super::environment::Environment;
use super::summary::{self, DriverUse, Times};
use super::target::Target;
use crate::experiment::{Clients, Load, Probe, Stage, Workload};
use crate::measure::{Counts, Phase};

/// One level, measured.
#[derive(Debug, Clone, PartialEq)]
pub struct Level {
    /// Closed-loop clients.
    pub clients: u32,
    /// Its place in the order in which levels ran.
    pub place: usize,
    /// The first level once more: it tells whether the target has changed meanwhile.
    pub repeated: bool,
    /// When its measured time began, on the monotonic clock.
    pub began: Instant,
    /// Measured seconds.
    pub seconds: f64,
    /// Requests of it: `sent = ok + failed + cut`.
    pub counts: Counts,
    /// Of completed requests, in milliseconds.
    pub latency_ms: Times,
    /// What the driver used at this level.
    pub driver: DriverUse,
}

/// What a probe drives, and how.
#[derive(Debug, Clone)]
pub struct Probed<'a> {
    /// The clients; their load is replaced by each level's.
    pub clients: &'a Clients,
    /// What they send.
    pub workload: &'a Workload,
    /// Where to.
    pub target: &'a Target,
    /// What the workload takes from the caller's environment.
    pub environment: &'a Environment,
    /// Levels and the time of each.
    pub levels: &'a Probe,
    /// Of the levels' order and of the draws.
    pub seed: u64,
}

/// The order in which levels run: shuffled by the seed, then the first of them once more.
pub fn order(levels: &[u32], seed: u64) -> Vec<u32> {
    let mut order: Vec<u32> = Vec::new();
    for &level in levels {
        if level > 0 && !order.contains(&level) {
            order.push(level);
        }
    }
    let seed = Seed::new(seed, u64::MAX);
    for place in (1..order.len()).rev() {
        let other = seed.at(Lane::Step, 0, place as u64).below(place as u64 + 1);
        order.swap(place, other as usize);
    }
    order.extend(order.first().copied());
    order
}

/// Runs every level; `done` sees each as it ends. A tenth of each level, at most a second, is driven first and not counted.
/// Dropped in the middle, it stops sending.
///
/// # Errors
/// Those of [`Driver::new`] and of `done`.
pub async fn probe(
    probed: &Probed<'_>,
    mut done: impl FnMut(&Level) -> anyhow::Result<()>,
) -> anyhow::Result<Vec<Level>> {
    let (clients, each) = (probed.clients, probed.levels.each);
    let mut levels: Vec<Level> = Vec::new();
    for (place, level) in order(&probed.levels.clients, probed.seed)
        .into_iter()
        .enumerate()
    {
        let mut these = clients.clone();
        these.load = Load::Closed {
            stages: vec![Stage {
                level: f64::from(level),
                length: None,
            }],
            think: Duration::ZERO,
            ramp: Duration::ZERO,
        };
        let mut driver = Driver::new(
            &these,
            probed.workload,
            probed.target.clone(),
            probed.seed,
            probed.environment.clone(),
        )?;
        let before = (each / 10).min(Duration::from_secs(1));
        drain(driver.start(PhaseSpec {
            phase: Phase::Warmup,
            stop: StopRule::After(before),
        }))
        .await;
        let measuring = driver.start(PhaseSpec {
            phase: Phase::Measuring,
            stop: StopRule::After(each.saturating_sub(before)),
        });
        let began = measuring.origin();
        let totals = drain(measuring).await;
        let counts = &totals.counts;
        let timeout_ms = clients.timeout.as_secs_f64() * 1e3;
        let latency_ms = summary::latencies(&totals, timeout_ms);
        levels.push(Level {
            clients: level,
            place,
            repeated: levels.iter().any(|other| other.clients == level),
            began,
            seconds: totals.seconds,
            counts: *counts,
            driver: summary::driver_use(&totals, latency_ms.p50.ms()),
            latency_ms,
        });
        if let Some(level) = levels.last() {
            done(level)?;
        }
    }
    Ok(levels)
}

/// The same against a URL, with GET.
///
/// # Errors
/// A URL that can't be driven, and those of [`Driver::new`].
pub async fn probe_url(
    asked: &Adhoc,
    levels: &Probe,
    seed: u64,
    done: impl FnMut(&Level) -> anyhow::Result<()>,
) -> anyhow::Result<Vec<Level>> {
    let clients = adhoc::clients(asked)?;
    let target = Target::resolve(&asked.url, &clients).await?;
    let workload = adhoc::workload(asked, &target.path)?;
    let probed = Probed {
        clients: &clients,
        workload: &workload,
        target: &target,
        environment: &asked.environment,
        levels,
        seed,
    };
    probe(&probed, done).await
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_level_runs_once_and_the_first_again() {
        let drawn = order(&[1, 2, 4, 8, 2, 0], 3);
        assert_eq!(drawn.len(), 5);
        assert_eq!(drawn.first(), drawn.last());
        let mut once = drawn[..4].to_vec();
        once.sort_unstable();
        assert_eq!(once, [1, 2, 4, 8]);
        assert_eq!(drawn, order(&[1, 2, 4, 8], 3));
        assert!((0..20).any(|seed| order(&[1, 2, 4, 8], seed) != drawn));
        assert!(order(&[], 1).is_empty());
    }
}
