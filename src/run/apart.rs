//! What follows the pairs: counted calls while nothing else runs, then the saturation probe. And a probe alone.
//!
//! Neither makes or breaks a run: the manifest says why one is missing or not whole.

use std::path::PathBuf;

use anyhow::{Context as _, Result};
use jiff::Timestamp;
use minijinja::Value;
use tokio::sync::watch;

use super::execute::{Cancel, Options, Outcome, Scene, context};
use super::probe::{ProbeEnd, Probing};
use super::progress::Progress;
use crate::deploy::{self, Prepared};
use crate::experiment::{Experiment, Micro, Probe};
use crate::load;
use crate::results::{MicroRow, MicroWriter, RunFolder};
use crate::template;

/// Why something is not whole after the user asked to stop.
const INTERRUPTED: &str = "interrupted by the user";

impl Scene<'_> {
    /// Runs both. The run is interrupted when the user asked so.
    pub(super) async fn apart(
        &mut self,
        prepared: &Prepared,
        tell: &mut dyn FnMut(Progress),
    ) -> Result<Outcome> {
        let experiment = self.experiment;
        if !experiment.micro.is_empty() {
            let mut writer = MicroWriter::create(&self.folder.micro())?;
            for micro in &experiment.micro {
                let why = self.count(micro, &mut writer, tell).await;
                if let Err(why) = why {
                    self.not_whole(&format!("micro.{}", micro.figure), why, tell)?;
                }
            }
        }
        if let Some(levels) = &experiment.probe {
            tell(Progress::Preparing {
                what: probing(levels),
            });
            let probing = Probing {
                experiment,
                levels,
                env: &self.options.env,
                logs: &self.folder.probe_logs(),
                file: &self.folder.probe(),
                cancel: self.cancel.clone(),
            };
            let end = probing.run(prepared, tell).await?;
            if let Some(why) = end.why() {
                self.not_whole("probe", why, tell)?;
            }
        }
        Ok(match *self.cancel.borrow() {
            Cancel::No => Outcome::Complete,
            Cancel::Gracefully => Outcome::Interrupted,
        })
    }

    fn not_whole(&mut self, what: &str, why: String, tell: &mut dyn FnMut(Progress)) -> Result<()> {
        if why != INTERRUPTED {
            tell(Progress::Warning(format!("{what} is not whole: {why}")));
        }
        self.manifest.not_whole.insert(what.to_owned(), why);
        self.manifest.write(self.folder)
    }

    /// Counts the calls of one kind. The error is why they are not whole.
    async fn count(
        &mut self,
        micro: &Micro,
        writer: &mut MicroWriter,
        tell: &mut dyn FnMut(Progress),
    ) -> Result<(), String> {
        tell(Progress::Preparing {
            what: format!(
                "counting calls of {}: {} rounds of the program and of its empty loop",
                micro.name, micro.rounds
            ),
        });
        let resolved = self.resolved(micro).await.map_err(|e| format!("{e:#}"))?;
        let mut done = 0;
        let counting = load::micro(&resolved, &self.options.working_dir, |round| {
            done += 1;
            writer.round(&MicroRow {
                name: micro.name.clone(),
                round: round.round,
                baseline_first: round.baseline_first,
                command: (round.command.calls, round.command.seconds),
                baseline: (round.baseline.calls, round.baseline.seconds),
            })
        });
        let mut cancel = self.cancel.clone();
        tokio::select! {
            biased;
            _ = cancel.wait_for(|cancel| *cancel > Cancel::No) => Err(INTERRUPTED.to_owned()),
            counted = counting => counted.map_err(|error| format!("{error:#}")),
        }
    }

    /// The same with its programs found and its templates filled; the programs' hashes go into the manifest.
    async fn resolved(&mut self, micro: &Micro) -> Result<Micro> {
        let mut resolved = micro.clone();
        for command in [&mut resolved.command, &mut resolved.baseline] {
            for argument in command.iter_mut() {
                *argument = self.filled(argument)?;
            }
            let name = command.first_mut().context("its command is empty")?;
            let path = deploy::where_is(
                self.experiment.arms.get(Probe::ARM),
                &micro.name,
                name,
                &self.options.working_dir,
                &self.options.env,
            )
            .await?;
            let sha256 = deploy::sha256(&path)?;
            self.manifest
                .programs
                .insert(path.display().to_string(), sha256);
            *name = path
                .to_str()
                .with_context(|| format!("the path {} is no text", path.display()))?
                .to_owned();
        }
        self.manifest.write(self.folder)?;
        Ok(resolved)
    }

    fn filled(&self, text: &str) -> Result<String> {
        if !template::is_template(text) {
            return Ok(text.to_owned());
        }
        template::render(&template::environment(), text, |name| {
            let value = (self.options.env)(name.strip_prefix("env.")?)?;
            Some(Value::from(value))
        })
        .map_err(|error| anyhow::anyhow!("filling '{text}': {error}"))
    }
}

impl ProbeEnd {
    /// Why levels are missing.
    fn why(self) -> Option<String> {
        match self {
            ProbeEnd::Whole => None,
            ProbeEnd::Interrupted => Some(INTERRUPTED.to_owned()),
            ProbeEnd::Short(why) => Some(why),
        }
    }
}

/// What is about to be done, for those who wait.
fn probing(levels: &Probe) -> String {
    format!(
        "probing for saturation: {} levels of {} s on a deployment of the {}",
        levels.clients.len() + 1,
        levels.each.as_secs_f64(),
        Probe::ARM
    )
}

/// A probe that was run alone.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProbedAlone {
    /// Where its files are.
    pub folder: PathBuf,
    /// Its levels, for whoever judges them.
    pub file: PathBuf,
    /// Why levels are missing.
    pub not_whole: Option<String>,
    /// The user stopped it.
    pub interrupted: bool,
}

/// Probes the deployment of an experiment without running its arms; `levels` as the file or the command line says.
///
/// # Errors
/// When the deployment can't be prepared, or a file can't be written.
pub async fn probe_alone(
    experiment: &Experiment,
    levels: &Probe,
    options: &Options,
    cancel: watch::Receiver<Cancel>,
    tell: &mut dyn FnMut(Progress),
) -> Result<ProbedAlone> {
    let stamp = Timestamp::now().strftime("%Y%m%dT%H%M%SZ").to_string();
    let results = std::path::absolute(&options.results)
        .with_context(|| format!("finding the folder {}", options.results.display()))?;
    let folder =
        RunFolder::create_probe(&results, &experiment.header.name, &stamp, rand::random())?;
    RunFolder::write_whole(&folder.experiment(), experiment.source.text.as_bytes())?;
    tell(Progress::Preparing {
        what: probing(levels),
    });
    let base = std::env::temp_dir();
    deploy::sweep(&base)?;
    let scratch = deploy::Scratch::create(&base, &folder.id())?;
    let around = context(options, &folder, scratch.path(), cancel.clone());
    let end = match deploy::prepare(&experiment.arms, around).await {
        Ok(prepared) => {
            let probing = Probing {
                experiment,
                levels,
                env: &options.env,
                logs: &folder.probe_logs(),
                file: &folder.probe(),
                cancel: cancel.clone(),
            };
            let end = probing.run(&prepared, tell).await;
            prepared.finish().await?;
            end?
        }
        Err(_) if *cancel.borrow() > Cancel::No => ProbeEnd::Interrupted,
        Err(error) => return Err(error),
    };
    Ok(ProbedAlone {
        folder: folder.path().to_owned(),
        file: folder.probe(),
        interrupted: end == ProbeEnd::Interrupted,
        not_whole: end.why(),
    })
}
