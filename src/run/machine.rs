//! Facts about the machine and the working folder, read once.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

use crate::measure::MachineFacts;

/// Reads the facts; what can't be read says so in its place.
pub fn machine() -> MachineFacts {
    let cpuinfo = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let meminfo = fs::read_to_string("/proc/meminfo").unwrap_or_default();
    let os = fs::read_to_string("/etc/os-release").unwrap_or_default();
    MachineFacts {
        cpu_model: value_of(&cpuinfo, "model name", ':').unwrap_or_else(unknown),
        cores: std::thread::available_parallelism().map_or(0, usize::from),
        memory_bytes: value_of(&meminfo, "MemTotal", ':')
            .and_then(|text| {
                text.split_whitespace()
                    .next()
                    .and_then(|kib| kib.parse::<u64>().ok())
            })
            .map_or(0, |kib| kib * 1024),
        kernel: fs::read_to_string("/proc/sys/kernel/osrelease")
            .map(|text| text.trim().to_owned())
            .unwrap_or_else(|_| unknown()),
        os: value_of(&os, "PRETTY_NAME", '=')
            .map(|text| text.trim_matches('"').to_owned())
            .unwrap_or_else(unknown),
        cgroups: cgroup_layout().to_owned(),
    }
}

fn unknown() -> String {
    "unknown".to_owned()
}

/// The value behind the first line that begins with `key`.
fn value_of(text: &str, key: &str, separator: char) -> Option<String> {
    text.lines()
        .filter_map(|line| line.split_once(separator))
        .find(|(name, _)| name.trim() == key)
        .map(|(_, value)| value.trim().to_owned())
}

/// Which control group hierarchy there is.
fn cgroup_layout() -> &'static str {
    let root = Path::new("/sys/fs/cgroup");
    if root.join("cgroup.controllers").exists() {
        "v2"
    } else if root.join("unified/cgroup.controllers").exists() {
        "hybrid"
    } else if root.join("memory").exists() {
        "v1"
    } else {
        "none"
    }
}

/// The commit of a working folder and whether it has no uncommitted changes; `None` outside a git checkout or where
/// there is no git.
pub fn git_state(folder: &Path) -> Option<(String, bool)> {
    let git = |arguments: &[&str]| {
        Command::new("git")
            .args(arguments)
            .current_dir(folder)
            .stdin(Stdio::null())
            .stderr(Stdio::null())
            .output()
            .ok()
            .filter(|output| output.status.success())
            .map(|output| String::from_utf8_lossy(&output.stdout).trim().to_owned())
    };
    let commit = git(&["rev-parse", "HEAD"])?;
    let changes = git(&["status", "--porcelain"])?;
    Some((commit, changes.is_empty()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_machine_has_cores_memory_and_a_kernel() {
        let facts = machine();
        assert!(facts.cores > 0);
        assert!(facts.memory_bytes > 0);
        assert_ne!(facts.kernel, "unknown");
    }

    #[test]
    fn a_value_is_found_by_its_whole_key() {
        let text = "model\t\t: 1\nmodel name\t: Some CPU @ 2GHz\n";
        assert_eq!(
            value_of(text, "model name", ':').as_deref(),
            Some("Some CPU @ 2GHz")
        );
        assert_eq!(value_of(text, "name", ':'), None);
    }
}
