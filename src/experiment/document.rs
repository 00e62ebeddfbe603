//! A TOML text as a tree in which every key and value knows its place.
//!
//! The tree is owned and can be changed, since each arm is the file with one value replaced.

use std::ops::Range;
use std::time::Duration;

use toml::de::{DeTable, DeValue};

use super::problem::Problem;
use crate::quantity;

/// A value with its place in the text.
#[derive(Debug, Clone)]
pub(super) struct Node {
    pub span: Range<usize>,
    pub value: Content,
}

/// What a value is.
#[derive(Debug, Clone)]
pub(super) enum Content {
    Table(Vec<Entry>),
    Array(Vec<Node>),
    Text(String),
    Integer(i64),
    Float(f64),
    Truth(bool),
    /// A date or time: no key takes one.
    Date(String),
}

/// A key with its value.
#[derive(Debug, Clone)]
pub(super) struct Entry {
    pub key: String,
    pub key_span: Range<usize>,
    pub node: Node,
}

/// Syntax errors shown at most: after many, the rest are echoes.
const MOST_ERRORS: usize = 20;

/// Parses a text.
///
/// # Errors
/// Every syntax error that the parser found.
pub(super) fn parse(text: &str) -> Result<Node, Vec<Problem>> {
    let (table, errors) = DeTable::parse_recoverable(text);
    if !errors.is_empty() {
        return Err(errors
            .iter()
            .take(MOST_ERRORS)
            .map(|error| {
                let span = error.span().unwrap_or(0..0);
                let span = span.start.min(text.len())..span.end.min(text.len());
                let (message, hint) = syntax(error.message(), text, &span);
                Problem::error(span, message, hint)
            })
            .collect());
    }
    let mut problems = Vec::new();
    let root = Node {
        span: 0..0,
        value: table_content(table.get_ref(), &mut problems),
    };
    if problems.is_empty() {
        Ok(root)
    } else {
        Err(problems)
    }
}

/// A syntax error in this tool's words, and what to write.
fn syntax(message: &str, text: &str, span: &Range<usize>) -> (String, &'static str) {
    let rest = text.get(span.start..).unwrap_or_default();
    let at_line_end =
        rest.trim_start_matches([' ', '\t', '\r']).starts_with('\n') || rest.trim().is_empty();
    if message.contains("duplicate key") {
        let key = text.get(span.clone()).unwrap_or_default();
        (
            format!("the key `{key}` stands twice in its table"),
            "keep one of the two",
        )
    } else if message.contains("recurs") {
        (
            "values nest deeper than 80 levels".to_owned(),
            "no experiment needs that",
        )
    } else if message.contains("string values must be quoted") && at_line_end {
        ("a value is missing".to_owned(), "write one after the `=`")
    } else if message.contains("string values must be quoted") {
        (message.to_owned(), "put text in quotes: key = \"value\"")
    } else if message.contains("string, expected `") {
        (
            message.to_owned(),
            "close the string with the quote that opened it",
        )
    } else {
        (
            message.to_owned(),
            "the file is TOML: key = value, [table], [[array of tables]]",
        )
    }
}

fn table_content(table: &DeTable<'_>, problems: &mut Vec<Problem>) -> Content {
    Content::Table(
        table
            .iter()
            .map(|(key, value)| Entry {
                key: key.get_ref().to_string(),
                key_span: key.span(),
                node: node(value.get_ref(), value.span(), problems),
            })
            .collect(),
    )
}

fn node(value: &DeValue<'_>, span: Range<usize>, problems: &mut Vec<Problem>) -> Node {
    let content = match value {
        DeValue::Table(table) => table_content(table, problems),
        DeValue::Array(items) => Content::Array(
            items
                .iter()
                .map(|item| node(item.get_ref(), item.span(), problems))
                .collect(),
        ),
        DeValue::String(text) => Content::Text(text.to_string()),
        DeValue::Boolean(truth) => Content::Truth(*truth),
        DeValue::Datetime(date) => Content::Date(date.to_string()),
        DeValue::Integer(integer) => match i64::from_str_radix(integer.as_str(), integer.radix()) {
            Ok(value) => Content::Integer(value),
            Err(_) => {
                problems.push(Problem::error(
                    span.clone(),
                    "this integer is too large",
                    "integers have 64 bits",
                ));
                Content::Integer(0)
            }
        },
        DeValue::Float(float) => Content::Float(float.as_str().parse().unwrap_or(f64::NAN)),
    };
    Node {
        span,
        value: content,
    }
}

impl Node {
    /// A table without entries, for sections that are absent.
    pub fn empty() -> Node {
        Node {
            span: 0..0,
            value: Content::Table(Vec::new()),
        }
    }

    /// What the value is, in words.
    pub fn kind(&self) -> &'static str {
        match &self.value {
            Content::Table(_) => "a table",
            Content::Array(_) => "a list",
            Content::Text(_) => "a string",
            Content::Integer(_) | Content::Float(_) => "a number",
            Content::Truth(_) => "true or false",
            Content::Date(_) => "a date",
        }
    }

    /// The entries of a table; none if it is something else.
    pub fn entries(&self) -> &[Entry] {
        match &self.value {
            Content::Table(entries) => entries,
            _ => &[],
        }
    }

    /// The items of a list; none if it is something else.
    pub fn items(&self) -> &[Node] {
        match &self.value {
            Content::Array(items) => items,
            _ => &[],
        }
    }

    /// The entry of a table.
    pub fn entry(&self, key: &str) -> Option<&Entry> {
        self.entries().iter().find(|entry| entry.key == key)
    }

    /// The value of a table's key, if it is a table itself.
    pub fn table(&self, key: &str) -> Option<&Node> {
        self.get(key)
            .filter(|node| matches!(node.value, Content::Table(_)))
    }

    /// The value of a table's key.
    pub fn get(&self, key: &str) -> Option<&Node> {
        self.entry(key).map(|entry| &entry.node)
    }

    pub fn text(&self) -> Option<&str> {
        match &self.value {
            Content::Text(text) => Some(text),
            _ => None,
        }
    }

    pub fn truth(&self) -> Option<bool> {
        match self.value {
            Content::Truth(truth) => Some(truth),
            _ => None,
        }
    }

    pub fn integer(&self) -> Option<i64> {
        match self.value {
            Content::Integer(integer) => Some(integer),
            _ => None,
        }
    }

    pub fn number(&self) -> Option<f64> {
        match self.value {
            Content::Integer(integer) => Some(integer as f64),
            Content::Float(float) => Some(float),
            _ => None,
        }
    }

    // Quantities were checked with the file's shape; what is faulty was reported there and reads as absent here.

    pub fn duration(&self) -> Option<Duration> {
        quantity::duration(self.text()?).ok()
    }

    pub fn size(&self) -> Option<u64> {
        quantity::size(self.text()?).ok()
    }

    pub fn rate(&self) -> Option<f64> {
        quantity::rate(self.text()?).ok()
    }

    pub fn share(&self) -> Option<f64> {
        quantity::share(self.text()?).ok()
    }

    /// A list of strings.
    pub fn texts(&self) -> Vec<String> {
        self.items()
            .iter()
            .filter_map(|item| item.text().map(str::to_owned))
            .collect()
    }

    /// A string, or a list of them.
    pub fn text_or_texts(&self) -> Vec<&Node> {
        match &self.value {
            Content::Array(items) => items.iter().collect(),
            _ => vec![self],
        }
    }

    /// A scalar as the text that a setting or variable would have.
    pub fn scalar(&self) -> Option<String> {
        match &self.value {
            Content::Text(text) => Some(text.clone()),
            Content::Integer(integer) => Some(integer.to_string()),
            Content::Float(float) => Some(float.to_string()),
            Content::Truth(truth) => Some(if *truth { "on" } else { "off" }.to_owned()),
            Content::Table(_) | Content::Array(_) | Content::Date(_) => None,
        }
    }

    /// The value as JSON. Infinite numbers and dates, which JSON lacks, become null; they are refused beforehand.
    pub fn json(&self) -> serde_json::Value {
        match &self.value {
            Content::Table(entries) => entries
                .iter()
                .map(|entry| (entry.key.clone(), entry.node.json()))
                .collect::<serde_json::Map<_, _>>()
                .into(),
            Content::Array(items) => items.iter().map(Node::json).collect(),
            Content::Text(text) => text.as_str().into(),
            Content::Integer(integer) => (*integer).into(),
            Content::Float(float) => (*float).into(),
            Content::Truth(truth) => (*truth).into(),
            Content::Date(_) => serde_json::Value::Null,
        }
    }

    /// Whether two values are the same, wherever they stand.
    pub fn same(&self, other: &Node) -> bool {
        match (&self.value, &other.value) {
            (Content::Table(a), Content::Table(b)) => {
                a.len() == b.len()
                    && a.iter().all(|entry| {
                        b.iter()
                            .find(|o| o.key == entry.key)
                            .is_some_and(|o| o.node.same(&entry.node))
                    })
            }
            (Content::Array(a), Content::Array(b)) => {
                a.len() == b.len() && a.iter().zip(b).all(|(x, y)| x.same(y))
            }
            (Content::Text(a), Content::Text(b)) | (Content::Date(a), Content::Date(b)) => a == b,
            (Content::Truth(a), Content::Truth(b)) => a == b,
            (Content::Integer(a), Content::Integer(b)) => a == b,
            _ => match (self.number(), other.number()) {
                (Some(a), Some(b)) => a == b,
                _ => false,
            },
        }
    }

    /// The value as TOML would have it in one line.
    pub fn toml(&self) -> String {
        match &self.value {
            Content::Table(entries) => {
                let parts: Vec<String> = entries
                    .iter()
                    .map(|entry| format!("{} = {}", key_toml(&entry.key), entry.node.toml()))
                    .collect();
                if parts.is_empty() {
                    "{}".to_owned()
                } else {
                    format!("{{ {} }}", parts.join(", "))
                }
            }
            Content::Array(items) => {
                let parts: Vec<String> = items.iter().map(Node::toml).collect();
                format!("[{}]", parts.join(", "))
            }
            Content::Text(text) => toml::Value::String(text.clone()).to_string(),
            Content::Integer(integer) => integer.to_string(),
            Content::Float(float) => toml::Value::Float(*float).to_string(),
            Content::Truth(truth) => truth.to_string(),
            Content::Date(date) => date.clone(),
        }
    }
}

/// A key as TOML would have it: quoted where it must be.
pub(super) fn key_toml(key: &str) -> String {
    let bare = !key.is_empty()
        && key
            .bytes()
            .all(|b| b.is_ascii_alphanumeric() || b == b'_' || b == b'-');
    if bare {
        key.to_owned()
    } else {
        toml::Value::String(key.to_owned()).to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_know_their_place_and_read_back() {
        let text = "\u{feff}[a]\r\nx = 0x1F\ny = { z = [1.5, true], \"q r\" = 'v' }\n";
        let root = parse(text).unwrap();
        let x = root.get("a").unwrap().get("x").unwrap();
        assert_eq!((&text[x.span.clone()], x.integer()), ("0x1F", Some(31)));
        let y = root.get("a").unwrap().get("y").unwrap();
        assert_eq!(y.toml(), "{ z = [1.5, true], \"q r\" = \"v\" }");
    }

    #[test]
    fn all_syntax_errors_are_told_and_deep_nesting_is_one() {
        let problems = parse("a = \nb = 1\nb = 2\n[x\n").unwrap_err();
        assert_eq!(problems.len(), 3);
        let deep = format!("a = {}", "[".repeat(300_000));
        assert!(parse(&deep).unwrap_err().len() <= MOST_ERRORS);
        assert!(parse("a = 99999999999999999999").is_err());
    }

    #[test]
    fn sameness_ignores_place_and_order() {
        let root =
            parse("a = {x = 1, y = 'b'}\nb = {y = 'b', x = 1.0}\nc = {x = 2, y = 'b'}").unwrap();
        let [a, b, c] = ["a", "b", "c"].map(|key| root.get(key).unwrap());
        assert!(a.same(b) && !a.same(c) && !b.same(&root));
    }
}
