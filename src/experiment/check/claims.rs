//! `[[criterion]]`, `[[explanation]]`, `[[claim]]` and `took_effect`: everything that argues with figures.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use minijinja::Value;

use super::Checker;
use crate::experiment::document::Node;
use crate::experiment::format;
use crate::experiment::{AnalysisPlan, Claim, Criterion, Explanation, TrendWord};
use crate::expression::Expression;
use crate::figure::{Declared, Figure, Kind, Place, bears_trend};
use crate::name::{Arm, Arms, nearest};
use crate::template;

/// What was said, and which trends it rests on.
pub(super) struct Said {
    pub criteria: Vec<Criterion>,
    pub explanations: Vec<Explanation>,
    pub claims: Vec<Claim>,
    /// Figures whose trend is predicted or argued with, without the arm, each with its first place.
    pub trends: Vec<(String, Range<usize>)>,
}

pub(super) fn check(
    root: &Node,
    declared: &Declared,
    analysis: &AnalysisPlan,
    checker: &mut Checker<'_>,
) -> Said {
    let mut said = Said {
        criteria: Vec::new(),
        explanations: Vec::new(),
        claims: Vec::new(),
        trends: Vec::new(),
    };
    let mut seen = BTreeSet::new();
    for item in root.get("criterion").map_or(&[][..], Node::items) {
        unique(item, "criteria", &mut seen, checker);
        if let Some(node) = item.get("holds") {
            expression(
                node,
                "holds",
                Place::Criterion,
                (declared, analysis),
                &mut said.trends,
                checker,
            );
        }
        said.criteria.push(Criterion {
            name: text(item, "name"),
            holds: text(item, "holds"),
        });
    }
    let mut seen = BTreeSet::new();
    for item in root.get("explanation").map_or(&[][..], Node::items) {
        unique(item, "explanations", &mut seen, checker);
        let predicts = predicts(item, declared, &mut said.trends, checker);
        said.explanations.push(Explanation {
            name: text(item, "name"),
            because: text(item, "because"),
            predicts,
        });
    }
    for item in root.get("claim").map_or(&[][..], Node::items) {
        claim(item, declared, analysis, &mut said, checker);
    }
    if let Some(node) = root.table("control").and_then(|c| c.get("took_effect")) {
        expression(
            node,
            "took_effect",
            Place::Claim,
            (declared, analysis),
            &mut said.trends,
            checker,
        );
    }
    margins(root, analysis, &said, checker);
    said
}

fn text(item: &Node, key: &str) -> String {
    item.get(key)
        .and_then(Node::text)
        .unwrap_or_default()
        .to_owned()
}

fn unique(item: &Node, what: &str, seen: &mut BTreeSet<String>, checker: &mut Checker<'_>) {
    if let Some(name) = item.get("name")
        && let Some(text) = name.text()
        && !seen.insert(text.to_owned())
    {
        checker.error(
            name.span.clone(),
            format!("two {what} are named \"{text}\""),
            "give each a name of its own",
        );
    }
}

fn expression(
    node: &Node,
    key: &str,
    place: Place,
    (declared, analysis): (&Declared, &AnalysisPlan),
    trends: &mut Vec<(String, Range<usize>)>,
    checker: &mut Checker<'_>,
) {
    let Some(source) = node.text() else {
        return;
    };
    match Expression::parse(source, place, declared) {
        Ok(expression) => {
            for figure in expression.figures().iter().filter(|f| f.is_trend()) {
                note_trend(figure, checker.mention(node, &figure.path), trends);
            }
            if expression.figures().iter().any(|f| f.path == "margin") && analysis.margin.is_none()
            {
                checker.error(
                    checker.mention(node, "margin"),
                    format!("`{key}` names `margin`, and none is declared"),
                    "add `margin = \"20%\"` to [analysis]",
                );
            }
        }
        Err(errors) => {
            for error in errors {
                let span = checker.inside(node, error.span);
                checker.error(span, format!("`{key}`: {}", error.message), error.hint);
            }
        }
    }
}

fn note_trend(figure: &Figure, span: Range<usize>, trends: &mut Vec<(String, Range<usize>)>) {
    let name = figure.name.strip_suffix(".trend").unwrap_or(&figure.name);
    if !trends.iter().any(|(known, _)| known == name) {
        trends.push((name.to_owned(), span));
    }
}

fn predicts(
    item: &Node,
    declared: &Declared,
    trends: &mut Vec<(String, Range<usize>)>,
    checker: &mut Checker<'_>,
) -> BTreeMap<String, Arms<Option<TrendWord>>> {
    let mut predicts = BTreeMap::new();
    for entry in item.get("predicts").map_or(&[][..], Node::entries) {
        let arms = entry.node.entries();
        let nested = arms
            .iter()
            .any(|arm| !matches!(arm.key.as_str(), "treatment" | "control"))
            && declared
                .services
                .keys()
                .any(|s| arms.iter().any(|arm| arm.key == *s));
        if nested {
            checker.error(
                entry.key_span.clone(),
                format!(
                    "`predicts`: a dotted figure beginning with `{}` is not in quotes",
                    entry.key
                ),
                "write it as \"services.app.memory.rss\" = { … }",
            );
            continue;
        }
        if let Err(error) = bears_trend(&entry.key, declared) {
            checker.error(
                entry.key_span.clone(),
                format!("`predicts`: {}", error.message),
                error.hint,
            );
            continue;
        }
        if !trends.iter().any(|(known, _)| *known == entry.key) {
            trends.push((entry.key.clone(), entry.key_span.clone()));
        }
        if arms.is_empty() {
            checker.error(
                entry.node.span.clone(),
                format!("`predicts.{}` is not a prediction for an arm", entry.key),
                "write { treatment = \"falls\", control = \"flat\" }",
            );
        }
        let mut words = Arms::<Option<TrendWord>>::default();
        for arm in arms {
            let word = word(&arm.node, checker);
            match arm.key.parse::<Arm>() {
                Ok(known) => *words.get_mut(known) = word,
                Err(_) => checker.error(
                    arm.key_span.clone(),
                    format!("`{}` is no arm", arm.key),
                    match nearest(&arm.key, ["treatment", "control"]) {
                        Some(near) => format!("did you mean `{near}`?"),
                        None => "write `treatment` or `control`".to_owned(),
                    },
                ),
            }
        }
        predicts.insert(entry.key.clone(), words);
    }
    predicts
}

fn word(node: &Node, checker: &mut Checker<'_>) -> Option<TrendWord> {
    const WORDS: [&str; 3] = ["flat", "falls", "rises"];
    match node.text() {
        Some("flat") => Some(TrendWord::Flat),
        Some("falls") => Some(TrendWord::Falls),
        Some("rises") => Some(TrendWord::Rises),
        Some(other) => {
            let hint = match (nearest(other, WORDS), other) {
                (_, "unclear") => "nobody can predict \"unclear\": leave the arm out".to_owned(),
                (Some(near), _) => format!("did you mean \"{near}\"?"),
                (None, _) => "write \"flat\", \"falls\" or \"rises\"".to_owned(),
            };
            checker.error(
                node.span.clone(),
                format!("\"{other}\" can't be predicted"),
                hint,
            );
            None
        }
        None => {
            checker.error(
                node.span.clone(),
                format!("a prediction is a word, not {}", node.kind()),
                "write \"flat\", \"falls\" or \"rises\"",
            );
            None
        }
    }
}

fn claim(
    item: &Node,
    declared: &Declared,
    analysis: &AnalysisPlan,
    said: &mut Said,
    checker: &mut Checker<'_>,
) {
    if let Some(node) = item.get("when") {
        expression(
            node,
            "when",
            Place::Claim,
            (declared, analysis),
            &mut said.trends,
            checker,
        );
    }
    if let Some(node) = item.get("text") {
        claim_text(node, declared, analysis, checker);
    }
    if let Some(node) = item.get("explanation")
        && let Some(name) = node.text()
        && !said.explanations.iter().any(|e| e.name == name)
    {
        let hint = match nearest(name, said.explanations.iter().map(|e| e.name.as_str())) {
            Some(near) => format!("did you mean \"{near}\"?"),
            None => "write it as [[explanation]] with its predictions".to_owned(),
        };
        checker.error(
            node.span.clone(),
            format!("`claim.explanation`: no explanation is named \"{name}\""),
            hint,
        );
    }
    said.claims.push(Claim {
        text: text(item, "text"),
        when: text(item, "when"),
        explanation: item
            .get("explanation")
            .and_then(Node::text)
            .map(str::to_owned),
    });
}

/// The text of a claim: every name is a figure, every filter fits.
fn claim_text(
    node: &Node,
    declared: &Declared,
    analysis: &AnalysisPlan,
    checker: &mut Checker<'_>,
) {
    let Some(source) = node.text() else {
        return;
    };
    let names = match template::names(source) {
        Ok(names) => names,
        Err(error) => {
            let span = error
                .span
                .map_or(node.span.clone(), |range| checker.inside(node, range));
            checker.error(
                span,
                format!(
                    "`claim.text`: the template can't be parsed: {}",
                    error.message
                ),
                "templates are minijinja: {{ treatment.throughput.fall | percent }}",
            );
            return;
        }
    };
    let mut sound = true;
    let mut kinds = BTreeMap::new();
    for name in names {
        match Figure::parse(&name, Place::Claim, declared) {
            Ok(_) if name == "margin" && analysis.margin.is_none() => {
                sound = false;
                checker.error(
                    checker.mention(node, &name),
                    "`claim.text` names `margin`, and none is declared",
                    "add `margin = \"20%\"` to [analysis]",
                );
            }
            Ok(figure) => {
                kinds.insert(name, figure.kind);
            }
            Err(error) => {
                sound = false;
                checker.error(
                    checker.mention(node, &name),
                    format!("`claim.text`: {}", error.message),
                    error.hint,
                );
            }
        }
    }
    if !sound {
        return;
    }
    let trial = template::render_text(source, |name| {
        Some(match kinds.get(name)? {
            Kind::Number => Value::from(0.5),
            Kind::Word => Value::from("flat"),
            Kind::List => Value::from(vec![window_row()]),
        })
    });
    if let Err(error) = trial {
        let span = error
            .span
            .map_or(node.span.clone(), |range| checker.inside(node, range));
        checker.error(
            span,
            format!("`claim.text`: the template fails: {}", error.message),
            "filters for figures are percent, count, round, rate, ms, seconds, mib",
        );
    }
}

/// A row of `.windows`.
fn window_row() -> Value {
    let row: BTreeMap<&str, Value> = ["from", "to", "throughput", "p50", "p99", "max", "failed"]
        .into_iter()
        .map(|column| (column, Value::from(0.5)))
        .collect();
    Value::from(row)
}

/// A trend that is predicted or argued with needs a margin.
fn margins(root: &Node, analysis: &AnalysisPlan, said: &Said, checker: &mut Checker<'_>) {
    if analysis.margin.is_some() {
        return;
    }
    // A margin that is written but faulty, or misspelt, was told already.
    let told = root
        .table("analysis")
        .is_some_and(|a| a.get("margin").is_some() || format::ANALYSIS.has_unknown(a));
    if told || format::FILE.has_unknown(root) {
        return;
    }
    let without = said
        .trends
        .iter()
        .find(|(name, _)| !analysis.margins.contains_key(name));
    if let Some((name, span)) = without {
        checker.error(
            span.clone(),
            format!("the trend of `{name}` is judged, but no margin is declared"),
            "add `margin = \"20%\"` to [analysis]: what \"flat\" may move",
        );
    }
}
