//! Invoices as they come in and go out: JSON in, checked; JSON out. Knows no database.

use serde::{Deserialize, Serialize};

/// At most this many lines on one invoice.
pub const MOST_LINES: usize = 100;

/// An order to issue an invoice, as a client sends it.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Draft {
    pub customer: i64,
    pub lines: Vec<Line>,
}

/// One line.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Line {
    pub description: String,
    pub quantity: i32,
    pub unit_cents: i64,
}

/// A whole invoice.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Invoice {
    #[serde(flatten)]
    pub head: Head,
    pub lines: Vec<Line>,
}

/// An invoice without its lines.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Head {
    pub id: i64,
    pub number: i64,
    pub customer: Customer,
    pub status: String,
    /// As YYYY-MM-DD.
    pub issued_on: String,
    pub total_cents: i64,
}

/// Whom an invoice goes to.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Customer {
    pub id: i64,
    pub name: String,
}

/// A page of invoices, newest first.
#[derive(Debug, Serialize)]
pub struct Page {
    pub items: Vec<Head>,
}

/// Which invoices a client asks for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Wanted {
    pub status: &'static str,
    pub limit: i64,
}

impl Draft {
    /// Reads and checks a body.
    ///
    /// # Errors
    /// What is wrong, for the client to read.
    pub fn parse(body: &[u8]) -> Result<Self, String> {
        let draft: Self = serde_json::from_slice(body)
            .map_err(|error| format!("the body is not an invoice: {error}"))?;
        if draft.lines.is_empty() {
            return Err("`lines` is empty; an invoice needs one line at least".into());
        }
        if draft.lines.len() > MOST_LINES {
            return Err(format!(
                "`lines` has {} entries; at most {MOST_LINES} are taken",
                draft.lines.len()
            ));
        }
        for (place, line) in draft.lines.iter().enumerate() {
            if line.description.trim().is_empty() || line.description.len() > 500 {
                return Err(format!(
                    "`lines[{place}].description` must have 1 to 500 bytes"
                ));
            }
            // PostgreSQL's text holds every character but this one.
            if line.description.contains('\0') {
                return Err(format!(
                    "`lines[{place}].description` holds a NUL character"
                ));
            }
            if line.quantity < 1 {
                return Err(format!("`lines[{place}].quantity` must be 1 or more"));
            }
        }
        match draft.total_cents() {
            Some(_) => Ok(draft),
            None => Err("the total is out of range".into()),
        }
    }

    /// The sum of all lines, in cents; none when it is beyond a 64-bit number.
    #[must_use]
    pub fn total_cents(&self) -> Option<i64> {
        self.lines.iter().try_fold(0_i64, |sum, line| {
            sum.checked_add(i64::from(line.quantity).checked_mul(line.unit_cents)?)
        })
    }
}

impl Wanted {
    /// Reads a query string such as `status=open&limit=25`.
    ///
    /// # Errors
    /// What is wrong, for the client to read.
    pub fn parse(query: Option<&str>) -> Result<Self, String> {
        let mut wanted = Self {
            status: "open",
            limit: 25,
        };
        for pair in query
            .unwrap_or_default()
            .split('&')
            .filter(|pair| !pair.is_empty())
        {
            match pair.split_once('=').unwrap_or((pair, "")) {
                ("limit", value) => {
                    wanted.limit = value
                        .parse()
                        .ok()
                        .filter(|limit| (1..=100).contains(limit))
                        .ok_or("`limit` must be a number from 1 to 100")?;
                }
                ("status", value) => {
                    wanted.status = ["open", "paid", "void"]
                        .into_iter()
                        .find(|known| *known == value)
                        .ok_or("`status` must be open, paid or void")?;
                }
                _ => return Err("only `limit` and `status` may be asked for".into()),
            }
        }
        Ok(wanted)
    }
}

/// An invoice as most are: two lines, a customer, a number of five digits.
#[must_use]
pub fn sample() -> Invoice {
    let line = |description: &str, quantity, unit_cents| Line {
        description: description.into(),
        quantity,
        unit_cents,
    };
    Invoice {
        head: Head {
            id: 20_117,
            number: 20_117,
            customer: Customer {
                id: 117,
                name: "Customer 117".into(),
            },
            status: "open".into(),
            issued_on: "2026-09-08".into(),
            total_cents: 7_400,
        },
        lines: vec![line("hours", 2, 1_250), line("travel expenses", 1, 4_900)],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const GOOD: &str = r#"{"customer": 7, "lines": [{"description": "hours", "quantity": 2, "unit_cents": 1250}]}"#;

    #[test]
    fn a_good_draft_is_read_and_summed() {
        let draft = Draft::parse(GOOD.as_bytes()).unwrap();
        assert_eq!(draft.customer, 7);
        assert_eq!(draft.total_cents(), Some(2500));
    }

    #[test]
    fn wrong_drafts_are_refused_with_the_place() {
        let line = |description: &str, quantity: i64, cents: i64| {
            format!(
                r#"{{"customer":1,"lines":[{{"description":{description:?},"quantity":{quantity},"unit_cents":{cents}}}]}}"#
            )
        };
        let many = format!(
            r#"{{"customer":1,"lines":[{}]}}"#,
            vec![r#"{"description":"x","quantity":1,"unit_cents":1}"#; 101].join(",")
        );
        let cases = [
            (String::new(), "not an invoice"),
            ("[1]".into(), "not an invoice"),
            (r#"{"customer":"x","lines":[]}"#.into(), "not an invoice"),
            (r#"{"customer":1,"lines":[],"more":1}"#.into(), "more"),
            (r#"{"customer":1,"lines":[]}"#.into(), "`lines` is empty"),
            (many, "101 entries"),
            (line("  ", 1, 1), "lines[0].description"),
            (line("a\0b", 1, 1).replace("\\0", "\\u0000"), "NUL"),
            (line(&"x".repeat(501), 1, 1), "lines[0].description"),
            (line("x", 0, 1), "lines[0].quantity"),
            (line("x", i64::MAX, 1), "not an invoice"),
            (line("x", 3, i64::MAX), "out of range"),
        ];
        for (body, part) in cases {
            let error = Draft::parse(body.as_bytes()).unwrap_err();
            assert!(error.contains(part), "{body}: {error}");
        }
    }

    #[test]
    fn what_is_wanted_is_read_from_the_query() {
        let wanted = |status, limit| Ok(Wanted { status, limit });
        assert_eq!(Wanted::parse(None), wanted("open", 25));
        assert_eq!(
            Wanted::parse(Some("limit=3&status=paid")),
            wanted("paid", 3)
        );
        for wrong in [
            "limit=0",
            "limit=101",
            "limit=x",
            "limit",
            "status=gone",
            "page=2",
        ] {
            assert!(Wanted::parse(Some(wrong)).is_err(), "{wrong}");
        }
    }

    #[test]
    fn an_invoice_is_one_flat_object() {
        let body = String::from_utf8(crate::answer::encode(&sample()).unwrap()).unwrap();
        assert_eq!(
            body,
            concat!(
                r#"{"id":20117,"number":20117,"customer":{"id":117,"name":"Customer 117"},"status":"open","#,
                r#""issued_on":"2026-09-08","total_cents":7400,"lines":[{"description":"hours","quantity":2,"#,
                r#""unit_cents":1250},{"description":"travel expenses","quantity":1,"unit_cents":4900}]}"#
            )
        );
    }
}
