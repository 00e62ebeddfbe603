//! `analyze` and `report`: a run's folder, judged and rendered again.

use std::path::Path;

use anyhow::Result;

use super::arguments::ReportFormat;
use super::exit::Exit;
use super::output::print;
use crate::analysis::Summary;
use crate::archive;
use crate::report::{self, Format, TemplateSource};
use crate::results::RunFolder;

/// Judges a run again.
///
/// # Errors
/// When the folder can't be read, or the summary can't be written.
pub(super) fn analyze(run: &Path) -> Result<Exit> {
    let folder = RunFolder::open(run)?;
    let summary = archive::analyze(&folder)?;
    print(&short(&summary, &run.display().to_string()))?;
    Ok(Exit::from_code(summary.exit_code))
}

/// Renders a run again.
///
/// # Errors
/// When the folder can't be read, or a template is wrong.
pub(super) fn report(
    run: &Path,
    template: Option<&Path>,
    formats: &[ReportFormat],
) -> Result<Exit> {
    let folder = RunFolder::open(run)?;
    let formats: Vec<Format> = formats.iter().map(|format| format.format()).collect();
    let summary = judge_and_render(&folder, &formats, template)?;
    print(&short(&summary, &run.display().to_string()))?;
    Ok(Exit::from_code(summary.exit_code))
}

/// Judges a folder and renders its report.
///
/// # Errors
/// When the folder can't be read, or a template is wrong.
pub(super) fn judge_and_render(
    folder: &RunFolder,
    formats: &[Format],
    template: Option<&Path>,
) -> Result<Summary> {
    let templates = match template {
        Some(dir) => TemplateSource::folder(dir)?,
        None => TemplateSource::built_in(),
    };
    archive::report(folder, formats, &templates)
}

/// What a person wants to know at the end: the report's own words in short, and where the rest is.
pub(super) fn short(summary: &Summary, folder: &str) -> String {
    let view = report::view(summary, &[]);
    let mut lines = vec![String::new(), view.title];
    lines.extend(view.banner);
    lines.push(String::new());
    lines.extend(view.finding);
    for (heading, statements) in [
        ("Supports:", &view.evidence.supports),
        ("Does not support:", &view.evidence.does_not_support),
    ] {
        lines.push(format!("\n{heading}"));
        lines.extend(
            statements
                .iter()
                .map(|statement| format!("  - {}", statement.text)),
        );
    }
    let report = format!("{folder}/{}", Format::Md.file());
    lines.push(if Path::new(&report).is_file() {
        format!("\nreport: {report}")
    } else {
        format!("\nno report yet: ceteris report {folder}")
    });
    lines.push(view.exit);
    // Names and texts come from outside; a terminal must not obey them.
    let mut text: String = lines
        .join("\n")
        .lines()
        .map(report::plain)
        .collect::<Vec<_>>()
        .join("\n");
    text.push('\n');
    text
}

impl ReportFormat {
    fn format(self) -> Format {
        match self {
            ReportFormat::Md => Format::Md,
            ReportFormat::Html => Format::Html,
            ReportFormat::Json => Format::Json,
            ReportFormat::Junit => Format::Junit,
            ReportFormat::GithubSummary => Format::GithubSummary,
        }
    }
}
