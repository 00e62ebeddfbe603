//! The runner itself: what it uses, since it shares the machine with what it measures.

use super::output::Output;
use super::process::MIB;
use super::tree::stat;

/// The instrument for this process.
pub(super) struct Runner {
    pub(super) out: Output,
    pub(super) pid: i32,
    user_s: f64,
    system_s: f64,
    seen: bool,
}

impl Runner {
    pub(super) fn new(out: Output) -> Self {
        Self {
            out,
            pid: i32::try_from(std::process::id()).unwrap_or(0),
            user_s: 0.0,
            system_s: 0.0,
            seen: false,
        }
    }

    /// CPU seconds that this process used since the last look; none the first time. Children aren't counted: the services
    /// are among them, and have accounts of their own.
    pub(super) fn look(&mut self) -> f64 {
        let Ok(stat) = stat(self.pid) else { return 0.0 };
        let ticks = procfs::ticks_per_second() as f64;
        let before = self.user_s + self.system_s;
        self.user_s = stat.utime as f64 / ticks;
        self.system_s = stat.stime as f64 / ticks;
        let used = self.user_s + self.system_s - before;
        if std::mem::replace(&mut self.seen, true) {
            used
        } else {
            0.0
        }
    }

    /// Emits what a round reads of this process.
    pub(super) fn round(&mut self, at_s: f64) {
        self.look();
        let Ok(stat) = stat(self.pid) else { return };
        let emit = |metric, unit, value| self.out.reading(at_s, metric, unit, value, 0);
        emit("cpu_user_s", "cpu_s", self.user_s);
        emit("cpu_system_s", "cpu_s", self.system_s);
        let resident = stat.rss as f64 * procfs::page_size() as f64 / MIB;
        emit("memory.rss", "MiB", resident);
        emit("threads", "count", stat.num_threads as f64);
        if let Ok(open) = std::fs::read_dir("/proc/self/fd") {
            // The descriptor that reads the folder is among them.
            emit("descriptors", "count", open.count() as f64 - 1.0);
        }
    }
}
