//! The load driver against a server that misbehaves on purpose: exact counts, each failure in its class.

use std::collections::BTreeMap;
use std::time::Duration;

use ceteris::experiment::{
    Arrival, Body, Clients, Expect, Load, Pick, Protocol, Stage, Step, Workload,
};
use ceteris::load::{Driver, Environment, FailureRow, PhaseSpec, PhaseTotals, StopRule, Target};
use ceteris::measure::{FailureClass, LoadSecond, Phase};
use ceteris::name::{ServiceName, StepName};

use crate::misbehaving::Misbehaving;

pub fn clients(closed: u32) -> Clients {
    let stage = Stage {
        level: f64::from(closed),
        length: None,
    };
    Clients {
        target: ServiceName::new("app").unwrap(),
        load: Load::Closed {
            stages: vec![stage],
            think: Duration::ZERO,
            ramp: Duration::ZERO,
        },
        timeout: Duration::from_secs(10),
        connect_timeout: Duration::from_secs(5),
        protocol: Protocol::Http1,
        ca: None,
        insecure: false,
        socket: None,
        pin: None,
        allow_remote: false,
        headers: Vec::new(),
    }
}

pub fn step(name: &str, method: &str, path: &str) -> Step {
    Step {
        name: StepName::new(name).unwrap(),
        method: method.into(),
        path: path.into(),
        weight: 1,
        headers: Vec::new(),
        body: None,
        expect: Expect::default(),
        keep: BTreeMap::new(),
    }
}

pub fn workload(steps: Vec<Step>) -> Workload {
    Workload {
        pick: Pick::Weighted,
        steps,
    }
}

/// A phase from beginning to end.
pub struct Drive {
    pub seconds: Vec<LoadSecond>,
    pub failures: Vec<FailureRow>,
    pub totals: PhaseTotals,
}

pub async fn driver(url: &str, clients: &Clients, workload: &Workload) -> Driver {
    let target = Target::resolve(url, clients).await.unwrap();
    Driver::new(clients, workload, target, 7, Environment::default()).unwrap()
}

pub async fn phase(driver: &mut Driver, stop: StopRule) -> Drive {
    let mut running = driver.start(PhaseSpec {
        phase: Phase::Measuring,
        stop,
    });
    let (mut seconds, mut failures) = (Vec::new(), Vec::new());
    while let Some(second) = running.next_second().await {
        seconds.push(second);
        failures.extend(running.take_failures());
    }
    let drive = Drive {
        seconds,
        failures,
        totals: running.finish().await,
    };
    conserve(&drive);
    drive
}

/// What must hold of every phase, whatever the server did.
fn conserve(drive: &Drive) {
    let counts = &drive.totals.counts;
    let ended = counts.ok + counts.failed_total() + counts.cut;
    assert_eq!(counts.sent, ended, "{counts:?}");
    assert_eq!(counts.cut as usize, drive.totals.cut.len());
    let mut sum = ceteris::measure::Counts::default();
    for (i, second) in drive.seconds.iter().enumerate() {
        assert_eq!(second.index, i as u64);
        sum.add(&second.counts);
    }
    assert_eq!(sum, *counts);
    assert_eq!(drive.totals.ok_by_step.iter().sum::<u64>(), counts.ok);
    let listed = drive.failures.len() as u64 + drive.totals.unlisted.iter().sum::<u64>();
    assert_eq!(listed, counts.failed_total());
}

#[tokio::test]
async fn a_weighted_mix_keeps_values_and_counts_each_request_once() {
    let server = Misbehaving::start();
    let mut list = step("list", "GET", "/list");
    list.weight = 3;
    list.keep.insert("id".into(), "/items/*/id".into());
    list.expect.json.insert("/state".into(), "ready".into());
    list.expect.header.insert("x-kind".into(), "test".into());
    let fetch = step("fetch", "GET", "/echo?id={{ id }}");
    let mut create = step("create", "POST", "/echo");
    create.body = Some(Body::Json(
        serde_json::json!({"n": "{{ random_int(1, 9) }}"}),
    ));
    let workload = workload(vec![list, fetch, create]);
    let mut driver = driver(&server.url(), &clients(4), &workload).await;
    let preflight = driver.preflight().await;
    assert!(preflight.iter().all(|step| step.ok), "{preflight:?}");
    let before = server.all_hits();
    let drive = phase(&mut driver, StopRule::Requests(500)).await;
    let totals = &drive.totals;
    assert_eq!(totals.counts.ok, 500, "{:?}", drive.failures);
    assert_eq!(totals.counts.sent, 500);
    assert_eq!(server.all_hits() - before, 500);
    assert_eq!(totals.counts.connects, 4);
    // Three fifths within four standard deviations.
    assert!(
        (256..=344).contains(&totals.ok_by_step[0]),
        "{:?}",
        totals.ok_by_step
    );
    let recorded: u64 = totals.latency_us.iter().map(|h| h.len()).sum();
    assert_eq!(recorded, 500);
}

#[tokio::test]
async fn a_phase_of_some_time_ends_at_its_time_and_its_account_is_whole() {
    let server = Misbehaving::start();
    let workload = workload(vec![step("slow", "GET", "/slow?ms=7")]);
    let mut driver = driver(&server.url(), &clients(8), &workload).await;
    let drive = phase(&mut driver, StopRule::After(Duration::from_millis(1500))).await;
    let totals = &drive.totals;
    assert_eq!(totals.seconds, 1.5);
    assert_eq!(drive.seconds.len(), 2);
    assert!(totals.counts.ok > 100);
    assert!(totals.counts.cut <= 8);
    // Little's law as an account: clients times time, whatever they did.
    let account = totals.account.total_s();
    assert!(
        (account - 12.0).abs() < 1e-6,
        "{account} {:?}",
        totals.account
    );
    assert!(totals.cut.iter().all(|cut| cut.drained.is_some()));
}

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
async fn an_open_loop_keeps_its_rate_and_counts_what_it_could_not_send() {
    let server = Misbehaving::start();
    let mut open = clients(1);
    open.load = uniform(200.0, 50);
    let workload_ok = workload(vec![step("ok", "GET", "/ok")]);
    let mut driver_ok = driver(&server.url(), &open, &workload_ok).await;
    let drive = phase(&mut driver_ok, StopRule::After(Duration::from_secs(1))).await;
    let counts = drive.totals.counts;
    // Due at 5 ms, 10 ms, ... and 995 ms; the one at 1 s is beyond the end.
    assert_eq!(counts.sent + counts.not_sent, 199);

    open.load = uniform(200.0, 3);
    open.timeout = Duration::from_secs(1);
    let never = workload(vec![step("never", "GET", "/never")]);
    let mut driver_never = driver(&server.url(), &open, &never).await;
    let drive = phase(
        &mut driver_never,
        StopRule::After(Duration::from_millis(500)),
    )
    .await;
    let counts = drive.totals.counts;
    assert_eq!(counts.sent, 3);
    assert_eq!(counts.cut, 3);
    assert_eq!(counts.not_sent, 96);
}

#[tokio::test]
async fn a_broken_answer_has_its_class() {
    let server = Misbehaving::start();
    for (path, class) in [
        ("/503", FailureClass::Status503),
        ("/short", FailureClass::Closed),
    ] {
        let workload = workload(vec![step("only", "GET", path)]);
        let mut driver = driver(&server.url(), &clients(2), &workload).await;
        let drive = phase(&mut driver, StopRule::Requests(6)).await;
        assert_eq!(drive.totals.counts.class(class), 6, "{path}");
        assert_eq!(drive.totals.counts.failed_total(), 6, "{path}");
    }
}
