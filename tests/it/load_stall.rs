//! A server that answers nothing for a while, again and again: an open loop tells how long its requests waited, a closed
//! loop at least its longest wait. And a large number of requests, counted by both sides.

use std::io::{BufRead, BufReader, Write};
use std::net::TcpListener;
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use ceteris::experiment::{Arrival, Load, Stage};
use ceteris::load::{StopRule, latency_us};

use crate::load::{Drive, clients, driver, phase, step, workload};
use crate::misbehaving::Misbehaving;

/// Set to any value, the rates are those of a measurement; else small ones, which a busy machine can bear.
const FULL: &str = "CETERIS_FULL_LOAD";

const EVERY: Duration = Duration::from_secs(2);
const STALL: Duration = Duration::from_millis(200);

/// From when to when nothing was answered, by the server's own clock.
type Stalls = Arc<Mutex<Vec<(Instant, Instant)>>>;

/// Answers at once, but for the last 200 ms of every 2 s. Meanwhile it takes requests in, as a server does whose database
/// stands still: what waits then is the answers, and the work of taking hundreds of connections in afterwards is none of it.
fn stalling() -> (String, Stalls) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    listener.set_nonblocking(true).unwrap();
    let stalls = Stalls::default();
    let (noted, stalled) = (stalls.clone(), stalls.clone());
    std::thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .unwrap();
        runtime.block_on(async move {
            let listener = tokio::net::TcpListener::from_std(listener).unwrap();
            tokio::spawn(async move {
                loop {
                    tokio::time::sleep(EVERY - STALL).await;
                    let from = Instant::now();
                    noted.lock().unwrap().push((from, from + STALL));
                    tokio::time::sleep(STALL).await;
                }
            });
            loop {
                let (stream, _) = listener.accept().await.unwrap();
                stream.set_nodelay(true).unwrap();
                tokio::spawn(answer(stream, stalled.clone()));
            }
        });
    });
    (url, stalls)
}

async fn answer(mut stream: tokio::net::TcpStream, stalls: Stalls) {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    let mut buffer = [0; 4096];
    while stream.read(&mut buffer).await.is_ok_and(|read| read > 0) {
        let last = stalls.lock().unwrap().last().copied();
        if let Some((_, until)) = last.filter(|(_, until)| *until > Instant::now()) {
            tokio::time::sleep_until(until.into()).await;
        }
        let answer = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";
        if stream.write_all(answer).await.is_err() {
            return;
        }
    }
}

/// The 99 % quantile, in ms, of how long each of so many evenly spaced requests had to wait for the end of a stall.
fn truth(stalls: &[(Instant, Instant)], begun: Instant, rate: f64, requests: u64) -> f64 {
    let mut waits: Vec<f64> = (1..=requests)
        .map(|i| {
            let due = begun + Duration::from_secs_f64(i as f64 / rate);
            let within = stalls.iter().find(|(from, to)| (*from..*to).contains(&due));
            within.map_or(0.0, |(_, to)| (*to - due).as_secs_f64() * 1e3)
        })
        .collect();
    waits.sort_by(f64::total_cmp);
    waits[(0.99 * waits.len() as f64).ceil() as usize - 1]
}

async fn drive(url: &str, load: Option<Load>, seconds: u64) -> (Instant, Drive) {
    let mut clients = clients(8);
    if let Some(load) = load {
        clients.load = load;
    }
    let workload = workload(vec![step("only", "GET", "/")]);
    let mut driver = driver(url, &clients, &workload).await;
    let begun = Instant::now();
    let drive = phase(&mut driver, StopRule::After(Duration::from_secs(seconds))).await;
    assert_eq!(drive.totals.counts.failed_total(), 0);
    (begun, drive)
}

#[tokio::test]
async fn a_stall_is_seen_in_full_by_both_loops() {
    let full = std::env::var_os(FULL).is_some();
    let (rate, seconds, tolerance) = if full {
        (3_200.0, 20, 0.05)
    } else {
        (400.0, 5, 0.2)
    };
    let (url, stalls) = stalling();
    let open = Load::Open {
        stages: vec![Stage {
            level: rate,
            length: None,
        }],
        arrival: Arrival::Uniform,
        max_in_flight: 2_000,
    };
    let (begun, drive) = drive(&url, Some(open), seconds).await;
    let all = latency_us(&drive.totals);
    let seen = all.value_at_quantile(0.99) as f64 / 1e3;
    let due = (rate * seconds as f64) as u64;
    let expected = truth(&stalls.lock().unwrap(), begun, rate, due);
    println!(
        "open loop, {rate} a second: p99 {seen:.1} ms, truth {expected:.1} ms, {} not sent",
        drive.totals.counts.not_sent
    );
    assert!(
        (seen / expected - 1.0).abs() < tolerance,
        "p99 {seen} ms, truth {expected} ms"
    );

    let (begun, drive) = self::drive(&url, None, 5).await;
    let all = latency_us(&drive.totals);
    let whole = stalls.lock().unwrap().clone();
    let within = whole.iter().filter(|(from, _)| *from > begun);
    let shortest = within.map(|(from, to)| *to - *from).min().unwrap();
    let (max, p99) = (all.max(), all.value_at_quantile(0.99));
    println!(
        "closed loop: max {:.1} ms, p99 {:.3} ms, stalls of {shortest:?}",
        max as f64 / 1e3,
        p99 as f64 / 1e3
    );
    // A request that was answered a moment before the stall is followed at once by one that waits for nearly all of it.
    assert!(
        max as f64 > 0.9 * shortest.as_micros() as f64,
        "max {max} us, stall {shortest:?}"
    );
    assert!(
        p99 < max / 2,
        "the p99 of a closed loop hides the stall: {p99} us"
    );
}

/// The example application, when it is named; else the test's own server.
const SERVER: &str = "CETERIS_COUNTED_SERVER";

struct Invoicing {
    child: Child,
    address: String,
}

impl Invoicing {
    fn start(program: &str) -> Self {
        let free = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = free.local_addr().unwrap().to_string();
        drop(free);
        // Its database is not there, and what is asked needs none.
        let child = Command::new(program)
            .args(["--listen", &address])
            .env("DATABASE_URL", "postgres://nobody@127.0.0.1:1/none")
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let server = Invoicing { child, address };
        let deadline = Instant::now() + Duration::from_secs(60);
        while server.get("/healthz").is_none() {
            assert!(Instant::now() < deadline, "{program} does not answer");
            std::thread::sleep(Duration::from_millis(100));
        }
        server
    }

    fn get(&self, path: &str) -> Option<String> {
        let mut stream = std::net::TcpStream::connect(&self.address).ok()?;
        let address = &self.address;
        write!(
            stream,
            "GET {path} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n"
        )
        .ok()?;
        BufReader::new(stream).lines().map_while(Result::ok).last()
    }

    /// Requests of `/healthz` by its own count.
    fn counted(&self) -> u64 {
        let status: serde_json::Value =
            serde_json::from_str(&self.get("/status").unwrap()).unwrap();
        let health = status.pointer("/requests/by_route/healthz");
        let health = health.and_then(serde_json::Value::as_u64);
        health.unwrap_or_else(|| panic!("no count of /healthz in {status}"))
    }
}

impl Drop for Invoicing {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[tokio::test]
async fn each_of_many_requests_is_counted_once_by_both_sides() {
    let workload = workload(vec![step("only", "GET", "/healthz")]);
    let clients = clients(32);
    let (drive, requests, counted) = match std::env::var(SERVER) {
        Ok(program) => {
            let server = Invoicing::start(&program);
            let url = format!("http://{}", server.address);
            let before = server.counted();
            let mut driver = driver(&url, &clients, &workload).await;
            let drive = phase(&mut driver, StopRule::Requests(1_000_000)).await;
            (drive, 1_000_000, server.counted() - before)
        }
        Err(_) => {
            let server = Misbehaving::start();
            let mut only = workload.clone();
            only.steps[0].path = "/ok".into();
            let mut driver = driver(&server.url(), &clients, &only).await;
            let drive = phase(&mut driver, StopRule::Requests(20_000)).await;
            (drive, 20_000, server.hits("/ok"))
        }
    };
    let counts = &drive.totals.counts;
    println!(
        "{} sent in {:.2} s: {} ok, {} failed, {} cut; the server counted {counted}",
        counts.sent,
        drive.totals.seconds,
        counts.ok,
        counts.failed_total(),
        counts.cut
    );
    assert_eq!(counts.sent, requests);
    assert_eq!(counts.ok, requests, "{:?}", drive.failures.first());
    assert_eq!(counted, requests);
    assert_eq!(counts.connects, 32);
    let timed: u64 = drive.totals.latency_us.iter().map(|h| h.len()).sum();
    assert_eq!(timed, requests);
}
