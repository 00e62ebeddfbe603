//! Summaries built by hand, with numbers as a real run has them.

use std::collections::BTreeMap;

use ceteris::analysis::summary::*;
use ceteris::analysis::{Summary, Verdict};
use ceteris::experiment::Header;
use ceteris::name::{Arm, Arms};

mod arm;
mod kinds;
mod parts;

pub use kinds::*;

use arm::{arm, trend};
use parts::{difference, gates, setup, trial};

pub fn both<T>(treatment: T, control: T) -> Arms<T> {
    Arms { treatment, control }
}

fn figures(arms: &Arms<Option<ArmSummary>>) -> BTreeMap<String, FigureValue> {
    let mut figures = BTreeMap::new();
    let mut set = |arm: Arm, name: &str, value: f64| {
        figures.insert(format!("{arm}.{name}"), FigureValue::Number(value));
    };
    for (arm, seen) in arms.iter() {
        let Some(seen) = seen else { continue };
        let ok: u64 = seen.windows.iter().map(|w| w.ok).sum();
        let failed: u64 = seen.windows.iter().map(|w| w.failed).sum();
        set(arm, "requests.ok", ok as f64);
        set(arm, "requests.failed", failed as f64);
        set(arm, "requests.cut", 8.0);
        set(arm, "requests.sent", (ok + failed + 8) as f64);
        set(arm, "requests.not_sent", 0.0);
        set(arm, "failures.timeout", if failed > 0 { 1.0 } else { 0.0 });
        set(
            arm,
            "failures.status_5xx",
            if failed > 0 { 2.0 } else { 0.0 },
        );
        set(
            arm,
            "failures.status_503",
            if failed > 0 { 2.0 } else { 0.0 },
        );
        set(arm, "throughput.first", seen.windows[0].throughput);
        set(arm, "latency.p99_first", 67.0);
        set(arm, "latency.p99_last", 176.0);
        set(
            arm,
            "throughput.last",
            seen.windows[seen.windows.len() - 1].throughput,
        );
    }
    figures
}

/// The treatment falls, the control is flat, the table's story survives.
pub fn valid() -> Summary {
    let arms = both(
        Some(arm(
            1_662.0,
            560.0,
            120.0,
            20.0,
            trend(Word::Falls, -0.66, 0.016),
            false,
        )),
        Some(arm(
            1_766.0,
            1_780.0,
            120.0,
            20.0,
            trend(Word::Flat, -0.012, 0.021),
            true,
        )),
    );
    let mut summary = Summary {
        schema: SUMMARY_SCHEMA,
        tool: "0.1.0 (3f2a9c1)".into(),
        experiment: Header {
            name: "quickstart".into(),
            title: "Is it the runtime or the table?".into(),
            question: "Throughput falls during a soak. Does the runtime cause it, or the table that nobody prunes?".into(),
            status: Some("invoicing example".into()),
            footer: Some("Questions: see the repository.".into()),
            sources: vec!["https://example.org/soak".into()],
        },
        experiment_sha256: "9c4d".repeat(16),
        run: RunFacts {
            id: "20261130T221500Z-1a2b".into(),
            started: "2026-11-30T22:15:00Z".into(),
            ended: RunEnd::Complete,
            smoke: false,
            null: false,
            seed: 7,
            order: vec![
                trial(1, Arm::Control, "2026-11-30T22:15:20Z", 120.0),
                trial(1, Arm::Treatment, "2026-11-30T22:17:50Z", 120.0),
            ],
            command_line: ["ceteris", "run", "experiments/quickstart.toml"].map(String::from).to_vec(),
            git_commit: Some("3f2a9c1d".into()),
            git_clean: Some(true),
        },
        validity: Validity { valid: true, reasons: Vec::new() },
        exit_code: 0,
        setup: setup(),
        difference: difference(),
        figures: figures(&arms),
        arms,
        pairs: vec![pair(1, Arm::Control, [796.0, 1_775.0], [574.0, 1_786.0])],
        between: Some(Between {
            pairs: 1,
            ratio_last: Some(3.11),
            ratio_mean: Some(2.23),
            ratio_ci95: None,
            sign_flip_p: None,
            trend_difference: Some([-0.65, -0.69, -0.61]),
            trends_differ: true,
            run_sd: Some(0.1),
            run_sd_source: Some("declared in the file, not measured".into()),
            beyond_noise_last: Some(true),
            beyond_noise_mean: Some(true),
            wording: "control ÷ treatment, throughput of the last window: 3.11 in this one pair, which is beyond 3 √2 times the run-to-run standard deviation of 10 % (declared in the file, not measured)".into(),
        }),
        not_observed: BTreeMap::new(),
        gates: gates(),
        criteria: vec![criterion(Arm::Treatment, 0.0), criterion(Arm::Control, 0.0)],
        explanations: Vec::new(),
        claims: vec![
            ClaimResult {
                text: "the decay follows the unpruned table: throughput fell 66 % without pruning and stayed within 20 % with it".into(),
                when: "treatment.throughput.trend == 'falls' and control.throughput.trend == 'flat'".into(),
                explanation: Some("the table".into()),
                verdict: Verdict::Supported,
                refused_by: Vec::new(),
                also_survive: Vec::new(),
                exploratory: false,
            },
            ClaimResult {
                text: "over {{ treatment.requests.ok | count }} requests, not one failed".into(),
                when: "treatment.requests.failed == 0".into(),
                explanation: None,
                verdict: Verdict::Refuted,
                refused_by: vec!["treatment.requests.failed is 3, not 0.".into()],
                also_survive: Vec::new(),
                exploratory: false,
            },
        ],
        limits: vec![
            limit("how much another run would differ: one pair was run; the run-to-run standard deviation is declared in the file, not measured", false),
            limit("anything that takes longer than 2 min: that is how long an arm was observed", false),
            limit("latency under another load than 8 closed-loop clients, no think time: in a closed loop a slow answer holds its client back, so a stall is seen once a client", false),
            limit("other machines, or a network between the parts: clients and services ran on one machine with 2 processors", false),
            limit("a database that waits for the disk at each commit: db ran with synchronous_commit off", false),
            limit("that every table must be pruned: one schema and one query mix were run", true),
        ],
        actions: Vec::new(),
        probe: None,
        micro: Vec::new(),
        notes: vec![Note {
            at_s: Some(60.0),
            written: "2026-12-01T08:00:00Z".into(),
            text: "A backup ran on the same host around this time.".into(),
        }],
    };
    judge(&mut summary, Word::Falls, Word::Flat);
    summary
}

pub fn limit(text: &str, from_author: bool) -> LimitResult {
    LimitResult {
        text: text.into(),
        from_author,
    }
}

pub fn pair(pair: u32, first: Arm, mean: [f64; 2], last: [f64; 2]) -> PairSummary {
    PairSummary {
        pair,
        first,
        mean: both(Some(mean[0]), Some(mean[1])),
        last: both(Some(last[0]), Some(last[1])),
        trend: both(Some(Word::Falls), Some(Word::Flat)),
    }
}

pub fn criterion(arm: Arm, observed: f64) -> CriterionResult {
    CriterionResult {
        name: "no unexpected body".into(),
        holds: "arm.failures.unexpected_body == 0".into(),
        arm,
        verdict: if observed == 0.0 {
            Verdict::Supported
        } else {
            Verdict::Refuted
        },
        observed: BTreeMap::from([(
            format!("{arm}.failures.unexpected_body"),
            Some(FigureValue::Number(observed)),
        )]),
    }
}
