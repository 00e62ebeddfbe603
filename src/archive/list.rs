//! Every run that was kept: the failed, smoke, interrupted and unreadable ones too.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::Result;

use crate::analysis::summary::{RunEnd, SUMMARY_SCHEMA, Summary};
use crate::name::Arm;
use crate::report::{self, KeptRun};
use crate::results::{Manifest, RunFolder, list_runs};

/// A run that was kept, and where.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Kept {
    /// Name of the experiment: the folder that holds it.
    pub experiment: String,
    /// Its folder.
    pub path: PathBuf,
    /// What is known of it.
    pub run: KeptRun,
}

/// Every run below `results`, oldest first; those of one experiment when `name` is given. A run that can't be read is
/// listed with what is wrong with it.
///
/// # Errors
/// When the folder itself can't be read; a missing one is an empty list.
pub fn list(results: &Path, name: Option<&str>) -> Result<Vec<Kept>> {
    let folders = list_runs(results, name)?;
    Ok(folders.iter().map(kept).collect())
}

/// What a report lists: every kept run of the same experiment, those beside `folder`.
///
/// # Errors
/// When the folder above can't be read.
pub fn kept_runs(folder: &RunFolder) -> Result<Vec<KeptRun>> {
    let own = kept(folder);
    let file = |path: &Path| {
        let manifest = Manifest::read(&RunFolder::open(path).ok()?.manifest()).ok()?;
        Some(manifest.experiment_sha256)
    };
    let own_file = file(folder.path());
    let mut runs: Vec<KeptRun> = match folder.path().parent().and_then(Path::parent) {
        Some(results) => list(results, Some(&own.experiment))?
            .into_iter()
            .map(|mut kept| {
                if file(&kept.path).is_some_and(|file| Some(file) != own_file) {
                    kept.run.result = format!("another experiment file; {}", kept.run.result);
                }
                kept.run
            })
            .collect(),
        None => Vec::new(),
    };
    // A published copy is no run of its own.
    let copied: Vec<String> = runs
        .iter()
        .filter(|copy| {
            copy.id != own.run.id
                && runs.iter().any(|run| {
                    run.id != copy.id && run.started == copy.started && is_run_id(&run.id)
                })
                && !is_run_id(&copy.id)
        })
        .map(|copy| copy.id.clone())
        .collect();
    runs.retain(|run| !copied.contains(&run.id));
    if !runs.iter().any(|run| run.id == own.run.id) {
        runs.push(own.run);
    }
    Ok(runs)
}

/// Whether a folder bears the name that a run was given: it begins with the run's start.
fn is_run_id(name: &str) -> bool {
    name.split_once('-').is_some_and(|(start, _)| {
        start.len() == 16 && start.ends_with('Z') && start.starts_with(|c: char| c.is_ascii_digit())
    })
}

fn kept(folder: &RunFolder) -> Kept {
    let experiment = folder
        .path()
        .parent()
        .and_then(Path::file_name)
        .map(|name| name.to_string_lossy().into_owned())
        .unwrap_or_default();
    Kept {
        experiment,
        path: folder.path().to_owned(),
        run: facts(folder),
    }
}

fn facts(folder: &RunFolder) -> KeptRun {
    let id = folder.id();
    // The folder's name begins with the start, also when no manifest was written.
    let start = id.split('-').next().unwrap_or_default().to_owned();
    match Manifest::read(&folder.manifest()) {
        Ok(manifest) => {
            // Why it failed stands in its result.
            let ended = match manifest.outcome {
                None => "unfinished".to_owned(),
                Some(outcome) if outcome.starts_with("failed") => "failed".to_owned(),
                Some(outcome) => outcome,
            };
            let (valid, result) = judged(folder);
            KeptRun {
                id,
                started: manifest.started,
                ended,
                valid,
                result,
                smoke: manifest.smoke_s.is_some(),
            }
        }
        Err(error) => KeptRun {
            id,
            started: start,
            ended: "not known".to_owned(),
            valid: None,
            result: format!("{error:#}"),
            smoke: false,
        },
    }
}

/// Whether it is valid, and its verdicts in one line.
fn judged(folder: &RunFolder) -> (Option<bool>, String) {
    let Ok(text) = fs::read_to_string(folder.summary()) else {
        return (None, "not judged".to_owned());
    };
    match serde_json::from_str::<Summary>(&text) {
        Ok(summary) if summary.schema == SUMMARY_SCHEMA => {
            (Some(summary.validity.valid), line(&summary))
        }
        Ok(summary) => (
            None,
            format!(
                "judged by another version (summary schema {}); ceteris analyze judges it again",
                summary.schema
            ),
        ),
        Err(error) => (None, format!("its summary.json can't be read: {error}")),
    }
}

/// A run's verdicts in one line: `treatment falls, control flat; criteria: all 4 hold; exit code 0`.
fn line(summary: &Summary) -> String {
    if !summary.validity.valid {
        let reasons = &summary.validity.reasons;
        let first = reasons.first().map_or("", String::as_str);
        let more = match reasons.len() {
            0 | 1 => String::new(),
            n => format!(" (and {} more)", n - 1),
        };
        return format!(
            "{}{more}; exit code {}",
            report::glance(first),
            summary.exit_code
        );
    }
    let word = |arm: Arm| {
        summary
            .arms
            .get(arm)
            .as_ref()
            .map_or("not observed", |seen| seen.throughput.word.as_str())
    };
    let total = summary.criteria.len();
    let hold = summary
        .criteria
        .iter()
        .filter(|criterion| criterion.verdict.is_supported())
        .count();
    let criteria = match (hold, total) {
        (_, 0) => "no criteria".to_owned(),
        (hold, total) if hold == total => format!("all {total} criteria hold"),
        (hold, total) => format!("{hold} of {total} criteria hold"),
    };
    let ended = match summary.run.ended {
        RunEnd::Complete => "",
        RunEnd::Interrupted => "interrupted; ",
        RunEnd::Failed(_) => "failed; ",
        RunEnd::Unfinished => "unfinished; ",
    };
    format!(
        "{ended}throughput: treatment {}, control {}; {criteria}; exit code {}",
        word(Arm::Treatment),
        word(Arm::Control),
        summary.exit_code
    )
}
