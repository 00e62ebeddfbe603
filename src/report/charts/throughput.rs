//! Throughput of both arms over measured time, with windows, actions, bad seconds and prunes.

use super::svg::{Anchor, Axis, Canvas, Panel};
use super::{Chart, arm_label, class};
use crate::analysis::Summary;
use crate::analysis::summary::{ArmSummary, Episode};
use crate::name::Arm;
use crate::report::view::{arm_figure, seen};
use crate::report::words;

const PLOT_HEIGHT: f64 = 240.0;
const STRIP_HEIGHT: f64 = 10.0;
const STRIP_STEP: f64 = 18.0;

pub(super) fn throughput(summary: &Summary) -> Option<Chart> {
    let arms = seen(summary);
    let high = arms
        .iter()
        .flat_map(|(_, arm)| arm.plot.throughput.iter().copied())
        .fold(0.0, f64::max);
    if arms.iter().all(|(_, arm)| arm.plot.throughput.is_empty()) {
        return None;
    }
    let end = arms
        .iter()
        .map(|(_, arm)| super::end(arm))
        .fold(0.0, f64::max);
    let strips: Vec<Strip> = arms
        .iter()
        .flat_map(|(arm, seen)| strips(*arm, seen))
        .collect();
    let height = 84.0 + PLOT_HEIGHT + 50.0 + STRIP_STEP * strips.len() as f64;
    let title = "Throughput of both arms";
    let mut canvas = Canvas::new(height, title);
    let panel = Panel::wide(
        84.0,
        PLOT_HEIGHT,
        Axis::exact(0.0, end),
        Axis::from_zero(high),
    );
    panel.draw_y(&mut canvas, "ok requests a second");
    panel.draw_time(&mut canvas, true);
    let entries: Vec<(&str, String)> = arms
        .iter()
        .map(|(arm, _)| (class(*arm), arm_label(summary, *arm)))
        .collect();
    canvas.legend(12.0, 46.0, &entries);
    for (arm, seen) in &arms {
        for (at, name) in &seen.plot.actions {
            let x = panel.x(*at);
            canvas.line((x, panel.top), (x, panel.bottom()), "action");
            canvas.rect(
                (x - 2.0, panel.top),
                (4.0, panel.height),
                "hit",
                Some(&format!("{name} in the {arm} at {}", words::clock(*at))),
            );
        }
    }
    for (arm, seen) in &arms {
        draw(&mut canvas, &panel, *arm, seen);
    }
    for (i, strip) in strips.iter().enumerate() {
        let top = panel.bottom() + 48.0 + STRIP_STEP * i as f64;
        strip.draw(&mut canvas, &panel, top);
    }
    Some(Chart::new("throughput", title, alt(summary, &arms), canvas))
}

fn draw(canvas: &mut Canvas, panel: &Panel, arm: Arm, seen: &ArmSummary) {
    let class = class(arm);
    let plot = &seen.plot;
    canvas.path(
        plot.throughput
            .iter()
            .enumerate()
            .map(|(i, value)| Some(panel.at((i as f64 + 0.5) * plot.bin_s, *value))),
        &format!("{class} thin solid"),
    );
    for window in &seen.windows {
        let y = panel.y(window.throughput);
        let (from, to) = (panel.x(window.from_s), panel.x(window.to_s));
        canvas.line((from, y), (to, y), &format!("{class} wide"));
        canvas.rect(
            (from, y - 6.0),
            (to - from, 12.0),
            "hit",
            Some(&format!(
                "{arm}, {} to {}: {} ok requests a second, {} failed",
                words::clock(window.from_s),
                words::clock(window.to_s),
                words::number(window.throughput),
                words::count(window.failed)
            )),
        );
    }
    // The windows' middles joined, so that the arms differ in dash and not in colour alone.
    canvas.path(
        seen.windows
            .iter()
            .map(|window| Some(panel.at((window.from_s + window.to_s) / 2.0, window.throughput))),
        class,
    );
}

/// A row of marks below the plot.
enum Strip<'a> {
    Bad(Arm, &'a ArmSummary),
    Prunes(Arm, &'a ArmSummary),
    Actions(Arm, &'a ArmSummary),
}

fn strips(arm: Arm, seen: &ArmSummary) -> Vec<Strip<'_>> {
    let mut strips = Vec::new();
    if !seen.episodes.is_empty() {
        strips.push(Strip::Bad(arm, seen));
    }
    if !seen.plot.prunes.is_empty() {
        strips.push(Strip::Prunes(arm, seen));
    }
    if !seen.plot.actions.is_empty() {
        strips.push(Strip::Actions(arm, seen));
    }
    strips
}

impl Strip<'_> {
    fn draw(&self, canvas: &mut Canvas, panel: &Panel, top: f64) {
        canvas.rect(
            (panel.left, top),
            (panel.width, STRIP_HEIGHT),
            "strip",
            None,
        );
        let ticks = |canvas: &mut Canvas, times: &mut dyn Iterator<Item = f64>, class: &str| {
            for at in times {
                let x = panel.x(at);
                canvas.line((x, top + 1.0), (x, top + STRIP_HEIGHT - 1.0), class);
            }
        };
        let label = match self {
            Strip::Bad(arm, seen) => {
                for (from, to, n) in joined(panel, &seen.episodes) {
                    let x = panel.x(from);
                    let many = match n {
                        1 => String::new(),
                        n => format!(", {n} episodes"),
                    };
                    let tip = format!("{} to {}{many}", words::clock(from), words::clock(to));
                    let width = (panel.x(to) - x).max(2.0);
                    canvas.rect((x, top), (width, STRIP_HEIGHT), "bad", Some(&tip));
                }
                format!("bad, {}", short(*arm))
            }
            Strip::Prunes(arm, seen) => {
                ticks(canvas, &mut seen.plot.prunes.iter().copied(), "prune");
                format!("prunes, {}", short(*arm))
            }
            Strip::Actions(arm, seen) => {
                ticks(
                    canvas,
                    &mut seen.plot.actions.iter().map(|(at, _)| *at),
                    "mark",
                );
                format!("acts, {}", short(*arm))
            }
        };
        canvas.text(panel.left - 6.0, top + 9.0, "tick", Anchor::End, &label);
    }
}

/// Episodes that would lie on one another, drawn as one: start, end, how many. A picture has some hundred places for
/// what may be thousands.
fn joined(panel: &Panel, episodes: &[Episode]) -> Vec<(f64, f64, usize)> {
    /// Less than this between two is no gap that one could see, in px.
    const GAP: f64 = 0.5;
    let mut sorted: Vec<(f64, f64)> = episodes
        .iter()
        .map(|episode| (episode.from_s as f64, episode.to_s as f64))
        .collect();
    sorted.sort_by(|a, b| a.0.total_cmp(&b.0));
    let mut drawn: Vec<(f64, f64, usize)> = Vec::new();
    for (from, to) in sorted {
        match drawn.last_mut() {
            Some((start, end, n))
                if panel.x(from) - panel.x(*end).max(panel.x(*start) + 2.0) < GAP =>
            {
                *end = end.max(to);
                *n += 1;
            }
            _ => drawn.push((from, to, 1)),
        }
    }
    drawn
}

fn short(arm: Arm) -> &'static str {
    match arm {
        Arm::Treatment => "T",
        Arm::Control => "C",
    }
}

fn alt(summary: &Summary, arms: &[(Arm, &ArmSummary)]) -> String {
    let mut parts = vec!["Line chart of ok requests a second over measured time.".to_owned()];
    for (arm, seen) in arms {
        parts.push(format!(
            "{}: first window {}, last window {}; episodes of bad seconds: {}.",
            arm_label(summary, *arm),
            arm_figure(summary, *arm, "throughput.first", ""),
            arm_figure(summary, *arm, "throughput.last", ""),
            seen.episodes.len()
        ));
    }
    parts.join(" ")
}
