//! Proportional set size: each page divided by the number of its mappings, so that a sum over processes counts it once.
//!
//! The kernel walks the whole page table for it (18 ms for 2 GB) and the process's own memory calls wait as long. So it is
//! read at both ends and at most once a minute in between, on a thread that may wait.

use std::fs;
use std::io::ErrorKind;
use std::time::{Duration, Instant};

use tokio::sync::mpsc::UnboundedReceiver;

use super::output::Output;

/// Least time between two readings that aren't the ends.
pub(super) const LEAST: Duration = Duration::from_secs(60);

/// One reading to take: of which processes, and as of when.
pub(super) struct Request {
    pub(super) at_s: f64,
    pub(super) epoch: u32,
    pub(super) pids: Vec<i32>,
}

/// Sums over processes, in KiB.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
struct Proportional {
    pss: u64,
    anon: u64,
    file: u64,
    shared: u64,
}

/// Takes readings on request until nobody asks any more; gives the seconds that they took.
pub(super) async fn observe(mut requests: UnboundedReceiver<Request>, mut out: Output) -> f64 {
    let mut spent_s = 0.0;
    while let Some(request) = requests.recv().await {
        let began = Instant::now();
        let pids = request.pids;
        let sum = tokio::task::spawn_blocking(move || read(&pids)).await;
        let took = began.elapsed().as_secs_f64();
        spent_s += took;
        match sum {
            Ok(Ok(sum)) => {
                for (metric, kib) in [
                    ("memory.pss", sum.pss),
                    ("memory.pss_anon", sum.anon),
                    ("memory.pss_file", sum.file),
                    ("memory.pss_shared", sum.shared),
                ] {
                    let mib = kib as f64 / 1024.0;
                    out.reading(request.at_s, metric, "MiB", mib, request.epoch);
                }
                out.reading(request.at_s, "pss_ms", "ms", took * 1e3, request.epoch);
            }
            Ok(Err(reason)) => out.not_observed("memory.pss", reason),
            Err(error) => out.not_observed("memory.pss", format!("its reading failed: {error}")),
        }
    }
    spent_s
}

/// Sums over processes; the reason when one of them may not be read. A process that ended meanwhile holds nothing.
fn read(pids: &[i32]) -> Result<Proportional, String> {
    let mut sum = Proportional::default();
    for pid in pids {
        match fs::read_to_string(format!("/proc/{pid}/smaps_rollup")) {
            Ok(text) => sum.add(&text),
            Err(error) if error.kind() == ErrorKind::PermissionDenied => {
                return Err(format!(
                    "process {pid} belongs to another user, and this run may not read its memory map"
                ));
            }
            Err(error) if error.kind() == ErrorKind::NotFound && exists(*pid) => {
                return Err("this kernel has no smaps_rollup (it came with Linux 4.14)".to_string());
            }
            Err(_) => {}
        }
    }
    Ok(sum)
}

fn exists(pid: i32) -> bool {
    fs::exists(format!("/proc/{pid}/stat")).unwrap_or(false)
}

impl Proportional {
    fn add(&mut self, rollup: &str) {
        for line in rollup.lines() {
            let mut words = line.split_ascii_whitespace();
            let part = match words.next() {
                Some("Pss:") => &mut self.pss,
                Some("Pss_Anon:") => &mut self.anon,
                Some("Pss_File:") => &mut self.file,
                Some("Pss_Shmem:") => &mut self.shared,
                _ => continue,
            };
            *part += words.next().and_then(|word| word.parse().ok()).unwrap_or(0);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_are_summed_over_processes() {
        let mut sum = Proportional::default();
        let text = "55-66 ---p 00000000 00:00 0 [rollup]\nRss: 99 kB\nPss: 30 kB\nPss_Dirty: 7 kB\nPss_Anon: 10 kB\nPss_File: 15 kB\nPss_Shmem: 5 kB\n";
        sum.add(text);
        sum.add(text);
        assert_eq!(
            sum,
            Proportional {
                pss: 60,
                anon: 20,
                file: 30,
                shared: 10
            }
        );
        let own = read(&[std::process::id() as i32, 1 << 30]).unwrap();
        assert!(own.pss > 0 && own.anon + own.file + own.shared <= own.pss + 3);
    }
}
