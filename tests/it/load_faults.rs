//! Each way to fail, in its class, counted exactly.

use std::time::Duration;

use ceteris::experiment::Step;
use ceteris::load::{Driver, Environment, StopRule, Target};
use ceteris::measure::FailureClass::{self, *};
use serde_json::json;

use crate::load::{Drive, clients, driver, phase, step, workload};
use crate::misbehaving::Misbehaving;

const REQUESTS: u64 = 8;

/// Eight requests of one step by two clients.
async fn drive(url: &str, step: Step, timeout_ms: u64) -> Drive {
    let mut clients = clients(2);
    clients.timeout = Duration::from_millis(timeout_ms);
    clients.connect_timeout = Duration::from_millis(300);
    let mut driver = driver(url, &clients, &workload(vec![step])).await;
    phase(&mut driver, StopRule::Requests(REQUESTS)).await
}

#[tokio::test]
async fn every_class_is_told_by_its_cause_and_counted_exactly() {
    let server = Misbehaving::start();
    for (path, class, status, received, promised) in [
        ("/404", Status4xx, Some(404), 13, Some(13)),
        ("/500", Status5xx, Some(500), 4, Some(4)),
        ("/503", Status503, Some(503), 8, Some(8)),
        ("/302", UnexpectedStatus, Some(302), 0, None),
        ("/half-head", Closed, None, 0, None),
        ("/short", Closed, Some(200), 40, Some(100)),
        ("/short-chunked", Closed, Some(200), 10, None),
        ("/close", Closed, None, 0, None),
        ("/reset-before", Reset, None, 0, None),
        ("/reset-head", Reset, None, 0, None),
        ("/reset-body", Reset, Some(200), 1, Some(100)),
        ("/garbage", Malformed, None, 0, None),
        ("/bad-chunk", Malformed, Some(200), 0, None),
        ("/endless-head", Malformed, None, 0, None),
    ] {
        let before = server.hits(path);
        let drive = drive(&server.url(), step("only", "GET", path), 5_000).await;
        let counts = &drive.totals.counts;
        let mut expected = [0; FailureClass::ALL.len()];
        expected[class.index()] = REQUESTS;
        assert_eq!(
            counts.failed,
            expected,
            "{path} {:?}",
            drive.failures.first()
        );
        assert_eq!(server.hits(path) - before, REQUESTS, "{path}");
        for row in &drive.failures {
            let seen = (row.class, row.status, row.received, row.promised);
            assert_eq!(seen, (class, status, received, promised), "{path}");
        }
        // A failure with an end of its own has a latency.
        assert_eq!(drive.totals.latency_us[0].len(), REQUESTS, "{path}");
    }
}

#[tokio::test]
async fn what_never_ends_is_a_timeout_and_no_latency() {
    let server = Misbehaving::start();
    for (path, received) in [("/never", false), ("/drip", true)] {
        let drive = drive(&server.url(), step("only", "GET", path), 150).await;
        let counts = &drive.totals.counts;
        assert_eq!(counts.class(Timeout), REQUESTS, "{path}");
        assert_eq!(counts.failed_total(), REQUESTS, "{path}");
        assert_eq!(drive.totals.latency_us[0].len(), 0, "{path}");
        for row in &drive.failures {
            assert!(row.latency_us >= 150_000, "{path} {row:?}");
            assert_eq!(row.received > 0, received, "{path} {row:?}");
        }
    }
}

#[tokio::test]
async fn nobody_there_is_refused_and_pauses_are_booked() {
    let free = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", free.local_addr().unwrap());
    drop(free);
    let drive = drive(&url, step("only", "GET", "/"), 1_000).await;
    assert_eq!(drive.totals.counts.class(Refused), REQUESTS);
    assert_eq!(drive.totals.counts.connects, 0);
    assert!(
        drive.totals.account.pause_s > 0.05,
        "{:?}",
        drive.totals.account
    );
    assert_eq!(drive.totals.latency_us[0].len(), 0);
}

#[tokio::test]
async fn a_server_that_stops_accepting_is_a_connect_timeout() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    // The shortest queue that there is, filled; what comes then gets no answer to its SYN.
    rustix::net::listen(&listener, 0).unwrap();
    let address = listener.local_addr().unwrap();
    let mut held = Vec::new();
    let full = Duration::from_millis(100);
    while let Ok(stream) = std::net::TcpStream::connect_timeout(&address, full) {
        held.push(stream);
    }
    let drive = drive(
        &format!("http://{address}"),
        step("only", "GET", "/"),
        1_000,
    )
    .await;
    assert_eq!(drive.totals.counts.class(ConnectTimeout), REQUESTS);
    assert_eq!(drive.totals.counts.failed_total(), REQUESTS);
}

#[tokio::test]
async fn an_answer_that_is_not_as_expected_says_what_is_wrong() {
    let server = Misbehaving::start();
    let list = || step("only", "GET", "/list");
    let mut wrong_value = list();
    wrong_value
        .expect
        .json
        .insert("/state".into(), json!("done"));
    let mut absent = list();
    absent.expect.json.insert("/nothing".into(), json!(1));
    let mut wrong_header = list();
    wrong_header
        .expect
        .header
        .insert("X-Kind".into(), "other".into());
    let mut too_long = list();
    too_long.expect.max_bytes = Some(10);
    let mut not_json = step("only", "GET", "/not-json");
    not_json.keep.insert("id".into(), "/items/*/id".into());
    let mut big = step("only", "GET", "/big");
    big.expect.max_bytes = Some(1 << 20);
    for (step, text) in [
        (wrong_value, "\"ready\""),
        (absent, "absent"),
        (wrong_header, "x-kind"),
        (too_long, "bytes"),
        (not_json, "not JSON"),
        (big, "bytes"),
    ] {
        let path = step.path.clone();
        let drive = drive(&server.url(), step, 5_000).await;
        let counts = &drive.totals.counts;
        assert_eq!(
            counts.class(UnexpectedBody),
            REQUESTS,
            "{path} {:?}",
            drive.failures.first()
        );
        assert!(
            drive.failures[0].said.contains(text),
            "{:?}",
            drive.failures[0]
        );
    }
    let mut wanted_404 = step("only", "GET", "/404");
    wanted_404.expect.status = vec![404];
    let drive = drive(&server.url(), wanted_404, 5_000).await;
    assert_eq!(drive.totals.counts.ok, REQUESTS);
    // Without a limit of its own a long body is read to its end and not held.
    let big = workload(vec![step("only", "GET", "/big")]);
    let mut patient = clients(1);
    patient.timeout = Duration::from_secs(300);
    let mut driver = driver(&server.url(), &patient, &big).await;
    let drive = phase(&mut driver, StopRule::Requests(1)).await;
    assert_eq!(drive.totals.counts.ok, 1, "{:?}", drive.failures);
    assert!(drive.totals.bytes_read > 100 << 20);
}

#[tokio::test]
async fn every_kind_of_framing_is_read_to_its_end() {
    let server = Misbehaving::start();
    for (path, method, reconnects) in [
        ("/ok", "GET", false),
        ("/head", "HEAD", false),
        ("/no-content", "GET", false),
        ("/hints", "GET", false),
        ("/chunked", "GET", false),
        ("/until-close", "GET", true),
    ] {
        let drive = drive(&server.url(), step("only", method, path), 5_000).await;
        assert_eq!(
            drive.totals.counts.ok,
            REQUESTS,
            "{path} {:?}",
            drive.failures.first()
        );
        let connects = drive.totals.counts.connects;
        assert_eq!(connects, if reconnects { REQUESTS } else { 2 }, "{path}");
    }
}

#[tokio::test]
async fn an_idle_connection_that_was_closed_is_an_event_of_its_own() {
    let server = Misbehaving::start();
    let mut clients = clients(1);
    let ceteris::experiment::Load::Closed { think, .. } = &mut clients.load else {
        unreachable!("the clients of these tests are a closed loop");
    };
    *think = Duration::from_millis(80);
    let idle = workload(vec![step("only", "GET", "/idle-close")]);
    let mut driver = driver(&server.url(), &clients, &idle).await;
    let drive = phase(&mut driver, StopRule::Requests(5)).await;
    let counts = &drive.totals.counts;
    assert_eq!(
        (counts.ok, counts.failed_total()),
        (5, 0),
        "{:?}",
        drive.failures
    );
    assert_eq!((counts.connects, counts.stale_connections), (5, 4));
}

#[tokio::test]
async fn a_failure_never_runs_in_a_hot_loop() {
    let server = Misbehaving::start();
    let closing = workload(vec![step("only", "GET", "/close")]);
    let mut driver = driver(&server.url(), &clients(2), &closing).await;
    let drive = phase(&mut driver, StopRule::After(Duration::from_millis(1000))).await;
    // Pauses of 10, 20, 40, 80, 100, 100 ... ms: about a dozen a second and client.
    let failed = drive.totals.counts.failed_total();
    assert!((2..=30).contains(&failed), "{failed}");
}

#[tokio::test]
async fn only_some_failures_have_rows_and_none_is_lost() {
    let server = Misbehaving::start();
    let busy = workload(vec![step("only", "GET", "/503")]);
    let mut driver = driver(&server.url(), &clients(4), &busy).await;
    let drive = phase(&mut driver, StopRule::Requests(400)).await;
    assert_eq!(drive.totals.counts.class(Status503), 400);
    assert_eq!(drive.totals.counts.class(Status5xx), 400);
    assert!(drive.totals.unlisted[Status503.index()] > 0);
    assert!(
        drive.failures.iter().all(|row| row.said == "too busy"),
        "{:?}",
        drive.failures[0]
    );
}

#[tokio::test]
async fn a_secret_goes_to_the_server_and_into_no_row() {
    const SECRET: &str = "hush-\"hush\"/9";
    let server = Misbehaving::start();
    let mut clients = clients(1);
    clients
        .headers
        .push(("X-Key".into(), "Bearer {{ env.KEY }}".into()));
    let mut echo = step("echo", "POST", "/echo?key={{ env.KEY }}");
    echo.body = Some(ceteris::experiment::Body::Json(
        json!({"key": "{{ env.KEY }}", "long": "{{ env.KEY ~ '' }} {{ client }}"}),
    ));
    echo.expect.status = vec![201];
    let workload = workload(vec![echo]);
    let read = |name: &str| (name == "KEY").then(|| SECRET.to_owned());
    let environment = Environment::gather(&clients, &workload, &read).unwrap();
    let target = Target::resolve(&server.url(), &clients).await.unwrap();
    let mut driver = Driver::new(&clients, &workload, target, 1, environment).unwrap();
    let before = driver.preflight().await;
    let drive = phase(&mut driver, StopRule::Requests(3)).await;
    assert_eq!(drive.totals.counts.class(UnexpectedStatus), 3);
    let told = drive.failures.iter().map(|row| row.said.as_str());
    for said in told.chain([before[0].detail.as_str()]) {
        // The server repeated query and body; the value is in neither, the name in both.
        assert!(!said.contains("hush-"), "{said}");
        assert!(said.contains("key={{ env.KEY }}"), "{said}");
        assert!(said.contains("\"key\":\"{{ env.KEY }}\""), "{said}");
    }
    let unset = Environment::gather(&clients, &workload, &|_| None).unwrap_err();
    assert!(format!("{unset:#}").contains("KEY is not set"), "{unset:#}");
}
