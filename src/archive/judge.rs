//! Judging and rendering a run's folder.

use std::fs;

use anyhow::{Context, Result, bail};

use super::checksums::seal;
use super::list::kept_runs;
use super::null;
use super::rendered::{INDEX, Rendered, present};
use crate::analysis::summary::Note;
use crate::analysis::{self, JudgeContext, Summary};
use crate::experiment::{self, Experiment, LoadError, LoadOptions};
use crate::report::{self, Format, TemplateSource};
use crate::results::{RunFolder, read_run};

/// Judges a run's files and writes `summary.json`. A report that is there is rendered again with the templates that it was
/// made with, and the checksums are made again, so that the folder stays of one piece.
///
/// # Errors
/// When the folder can't be read or holds a damaged file, or when a file can't be written.
pub fn analyze(folder: &RunFolder) -> Result<Summary> {
    let summary = judge_and_keep(folder)?;
    let templates = Rendered::read(folder.path())?.templates;
    render(folder, &summary, &[], &templates)?;
    Ok(summary)
}

/// Judges a run's files, writes `summary.json`, and renders its report: `formats`, and those that are there already.
///
/// # Errors
/// When the folder can't be read or holds a damaged file, a template is wrong, or a file can't be written.
pub fn report(
    folder: &RunFolder,
    formats: &[Format],
    templates: &TemplateSource,
) -> Result<Summary> {
    let summary = judge_and_keep(folder)?;
    render(folder, &summary, formats, templates)?;
    Ok(summary)
}

fn judge_and_keep(folder: &RunFolder) -> Result<Summary> {
    null::look(folder)?;
    let summary = judged(folder)?;
    let mut json = serde_json::to_vec_pretty(&summary).context("writing the summary as JSON")?;
    json.push(b'\n');
    RunFolder::write_whole(&folder.summary(), &json)?;
    Ok(summary)
}

/// Judges a run's files and writes nothing.
///
/// # Errors
/// When the folder can't be read or holds a damaged file.
pub fn judged(folder: &RunFolder) -> Result<Summary> {
    let run = read_run(folder)?;
    let experiment = kept_experiment(folder)?;
    let context = JudgeContext {
        notes: notes(&run.notes)?,
        null_runs: null::kept(folder)?.into_iter().collect(),
    };
    analysis::judge(&experiment, &run, &context)
        .with_context(|| format!("judging {}", folder.path().display()))
}

/// The author's remarks, as `note` wrote them.
fn notes(lines: &[serde_json::Value]) -> Result<Vec<Note>> {
    lines
        .iter()
        .map(|line| serde_json::from_value(line.clone()).context("reading a remark in notes.jsonl"))
        .collect()
}

/// The experiment as the run's folder keeps it. What it names outside the folder need not exist any more.
fn kept_experiment(folder: &RunFolder) -> Result<Experiment> {
    let options = LoadOptions {
        kept: true,
        ..LoadOptions::default()
    };
    match experiment::load(&folder.experiment(), &options) {
        Ok(checked) => Ok(checked.experiment),
        Err(LoadError::Unreadable(error)) => Err(error),
        Err(LoadError::Faulty(faults)) => bail!(
            "the experiment kept in {} has faults under this version:\n{}",
            folder.path().display(),
            faults.render()
        ),
    }
}

/// Renders the report of a judged run into its folder and writes the checksums of every file.
fn render(
    folder: &RunFolder,
    summary: &Summary,
    formats: &[Format],
    templates: &TemplateSource,
) -> Result<()> {
    // Formats that are there already would otherwise speak of an older judgement.
    let mut all = present(folder.path());
    all.extend(
        formats
            .iter()
            .filter(|format| !all.contains(format))
            .copied()
            .collect::<Vec<_>>(),
    );
    if all.is_empty() {
        return seal(folder.path());
    }
    let kept = kept_runs(folder)?;
    let mut files = report::render(summary, &kept, &all, templates)?;
    let page = files.iter().find(|(name, _)| name == Format::Html.file());
    if let Some((_, page)) = page.cloned()
        && folder.path().join(INDEX).is_file()
    {
        files.push((INDEX.to_owned(), page));
    }
    for (path, bytes) in files {
        let path = folder.path().join(path);
        if let Some(parent) = path.parent() {
            fs::create_dir_all(parent).with_context(|| format!("making {}", parent.display()))?;
        }
        RunFolder::write_whole(&path, &bytes)?;
    }
    Rendered::now(templates).write(folder.path())?;
    seal(folder.path())
}
