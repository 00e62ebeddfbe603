//! Pictures of a run, drawn from the plots of a summary: nothing is computed but places on a canvas.

use serde::Serialize;

mod latency;
mod pairs;
mod probe;
mod sampled;
mod svg;
mod throughput;

pub use svg::STYLE;

use crate::analysis::Summary;
use crate::analysis::summary::ArmSummary;
use crate::name::Arm;

/// One picture.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Chart {
    /// Its name: `throughput`.
    pub name: String,
    /// Path below the run's folder: `charts/throughput.svg`.
    pub file: String,
    /// Its title.
    pub title: String,
    /// What it shows, for those who don't see it.
    pub alt: String,
    /// The picture as a file of its own.
    #[serde(skip)]
    pub svg: String,
    /// The picture for embedding in a page that brings the style.
    pub inline: String,
}

impl Chart {
    fn new(name: &str, title: &str, alt: String, canvas: svg::Canvas) -> Self {
        let (svg, inline) = canvas.finish(name, title, &alt);
        Chart {
            name: name.to_owned(),
            file: format!("charts/{name}.svg"),
            title: title.to_owned(),
            alt,
            svg,
            inline,
        }
    }
}

/// Every picture that the summary has data for.
pub fn charts(summary: &Summary) -> Vec<Chart> {
    [
        throughput::throughput(summary),
        latency::latency(summary),
        latency::histogram(summary),
        sampled::memory(summary),
        sampled::rows(summary),
        pairs::pairs(summary),
        probe::probe(summary),
    ]
    .into_iter()
    .flatten()
    .collect()
}

/// End of an arm's measured time in seconds, as far as it was seen.
fn end(arm: &ArmSummary) -> f64 {
    let last = arm.windows.last().map_or(0.0, |window| window.to_s);
    last.max(arm.plot.throughput.len() as f64 * arm.plot.bin_s)
}

/// Class of an arm's line.
fn class(arm: Arm) -> &'static str {
    match arm {
        Arm::Treatment => "t",
        Arm::Control => "c",
    }
}

/// `treatment (pruning.enabled = false)`; the arm alone where nothing differs or the value is too long to stand in a picture.
fn arm_label(summary: &Summary, arm: Arm) -> String {
    /// Two of them stand side by side in 700 px.
    const MOST: usize = 44;
    let difference = &summary.difference;
    let (Some(variable), Some(value)) = (&difference.variable, difference.values.get(arm)) else {
        return arm.to_string();
    };
    let last = variable.rsplit('.').next().unwrap_or(variable);
    [variable.as_str(), last]
        .map(|name| super::text::visible(&format!("{arm} ({name} = {value})")))
        .into_iter()
        .find(|label| label.chars().count() <= MOST)
        .unwrap_or_else(|| arm.to_string())
}
