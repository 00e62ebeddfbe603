//! Doubts: files that run, but perhaps do not show what they should.

use std::time::Duration;

use super::Checker;
use super::claims::Said;
use crate::experiment::document::Node;
use crate::experiment::{AnalysisPlan, Schedule};
use crate::quantity::write_duration;

/// Words that speak of causes; a claim with them needs an explanation's conditions.
const CAUSAL: [&str; 6] = [
    "caus",
    "follows",
    "because of",
    "due to",
    "proves",
    "faster",
];
/// Bins without which no trend is judged, the shortest being one second.
const BINS: u64 = 60;

pub(super) fn check(
    root: &Node,
    schedule: &Schedule,
    analysis: &AnalysisPlan,
    said: &Said,
    checker: &mut Checker<'_>,
) {
    causal_words(root, checker);
    explanations(root, said, checker);
    enough_bins(root, schedule, said, checker);
    leaks(analysis, said, checker);
}

fn causal_words(root: &Node, checker: &mut Checker<'_>) {
    for claim in root.get("claim").map_or(&[][..], Node::items) {
        if claim.get("explanation").is_some() {
            continue;
        }
        let Some(node) = claim.get("text") else {
            continue;
        };
        let lower = node.text().unwrap_or_default().to_ascii_lowercase();
        let first = CAUSAL
            .iter()
            .filter_map(|word| Some((lower.find(word)?, word.len())))
            .min();
        if let Some((at, length)) = first {
            let letter = |c: char| c.is_alphanumeric();
            let start = lower[..at].rfind(|c| !letter(c)).map_or(0, |i| i + 1);
            let end = lower[at + length..]
                .find(|c| !letter(c))
                .map_or(lower.len(), |i| at + length + i);
            checker.warning(
                checker.inside(node, start..end),
                format!("\"{}\" speaks of a cause, and this claim cites no explanation", &lower[start..end]),
                "add `explanation = \"…\"`, so that the conditions of a causal claim are judged, or say only what was seen",
            );
        }
    }
}

fn explanations(root: &Node, said: &Said, checker: &mut Checker<'_>) {
    let items = root.get("explanation").map_or(&[][..], Node::items);
    let rows = &said.explanations;
    for (item, row) in items.iter().zip(rows) {
        if let Some(node) = item.get("predicts")
            && node.kind() == "a table"
            && node.entries().is_empty()
        {
            checker.warning(
                node.span.clone(),
                format!("nothing that could be observed would refute \"{}\"", row.name),
                "add a prediction such as `throughput = { treatment = \"falls\", control = \"flat\" }`",
            );
        }
    }
    for (i, (item, row)) in items.iter().zip(rows).enumerate() {
        let twin = rows[..i]
            .iter()
            .find(|other| other.predicts == row.predicts && !row.predicts.is_empty());
        if let (Some(twin), Some(node)) = (twin, item.get("predicts")) {
            checker.warning(
                node.span.clone(),
                format!("\"{}\" predicts the same as \"{}\" everywhere: this experiment can't tell them apart", row.name, twin.name),
                "find something that they predict differently, or drop one",
            );
        }
    }
    shared_predictions(items, said, checker);
}

/// A series of which every row predicts the same tells nothing apart.
fn shared_predictions(items: &[Node], said: &Said, checker: &mut Checker<'_>) {
    let rows = &said.explanations;
    let (Some(first), Some(item)) = (rows.first(), items.first()) else {
        return;
    };
    if rows.len() < 2 || rows.iter().all(|row| row.predicts == first.predicts) {
        return;
    }
    for entry in item.get("predicts").map_or(&[][..], Node::entries) {
        let Some(words) = first.predicts.get(&entry.key) else {
            continue;
        };
        if rows
            .iter()
            .all(|row| row.predicts.get(&entry.key) == Some(words))
        {
            checker.warning(
                entry.key_span.clone(),
                format!(
                    "every explanation predicts the same of `{}`: it tells none apart",
                    entry.key
                ),
                "predict something in which they differ; what all share is evidence for none",
            );
        }
    }
}

/// A trend needs 60 bins; an arm that can't give them could never be judged.
fn enough_bins(root: &Node, schedule: &Schedule, said: &Said, checker: &mut Checker<'_>) {
    let Some((name, span)) = said.trends.iter().find(|(name, _)| !is_memory(name)) else {
        return;
    };
    let Some(time) = schedule.common_time() else {
        checker.warning(
            span.clone(),
            format!("the trend of `{name}` is judged only if {BINS} bins come together, and an arm here ends after a number of requests"),
            format!("make sure that an arm takes at least {BINS} s, or set `duration`"),
        );
        return;
    };
    let place = root
        .table("schedule")
        .and_then(|s| s.get("duration"))
        .map_or(span.clone(), |n| n.span.clone());
    if time < Duration::from_secs(1) {
        // An arm that measures nothing was told with the schedule.
        return;
    }
    if time < Duration::from_secs(BINS) {
        checker.error(
            place,
            format!(
                "an arm of {} can't give the {BINS} bins that the trend of `{name}` needs",
                write_duration(time)
            ),
            format!("bins are 1 s or longer: write at least \"{BINS}s\""),
        );
        return;
    }
    let sampled = said
        .trends
        .iter()
        .find(|(name, _)| name != "throughput" && !is_memory(name));
    let samples = time.as_secs_f64() / schedule.sample.as_secs_f64().max(0.001);
    if let Some((name, span)) = sampled
        && samples < BINS as f64
    {
        checker.error(
            span.clone(),
            format!(
                "samples each {} over {} can't give the {BINS} readings that the trend of `{name}` needs",
                write_duration(schedule.sample),
                write_duration(time)
            ),
            "sample more often, or lengthen the arm",
        );
    }
}

fn is_memory(name: &str) -> bool {
    name.contains(".memory.")
}

/// Memory follows the leak rule, which needs a horizon and a budget.
fn leaks(analysis: &AnalysisPlan, said: &Said, checker: &mut Checker<'_>) {
    for (name, span) in said.trends.iter().filter(|(name, _)| is_memory(name)) {
        if !analysis.budget.contains_key(name) {
            checker.warning(
                span.clone(),
                format!("the trend of `{name}` is only described: no budget says how much growth matters"),
                format!("add to [analysis] `horizon = \"72h\"` and `budget = {{ \"{name}\" = \"64MiB\" }}`"),
            );
        }
    }
}
