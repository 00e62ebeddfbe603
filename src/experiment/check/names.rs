//! What the file declares by name: services with their kinds, kept values, and what figures can hold.

use std::collections::{BTreeMap, BTreeSet};

use super::Checker;
use crate::experiment::document::{Entry, Node};
use crate::experiment::{Action, FieldKind, Micro, Pruning, Service, ServiceKind, Workload};
use crate::figure::{Declared, DeclaredService, StatusKind};
use crate::name::nearest;

/// Kinds of services.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Postgres,
    Process,
    Caddy,
    Nginx,
    External,
    /// Reserved, doubtful or faulty: told once, then left alone.
    Unknown,
}

/// A service as the file has it.
pub(super) struct Declaration<'n> {
    pub name: &'n str,
    pub kind: Kind,
    /// The table of its kind.
    pub table: &'n Node,
    pub key_span: std::ops::Range<usize>,
}

/// The names of a document.
pub(super) struct Names<'n> {
    pub services: Vec<Declaration<'n>>,
}

impl<'n> Names<'n> {
    pub fn service(&self, name: &str) -> Option<&Declaration<'n>> {
        self.services.iter().find(|service| service.name == name)
    }

    /// The service that a key names; tells when there is none.
    pub fn expect(
        &self,
        node: &Node,
        key: &str,
        checker: &mut Checker<'_>,
    ) -> Option<&Declaration<'n>> {
        let name = node.text()?;
        let found = self.service(name);
        if found.is_none() {
            checker.error(
                node.span.clone(),
                format!("`{key}`: no service is named \"{name}\""),
                self.hint(name),
            );
        }
        found
    }

    /// What to write in place of a service that does not exist.
    pub fn hint(&self, name: &str) -> String {
        match nearest(name, self.services.iter().map(|s| s.name)) {
            Some(near) => format!("did you mean \"{near}\"?"),
            None if self.services.is_empty() => {
                "declare it as [deployment.<name>.<kind>]".to_owned()
            }
            None => {
                let names: Vec<String> = self
                    .services
                    .iter()
                    .map(|s| format!("\"{}\"", s.name))
                    .collect();
                format!("services are {}", names.join(", "))
            }
        }
    }

    /// The PostgreSQL service that a key names.
    pub fn expect_postgres(
        &self,
        node: &Node,
        key: &str,
        checker: &mut Checker<'_>,
    ) -> Option<&Declaration<'n>> {
        let found = self.expect(node, key, checker)?;
        if !matches!(found.kind, Kind::Postgres | Kind::Unknown) {
            checker.error(
                node.span.clone(),
                format!("`{key}`: \"{}\" is not a PostgreSQL service", found.name),
                "name a service of kind postgres",
            );
            return None;
        }
        Some(found)
    }

    /// Checks that a database is among those that its service makes.
    pub fn expect_database(
        &self,
        service: &Declaration<'_>,
        node: &Node,
        key: &str,
        checker: &mut Checker<'_>,
    ) {
        let (Some(name), Kind::Postgres) = (node.text(), service.kind) else {
            return;
        };
        let databases = service
            .table
            .get("databases")
            .map(Node::texts)
            .unwrap_or_default();
        if databases.iter().any(|database| database == name) {
            return;
        }
        let hint = match nearest(name, databases.iter().map(String::as_str)) {
            Some(near) => format!("did you mean \"{near}\"?"),
            None => format!("add it to `databases` of \"{}\"", service.name),
        };
        checker.error(
            node.span.clone(),
            format!(
                "`{key}`: service \"{}\" has no database \"{name}\"",
                service.name
            ),
            hint,
        );
    }
}

/// Collects the services; tells those that are not exactly one kind.
pub(super) fn collect<'n>(root: &'n Node, checker: &mut Checker<'_>) -> Names<'n> {
    let mut services = Vec::new();
    let deployment = root.entry("deployment");
    for entry in deployment.map_or(&[][..], |d| d.node.entries()) {
        services.push(service(entry, checker));
    }
    if let Some(deployment) = deployment
        && deployment.node.kind() == "a table"
        && services.is_empty()
    {
        checker.error(
            deployment.node.span.clone(),
            "`deployment` declares no service",
            "declare one as [deployment.<name>.<kind>], such as [deployment.app.process]",
        );
    }
    Names { services }
}

fn service<'n>(entry: &'n Entry, checker: &mut Checker<'_>) -> Declaration<'n> {
    if matches!(entry.key.as_str(), "env" | "client" | "iteration") {
        checker.error(
            entry.key_span.clone(),
            format!(
                "a service can't be named `{}`: templates use that name",
                entry.key
            ),
            "choose another name",
        );
    }
    let mut declaration = Declaration {
        name: &entry.key,
        kind: Kind::Unknown,
        table: &entry.node,
        key_span: entry.key_span.clone(),
    };
    match entry.node.entries() {
        [] if entry.node.kind() == "a table" => checker.error(
            entry.node.span.clone(),
            format!("service `{}` has no kind", entry.key),
            format!(
                "write [deployment.{}.process] or another kind: postgres, caddy, nginx, external",
                entry.key
            ),
        ),
        [only] => {
            declaration.table = &only.node;
            declaration.kind = match only.key.as_str() {
                "postgres" => Kind::Postgres,
                "process" => Kind::Process,
                "caddy" => Kind::Caddy,
                "nginx" => Kind::Nginx,
                "external" => Kind::External,
                "container" | "compose" => {
                    checker.error(
                        only.key_span.clone(),
                        format!(
                            "the kind `{}` of service `{}` is not built",
                            only.key, entry.key
                        ),
                        "kinds are postgres, process, caddy, nginx, external",
                    );
                    Kind::Unknown
                }
                _ => Kind::Unknown,
            };
        }
        [first, second, ..] => checker.error(
            second.key_span.clone(),
            format!(
                "service `{}` is both {} and {}",
                entry.key, first.key, second.key
            ),
            "a service has exactly one kind; keys of the service go below it",
        ),
        [] => {}
    }
    declaration
}

/// What figures of this arm can hold.
pub(in crate::experiment) fn declared(
    services: &[Service],
    workload: &Workload,
    pruning: Option<&Pruning>,
    actions: &[Action],
    micro: &[Micro],
) -> Declared {
    let services = services
        .iter()
        .map(|service| {
            let fields: BTreeMap<String, StatusKind> = service
                .status
                .iter()
                .flat_map(|status| status.fields.iter())
                .map(|(name, field)| {
                    let kind = match field.kind {
                        FieldKind::Gauge => StatusKind::Gauge,
                        FieldKind::Counter => StatusKind::Counter,
                    };
                    (name.clone(), kind)
                })
                .collect();
            let started = match &service.kind {
                ServiceKind::External { .. } => false,
                ServiceKind::Postgres(postgres) => postgres.url.is_none(),
                ServiceKind::Process(_) | ServiceKind::Caddy(_) | ServiceKind::Nginx(_) => true,
            };
            let declared = DeclaredService {
                started,
                postgres: matches!(service.kind, ServiceKind::Postgres(_)),
                patterns: service.log.keys().cloned().collect(),
                fields,
            };
            (service.name.as_str().to_owned(), declared)
        })
        .collect();
    let names = |names: &mut dyn Iterator<Item = String>| -> BTreeSet<String> { names.collect() };
    Declared {
        services,
        steps: names(&mut workload.steps.iter().map(|s| s.name.as_str().to_owned())),
        pruned: names(
            &mut pruning
                .iter()
                .flat_map(|p| p.tables.iter().map(|t| t.table.clone())),
        ),
        actions: names(&mut actions.iter().map(|a| a.figure.clone())),
        micro: names(&mut micro.iter().map(|m| m.figure.clone())),
    }
}

/// A free name as it stands in figures: everything but letters and digits as `_`.
pub(in crate::experiment) fn figure_name(name: &str) -> String {
    let mut figure: String = name
        .chars()
        .map(|c| {
            if c.is_ascii_alphanumeric() {
                c.to_ascii_lowercase()
            } else {
                '_'
            }
        })
        .collect();
    if !figure.starts_with(|c: char| c.is_ascii_lowercase()) {
        figure.insert_str(0, "a_");
    }
    figure
}
