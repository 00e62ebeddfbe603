//! Actions: how long until an ok answer came again, what memory did, which readings were due.

use ceteris::analysis::summary::{FigureValue, Summary};
use ceteris::measure::{Event, EventKind, FailureClass, Silence};
use ceteris::name::Arm;

use super::made::{EXPERIMENT, Made};
use super::play::{Play, at};

/// The experiment with a restart of the application, a request to it and a burst of clients.
fn experiment() -> String {
    let actions = r#"
[[action]]
name = "end the app"
at = "20s"
every = "20s"
times = 2
restart = { service = "app", signal = "KILL" }

[[action]]
name = "ask"
at = "70s"
every = "10s"
times = 2
http = { service = "app", post = "/ask" }

[[action]]
name = "burst"
at = "90s"
clients = { closed = 8, for = "10s" }

[control]"#;
    EXPERIMENT.replace("\n[control]", actions)
}

fn action(at_s: f64, name: &str, ended_s: f64) -> Event {
    at(
        at_s,
        EventKind::Action {
            name: name.into(),
            index: 1,
            ended_s,
            ok: true,
            detail: String::new(),
        },
    )
}

/// Two restarts: one within a second, one over an edge; then two requests and a burst.
fn acted_upon(arm: Arm) -> Play {
    let mut play = Play::flat(arm, 1_600.0);
    play.failed = Box::new(|s| match s {
        20 | 40 | 41 => vec![(FailureClass::Refused, 7)],
        _ => Vec::new(),
    });
    play.ok = Box::new(|s| match s {
        20 => 1_200,
        40 => 1_500,
        41 => 400,
        90..100 => 2_000,
        _ => 1_600,
    });
    play.silence = Box::new(|s| {
        let (length_ms, until_ms) = match s {
            20 => (250, 500),
            40 => (100, 1_000),
            41 => (850, 750),
            _ => (3, 10),
        };
        Some(Silence {
            length_ms,
            until_ms,
        })
    });
    // Memory grows by 10 MiB with each request, and is 40 MiB higher in the burst, of which 30 come back.
    play.memory = Box::new(|t| match t {
        0..=40 => (50.0, 0),
        41..=70 => (50.0, 1),
        71..=80 => (60.0, 1),
        81..=90 => (70.0, 1),
        91..=100 => (110.0, 1),
        _ => (80.0, 1),
    });
    play.events = vec![
        action(20.2, "end the app", 20.45),
        action(39.9, "end the app", 41.7),
        action(70.2, "ask", 70.3),
        action(80.2, "ask", 80.3),
        action(90.0, "burst", 90.0),
    ];
    play
}

fn judged() -> Summary {
    Made::run(
        &experiment(),
        &[acted_upon(Arm::Treatment), acted_upon(Arm::Control)],
    )
    .judged()
}

fn number(summary: &Summary, name: &str) -> f64 {
    match summary.figures.get(name) {
        Some(FigureValue::Number(number)) => *number,
        other => panic!("{name}: {other:?}, {:?}", summary.not_observed.get(name)),
    }
}

#[test]
fn recovery_is_read_to_the_millisecond_from_the_silences() {
    let summary = judged();
    let of = |rest: &str| number(&summary, &format!("control.actions.end_the_app.{rest}"));
    // 20.2 to 20.5, and 39.9 to 41.75.
    assert!((of("recovery_ms.min") - 300.0).abs() < 1e-6);
    assert!((of("recovery_ms.max") - 1_850.0).abs() < 1e-6);
    assert!((of("recovery_ms") - 1_075.0).abs() < 1e-6);
    assert_eq!(of("failed_requests"), 21.0);
    assert_eq!(of("slow_seconds"), 1.0);
    assert!(summary.not_observed["control.actions.end_the_app.recovery_ms.p50"].contains('6'));
    // What is not disturbed has nothing to recover from.
    assert_eq!(number(&summary, "control.actions.ask.recovery_ms.max"), 0.0);
    assert!(summary.validity.valid, "{:?}", summary.validity);
}

#[test]
fn without_silences_recovery_is_rounded_up_to_a_whole_second() {
    let old = |arm| Play {
        silence: Box::new(|_| None),
        ..acted_upon(arm)
    };
    let summary = Made::run(&experiment(), &[old(Arm::Treatment), old(Arm::Control)]).judged();
    let least = number(&summary, "control.actions.end_the_app.recovery_ms.min");
    assert!((least - 1_800.0).abs() < 1e-6, "{least}");
}

#[test]
fn a_silence_that_does_not_end_is_no_recovery() {
    let never = |arm| {
        let mut play = acted_upon(arm);
        play.seconds = 45;
        play.ok = Box::new(|s| if s < 40 { 1_600 } else { 0 });
        play.failed = Box::new(|s| match s {
            40.. => vec![(FailureClass::Refused, 5)],
            _ => Vec::new(),
        });
        play.silence = Box::new(|s| {
            let length_ms = if s < 40 { 3 } else { 1_000 * (s - 39) };
            Some(Silence {
                length_ms,
                until_ms: if s < 40 { 10 } else { 1_000 },
            })
        });
        play
    };
    let summary = Made::run(&experiment(), &[never(Arm::Treatment), never(Arm::Control)]).judged();
    let name = "control.actions.end_the_app.recovery_ms";
    assert!(!summary.figures.contains_key(name));
    assert!(summary.not_observed[name].contains("no ok answer"));
}

#[test]
fn memory_changes_within_one_life_only_and_a_burst_tells_what_came_back() {
    let summary = judged();
    let of = |rest: &str| number(&summary, &format!("control.actions.{rest}"));
    assert_eq!(of("ask.rss_change"), 10.0);
    assert_eq!(of("burst.rss_change"), 10.0);
    assert!((of("burst.rss_returned") - 0.75).abs() < 1e-9);
    assert_eq!(of("burst.throughput"), 2_000.0);
    // A restart begins another life, whose memory is no change of the last one's.
    let restarts: Vec<usize> = summary
        .actions
        .iter()
        .filter(|a| a.arm == Arm::Control && a.name == "end the app")
        .map(|a| a.memory.len())
        .collect();
    assert_eq!(restarts, [0, 0]);
    let reasons = &summary.not_observed;
    assert!(reasons["control.actions.burst.recovery_ms"].contains("burst"));
    assert!(reasons["control.actions.ask.throughput"].contains("burst"));
}

#[test]
fn readings_of_a_service_that_is_down_are_not_due() {
    let down = |arm, told: bool| {
        let mut play = acted_upon(arm);
        // Nothing of it can be read from 20 to 40.
        play.unread = Some(("app", 20..40));
        if told {
            play.events.push(at(
                19.8,
                EventKind::ServiceExited {
                    service: "app".into(),
                    status: "ended by signal 9 (KILL)".into(),
                    expected: true,
                    log_tail: Vec::new(),
                },
            ));
            play.events.push(at(
                39.9,
                EventKind::ServiceStarted {
                    service: "app".into(),
                    pid: 11,
                    ready_ms: 40.0,
                    epoch: 1,
                },
            ));
        }
        play
    };
    let valid = |told| {
        Made::run(
            &experiment(),
            &[down(Arm::Treatment, told), down(Arm::Control, told)],
        )
        .judged()
        .validity
        .valid
    };
    assert!(valid(true));
    assert!(!valid(false));
}

#[test]
fn a_second_is_slow_beside_those_of_the_same_declared_load_only() {
    let text = EXPERIMENT.replace(
        "closed = 8",
        "stages = [{ closed = 8, for = \"60s\" }, { closed = 0, for = \"40s\" }, { closed = 1, for = \"20s\" }]",
    );
    let idle = |arm| Play {
        ok: Box::new(|s| match s {
            30 => 300,
            0..60 => 1_600,
            60..100 => 0,
            110 => 90,
            _ => 200,
        }),
        ..Play::flat(arm, 1_600.0)
    };
    let summary = Made::run(&text, &[idle(Arm::Treatment), idle(Arm::Control)]).judged();
    // 30 beside the eight clients' seconds, 110 beside the one client's; nobody was there from 60 to 100.
    assert_eq!(number(&summary, "control.slow_seconds"), 2.0);
    let episodes: Vec<(u64, f64)> = summary
        .arms
        .control
        .as_ref()
        .unwrap()
        .episodes
        .iter()
        .map(|e| (e.from_s, e.median_throughput))
        .collect();
    assert_eq!(episodes, [(30, 1_600.0), (110, 200.0)]);
}

#[test]
fn an_action_that_never_ends_well_excuses_no_failure_after_the_answers_came_back() {
    let broken = |arm| {
        let mut play = acted_upon(arm);
        play.failed = Box::new(|s| match s {
            80.. => vec![(FailureClass::Status503, 600)],
            _ => Vec::new(),
        });
        play.ok = Box::new(|s| if s >= 80 { 1_000 } else { 1_600 });
        play.silence = Box::new(|_| {
            Some(Silence {
                length_ms: 3,
                until_ms: 400,
            })
        });
        play
    };
    let plays = [broken(Arm::Treatment), broken(Arm::Control)];
    let summary = Made::run(&experiment(), &plays).judged();
    let served = summary.gates.iter().find(|gate| gate.number == 2).unwrap();
    assert!(!served.verdict.is_supported(), "{served:?}");
    assert_eq!(summary.exit_code, 3);
}
