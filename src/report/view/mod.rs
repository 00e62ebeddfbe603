//! From a [`Summary`] to ready-made strings: everything that a template may print.
//!
//! Words are chosen by verdicts, numbers are formatted, rows are picked; no figure is computed here. A sentence exists
//! only if its verdict does.

use serde::Serialize;

mod actions;
mod apart;
mod arms;
mod evidence;
mod finding;
mod held_back;
mod judged;
mod terms;

use super::charts::{self, Chart};
use super::{KeptRun, words};
use crate::analysis::Summary;
use crate::analysis::summary::RunEnd;
use crate::name::Arm;

pub(in crate::report) use arms::seen;
pub use evidence::{Evidence, Line};

/// Characters of a reason where there is room for a glance only; the whole stands in the evidence box.
const GLANCE: usize = 160;

/// Rows of a table that are shown; the rest is in summary.json.
pub const MOST_ROWS: usize = 12;

/// What a template gets. Every string is plain text: the template's format escapes it when it is printed.
#[derive(Debug, Clone, Serialize)]
pub struct View {
    /// Title, question and name of the experiment, name of the run's folder.
    pub title: String,
    /// What was asked.
    pub question: String,
    /// Name of the experiment.
    pub name: String,
    /// Name of the run's folder.
    pub run: String,
    /// What a reader must know before anything else: not valid, interrupted, smoke, null.
    pub banner: Vec<String>,
    /// The box at the top.
    pub evidence: Evidence,
    /// The finding, a sentence each.
    pub finding: Vec<String>,
    /// Every picture, by its name without the ending.
    pub charts: std::collections::BTreeMap<String, Chart>,
    /// Both arms' windows.
    pub windows: Option<Table>,
    /// Services and their series: first, last, verdict.
    pub services: Option<Table>,
    /// Each explanation with its reason and its verdict.
    pub explanations: Vec<Explained>,
    /// Predictions against what was observed.
    pub predictions: Option<Table>,
    /// The one difference, a sentence each.
    pub difference: Vec<String>,
    /// What differed and why it may.
    pub differing: Option<Table>,
    /// What was compared and found equal.
    pub equal: Option<Table>,
    /// Totals of each action.
    pub action_totals: Option<Table>,
    /// Executions of actions.
    pub actions: Option<Table>,
    /// Memory around the executions of actions.
    pub action_memory: Option<Table>,
    /// How long services took to be ready, where some were started again.
    pub starts: Option<Table>,
    /// Bad seconds in words, a sentence an arm.
    pub bad_seconds: Vec<String>,
    /// Failed requests by class.
    pub failures: Option<Table>,
    /// Episodes of bad seconds.
    pub episodes: Option<Table>,
    /// First examples of failed requests.
    pub failure_examples: Option<Table>,
    /// Criteria.
    pub criteria: Option<Table>,
    /// The slowest steps.
    pub steps: Option<Table>,
    /// Every pair.
    pub pairs: Option<Table>,
    /// What can be said between the arms.
    pub between: Option<Table>,
    /// Gates.
    pub gates: Option<Table>,
    /// The runner's own figures.
    pub runner: Option<Table>,
    /// The saturation probe in words, a sentence each; its picture is the chart `probe`.
    pub saturation: Vec<String>,
    /// Levels of the saturation probe.
    pub probe: Option<Table>,
    /// Counted calls.
    pub micro: Option<Table>,
    /// Every run of this experiment that was ever kept.
    pub kept: Table,
    /// Terms used, with a sentence each.
    pub terms: Vec<Line>,
    /// How to run it again.
    pub again: Again,
    /// Remarks that the author added afterwards.
    pub notes: Vec<Line>,
    /// The author's last words.
    pub footer: Option<String>,
    /// Exit code and what it means.
    pub exit: String,
}

/// A table: columns and rows of plain text.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Table {
    /// What it shows, for those who don't see it.
    pub caption: String,
    /// Its columns.
    pub columns: Vec<Column>,
    /// Its rows, each as long as `columns`.
    pub rows: Vec<Vec<String>>,
    /// Said below it.
    pub note: Option<String>,
}

/// A column.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Column {
    /// Its head.
    pub title: String,
    /// How its cells are set.
    pub kind: Kind,
}

/// How cells are set.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Kind {
    /// Words.
    Text,
    /// Right-aligned.
    Number,
    /// A name or an expression.
    Code,
}

impl Table {
    fn new(caption: &str, columns: &[(&str, Kind)]) -> Self {
        Table {
            caption: caption.to_owned(),
            columns: columns
                .iter()
                .map(|(title, kind)| Column {
                    title: (*title).to_owned(),
                    kind: *kind,
                })
                .collect(),
            rows: Vec::new(),
            note: None,
        }
    }

    /// The table, unless it has no rows.
    fn filled(self) -> Option<Self> {
        (!self.rows.is_empty()).then_some(self)
    }

    /// Keeps at most [`MOST_ROWS`] rows, spread evenly with the first and the last, and says so.
    fn thinned(mut self, what: &str) -> Self {
        let all = self.rows.len();
        if all > MOST_ROWS {
            let picked: Vec<usize> = (0..MOST_ROWS)
                .map(|i| i * (all - 1) / (MOST_ROWS - 1))
                .collect();
            self.rows = picked.iter().map(|&i| self.rows[i].clone()).collect();
            self.note = Some(format!(
                "{MOST_ROWS} of {} {what} shown, spread evenly; all are in summary.json.",
                words::count(all as u64)
            ));
        }
        self
    }
}

/// An explanation.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Explained {
    /// Its name.
    pub name: String,
    /// Why one would believe it.
    pub because: String,
    /// `consistent with what was observed`, `refuted`, ...
    pub verdict: String,
}

/// How to run it again.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Again {
    /// The command as typed.
    pub command: String,
    /// Versions, hashes and the seed.
    pub facts: Vec<Line>,
}

/// Makes the view. `kept` lists every run of this experiment that was ever kept, in any order.
pub fn view(summary: &Summary, kept: &[KeptRun]) -> View {
    View {
        title: summary.experiment.title.clone(),
        question: summary.experiment.question.clone(),
        name: summary.experiment.name.clone(),
        run: summary.run.id.clone(),
        banner: banner(summary),
        evidence: evidence::evidence(summary),
        finding: [finding::finding(summary), actions::sentences(summary)].concat(),
        charts: charts::charts(summary)
            .into_iter()
            .map(|chart| (chart.name.clone(), chart))
            .collect(),
        windows: arms::windows(summary),
        services: arms::services(summary),
        explanations: judged::explanations(summary),
        predictions: judged::predictions(summary),
        difference: judged::difference(summary),
        differing: judged::differing(summary),
        equal: judged::equal(summary),
        action_totals: actions::totals(summary),
        actions: actions::executions(summary),
        action_memory: actions::memory(summary),
        starts: actions::starts(summary),
        bad_seconds: [arms::bad_seconds(summary), held_back::sentences(summary)].concat(),
        failures: arms::failures(summary),
        episodes: arms::episodes(summary),
        failure_examples: arms::failure_examples(summary),
        criteria: judged::criteria(summary),
        steps: arms::steps(summary),
        pairs: judged::pairs(summary),
        between: judged::between(summary),
        gates: judged::gates(summary),
        runner: arms::runner(summary),
        saturation: apart::saturation(summary),
        probe: apart::probe(summary),
        micro: apart::micro(summary),
        kept: kept_runs(summary, kept),
        terms: terms::terms(summary),
        again: again(summary),
        notes: notes(summary),
        footer: summary.experiment.footer.clone(),
        exit: exit(summary.exit_code),
    }
}

fn banner(summary: &Summary) -> Vec<String> {
    let mut lines = Vec::new();
    let reasons = &summary.validity.reasons;
    if !summary.validity.valid {
        let why = reasons.first().map_or_else(
            || "no reason was recorded".to_owned(),
            |first| words::glance(first, GLANCE),
        );
        lines.push(match reasons.len() {
            0 | 1 => format!("Not valid, so it supports nothing: {why}"),
            n => format!("Not valid, so it supports nothing: {why} (the first of {n} reasons)"),
        });
    }
    match &summary.run.ended {
        RunEnd::Complete => {}
        RunEnd::Interrupted => lines.push(
            "Interrupted by the user: what was measured until then is reported, the rest is not observed."
                .to_owned(),
        ),
        RunEnd::Failed(_) => lines.push(
            "The run failed before its end: what was measured until then is reported, the rest is not observed."
                .to_owned(),
        ),
        RunEnd::Unfinished => lines.push(
            "Unfinished: no end of this run was written, so the runner was ended from outside. What it had written is reported."
                .to_owned(),
        ),
    }
    if summary.run.smoke {
        lines.push(
            "Smoke run: shortened to try the set-up. It is kept and labelled, and it is never evidence.".to_owned(),
        );
    }
    if summary.run.null {
        lines.push(
            "Null experiment: the same arm ran as treatment and as control. Whatever differs between them is noise."
                .to_owned(),
        );
    }
    lines
}

/// How the run ended, in one or two words.
fn ended(end: &RunEnd) -> &'static str {
    match end {
        RunEnd::Complete => "complete",
        RunEnd::Interrupted => "interrupted",
        RunEnd::Failed(_) => "failed",
        RunEnd::Unfinished => "unfinished",
    }
}

fn exit(code: u8) -> String {
    let meaning = match code {
        0 => "every arm ran and every criterion holds",
        1 => "every arm ran; a criterion does not hold or was not observed",
        3 => "not valid or not whole",
        130 => "interrupted; what was measured is kept",
        _ => "see the command's documentation",
    };
    format!("{code} ({meaning})")
}

fn kept_runs(summary: &Summary, kept: &[KeptRun]) -> Table {
    let mut table = Table::new(
        "Every run of this experiment that was ever kept",
        &[
            ("run", Kind::Code),
            ("started (UTC)", Kind::Text),
            ("ended", Kind::Text),
            ("valid", Kind::Text),
            ("result", Kind::Text),
        ],
    );
    let mut runs: Vec<&KeptRun> = kept.iter().collect();
    runs.sort_by(|a, b| (&a.started, &a.id).cmp(&(&b.started, &b.id)));
    for run in runs {
        let here = if run.id == summary.run.id {
            "this report: "
        } else {
            ""
        };
        let smoke = if run.smoke { "smoke; " } else { "" };
        table.rows.push(vec![
            run.id.clone(),
            run.started.clone(),
            words::glance(&run.ended, GLANCE),
            match run.valid {
                Some(true) => "yes".to_owned(),
                Some(false) => "no".to_owned(),
                None => "not judged".to_owned(),
            },
            format!("{here}{smoke}{}", words::one_line(&run.result)),
        ]);
    }
    if table.rows.is_empty() {
        table.note =
            Some("The list of kept runs was not observed when this report was made.".to_owned());
    }
    table
}

fn again(summary: &Summary) -> Again {
    let run = &summary.run;
    let mut facts = vec![
        Line::new("ceteris", &summary.tool),
        Line::new("Experiment file (SHA-256)", &summary.experiment_sha256),
        Line::new("Seed", &run.seed.to_string()),
        Line::new("Order", &order(summary)),
    ];
    let commit = run.git_commit.as_ref().map_or_else(
        || words::NOT_OBSERVED.to_owned(),
        |commit| {
            let state = match run.git_clean {
                Some(true) => "no uncommitted changes",
                Some(false) => "with uncommitted changes",
                None => "uncommitted changes not observed",
            };
            format!("{commit} ({state})")
        },
    );
    facts.push(Line::new("Commit of the working folder", &commit));
    for service in &summary.setup.services {
        if let Some(sha256) = &service.sha256 {
            let version = service.version.as_deref().unwrap_or("version not observed");
            facts.push(Line::new(
                &format!("{} ({version}, SHA-256)", service.service),
                sha256,
            ));
        }
    }
    Again {
        command: run
            .command_line
            .iter()
            .map(|word| shell_word(word))
            .collect::<Vec<_>>()
            .join(" "),
        facts,
    }
}

/// `control, then treatment`.
fn order(summary: &Summary) -> String {
    let trials: Vec<&str> = summary
        .run
        .order
        .iter()
        .map(|trial| trial.arm.as_str())
        .collect();
    if trials.is_empty() {
        words::NOT_OBSERVED.to_owned()
    } else {
        trials.join(", then ")
    }
}

fn shell_word(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "_-./:=,@%+".contains(c);
    if !word.is_empty() && word.chars().all(plain) {
        word.to_owned()
    } else {
        format!("'{}'", word.replace('\'', "'\\''"))
    }
}

fn notes(summary: &Summary) -> Vec<Line> {
    summary
        .notes
        .iter()
        .map(|note| {
            let at = note
                .at_s
                .map(|at| format!(", about {} of measured time", words::clock(at)))
                .unwrap_or_default();
            Line::new(
                &format!("Added afterwards, {}{at}", note.written),
                &note.text,
            )
        })
        .collect()
}

/// A reason without the list of why the run is not valid: that list stands at the top, once.
fn once(summary: &Summary, reason: &str) -> String {
    let why = summary.validity.reasons.join("; ");
    if why.is_empty() {
        return reason.to_owned();
    }
    reason.replace(&format!(": {why}"), "")
}

/// A figure by its full name, formatted in its unit.
fn figure(summary: &Summary, name: &str, unit: &str) -> String {
    match summary.figures.get(name) {
        Some(crate::analysis::summary::FigureValue::Number(value)) => words::in_unit(*value, unit),
        Some(crate::analysis::summary::FigureValue::Word(word)) => word.clone(),
        None => words::NOT_OBSERVED.to_owned(),
    }
}

/// A figure of one arm, formatted in its unit.
pub(in crate::report) fn arm_figure(summary: &Summary, arm: Arm, name: &str, unit: &str) -> String {
    figure(summary, &format!("{arm}.{name}"), unit)
}
