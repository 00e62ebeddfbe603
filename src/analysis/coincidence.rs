//! What coincided with bad seconds: the host, actions, prunes, the servers' own doings, the runner itself.
//!
//! What is always there coincides with everything and explains nothing. So a host's reading counts only where it is beyond
//! the 99th percentile of that arm's other seconds *and* moved by an amount that matters, and a recurring event only where it
//! is rare or unusual of its kind.

use std::collections::BTreeMap;

use super::beside::{ServiceCpu, within};
use super::counters::{Increase, increases};
use super::figures::brief;
use super::measured::Measured;
use super::moments::{BEFORE_S, FEWEST_FOR_P99, Moment, moments, nth};
use crate::measure::{EventKind, HOST, HostFacts, HostSecond, RUNNER};
use crate::results::{SecondRow, Seconds};

/// One thing that the rows tell each second, with what would be unusual.
struct Gauge {
    what: &'static str,
    unit: &'static str,
    value: fn(&SecondRow) -> Option<f64>,
    /// Least distance from the median that matters, in its unit.
    matters: f64,
    /// What is beyond this is unusual.
    beyond: f64,
    /// 99th percentile of the other seconds.
    p99: f64,
}

fn host(row: &SecondRow, of: impl Fn(&HostSecond) -> Option<f64>) -> Option<f64> {
    row.host.as_ref().and_then(of)
}

/// A table line: name, unit, reader, least distance that matters.
type Watched = (
    &'static str,
    &'static str,
    fn(&SecondRow) -> Option<f64>,
    f64,
);

const GAUGES: [Watched; 7] = [
    (
        "other processes' CPU",
        "cores",
        |row| host(row, |h| Some(h.other_cpu)),
        0.25,
    ),
    (
        "CPU taken by the hypervisor",
        "cores",
        |row| host(row, |h| Some(h.steal)),
        0.1,
    ),
    (
        "waiting for a disk",
        "cores",
        |row| host(row, |h| Some(h.iowait)),
        0.25,
    ),
    (
        "pressure on processors",
        "of the time",
        |row| host(row, |h| h.pressure_cpu),
        0.2,
    ),
    (
        "pressure on block I/O",
        "of the time",
        |row| host(row, |h| h.pressure_io),
        0.2,
    ),
    (
        "pressure on memory",
        "of the time",
        |row| host(row, |h| h.pressure_memory),
        0.1,
    ),
    (
        "the runner's own delay before sending",
        "ms",
        |row| Some(row.send_delay_us / 1e3),
        1.0,
    ),
];

/// What is known about the seconds of one run.
pub(super) struct Surroundings<'r> {
    rows: &'r Seconds,
    gauges: Vec<Gauge>,
    names: BTreeMap<u64, &'r HostFacts>,
    moments: Vec<Moment>,
    longest_s: f64,
    cpu: Vec<ServiceCpu<'r>>,
    logs: Vec<(&'r str, &'r str, Vec<Increase>)>,
}

impl<'r> Surroundings<'r> {
    /// `inside` tells whether a second belongs to an episode or its neighbourhood: what is usual is taken from the others.
    pub(super) fn of(measured: &Measured<'r>, inside: impl Fn(u64) -> bool) -> Self {
        let trial = measured.trial;
        let anything_bad = trial.seconds.iter().any(|row| inside(row.at_s));
        let mut names = BTreeMap::new();
        for event in &trial.events {
            if let EventKind::Host(facts) = &event.kind {
                names.insert(facts.second, facts);
            }
        }
        let mut moments = if anything_bad {
            moments(&trial.events, measured.seconds)
        } else {
            Vec::new()
        };
        moments.sort_by(|a, b| a.from_s.total_cmp(&b.from_s));
        let longest_s = moments
            .iter()
            .map(|m| m.to_s - m.from_s)
            .fold(0.0, f64::max);
        let (mut cpu, mut logs) = (Vec::new(), Vec::new());
        for ((service, metric), series) in &trial.samples {
            if !anything_bad || service == RUNNER || service == HOST {
                continue;
            }
            if metric == "cpu_user_s" {
                let system = trial
                    .samples
                    .get(&(service.clone(), "cpu_system_s".to_owned()));
                cpu.push(ServiceCpu::of(service, series, system, measured.seconds));
            } else if let Some(pattern) = metric.strip_prefix("log.") {
                let counted = increases(series, measured.seconds).collect();
                logs.push((service.as_str(), pattern, counted));
            }
        }
        Self {
            rows: &trial.seconds,
            gauges: if anything_bad {
                GAUGES
                    .iter()
                    .filter_map(|watched| gauge(watched, &trial.seconds, &inside))
                    .collect()
            } else {
                Vec::new()
            },
            names,
            moments,
            longest_s,
            cpu,
            logs,
        }
    }

    /// What coincides with an episode, and what stands beside it.
    pub(super) fn around(&self, from: u64, to: u64) -> (Vec<String>, Vec<String>) {
        let mut coincides = Vec::new();
        for gauge in &self.gauges {
            coincides.extend(self.unusual(gauge, from, to));
        }
        let (from_s, to_s) = (from as f64 - BEFORE_S, to as f64);
        let start = self
            .moments
            .partition_point(|m| m.from_s < from_s - self.longest_s);
        for moment in self.moments[start..]
            .iter()
            .take_while(|m| m.from_s < to_s)
            .filter(|m| m.to_s >= from_s)
        {
            if !coincides.contains(&moment.text) {
                coincides.push(moment.text.clone());
            }
        }
        let coincides = gathered(coincides);
        let mut beside: Vec<String> = self
            .cpu
            .iter()
            .filter_map(|cpu| cpu.told(from as f64, to as f64))
            .collect();
        for (service, pattern, increases) in &self.logs {
            if let Some((lines, _)) = within(increases, from as f64, to as f64) {
                let lines = lines.round();
                beside.push(if lines < 1.0 {
                    format!("{service} logged no line that matches {pattern}")
                } else {
                    format!("{service} logged {lines} lines that match {pattern}")
                });
            }
        }
        (coincides, beside)
    }

    fn unusual(&self, gauge: &Gauge, from: u64, to: u64) -> Option<String> {
        let (second, most) = self
            .rows
            .between(from, to)
            .filter_map(|row| Some((row.at_s, (gauge.value)(&row)?)))
            .max_by(|a, b| a.1.total_cmp(&b.1))?;
        if most <= gauge.beyond {
            return None;
        }
        let mut text = format!(
            "{}: up to {} {} (at most {} in 99 % of the other seconds)",
            gauge.what,
            brief(most),
            gauge.unit,
            brief(gauge.p99),
        );
        if gauge.what.starts_with("other") {
            let worst = self.names.get(&second).filter(|f| !f.others.is_empty());
            let named = worst.or_else(|| {
                self.names
                    .range(from..to)
                    .map(|(_, facts)| facts)
                    .max_by(|a, b| cores(a).total_cmp(&cores(b)))
            });
            let all: Vec<String> = named
                .iter()
                .flat_map(|facts| facts.others.iter().take(3))
                .map(|p| format!("{} {}", p.command, brief(p.cores)))
                .collect();
            if !all.is_empty() {
                text.push_str(&format!("; the biggest: {}", all.join(", ")));
            }
        }
        Some(text)
    }
}

/// More than this many of one kind are told as a number.
const TOLD_SINGLY: usize = 3;

/// Texts that differ only in what stands in brackets at their end, as one text when there are many.
fn gathered(texts: Vec<String>) -> Vec<String> {
    fn head(text: &str) -> &str {
        text.split_once(" (").map_or(text, |(head, _)| head)
    }
    let mut out: Vec<String> = Vec::new();
    for text in &texts {
        let alike = texts.iter().filter(|t| head(t) == head(text)).count();
        let text = if alike > TOLD_SINGLY {
            format!("{}, {alike} times", head(text))
        } else {
            text.clone()
        };
        if !out.contains(&text) {
            out.push(text);
        }
    }
    out
}

fn cores(facts: &HostFacts) -> f64 {
    facts.others.iter().map(|p| p.cores).sum()
}

fn gauge(watched: &Watched, rows: &Seconds, inside: impl Fn(u64) -> bool) -> Option<Gauge> {
    let &(what, unit, value, matters) = watched;
    let mut values: Vec<f64> = rows
        .iter()
        .filter(|row| !inside(row.at_s))
        .filter_map(|row| value(&row))
        .collect();
    if values.len() < FEWEST_FOR_P99 {
        return None;
    }
    let p99 = nth(&mut values, 0.99);
    let median = nth(&mut values, 0.5);
    Some(Gauge {
        what,
        unit,
        value,
        matters,
        beyond: p99.max(median + matters),
        p99,
    })
    .filter(|g| g.matters > 0.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn many_of_one_kind_are_told_as_a_number() {
        let texts = |n: usize| -> Vec<String> {
            (0..n)
                .map(|i| format!("db was started again (ready after {i} ms)"))
                .chain(["db: checkpoint".to_owned()])
                .collect()
        };
        assert_eq!(gathered(texts(3)), texts(3));
        assert_eq!(
            gathered(texts(4)),
            ["db was started again, 4 times", "db: checkpoint"]
        );
    }
}
