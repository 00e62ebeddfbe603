//! `run`: the experiment from its file to its report.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result};
use tokio::sync::watch;

use super::arguments::RunArguments;
use super::check::{load, look_up};
use super::exit::Exit;
use super::judge::judge_and_render;
use super::load::runtime;
use super::output::{print, tell};
use super::progress::Display;
use crate::experiment::render_check;
use crate::quantity;
use crate::report::Format;
use crate::results::RunFolder;
use crate::run::{Cancel, Finished, Options, Outcome, Progress, execute, stopped_at_once};

/// Runs, judges, renders.
///
/// # Errors
/// When the results can't be written, or the run can't be read back.
pub(super) fn run(arguments: &RunArguments) -> Result<Exit> {
    let smoke = match arguments.smoke.as_deref().map(quantity::duration) {
        None => None,
        Some(Ok(length)) if length.is_zero() => {
            tell("error: --smoke: a run of no time measures nothing; write --smoke 20s");
            return Ok(Exit::Wrong);
        }
        Some(Ok(length)) => Some(length),
        Some(Err(error)) => {
            tell(&format!("error: --smoke: {error}"));
            return Ok(Exit::Wrong);
        }
    };
    let env = |name: &str| std::env::var(name).ok();
    let Some(checked) = load(&arguments.file, Some(&env)) else {
        return Ok(Exit::Wrong);
    };
    let absent = look_up(&mut render_check(&checked), &checked.experiment)?;
    if !absent.is_empty() {
        tell(&format!("error: {}", absent.join("\nerror: ")));
        return Ok(Exit::Wrong);
    }
    let mut experiment = checked.experiment;
    if let Some(length) = smoke {
        let short = experiment.smoke(length);
        for action in &short.dropped_actions {
            tell(&format!(
                "smoke run: the action {action} does not fit and is left out"
            ));
        }
        experiment = short.experiment;
    }
    let options = Options {
        results: arguments.results.clone(),
        smoke,
        keep_services: arguments.keep_services,
        command_line: std::env::args().collect(),
        working_dir: std::env::current_dir().context("finding the working folder")?,
        supervisor_exe: std::env::current_exe().context("finding this program")?,
        env: Arc::new(env),
    };
    let finished = supervised(&experiment, &options)?;
    report_on(&finished, arguments.json)
}

/// Executes, with progress on standard error.
fn supervised(experiment: &crate::experiment::Experiment, options: &Options) -> Result<Finished> {
    let mut display = Display::new();
    let mut folder = None;
    let mut show = |progress| {
        if let Progress::RunStarted { folder: path, .. } = &progress {
            folder = Some(path.clone());
        }
        display.show(progress);
    };
    let result = heard(|cancel| execute(experiment, options, cancel, &mut show));
    display.end();
    if let (Err(error), Some(folder)) = (&result, folder)
        && error.is::<StoppedNow>()
    {
        stopped_at_once(&RunFolder::open(&folder)?)?;
    }
    result
}

/// Does something under a runtime that hears Ctrl-C: once stops the load and keeps everything, twice stops now.
///
/// # Errors
/// Its own, those of the runtime, and [`StoppedNow`].
pub(super) fn heard<T, F: Future<Output = Result<T>>>(
    work: impl FnOnce(watch::Receiver<Cancel>) -> F,
) -> Result<T> {
    let runtime = runtime()?;
    let result = runtime.block_on(async {
        let (sender, cancel) = watch::channel(Cancel::No);
        let run = work(cancel);
        tokio::pin!(run);
        let mut signals = Signals::new()?;
        loop {
            tokio::select! {
                biased;
                finished = &mut run => return finished,
                () = signals.next() => {
                    if *sender.borrow() != Cancel::No {
                        // Services are killed as the run is dropped.
                        return Err(anyhow::Error::new(StoppedNow));
                    }
                    tell("stopping: requests in flight may end, what was measured is kept; once more to stop now");
                    sender.send_replace(Cancel::Gracefully);
                }
            }
        }
    });
    // A reading that hangs in the kernel must not hold up the end.
    runtime.shutdown_timeout(Duration::from_secs(5));
    result
}

/// The user asked twice.
#[derive(Debug)]
pub(super) struct StoppedNow;

impl std::fmt::Display for StoppedNow {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("stopped at once; what was measured is kept, `ceteris analyze` reads it")
    }
}

impl std::error::Error for StoppedNow {}

/// Signals that ask to stop.
struct Signals {
    interrupt: tokio::signal::unix::Signal,
    terminate: tokio::signal::unix::Signal,
}

impl Signals {
    fn new() -> Result<Self> {
        use tokio::signal::unix::{SignalKind, signal};
        Ok(Self {
            interrupt: signal(SignalKind::interrupt()).context("listening for Ctrl-C")?,
            terminate: signal(SignalKind::terminate()).context("listening for TERM")?,
        })
    }

    async fn next(&mut self) {
        tokio::select! {
            _ = self.interrupt.recv() => {}
            _ = self.terminate.recv() => {}
        }
    }
}

fn report_on(finished: &Finished, json: bool) -> Result<Exit> {
    let folder = &finished.folder;
    match &finished.outcome {
        Outcome::Complete => {}
        Outcome::Interrupted => tell("interrupted: the report tells what was measured until then"),
        Outcome::Failed(why) => tell(&format!("error: the run is not whole: {why}")),
    }
    let formats = [Format::Md, Format::Html];
    let summary = judge_and_render(folder, &formats, None)?;
    if json {
        let text = serde_json::to_string(&summary).context("writing the summary as JSON")?;
        print(&format!("{text}\n"))?;
    } else {
        print(&super::judge::short(&summary, &shown(folder.path())))?;
    }
    Ok(Exit::from_code(summary.exit_code))
}

/// A path as one would type it from here.
fn shown(path: &Path) -> String {
    let here = std::env::current_dir().ok();
    here.as_deref()
        .and_then(|here| path.strip_prefix(here).ok())
        .unwrap_or(path)
        .display()
        .to_string()
}
