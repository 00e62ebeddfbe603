//! Ways to a server other than plain HTTP/1.1 over TCP: TLS, HTTP/2, Unix sockets. And loops other than the plain one.

use std::convert::Infallible;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use ceteris::experiment::{Arrival, Clients, Load, Protocol, Stage};
use ceteris::load::{Driver, Environment, PhaseSpec, StopRule, Target};
use ceteris::measure::{FailureClass, Phase};
use http_body_util::{BodyExt, Full};
use hyper::body::{Bytes, Incoming};
use hyper_util::rt::{TokioExecutor, TokioIo};
use tokio::io::{AsyncRead, AsyncWrite};

use crate::load::{clients, driver, phase, step, workload};
use crate::misbehaving::Misbehaving;

fn fixture(name: &str) -> PathBuf {
    [env!("CARGO_MANIFEST_DIR"), "tests/it/tls", name]
        .iter()
        .collect()
}

fn acceptor(protocol: &[u8]) -> tokio_rustls::TlsAcceptor {
    let read = |name| std::fs::read(fixture(name)).unwrap();
    let certificates = rustls_pemfile::certs(&mut read("server.pem").as_slice())
        .collect::<Result<Vec<_>, _>>()
        .unwrap();
    let key = rustls_pemfile::private_key(&mut read("server.key").as_slice())
        .unwrap()
        .unwrap();
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let mut config = rustls::ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(certificates, key)
        .unwrap();
    config.alpn_protocols = vec![protocol.to_vec()];
    Arc::new(config).into()
}

/// Answers with the method, the path and the body that it was sent.
async fn echo(
    request: hyper::Request<Incoming>,
) -> Result<hyper::Response<Full<Bytes>>, Infallible> {
    let head = format!("{} {} ", request.method(), request.uri().path());
    let mut body = head.into_bytes();
    if request.uri().path() == "/broken" {
        return Ok(hyper::Response::builder()
            .status(503)
            .body(Full::default())
            .unwrap());
    }
    body.extend_from_slice(&request.into_body().collect().await.unwrap().to_bytes());
    Ok(hyper::Response::new(Full::new(body.into())))
}

async fn serve(stream: impl AsyncRead + AsyncWrite + Unpin + 'static + Send, http2: bool) {
    let io = TokioIo::new(stream);
    let service = hyper::service::service_fn(echo);
    if http2 {
        let server = hyper::server::conn::http2::Builder::new(TokioExecutor::new());
        let _ = server.serve_connection(io, service).await;
    } else {
        let server = hyper::server::conn::http1::Builder::new();
        let _ = server.serve_connection(io, service).await;
    }
}

/// A server on a free port; its address.
async fn listen(tls: Option<tokio_rustls::TlsAcceptor>, http2: bool) -> String {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap().to_string();
    tokio::spawn(async move {
        loop {
            let (stream, _) = listener.accept().await.unwrap();
            let tls = tls.clone();
            tokio::spawn(async move {
                match tls {
                    None => serve(stream, http2).await,
                    Some(tls) => {
                        if let Ok(stream) = tls.accept(stream).await {
                            serve(stream, http2).await;
                        }
                    }
                }
            });
        }
    });
    address
}

async fn ok_of_fifty(url: &str, clients: &Clients) -> ceteris::measure::Counts {
    let mut post = step("post", "POST", "/echo");
    post.body = Some(ceteris::experiment::Body::Raw("n {{ iteration }}".into()));
    let mut driver = driver(
        url,
        clients,
        &workload(vec![step("get", "GET", "/x"), post]),
    )
    .await;
    let preflight = driver.preflight().await;
    let drive = phase(&mut driver, StopRule::Requests(50)).await;
    assert_eq!(
        preflight.iter().all(|p| p.ok),
        drive.totals.counts.ok == 50,
        "{preflight:?}"
    );
    drive.totals.counts
}

#[tokio::test]
async fn tls_trusts_its_ca_alone_or_anything_when_told_so() {
    let address = listen(Some(acceptor(b"http/1.1")), false).await;
    let url = format!("https://{address}");
    let mut trusting = clients(2);
    trusting.ca = Some(fixture("ca.pem"));
    assert_eq!(ok_of_fifty(&url, &trusting).await.ok, 50);
    let mut careless = clients(2);
    careless.insecure = true;
    assert_eq!(ok_of_fifty(&url, &careless).await.ok, 50);
    // An unknown CA is the client's own refusal, never blamed on the server.
    let counts = ok_of_fifty(&url, &clients(2)).await;
    assert_eq!(counts.class(FailureClass::ClientSide), 50);
    // A server that does not speak TLS does not speak what was asked for.
    let plain = listen(None, false).await;
    let counts = ok_of_fifty(&format!("https://{plain}"), &careless).await;
    assert_eq!(counts.class(FailureClass::Malformed), 50);
}

#[tokio::test]
async fn http2_is_spoken_by_alpn_and_by_prior_knowledge() {
    let mut clients = clients(3);
    clients.protocol = Protocol::Http2;
    clients.ca = Some(fixture("ca.pem"));
    let prior = listen(None, true).await;
    let counts = ok_of_fifty(&format!("http://{prior}"), &clients).await;
    assert_eq!((counts.ok, counts.connects), (50, 3));
    let alpn = listen(Some(acceptor(b"h2")), true).await;
    assert_eq!(
        ok_of_fifty(&format!("https://{alpn}"), &clients).await.ok,
        50
    );
    // A server without it refuses at the handshake or by silence on ALPN: not what was asked for either way.
    let without = listen(Some(acceptor(b"http/1.1")), false).await;
    let counts = ok_of_fifty(&format!("https://{without}"), &clients).await;
    assert_eq!(counts.class(FailureClass::Malformed), 50, "{counts:?}");
    let broken = workload(vec![step("only", "GET", "/broken")]);
    let mut driver = driver(&format!("http://{prior}"), &clients, &broken).await;
    let drive = phase(&mut driver, StopRule::Requests(10)).await;
    assert_eq!(drive.totals.counts.class(FailureClass::Status503), 10);
    assert_eq!(drive.totals.counts.connects, 3);
}

#[tokio::test]
async fn a_unix_socket_takes_the_place_of_the_address() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("app.sock");
    let mut clients = clients(2);
    clients.socket = Some(path.display().to_string());
    // No file: nobody listens.
    let counts = ok_of_fifty("http://app", &clients).await;
    assert_eq!(counts.class(FailureClass::Refused), 50);
    let listener = tokio::net::UnixListener::bind(&path).unwrap();
    tokio::spawn(async move {
        loop {
            let (stream, _) = listener.accept().await.unwrap();
            tokio::spawn(serve(stream, false));
        }
    });
    assert_eq!(ok_of_fifty("http://app", &clients).await.ok, 50);
}

#[tokio::test]
async fn load_leaves_this_machine_only_by_intent() {
    let far = Target::resolve("http://192.0.2.1/", &clients(1)).await;
    assert!(far.unwrap_err().to_string().contains("allow_remote"));
    let mut remote = clients(1);
    remote.allow_remote = true;
    let target = Target::resolve("http://192.0.2.1/", &remote).await.unwrap();
    assert_eq!((target.port, target.addresses.len()), (80, 1));
    for bad in [
        "ftp://127.0.0.1/",
        "127.0.0.1",
        "http://u:p@127.0.0.1/",
        "http://",
    ] {
        assert!(Target::resolve(bad, &remote).await.is_err(), "{bad}");
    }
}

fn stages(levels: &[(f64, Option<u64>)]) -> Vec<Stage> {
    let stage = |(level, ms): &(f64, Option<u64>)| Stage {
        level: *level,
        length: ms.map(Duration::from_millis),
    };
    levels.iter().map(stage).collect()
}

#[tokio::test]
async fn stages_think_time_and_bursts_change_who_sends() {
    let server = Misbehaving::start();
    let slow = workload(vec![step("slow", "GET", "/slow?ms=5")]);
    let mut staged = clients(1);
    staged.load = Load::Closed {
        stages: stages(&[(0.0, Some(1000)), (3.0, Some(1000)), (1.0, None)]),
        think: Duration::from_millis(5),
        ramp: Duration::ZERO,
    };
    let mut driver = driver(&server.url(), &staged, &slow).await;
    let drive = phase(&mut driver, StopRule::After(Duration::from_secs(3))).await;
    let of = |i: usize| &drive.seconds[i];
    assert_eq!(of(0).counts.sent, 0);
    assert_eq!(drive.totals.counts.connects, 3);
    assert!(of(1).counts.connects == 3, "{:?}", of(1).counts);
    let account = drive.totals.account;
    assert!(
        account.think_s > 0.0 && account.in_flight_s > 0.0,
        "{account:?}"
    );
    assert_eq!(of(0).account.total_s(), 0.0);

    let mut driver = crate::load::driver(&server.url(), &clients(1), &slow).await;
    let mut running = driver.start(PhaseSpec {
        phase: Phase::Measuring,
        stop: StopRule::After(Duration::from_secs(2)),
    });
    running.next_second().await.unwrap();
    running.burst(4, Duration::from_millis(300));
    let totals = running.finish().await;
    assert_eq!(totals.counts.connects, 5);
}

#[tokio::test]
async fn both_arms_draw_the_same_arrivals_whatever_their_speed() {
    let server = Misbehaving::start();
    let mut open = clients(1);
    open.load = Load::Open {
        stages: stages(&[(300.0, None)]),
        arrival: Arrival::Poisson,
        max_in_flight: 200,
    };
    let mut due = Vec::new();
    for path in ["/ok", "/slow?ms=20"] {
        let workload = workload(vec![step("only", "GET", path)]);
        let mut driver = driver(&server.url(), &open, &workload).await;
        let drive = phase(&mut driver, StopRule::After(Duration::from_secs(1))).await;
        due.push(drive.totals.counts.sent + drive.totals.counts.not_sent);
    }
    assert_eq!(due[0], due[1]);
    assert!((230..370).contains(&due[0]), "{due:?}");
}

#[tokio::test]
async fn values_and_connections_survive_from_warm_up_and_a_stop_is_kept() {
    let server = Misbehaving::start();
    let mut list = step("list", "GET", "/list");
    list.keep.insert("id".into(), "/items/*/id".into());
    let fetch = step("fetch", "GET", "/echo?id={{ id }}");
    let mut driver = driver(&server.url(), &clients(2), &workload(vec![list, fetch])).await;
    let warm = driver.start(PhaseSpec {
        phase: Phase::Warmup,
        stop: StopRule::Requests(100),
    });
    assert_eq!(warm.finish().await.counts.connects, 2);
    let mut running = driver.start(PhaseSpec {
        phase: Phase::Measuring,
        stop: StopRule::After(Duration::from_secs(600)),
    });
    running.next_second().await.unwrap();
    running.stop();
    while running.next_second().await.is_some() {}
    let totals = running.finish().await;
    assert!(totals.seconds < 60.0);
    // Every client already holds an id and a connection.
    assert_eq!((totals.counts.redrawn, totals.counts.connects), (0, 0));
    let ended = totals.counts.ok + totals.counts.failed_total() + totals.counts.cut;
    assert_eq!(totals.counts.sent, ended);
}

#[tokio::test]
async fn faults_of_a_workload_are_found_before_any_request() {
    let target = Target::resolve("http://127.0.0.1:9", &clients(1))
        .await
        .unwrap();
    let mut framed = step("framed", "POST", "/x");
    framed.headers.push(("Content-Length".into(), "3".into()));
    for (bad, text) in [
        (step("a", "GET", "/{{ nothing }}"), "nothing"),
        (step("a", "GET", "x"), "begin with '/'"),
        (framed, "Content-Length"),
    ] {
        let fault = Driver::new(
            &clients(1),
            &workload(vec![bad]),
            target.clone(),
            1,
            Environment::default(),
        )
        .unwrap_err();
        assert!(format!("{fault:#}").contains(text), "{fault:#}");
    }
}

#[tokio::test]
async fn preflight_says_what_is_wrong_with_each_step() {
    let server = Misbehaving::start();
    let mut empty = step("empty", "GET", "/empty-list");
    empty.keep.insert("id".into(), "/items/*/id".into());
    let needs = step("needs", "GET", "/echo?{{ id }}");
    let steps = vec![
        step("missing", "GET", "/404"),
        empty,
        needs,
        step("fine", "GET", "/ok"),
    ];
    let mut driver = driver(&server.url(), &clients(1), &workload(steps)).await;
    let results = driver.preflight().await;
    let told: Vec<_> = results.iter().map(|r| (r.step.as_str(), r.ok)).collect();
    assert_eq!(
        told,
        [
            ("missing", false),
            ("empty", false),
            ("needs", false),
            ("fine", true)
        ]
    );
    assert!(
        results[0].detail.contains("answered 404: no such thing"),
        "{}",
        results[0].detail
    );
    assert!(results[1].detail.contains("'id'"), "{}", results[1].detail);
    assert!(results[2].detail.contains("'id'"), "{}", results[2].detail);
}
