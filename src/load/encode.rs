//! How a value is written in its place: percent-encoded in a path, escaped in JSON, refused where it would break a header.

use serde_json::Value;

/// A request that can't be sent, and why; it is blamed on the client, never on the server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Unsendable(pub String);

/// The place of a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Encoding {
    /// Path and query: percent-encoded.
    Path,
    /// A header's value: no control characters.
    Header,
    /// A form's field: percent-encoded.
    Form,
    /// Raw bodies: as it is.
    Verbatim,
    /// Inside the quotes of a JSON string.
    JsonText,
    /// A whole JSON value.
    JsonValue,
}

impl Encoding {
    /// Writes text of the file itself: it is already a path (only what no request line may hold is encoded), a header or a
    /// body.
    pub(super) fn literal(self, text: &str, out: &mut Vec<u8>) {
        match self {
            Encoding::Path => {
                for byte in text.bytes() {
                    if byte.is_ascii_graphic() {
                        out.push(byte);
                    } else {
                        percent(byte, out);
                    }
                }
            }
            Encoding::Form => percent_all(text, out),
            Encoding::JsonText => json_inside(text, out),
            Encoding::Header | Encoding::Verbatim | Encoding::JsonValue => {
                out.extend_from_slice(text.as_bytes());
            }
        }
    }
}

/// Writes a value; `text` is its text when the caller has it at hand.
pub(super) fn put(
    value: &Value,
    text: Option<&str>,
    encoding: Encoding,
    out: &mut Vec<u8>,
) -> Result<(), Unsendable> {
    if encoding == Encoding::JsonValue {
        return serde_json::to_writer(out, value)
            .map_err(|error| Unsendable(format!("a value is no JSON: {error}")));
    }
    match (text, value) {
        (Some(text), _) => put_text(text, encoding, out),
        (None, Value::String(text)) => put_text(text, encoding, out),
        (None, other) => put_text(&other.to_string(), encoding, out),
    }
}

/// Writes a text; as a [`Encoding::JsonValue`] it must already be JSON.
pub(super) fn put_text(
    text: &str,
    encoding: Encoding,
    out: &mut Vec<u8>,
) -> Result<(), Unsendable> {
    match encoding {
        Encoding::Path | Encoding::Form => percent_all(text, out),
        Encoding::JsonText => json_inside(text, out),
        Encoding::Verbatim | Encoding::JsonValue => out.extend_from_slice(text.as_bytes()),
        Encoding::Header => {
            if text.bytes().any(|b| b < b' ' && b != b'\t' || b == 0x7f) {
                return Err(Unsendable(
                    "a header's value has control characters in it".into(),
                ));
            }
            out.extend_from_slice(text.as_bytes());
        }
    }
    Ok(())
}

fn percent(byte: u8, out: &mut Vec<u8>) {
    const DIGITS: &[u8; 16] = b"0123456789ABCDEF";
    out.push(b'%');
    out.push(DIGITS[usize::from(byte >> 4)]);
    out.push(DIGITS[usize::from(byte & 15)]);
}

/// All but the unreserved characters of RFC 3986.
fn percent_all(text: &str, out: &mut Vec<u8>) {
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) {
            out.push(byte);
        } else {
            percent(byte, out);
        }
    }
}

fn json_inside(text: &str, out: &mut Vec<u8>) {
    let quoted = Value::String(text.to_owned()).to_string();
    out.extend_from_slice(&quoted.as_bytes()[1..quoted.len() - 1]);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(text: &str, encoding: Encoding) -> String {
        let mut out = Vec::new();
        put_text(text, encoding, &mut out).unwrap();
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn a_value_can_not_leave_its_place() {
        assert_eq!(
            written("a/b?c=d&e f%é", Encoding::Path),
            "a%2Fb%3Fc%3Dd%26e%20f%25%C3%A9"
        );
        assert_eq!(written("a\"b\\c\n", Encoding::JsonText), "a\\\"b\\\\c\\n");
        assert!(put_text("x\r\nEvil: 1", Encoding::Header, &mut Vec::new()).is_err());
    }

    #[test]
    fn a_path_as_written_keeps_its_own_signs() {
        let mut out = Vec::new();
        Encoding::Path.literal("/a b?x=%20&y=é", &mut out);
        assert_eq!(out, b"/a%20b?x=%20&y=%C3%A9");
    }
}
