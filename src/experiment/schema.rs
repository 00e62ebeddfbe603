//! JSON Schema of the experiment file, for editors, made from the same description that `check` uses.

use serde_json::{Map, Value, json};

use super::format::FILE;
use super::shape::{Keys, Section, Shape};

/// The JSON Schema (draft 2020-12) of the experiment file.
pub fn schema() -> Value {
    let mut schema = section(&FILE);
    if let Some(map) = schema.as_object_mut() {
        map.insert(
            "$schema".to_owned(),
            "https://json-schema.org/draft/2020-12/schema".into(),
        );
        map.insert("title".to_owned(), "ceteris experiment".into());
    }
    schema
}

fn section(section: &Section) -> Value {
    let mut properties = Map::new();
    for key in section.keys() {
        let mut property = shape(&key.shape);
        if let Some(map) = property.as_object_mut() {
            let mut doc = key.doc.to_owned();
            if !key.default.is_empty() {
                doc.push_str(&format!(" (default: {})", key.default));
            }
            map.insert("description".to_owned(), doc.into());
        }
        properties.insert(key.name.to_owned(), property);
    }
    let required: Vec<&str> = section
        .keys()
        .filter(|key| key.required)
        .map(|key| key.name)
        .collect();
    let mut schema = json!({
        "type": "object",
        "description": section.doc,
        "properties": properties,
        "additionalProperties": false,
    });
    if !required.is_empty() {
        schema["required"] = required.into();
    }
    schema
}

fn shape(of: &Shape) -> Value {
    let text = |pattern: &str| json!({ "type": "string", "pattern": pattern });
    match of {
        Shape::Text => json!({ "type": "string", "minLength": 1 }),
        Shape::Slug => text("^[a-z0-9-]{1,64}$"),
        Shape::Name => text("^[a-z][a-z0-9_]*$"),
        Shape::Duration => text("^[0-9][0-9._]* *(us|ms|s|m|h|d)$"),
        Shape::Size => text("^[0-9][0-9._]* *(B|kB|MB|GB|TB|KiB|MiB|GiB|TiB)$"),
        Shape::Rate => text("^[0-9][0-9._]* */(s|m|h)$"),
        Shape::Share => text("^[0-9][0-9._]* *%$"),
        Shape::Whole(least, most) => {
            json!({ "type": "integer", "minimum": least, "maximum": most })
        }
        Shape::Number(above, most) => {
            json!({ "type": "number", "exclusiveMinimum": above, "maximum": most })
        }
        Shape::Truth => json!({ "type": "boolean" }),
        Shape::Choice(words) => json!({ "enum": words }),
        Shape::List(item) => json!({ "type": "array", "items": shape(item) }),
        Shape::Map(keys, value) => {
            let mut schema = json!({ "type": "object", "additionalProperties": shape(value) });
            if *keys == Keys::Names {
                schema["propertyNames"] = json!({ "pattern": "^[a-z][a-z0-9_]*$" });
            }
            schema
        }
        Shape::Table(inner) => section(inner),
        Shape::Tables(inner) => json!({ "type": "array", "items": section(inner) }),
        Shape::Either(shapes) => {
            json!({ "anyOf": shapes.iter().map(shape).collect::<Vec<_>>() })
        }
        Shape::Scalar => json!({ "type": ["string", "number", "boolean"] }),
        Shape::Anything => json!({}),
    }
}
