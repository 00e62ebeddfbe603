//! Writing names and literals into SQL text, where parameters can't stand.

use anyhow::ensure;

/// A name as a quoted identifier. Names that PostgreSQL can't hold (a NUL inside, empty) are an error.
pub fn quote_identifier(name: &str) -> anyhow::Result<String> {
    ensure!(!name.is_empty(), "an empty name is no SQL identifier");
    ensure!(
        !name.contains('\0'),
        "the name {name:?} holds a NUL, which PostgreSQL can't store"
    );
    Ok(format!("\"{}\"", name.replace('"', "\"\"")))
}

/// A text as a string literal, whatever `standard_conforming_strings` says. A NUL inside is an error.
pub fn quote_literal(text: &str) -> anyhow::Result<String> {
    ensure!(
        !text.contains('\0'),
        "the text {text:?} holds a NUL, which PostgreSQL can't store"
    );
    let quoted = text.replace('\'', "''");
    Ok(if quoted.contains('\\') {
        format!("E'{}'", quoted.replace('\\', "\\\\"))
    } else {
        format!("'{quoted}'")
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn quotes_are_doubled_and_nul_is_refused() {
        assert_eq!(quote_identifier("a\"b").unwrap(), "\"a\"\"b\"");
        assert_eq!(quote_literal("it's").unwrap(), "'it''s'");
        assert_eq!(quote_literal("a\\'b").unwrap(), "E'a\\\\''b'");
        assert!(quote_identifier("").is_err());
        assert!(quote_identifier("a\0").is_err());
        assert!(quote_literal("a\0").is_err());
    }

    proptest! {
        /// Nothing in a name can end the identifier: between the outer quotes every quote is doubled.
        #[test]
        fn an_identifier_can_not_be_left(name in "[^\0]{1,20}") {
            let quoted = quote_identifier(&name).unwrap();
            let inner = &quoted[1..quoted.len() - 1];
            prop_assert_eq!(inner.replace("\"\"", "\""), name);
            prop_assert!(!inner.replace("\"\"", "").contains('"'));
        }
    }
}
