//! Expressions over figures: `holds`, `when` and `took_effect`.
//!
//! An expression is made of figures, numbers, quoted words, `and or not == != < <= > >= + - * /` and parentheses, and
//! nothing else, so that it can be checked whole before anything runs. *Not observed* is infectious: its paths are collected
//! first, and if one was not observed, neither was the result, whatever operators surround it. This module must never turn
//! something that was not observed into a yes or a no.

mod check;
mod evaluate;
mod parse;
mod token;

use std::ops::Range;

pub use evaluate::Answer;

use crate::figure::{Declared, Figure, Place, Scope, Value};

/// A checked expression: every figure is in the catalogue and every operator has operands of its type.
#[derive(Debug, Clone)]
pub struct Expression {
    source: String,
    root: Term,
    figures: Vec<Figure>,
}

/// What is wrong with an expression, and where in its text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExpressionError {
    /// Bytes of the expression's text.
    pub span: Range<usize>,
    /// What is wrong.
    pub message: String,
    /// What would be right.
    pub hint: String,
}

impl ExpressionError {
    fn new(span: Range<usize>, message: impl Into<String>, hint: impl Into<String>) -> Self {
        ExpressionError {
            span,
            message: message.into(),
            hint: hint.into(),
        }
    }
}

/// One node of the tree, with its place in the text.
#[derive(Debug, Clone, PartialEq)]
struct Term {
    span: Range<usize>,
    kind: TermKind,
}

#[derive(Debug, Clone, PartialEq)]
enum TermKind {
    Figure(String),
    Number(f64),
    Word(String),
    Not(Box<Term>),
    Negative(Box<Term>),
    Binary(Operator, Box<Term>, Box<Term>),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Operator {
    Or,
    And,
    Equal,
    Unequal,
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
    Add,
    Subtract,
    Multiply,
    Divide,
}

impl Operator {
    fn as_str(self) -> &'static str {
        match self {
            Operator::Or => "or",
            Operator::And => "and",
            Operator::Equal => "==",
            Operator::Unequal => "!=",
            Operator::Less => "<",
            Operator::LessOrEqual => "<=",
            Operator::Greater => ">",
            Operator::GreaterOrEqual => ">=",
            Operator::Add => "+",
            Operator::Subtract => "-",
            Operator::Multiply => "*",
            Operator::Divide => "/",
        }
    }
}

impl Expression {
    /// Parses and checks an expression.
    ///
    /// # Errors
    /// Everything that is wrong with it: one syntax error, or every figure that does not exist and every operator whose
    /// operands don't fit.
    pub fn parse(
        source: &str,
        place: Place,
        declared: &Declared,
    ) -> Result<Expression, Vec<ExpressionError>> {
        let root = parse::parse(source).map_err(|error| vec![error])?;
        let figures = check::check(&root, source, place, declared)?;
        Ok(Expression {
            source: source.to_owned(),
            root,
            figures,
        })
    }

    /// The text as written.
    pub fn source(&self) -> &str {
        &self.source
    }

    /// The figures that it names, each once, in the order of their first mention.
    pub fn figures(&self) -> &[Figure] {
        &self.figures
    }

    /// Whether it is to be judged for each arm in turn.
    pub fn is_of_each_arm(&self) -> bool {
        self.figures.iter().any(|f| f.scope == Scope::EachArm)
    }

    /// Judges it. `lookup` is asked for each path as written (with `arm.` where that is written) and gives `None` for what
    /// was not observed.
    pub fn evaluate(&self, lookup: impl Fn(&str) -> Option<Value>) -> Answer {
        evaluate::evaluate(self, &lookup)
    }
}

#[cfg(test)]
mod tests;
