//! One arm as the report shows it: windows, trend, series, bad seconds, pictures.

use std::collections::BTreeMap;

use super::arm::ArmRuns;
use super::observed::Observed;
use super::summary::{
    ArmSummary, FailureExample, Plot, Sampling, SeriesSummary, TrendFinding, Word,
};
use crate::measure::EventKind;

/// Failed requests shown as examples.
const EXAMPLES: usize = 20;
/// Most marks of a kind in a picture.
const MARKS: usize = 400;
/// Episodes are all kept up to this number; a run with more is bad throughout.
const EPISODES: usize = 2_000;

/// The arm; `None` when it never measured.
pub(super) fn arm(runs: &ArmRuns<'_>) -> Option<ArmSummary> {
    let first = runs.runs.first()?;
    let sum = |of: fn(&Observed<'_>) -> u64| runs.runs.iter().map(of).sum();
    Some(ArmSummary {
        seconds: runs.seconds(),
        windows: first.measured.windows.clone(),
        throughput: shared(runs, first),
        series: series(first),
        episodes: runs
            .runs
            .iter()
            .flat_map(|run| run.bad.episodes.iter().cloned())
            .take(EPISODES)
            .collect(),
        bad_seconds: sum(|run| run.bad.bad_seconds),
        slow_seconds: sum(|run| run.bad.slow_seconds),
        clean_requests: sum(|run| run.bad.clean_requests),
        clean_hours: runs.runs.iter().map(|run| run.bad.clean_hours).sum(),
        littles: runs.littles,
        sampling: sampling(runs),
        failure_examples: examples(runs),
        plot: plot(first),
    })
}

/// Sums over all runs; `None` unless the sampler of each told its own.
fn sampling(runs: &ArmRuns<'_>) -> Option<Sampling> {
    let mut all = Sampling::default();
    for run in &runs.runs {
        let (planned, taken, gaps, cost_s) =
            run.measured
                .trial
                .events
                .iter()
                .rev()
                .find_map(|event| match event.kind {
                    EventKind::SamplingEnd {
                        planned,
                        taken,
                        gaps,
                        cost_cpu_s,
                        ..
                    } => Some((planned, taken, gaps, cost_cpu_s)),
                    _ => None,
                })?;
        all.planned += planned;
        all.taken += taken;
        all.gaps += gaps;
        all.cost_cpu_s += cost_s;
    }
    Some(all)
}

/// The first run's finding, under the word that all runs share.
fn shared(runs: &ArmRuns<'_>, first: &Observed<'_>) -> TrendFinding {
    let mut finding = first.throughput.finding.clone();
    let word = runs.word().unwrap_or(Word::Unclear);
    if word != finding.word {
        finding.word = word;
        finding.reason = "runs_disagree".to_owned();
    }
    finding
}

fn series(run: &Observed<'_>) -> Vec<SeriesSummary> {
    run.series
        .iter()
        .map(|judged| SeriesSummary {
            name: judged.series.name.clone(),
            unit: judged.series.unit.clone(),
            first: judged.series.first,
            last: judged.series.last,
            min: judged.series.min,
            max: judged.series.max,
            trend: judged.trend.clone(),
            not_judged: judged.not_judged.map(str::to_owned),
        })
        .collect()
}

fn examples(runs: &ArmRuns<'_>) -> Vec<FailureExample> {
    runs.runs
        .iter()
        .flat_map(|run| &run.measured.trial.failures)
        .take(EXAMPLES)
        .map(|row| FailureExample {
            at_s: row.at_s,
            step: row.step.clone(),
            class: row.class.to_string(),
            status: row.status,
            said: row.said.clone(),
        })
        .collect()
}

/// Lines that pictures show beside throughput and latency.
fn is_drawn(name: &str) -> bool {
    let ends = [
        ".cpu_ms_per_request",
        ".sql_per_request",
        ".memory.rss",
        ".memory.pss",
        ".memory.cgroup",
        ".descriptors",
        ".rows",
        ".dead",
    ];
    ends.iter().any(|end| name.ends_with(end))
        || name.contains(".status.")
        || matches!(name, "host.busy" | "host.other_cpu" | "host.steal")
}

fn plot(run: &Observed<'_>) -> Plot {
    let m = &run.measured;
    let step = m.point_s as usize;
    let throughput =
        m.ok.chunks(step)
            .map(|part| part.iter().sum::<f64>() / part.len() as f64)
            .collect();
    let points = &m.latency.points;
    let (mut prunes, mut actions) = (Vec::new(), Vec::new());
    for event in &m.trial.events {
        if event.at_s < 0.0 || event.at_s > m.seconds {
            continue;
        }
        match &event.kind {
            EventKind::Prune { .. } => prunes.push(event.at_s),
            EventKind::Action { name, .. } => actions.push((event.at_s, name.clone())),
            _ => {}
        }
    }
    let sampled: BTreeMap<String, Vec<(f64, f64)>> = run
        .series
        .iter()
        .filter(|judged| is_drawn(&judged.series.name))
        .map(|judged| (judged.series.name.clone(), judged.series.line.clone()))
        .collect();
    let buckets = |part: &Option<super::latency::Latencies>| {
        part.as_ref()
            .map(super::latency::Latencies::buckets)
            .unwrap_or_default()
    };
    Plot {
        bin_s: m.point_s as f64,
        throughput,
        p50: points.iter().map(|p| p.p50).collect(),
        p99: points.iter().map(|p| p.p99).collect(),
        max: points.iter().map(|p| p.max).collect(),
        sampled,
        prunes: thinned(prunes),
        actions: thinned(actions),
        first_histogram: buckets(&m.latency.first),
        last_histogram: buckets(&m.latency.last),
    }
}

/// Every n-th, so that at most [`MARKS`] stay.
fn thinned<T>(all: Vec<T>) -> Vec<T> {
    let every = all.len().div_ceil(MARKS).max(1);
    all.into_iter().step_by(every).collect()
}
