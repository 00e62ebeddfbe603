//! JSON Pointers (RFC 6901) with `*`, read straight from an answer's bytes.
//!
//! Only the values at the pointer are built; the rest of the document is checked and skipped. It must never build a whole
//! document on the load path.

use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::Value;

use super::draw::Draw;

/// A compiled pointer.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Pointer {
    text: String,
    segments: Vec<Segment>,
}

#[derive(Debug, Clone, PartialEq)]
enum Segment {
    /// A member, or an element when it is a number.
    Name(String, Option<usize>),
    /// Any member or element.
    Any,
}

impl Pointer {
    /// Parses `/items/*/id`; the empty text is the whole document.
    pub(super) fn parse(text: &str) -> anyhow::Result<Self> {
        anyhow::ensure!(
            text.is_empty() || text.starts_with('/'),
            "'{text}' is no JSON Pointer: it must begin with '/'"
        );
        let segments = text
            .split('/')
            .skip(1)
            .map(|raw| match raw {
                "*" => Segment::Any,
                _ => {
                    let name = raw.replace("~1", "/").replace("~0", "~");
                    let index = name.parse().ok();
                    Segment::Name(name, index)
                }
            })
            .collect();
        Ok(Pointer {
            text: text.to_owned(),
            segments,
        })
    }

    /// The pointer as written.
    pub(super) fn as_str(&self) -> &str {
        &self.text
    }

    /// Every value that the pointer reaches, in document order. Errors when `body` is not JSON.
    pub(super) fn all(&self, body: &[u8]) -> Result<Vec<Value>, serde_json::Error> {
        let mut found = Vec::new();
        let mut reader = serde_json::Deserializer::from_slice(body);
        Walk {
            path: &self.segments,
            found: &mut found,
        }
        .deserialize(&mut reader)?;
        reader.end()?;
        Ok(found)
    }

    /// One of the values that the pointer reaches, taken at random when there are several; `None` when there is none.
    pub(super) fn one(
        &self,
        body: &[u8],
        draw: &mut Draw,
    ) -> Result<Option<Value>, serde_json::Error> {
        let mut found = self.all(body)?;
        if found.is_empty() {
            return Ok(None);
        }
        let taken = draw.below(found.len() as u64) as usize;
        Ok(Some(found.swap_remove(taken)))
    }
}

/// Whether a value of an answer is the value that was asked for; `1` and `1.0` are the same number.
pub(super) fn same(found: &Value, wanted: &Value) -> bool {
    match (found, wanted) {
        (Value::Number(a), Value::Number(b)) => a == b || a.as_f64() == b.as_f64(),
        (Value::Array(a), Value::Array(b)) => {
            a.len() == b.len() && a.iter().zip(b).all(|(a, b)| same(a, b))
        }
        (Value::Object(a), Value::Object(b)) => {
            a.len() == b.len()
                && a.iter()
                    .all(|(key, a)| b.get(key).is_some_and(|b| same(a, b)))
        }
        _ => found == wanted,
    }
}

struct Walk<'a> {
    path: &'a [Segment],
    found: &'a mut Vec<Value>,
}

impl<'de> DeserializeSeed<'de> for Walk<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        if self.path.is_empty() {
            self.found
                .push(serde::Deserialize::deserialize(deserializer)?);
            return Ok(());
        }
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Walk<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON value")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        let Some((segment, rest)) = self.path.split_first() else {
            return Ok(());
        };
        while let Some(taken) = map.next_key_seed(Key(segment))? {
            if taken {
                map.next_value_seed(Walk {
                    path: rest,
                    found: &mut *self.found,
                })?;
            } else {
                map.next_value::<IgnoredAny>()?;
            }
        }
        Ok(())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<(), A::Error> {
        let Some((segment, rest)) = self.path.split_first() else {
            return Ok(());
        };
        let mut index = 0;
        loop {
            let taken = match segment {
                Segment::Any => true,
                Segment::Name(_, wanted) => *wanted == Some(index),
            };
            let more = if taken {
                seq.next_element_seed(Walk {
                    path: rest,
                    found: &mut *self.found,
                })?
                .is_some()
            } else {
                seq.next_element::<IgnoredAny>()?.is_some()
            };
            if !more {
                return Ok(());
            }
            index += 1;
        }
    }

    // A scalar where the path goes on: nothing is there.
    fn visit_bool<E>(self, _: bool) -> Result<(), E> {
        Ok(())
    }
    fn visit_i64<E>(self, _: i64) -> Result<(), E> {
        Ok(())
    }
    fn visit_u64<E>(self, _: u64) -> Result<(), E> {
        Ok(())
    }
    fn visit_f64<E>(self, _: f64) -> Result<(), E> {
        Ok(())
    }
    fn visit_str<E>(self, _: &str) -> Result<(), E> {
        Ok(())
    }
    fn visit_unit<E>(self) -> Result<(), E> {
        Ok(())
    }
}

/// Compares a key without copying it.
struct Key<'a>(&'a Segment);

impl<'de> DeserializeSeed<'de> for Key<'_> {
    type Value = bool;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<bool, D::Error> {
        deserializer.deserialize_str(self)
    }
}

impl Visitor<'_> for Key<'_> {
    type Value = bool;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a member's name")
    }

    fn visit_str<E>(self, key: &str) -> Result<bool, E> {
        Ok(match self.0 {
            Segment::Any => true,
            Segment::Name(name, _) => name == key,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use serde_json::json;

    fn all(pointer: &str, body: &str) -> Vec<Value> {
        Pointer::parse(pointer)
            .unwrap()
            .all(body.as_bytes())
            .unwrap()
    }

    #[test]
    fn a_star_takes_every_element_and_a_name_one() {
        let body = r#"{"items":[{"id":1,"x":{"id":9}},{"id":"two"},{"no":3}],"a/b":{"~":true}}"#;
        assert_eq!(all("/items/*/id", body), [json!(1), json!("two")]);
        assert_eq!(all("/items/1/id", body), [json!("two")]);
        assert_eq!(all("/a~1b/~0", body), [json!(true)]);
        assert!(all("/items/7/id", body).is_empty());
        assert!(all("/items/0/id/deeper", body).is_empty());
        assert_eq!(all("", "[1]"), [json!([1])]);
    }

    #[test]
    fn what_is_not_json_is_an_error_even_behind_the_value() {
        let pointer = Pointer::parse("/id").unwrap();
        assert!(pointer.all(b"{\"id\":1").is_err());
        assert!(pointer.all(b"{\"id\":1}}").is_err());
        assert!(pointer.all(b"").is_err());
        assert!(Pointer::parse("id").is_err());
    }

    #[test]
    fn numbers_are_compared_as_numbers() {
        assert!(same(&json!(1), &json!(1.0)));
        assert!(same(&json!([1, {"a": 2}]), &json!([1.0, {"a": 2}])));
        assert!(!same(&json!("1"), &json!(1)));
    }

    proptest! {
        #[test]
        fn agrees_with_serde_json_where_there_is_no_star(
            ids in proptest::collection::vec(any::<i32>(), 0..6), at in 0usize..8
        ) {
            let document = json!({"n": ids.iter().map(|id| json!({"id": id})).collect::<Vec<_>>()});
            let text = format!("/n/{at}/id");
            let found = all(&text, &document.to_string());
            prop_assert_eq!(found.first(), document.pointer(&text));
            prop_assert_eq!(all("/n/*/id", &document.to_string()).len(), ids.len());
        }
    }
}
