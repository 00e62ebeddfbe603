//! Pairs as a slope plot: a line a pair from the treatment's mean throughput to the control's.

use super::svg::{Anchor, Axis, Canvas, Panel, WIDTH};
use super::{Chart, arm_label};
use crate::analysis::Summary;
use crate::name::Arm;
use crate::report::words;

pub(super) fn pairs(summary: &Summary) -> Option<Chart> {
    let whole: Vec<(u32, f64, f64)> = summary
        .pairs
        .iter()
        .filter_map(|pair| Some((pair.pair, pair.mean.treatment?, pair.mean.control?)))
        .collect();
    if whole.len() < 2 {
        return None;
    }
    let high = whole.iter().map(|(_, t, c)| t.max(*c)).fold(0.0, f64::max);
    let low = whole.iter().map(|(_, t, c)| t.min(*c)).fold(high, f64::min);
    let title = "Mean throughput of each pair";
    let mut canvas = Canvas::new(360.0, title);
    let panel = Panel {
        left: 78.0,
        top: 64.0,
        width: WIDTH - 78.0 - 90.0,
        height: 250.0,
        x: Axis::exact(0.0, 1.0),
        y: Axis::around(low, high),
    };
    panel.draw_y(
        &mut canvas,
        "ok requests a second, whole arm (the axis does not start at zero)",
    );
    panel.baseline(&mut canvas);
    let (left, right) = (0.12, 0.88);
    for (x, arm) in [(left, Arm::Treatment), (right, Arm::Control)] {
        canvas.text(
            panel.x(x),
            panel.bottom() + 22.0,
            "label",
            Anchor::Middle,
            &arm_label(summary, arm),
        );
    }
    for (pair, treatment, control) in &whole {
        let (from, to) = (panel.at(left, *treatment), panel.at(right, *control));
        canvas.line(from, to, "neutral");
        let tip = |arm: Arm, value: f64| format!("pair {pair}, {arm}: {}", words::number(value));
        canvas.dot(from, 4.0, "td", Some(&tip(Arm::Treatment, *treatment)));
        canvas.dot(to, 4.0, "cd", Some(&tip(Arm::Control, *control)));
    }
    let alt: Vec<String> = whole
        .iter()
        .map(|(pair, t, c)| {
            format!(
                "pair {pair}: {} and {}",
                words::number(*t),
                words::number(*c)
            )
        })
        .collect();
    let alt = format!(
        "A line a pair from the treatment's mean throughput to the control's: {}.",
        alt.join("; ")
    );
    Some(Chart::new("pairs", title, alt, canvas))
}
