//! What a request costs the load driver, beside other load generators: paired, interleaved rounds against one nginx worker.
//!
//! `cargo bench --bench load_path -- [ROUNDS [SECONDS]]` needs `nginx` and `wrk` on PATH (Debian: `apt install nginx-light
//! wrk`); `oha` and `rewrk` (`cargo install --locked oha rewrk`) take part when `OHA` and `REWRK` name them or they are on
//! PATH. Every client is a process of its own; its user and system
//! time is what counts, as a ratio to wrk's in the same round. Ratios are printed with a 95 % t interval of their logarithms.
//!
//! `-- stall`: a server that answers nothing for 200 ms every 2 s, seen by an open loop (3,200 a second; the truth is a p99
//! of 180 ms), a closed loop, wrk and oha. `-- recording`: what recording alone costs. `-- memory [REQUESTS]`: resident memory
//! after a tenth, half and all of 10 million requests.
#![allow(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "a benchmark fails by panicking and reports on its output"
)]

use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use ceteris::experiment::{Clients, Expect, Load, Pick, Protocol, Stage, Step, Workload};
use ceteris::load::{Adhoc, Driver, Environment, PhaseSpec, StopRule, Target, adhoc};
use ceteris::measure::Phase;
use ceteris::name::{ServiceName, StepName};

const PORT: u16 = 18_462;

fn main() {
    let arguments: Vec<String> = std::env::args()
        .skip(1)
        .filter(|a| a != "--bench")
        .collect();
    let texts: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match texts[..] {
        ["client", clients, seconds] => ours(clients.parse().unwrap(), seconds.parse().unwrap()),
        ["hyper", clients, seconds] => hyper(clients.parse().unwrap(), seconds.parse().unwrap()),
        ["recording"] => recording(),
        ["stall"] => stall(),
        ["memory"] => memory(10_000_000),
        ["memory", requests] => memory(requests.parse().unwrap()),
        _ => rounds(
            texts.first().map_or(6, |text| text.parse().unwrap()),
            texts.get(1).map_or(3, |text| text.parse().unwrap()),
        ),
    }
}

fn url() -> String {
    format!("http://127.0.0.1:{PORT}/")
}

/// The driver with every check on: timeout, classes, a histogram a step, seconds, the account of the clients' time.
fn ours(clients: u32, seconds: u64) {
    let stop = StopRule::After(Duration::from_secs(seconds));
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    let report = runtime
        .block_on(adhoc(
            &Adhoc::new(url(), clients, stop),
            std::future::pending(),
        ))
        .unwrap();
    assert_eq!(report.requests.failed, 0);
    println!("{}", report.requests.ok);
}

/// A bare prototype over hyper's connection, with a timeout and one histogram: what the raw connection is held against.
fn hyper(clients: u32, seconds: u64) {
    use http_body_util::{BodyExt, Empty};
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    let end = Instant::now() + Duration::from_secs(seconds);
    let local = tokio::task::LocalSet::new();
    let histogram = std::rc::Rc::new(std::cell::RefCell::new(
        hdrhistogram::Histogram::<u64>::new_with_bounds(1, 60_000_000, 3).unwrap(),
    ));
    let tasks: Vec<_> = (0..clients)
        .map(|_| {
            let histogram = histogram.clone();
            local.spawn_local(async move {
                let stream = tokio::net::TcpStream::connect(("127.0.0.1", PORT))
                    .await
                    .unwrap();
                stream.set_nodelay(true).unwrap();
                let io = hyper_util::rt::TokioIo::new(stream);
                let (mut sender, connection) =
                    hyper::client::conn::http1::handshake(io).await.unwrap();
                tokio::task::spawn_local(connection);
                let limit = Duration::from_secs(10);
                loop {
                    let request = http::Request::get("/")
                        .header("host", "127.0.0.1")
                        .body(Empty::<bytes::Bytes>::new())
                        .unwrap();
                    let start = Instant::now();
                    let whole = async {
                        let answer = sender.send_request(request).await.unwrap();
                        assert_eq!(answer.status(), 200);
                        answer.into_body().collect().await.unwrap();
                    };
                    tokio::time::timeout(limit, whole).await.unwrap();
                    let now = Instant::now();
                    let us = (now - start).as_micros() as u64;
                    histogram.borrow_mut().record(us.max(1)).unwrap();
                    if now >= end {
                        return;
                    }
                }
            })
        })
        .collect();
    local.block_on(&runtime, async {
        for task in tasks {
            task.await.unwrap();
        }
    });
    println!("{}", histogram.borrow().len());
}

/// Two clock readings and two histograms: what recording adds to a request.
fn recording() {
    let mut latency = hdrhistogram::Histogram::<u64>::new_with_bounds(1, 60_000_000, 3).unwrap();
    let mut delay = hdrhistogram::Histogram::<u64>::new_with_bounds(1, 1_000_000, 2).unwrap();
    let rounds = 5_000_000;
    let begun = Instant::now();
    let mut before = begun;
    for i in 0..rounds {
        let start = Instant::now();
        let end = Instant::now();
        latency.record(50 + i % 1000).unwrap();
        delay
            .record((start - before).as_micros() as u64 + 1)
            .unwrap();
        before = end;
    }
    let each = begun.elapsed().as_nanos() as f64 / rounds as f64;
    println!("{each:.0} ns for two clock readings and two histograms, {rounds} times");
}

/// Resident memory of this process in MiB.
fn resident_mib() -> f64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status
        .lines()
        .find(|line| line.starts_with("VmRSS:"))
        .unwrap();
    let kib: f64 = line.split_whitespace().nth(1).unwrap().parse().unwrap();
    kib / 1024.0
}

/// So many requests over 32 connections: memory must not grow with them.
fn memory(requests: u64) {
    let nginx = Nginx::start();
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    let clients = Clients {
        target: ServiceName::new("target").unwrap(),
        load: Load::Closed {
            stages: vec![Stage {
                level: 32.0,
                length: None,
            }],
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
    };
    let workload = Workload {
        pick: Pick::Cycle,
        steps: vec![Step {
            name: StepName::new("only").unwrap(),
            method: "GET".into(),
            path: "/".into(),
            weight: 1,
            headers: Vec::new(),
            body: None,
            expect: Expect::default(),
            keep: Default::default(),
        }],
    };
    let (mut done, mut next) = (0, 0);
    let marks = [requests / 100, requests / 10, requests / 2, requests];
    runtime.block_on(async {
        let target = Target::resolve(&url(), &clients).await.unwrap();
        let none = Environment::default();
        let mut driver = Driver::new(&clients, &workload, target, 1, none).unwrap();
        let mut running = driver.start(PhaseSpec {
            phase: Phase::Measuring,
            stop: StopRule::Requests(requests),
        });
        while let Some(second) = running.next_second().await {
            done += second.counts.completed();
            while next < marks.len() && done >= marks[next] {
                println!("{:>10} requests: {:.1} MiB", marks[next], resident_mib());
                next += 1;
            }
        }
        let totals = running.finish().await;
        let counts = totals.counts;
        assert_eq!((counts.sent, counts.ok), (requests, requests));
        println!("{requests} ok in {:.1} s", totals.seconds);
    });
    drop(nginx);
}

/// Answers at once, but for the first 200 ms of every 2 s, when it answers nothing.
fn stalling_server() {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    let (ready, is_ready) = std::sync::mpsc::channel();
    std::thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .unwrap();
        runtime.block_on(async move {
            let listener = tokio::net::TcpListener::bind(("127.0.0.1", PORT))
                .await
                .unwrap();
            ready.send(()).unwrap();
            let begun = Instant::now();
            loop {
                let (mut stream, _) = listener.accept().await.unwrap();
                stream.set_nodelay(true).unwrap();
                tokio::spawn(async move {
                    let mut buffer = [0; 4096];
                    while stream.read(&mut buffer).await.is_ok_and(|read| read > 0) {
                        let into = begun.elapsed().as_micros() as u64 % 2_000_000;
                        if into < 200_000 {
                            tokio::time::sleep(Duration::from_micros(200_000 - into)).await;
                        }
                        let answer = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";
                        if stream.write_all(answer).await.is_err() {
                            return;
                        }
                    }
                });
            }
        });
    });
    is_ready.recv().unwrap();
}

fn stall() {
    stalling_server();
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    let mut asked = Adhoc::new(url(), 8, StopRule::After(Duration::from_secs(20)));
    let show = |name: &str, asked: &Adhoc| {
        let report = runtime
            .block_on(adhoc(asked, std::future::pending()))
            .unwrap();
        println!(
            "{name:12} p50 {:?} p99 {:?} max {:?} ms, {} not sent, send delay {} us",
            report.latency_ms.p50.ms(),
            report.latency_ms.p99.ms(),
            report.latency_ms.max,
            report.requests.not_sent,
            report.driver.send_delay_us
        );
    };
    show("closed loop", &asked);
    asked.rate = Some(3200.0);
    asked.max_in_flight = 2000;
    show("open loop", &asked);
    let wrk = Command::new("wrk")
        .args(["-t1", "-c8", "-d20s", "--latency", &url()])
        .output();
    println!("{}", String::from_utf8_lossy(&wrk.unwrap().stdout));
    let oha = std::env::var("OHA").unwrap_or("oha".into());
    let oha = Command::new(oha)
        .args(["--no-tui", "-c", "8", "-z", "20s", &url()])
        .output();
    println!(
        "{}",
        oha.map_or("no oha".into(), |o| String::from_utf8_lossy(&o.stdout)
            .into_owned())
    );
}

struct Nginx(Child, tempfile::TempDir);

impl Nginx {
    fn start() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().display();
        let text = format!(
            "worker_processes 1; daemon off; master_process off; pid {path}/pid; error_log {path}/error.log;
             events {{ worker_connections 1024; }}
             http {{ access_log off; keepalive_requests 1000000000; client_body_temp_path {path}/b;
               proxy_temp_path {path}/p; fastcgi_temp_path {path}/f; uwsgi_temp_path {path}/u; scgi_temp_path {path}/s;
               server {{ listen 127.0.0.1:{PORT}; location / {{ return 200 \"hello world\\n\"; }} }} }}"
        );
        let file = dir.path().join("nginx.conf");
        std::fs::write(&file, text).unwrap();
        let child = Command::new("nginx").arg("-c").arg(&file).spawn();
        let nginx = Nginx(
            child.expect("nginx must be installed (apt install nginx-light)"),
            dir,
        );
        for _ in 0..100 {
            if std::net::TcpStream::connect(("127.0.0.1", PORT)).is_ok() {
                return nginx;
            }
            std::thread::sleep(Duration::from_millis(50));
        }
        panic!(
            "nginx does not listen; its folder is {}",
            nginx.1.path().display()
        );
    }
}

impl Drop for Nginx {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// CPU seconds of all children that have ended.
fn children_cpu_s() -> f64 {
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap();
    let after_name = stat.rsplit(')').next().unwrap();
    let fields: Vec<&str> = after_name.split_whitespace().collect();
    let ticks: u64 = fields[13].parse::<u64>().unwrap() + fields[14].parse::<u64>().unwrap();
    ticks as f64 / rustix::param::clock_ticks_per_second() as f64
}

/// CPU microseconds a request of one client process.
fn measure(mut command: Command, requests: impl Fn(&str) -> f64) -> Option<(f64, f64)> {
    let before = children_cpu_s();
    let output = command.stderr(Stdio::null()).output().ok()?;
    let cpu = children_cpu_s() - before;
    let done = requests(&String::from_utf8_lossy(&output.stdout));
    Some((cpu * 1e6 / done, done))
}

fn run(name: &str, clients: u32, seconds: u64) -> Option<(f64, f64)> {
    let duration = format!("{seconds}s");
    let connections = clients.to_string();
    let number = |text: &str| text.trim().parse().unwrap();
    match name {
        "wrk" => {
            let mut command = Command::new("wrk");
            command.args(["-t1", "-c", &connections, "-d", &duration, &url()]);
            measure(command, |text| {
                let line = text
                    .lines()
                    .find(|line| line.contains(" requests in "))
                    .unwrap();
                number(line.split_whitespace().next().unwrap())
            })
        }
        "oha" => {
            let mut command = Command::new(std::env::var("OHA").unwrap_or("oha".into()));
            command.args([
                "--no-tui",
                "-c",
                &connections,
                "-z",
                &duration,
                "--output-format",
                "json",
            ]);
            command.arg(url());
            measure(command, |text| {
                let report: serde_json::Value = serde_json::from_str(text).unwrap();
                let statuses = report["statusCodeDistribution"].as_object().unwrap();
                statuses.values().filter_map(|count| count.as_f64()).sum()
            })
        }
        "rewrk" => {
            let mut command = Command::new(std::env::var("REWRK").unwrap_or("rewrk".into()));
            command.args(["-t", "1", "-c", &connections, "-d", &duration, "--json"]);
            command.args(["-h", &url()]);
            measure(command, |text| {
                let report: serde_json::Value = serde_json::from_str(text.trim()).unwrap();
                report["requests_total"].as_f64().unwrap()
            })
        }
        _ => {
            let mut command = Command::new(std::env::current_exe().unwrap());
            let mode = if name == "ceteris" { "client" } else { "hyper" };
            command.args([mode, &connections, &seconds.to_string()]);
            measure(command, number)
        }
    }
}

fn rounds(rounds: usize, seconds: u64) {
    let nginx = Nginx::start();
    let names = ["wrk", "ceteris", "hyper", "oha", "rewrk"];
    println!("client CPU a request relative to wrk's, {rounds} rounds of {seconds} s each");
    for clients in [8, 32, 128] {
        let mut ratios: Vec<Vec<f64>> = vec![Vec::new(); names.len()];
        let mut absolute = vec![Vec::new(); names.len()];
        for round in 0..rounds {
            let mut cpu = vec![None; names.len()];
            for place in 0..names.len() {
                // Each takes each place in turn.
                let at = (place + round) % names.len();
                cpu[at] = run(names[at], clients, seconds);
            }
            let (base, _) = cpu[0].expect("wrk must be installed (apt install wrk)");
            for (at, cpu) in cpu.iter().enumerate() {
                if let Some((cpu, done)) = cpu {
                    ratios[at].push((cpu / base).ln());
                    absolute[at].push((*cpu, done / seconds as f64));
                }
            }
        }
        for (at, name) in names
            .iter()
            .enumerate()
            .filter(|(at, _)| !ratios[*at].is_empty())
        {
            let (low, mid, high) = interval(&ratios[at]);
            let mean = |pick: fn(&(f64, f64)) -> f64| {
                absolute[at].iter().map(pick).sum::<f64>() / absolute[at].len() as f64
            };
            println!(
                "{clients:4} connections  {name:8} {mid:.2} ({low:.2} to {high:.2})  {:6.2} us  {:8.0} a second",
                mean(|pair| pair.0),
                mean(|pair| pair.1)
            );
        }
    }
    drop(nginx);
}

/// Geometric mean with a 95 % t interval.
fn interval(logs: &[f64]) -> (f64, f64, f64) {
    use statrs::distribution::{ContinuousCDF, StudentsT};
    let n = logs.len() as f64;
    let mean = logs.iter().sum::<f64>() / n;
    if logs.len() < 2 {
        return (f64::NAN, mean.exp(), f64::NAN);
    }
    let variance = logs.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / (n - 1.0);
    let t = StudentsT::new(0.0, 1.0, n - 1.0)
        .unwrap()
        .inverse_cdf(0.975);
    let half = t * (variance / n).sqrt();
    ((mean - half).exp(), mean.exp(), (mean + half).exp())
}
