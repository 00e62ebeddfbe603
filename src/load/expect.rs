//! What a step's answer must be, and which class an answer that is not so has.

use serde_json::Value;

use super::draw::Draw;
use super::pointer::{Pointer, same};
use super::template::Kept;
use crate::experiment::Step;
use crate::measure::FailureClass;

/// A body that is read as JSON may be this long; above it the answer is `unexpected_body`.
pub(super) const JSON_LIMIT: usize = 8 << 20;
/// Bytes kept of what a failed request's answer said.
pub(super) const SAID: usize = 200;

/// The compiled expectations of one step.
#[derive(Debug, Clone)]
pub(super) struct Expectation {
    status: Vec<u16>,
    /// Names in lower case.
    headers: Vec<(String, String)>,
    json: Vec<(Pointer, Value)>,
    keep: Vec<(usize, Pointer)>,
    /// Largest body.
    pub max_bytes: Option<u64>,
    /// The method is HEAD: no body comes, whatever the head promises.
    pub head_only: bool,
}

/// What the head of an answer tells about the expectations.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct HeadersSeen(u64);

impl Expectation {
    /// Compiles a step's expectations; `names` are the places of kept values.
    pub(super) fn compile(step: &Step, names: &[String]) -> anyhow::Result<Self> {
        anyhow::ensure!(
            step.expect.header.len() <= 64,
            "a step can expect 64 headers at most, '{}' expects {}",
            step.name,
            step.expect.header.len()
        );
        let mut json = Vec::new();
        for (pointer, wanted) in &step.expect.json {
            json.push((Pointer::parse(pointer)?, wanted.clone()));
        }
        let mut keep = Vec::new();
        for (name, pointer) in &step.keep {
            let Some(place) = names.iter().position(|n| n == name) else {
                anyhow::bail!("'{name}' is kept nowhere");
            };
            keep.push((place, Pointer::parse(pointer)?));
        }
        let headers = step.expect.header.iter();
        Ok(Expectation {
            status: step.expect.status.clone(),
            headers: headers
                .map(|(name, value)| (name.to_ascii_lowercase(), value.clone()))
                .collect(),
            json,
            keep,
            max_bytes: step.expect.max_bytes,
            head_only: step.method.eq_ignore_ascii_case("HEAD"),
        })
    }

    /// The class of an answer by its status alone; `None` when it is permitted.
    pub(super) fn status(&self, status: u16) -> Option<FailureClass> {
        let permitted = match &self.status[..] {
            [] => (200..300).contains(&status),
            listed => listed.contains(&status),
        };
        match status {
            _ if permitted => None,
            503 => Some(FailureClass::Status503),
            400..=499 => Some(FailureClass::Status4xx),
            500..=599 => Some(FailureClass::Status5xx),
            _ => Some(FailureClass::UnexpectedStatus),
        }
    }

    /// How many bytes of the body must be at hand when the answer is whole.
    pub(super) fn wants(&self, status: u16) -> usize {
        if self.status(status).is_some() {
            SAID
        } else if self.json.is_empty() && self.keep.is_empty() {
            0
        } else {
            JSON_LIMIT
        }
    }

    /// Notes a header of the answer.
    pub(super) fn header(&self, name: &[u8], value: &[u8], seen: &mut HeadersSeen) {
        for (i, (wanted_name, wanted)) in self.headers.iter().enumerate() {
            if name.eq_ignore_ascii_case(wanted_name.as_bytes()) && value == wanted.as_bytes() {
                seen.0 |= 1 << i;
            }
        }
    }

    /// Judges a whole answer with a permitted status; keeps values from it. `Err` says what is not as expected.
    pub(super) fn body(
        &self,
        seen: HeadersSeen,
        length: u64,
        body: &[u8],
        draw: &mut Draw,
        kept: &mut [Option<Kept>],
    ) -> Result<(), String> {
        if let Some((name, value)) = (self.headers.iter().enumerate())
            .find(|(i, _)| seen.0 & (1 << i) == 0)
            .map(|(_, header)| header)
        {
            return Err(format!("header '{name}' is not '{value}'"));
        }
        if self.max_bytes.is_some_and(|max| length > max) {
            return Err(format!("the body has {length} bytes or more"));
        }
        if self.json.is_empty() && self.keep.is_empty() {
            return Ok(());
        }
        if length > JSON_LIMIT as u64 {
            return Err(format!("a body of {length} bytes is not read as JSON"));
        }
        for (pointer, wanted) in &self.json {
            let found = pointer.all(body).map_err(not_json)?;
            if !found.iter().any(|value| same(value, wanted)) {
                let found = found.first().map_or("absent".into(), Value::to_string);
                return Err(format!("{} is {found}, not {wanted}", pointer.as_str()));
            }
        }
        for (place, pointer) in &self.keep {
            // Nothing there: the old value stays.
            if let Some(value) = pointer.one(body, draw).map_err(not_json)? {
                kept[*place] = Some(Kept::new(value));
            }
        }
        Ok(())
    }

    /// The pointers that keep a value, with its place.
    pub(super) fn keeps(&self) -> impl Iterator<Item = (usize, &str)> {
        self.keep
            .iter()
            .map(|(place, pointer)| (*place, pointer.as_str()))
    }
}

fn not_json(error: serde_json::Error) -> String {
    format!("the body is not JSON: {error}")
}
