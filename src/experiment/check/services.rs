//! `[deployment.*]`: each service, and an order in which they can start.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use super::names::{Declaration, Kind, Names};
use super::values::{absolute_path, command, pointer, processors, regular_expression, remote};
use super::{Checker, kinds, templates};
use crate::experiment::document::{Content, Node};
use crate::experiment::{
    FieldKind, Limits, Ready, ReadyBy, Service, ServiceKind, StatusField, StatusPage,
};
use crate::name::ServiceName;

/// Checks every service and sorts them so that each comes after those that it needs.
pub(super) fn check(root: &Node, names: &Names<'_>, checker: &mut Checker<'_>) -> Vec<Service> {
    let allow_remote = root
        .table("clients")
        .and_then(|c| c.get("allow_remote")?.truth())
        .unwrap_or(false);
    let mut services: Vec<Option<Service>> = Vec::new();
    for declaration in &names.services {
        let service = service(declaration, names, allow_remote, checker);
        services.push(service);
    }
    start_order(services.into_iter().flatten().collect(), names, checker)
}

fn service(
    declaration: &Declaration<'_>,
    names: &Names<'_>,
    allow_remote: bool,
    checker: &mut Checker<'_>,
) -> Option<Service> {
    let name = declaration.name;
    let table = declaration.table;
    let mut needs = BTreeSet::new();
    let mut template = |node: &Node, key: &str, checker: &mut Checker<'_>| {
        templates::service(node, key, names, &mut needs, checker);
    };
    let mut env = BTreeMap::new();
    for entry in table.get("env").map_or(&[][..], Node::entries) {
        if entry.key.is_empty() || entry.key.contains(['=', '\0']) {
            checker.error(
                entry.key_span.clone(),
                format!("`{}` can't be an environment variable", entry.key),
                "names of variables hold no `=`",
            );
        }
        template(&entry.node, &format!("{name}.env.{}", entry.key), checker);
        env.insert(
            entry.key.clone(),
            entry.node.text().unwrap_or_default().to_owned(),
        );
    }
    let ready = ready(table, name, &mut template, checker);
    let kind = match declaration.kind {
        Kind::Postgres => ServiceKind::Postgres(kinds::postgres(
            table,
            name,
            allow_remote,
            &mut template,
            checker,
        )),
        Kind::Process => ServiceKind::Process(kinds::process(table, name, &mut template, checker)),
        Kind::External => {
            let url = table.get("url");
            if let Some(url) = url {
                template(url, &format!("{name}.url"), checker);
                remote(url, name, allow_remote, checker);
            }
            ServiceKind::External {
                url: url.and_then(Node::text).unwrap_or_default().to_owned(),
            }
        }
        Kind::Caddy | Kind::Nginx => {
            let (proxy, behind) = kinds::proxy(declaration, names, checker);
            needs.extend(behind);
            if declaration.kind == Kind::Caddy {
                ServiceKind::Caddy(proxy)
            } else {
                ServiceKind::Nginx(proxy)
            }
        }
        Kind::Unknown => return None,
    };
    let started = match &kind {
        ServiceKind::External { .. } => false,
        ServiceKind::Postgres(postgres) => postgres.url.is_none(),
        _ => true,
    };
    if !started {
        for key in ["env", "grace", "limits", "pin", "log"] {
            if let Some(entry) = table.entry(key) {
                checker.error(
                    entry.key_span.clone(),
                    format!("`{name}.{key}` has no effect: ceteris does not start this service"),
                    format!("remove `{key}`"),
                );
            }
        }
    }
    if let Some(after) = table.get("after") {
        for item in after.text_or_texts() {
            if let Some(other) = names.expect(item, &format!("{name}.after"), checker) {
                needs.insert(other.name.to_owned());
                if other.name == name {
                    checker.error(
                        item.span.clone(),
                        format!("service `{name}` can't start after itself"),
                        "name another service",
                    );
                }
            }
        }
    }
    needs.remove(name);
    Some(Service {
        name: ServiceName::new(name)?,
        kind,
        env,
        needs: needs.into_iter().filter_map(ServiceName::new).collect(),
        ready,
        grace: table
            .get("grace")
            .and_then(Node::duration)
            .unwrap_or(Duration::from_secs(10)),
        limits: limits(table.get("limits")),
        pin: table
            .get("pin")
            .and_then(|node| processors(node, &format!("{name}.pin"), checker)),
        log: patterns(table.get("log"), name, checker),
        status: status(table, name, checker),
    })
}

pub(super) type Template<'t> = &'t mut dyn FnMut(&Node, &str, &mut Checker<'_>);

fn ready(table: &Node, name: &str, template: Template<'_>, checker: &mut Checker<'_>) -> Ready {
    let empty = Node::empty();
    let node = table.get("ready").unwrap_or(&empty);
    let ways: Vec<_> = node
        .entries()
        .iter()
        .filter(|e| matches!(e.key.as_str(), "path" | "tcp" | "log" | "command"))
        .collect();
    if let [_, second, ..] = ways.as_slice() {
        checker.error(
            second.key_span.clone(),
            format!("`{name}.ready` asks in two ways"),
            "keep one of path, tcp, log, command",
        );
    }
    let by = ways.first().and_then(|way| {
        let key = format!("{name}.ready.{}", way.key);
        match way.key.as_str() {
            "path" => {
                template(&way.node, &key, checker);
                absolute_path(&way.node, &key, checker);
                way.node.text().map(|t| ReadyBy::Path(t.to_owned()))
            }
            "log" => {
                regular_expression(&way.node, &key, checker);
                way.node.text().map(|t| ReadyBy::Log(t.to_owned()))
            }
            "command" => {
                command(&way.node, &key, checker);
                way.node
                    .items()
                    .iter()
                    .for_each(|item| template(item, &key, checker));
                Some(ReadyBy::Command(way.node.texts()))
            }
            _ => match &way.node.value {
                Content::Truth(true) => Some(ReadyBy::Tcp(format!("{{{{ {name}.address }}}}"))),
                Content::Truth(false) => {
                    checker.error(
                        way.node.span.clone(),
                        format!("`{key}` is false"),
                        "leave it out",
                    );
                    None
                }
                _ => {
                    template(&way.node, &key, checker);
                    way.node.text().map(|t| ReadyBy::Tcp(t.to_owned()))
                }
            },
        }
    });
    Ready {
        by,
        within: node
            .get("within")
            .and_then(Node::duration)
            .unwrap_or(Duration::from_secs(30)),
    }
}

pub(super) fn limits(node: Option<&Node>) -> Limits {
    Limits {
        memory: node.and_then(|n| n.get("memory")?.size()),
        cpus: node.and_then(|n| n.get("cpus")?.number()),
    }
}

fn status(table: &Node, name: &str, checker: &mut Checker<'_>) -> Option<StatusPage> {
    let node = table.get("status")?;
    let path = node.get("path")?;
    absolute_path(path, &format!("{name}.status.path"), checker);
    let mut fields = BTreeMap::new();
    for entry in node.get("fields").map_or(&[][..], Node::entries) {
        let at = match entry.node.text() {
            Some(_) => &entry.node,
            None => match entry.node.get("at") {
                Some(at) => at,
                None => continue,
            },
        };
        pointer(
            at,
            &format!("{name}.status.fields.{}", entry.key),
            false,
            checker,
        );
        let kind = match entry.node.get("kind").and_then(Node::text) {
            Some("counter") => FieldKind::Counter,
            _ => FieldKind::Gauge,
        };
        fields.insert(
            entry.key.clone(),
            StatusField {
                at: at.text().unwrap_or_default().to_owned(),
                kind,
            },
        );
    }
    Some(StatusPage {
        path: path.text().unwrap_or_default().to_owned(),
        every: node.get("every").and_then(Node::duration),
        fields,
    })
}

fn patterns(
    node: Option<&Node>,
    name: &str,
    checker: &mut Checker<'_>,
) -> BTreeMap<String, String> {
    let mut patterns = BTreeMap::new();
    for entry in node.map_or(&[][..], Node::entries) {
        regular_expression(&entry.node, &format!("{name}.log.{}", entry.key), checker);
        patterns.insert(
            entry.key.clone(),
            entry.node.text().unwrap_or_default().to_owned(),
        );
    }
    patterns
}

/// Sorts services so that each comes after what it needs, otherwise in file order; tells a circle.
fn start_order(
    services: Vec<Service>,
    names: &Names<'_>,
    checker: &mut Checker<'_>,
) -> Vec<Service> {
    let mut waiting = services;
    let mut sorted: Vec<Service> = Vec::new();
    while !waiting.is_empty() {
        let next = waiting.iter().position(|service| {
            service
                .needs
                .iter()
                .all(|need| !waiting.iter().any(|other| other.name == *need))
        });
        match next {
            Some(at) => sorted.push(waiting.remove(at)),
            None => {
                circle(&waiting, names, checker);
                sorted.append(&mut waiting);
            }
        }
    }
    sorted
}

fn circle(waiting: &[Service], names: &Names<'_>, checker: &mut Checker<'_>) {
    let mut path: Vec<&str> = Vec::new();
    let mut at = waiting.first();
    while let Some(service) = at {
        let name = service.name.as_str();
        if let Some(start) = path.iter().position(|seen| *seen == name) {
            path.drain(..start);
            path.push(name);
            break;
        }
        path.push(name);
        at = service
            .needs
            .iter()
            .find_map(|need| waiting.iter().find(|other| other.name == *need));
    }
    let Some(declaration) = path.first().and_then(|first| names.service(first)) else {
        return;
    };
    checker.error(
        declaration.key_span.clone(),
        format!(
            "services wait for each other in a circle: {}",
            path.join(" -> ")
        ),
        "remove one of these references, or its `after`",
    );
}
