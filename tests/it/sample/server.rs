//! What the sampler reads of a PostgreSQL server, also of one that stalls or restarts.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use ceteris::measure::{EventKind, RUNNER, Sample};
use ceteris::name::ServiceName;
use ceteris::sample::{
    Observation, ProcessRoot, SampleSpec, Sampler, WatchedService, WatchedSql, start,
};
use rustix::process::Signal;
use tokio::sync::{mpsc, watch};

use super::postgres::Postgres;

/// A sampler under test, and everything that it said so far.
pub struct Watching {
    pub sampler: Sampler,
    received: mpsc::UnboundedReceiver<Observation>,
    pub seen: Vec<Observation>,
}

impl Watching {
    pub fn start(services: Vec<WatchedService>, completed: Option<Arc<AtomicU64>>) -> Self {
        let (sink, received) = mpsc::unbounded_channel();
        let spec = SampleSpec {
            services,
            period: Duration::from_millis(250),
            window: Duration::from_secs(1),
            origin: watch::channel(Instant::now()).1,
            disks: Vec::new(),
            min_free_bytes: 0,
            completed,
        };
        Self {
            sampler: start(spec, sink).unwrap(),
            received,
            seen: Vec::new(),
        }
    }

    /// Waits for an observation.
    pub async fn wait(&mut self, wanted: impl Fn(&Observation) -> bool) -> Observation {
        let found = async {
            loop {
                let one = self.received.recv().await.expect("the sampler ended");
                self.seen.push(one.clone());
                if wanted(&one) {
                    return one;
                }
            }
        };
        match tokio::time::timeout(Duration::from_secs(60), found).await {
            Ok(one) => one,
            Err(_) => panic!("never seen; seen instead: {:#?}", self.events()),
        }
    }

    /// Waits for a sample of a metric.
    pub async fn sample(&mut self, metric: &str, wanted: impl Fn(&Sample) -> bool) -> Sample {
        let is = |one: &Observation| matches!(one, Observation::Sample(s) if s.metric == metric && wanted(s));
        match self.wait(is).await {
            Observation::Sample(sample) => sample,
            other => panic!("{other:?}"),
        }
    }

    /// Waits until something in a service's own account was seen.
    pub async fn server(&mut self, wanted: &str) {
        let is = |one: &Observation| matches!(one, Observation::Event { kind: EventKind::Server { what, .. }, .. } if what == wanted);
        if !self.seen.iter().any(is) {
            self.wait(is).await;
        }
    }

    /// Stops, and gives everything that was said.
    pub async fn stop(self) -> (ceteris::sample::SamplingTotals, Vec<Observation>) {
        let Self {
            sampler,
            mut received,
            mut seen,
        } = self;
        let totals = sampler.stop().await;
        while let Some(one) = received.recv().await {
            seen.push(one);
        }
        (totals, seen)
    }

    fn events(&self) -> Vec<&Observation> {
        self.seen
            .iter()
            .filter(|one| matches!(one, Observation::Event { .. }))
            .collect()
    }
}

/// Every counter's readings, by service, metric and epoch.
pub fn counters(seen: &[Observation]) -> BTreeMap<(String, String, u32), Vec<f64>> {
    let mut all = BTreeMap::<_, Vec<f64>>::new();
    for one in seen {
        if let Observation::Sample(s) = one
            && (s.unit.ends_with("_total") || s.unit == "cpu_s")
        {
            let key = (s.service.clone(), s.metric.clone(), s.epoch);
            all.entry(key).or_default().push(s.value);
        }
    }
    all
}

/// No counter ever falls within one epoch.
pub fn assert_no_negative_figure(seen: &[Observation]) {
    for (counter, values) in counters(seen) {
        assert!(values.is_sorted(), "{counter:?} falls: {values:?}");
    }
    for one in seen {
        if let Observation::Sample(s) = one {
            assert!(s.value >= 0.0 && s.value.is_finite(), "{s:?}");
        }
    }
}

fn watched(postgres: &Postgres, process: watch::Receiver<Option<ProcessRoot>>) -> WatchedService {
    WatchedService {
        name: ServiceName::new("db").unwrap(),
        process,
        cgroups: Vec::new(),
        sql: Some(WatchedSql {
            server: postgres.server.clone(),
            databases: vec!["app".into()],
            tables: Vec::new(),
        }),
        status: None,
        log: None,
    }
}

fn root(postgres: &Postgres, epoch: u32) -> Option<ProcessRoot> {
    Some(ProcessRoot {
        pid: postgres.pid(),
        epoch,
    })
}

#[tokio::test]
async fn a_server_is_read_by_its_own_views() {
    let postgres = Postgres::start().await;
    let session = postgres.session("app").await;
    session
        .batch_execute(
            "CREATE TABLE jobs (id bigint PRIMARY KEY); CREATE TABLE \"bad\"\",1\" (id int); \
             INSERT INTO jobs SELECT generate_series(1, 500)",
        )
        .await
        .unwrap();
    // A backend reports its inserts when it likes.
    session
        .batch_execute("SELECT pg_stat_force_next_flush()")
        .await
        .unwrap();
    let completed = Arc::new(AtomicU64::new(7));
    let (_up, process) = watch::channel(root(&postgres, 0));
    let mut watching = Watching::start(vec![watched(&postgres, process)], Some(completed.clone()));

    let first = watching.sample("sql_calls", |_| true).await.value;
    completed.store(27, Ordering::Relaxed);
    for _ in 0..20 {
        session
            .query("SELECT count(*) FROM jobs", &[])
            .await
            .unwrap();
    }
    // Each query of the test is one call; the sampler's own are left out, however many rounds went by.
    let calls = watching
        .sample("sql_calls", |s| s.value >= first + 20.0)
        .await;
    assert_eq!(calls.value, first + 20.0);
    let requests = watching
        .sample("requests_completed", |s| {
            s.service == RUNNER && s.value == 27.0
        })
        .await;
    assert_eq!(
        requests.at_s, calls.at_s,
        "both sides of the quotient are of one moment"
    );
    watching
        .sample("table.jobs.rows", |s| s.value == 500.0 && s.unit == "rows")
        .await;
    watching
        .sample("table.jobs.bytes", |s| s.value >= 8192.0)
        .await;
    watching
        .sample("table.jobs.index_bytes", |s| s.value >= 8192.0)
        .await;
    session
        .batch_execute("DELETE FROM jobs WHERE id <= 100")
        .await
        .unwrap();
    watching
        .sample("table.jobs.dead", |s| s.value == 100.0)
        .await;
    watching
        .sample("table.jobs.rows", |s| s.value == 400.0)
        .await;
    session.batch_execute("TRUNCATE jobs").await.unwrap();
    watching.sample("table.jobs.rows", |s| s.value == 0.0).await;
    watching.sample("wal_bytes", |s| s.value > 0.0).await;
    watching
        .sample("cache_hit", |s| s.value > 0.0 && s.value <= 1.0)
        .await;
    watching
        .sample("connections.idle", |s| s.value == 1.0)
        .await;
    watching.sample("oldest_xmin_age", |_| true).await;
    session.batch_execute("CHECKPOINT").await.unwrap();
    watching.server("checkpoint").await;
    session
        .batch_execute("SELECT pg_stat_statements_reset()")
        .await
        .unwrap();
    watching.sample("sql_calls", |s| s.epoch == 1).await;

    let (totals, seen) = watching.stop().await;
    assert!(totals.planned > 0 && totals.taken <= totals.planned);
    assert_no_negative_figure(&seen);
    let not_observed: Vec<_> = seen
        .iter()
        .filter_map(|one| match one {
            Observation::Event {
                kind: EventKind::NotObserved { metric, reason, .. },
                ..
            } => Some((metric.as_str(), reason.as_str())),
            _ => None,
        })
        .collect();
    assert!(
        not_observed
            .iter()
            .any(|(m, r)| *m == "table" && r.contains("bad\\\",1"))
    );
    assert!(
        not_observed
            .iter()
            .any(|(m, r)| *m == "sql_calls" && r.contains("reset"))
    );
    assert!(not_observed.iter().any(|(m, _)| *m == "memory.rss"));
    let names: Vec<_> = seen
        .iter()
        .filter_map(|one| match one {
            Observation::Sample(s) => Some(&s.metric),
            _ => None,
        })
        .collect();
    assert!(names.iter().all(|n| !n.contains(['"', ','])));
}

#[tokio::test]
async fn a_stopped_server_is_named_and_does_not_hold_up_the_rest() {
    let postgres = Postgres::start().await;
    let (_up, process) = watch::channel(root(&postgres, 0));
    let mut watching = Watching::start(vec![watched(&postgres, process)], None);
    watching.sample("sql_calls", |_| true).await;

    let pids: Vec<u32> = children(postgres.pid());
    let everyone = |signal| {
        postgres.signal(signal);
        for pid in &pids {
            let pid = rustix::process::Pid::from_raw(*pid as i32).unwrap();
            // A backend may have ended meanwhile.
            let _ = rustix::process::kill_process(pid, signal);
        }
    };
    everyone(Signal::STOP);
    watching.server("no_answer").await;
    watching.server("stopped").await;
    // The rest goes on: the host and the process tree are still read.
    watching
        .wait(|one| matches!(one, Observation::Host { .. }))
        .await;
    watching.sample("cpu_user_s", |_| true).await;
    everyone(Signal::CONT);
    watching.server("answers_again").await;
    watching.sample("sql_calls", |_| true).await;
    let (totals, seen) = watching.stop().await;
    assert!(totals.gaps > 0);
    assert!(seen.iter().any(|one| matches!(
        one,
        Observation::Event {
            kind: EventKind::SampleGap { .. },
            ..
        }
    )));
    assert_no_negative_figure(&seen);
}

fn children(pid: u32) -> Vec<u32> {
    std::fs::read_to_string(format!("/proc/{pid}/task/{pid}/children"))
        .unwrap()
        .split_ascii_whitespace()
        .map(|pid| pid.parse().unwrap())
        .collect()
}

#[tokio::test]
async fn a_killed_and_restarted_server_gives_no_negative_figure() {
    let mut postgres = Postgres::start().await;
    let (up, process) = watch::channel(root(&postgres, 0));
    let mut watching = Watching::start(vec![watched(&postgres, process)], None);
    let session = postgres.session("app").await;
    for _ in 0..50 {
        session.query("SELECT 1", &[]).await.unwrap();
    }
    watching.sample("sql_calls", |s| s.value > 50.0).await;
    let session = postgres.session("app").await;
    session
        .batch_execute(
            "CREATE TABLE kept (id int); INSERT INTO kept SELECT generate_series(1, 700)",
        )
        .await
        .unwrap();
    session.batch_execute("VACUUM ANALYZE kept").await.unwrap();
    watching
        .sample("table.kept.rows", |s| s.value == 700.0)
        .await;
    drop(session);
    postgres.down();
    up.send(None).unwrap();
    postgres.up().await;
    up.send(root(&postgres, 1)).unwrap();
    watching.sample("cpu_user_s", |s| s.epoch == 1).await;
    // A crash makes PostgreSQL forget how many rows it has: that is no table without rows.
    watching
        .sample("table.kept.rows", |s| s.epoch == 1 && s.value == 700.0)
        .await;
    watching.sample("sql_calls", |s| s.epoch == 1).await;
    let (totals, seen) = watching.stop().await;
    assert_no_negative_figure(&seen);
    // Nothing was planned while it was known to be down.
    assert!(totals.taken <= totals.planned);
}
