//! Every figure by its name in the catalogue, and why one is absent.
//!
//! Absent means not observed: a number that is not finite never gets in, and nothing is filled in for what is missing.

use std::collections::BTreeMap;

use super::summary::FigureValue;
use crate::figure::Value;

/// Figures of a run.
#[derive(Debug, Clone, PartialEq, Default)]
pub(super) struct Figures {
    pub(super) values: BTreeMap<String, FigureValue>,
    /// Why a figure is absent, by its name or a prefix of it.
    pub(super) reasons: BTreeMap<String, String>,
}

impl Figures {
    /// A number that was observed; one that is not finite was not.
    pub(super) fn number(&mut self, name: impl Into<String>, value: f64) {
        if value.is_finite() {
            self.values.insert(name.into(), FigureValue::Number(value));
        }
    }

    /// A number, or the reason why there is none.
    pub(super) fn maybe(
        &mut self,
        name: impl Into<String>,
        value: Option<f64>,
        reason: impl FnOnce() -> String,
    ) {
        match value.filter(|v| v.is_finite()) {
            Some(value) => self.number(name, value),
            None => self.absent(name, reason()),
        }
    }

    /// A word.
    pub(super) fn word(&mut self, name: impl Into<String>, word: &str) {
        self.values
            .insert(name.into(), FigureValue::Word(word.to_owned()));
    }

    /// Why a figure, or everything below a prefix, is absent. The first reason stands.
    pub(super) fn absent(&mut self, name: impl Into<String>, reason: impl Into<String>) {
        self.reasons
            .entry(name.into())
            .or_insert_with(|| reason.into());
    }

    /// A figure as expressions see it.
    pub(super) fn value(&self, name: &str) -> Option<Value> {
        self.values.get(name).map(|value| match value {
            FigureValue::Number(number) => Value::Number(*number),
            FigureValue::Word(word) => Value::Word(word.clone()),
        })
    }

    /// Why a figure is absent: the reason of its own name, else of the longest prefix that has one.
    pub(super) fn why_absent(&self, name: &str) -> Option<&str> {
        let mut prefix = name;
        loop {
            if let Some(reason) = self.reasons.get(prefix) {
                return Some(reason);
            }
            prefix = prefix.rsplit_once('.')?.0;
        }
    }

    /// The values of some figures, `None` for what was not observed.
    pub(super) fn observed<'n>(
        &self,
        names: impl IntoIterator<Item = &'n str>,
    ) -> BTreeMap<String, Option<FigureValue>> {
        names
            .into_iter()
            .map(|name| (name.to_owned(), self.values.get(name).cloned()))
            .collect()
    }

    /// A figure with its value, for a sentence: `control.throughput.trend is unclear`.
    pub(super) fn told(&self, name: &str) -> String {
        match self.values.get(name) {
            Some(FigureValue::Number(number)) => format!("{name} is {}", brief(*number)),
            Some(FigureValue::Word(word)) => format!("{name} is {word}"),
            None => match self.why_absent(name) {
                Some(reason) => format!("{name} was not observed ({reason})"),
                None => format!("{name} was not observed"),
            },
        }
    }
}

/// A number for a sentence: four significant digits, none that says nothing.
pub(super) fn brief(number: f64) -> String {
    let digits = match number.abs() {
        x if x >= 1_000.0 || x == 0.0 => 0,
        x if x >= 100.0 => 1,
        x if x >= 10.0 => 2,
        x if x >= 1.0 => 3,
        _ => 4,
    };
    let text = format!("{number:.digits$}");
    match text.contains('.') {
        true => text.trim_end_matches('0').trim_end_matches('.').to_owned(),
        false => text,
    }
}

/// A ratio for a sentence: three significant digits, zeros kept.
pub(super) fn ratio(value: f64) -> String {
    match value.abs() {
        x if x >= 100.0 => format!("{value:.0}"),
        x if x >= 10.0 => format!("{value:.1}"),
        x if x >= 1.0 => format!("{value:.2}"),
        _ => format!("{value:.3}"),
    }
}

/// A share as a percentage for a sentence. What is not all never reads as 100 %, and what is not none never as 0 %.
pub(super) fn percent(share: f64) -> String {
    let whole = |value: f64| value == 0.0 || value == 100.0;
    let value = (1..=6)
        .map(|digits| {
            let unit = 10_f64.powi(digits);
            (share * 100.0 * unit).round() / unit
        })
        .find(|value| !whole(*value))
        .filter(|_| !whole(share * 100.0))
        .unwrap_or_else(|| (share * 1_000.0).round() / 10.0);
    format!("{value} %")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_that_is_none_was_not_observed() {
        let mut figures = Figures::default();
        figures.number("a", f64::NAN);
        figures.maybe("b", Some(f64::INFINITY), || "endless".into());
        assert!(figures.values.is_empty());
        assert_eq!(figures.why_absent("b"), Some("endless"));
        assert_eq!(figures.told("b"), "b was not observed (endless)");
    }

    #[test]
    fn the_longest_prefix_tells_why() {
        let mut figures = Figures::default();
        figures.absent("control", "never measured");
        figures.absent("control.services.db", "runs elsewhere");
        assert_eq!(
            figures.why_absent("control.services.db.memory.rss"),
            Some("runs elsewhere")
        );
        assert_eq!(
            figures.why_absent("control.seconds"),
            Some("never measured")
        );
        assert_eq!(figures.why_absent("treatment.seconds"), None);
    }

    #[test]
    fn numbers_in_sentences_are_short() {
        assert_eq!(brief(1234.56), "1235");
        assert_eq!(brief(0.25), "0.25");
        assert_eq!(brief(-12.0), "-12");
        assert_eq!(percent(0.6543), "65.4 %");
        assert_eq!(percent(0.2), "20 %");
        assert_eq!(percent(1.0), "100 %");
        assert_eq!(percent(0.0), "0 %");
        assert_eq!(percent(0.999_98), "99.998 %");
        assert_eq!(percent(0.000_02), "0.002 %");
    }
}
