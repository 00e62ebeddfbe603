//! What a report was rendered with: kept beside it, so that the same report can be made again years later.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use serde::{Deserialize, Serialize};

use crate::report::{Format, TemplateSource};
use crate::results::RunFolder;

/// Its name below a run's folder.
const FILE: &str = "rendered.json";

/// The page once more, under the name that a static site serves; only where a run is published.
pub(super) const INDEX: &str = "index.html";

/// How the report of a folder was made.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(super) struct Rendered {
    /// Version of the tool that rendered it.
    pub(super) tool: String,
    /// Templates of a team's own; the others are built in.
    pub(super) templates: TemplateSource,
}

impl Rendered {
    pub(super) fn now(templates: &TemplateSource) -> Self {
        Rendered {
            tool: env!("CARGO_PKG_VERSION").to_owned(),
            templates: templates.clone(),
        }
    }

    pub(super) fn write(&self, folder: &Path) -> Result<()> {
        let mut json =
            serde_json::to_vec_pretty(self).context("writing what the report is rendered with")?;
        json.push(b'\n');
        RunFolder::write_whole(&path(folder), &json)
    }

    /// What a folder keeps; the built-in templates where it keeps nothing.
    ///
    /// # Errors
    /// When the file is there and can't be read.
    pub(super) fn read(folder: &Path) -> Result<Self> {
        let path = path(folder);
        if !path.exists() {
            return Ok(Rendered::default());
        }
        let text =
            fs::read_to_string(&path).with_context(|| format!("reading {}", path.display()))?;
        serde_json::from_str(&text).with_context(|| format!("reading {}", path.display()))
    }

    /// Whether another version of the tool rendered it, so that its words may differ from today's.
    pub(super) fn by_another_version(&self) -> bool {
        !self.tool.is_empty() && self.tool != env!("CARGO_PKG_VERSION")
    }
}

fn path(folder: &Path) -> PathBuf {
    folder.join(FILE)
}

/// Formats of the report that a folder holds.
pub(super) fn present(folder: &Path) -> Vec<Format> {
    Format::ALL
        .into_iter()
        .filter(|format| folder.join(format.file()).is_file())
        .collect()
}
