//! One arm's figures by name.
//!
//! Counts are sums, histograms are merged, means are total by total. A value that is missing is left out with its reason.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::Result;

use super::actions::spread;
use super::arm::ArmRuns;
use super::figures::Figures;
use super::finding::{change_between, slope_per_hour};
use super::latency::Latencies;
use super::observed::Observed;
use super::series;
use crate::experiment::{ArmSetup, FieldKind};
use crate::figure::LATENCIES;
use crate::measure::{EventKind, FailureClass, HOST, RUNNER};

/// Adds the arm's figures.
///
/// # Errors
/// When latencies can't be merged.
pub(super) fn add(runs: &ArmRuns<'_>, setup: &ArmSetup, figures: &mut Figures) -> Result<()> {
    let arm = runs.arm;
    let name = |rest: &str| format!("{arm}.{rest}");
    let totals = runs.totals();
    figures.number(name("seconds"), runs.seconds());
    for (what, count) in [
        ("sent", totals.sent),
        ("ok", totals.ok),
        ("failed", totals.failed_total()),
        ("cut", totals.cut),
        ("not_sent", totals.not_sent),
        ("redrawn", totals.redrawn),
        ("stale_connections", totals.stale_connections),
    ] {
        figures.number(name(&format!("requests.{what}")), count as f64);
    }
    for class in FailureClass::ALL {
        figures.number(
            name(&format!("failures.{class}")),
            totals.class(class) as f64,
        );
    }
    let mut steps: BTreeMap<&str, u64> = BTreeMap::new();
    for run in &runs.runs {
        for (step, ok) in run.measured.steps() {
            *steps.entry(step).or_default() += ok;
        }
    }
    for (step, ok) in steps {
        figures.number(name(&format!("requests.steps.{step}.ok")), ok as f64);
    }
    let sum = |of: fn(&Observed<'_>) -> u64| runs.runs.iter().map(of).sum::<u64>() as f64;
    figures.number(name("bad_seconds"), sum(|run| run.bad.bad_seconds));
    figures.number(name("slow_seconds"), sum(|run| run.bad.slow_seconds));
    throughput(runs, figures);
    latency(runs, figures)?;
    sampled(runs, figures);
    events(runs, setup, figures);
    counters(runs, setup, figures);
    Ok(())
}

fn throughput(runs: &ArmRuns<'_>, figures: &mut Figures) {
    let arm = runs.arm;
    let name = |rest: &str| format!("{arm}.throughput.{rest}");
    let short = || "the arm is shorter than two whole windows".to_owned();
    let several = || "each run has its own; see the pairs".to_owned();
    figures.maybe(name("mean"), runs.mean(), || "nothing was measured".into());
    let (first, last) = (runs.window(false), runs.window(true));
    figures.maybe(name("first"), first, short);
    figures.maybe(name("last"), last, short);
    if let Some(word) = runs.word() {
        figures.word(name("trend"), word.as_str());
    }
    let fall = match (first, last) {
        (Some(first), Some(last)) if first > 0.0 => Some(1.0 - last / first),
        _ => None,
    };
    figures.maybe(name("fall"), fall, || {
        "without two whole windows and requests in the first one there is no fall".to_owned()
    });
    let [run] = runs.runs.as_slice() else {
        for rest in [
            "fall_low",
            "fall_high",
            "slope",
            "slope_low",
            "slope_high",
            "described",
        ] {
            figures.absent(name(rest), several());
        }
        return;
    };
    let m = &run.measured;
    let change = m
        .first_window()
        .zip(m.last_window())
        .and_then(|(f, l)| change_between(m.ok_within(f), m.ok_within(l)));
    let unknown = || "too few seconds a window for an interval".to_owned();
    figures.maybe(name("fall_low"), change.map(|c| -c[2]), unknown);
    figures.maybe(name("fall_high"), change.map(|c| -c[1]), unknown);
    let slope = slope_per_hour(&run.throughput);
    for (i, rest) in ["slope", "slope_low", "slope_high"].iter().enumerate() {
        figures.maybe(name(rest), slope.map(|s| s[i]), || {
            "too few bins for a line".to_owned()
        });
    }
    let bin_s = run.throughput.finding.bin_s;
    let Some(trend) = &run.throughput.trend else {
        return;
    };
    let Some(described) = &trend.described else {
        return;
    };
    let level = trend.level.filter(|level| *level > 0.0);
    let theil_sen = described
        .theil_sen_slope
        .zip(level)
        .map(|(slope, level)| slope / level * 3_600.0 / bin_s);
    let few = || "too few bins".to_owned();
    figures.maybe(name("described.theil_sen"), theil_sen, few);
    figures.maybe(
        name("described.mann_kendall_p"),
        described.mann_kendall.map(|m| m.p),
        few,
    );
    figures.maybe(
        name("described.change_point_s"),
        described.change_point.map(|c| c.at as f64 * bin_s),
        || "no change point".to_owned(),
    );
    figures.maybe(
        name("described.last_quarter_to_first"),
        described.last_quarter_over_first,
        few,
    );
}

/// The value of one of the catalogue's latencies, or why there is none.
fn read(latencies: &Latencies, which: &str) -> Result<f64, String> {
    let q = match which {
        "mean" => {
            return latencies
                .mean_ms()
                .ok_or_else(|| "no latency was seen".to_owned());
        }
        "max" => {
            return latencies
                .max_ms()
                .ok_or_else(|| "no latency was seen".to_owned());
        }
        "p50" => 0.5,
        "p90" => 0.9,
        "p95" => 0.95,
        "p99" => 0.99,
        _ => 0.999,
    };
    latencies.quantile_ms(q)
}

fn latency(runs: &ArmRuns<'_>, figures: &mut Figures) -> Result<()> {
    let arm = runs.arm;
    let mut put = |name: String, latencies: &Latencies, which: &str| match read(latencies, which) {
        Ok(ms) => figures.number(name, ms),
        Err(reason) => figures.absent(name, reason),
    };
    let whole = runs.latency()?;
    for which in LATENCIES {
        put(format!("{arm}.latency.{which}"), &whole, which);
    }
    for end in ["first", "last"] {
        let mut merged = Latencies::new(runs.timeout_us)?;
        let mut complete = true;
        for run in &runs.runs {
            let m = &run.measured;
            let part = match end {
                "first" => m.latency.first.as_ref(),
                _ => m.latency.last.as_ref(),
            };
            match part.filter(|_| m.whole_windows >= 2) {
                Some(part) => merged.merge(part)?,
                None => complete = false,
            }
        }
        for which in LATENCIES.iter().filter(|_| complete) {
            put(format!("{arm}.latency.{which}_{end}"), &merged, which);
        }
    }
    let mut steps: BTreeMap<&str, Latencies> = BTreeMap::new();
    for run in &runs.runs {
        for (step, part) in &run.measured.latency.by_step {
            match steps.get_mut(step.as_str()) {
                Some(all) => all.merge(part)?,
                None => {
                    steps.insert(step, part.clone());
                }
            }
        }
    }
    for (step, latencies) in &steps {
        // Which step a request without a latency belonged to is not known: it may have been any.
        let worst = latencies.with_censored(whole.censored());
        for which in LATENCIES {
            let name = format!("{arm}.latency.steps.{step}.{which}");
            match read(&worst, which) {
                Err(reason) if whole.censored() > 0 && read(latencies, which).is_ok() => {
                    figures.absent(
                        name,
                        format!("requests without a latency may belong to this step: {reason}"),
                    );
                }
                _ => match read(latencies, which) {
                    Ok(ms) => figures.number(name, ms),
                    Err(reason) => figures.absent(name, reason),
                },
            }
        }
    }
    Ok(())
}

/// Figures of the sampled series.
fn sampled(runs: &ArmRuns<'_>, figures: &mut Figures) {
    let arm = runs.arm;
    let names: BTreeSet<&str> = runs
        .runs
        .iter()
        .flat_map(|run| &run.series)
        .map(|judged| judged.series.name.as_str())
        .collect();
    for own in names {
        if own.starts_with("runner.") {
            continue;
        }
        let all: Vec<&series::Series> = runs
            .runs
            .iter()
            .filter_map(|run| run.series.iter().find(|s| s.series.name == *own))
            .map(|s| &s.series)
            .collect();
        let (read, of) = (all.len(), runs.runs.len());
        if read < of && !only_where_seen(own) {
            for rest in ["", ".first", ".last", ".min", ".max", ".change", ".trend"] {
                let reason = format!("it was read in {read} of the arm's {of} runs");
                figures.absent(format!("{arm}.{own}{rest}"), reason);
            }
            continue;
        }
        let name = |rest: &str| format!("{arm}.{own}{rest}");
        let n = all.len() as f64;
        let mean = |of: fn(&series::Series) -> f64| all.iter().map(|s| of(s)).sum::<f64>() / n;
        let fold = |of: fn(&series::Series) -> f64, with: fn(f64, f64) -> f64| {
            all.iter().map(|s| of(s)).reduce(with)
        };
        let never = || "no reading".to_owned();
        figures.maybe(name(""), series::alone(&all), never);
        figures.number(name(".first"), mean(|s| s.first));
        figures.number(name(".last"), mean(|s| s.last));
        figures.maybe(name(".min"), fold(|s| s.min, f64::min), never);
        figures.maybe(name(".max"), fold(|s| s.max, f64::max), never);
        figures.number(name(".change"), mean(|s| s.last - s.first));
        match runs.series_word(own) {
            Some(word) => figures.word(name(".trend"), word.as_str()),
            None => figures.absent(
                name(".trend"),
                "described only: its trend is not judged".to_owned(),
            ),
        }
    }
}

/// Whether a series has readings only while there is something to count: a run without one had none of it.
fn only_where_seen(name: &str) -> bool {
    name.contains(".waits.") || name.contains(".connections.")
}

/// Figures that events carry: starts, prunes, and what could not be read.
fn events(runs: &ArmRuns<'_>, setup: &ArmSetup, figures: &mut Figures) {
    let arm = runs.arm;
    let mut ready: BTreeMap<&str, Vec<f64>> = BTreeMap::new();
    let mut restarts: BTreeMap<&str, u64> = BTreeMap::new();
    let mut pruned: BTreeMap<&str, u64> = BTreeMap::new();
    let mut prune_ms = 0.0;
    for run in &runs.runs {
        for event in &run.measured.trial.events {
            let inside = event.at_s >= 0.0 && event.at_s <= run.measured.seconds;
            match &event.kind {
                EventKind::ServiceStarted {
                    service,
                    ready_ms,
                    epoch,
                    ..
                } => {
                    ready.entry(service).or_default().push(*ready_ms);
                    *restarts.entry(service).or_default() += u64::from(*epoch > 0);
                }
                EventKind::Prune {
                    table, rows, ms, ..
                } if inside => {
                    *pruned.entry(table).or_default() += rows;
                    prune_ms += ms;
                }
                EventKind::NotObserved {
                    service,
                    metric,
                    reason,
                } => {
                    for name in unread(service, metric) {
                        figures.absent(format!("{arm}.{name}"), reason.clone());
                    }
                }
                _ => {}
            }
        }
    }
    for (service, all) in ready {
        let name = format!("{arm}.services.{service}.ready_ms");
        spread(figures, &name, Some(&all), || "it never started".to_owned());
    }
    for (service, n) in restarts {
        figures.number(format!("{arm}.services.{service}.restarts"), n as f64);
    }
    let Some(pruning) = &setup.pruning else {
        figures.absent(format!("{arm}.pruned"), "no pruning is declared");
        figures.absent(format!("{arm}.prune_ms"), "no pruning is declared");
        return;
    };
    for table in &pruning.tables {
        let rows = pruned.get(table.table.as_str()).copied();
        figures.number(
            format!("{arm}.pruned.{}", table.table),
            rows.unwrap_or_default() as f64,
        );
    }
    figures.number(format!("{arm}.prune_ms"), prune_ms);
}

/// The figures that a metric which could not be read stands behind.
fn unread(service: &str, metric: &str) -> Vec<String> {
    if service == RUNNER {
        return Vec::new();
    }
    if service == HOST {
        return vec!["host".to_owned()];
    }
    let own = format!("services.{service}.{metric}");
    match metric {
        "cpu_user_s" | "cpu_system_s" => {
            vec![own, format!("services.{service}.cpu_ms_per_request")]
        }
        "sql_calls" => vec![own, format!("services.{service}.sql_per_request")],
        "blocks_hit" | "blocks_read" => vec![own, format!("services.{service}.cache_hit")],
        _ => vec![own],
    }
}

/// Totals of logs and status pages: plain numbers in the catalogue, so the ends of their increases are not figures.
fn counters(runs: &ArmRuns<'_>, setup: &ArmSetup, figures: &mut Figures) {
    let arm = runs.arm;
    for service in &setup.services {
        let base = format!("{arm}.services.{}", service.name);
        let mut totals: Vec<String> = service
            .log
            .keys()
            .map(|pattern| format!("{base}.log.{pattern}"))
            .collect();
        for (field, what) in service.status.iter().flat_map(|page| &page.fields) {
            if what.kind == FieldKind::Counter {
                totals.push(format!("{base}.status.{field}"));
                totals.push(format!("{base}.status.{field}.per_request"));
            }
        }
        for name in totals {
            for end in ["first", "last", "min", "max", "change", "trend"] {
                figures.values.remove(&format!("{name}.{end}"));
                figures.reasons.remove(&format!("{name}.{end}"));
            }
        }
    }
}
