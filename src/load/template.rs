//! Templates of a workload, compiled once: literal pieces and values, each with the encoding that its place asks for.
//!
//! The usual values (kept values, `client`, `iteration`, `random_int`, `random_choice`, `uuid`) are written straight into the
//! request; anything more general goes through minijinja, prepared once as well. It must never send a half-filled text: a
//! value that is missing or can't stand in its place is an error.

use std::sync::Arc;

use anyhow::Context;
use minijinja::UndefinedBehavior;
use serde_json::Value;

use super::draw::Draw;
use super::encode::{Encoding, Unsendable, put, put_text};
use super::environment::Environment;

/// The names that a template may use besides kept values.
const BUILT_IN: [&str; 6] = [
    "client",
    "iteration",
    "random_int",
    "random_choice",
    "uuid",
    "env",
];

/// A kept value and its text.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Kept {
    value: Value,
    text: String,
}

impl Kept {
    /// Keeps a value.
    pub(super) fn new(value: Value) -> Self {
        let text = match &value {
            Value::String(text) => text.clone(),
            other => other.to_string(),
        };
        Kept { value, text }
    }
}

/// What a template is filled from.
pub(super) struct Scene<'a> {
    pub kept: &'a [Option<Kept>],
    pub client: u64,
    pub iteration: u64,
    pub shared: &'a Shared,
}

/// What all templates of a workload share: the names of kept values, the general templates, the environment.
#[derive(Debug)]
pub(super) struct Shared {
    names: Vec<String>,
    general: minijinja::Environment<'static>,
    environment: Environment,
}

impl Shared {
    /// What is taken from the caller's environment.
    pub(super) fn environment(&self) -> &Environment {
        &self.environment
    }
}

/// A compiled template.
#[derive(Debug, Clone, Default)]
pub(super) struct Template {
    parts: Vec<Part>,
    /// Kept values without which it can't be filled.
    needs: Vec<usize>,
}

#[derive(Debug, Clone)]
enum Part {
    Literal(Vec<u8>),
    Filled(Source, Encoding),
}

#[derive(Debug, Clone)]
enum Source {
    Kept(usize),
    RandomInt(i64, i64),
    Choice(Arc<[Value]>),
    Uuid,
    Client,
    Iteration,
    /// A name of the caller's environment.
    Env(String),
    /// A template of the environment, by name.
    General(String),
}

/// Compiles the templates of one workload.
pub(super) struct Compiler {
    shared: Shared,
}

impl Compiler {
    /// `names`: the kept values of all steps.
    pub(super) fn new(names: Vec<String>, environment: Environment) -> Self {
        let mut general = minijinja::Environment::new();
        general.set_undefined_behavior(UndefinedBehavior::Strict);
        general.set_auto_escape_callback(|_| minijinja::AutoEscape::None);
        super::general::add_functions(&mut general);
        Compiler {
            shared: Shared {
                names,
                general,
                environment,
            },
        }
    }

    /// The end of compiling.
    pub(super) fn finish(self) -> Shared {
        self.shared
    }

    /// Appends `text` to `template`; values in it get `encoding`, and so does the literal text of a path.
    pub(super) fn text(
        &mut self,
        template: &mut Template,
        text: &str,
        encoding: Encoding,
    ) -> anyhow::Result<()> {
        if ["{%", "{#", "{{-", "-}}"]
            .iter()
            .any(|sign| text.contains(sign))
        {
            // Rendered as a whole, so the text's own '/' could not be told from a value's.
            anyhow::ensure!(
                !matches!(encoding, Encoding::Path | Encoding::Form),
                "'{text}': a path or form field takes {{{{ expressions }}}} only, no statements, comments or '-' signs"
            );
            let source = self.general(text)?;
            return self.fill(template, source, encoding);
        }
        let mut rest = text;
        while let Some(open) = rest.find("{{") {
            template.literal_text(&rest[..open], encoding);
            let inner = &rest[open + 2..];
            let close = end_of_expression(inner)
                .with_context(|| format!("'{text}': '{{{{' without '}}}}'"))?;
            let source = self.source(&inner[..close])?;
            self.fill(template, source, encoding)?;
            rest = &inner[close + 2..];
        }
        template.literal_text(rest, encoding);
        Ok(())
    }

    /// Appends a JSON document whose string leaves are templates; a leaf that is one whole template keeps its type.
    pub(super) fn json(&mut self, template: &mut Template, document: &Value) -> anyhow::Result<()> {
        match document {
            Value::String(text) => match whole_expression(text) {
                Some(inner) => {
                    let source = self.json_source(inner)?;
                    self.fill(template, source, Encoding::JsonValue)
                }
                None => {
                    template.literal(b"\"");
                    self.text(template, text, Encoding::JsonText)?;
                    template.literal(b"\"");
                    Ok(())
                }
            },
            Value::Array(items) => {
                template.literal(b"[");
                for (i, item) in items.iter().enumerate() {
                    template.literal(if i > 0 { b"," } else { b"" });
                    self.json(template, item)?;
                }
                template.literal(b"]");
                Ok(())
            }
            Value::Object(members) => {
                template.literal(b"{");
                for (i, (name, member)) in members.iter().enumerate() {
                    template.literal(if i > 0 { b"," } else { b"" });
                    template.literal(Value::String(name.clone()).to_string().as_bytes());
                    template.literal(b":");
                    self.json(template, member)?;
                }
                template.literal(b"}");
                Ok(())
            }
            plain => {
                template.literal(plain.to_string().as_bytes());
                Ok(())
            }
        }
    }

    fn fill(
        &mut self,
        template: &mut Template,
        source: Source,
        encoding: Encoding,
    ) -> anyhow::Result<()> {
        let mut needs = Vec::new();
        match &source {
            Source::Kept(at) => needs.push(*at),
            Source::General(name) => {
                let used = self
                    .shared
                    .general
                    .get_template(name)?
                    .undeclared_variables(false);
                for name in used {
                    match self.shared.names.iter().position(|n| *n == name) {
                        Some(at) => needs.push(at),
                        None => anyhow::ensure!(
                            BUILT_IN.contains(&name.as_str()),
                            "'{name}' is no kept value and none of {}",
                            BUILT_IN.join(", ")
                        ),
                    }
                }
            }
            _ => {}
        }
        for at in needs {
            if !template.needs.contains(&at) {
                template.needs.push(at);
            }
        }
        template.parts.push(Part::Filled(source, encoding));
        Ok(())
    }

    fn source(&mut self, expression: &str) -> anyhow::Result<Source> {
        match self.simple(expression)? {
            Some(source) => Ok(source),
            None => self.general(&format!("{{{{{expression}}}}}")),
        }
    }

    fn json_source(&mut self, expression: &str) -> anyhow::Result<Source> {
        match self.simple(expression)? {
            Some(source) => Ok(source),
            None => self.general(&format!("{{{{ ({expression}) | tojson }}}}")),
        }
    }

    fn general(&mut self, text: &str) -> anyhow::Result<Source> {
        let name = format!("t{}", self.shared.general.templates().count());
        self.shared
            .general
            .add_template_owned(name.clone(), text.to_owned())
            .map_err(|error| anyhow::anyhow!("'{text}' is no template: {error}"))?;
        Ok(Source::General(name))
    }

    fn simple(&self, expression: &str) -> anyhow::Result<Option<Source>> {
        let expression = expression.trim();
        if let Some(at) = self.shared.names.iter().position(|n| n == expression) {
            return Ok(Some(Source::Kept(at)));
        }
        let source = match expression {
            "client" => Some(Source::Client),
            "iteration" => Some(Source::Iteration),
            env if env.starts_with("env.") => self.env(&env["env.".len()..]),
            _ => self.call(expression)?,
        };
        Ok(source)
    }

    /// `None` for more than a name, which goes the general way.
    fn env(&self, name: &str) -> Option<Source> {
        let known = self.shared.environment.get(name).is_some();
        known.then(|| Source::Env(name.to_owned()))
    }

    fn call(&self, expression: &str) -> anyhow::Result<Option<Source>> {
        let Some((name, rest)) = expression.split_once('(') else {
            return Ok(None);
        };
        let Some(inner) = rest.strip_suffix(')') else {
            return Ok(None);
        };
        match name.trim() {
            "uuid" if inner.trim().is_empty() => Ok(Some(Source::Uuid)),
            "random_int" => {
                let ends: Vec<_> = inner.split(',').map(|n| n.trim().parse::<i64>()).collect();
                match ends[..] {
                    [Ok(low), Ok(high)] if low <= high => Ok(Some(Source::RandomInt(low, high))),
                    [Ok(low), Ok(high)] => {
                        anyhow::bail!("random_int({low}, {high}): the first end is the larger one")
                    }
                    _ => Ok(None),
                }
            }
            "random_choice" => {
                let list = format!("{{{{ ({inner}) | tojson }}}}");
                let Ok(list) = self.shared.general.render_named_str("list", &list, ()) else {
                    return Ok(None);
                };
                let list: Value = serde_json::from_str(&list)?;
                let Value::Array(items) = list else {
                    return Ok(None);
                };
                anyhow::ensure!(
                    !items.is_empty(),
                    "random_choice of an empty list has nothing to choose"
                );
                Ok(Some(Source::Choice(items.into())))
            }
            _ => Ok(None),
        }
    }
}

impl Template {
    /// Appends bytes as they are.
    pub(super) fn literal(&mut self, bytes: &[u8]) {
        match self.parts.last_mut() {
            Some(Part::Literal(last)) => last.extend_from_slice(bytes),
            _ if bytes.is_empty() => {}
            _ => self.parts.push(Part::Literal(bytes.to_vec())),
        }
    }

    fn literal_text(&mut self, text: &str, encoding: Encoding) {
        let mut bytes = Vec::new();
        encoding.literal(text, &mut bytes);
        self.literal(&bytes);
    }

    /// Kept values without which it can't be filled, by their place.
    pub(super) fn needs(&self) -> &[usize] {
        &self.needs
    }

    /// The bytes of a template in which nothing is filled.
    pub(super) fn fixed(&self) -> Option<&[u8]> {
        match &self.parts[..] {
            [] => Some(b""),
            [Part::Literal(bytes)] => Some(bytes),
            _ => None,
        }
    }

    /// Fills it. `draw` gives the random values, in the order in which they stand.
    pub(super) fn fill(
        &self,
        scene: &Scene<'_>,
        draw: &mut Draw,
        out: &mut Vec<u8>,
    ) -> Result<(), Unsendable> {
        for part in &self.parts {
            match part {
                Part::Literal(bytes) => out.extend_from_slice(bytes),
                Part::Filled(source, encoding) => {
                    fill_value(source, *encoding, scene, draw, out)?;
                }
            }
        }
        Ok(())
    }
}

fn fill_value(
    source: &Source,
    encoding: Encoding,
    scene: &Scene<'_>,
    draw: &mut Draw,
    out: &mut Vec<u8>,
) -> Result<(), Unsendable> {
    match source {
        Source::Kept(at) => {
            let kept = scene.kept.get(*at).and_then(Option::as_ref);
            let kept = kept.ok_or_else(|| Unsendable("a kept value is missing".into()))?;
            put(&kept.value, Some(&kept.text), encoding, out)
        }
        Source::RandomInt(low, high) => {
            put_text(&draw.between(*low, *high).to_string(), encoding, out)
        }
        Source::Choice(items) => {
            let taken = draw.below(items.len() as u64) as usize;
            put(&items[taken], None, encoding, out)
        }
        Source::Uuid => {
            let uuid = draw.uuid();
            if encoding == Encoding::JsonValue {
                out.push(b'"');
                out.extend_from_slice(uuid.as_bytes());
                out.push(b'"');
                return Ok(());
            }
            put_text(&uuid, encoding, out)
        }
        Source::Client => put_text(&scene.client.to_string(), encoding, out),
        Source::Iteration => put_text(&scene.iteration.to_string(), encoding, out),
        Source::Env(name) => {
            let value = scene.shared.environment.get(name);
            let value = value
                .ok_or_else(|| Unsendable(format!("the environment variable {name} is not set")))?;
            put(&Value::from(value), Some(value), encoding, out)
        }
        Source::General(name) => {
            let kept = scene
                .shared
                .names
                .iter()
                .zip(scene.kept)
                .filter_map(|(name, kept)| Some((name.as_str(), &kept.as_ref()?.value)));
            let text = super::general::render(
                &scene.shared.general,
                name,
                kept,
                scene.shared.environment.values(),
                (scene.client, scene.iteration),
                draw,
            )?;
            put_text(&text, encoding, out)
        }
    }
}

/// The place of the `}}` that ends an expression, outside of quotes.
fn end_of_expression(text: &str) -> Option<usize> {
    let mut quote = None;
    let bytes = text.as_bytes();
    let mut i = 0;
    while i < bytes.len() {
        match (quote, bytes[i]) {
            (Some(_), b'\\') => i += 1,
            (Some(q), b) if b == q => quote = None,
            (None, b @ (b'\'' | b'"')) => quote = Some(b),
            (None, b'}') if bytes.get(i + 1) == Some(&b'}') => return Some(i),
            _ => {}
        }
        i += 1;
    }
    None
}

/// The expression of a text that is one whole template.
fn whole_expression(text: &str) -> Option<&str> {
    let inner = text.trim().strip_prefix("{{")?;
    let close = end_of_expression(inner)?;
    (close + 2 == inner.len()).then_some(&inner[..close])
}

#[cfg(test)]
#[path = "template_tests.rs"]
mod tests;
