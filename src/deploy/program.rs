//! Programs and files that are named: where they are, and their SHA-256.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::Read;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use sha2::{Digest, Sha256};

use super::render::ReadEnv;

/// A program that was found and hashed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Program {
    /// Where it is.
    pub(crate) path: PathBuf,
    /// Hex SHA-256 of its bytes.
    pub(crate) sha256: String,
    /// What tells cheaply that nobody wrote to it since.
    stamp: Stamp,
}

/// Device, inode, length, and times of the last change of content and of status.
type Stamp = (u64, u64, u64, (i64, i64), (i64, i64));

impl Program {
    /// Hashes the program at this path.
    pub(crate) fn at(path: PathBuf) -> Result<Self> {
        let stamp = stamp(&path)?;
        let sha256 = sha256(&path)?;
        Ok(Self {
            path,
            sha256,
            stamp,
        })
    }

    /// Refuses a program that is not the one that was hashed.
    pub(crate) fn unchanged(&self) -> Result<()> {
        if stamp(&self.path)? == self.stamp {
            return Ok(());
        }
        let now = sha256(&self.path)?;
        if now != self.sha256 {
            bail!(
                "the program {} was changed since it was prepared (SHA-256 {} then, {now} now): both arms must run what was \
                 prepared; an arm with a build of its own must write it to a path of its own",
                self.path.display(),
                self.sha256
            );
        }
        Ok(())
    }
}

fn stamp(path: &Path) -> Result<Stamp> {
    let data = path
        .metadata()
        .with_context(|| format!("reading {}", path.display()))?;
    Ok((
        data.dev(),
        data.ino(),
        data.len(),
        (data.mtime(), data.mtime_nsec()),
        (data.ctime(), data.ctime_nsec()),
    ))
}

/// Finds a program as a shell would: with a slash relative to `dir`, else along the caller's PATH.
pub(crate) fn find(name: &str, dir: &Path, env: &ReadEnv) -> Result<PathBuf> {
    if name.contains('/') {
        let path = dir.join(name);
        if is_executable(&path) {
            return Ok(path);
        }
        let why = if path.exists() {
            "is not an executable file"
        } else {
            "does not exist"
        };
        bail!("the program {} {why}", path.display());
    }
    match on_path(name, env) {
        Some(path) => Ok(path),
        None => bail!("the program {name} is not on PATH"),
    }
}

/// Looks for a program along PATH, and where system programs are kept.
pub(crate) fn on_path(name: &str, env: &ReadEnv) -> Option<PathBuf> {
    let path = env("PATH").unwrap_or_default();
    std::env::split_paths(&path)
        .chain(["/usr/local/sbin", "/usr/sbin", "/sbin"].map(PathBuf::from))
        .filter(|folder| folder.is_absolute())
        .map(|folder| folder.join(name))
        .find(|candidate| is_executable(candidate))
}

/// Whether it is a file that somebody may run.
pub(crate) fn is_executable(path: &Path) -> bool {
    path.metadata()
        .is_ok_and(|data| data.is_file() && data.permissions().mode() & 0o111 != 0)
}

/// Hex SHA-256 of a file.
///
/// # Errors
/// When it can't be read.
pub fn sha256(path: &Path) -> Result<String> {
    let mut file = File::open(path).with_context(|| format!("opening {}", path.display()))?;
    let mut hasher = Sha256::new();
    let mut buffer = vec![0; 256 * 1024];
    loop {
        let read = file
            .read(&mut buffer)
            .with_context(|| format!("reading {}", path.display()))?;
        if read == 0 {
            break;
        }
        hasher.update(&buffer[..read]);
    }
    Ok(hex(&hasher.finalize()))
}

/// Bytes as lower-case hexadecimal digits.
pub(crate) fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// SHA-256 of each argument that names a file, such as a script given to its interpreter.
pub(crate) fn named_files(args: &[String], dir: &Path) -> Result<BTreeMap<String, String>> {
    let mut found = BTreeMap::new();
    for argument in args {
        let path = dir.join(argument);
        if !argument.is_empty() && path.is_file() {
            found.insert(argument.clone(), sha256(&path)?);
        }
    }
    Ok(found)
}

/// Fails when a file that a command names is not what it was when it was hashed.
pub(crate) fn files_unchanged(files: &BTreeMap<String, String>, dir: &Path) -> Result<()> {
    for (name, before) in files {
        let now = sha256(&dir.join(name)).with_context(|| format!("reading {name} again"))?;
        if now != *before {
            bail!(
                "{name} changed during the run (sha256 {before}, now {now}): both arms must run the same files; leave it alone \
                 and run again"
            );
        }
    }
    Ok(())
}

/// The environment of a service: what programs need to run at all, and nothing else of the caller's. What a file does not
/// declare can then not make two runs of it differ.
pub(crate) fn base_env(env: &ReadEnv) -> BTreeMap<String, String> {
    const KEPT: [&str; 9] = [
        "PATH", "HOME", "USER", "LOGNAME", "SHELL", "LANG", "LC_ALL", "TZ", "TMPDIR",
    ];
    KEPT.iter()
        .filter_map(|name| Some(((*name).to_owned(), env(name)?)))
        .collect()
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;

    #[test]
    fn programs_are_found_along_path_and_by_path() {
        let env: ReadEnv = Arc::new(|name| (name == "PATH").then(|| "/usr/bin:/bin".to_owned()));
        let dir = Path::new("/");
        assert!(find("sh", dir, &env).unwrap().ends_with("sh"));
        assert!(find("bin/sh", dir, &env).is_ok());
        let error = find("no-such-program", dir, &env).unwrap_err().to_string();
        assert!(error.contains("no-such-program is not on PATH"), "{error}");
        let error = find("etc/passwd", dir, &env).unwrap_err().to_string();
        assert!(error.contains("not an executable file"), "{error}");
    }

    #[test]
    fn a_hash_is_that_of_the_bytes() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(dir.path().join("x.py"), "abc").unwrap();
        let named = named_files(&["-u".into(), "x.py".into(), String::new()], dir.path()).unwrap();
        assert_eq!(
            named.get("x.py").map(String::as_str),
            Some("ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad")
        );
        assert_eq!(named.len(), 1);
    }
}
