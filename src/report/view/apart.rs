//! What was measured apart from the pairs: the saturation probe and counted calls, as sentences and tables.

use super::{Kind, Table};
use crate::analysis::Summary;
use crate::analysis::summary::{Bound, MicroSummary, ProbeLevel};
use crate::experiment::Probe;
use crate::report::words;

/// The probe's verdict and how it was made, a sentence each; empty when nothing was probed.
pub(super) fn saturation(summary: &Summary) -> Vec<String> {
    let Some(probe) = &summary.probe else {
        return Vec::new();
    };
    let mut sentences = vec![format!("Verdict: {}.", probe.verdict)];
    if let Some(why) = &probe.not_whole {
        sentences.push(format!("Not whole, so no figure: {why}."));
    }
    if let Some(found) = &probe.found {
        if let Some(usl) = &found.usl {
            let peak = match usl.peak_clients {
                Some(peak) => format!("a peak at {} clients", words::number(peak)),
                None => "no peak among the levels".to_owned(),
            };
            let falls = match usl.retrograde {
                true => "throughput falls beyond it",
                false => "a fall of throughput is not shown",
            };
            sentences.push(format!(
                "The Universal Scalability Law, beside the verdict and not part of it: contention {}, coherency {}, {peak}; {falls} (it explains {} of the variance).",
                words::number(usl.sigma),
                words::number(usl.kappa),
                words::percent(usl.r2)
            ));
        }
        if let Some(change) = found.repeat_change {
            sentences.push(format!(
                "The first level, run once more at the end, changed by {}.",
                words::change(change)
            ));
        }
    }
    let mut ran: Vec<&ProbeLevel> = probe.levels.iter().collect();
    ran.sort_by_key(|level| level.place);
    let order: Vec<String> = ran.iter().map(|level| level.clients.to_string()).collect();
    if !order.is_empty() {
        sentences.push(format!(
            "Measured after the pairs on a deployment of the {} of its own; levels ran in the order {}.",
            Probe::ARM,
            order.join(", ")
        ));
    }
    sentences
}

/// The levels.
pub(super) fn probe(summary: &Summary) -> Option<Table> {
    let probe = summary.probe.as_ref()?;
    let mut columns: Vec<(String, Kind)> = [
        "clients", "ok/s", "p50 ms", "p95 ms", "p99 ms", "max ms", "sent", "failed", "cut",
    ]
    .map(|title| (title.to_owned(), Kind::Number))
    .to_vec();
    let services = probe.levels.first().map_or(&[][..], |l| &l.services);
    for used in services {
        columns.push((format!("{} cores", used.service), Kind::Number));
        columns.push((format!("{} MiB", used.service), Kind::Number));
    }
    columns.push(("driver".to_owned(), Kind::Text));
    let borrowed: Vec<(&str, Kind)> = columns.iter().map(|(t, k)| (t.as_str(), *k)).collect();
    let mut table = Table::new("Levels of the saturation probe", &borrowed);
    for level in &probe.levels {
        let mut row = vec![
            match level.repeated {
                true => format!("{} (once more)", level.clients),
                false => level.clients.to_string(),
            },
            words::number(level.rate),
            bound(level.p50),
            bound(level.p95),
            bound(level.p99),
            maybe(level.max_ms),
            words::count(level.sent),
            words::count(level.failed),
            words::count(level.cut),
        ];
        for used in &level.services {
            row.push(maybe(used.cpu_cores));
            row.push(maybe(used.memory_mib));
        }
        row.push(match level.driver_limits.is_empty() {
            true => format!("{} of a core", words::percent(level.driver_share)),
            false => format!("may be the limit: {}", level.driver_limits.join("; ")),
        });
        table.rows.push(row);
    }
    table.filled()
}

fn bound(value: Option<Bound>) -> String {
    match value {
        Some(Bound {
            ms,
            at_least: false,
        }) => words::number(ms),
        Some(Bound { ms, .. }) => format!("at least {}", words::number(ms)),
        None => "n too small".to_owned(),
    }
}

fn maybe(value: Option<f64>) -> String {
    value.map_or_else(|| words::NOT_OBSERVED.to_owned(), words::number)
}

/// Counted calls.
pub(super) fn micro(summary: &Summary) -> Option<Table> {
    let mut table = Table::new(
        "Counted calls, their empty loop subtracted",
        &[
            ("call", Kind::Text),
            ("ns a call", Kind::Number),
            ("95 % interval", Kind::Text),
            ("rounds from, to", Kind::Text),
            ("calls a second", Kind::Text),
            ("loop, ns", Kind::Number),
        ],
    );
    let mut notes = Vec::new();
    for one in &summary.micro {
        table.rows.push(vec![
            one.name.clone(),
            maybe(one.ns_per_call),
            pair(one.interval),
            pair(one.range),
            rate(one),
            maybe(one.baseline_ns),
        ]);
        if let Some(why) = &one.not_whole {
            notes.push(format!("{} is not whole: {why}.", one.name));
        }
    }
    table.note = (!notes.is_empty()).then(|| notes.join(" "));
    table.filled()
}

/// The rate, never without n beside it.
fn rate(one: &MicroSummary) -> String {
    let n = format!(
        "n = {} calls in {} rounds",
        words::count(one.calls),
        one.rounds
    );
    match one.per_second {
        Some(rate) => format!("{} ({n})", words::number(rate)),
        None => format!("not told apart from the loop ({n})"),
    }
}

fn pair(ends: Option<[f64; 2]>) -> String {
    ends.map_or_else(
        || words::NOT_OBSERVED.to_owned(),
        |[low, high]| format!("{} to {}", words::number(low), words::number(high)),
    )
}
