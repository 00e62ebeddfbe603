//! Explanations against what was observed: each prediction, then each row.
//!
//! An established word other than the predicted one refutes; anything that is not established refutes nothing. Surviving is
//! not proof.

use super::summary::{ExplanationResult, PredictionResult, Word};
use super::verdict::Verdict;
use crate::experiment::{Explanation, TrendWord};
use crate::name::Arm;

/// What a prediction is held against.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Seen {
    /// The word, with the reason where it is unclear.
    Word(Word, String),
    /// There is none, and why.
    Missing(String),
    /// A gate bars this arm's figures.
    Barred(String),
}

/// Judges every explanation. `seen` gives a figure's word in an arm; `applied` is false when the change did not take effect,
/// so that no pattern between the arms says anything.
pub(super) fn judge(
    explanations: &[Explanation],
    seen: impl Fn(Arm, &str) -> Seen,
    applied: bool,
    invalid: Option<&str>,
) -> Vec<ExplanationResult> {
    explanations
        .iter()
        .map(|explanation| {
            let predictions: Vec<PredictionResult> = explanation
                .predicts
                .iter()
                .flat_map(|(figure, words)| {
                    words
                        .iter()
                        .filter_map(|(arm, word)| Some((arm, (*word)?)))
                        .map(|(arm, word)| prediction(figure, arm, word, &seen(arm, figure)))
                        .collect::<Vec<_>>()
                })
                .collect();
            let verdict = match (invalid, applied) {
                (Some(reason), _) => Verdict::Invalid(reason.to_owned()),
                (None, false) => Verdict::Undetermined("not_applied".to_owned()),
                (None, true) => whole(&predictions),
            };
            ExplanationResult {
                name: explanation.name.clone(),
                because: explanation.because.clone(),
                verdict,
                predictions,
            }
        })
        .collect()
}

fn prediction(figure: &str, arm: Arm, predicted: TrendWord, seen: &Seen) -> PredictionResult {
    let (observed, verdict) = match seen {
        Seen::Word(word, _) if word.is(predicted) => (Some(*word), Verdict::Supported),
        Seen::Word(Word::Unclear, reason) => {
            (Some(Word::Unclear), Verdict::Undetermined(reason.clone()))
        }
        Seen::Word(word, _) => (Some(*word), Verdict::Refuted),
        Seen::Missing(reason) => (None, Verdict::NotObserved(reason.clone())),
        Seen::Barred(reason) => (None, Verdict::Undetermined(reason.clone())),
    };
    PredictionResult {
        figure: figure.to_owned(),
        arm,
        predicted,
        observed,
        verdict,
    }
}

/// Refuted if one prediction is, else undetermined if one is unclear or not observed, else consistent.
fn whole(predictions: &[PredictionResult]) -> Verdict {
    if predictions.is_empty() {
        return Verdict::Undetermined("it predicts nothing".to_owned());
    }
    if predictions.iter().any(|p| p.verdict == Verdict::Refuted) {
        return Verdict::Refuted;
    }
    match predictions.iter().find(|p| !p.verdict.is_supported()) {
        None => Verdict::Supported,
        Some(open) => Verdict::Undetermined(format!(
            "{}.{}.trend is {}",
            open.arm,
            open.figure,
            open.observed.map_or("not observed", Word::as_str)
        )),
    }
}

/// Whether two explanations predict the same everywhere, so that nothing observed can tell them apart.
pub(super) fn same_row(a: &ExplanationResult, b: &ExplanationResult) -> bool {
    let row = |e: &ExplanationResult| {
        let mut row: Vec<_> = e
            .predictions
            .iter()
            .map(|p| (p.figure.clone(), p.arm, format!("{:?}", p.predicted)))
            .collect();
        row.sort();
        row
    };
    row(a) == row(b)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::name::Arms;

    fn explanation(treatment: TrendWord, control: TrendWord) -> Explanation {
        Explanation {
            name: "it".into(),
            because: "so".into(),
            predicts: BTreeMap::from([(
                "throughput".to_owned(),
                Arms {
                    treatment: Some(treatment),
                    control: Some(control),
                },
            )]),
        }
    }

    fn verdict(treatment: Word, control: Word, applied: bool) -> Verdict {
        let table = explanation(TrendWord::Falls, TrendWord::Flat);
        let seen = |arm: Arm, _: &str| {
            let word = match arm {
                Arm::Treatment => treatment,
                Arm::Control => control,
            };
            Seen::Word(word, "wide".into())
        };
        judge(&[table], seen, applied, None).remove(0).verdict
    }

    #[test]
    fn only_an_established_word_refutes() {
        assert_eq!(verdict(Word::Falls, Word::Flat, true), Verdict::Supported);
        assert_eq!(verdict(Word::Falls, Word::Falls, true), Verdict::Refuted);
        assert_eq!(verdict(Word::Rises, Word::Unclear, true), Verdict::Refuted);
        assert!(matches!(
            verdict(Word::Falls, Word::Unclear, true),
            Verdict::Undetermined(_)
        ));
    }

    #[test]
    fn a_change_that_did_not_take_effect_says_nothing() {
        for control in [Word::Flat, Word::Falls, Word::Unclear] {
            assert_eq!(
                verdict(Word::Falls, control, false),
                Verdict::Undetermined("not_applied".into())
            );
        }
    }

    #[test]
    fn not_observed_leaves_it_open() {
        let table = explanation(TrendWord::Falls, TrendWord::Flat);
        let seen = |_: Arm, _: &str| Seen::Missing("few".into());
        let judged = judge(&[table], seen, true, None);
        assert!(matches!(judged[0].verdict, Verdict::Undetermined(_)));
        assert!(matches!(
            judged[0].predictions[0].verdict,
            Verdict::NotObserved(_)
        ));
    }

    #[test]
    fn rows_are_the_same_whatever_the_name() {
        let seen = |_: Arm, _: &str| Seen::Missing(String::new());
        let all = judge(
            &[
                explanation(TrendWord::Falls, TrendWord::Flat),
                explanation(TrendWord::Falls, TrendWord::Flat),
                explanation(TrendWord::Falls, TrendWord::Falls),
            ],
            seen,
            true,
            None,
        );
        assert!(same_row(&all[0], &all[1]));
        assert!(!same_row(&all[0], &all[2]));
    }
}
