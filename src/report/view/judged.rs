//! Tables about what was judged: explanations, the difference, criteria, pairs, gates.

use std::collections::BTreeMap;

use super::evidence::one_difference;
use super::{Explained, Kind, Table};
use crate::analysis::summary::{FigureValue, Word};
use crate::analysis::{Summary, Verdict};
use crate::experiment::TrendWord;
use crate::measure::Equality;
use crate::name::Arm;
use crate::report::words;

pub(super) fn predicted(word: TrendWord) -> &'static str {
    match word {
        TrendWord::Flat => "flat",
        TrendWord::Falls => "falls",
        TrendWord::Rises => "rises",
    }
}

pub(super) fn explanations(summary: &Summary) -> Vec<Explained> {
    summary
        .explanations
        .iter()
        .map(|explanation| Explained {
            name: explanation.name.clone(),
            because: explanation.because.clone(),
            verdict: match &explanation.verdict {
                Verdict::Invalid(why) => format!("not judged: {}", super::once(summary, why)),
                verdict => words::verdict_as(
                    verdict,
                    "consistent with what was observed (surviving is not proof)",
                    "refuted",
                ),
            },
        })
        .collect()
}

pub(super) fn predictions(summary: &Summary) -> Option<Table> {
    let mut table = Table::new(
        "Predictions against what was observed",
        &[
            ("explanation", Kind::Text),
            ("series", Kind::Code),
            ("arm", Kind::Text),
            ("predicted", Kind::Text),
            ("observed", Kind::Text),
            ("verdict", Kind::Text),
        ],
    );
    for explanation in &summary.explanations {
        for prediction in &explanation.predictions {
            table.rows.push(vec![
                explanation.name.clone(),
                prediction.figure.clone(),
                prediction.arm.to_string(),
                predicted(prediction.predicted).to_owned(),
                observed_word(
                    summary,
                    prediction.arm,
                    &prediction.figure,
                    prediction.observed,
                ),
                words::verdict_as(&prediction.verdict, "as predicted", "refuted"),
            ]);
        }
    }
    table.filled()
}

/// The word, with its margin when it is unclear and the finding is at hand.
fn observed_word(summary: &Summary, arm: Arm, figure: &str, word: Option<Word>) -> String {
    let Some(word) = word else {
        return words::NOT_OBSERVED.to_owned();
    };
    let finding = summary.arms.get(arm).as_ref().and_then(|seen| {
        if figure == "throughput" {
            Some(&seen.throughput)
        } else {
            let series = seen.series.iter().find(|series| series.name == figure);
            series.and_then(|series| series.trend.as_ref())
        }
    });
    match finding {
        Some(finding) if finding.word == word => words::trend_word(finding),
        _ => word.as_str().to_owned(),
    }
}

pub(super) fn difference(summary: &Summary) -> Vec<String> {
    let difference = &summary.difference;
    let mut sentences = vec![match &difference.variable {
        Some(_) => format!("{}.", one_difference(summary)),
        None => "Both arms are the same: a null experiment has no difference.".to_owned(),
    }];
    let effect = &difference.took_effect;
    if !summary.run.null {
        let verdict = words::verdict_as(
            &effect.verdict,
            "the change took effect",
            "not applied: the change did not take effect",
        );
        sentences.push(match &effect.expression {
            Some(expression) => format!(
                "Proof that it was applied: {verdict}. Required: {expression}. Observed: {}.",
                observed(&effect.observed)
            ),
            None => format!("Proof that it was applied: {verdict}."),
        });
    }
    sentences.push(format!(
        "Data before load: {}.",
        words::verdict_as(
            &difference.same_start,
            "the same number of rows in every table of both arms",
            "not the same number of rows in every table"
        )
    ));
    let is_equal = |verdict: &Equality| *verdict == Equality::Equal;
    let equal = difference
        .items
        .iter()
        .filter(|item| is_equal(&item.verdict))
        .count();
    let all = difference.items.len();
    sentences.push(match all - equal {
        _ if all == 0 => {
            "Nothing was compared between the arms, so nothing shows that the rest was equal."
                .to_owned()
        }
        0 => format!(
            "Compared between the arms, beside the control variable itself: {} items, all equal.",
            words::count(all as u64)
        ),
        n => format!(
            "Compared between the arms: {} items, of which {} are equal; {} listed below with the reason.",
            words::count(all as u64),
            words::count(equal as u64),
            if n == 1 {
                "the other one is".to_owned()
            } else {
                format!("the other {} are", words::count(n as u64))
            }
        ),
    });
    sentences
}

fn observed(figures: &BTreeMap<String, Option<FigureValue>>) -> String {
    if figures.is_empty() {
        return "no figures".to_owned();
    }
    let parts: Vec<String> = figures
        .iter()
        .map(|(name, value)| format!("{name} = {}", words::figure(value.as_ref())))
        .collect();
    parts.join(", ")
}

pub(super) fn differing(summary: &Summary) -> Option<Table> {
    let mut table = Table::new(
        "What differed between the arms",
        &[
            ("what", Kind::Code),
            ("treatment", Kind::Code),
            ("control", Kind::Code),
            ("verdict", Kind::Text),
        ],
    );
    for item in &summary.difference.items {
        let verdict = match &item.verdict {
            Equality::Equal => continue,
            Equality::Implied(why) => format!("implied by the control variable: {why}"),
            Equality::Permitted(why) => format!("permitted by the author: {why}"),
            Equality::Undeclared => "not declared".to_owned(),
        };
        table.rows.push(vec![
            item.what.clone(),
            item.treatment.clone(),
            item.control.clone(),
            verdict,
        ]);
    }
    table.filled()
}

pub(super) fn equal(summary: &Summary) -> Option<Table> {
    let mut table = Table::new(
        "Compared and equal in both arms",
        &[("what", Kind::Code), ("in both arms", Kind::Code)],
    );
    let mut settings: BTreeMap<&str, u64> = BTreeMap::new();
    for item in &summary.difference.items {
        if item.verdict != Equality::Equal {
            continue;
        }
        // A server has hundreds of settings; those that the file declares stand in the setup.
        match item.what.split_once(".settings.") {
            Some((service, _)) => *settings.entry(service).or_default() += 1,
            None => table
                .rows
                .push(vec![item.what.clone(), item.treatment.clone()]),
        }
    }
    for (service, count) in settings {
        table.rows.push(vec![
            format!("{service}.settings"),
            format!(
                "{} settings, each the same; all are in summary.json",
                words::count(count)
            ),
        ]);
    }
    table.filled()
}

pub(super) fn criteria(summary: &Summary) -> Option<Table> {
    let mut table = Table::new(
        "Criteria, written before the run",
        &[
            ("criterion", Kind::Text),
            ("arm", Kind::Text),
            ("must hold", Kind::Code),
            ("observed", Kind::Text),
            ("verdict", Kind::Text),
        ],
    );
    for criterion in &summary.criteria {
        table.rows.push(vec![
            criterion.name.clone(),
            criterion.arm.to_string(),
            criterion.holds.clone(),
            observed(&criterion.observed),
            words::verdict_as(&criterion.verdict, "holds", "does not hold"),
        ]);
    }
    table.filled()
}

/// Rows only where there is more than one pair.
pub(super) fn pairs(summary: &Summary) -> Option<Table> {
    if summary.pairs.len() < 2 {
        return None;
    }
    let mut table = Table::new(
        "Every pair",
        &[
            ("pair", Kind::Number),
            ("ran first", Kind::Text),
            ("treatment ok/s", Kind::Number),
            ("last window", Kind::Number),
            ("trend", Kind::Text),
            ("control ok/s", Kind::Number),
            ("last window", Kind::Number),
            ("trend", Kind::Text),
        ],
    );
    for pair in &summary.pairs {
        let mut row = vec![pair.pair.to_string(), pair.first.to_string()];
        for arm in Arm::BOTH {
            row.push(words::maybe(*pair.mean.get(arm), ""));
            row.push(words::maybe(*pair.last.get(arm), ""));
            row.push(
                pair.trend
                    .get(arm)
                    .map_or(words::NOT_OBSERVED, Word::as_str)
                    .to_owned(),
            );
        }
        table.rows.push(row);
    }
    table.thinned("pairs").filled()
}

pub(super) fn between(summary: &Summary) -> Option<Table> {
    let between = summary.between.as_ref()?;
    let mut table = Table::new(
        "What can be said between the arms",
        &[("figure", Kind::Text), ("value", Kind::Text)],
    );
    let mut row = |label: &str, value: String| table.rows.push(vec![label.to_owned(), value]);
    row("pairs", words::count(between.pairs as u64));
    row("control ÷ treatment, whole run", ratio(between.ratio_mean));
    row(
        "control ÷ treatment, last window",
        ratio(between.ratio_last),
    );
    if let Some([low, high]) = between.ratio_ci95 {
        row(
            "95 % interval of the ratio that is argued with",
            format!("{} to {}", words::ratio(low), words::ratio(high)),
        );
    }
    if let Some(p) = between.sign_flip_p {
        row("exact sign-flip p", words::number(p));
    }
    match between.trend_difference {
        Some([estimate, low, high]) => row(
            "difference of the two trends (treatment − control), share of the level over the run",
            format!(
                "{}, 95 % interval {} to {}; {}",
                words::change(estimate),
                words::change(low),
                words::change(high),
                if between.trends_differ {
                    "0 lies outside, so the trends differ"
                } else {
                    "0 lies inside, so no difference is shown"
                }
            ),
        ),
        None => row(
            "difference of the two trends",
            words::NOT_OBSERVED.to_owned(),
        ),
    }
    let source = between
        .run_sd_source
        .as_deref()
        .unwrap_or("source not recorded");
    row(
        "run-to-run standard deviation of log throughput",
        between.run_sd.map_or_else(
            || "not measured and not declared".to_owned(),
            |sd| format!("{} ({source})", words::percent(sd)),
        ),
    );
    let beyond = |value: Option<bool>| match value {
        Some(true) => "yes".to_owned(),
        Some(false) => "no".to_owned(),
        None => "not known".to_owned(),
    };
    row(
        "more than two runs of one arm may differ by (3 √2 of that standard deviation), last window",
        beyond(between.beyond_noise_last),
    );
    row("the same, whole run", beyond(between.beyond_noise_mean));
    table.filled()
}

fn ratio(value: Option<f64>) -> String {
    value.map_or_else(|| words::NOT_OBSERVED.to_owned(), words::ratio)
}

/// What stands for an arm where both are meant.
const BOTH: &str = "both";

pub(super) fn gates(summary: &Summary) -> Option<Table> {
    let mut table = Table::new(
        "Gates: what must hold before anything is concluded",
        &[
            ("gate", Kind::Text),
            ("arm", Kind::Text),
            ("verdict", Kind::Text),
            ("measured", Kind::Text),
            ("blocks when it fails", Kind::Text),
        ],
    );
    for gate in &summary.gates {
        let row = vec![
            format!("{}: {}", gate.number, gate.name),
            gate.arm
                .map_or_else(|| BOTH.to_owned(), |arm| arm.to_string()),
            // What was not observed stands in the next column, once.
            match &gate.verdict {
                Verdict::NotObserved(_) => words::NOT_OBSERVED.to_owned(),
                verdict => words::verdict_as(verdict, "passed", "failed"),
            },
            words::one_line(&gate.detail),
            gate.blocks.clone(),
        ];
        // One row for both arms where there is nothing that tells them apart.
        let same = |other: &&mut Vec<String>| {
            let differ: Vec<usize> = (0..row.len()).filter(|&i| other[i] != row[i]).collect();
            differ == [1] && gate.arm.is_some()
        };
        match table.rows.iter_mut().find(same) {
            Some(other) => BOTH.clone_into(&mut other[1]),
            None => table.rows.push(row),
        }
    }
    // Gates of one number that were judged arm by arm stand together.
    table.rows.sort_by(|a, b| a[0].cmp(&b[0]));
    table.filled()
}
