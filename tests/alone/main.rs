//! Whole runs whose surroundings are the subject: they must find the machine calm, so nothing else may run beside them. Test
//! binaries run one after another; within this one the tests take turns.
#![allow(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "a test fails by panicking and may print"
)]

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::OnceLock;
use std::thread;
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

use site::{Site, told, turn};

#[path = "../it/run/site.rs"]
#[expect(
    dead_code,
    reason = "shared with the other tests of whole runs, which use the rest"
)]
mod site;

/// The example application, compiled once.
fn invoicing() -> &'static Path {
    static BUILT: OnceLock<PathBuf> = OnceLock::new();
    BUILT.get_or_init(|| {
        let beside = Path::new(env!("CARGO_BIN_EXE_ceteris")).parent().unwrap();
        let mut build = Command::new(env!("CARGO"));
        build
            .args(["build", "--locked", "--quiet", "-p", "invoicing"])
            .current_dir(env!("CARGO_MANIFEST_DIR"))
            .env("CARGO_TARGET_DIR", beside.parent().unwrap());
        if !cfg!(debug_assertions) {
            build.arg("--release");
        }
        let built = build.output().unwrap();
        assert!(built.status.success(), "{built:?}");
        beside.join("invoicing")
    })
}

/// Two arms of the example application on its database that differ in nothing, of so many seconds.
fn experiment(control: u32, treatment: u32) -> String {
    EXPERIMENT
        .replace("CONTROL_S", &control.to_string())
        .replace("TREATMENT_S", &treatment.to_string())
}

fn site() -> Site {
    let site = Site::new();
    let schema = Path::new(env!("CARGO_MANIFEST_DIR")).join("examples/invoicing/schema.sql");
    std::fs::copy(schema, site.at("schema.sql")).unwrap();
    std::fs::copy(invoicing(), site.at("invoicing")).unwrap();
    site
}

fn episodes<'s>(summary: &'s Value, arm: &str) -> &'s [Value] {
    summary["arms"][arm]["episodes"].as_array().unwrap()
}

/// Waits until an arm has measured so many seconds.
fn measured(site: &Site, arm: &str, seconds: usize) {
    let file = site.at(&format!("results/small/latest/pairs/01/{arm}/seconds.csv"));
    site::until(
        &format!("{seconds} seconds of the {arm} are measured"),
        || std::fs::read_to_string(&file).is_ok_and(|text| text.lines().count() > seconds),
    );
}

/// The processes of the site's PostgreSQL.
fn servers(site: &Site) -> Vec<Pid> {
    site.processes()
        .into_iter()
        .filter_map(|(pid, command)| (command == "postgres").then_some(pid))
        .filter_map(|pid| Pid::from_raw(pid as i32))
        .collect()
}

/// Puts the deployment behind everything else, where sessions and not processes compete for the processors. Without that the
/// niceness in the experiment is enough.
fn yield_processors(site: &Site, runner: u32) {
    for (pid, _) in site.processes() {
        if pid != runner {
            // Kernels without groups by session have no such file.
            let _ = std::fs::write(format!("/proc/{pid}/autogroup"), "19");
        }
    }
}

fn says(episode: &Value, part: &str, needle: &str) -> bool {
    let texts = episode[part].as_array().unwrap();
    texts
        .iter()
        .any(|text| text.as_str().unwrap().contains(needle))
}

#[test]
#[ignore = "needs stress-ng and over a minute; .ci/long runs it"]
fn work_beside_the_deployment_is_named() {
    let _turn = turn();
    let site = site();
    let command = r#"command = ["nice", "-n", "19", "./invoicing","#;
    let experiment = experiment(55, 10).replace(r#"command = ["./invoicing","#, command);
    assert!(experiment.contains(command));
    let child = site.start(&experiment);

    measured(&site, "control", 20);
    yield_processors(&site, child.id());
    // A session of its own, as a shell would give it.
    let stress = Command::new("setsid")
        .args([
            "--wait",
            "stress-ng",
            "--cpu",
            "2",
            "--timeout",
            "8",
            "--quiet",
        ])
        .current_dir("/")
        .stdin(Stdio::null())
        .status()
        .unwrap();
    assert!(
        stress.success(),
        "stress-ng is installed (apt install stress-ng)"
    );

    told(child).ends(0);
    site.nothing_is_left();
    let summary = site.summary();
    let stressed = episodes(&summary, "control");
    println!("beside work: {stressed:#?}");
    assert!(
        stressed.iter().any(|episode| {
            episode["bad_seconds"].as_u64() >= Some(3)
                && says(episode, "coincides", "other processes' CPU")
                && says(episode, "coincides", "stress-ng")
        }),
        "{stressed:#?}"
    );
    let calm = episodes(&summary, "treatment");
    assert!(
        calm.iter().all(|e| !says(e, "coincides", "stress-ng")),
        "{calm:#?}"
    );
}

#[test]
fn a_server_that_stood_still_is_named() {
    let _turn = turn();
    let site = site();
    let child = site.start(&experiment(20, 10));

    measured(&site, "control", 12);
    let stopped = servers(&site);
    assert!(stopped.len() > 4, "{stopped:?}");
    for pid in &stopped {
        // A backend may have ended in between.
        let _ = kill_process(*pid, Signal::STOP);
    }
    thread::sleep(Duration::from_secs(3));
    for pid in &stopped {
        let _ = kill_process(*pid, Signal::CONT);
    }

    told(child).ends(0);
    site.nothing_is_left();
    let summary = site.summary();
    let stalled = episodes(&summary, "control");
    println!("stalled: {stalled:#?}");
    assert!(
        stalled.iter().any(|episode| {
            let beside = episode["beside"].as_array().unwrap();
            episode["bad_seconds"].as_u64() >= Some(2)
                && beside.iter().any(|text| {
                    let text = text.as_str().unwrap();
                    text.starts_with("db used") && text.contains("stood still")
                })
        }),
        "{stalled:#?}"
    );
}

#[test]
fn a_calm_run_has_no_invented_explanation() {
    let _turn = turn();
    let runs: u32 = std::env::var("CETERIS_CALM_RUNS").map_or(1, |runs| runs.parse().unwrap());
    for run in 1..=runs {
        let site = site();
        told(site.start(&experiment(20, 20))).ends(0);
        let summary = site.summary();
        for arm in ["treatment", "control"] {
            let episodes = episodes(&summary, arm);
            println!(
                "calm run {run} of {runs}, {arm}: {} episodes {episodes:?}",
                episodes.len()
            );
            for episode in episodes {
                // What the machine did on its own is no invention; a service, a prune or an action would be.
                let texts = episode["coincides"].as_array().unwrap();
                let host = [
                    "other processes",
                    "CPU taken",
                    "waiting for",
                    "pressure on",
                    "the runner's own",
                ];
                assert!(
                    texts.iter().all(|text| {
                        host.iter()
                            .any(|start| text.as_str().unwrap().starts_with(start))
                    }),
                    "{episode:#?}"
                );
            }
        }
    }
}

const EXPERIMENT: &str = r#"
[experiment]
name     = "small"
title    = "Nothing differs"
question = "What coincides with bad seconds?"

[schedule]
warmup   = "3s"
duration = { control = "CONTROL_Ss", treatment = "TREATMENT_Ss" }
window   = "10s"
sample   = "1s"
rest     = "0s"
order    = "control-first"

[deployment.db.postgres]
databases = ["invoicing"]
schema    = ["schema.sql"]
settings  = { synchronous_commit = "off" }

[deployment.app.process]
command = ["./invoicing", "--listen", "{{ app.address }}"]
env     = { DATABASE_URL = "{{ db.url }}/invoicing" }
ready   = { path = "/healthz", within = "60s" }

[clients]
target  = "app"
closed  = 4
timeout = "10s"

[workload]
pick = "weighted"

[[workload.step]]
name   = "list"
get    = "/invoices?limit=25"
weight = 50
expect = { status = 200 }
keep   = { id = "/items/*/id" }

[[workload.step]]
name   = "fetch"
get    = "/invoices/{{ id }}"
weight = 50
expect = { status = 200 }

[control]
null = true
"#;
