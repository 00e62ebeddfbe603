//! `[[action]]`, `[[micro]]` and `[probe]`.

use std::collections::BTreeSet;
use std::time::Duration;

use super::names::{Kind, Names};
use super::workload::{expect, method};
use super::{Checker, figure_name, services, templates, values};
use crate::experiment::document::{Entry, Node};
use crate::experiment::{Action, ActionKind, Micro, Probe, Schedule, Stop};
use crate::name::{Arm, ServiceName};
use crate::quantity::write_duration;

/// Keys that say what an action does.
const KINDS: [&str; 9] = [
    "http", "restart", "signal", "stop", "start", "sql", "command", "clients", "limits",
];

pub(super) fn check(
    root: &Node,
    names: &Names<'_>,
    schedule: &Schedule,
    checker: &mut Checker<'_>,
) -> Vec<Action> {
    let items = root.get("action").map_or(&[][..], Node::items);
    let mut seen = BTreeSet::new();
    items
        .iter()
        .filter_map(|item| {
            if let Some(name) = item.get("name")
                && let Some(text) = name.text()
                && !seen.insert(figure_name(text))
            {
                checker.error(
                    name.span.clone(),
                    format!("two actions are named `{}` in figures", figure_name(text)),
                    "give each action a name of its own",
                );
            }
            action(item, root, names, schedule, checker)
        })
        .collect()
}

fn action(
    item: &Node,
    root: &Node,
    names: &Names<'_>,
    schedule: &Schedule,
    checker: &mut Checker<'_>,
) -> Option<Action> {
    let name = item.get("name").and_then(Node::text).unwrap_or("action");
    let ways: Vec<&Entry> = item
        .entries()
        .iter()
        .filter(|e| KINDS.contains(&e.key.as_str()))
        .collect();
    match ways.as_slice() {
        [] => checker.error(
            item.span.clone(),
            format!("action \"{name}\" does nothing"),
            format!("add one of {}", KINDS.join(", ")),
        ),
        [first, second, ..] => checker.error(
            second.key_span.clone(),
            format!(
                "action \"{name}\" has both `{}` and `{}`",
                first.key, second.key
            ),
            "write two actions",
        ),
        _ => {}
    }
    let times = item.get("times").and_then(Node::integer).unwrap_or(1);
    let every = item.get("every").and_then(Node::duration);
    match (item.entry("every"), item.get("times")) {
        (None, Some(node)) if times > 1 => checker.error(
            node.span.clone(),
            format!("action \"{name}\" is repeated, but not said how often"),
            "add `every = \"1s\"`",
        ),
        (Some(entry), None) => checker.error(
            entry.key_span.clone(),
            format!("action \"{name}\" has `every` without `times`"),
            "add `times = 10`: repetition is bounded",
        ),
        (Some(entry), Some(_)) if every == Some(Duration::ZERO) && times > 1 => checker.error(
            entry.node.span.clone(),
            format!("action \"{name}\" repeats without a pause"),
            "write a period such as \"1s\"",
        ),
        _ => {}
    }
    let arm = match item.get("arm").and_then(Node::text) {
        Some("treatment") => Some(Arm::Treatment),
        Some("control") => Some(Arm::Control),
        _ => None,
    };
    if let Some(node) = item.get("arm").filter(|_| arm.is_some()) {
        second_difference(node, name, root, checker);
    }
    let what = ways.first().and_then(|way| kind(way, name, names, checker));
    let action = Action {
        name: name.to_owned(),
        figure: figure_name(name),
        at: item.get("at").and_then(Node::duration)?,
        every,
        times: u32::try_from(times).unwrap_or(1),
        arm,
        what: what?,
    };
    fits(item, &action, schedule, checker);
    Some(action)
}

/// An action in one arm only is a difference beside the control variable.
fn second_difference(node: &Node, name: &str, root: &Node, checker: &mut Checker<'_>) {
    let permitted = root
        .table("control")
        .and_then(|c| c.get("also_differs"))
        .map(Node::texts)
        .unwrap_or_default();
    let own = [
        name.to_owned(),
        format!("action.{name}"),
        format!("action.\"{name}\""),
    ];
    if permitted.iter().any(|p| own.contains(p)) {
        return;
    }
    checker.error(
        node.span.clone(),
        format!("action \"{name}\" happens in one arm only: a second difference between the arms"),
        format!(
            "make it the control variable (`variable = 'action.\"{name}\".times'`), or permit it with `also_differs = [\"{name}\"]`"
        ),
    );
}

/// An action is over before its arm is.
fn fits(item: &Node, action: &Action, schedule: &Schedule, checker: &mut Checker<'_>) {
    let Stop::Duration(durations) = schedule.stop else {
        return;
    };
    let available = match action.arm {
        Some(arm) => *durations.get(arm),
        None => durations.treatment.min(durations.control),
    };
    let (Some(end), Some(node)) = (action.ends(), item.get("at")) else {
        return;
    };
    if end > available || action.at >= available {
        checker.error(
            node.span.clone(),
            format!(
                "action \"{}\" does not fit: it ends at {}, an arm at {}",
                action.name,
                write_duration(end),
                write_duration(available)
            ),
            "start earlier, repeat less, or lengthen the arm",
        );
    }
}

impl Action {
    /// When its last repetition is over, from the start of the measured time; `None` when it never happens.
    pub fn ends(&self) -> Option<Duration> {
        let repeats = self.times.checked_sub(1)?;
        let length = match &self.what {
            ActionKind::Clients { length, .. } => *length,
            _ => Duration::ZERO,
        };
        let repeated = self.every.unwrap_or_default().saturating_mul(repeats);
        Some(self.at.saturating_add(repeated).saturating_add(length))
    }
}

fn kind(
    way: &Entry,
    name: &str,
    names: &Names<'_>,
    checker: &mut Checker<'_>,
) -> Option<ActionKind> {
    let key = format!("{name}.{}", way.key);
    let node = &way.node;
    match way.key.as_str() {
        "restart" | "signal" => {
            let service = started(node.get("service")?, &key, names, checker)?;
            let signal = node
                .get("signal")
                .and_then(Node::text)
                .unwrap_or("TERM")
                .to_owned();
            Some(if way.key == "restart" {
                ActionKind::Restart { service, signal }
            } else {
                ActionKind::Signal { service, signal }
            })
        }
        "stop" => started(node, &key, names, checker).map(ActionKind::Stop),
        "start" => started(node, &key, names, checker).map(ActionKind::Start),
        "http" => {
            let service = names.expect(node.get("service")?, &format!("{key}.service"), checker)?;
            let service = ServiceName::new(service.name)?;
            let (method, path) = method(node, &format!("action \"{name}\""), checker)?;
            values::absolute_path(path, &format!("{key}.{method}"), checker);
            Some(ActionKind::Http {
                service,
                method: method.to_uppercase(),
                path: path.text()?.to_owned(),
                body: node.get("json").map(Node::json),
                expect: expect(node.get("expect"), &format!("{key}.expect"), checker),
            })
        }
        "sql" => {
            let service =
                names.expect_postgres(node.get("service")?, &format!("{key}.service"), checker)?;
            if let Some(database) = node.get("database") {
                names.expect_database(service, database, &format!("{key}.database"), checker);
            }
            Some(ActionKind::Sql {
                service: ServiceName::new(service.name)?,
                database: node.get("database")?.text()?.to_owned(),
                statement: node.get("statement")?.text()?.to_owned(),
            })
        }
        "command" => {
            values::command(node, &key, checker);
            for item in node.items() {
                templates::service(item, &key, names, &mut BTreeSet::new(), checker);
            }
            Some(ActionKind::Command(node.texts()))
        }
        "clients" => Some(ActionKind::Clients {
            closed: u32::try_from(node.get("closed")?.integer()?).ok()?,
            length: node.get("for")?.duration()?,
        }),
        _ => {
            let service = started(node.get("service")?, &key, names, checker)?;
            let limits = services::limits(Some(node));
            if limits.memory.is_none() && limits.cpus.is_none() {
                checker.error(
                    node.span.clone(),
                    format!("`{key}` sets no limit"),
                    "add `memory = \"96MiB\"` or `cpus = 0.5`",
                );
            }
            Some(ActionKind::Limits { service, limits })
        }
    }
}

/// A service that the runner started, so that it may signal it.
fn started(
    node: &Node,
    key: &str,
    names: &Names<'_>,
    checker: &mut Checker<'_>,
) -> Option<ServiceName> {
    let found = names.expect(node, key, checker)?;
    if found.kind == Kind::External || found.table.get("url").is_some() {
        checker.error(
            node.span.clone(),
            format!(
                "`{key}`: ceteris did not start \"{}\" and does not touch it",
                found.name
            ),
            "name a service that ceteris starts",
        );
        return None;
    }
    ServiceName::new(found.name)
}

pub(super) fn micro(root: &Node, checker: &mut Checker<'_>) -> Vec<Micro> {
    let mut seen = BTreeSet::new();
    let items = root.get("micro").map_or(&[][..], Node::items);
    items
        .iter()
        .filter_map(|item| {
            let name = item.get("name")?;
            let text = name.text()?;
            if !seen.insert(figure_name(text)) {
                checker.error(
                    name.span.clone(),
                    format!("two counted calls are named `{}` in figures", figure_name(text)),
                    "give each a name of its own",
                );
            }
            for key in ["command", "baseline"] {
                if let Some(node) = item.get(key) {
                    values::command(node, &format!("{text}.{key}"), checker);
                    for item in node.items() {
                        templates::before_services(item, &format!("{text}.{key}"), checker);
                    }
                }
            }
            if let (Some(command), Some(baseline)) = (item.get("command"), item.get("baseline"))
                && command.same(baseline)
            {
                checker.error(
                    baseline.span.clone(),
                    format!("`{text}`: command and baseline are the same, so their difference is nothing"),
                    "the baseline is the same loop without the call",
                );
            }
            Some(Micro {
                name: text.to_owned(),
                figure: figure_name(text),
                command: item.get("command")?.texts(),
                baseline: item.get("baseline")?.texts(),
                rounds: item
                    .get("rounds")
                    .and_then(Node::integer)
                    .and_then(|n| u32::try_from(n).ok())
                    .unwrap_or(10),
            })
        })
        .collect()
}

pub(super) fn probe(root: &Node, checker: &mut Checker<'_>) -> Option<Probe> {
    let table = root.table("probe")?;
    let levels = table.get("clients")?;
    let clients: Vec<u32> = levels
        .items()
        .iter()
        .filter_map(|n| u32::try_from(n.integer()?).ok())
        .collect();
    if levels.kind() == "a list" {
        let unique: BTreeSet<&u32> = clients.iter().collect();
        if clients.len() < 3 {
            checker.error(
                levels.span.clone(),
                "`probe.clients` has fewer than three levels, which show no knee",
                "write levels such as [1, 2, 4, 8, 16, 32]",
            );
        } else if unique.len() < clients.len() {
            checker.error(
                levels.span.clone(),
                "`probe.clients` names a level twice",
                "the first level is repeated at the end by itself",
            );
        }
    }
    let each = table.get("each")?.duration()?;
    if each < Duration::from_secs(1)
        && let Some(node) = table.get("each")
    {
        checker.error(
            node.span.clone(),
            format!("`probe.each` is {}", write_duration(each)),
            "a level needs at least \"1s\"",
        );
    }
    Some(Probe { clients, each })
}
