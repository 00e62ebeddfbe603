//! A saturation probe: throughput over clients, and what more clients did to latency below it.

use super::Chart;
use super::svg::{Anchor, Axis, Canvas, Panel};
use crate::analysis::Summary;
use crate::analysis::summary::{Bound, ProbeLevel, ProbeSummary};
use crate::report::words;

const HEIGHT: f64 = 180.0;
/// Room at both ends of the clients' axis, in doublings.
const ROOM: f64 = 0.3;

pub(super) fn probe(summary: &Summary) -> Option<Chart> {
    let probe = summary.probe.as_ref()?;
    let first: Vec<&ProbeLevel> = probe.levels.iter().filter(|l| !l.repeated).collect();
    if first.len() < 2 {
        return None;
    }
    let title = "Throughput and latency by clients";
    let mut canvas = Canvas::new(64.0 + HEIGHT + 66.0 + HEIGHT + 46.0, title);
    let place = |level: &ProbeLevel| f64::from(level.clients.max(1)).log2();
    let low = first.iter().map(|l| place(l)).fold(f64::INFINITY, f64::min);
    let high = first.iter().map(|l| place(l)).fold(0.0, f64::max);
    let x = Axis::exact(low - ROOM, high + ROOM);
    let fastest = probe.levels.iter().map(|l| l.rate).fold(0.0, f64::max);
    let rates = Panel::wide(64.0, HEIGHT, x, Axis::from_zero(fastest));
    rates.draw_y(&mut canvas, "ok requests a second");
    let latencies = first.iter().flat_map(|l| [l.p50, l.p99]).flatten();
    // Between the lowest and the highest level lie orders of magnitude. Without any latency there is an empty scale.
    let scale = Axis::decades(latencies.map(|bound| bound.ms)).unwrap_or(Axis::exact(0.0, 1.0));
    let times = Panel::wide(rates.bottom() + 66.0, HEIGHT, x, scale);
    times.draw_y(&mut canvas, "latency in ms (log.)");
    for panel in [&rates, &times] {
        panel.baseline(&mut canvas);
        for level in &first {
            panel.x_tick(&mut canvas, place(level), &level.clients.to_string());
        }
    }
    times.x_title(
        &mut canvas,
        "closed-loop clients (each doubling as wide as the last)",
    );
    mark_knee(&mut canvas, probe, &rates, &times);
    canvas.path(
        first.iter().map(|l| Some(rates.at(place(l), l.rate))),
        "c solid",
    );
    for level in &probe.levels {
        // Red: the rate may be the driver's own.
        let class = match level.driver_limits.is_empty() {
            true => "cd",
            false => "bad",
        };
        let radius = if level.repeated { 6.0 } else { 4.0 };
        canvas.dot(
            rates.at(place(level), level.rate),
            radius,
            class,
            Some(&tip(level)),
        );
    }
    let line = |bound: fn(&ProbeLevel) -> Option<Bound>| {
        first
            .iter()
            .map(move |level| bound(level).map(|bound| times.at(place(level), bound.ms)))
    };
    canvas.path(line(|level| level.p99), "c solid");
    canvas.path(line(|level| level.p50), "c");
    canvas.legend(
        190.0,
        times.top - 10.0,
        &[("c solid", "p99".to_owned()), ("c", "p50".to_owned())],
    );
    // A bound is no value: the requests beyond it have no latency.
    let bounds = first.iter().flat_map(|level| {
        [level.p50, level.p99]
            .into_iter()
            .flatten()
            .filter(|bound| bound.at_least)
            .map(move |bound| (times.at(place(level), bound.ms), bound.ms))
    });
    for ((at_x, at_y), ms) in bounds.collect::<Vec<_>>() {
        canvas.dot((at_x, at_y), 4.0, "bad", None);
        let label = format!("at least {} ms", words::number(ms));
        canvas.text(at_x - 8.0, at_y + 16.0, "label", Anchor::End, &label);
    }
    Some(Chart::new("probe", title, alt(probe, &first), canvas))
}

fn mark_knee(canvas: &mut Canvas, probe: &ProbeSummary, rates: &Panel, times: &Panel) {
    let found = probe.found.as_ref();
    let Some(knee) = found
        .filter(|found| !found.driver_was_the_limit)
        .and_then(|f| f.knee)
    else {
        return;
    };
    let x = rates.x(f64::from(knee.max(1)).log2());
    for panel in [rates, times] {
        canvas.line((x, panel.top), (x, panel.bottom()), "action");
    }
    canvas.text(
        x,
        rates.top - 4.0,
        "label",
        Anchor::Middle,
        &format!("knee: {knee} clients"),
    );
}

fn tip(level: &ProbeLevel) -> String {
    let again = if level.repeated { ", once more" } else { "" };
    format!(
        "{} clients{again}: {} ok requests a second, {} failed",
        level.clients,
        words::number(level.rate),
        words::count(level.failed)
    )
}

fn alt(probe: &ProbeSummary, first: &[&ProbeLevel]) -> String {
    let levels: Vec<String> = first
        .iter()
        .map(|level| format!("{} with {}", words::number(level.rate), level.clients))
        .collect();
    format!(
        "Ok requests a second by number of clients: {}. {}.",
        levels.join(", "),
        probe.verdict
    )
}
