//! Where PostgreSQL's server programs are looked for.

use std::path::{Path, PathBuf};
use std::process::Stdio;

use anyhow::{Context, Result, bail};

use crate::deploy::cache;
use crate::deploy::program;
use crate::deploy::render::ReadEnv;

/// A folder of server programs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Programs {
    /// Holds `postgres` and `initdb`.
    pub(crate) bin: PathBuf,
    /// As `postgres --version` tells it: `15.19`.
    pub(crate) version: String,
}

impl Programs {
    /// The major version.
    pub(crate) fn major(&self) -> Option<u32> {
        major(&self.version)
    }
}

/// Finds server programs: `bin`, `CETERIS_PG_BIN`, the tool's own cache, PATH, `/usr/lib/postgresql`, in this order; with
/// `version`, the first of that major version.
pub(crate) async fn find(
    bin: Option<&Path>,
    version: Option<u32>,
    dir: &Path,
    env: &ReadEnv,
) -> Result<Programs> {
    let named = bin
        .map(|bin| (dir.join(bin), "bin"))
        .or_else(|| env("CETERIS_PG_BIN").map(|bin| (dir.join(bin), "CETERIS_PG_BIN")));
    if let Some((bin, by)) = named {
        if !complete(&bin) {
            bail!(
                "{by} names {}, which has no programs postgres and initdb",
                bin.display()
            );
        }
        let found = tell(bin).await?;
        if let Some(wanted) = version
            && found.major() != Some(wanted)
        {
            bail!(
                "version = {wanted} is asked for, but {by} names {}, which has PostgreSQL {}",
                found.bin.display(),
                found.version
            );
        }
        return Ok(found);
    }
    let mut others = Vec::new();
    for candidate in candidates(env) {
        let found = match tell(candidate).await {
            Ok(found) => found,
            // An unusable program must not hide a usable one further on.
            Err(error) => {
                others.push(format!("{error:#}"));
                continue;
            }
        };
        if version.is_none() || found.major() == version {
            return Ok(found);
        }
        others.push(format!("{} in {}", found.version, found.bin.display()));
    }
    bail!("{}", missing(version, &others));
}

fn missing(version: Option<u32>, others: &[String]) -> String {
    let what = match version {
        Some(version) => format!("no PostgreSQL {version} server programs"),
        None => "no PostgreSQL server programs".to_owned(),
    };
    let found = if others.is_empty() {
        String::new()
    } else {
        format!(" (found: {})", others.join("; "))
    };
    let package = match version {
        Some(version) => format!("postgresql-{version}"),
        None => "postgresql".to_owned(),
    };
    format!(
        "{what} on this machine{found}. Any of these helps:\n  \
         apt install {package}\n  \
         ceteris fetch postgres\n  \
         url = \"...\" in the service's table, to use a server that runs already"
    )
}

/// Folders that hold server programs, in the order of preference.
fn candidates(env: &ReadEnv) -> Vec<PathBuf> {
    let mut found = cache::folders("postgres", env)
        .into_iter()
        .map(|folder| folder.join("bin"))
        .collect::<Vec<_>>();
    if let Some(bin) = program::on_path("postgres", env)
        .and_then(|path| path.canonicalize().ok())
        .and_then(|path| path.parent().map(Path::to_owned))
    {
        found.push(bin);
    }
    found.extend(installed(Path::new("/usr/lib/postgresql")));
    found.retain(|bin| complete(bin));
    found.dedup();
    found
}

/// `BASE/*/bin`, the newest version first.
fn installed(base: &Path) -> Vec<PathBuf> {
    let Ok(entries) = std::fs::read_dir(base) else {
        return Vec::new();
    };
    let mut versions: Vec<u32> = entries
        .flatten()
        .filter_map(|entry| entry.file_name().to_str()?.parse().ok())
        .collect();
    versions.sort_unstable_by(|a, b| b.cmp(a));
    versions
        .into_iter()
        .map(|version| base.join(version.to_string()).join("bin"))
        .collect()
}

fn complete(bin: &Path) -> bool {
    program::is_executable(&bin.join("postgres")) && program::is_executable(&bin.join("initdb"))
}

async fn tell(bin: PathBuf) -> Result<Programs> {
    let program = bin.join("postgres");
    let output = tokio::process::Command::new(&program)
        .arg("--version")
        .stdin(Stdio::null())
        .output()
        .await
        .with_context(|| format!("running {} --version", program.display()))?;
    let text = String::from_utf8_lossy(&output.stdout);
    match version_in(&text) {
        Some(version) if output.status.success() => Ok(Programs { bin, version }),
        _ => bail!(
            "{} does not run: {}",
            program.display(),
            String::from_utf8_lossy(&output.stderr).trim()
        ),
    }
}

/// `15.19` out of `postgres (PostgreSQL) 15.19 (Debian 15.19-0+deb12u1)`.
fn version_in(text: &str) -> Option<String> {
    text.split_once("(PostgreSQL) ")?
        .1
        .split_ascii_whitespace()
        .next()
        .map(str::to_owned)
}

fn major(version: &str) -> Option<u32> {
    let digits: String = version.chars().take_while(char::is_ascii_digit).collect();
    digits.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_read_as_programs_tell_them() {
        let version = version_in("postgres (PostgreSQL) 15.19 (Debian 15.19-0+deb12u1)\n");
        assert_eq!(version.as_deref(), Some("15.19"));
        assert_eq!(version.as_deref().and_then(major), Some(15));
        assert_eq!(major("18beta1"), Some(18));
        assert_eq!(version_in("nonsense"), None);
    }

    #[test]
    fn the_newest_installed_version_comes_first() {
        let base = tempfile::tempdir().unwrap();
        for version in ["9", "15", "18", "common"] {
            std::fs::create_dir(base.path().join(version)).unwrap();
        }
        let found = installed(base.path());
        assert!(found[0].ends_with("18/bin"), "{found:?}");
        assert_eq!(found.len(), 3);
    }

    #[test]
    fn the_three_remedies_are_named() {
        let text = missing(Some(18), &["15.19 in /x".to_owned()]);
        for part in [
            "apt install postgresql-18",
            "ceteris fetch postgres",
            "url =",
            "15.19 in /x",
        ] {
            assert!(text.contains(part), "{text}");
        }
    }
}
