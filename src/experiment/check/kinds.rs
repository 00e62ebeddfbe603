//! The keys of single kinds of services.

use std::collections::BTreeMap;

use super::names::{Declaration, Kind, Names};
use super::services::Template;
use super::values::{command, remote, unique};
use super::{Checker, templates};
use crate::experiment::document::Node;
use crate::experiment::{Postgres, Process, Proxy};
use crate::name::ServiceName;

/// What PostgreSQL's 63 bytes leave beside a run's name, its arm and our prefix.
const LONGEST_IN_RUNNING: usize = 23;

pub(super) fn postgres(
    table: &Node,
    name: &str,
    allow_remote: bool,
    template: Template<'_>,
    checker: &mut Checker<'_>,
) -> Postgres {
    let databases = table.get("databases").map(Node::texts).unwrap_or_default();
    unique(
        table.get("databases"),
        &format!("{name}.databases"),
        checker,
    );
    unique(table.get("roles"), &format!("{name}.roles"), checker);
    let mut schema = Vec::new();
    if let Some(node) = table.get("schema") {
        for item in node.text_or_texts() {
            schema.push(checker.file(item, &format!("{name}.schema")));
        }
        if databases.is_empty() {
            checker.error(
                node.span.clone(),
                format!("`{name}.schema` has no database to run in"),
                "add `databases = [\"…\"]`; the schema runs in the first",
            );
        }
    }
    let mut settings = BTreeMap::new();
    for entry in table.get("settings").map_or(&[][..], Node::entries) {
        let key = format!("{name}.settings.{}", entry.key);
        if !entry
            .key
            .bytes()
            .all(|b| b.is_ascii_alphanumeric() || b == b'_' || b == b'.')
            || entry.key.is_empty()
        {
            checker.error(
                entry.key_span.clone(),
                format!("`{}` can't be a server setting", entry.key),
                "settings are named by letters, digits, _ and .",
            );
        }
        if matches!(
            entry.key.as_str(),
            "port" | "listen_addresses" | "unix_socket_directories" | "data_directory" | "hba_file"
        ) {
            checker.error(
                entry.key_span.clone(),
                format!("`{key}` is ceteris' own to set"),
                "remove it; `{{ name.port }}` and `{{ name.url }}` say what was chosen",
            );
        }
        template(&entry.node, &key, checker);
        settings.insert(entry.key.clone(), entry.node.scalar().unwrap_or_default());
    }
    let url = table.get("url");
    if let Some(url) = url {
        template(url, &format!("{name}.url"), checker);
        remote(url, name, allow_remote, checker);
        for key in ["settings", "bin", "version", "roles", "cold"] {
            if let Some(entry) = table.entry(key) {
                checker.error(
                    entry.key_span.clone(),
                    format!("`{name}.{key}` has no effect on a running server"),
                    format!("remove `{key}` or `url`: of a running server ceteris makes and drops databases of its own, and changes nothing else"),
                );
            }
        }
        for item in table
            .get("databases")
            .map(Node::text_or_texts)
            .unwrap_or_default()
        {
            let database = item.text().unwrap_or_default();
            let plain = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'_';
            if database.len() > LONGEST_IN_RUNNING || !database.bytes().all(plain) {
                checker.error(
                    item.span.clone(),
                    format!("`{name}.databases`: \"{database}\" can't be part of a name in a running server"),
                    format!("there it is named ceteris_<run>_<arm>_<name>: lower-case letters, digits and _, at most {LONGEST_IN_RUNNING}"),
                );
            }
        }
    }
    Postgres {
        databases,
        schema,
        settings,
        roles: table.get("roles").map(Node::texts).unwrap_or_default(),
        version: table
            .get("version")
            .and_then(Node::integer)
            .and_then(|v| u32::try_from(v).ok()),
        bin: table.get("bin").and_then(Node::text).map(Into::into),
        url: url.and_then(Node::text).map(str::to_owned),
        settle: table.get("settle").and_then(Node::truth).unwrap_or(true),
        cold: table.get("cold").and_then(Node::truth).unwrap_or(false),
    }
}

pub(super) fn process(
    table: &Node,
    name: &str,
    template: Template<'_>,
    checker: &mut Checker<'_>,
) -> Process {
    if let Some(node) = table.get("command") {
        let key = format!("{name}.command");
        command(node, &key, checker);
        node.items()
            .iter()
            .for_each(|item| template(item, &key, checker));
    }
    if let Some(node) = table.get("build") {
        let key = format!("{name}.build");
        command(node, &key, checker);
        node.items()
            .iter()
            .for_each(|item| templates::before_services(item, &key, checker));
    }
    if let Some(node) = table.get("dir") {
        template(node, &format!("{name}.dir"), checker);
    }
    Process {
        command: table.get("command").map(Node::texts).unwrap_or_default(),
        build: table.get("build").map(Node::texts),
        dir: table.get("dir").and_then(Node::text).map(str::to_owned),
    }
}

pub(super) fn proxy(
    declaration: &Declaration<'_>,
    names: &Names<'_>,
    checker: &mut Checker<'_>,
) -> (Proxy, Vec<String>) {
    let (name, table) = (declaration.name, declaration.table);
    let mut behind: Vec<String> = Vec::new();
    match (table.entry("upstream"), table.get("config")) {
        (Some(_), Some(config)) => checker.error(
            config.span.clone(),
            format!("`{name}` has both `upstream` and `config`"),
            "keep one: `config` says itself where it leads",
        ),
        (None, None) => checker.error(
            table.span.clone(),
            format!("`{name}` has nothing behind it"),
            "add `upstream = \"…\"`, a service or a list of them",
        ),
        _ => {}
    }
    if let Some(upstream) = table.get("upstream") {
        for item in upstream.text_or_texts() {
            let Some(found) = names.expect(item, &format!("{name}.upstream"), checker) else {
                continue;
            };
            if found.kind == Kind::Postgres {
                checker.error(
                    item.span.clone(),
                    format!("`{name}.upstream`: \"{}\" does not speak HTTP", found.name),
                    "name a process, a proxy or an external service",
                );
            } else if found.name == name {
                checker.error(
                    item.span.clone(),
                    format!("`{name}.upstream`: a proxy can't stand in front of itself"),
                    "name the service behind it",
                );
            }
            behind.push(found.name.to_owned());
        }
    }
    let proxy = Proxy {
        upstream: behind
            .iter()
            .filter_map(|b| ServiceName::new(b.as_str()))
            .collect(),
        config: table
            .get("config")
            .map(|node| checker.file(node, &format!("{name}.config"))),
        bin: table.get("bin").and_then(Node::text).map(Into::into),
    };
    (proxy, behind)
}
