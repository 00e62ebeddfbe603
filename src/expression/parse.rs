//! Tokens to a tree. Precedence, loosest first: `or`, `and`, `not`, comparisons (one, never a chain), `+ -`, `* /`, sign.

use std::ops::Range;

use super::token::{Token, tokens};
use super::{ExpressionError, Operator, Term, TermKind};

/// Nesting beyond this is refused, so that no text can exhaust the stack.
const DEEPEST: usize = 64;

pub(super) fn parse(source: &str) -> Result<Term, ExpressionError> {
    let mut parser = Parser {
        tokens: tokens(source)?,
        next: 0,
        end: source.len(),
        depth: 0,
    };
    if parser.tokens.is_empty() {
        return Err(ExpressionError::new(
            0..source.len(),
            "the expression is empty",
            "write a comparison, such as `treatment.failures.status_5xx == 0`",
        ));
    }
    let root = parser.either()?;
    match parser.tokens.get(parser.next) {
        None => Ok(root),
        Some((Token::Close, span)) => Err(ExpressionError::new(
            span.clone(),
            "this parenthesis closes nothing",
            "remove it",
        )),
        Some((_, span)) => Err(ExpressionError::new(
            span.clone(),
            "an operator is missing here",
            "join two parts with `and`, `or` or a comparison",
        )),
    }
}

struct Parser {
    tokens: Vec<(Token, Range<usize>)>,
    next: usize,
    end: usize,
    depth: usize,
}

impl Parser {
    fn peek(&self) -> Option<&Token> {
        self.tokens.get(self.next).map(|(token, _)| token)
    }

    fn operator(&mut self, among: &[Operator]) -> Option<Operator> {
        match self.peek() {
            Some(Token::Operator(operator)) if among.contains(operator) => {
                let operator = *operator;
                self.next += 1;
                Some(operator)
            }
            _ => None,
        }
    }

    fn descend(&mut self) -> Result<(), ExpressionError> {
        self.depth += 1;
        if self.depth > DEEPEST {
            let span = self.span();
            return Err(ExpressionError::new(
                span,
                format!("the expression nests deeper than {DEEPEST} levels"),
                "split it into several",
            ));
        }
        Ok(())
    }

    fn span(&self) -> Range<usize> {
        self.tokens
            .get(self.next)
            .map_or(self.end..self.end, |(_, span)| span.clone())
    }

    fn either(&mut self) -> Result<Term, ExpressionError> {
        self.descend()?;
        let mut left = self.both()?;
        while let Some(operator) = self.operator(&[Operator::Or]) {
            let right = self.both()?;
            left = binary(operator, left, right);
        }
        self.depth -= 1;
        Ok(left)
    }

    fn both(&mut self) -> Result<Term, ExpressionError> {
        let mut left = self.negation()?;
        while let Some(operator) = self.operator(&[Operator::And]) {
            let right = self.negation()?;
            left = binary(operator, left, right);
        }
        Ok(left)
    }

    fn negation(&mut self) -> Result<Term, ExpressionError> {
        if self.peek() != Some(&Token::Not) {
            return self.comparison();
        }
        let start = self.span().start;
        self.next += 1;
        self.descend()?;
        let inner = self.negation()?;
        self.depth -= 1;
        Ok(Term {
            span: start..inner.span.end,
            kind: TermKind::Not(Box::new(inner)),
        })
    }

    fn comparison(&mut self) -> Result<Term, ExpressionError> {
        const COMPARISONS: [Operator; 6] = [
            Operator::Equal,
            Operator::Unequal,
            Operator::Less,
            Operator::LessOrEqual,
            Operator::Greater,
            Operator::GreaterOrEqual,
        ];
        let left = self.sum()?;
        let Some(operator) = self.operator(&COMPARISONS) else {
            return Ok(left);
        };
        let right = self.sum()?;
        let span = self.span();
        if self.operator(&COMPARISONS).is_some() {
            return Err(ExpressionError::new(
                span,
                "comparisons can't be chained",
                "write `a < b and b < c`",
            ));
        }
        Ok(binary(operator, left, right))
    }

    fn sum(&mut self) -> Result<Term, ExpressionError> {
        let mut left = self.product()?;
        while let Some(operator) = self.operator(&[Operator::Add, Operator::Subtract]) {
            let right = self.product()?;
            left = binary(operator, left, right);
        }
        Ok(left)
    }

    fn product(&mut self) -> Result<Term, ExpressionError> {
        let mut left = self.sign()?;
        while let Some(operator) = self.operator(&[Operator::Multiply, Operator::Divide]) {
            let right = self.sign()?;
            left = binary(operator, left, right);
        }
        Ok(left)
    }

    fn sign(&mut self) -> Result<Term, ExpressionError> {
        let start = self.span().start;
        if self.operator(&[Operator::Subtract]).is_none() {
            return self.atom();
        }
        self.descend()?;
        let inner = self.sign()?;
        self.depth -= 1;
        Ok(Term {
            span: start..inner.span.end,
            kind: TermKind::Negative(Box::new(inner)),
        })
    }

    fn atom(&mut self) -> Result<Term, ExpressionError> {
        let Some((token, span)) = self.tokens.get(self.next).cloned() else {
            return Err(ExpressionError::new(
                self.span(),
                "the expression ends where a value is expected",
                "write a figure, a number or a quoted word",
            ));
        };
        self.next += 1;
        let kind = match token {
            Token::Figure(path) => TermKind::Figure(path),
            Token::Number(number) => TermKind::Number(number),
            Token::Word(word) => TermKind::Word(word),
            Token::Open => {
                let mut inner = self.either()?;
                if self.peek() != Some(&Token::Close) {
                    return Err(ExpressionError::new(
                        span,
                        "this parenthesis is not closed",
                        "add `)`",
                    ));
                }
                inner.span = span.start..self.span().end;
                self.next += 1;
                return Ok(inner);
            }
            Token::Close | Token::Not | Token::Operator(_) => {
                return Err(ExpressionError::new(
                    span,
                    "a value is expected here",
                    "write a figure, a number or a quoted word",
                ));
            }
        };
        Ok(Term { span, kind })
    }
}

fn binary(operator: Operator, left: Term, right: Term) -> Term {
    Term {
        span: left.span.start..right.span.end,
        kind: TermKind::Binary(operator, Box::new(left), Box::new(right)),
    }
}
