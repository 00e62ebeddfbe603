//! Runs that never ran: folders with known truths in them, written by the same writers as real ones.

use std::path::{Path, PathBuf};

use ceteris::analysis::{JudgeContext, Summary, judge};
use ceteris::experiment::{Experiment, LoadOptions, check_bytes};
use ceteris::measure::{Equality, EqualityItem, MachineFacts, ServiceFacts};
use ceteris::name::Arms;
use ceteris::results::{
    Manifest, RunFolder, SCHEMA, ToolFacts, TrialRecord, interval_seconds, read_run,
};
use tempfile::TempDir;

use super::play::{Play, write};

/// The experiment of these tests: PostgreSQL and an application, pruning on in the control.
pub const EXPERIMENT: &str = r#"
[experiment]
name = "made"
title = "Made"
question = "Is it the runtime or the table?"

[schedule]
warmup = "1s"
duration = "2m"
window = "20s"
sample = "1s"
seed = 7

[deployment.db.postgres]
databases = ["made"]
settings = { synchronous_commit = "off" }

[deployment.app.process]
command = ["true"]
env = { DATABASE_URL = "{{ db.url }}/made" }
status = { path = "/status", fields = { depth = "/depth", done = { at = "/done", kind = "counter" } } }
log = { error = "ERROR" }

[clients]
target = "app"
closed = 8
timeout = "10s"

[[workload.step]]
name = "list"
get = "/list"
weight = 3

[[workload.step]]
name = "create"
post = "/create"
json = { a = 1 }

[pruning]
enabled = false
service = "db"
database = "made"
every = "1s"

[pruning.table.jobs]
delete_where = "done"

[control]
variable = "pruning.enabled"
treatment = false
control = true

[analysis]
margin = "20%"
run_sd = "10%"

[[criterion]]
name = "no server errors"
holds = "arm.failures.status_5xx == 0"

[[explanation]]
name = "the table"
because = "it grows"
predicts = { throughput = { treatment = "falls", control = "flat" } }

[[explanation]]
name = "the runtime"
because = "it grows too"
predicts = { throughput = { treatment = "falls", control = "falls" } }

[[claim]]
text = "over {{ treatment.requests.ok | count }} and {{ control.requests.ok | count }} requests, no 5xx"
when = "treatment.failures.status_5xx == 0 and control.failures.status_5xx == 0"

[[claim]]
text = "the decay follows the table: it fell {{ treatment.throughput.fall | percent }} and stayed within {{ margin | percent }}"
when = "treatment.throughput.trend == 'falls' and control.throughput.trend == 'flat'"
explanation = "the table"

[[limit]]
text = "that every table must be pruned"
"#;

/// A checked experiment, from a text.
pub fn experiment(text: &str) -> Experiment {
    let options = LoadOptions {
        folder: Some(PathBuf::from(env!("CARGO_MANIFEST_DIR"))),
        env: None,
        kept: false,
    };
    match check_bytes(Path::new("made.toml"), text.as_bytes(), &options) {
        Ok(checked) => checked.experiment,
        Err(error) => panic!("{error}"),
    }
}

/// A run's folder.
pub struct Made {
    /// Removes the folder when the test is over.
    _dir: TempDir,
    pub folder: RunFolder,
    pub experiment: Experiment,
}

impl Made {
    /// Writes a whole run.
    pub fn run(text: &str, plays: &[Play]) -> Made {
        Made::ended(text, plays, Some("complete"))
    }

    /// Writes a run that ended as `outcome` tells; `None`: its runner was killed.
    pub fn ended(text: &str, plays: &[Play], outcome: Option<&str>) -> Made {
        let dir = tempfile::tempdir().unwrap();
        let folder = RunFolder::create(dir.path(), "made", "20260101T000000Z", 7).unwrap();
        std::fs::write(folder.experiment(), text).unwrap();
        let experiment = experiment(text);
        let manifest = manifest(&experiment, plays, outcome);
        manifest.write(&folder).unwrap();
        for play in plays {
            write(play, &folder, &experiment);
        }
        Made {
            _dir: dir,
            folder,
            experiment,
        }
    }

    /// Changes its manifest.
    pub fn with_manifest(self, change: impl FnOnce(&mut Manifest)) -> Made {
        let mut manifest = Manifest::read(&self.folder.manifest()).unwrap();
        change(&mut manifest);
        manifest.write(&self.folder).unwrap();
        self
    }

    /// Reads and judges it.
    pub fn judged(&self) -> Summary {
        self.judged_in(&JudgeContext::default())
    }

    pub fn judged_in(&self, context: &JudgeContext) -> Summary {
        let run = read_run(&self.folder).unwrap();
        judge(&self.experiment, &run, context).unwrap()
    }
}

fn manifest(experiment: &Experiment, plays: &[Play], outcome: Option<&str>) -> Manifest {
    Manifest {
        schema: SCHEMA,
        tool: ToolFacts {
            version: "0.1.0".into(),
            sha256: None,
        },
        experiment_sha256: experiment.source.sha256.clone(),
        experiment_path: "made.toml".into(),
        started: "2026-01-01T00:00:00Z".into(),
        ended: outcome.map(|_| "2026-01-01T00:05:00Z".into()),
        outcome: outcome.map(str::to_owned),
        command_line: vec!["ceteris".into(), "run".into(), "made.toml".into()],
        smoke_s: None,
        seed: 7,
        order: plays
            .iter()
            .map(|play| TrialRecord {
                pair: play.pair,
                arm: play.arm,
                measured_from: Some("2026-01-01T00:00:10Z".into()),
                services: vec![ServiceFacts {
                    service: "db".into(),
                    kind: "postgres".into(),
                    version: Some("15.9".into()),
                    ..ServiceFacts::default()
                }],
                addresses: vec!["127.0.0.1:1".into()],
            })
            .collect(),
        arms: Arms {
            treatment: serde_json::Value::Null,
            control: serde_json::Value::Null,
        },
        programs: Default::default(),
        machine: MachineFacts {
            cpu_model: "made".into(),
            cores: 2,
            memory_bytes: 8 << 30,
            ..MachineFacts::default()
        },
        equality: vec![
            EqualityItem {
                what: "app: program".into(),
                treatment: "aa".into(),
                control: "aa".into(),
                verdict: Equality::Equal,
            },
            EqualityItem {
                what: "pruning.enabled".into(),
                treatment: "false".into(),
                control: "true".into(),
                verdict: Equality::Implied("the control variable".into()),
            },
        ],
        git_commit: None,
        git_clean: None,
        latency_interval_s: interval_seconds(experiment.schedule.window),
        not_whole: Default::default(),
    }
}
