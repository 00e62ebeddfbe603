//! The finding in one paragraph of plain words, a sentence a verdict.

use super::arm_figure;
use super::evidence::quoted;
use crate::analysis::summary::{ArmSummary, ExplanationResult, Word};
use crate::analysis::{Summary, Verdict};
use crate::name::Arm;
use crate::report::words;

pub(super) fn finding(summary: &Summary) -> Vec<String> {
    if !summary.validity.valid {
        return vec![
            "This run is not valid, so nothing is concluded from it.".to_owned(),
            "What was measured is printed below, so that one can find out what went wrong."
                .to_owned(),
        ];
    }
    let mut sentences = Vec::new();
    if summary.run.smoke {
        sentences.push("A smoke run is too short to conclude anything; its verdicts only show that the set-up works.".to_owned());
    }
    for (arm, seen) in summary.arms.iter() {
        sentences.push(throughput(summary, arm, seen.as_ref()));
    }
    sentences.push(failures(summary));
    if !summary.run.null {
        sentences.extend(effect(&summary.difference.took_effect.verdict));
    }
    sentences.extend(summary.explanations.iter().map(explanation));
    sentences.extend(survivors(summary));
    sentences.extend(between(summary));
    sentences
}

fn throughput(summary: &Summary, arm: Arm, seen: Option<&ArmSummary>) -> String {
    let value = summary.difference.values.get(arm);
    let which = match (&summary.difference.variable, value) {
        (Some(variable), Some(value)) => format!("In the {arm} ({variable} = {value})"),
        _ => format!("In the {arm}"),
    };
    let Some(seen) = seen else {
        return format!("{which}, nothing was observed.");
    };
    let ends = format!(
        "first window {}, last window {} ok requests a second",
        arm_figure(summary, arm, "throughput.first", ""),
        arm_figure(summary, arm, "throughput.last", "")
    );
    if seen.throughput.reason == "no_margin" {
        return format!(
            "{which}, the trend of throughput is not judged: no margin was declared ({ends})."
        );
    }
    let verb = match seen.throughput.word {
        Word::Unclear => "throughput is ",
        Word::Flat | Word::Falls | Word::Rises => "throughput ",
    };
    format!(
        "{which}, {verb}{} ({ends}).",
        words::trend(&seen.throughput)
    )
}

fn failures(summary: &Summary) -> String {
    let part = |arm: Arm| {
        format!(
            "{} of {} in the {arm}",
            arm_figure(summary, arm, "requests.failed", ""),
            arm_figure(summary, arm, "requests.sent", "")
        )
    };
    format!(
        "Failed requests: {}, {}.",
        part(Arm::Treatment),
        part(Arm::Control)
    )
}

fn effect(verdict: &Verdict) -> Option<String> {
    match verdict {
        Verdict::Supported => None,
        Verdict::Refuted => Some(
            "The change did not take effect, so nothing is concluded between the arms.".to_owned(),
        ),
        Verdict::Undetermined(why) | Verdict::NotObserved(why) | Verdict::Invalid(why) => {
            Some(format!(
                "Whether the change took effect is not known ({}), so nothing is concluded between the arms.",
                words::reason(why)
            ))
        }
    }
}

fn explanation(explanation: &ExplanationResult) -> String {
    let name = &explanation.name;
    let missed: Vec<String> = explanation
        .predictions
        .iter()
        .filter(|prediction| prediction.verdict == Verdict::Refuted)
        .map(|prediction| {
            format!(
                "{} of the {} as \"{}\" where \"{}\" was observed",
                prediction.figure,
                prediction.arm,
                super::judged::predicted(prediction.predicted),
                prediction
                    .observed
                    .map_or(words::NOT_OBSERVED, Word::as_str)
            )
        })
        .collect();
    match &explanation.verdict {
        Verdict::Supported => format!(
            "The explanation \"{name}\" is consistent with everything that it predicted; surviving is not proof."
        ),
        Verdict::Refuted if missed.is_empty() => {
            format!("The explanation \"{name}\" is refuted.")
        }
        Verdict::Refuted => format!(
            "The explanation \"{name}\" is refuted: it predicted {}.",
            words::list(&missed)
        ),
        Verdict::Undetermined(why) => format!(
            "The explanation \"{name}\" is undetermined: {}.",
            words::reason(why)
        ),
        Verdict::NotObserved(why) => format!(
            "The explanation \"{name}\" could not be checked, since something that it predicts was not observed: {}.",
            words::reason(why)
        ),
        Verdict::Invalid(why) => format!(
            "This run cannot speak about the explanation \"{name}\": {}.",
            words::reason(why)
        ),
    }
}

/// Where several explanations survive, that this run does not tell them apart.
fn survivors(summary: &Summary) -> Option<String> {
    let names: Vec<String> = summary
        .explanations
        .iter()
        .filter(|explanation| explanation.verdict.is_supported())
        .map(|explanation| explanation.name.clone())
        .collect();
    (names.len() > 1).then(|| {
        format!(
            "This run does not tell {} apart.",
            words::list(&quoted(&names))
        )
    })
}

fn between(summary: &Summary) -> Vec<String> {
    let mut sentences = Vec::new();
    let Some(between) = &summary.between else {
        return sentences;
    };
    let causal: Vec<String> = summary
        .claims
        .iter()
        .filter(|claim| claim.verdict.is_supported() && !summary.run.smoke)
        .filter_map(|claim| claim.explanation.clone())
        .collect();
    if !causal.is_empty() {
        sentences.push(format!(
            "The conditions for a causal claim hold for {}.",
            words::list(&quoted(&causal))
        ));
    }
    if !between.wording.is_empty() {
        sentences.push(sentence(&between.wording));
    }
    sentences
}

/// A part of a sentence as a sentence of its own.
fn sentence(text: &str) -> String {
    let mut letters = text.chars();
    let first: String = letters
        .next()
        .map(|c| c.to_uppercase().collect())
        .unwrap_or_default();
    let end = if text.ends_with(['.', '!', '?']) {
        ""
    } else {
        "."
    };
    format!("{first}{}{end}", letters.as_str())
}
