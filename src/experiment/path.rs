//! The path of the control variable: a TOML dotted key, in which an entry of an array of tables is addressed by its name.

use super::document::{Content, Entry, Node};
use super::format::FILE;
use super::shape::{Keys, Shape};
use crate::name::{is_name, nearest};

/// Sections that are part of an arm.
const OF_AN_ARM: [&str; 5] = ["deployment", "clients", "workload", "pruning", "action"];

/// What is wrong with a path, and what would be right.
pub(super) type Refusal = (String, String);

/// Splits `a.b."c d"` into its keys.
///
/// # Errors
/// It is not a dotted key.
pub(super) fn split(path: &str) -> Result<Vec<String>, Refusal> {
    let refuse = || {
        (
            format!("`{path}` is not a dotted key"),
            "write a path such as `pruning.enabled` or `workload.step.list.weight`".to_owned(),
        )
    };
    let mut keys = Vec::new();
    let mut rest = path.trim();
    loop {
        let (key, after) = match rest.chars().next() {
            Some(quote @ ('"' | '\'')) => {
                let inner = &rest[1..];
                let end = inner.find(quote).ok_or_else(refuse)?;
                (&inner[..end], &inner[end + 1..])
            }
            _ => {
                let end = rest
                    .find(|c: char| !c.is_ascii_alphanumeric() && c != '_' && c != '-')
                    .unwrap_or(rest.len());
                if end == 0 {
                    return Err(refuse());
                }
                rest.split_at(end)
            }
        };
        keys.push(key.to_owned());
        if keys.len() > 40 {
            return Err(refuse());
        }
        match after.strip_prefix('.') {
            Some(next) => rest = next,
            None if after.is_empty() => return Ok(keys),
            None => return Err(refuse()),
        }
    }
}

/// Whether the file may have a value at this path, given what it declares.
///
/// # Errors
/// No such key, no such service or entry, or not part of an arm.
pub(super) fn legal(keys: &[String], root: &Node) -> Result<(), Refusal> {
    let first = keys.first().map(String::as_str).unwrap_or_default();
    if !OF_AN_ARM.contains(&first) {
        let message = if FILE.key(first).is_some() {
            format!("`{first}` is not part of an arm, so it can't differ between them")
        } else {
            format!("the file has no section `{first}`")
        };
        let hint = match nearest(first, OF_AN_ARM) {
            Some(near) => format!("did you mean `{near}`?"),
            None => format!("what can differ is in {}", OF_AN_ARM.join(", ")),
        };
        return Err((message, hint));
    }
    if keys.len() < 2 {
        return Err((
            format!("`{first}` is a whole section"),
            format!("name one value in it, such as `{}`", example(first)),
        ));
    }
    let mut shape = Shape::Table(&FILE);
    let mut node = Some(root);
    let mut done = String::new();
    for (i, key) in keys.iter().enumerate() {
        let last = i + 1 == keys.len();
        (shape, node) = step(shape, node, key, &done, last)?;
        done = super::shape::join(&done, key);
    }
    Ok(())
}

fn example(section: &str) -> &'static str {
    match section {
        "deployment" => "deployment.app.process.env.MALLOC_ARENA_MAX",
        "clients" => "clients.closed",
        "workload" => "workload.step.list.weight",
        "pruning" => "pruning.enabled",
        _ => "action.\"reload the app\".times",
    }
}

type Step<'n> = (Shape, Option<&'n Node>);

fn step<'n>(
    shape: Shape,
    node: Option<&'n Node>,
    key: &str,
    done: &str,
    last: bool,
) -> Result<Step<'n>, Refusal> {
    match shape {
        Shape::Table(section) => {
            let Some(found) = section.key(key) else {
                let hint = match nearest(key, section.keys().map(|k| k.name)) {
                    Some(near) => format!("did you mean `{near}`?"),
                    None => format!(
                        "keys there are {}",
                        section
                            .keys()
                            .map(|k| k.name)
                            .collect::<Vec<_>>()
                            .join(", ")
                    ),
                };
                return Err((format!("`{done}` has no key `{key}`"), hint));
            };
            let is_kind = std::ptr::eq(section, &super::format::KINDS);
            if is_kind
                && let Some(service) = node
                && service.get(key).is_none()
            {
                let kind = service.entries().first().map_or("", |entry| &entry.key);
                return Err((
                    format!("`{done}` is no {key} but a {kind}"),
                    format!("write `{done}.{kind}.…`"),
                ));
            }
            Ok((found.shape, node.and_then(|n| n.get(key))))
        }
        Shape::Map(keys, inner) => {
            if keys == Keys::Names && !is_name(key) {
                return Err((
                    format!("`{key}` in the path is not a name"),
                    "names are lower-case letters, digits and _".to_owned(),
                ));
            }
            let found = node.and_then(|n| n.get(key));
            if found.is_none() && done == "deployment" {
                return Err(missing(
                    "service",
                    key,
                    node.map_or(&[][..], Node::entries)
                        .iter()
                        .map(|e| e.key.as_str()),
                ));
            }
            Ok((*inner, found))
        }
        Shape::Tables(section) => {
            let items = node.map_or(&[][..], Node::items);
            let names = || items.iter().filter_map(|item| item.get("name")?.text());
            let Some(found) = items
                .iter()
                .find(|item| item.get("name").and_then(Node::text) == Some(key))
            else {
                return Err(missing("entry", key, names()));
            };
            if last {
                return Err((
                    format!("`{done}.{key}` is a whole entry"),
                    format!("name one value in it, such as `{done}.{key}.weight`"),
                ));
            }
            Ok((Shape::Table(section), Some(found)))
        }
        Shape::Anything => match node {
            Some(Node {
                value: Content::Table(_),
                ..
            }) => Ok((shape, node.and_then(|n| n.get(key)))),
            _ => Err((
                format!("`{done}` holds no `{key}`"),
                "the path goes deeper than the file".to_owned(),
            )),
        },
        Shape::Either(shapes) => {
            let inner = shapes
                .iter()
                .find(|s| matches!(s, Shape::Table(_) | Shape::Map(..)))
                .filter(|_| node.is_none_or(|n| matches!(n.value, Content::Table(_))));
            match inner {
                Some(inner) => step(*inner, node, key, done, last),
                None => Err(too_deep(done, key)),
            }
        }
        _ => Err(too_deep(done, key)),
    }
}

fn too_deep(done: &str, key: &str) -> Refusal {
    (
        format!("`{done}` is a value and holds no `{key}`"),
        format!("write `{done}`; lists are replaced as a whole"),
    )
}

fn missing<'k>(what: &str, key: &str, known: impl Iterator<Item = &'k str> + Clone) -> Refusal {
    let hint = match nearest(key, known.clone()) {
        Some(near) => format!("did you mean `{near}`?"),
        None => format!(
            "there are {}",
            known
                .map(|k| format!("`{k}`"))
                .collect::<Vec<_>>()
                .join(", ")
        ),
    };
    (format!("no {what} is named `{key}`"), hint)
}

/// The value at a path.
pub(super) fn get<'n>(root: &'n Node, keys: &[String]) -> Option<&'n Node> {
    keys.iter().try_fold(root, |node, key| match &node.value {
        Content::Array(items) => items
            .iter()
            .find(|item| item.get("name").and_then(Node::text) == Some(key)),
        _ => node.get(key),
    })
}

/// The tree with another value at a path that [`legal`] accepted. Tables on the way that are absent are made.
pub(super) fn with(root: &Node, keys: &[String], value: Node) -> Node {
    let mut changed = root.clone();
    set(&mut changed, keys, value);
    changed
}

fn set(node: &mut Node, keys: &[String], value: Node) {
    let Some((key, rest)) = keys.split_first() else {
        *node = value;
        return;
    };
    match &mut node.value {
        Content::Array(items) => {
            let found = items
                .iter_mut()
                .find(|item| item.get("name").and_then(Node::text) == Some(key));
            if let Some(item) = found {
                set(item, rest, value);
            }
        }
        Content::Table(entries) => {
            if let Some(entry) = entries.iter_mut().find(|entry| entry.key == *key) {
                set(&mut entry.node, rest, value);
                return;
            }
            let span = value.span.clone();
            let mut new = Node {
                span: span.clone(),
                value: Content::Table(Vec::new()),
            };
            set(&mut new, rest, value);
            entries.push(Entry {
                key: key.clone(),
                key_span: span,
                node: new,
            });
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::super::document::parse;
    use super::*;

    const FILE: &str = "[deployment.app.process]\ncommand = ['x']\n[clients]\ntarget = 'app'\nclosed = 1\n\
        [[workload.step]]\nname = 'list'\nget = '/'\njson = { a = { b = 1 } }\n[pruning]\nenabled = true\n";

    fn keys(path: &str) -> Vec<String> {
        split(path).unwrap()
    }

    #[test]
    fn paths_split_like_dotted_keys() {
        assert_eq!(keys("a.b_c.\"d e\".'f.g'"), ["a", "b_c", "d e", "f.g"]);
        for bad in ["", ".", "a.", "a..b", "a b", "a[0]", "\"a", "a.\"b\"c"] {
            assert!(split(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn a_path_is_legal_where_the_file_has_or_may_have_a_value() {
        let root = parse(FILE).unwrap();
        for good in [
            "pruning.enabled",
            "pruning.every",
            "clients.closed",
            "clients.headers.X-Test",
            "workload.step.list.weight",
            "workload.step.list.json.a.b",
            "deployment.app.process.env.MALLOC_ARENA_MAX",
            "deployment.app.process.command",
            "deployment.app.process.limits.memory",
        ] {
            assert_eq!(legal(&keys(good), &root), Ok(()), "{good}");
        }
        for (bad, hint) in [
            ("schedule.duration", "what can differ"),
            ("prunning.enabled", "`pruning`"),
            ("pruning", "pruning.enabled"),
            ("pruning.enabeld", "`enabled`"),
            ("deployment.ap.process.command", "`app`"),
            (
                "deployment.app.postgres.settings.x",
                "deployment.app.process",
            ),
            ("workload.step.lst.weight", "`list`"),
            ("workload.step.list", "one value"),
            ("clients.closed.x", "`clients.closed`"),
            ("workload.step.list.json.a.b.c", "deeper"),
        ] {
            let (message, told) = legal(&keys(bad), &root).unwrap_err();
            assert!(told.contains(hint), "{bad}: {message}: {told}");
        }
    }

    #[test]
    fn setting_a_value_makes_the_tables_on_the_way() {
        let root = parse(FILE).unwrap();
        let value = parse("v = 'x'").unwrap().get("v").unwrap().clone();
        for path in ["deployment.app.process.env.A", "workload.step.list.keep.id"] {
            let changed = with(&root, &keys(path), value.clone());
            assert_eq!(get(&changed, &keys(path)).and_then(Node::text), Some("x"));
            assert!(get(&root, &keys(path)).is_none());
        }
    }
}
