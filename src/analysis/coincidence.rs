//! What coincided with bad seconds: the host, actions, prunes, the servers' own doings, the runner itself.
//!
//! What is always there coincides with everything and explains nothing. So a host's reading counts only where it is beyond
//! the 99th percentile of that arm's other seconds *and* moved by an amount that matters, and a recurring event only where it
//! is rare or unusual of its kind.

use std::collections::BTreeMap;

use super::figures::brief;
use super::measured::Measured;
use super::series::{Increase, increases};
use crate::measure::{Event, EventKind, HOST, HostFacts, HostSecond, RUNNER};
use crate::results::SecondRow;

/// Events of one kind in more than this share of the seconds are everyday.
const EVERYDAY: f64 = 0.05;
/// An event this many seconds before an episode still coincides with it.
const BEFORE_S: f64 = 1.0;
/// Fewest other seconds, or events of a kind, that give a 99th percentile.
const FEWEST_FOR_P99: usize = 30;

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

/// Something that happened at a time.
struct Moment {
    from_s: f64,
    to_s: f64,
    text: String,
}

/// A service's CPU time by interval.
struct ServiceCpu<'r> {
    service: &'r str,
    increases: Vec<Increase>,
    total_s: f64,
    total_cpu_s: f64,
}

/// What is known about the seconds of one run.
pub(super) struct Surroundings<'r> {
    rows: &'r [SecondRow],
    gauges: Vec<Gauge>,
    names: BTreeMap<u64, &'r HostFacts>,
    moments: Vec<Moment>,
    longest_s: f64,
    cpu: Vec<ServiceCpu<'r>>,
    logs: Vec<(&'r str, &'r str, Vec<Increase>)>,
}

impl<'r> Surroundings<'r> {
    /// `inside` tells whether a second belongs to an episode: what is usual is taken from the others.
    pub(super) fn of(measured: &Measured<'r>, inside: impl Fn(u64) -> bool) -> Self {
        let trial = measured.trial;
        let outside: Vec<&SecondRow> = trial
            .seconds
            .iter()
            .filter(|row| !inside(row.at_s))
            .collect();
        let anything_bad = outside.len() < trial.seconds.len();
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
                GAUGES.iter().filter_map(|w| gauge(w, &outside)).collect()
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
        let start = self.rows.partition_point(|row| row.at_s < from);
        let (second, most) = self.rows[start..]
            .iter()
            .take_while(|row| row.at_s < to)
            .filter_map(|row| Some((row.at_s, (gauge.value)(row)?)))
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
            let named = self.names.get(&second).or_else(|| {
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

fn cores(facts: &HostFacts) -> f64 {
    facts.others.iter().map(|p| p.cores).sum()
}

fn gauge(watched: &Watched, outside: &[&SecondRow]) -> Option<Gauge> {
    let &(what, unit, value, matters) = watched;
    let mut values: Vec<f64> = outside.iter().filter_map(|row| value(row)).collect();
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

/// The order statistic at `q`.
fn nth(values: &mut [f64], q: f64) -> f64 {
    let index = ((values.len() as f64 * q).ceil() as usize)
        .saturating_sub(1)
        .min(values.len() - 1);
    *values.select_nth_unstable_by(index, f64::total_cmp).1
}

/// Events worth naming, everyday ones left out.
fn moments(events: &[Event], seconds: f64) -> Vec<Moment> {
    let measured = |e: &&Event| e.at_s >= -BEFORE_S && e.at_s <= seconds;
    let mut prunes: Vec<f64> = Vec::new();
    let mut counts: BTreeMap<(&str, &str), usize> = BTreeMap::new();
    let mut actions = 0usize;
    for event in events.iter().filter(measured) {
        match &event.kind {
            EventKind::Prune { ms, .. } => prunes.push(*ms),
            EventKind::Server { service, what, .. } => {
                *counts.entry((service, what)).or_default() += 1;
            }
            EventKind::Action { .. } => actions += 1,
            _ => {}
        }
    }
    let everyday = |count: usize| count as f64 > EVERYDAY * seconds.max(1.0);
    let prunes_are_everyday = everyday(prunes.len());
    let long_prune = (prunes.len() >= FEWEST_FOR_P99).then(|| nth(&mut prunes, 0.99));
    let mut all = Vec::new();
    for event in events.iter().filter(measured) {
        let at_s = event.at_s;
        let mut push = |to_s: f64, text: String| {
            all.push(Moment {
                from_s: at_s,
                to_s: to_s.max(at_s),
                text,
            });
        };
        match &event.kind {
            // A prune is told when it is done.
            EventKind::Prune {
                table, ms, error, ..
            } => {
                let text = match (long_prune, error) {
                    (_, Some(_)) => format!("a prune of {table} that failed"),
                    (Some(usual), None) if *ms > usual => format!(
                        "a prune of {table} that took {} ms (99 % of the prunes took at most {})",
                        brief(*ms),
                        brief(usual)
                    ),
                    (None, None) if !prunes_are_everyday => {
                        format!("a prune of {table} that took {} ms", brief(*ms))
                    }
                    _ => continue,
                };
                push(at_s + ms / 1e3, text);
            }
            EventKind::Server {
                service,
                what,
                detail,
            } => {
                let count = counts.get(&(service.as_str(), what.as_str()));
                if !everyday(count.copied().unwrap_or_default()) {
                    push(at_s, told(&format!("{service}: {what}"), detail));
                }
            }
            // An action every second or two coincides with everything.
            EventKind::Action { name, ended_s, .. } if actions as f64 <= 0.5 * seconds => {
                push(*ended_s, format!("the action \"{name}\""));
            }
            EventKind::ServiceExited {
                service, status, ..
            } => push(at_s, format!("{service} ended ({status})")),
            EventKind::ServiceStarted {
                service,
                epoch,
                ready_ms,
                ..
            } if *epoch > 0 => push(
                at_s,
                format!(
                    "{service} was started again (ready after {} ms)",
                    brief(*ready_ms)
                ),
            ),
            _ => {}
        }
    }
    all
}

fn told(head: &str, detail: &str) -> String {
    if detail.is_empty() {
        head.to_owned()
    } else {
        format!("{head} ({detail})")
    }
}

impl<'r> ServiceCpu<'r> {
    fn of(
        service: &'r str,
        user: &crate::results::SampleSeries,
        system: Option<&crate::results::SampleSeries>,
        seconds: f64,
    ) -> Self {
        let mut increases_: Vec<Increase> = increases(user, seconds).collect();
        if let Some(system) = system {
            let mut system = increases(system, seconds).peekable();
            for one in &mut increases_ {
                while system.next_if(|s| s.to_s < one.to_s).is_some() {}
                if let Some(s) = system.next_if(|s| s.to_s == one.to_s) {
                    one.by += s.by;
                }
            }
        }
        let total_s = increases_.iter().map(|i| i.to_s - i.from_s).sum();
        let total_cpu_s = increases_.iter().map(|i| i.by).sum();
        Self {
            service,
            increases: increases_,
            total_s,
            total_cpu_s,
        }
    }

    /// Its CPU rate inside against outside, where the samples are close enough to tell.
    fn told(&self, from_s: f64, to_s: f64) -> Option<String> {
        let (inside_cpu_s, inside_s) = within(&self.increases, from_s, to_s)?;
        let outside_s = self.total_s - inside_s;
        if outside_s <= 0.0 || inside_s <= 0.0 {
            return None;
        }
        let inside = inside_cpu_s / inside_s;
        let outside = (self.total_cpu_s - inside_cpu_s).max(0.0) / outside_s;
        let stalled = outside >= 0.05 && inside < 0.1 * outside;
        Some(format!(
            "{} used {} cores inside, {} outside{}",
            self.service,
            brief(inside),
            brief(outside),
            if stalled { ": it stood still" } else { "" }
        ))
    }
}

/// What of a counter's increase falls into a time, and how much of that time was seen; `None` when the readings are too far
/// apart to tell.
fn within(all: &[Increase], from_s: f64, to_s: f64) -> Option<(f64, f64)> {
    let start = all.partition_point(|i| i.to_s <= from_s);
    let (mut by, mut seen) = (0.0, 0.0);
    for one in all[start..].iter().take_while(|i| i.from_s < to_s) {
        let length = one.to_s - one.from_s;
        if length > 2.0 * (to_s - from_s) {
            return None;
        }
        let part = one.to_s.min(to_s) - one.from_s.max(from_s);
        by += one.by * part / length;
        seen += part;
    }
    (seen > 0.5 * (to_s - from_s)).then_some((by, seen))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn readings_too_far_apart_tell_nothing_about_an_episode() {
        let minute = [Increase {
            from_s: 0.0,
            to_s: 60.0,
            by: 30.0,
        }];
        assert_eq!(within(&minute, 10.0, 13.0), None);
        assert_eq!(within(&minute, 0.0, 60.0), Some((30.0, 60.0)));
        let seconds: Vec<Increase> = (0..10)
            .map(|i| Increase {
                from_s: f64::from(i),
                to_s: f64::from(i) + 1.0,
                by: if i == 4 { 0.0 } else { 1.0 },
            })
            .collect();
        assert_eq!(within(&seconds, 4.0, 5.0), Some((0.0, 1.0)));
        assert_eq!(within(&seconds, 20.0, 22.0), None);
    }

    fn event(at_s: f64, kind: EventKind) -> Event {
        Event {
            at_s,
            wall: String::new(),
            kind,
        }
    }

    fn prune(at_s: f64, ms: f64) -> Event {
        event(
            at_s,
            EventKind::Prune {
                table: "jobs".into(),
                rows: 1,
                ms,
                error: None,
            },
        )
    }

    #[test]
    fn a_prune_each_second_is_named_only_when_it_was_long() {
        let mut events: Vec<Event> = (0..120).map(|i| prune(f64::from(i), 10.0)).collect();
        assert!(moments(&events, 120.0).is_empty());
        events[60] = prune(60.0, 900.0);
        let found = moments(&events, 120.0);
        assert_eq!(found.len(), 1);
        assert!(found[0].text.contains("900 ms"), "{}", found[0].text);
        // Two in an hour are rare enough to be named as they are.
        assert_eq!(
            moments(&[prune(5.0, 10.0), prune(1_800.0, 9.0)], 3_600.0).len(),
            2
        );
    }

    #[test]
    fn a_rare_checkpoint_is_named_and_an_everyday_autovacuum_is_not() {
        let server = |at_s: f64, what: &str| {
            event(
                at_s,
                EventKind::Server {
                    service: "db".into(),
                    what: what.into(),
                    detail: String::new(),
                },
            )
        };
        let mut events: Vec<Event> = (0..24)
            .map(|i| server(f64::from(i) * 5.0, "autovacuum"))
            .collect();
        events.push(server(50.0, "checkpoint"));
        let found = moments(&events, 120.0);
        assert_eq!(found.len(), 1);
        assert_eq!(found[0].text, "db: checkpoint");
    }
}
