//! Facts about what was deployed and where: what two arms are compared by.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// What one service of one arm really was.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct ServiceFacts {
    /// Its name.
    pub service: String,
    /// `postgres`, `process`, `caddy`, `nginx`, `external`.
    pub kind: String,
    /// Path of the program, absent for what runs already.
    pub program: Option<String>,
    /// Hex SHA-256 of the program.
    pub sha256: Option<String>,
    /// Hex SHA-256 of files that its command names, by path as written: scripts, class files, configuration.
    pub named_files: BTreeMap<String, String>,
    /// As the server or program tells it.
    pub version: Option<String>,
    /// Rendered command line, ports and folders as placeholders, secrets as `***`.
    pub command: Vec<String>,
    /// Rendered environment that the file declares, secrets as `***`.
    pub env: BTreeMap<String, String>,
    /// Every setting that the server reports (`pg_settings`), as text.
    pub settings: BTreeMap<String, String>,
    /// Names of those that the server computes itself, from others or from how it was built.
    pub computed_settings: Vec<String>,
    /// Settings that the file declares.
    pub declared_settings: BTreeMap<String, String>,
    /// Rendered configuration files by name, ports and folders as placeholders.
    pub files: BTreeMap<String, String>,
    /// Declared memory limit in bytes.
    pub memory_limit: Option<u64>,
    /// Declared limit in cores.
    pub cpu_limit: Option<f64>,
    /// Processors that it may use; empty: all.
    pub pin: Vec<usize>,
}

/// One thing held against each other in both arms.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct EqualityItem {
    /// What was compared: `app: program`, `db: setting shared_buffers`.
    pub what: String,
    /// As found in the treatment.
    pub treatment: String,
    /// As found in the control.
    pub control: String,
    /// What follows.
    pub verdict: Equality,
}

/// The result of one comparison.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "is", content = "because")]
pub enum Equality {
    /// The same in both arms.
    Equal,
    /// Different, as the control variable implies; the text says why it may.
    Implied(String),
    /// Different, and permitted by `also_differs`.
    Permitted(String),
    /// Different and not declared: the run stops.
    Undeclared,
}

/// The machine that ran everything.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct MachineFacts {
    /// CPU model as the kernel names it.
    pub cpu_model: String,
    /// Processors online.
    pub cores: usize,
    /// Memory in bytes.
    pub memory_bytes: u64,
    /// Kernel release.
    pub kernel: String,
    /// Distribution, as /etc/os-release names it.
    pub os: String,
    /// `v2`, `v1` or `hybrid`, with what may be made there.
    pub cgroups: String,
}
