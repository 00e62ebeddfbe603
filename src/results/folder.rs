//! Where things lie: `results/<name>/<UTC start>-<4 hex>/` and everything below it.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};

use crate::name::Arm;

/// A run's folder.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunFolder {
    path: PathBuf,
}

impl RunFolder {
    /// Makes the folder of a new run below `results/<name>/` and points `latest` at it.
    ///
    /// `started` is the UTC start as `20261130T230455Z`; `salt` makes two starts in one second differ.
    ///
    /// # Errors
    /// When the folder can't be made, or exists already.
    pub fn create(results: &Path, name: &str, started: &str, salt: u16) -> Result<Self> {
        let parent = results.join(name);
        fs::create_dir_all(&parent)
            .with_context(|| format!("making the folder {} for results", parent.display()))?;
        let id = format!("{started}-{salt:04x}");
        let path = parent.join(&id);
        fs::create_dir(&path)
            .with_context(|| format!("making the run's folder {}", path.display()))?;
        let link = parent.join("latest");
        // A link that is replaced by renaming never points nowhere, also when two runs start at once.
        let fresh = parent.join(format!(".latest-{id}"));
        std::os::unix::fs::symlink(&id, &fresh)
            .and_then(|()| fs::rename(&fresh, &link))
            .with_context(|| format!("pointing {} at {id}", link.display()))?;
        Ok(Self { path })
    }

    /// Makes the folder of a probe that is run alone, below `results/<name>/probes/`: no run, so no list of runs has it.
    ///
    /// # Errors
    /// As [`RunFolder::create`].
    pub fn create_probe(results: &Path, name: &str, started: &str, salt: u16) -> Result<Self> {
        let path = results
            .join(name)
            .join("probes")
            .join(format!("{started}-{salt:04x}"));
        fs::create_dir_all(&path)
            .with_context(|| format!("making the probe's folder {}", path.display()))?;
        Ok(Self { path })
    }

    /// Takes a folder that exists; follows `latest`.
    ///
    /// # Errors
    /// When it is not a run's folder.
    pub fn open(path: &Path) -> Result<Self> {
        let real = path
            .canonicalize()
            .with_context(|| format!("opening the run's folder {}", path.display()))?;
        let folder = Self { path: real };
        if !folder.experiment().is_file() {
            bail!(
                "{} is not a run's folder: it holds no experiment.toml. Name a folder like results/<name>/<start>, or results/<name>/latest",
                path.display()
            );
        }
        Ok(folder)
    }

    /// The folder itself.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Its name: `<UTC start>-<4 hex>`.
    pub fn id(&self) -> String {
        self.path
            .file_name()
            .map(|name| name.to_string_lossy().into_owned())
            .unwrap_or_default()
    }

    /// The experiment file, byte for byte.
    pub fn experiment(&self) -> PathBuf {
        self.path.join("experiment.toml")
    }

    /// Facts about what ran.
    pub fn manifest(&self) -> PathBuf {
        self.path.join("manifest.json")
    }

    /// Figures and verdicts.
    pub fn summary(&self) -> PathBuf {
        self.path.join("summary.json")
    }

    /// The author's remarks.
    pub fn notes(&self) -> PathBuf {
        self.path.join("notes.jsonl")
    }

    /// Figures of the null experiment that the run cites.
    pub fn null_run(&self) -> PathBuf {
        self.path.join("null_run.json")
    }

    /// Levels of the probe.
    pub fn probe(&self) -> PathBuf {
        self.path.join("probe.csv")
    }

    /// Logs of the deployment that was probed.
    pub fn probe_logs(&self) -> PathBuf {
        self.path.join("logs").join("probe")
    }

    /// Counted calls.
    pub fn micro(&self) -> PathBuf {
        self.path.join("micro.csv")
    }

    /// SHA-256 of every file.
    pub fn checksums(&self) -> PathBuf {
        self.path.join("SHA256SUMS")
    }

    /// Output of `build` commands.
    pub fn build_log(&self) -> PathBuf {
        self.path.join("build.log")
    }

    /// The folder of one arm of one pair (from 1).
    pub fn arm(&self, pair: u32, arm: Arm) -> ArmFolder {
        ArmFolder {
            path: self
                .path
                .join("pairs")
                .join(format!("{pair:02}"))
                .join(arm.as_str()),
        }
    }

    /// Writes a file whole: beside its place first, then renamed, so that a reader never sees half of it.
    ///
    /// # Errors
    /// When it can't be written.
    pub fn write_whole(path: &Path, bytes: &[u8]) -> Result<()> {
        let name = path.file_name().context("a file to write has a name")?;
        let mut fresh = name.to_os_string();
        fresh.push(".new");
        let fresh = path.with_file_name(fresh);
        fs::write(&fresh, bytes)
            .and_then(|()| fs::rename(&fresh, path))
            .with_context(|| format!("writing {}", path.display()))
    }
}

/// The folder of one arm of one pair.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ArmFolder {
    path: PathBuf,
}

impl ArmFolder {
    /// The folder itself.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// A row a second.
    pub fn seconds(&self) -> PathBuf {
        self.path.join("seconds.csv")
    }

    /// A row a second of warm-up: recorded apart, never counted.
    pub fn warmup(&self) -> PathBuf {
        self.path.join("warmup.csv")
    }

    /// Histogram interval log.
    pub fn latency(&self) -> PathBuf {
        self.path.join("latency.hlog")
    }

    /// Failed requests.
    pub fn failures(&self) -> PathBuf {
        self.path.join("failures.csv")
    }

    /// Samples in long form.
    pub fn samples(&self) -> PathBuf {
        self.path.join("samples.csv")
    }

    /// Events, one a line.
    pub fn events(&self) -> PathBuf {
        self.path.join("events.jsonl")
    }

    /// Logs of services.
    pub fn logs(&self) -> PathBuf {
        self.path.join("logs")
    }
}

/// Every run's folder below `results`, oldest first: those of one experiment when `name` is given.
///
/// # Errors
/// When the folder can't be read; a missing one is an empty list.
pub fn list_runs(results: &Path, name: Option<&str>) -> Result<Vec<RunFolder>> {
    let mut found = Vec::new();
    let experiments = match name {
        Some(name) => vec![results.join(name)],
        None => folders_in(results)?,
    };
    for experiment in experiments {
        for path in folders_in(&experiment)? {
            let folder = RunFolder { path };
            if folder.experiment().is_file() {
                found.push(folder);
            }
        }
    }
    found.sort_by_key(RunFolder::id);
    Ok(found)
}

/// Real folders below `path` (not links: `latest` would count a run twice), sorted.
fn folders_in(path: &Path) -> Result<Vec<PathBuf>> {
    if !path.exists() {
        return Ok(Vec::new());
    }
    let mut folders = Vec::new();
    for entry in
        fs::read_dir(path).with_context(|| format!("reading the folder {}", path.display()))?
    {
        let entry = entry.with_context(|| format!("reading the folder {}", path.display()))?;
        let kind = entry
            .file_type()
            .with_context(|| format!("reading {}", entry.path().display()))?;
        if kind.is_dir() {
            folders.push(entry.path());
        }
    }
    folders.sort();
    Ok(folders)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn latest_follows_the_newest_run_and_is_not_listed_twice() {
        let dir = tempfile::tempdir().unwrap();
        let first = RunFolder::create(dir.path(), "x", "20260101T000000Z", 1).unwrap();
        let second = RunFolder::create(dir.path(), "x", "20260101T000001Z", 2).unwrap();
        for folder in [&first, &second] {
            fs::write(folder.experiment(), "").unwrap();
        }
        let latest = RunFolder::open(&dir.path().join("x/latest")).unwrap();
        assert_eq!(latest.id(), second.id());
        let ids: Vec<_> = list_runs(dir.path(), None)
            .unwrap()
            .iter()
            .map(RunFolder::id)
            .collect();
        assert_eq!(ids, [first.id(), second.id()]);
        assert!(RunFolder::create(dir.path(), "x", "20260101T000001Z", 2).is_err());
    }

    #[test]
    fn a_folder_without_an_experiment_is_refused_by_name() {
        let dir = tempfile::tempdir().unwrap();
        let said = RunFolder::open(dir.path()).unwrap_err().to_string();
        assert!(said.contains("holds no experiment.toml"), "{said}");
    }
}
