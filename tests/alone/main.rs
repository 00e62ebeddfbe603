//! Whole runs whose surroundings are the subject: they must find the machine calm, so nothing else may run beside them. Test
//! binaries run one after another; within this one the tests take turns.
#![allow(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "a test fails by panicking and may print"
)]

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

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

/// Two arms of the example application on its database that differ in nothing.
fn experiment(seconds: u32) -> String {
    EXPERIMENT.replace("ARM_S", &seconds.to_string())
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

#[test]
fn a_calm_run_has_no_invented_explanation() {
    let _turn = turn();
    let runs: u32 = std::env::var("CETERIS_CALM_RUNS").map_or(1, |runs| runs.parse().unwrap());
    for run in 1..=runs {
        let site = site();
        told(site.start(&experiment(20))).ends(0);
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
duration = "ARM_Ss"
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
