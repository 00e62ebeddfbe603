//! `SHA256SUMS`: one line a file, as `sha256sum -c` reads it.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::Read;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use sha2::{Digest, Sha256};

use super::verify::Difference;
use crate::results::RunFolder;

/// Name of the file of checksums.
pub(super) const SUMS: &str = "SHA256SUMS";

/// Writes the checksums of every file below a run's folder.
///
/// # Errors
/// When a file can't be read, or the list can't be written.
pub fn seal(folder: &Path) -> Result<()> {
    let mut text = String::new();
    for name in files(folder)? {
        let sum = sha256(&folder.join(&name))?;
        text.push_str(&format!("{sum}  {name}\n"));
    }
    RunFolder::write_whole(&folder.join(SUMS), text.as_bytes())
}

/// Paths of every file below a folder but the checksums themselves: relative, with `/`, sorted. Links are refused: what
/// they point at is not in the folder.
pub(super) fn files(folder: &Path) -> Result<Vec<String>> {
    let mut found = Vec::new();
    let mut open = vec![PathBuf::new()];
    while let Some(inside) = open.pop() {
        let dir = folder.join(&inside);
        let entries =
            fs::read_dir(&dir).with_context(|| format!("reading the folder {}", dir.display()))?;
        for entry in entries {
            let entry = entry.with_context(|| format!("reading the folder {}", dir.display()))?;
            let kind = entry
                .file_type()
                .with_context(|| format!("reading {}", entry.path().display()))?;
            let path = inside.join(entry.file_name());
            if kind.is_dir() {
                open.push(path);
            } else if kind.is_file() {
                let Some(name) = path.to_str() else {
                    bail!("{} has a name that is not UTF-8", entry.path().display());
                };
                if name.contains(['\n', '\r', '\\']) {
                    bail!(
                        "{} has a line end or a backslash in its name",
                        entry.path().display()
                    );
                }
                if name != SUMS {
                    found.push(name.to_owned());
                }
            } else {
                bail!(
                    "{} is neither a file nor a folder: a run's folder holds its data itself",
                    entry.path().display()
                );
            }
        }
    }
    found.sort();
    Ok(found)
}

/// Hex SHA-256 of a file.
pub(super) fn sha256(path: &Path) -> Result<String> {
    let mut file = File::open(path).with_context(|| format!("reading {}", path.display()))?;
    let mut hash = Sha256::new();
    let mut buffer = vec![0; 1 << 16];
    loop {
        let read = file
            .read(&mut buffer)
            .with_context(|| format!("reading {}", path.display()))?;
        if read == 0 {
            break;
        }
        hash.update(&buffer[..read]);
    }
    Ok(hash
        .finalize()
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect())
}

/// Every file that is not as its checksum says, is missing, or is not listed; and how many were compared.
pub(super) fn compare(folder: &Path) -> Result<(usize, Vec<Difference>)> {
    let path = folder.join(SUMS);
    let text = fs::read_to_string(&path).with_context(|| {
        format!(
            "reading the checksums {}: a run that was never sealed can't be verified",
            path.display()
        )
    })?;
    let mut differences = Vec::new();
    let mut listed = BTreeMap::new();
    for (i, line) in text.split_inclusive('\n').enumerate() {
        let parts = line
            .strip_suffix('\n')
            .and_then(|line| line.split_once("  "));
        match parts {
            Some((sum, name)) if sum.len() == 64 && !name.is_empty() => {
                if listed.insert(name.to_owned(), sum.to_owned()).is_some() {
                    differences.push(Difference::new(
                        SUMS,
                        &format!("line {}", i + 1),
                        "",
                        "a second line for this file",
                    ));
                }
            }
            _ => differences.push(Difference::new(
                SUMS,
                &format!("line {}", i + 1),
                line.trim_end(),
                "no checksum and name",
            )),
        }
    }
    let present = files(folder)?;
    for name in &present {
        match listed.remove(name) {
            None => differences.push(Difference::new(name, "checksum", "not listed", "present")),
            Some(stored) => {
                let now = sha256(&folder.join(name))?;
                if stored != now {
                    differences.push(Difference::new(name, "SHA-256", &stored, &now));
                }
            }
        }
    }
    for name in listed.keys() {
        differences.push(Difference::new(name, "checksum", "listed", "missing"));
    }
    Ok((present.len(), differences))
}
