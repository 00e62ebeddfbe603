//! The report: a summary as Markdown, HTML, pictures, JUnit and JSON.
//!
//! Pure: a [`Summary`] in, texts out; the caller writes files. This room must never compute a figure, and never say more
//! than a verdict does.

use anyhow::{Context, Result};
use serde::{Deserialize, Serialize};

mod charts;
mod junit;
mod template;
mod text;
mod view;
mod words;

pub use charts::{Chart, charts};
pub use junit::junit;
pub use template::TemplateSource;
pub use view::{View, view};

use crate::analysis::Summary;

/// A run of this experiment that was kept, as the report lists it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct KeptRun {
    /// Name of its folder.
    pub id: String,
    /// Start in UTC.
    pub started: String,
    /// `complete`, `interrupted`, `failed`, `unfinished`.
    pub ended: String,
    /// Whether it is valid; absent when it was never judged.
    pub valid: Option<bool>,
    /// Its verdict in one line.
    pub result: String,
    /// Whether it was shortened.
    pub smoke: bool,
}

/// A format of the report.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Format {
    /// `report.md` and its pictures.
    Md,
    /// `report.html`: one file, pictures inside.
    Html,
    /// `report.json`: what templates get.
    Json,
    /// `junit.xml`: a case a criterion.
    Junit,
    /// `github-summary.md`: short, for a job's page.
    GithubSummary,
}

impl Format {
    /// Every format.
    pub const ALL: [Format; 5] = [
        Format::Md,
        Format::Html,
        Format::Json,
        Format::Junit,
        Format::GithubSummary,
    ];

    /// As the command line writes it.
    pub fn as_str(self) -> &'static str {
        match self {
            Format::Md => "md",
            Format::Html => "html",
            Format::Json => "json",
            Format::Junit => "junit",
            Format::GithubSummary => "github-summary",
        }
    }

    /// The file that it makes, below the run's folder.
    pub fn file(self) -> &'static str {
        match self {
            Format::Md => "report.md",
            Format::Html => "report.html",
            Format::Json => "report.json",
            Format::Junit => "junit.xml",
            Format::GithubSummary => "github-summary.md",
        }
    }
}

/// The head of a long text, on one line, with a mark where it is cut: for lists that have room for a glance.
pub fn glance(text: &str) -> String {
    words::glance(text, 160)
}

/// A text from outside for a terminal: on one line, hidden and steering characters made visible; its indent stays.
pub fn plain(line: &str) -> String {
    let indent = line.len() - line.trim_start_matches(' ').len();
    format!("{}{}", &line[..indent], text::visible(line))
}

/// Where the list of kept runs is written, so that the same report can be made again when there are more runs.
pub const KEPT_FILE: &str = "runs.json";

/// The report as Markdown; its pictures are those of [`charts`].
///
/// # Errors
/// When a template of `templates` is wrong; the text names its file and line.
pub fn markdown(summary: &Summary, kept: &[KeptRun], templates: &TemplateSource) -> Result<String> {
    templates.markdown(&view(summary, kept))
}

/// The report as one HTML file without any reference to another.
///
/// # Errors
/// When a template of `templates` is wrong; the text names its file and line.
pub fn html(summary: &Summary, kept: &[KeptRun], templates: &TemplateSource) -> Result<String> {
    templates.html(&view(summary, kept))
}

/// A short summary for a job's page.
///
/// # Errors
/// When a template of `templates` is wrong; the text names its file and line.
pub fn github_summary(
    summary: &Summary,
    kept: &[KeptRun],
    templates: &TemplateSource,
) -> Result<String> {
    templates.github_summary(&view(summary, kept))
}

/// What templates get, as JSON: ready-made strings. The figures themselves are in summary.json.
///
/// # Errors
/// When the view can't be serialised.
pub fn json(summary: &Summary, kept: &[KeptRun]) -> Result<String> {
    let mut text =
        serde_json::to_string_pretty(&view(summary, kept)).context("writing the view as JSON")?;
    text.push('\n');
    Ok(text)
}

/// Files of a report: path below the run's folder and content, [`KEPT_FILE`] always among them.
///
/// # Errors
/// When a template of `templates` is wrong; the text names its file and line.
pub fn render(
    summary: &Summary,
    kept: &[KeptRun],
    formats: &[Format],
    templates: &TemplateSource,
) -> Result<Vec<(String, Vec<u8>)>> {
    let view = view(summary, kept);
    let mut runs = serde_json::to_string_pretty(kept).context("writing the list of kept runs")?;
    runs.push('\n');
    let mut files = vec![(KEPT_FILE.to_owned(), runs.into_bytes())];
    for format in formats {
        let text = match format {
            Format::Md => {
                for chart in view.charts.values() {
                    files.push((chart.file.clone(), chart.svg.clone().into_bytes()));
                }
                templates.markdown(&view)?
            }
            Format::Html => templates.html(&view)?,
            Format::Json => json(summary, kept)?,
            Format::Junit => junit(summary),
            Format::GithubSummary => templates.github_summary(&view)?,
        };
        files.push((format.file().to_owned(), text.into_bytes()));
    }
    Ok(files)
}
