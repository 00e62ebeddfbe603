//! `[workload]`: the steps, what they send, expect and keep.

use std::collections::{BTreeMap, BTreeSet};

use super::{Checker, templates, values};
use crate::experiment::document::{Content, Node};
use crate::experiment::{Body, Expect, Pick, Step, Workload};
use crate::name::StepName;

/// Keys that say the method and the path.
pub(super) const METHODS: [&str; 6] = ["get", "post", "put", "patch", "delete", "head"];

pub(super) fn check(root: &Node, checker: &mut Checker<'_>) -> Workload {
    let table = root.table("workload");
    let items = table
        .and_then(|t| t.get("step"))
        .map_or(&[][..], Node::items);
    let mut kept: BTreeSet<String> = BTreeSet::new();
    for step in items {
        for entry in step.get("keep").map_or(&[][..], Node::entries) {
            kept.insert(entry.key.clone());
        }
    }
    let mut seen = BTreeSet::new();
    let mut earlier = BTreeSet::new();
    let mut steps = Vec::new();
    for item in items {
        if let Some(name) = item.get("name")
            && let Some(text) = name.text()
            && !seen.insert(text)
        {
            checker.error(
                name.span.clone(),
                format!("two steps are named \"{text}\""),
                "give each step a name of its own: figures are told apart by it",
            );
        }
        steps.extend(step(item, &kept, &mut earlier, checker));
    }
    if let Some(node) = table.and_then(|t| t.get("step"))
        && node.kind() == "a list"
        && items
            .iter()
            .all(|item| item.get("weight").and_then(Node::integer) == Some(0))
    {
        let (message, hint) = if items.is_empty() {
            (
                "`workload` has no step",
                "add [[workload.step]] with `name` and `get`",
            )
        } else {
            (
                "every step has weight 0, so nothing would be sent",
                "give a step a weight of at least 1",
            )
        };
        checker.error(node.span.clone(), message, hint);
    }
    Workload {
        pick: match table.and_then(|t| t.get("pick")?.text()) {
            Some("cycle") => Pick::Cycle,
            _ => Pick::Weighted,
        },
        steps,
    }
}

fn step(
    item: &Node,
    kept: &BTreeSet<String>,
    earlier: &mut BTreeSet<String>,
    checker: &mut Checker<'_>,
) -> Option<Step> {
    let name = item.get("name").and_then(Node::text).unwrap_or("step");
    let mut used = BTreeSet::new();
    let (method, path) = method(item, &format!("step \"{name}\""), checker).unzip();
    if let Some(path) = path {
        let key = format!("{name}.{}", method.unwrap_or_default());
        values::absolute_path(path, &key, checker);
        used.extend(templates::workload(path, &key, kept, checker));
    }
    let (headers, in_headers) = headers(
        item.get("headers"),
        &format!("{name}.headers"),
        kept,
        checker,
    );
    used.extend(in_headers);
    let body = body(item, name, kept, &mut used, checker);
    if method == Some("head") && body.is_some() {
        checker.error(
            item.span.clone(),
            format!("step \"{name}\" sends a body with HEAD"),
            "use another method, or no body",
        );
    }
    let keep = keep(item, name, method, checker);
    for missing in used.difference(earlier) {
        checker.error(
            path.map_or(item.span.clone(), |p| checker.mention(p, missing)),
            format!("step \"{name}\" needs `{missing}`, which only a later step keeps"),
            "each step is sent once in file order before the load: move the step that keeps it before this one",
        );
    }
    earlier.extend(keep.keys().cloned());
    Some(Step {
        name: StepName::new(name)?,
        method: method?.to_uppercase(),
        path: path?.text()?.to_owned(),
        weight: item
            .get("weight")
            .and_then(Node::integer)
            .and_then(|w| u32::try_from(w).ok())
            .unwrap_or(1),
        headers,
        body,
        expect: expect(item.get("expect"), &format!("{name}.expect"), checker),
        keep,
    })
}

/// The one key among the methods, and its path.
pub(super) fn method<'n>(
    item: &'n Node,
    what: &str,
    checker: &mut Checker<'_>,
) -> Option<(&'static str, &'n Node)> {
    let found: Vec<(&'static str, &crate::experiment::document::Entry)> = METHODS
        .iter()
        .filter_map(|method| item.entry(method).map(|entry| (*method, entry)))
        .collect();
    match found.as_slice() {
        [] => checker.error(
            item.span.clone(),
            format!("{what} sends nothing"),
            "add one of get, post, put, patch, delete, head with a path",
        ),
        [_, (method, second), ..] => checker.error(
            second.key_span.clone(),
            format!("{what} has both `{}` and `{method}`", found[0].0),
            "a request has one method",
        ),
        _ => {}
    }
    found.first().map(|(method, entry)| (*method, &entry.node))
}

/// Headers with the kept values that they use.
pub(super) fn headers(
    node: Option<&Node>,
    key: &str,
    kept: &BTreeSet<String>,
    checker: &mut Checker<'_>,
) -> (Vec<(String, String)>, BTreeSet<String>) {
    let mut headers = Vec::new();
    let mut used = BTreeSet::new();
    let mut seen = BTreeSet::new();
    for entry in node.map_or(&[][..], Node::entries) {
        let key = format!("{key}.{}", entry.key);
        if http::HeaderName::from_bytes(entry.key.as_bytes()).is_err() {
            checker.error(
                entry.key_span.clone(),
                format!("`{}` can't be the name of a header", entry.key),
                "names of headers are letters, digits and dashes",
            );
        }
        let lower = entry.key.to_ascii_lowercase();
        if ["content-length", "transfer-encoding", "connection"].contains(&lower.as_str()) {
            checker.error(
                entry.key_span.clone(),
                format!("`{key}` is the client's own to set"),
                "remove it",
            );
        }
        if !seen.insert(lower) {
            checker.error(
                entry.key_span.clone(),
                format!("the header `{}` is written twice", entry.key),
                "names of headers know no case: keep one",
            );
        }
        if entry
            .node
            .text()
            .is_some_and(|text| text.chars().any(char::is_control))
        {
            checker.error(
                entry.node.span.clone(),
                format!("`{key}` holds a control character"),
                "a header is one line",
            );
        }
        used.extend(templates::workload(&entry.node, &key, kept, checker));
        headers.push((
            entry.key.clone(),
            entry.node.text().unwrap_or_default().to_owned(),
        ));
    }
    (headers, used)
}

fn body(
    item: &Node,
    name: &str,
    kept: &BTreeSet<String>,
    used: &mut BTreeSet<String>,
    checker: &mut Checker<'_>,
) -> Option<Body> {
    let ways: Vec<_> = item
        .entries()
        .iter()
        .filter(|e| matches!(e.key.as_str(), "json" | "form" | "body" | "body_file"))
        .collect();
    if let [first, second, ..] = ways.as_slice() {
        checker.error(
            second.key_span.clone(),
            format!(
                "step \"{name}\" has both `{}` and `{}`",
                first.key, second.key
            ),
            "a request has one body",
        );
    }
    let way = ways.first()?;
    let key = format!("{name}.{}", way.key);
    let node = &way.node;
    match way.key.as_str() {
        "json" => {
            json_leaves(node, &key, kept, used, checker);
            Some(Body::Json(node.json()))
        }
        "form" => {
            let mut form = Vec::new();
            for entry in node.entries() {
                used.extend(templates::workload(
                    &entry.node,
                    &format!("{key}.{}", entry.key),
                    kept,
                    checker,
                ));
                form.push((entry.key.clone(), entry.node.scalar().unwrap_or_default()));
            }
            Some(Body::Form(form))
        }
        "body" => {
            used.extend(templates::workload(node, &key, kept, checker));
            node.text().map(|text| Body::Raw(text.to_owned()))
        }
        _ => {
            let path = checker.file(node, &key);
            let bytes = checker.contents(&path, node, &key);
            Some(Body::File { path, bytes })
        }
    }
}

/// Strings of a JSON body are templates; what JSON lacks is refused.
fn json_leaves(
    node: &Node,
    key: &str,
    kept: &BTreeSet<String>,
    used: &mut BTreeSet<String>,
    checker: &mut Checker<'_>,
) {
    match &node.value {
        Content::Table(entries) => {
            for entry in entries {
                json_leaves(
                    &entry.node,
                    &format!("{key}.{}", entry.key),
                    kept,
                    used,
                    checker,
                );
            }
        }
        Content::Array(items) => {
            for (i, item) in items.iter().enumerate() {
                json_leaves(item, &format!("{key}[{i}]"), kept, used, checker);
            }
        }
        Content::Text(_) => used.extend(templates::workload(node, key, kept, checker)),
        Content::Date(_) => checker.error(
            node.span.clone(),
            format!("`{key}` is a date, which JSON lacks"),
            "write it in quotes",
        ),
        Content::Float(float) if !float.is_finite() => checker.error(
            node.span.clone(),
            format!("`{key}` is {float}, which JSON lacks"),
            "write a finite number",
        ),
        Content::Integer(_) | Content::Float(_) | Content::Truth(_) => {}
    }
}

fn keep(
    item: &Node,
    name: &str,
    method: Option<&str>,
    checker: &mut Checker<'_>,
) -> BTreeMap<String, String> {
    let mut keep = BTreeMap::new();
    for entry in item.get("keep").map_or(&[][..], Node::entries) {
        let reserved = crate::template::WORKLOAD_NUMBERS
            .into_iter()
            .chain(crate::template::WORKLOAD_FUNCTIONS)
            .chain(["env"]);
        if reserved.into_iter().any(|word| word == entry.key) {
            checker.error(
                entry.key_span.clone(),
                format!(
                    "a value can't be kept as `{}`: templates use that name",
                    entry.key
                ),
                "choose another name",
            );
        }
        if method == Some("head") {
            checker.error(
                entry.key_span.clone(),
                format!("step \"{name}\" keeps a value, but the answer to HEAD has no body"),
                "use `get`",
            );
        }
        values::pointer(
            &entry.node,
            &format!("{name}.keep.{}", entry.key),
            true,
            checker,
        );
        keep.insert(
            entry.key.clone(),
            entry.node.text().unwrap_or_default().to_owned(),
        );
    }
    keep
}

/// `expect` of a step or an action.
pub(super) fn expect(node: Option<&Node>, key: &str, checker: &mut Checker<'_>) -> Expect {
    let Some(node) = node else {
        return Expect::default();
    };
    let status = node.get("status").map_or(Vec::new(), |status| {
        if status.kind() == "a list" && status.items().is_empty() {
            checker.error(
                status.span.clone(),
                format!("`{key}.status` is an empty list: no answer would do"),
                "name the statuses, or leave it out for 200-299",
            );
        }
        status
            .text_or_texts()
            .iter()
            .filter_map(|n| u16::try_from(n.integer()?).ok())
            .collect()
    });
    let mut json = BTreeMap::new();
    for entry in node.get("json").map_or(&[][..], Node::entries) {
        if !entry.key.is_empty() && !entry.key.starts_with('/') {
            checker.error(
                entry.key_span.clone(),
                format!("`{key}.json`: \"{}\" is not a JSON Pointer", entry.key),
                format!("write \"/{}\"", entry.key.replace('.', "/")),
            );
        }
        json.insert(entry.key.clone(), entry.node.json());
    }
    Expect {
        status,
        header: node
            .get("header")
            .map_or(&[][..], Node::entries)
            .iter()
            .map(|e| (e.key.clone(), e.node.text().unwrap_or_default().to_owned()))
            .collect(),
        json,
        max_bytes: node
            .get("max_bytes")
            .and_then(|n| n.size().or(n.integer().and_then(|n| u64::try_from(n).ok()))),
    }
}
