//! `manifest.json`: what ran, as facts.

use std::collections::BTreeMap;
use std::path::Path;

use anyhow::{Context, Result, bail};
use serde::{Deserialize, Serialize};

use super::folder::RunFolder;
use crate::measure::{EqualityItem, MachineFacts, ServiceFacts};
use crate::name::{Arm, Arms};

/// Version of the run folder's layout. A reader refuses a newer one by number.
pub const SCHEMA: u32 = 1;

/// What ran. Written before the first request and again whenever a fact is added.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Manifest {
    /// [`SCHEMA`].
    pub schema: u32,
    /// The tool.
    pub tool: ToolFacts,
    /// Hex SHA-256 of the experiment file.
    pub experiment_sha256: String,
    /// Path of the experiment file as named on the command line.
    pub experiment_path: String,
    /// UTC start, RFC 3339.
    pub started: String,
    /// UTC end; absent while it runs, or when the runner was killed.
    pub ended: Option<String>,
    /// `complete`, `interrupted`, or `failed: …`; absent like `ended`.
    pub outcome: Option<String>,
    /// As typed.
    pub command_line: Vec<String>,
    /// Shortened measured time in seconds of a smoke run.
    pub smoke_s: Option<f64>,
    /// Seed of every draw.
    pub seed: u64,
    /// Realised order.
    pub order: Vec<TrialRecord>,
    /// Both arms with every default filled in, before templates are rendered.
    pub arms: Arms<serde_json::Value>,
    /// SHA-256 of every program named or built, by path.
    pub programs: BTreeMap<String, String>,
    /// The machine.
    pub machine: MachineFacts,
    /// Everything that was compared between the arms.
    pub equality: Vec<EqualityItem>,
    /// Commit of the working folder, when it is a git checkout.
    pub git_commit: Option<String>,
    /// Whether that folder had no uncommitted changes.
    pub git_clean: Option<bool>,
    /// Seconds an interval of latency.hlog.
    pub latency_interval_s: u64,
    /// Why the probe or counted calls (`probe`, `micro.NAME`) are missing or not whole, though the file declares them.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub not_whole: BTreeMap<String, String>,
}

/// The tool that ran.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ToolFacts {
    /// Version.
    pub version: String,
    /// Hex SHA-256 of its own program.
    pub sha256: Option<String>,
}

/// One arm of one pair.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TrialRecord {
    /// From 1.
    pub pair: u32,
    /// Which arm.
    pub arm: Arm,
    /// Start of its measured time; absent when it never came to that.
    pub measured_from: Option<String>,
    /// What was deployed.
    pub services: Vec<ServiceFacts>,
    /// Addresses of the target, resolved once.
    pub addresses: Vec<String>,
}

impl Manifest {
    /// Writes it whole.
    ///
    /// # Errors
    /// When it can't be written.
    pub fn write(&self, folder: &RunFolder) -> Result<()> {
        let mut json = serde_json::to_vec_pretty(self).context("writing the manifest as JSON")?;
        json.push(b'\n');
        RunFolder::write_whole(&folder.manifest(), &json)
    }

    /// Reads it.
    ///
    /// # Errors
    /// When it is missing, is not JSON, or has a schema that this version does not know.
    pub fn read(path: &Path) -> Result<Self> {
        let text = std::fs::read_to_string(path)
            .with_context(|| format!("reading manifest {}", path.display()))?;
        let value: serde_json::Value = serde_json::from_str(&text)
            .with_context(|| format!("reading manifest {} as JSON", path.display()))?;
        match value.get("schema").and_then(serde_json::Value::as_u64) {
            Some(schema) if schema == u64::from(SCHEMA) => {}
            Some(schema) => bail!(
                "manifest {} has schema {schema}; this version reads schema {SCHEMA}. Use the version of ceteris that wrote it ({})",
                path.display(),
                value
                    .pointer("/tool/version")
                    .and_then(serde_json::Value::as_str)
                    .unwrap_or("unknown")
            ),
            None => bail!("manifest {} has no schema number", path.display()),
        }
        serde_json::from_value(value)
            .with_context(|| format!("reading manifest {}", path.display()))
    }
}
