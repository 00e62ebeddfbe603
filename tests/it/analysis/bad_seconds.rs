//! Bad seconds: grouped, with what coincided, and nothing invented.

use ceteris::analysis::summary::{Episode, FigureValue, Summary};
use ceteris::measure::{EventKind, FailureClass, HostFacts, HostSecond, ProcessLoad};
use ceteris::name::Arm;

use super::made::{EXPERIMENT, Made};
use super::play::{Play, at, noise};

fn judged(treatment: Play) -> Summary {
    Made::run(EXPERIMENT, &[treatment, Play::flat(Arm::Control, 1_700.0)]).judged()
}

fn episodes(summary: &Summary) -> &[Episode] {
    &summary.arms.treatment.as_ref().unwrap().episodes
}

/// Slow from 60 to 64, failures at 60 and 66.
fn stalled() -> Play {
    Play {
        ok: Box::new(|s| if (60..64).contains(&s) { 100 } else { 1_600 }),
        failed: Box::new(|s| match s {
            60 => vec![(FailureClass::Timeout, 2)],
            66 => vec![(FailureClass::Status5xx, 3)],
            _ => Vec::new(),
        }),
        ..Play::flat(Arm::Treatment, 1_600.0)
    }
}

#[test]
fn gaps_under_five_seconds_are_joined_and_nothing_is_invented() {
    let summary = judged(stalled());
    let [episode] = episodes(&summary) else {
        panic!("{:?}", episodes(&summary));
    };
    assert_eq!((episode.from_s, episode.to_s), (60, 67));
    assert_eq!(episode.bad_seconds, 5);
    assert_eq!(episode.failed["timeout"], 2);
    assert_eq!(episode.failed["status_5xx"], 3);
    assert!(episode.coincides.is_empty(), "{:?}", episode.coincides);
    assert!(
        episode
            .beside
            .iter()
            .any(|b| b.contains("3 of the failed requests were answered with a 5xx"))
    );
    let arm = summary.arms.treatment.as_ref().unwrap();
    assert_eq!((arm.bad_seconds, arm.slow_seconds), (2, 4));
    assert_eq!(arm.clean_requests, 113 * 1_600);
    assert!((arm.clean_hours - 113.0 / 3_600.0).abs() < 1e-12);
    assert_eq!(
        summary.figures["treatment.bad_seconds"],
        FigureValue::Number(2.0)
    );
    let apart = judged(Play {
        failed: Box::new(|s| match s {
            20 | 26 => vec![(FailureClass::Reset, 1)],
            _ => Vec::new(),
        }),
        ..Play::flat(Arm::Treatment, 1_600.0)
    });
    assert_eq!(episodes(&apart).len(), 2);
}

#[test]
fn work_beside_the_deployment_is_named() {
    let mut play = stalled();
    play.host = Box::new(|s| HostSecond {
        other_cpu: if (58..66).contains(&s) {
            1.9
        } else {
            0.1 + 0.05 * noise(4, s)
        },
        ..HostSecond::default()
    });
    play.events.push(at(
        61.0,
        EventKind::Host(HostFacts {
            second: 61,
            others: vec![ProcessLoad {
                command: "stress-ng".into(),
                cores: 1.8,
            }],
        }),
    ));
    let summary = judged(play);
    let told = &episodes(&summary)[0].coincides;
    assert_eq!(told.len(), 1, "{told:?}");
    assert!(told[0].contains("stress-ng"), "{told:?}");
}

#[test]
fn a_service_that_stood_still_is_named_beside_it() {
    let mut play = stalled();
    play.cpu = Box::new(|service, s| match service {
        "db" if (60..67).contains(&s) => 0.0,
        "db" => 0.8,
        _ => 0.5,
    });
    let summary = judged(play);
    let beside = &episodes(&summary)[0].beside;
    assert!(
        beside
            .iter()
            .any(|b| b.starts_with("db used 0 cores inside") && b.contains("stood still")),
        "{beside:?}"
    );
    assert!(
        beside
            .iter()
            .any(|b| b == "app used 0.5 cores inside, 0.5 outside")
    );
    assert!(
        beside
            .iter()
            .any(|b| b == "app logged no line that matches error")
    );
}

#[test]
fn a_checkpoint_within_it_is_named_and_one_elsewhere_is_not() {
    let mut play = stalled();
    for at_s in [30.0, 61.5] {
        play.events.push(at(
            at_s,
            EventKind::Server {
                service: "db".into(),
                what: "checkpoint".into(),
                detail: format!("at {at_s}"),
            },
        ));
    }
    let summary = judged(play);
    assert_eq!(
        episodes(&summary)[0].coincides,
        ["db: checkpoint (at 61.5)"]
    );
}

#[test]
fn an_arm_that_is_calm_has_no_episode() {
    for arm in [
        Play::flat(Arm::Treatment, 1_600.0),
        Play::decays(Arm::Treatment, 1_600.0, 0.5),
    ] {
        assert!(episodes(&judged(arm)).is_empty());
    }
}

#[test]
fn a_busy_machine_is_a_limit_of_the_whole_run() {
    let told = |other_cpu: f64| {
        let mut play = Play::flat(Arm::Treatment, 1_600.0);
        play.host = Box::new(move |_| HostSecond {
            other_cpu,
            ..HostSecond::default()
        });
        let summary = judged(play);
        summary.limits.iter().any(|limit| {
            limit
                .text
                .contains("other processes used 1.2 cores on average in the treatment, 0.1")
        })
    };
    assert!(told(1.2));
    assert!(!told(0.2));
}
