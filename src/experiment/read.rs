//! Reads a file and checks it whole.

use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

use anyhow::{Context, anyhow};
use sha2::{Digest, Sha256};

use super::check::{self, Checker, Lookup, Parts};
use super::difference::{self, Resolved};
use super::problem::{Problem, Severity, render};
use super::{Control, Experiment, Source, document};
use crate::name::Arms;

/// Largest file that is read, in bytes: far beyond any experiment that a person wrote.
const LARGEST: u64 = 1 << 20;

/// How to read a file.
#[derive(Default)]
pub struct LoadOptions<'l> {
    /// Where relative paths in the file start; the working folder when absent.
    pub folder: Option<PathBuf>,
    /// The caller's environment. Given, a variable that a template names must be set; absent, only syntax is checked.
    pub env: Option<Lookup<'l>>,
    /// The file is the copy in a run's folder: what it names beside itself need not be there any more.
    pub kept: bool,
}

/// An experiment without faults.
#[derive(Debug, Clone)]
pub struct Checked {
    /// It.
    pub experiment: Experiment,
    /// Doubts, in file order.
    pub warnings: Vec<Problem>,
}

impl Checked {
    /// The doubts as plain text, one after the other.
    pub fn render_warnings(&self) -> String {
        render_all(&self.warnings, &self.experiment.source)
    }
}

/// Why there is no experiment.
#[derive(Debug)]
pub enum LoadError {
    /// The file can't be read.
    Unreadable(anyhow::Error),
    /// The file is wrong.
    Faulty(Faults),
}

/// Everything that is wrong with a file, and the file.
#[derive(Debug)]
pub struct Faults {
    /// The file as read; bytes that are no UTF-8 are replaced.
    pub source: Source,
    /// Faults and doubts, in file order.
    pub problems: Vec<Problem>,
}

impl Faults {
    /// All problems as plain text, one after the other.
    pub fn render(&self) -> String {
        render_all(&self.problems, &self.source)
    }
}

impl Faults {
    /// All problems for machines: file, line, column (both from 1), severity, message, hint.
    pub fn json(&self) -> serde_json::Value {
        let text = &self.source.text;
        let problems: Vec<_> = self
            .problems
            .iter()
            .map(|problem| {
                let before = text.get(..problem.span.start).unwrap_or(text);
                let line_start = before.rfind('\n').map_or(0, |end| end + 1);
                serde_json::json!({
                    "line": before.matches('\n').count() + 1,
                    "column": before[line_start..].chars().count() + 1,
                    "severity": match problem.severity {
                        Severity::Error => "error",
                        Severity::Warning => "warning",
                    },
                    "message": problem.message,
                    "hint": problem.hint,
                })
            })
            .collect();
        serde_json::json!({ "file": self.source.path, "problems": problems })
    }
}

impl std::fmt::Display for LoadError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            LoadError::Unreadable(error) => write!(f, "{error:#}"),
            LoadError::Faulty(faults) => f.write_str(&faults.render()),
        }
    }
}

impl std::error::Error for LoadError {}

fn render_all(problems: &[Problem], source: &Source) -> String {
    problems
        .iter()
        .map(|problem| render(problem, source))
        .collect::<Vec<_>>()
        .join("\n\n")
}

/// Reads and checks an experiment file. Nothing is started.
///
/// # Errors
/// [`LoadError::Unreadable`] when the file can't be read or is too large; [`LoadError::Faulty`] with every problem at once.
pub fn load(path: &Path, options: &LoadOptions<'_>) -> Result<Checked, LoadError> {
    let bytes = read(path).map_err(LoadError::Unreadable)?;
    check_bytes(path, &bytes, options)
}

/// Checks an experiment file that was read already.
///
/// # Errors
/// [`LoadError::Faulty`] with every problem at once.
pub fn check_bytes(
    path: &Path,
    bytes: &[u8],
    options: &LoadOptions<'_>,
) -> Result<Checked, LoadError> {
    let sha256: String = Sha256::digest(bytes)
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect();
    let source = Source {
        path: path.to_owned(),
        text: String::from_utf8_lossy(bytes).into_owned(),
        sha256,
    };
    let mut problems = Vec::new();
    if let Err(error) = std::str::from_utf8(bytes) {
        let at = error.valid_up_to();
        problems.push(Problem::error(
            at..at + '\u{fffd}'.len_utf8(),
            format!("byte {} of the file is not UTF-8", at + 1),
            "save the file as UTF-8",
        ));
    } else if source.text.trim_start_matches('\u{feff}').trim().is_empty() {
        problems.push(empty());
    } else {
        match document::parse(&source.text) {
            Ok(root) if root.entries().is_empty() => problems.push(empty()),
            Ok(root) => {
                let parts = check_root(&root, &source, options, &mut problems);
                if let Some(experiment) = parts {
                    return Ok(Checked {
                        experiment,
                        warnings: sorted(problems),
                    });
                }
            }
            Err(errors) => problems = errors,
        }
    }
    Err(LoadError::Faulty(Faults {
        source,
        problems: sorted(problems),
    }))
}

fn empty() -> Problem {
    Problem::error(
        0..0,
        "the file declares nothing",
        "`ceteris init NAME` writes a commented file to start from",
    )
}

fn sorted(mut problems: Vec<Problem>) -> Vec<Problem> {
    problems.sort();
    problems.dedup();
    problems
}

fn read(path: &Path) -> anyhow::Result<Vec<u8>> {
    let name = || format!("reading the experiment file {}", path.display());
    let file = File::open(path).with_context(name)?;
    let kind = file.metadata().with_context(name)?;
    if kind.is_dir() {
        return Err(anyhow!(
            "{} is a folder: name an experiment file, such as experiments/quickstart.toml",
            path.display()
        ));
    }
    let mut bytes = Vec::new();
    file.take(LARGEST + 1)
        .read_to_end(&mut bytes)
        .with_context(name)?;
    if bytes.len() as u64 > LARGEST {
        return Err(anyhow!(
            "{} is larger than 1 MiB, which no experiment file is: name an experiment file",
            path.display()
        ));
    }
    Ok(bytes)
}

/// Checks both arms; the experiment only when no error was found.
fn check_root(
    root: &document::Node,
    source: &Source,
    options: &LoadOptions<'_>,
    problems: &mut Vec<Problem>,
) -> Option<Experiment> {
    let resolved = difference::resolve(root, problems);
    let folder = options.folder.clone().unwrap_or_default();
    let mut found: Arms<Vec<Problem>> = Arms::default();
    let parts = resolved.documents.map(|arm, document| {
        let mut checker = Checker {
            text: &source.text,
            folder: &folder,
            env: options.env,
            kept: options.kept,
            problems: Vec::new(),
        };
        let parts = check::document(document, &mut checker);
        *found.get_mut(arm) = checker.problems;
        parts
    });
    difference::merge(found, &resolved, problems);
    let faulty = |problems: &[Problem]| problems.iter().any(|p| p.severity == Severity::Error);
    if faulty(problems) {
        return None;
    }
    let Arms { treatment, control } = parts;
    let (treatment, control) = (treatment?, control?);
    compose(source, resolved, treatment, control, problems).filter(|_| !faulty(problems))
}

fn compose(
    source: &Source,
    resolved: Resolved,
    treatment: Parts,
    control: Parts,
    problems: &mut Vec<Problem>,
) -> Option<Experiment> {
    let differs = matches!(resolved.control, Control::Variable(_));
    if differs && treatment.setup == control.setup {
        problems.push(Problem::error(
            resolved.places.control.clone(),
            "the arms do not differ: both values mean the same",
            "give `treatment` and `control` two values that mean different things",
        ));
        return None;
    }
    Some(Experiment {
        source: source.clone(),
        header: treatment.header,
        schedule: treatment.schedule,
        control: resolved.control,
        arms: Arms {
            treatment: treatment.setup,
            control: control.setup,
        },
        analysis: treatment.analysis,
        criteria: treatment.criteria,
        explanations: treatment.explanations,
        claims: treatment.claims,
        limits: treatment.limits,
        micro: treatment.micro,
        probe: treatment.probe,
    })
}
