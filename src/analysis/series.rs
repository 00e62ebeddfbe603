//! Sampled series: readings of gauges, increases of counters, and quotients of two counters over the same interval.
//!
//! A counter is compared within one life only: an interval across a restart or a reset is void, never negative. Numerator and
//! denominator of a quotient share both moments. Readings outside the measured time are not looked at.

use std::collections::BTreeMap;

use super::counters::{Completed, Increase, increases, is_counter, joined, spacing};
use super::measured::Measured;
use super::stats::bins;
use crate::experiment::{ArmSetup, FieldKind};
use crate::measure::{HOST, RUNNER};
use crate::results::SampleSeries;

/// A reading this near to an end of the measured time belongs to it: rounds are paced, not exact.
pub(super) const EDGE_S: f64 = 0.25;
/// Most points of a line in a picture.
const LINE_POINTS: f64 = 400.0;

/// One series over the measured time of one arm.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Series {
    /// Figure's name without the arm.
    pub(super) name: String,
    pub(super) unit: String,
    alone: Alone,
    /// Readings and their sum, for a mean.
    n: u64,
    values: f64,
    /// Sums of both sides of the quotients.
    part: f64,
    whole: f64,
    pub(super) first: f64,
    pub(super) last: f64,
    pub(super) min: f64,
    pub(super) max: f64,
    /// Equal bins for the trend; those without a reading left out.
    pub(super) bins: Vec<f64>,
    pub(super) bin_s: f64,
    /// Bins left out.
    pub(super) empty_bins: usize,
    /// For a picture: second and value.
    pub(super) line: Vec<(f64, f64)>,
}

/// What the bare name of a series stands for over several runs of an arm: the mean of all readings, the sum of all
/// increases, or all of one counter's increase by all of the other's.
pub(super) fn alone(runs: &[&Series]) -> Option<f64> {
    let sum = |of: fn(&Series) -> f64| runs.iter().map(|s| of(s)).sum::<f64>();
    let quotient = |part: f64, whole: f64| (whole > 0.0).then(|| part / whole);
    match runs.first()?.alone {
        Alone::Mean => quotient(sum(|s| s.values), sum(|s| s.n as f64)),
        Alone::Total => Some(sum(|s| s.part)),
        Alone::Quotient => quotient(sum(|s| s.part), sum(|s| s.whole)),
    }
}

/// What the bare name of a series stands for.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Alone {
    Mean,
    Total,
    Quotient,
}

/// Collects readings as quotients `part / whole` (a gauge has 1 below).
struct Collector {
    alone: Alone,
    seconds: f64,
    bin_s: f64,
    line_s: f64,
    n: u64,
    values: f64,
    part: f64,
    whole: f64,
    ends: Option<[f64; 4]>,
    bins: Vec<(f64, f64)>,
    line: Vec<(f64, f64)>,
}

impl Collector {
    /// For `seconds` of measured time in which readings are `period_s` apart.
    fn new(alone: Alone, seconds: f64, period_s: f64) -> Self {
        let width = bins::width(seconds.floor() as u64) as f64;
        let bin_s = (width / period_s).ceil().max(1.0) * period_s;
        let line_s = ((seconds / LINE_POINTS) / period_s).ceil().max(1.0) * period_s;
        Self {
            alone,
            seconds,
            bin_s,
            line_s,
            n: 0,
            values: 0.0,
            part: 0.0,
            whole: 0.0,
            ends: None,
            bins: vec![(0.0, 0.0); (seconds / bin_s + 1e-9).floor() as usize],
            line: vec![(0.0, 0.0); (seconds / line_s + 1e-9).ceil() as usize],
        }
    }

    /// A reading that speaks of the time just before `at_s`.
    fn push(&mut self, at_s: f64, part: f64, whole: f64) {
        self.part += part;
        self.whole += whole;
        for (parts, width) in [(&mut self.bins, self.bin_s), (&mut self.line, self.line_s)] {
            let index = ((at_s - EDGE_S) / width).max(0.0) as usize;
            if let Some(bin) = parts.get_mut(index) {
                bin.0 += part;
                bin.1 += whole;
            }
        }
        if whole <= 0.0 {
            return;
        }
        let value = part / whole;
        self.n += 1;
        self.values += value;
        self.ends = Some(match self.ends {
            None => [value; 4],
            Some([first, _, min, max]) => [first, value, min.min(value), max.max(value)],
        });
    }

    fn done(self, name: String, unit: &str) -> Option<Series> {
        let [first, last, min, max] = self.ends?;
        let bins: Vec<f64> = self
            .bins
            .iter()
            .filter(|(_, whole)| *whole > 0.0)
            .map(|(part, whole)| part / whole)
            .collect();
        let line_s = self.line_s;
        Some(Series {
            name,
            unit: unit.to_owned(),
            alone: self.alone,
            n: self.n,
            values: self.values,
            part: self.part,
            whole: self.whole,
            first,
            last,
            min,
            max,
            empty_bins: self.bins.len() - bins.len(),
            bins,
            bin_s: self.bin_s,
            line: self
                .line
                .iter()
                .enumerate()
                .filter(|(_, (_, whole))| *whole > 0.0)
                .map(|(i, (part, whole))| {
                    (((i as f64 + 0.5) * line_s).min(self.seconds), part / whole)
                })
                .collect(),
        })
    }
}

/// When the sessions of a database were looked at.
fn looks(metrics: &BTreeMap<&str, &SampleSeries>) -> Vec<f64> {
    let of_sessions = |name: &str| name.starts_with("connections.") || name.starts_with("waits.");
    let mut at: Vec<f64> = metrics
        .iter()
        .filter(|(name, _)| of_sessions(name))
        .flat_map(|(_, series)| series.points.iter().map(|point| point.0))
        .collect();
    at.sort_by(f64::total_cmp);
    at.dedup();
    at
}

/// Every series that the samples of one arm give.
pub(super) fn of(measured: &Measured<'_>, setup: &ArmSetup, period_s: f64) -> Vec<Series> {
    let mut all = Vec::new();
    let completed = Completed::of(measured);
    let mut services: BTreeMap<&str, BTreeMap<&str, &SampleSeries>> = BTreeMap::new();
    for ((service, metric), series) in &measured.trial.samples {
        services.entry(service).or_default().insert(metric, series);
    }
    for (service, metrics) in &services {
        let prefix = match *service {
            HOST => "host".to_owned(),
            RUNNER => "runner".to_owned(),
            service => format!("services.{service}"),
        };
        let seconds = measured.seconds;
        // The sampler's own share is over each interval; the catalogue's is over the whole arm.
        let blocks = metrics
            .get("blocks_hit")
            .copied()
            .zip(metrics.get("blocks_read").copied());
        // A wait has a reading only where it was seen: in the other looks at the sessions nobody waited so.
        let looks = looks(metrics);
        for (metric, series) in metrics {
            if *metric == "cache_hit" && blocks.is_some() {
                continue;
            }
            let name = format!("{prefix}.{metric}");
            if metric.starts_with("waits.") {
                let mut collector = Collector::new(Alone::Mean, seconds, period_s);
                let mut seen = series.points.iter().peekable();
                for &at_s in &looks {
                    while seen.next_if(|point| point.0 < at_s).is_some() {}
                    let sessions = seen.next_if(|point| point.0 == at_s);
                    if at_s >= -EDGE_S && at_s <= seconds + EDGE_S {
                        collector.push(at_s, sessions.map_or(0.0, |point| point.1), 1.0);
                    }
                }
                all.extend(collector.done(name, &series.unit));
                continue;
            }
            let period_s = spacing(series, period_s);
            let one = if counts(service, metric, &series.unit, setup) {
                let mut collector = Collector::new(Alone::Total, seconds, period_s);
                for i in increases(series, seconds) {
                    collector.push(i.to_s, i.by, 1.0);
                }
                collector.done(name, series.unit.trim_end_matches("_total"))
            } else {
                let mut collector = Collector::new(Alone::Mean, seconds, period_s);
                for &(at_s, value, _) in &series.points {
                    if at_s >= -EDGE_S && at_s <= seconds + EDGE_S {
                        collector.push(at_s, value, 1.0);
                    }
                }
                collector.done(name, &series.unit)
            };
            all.extend(one);
        }
        let mut quotient = |name: &str, unit: &str, parts: &[&SampleSeries], scale: f64| {
            let Some(joined) = joined(parts) else { return };
            let mut collector =
                Collector::new(Alone::Quotient, seconds, spacing(&joined, period_s));
            for i in increases(&joined, seconds) {
                let requests = completed.between(i.from_s, i.to_s);
                collector.push(i.to_s, i.by * scale, requests);
            }
            all.extend(collector.done(format!("{prefix}.{name}"), unit));
        };
        let get = |metric: &str| metrics.get(metric).copied();
        if let (Some(user), Some(system)) = (get("cpu_user_s"), get("cpu_system_s"))
            && *service != RUNNER
        {
            quotient("cpu_ms_per_request", "ms", &[user, system], 1e3);
        }
        if let Some(calls) = get("sql_calls") {
            quotient("sql_per_request", "", &[calls], 1.0);
        }
        for (metric, series) in metrics {
            if let Some(field) = metric.strip_prefix("status.")
                && counts(service, metric, &series.unit, setup)
            {
                quotient(&format!("status.{field}.per_request"), "", &[series], 1.0);
            }
        }
        if let Some((hit, read)) = blocks {
            all.extend(share(hit, read, seconds, period_s, &prefix));
        }
    }
    all.extend(host(measured));
    all.sort_by(|a, b| a.name.cmp(&b.name));
    all
}

/// Whether a metric is a running total: by its unit, or as the experiment says of a status field.
fn counts(service: &str, metric: &str, unit: &str, setup: &ArmSetup) -> bool {
    if let Some(field) = metric.strip_prefix("status.") {
        return setup
            .services
            .iter()
            .find(|s| s.name.as_str() == service)
            .and_then(|s| s.status.as_ref())
            .and_then(|page| page.fields.get(field))
            .is_some_and(|field| field.kind == FieldKind::Counter);
    }
    is_counter(unit)
}

/// Buffer hits ÷ all block reads.
fn share(
    hit: &SampleSeries,
    read: &SampleSeries,
    seconds: f64,
    period_s: f64,
    prefix: &str,
) -> Option<Series> {
    let both = joined(&[hit, read])?;
    let hits: Vec<Increase> = increases(hit, seconds).collect();
    let mut collector = Collector::new(Alone::Quotient, seconds, spacing(&both, period_s));
    let mut at = 0;
    for whole in increases(&both, seconds) {
        while at < hits.len() && hits[at].to_s < whole.to_s {
            at += 1;
        }
        if let Some(part) = hits.get(at).filter(|h| h.to_s == whole.to_s) {
            collector.push(whole.to_s, part.by, whole.by);
        }
    }
    collector.done(format!("{prefix}.cache_hit"), "share")
}

/// The host's series, from the seconds' rows.
fn host(measured: &Measured<'_>) -> Vec<Series> {
    let collector = || Collector::new(Alone::Mean, measured.seconds, 1.0);
    let names = [
        ("host.busy", "cores"),
        ("host.steal", "cores"),
        ("host.other_cpu", "cores"),
        ("host.pressure.cpu", "share"),
        ("host.pressure.io", "share"),
        ("host.pressure.memory", "share"),
    ];
    let mut all = names.map(|_| collector());
    for row in measured.trial.seconds.iter() {
        let Some(host) = &row.host else { continue };
        let values = [
            Some(host.busy),
            Some(host.steal),
            Some(host.other_cpu),
            host.pressure_cpu,
            host.pressure_io,
            host.pressure_memory,
        ];
        for (collector, value) in all.iter_mut().zip(values) {
            if let Some(value) = value {
                collector.push(row.at_s as f64 + 1.0, value, 1.0);
            }
        }
    }
    all.into_iter()
        .zip(names)
        .filter_map(|(collector, (name, unit))| collector.done(name.to_owned(), unit))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_gauge_has_its_ends_and_mean() {
        let mut collector = Collector::new(Alone::Mean, 4.0, 1.0);
        for (at, value) in [(1.0, 2.0), (2.0, 4.0), (3.0, 1.0), (4.0, 5.0)] {
            collector.push(at, value, 1.0);
        }
        let made = collector.done("x".into(), "MiB").unwrap();
        assert_eq!(
            (made.first, made.last, made.min, made.max),
            (2.0, 5.0, 1.0, 5.0)
        );
        assert_eq!(alone(&[&made]), Some(3.0));
        assert_eq!(made.bins, [2.0, 4.0, 1.0, 5.0]);
    }

    #[test]
    fn nothing_read_is_no_series() {
        assert!(
            Collector::new(Alone::Mean, 10.0, 1.0)
                .done("x".into(), "")
                .is_none()
        );
        let mut empty = Collector::new(Alone::Quotient, 10.0, 1.0);
        empty.push(1.0, 3.0, 0.0);
        assert!(empty.done("x".into(), "").is_none());
    }
}
