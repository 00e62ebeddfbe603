//! Claims: what may be printed under "Supports", and what refused the others.
//!
//! A claim is supported only when its `when` holds, no gate bars the figures that it argues with, and, where it is causal,
//! every condition for that is met. Each refusal names the figure or the condition that refused.

use std::collections::BTreeSet;

use minijinja::Value as Text;

use super::between::OneSign;
use super::conduct::Bars;
use super::explanations::same_row;
use super::figures::Figures;
use super::statements::{named, rule};
use super::summary::{ArmSummary, Between, ClaimResult, ExplanationResult, FigureValue, WindowRow};
use super::verdict::Verdict;
use crate::experiment::{Claim, Control, Experiment, TrendWord};
use crate::figure::{Declared, Figure, Place, Scope};
use crate::name::{Arm, Arms};
use crate::template;

/// What claims are judged by.
#[derive(Debug, Clone, Copy)]
pub(super) struct Evidence<'a> {
    pub(super) experiment: &'a Experiment,
    pub(super) declared: &'a Declared,
    pub(super) figures: &'a Figures,
    pub(super) arms: &'a Arms<Option<ArmSummary>>,
    pub(super) explanations: &'a [ExplanationResult],
    pub(super) between: Option<&'a Between>,
    pub(super) one_sign: OneSign,
    pub(super) permitted: &'a [String],
    pub(super) bars: &'a Bars,
}

/// Judges every claim.
pub(super) fn judge(evidence: &Evidence<'_>) -> Vec<ClaimResult> {
    let claims = &evidence.experiment.claims;
    claims
        .iter()
        .enumerate()
        .map(|(i, claim)| one(claim, i, evidence))
        .collect()
}

/// Whether a claim is among the primary ones: by its explanation's name or its number from 1; all are when none is named.
pub(super) fn is_primary(claim: &Claim, index: usize, primary: &[String]) -> bool {
    primary.is_empty()
        || primary.iter().any(|name| {
            claim.explanation.as_ref() == Some(name) || *name == (index + 1).to_string()
        })
}

fn one(claim: &Claim, index: usize, evidence: &Evidence<'_>) -> ClaimResult {
    let ruling = rule(
        &claim.when,
        Place::Claim,
        evidence.declared,
        evidence.figures,
        None,
    );
    let mut verdict = ruling.verdict;
    let mut refused_by = ruling.because;
    let mut refuse = |other: Verdict, because: String| {
        let held = std::mem::replace(&mut verdict, Verdict::Supported);
        verdict = held.worst(other);
        refused_by.push(because);
    };
    for (other, because) in barred(claim, evidence) {
        refuse(other, because);
    }
    for path in printed(claim) {
        let known = Figure::parse(&path, Place::Claim, evidence.declared).is_ok();
        if known && !path.ends_with(".windows") && evidence.figures.value(&path).is_none() {
            refuse(
                Verdict::NotObserved(path.clone()),
                format!("its text prints a figure: {}", evidence.figures.told(&path)),
            );
        }
    }
    let mut also_survive = Vec::new();
    if let Some(name) = claim
        .explanation
        .as_ref()
        .filter(|_| evidence.bars.run.is_none())
    {
        for because in causal(claim, name, evidence) {
            refuse(
                Verdict::Undetermined("causal_conditions".to_owned()),
                because,
            );
        }
        also_survive = evidence
            .explanations
            .iter()
            .filter(|e| e.name != *name && e.verdict != Verdict::Refuted)
            .map(|e| e.name.clone())
            .collect();
    }
    let mut text = claim.text.clone();
    if verdict.is_supported() {
        match render(&claim.text, evidence) {
            Ok(filled) => text = filled,
            Err(why) => {
                verdict = Verdict::Undetermined("unreadable_text".to_owned());
                refused_by.push(format!("its text can't be filled in: {why}"));
            }
        }
    }
    ClaimResult {
        text,
        when: claim.when.clone(),
        explanation: claim.explanation.clone(),
        verdict,
        refused_by,
        also_survive,
        exploratory: !is_primary(claim, index, &evidence.experiment.analysis.primary),
    }
}

/// The figures that a claim argues with: those of its condition and those that its text prints.
fn argued(claim: &Claim, evidence: &Evidence<'_>) -> Vec<(Scope, String)> {
    let mut all = named(&claim.when, Place::Claim, evidence.declared);
    all.extend(printed(claim).iter().filter_map(|path| {
        let figure = Figure::parse(path, Place::Claim, evidence.declared).ok()?;
        Some((figure.scope, figure.name))
    }));
    all
}

/// The names in a claim's text.
fn printed(claim: &Claim) -> BTreeSet<String> {
    // A text that can't be read is refused where it is filled in.
    template::names(&claim.text).unwrap_or_default()
}

/// What gates bar in this claim.
fn barred(claim: &Claim, evidence: &Evidence<'_>) -> Vec<(Verdict, String)> {
    let bars = evidence.bars;
    let mut found = Vec::new();
    if let Some(reason) = &bars.run {
        found.push((Verdict::Invalid(reason.clone()), reason.clone()));
        return found;
    }
    let figures = argued(claim, evidence);
    let mut arms: Vec<Arm> = Vec::new();
    for (scope, name) in &figures {
        if name.starts_with("probe.") && !bars.latency.is_empty() {
            found.push((
                Verdict::Invalid("gate_6".to_owned()),
                format!("{name} is barred: the load driver was at its own limit"),
            ));
        }
        let (of, told): (&[Arm], String) = match scope {
            Scope::Arm(arm) => {
                if !arms.contains(arm) {
                    arms.push(*arm);
                }
                (std::slice::from_ref(arm), format!("{arm}.{name}"))
            }
            _ if name.starts_with("ratio.") => (&Arm::BOTH, name.clone()),
            _ => continue,
        };
        let tells_latency = name.starts_with("latency.") || name == "windows";
        for arm in of {
            if bars.arms.contains(arm) {
                found.push((
                    Verdict::Invalid("gate_5".to_owned()),
                    format!(
                        "{told} is barred: the clients' time is not accounted for in the {arm}"
                    ),
                ));
            } else if tells_latency && bars.latency.contains(arm) {
                found.push((
                    Verdict::Invalid("gate_6".to_owned()),
                    format!("{told} is barred: the load driver was at its own limit"),
                ));
            }
        }
    }
    if let (Some(arm), Some(_)) = (bars.arms.first(), &claim.explanation) {
        // The two trends and the end rates are figures of both arms, whether the claim names them or not.
        found.push((
            Verdict::Invalid("gate_5".to_owned()),
            format!("no cause is told: the clients' time is not accounted for in the {arm}"),
        ));
    }
    if let Some(reason) = &bars.between
        && (claim.explanation.is_some() || contrasts(&claim.when, &figures, arms.len() == 2))
    {
        found.push((
            Verdict::Undetermined("not_applied".to_owned()),
            reason.clone(),
        ));
    }
    if let Some(because) = beyond_noise(claim, &figures, evidence) {
        found.push((
            Verdict::Undetermined("run_to_run_variation".to_owned()),
            because,
        ));
    }
    found
}

/// A comparison of the arms' own speed needs more than this pair: the ratio must exceed what two runs of one arm differ by.
fn beyond_noise(
    claim: &Claim,
    figures: &[(Scope, String)],
    evidence: &Evidence<'_>,
) -> Option<String> {
    let mut across = comparisons(&claim.when);
    across.retain(|part| {
        names_both_arms(part)
            && figures
                .iter()
                .any(|(_, name)| part.contains(name.as_str()) && is_behaviour(name))
    });
    let ratio = figures.iter().any(|(_, name)| name.starts_with("ratio."));
    if across.is_empty() && !ratio {
        return None;
    }
    let between = evidence.between?;
    if ratio {
        let because = match between.ratio_ci95.filter(|_| between.pairs > 1) {
            Some([low, high]) => (!(between.pairs >= 4 && (low > 1.0 || high < 1.0)))
                .then(|| between.wording.clone()),
            None => within_noise(between.beyond_noise_mean, between),
        };
        if because.is_some() {
            return because;
        }
    }
    // Every comparison counts, in whichever order they are written.
    across.iter().find_map(|part| {
        if !part.contains("throughput.") {
            return Some(
                "it compares the arms by a figure whose run-to-run variation was not measured"
                    .to_owned(),
            );
        }
        let beyond = if part.contains("throughput.last") {
            between.beyond_noise_last
        } else {
            between.beyond_noise_mean
        };
        within_noise(beyond, between)
    })
}

/// Why a difference is no more than two runs of one arm may show.
fn within_noise(beyond: Option<bool>, between: &Between) -> Option<String> {
    match beyond {
        Some(true) => None,
        Some(false) => Some(format!(
            "the arms do not differ by more than two runs of one arm may: {}",
            between.wording
        )),
        None => Some(between.wording.clone()),
    }
}

/// The parts of an expression between `and`, `or`, `not` and parentheses, quoted words left in.
fn comparisons(source: &str) -> Vec<String> {
    let mut parts = vec![String::new()];
    for word in source.replace(['(', ')'], " ").split_whitespace() {
        if matches!(word, "and" | "or" | "not") {
            parts.push(String::new());
        } else if let Some(part) = parts.last_mut() {
            part.push_str(word);
            part.push(' ');
        }
    }
    parts.retain(|part| !part.trim().is_empty());
    parts
}

/// Whether an expression can hold in more than one way, so that each of its verdicts is a chance of its own.
pub(super) fn is_any(source: &str) -> bool {
    source
        .replace(['(', ')'], " ")
        .split_whitespace()
        .any(|word| word == "or" || word == "not")
}

fn names_both_arms(part: &str) -> bool {
    part.contains("treatment.") && part.contains("control.")
}

/// Whether an expression sets the arms against each other: by a ratio, within one comparison, or by how both behave. Counts
/// that must be right in each arm (no failures here and none there) do not.
fn contrasts(source: &str, figures: &[(Scope, String)], both: bool) -> bool {
    figures.iter().any(|(_, name)| name.starts_with("ratio."))
        || comparisons(source).iter().any(|part| names_both_arms(part))
        || both && figures.iter().any(|(_, name)| is_behaviour(name))
}

/// Whether a figure tells how an arm behaves, and so differs from run to run.
fn is_behaviour(name: &str) -> bool {
    ["throughput.", "latency.", "services.", "host."]
        .iter()
        .any(|prefix| name.starts_with(prefix))
}

/// The conditions of causal wording that are not met.
fn causal(claim: &Claim, name: &str, evidence: &Evidence<'_>) -> Vec<String> {
    let mut unmet = Vec::new();
    let Some(own) = evidence.explanations.iter().find(|e| e.name == *name) else {
        return vec![format!("there is no explanation named {name}")];
    };
    if !own.verdict.is_supported() {
        unmet.push(format!(
            "the explanation \"{name}\" is {}",
            told(&own.verdict)
        ));
    }
    if evidence.experiment.control == Control::Null {
        unmet.push("a null experiment has no difference that could be a cause".to_owned());
    }
    if !evidence.permitted.is_empty() {
        unmet.push(format!(
            "the arms differ in more than the control variable: {}",
            evidence.permitted.join(", ")
        ));
    }
    for rival in evidence.explanations {
        if rival.name != own.name && rival.verdict != Verdict::Refuted && same_row(rival, own) {
            unmet.push(format!(
                "\"{}\" predicts the same and was not refuted",
                rival.name
            ));
        }
    }
    let Some(between) = evidence.between else {
        unmet.push("there is no complete pair".to_owned());
        return unmet;
    };
    if !between.trends_differ {
        unmet.push(match between.trend_difference {
            Some([estimate, low, high]) => format!(
                "the two trends do not differ: {} of the level over the run, 95 % interval {} to {}",
                super::figures::percent(estimate),
                super::figures::percent(low),
                super::figures::percent(high)
            ),
            None => "the difference of the two trends could not be judged".to_owned(),
        });
    }
    let figures = named(&claim.when, Place::Claim, evidence.declared);
    let by_mean = figures
        .iter()
        .any(|(_, n)| n == "throughput.mean" || n.starts_with("ratio."));
    let (beyond, sign, what) = if by_mean {
        (
            between.beyond_noise_mean,
            evidence.one_sign.mean,
            "whole-run means",
        )
    } else {
        (
            between.beyond_noise_last,
            evidence.one_sign.last,
            "end rates",
        )
    };
    let of = |arm| {
        let mut own = own.predictions.iter();
        own.find(|p| p.figure == "throughput" && p.arm == arm)
            .map(|p| direction(p.predicted))
    };
    match of(Arm::Treatment).zip(of(Arm::Control)) {
        Some((treatment, control)) if treatment != control => {
            let expected = f64::from((treatment - control).signum());
            if let Some([estimate, ..]) = between.trend_difference
                && estimate * expected <= 0.0
            {
                unmet.push("the trends differ the other way round than it predicts".to_owned());
            }
            // Control ÷ treatment: above one where the treatment fell.
            let ratio = if by_mean {
                between.ratio_mean
            } else {
                between.ratio_last
            };
            if ratio.is_some_and(|ratio| ratio.ln() * expected >= 0.0) {
                unmet.push(format!(
                    "the {what} differ the other way round than it predicts"
                ));
            }
        }
        _ => unmet.push(format!(
            "\"{name}\" predicts no difference between the arms' throughput"
        )),
    }
    if beyond != Some(true) && !sign {
        unmet.push(match beyond {
            Some(_) => format!(
                "the {what} do not differ by more than 3 √2 of the run-to-run standard deviation, and there are not six pairs with one sign"
            ),
            None => format!(
                "run-to-run variation of the {what} was not measured, and there are not six pairs with one sign"
            ),
        });
    }
    unmet
}

fn direction(word: TrendWord) -> i8 {
    match word {
        TrendWord::Falls => -1,
        TrendWord::Flat => 0,
        TrendWord::Rises => 1,
    }
}

/// A verdict in words.
pub(super) fn told(verdict: &Verdict) -> String {
    match verdict {
        Verdict::Supported => "consistent with the data".to_owned(),
        Verdict::Undetermined(reason) => format!("undetermined ({reason})"),
        Verdict::NotObserved(reason) => format!("not observed ({reason})"),
        Verdict::Refuted => "refuted".to_owned(),
        Verdict::Invalid(reason) => format!("not judged ({reason})"),
    }
}

/// A window as texts name its parts.
fn window(row: &WindowRow) -> Text {
    let maybe = |value: Option<f64>| value.map_or(Text::from("n too small"), Text::from);
    Text::from_pairs([
        ("from", Text::from(row.from_s)),
        ("to", Text::from(row.to_s)),
        ("throughput", Text::from(row.throughput)),
        ("p50", maybe(row.p50)),
        ("p99", maybe(row.p99)),
        ("max", maybe(row.max)),
        ("failed", Text::from(row.failed)),
    ])
}

fn render(text: &str, evidence: &Evidence<'_>) -> Result<String, String> {
    template::render_text(text, |name| {
        if let Some((arm, "windows")) = name.split_once('.') {
            let arm: Arm = arm.parse().ok()?;
            let windows = &evidence.arms.get(arm).as_ref()?.windows;
            return Some(windows.iter().map(window).collect());
        }
        evidence.figures.values.get(name).map(|value| match value {
            FigureValue::Number(number) => Text::from(*number),
            FigureValue::Word(word) => Text::from(word.as_str()),
        })
    })
    .map_err(|error| error.message)
}
