//! Summaries built by hand, with numbers as a real run has them.

use std::collections::BTreeMap;

use ceteris::analysis::summary::*;
use ceteris::analysis::{Summary, Verdict};
use ceteris::experiment::{Header, Pick, TrendWord};
use ceteris::measure::{Equality, EqualityItem, MachineFacts, ServiceFacts};
use ceteris::name::{Arm, Arms};
use ceteris::report::KeptRun;
use serde_json::json;

pub fn both<T>(treatment: T, control: T) -> Arms<T> {
    Arms { treatment, control }
}

/// A small generator of noise, the same on every machine.
fn noise(seed: u64) -> impl FnMut() -> f64 {
    let mut state = seed;
    move || {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) as f64 / f64::from(1_u32 << 31) - 0.5
    }
}

pub fn trend(word: Word, estimate: f64, half: f64) -> TrendFinding {
    TrendFinding {
        word,
        reason: match word {
            Word::Flat => "inside_margin",
            Word::Falls => "below_margin",
            Word::Rises => "above_margin",
            Word::Unclear => "wide",
        }
        .into(),
        rule: "linear".into(),
        margin: 0.2,
        estimate: Some(estimate),
        ci90: Some([estimate - half, estimate + half]),
        ci95: Some([estimate - 1.2 * half, estimate + 1.2 * half]),
        n: 120,
        bin_s: 1.0,
        n_eff: Some(71.0),
        smallest_flat_margin: Some(estimate.abs() + half),
        more_s: (word == Word::Unclear).then_some(540.0),
        warmup: "declared warm-up only".into(),
        detail: json!({}),
    }
}

fn series(
    name: &str,
    unit: &str,
    first: f64,
    last: f64,
    trend: Option<TrendFinding>,
) -> SeriesSummary {
    SeriesSummary {
        name: name.into(),
        unit: unit.into(),
        first,
        last,
        min: first.min(last),
        max: first.max(last),
        not_judged: trend.is_none().then(|| "described".into()),
        trend,
    }
}

/// An arm whose rate goes from `from` to `to` over `seconds`.
pub fn arm(
    from: f64,
    to: f64,
    seconds: f64,
    window: f64,
    finding: TrendFinding,
    pruned: bool,
) -> ArmSummary {
    let mut wobble = noise(7 + from as u64);
    let points = 120;
    let bin = seconds / f64::from(points);
    let curve = |share: f64| to + (from - to) * (1.0 - share).powi(2);
    let throughput: Vec<f64> = (0..points)
        .map(|i| (curve(f64::from(i) / f64::from(points)) * (1.0 + 0.1 * wobble())).round())
        .collect();
    let latency = |factor: f64| -> Vec<Option<f64>> {
        throughput
            .iter()
            .map(|x| Some((factor * 8_000.0 / x).round() / 10.0))
            .collect()
    };
    let count = (seconds / window).round() as u32;
    let windows = (0..count)
        .map(|i| {
            let rate = curve((f64::from(i) + 0.5) / f64::from(count)).round();
            WindowRow {
                from_s: f64::from(i) * window,
                to_s: f64::from(i + 1) * window,
                ok: (rate * window) as u64,
                throughput: rate,
                p50: Some(1.2),
                p99: Some((100_000.0 / rate).round()),
                max: Some((200_000.0 / rate).round()),
                failed: u64::from(!pruned && i == 2) * 3,
            }
        })
        .collect();
    let rows = |i: f64| if pruned { 900.0 } else { 500.0 * i };
    let sampled = |make: &dyn Fn(f64) -> f64| -> Vec<(f64, f64)> {
        (0..=40)
            .map(|i| (seconds * f64::from(i) / 40.0, make(f64::from(i))))
            .collect()
    };
    let last_rows = rows(40.0);
    let histogram = |shift: f64| -> Vec<(f64, u64)> {
        (0..24)
            .map(|i| {
                let x = f64::from(i);
                let bell = (-(x - 6.0 - shift).powi(2) / 18.0).exp() * 9_000.0;
                (
                    (0.25 * 1.5_f64.powi(i) * 100.0).round() / 100.0,
                    bell as u64,
                )
            })
            .collect()
    };
    let episodes = if pruned {
        Vec::new()
    } else {
        vec![Episode {
            pair: 1,
            from_s: (seconds * 0.4) as u64,
            to_s: (seconds * 0.4) as u64 + 3,
            bad_seconds: 2,
            failed: BTreeMap::from([("timeout".into(), 1), ("status_503".into(), 2)]),
            throughput: 210.0,
            median_throughput: 845.0,
            coincides: vec!["checkpoint of db at 0:47".into()],
            beside: vec!["CPU of db 0.4 cores inside, 1.1 outside".into()],
        }]
    };
    ArmSummary {
        seconds,
        windows,
        throughput: finding,
        series: vec![
            series(
                "services.app.cpu_ms_per_request",
                "ms",
                0.21,
                0.22,
                Some(trend(Word::Flat, 0.03, 0.02)),
            ),
            series("services.app.memory.rss", "MiB", 14.2, 15.1, None),
            series("services.app.memory.pss", "MiB", 11.0, 11.8, None),
            series("services.app.memory.cgroup", "MiB", 12.5, 13.6, None),
            series(
                "services.app.descriptors",
                "count",
                24.0,
                24.0,
                Some(trend(Word::Flat, 0.0, 0.0)),
            ),
            series(
                "services.db.cpu_ms_per_request",
                "ms",
                0.9,
                if pruned { 0.91 } else { 2.8 },
                None,
            ),
            series(
                "services.db.sql_per_request",
                "count",
                2.4,
                2.4,
                Some(trend(Word::Flat, 0.001, 0.004)),
            ),
            series("services.db.table.jobs.rows", "rows", 0.0, last_rows, None),
            series("host.busy", "cores", 1.91, 1.93, None),
            series("host.steal", "cores", 0.0, 0.01, None),
        ],
        episodes,
        bad_seconds: if pruned { 0 } else { 2 },
        slow_seconds: if pruned { 0 } else { 1 },
        clean_requests: ((from + 2.0 * to) / 3.0 * seconds) as u64,
        clean_hours: seconds / 3_600.0,
        littles: Some(Littles {
            ratio: 1.002,
            overhead: 0.011,
            stalled_s: if pruned { 0.0 } else { 12.4 },
        }),
        failure_examples: if pruned {
            Vec::new()
        } else {
            vec![FailureExample {
                at_s: seconds * 0.4,
                step: "create".into(),
                class: "status_503".into(),
                status: Some(503),
                said: "{\"error\":\"pool is busy\"}".into(),
            }]
        },
        plot: Plot {
            bin_s: bin,
            p50: throughput.iter().map(|_| Some(1.2)).collect(),
            p99: latency(12.0),
            max: latency(24.0),
            sampled: BTreeMap::from([
                (
                    "services.app.memory.rss".into(),
                    sampled(&|i| 14.2 + 0.02 * i),
                ),
                (
                    "services.app.memory.pss".into(),
                    sampled(&|i| 11.0 + 0.02 * i),
                ),
                (
                    "services.app.memory.cgroup".into(),
                    sampled(&|i| 12.5 + 0.03 * i),
                ),
                (
                    "services.db.memory.pss".into(),
                    sampled(&|i| 92.0 + 0.6 * i),
                ),
                (
                    "services.db.memory.cgroup".into(),
                    sampled(&|i| 120.0 + 1.1 * i),
                ),
                ("services.db.table.jobs.rows".into(), sampled(&rows)),
            ]),
            prunes: if pruned {
                (1..120).map(|i| f64::from(i) * bin).collect()
            } else {
                Vec::new()
            },
            actions: Vec::new(),
            first_histogram: histogram(0.0),
            last_histogram: histogram(if pruned { 0.0 } else { 5.0 }),
            throughput,
        },
    }
}

fn prediction(arm: Arm, predicted: TrendWord, observed: Word) -> PredictionResult {
    PredictionResult {
        figure: "throughput".into(),
        arm,
        predicted,
        observed: Some(observed),
        verdict: if observed.is(predicted) {
            Verdict::Supported
        } else if observed == Word::Unclear {
            Verdict::Undetermined("wide".into())
        } else {
            Verdict::Refuted
        },
    }
}

/// Sets what both arms did in throughput, and judges the two explanations by it.
pub fn judge(summary: &mut Summary, treatment: Word, control: Word) {
    let explanation = |name: &str, because: &str, predicted: [TrendWord; 2]| {
        let predictions = vec![
            prediction(Arm::Treatment, predicted[0], treatment),
            prediction(Arm::Control, predicted[1], control),
        ];
        ExplanationResult {
            name: name.into(),
            because: because.into(),
            verdict: predictions.iter().fold(Verdict::Supported, |worst, p| {
                worst.worst(p.verdict.clone())
            }),
            predictions,
        }
    };
    summary.explanations = vec![
        explanation(
            "the table",
            "rows, indexes, WAL and vacuum grow, so each request waits longer for PostgreSQL",
            [TrendWord::Falls, TrendWord::Flat],
        ),
        explanation(
            "the runtime",
            "something it owns grows and is walked once per request",
            [TrendWord::Falls, TrendWord::Falls],
        ),
    ];
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
        set(
            arm,
            "throughput.last",
            seen.windows[seen.windows.len() - 1].throughput,
        );
    }
    figures
}

fn gates() -> Vec<Gate> {
    let gate = |number, name: &str, arm, detail: &str, blocks: &str| Gate {
        number,
        name: name.into(),
        arm,
        verdict: Verdict::Supported,
        detail: detail.into(),
        blocks: blocks.into(),
    };
    vec![
        gate(
            1,
            "each step answers before load",
            None,
            "3 of 3 steps in both arms",
            "everything",
        ),
        gate(
            2,
            "requests are served",
            Some(Arm::Treatment),
            "99.997 % ok, at least 99 % needed",
            "everything",
        ),
        gate(
            2,
            "requests are served",
            Some(Arm::Control),
            "100 % ok, at least 99 % needed",
            "everything",
        ),
        gate(3, "no undeclared difference", None, "0 found", "everything"),
        gate(
            4,
            "samples and clocks are whole",
            None,
            "100 % of samples; clocks agree to 0.002 %",
            "everything",
        ),
        gate(
            5,
            "client time is accounted for",
            Some(Arm::Treatment),
            "ratio 1.002, 0.97 to 1.03 needed",
            "figures of that arm",
        ),
        gate(
            6,
            "the driver is not the limit",
            Some(Arm::Treatment),
            "12 % of a core, under 80 % needed",
            "claims about latency and saturation",
        ),
        gate(
            7,
            "the change took effect",
            None,
            "control.pruned.jobs = 19,204, treatment.pruned.jobs = 0",
            "everything between the arms",
        ),
    ]
}

fn setup() -> Setup {
    let step = |name: &str, request: &str, weight, p99: [f64; 2]| StepSetup {
        name: name.into(),
        request: request.into(),
        weight,
        ok: both(
            Some(u64::from(weight) * 1_000),
            Some(u64::from(weight) * 2_000),
        ),
        latency: both(
            Some(StepLatency {
                p50: Some(0.9),
                p99: Some(p99[0]),
                max: p99[0] * 2.0,
            }),
            Some(StepLatency {
                p50: Some(0.8),
                p99: Some(p99[1]),
                max: p99[1] * 2.0,
            }),
        ),
    };
    Setup {
        machine: MachineFacts {
            cpu_model: "Example CPU at 2.4 GHz".into(),
            cores: 2,
            memory_bytes: 8 << 30,
            kernel: "6.1.0".into(),
            os: "Debian GNU/Linux 12".into(),
            cgroups: "v2".into(),
        },
        services: vec![
            ServiceFacts {
                service: "db".into(),
                kind: "postgres".into(),
                program: Some("/usr/lib/postgresql/15/bin/postgres".into()),
                sha256: Some("5f1e".repeat(16)),
                version: Some("15.10".into()),
                declared_settings: BTreeMap::from([
                    ("shared_buffers".into(), "256MB".into()),
                    ("synchronous_commit".into(), "off".into()),
                ]),
                ..ServiceFacts::default()
            },
            ServiceFacts {
                service: "app".into(),
                kind: "process".into(),
                program: Some("target/release/invoicing".into()),
                sha256: Some("a0b1".repeat(16)),
                version: Some("invoicing 0.1.0".into()),
                command: vec![
                    "target/release/invoicing".into(),
                    "--listen".into(),
                    "<app.address>".into(),
                ],
                ..ServiceFacts::default()
            },
        ],
        target: "app".into(),
        clients: "8 closed-loop clients, no think time".into(),
        closed_loop: true,
        closed_clients: Some(8),
        pick: Some(Pick::Weighted),
        steps: vec![
            step("list", "GET /invoices?limit=25", 50, [21.0, 9.0]),
            step("fetch", "GET /invoices/{{ id }}", 40, [18.0, 8.0]),
            step("create", "POST /invoices", 10, [247.0, 31.0]),
        ],
        pruning: both(
            None,
            Some("jobs: done and older than 3 s, every 1 s, then VACUUM".into()),
        ),
        warmup_s: 10.0,
        duration_s: both(Some(120.0), Some(120.0)),
        window_s: 20.0,
        driver_pin: Vec::new(),
        shares_cores: true,
    }
}

fn difference() -> DifferenceSummary {
    let item = |what: &str, treatment: &str, control: &str, verdict| EqualityItem {
        what: what.into(),
        treatment: treatment.into(),
        control: control.into(),
        verdict,
    };
    DifferenceSummary {
        variable: Some("pruning.enabled".into()),
        values: both(Some("false".into()), Some("true".into())),
        items: vec![
            item(
                "app: program",
                &"a0b1".repeat(16),
                &"a0b1".repeat(16),
                Equality::Equal,
            ),
            item(
                "db: program",
                &"5f1e".repeat(16),
                &"5f1e".repeat(16),
                Equality::Equal,
            ),
            item(
                "db: setting shared_buffers",
                "256MB",
                "256MB",
                Equality::Equal,
            ),
            item(
                "pruning.enabled",
                "false",
                "true",
                Equality::Implied("the control variable itself".into()),
            ),
        ],
        same_start: Verdict::Supported,
        took_effect: TookEffect {
            expression: Some("control.pruned.jobs > 0 and treatment.pruned.jobs == 0".into()),
            observed: BTreeMap::from([
                (
                    "control.pruned.jobs".into(),
                    Some(FigureValue::Number(19_204.0)),
                ),
                (
                    "treatment.pruned.jobs".into(),
                    Some(FigureValue::Number(0.0)),
                ),
            ]),
            verdict: Verdict::Supported,
        },
    }
}

fn trial(pair: u32, arm: Arm, started: &str, seconds: f64) -> TrialFacts {
    TrialFacts {
        pair,
        arm,
        started: Some(started.into()),
        seconds,
    }
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
            run_sd_source: Some("declared in the file".into()),
            beyond_noise_last: Some(true),
            beyond_noise_mean: Some(true),
            wording: "in this one pair; run-to-run variation was declared, not measured".into(),
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
            limit("one host: the load driver and the services share 2 processors", false),
            limit("one pair: run-to-run variation was declared, not measured", false),
            limit("closed loop with 8 clients: what an arrival rate of its own would do was not measured", false),
            limit("synchronous_commit is off", false),
            limit("that every table must be pruned: one schema and one query mix were run", true),
        ],
        actions: Vec::new(),
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

/// Both arms fall: the table's story is refuted.
pub fn refuted() -> Summary {
    let mut summary = valid();
    summary.arms.control = Some(arm(
        1_740.0,
        610.0,
        120.0,
        20.0,
        trend(Word::Falls, -0.64, 0.02),
        true,
    ));
    summary.figures = figures(&summary.arms);
    judge(&mut summary, Word::Falls, Word::Falls);
    let claim = &mut summary.claims[0];
    claim.verdict = Verdict::Refuted;
    claim.text = "the decay follows the unpruned table: throughput fell {{ treatment.throughput.fall | percent }} without pruning and stayed within {{ margin | percent }} with it".into();
    claim.refused_by = vec!["control.throughput.trend is falls, not flat.".into()];
    summary.criteria[1] = criterion(Arm::Control, 2.0);
    summary.exit_code = 1;
    if let Some(between) = &mut summary.between {
        between.ratio_last = Some(1.07);
        between.beyond_noise_last = Some(false);
        between.trends_differ = false;
        between.trend_difference = Some([-0.02, -0.06, 0.02]);
    }
    summary
}

/// The control's trend can't be told.
pub fn unclear() -> Summary {
    let mut summary = valid();
    let mut finding = trend(Word::Unclear, -0.08, 0.14);
    finding.margin = 0.1;
    summary.arms.control = Some(arm(1_740.0, 1_600.0, 120.0, 20.0, finding, true));
    summary.figures = figures(&summary.arms);
    judge(&mut summary, Word::Falls, Word::Unclear);
    let claim = &mut summary.claims[0];
    claim.verdict = Verdict::Undetermined("wide".into());
    claim.text = "the decay follows the unpruned table".into();
    claim.refused_by = vec!["control.throughput.trend is unclear, not flat.".into()];
    summary
}

/// A service died: nothing is supported.
pub fn not_valid() -> Summary {
    let mut summary = valid();
    summary.validity = Validity {
        valid: false,
        reasons: vec![
            "app exited with status 101 at 0:48 of the treatment; nothing asked for it.".into(),
        ],
    };
    summary.run.ended =
        RunEnd::Failed("app exited with status 101 at 0:48 of the treatment".into());
    summary.exit_code = 3;
    summary.gates[4].verdict = Verdict::Refuted;
    summary.gates[4].detail = "app ended at 0:48".into();
    summary
}

/// Stopped by the user in the first arm.
pub fn interrupted() -> Summary {
    let mut summary = valid();
    summary.validity = Validity {
        valid: false,
        reasons: vec!["The treatment was never measured.".into()],
    };
    summary.run.ended = RunEnd::Interrupted;
    summary.exit_code = 130;
    summary.arms.treatment = None;
    summary.figures = figures(&summary.arms);
    summary.not_observed = BTreeMap::from([(
        "treatment".into(),
        "the run was interrupted before this arm".into(),
    )]);
    summary.between = None;
    summary.pairs.clear();
    summary.run.order.truncate(1);
    for explanation in &mut summary.explanations {
        explanation.verdict = Verdict::NotObserved("treatment.throughput".into());
        explanation.predictions[0].observed = None;
        explanation.predictions[0].verdict = Verdict::NotObserved("treatment.throughput".into());
    }
    for claim in &mut summary.claims {
        claim.verdict = Verdict::NotObserved("treatment".into());
        claim.refused_by = vec!["The treatment was not observed.".into()];
    }
    summary.difference.took_effect.verdict = Verdict::NotObserved("treatment.pruned.jobs".into());
    summary
        .difference
        .took_effect
        .observed
        .insert("treatment.pruned.jobs".into(), None);
    summary
}

/// Shortened, and every claim happens to hold.
pub fn smoke() -> Summary {
    let mut summary = valid();
    summary.run.smoke = true;
    summary
}

/// 72 hours against 24.
pub fn unequal() -> Summary {
    let mut summary = valid();
    let hour = 3_600.0;
    summary.arms.treatment = Some(arm(
        794.0,
        154.0,
        72.0 * hour,
        2.0 * hour,
        trend(Word::Falls, -0.81, 0.01),
        false,
    ));
    summary.arms.control = Some(arm(
        801.0,
        796.0,
        24.0 * hour,
        2.0 * hour,
        trend(Word::Flat, -0.004, 0.009),
        true,
    ));
    summary.figures = figures(&summary.arms);
    summary.setup.duration_s = both(Some(72.0 * hour), Some(24.0 * hour));
    summary.setup.window_s = 2.0 * hour;
    summary.limits.insert(
        0,
        limit(
            "the arms ran 72 hours and 24 hours: they are compared over the first 24 hours",
            false,
        ),
    );
    summary
}

/// The same arm twice, six pairs.
pub fn null() -> Summary {
    let mut summary = valid();
    summary.run.null = true;
    summary.arms.treatment = Some(arm(
        1_750.0,
        1_760.0,
        120.0,
        20.0,
        trend(Word::Flat, 0.008, 0.02),
        true,
    ));
    summary.figures = figures(&summary.arms);
    summary.difference.variable = None;
    summary.difference.values = both(None, None);
    summary.difference.items.pop();
    summary.explanations.clear();
    summary.claims.clear();
    summary.pairs = (1..=6)
        .map(|i| {
            let first = if i % 2 == 0 {
                Arm::Control
            } else {
                Arm::Treatment
            };
            let shift = f64::from(i) * 9.0;
            pair(
                i,
                first,
                [1_750.0 + shift, 1_790.0 - shift],
                [1_740.0 - shift, 1_760.0 + shift],
            )
        })
        .collect();
    summary.between = Some(Between {
        pairs: 6,
        ratio_last: Some(1.004),
        ratio_mean: Some(0.998),
        ratio_ci95: Some([0.981, 1.027]),
        sign_flip_p: Some(0.6875),
        trend_difference: Some([0.02, -0.01, 0.05]),
        trends_differ: false,
        run_sd: Some(0.021),
        run_sd_source: Some("this null run (6 pairs, upper bound)".into()),
        beyond_noise_last: Some(false),
        beyond_noise_mean: Some(false),
        wording: "run-to-run variation was measured over 6 pairs".into(),
    });
    summary
}

/// Every run that was kept of it.
pub fn kept(summary: &Summary) -> Vec<KeptRun> {
    let run = |id: &str, started: &str, ended: &str, valid, result: &str, smoke| KeptRun {
        id: id.into(),
        started: started.into(),
        ended: ended.into(),
        valid,
        result: result.into(),
        smoke,
    };
    vec![
        run(
            "20261130T214000Z-77aa",
            "2026-11-30T21:40:00Z",
            "unfinished",
            None,
            "not judged",
            false,
        ),
        run(
            "20261130T220100Z-c0de",
            "2026-11-30T22:01:00Z",
            "complete",
            Some(true),
            "criteria hold",
            true,
        ),
        run(
            &summary.run.id,
            &summary.run.started,
            "complete",
            Some(summary.validity.valid),
            "treatment falls, control flat",
            false,
        ),
    ]
}
