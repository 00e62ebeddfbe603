//! Latency of both arms: over measured time, and as a histogram of the first against the last window.

use super::svg::{Anchor, Axis, Canvas, Panel};
use super::{Chart, arm_label, class};
use crate::analysis::Summary;
use crate::analysis::summary::{ArmSummary, Plot};
use crate::name::Arm;
use crate::report::view::{arm_figure, seen};

const PLOT_HEIGHT: f64 = 170.0;
const PANEL_STEP: f64 = 236.0;

/// A quantile's line: its name, its style, its points.
fn lines(plot: &Plot) -> [(&'static str, &'static str, &[Option<f64>]); 3] {
    [
        ("max", "thin dots", &plot.max),
        ("p99", "solid", &plot.p99),
        ("p50", "dash", &plot.p50),
    ]
}

/// p50, p99 and max over time: a panel an arm, on the same logarithmic scale.
pub(super) fn latency(summary: &Summary) -> Option<Chart> {
    let arms = seen(summary);
    let values = arms
        .iter()
        .flat_map(|(_, arm)| lines(&arm.plot))
        .flat_map(|(_, _, points)| points.iter().flatten().copied());
    let y = Axis::decades(values)?;
    let end = arms
        .iter()
        .map(|(_, arm)| super::end(arm))
        .fold(0.0, f64::max);
    let x = Axis::exact(0.0, end);
    let title = "Latency of both arms (logarithmic scale)";
    let mut canvas = Canvas::new(40.0 + PANEL_STEP * arms.len() as f64 + 20.0, title);
    for (i, (arm, seen)) in arms.iter().enumerate() {
        let top = 40.0 + PANEL_STEP * i as f64;
        let class = class(*arm);
        canvas.text(
            12.0,
            top + 8.0,
            "label",
            Anchor::Start,
            &arm_label(summary, *arm),
        );
        let styles: Vec<String> = lines(&seen.plot)
            .iter()
            .map(|(_, style, _)| format!("{class} {style}"))
            .collect();
        let entries: Vec<(&str, String)> = lines(&seen.plot)
            .iter()
            .zip(&styles)
            .map(|((name, _, _), style)| (style.as_str(), (*name).to_owned()))
            .collect();
        canvas.legend(440.0, top + 8.0, &entries);
        let panel = Panel::wide(top + 34.0, PLOT_HEIGHT, x, y);
        panel.draw_y(&mut canvas, "ms");
        panel.draw_time(&mut canvas, i + 1 == arms.len());
        for ((_, _, points), style) in lines(&seen.plot).iter().zip(&styles) {
            let bin = seen.plot.bin_s;
            canvas.path(
                points
                    .iter()
                    .enumerate()
                    .map(|(i, value)| value.map(|value| panel.at((i as f64 + 0.5) * bin, value))),
                style,
            );
        }
    }
    let mut alt =
        vec!["Latency in ms over measured time, logarithmic scale: p50, p99 and max.".to_owned()];
    for (arm, _) in &arms {
        alt.push(format!(
            "{}: p99 {} in the first window, {} in the last.",
            arm_label(summary, *arm),
            arm_figure(summary, *arm, "latency.p99_first", "ms"),
            arm_figure(summary, *arm, "latency.p99_last", "ms")
        ));
    }
    Some(Chart::new("latency", title, alt.join(" "), canvas))
}

/// Counts by latency in the first and the last window: a panel an arm, each with its own count axis.
pub(super) fn histogram(summary: &Summary) -> Option<Chart> {
    let arms: Vec<(Arm, &ArmSummary)> = seen(summary)
        .into_iter()
        .filter(|(_, arm)| {
            !arm.plot.first_histogram.is_empty() || !arm.plot.last_histogram.is_empty()
        })
        .collect();
    let bounds = arms
        .iter()
        .flat_map(|(_, arm)| {
            arm.plot
                .first_histogram
                .iter()
                .chain(&arm.plot.last_histogram)
        })
        .filter(|(_, count)| *count > 0)
        .map(|(bound, _)| *bound);
    let x = Axis::decades(bounds)?;
    let title = "Latency histogram: first window against last";
    let mut canvas = Canvas::new(40.0 + PANEL_STEP * arms.len() as f64 + 20.0, title);
    for (i, (arm, seen)) in arms.iter().enumerate() {
        let top = 40.0 + PANEL_STEP * i as f64;
        let class = class(*arm);
        let (first, last) = (format!("{class} dash"), format!("{class} solid"));
        canvas.text(
            12.0,
            top + 8.0,
            "label",
            Anchor::Start,
            &arm_label(summary, *arm),
        );
        canvas.legend(
            440.0,
            top + 8.0,
            &[
                (first.as_str(), "first window".to_owned()),
                (last.as_str(), "last window".to_owned()),
            ],
        );
        let plot = &seen.plot;
        let high = plot
            .first_histogram
            .iter()
            .chain(&plot.last_histogram)
            .map(|(_, count)| *count as f64)
            .fold(0.0, f64::max);
        let panel = Panel::wide(top + 34.0, PLOT_HEIGHT, x, Axis::from_zero(high));
        panel.draw_y(&mut canvas, "requests");
        if i + 1 == arms.len() {
            panel.draw_x(&mut canvas, "latency in ms (logarithmic scale)");
        } else {
            panel.draw_x(&mut canvas, "");
        }
        for (histogram, style) in [
            (&plot.first_histogram, &first),
            (&plot.last_histogram, &last),
        ] {
            canvas.path(
                histogram
                    .iter()
                    .map(|(bound, count)| Some(panel.at(*bound, *count as f64))),
                style,
            );
        }
    }
    let alt = "Number of requests by latency, logarithmic scale, in the first window and in the last window of each arm.";
    Some(Chart::new("histogram", title, alt.to_owned(), canvas))
}
