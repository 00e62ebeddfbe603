//! The null experiment that a run may cite: the newest one of the same deployment beside it.
//!
//! What was found is kept in the run's own folder, so that judging it again years later, or elsewhere, rests on the same
//! figures.

use std::path::Path;

use anyhow::{Context, Result};
use serde_json::Value;

use crate::analysis::stats::null::RunSd;
use crate::analysis::{NullRun, Summary};
use crate::name::Arms;
use crate::results::{Manifest, RunFolder, list_runs};

/// What must be the same for a null experiment to speak for a run, by the keys of a resolved arm.
const SAME: [&str; 3] = ["services", "clients", "workload"];

/// What the run's folder keeps of the null experiment that it cites; `None` when it cites none.
///
/// # Errors
/// When the file can't be read.
pub(super) fn kept(folder: &RunFolder) -> Result<Option<NullRun>> {
    let path = folder.null_run();
    if !path.exists() {
        return Ok(None);
    }
    let text =
        std::fs::read_to_string(&path).with_context(|| format!("reading {}", path.display()))?;
    serde_json::from_str(&text)
        .map(Some)
        .with_context(|| format!("reading {}", path.display()))
}

/// Looks for the newest valid null experiment of the same deployment among the runs beside this one, and keeps its figures
/// in the run's folder. What was kept before stays when there is none.
///
/// # Errors
/// When the runs can't be listed, or the file can't be written.
pub(super) fn look(folder: &RunFolder) -> Result<()> {
    let own = Manifest::read(&folder.manifest())?;
    let Some(results) = folder.path().parent().and_then(Path::parent) else {
        return Ok(());
    };
    let found = list_runs(results, None)?
        .into_iter()
        .rev()
        .filter(|other| other.path() != folder.path())
        .find_map(|other| speaks_for(&other, &own));
    let Some(found) = found else { return Ok(()) };
    let mut json = serde_json::to_vec_pretty(&found).context("writing the null run as JSON")?;
    json.push(b'\n');
    RunFolder::write_whole(&folder.null_run(), &json)
}

/// The figures of a run when it is a valid null experiment of this deployment.
fn speaks_for(folder: &RunFolder, own: &Manifest) -> Option<NullRun> {
    // A run that can't be read, or was never judged, has nothing to say.
    let manifest = Manifest::read(&folder.manifest()).ok()?;
    let text = std::fs::read_to_string(folder.summary()).ok()?;
    let summary: Summary = serde_json::from_str(&text).ok()?;
    let usable = summary.run.null && !summary.run.smoke && summary.validity.valid;
    if !usable || manifest.programs != own.programs || !same_deployment(&manifest.arms, &own.arms) {
        return None;
    }
    let sigma = |ratios: Vec<f64>| RunSd::of_pairs(&ratios).ok().map(|sd| sd.upper);
    Some(NullRun {
        id: summary.run.id.clone(),
        sigma_last: sigma(log_ratios(&summary, |pair| pair.last))?,
        sigma_mean: sigma(log_ratios(&summary, |pair| pair.mean))?,
        pairs: summary.pairs.len(),
    })
}

/// Whether the null experiment ran what one of the arms of the other ran.
fn same_deployment(null: &Arms<Value>, own: &Arms<Value>) -> bool {
    own.iter().any(|(_, arm)| {
        SAME.iter()
            .all(|key| arm.get(key).is_some() && arm.get(key) == null.treatment.get(key))
    })
}

fn log_ratios(
    summary: &Summary,
    figure: impl Fn(&crate::analysis::summary::PairSummary) -> Arms<Option<f64>>,
) -> Vec<f64> {
    summary
        .pairs
        .iter()
        .filter_map(|pair| {
            let Arms { treatment, control } = figure(pair);
            Some((control? / treatment?).ln())
        })
        .filter(|ratio| ratio.is_finite())
        .collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_null_experiment_speaks_for_what_it_ran_only() {
        let arm = |clients: u64| json!({"services": ["db"], "clients": clients, "workload": 1});
        let both = |clients| Arms {
            treatment: arm(clients),
            control: arm(clients),
        };
        let own = Arms {
            treatment: arm(8),
            control: arm(16),
        };
        assert!(same_deployment(&both(8), &own));
        assert!(same_deployment(&both(16), &own));
        assert!(!same_deployment(&both(9), &own));
        assert!(!same_deployment(&both(8), &Arms::default()));
    }
}
