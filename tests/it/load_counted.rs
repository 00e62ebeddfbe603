//! Loops that end with a number of requests, and clients that are sent away.

use std::time::Duration;

use ceteris::experiment::{Arrival, Load, Stage};
use ceteris::load::{Adhoc, PhaseSpec, Quantile, StopRule, adhoc};
use ceteris::measure::{FailureClass, Phase};

use crate::load::{clients, driver, phase, step, workload};
use crate::misbehaving::Misbehaving;

/// No phase of these tests has a reason to last so long.
const FOR_EVER: Duration = Duration::from_secs(60);

fn uniform(rate: f64, max_in_flight: usize) -> Load {
    Load::Open {
        stages: vec![Stage {
            level: rate,
            length: None,
        }],
        arrival: Arrival::Uniform,
        max_in_flight,
    }
}

#[tokio::test]
async fn an_open_loop_sends_exactly_what_it_was_asked_for_and_ends() {
    let server = Misbehaving::start();
    let slow = workload(vec![step("slow", "GET", "/slow?ms=50")]);
    let mut open = clients(1);
    // Far faster than it wakes up: the last request often goes to a client that has not run yet.
    for (rate, requests) in [(20_000.0, 100), (20_000.0, 101), (1_000.0, 50), (400.0, 1)] {
        open.load = uniform(rate, 500);
        let mut driver = driver(&server.url(), &open, &slow).await;
        let driven = phase(&mut driver, StopRule::Requests(requests));
        let drive = tokio::time::timeout(FOR_EVER, driven)
            .await
            .expect("the phase ends with its last request");
        let counts = drive.totals.counts;
        assert_eq!((counts.sent, counts.ok), (requests, requests), "at {rate}");
        // The next request was due while the last answers came in, and was never to be sent.
        assert_eq!(counts.not_sent, 0, "at {rate}");
    }
}

#[tokio::test]
async fn a_closed_loop_ends_with_its_last_request_though_clients_would_come_later() {
    let server = Misbehaving::start();
    let slow = workload(vec![step("slow", "GET", "/slow?ms=5")]);
    let mut staged = clients(1);
    let stage = |level, length| Stage { level, length };
    staged.load = Load::Closed {
        stages: vec![
            stage(4.0, Some(Duration::from_secs(3_600))),
            stage(8.0, None),
        ],
        think: Duration::ZERO,
        ramp: Duration::ZERO,
    };
    let mut driver = driver(&server.url(), &staged, &slow).await;
    let driven = phase(&mut driver, StopRule::Requests(200));
    let drive = tokio::time::timeout(FOR_EVER, driven)
        .await
        .expect("nobody waits for the second stage");
    assert_eq!(drive.totals.counts.ok, 200);
    assert!(drive.totals.seconds < 60.0);
}

/// Connections that are open to a port of this machine, seen from the side that opened them.
fn open_to(port: u16) -> usize {
    let table = std::fs::read_to_string("/proc/self/net/tcp").unwrap();
    let wanted = format!(":{port:04X}");
    table
        .lines()
        .filter_map(|line| {
            let fields: Vec<&str> = line.split_whitespace().collect();
            Some((*fields.get(2)?, *fields.get(3)?))
        })
        // 01: established, 08: closed by the server alone.
        .filter(|(remote, state)| remote.ends_with(&wanted) && matches!(*state, "01" | "08"))
        .count()
}

#[tokio::test]
async fn clients_that_are_sent_away_close_their_connections() {
    let server = Misbehaving::start();
    let url = server.url();
    let port: u16 = url.rsplit(':').next().unwrap().parse().unwrap();
    let slow = workload(vec![step("slow", "GET", "/slow?ms=5")]);
    let mut driver = driver(&url, &clients(1), &slow).await;
    let mut running = driver.start(PhaseSpec {
        phase: Phase::Measuring,
        stop: StopRule::After(Duration::from_secs(4)),
    });
    running.next_second().await.unwrap();
    running.burst(20, Duration::from_millis(200));
    running.next_second().await.unwrap();
    running.burst(20, Duration::from_millis(200));
    running.next_second().await.unwrap();
    assert_eq!(open_to(port), 1);
    assert_eq!(running.finish().await.counts.connects, 41);
}

#[tokio::test]
async fn requests_that_never_connect_stand_above_every_latency() {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/", listener.local_addr().unwrap());
    drop(listener);
    let asked = Adhoc::new(url, 64, StopRule::Requests(400));
    let report = adhoc(&asked, std::future::pending()).await.unwrap();
    assert_eq!(report.failures[&FailureClass::Refused], 400);
    assert!(report.nothing_answered());
    assert_eq!(
        report.latency_ms.p99,
        Quantile::AtLeast { at_least: 10_000.0 }
    );
}

#[tokio::test]
async fn a_server_that_only_hangs_up_has_answered_nothing() {
    let server = Misbehaving::start();
    let report = async |path: &str| {
        let asked = Adhoc::new(format!("{}{path}", server.url()), 4, StopRule::Requests(8));
        adhoc(&asked, std::future::pending()).await.unwrap()
    };
    assert!(report("/close").await.nothing_answered());
    let refused = report("/503").await;
    assert_eq!(refused.requests.answered, 8);
    assert!(!refused.nothing_answered() && refused.has_fault());
}
