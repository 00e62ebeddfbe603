//! The minijinja environment: strict, bounded, with the filters that texts about figures use.
//!
//! Templates stand in services (`{{ db.url }}`), in the workload (`{{ id }}`) and in claims
//! (`{{ treatment.throughput.fall | percent }}`). Which names a place offers is decided by its caller; this module says which
//! names a template asks for. It must never resolve a name to nothing: an undefined one is an error.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::ops::Range;
use std::sync::Arc;

use minijinja::value::{Object, ObjectRepr, ValueKind};
use minijinja::{Environment, Error, ErrorKind, UndefinedBehavior, Value};

/// Functions that a workload's templates can call.
pub const WORKLOAD_FUNCTIONS: [&str; 3] = ["random_int", "random_choice", "uuid"];
/// Numbers that a workload's templates can name, beside kept values.
pub const WORKLOAD_NUMBERS: [&str; 2] = ["client", "iteration"];
/// Steps that one rendering may take: a text is a sentence, not a program.
const FUEL: u64 = 50_000;

/// What is wrong with a template.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TemplateError {
    /// Bytes of the template's text, where known.
    pub span: Option<Range<usize>>,
    /// What is wrong.
    pub message: String,
}

impl fmt::Display for TemplateError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for TemplateError {}

impl From<Error> for TemplateError {
    fn from(error: Error) -> Self {
        TemplateError {
            span: error.range(),
            message: match (error.kind(), error.detail()) {
                (ErrorKind::OutOfFuel, _) => "the template takes too many steps".to_owned(),
                (_, Some(detail)) => detail.to_owned(),
                (kind, None) => kind.to_string(),
            },
        }
    }
}

/// An environment in which an undefined name is an error, no other template can be loaded, and rendering is bounded.
pub fn environment() -> Environment<'static> {
    let mut environment = Environment::new();
    environment.set_undefined_behavior(UndefinedBehavior::Strict);
    environment.set_auto_escape_callback(|_| minijinja::AutoEscape::None);
    environment.set_fuel(Some(FUEL));
    environment.set_recursion_limit(64);
    environment
}

/// The environment of claims' texts: [`environment`] with filters for figures. Each passes "not observed" through.
pub fn text_environment() -> Environment<'static> {
    let mut environment = environment();
    environment.set_formatter(|out, state, value| match f64::try_from(value.clone()) {
        // A figure without a filter: as many digits as it deserves.
        Ok(x) if value.is_number() && !value.is_integer() => {
            Ok(write!(out, "{}", grouped(x, significant(x)))?)
        }
        _ => minijinja::escape_formatter(out, state, value),
    });
    environment.add_filter("percent", |value: Value, digits: Option<usize>| {
        figure(&value, |x| {
            let x = x * 100.0;
            format!(
                "{} %",
                grouped(x, digits.unwrap_or(usize::from(x.abs() < 10.0)))
            )
        })
    });
    environment.add_filter("count", |value: Value| figure(&value, |x| grouped(x, 0)));
    environment.add_filter("round", |value: Value, digits: Option<usize>| {
        figure(&value, |x| grouped(x, digits.unwrap_or(0)))
    });
    environment.add_filter("rate", |value: Value| {
        figure(&value, |x| format!("{}/s", grouped(x, significant(x))))
    });
    environment.add_filter("ms", |value: Value| {
        figure(&value, |x| format!("{} ms", grouped(x, significant(x))))
    });
    environment.add_filter("seconds", |value: Value| {
        figure(&value, |x| format!("{} s", grouped(x, significant(x))))
    });
    environment.add_filter("mib", |value: Value| {
        figure(&value, |x| format!("{} MiB", grouped(x, significant(x))))
    });
    environment
}

/// Decimals that leave about three significant digits.
fn significant(x: f64) -> usize {
    match x.abs() {
        x if x >= 100.0 || x == 0.0 => 0,
        x if x >= 10.0 => 1,
        x if x >= 0.1 => 2,
        _ => 4,
    }
}

/// A number with its thousands set apart by commas.
pub fn grouped(x: f64, digits: usize) -> String {
    let text = format!("{x:.*}", digits.min(12));
    let (sign, rest) = match text.strip_prefix('-') {
        Some(rest) if rest.bytes().any(|b| matches!(b, b'1'..=b'9')) => ("-", rest),
        Some(rest) => ("", rest),
        None => ("", text.as_str()),
    };
    let (whole, fraction) = rest.split_once('.').unwrap_or((rest, ""));
    let mut out = sign.to_owned();
    for (i, digit) in whole.chars().enumerate() {
        if i > 0 && (whole.len() - i).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    if !fraction.is_empty() {
        out.push('.');
        out.push_str(fraction);
    }
    out
}

/// Applies a filter to a number; lets "not observed" through; refuses words.
fn figure(value: &Value, write: impl Fn(f64) -> String) -> Result<Value, Error> {
    if let Some(observed) = value.downcast_object_ref::<Observed>() {
        return match &observed.value {
            None => Ok(value.clone()),
            Some(inner) => figure(inner, write),
        };
    }
    if value.kind() != ValueKind::Number {
        return Err(Error::new(
            ErrorKind::InvalidOperation,
            format!("this filter takes a number, not '{value}'"),
        ));
    }
    let number = f64::try_from(value.clone())?;
    if number.is_finite() {
        Ok(Value::from(write(number)))
    } else {
        Ok(Value::from_object(Observed::default()))
    }
}

/// A figure that has figures below its own name, or that was not observed.
#[derive(Debug, Default)]
struct Observed {
    /// `None`: not observed.
    value: Option<Value>,
    below: BTreeMap<String, Value>,
}

impl Object for Observed {
    fn repr(self: &Arc<Self>) -> ObjectRepr {
        ObjectRepr::Plain
    }

    fn get_value(self: &Arc<Self>, key: &Value) -> Option<Value> {
        self.below.get(key.as_str()?).cloned()
    }

    fn render(self: &Arc<Self>, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.value {
            Some(value) => write!(f, "{value}"),
            None => f.write_str("not observed"),
        }
    }
}

/// The names that a template asks for, dotted as far as they can be told: `db.url`, `random_int`, `treatment.requests.ok`.
///
/// # Errors
/// The template can't be parsed.
pub fn names(source: &str) -> Result<BTreeSet<String>, TemplateError> {
    let environment = environment();
    let template = environment.template_from_str(source)?;
    Ok(template.undeclared_variables(true).into_iter().collect())
}

/// Whether a text holds anything for minijinja at all.
pub fn is_template(text: &str) -> bool {
    ["{{", "{%", "{#"].iter().any(|open| text.contains(open))
}

/// Renders a claim's text. `lookup` is asked for each dotted name; what it does not have is printed as "not observed".
///
/// # Errors
/// The text can't be parsed, or calculates with something that is no number or was not observed.
pub fn render_text(
    source: &str,
    lookup: impl Fn(&str) -> Option<Value>,
) -> Result<String, TemplateError> {
    let mut root = Tree::default();
    for name in names(source)? {
        root.insert(&name, lookup(&name));
    }
    let environment = text_environment();
    let template = environment.template_from_str(source)?;
    let context: BTreeMap<String, Value> = root
        .below
        .into_iter()
        .map(|(name, tree)| (name, tree.value()))
        .collect();
    Ok(template.render(Value::from(context))?)
}

/// Renders a template with values by dotted name, in [`environment`]; names without a value are errors.
///
/// # Errors
/// The template can't be parsed or rendered.
pub fn render(
    environment: &Environment<'_>,
    source: &str,
    lookup: impl Fn(&str) -> Option<Value>,
) -> Result<String, TemplateError> {
    let mut root = Tree::default();
    for name in names(source)? {
        if let Some(value) = lookup(&name) {
            root.insert(&name, Some(value));
        }
    }
    let context: BTreeMap<String, Value> = root
        .below
        .into_iter()
        .map(|(name, tree)| (name, tree.value()))
        .collect();
    Ok(environment
        .template_from_str(source)?
        .render(Value::from(context))?)
}

/// Dotted names as nested values.
#[derive(Default)]
struct Tree {
    named: bool,
    value: Option<Value>,
    below: BTreeMap<String, Tree>,
}

impl Tree {
    fn insert(&mut self, path: &str, value: Option<Value>) {
        let mut node = self;
        for segment in path.split('.') {
            node = node.below.entry(segment.to_owned()).or_default();
        }
        node.named = true;
        node.value = value;
    }

    fn value(self) -> Value {
        let below: BTreeMap<String, Value> = self
            .below
            .into_iter()
            .map(|(name, tree)| (name, tree.value()))
            .collect();
        match (self.named, self.value) {
            (true, Some(value)) if below.is_empty() => value,
            (true, value) => Value::from_object(Observed { value, below }),
            (false, _) => Value::from(below),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn text(source: &str) -> Result<String, TemplateError> {
        render_text(source, |name| match name {
            "treatment.throughput.fall" => Some(Value::from(0.6553)),
            "treatment.requests.ok" => Some(Value::from(1_234_567)),
            "treatment.latency.p99" => Some(Value::from(63.04)),
            "treatment.throughput.trend" => Some(Value::from("falls")),
            "treatment.services.app.memory.rss" => Some(Value::from(215.04)),
            "treatment.services.app.memory.rss.first" => Some(Value::from(70)),
            _ => None,
        })
    }

    #[test]
    fn figures_are_written_for_readers() {
        assert_eq!(
            text("{{ treatment.throughput.fall | percent }} of {{ treatment.requests.ok | count }}, p99 {{ treatment.latency.p99 | ms }}, {{ treatment.throughput.trend }}").unwrap(),
            "66 % of 1,234,567, p99 63.0 ms, falls"
        );
        assert_eq!(
            text("{{ treatment.services.app.memory.rss | mib }} after {{ treatment.services.app.memory.rss.first | round(1) }}").unwrap(),
            "215 MiB after 70.0"
        );
        assert_eq!(grouped(-0.4, 0), "0");
        assert_eq!(grouped(-1234.56, 1), "-1,234.6");
    }

    #[test]
    fn what_was_not_observed_says_so() {
        assert_eq!(
            text("{{ control.throughput.fall | percent }}, {{ control.requests.ok }}").unwrap(),
            "not observed, not observed"
        );
        assert!(text("{{ 1 - control.throughput.fall }}").is_err());
    }

    #[test]
    fn mistakes_are_errors() {
        for bad in [
            "{{ oops",
            "{{ treatment.requests.ok | nofilter }}",
            "{{ treatment.throughput.trend | percent }}",
            "{% include 'x' %}",
        ] {
            assert!(text(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn a_template_that_never_ends_is_stopped() {
        let endless =
            "{% for a in range(9999) %}{% for b in range(9999) %}x{% endfor %}{% endfor %}";
        let error = environment()
            .render_str(endless, ())
            .map_err(TemplateError::from);
        assert_eq!(
            error.unwrap_err().message,
            "the template takes too many steps"
        );
    }

    #[test]
    fn names_are_dotted() {
        let names = names("{{ db.url }}/{{ random_int(1, n) }}{% set q = 1 %}{{ q }}").unwrap();
        assert_eq!(
            names.into_iter().collect::<Vec<_>>(),
            ["db.url", "n", "random_int"]
        );
    }

    proptest! {
        #[test]
        fn no_text_panics(source in "[a-z.{}%| ()0-9'é-]{0,60}") {
            let _ = (names(&source), text(&source));
        }
    }
}
