//! The host, once a second, by a few reads.

use std::fs;
use std::time::Instant;

use anyhow::Context;

use crate::measure::HostSecond;

/// One reading of the host's counters.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct HostReading {
    when: Instant,
    busy: u64,
    steal: u64,
    iowait: u64,
    run_queue: u64,
    /// Microseconds in which some task waited: cpu, io, memory.
    pressure: [Option<u64>; 3],
}

impl HostReading {
    /// Reads `/proc/stat` and `/proc/pressure`.
    pub(super) fn take() -> anyhow::Result<Self> {
        let text = fs::read_to_string("/proc/stat").context("reading /proc/stat")?;
        let pressure = ["cpu", "io", "memory"].map(|name| {
            fs::read_to_string(format!("/proc/pressure/{name}"))
                .ok()
                .and_then(|text| some_total(&text))
        });
        Self::parse(&text, pressure)
    }

    fn parse(text: &str, pressure: [Option<u64>; 3]) -> anyhow::Result<Self> {
        let mut lines = text.lines();
        let ticks: Vec<u64> = lines
            .next()
            .and_then(|line| line.strip_prefix("cpu "))
            .context("/proc/stat does not begin with the processors' line")?
            .split_ascii_whitespace()
            .map_while(|word| word.parse().ok())
            .collect();
        // user nice system idle iowait irq softirq steal; guest time is already in user.
        let at = |i: usize| ticks.get(i).copied().unwrap_or(0);
        let run_queue = lines
            .find_map(|line| line.strip_prefix("procs_running "))
            .and_then(|word| word.trim().parse().ok())
            .unwrap_or(0);
        Ok(Self {
            when: Instant::now(),
            busy: at(0) + at(1) + at(2) + at(5) + at(6),
            iowait: at(4),
            steal: at(7),
            run_queue,
            pressure,
        })
    }

    /// The host between an earlier reading and this one, where the deployment and the runner used `own_cpu_s` CPU seconds.
    pub(super) fn since(&self, before: &HostReading, own_cpu_s: f64) -> HostSecond {
        let elapsed = (self.when - before.when).as_secs_f64().max(1e-3);
        let ticks = procfs::ticks_per_second() as f64;
        let cores = |now: u64, then: u64| now.saturating_sub(then) as f64 / ticks / elapsed;
        let busy = cores(self.busy, before.busy);
        let share = |i: usize| {
            let waited = self.pressure[i]?.saturating_sub(before.pressure[i]?);
            Some((waited as f64 / 1e6 / elapsed).min(1.0))
        };
        HostSecond {
            busy,
            steal: cores(self.steal, before.steal),
            iowait: cores(self.iowait, before.iowait),
            // The kernel books whole ticks, so a second's difference can fall a little below nothing.
            other_cpu: (busy - own_cpu_s / elapsed).max(0.0),
            pressure_cpu: share(0),
            pressure_io: share(1),
            pressure_memory: share(2),
            run_queue: self.run_queue,
        }
    }
}

/// The `total` of the `some` line of a pressure file, in microseconds.
pub(super) fn some_total(text: &str) -> Option<u64> {
    text.lines()
        .find(|line| line.starts_with("some "))?
        .rsplit_once("total=")?
        .1
        .trim()
        .parse()
        .ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    fn reading(text: &str, pressure: Option<u64>) -> HostReading {
        HostReading::parse(text, [pressure, None, None]).unwrap()
    }

    #[test]
    fn a_second_is_the_difference_of_two_readings() {
        let hz = procfs::ticks_per_second();
        let before = reading("cpu 0 0 0 0 0 0 0 0 0 0\nprocs_running 1\n", Some(0));
        let mut after = reading(
            &format!(
                "cpu {} 0 {} 0 {} 0 0 {} 0 0\nintr 1 2\nprocs_running 3\n",
                hz,
                hz / 2,
                hz / 4,
                hz / 10
            ),
            Some(250_000),
        );
        after.when = before.when + Duration::from_secs(1);
        let second = after.since(&before, 0.5);
        assert_eq!(second.busy, 1.5);
        assert_eq!(second.iowait, 0.25);
        assert_eq!(second.steal, 0.1);
        assert_eq!(second.other_cpu, 1.0);
        assert_eq!(second.run_queue, 3);
        assert_eq!(second.pressure_cpu, Some(0.25));
        assert_eq!(second.pressure_memory, None);
        assert_eq!(after.since(&before, 9.0).other_cpu, 0.0);
    }

    #[test]
    fn the_kernel_is_read_here_and_now() {
        let reading = HostReading::take().unwrap();
        assert!(reading.busy > 0);
        assert!(HostReading::parse("nothing", [None; 3]).is_err());
        assert_eq!(
            some_total("some avg10=0.00 avg60=0.00 avg300=0.00 total=17\nfull total=2\n"),
            Some(17)
        );
    }
}
