//! What bars statements: gates, a change that did not take effect, a second difference, a rival, unknown run-to-run noise.

use ceteris::analysis::Verdict;
use ceteris::analysis::summary::{Gate, Summary};
use ceteris::measure::{Equality, EqualityItem, EventKind, FailureClass};
use ceteris::name::Arm;

use super::made::{EXPERIMENT, Made};
use super::play::{Play, at};

fn table_story(text: &str) -> Made {
    Made::run(
        text,
        &[
            Play::decays(Arm::Treatment, 1_600.0, 0.33),
            Play::flat(Arm::Control, 1_700.0),
        ],
    )
}

fn with_treatment(change: impl FnOnce(&mut Play)) -> Summary {
    let mut treatment = Play::decays(Arm::Treatment, 1_600.0, 0.33);
    change(&mut treatment);
    Made::run(EXPERIMENT, &[treatment, Play::flat(Arm::Control, 1_700.0)]).judged()
}

fn failed(summary: &Summary) -> Vec<&Gate> {
    summary
        .gates
        .iter()
        .filter(|g| !g.verdict.is_supported())
        .collect()
}

#[test]
fn a_change_that_did_not_take_effect_leaves_nothing_between_the_arms() {
    let mut control = Play::flat(Arm::Control, 1_700.0);
    control.pruned = 0;
    let summary = Made::run(
        EXPERIMENT,
        &[Play::decays(Arm::Treatment, 1_600.0, 0.33), control],
    )
    .judged();
    assert!(summary.validity.valid, "{:?}", summary.validity);
    assert_eq!(failed(&summary)[0].number, 7);
    for explanation in &summary.explanations {
        assert_eq!(
            explanation.verdict,
            Verdict::Undetermined("not_applied".into())
        );
    }
    // Each arm's own count stands; the causal claim does not.
    assert!(summary.claims[0].verdict.is_supported());
    assert!(!summary.claims[1].verdict.is_supported());
}

#[test]
fn an_undeclared_difference_makes_the_run_invalid() {
    let difference = |verdict: Equality| EqualityItem {
        what: "db: setting work_mem".into(),
        treatment: "4MB".into(),
        control: "8MB".into(),
        verdict,
    };
    let undeclared = table_story(EXPERIMENT)
        .with_manifest(|m| m.equality.push(difference(Equality::Undeclared)))
        .judged();
    assert_eq!(undeclared.exit_code, 3);
    assert!(undeclared.validity.reasons[0].contains("work_mem"));
    let permitted = table_story(EXPERIMENT)
        .with_manifest(|m| m.equality.push(difference(Equality::Permitted("x".into()))))
        .judged();
    assert_eq!(permitted.exit_code, 0);
    assert!(!permitted.claims[1].verdict.is_supported());
    assert!(permitted.limits.iter().any(|l| l.text.contains("work_mem")));
    let uncompared = table_story(EXPERIMENT)
        .with_manifest(|m| m.equality.clear())
        .judged();
    assert_eq!(uncompared.exit_code, 3, "absent is never agreeing");
}

#[test]
fn clients_whose_time_is_not_accounted_for_bar_their_arm() {
    let summary = with_treatment(|play| play.accounted = 7.0);
    assert_eq!(failed(&summary)[0].number, 5);
    assert!(summary.claims.iter().all(|c| !c.verdict.is_supported()));
    assert!(matches!(
        summary.explanations[0].verdict,
        Verdict::Undetermined(_)
    ));
    assert_eq!(summary.exit_code, 1, "a barred criterion does not hold");
}

#[test]
fn a_driver_at_its_limit_bars_latency_alone() {
    let text = format!(
        "{EXPERIMENT}\n[[claim]]\ntext = \"fast\"\nwhen = \"treatment.latency.p99 < 1000\"\n"
    );
    let mut treatment = Play::decays(Arm::Treatment, 1_600.0, 0.33);
    treatment.delay_us = 900.0;
    let summary = Made::run(&text, &[treatment, Play::flat(Arm::Control, 1_700.0)]).judged();
    assert_eq!(failed(&summary)[0].number, 6);
    assert!(summary.claims[0].verdict.is_supported());
    assert!(summary.claims[1].verdict.is_supported());
    assert_eq!(summary.claims[2].verdict, Verdict::Invalid("gate_6".into()));
}

#[test]
fn a_service_that_died_and_clocks_apart_make_the_run_invalid() {
    let died = with_treatment(|play| {
        play.events.push(at(
            60.0,
            EventKind::ServiceExited {
                service: "app".into(),
                status: "signal 9".into(),
                expected: false,
                log_tail: Vec::new(),
            },
        ));
    });
    assert_eq!(died.exit_code, 3);
    assert!(died.validity.reasons[0].contains("app ended after 60 s"));
    let apart = with_treatment(|play| play.wall_offset_s = 0.5);
    assert!(
        apart.validity.reasons[0].contains("clock"),
        "{:?}",
        apart.validity
    );
}

#[test]
fn too_many_failures_make_the_run_invalid_and_503_is_in_5xx() {
    let summary = with_treatment(|play| {
        play.failed = Box::new(|_| vec![(FailureClass::Status503, 100)]);
    });
    assert_eq!(failed(&summary)[0].number, 2);
    assert_eq!(summary.exit_code, 3);
}

#[test]
fn without_run_to_run_variation_one_pair_proves_no_cause() {
    let text = EXPERIMENT.replace("run_sd = \"10%\"\n", "");
    let summary = table_story(&text).judged();
    assert_eq!(summary.explanations[0].verdict, Verdict::Supported);
    assert!(!summary.claims[1].verdict.is_supported());
    let between = summary.between.unwrap();
    let wording = &between.wording;
    assert!(
        wording.ends_with("in this one pair; run-to-run variation was not measured"),
        "{wording}"
    );
    assert!(between.trends_differ);
    // A noisy machine: 3 √2 of 40 % is more than these rates differ by.
    let noisy = EXPERIMENT.replace("run_sd = \"10%\"", "run_sd = \"40%\"");
    let summary = table_story(&noisy).judged();
    assert_eq!(summary.between.unwrap().beyond_noise_last, Some(false));
    assert!(!summary.claims[1].verdict.is_supported());
}

#[test]
fn a_rival_with_the_same_row_bars_the_cause() {
    let text = format!(
        "{EXPERIMENT}\n[[explanation]]\nname = \"the disk\"\nbecause = \"it fills\"\npredicts = {{ throughput = {{ treatment = \"falls\", control = \"flat\" }} }}\n"
    );
    let summary = table_story(&text).judged();
    assert!(!summary.claims[1].verdict.is_supported());
    assert_eq!(summary.claims[1].also_survive, ["the disk"]);
}

#[test]
fn a_ratio_is_claimed_only_beyond_the_noise_between_runs() {
    let with = |sd: &str| {
        let text = EXPERIMENT.replace("run_sd = \"10%\"", &format!("run_sd = \"{sd}\""));
        let text =
            format!("{text}\n[[claim]]\ntext = \"more\"\nwhen = \"ratio.throughput > 1.2\"\n");
        table_story(&text).judged().claims[2].verdict.is_supported()
    };
    assert!(with("5%"));
    assert!(!with("20%"));
}

#[test]
fn a_figure_that_was_not_observed_is_no_pass() {
    let text = format!(
        "{EXPERIMENT}\n[[criterion]]\nname = \"small\"\nholds = \"arm.services.app.memory.pss < 100 or arm.failures.status_5xx == 0\"\n"
    );
    let summary = table_story(&text).judged();
    let small: Vec<&Verdict> = summary
        .criteria
        .iter()
        .filter(|c| c.name == "small")
        .map(|c| &c.verdict)
        .collect();
    assert_eq!(small.len(), 2);
    assert!(small.iter().all(|v| matches!(v, Verdict::NotObserved(_))));
    assert_eq!(summary.exit_code, 1);
}

/// Whether a claim of these lines is supported, and what refused it.
fn claimed(text: &str, plays: &[Play], claim: &str) -> (Verdict, String) {
    let text = format!("{text}\n[[claim]]\n{claim}\n");
    let summary = Made::run(&text, plays).judged();
    let last = summary.claims.last().unwrap();
    (last.verdict.clone(), last.refused_by.join("; "))
}

#[test]
fn a_cause_needs_the_difference_that_its_row_predicts() {
    // Both fall, one by more: the row that predicts falls in both explains no difference.
    let both_fall = [
        Play::decays(Arm::Treatment, 1_600.0, 0.2),
        Play::decays(Arm::Control, 1_700.0, 0.6),
    ];
    let claim = r#"text = "the runtime did it"
when = "treatment.throughput.trend == 'falls' and control.throughput.trend == 'falls'"
explanation = "the runtime""#;
    let (verdict, why) = claimed(EXPERIMENT, &both_fall, claim);
    assert!(!verdict.is_supported());
    assert!(
        why.contains("predicts no difference between the arms' throughput"),
        "{why}"
    );
    // The treatment falls as predicted, from so high that it ends above the control.
    let from_above = [
        Play::decays(Arm::Treatment, 9_000.0, 0.33),
        Play::flat(Arm::Control, 700.0),
    ];
    let claim = r#"text = "the table did it"
when = "treatment.throughput.trend == 'falls' and control.throughput.trend == 'flat'"
explanation = "the table""#;
    let (verdict, why) = claimed(EXPERIMENT, &from_above, claim);
    assert!(!verdict.is_supported());
    assert!(
        why.contains("the end rates differ the other way round"),
        "{why}"
    );
}

#[test]
fn what_a_text_prints_is_barred_as_what_its_condition_compares() {
    let plays = || {
        [
            Play::decays(Arm::Treatment, 1_600.0, 0.33),
            Play::flat(Arm::Control, 1_700.0),
        ]
    };
    let claim = r#"text = "{{ ratio.throughput }} times as fast"
when = "treatment.requests.ok > 0""#;
    assert!(claimed(EXPERIMENT, &plays(), claim).0.is_supported());
    let unknown = EXPERIMENT.replace("run_sd = \"10%\"\n", "");
    assert!(!claimed(&unknown, &plays(), claim).0.is_supported());
    let claim = r#"text = "{{ control.services.app.memory.pss }} MiB are enough"
when = "treatment.requests.ok > 0""#;
    let (verdict, why) = claimed(EXPERIMENT, &plays(), claim);
    assert!(matches!(verdict, Verdict::NotObserved(_)), "{verdict:?}");
    assert!(why.contains("its text prints a figure"), "{why}");
}

#[test]
fn every_comparison_between_arms_counts_in_either_order() {
    let rates = "control.throughput.mean > treatment.throughput.mean";
    let waits = "control.latency.p99 <= treatment.latency.p99";
    for when in [
        format!("{rates} and {waits}"),
        format!("{waits} and {rates}"),
    ] {
        let plays = [
            Play::decays(Arm::Treatment, 1_600.0, 0.33),
            Play::flat(Arm::Control, 1_700.0),
        ];
        let claim = format!("text = \"better\"\nwhen = \"{when}\"");
        let (verdict, why) = claimed(EXPERIMENT, &plays, &claim);
        assert_eq!(
            verdict,
            Verdict::Undetermined("run_to_run_variation".into())
        );
        assert!(why.contains("was not measured"), "{why}");
    }
}

#[test]
fn a_ratio_is_barred_with_either_of_its_arms() {
    let text = format!(
        "{EXPERIMENT}\n[[criterion]]\nname = \"more\"\nholds = \"ratio.throughput > 1.2\"\n\n[[claim]]\ntext = \"more\"\nwhen = \"ratio.throughput > 1.2\"\n"
    );
    let plays = |change: fn(&mut Play)| {
        let mut control = Play::flat(Arm::Control, 1_700.0);
        change(&mut control);
        [Play::decays(Arm::Treatment, 1_600.0, 0.33), control]
    };
    let more = |summary: &Summary| {
        let more = summary.criteria.iter().find(|c| c.name == "more").unwrap();
        more.verdict.clone()
    };
    let whole = Made::run(&text, &plays(|_| ())).judged();
    assert!(more(&whole).is_supported());
    let barred = Made::run(&text, &plays(|control| control.accounted = 7.0)).judged();
    assert_eq!(more(&barred), Verdict::Undetermined("gate_5".into()));
    assert_eq!(barred.claims[2].verdict, Verdict::Invalid("gate_5".into()));
    let unapplied = Made::run(&text, &plays(|control| control.pruned = 0)).judged();
    assert_eq!(
        more(&unapplied),
        Verdict::Undetermined("not_applied".into())
    );
    assert_eq!(unapplied.exit_code, 1);
}

#[test]
fn a_step_whose_requests_may_have_timed_out_has_no_high_quantile() {
    let summary = with_treatment(|play| {
        play.failed = Box::new(|_| vec![(FailureClass::Timeout, 6)]);
    });
    assert!(summary.validity.valid, "{:?}", summary.validity);
    assert!(
        summary
            .figures
            .contains_key("treatment.latency.steps.create.p50")
    );
    assert!(
        !summary
            .figures
            .contains_key("treatment.latency.steps.create.p99")
    );
    let why = &summary.not_observed["treatment.latency.steps.create.p99"];
    assert!(why.contains("may belong to this step"), "{why}");
    assert!(
        summary
            .figures
            .contains_key("control.latency.steps.create.p99")
    );
}
