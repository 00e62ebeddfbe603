//! Process trees, the host, status pages and logs, on real processes.

use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::net::TcpListener;
use std::process::{Child, Command, Stdio};

use ceteris::experiment::{FieldKind, StatusField, StatusPage};
use ceteris::measure::{EventKind, HOST, RUNNER};
use ceteris::name::ServiceName;
use ceteris::sample::{Observation, ProcessRoot, WatchedLog, WatchedService, WatchedStatus};
use rustix::process::Uid;
use rustix::thread::set_thread_res_uid;
use tokio::sync::watch;

use super::server::{Watching, assert_no_negative_figure};

/// A child that is killed with the value.
struct Kept(Child);

impl Kept {
    fn start(program: &str, arguments: &[&str]) -> Self {
        let mut command = Command::new(program);
        command.args(arguments).stdin(Stdio::null());
        Self(command.spawn().unwrap())
    }

    fn root(&self, epoch: u32) -> Option<ProcessRoot> {
        Some(ProcessRoot {
            pid: self.0.id(),
            epoch,
        })
    }
}

impl Drop for Kept {
    fn drop(&mut self) {
        // It may have been killed already.
        let _ = self.0.kill();
        self.0.wait().unwrap();
    }
}

fn service(process: watch::Receiver<Option<ProcessRoot>>) -> WatchedService {
    WatchedService {
        name: ServiceName::new("app").unwrap(),
        process,
        cgroups: Vec::new(),
        sql: None,
        status: None,
        log: None,
    }
}

/// Metrics that were said not to be observed, with the reason.
fn not_observed(seen: &[Observation]) -> BTreeMap<String, String> {
    seen.iter()
        .filter_map(|one| match one {
            Observation::Event {
                kind: EventKind::NotObserved { metric, reason, .. },
                ..
            } => Some((metric.clone(), reason.clone())),
            _ => None,
        })
        .collect()
}

const BUSY: &str = "while :; do :; done";

#[tokio::test]
async fn a_killed_and_restarted_process_begins_a_new_epoch() {
    let first = Kept::start("sh", &["-c", BUSY]);
    let (up, process) = watch::channel(first.root(0));
    let mut watching = Watching::start(vec![service(process)], None);
    watching
        .sample("cpu_user_s", |s| s.service == "app" && s.value > 0.2)
        .await;
    drop(first);
    up.send(None).unwrap();
    let second = Kept::start("sh", &["-c", "sleep 60"]);
    up.send(second.root(1)).unwrap();
    let again = watching
        .sample("cpu_user_s", |s| s.service == "app" && s.epoch == 1)
        .await;
    assert!(again.value < 0.2, "a new life begins at nothing");
    // The shell and what it started.
    let threads = watching
        .sample("threads", |s| s.service == "app" && s.epoch == 1)
        .await;
    assert!(threads.value >= 1.0);
    watching.sample("descriptors", |s| s.value >= 3.0).await;
    let (totals, seen) = watching.stop().await;
    assert!(totals.taken <= totals.planned);
    assert_no_negative_figure(&seen);
}

#[tokio::test]
async fn a_bad_second_names_what_else_ran() {
    let ours = Kept::start("sleep", &["60"]);
    let _stranger = Kept::start("sh", &["-c", BUSY]);
    let watching_ours = watch::channel(ours.root(0)).1;
    let mut watching = Watching::start(vec![service(watching_ours)], None);
    // Other programs may be bigger in one second, so each is asked about until it is among the biggest.
    let named = |one: &Observation| {
        matches!(one, Observation::Event { kind: EventKind::Host(facts), .. }
            if facts.others.iter().any(|o| o.command == "sh" && o.cores > 0.05))
    };
    let counted = |one: &Observation| matches!(one, Observation::Host { host, .. } if host.other_cpu > 0.05 && host.busy >= host.other_cpu);
    while !watching.seen.iter().any(named) {
        let second = watching
            .wait(|one| matches!(one, Observation::Host { .. }) || named(one))
            .await;
        if let Observation::Host { second, .. } = second {
            watching.sampler.bad_second(second);
        }
    }
    assert!(watching.seen.iter().any(counted));
    watching
        .sample("memory.rss", |s| s.service == RUNNER && s.value > 0.0)
        .await;
    let (_, seen) = watching.stop().await;
    assert!(seen.iter().any(|one| matches!(one,
        Observation::Event { kind: EventKind::Clock { monotonic_s, wall_s }, .. } if (monotonic_s - wall_s).abs() < 1.0)));
}

/// As root the sampler is started from a thread that has given up root, and inherits that; anyone else may not read process 1.
#[tokio::test]
async fn what_may_not_be_read_is_not_observed_with_the_reason() {
    let target = Kept::start("sleep", &["60"]);
    let is_root = rustix::process::geteuid().is_root();
    let pid = if is_root { target.0.id() } else { 1 };
    let process = watch::channel(Some(ProcessRoot { pid, epoch: 0 })).1;
    let watched = service(process);
    let watching = std::thread::spawn(move || {
        if is_root {
            let nobody = Uid::from_raw(65534);
            set_thread_res_uid(nobody, nobody, nobody).unwrap();
        }
        Watching::start(vec![watched], None)
    })
    .join()
    .unwrap();
    let (_, seen) = watching.stop().await;
    let missing = not_observed(&seen);
    for metric in ["descriptors", "memory.pss", "io.read_bytes"] {
        let reason = missing
            .get(metric)
            .unwrap_or_else(|| panic!("{metric}: {missing:?}"));
        assert!(reason.contains("another user"), "{reason}");
    }
    let read = |wanted: &str| {
        seen.iter().any(
            |one| matches!(one, Observation::Sample(s) if s.service == "app" && s.metric == wanted),
        )
    };
    assert!(
        read("cpu_user_s") && read("threads"),
        "what anyone may read is read"
    );
    assert!(!read("descriptors") && !read("memory.pss"));
}

#[tokio::test]
async fn a_service_that_never_was_is_not_observed() {
    let (_up, process) = watch::channel(None);
    let (_, seen) = Watching::start(vec![service(process)], None).stop().await;
    let missing = not_observed(&seen);
    for metric in ["cpu_user_s", "memory", "descriptors", "threads"] {
        assert!(missing.contains_key(metric), "{missing:?}");
    }
}

#[tokio::test]
async fn status_pages_and_logs_become_series() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let base = format!("http://{}", listener.local_addr().unwrap());
    // Answers forever; the thread ends with the test's process.
    std::thread::spawn(move || {
        for (served, stream) in (1..).zip(listener.incoming()) {
            let mut stream = stream.unwrap();
            let mut request = [0; 1024];
            let length = stream.read(&mut request).unwrap();
            assert!(request[..length].starts_with(b"GET /status HTTP/1.1"));
            let page = format!("{{\"jobs\":{{\"open\":4,\"done\":{served}}},\"rss\":\"1.2GiB\"}}");
            write!(
                stream,
                "HTTP/1.1 200 OK\r\ncontent-length: {}\r\n\r\n{page}",
                page.len()
            )
            .unwrap();
        }
    });
    let field = |at: &str, kind| StatusField {
        at: at.into(),
        kind,
    };
    let folder = tempfile::tempdir().unwrap();
    let log = folder.path().join("app.log");
    std::fs::write(&log, "fine\nWARN slow\nWARN slower\n").unwrap();
    let target = Kept::start("sleep", &["60"]);
    let mut watched = service(watch::channel(target.root(0)).1);
    watched.status = Some(WatchedStatus {
        base,
        page: StatusPage {
            path: "/status".into(),
            every: None,
            fields: [
                ("queue".to_string(), field("/jobs/open", FieldKind::Gauge)),
                ("done".to_string(), field("/jobs/done", FieldKind::Counter)),
                ("rss".to_string(), field("/rss", FieldKind::Gauge)),
            ]
            .into(),
        },
    });
    watched.log = Some(WatchedLog {
        path: log,
        patterns: [("warn".to_string(), "WARN".to_string())].into(),
    });
    let mut watching = Watching::start(vec![watched], None);
    watching.sample("status.queue", |s| s.value == 4.0).await;
    watching
        .sample("status.done", |s| s.value >= 2.0 && s.unit == "count_total")
        .await;
    watching.sample("log.warn", |s| s.value == 2.0).await;
    let (_, seen) = watching.stop().await;
    assert!(not_observed(&seen)["status.rss"].contains("text"));
    let examples: Vec<_> = seen
        .iter()
        .filter_map(|one| match one {
            Observation::Event {
                kind: EventKind::LogLine { line, .. },
                ..
            } => Some(line.as_str()),
            _ => None,
        })
        .collect();
    assert_eq!(examples, ["WARN slow", "WARN slower"]);
}

#[tokio::test]
async fn a_disk_about_to_be_full_is_told_once() {
    let folder = tempfile::tempdir().unwrap();
    let (sink, mut received) = tokio::sync::mpsc::unbounded_channel();
    let spec = ceteris::sample::SampleSpec {
        services: Vec::new(),
        period: std::time::Duration::from_secs(1),
        window: std::time::Duration::from_secs(10),
        origin: watch::channel(std::time::Instant::now()).1,
        disks: vec![folder.path().into()],
        min_free_bytes: u64::MAX,
        completed: None,
    };
    let sampler = ceteris::sample::start(spec, sink).unwrap();
    let found = loop {
        match received.recv().await.unwrap() {
            Observation::DiskLow { path, .. } => break path,
            Observation::Sample(s) => assert!(s.service == HOST || s.service == RUNNER),
            _ => {}
        }
    };
    assert_eq!(found, folder.path());
    sampler.stop().await;
}
