//! `[clients]`.

use std::time::Duration;

use super::names::{Kind, Names};
use super::{Checker, values, workload};
use crate::experiment::document::Node;
use crate::experiment::format;
use crate::experiment::{Arrival, Clients, Load, Protocol, Stage};
use crate::name::ServiceName;

pub(super) fn check(root: &Node, names: &Names<'_>, checker: &mut Checker<'_>) -> Option<Clients> {
    let empty = Node::empty();
    let table = root.table("clients").unwrap_or(&empty);
    let mut target = None;
    if let Some(node) = table.get("target")
        && let Some(found) = names.expect(node, "clients.target", checker)
    {
        if found.kind == Kind::Postgres {
            checker.error(
                node.span.clone(),
                format!("`clients.target`: \"{}\" does not speak HTTP", found.name),
                "name a process, a proxy or an external service",
            );
        }
        target = ServiceName::new(found.name);
    }
    let timeout = |key: &str, default: u64, checker: &mut Checker<'_>| {
        let time = table.get(key).and_then(Node::duration);
        if let (Some(node), Some(Duration::ZERO)) = (table.get(key), time) {
            checker.error(
                node.span.clone(),
                format!("`clients.{key}` is zero: every request would fail"),
                format!("leave it out for \"{default}s\""),
            );
        }
        time.unwrap_or(Duration::from_secs(default))
    };
    let socket = table.get("socket");
    if let Some(node) = socket {
        super::templates::service(
            node,
            "clients.socket",
            names,
            &mut Default::default(),
            checker,
        );
    }
    let load = load(
        table,
        root.table("clients")
            .is_some_and(|t| !format::CLIENTS.has_unknown(t)),
        checker,
    );
    let headers = workload::headers(
        table.get("headers"),
        "clients.headers",
        &Default::default(),
        checker,
    )
    .0;
    let ca = table.get("ca").map(|node| checker.file(node, "clients.ca"));
    let pin = table
        .get("pin")
        .and_then(|node| values::processors(node, "clients.pin", checker));
    let (timeout, connect_timeout) = (
        timeout("timeout", 10, checker),
        timeout("connect_timeout", 5, checker),
    );
    Some(Clients {
        target: target?,
        load,
        timeout,
        connect_timeout,
        protocol: match table.get("protocol").and_then(Node::text) {
            Some("http2") => Protocol::Http2,
            _ => Protocol::Http1,
        },
        ca,
        insecure: table.get("insecure").and_then(Node::truth).unwrap_or(false),
        socket: socket.and_then(Node::text).map(str::to_owned),
        pin,
        allow_remote: table
            .get("allow_remote")
            .and_then(Node::truth)
            .unwrap_or(false),
        headers,
    })
}

fn load(table: &Node, present: bool, checker: &mut Checker<'_>) -> Load {
    let ways: Vec<_> = table
        .entries()
        .iter()
        .filter(|e| matches!(e.key.as_str(), "closed" | "open" | "stages"))
        .collect();
    match ways.as_slice() {
        [] if present => checker.error(
            table.span.clone(),
            "`clients` does not say how much load",
            "add `closed = 8` for eight closed-loop clients, or `open = \"200/s\"`",
        ),
        [_, second, ..] => checker.error(
            second.key_span.clone(),
            format!("`clients` has both `{}` and `{}`", ways[0].key, second.key),
            "keep one of closed, open, stages",
        ),
        _ => {}
    }
    let (open, stages) = match ways.first() {
        Some(way) if way.key == "stages" => stages(&way.node, checker),
        Some(way) if way.key == "open" => {
            if way.node.rate() == Some(0.0) {
                checker.error(
                    way.node.span.clone(),
                    "`clients.open` is zero: nothing would be sent",
                    "write a rate such as \"200/s\"",
                );
            }
            (true, vec![level(way.node.rate())])
        }
        Some(way) => (false, vec![level(way.node.number())]),
        None => (false, vec![level(None)]),
    };
    let wrong: &[&str] = if open {
        &["think", "ramp"]
    } else {
        &["arrival", "max_in_flight"]
    };
    for key in wrong {
        if let Some(entry) = table.entry(key) {
            let (here, there) = if open {
                ("open", "closed")
            } else {
                ("closed", "open")
            };
            checker.error(
                entry.key_span.clone(),
                format!(
                    "`clients.{key}` has no meaning in {} {here} loop",
                    if open { "an" } else { "a" }
                ),
                format!("remove it, or use `{there}`"),
            );
        }
    }
    let duration = |key: &str| table.get(key).and_then(Node::duration).unwrap_or_default();
    if open {
        Load::Open {
            stages,
            arrival: match table.get("arrival").and_then(Node::text) {
                Some("uniform") => Arrival::Uniform,
                _ => Arrival::Poisson,
            },
            max_in_flight: table
                .get("max_in_flight")
                .and_then(Node::integer)
                .and_then(|n| usize::try_from(n).ok())
                .unwrap_or(1000),
        }
    } else {
        Load::Closed {
            stages,
            think: duration("think"),
            ramp: duration("ramp"),
        }
    }
}

fn level(level: Option<f64>) -> Stage {
    Stage {
        level: level.unwrap_or(1.0),
        length: None,
    }
}

/// Stages with whether they are open.
fn stages(node: &Node, checker: &mut Checker<'_>) -> (bool, Vec<Stage>) {
    let items = node.items();
    if node.kind() == "a list" && items.is_empty() {
        checker.error(
            node.span.clone(),
            "`clients.stages` is empty",
            "add stages such as `{ closed = 8, for = \"30s\" }`",
        );
    }
    let open = items.iter().any(|item| item.get("open").is_some());
    let mut stages = Vec::new();
    for (i, item) in items.iter().enumerate() {
        let both = (item.entry("closed"), item.entry("open"));
        match both {
            (Some(_), Some(second)) => checker.error(
                second.key_span.clone(),
                "a stage is either closed or open",
                "keep one of the two",
            ),
            (None, None) => checker.error(
                item.span.clone(),
                "this stage has no level",
                "add `closed = 8` or `open = \"200/s\"`",
            ),
            (Some(first), None) if open => checker.error(
                first.key_span.clone(),
                "closed and open stages can't be mixed",
                "write all stages with the same key",
            ),
            _ => {}
        }
        let length = item.get("for").and_then(Node::duration);
        if item.get("for").is_none() && i + 1 < items.len() {
            checker.error(
                item.span.clone(),
                "this stage has no length, so the next one never begins",
                "add `for = \"30s\"`; only the last stage may last to the end",
            );
        }
        stages.push(Stage {
            level: item
                .get("open")
                .and_then(Node::rate)
                .or(item.get("closed").and_then(Node::number))
                .unwrap_or(1.0),
            length,
        });
    }
    (open, stages)
}
