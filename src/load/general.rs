//! What minijinja renders: templates that are more than a name or one of the drawing functions.
//!
//! Random functions draw from the request's own draw, which travels in the context. It must never see anything of the
//! process (no files, of the environment only what was handed to it).

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use minijinja::value::{Object, Value};
use minijinja::{Environment, Error, ErrorKind, State};

use super::draw::Draw;
use super::encode::Unsendable;

/// The name under which the draw travels; no template can name it.
const DRAW: &str = "-draw";

#[derive(Debug)]
struct Drawing(AtomicU64);

impl Object for Drawing {}

/// Adds `random_int`, `random_choice` and `uuid`.
pub(super) fn add_functions(environment: &mut Environment<'static>) {
    environment.add_function("random_int", |state: &State, low: i64, high: i64| {
        with_draw(state, |draw| Ok(draw.between(low, high)))
    });
    environment.add_function("random_choice", |state: &State, items: Vec<Value>| {
        with_draw(state, |draw| {
            let taken = draw.below(items.len() as u64) as usize;
            items.get(taken).cloned().ok_or_else(|| {
                Error::new(
                    ErrorKind::InvalidOperation,
                    "random_choice of an empty list has nothing to choose",
                )
            })
        })
    });
    environment.add_function("uuid", |state: &State| {
        with_draw(state, |draw| Ok(draw.uuid()))
    });
}

fn with_draw<T>(
    state: &State,
    take: impl FnOnce(&mut Draw) -> Result<T, Error>,
) -> Result<T, Error> {
    let held = state.lookup(DRAW);
    let Some(drawing) = held
        .as_ref()
        .and_then(|held| held.downcast_object_ref::<Drawing>())
    else {
        return Err(Error::new(
            ErrorKind::InvalidOperation,
            "random values exist only while a request is filled",
        ));
    };
    let mut draw = Draw::from_state(drawing.0.load(Ordering::Relaxed));
    let taken = take(&mut draw);
    drawing.0.store(draw.into_state(), Ordering::Relaxed);
    taken
}

/// Renders one prepared template.
pub(super) fn render<'a>(
    environment: &Environment<'static>,
    template: &str,
    kept: impl Iterator<Item = (&'a str, &'a serde_json::Value)>,
    env: Value,
    (client, iteration): (u64, u64),
    draw: &mut Draw,
) -> Result<String, Unsendable> {
    let drawing = Arc::new(Drawing(AtomicU64::new(draw.clone().into_state())));
    let mut context: Vec<(&str, Value)> =
        kept.map(|(name, value)| (name, convert(value))).collect();
    context.push(("client", Value::from(client)));
    context.push(("iteration", Value::from(iteration)));
    context.push(("env", env));
    context.push((DRAW, Value::from_dyn_object(drawing.clone())));
    let context = Value::from_pairs(context);
    let text = environment
        .get_template(template)
        .and_then(|template| template.render(context))
        .map_err(|error| Unsendable(format!("a template can't be filled: {error}")))?;
    *draw = Draw::from_state(drawing.0.load(Ordering::Relaxed));
    Ok(text)
}

fn convert(value: &serde_json::Value) -> Value {
    use serde_json::Value as Json;
    match value {
        Json::Null => Value::from(()),
        Json::Bool(value) => Value::from(*value),
        Json::Number(number) => match (number.as_i64(), number.as_u64(), number.as_f64()) {
            (Some(whole), _, _) => Value::from(whole),
            (_, Some(whole), _) => Value::from(whole),
            (_, _, real) => Value::from(real.unwrap_or(f64::NAN)),
        },
        Json::String(text) => Value::from(text.as_str()),
        Json::Array(items) => items.iter().map(convert).collect(),
        Json::Object(members) => Value::from_pairs(
            members
                .iter()
                .map(|(name, member)| (name.as_str(), convert(member))),
        ),
    }
}
