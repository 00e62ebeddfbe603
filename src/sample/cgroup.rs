//! The control groups of one service, of either version: what it is charged, what it may use, how often it had to wait.

use std::fs;
use std::path::{Path, PathBuf};

use super::host::some_total;
use super::output::Output;
use super::process::MIB;

/// A limit above this is none: version 1 writes a huge number where nothing is limited.
const UNLIMITED: f64 = (1_u64 << 60) as f64;

/// The instrument for one service's control groups.
#[derive(Debug)]
pub(super) struct Groups {
    folders: Vec<PathBuf>,
    told: bool,
    killed: Option<f64>,
}

/// What can be read, whatever the version; sizes in bytes, times in seconds.
#[derive(Debug, Clone, PartialEq, Default)]
struct Charge {
    version: &'static str,
    memory: Option<f64>,
    anon: Option<f64>,
    file: Option<f64>,
    kernel: Option<f64>,
    limit: Option<f64>,
    killed: Option<f64>,
    cpu_s: Option<f64>,
    throttled: Option<f64>,
    throttled_s: Option<f64>,
    pressure_s: [Option<f64>; 3],
}

impl Groups {
    pub(super) fn new(folders: Vec<PathBuf>) -> Self {
        Self {
            folders,
            told: false,
            killed: None,
        }
    }

    /// Emits what a round reads.
    pub(super) fn round(&mut self, at_s: f64, epoch: u32, out: &mut Output) {
        let mut charge = Charge::default();
        for folder in &self.folders {
            charge.read(folder);
        }
        match charge.memory {
            None => out.not_observed(
                "memory.cgroup",
                "the service has no memory control group of its own that can be read",
            ),
            Some(_) if !self.told => {
                self.told = true;
                let detail = format!("memory is read from control groups {}", charge.version);
                out.server(at_s, "cgroup", detail);
            }
            Some(_) => {}
        }
        for (metric, bytes) in [
            ("memory.cgroup", charge.memory),
            ("memory.cgroup_anon", charge.anon),
            ("memory.cgroup_file", charge.file),
            ("memory.cgroup_kernel", charge.kernel),
            ("memory.cgroup_limit", charge.limit),
        ] {
            if let Some(bytes) = bytes {
                out.reading(at_s, metric, "MiB", bytes / MIB, epoch);
            }
        }
        // A group outlives the processes in it: its counters go on over a restart, and fall only when it is made anew.
        let [cpu, io, memory] = charge.pressure_s;
        for (metric, unit, value) in [
            ("oom_kills", "count_total", charge.killed),
            ("cgroup_cpu_s", "cpu_s", charge.cpu_s),
            ("throttled", "count_total", charge.throttled),
            ("throttled_s", "s_total", charge.throttled_s),
            ("pressure_s.cpu", "s_total", cpu),
            ("pressure_s.io", "s_total", io),
            ("pressure_s.memory", "s_total", memory),
        ] {
            if let Some(value) = value {
                out.counter(at_s, metric, unit, value, 0);
            }
        }
        if let (Some(before), Some(now)) = (self.killed, charge.killed)
            && now > before
        {
            let detail = format!("{} processes killed for want of memory", now - before);
            out.server(at_s, "oom_kill", detail);
        }
        self.killed = charge.killed.or(self.killed);
    }
}

impl Charge {
    /// Adds what one folder holds; each controller is in one of them.
    fn read(&mut self, folder: &Path) {
        let number = |file: &str| -> Option<f64> {
            let text = fs::read_to_string(folder.join(file)).ok()?;
            text.trim().parse().ok()
        };
        let text = |file: &str| fs::read_to_string(folder.join(file)).unwrap_or_default();
        if let Some(current) = number("memory.current") {
            self.version = "v2";
            self.memory = Some(current);
            let stat = text("memory.stat");
            self.anon = value(&stat, "anon");
            self.file = value(&stat, "file");
            self.kernel = value(&stat, "kernel");
            // "max" is no number, and no limit.
            self.limit = number("memory.max");
            self.killed = value(&text("memory.events"), "oom_kill");
        } else if let Some(usage) = number("memory.usage_in_bytes") {
            self.version = "v1";
            self.memory = Some(usage);
            let stat = text("memory.stat");
            self.anon = value(&stat, "total_rss");
            self.file = value(&stat, "total_cache");
            self.kernel = number("memory.kmem.usage_in_bytes");
            self.limit = number("memory.limit_in_bytes").filter(|limit| *limit < UNLIMITED);
            self.killed = value(&text("memory.oom_control"), "oom_kill");
        }
        let cpu = text("cpu.stat");
        if let Some(usage_us) = value(&cpu, "usage_usec") {
            self.cpu_s = Some(usage_us / 1e6);
        }
        if let Some(usage_ns) = number("cpuacct.usage") {
            self.cpu_s = Some(usage_ns / 1e9);
        }
        self.throttled = value(&cpu, "nr_throttled").or(self.throttled);
        let throttled_s = value(&cpu, "throttled_usec")
            .map(|us| us / 1e6)
            .or_else(|| value(&cpu, "throttled_time").map(|ns| ns / 1e9));
        self.throttled_s = throttled_s.or(self.throttled_s);
        for (i, name) in ["cpu", "io", "memory"].into_iter().enumerate() {
            if let Some(us) = some_total(&text(&format!("{name}.pressure"))) {
                self.pressure_s[i] = Some(us as f64 / 1e6);
            }
        }
    }
}

/// The number of a `name value` line.
fn value(text: &str, name: &str) -> Option<f64> {
    text.lines()
        .filter_map(|line| line.split_once(' '))
        .find(|(key, _)| *key == name)
        .and_then(|(_, number)| number.trim().parse().ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn folder(files: &[(&str, &str)]) -> tempfile::TempDir {
        let folder = tempfile::tempdir().unwrap();
        for (name, text) in files {
            fs::write(folder.path().join(name), text).unwrap();
        }
        folder
    }

    #[test]
    fn version_2_is_read() {
        let group = folder(&[
            ("memory.current", "1048576\n"),
            (
                "memory.stat",
                "anon 600\nfile 300\nkernel 100\nkernel_stack 1\n",
            ),
            ("memory.max", "max\n"),
            ("memory.events", "low 0\noom 2\noom_kill 1\n"),
            (
                "cpu.stat",
                "usage_usec 2500000\nnr_throttled 3\nthrottled_usec 500000\n",
            ),
            (
                "io.pressure",
                "some avg10=0.00 avg60=0.00 avg300=0.00 total=1500000\nfull avg10=0.00 total=1\n",
            ),
        ]);
        let mut charge = Charge::default();
        charge.read(group.path());
        let expected = Charge {
            version: "v2",
            memory: Some(1048576.0),
            anon: Some(600.0),
            file: Some(300.0),
            kernel: Some(100.0),
            limit: None,
            killed: Some(1.0),
            cpu_s: Some(2.5),
            throttled: Some(3.0),
            throttled_s: Some(0.5),
            pressure_s: [None, Some(1.5), None],
        };
        assert_eq!(charge, expected);
    }

    #[test]
    fn version_1_is_read_from_its_several_folders() {
        let memory = folder(&[
            ("memory.usage_in_bytes", "4096\n"),
            ("memory.stat", "rss 1\ntotal_rss 2048\ntotal_cache 1024\n"),
            ("memory.limit_in_bytes", "9223372036854771712\n"),
            (
                "memory.oom_control",
                "oom_kill_disable 0\nunder_oom 0\noom_kill 4\n",
            ),
        ]);
        let cpu = folder(&[(
            "cpu.stat",
            "nr_periods 9\nnr_throttled 7\nthrottled_time 2000000000\n",
        )]);
        let cpuacct = folder(&[("cpuacct.usage", "1500000000\n")]);
        let mut charge = Charge::default();
        for group in [&memory, &cpu, &cpuacct] {
            charge.read(group.path());
        }
        assert_eq!(charge.version, "v1");
        assert_eq!(
            (charge.memory, charge.anon, charge.file),
            (Some(4096.0), Some(2048.0), Some(1024.0))
        );
        assert_eq!((charge.limit, charge.killed), (None, Some(4.0)));
        assert_eq!(
            (charge.cpu_s, charge.throttled, charge.throttled_s),
            (Some(1.5), Some(7.0), Some(2.0))
        );
    }
}
