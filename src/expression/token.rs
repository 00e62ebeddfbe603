//! Splits an expression's text into tokens; what the language leaves out is refused by name.

use std::ops::Range;

use super::{ExpressionError, Operator};

#[derive(Debug, Clone, PartialEq)]
pub(super) enum Token {
    Figure(String),
    Number(f64),
    Word(String),
    Not,
    Operator(Operator),
    Open,
    Close,
}

/// Longest expression that is accepted, in bytes.
const LONGEST: usize = 10_000;

pub(super) fn tokens(source: &str) -> Result<Vec<(Token, Range<usize>)>, ExpressionError> {
    if source.len() > LONGEST {
        return Err(ExpressionError::new(
            0..0,
            format!("the expression is longer than {LONGEST} bytes"),
            "split it into several",
        ));
    }
    let mut found = Vec::new();
    let mut at = 0;
    while let Some(first) = source[at..].chars().next() {
        if first.is_whitespace() {
            at += first.len_utf8();
            continue;
        }
        let (token, length) = match first {
            '0'..='9' => number(source, at)?,
            'a'..='z' | 'A'..='Z' | '_' => word_or_figure(source, at)?,
            '\'' | '"' => quoted(source, at, first)?,
            _ => symbol(source, at, first)?,
        };
        found.push((token, at..at + length));
        at += length;
    }
    Ok(found)
}

fn number(source: &str, at: usize) -> Result<(Token, usize), ExpressionError> {
    let rest = &source[at..];
    let mut length = rest
        .find(|c: char| !c.is_ascii_digit() && c != '.' && c != '_')
        .unwrap_or(rest.len());
    if rest[length..].starts_with(['e', 'E']) {
        let signed = usize::from(rest[length + 1..].starts_with(['+', '-']));
        let digits = rest[length + 1 + signed..]
            .find(|c: char| !c.is_ascii_digit())
            .unwrap_or(rest.len() - length - 1 - signed);
        if digits > 0 {
            length += 1 + signed + digits;
        }
    }
    let text = &rest[..length];
    if let Some(unit) = rest[length..]
        .chars()
        .next()
        .filter(|c| c.is_alphabetic() || *c == '%')
    {
        let end = rest[length..]
            .find(|c: char| !c.is_alphanumeric() && c != '%')
            .map_or(rest.len(), |n| length + n);
        let hint = if unit == '%' {
            "figures that are shares run from 0 to 1: write 0.2 for 20%"
        } else {
            "numbers here have no unit: a figure's own unit (s, ms, MiB, share) counts"
        };
        return Err(ExpressionError::new(
            at..at + end,
            format!("`{}` is not a number", &rest[..end]),
            hint,
        ));
    }
    match text.replace('_', "").parse::<f64>() {
        Ok(value) if value.is_finite() => Ok((Token::Number(value), length)),
        _ => Err(ExpressionError::new(
            at..at + length,
            format!("`{text}` is not a number"),
            "write a decimal number such as 0.5 or 1000",
        )),
    }
}

fn word_or_figure(source: &str, at: usize) -> Result<(Token, usize), ExpressionError> {
    let rest = &source[at..];
    let length = rest
        .find(|c: char| !c.is_ascii_alphanumeric() && c != '_' && c != '.')
        .unwrap_or(rest.len());
    let text = &rest[..length];
    let span = at..at + length;
    let refuse = |message: &str, hint: &str| Err(ExpressionError::new(span.clone(), message, hint));
    let token = match text {
        "and" => Token::Operator(Operator::And),
        "or" => Token::Operator(Operator::Or),
        "not" => Token::Not,
        "is" => {
            return refuse(
                "tests (`is`) are not part of expressions",
                "compare with == or !=",
            );
        }
        "in" => {
            return refuse(
                "`in` is not part of expressions",
                "compare with == and join with `or`",
            );
        }
        "if" | "else" => {
            return refuse(
                "conditions (`if`) are not part of expressions",
                "join comparisons with `and` and `or`",
            );
        }
        "true" | "false" | "True" | "False" | "none" | "None" => {
            return refuse(
                &format!("`{text}` is not part of expressions"),
                "compare figures with numbers or quoted words",
            );
        }
        _ if text.split('.').any(str::is_empty) => {
            return refuse(
                &format!("`{text}` has an empty part"),
                "write a figure such as `treatment.throughput.mean`",
            );
        }
        _ => Token::Figure(text.to_owned()),
    };
    if rest[length..].starts_with('(') && matches!(token, Token::Figure(_)) {
        return refuse(
            &format!("`{text}(` is a call, and calls are not part of expressions"),
            "write figures, numbers, quoted words and operators",
        );
    }
    Ok((token, length))
}

fn quoted(source: &str, at: usize, quote: char) -> Result<(Token, usize), ExpressionError> {
    let inner = &source[at + 1..];
    match inner.find(quote) {
        Some(end) => Ok((Token::Word(inner[..end].to_owned()), end + 2)),
        None => Err(ExpressionError::new(
            at..source.len(),
            "a quoted word does not end",
            format!("close it with {quote}"),
        )),
    }
}

fn symbol(source: &str, at: usize, first: char) -> Result<(Token, usize), ExpressionError> {
    let rest = &source[at..];
    for (text, instead) in [
        ("&&", "write `and`"),
        ("||", "write `or`"),
        ("**", "write a product"),
        ("//", "write `/`"),
        ("=>", "write `>=`"),
        ("=<", "write `<=`"),
        ("<>", "write `!=`"),
    ] {
        if rest.starts_with(text) {
            return Err(ExpressionError::new(
                at..at + 2,
                format!("`{text}` is not an operator"),
                instead,
            ));
        }
    }
    for (text, operator) in [
        ("==", Operator::Equal),
        ("!=", Operator::Unequal),
        ("<=", Operator::LessOrEqual),
        (">=", Operator::GreaterOrEqual),
        ("<", Operator::Less),
        (">", Operator::Greater),
        ("+", Operator::Add),
        ("-", Operator::Subtract),
        ("*", Operator::Multiply),
        ("/", Operator::Divide),
    ] {
        if rest.starts_with(text) {
            return Ok((Token::Operator(operator), text.len()));
        }
    }
    match first {
        '(' => return Ok((Token::Open, 1)),
        ')' => return Ok((Token::Close, 1)),
        _ => {}
    }
    let (message, hint) = match first {
        '=' => ("`=` is not a comparison".to_owned(), "write `==`"),
        '!' => ("`!` is not an operator".to_owned(), "write `not`"),
        '|' => (
            "filters (`|`) are not part of expressions".to_owned(),
            "filters belong in a claim's text",
        ),
        '[' | ']' | '{' | '}' => (
            format!("`{first}` is not part of expressions"),
            "write figures without brackets, such as `treatment.throughput.mean`",
        ),
        other => (
            format!("`{}` is not part of expressions", other.escape_debug()),
            "expressions hold figures, numbers, quoted words, `and or not == != < <= > >= + - * /` and parentheses",
        ),
    };
    Err(ExpressionError::new(
        at..at + first.len_utf8(),
        message,
        hint,
    ))
}
