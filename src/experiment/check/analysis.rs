//! `[analysis]`.

use std::collections::BTreeMap;

use super::Checker;
use crate::experiment::AnalysisPlan;
use crate::experiment::document::Node;
use crate::figure::{Declared, bears_trend};

pub(super) fn check(root: &Node, declared: &Declared, checker: &mut Checker<'_>) -> AnalysisPlan {
    let empty = Node::empty();
    let table = root.table("analysis").unwrap_or(&empty);
    let mut share = |node: Option<&Node>, key: &str, most: f64| {
        let value = node.and_then(Node::share);
        if let (Some(node), Some(share)) = (node, value)
            && (share <= 0.0 || share > most)
        {
            checker.error(
                node.span.clone(),
                format!("`analysis.{key}` is {}", node.text().unwrap_or_default()),
                format!("it lies above 0% and is at most {}%", most * 100.0),
            );
        }
        value
    };
    let margin = share(table.get("margin"), "margin", 0.9);
    let served = share(table.get("served_at_least"), "served_at_least", 1.0);
    let run_sd = share(table.get("run_sd"), "run_sd", 1.0);
    let mut margins = BTreeMap::new();
    for entry in table.get("margins").map_or(&[][..], Node::entries) {
        if let Some(value) = share(Some(&entry.node), &format!("margins.{}", entry.key), 0.9) {
            margins.insert(entry.key.clone(), value);
        }
    }
    for entry in table.get("margins").map_or(&[][..], Node::entries) {
        if entry.node.entries().is_empty()
            && let Err(error) = bears_trend(&entry.key, declared)
        {
            checker.error(entry.key_span.clone(), error.message, error.hint);
        }
    }
    let mut budget = BTreeMap::new();
    for entry in table.get("budget").map_or(&[][..], Node::entries) {
        let memory = matches!(
            entry.key.split('.').collect::<Vec<_>>().as_slice(),
            ["services", _, "memory", _]
        );
        match bears_trend(&entry.key, declared) {
            Ok(()) if memory => {}
            Ok(()) => checker.error(
                entry.key_span.clone(),
                format!("`{}` is not a memory, and a budget is one", entry.key),
                "write a figure such as \"services.app.memory.pss\", in quotes",
            ),
            Err(error) => checker.error(entry.key_span.clone(), error.message, error.hint),
        }
        if let Some(bytes) = entry.node.size() {
            budget.insert(entry.key.clone(), bytes);
        }
    }
    let horizon = table.get("horizon").and_then(Node::duration);
    if let Some(entry) = table.entry("budget").filter(|_| horizon.is_none()) {
        checker.error(
            entry.key_span.clone(),
            "`analysis.budget` does not say over which time",
            "add `horizon = \"72h\"`",
        );
    }
    AnalysisPlan {
        margin,
        margins,
        confidence: table
            .get("confidence")
            .and_then(Node::number)
            .unwrap_or(0.95),
        served_at_least: served.unwrap_or(0.99),
        run_sd,
        horizon,
        budget,
        primary: primary(root, table, checker),
    }
}

/// Names of explanations that a claim cites, or indexes of claims from 1.
fn primary(root: &Node, table: &Node, checker: &mut Checker<'_>) -> Vec<String> {
    let claims = root.get("claim").map_or(&[][..], Node::items);
    let mut primary = Vec::new();
    for item in table.get("primary").map_or(&[][..], Node::items) {
        if let Some(index) = item.integer() {
            if index > claims.len() as i64 {
                checker.error(
                    item.span.clone(),
                    format!("`analysis.primary`: there is no claim {index}"),
                    format!("the file has {}", claims.len()),
                );
            }
            primary.push(index.to_string());
        } else if let Some(name) = item.text() {
            let cited = claims
                .iter()
                .any(|claim| claim.get("explanation").and_then(Node::text) == Some(name));
            if !cited {
                checker.error(
                    item.span.clone(),
                    format!("`analysis.primary`: no claim cites the explanation \"{name}\""),
                    "write the explanation of a claim, or a claim's number from 1",
                );
            }
            primary.push(name.to_owned());
        }
    }
    primary
}
