//! Names against the catalogue, operands against their operators.

use super::{ExpressionError, Operator, Term, TermKind};
use crate::figure::{Declared, Figure, Kind, Place, TREND_WORDS};
use crate::name::nearest;

/// What a term gives. `Unknown` follows an error that was reported already.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Type {
    Truth,
    Number,
    Word,
    Unknown,
}

impl Type {
    fn words(self) -> &'static str {
        match self {
            Type::Truth => "yes or no",
            Type::Number => "a number",
            Type::Word => "a word",
            Type::Unknown => "unknown",
        }
    }
}

pub(super) fn check(
    root: &Term,
    source: &str,
    place: Place,
    declared: &Declared,
) -> Result<Vec<Figure>, Vec<ExpressionError>> {
    let mut checker = Checker {
        source,
        place,
        declared,
        figures: Vec::new(),
        errors: Vec::new(),
    };
    let given = checker.term(root);
    if !matches!(given, Type::Truth | Type::Unknown) {
        checker.errors.push(ExpressionError::new(
            root.span.clone(),
            format!("the expression gives {}, not yes or no", given.words()),
            "compare it with something, such as `… > 0`",
        ));
    }
    if checker.errors.is_empty() {
        Ok(checker.figures)
    } else {
        Err(checker.errors)
    }
}

struct Checker<'c> {
    source: &'c str,
    place: Place,
    declared: &'c Declared,
    figures: Vec<Figure>,
    errors: Vec<ExpressionError>,
}

impl Checker<'_> {
    fn term(&mut self, term: &Term) -> Type {
        match &term.kind {
            TermKind::Number(_) => Type::Number,
            TermKind::Word(_) => Type::Word,
            TermKind::Figure(path) => self.figure(path, term),
            TermKind::Not(inner) => {
                self.expect(inner, Type::Truth, "not");
                Type::Truth
            }
            TermKind::Negative(inner) => {
                self.expect(inner, Type::Number, "-");
                Type::Number
            }
            TermKind::Binary(operator, left, right) => self.binary(*operator, left, right, term),
        }
    }

    fn figure(&mut self, path: &str, term: &Term) -> Type {
        let figure = match Figure::parse(path, self.place, self.declared) {
            Ok(figure) => figure,
            Err(error) => {
                self.errors.push(ExpressionError::new(
                    term.span.clone(),
                    error.message,
                    error.hint,
                ));
                return Type::Unknown;
            }
        };
        if figure.text_only {
            self.errors.push(ExpressionError::new(
                term.span.clone(),
                format!("`{path}` may be printed in a text, but not argued with"),
                "argue with `….throughput.trend` or `….throughput.fall`",
            ));
            return Type::Unknown;
        }
        let given = match figure.kind {
            Kind::Number => Type::Number,
            Kind::Word => Type::Word,
            Kind::List => Type::Unknown,
        };
        if !self.figures.iter().any(|f| f.path == figure.path) {
            self.figures.push(figure);
        }
        given
    }

    fn expect(&mut self, term: &Term, wanted: Type, operator: &str) {
        let given = self.term(term);
        if given == wanted || given == Type::Unknown {
            return;
        }
        let hint = match wanted {
            Type::Truth => "compare it with something, such as `… > 0` or `… == 'flat'`",
            _ => "calculate with figures that are numbers",
        };
        self.errors.push(ExpressionError::new(
            term.span.clone(),
            format!(
                "`{}` is {}, but `{operator}` needs {}",
                &self.source[term.span.clone()],
                given.words(),
                wanted.words()
            ),
            hint,
        ));
    }

    fn binary(&mut self, operator: Operator, left: &Term, right: &Term, whole: &Term) -> Type {
        match operator {
            Operator::Or | Operator::And => {
                self.expect(left, Type::Truth, operator.as_str());
                self.expect(right, Type::Truth, operator.as_str());
                Type::Truth
            }
            Operator::Add | Operator::Subtract | Operator::Multiply | Operator::Divide => {
                self.expect(left, Type::Number, operator.as_str());
                self.expect(right, Type::Number, operator.as_str());
                Type::Number
            }
            _ => {
                let (l, r) = (self.term(left), self.term(right));
                self.comparison(operator, (left, l), (right, r), whole);
                Type::Truth
            }
        }
    }

    fn comparison(
        &mut self,
        operator: Operator,
        (left, l): (&Term, Type),
        (right, r): (&Term, Type),
        whole: &Term,
    ) {
        let equality = matches!(operator, Operator::Equal | Operator::Unequal);
        match (l, r) {
            (Type::Number, Type::Number) => {}
            (Type::Word, Type::Word) if equality => {
                for (one, other) in [(left, right), (right, left)] {
                    if let (TermKind::Figure(_), TermKind::Word(word)) = (&one.kind, &other.kind) {
                        self.trend_word(word, other);
                    }
                }
            }
            (Type::Word, Type::Word) => self.errors.push(ExpressionError::new(
                whole.span.clone(),
                format!(
                    "words have no order: `{}` can't be judged",
                    operator.as_str()
                ),
                "compare words with == or !=",
            )),
            // The other side's own error is enough.
            (Type::Unknown, _) | (_, Type::Unknown) => {}
            (l, r) => {
                let hint = match (l, r) {
                    (Type::Number, Type::Word) | (Type::Word, Type::Number) => {
                        "a trend is compared with 'flat', 'falls', 'rises' or 'unclear'; every other figure with a number"
                    }
                    _ => "join truths with `and` and `or`",
                };
                self.errors.push(ExpressionError::new(
                    whole.span.clone(),
                    format!("{} is compared with {}", l.words(), r.words()),
                    hint,
                ));
            }
        }
    }

    fn trend_word(&mut self, word: &str, term: &Term) {
        if TREND_WORDS.contains(&word) {
            return;
        }
        let hint = match nearest(word, TREND_WORDS) {
            Some(near) => format!("did you mean '{near}'?"),
            None => "trends are 'flat', 'falls', 'rises' and 'unclear'".to_owned(),
        };
        self.errors.push(ExpressionError::new(
            term.span.clone(),
            format!("'{word}' is not a trend"),
            hint,
        ));
    }
}
