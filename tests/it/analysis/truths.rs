//! What is planted must be found, and nothing else.

use ceteris::analysis::Verdict;
use ceteris::analysis::summary::{FigureValue, RunEnd, Summary, Word};
use ceteris::measure::{Counts, FailureClass};
use ceteris::name::Arm;
use ceteris::results::read_run;

use super::made::{EXPERIMENT, Made};
use super::play::Play;

fn number(summary: &Summary, name: &str) -> f64 {
    match summary.figures.get(name) {
        Some(FigureValue::Number(number)) => *number,
        other => panic!("{name}: {other:?}, {:?}", summary.not_observed.get(name)),
    }
}

fn table_story() -> Made {
    Made::run(
        EXPERIMENT,
        &[
            Play::decays(Arm::Treatment, 1_600.0, 0.33),
            Play::flat(Arm::Control, 1_700.0),
        ],
    )
}

#[test]
fn a_planted_decay_beside_a_flat_control_is_the_tables() {
    let summary = table_story().judged();
    assert!(summary.validity.valid, "{:?}", summary.validity);
    for gate in &summary.gates {
        assert!(gate.verdict.is_supported(), "{gate:?}");
    }
    let word = |arm: Arm| summary.arms.get(arm).as_ref().map(|a| a.throughput.word);
    assert_eq!(word(Arm::Treatment), Some(Word::Falls));
    assert_eq!(word(Arm::Control), Some(Word::Flat));
    assert_eq!(summary.explanations[0].verdict, Verdict::Supported);
    assert_eq!(summary.explanations[1].verdict, Verdict::Refuted);
    assert!(summary.difference.took_effect.verdict.is_supported());
    assert!(summary.difference.same_start.is_supported());
    for claim in &summary.claims {
        assert!(claim.verdict.is_supported(), "{claim:?}");
        assert!(claim.also_survive.is_empty());
    }
    assert!(
        summary.claims[1]
            .text
            .starts_with("the decay follows the table: it fell 6")
    );
    assert_eq!(summary.exit_code, 0);
    assert!(
        summary
            .limits
            .iter()
            .any(|l| l.text.contains("synchronous_commit"))
    );
    assert!(summary.limits.iter().any(|l| l.from_author));
}

#[test]
fn when_both_decay_the_table_is_refuted_and_the_runtime_survives() {
    let summary = Made::run(
        EXPERIMENT,
        &[
            Play::decays(Arm::Treatment, 2_300.0, 0.4),
            Play::decays(Arm::Control, 2_500.0, 0.35),
        ],
    )
    .judged();
    assert_eq!(summary.explanations[0].verdict, Verdict::Refuted);
    assert_eq!(summary.explanations[1].verdict, Verdict::Supported);
    assert_eq!(summary.claims[1].verdict, Verdict::Refuted);
    assert!(
        summary.claims[1]
            .refused_by
            .iter()
            .any(|r| r.contains("control.throughput.trend is falls")),
        "{:?}",
        summary.claims[1].refused_by
    );
    assert_eq!(summary.exit_code, 0);
}

#[test]
fn when_neither_decays_both_are_refuted() {
    let summary = Made::run(
        EXPERIMENT,
        &[
            Play::flat(Arm::Treatment, 1_700.0),
            Play::flat(Arm::Control, 1_700.0),
        ],
    )
    .judged();
    for explanation in &summary.explanations {
        assert_eq!(explanation.verdict, Verdict::Refuted);
    }
    let between = summary.between.unwrap();
    assert!(!between.trends_differ, "{between:?}");
    assert_eq!(between.beyond_noise_last, Some(false));
}

#[test]
fn totals_are_the_sums_of_the_stored_seconds() {
    let made = Made::run(
        EXPERIMENT,
        &[
            Play {
                failed: Box::new(|s| {
                    if s % 40 == 7 {
                        vec![(FailureClass::Status503, 2), (FailureClass::Timeout, 1)]
                    } else {
                        Vec::new()
                    }
                }),
                ..Play::decays(Arm::Treatment, 1_600.0, 0.5)
            },
            Play::flat(Arm::Control, 1_700.0),
        ],
    );
    let summary = made.judged();
    let run = read_run(&made.folder).unwrap();
    for trial in &run.trials {
        let mut sum = Counts::default();
        for row in trial.seconds.iter() {
            sum.add(&row.counts);
        }
        let arm = trial.arm;
        let figure = |rest: &str| number(&summary, &format!("{arm}.{rest}")) as u64;
        assert_eq!(figure("requests.sent"), sum.sent);
        assert_eq!(
            sum.sent,
            figure("requests.ok") + figure("requests.failed") + figure("requests.cut")
        );
        let by_class: u64 = FailureClass::ALL
            .iter()
            .filter(|c| **c != FailureClass::Status503)
            .map(|c| figure(&format!("failures.{c}")))
            .sum();
        assert_eq!(by_class, figure("requests.failed"));
        let steps = figure("requests.steps.list.ok") + figure("requests.steps.create.ok");
        assert_eq!(steps, figure("requests.ok"));
        let windows = &summary.arms.get(arm).as_ref().unwrap().windows;
        assert_eq!(windows.len(), 6);
        assert_eq!(windows.iter().map(|w| w.ok).sum::<u64>(), sum.ok);
        assert_eq!(
            windows.iter().map(|w| w.failed).sum::<u64>(),
            sum.failed_total()
        );
        for window in windows {
            assert!(window.p50 <= window.p99 && window.p99 <= window.max);
        }
    }
    assert_eq!(number(&summary, "treatment.failures.status_5xx"), 6.0);
    assert_eq!(number(&summary, "treatment.failures.status_503"), 6.0);
    assert_eq!(number(&summary, "treatment.failures.timeout"), 3.0);
    assert_eq!(summary.exit_code, 1, "a criterion does not hold");
}

#[test]
fn windows_and_arm_read_their_quantiles_from_merged_histograms() {
    let made = table_story();
    let summary = made.judged();
    let run = read_run(&made.folder).unwrap();
    let trial = run.trials.iter().find(|t| t.arm == Arm::Treatment).unwrap();
    let merged = |from: f64, to: f64| {
        let mut all = hdrhistogram::Histogram::<u64>::new(3).unwrap();
        for interval in trial.latency.intervals() {
            let interval = interval.unwrap();
            if interval.from_s >= from && interval.from_s < to {
                all.add(&interval.histogram).unwrap();
            }
        }
        all
    };
    let windows = &summary.arms.treatment.as_ref().unwrap().windows;
    for window in windows {
        let by_hand = merged(window.from_s, window.to_s);
        let ms = |q: f64| Some(by_hand.value_at_quantile(q) as f64 / 1e3);
        assert_eq!(window.p50, ms(0.5));
        assert_eq!(window.p99, ms(0.99));
        assert_eq!(window.max, Some(by_hand.max() as f64 / 1e3));
    }
    let whole = merged(0.0, 1e9);
    assert_eq!(
        number(&summary, "treatment.latency.p99"),
        whole.value_at_quantile(0.99) as f64 / 1e3
    );
    assert_eq!(
        number(&summary, "treatment.latency.p99_last"),
        merged(100.0, 120.0).value_at_quantile(0.99) as f64 / 1e3
    );
}

#[test]
fn a_run_whose_every_request_is_refused_supports_nothing() {
    let summary = Made::run(
        EXPERIMENT,
        &[Play::refused(Arm::Treatment), Play::refused(Arm::Control)],
    )
    .judged();
    assert!(summary.criteria.iter().all(|c| c.verdict.is_supported()));
    assert!(!summary.validity.valid);
    assert_eq!(summary.exit_code, 3);
    for claim in &summary.claims {
        assert!(matches!(claim.verdict, Verdict::Invalid(_)), "{claim:?}");
    }
    for explanation in &summary.explanations {
        assert!(matches!(explanation.verdict, Verdict::Invalid(_)));
    }
    assert!(!summary.figures.contains_key("treatment.latency.p50"));
    assert!(!summary.figures.contains_key("ratio.throughput"));
    finite(&summary);
}

/// No figure that is no number, and JSON that reads back the same.
fn finite(summary: &Summary) {
    for (name, value) in &summary.figures {
        if let FigureValue::Number(number) = value {
            assert!(number.is_finite(), "{name}");
        }
    }
    let json = serde_json::to_string(summary).unwrap();
    let back: Summary = serde_json::from_str(&json).unwrap();
    assert_eq!(&back, summary);
}

#[test]
fn an_arm_without_a_request_or_with_three_seconds_has_no_invented_number() {
    for play in [
        Play {
            ok: Box::new(|_| 0),
            accounted: 0.0,
            ..Play::flat(Arm::Treatment, 0.0)
        },
        Play {
            seconds: 3,
            ..Play::flat(Arm::Treatment, 3.0)
        },
    ] {
        let summary = Made::run(EXPERIMENT, &[play, Play::flat(Arm::Control, 900.0)]).judged();
        finite(&summary);
        assert_eq!(
            summary.arms.treatment.as_ref().unwrap().throughput.word,
            Word::Unclear
        );
        assert!(!summary.claims[1].verdict.is_supported());
    }
}

#[test]
fn an_interrupted_run_keeps_what_was_measured() {
    let summary = Made::ended(
        EXPERIMENT,
        &[Play::decays(Arm::Treatment, 1_600.0, 0.33)],
        Some("interrupted"),
    )
    .judged();
    assert_eq!(summary.exit_code, 130);
    assert_eq!(summary.run.ended, RunEnd::Interrupted);
    assert_eq!(
        summary.arms.treatment.as_ref().unwrap().throughput.word,
        Word::Falls
    );
    assert!(summary.arms.control.is_none());
    assert!(summary.not_observed.contains_key("control"));
    assert!(summary.claims.iter().all(|c| !c.verdict.is_supported()));
    finite(&summary);
}

#[test]
fn a_killed_run_reads_back_and_is_not_whole() {
    let summary = Made::ended(
        EXPERIMENT,
        &[
            Play::flat(Arm::Control, 1_600.0),
            Play {
                seconds: 47,
                finished: false,
                ..Play::flat(Arm::Treatment, 1_600.0)
            },
        ],
        None,
    )
    .judged();
    assert_eq!(summary.exit_code, 3);
    assert_eq!(summary.run.ended, RunEnd::Unfinished);
    let treatment = summary.arms.treatment.as_ref().unwrap();
    assert_eq!(treatment.seconds, 47.0);
    assert_eq!(treatment.windows.len(), 3);
    assert_eq!(treatment.windows[2].to_s, 47.0);
    finite(&summary);
}

#[test]
fn a_smoke_run_passes_and_is_never_evidence() {
    let made = Made::run(
        EXPERIMENT,
        &[
            Play {
                seconds: 20,
                ..Play::flat(Arm::Treatment, 1_600.0)
            },
            Play {
                seconds: 20,
                ..Play::flat(Arm::Control, 1_600.0)
            },
        ],
    )
    .with_manifest(|m| m.smoke_s = Some(20.0));
    let summary = made.judged();
    assert_eq!(summary.exit_code, 0, "{:?}", summary.validity);
    assert!(summary.run.smoke);
    assert!(summary.claims.iter().all(|c| !c.verdict.is_supported()));
    assert!(summary.arms.treatment.as_ref().unwrap().windows.len() >= 6);
}
