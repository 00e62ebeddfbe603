//! What a value of the file may look like: the language in which [`super::format`] describes every key.
//!
//! One description serves the check of types and keys, the legality of a control path, the JSON Schema for editors and the
//! starter file, so that they can't disagree.

use super::document::{Content, Node};
use super::problem::Problem;
use crate::name::{is_name, nearest};
use crate::quantity::{self, QuantityError};

/// What a value may look like.
#[derive(Debug, Clone, Copy)]
pub(super) enum Shape {
    /// A string that is not empty.
    Text,
    /// `[a-z0-9-]+`, the name of a folder.
    Slug,
    /// `[a-z][a-z0-9_]*`.
    Name,
    /// `"10s"`.
    Duration,
    /// `"512MiB"`.
    Size,
    /// `"200/s"`.
    Rate,
    /// `"20%"`.
    Share,
    /// An integer within bounds.
    Whole(i64, i64),
    /// A number above the first and up to the second.
    Number(f64, f64),
    /// `true` or `false`.
    Truth,
    /// One of these words.
    Choice(&'static [&'static str]),
    /// A list.
    List(&'static Shape),
    /// A table with keys of the user's choice.
    Map(Keys, &'static Shape),
    /// A table with keys of ours.
    Table(&'static Section),
    /// An array of tables.
    Tables(&'static Section),
    /// One of these, told apart by their TOML type.
    Either(&'static [Shape]),
    /// A string, number or truth.
    Scalar,
    /// Whatever TOML has.
    Anything,
}

/// How a user's keys are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Keys {
    /// `[a-z][a-z0-9_]*`: they become parts of figures.
    Names,
    /// As the user likes.
    Any,
}

/// A table of the file.
#[derive(Debug)]
pub(super) struct Section {
    /// What it is, in one line.
    pub doc: &'static str,
    /// Its keys, in groups that sections share.
    pub keys: &'static [&'static [Key]],
}

/// A key of a table.
#[derive(Debug)]
pub(super) struct Key {
    pub name: &'static str,
    pub shape: Shape,
    pub required: bool,
    /// What it is for, in one line.
    pub doc: &'static str,
    /// What holds when it is absent, as TOML; empty: nothing.
    pub default: &'static str,
}

impl Section {
    pub fn keys(&self) -> impl Iterator<Item = &'static Key> {
        self.keys.iter().flat_map(|group| group.iter())
    }

    /// Whether a table has keys that this section lacks: what else is missing may be among them, misspelt.
    pub fn has_unknown(&self, node: &Node) -> bool {
        node.entries()
            .iter()
            .any(|entry| self.key(&entry.key).is_none())
    }

    pub fn key(&self, name: &str) -> Option<&'static Key> {
        self.keys().find(|key| key.name == name)
    }
}

impl Shape {
    /// What is expected, with an example.
    pub fn words(&self) -> String {
        match self {
            Shape::Text => "a string".to_owned(),
            Shape::Slug => "a name of lower-case letters, digits and dashes".to_owned(),
            Shape::Name => "a name of lower-case letters, digits and _".to_owned(),
            Shape::Duration => "a duration such as \"10s\"".to_owned(),
            Shape::Size => "a size such as \"512MiB\"".to_owned(),
            Shape::Rate => "a rate such as \"200/s\"".to_owned(),
            Shape::Share => "a share such as \"20%\"".to_owned(),
            Shape::Whole(..) => "a whole number".to_owned(),
            Shape::Number(..) => "a number".to_owned(),
            Shape::Truth => "true or false".to_owned(),
            Shape::Choice(words) => {
                let words: Vec<String> = words.iter().map(|word| format!("\"{word}\"")).collect();
                words.join(" or ")
            }
            Shape::List(item) => format!("a list, each item {}", item.words()),
            Shape::Map(..) | Shape::Table(_) => "a table".to_owned(),
            Shape::Tables(_) => "an array of tables".to_owned(),
            Shape::Either(shapes) => {
                let words: Vec<String> = shapes.iter().map(Shape::words).collect();
                words.join(" or ")
            }
            Shape::Scalar => "a string, a number or true or false".to_owned(),
            Shape::Anything => "a value".to_owned(),
        }
    }

    /// Whether the value's TOML type can be this shape at all.
    fn takes(&self, node: &Node) -> bool {
        match (self, &node.value) {
            (Shape::Anything, _) => true,
            (Shape::Either(shapes), _) => shapes.iter().any(|shape| shape.takes(node)),
            (
                Shape::Text
                | Shape::Slug
                | Shape::Name
                | Shape::Duration
                | Shape::Size
                | Shape::Rate
                | Shape::Share
                | Shape::Choice(_)
                | Shape::Scalar,
                Content::Text(_),
            ) => true,
            (Shape::Whole(..), Content::Integer(_)) => true,
            (Shape::Number(..) | Shape::Scalar, Content::Integer(_) | Content::Float(_)) => true,
            (Shape::Truth | Shape::Scalar, Content::Truth(_)) => true,
            (Shape::List(_), Content::Array(_)) => true,
            (Shape::Map(..) | Shape::Table(_), Content::Table(_)) => true,
            (Shape::Tables(_), Content::Array(items)) => items
                .iter()
                .all(|item| matches!(item.value, Content::Table(_))),
            _ => false,
        }
    }

    /// Checks a value. `path` is how the file addresses it: `schedule.warmup`.
    pub fn check(&self, node: &Node, path: &str, problems: &mut Vec<Problem>) {
        if !self.takes(node) {
            problems.push(Problem::error(
                node.span.clone(),
                format!("`{path}` is {}, not {}", node.kind(), self.words()),
                self.instead(node),
            ));
            return;
        }
        match self {
            Shape::Either(shapes) => {
                if let Some(shape) = shapes.iter().find(|shape| shape.takes(node)) {
                    shape.check(node, path, problems);
                }
            }
            Shape::List(item) => {
                for (i, value) in node.items().iter().enumerate() {
                    item.check(value, &format!("{path}[{i}]"), problems);
                }
            }
            Shape::Map(keys, shape) => {
                for entry in node.entries() {
                    let path = format!("{path}.{}", entry.key);
                    if *keys == Keys::Names && !is_name(&entry.key) {
                        problems.push(Problem::error(
                            entry.key_span.clone(),
                            format!("`{}` is not a name", entry.key),
                            name_hint(&entry.key),
                        ));
                    }
                    shape.check(&entry.node, &path, problems);
                }
            }
            Shape::Table(section) => section.check(node, path, problems),
            Shape::Tables(section) => {
                for item in node.items() {
                    // As a control path addresses it.
                    let name = item.get("name").and_then(Node::text);
                    let path = name.map_or(path.to_owned(), |name| {
                        join(path, &super::document::key_toml(name))
                    });
                    section.check(item, &path, problems);
                }
            }
            _ => {
                if let Err(problem) = self.check_scalar(node, path) {
                    problems.push(problem);
                }
            }
        }
    }

    fn check_scalar(&self, node: &Node, path: &str) -> Result<(), Problem> {
        let fault =
            |message: String, hint: String| Err(Problem::error(node.span.clone(), message, hint));
        let of_quantity = |result: Result<(), QuantityError>| match result {
            Ok(()) => Ok(()),
            Err(error) => fault(format!("`{path}`: {}", error.message), error.hint),
        };
        let text = node.text().unwrap_or_default();
        match self {
            Shape::Duration => of_quantity(quantity::duration(text).map(|_| ())),
            Shape::Size => of_quantity(quantity::size(text).map(|_| ())),
            Shape::Rate => of_quantity(quantity::rate(text).map(|_| ())),
            Shape::Share => of_quantity(quantity::share(text).map(|_| ())),
            Shape::Text if text.trim().is_empty() => fault(
                format!("`{path}` is empty"),
                "write what it should be, or leave the key out".to_owned(),
            ),
            Shape::Name if !is_name(text) => fault(
                format!("`{path}`: \"{text}\" is not a name"),
                name_hint(text),
            ),
            Shape::Slug if !is_slug(text) => fault(
                format!("`{path}`: \"{text}\" can't name a folder"),
                format!(
                    "write lower-case letters, digits and dashes (at most 64), such as \"{}\"",
                    slug(text)
                ),
            ),
            Shape::Choice(words) if !words.contains(&text) => fault(
                format!("`{path}`: \"{text}\" is not known here"),
                match nearest(text, words.iter().copied()) {
                    Some(near) => format!("did you mean \"{near}\"?"),
                    None => format!("write {}", self.words()),
                },
            ),
            Shape::Whole(least, most) => match node.integer() {
                Some(n) if n < *least => fault(
                    format!("`{path}` is {n}"),
                    format!("it must be at least {least}"),
                ),
                Some(n) if n > *most => fault(
                    format!("`{path}` is {n}"),
                    format!("it must be at most {most}"),
                ),
                _ => Ok(()),
            },
            Shape::Number(above, most) => match node.number() {
                Some(n) if n > *above && n <= *most => Ok(()),
                Some(n) => fault(
                    format!("`{path}` is {n}"),
                    format!("it must be above {above} and at most {most}"),
                ),
                None => Ok(()),
            },
            _ => Ok(()),
        }
    }

    /// What to write in place of a value of the wrong type.
    fn instead(&self, node: &Node) -> String {
        let number = match &node.value {
            Content::Integer(integer) => integer.to_string(),
            Content::Float(float) => float.to_string(),
            _ => String::new(),
        };
        let first = match self {
            Shape::Either(shapes) => shapes.first().unwrap_or(self),
            shape => shape,
        };
        match (first, &node.value) {
            (Shape::Duration, Content::Integer(_) | Content::Float(_)) => {
                format!("a number alone has no unit: write \"{number}s\" or \"{number}ms\"")
            }
            (Shape::Size, Content::Integer(_) | Content::Float(_)) => {
                format!("a number alone has no unit: write \"{number}MiB\"")
            }
            (Shape::Rate, Content::Integer(_) | Content::Float(_)) => {
                format!("a number alone has no unit: write \"{number}/s\"")
            }
            (Shape::Share, Content::Integer(_) | Content::Float(_)) => {
                let n = node.number().unwrap_or_default();
                format!(
                    "a number alone has no unit: write \"{}%\"",
                    if n <= 1.0 { n * 100.0 } else { n }
                )
            }
            (Shape::Whole(..) | Shape::Number(..), Content::Text(text))
                if text.parse::<f64>().is_ok() =>
            {
                format!("write {text} without quotes")
            }
            (Shape::Truth, Content::Text(text)) if matches!(text.as_str(), "true" | "false") => {
                format!("write {text} without quotes")
            }
            (Shape::Text | Shape::Name | Shape::Slug, Content::Integer(_) | Content::Float(_)) => {
                format!("write \"{number}\" in quotes")
            }
            (Shape::Text, Content::Truth(truth)) => format!("write \"{truth}\" in quotes"),
            (Shape::List(_), Content::Text(text)) => {
                format!("write a list: [{}]", toml::Value::String(text.clone()))
            }
            (Shape::Tables(_), Content::Table(_)) => {
                "write the header with two brackets, as in [[…]]".to_owned()
            }
            (Shape::Table(_), Content::Array(_)) => {
                "write the header with one bracket, as in […]".to_owned()
            }
            _ => format!("write {}", self.words()),
        }
    }
}

impl Section {
    /// Checks the keys of a table and their values.
    pub fn check(&self, node: &Node, path: &str, problems: &mut Vec<Problem>) {
        for entry in node.entries() {
            match self.key(&entry.key) {
                Some(key) => {
                    let path = join(path, &entry.key);
                    key.shape.check(&entry.node, &path, problems);
                }
                None => {
                    problems.push(Problem::error(
                        entry.key_span.clone(),
                        match path {
                            "" => format!("unknown section `{}`", entry.key),
                            path => format!("unknown key `{}` in `{path}`", entry.key),
                        },
                        self.unknown_hint(&entry.key),
                    ));
                }
            }
        }
        for key in self.keys().filter(|key| key.required) {
            let misspelt = node.entries().iter().any(|entry| {
                self.key(&entry.key).is_none()
                    && nearest(&entry.key, self.keys().map(|k| k.name)) == Some(key.name)
            });
            if node.get(key.name).is_none() && !misspelt {
                let (what, hint) = match path {
                    "" => (
                        format!("the section `{}` is missing", key.name),
                        format!("add {}: {}", header(key), key.doc),
                    ),
                    path => (
                        format!("`{path}` lacks the key `{}`", key.name),
                        format!("add `{} = …`, {}: {}", key.name, key.shape.words(), key.doc),
                    ),
                };
                problems.push(Problem::error(node.span.clone(), what, hint));
            }
        }
    }

    fn unknown_hint(&self, key: &str) -> String {
        if let Some(near) = nearest(key, self.keys().map(|k| k.name)) {
            return format!("did you mean `{near}`?");
        }
        if let Some(section) = super::format::home_of(key) {
            return format!("`{key}` belongs to `[{section}]`");
        }
        let keys: Vec<String> = self.keys().map(|k| format!("`{}`", k.name)).collect();
        format!("keys here are {}", keys.join(", "))
    }
}

fn header(key: &Key) -> String {
    match key.shape {
        Shape::Tables(_) => format!("`[[{}]]`", key.name),
        _ => format!("`[{}]`", key.name),
    }
}

/// A dotted path with one more key.
pub(super) fn join(path: &str, key: &str) -> String {
    match path {
        "" => key.to_owned(),
        path => format!("{path}.{key}"),
    }
}

fn name_hint(text: &str) -> String {
    let suggestion: String = text
        .to_lowercase()
        .chars()
        .map(|c| if c.is_ascii_alphanumeric() { c } else { '_' })
        .take(40)
        .collect();
    let suggestion = suggestion.trim_start_matches(|c: char| !c.is_ascii_lowercase());
    if is_name(suggestion) {
        format!(
            "names are lower-case letters, digits and _, beginning with a letter: `{suggestion}`"
        )
    } else {
        "names are lower-case letters, digits and _, beginning with a letter".to_owned()
    }
}

/// Whether a text can name a folder under results/.
pub(super) fn is_slug(text: &str) -> bool {
    (1..=64).contains(&text.len())
        && text
            .bytes()
            .all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-')
        && text.bytes().any(|b| b != b'-')
}

fn slug(text: &str) -> String {
    let slug: String = text
        .to_lowercase()
        .chars()
        .map(|c| if c.is_ascii_alphanumeric() { c } else { '-' })
        .take(40)
        .collect();
    match slug.trim_matches('-') {
        "" => "my-experiment".to_owned(),
        slug => slug.to_owned(),
    }
}
