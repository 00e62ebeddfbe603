//! Judges a checked expression by observed figures.

use super::{Expression, Operator, Term, TermKind};
use crate::figure::Value;

/// What an expression says of what was observed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Answer {
    /// It holds.
    Yes,
    /// It does not; these are the figures of the comparisons that refused it.
    No {
        /// Paths as written, in order of mention.
        because: Vec<String>,
    },
    /// It can't be said.
    NotObserved {
        /// Paths that were not observed, or whose quotient is no number.
        paths: Vec<String>,
        /// In words.
        reason: String,
    },
}

/// Arithmetic without a result (a division by zero): as good as not observed.
struct NoNumber(Vec<String>);

enum Given {
    Truth(bool),
    Number(f64),
    Word(String),
}

pub(super) fn evaluate(expression: &Expression, lookup: &dyn Fn(&str) -> Option<Value>) -> Answer {
    let missing: Vec<String> = expression
        .figures()
        .iter()
        .filter(|figure| match lookup(&figure.path) {
            None => true,
            Some(Value::Number(number)) => !number.is_finite() || figure.is_trend(),
            Some(Value::Word(_)) => !figure.is_trend(),
        })
        .map(|figure| figure.path.clone())
        .collect();
    if !missing.is_empty() {
        let reason = format!("not observed: {}", missing.join(", "));
        return Answer::NotObserved {
            paths: missing,
            reason,
        };
    }
    match term(&expression.root, lookup) {
        Ok(Given::Truth(true)) => Answer::Yes,
        Ok(Given::Truth(false)) => {
            let mut because = Vec::new();
            refusers(&expression.root, lookup, false, &mut because);
            Answer::No { because }
        }
        // A checked expression gives a truth; anything else was not observed as one.
        Ok(Given::Number(_) | Given::Word(_)) => Answer::NotObserved {
            paths: Vec::new(),
            reason: "the expression gives no truth".to_owned(),
        },
        Err(NoNumber(paths)) => {
            let reason = format!("no number comes of {}", paths.join(", "));
            Answer::NotObserved { paths, reason }
        }
    }
}

fn term(term_: &Term, lookup: &dyn Fn(&str) -> Option<Value>) -> Result<Given, NoNumber> {
    let given = match &term_.kind {
        TermKind::Number(number) => Given::Number(*number),
        TermKind::Word(word) => Given::Word(word.clone()),
        TermKind::Figure(path) => match lookup(path) {
            Some(Value::Number(number)) => Given::Number(number),
            Some(Value::Word(word)) => Given::Word(word),
            None => return Err(NoNumber(vec![path.clone()])),
        },
        TermKind::Not(inner) => Given::Truth(!truth(inner, lookup)?),
        TermKind::Negative(inner) => Given::Number(-number(inner, lookup)?),
        TermKind::Binary(operator, left, right) => match operator {
            Operator::And => Given::Truth(truth(left, lookup)? && truth(right, lookup)?),
            Operator::Or => Given::Truth(truth(left, lookup)? || truth(right, lookup)?),
            Operator::Add | Operator::Subtract | Operator::Multiply | Operator::Divide => {
                let (l, r) = (number(left, lookup)?, number(right, lookup)?);
                let result = match operator {
                    Operator::Add => l + r,
                    Operator::Subtract => l - r,
                    Operator::Multiply => l * r,
                    _ => l / r,
                };
                if !result.is_finite() {
                    return Err(no_number(term_));
                }
                Given::Number(result)
            }
            _ => Given::Truth(compare(
                *operator,
                term(left, lookup)?,
                term(right, lookup)?,
                term_,
            )?),
        },
    };
    Ok(given)
}

fn compare(operator: Operator, left: Given, right: Given, whole: &Term) -> Result<bool, NoNumber> {
    match (left, right) {
        (Given::Word(l), Given::Word(r)) => Ok((l == r) == (operator == Operator::Equal)),
        (Given::Number(l), Given::Number(r)) => Ok(match operator {
            Operator::Equal => l == r,
            Operator::Unequal => l != r,
            Operator::Less => l < r,
            Operator::LessOrEqual => l <= r,
            Operator::Greater => l > r,
            _ => l >= r,
        }),
        _ => Err(no_number(whole)),
    }
}

fn number(inner: &Term, lookup: &dyn Fn(&str) -> Option<Value>) -> Result<f64, NoNumber> {
    match term(inner, lookup)? {
        Given::Number(number) => Ok(number),
        Given::Truth(_) | Given::Word(_) => Err(no_number(inner)),
    }
}

fn truth(inner: &Term, lookup: &dyn Fn(&str) -> Option<Value>) -> Result<bool, NoNumber> {
    match term(inner, lookup)? {
        Given::Truth(truth) => Ok(truth),
        Given::Number(_) | Given::Word(_) => Err(no_number(inner)),
    }
}

fn no_number(term: &Term) -> NoNumber {
    let mut paths = Vec::new();
    mentioned(term, &mut paths);
    NoNumber(paths)
}

fn mentioned(term: &Term, paths: &mut Vec<String>) {
    match &term.kind {
        TermKind::Figure(path) => {
            if !paths.contains(path) {
                paths.push(path.clone());
            }
        }
        TermKind::Number(_) | TermKind::Word(_) => {}
        TermKind::Not(inner) | TermKind::Negative(inner) => mentioned(inner, paths),
        TermKind::Binary(_, left, right) => {
            mentioned(left, paths);
            mentioned(right, paths);
        }
    }
}

/// Collects the figures of those comparisons that make `term` come out as `outcome`.
fn refusers(
    whole: &Term,
    lookup: &dyn Fn(&str) -> Option<Value>,
    outcome: bool,
    because: &mut Vec<String>,
) {
    if truth(whole, lookup).ok() != Some(outcome) {
        return;
    }
    match &whole.kind {
        TermKind::Not(inner) => refusers(inner, lookup, !outcome, because),
        TermKind::Binary(Operator::And | Operator::Or, left, right) => {
            refusers(left, lookup, outcome, because);
            refusers(right, lookup, outcome, because);
        }
        _ => mentioned(whole, because),
    }
}
