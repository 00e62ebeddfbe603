//! From one arm's document to its checked parts, collecting every problem on the way.
//!
//! Types and keys are checked against the format first; what is faulty there reads as absent afterwards, so that one mistake
//! is told once. A faulty document still passes through every check, and is thrown away at the end.

mod actions;
mod analysis;
mod claims;
mod clients;
mod kinds;
mod names;
mod pruning;
mod schedule;
mod secrets;
mod services;
mod templates;
mod values;
mod warnings;
mod workload;

use std::ops::Range;
use std::path::{Path, PathBuf};

pub(super) use names::declared;

use super::document::Node;
use super::format::FILE;
use super::problem::{Problem, Span};
use super::{
    AnalysisPlan, ArmSetup, Claim, Criterion, Explanation, Header, Micro, Probe, Schedule,
};
use names::figure_name;

/// Looks up a variable of the caller's environment.
pub type Lookup<'l> = &'l dyn Fn(&str) -> Option<String>;

/// Largest file that an experiment may name, in bytes: a body is held in memory.
const LARGEST_FILE: u64 = 64 << 20;

/// What every check needs.
pub(super) struct Checker<'c> {
    /// The file's text.
    pub text: &'c str,
    /// Where relative paths start.
    pub folder: &'c Path,
    /// The caller's environment; absent when only the syntax of `{{ env.NAME }}` is to be checked.
    pub env: Option<Lookup<'c>>,
    /// Files that are named need not be there.
    pub kept: bool,
    pub problems: Vec<Problem>,
}

impl Checker<'_> {
    pub fn error(
        &mut self,
        span: impl Into<Span>,
        message: impl Into<String>,
        hint: impl Into<String>,
    ) {
        self.problems.push(Problem::error(span, message, hint));
    }

    pub fn warning(
        &mut self,
        span: impl Into<Span>,
        message: impl Into<String>,
        hint: impl Into<String>,
    ) {
        self.problems.push(Problem::warning(span, message, hint));
    }

    /// The place in the file of some bytes of a string's value: exact where the string is written without escapes.
    pub fn inside(&self, node: &Node, range: Range<usize>) -> Range<usize> {
        let (Some(raw), Some(value)) = (self.text.get(node.span.clone()), node.text()) else {
            return node.span.clone();
        };
        match raw.find(value).filter(|_| !value.is_empty()) {
            Some(at) => {
                let start = node.span.start + at + range.start.min(value.len());
                let end = node.span.start + at + range.end.min(value.len());
                if self.text.get(start..end).is_some() {
                    start..end
                } else {
                    node.span.clone()
                }
            }
            None => node.span.clone(),
        }
    }

    /// The place of the first mention of a word in a string's value.
    pub fn mention(&self, node: &Node, word: &str) -> Range<usize> {
        match node.text().and_then(|text| text.find(word)) {
            Some(at) => self.inside(node, at..at + word.len()),
            None => node.span.clone(),
        }
    }

    /// The bytes of a file that [`Checker::file`] found; none of one that it told to be wrong.
    pub fn contents(&mut self, written: &Path, node: &Node, key: &str) -> Vec<u8> {
        let path = self.folder.join(written);
        let sound = std::fs::metadata(&path).is_ok_and(|f| f.is_file() && f.len() <= LARGEST_FILE);
        if self.kept || !sound {
            return Vec::new();
        }
        std::fs::read(&path).unwrap_or_else(|error| {
            self.error(
                node.span.clone(),
                format!("`{key}`: {} can't be read: {error}", written.display()),
                "make it readable for the user who runs ceteris",
            );
            Vec::new()
        })
    }

    /// A path that the file names, which must be a readable file.
    pub fn file(&mut self, node: &Node, key: &str) -> PathBuf {
        let written = PathBuf::from(node.text().unwrap_or_default());
        if self.kept {
            return written;
        }
        let path = self.folder.join(&written);
        match std::fs::metadata(&path) {
            Ok(found) if found.is_file() && found.len() > LARGEST_FILE => self.error(
                node.span.clone(),
                format!("`{key}`: {} is larger than 64 MiB", written.display()),
                "name a smaller file",
            ),
            Ok(found) if found.is_file() => {}
            Ok(_) => self.error(
                node.span.clone(),
                format!("`{key}`: {} is not a file", written.display()),
                "name a file",
            ),
            Err(error) => self.error(
                node.span.clone(),
                format!("`{key}`: {} can't be read: {error}", written.display()),
                "paths are relative to the folder in which ceteris is started",
            ),
        }
        written
    }
}

/// Everything that one arm's document says.
pub(super) struct Parts {
    pub header: Header,
    pub schedule: Schedule,
    pub setup: ArmSetup,
    pub analysis: AnalysisPlan,
    pub criteria: Vec<Criterion>,
    pub explanations: Vec<Explanation>,
    pub claims: Vec<Claim>,
    pub limits: Vec<String>,
    pub micro: Vec<Micro>,
    pub probe: Option<Probe>,
}

/// Checks one arm's document. The parts are to be used only when no error was found.
pub(super) fn document(root: &Node, checker: &mut Checker<'_>) -> Option<Parts> {
    FILE.check(root, "", &mut checker.problems);
    let header = header(root);
    let names = names::collect(root, checker);
    let schedule = schedule::check(root, checker);
    let services = services::check(root, &names, checker);
    let clients = clients::check(root, &names, checker);
    let workload = workload::check(root, checker);
    let pruning = pruning::check(root, &names, &schedule, checker);
    let actions = actions::check(root, &names, &schedule, checker);
    let micro = actions::micro(root, checker);
    let probe = actions::probe(root, checker);
    secrets::check(root, checker);
    let declared = names::declared(&services, &workload, pruning.as_ref(), &actions, &micro);
    let analysis = analysis::check(root, &declared, checker);
    let said = claims::check(root, &declared, &analysis, checker);
    warnings::check(root, &schedule, &analysis, &said, checker);
    let limits = root
        .get("limit")
        .map_or(&[][..], Node::items)
        .iter()
        .filter_map(|limit| limit.get("text")?.text().map(str::to_owned))
        .collect();
    Some(Parts {
        header,
        schedule,
        setup: ArmSetup {
            services,
            clients: clients?,
            workload,
            pruning,
            actions,
        },
        analysis,
        criteria: said.criteria,
        explanations: said.explanations,
        claims: said.claims,
        limits,
        micro,
        probe,
    })
}

fn header(root: &Node) -> Header {
    let table = root.table("experiment");
    let text = |key: &str| table.and_then(|t| t.get(key)?.text()).map(str::to_owned);
    Header {
        name: text("name").unwrap_or_default(),
        title: text("title").unwrap_or_default(),
        question: text("question").unwrap_or_default(),
        status: text("status"),
        footer: text("footer"),
        sources: table
            .and_then(|t| t.get("sources"))
            .map(Node::texts)
            .unwrap_or_default(),
    }
}
