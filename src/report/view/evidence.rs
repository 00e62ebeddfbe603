//! The evidence box: what the run is, what was set up, what it supports and what it does not.

use serde::Serialize;

use super::{ended, order};
use crate::analysis::Summary;
use crate::analysis::summary::{ClaimResult, Setup};
use crate::experiment::Pick;
use crate::measure::ServiceFacts;
use crate::report::words;

/// The box at the top.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Evidence {
    /// What kind of evidence this is.
    pub status: Vec<String>,
    /// What ran.
    pub setup: Vec<Line>,
    /// Claims whose condition held.
    pub supports: Vec<Statement>,
    /// Limits of the run, the author's own, then claims that failed; never empty.
    pub does_not_support: Vec<Statement>,
    /// Where the data is.
    pub source_data: Vec<Line>,
}

/// A label and its text.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Line {
    /// What it is.
    pub label: String,
    /// Its text.
    pub text: String,
}

impl Line {
    pub(super) fn new(label: &str, text: &str) -> Self {
        Line {
            label: label.to_owned(),
            text: text.to_owned(),
        }
    }
}

/// A statement with what qualifies it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Statement {
    /// The statement.
    pub text: String,
    /// What qualifies or refuses it, a sentence each.
    pub notes: Vec<String>,
}

impl Statement {
    fn plain(text: &str) -> Self {
        Statement {
            text: text.to_owned(),
            notes: Vec::new(),
        }
    }
}

pub(super) fn evidence(summary: &Summary) -> Evidence {
    Evidence {
        status: status(summary),
        setup: setup(summary),
        supports: supports(summary),
        does_not_support: does_not_support(summary),
        source_data: source_data(summary),
    }
}

/// Whether claims may be printed under "Supports" at all.
fn may_support(summary: &Summary) -> bool {
    summary.validity.valid && !summary.run.smoke
}

fn status(summary: &Summary) -> Vec<String> {
    let mut lines: Vec<String> = summary.experiment.status.iter().cloned().collect();
    let validity = if summary.validity.valid {
        "valid"
    } else {
        "not valid"
    };
    let kind = match (summary.run.smoke, summary.run.null) {
        (true, _) => "smoke run (never evidence)",
        (false, true) => "null experiment",
        (false, false) => "paired experiment",
    };
    lines.push(format!(
        "{kind}, {validity}, {}; started {}; exit code {}",
        ended(&summary.run.ended),
        summary.run.started,
        super::exit(summary.exit_code)
    ));
    let reasons = summary.validity.reasons.iter();
    lines.extend(reasons.map(|why| format!("not valid: {}", words::one_line(why))));
    lines
}

fn setup(summary: &Summary) -> Vec<Line> {
    let setup = &summary.setup;
    let machine = &setup.machine;
    let mut lines = vec![Line::new(
        "Machine",
        &format!(
            "{}, {} processors, {} memory, {}, kernel {}",
            or_unknown(&machine.cpu_model),
            machine.cores,
            words::bytes(machine.memory_bytes),
            or_unknown(&machine.os),
            or_unknown(&machine.kernel)
        ),
    )];
    for service in &setup.services {
        lines.push(Line::new(&service.service, &service_line(service)));
    }
    lines.push(Line::new("Load", &load(setup)));
    lines.push(Line::new("Time", &time(summary)));
    let pruning = &setup.pruning;
    if pruning.treatment.is_some() || pruning.control.is_some() {
        let none = "none";
        lines.push(Line::new(
            "Pruning",
            &format!(
                "treatment: {}; control: {}",
                pruning.treatment.as_deref().unwrap_or(none),
                pruning.control.as_deref().unwrap_or(none)
            ),
        ));
    }
    lines.push(Line::new("The one difference", &one_difference(summary)));
    lines
}

/// `pruning.enabled is false in the treatment, true in the control`.
pub(super) fn one_difference(summary: &Summary) -> String {
    let difference = &summary.difference;
    let absent = "absent";
    match &difference.variable {
        Some(variable) => format!(
            "{variable} is {} in the treatment, {} in the control",
            difference.values.treatment.as_deref().unwrap_or(absent),
            difference.values.control.as_deref().unwrap_or(absent)
        ),
        None => "none: both arms are the same (null experiment)".to_owned(),
    }
}

fn or_unknown(text: &str) -> &str {
    if text.is_empty() {
        words::NOT_OBSERVED
    } else {
        text
    }
}

fn service_line(service: &ServiceFacts) -> String {
    let mut parts = vec![match &service.version {
        Some(version) => format!("{} {version}", service.kind),
        None => format!("{}, version not observed", service.kind),
    }];
    if !service.command.is_empty() {
        parts.push(format!("command {}", service.command.join(" ")));
    }
    if !service.declared_settings.is_empty() {
        let settings: Vec<String> = service
            .declared_settings
            .iter()
            .map(|(name, value)| format!("{name} = {value}"))
            .collect();
        parts.push(format!("settings {}", settings.join(", ")));
    }
    if let Some(limit) = service.memory_limit {
        parts.push(format!("memory limit {}", words::bytes(limit)));
    }
    if let Some(limit) = service.cpu_limit {
        parts.push(format!("limit {} cores", words::number(limit)));
    }
    if !service.pin.is_empty() {
        parts.push(format!("on processors {}", processors(&service.pin)));
    }
    parts.join("; ")
}

fn processors(pin: &[usize]) -> String {
    pin.iter()
        .map(usize::to_string)
        .collect::<Vec<_>>()
        .join(", ")
}

fn load(setup: &Setup) -> String {
    let pick = match setup.pick {
        Some(Pick::Weighted) => "steps drawn by weight",
        Some(Pick::Cycle) => "steps in a fixed cycle",
        None => "steps",
    };
    let steps: Vec<String> = setup
        .steps
        .iter()
        .map(|step| format!("{} {} ({})", step.name, step.weight, step.request))
        .collect();
    let mut text = setup.clients.clone();
    if !setup.target.is_empty() {
        text.push_str(&format!("; target: {}", setup.target));
    }
    if !steps.is_empty() {
        text.push_str(&format!("; {pick}: {}", steps.join(", ")));
    }
    if setup.shares_cores {
        text.push_str("; load driver and services share processors");
    } else if !setup.driver_pin.is_empty() {
        text.push_str(&format!(
            "; load driver on processors {}",
            processors(&setup.driver_pin)
        ));
    }
    text
}

fn time(summary: &Summary) -> String {
    let setup = &summary.setup;
    let planned = |seconds: Option<f64>| {
        seconds.map_or_else(
            || "until its requests are complete".to_owned(),
            words::duration,
        )
    };
    let (treatment, control) = (
        planned(setup.duration_s.treatment),
        planned(setup.duration_s.control),
    );
    let measured = if treatment == control {
        format!("{treatment} planned in each arm")
    } else {
        format!("planned: treatment {treatment}, control {control}")
    };
    let seen = |arm: &Option<crate::analysis::summary::ArmSummary>| {
        arm.as_ref().map_or_else(
            || words::NOT_OBSERVED.to_owned(),
            |arm| words::duration(arm.seconds),
        )
    };
    format!(
        "warm-up {} (never counted); {measured}; measured: treatment {}, control {}; windows of {}; order: {}; seed {}",
        words::duration(setup.warmup_s),
        seen(&summary.arms.treatment),
        seen(&summary.arms.control),
        words::duration(setup.window_s),
        order(summary),
        summary.run.seed
    )
}

fn supports(summary: &Summary) -> Vec<Statement> {
    if !summary.validity.valid {
        return vec![Statement::plain("Nothing: the run is not valid.")];
    }
    if summary.run.smoke {
        return vec![Statement::plain("Nothing: a smoke run is never evidence.")];
    }
    let supported: Vec<Statement> = summary
        .claims
        .iter()
        .filter(|claim| claim.verdict.is_supported())
        .map(supported)
        .collect();
    if !supported.is_empty() {
        return supported;
    }
    let text = if summary.claims.is_empty() {
        "No claim: the experiment file makes none. The verdicts below stand for themselves."
    } else {
        "No claim: none of the claims written beforehand met its condition."
    };
    vec![Statement::plain(text)]
}

fn supported(claim: &ClaimResult) -> Statement {
    let mut notes = Vec::new();
    if let Some(explanation) = &claim.explanation {
        notes.push(format!(
            "Causal claim for the explanation \"{explanation}\": its conditions hold."
        ));
        notes.push(if claim.also_survive.is_empty() {
            "No other explanation written beforehand survives; one that nobody wrote down may."
                .to_owned()
        } else {
            format!(
                "Also not refuted: {}.",
                words::list(&quoted(&claim.also_survive))
            )
        });
    }
    if claim.exploratory {
        notes.push("Exploratory: not among the primary claims.".to_owned());
    }
    Statement {
        text: claim.text.clone(),
        notes,
    }
}

pub(super) fn quoted(names: &[String]) -> Vec<String> {
    names.iter().map(|name| format!("\"{name}\"")).collect()
}

fn does_not_support(summary: &Summary) -> Vec<Statement> {
    let mut out = Vec::new();
    for from_author in [false, true] {
        out.extend(
            summary
                .limits
                .iter()
                .filter(|limit| limit.from_author == from_author)
                .map(|limit| Statement::plain(&limit.text)),
        );
    }
    for claim in &summary.claims {
        if !claim.verdict.is_supported() || !may_support(summary) {
            out.push(refused(claim, summary));
        }
    }
    if out.is_empty() {
        out.push(Statement::plain(
            "anything beyond this machine, this load and the time that was measured",
        ));
    }
    out
}

fn refused(claim: &ClaimResult, summary: &Summary) -> Statement {
    let mut notes: Vec<String> = claim
        .refused_by
        .iter()
        .map(|why| super::once(summary, why))
        .collect();
    if notes.is_empty() {
        notes.push(if !summary.validity.valid {
            "The run is not valid.".to_owned()
        } else if summary.run.smoke {
            "A smoke run is never evidence.".to_owned()
        } else {
            format!(
                "Its condition {}: {}.",
                words::verdict_as(&claim.verdict, "holds", "does not hold"),
                claim.when
            )
        });
    }
    Statement {
        text: format!("the claim \"{}\"", without_templates(&claim.text)),
        notes,
    }
}

/// A claim as written, its unfilled figures as names in brackets: `fell (treatment.throughput.fall)`.
fn without_templates(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, after)) = rest.split_once("{{") {
        let Some((inside, tail)) = after.split_once("}}") else {
            break;
        };
        out.push_str(before);
        let name = inside.split('|').next().unwrap_or(inside).trim();
        out.push_str(&format!("({name})"));
        rest = tail;
    }
    out.push_str(rest);
    out
}

fn source_data(summary: &Summary) -> Vec<Line> {
    let mut lines = vec![
        Line::new(
            "Folder of this run",
            &format!("results/{}/{}", summary.experiment.name, summary.run.id),
        ),
        Line::new("SHA-256 of the experiment file", &summary.experiment_sha256),
    ];
    lines.extend(
        summary
            .experiment
            .sources
            .iter()
            .map(|source| Line::new("See also", source)),
    );
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_claim_that_was_not_filled_in_reads_without_braces() {
        assert_eq!(
            without_templates("fell {{ treatment.throughput.fall | percent }} in {{ a }}"),
            "fell (treatment.throughput.fall) in (a)"
        );
        assert_eq!(without_templates("{{ open"), "{{ open");
    }
}
