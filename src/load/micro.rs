//! Counted calls: what is too small for a request, made n times by a program and by its empty baseline in turn. What a call
//! costs is for others to judge.
//!
//! The programs are the experiment's own; no shell is involved, and nothing of the caller's environment is hidden from them.

use std::path::Path;
use std::process::Stdio;

use anyhow::{Context, bail, ensure};
use serde::{Deserialize, Serialize};

use crate::experiment::Micro;

/// What a program prints as its last line.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Calls {
    /// Calls made.
    pub calls: u64,
    /// Time they took.
    pub seconds: f64,
}

/// One round: the program and its empty baseline.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct MicroRound {
    /// From 0.
    pub round: u32,
    /// The baseline ran first.
    pub baseline_first: bool,
    pub command: Calls,
    pub baseline: Calls,
}

/// Runs every round, the two in turn, the first of them alternating; `done` sees each as it ends. `dir`: where the programs
/// run. Dropped in the middle, it kills the program that runs.
///
/// # Errors
/// A program that can't be started, fails, or prints no `{"calls": n, "seconds": s}`; and those of `done`.
pub async fn micro(
    micro: &Micro,
    dir: &Path,
    mut done: impl FnMut(MicroRound) -> anyhow::Result<()>,
) -> anyhow::Result<()> {
    for round in 0..micro.rounds {
        let baseline_first = round % 2 == 1;
        let both = async {
            if baseline_first {
                let baseline = run(&micro.baseline, dir).await?;
                Ok((run(&micro.command, dir).await?, baseline))
            } else {
                let command = run(&micro.command, dir).await?;
                anyhow::Ok((command, run(&micro.baseline, dir).await?))
            }
        };
        let (command, baseline) = both
            .await
            .with_context(|| format!("counting calls of '{}', round {}", micro.name, round + 1))?;
        done(MicroRound {
            round,
            baseline_first,
            command,
            baseline,
        })?;
    }
    Ok(())
}

async fn run(command: &[String], dir: &Path) -> anyhow::Result<Calls> {
    let Some((program, arguments)) = command.split_first() else {
        bail!("the command is empty");
    };
    let output = tokio::process::Command::new(program)
        .args(arguments)
        .current_dir(dir)
        .stdin(Stdio::null())
        .kill_on_drop(true)
        .output()
        .await
        .with_context(|| format!("starting {program}"))?;
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr);
        let last = said.lines().last().unwrap_or("nothing on its error output");
        bail!("{program} ended with {}: {last}", output.status);
    }
    parse(&String::from_utf8_lossy(&output.stdout)).with_context(|| format!("reading {program}"))
}

fn parse(printed: &str) -> anyhow::Result<Calls> {
    let line = printed.lines().rev().find(|line| !line.trim().is_empty());
    let line = line.context("it printed nothing; it must print {\"calls\": n, \"seconds\": s}")?;
    let calls: Calls = serde_json::from_str(line)
        .with_context(|| format!("'{line}' is not {{\"calls\": n, \"seconds\": s}}"))?;
    ensure!(calls.calls > 0, "it made no calls");
    ensure!(
        calls.seconds.is_finite() && calls.seconds >= 0.0,
        "its seconds are no time"
    );
    Ok(calls)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shell_free(text: &str) -> Vec<String> {
        vec!["echo".into(), text.into()]
    }

    #[tokio::test]
    async fn the_program_and_its_loop_take_turns() {
        let asked = Micro {
            name: "op boundary".into(),
            figure: "op_boundary".into(),
            command: shell_free("starting\n{\"calls\": 1000, \"seconds\": 0.005}\n"),
            baseline: shell_free("{\"calls\": 2000, \"seconds\": 0.002}"),
            rounds: 2,
        };
        let mut rounds = Vec::new();
        let keep = |round| {
            rounds.push(round);
            Ok(())
        };
        micro(&asked, Path::new("/"), keep).await.unwrap();
        assert_eq!(rounds.len(), 2);
        assert_eq!(
            (rounds[0].command.calls, rounds[0].command.seconds),
            (1000, 0.005)
        );
        assert_eq!(rounds[1].baseline.calls, 2000);
        assert_eq!(
            rounds.iter().map(|r| r.baseline_first).collect::<Vec<_>>(),
            [false, true]
        );
    }

    #[tokio::test]
    async fn a_program_that_fails_or_babbles_is_named() {
        for bad in ["hello", "{\"calls\": 0, \"seconds\": 1}", ""] {
            assert!(parse(bad).is_err(), "{bad}");
        }
        let missing = run(&["/no/such/program".into()], Path::new("/")).await;
        assert!(format!("{:#}", missing.unwrap_err()).contains("/no/such/program"));
        let fails = run(&["false".into()], Path::new("/")).await;
        assert!(fails.is_err());
    }
}
