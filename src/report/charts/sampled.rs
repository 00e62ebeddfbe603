//! Pictures of sampled series: memory by its three instruments, and a table's rows against throughput.

use super::svg::{Anchor, Axis, Canvas, Panel};
use super::{Chart, arm_label, class};
use crate::analysis::Summary;
use crate::analysis::summary::Plot;
use crate::name::Arm;
use crate::report::view::seen;
use crate::report::{text, words};

/// The instruments of memory, with the style of each: never drawn on one line, never compared.
const INSTRUMENTS: [(&str, &str); 3] = [("rss", "solid"), ("pss", "dash"), ("cgroup", "dots")];
/// Panels that fit a picture.
const MOST_PANELS: usize = 6;
const PLOT_HEIGHT: f64 = 140.0;
const PANEL_STEP: f64 = 206.0;

/// Memory of each service, a panel a service, each instrument a line in each arm.
pub(super) fn memory(summary: &Summary) -> Option<Chart> {
    let arms = seen(summary);
    let mut services: Vec<&str> = Vec::new();
    for (_, arm) in &arms {
        for name in arm.plot.sampled.keys() {
            if let Some(service) = service_of_memory(name)
                && !services.contains(&service)
            {
                services.push(service);
            }
        }
    }
    services.sort_unstable();
    services.truncate(MOST_PANELS);
    if services.is_empty() {
        return None;
    }
    let end = arms
        .iter()
        .map(|(_, arm)| super::end(arm))
        .fold(0.0, f64::max);
    let title = "Memory by three instruments";
    let mut canvas = Canvas::new(64.0 + PANEL_STEP * services.len() as f64 + 20.0, title);
    let entries: Vec<(&str, String)> = arms
        .iter()
        .map(|(arm, _)| (colour(*arm), arm_label(summary, *arm)))
        .collect();
    canvas.legend(12.0, 46.0, &entries);
    let mut alt = vec!["Memory in MiB over measured time, a panel a service.".to_owned()];
    for (i, service) in services.iter().enumerate() {
        let top = 64.0 + PANEL_STEP * i as f64;
        let lines = memory_lines(&arms_plots(summary), service);
        let high = lines
            .iter()
            .flat_map(|line| line.points.iter().map(|(_, value)| *value))
            .fold(0.0, f64::max);
        let panel = Panel::wide(
            top + 34.0,
            PLOT_HEIGHT,
            Axis::exact(0.0, end),
            Axis::from_zero(high),
        );
        canvas.text(
            12.0,
            top + 8.0,
            "label",
            Anchor::Start,
            &text::visible_within(service, 40),
        );
        let names: Vec<(String, String)> = INSTRUMENTS
            .iter()
            .filter(|(instrument, _)| lines.iter().any(|line| line.instrument == *instrument))
            .map(|(instrument, style)| (format!("neutral {style}"), (*instrument).to_owned()))
            .collect();
        let legend: Vec<(&str, String)> = names
            .iter()
            .map(|(class, name)| (class.as_str(), name.clone()))
            .collect();
        canvas.legend(440.0, top + 8.0, &legend);
        panel.draw_y(&mut canvas, "MiB");
        panel.draw_time(&mut canvas, i + 1 == services.len());
        for line in &lines {
            let class = format!("{} {}", class(line.arm), line.style);
            canvas.path(
                line.points.iter().map(|(x, y)| Some(panel.at(*x, *y))),
                &class,
            );
            if let (Some((_, first)), Some((_, last))) = (line.points.first(), line.points.last()) {
                alt.push(format!(
                    "{service} {} in the {}: {} to {}.",
                    line.instrument,
                    line.arm,
                    words::in_unit(*first, "MiB"),
                    words::in_unit(*last, "MiB")
                ));
            }
        }
    }
    Some(Chart::new("memory", title, alt.join(" "), canvas))
}

/// Class of a legend's line that stands for the arm's colour alone.
fn colour(arm: Arm) -> &'static str {
    match arm {
        Arm::Treatment => "t solid",
        Arm::Control => "c solid",
    }
}

struct Line<'a> {
    arm: Arm,
    instrument: &'static str,
    style: &'static str,
    points: &'a [(f64, f64)],
}

fn arms_plots(summary: &Summary) -> Vec<(Arm, &Plot)> {
    seen(summary)
        .into_iter()
        .map(|(arm, seen)| (arm, &seen.plot))
        .collect()
}

fn memory_lines<'a>(plots: &[(Arm, &'a Plot)], service: &str) -> Vec<Line<'a>> {
    let mut lines = Vec::new();
    for (arm, plot) in plots {
        for (instrument, style) in INSTRUMENTS {
            if let Some(points) = plot
                .sampled
                .get(&format!("services.{service}.memory.{instrument}"))
                && !points.is_empty()
            {
                lines.push(Line {
                    arm: *arm,
                    instrument,
                    style,
                    points,
                });
            }
        }
    }
    lines
}

fn service_of_memory(name: &str) -> Option<&str> {
    let (service, instrument) = name.strip_prefix("services.")?.split_once(".memory.")?;
    INSTRUMENTS
        .iter()
        .any(|(known, _)| *known == instrument)
        .then_some(service)
}

/// Throughput against the rows of each table: does the one follow the other?
pub(super) fn rows(summary: &Summary) -> Option<Chart> {
    let plots = arms_plots(summary);
    let mut tables: Vec<&str> = Vec::new();
    for (_, plot) in &plots {
        for name in plot.sampled.keys() {
            if name.contains(".table.")
                && name.ends_with(".rows")
                && moves(&plots, name)
                && !tables.contains(&name.as_str())
            {
                tables.push(name);
            }
        }
    }
    tables.sort_unstable();
    tables.truncate(MOST_PANELS);
    let rate = plots
        .iter()
        .flat_map(|(_, plot)| plot.throughput.iter().copied())
        .fold(0.0, f64::max);
    if tables.is_empty() || rate <= 0.0 {
        return None;
    }
    let title = "Throughput against rows of each table";
    let step = PANEL_STEP + 30.0;
    let mut canvas = Canvas::new(64.0 + step * tables.len() as f64, title);
    let entries: Vec<(&str, String)> = plots
        .iter()
        .map(|(arm, _)| (dots(*arm), arm_label(summary, *arm)))
        .collect();
    canvas.legend_of_dots(12.0, 46.0, &entries);
    for (i, name) in tables.iter().enumerate() {
        let top = 64.0 + step * i as f64;
        let label = name.strip_prefix("services.").unwrap_or(name);
        let table = label.strip_suffix(".rows").unwrap_or(label);
        let label = format!("rows of {}", text::visible_within(table, 60));
        let high = plots
            .iter()
            .filter_map(|(_, plot)| plot.sampled.get(*name))
            .flat_map(|points| points.iter().map(|(_, rows)| *rows))
            .fold(0.0, f64::max);
        let panel = Panel::wide(
            top + 24.0,
            PLOT_HEIGHT,
            Axis::from_zero(high),
            Axis::from_zero(rate),
        );
        panel.draw_y(&mut canvas, "ok requests a second");
        panel.draw_x(&mut canvas, &label);
        for (arm, plot) in &plots {
            let class = dots(*arm);
            for (at, rows) in plot.sampled.get(*name).into_iter().flatten() {
                if let Some(rate) = rate_at(plot, *at) {
                    let tip = format!(
                        "{arm} at {}: {} rows, {} ok requests a second",
                        words::clock(*at),
                        words::number(*rows),
                        words::number(rate)
                    );
                    canvas.dot(panel.at(*rows, rate), 3.0, class, Some(&tip));
                }
            }
        }
    }
    let alt = format!(
        "Each dot is a sample: rows of the table to the right, ok requests a second upwards, both arms. Tables whose rows changed by a tenth or more: {}.",
        tables.join(", ")
    );
    Some(Chart::new("rows", title, alt, canvas))
}

/// Whether a table's rows changed by a tenth or more: others would be a column of dots that says nothing.
fn moves(plots: &[(Arm, &Plot)], name: &str) -> bool {
    let values = || {
        plots
            .iter()
            .filter_map(|(_, plot)| plot.sampled.get(name))
            .flat_map(|points| points.iter().map(|(_, rows)| *rows))
    };
    let high = values().fold(0.0, f64::max);
    let low = values().fold(high, f64::min);
    high > 0.0 && low <= 0.9 * high
}

/// Class of an arm's dots: filled for the treatment, open for the control.
fn dots(arm: Arm) -> &'static str {
    match arm {
        Arm::Treatment => "td",
        Arm::Control => "cd",
    }
}

/// Throughput of the bin in which a sample was taken.
fn rate_at(plot: &Plot, at: f64) -> Option<f64> {
    if at < 0.0 || plot.bin_s <= 0.0 {
        return None;
    }
    plot.throughput.get((at / plot.bin_s) as usize).copied()
}
