//! Which processes belong to which service, read from /proc.
//!
//! Descent is followed through parents. What forked away from its parent is handed to the supervisor by the kernel
//! (child subreaper), and is recognised by the mark in its environment or by its control group.

use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};

use rustix::process::{Pid, Signal};

/// Environment variable that names the folder which owns a process.
pub(crate) const MARK: &str = "CETERIS_MARK";
/// Environment variable that names the service which a process belongs to.
pub(crate) const KEY: &str = "CETERIS_SERVICE";

/// Every process of the machine with its parent, zombies left out.
pub(crate) struct Table {
    children: HashMap<u32, Vec<u32>>,
}

impl Table {
    /// Reads /proc.
    pub(crate) fn read() -> Self {
        let mut children: HashMap<u32, Vec<u32>> = HashMap::new();
        for pid in pids() {
            if let Some((parent, state)) = parent_and_state(pid)
                && state != b'Z'
                && state != b'X'
            {
                children.entry(parent).or_default().push(pid);
            }
        }
        Self { children }
    }

    /// Direct children.
    pub(crate) fn children(&self, pid: u32) -> &[u32] {
        self.children.get(&pid).map_or(&[], Vec::as_slice)
    }

    /// Whether a process is there and no zombie.
    pub(crate) fn alive(&self, pid: u32) -> bool {
        self.children.values().any(|all| all.contains(&pid))
    }

    /// All that descends from a process, without itself.
    pub(crate) fn descendants(&self, pid: u32) -> HashSet<u32> {
        let mut found = HashSet::new();
        let mut open = vec![pid];
        while let Some(next) = open.pop() {
            for child in self.children(next) {
                if found.insert(*child) {
                    open.push(*child);
                }
            }
        }
        found
    }
}

/// Numbers of all processes.
pub(crate) fn pids() -> Vec<u32> {
    let Ok(entries) = std::fs::read_dir("/proc") else {
        return Vec::new();
    };
    entries
        .flatten()
        .filter_map(|entry| entry.file_name().to_str()?.parse().ok())
        .collect()
}

fn parent_and_state(pid: u32) -> Option<(u32, u8)> {
    let text = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The command name may hold anything, so the fields are counted from its closing parenthesis.
    let rest = &text[text.rfind(')')? + 1..];
    let mut fields = rest.split_ascii_whitespace();
    let state = *fields.next()?.as_bytes().first()?;
    Some((fields.next()?.parse().ok()?, state))
}

/// The value of a variable in the environment that a process was started with.
pub(crate) fn environ(pid: u32, variable: &str) -> Option<String> {
    let bytes = std::fs::read(format!("/proc/{pid}/environ")).ok()?;
    bytes.split(|byte| *byte == 0).find_map(|entry| {
        let (name, value) = std::str::from_utf8(entry).ok()?.split_once('=')?;
        (name == variable).then(|| value.to_owned())
    })
}

/// Processes in a control group, from its `cgroup.procs`.
pub(crate) fn in_cgroup(procs: &Path) -> Vec<u32> {
    std::fs::read_to_string(procs)
        .map(|text| text.lines().filter_map(|line| line.parse().ok()).collect())
        .unwrap_or_default()
}

/// Sends a signal; a process that is gone already is no fault.
pub(crate) fn send(pid: u32, signal: Signal) {
    if let Some(pid) = i32::try_from(pid).ok().and_then(Pid::from_raw) {
        // The only other errors are a missing right, which nothing here could mend, and a process that is gone.
        let _ = rustix::process::kill_process(pid, signal);
    }
}

/// Sends a signal to a process group.
pub(crate) fn send_group(group: u32, signal: Signal) {
    if let Some(group) = i32::try_from(group).ok().and_then(Pid::from_raw) {
        let _ = rustix::process::kill_process_group(group, signal);
    }
}

/// Files in /dev/shm that a process has mapped.
pub(crate) fn shared_files(pid: u32) -> Vec<PathBuf> {
    let Ok(maps) = std::fs::read_to_string(format!("/proc/{pid}/maps")) else {
        return Vec::new();
    };
    let mut files: Vec<PathBuf> = maps
        .lines()
        .filter_map(|line| line.find("/dev/shm/").map(|at| &line[at..]))
        .filter(|path| !path.ends_with(" (deleted)"))
        .map(PathBuf::from)
        .collect();
    files.dedup();
    files
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_process_descends_from_its_parent() {
        let me = std::process::id();
        let (parent, _) = parent_and_state(me).unwrap();
        let table = Table::read();
        assert!(table.children(parent).contains(&me));
        assert!(table.descendants(parent).contains(&me));
        assert!(table.alive(me));
        assert_eq!(environ(me, "PATH"), std::env::var("PATH").ok());
        assert_eq!(environ(me, "CETERIS_NOT_THERE"), None);
    }
}
