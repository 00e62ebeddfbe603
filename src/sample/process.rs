//! The process tree of one service: processors, memory, threads, descriptors, switches, I/O.

use std::fs;
use std::path::PathBuf;

use procfs::FromRead;
use procfs::process::{Io, Stat};
use tokio::sync::watch;

use super::account::{Account, Entry};
use super::output::Output;
use super::sockets::{Descriptors, Tables};
use super::spec::ProcessRoot;
use super::tree::Tree;

/// Bytes in a MiB.
pub(super) const MIB: f64 = 1024.0 * 1024.0;

/// How a service's memory may be summed over its processes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Sharing {
    /// Each process's resident memory counts.
    Private,
    /// Its processes share one large segment, so that a sum of resident sizes would count it once a process (PostgreSQL).
    Segment,
}

/// The instrument for one service's processes.
pub(super) struct Processes {
    root: watch::Receiver<Option<ProcessRoot>>,
    cgroups: Vec<PathBuf>,
    sharing: Sharing,
    tree: Option<Tree>,
    members: Vec<Stat>,
    accounts: Accounts,
    descriptors: Descriptors,
    ever: bool,
    stopped: bool,
    pub(super) cpu: Cpu,
}

/// Running totals of one life.
#[derive(Default)]
struct Accounts {
    user: Account,
    system: Account,
    read: Account,
    written: Account,
    voluntary: Account,
    involuntary: Account,
}

/// CPU seconds that a tree used in its present life.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub(super) struct Cpu {
    pub(super) user_s: f64,
    pub(super) system_s: f64,
    pub(super) epoch: u32,
}

impl Processes {
    pub(super) fn new(
        root: watch::Receiver<Option<ProcessRoot>>,
        cgroups: Vec<PathBuf>,
        sharing: Sharing,
    ) -> Self {
        Self {
            root,
            cgroups,
            sharing,
            tree: None,
            members: Vec::new(),
            accounts: Accounts::default(),
            descriptors: Descriptors::new(),
            ever: false,
            stopped: false,
            cpu: Cpu::default(),
        }
    }

    /// Looks at who is there and what they used; gives the CPU seconds used since the last look, for the host's account.
    pub(super) fn look(&mut self, out: &Output) -> f64 {
        let root = *self.root.borrow();
        if self.tree.as_ref().map(|t| t.root) != root {
            self.tree = root.map(Tree::new);
            self.accounts = Accounts::default();
            self.cpu = Cpu {
                epoch: root.map_or(self.cpu.epoch, |r| r.epoch),
                ..Cpu::default()
            };
        }
        let Some(tree) = &mut self.tree else {
            self.members.clear();
            return 0.0;
        };
        self.members = tree.refresh(&self.cgroups);
        self.ever |= !self.members.is_empty();
        let ticks = procfs::ticks_per_second() as f64;
        let before = self.cpu.user_s + self.cpu.system_s;
        let user = self.accounts.user.update(
            self.members
                .iter()
                .map(|s| entry(s, s.utime, non_negative(s.cutime))),
        );
        let system = self.accounts.system.update(
            self.members
                .iter()
                .map(|s| entry(s, s.stime, non_negative(s.cstime))),
        );
        self.cpu.user_s = user as f64 / ticks;
        self.cpu.system_s = system as f64 / ticks;
        self.tell_stopped(out);
        self.cpu.user_s + self.cpu.system_s - before
    }

    /// Ids of the processes of the last look.
    pub(super) fn pids(&self) -> impl Iterator<Item = i32> + '_ {
        self.members.iter().map(|s| s.pid)
    }

    /// Emits what a round reads of the processes of the last look; false when there is none.
    pub(super) fn round(&mut self, at_s: f64, out: &mut Output, tables: &mut Tables) -> bool {
        if self.members.is_empty() {
            return false;
        }
        let epoch = self.cpu.epoch;
        out.reading(at_s, "cpu_user_s", "cpu_s", self.cpu.user_s, epoch);
        out.reading(at_s, "cpu_system_s", "cpu_s", self.cpu.system_s, epoch);
        let statuses = self.statuses();
        self.memory(&statuses, at_s, out);
        let threads: i64 = self.members.iter().map(|s| s.num_threads).sum();
        out.reading(at_s, "threads", "count", threads as f64, epoch);
        self.descriptors
            .round(&self.members, at_s, epoch, out, tables);
        self.io(at_s, out);
        self.switches(&statuses, at_s, out);
        true
    }

    /// Says at the end what was never there to be read.
    pub(super) fn close(&self, out: &mut Output) {
        if !self.ever {
            for metric in [
                "cpu_user_s",
                "cpu_system_s",
                "memory",
                "threads",
                "descriptors",
            ] {
                out.not_observed(
                    metric,
                    "no process of this service could be read: it runs elsewhere, or it never started",
                );
            }
        }
    }

    /// The status of every member, in their order; nothing of one that ended since the look.
    fn statuses(&self) -> Vec<String> {
        self.members
            .iter()
            .map(|member| {
                fs::read_to_string(format!("/proc/{}/status", member.pid)).unwrap_or_default()
            })
            .collect()
    }

    fn memory(&self, statuses: &[String], at_s: f64, out: &mut Output) {
        // A process that has no memory of its own any more adds nothing.
        let sum =
            |name: &str| -> u64 { statuses.iter().filter_map(|text| field(text, name)).sum() };
        let (rss, anon) = (sum("VmRSS:"), sum("RssAnon:"));
        let (file, shared) = (sum("RssFile:"), sum("RssShmem:"));
        let epoch = self.cpu.epoch;
        let mib = |metric: &str, kib: u64| {
            out.reading(at_s, metric, "MiB", kib as f64 / 1024.0, epoch);
        };
        mib("memory.anon", anon);
        match self.sharing {
            Sharing::Private => {
                mib("memory.rss", rss);
                mib("memory.file", file);
                mib("memory.shared", shared);
            }
            Sharing::Segment => {
                for metric in ["memory.rss", "memory.file", "memory.shared"] {
                    out.not_observed(
                        metric,
                        "the processes of PostgreSQL share their buffers and program, so a sum of resident sizes would count \
                         them once a process; memory.pss divides them",
                    );
                }
            }
        }
    }

    fn io(&mut self, at_s: f64, out: &mut Output) {
        let mut readings = Vec::with_capacity(self.members.len());
        for member in &self.members {
            let path = format!("/proc/{}/io", member.pid);
            match fs::File::open(path).map(Io::from_read) {
                Ok(Ok(io)) => readings.push((member, io)),
                Ok(Err(_)) => {}
                Err(error) => {
                    if let Some(reason) = refused(member, &error) {
                        out.not_observed("io.read_bytes", reason.as_str());
                        return out.not_observed("io.write_bytes", reason);
                    }
                }
            }
        }
        // The kernel books a waited-for child's I/O in the same numbers as the parent's own.
        let of = |member: &Stat, value: u64| Entry {
            value,
            booked: value,
            ..entry(member, 0, 0)
        };
        let read = self
            .accounts
            .read
            .update(readings.iter().map(|(m, io)| of(m, io.read_bytes)));
        let written = self
            .accounts
            .written
            .update(readings.iter().map(|(m, io)| of(m, io.write_bytes)));
        let epoch = self.cpu.epoch;
        out.reading(at_s, "io.read_bytes", "bytes_total", read as f64, epoch);
        out.reading(at_s, "io.write_bytes", "bytes_total", written as f64, epoch);
    }

    fn switches(&mut self, statuses: &[String], at_s: f64, out: &mut Output) {
        let mut voluntary = Vec::new();
        let mut involuntary = Vec::new();
        for (member, status) in self.members.iter().zip(statuses) {
            let mut take = |tid: i32, text: &str| {
                let of = |value| Entry {
                    pid: tid,
                    start: member.starttime,
                    parent: 0,
                    value,
                    booked: 0,
                };
                voluntary.extend(field(text, "voluntary_ctxt_switches:").map(of));
                involuntary.extend(field(text, "nonvoluntary_ctxt_switches:").map(of));
            };
            // A process's own status speaks of its first thread only.
            if member.num_threads == 1 {
                take(member.pid, status);
                continue;
            }
            let Ok(threads) = fs::read_dir(format!("/proc/{}/task", member.pid)) else {
                continue;
            };
            for thread in threads.flatten() {
                if let Ok(tid) = thread.file_name().to_string_lossy().parse()
                    && let Ok(text) = fs::read_to_string(thread.path().join("status"))
                {
                    take(tid, &text);
                }
            }
        }
        let epoch = self.cpu.epoch;
        for (metric, account, readings) in [
            (
                "switches.voluntary",
                &mut self.accounts.voluntary,
                voluntary,
            ),
            (
                "switches.involuntary",
                &mut self.accounts.involuntary,
                involuntary,
            ),
        ] {
            let total = account.update(readings) as f64;
            out.reading(at_s, metric, "count_total", total, epoch);
        }
    }

    /// Tells when a process was stopped by a signal, and when it goes on: nothing else shows a stall so plainly.
    fn tell_stopped(&mut self, out: &Output) {
        let stopped = self
            .members
            .iter()
            .filter(|s| matches!(s.state, 'T' | 't'))
            .count();
        if (stopped > 0) != self.stopped {
            self.stopped = stopped > 0;
            let detail = if self.stopped {
                format!(
                    "{stopped} of {} processes are stopped by a signal",
                    self.members.len()
                )
            } else {
                "its processes run again".to_string()
            };
            out.server(out.clock.now(), "stopped", detail);
        }
    }
}

fn entry(stat: &Stat, own: u64, booked: u64) -> Entry {
    Entry {
        pid: stat.pid,
        start: stat.starttime,
        parent: stat.ppid,
        value: own + booked,
        booked,
    }
}

fn non_negative(value: i64) -> u64 {
    u64::try_from(value).unwrap_or(0)
}

/// Why a process may not be read; `None` when it merely ended meanwhile.
pub(super) fn refused(member: &Stat, error: &std::io::Error) -> Option<String> {
    (error.kind() == std::io::ErrorKind::PermissionDenied).then(|| {
        format!(
            "process {} ({}) belongs to another user, and this run may not read it",
            member.pid, member.comm
        )
    })
}

/// The number of a `name: value` line whose name stands at the line's beginning.
fn field(text: &str, name: &str) -> Option<u64> {
    text.lines()
        .find_map(|line| line.strip_prefix(name))
        .and_then(|rest| rest.split_ascii_whitespace().next())
        .and_then(|word| word.parse().ok())
}
