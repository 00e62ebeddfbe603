//! Which processes belong to a service: what descends from its root, and what its control groups hold.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use procfs::FromRead;
use procfs::process::Stat;

use super::spec::ProcessRoot;

/// The processes of one life of a service.
pub(super) struct Tree {
    pub(super) root: ProcessRoot,
    /// Start times of the processes seen so far that still live. An orphan stays in it: its parent is gone, it isn't.
    known: BTreeMap<i32, u64>,
}

impl Tree {
    pub(super) fn new(root: ProcessRoot) -> Self {
        Self {
            root,
            known: BTreeMap::new(),
        }
    }

    /// Every process that belongs to it now; none when all are gone.
    pub(super) fn refresh(&mut self, cgroups: &[PathBuf]) -> Vec<Stat> {
        let mut queue: Vec<i32> = self.known.keys().copied().collect();
        if self.known.is_empty() {
            queue.extend(i32::try_from(self.root.pid));
        }
        for folder in cgroups {
            queue.extend(pids_in(&folder.join("cgroup.procs")));
        }
        let mut seen = BTreeSet::new();
        let mut stats = Vec::with_capacity(queue.len());
        while let Some(pid) = queue.pop() {
            if !seen.insert(pid) {
                continue;
            }
            let Ok(stat) = stat(pid) else { continue };
            if self
                .known
                .get(&pid)
                .is_some_and(|start| *start != stat.starttime)
            {
                continue;
            }
            queue.extend(children(&stat));
            stats.push(stat);
        }
        self.known = stats.iter().map(|s| (s.pid, s.starttime)).collect();
        stats
    }
}

/// What the kernel tells anyone about a process.
pub(super) fn stat(pid: i32) -> procfs::ProcResult<Stat> {
    Stat::from_file(format!("/proc/{pid}/stat"))
}

/// Processes that a process's threads started and that live.
fn children(parent: &Stat) -> Vec<i32> {
    let pid = parent.pid;
    if parent.num_threads == 1 {
        return pids_in(Path::new(&format!("/proc/{pid}/task/{pid}/children")));
    }
    let Ok(threads) = fs::read_dir(format!("/proc/{pid}/task")) else {
        return Vec::new();
    };
    threads
        .flatten()
        .flat_map(|thread| pids_in(&thread.path().join("children")))
        .collect()
}

/// The process ids in a file of the kernel; none when it can't be read.
fn pids_in(file: &Path) -> Vec<i32> {
    fs::read_to_string(file)
        .map(|text| {
            text.split_ascii_whitespace()
                .filter_map(|word| word.parse().ok())
                .collect()
        })
        .unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::Command;

    #[test]
    fn a_tree_holds_its_descendants_and_nothing_else() {
        let mut child = Command::new("sleep").arg("60").spawn().unwrap();
        let mut stranger = Command::new("sleep").arg("60").spawn().unwrap();
        let mut own = Tree::new(ProcessRoot {
            pid: std::process::id(),
            epoch: 0,
        });
        let mut one = Tree::new(ProcessRoot {
            pid: child.id(),
            epoch: 0,
        });
        let pids: Vec<_> = own.refresh(&[]).iter().map(|s| s.pid as u32).collect();
        assert!(pids.contains(&child.id()) && pids.contains(&stranger.id()));
        let pids: Vec<_> = one.refresh(&[]).iter().map(|s| s.pid as u32).collect();
        assert_eq!(pids, [child.id()]);
        child.kill().unwrap();
        child.wait().unwrap();
        assert!(one.refresh(&[]).is_empty());
        stranger.kill().unwrap();
        stranger.wait().unwrap();
    }
}
