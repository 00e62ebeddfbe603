use proptest::prelude::*;

use super::*;
use crate::figure::DeclaredService;

fn declared() -> Declared {
    let mut declared = Declared {
        pruned: ["jobs".to_owned()].into(),
        ..Declared::default()
    };
    declared.services.insert(
        "app".into(),
        DeclaredService {
            started: true,
            ..Default::default()
        },
    );
    declared
}

fn parse(source: &str) -> Result<Expression, Vec<ExpressionError>> {
    Expression::parse(source, Place::Claim, &declared())
}

fn judge(source: &str, observed: &[(&str, Value)]) -> Answer {
    parse(source).unwrap().evaluate(|path| {
        observed
            .iter()
            .find(|(name, _)| *name == path)
            .map(|(_, value)| value.clone())
    })
}

const N: fn(f64) -> Value = Value::Number;

fn word(word: &str) -> Value {
    Value::Word(word.to_owned())
}

const OK: &str = "treatment.requests.ok";
const SENT: &str = "treatment.requests.sent";
const TREND: &str = "treatment.throughput.trend";

#[test]
fn precedence_is_that_of_minijinja() {
    let observed = [(OK, N(2.0)), (SENT, N(4.0))];
    for (source, holds) in [
        ("treatment.requests.ok + 2 * 3 == 8", true),
        ("(treatment.requests.ok + 2) * 3 == 12", true),
        ("-treatment.requests.ok + 3 > 0", true),
        ("treatment.requests.ok - 1 - 1 == 0", true),
        (
            "treatment.requests.sent / treatment.requests.ok / 2 == 1",
            true,
        ),
        ("not treatment.requests.ok == 3", true),
        (
            "not treatment.requests.ok == 2 or treatment.requests.sent == 4",
            true,
        ),
        (
            "treatment.requests.ok == 3 and treatment.requests.ok == 2 or treatment.requests.sent == 4",
            true,
        ),
        (
            "treatment.requests.ok == 3 and (treatment.requests.ok == 2 or treatment.requests.sent == 4)",
            false,
        ),
        (
            "treatment.requests.ok >= 2 and treatment.requests.ok <= 2e0",
            true,
        ),
    ] {
        assert_eq!(judge(source, &observed) == Answer::Yes, holds, "{source}");
    }
}

#[test]
fn not_observed_is_infectious_whatever_surrounds_it() {
    for source in [
        "treatment.requests.ok == 1 or treatment.requests.sent == 4",
        "treatment.requests.sent == 4 or treatment.requests.ok == 1",
        "not treatment.requests.ok == 1",
        "treatment.requests.ok != 1",
        "treatment.requests.sent == 5 and treatment.requests.ok == 1",
        "treatment.requests.ok * 0 == 0",
    ] {
        let answer = judge(source, &[(SENT, N(4.0))]);
        assert!(
            matches!(&answer, Answer::NotObserved { paths, .. } if paths == &[OK]),
            "{source}: {answer:?}"
        );
    }
}

#[test]
fn arithmetic_without_a_result_is_not_observed() {
    for (ok, sent) in [
        (0.0, 4.0),
        (0.0, 0.0),
        (f64::NAN, 1.0),
        (f64::INFINITY, 1.0),
    ] {
        let answer = judge(
            "treatment.requests.sent / treatment.requests.ok != 7",
            &[(OK, N(ok)), (SENT, N(sent))],
        );
        assert!(matches!(answer, Answer::NotObserved { .. }), "{answer:?}");
    }
}

#[test]
fn a_value_of_the_wrong_type_is_not_observed() {
    let answer = judge("treatment.throughput.trend != 'flat'", &[(TREND, N(1.0))]);
    assert!(matches!(answer, Answer::NotObserved { .. }));
}

#[test]
fn a_refusal_names_the_comparisons_that_refused() {
    let answer = judge(
        "treatment.requests.ok == 2 and treatment.requests.sent == 5 and treatment.throughput.trend == 'falls'",
        &[(OK, N(2.0)), (SENT, N(4.0)), (TREND, word("unclear"))],
    );
    assert_eq!(
        answer,
        Answer::No {
            because: vec![SENT.to_owned(), TREND.to_owned()]
        }
    );
}

#[test]
fn what_the_language_leaves_out_is_refused() {
    for (source, says) in [
        ("", "empty"),
        ("treatment.requests.ok", "not yes or no"),
        ("treatment.requests.ok > 'flat'", "compared with"),
        ("treatment.throughput.trend == 1", "compared with"),
        ("treatment.throughput.trend < 'flat'", "no order"),
        ("treatment.throughput.trend == 'fals'", "not a trend"),
        ("treatment.throughput.trend + 1 == 2", "needs a number"),
        (
            "treatment.requests.ok and treatment.requests.sent > 1",
            "needs yes or no",
        ),
        ("treatment.requests.ok | abs > 1", "filters"),
        ("treatment.requests['ok'] > 1", "not part"),
        ("treatment.requests.ok is defined", "tests"),
        ("1 if treatment.requests.ok > 1 else 0", "conditions"),
        ("treatment.requests.ok > 1 == 2", "can't be chained"),
        ("1 < treatment.requests.ok < 3", "can't be chained"),
        ("treatment.requests.ok = 1", "not a comparison"),
        (
            "treatment.requests.ok > 1 && treatment.requests.sent > 1",
            "not an operator",
        ),
        ("(treatment.requests.ok > 1", "not closed"),
        ("treatment.requests.ok > 1)", "closes nothing"),
        ("treatment.requests.ok >", "ends where"),
        ("treatment.requests.ok 1", "operator is missing"),
        ("treatment.throughput.fall > 20%", "not a number"),
        ("min(treatment.requests.ok, 1) > 0", "a call"),
        ("treatment.windows == 1", "not argued with"),
        (
            "treatment.throughput.described.theil_sen < 0",
            "not argued with",
        ),
        ("treatment.nonsense > 1", "not a figure"),
        ("treatment..ok > 1", "empty part"),
        ("'flat", "does not end"),
    ] {
        let errors = parse(source).unwrap_err();
        assert!(errors[0].message.contains(says), "{source}: {errors:?}");
    }
}

#[test]
fn all_wrong_figures_are_told_at_once() {
    let errors =
        parse("treatment.a > 1 and control.b == 2 or treatment.pruned.job > 0").unwrap_err();
    assert_eq!(errors.len(), 3);
}

#[test]
fn deep_nesting_is_refused_without_exhausting_the_stack() {
    for deep in ["(".repeat(5_000), "not ".repeat(2_000), "-".repeat(5_000)] {
        let errors = parse(&deep).unwrap_err();
        assert!(errors[0].message.contains("deeper"), "{errors:?}");
    }
    assert!(parse(&"(".repeat(20_000)).is_err());
}

proptest! {
    #[test]
    fn no_text_panics_and_spans_lie_inside(source in "[a-z0-9.()'<>=! +*/|é-]{0,60}") {
        if let Err(errors) = parse(&source) {
            for error in errors {
                prop_assert!(source.get(error.span.clone()).is_some(), "{error:?}");
            }
        }
    }

    #[test]
    fn a_missing_figure_never_becomes_a_yes_or_no(
        operator in prop::sample::select(vec!["==", "!=", "<", "<=", ">", ">="]),
        join in prop::sample::select(vec!["and", "or"]),
        negate in any::<bool>(),
        other in -5.0..5.0f64,
    ) {
        let not = if negate { "not " } else { "" };
        let source = format!("{not}(treatment.requests.ok {operator} 1 {join} treatment.requests.sent > 0)");
        let answer = judge(&source, &[(SENT, N(other))]);
        let not_observed = matches!(answer, Answer::NotObserved { .. });
        prop_assert!(not_observed);
    }
}
