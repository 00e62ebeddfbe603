//! Templates of services and of the workload: syntax, names, and a trial rendering that finds wrong filters and arguments.

use std::collections::BTreeSet;

use minijinja::{Environment, Error, ErrorKind, Value};

use super::Checker;
use super::names::{Declaration, Kind, Names};
use crate::experiment::document::Node;
use crate::name::nearest;
use crate::template::{self, WORKLOAD_FUNCTIONS, WORKLOAD_NUMBERS};

/// What each service offers; PostgreSQL also the URL of each database, as `databases.NAME`.
const OFFERED: [&str; 5] = ["url", "address", "host", "port", "dir"];

/// Checks a service's string; adds the services that it names to `needs`.
pub(super) fn service(
    node: &Node,
    key: &str,
    names: &Names<'_>,
    needs: &mut BTreeSet<String>,
    checker: &mut Checker<'_>,
) {
    let Some(asked) = parse(node, key, checker) else {
        return;
    };
    let mut sound = true;
    for name in &asked {
        let (first, rest) = name.split_once('.').unwrap_or((name, ""));
        if first == "env" {
            sound &= environment_variable(node, key, name, checker);
            continue;
        }
        let Some(found) = names.service(first) else {
            sound = false;
            let hint = match nearest(first, names.services.iter().map(|s| s.name)) {
                Some(near) => format!(
                    "did you mean `{{{{ {near}.{} }}}}`?",
                    if rest.is_empty() { "url" } else { rest }
                ),
                None => format!(
                    "templates here know the services ({}) and `env`",
                    listing(names)
                ),
            };
            checker.error(
                checker.mention(node, name),
                format!("`{key}`: `{name}` is not defined: no service is named `{first}`"),
                hint,
            );
            continue;
        };
        if let Some(database) = rest
            .strip_prefix("databases")
            .filter(|_| found.kind == Kind::Postgres)
        {
            sound &= is_database(node, key, found, database, checker);
            needs.insert(first.to_owned());
            continue;
        }
        if !OFFERED.contains(&rest) {
            sound = false;
            let hint = match nearest(rest, OFFERED) {
                Some(near) => format!("did you mean `{{{{ {first}.{near} }}}}`?"),
                None => format!("a service offers {}", OFFERED.join(", ")),
            };
            checker.error(
                checker.mention(node, name),
                format!("`{key}`: service `{first}` does not offer `{rest}`"),
                hint,
            );
            continue;
        }
        let runs_already = found.kind == Kind::Postgres && found.table.get("url").is_some();
        if rest == "url" && runs_already {
            sound &= is_whole_server(node, key, found, checker);
        }
        if rest == "dir" && (found.kind == Kind::External || runs_already) {
            sound = false;
            checker.error(
                checker.mention(node, name),
                format!("`{key}`: `{first}` runs already and has no folder of its own"),
                "ceteris makes a folder only for services that it starts",
            );
            continue;
        }
        needs.insert(first.to_owned());
    }
    if sound {
        trial(
            node,
            key,
            &template::environment(),
            &[Value::from("1")],
            checker,
        );
    }
}

/// Whether `databases` is followed by one that the service declares.
fn is_database(
    node: &Node,
    key: &str,
    service: &Declaration<'_>,
    rest: &str,
    checker: &mut Checker<'_>,
) -> bool {
    let declared = service
        .table
        .get("databases")
        .map(Node::texts)
        .unwrap_or_default();
    let name = rest.strip_prefix('.').unwrap_or_default();
    if declared.iter().any(|database| database == name) {
        return true;
    }
    let first = service.name;
    let example = declared.first().map_or("NAME", String::as_str);
    let hint = match nearest(name, declared.iter().map(String::as_str)) {
        Some(near) => format!("did you mean `{{{{ {first}.databases.{near} }}}}`?"),
        None => format!(
            "write `{{{{ {first}.databases.{example} }}}}`, with a name that `databases` of `{first}` has"
        ),
    };
    let message = if name.is_empty() {
        format!("`{key}`: `{first}.databases` names no database")
    } else {
        format!("`{key}`: service `{first}` has no database `{name}`")
    };
    checker.error(
        checker.mention(node, &format!("{first}.databases{rest}")),
        message,
        hint,
    );
    false
}

/// A running server has this run's databases under names of ceteris' own, so a declared name after its URL leads nowhere.
fn is_whole_server(
    node: &Node,
    key: &str,
    service: &Declaration<'_>,
    checker: &mut Checker<'_>,
) -> bool {
    let first = service.name;
    let text: String = node
        .text()
        .unwrap_or_default()
        .chars()
        .filter(|c| !c.is_whitespace())
        .collect();
    let declared = service
        .table
        .get("databases")
        .map(Node::texts)
        .unwrap_or_default();
    let whole = format!("{{{{{first}.url}}}}/");
    let mut after = text.split(&whole).skip(1);
    let Some(name) = after.find_map(|rest| {
        let end = rest.find(['?', '{', '/']).unwrap_or(rest.len());
        declared.iter().find(|database| **database == rest[..end])
    }) else {
        return true;
    };
    checker.error(
        checker.mention(node, &format!("{first}.url")),
        format!("`{key}`: in a running server the database `{name}` bears a name of ceteris' own"),
        format!("write `{{{{ {first}.databases.{name} }}}}`, its whole URL"),
    );
    false
}

/// Checks a string that is filled before any service exists: only the caller's environment is known.
pub(super) fn before_services(node: &Node, key: &str, checker: &mut Checker<'_>) {
    for name in parse(node, key, checker).unwrap_or_default() {
        if name.starts_with("env.") || name == "env" {
            environment_variable(node, key, &name, checker);
        } else {
            checker.error(
                checker.mention(node, &name),
                format!("`{key}`: `{name}` is not defined yet when this runs"),
                "only `env` is known before the services start",
            );
        }
    }
}

/// Checks a string of the workload. `kept` are the values that may be there.
pub(super) fn workload(
    node: &Node,
    key: &str,
    kept: &BTreeSet<String>,
    checker: &mut Checker<'_>,
) -> BTreeSet<String> {
    let mut used = BTreeSet::new();
    let Some(asked) = parse(node, key, checker) else {
        return used;
    };
    let mut sound = true;
    for name in &asked {
        let first = name.split('.').next().unwrap_or(name);
        if first == "env" {
            sound &= environment_variable(node, key, name, checker);
        } else if kept.contains(first) {
            used.insert(first.to_owned());
        } else if !WORKLOAD_FUNCTIONS.contains(&first) && !WORKLOAD_NUMBERS.contains(&first) {
            sound = false;
            let known = kept
                .iter()
                .map(String::as_str)
                .chain(WORKLOAD_NUMBERS)
                .chain(WORKLOAD_FUNCTIONS);
            let hint = match nearest(first, known) {
                Some(near) => format!("did you mean `{near}`?"),
                None => "known are kept values, `client`, `iteration`, `random_int(a, b)`, `random_choice([…])`, `uuid()` and `env`; \
                         keep a value with `keep = { name = \"/json/pointer\" }`"
                    .to_owned(),
            };
            checker.error(
                checker.mention(node, first),
                format!("`{key}`: `{first}` is not defined"),
                hint,
            );
        }
    }
    if sound {
        // What kept values will be is not known: a template that works with none of these works with nothing.
        let samples = [Value::from(1), Value::from("a"), Value::from(vec![1, 2])];
        trial(node, key, &workload_environment(), &samples, checker);
    }
    used
}

fn parse(node: &Node, key: &str, checker: &mut Checker<'_>) -> Option<BTreeSet<String>> {
    let text = node.text()?;
    if !template::is_template(text) {
        return None;
    }
    match template::names(text) {
        Ok(names) => Some(names),
        Err(error) => {
            let span = error
                .span
                .map_or(node.span.clone(), |range| checker.inside(node, range));
            checker.error(
                span,
                format!("`{key}`: the template can't be parsed: {}", error.message),
                "templates are minijinja: {{ name }}",
            );
            None
        }
    }
}

/// `env.NAME`, one level deep; set, when the environment is to be looked at.
fn environment_variable(node: &Node, key: &str, name: &str, checker: &mut Checker<'_>) -> bool {
    let variable = name.strip_prefix("env.").unwrap_or_default();
    if variable.is_empty() || variable.contains('.') {
        checker.error(
            checker.mention(node, name),
            format!("`{key}`: `{name}` names no environment variable"),
            "write `{{ env.NAME }}`",
        );
        return false;
    }
    if checker.env.is_some_and(|lookup| lookup(variable).is_none()) {
        checker.error(
            checker.mention(node, name),
            format!("`{key}`: the environment variable {variable} is not set"),
            format!("set it before starting: {variable}=… ceteris run …"),
        );
        return false;
    }
    true
}

fn trial(
    node: &Node,
    key: &str,
    environment: &Environment<'_>,
    samples: &[Value],
    checker: &mut Checker<'_>,
) {
    let Some(text) = node.text() else {
        return;
    };
    let mut first = None;
    for sample in samples {
        let result = template::render(environment, text, |name| match name {
            name if WORKLOAD_FUNCTIONS.contains(&name) => None,
            name if WORKLOAD_NUMBERS.contains(&name) => Some(Value::from(0)),
            _ => Some(sample.clone()),
        });
        match result {
            Ok(_) => return,
            Err(error) => first = first.or(Some(error)),
        }
    }
    if let Some(error) = first {
        let span = error
            .span
            .map_or(node.span.clone(), |range| checker.inside(node, range));
        checker.error(
            span,
            format!("`{key}`: the template fails: {}", error.message),
            "see the minijinja manual for filters and functions",
        );
    }
}

/// The workload's functions, as far as their arguments can be judged.
fn workload_environment() -> Environment<'static> {
    let mut environment = template::environment();
    environment.add_function("random_int", |a: i64, b: i64| {
        if a <= b {
            Ok(a)
        } else {
            Err(wrong(format!(
                "random_int({a}, {b}) has no number to draw: {a} > {b}"
            )))
        }
    });
    environment.add_function("random_choice", |items: Vec<Value>| {
        items
            .first()
            .cloned()
            .ok_or_else(|| wrong("random_choice needs a list with something in it".to_owned()))
    });
    environment.add_function("uuid", || "00000000-0000-4000-8000-000000000000");
    environment
}

fn wrong(detail: String) -> Error {
    Error::new(ErrorKind::InvalidOperation, detail)
}

fn listing(names: &Names<'_>) -> String {
    names
        .services
        .iter()
        .map(|s| s.name)
        .collect::<Vec<_>>()
        .join(", ")
}
