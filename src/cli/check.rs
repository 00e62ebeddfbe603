//! `check`: an experiment file, with every fault at once or what would be run.

use std::path::Path;
use std::sync::Arc;

use anyhow::{Context, Result};

use super::exit::Exit;
use super::output::{complain, print, tell};
use crate::analysis::stats::pairs::{pair_sd, required_pairs};
use crate::deploy;
use crate::experiment::{
    self, CheckReport, Checked, Experiment, LoadError, LoadOptions, Lookup, render_check,
};
use crate::name::Arm;

/// Loads a file; prints its faults or doubts to standard error. `None` when it has faults.
pub(super) fn load(file: &Path, env: Option<Lookup<'_>>) -> Option<Checked> {
    match experiment::load(
        file,
        &LoadOptions {
            env,
            ..LoadOptions::default()
        },
    ) {
        Ok(checked) => {
            let doubts = checked.render_warnings();
            if !doubts.is_empty() {
                tell(&doubts);
            }
            Some(checked)
        }
        Err(LoadError::Unreadable(error)) => {
            complain(&error);
            None
        }
        Err(LoadError::Faulty(faults)) => {
            tell(&faults.render());
            None
        }
    }
}

/// Checks a file.
///
/// # Errors
/// When standard output can't be written.
pub(super) fn check(file: &Path, json: bool) -> Result<Exit> {
    let checked = match experiment::load(file, &LoadOptions::default()) {
        Ok(checked) => checked,
        Err(LoadError::Faulty(faults)) if json => {
            print(&format!("{}\n", faults.json()))?;
            return Ok(Exit::Wrong);
        }
        Err(error) => {
            tell(&error.to_string());
            return Ok(Exit::Wrong);
        }
    };
    let mut report = render_check(&checked);
    report.pairs_needed = pairs_needed(&report);
    look_up(&mut report, &checked.experiment)?;
    if json {
        let text = serde_json::to_string(&report).context("writing the check as JSON")?;
        print(&format!("{text}\n"))?;
    } else {
        print(&in_words(&report))?;
    }
    Ok(Exit::Fine)
}

/// Finds what the experiment needs. Returns what is not there, with the remedies; what a build makes need not be.
///
/// # Errors
/// When the runtime can't be started.
pub(super) fn look_up(report: &mut CheckReport, experiment: &Experiment) -> Result<Vec<String>> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .context("starting the runtime")?;
    let dir = std::env::current_dir().context("finding the working folder")?;
    let env: deploy::ReadEnv = Arc::new(|name: &str| std::env::var(name).ok());
    let mut missing = Vec::new();
    for program in &mut report.programs {
        let is_its = |arm: &Arm| {
            let services = &experiment.arms.get(*arm).services;
            services
                .iter()
                .any(|s| s.name.as_str() == program.needed_by)
        };
        // Each arm that has the service must find its own (a version, a folder); what only an action needs is found by name.
        let mut arms: Vec<Arm> = Arm::BOTH.into_iter().filter(is_its).collect();
        if arms.is_empty() {
            arms.push(Arm::Treatment);
        }
        let mut found: Vec<String> = Vec::new();
        for arm in arms {
            let place = runtime.block_on(deploy::where_is(
                experiment.arms.get(arm),
                &program.needed_by,
                &program.program,
                &dir,
                &env,
            ));
            match place {
                Ok(path) => found.push(path.display().to_string()),
                Err(_) if program.built => {}
                Err(error) => {
                    let error = format!("{error:#}");
                    if !missing.contains(&error) {
                        missing.push(error);
                    }
                }
            }
        }
        found.dedup();
        program.found = (!found.is_empty()).then(|| found.join(", "));
    }
    Ok(missing)
}

/// Pairs for 80 % power to see a difference of the margin's size at the declared spread between runs.
fn pairs_needed(report: &CheckReport) -> Option<u32> {
    let effect = -(1.0 - report.margin?).ln();
    let needed = required_pairs(effect, pair_sd(report.run_sd?), 0.8, 0.025)?;
    u32::try_from(needed.pairs).ok()
}

fn in_words(report: &CheckReport) -> String {
    let mut text = format!("{}: {}\n", report.file, report.title);
    for (arm, setup) in report.arms.iter() {
        text.push_str(&format!(
            "  {arm}: {}; {} on {}; measured for {}\n",
            setup.services.join(", "),
            setup.load,
            setup.target,
            setup.measured
        ));
        text.push_str(&format!(
            "    pruning: {}\n",
            setup.pruning.as_deref().unwrap_or("none")
        ));
        for action in &setup.actions {
            text.push_str(&format!("    action: {action}\n"));
        }
    }
    match &report.difference {
        Some(difference) => {
            let value =
                |value: &Option<String>| value.clone().unwrap_or_else(|| "(absent)".to_owned());
            text.push_str(&format!(
                "  the one difference: {} = {} in the treatment, {} in the control\n",
                difference.variable,
                value(&difference.values.treatment),
                value(&difference.values.control)
            ));
            for also in &difference.also_differs {
                text.push_str(&format!("  permitted to differ as well: {also}\n"));
            }
        }
        None => text.push_str("  a null experiment: the same arm twice\n"),
    }
    text.push_str(&format!(
        "  order: {}; pairs: {}; time without builds: about {}\n",
        report.order, report.pairs, report.time
    ));
    for after in &report.after {
        text.push_str(&format!("  then {after}\n"));
    }
    if let Some(bytes) = report.disk_bytes {
        text.push_str(&format!(
            "  disk: about {} MiB in the run's folder, logs and data of the services apart\n",
            bytes.div_ceil(1 << 20)
        ));
    }
    if let (Some(margin), Some(run_sd)) = (report.margin, report.run_sd) {
        let tenths = |share: f64| (share * 1_000.0).round() / 10.0;
        text.push_str(&match report.pairs_needed {
            Some(pairs) => format!(
                "  to see a difference of {} % between the arms when runs differ by {} %: {pairs} pairs (80 % power)\n",
                tenths(margin),
                tenths(run_sd)
            ),
            None => format!(
                "  a difference of {} % can't be seen when runs differ by {} %\n",
                tenths(margin),
                tenths(run_sd)
            ),
        });
    }
    for program in &report.programs {
        let place = match (&program.found, program.built) {
            (Some(path), _) => path.clone(),
            (None, true) => "made by its build".to_owned(),
            (None, false) => "NOT FOUND".to_owned(),
        };
        text.push_str(&format!(
            "  needs {} ({}): {place}\n",
            program.program, program.needed_by
        ));
    }
    for warning in &report.warnings {
        text.push_str(&format!("{warning}\n"));
    }
    text
}
