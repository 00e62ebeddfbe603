//! What runs leave behind, and how it is recognised as ours before anything is touched.
//!
//! A scratch folder bears a lock file that its run holds for as long as it or its supervisor lives. A folder whose lock is
//! free belongs to nobody any more: it, the processes that name it in their environment, and its control groups are removed.
//! Nothing without that mark is ever touched.

use std::collections::{BTreeSet, HashSet};
use std::fs::{File, OpenOptions, TryLockError};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant, SystemTime};

use anyhow::{Context, Result, bail};
use rustix::process::Signal;

use super::supervisor::tree;

/// The file that marks a scratch folder and is locked while it is in use.
const LOCK: &str = ".ceteris";
/// The file that marks a scratch folder whose services the user wanted kept.
const KEPT: &str = ".kept";
/// What the name of every scratch folder and control group begins with.
pub(crate) const PREFIX: &str = "ceteris-";

/// A scratch folder of one run, outside results/: data folders, sockets, rendered files.
#[derive(Debug)]
pub struct Scratch {
    root: PathBuf,
    _lock: File,
}

impl Scratch {
    /// Makes `base/ceteris-<token>` and marks it as in use.
    pub fn create(base: &Path, token: &str) -> Result<Self> {
        let root = base.join(format!("{PREFIX}{token}"));
        std::fs::create_dir_all(base)
            .with_context(|| format!("creating the folder {}", base.display()))?;
        // Locked before it bears the name that a sweep looks for: another run's start must never take it for a dead one.
        let unnamed = base.join(format!(".new-{PREFIX}{token}"));
        std::fs::create_dir(&unnamed)
            .with_context(|| format!("creating the scratch folder {}", unnamed.display()))?;
        let lock = unnamed.join(LOCK);
        File::create(&lock).with_context(|| format!("creating {}", lock.display()))?;
        let held = hold(&unnamed)?;
        std::fs::rename(&unnamed, &root)
            .with_context(|| format!("naming the scratch folder {}", root.display()))?;
        Ok(Self { root, _lock: held })
    }

    /// The folder.
    pub fn path(&self) -> &Path {
        &self.root
    }
}

/// Takes a share in a scratch folder's lock.
pub(crate) fn hold(root: &Path) -> Result<File> {
    let path = root.join(LOCK);
    let file = OpenOptions::new()
        .read(true)
        .open(&path)
        .with_context(|| format!("opening {}: is it a scratch folder?", path.display()))?;
    file.lock_shared()
        .with_context(|| format!("locking {}", path.display()))?;
    Ok(file)
}

/// Says that what is in a scratch folder is to be kept: no sweep takes it.
pub(crate) fn keep(root: &Path) -> Result<()> {
    let mark = root.join(KEPT);
    File::create(&mark).with_context(|| format!("creating {}", mark.display()))?;
    Ok(())
}

/// Gives an arm's folder another name, so that the next start of the same arm finds none: `treatment-1`, `treatment-2`.
pub(crate) fn set_aside(home: &Path) -> Result<()> {
    for n in 1.. {
        let mut aside = home.as_os_str().to_owned();
        aside.push(format!("-{n}"));
        let aside = PathBuf::from(aside);
        if !aside.exists() {
            return std::fs::rename(home, &aside)
                .with_context(|| format!("setting aside {}", home.display()));
        }
    }
    Ok(())
}

/// What a sweep removed.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Swept {
    /// Scratch folders of dead runs.
    pub folders: Vec<PathBuf>,
    /// Processes of dead runs, as `pid command`.
    pub processes: Vec<String>,
    /// Control groups of dead runs.
    pub cgroups: Vec<PathBuf>,
}

impl Swept {
    /// Whether there was nothing to do.
    pub fn is_empty(&self) -> bool {
        self == &Self::default()
    }
}

/// Removes what dead runs left under `base`: the next start of ceteris calls it.
pub fn sweep(base: &Path) -> Result<Swept> {
    let mut swept = Swept::default();
    let mut dead: Vec<PathBuf> = Vec::new();
    if base.is_dir() {
        let entries =
            std::fs::read_dir(base).with_context(|| format!("reading {}", base.display()))?;
        for entry in entries.flatten() {
            let root = entry.path();
            if entry.file_name().to_string_lossy().starts_with(PREFIX) && is_free(&root) {
                dead.push(root);
            }
        }
    }
    for pid in tree::pids() {
        let Some(mark) = tree::environ(pid, tree::MARK).map(PathBuf::from) else {
            continue;
        };
        let ours = mark.parent() == Some(base) && (dead.contains(&mark) || !mark.exists());
        if ours && pid != std::process::id() {
            let command = std::fs::read_to_string(format!("/proc/{pid}/comm")).unwrap_or_default();
            swept.processes.push(format!("{pid} {}", command.trim()));
            end(pid, &mark);
        }
    }
    for root in dead {
        if let Some(name) = root.file_name() {
            for group in super::cgroup::groups_named(&name.to_string_lossy()) {
                remove_cgroup(&group);
                swept.cgroups.push(group);
            }
        }
        remove_root(&root);
        swept.folders.push(root);
    }
    Ok(swept)
}

/// A marked folder of this user that nobody holds.
fn is_free(root: &Path) -> bool {
    if root.join(KEPT).exists() {
        return false;
    }
    let Ok(file) = OpenOptions::new().read(true).open(root.join(LOCK)) else {
        return false;
    };
    match file.try_lock() {
        Ok(()) => true,
        Err(TryLockError::WouldBlock | TryLockError::Error(_)) => false,
    }
}

/// TERM-free end of a leftover: it has had its time. PostgreSQL is asked to drop its shared memory first.
fn end(pid: u32, mark: &Path) {
    tree::send(pid, Signal::QUIT);
    let deadline = Instant::now() + Duration::from_secs(2);
    while Instant::now() < deadline {
        if tree::environ(pid, tree::MARK).as_deref() != mark.to_str() {
            return;
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    tree::send(pid, Signal::KILL);
}

/// Removes a scratch folder; only one that bears the lock file.
pub(crate) fn remove_root(root: &Path) {
    if root.join(LOCK).is_file() {
        // The mark goes last, so that an interrupted removal is finished by the next sweep.
        if let Ok(entries) = std::fs::read_dir(root) {
            for entry in entries.flatten() {
                let path = entry.path();
                if entry.file_name() == LOCK {
                    continue;
                }
                let _ = match entry.file_type() {
                    Ok(kind) if kind.is_dir() => std::fs::remove_dir_all(&path),
                    _ => std::fs::remove_file(&path),
                };
            }
        }
        let _ = std::fs::remove_dir_all(root);
    }
}

/// Kills what is in a control group and removes it with the groups below it.
pub(crate) fn remove_cgroup(path: &Path) {
    let Ok(entries) = std::fs::read_dir(path) else {
        return;
    };
    for entry in entries.flatten() {
        if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            remove_cgroup(&entry.path());
        }
    }
    let deadline = Instant::now() + Duration::from_secs(2);
    while std::fs::remove_dir(path).is_err() && path.is_dir() && Instant::now() < deadline {
        let _ = std::fs::write(path.join("cgroup.kill"), b"1");
        for pid in tree::in_cgroup(&path.join("cgroup.procs")) {
            tree::send(pid, Signal::KILL);
        }
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// Removes POSIX shared memory that killed processes left: made since `since`, and mapped by nobody.
pub(crate) fn remove_shared_files(files: &BTreeSet<PathBuf>, since: SystemTime) {
    let left: Vec<&PathBuf> = files
        .iter()
        .filter(|file| {
            file.metadata()
                .and_then(|data| data.created())
                .is_ok_and(|made| made >= since)
        })
        .collect();
    if left.is_empty() {
        return;
    }
    let mut used: HashSet<PathBuf> = HashSet::new();
    for pid in tree::pids() {
        used.extend(tree::shared_files(pid));
    }
    for file in left {
        if !used.contains(file) {
            let _ = std::fs::remove_file(file);
        }
    }
}

/// Removes System V shared memory that killed processes left: made by one of `owners` since `since`, attached by nobody.
pub(crate) fn remove_shared_segments(owners: &HashSet<u32>, since: SystemTime) {
    let Ok(table) = std::fs::read_to_string("/proc/sysvipc/shm") else {
        return;
    };
    let since = since
        .duration_since(SystemTime::UNIX_EPOCH)
        .map_or(0, |time| time.as_secs());
    for id in abandoned_segments(&table, owners, since) {
        // No safe interface exists for shmctl; util-linux brings this program everywhere.
        let _ = Command::new("ipcrm")
            .args(["-m", &id.to_string()])
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .status();
    }
}

/// Ids from `/proc/sysvipc/shm`: columns key, shmid, perms, size, cpid, lpid, nattch, uid, gid, cuid, cgid, atime, dtime, ctime.
fn abandoned_segments(table: &str, owners: &HashSet<u32>, since: u64) -> Vec<u64> {
    table
        .lines()
        .skip(1)
        .filter_map(|line| {
            let fields: Vec<&str> = line.split_ascii_whitespace().collect();
            let id: u64 = fields.get(1)?.parse().ok()?;
            let maker: u32 = fields.get(4)?.parse().ok()?;
            let attached: u64 = fields.get(6)?.parse().ok()?;
            let changed: u64 = fields.get(13)?.parse().ok()?;
            (owners.contains(&maker) && attached == 0 && changed >= since).then_some(id)
        })
        .collect()
}

/// The folder above `folder`, or itself, that bears the mark.
pub(crate) fn marked(folder: &Path) -> Result<PathBuf> {
    for candidate in folder.ancestors().take(4) {
        if candidate.join(LOCK).is_file() {
            return Ok(candidate.to_owned());
        }
    }
    bail!(
        "{} is not inside a scratch folder: make one with Scratch::create",
        folder.display()
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_in_use_is_left_alone_and_a_free_one_goes() {
        let base = tempfile::tempdir().unwrap();
        let used = Scratch::create(base.path(), "used").unwrap();
        let free = Scratch::create(base.path(), "free").unwrap();
        let free_path = free.path().to_owned();
        std::fs::create_dir_all(free_path.join("treatment/db")).unwrap();
        let kept = Scratch::create(base.path(), "kept").unwrap();
        keep(kept.path()).unwrap();
        for pair in 1..=2 {
            let home = kept.path().join("treatment");
            std::fs::create_dir(&home).unwrap();
            std::fs::write(home.join("of"), pair.to_string()).unwrap();
            set_aside(&home).unwrap();
        }
        let kept_path = kept.path().to_owned();
        drop(kept);
        std::fs::create_dir(base.path().join("ceteris-unmarked")).unwrap();
        std::fs::create_dir(base.path().join("other")).unwrap();
        assert_eq!(marked(&free_path.join("treatment/db")).unwrap(), free_path);
        drop(free);
        let swept = sweep(base.path()).unwrap();
        assert_eq!(swept.folders, vec![free_path.clone()]);
        assert!(!free_path.exists());
        assert!(used.path().exists());
        let of = |home: &str| std::fs::read_to_string(kept_path.join(home).join("of")).unwrap();
        assert_eq!(
            (of("treatment-1"), of("treatment-2")),
            ("1".into(), "2".into())
        );
        assert!(base.path().join("ceteris-unmarked").exists());
        assert!(base.path().join("other").exists());
    }

    #[test]
    fn only_own_and_unattached_segments_are_named() {
        let table = "       key      shmid perms                  size  cpid  lpid nattch   uid   gid  cuid  cgid      atime      dtime      ctime                   rss                  swap\n\
                     1 10 600 56 500 500 0 101 104 101 104 0 0 100 0 0\n\
                     1 11 600 56 500 500 2 101 104 101 104 0 0 100 0 0\n\
                     1 12 600 56 501 501 0 101 104 101 104 0 0 100 0 0\n\
                     1 13 600 56 500 500 0 101 104 101 104 0 0 50 0 0\n";
        assert_eq!(abandoned_segments(table, &HashSet::from([500]), 60), [10]);
    }
}
