//! Ad hoc load: one URL, one object that says what became of it.

use std::collections::BTreeMap;
use std::future::Future;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use anyhow::Context;
use serde::Serialize;

use super::driver::{Driver, PhaseSpec, StopRule};
use super::environment::Environment;
use super::failure::FailureRow;
use super::running::PhaseTotals;
use super::summary::{self, DriverUse, Times};
use super::target::Target;
use crate::experiment::{
    Arrival, Body, Clients, Expect, Load, Pick, Protocol, Stage, Step, Workload,
};
use crate::measure::{FailureClass, Phase};
use crate::name::{ServiceName, StepName};

/// Failed requests that are shown in full.
const SHOWN: usize = 5;

/// What is asked for.
#[derive(Debug, Clone)]
pub struct Adhoc {
    /// Where to.
    pub url: String,
    /// Clients of a closed loop; without a meaning for an open one.
    pub clients: u32,
    /// Requests a second: an open loop.
    pub rate: Option<f64>,
    /// Most requests in flight of an open loop.
    pub max_in_flight: usize,
    /// When it ends.
    pub stop: StopRule,
    /// Driven before, not counted; zero for none.
    pub warmup: Duration,
    /// `GET` and so on.
    pub method: String,
    /// Headers of every request; the values are templates.
    pub headers: Vec<(String, String)>,
    /// What the headers take from the caller's environment.
    pub environment: Environment,
    /// A body, as it is.
    pub body: Option<Vec<u8>>,
    /// For a whole answer.
    pub timeout: Duration,
    /// For a connection.
    pub connect_timeout: Duration,
    /// HTTP/1.1 or HTTP/2.
    pub protocol: Protocol,
    /// A CA file to trust alone.
    pub ca: Option<PathBuf>,
    /// Trust any certificate.
    pub insecure: bool,
    /// A Unix socket in place of the URL's address.
    pub socket: Option<PathBuf>,
    /// Processors, one load thread each.
    pub pin: Option<Vec<usize>>,
    /// The URL may be another machine's.
    pub allow_remote: bool,
    /// For the draws of arrivals.
    pub seed: u64,
}

impl Adhoc {
    /// The usual: a closed loop of GET.
    pub fn new(url: impl Into<String>, clients: u32, stop: StopRule) -> Self {
        Adhoc {
            url: url.into(),
            clients,
            rate: None,
            max_in_flight: 1000,
            stop,
            warmup: Duration::ZERO,
            method: "GET".into(),
            headers: Vec::new(),
            environment: Environment::default(),
            body: None,
            timeout: Duration::from_secs(10),
            connect_timeout: Duration::from_secs(5),
            protocol: Protocol::Http1,
            ca: None,
            insecure: false,
            socket: None,
            pin: None,
            allow_remote: false,
            seed: 1,
        }
    }
}

/// What became of it.
#[derive(Debug, Clone, Serialize)]
pub struct AdhocReport {
    /// Version of this object's form.
    pub schema: u32,
    /// Version of the tool.
    pub ceteris: &'static str,
    pub url: String,
    /// Every address of its name.
    pub addresses: Vec<SocketAddr>,
    /// Who sends when, in words: latencies mean nothing without it.
    pub load: String,
    /// Seconds that rates are divided by.
    pub seconds: f64,
    pub requests: Requests,
    pub rate: Rate,
    /// Failed requests by class; `status_503` is in `status_5xx` too.
    pub failures: BTreeMap<FailureClass, u64>,
    /// Of completed requests, in milliseconds.
    pub latency_ms: Times,
    /// Opening connections, TLS included, in milliseconds.
    pub connect_ms: Times,
    pub bytes: Bytes,
    /// Closed loop, between 0.97 and 1.03 when the records are whole.
    pub littles_ratio: Option<f64>,
    /// The clients' own work between requests, as a share of their time.
    pub overhead_share: Option<f64>,
    pub driver: DriverUse,
    /// The driver runs on the machine that it measures and may take processor time from it.
    pub shares_processors: bool,
    pub cut: Cut,
    /// The first failed requests.
    pub first_failures: Vec<ShownFailure>,
    /// The user stopped it early.
    pub interrupted: bool,
}

/// Counts: `sent = ok + failed + cut`.
#[derive(Debug, Clone, Serialize)]
pub struct Requests {
    pub sent: u64,
    pub ok: u64,
    pub failed: u64,
    /// Ended with a whole answer, whatever it said.
    pub answered: u64,
    /// In flight at the end: neither ok nor failed.
    pub cut: u64,
    /// Open loop: due and not sent in time.
    pub not_sent: u64,
    pub connections: u64,
    pub stale_connections: u64,
}

/// Requests a second.
#[derive(Debug, Clone, Serialize)]
pub struct Rate {
    /// Open loop.
    pub asked: Option<f64>,
    /// Ok ones.
    pub delivered: f64,
}

/// Bytes within TLS and HTTP/2.
#[derive(Debug, Clone, Serialize)]
pub struct Bytes {
    pub read: u64,
    pub written: u64,
    pub read_per_second: f64,
}

/// What was in flight at the end.
#[derive(Debug, Clone, Serialize)]
pub struct Cut {
    /// The longest time under way at the end, in milliseconds.
    pub oldest_ms: Option<f64>,
    /// How many had a whole answer afterwards.
    pub answered_later: u64,
}

/// One failed request.
#[derive(Debug, Clone, Serialize)]
pub struct ShownFailure {
    pub at_s: f64,
    pub class: FailureClass,
    pub status: Option<u16>,
    pub received: u64,
    pub promised: Option<u64>,
    pub said: String,
}

impl AdhocReport {
    /// Something failed, was not sent, or the driver may have been the limit: the command's exit code is 1.
    pub fn has_fault(&self) -> bool {
        self.requests.failed > 0 || self.requests.not_sent > 0 || self.driver.was_the_limit
    }

    /// No request had an answer with a status: the command's exit code is 3.
    pub fn nothing_answered(&self) -> bool {
        self.requests.answered == 0
    }
}

/// Drives it until it is done or `interrupt` completes; what was measured until then is kept.
pub async fn adhoc(
    asked: &Adhoc,
    interrupt: impl Future<Output = ()>,
) -> anyhow::Result<AdhocReport> {
    let clients = clients(asked)?;
    let target = Target::resolve(&asked.url, &clients)
        .await
        .with_context(|| format!("preparing load on {}", asked.url))?;
    let workload = workload(asked, &target.path)?;
    let addresses = target.addresses.clone();
    let mut driver = Driver::new(
        &clients,
        &workload,
        target,
        asked.seed,
        asked.environment.clone(),
    )?;
    tokio::pin!(interrupt);
    let mut interrupted = false;
    if !asked.warmup.is_zero() {
        let warmup = driver.start(PhaseSpec {
            phase: Phase::Warmup,
            stop: StopRule::After(asked.warmup),
        });
        tokio::select! {
            _ = drain(warmup) => {}
            () = &mut interrupt => anyhow::bail!("stopped during warm-up, nothing was measured"),
        }
    }
    let mut running = driver.start(PhaseSpec {
        phase: Phase::Measuring,
        stop: asked.stop,
    });
    let mut failures: Vec<FailureRow> = Vec::new();
    loop {
        tokio::select! {
            second = running.next_second() => {
                for row in running.take_failures() {
                    if failures.len() < SHOWN {
                        failures.push(row);
                    }
                }
                if second.is_none() {
                    break;
                }
            }
            () = &mut interrupt, if !interrupted => {
                interrupted = true;
                running.stop();
            }
        }
    }
    let totals = running.finish().await;
    let mut report = report(asked, &driver, &totals, failures);
    report.addresses = addresses;
    report.interrupted = interrupted;
    Ok(report)
}

/// Takes every second of a phase that is not kept, and its totals.
pub(super) async fn drain(mut running: super::running::Running) -> PhaseTotals {
    while running.next_second().await.is_some() {
        running.take_failures();
    }
    running.finish().await
}

fn report(
    asked: &Adhoc,
    driver: &Driver,
    totals: &PhaseTotals,
    failures: Vec<FailureRow>,
) -> AdhocReport {
    let counts = &totals.counts;
    let timeout_s = asked.timeout.as_secs_f64();
    let latency = summary::latencies(totals, timeout_s * 1e3);
    let clients = driver.clients();
    let closed = asked.rate.is_none();
    let seconds = totals.seconds;
    let per_second = |count: u64| {
        if seconds > 0.0 {
            count as f64 / seconds
        } else {
            0.0
        }
    };
    let available = totals.account.total_s();
    let cut_ages = totals.cut.iter().map(|cut| cut.age.as_secs_f64() * 1e3);
    let answered = |cut: &&super::failure::CutRequest| {
        matches!(cut.drained, Some((crate::measure::Outcome::Ok, _)))
    };
    AdhocReport {
        schema: 1,
        ceteris: env!("CARGO_PKG_VERSION"),
        url: asked.url.clone(),
        addresses: Vec::new(),
        load: match asked.rate {
            None => format!("closed loop, {clients} clients, no think time"),
            Some(rate) => {
                format!("open loop, {rate} requests a second, at most {clients} in flight")
            }
        },
        seconds,
        requests: Requests {
            sent: counts.sent,
            ok: counts.ok,
            failed: counts.failed_total(),
            answered: summary::answered(counts),
            cut: counts.cut,
            not_sent: counts.not_sent,
            connections: counts.connects,
            stale_connections: counts.stale_connections,
        },
        rate: Rate {
            asked: asked.rate,
            delivered: per_second(counts.ok),
        },
        failures: summary::failures(counts),
        connect_ms: summary::times(&totals.connect_us, 0, 0.0),
        bytes: Bytes {
            read: totals.bytes_read,
            written: totals.bytes_written,
            read_per_second: per_second(totals.bytes_read),
        },
        littles_ratio: closed
            .then(|| summary::littles_ratio(totals, clients, timeout_s))
            .flatten(),
        overhead_share: (closed && available > 0.0).then(|| totals.account.overhead_s / available),
        driver: summary::driver_use(totals, latency.p50.ms()),
        latency_ms: latency,
        // Load that leaves this machine is the exception.
        shares_processors: !asked.allow_remote,
        cut: Cut {
            oldest_ms: cut_ages.reduce(f64::max),
            answered_later: totals.cut.iter().filter(answered).count() as u64,
        },
        first_failures: failures
            .into_iter()
            .map(|row| ShownFailure {
                at_s: row.at_s,
                class: row.class,
                status: row.status,
                received: row.received,
                promised: row.promised,
                said: row.said,
            })
            .collect(),
        interrupted: false,
    }
}

/// What was asked for, as an experiment's clients.
pub(super) fn clients(asked: &Adhoc) -> anyhow::Result<Clients> {
    anyhow::ensure!(asked.clients > 0, "at least one client is needed");
    anyhow::ensure!(
        asked.rate.is_none_or(|rate| rate.is_finite() && rate > 0.0),
        "the rate must be above 0 requests a second"
    );
    let stage = |level| {
        let length = None;
        vec![Stage { level, length }]
    };
    Ok(Clients {
        target: ServiceName::new("target").context("naming the target")?,
        load: match asked.rate {
            None => Load::Closed {
                stages: stage(f64::from(asked.clients)),
                think: Duration::ZERO,
                ramp: Duration::ZERO,
            },
            Some(rate) => Load::Open {
                stages: stage(rate),
                arrival: Arrival::Poisson,
                max_in_flight: asked.max_in_flight.max(1),
            },
        },
        timeout: asked.timeout,
        connect_timeout: asked.connect_timeout,
        protocol: asked.protocol,
        ca: asked.ca.clone(),
        insecure: asked.insecure,
        socket: asked.socket.as_ref().map(|path| path.display().to_string()),
        pin: asked.pin.clone(),
        allow_remote: asked.allow_remote,
        headers: asked.headers.clone(),
    })
}

/// One step: the URL's path.
pub(super) fn workload(asked: &Adhoc, path: &str) -> anyhow::Result<Workload> {
    Ok(Workload {
        pick: Pick::Cycle,
        steps: vec![Step {
            name: StepName::new("request").context("naming the step")?,
            method: asked.method.clone(),
            // A URL is no template.
            path: path.replace('{', "%7B").replace('}', "%7D"),
            weight: 1,
            headers: Vec::new(),
            body: asked.body.clone().map(|bytes| Body::File {
                path: PathBuf::new(),
                bytes,
            }),
            expect: Expect::default(),
            keep: BTreeMap::new(),
        }],
    })
}
