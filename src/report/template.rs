//! Templates: the built-in ones, a team's own, and the environment that renders them.
//!
//! What a template prints is escaped by the format of the template's name (`.md`, `.html`), so a template can't let
//! markup through by forgetting a filter. Undefined names are errors with file and line.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::Path;

use anyhow::{Context, Result, anyhow, bail};
use minijinja::syntax::SyntaxConfig;
use minijinja::value::{Serde, Value};
use minijinja::{AutoEscape, Environment, Error, Output, State, UndefinedBehavior};
use serde::{Deserialize, Serialize};

use super::text;
use super::view::View;

const MARKDOWN: &str = "report.md";
const HTML: &str = "report.html";
const SUMMARY: &str = "github-summary.md";

/// Style of the page.
const PAGE_STYLE: &str = include_str!("../../templates/report.css");

const BUILT_IN: [(&str, &str); 5] = [
    (MARKDOWN, include_str!("../../templates/report.md")),
    (HTML, include_str!("../../templates/report.html")),
    (SUMMARY, include_str!("../../templates/github-summary.md")),
    ("tables.md", include_str!("../../templates/tables.md")),
    ("tables.html", include_str!("../../templates/tables.html")),
];

/// Name of the escaping for Markdown.
const FOR_MARKDOWN: &str = "markdown";

/// Largest template that is read, in bytes.
const LARGEST: u64 = 1 << 20;

/// Templates by name.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub struct TemplateSource {
    own: BTreeMap<String, String>,
}

impl TemplateSource {
    /// The built-in templates.
    pub fn built_in() -> Self {
        TemplateSource::default()
    }

    /// Templates of a folder; what it lacks is taken from the built-in ones.
    ///
    /// # Errors
    /// When the folder can't be read, holds no template, or holds one that isn't UTF-8.
    pub fn folder(dir: &Path) -> Result<Self> {
        let mut own = BTreeMap::new();
        let entries = std::fs::read_dir(dir)
            .with_context(|| format!("reading the template folder {}", dir.display()))?;
        for entry in entries {
            let path = entry
                .with_context(|| format!("reading the template folder {}", dir.display()))?
                .path();
            let Some(name) = path.file_name().and_then(|name| name.to_str()) else {
                continue;
            };
            if !path.is_file() || !matches!(name.rsplit('.').next(), Some("md" | "html")) {
                continue;
            }
            let size = std::fs::metadata(&path)
                .with_context(|| format!("reading the template {}", path.display()))?
                .len();
            if size > LARGEST {
                bail!("the template {} is larger than 1 MiB", path.display());
            }
            let source = std::fs::read_to_string(&path)
                .with_context(|| format!("reading the template {}", path.display()))?;
            own.insert(name.to_owned(), source);
        }
        let known: Vec<&str> = BUILT_IN.iter().map(|(name, _)| *name).collect();
        if !known.iter().any(|name| own.contains_key(*name)) {
            bail!(
                "the template folder {} holds none of {}",
                dir.display(),
                known.join(", ")
            );
        }
        Ok(TemplateSource { own })
    }

    fn environment(&self) -> Result<Environment<'_>> {
        let mut env = Environment::new();
        env.set_undefined_behavior(UndefinedBehavior::Strict);
        env.set_syntax(
            SyntaxConfig::builder()
                .trim_blocks(true)
                .lstrip_blocks(true)
                .keep_trailing_newline(true)
                .build()
                .context("configuring the template syntax")?,
        );
        env.set_auto_escape_callback(|name| match name.rsplit('.').next() {
            Some("md") => AutoEscape::Custom(FOR_MARKDOWN.into()),
            _ => AutoEscape::Html,
        });
        env.set_formatter(print);
        env.add_filter("cell", |value: String| {
            Value::from_safe_string(text::markdown(&value))
        });
        env.add_filter("code", code);
        env.add_filter("link", link);
        for (name, source) in BUILT_IN {
            if !self.own.contains_key(name) {
                env.add_template(name, source)
                    .map_err(|error| explain(&error))
                    .with_context(|| format!("reading the built-in template {name}"))?;
            }
        }
        for (name, source) in &self.own {
            env.add_template(name, source)
                .map_err(|error| explain(&error))
                .with_context(|| format!("reading the template {name}"))?;
        }
        Ok(env)
    }

    fn render(&self, name: &str, view: &View) -> Result<String> {
        let mut env = self.environment()?;
        env.add_global("page_style", Value::from_safe_string(PAGE_STYLE.to_owned()));
        env.add_global(
            "chart_style",
            Value::from_safe_string(super::charts::STYLE.to_owned()),
        );
        let template = env.get_template(name).map_err(|error| explain(&error))?;
        template
            .render(Value::from(Serde(view)))
            .map_err(|error| explain(&error))
            .with_context(|| format!("rendering the template {name}"))
    }

    pub(super) fn markdown(&self, view: &View) -> Result<String> {
        Ok(squeeze(&self.render(MARKDOWN, view)?))
    }

    pub(super) fn html(&self, view: &View) -> Result<String> {
        self.render(HTML, view)
    }

    pub(super) fn github_summary(&self, view: &View) -> Result<String> {
        Ok(squeeze(&self.render(SUMMARY, view)?))
    }
}

/// At most one empty line in a row, none at the ends: what templates leave where a section is absent.
fn squeeze(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut empty = true;
    for line in text.lines() {
        let line = line.trim_end();
        if !(line.is_empty() && empty) {
            out.push_str(line);
            out.push('\n');
        }
        empty = line.is_empty();
    }
    out.truncate(out.trim_end().len());
    out.push('\n');
    out
}

/// A template's fault with its place.
fn explain(error: &Error) -> anyhow::Error {
    let mut message = error.to_string();
    let mut source = std::error::Error::source(error);
    while let Some(inner) = source {
        let _ = write!(message, ": {inner}");
        source = inner.source();
    }
    anyhow!(message)
}

fn is_markdown(state: &State<'_, '_>) -> bool {
    matches!(state.auto_escape(), AutoEscape::Custom(format) if format == FOR_MARKDOWN)
}

fn print(out: &mut Output<'_>, state: &mut State<'_, '_>, value: &Value) -> Result<(), Error> {
    if value.is_undefined() || value.is_safe() {
        return minijinja::escape_formatter(out, state, value);
    }
    let words = value.to_string();
    let escaped = if is_markdown(state) {
        text::markdown(&words)
    } else {
        text::html(&words)
    };
    out.write_str(&escaped).map_err(Error::from)
}

fn code(state: &mut State<'_, '_>, value: String) -> Value {
    Value::from_safe_string(if is_markdown(state) {
        text::markdown_code(&value)
    } else if value.is_empty() {
        String::new()
    } else {
        format!("<code>{}</code>", text::html(&value))
    })
}

/// A plain web address as a link, anything else as text.
fn link(state: &mut State<'_, '_>, value: String) -> Value {
    Value::from_safe_string(match (text::is_link(&value), is_markdown(state)) {
        (true, true) => format!("<{value}>"),
        (true, false) => format!("<a href=\"{value}\">{value}</a>"),
        (false, true) => text::markdown(&value),
        (false, false) => text::html(&value),
    })
}
