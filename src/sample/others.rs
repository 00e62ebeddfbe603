//! The biggest processes that are neither the deployment nor the runner: named for bad seconds only.

use std::collections::{HashMap, HashSet, VecDeque};
use std::fs;
use std::time::{Duration, Instant};

use super::thrift::{Thrift, thread_cpu_s};
use super::tree::stat;
use crate::measure::{HostFacts, ProcessLoad};

/// How many are named.
const TOP: usize = 5;
/// A process below this many cores explains nothing.
const LEAST_CORES: f64 = 0.02;
/// Looks that are kept: a bad second is asked for soon after it is over.
const KEPT: usize = 120;
/// The kernel's own threads descend from this process.
const KTHREADD: i32 = 2;

/// The instrument for other processes.
#[derive(Debug, Default)]
pub(super) struct Others {
    thrift: Thrift,
    kernel: HashSet<i32>,
    last: Option<Look>,
    intervals: VecDeque<Interval>,
    /// Bad seconds that no look covers yet.
    asked: Vec<u64>,
}

/// All processes at one moment.
#[derive(Debug)]
struct Look {
    second: i64,
    when: Instant,
    uses: HashMap<i32, Use>,
}

/// What one process used since it began, in ticks.
#[derive(Debug, Clone, PartialEq)]
struct Use {
    start: u64,
    parent: i32,
    own: u64,
    /// Of children that it waited for.
    booked: u64,
    command: String,
}

/// The biggest between two looks.
#[derive(Debug)]
struct Interval {
    from: i64,
    to: i64,
    biggest: Vec<ProcessLoad>,
}

impl Others {
    /// Looks, when that is due, as the second before `second` is over. `own` are the processes of deployment and runner.
    pub(super) fn look(&mut self, second: i64, own: &HashSet<i32>) {
        let began = Instant::now();
        if !self.thrift.is_due(began) {
            return;
        }
        let cpu_s = thread_cpu_s();
        let uses = self.read(own);
        if let Some(last) = &self.last
            && last.second < second
        {
            let ticks = procfs::ticks_per_second() as f64;
            let per_core = ticks * (began - last.when).as_secs_f64();
            self.intervals.push_back(Interval {
                from: last.second,
                to: second,
                biggest: biggest(&last.uses, &uses, per_core),
            });
            if self.intervals.len() > KEPT {
                self.intervals.pop_front();
            }
        }
        self.last = Some(Look {
            second,
            when: began,
            uses,
        });
        // On a busy machine a look takes long without costing more, and just then it is wanted.
        let cost = Duration::from_secs_f64((thread_cpu_s() - cpu_s).max(0.0));
        self.thrift.spent(began, cost);
    }

    /// Forgets what was seen before the origin was set anew.
    pub(super) fn begin_anew(&mut self) {
        self.last = None;
        self.intervals.clear();
        self.asked.clear();
    }

    /// Asks who else ran in a second.
    pub(super) fn ask(&mut self, second: u64) {
        self.asked.push(second);
    }

    /// Answers for the seconds that looks cover by now.
    pub(super) fn answers(&mut self) -> Vec<HostFacts> {
        let intervals = &self.intervals;
        let mut answers = Vec::new();
        self.asked.retain(|second| {
            let at = i64::try_from(*second).unwrap_or(i64::MAX);
            let covering = intervals.iter().find(|i| (i.from..i.to).contains(&at));
            if let Some(interval) = covering {
                answers.push(HostFacts {
                    second: *second,
                    others: interval.biggest.clone(),
                });
            }
            // A second from before all looks will never be covered.
            covering.is_none() && intervals.back().is_none_or(|last| at >= last.to)
        });
        answers
    }

    fn read(&mut self, own: &HashSet<i32>) -> HashMap<i32, Use> {
        let Ok(entries) = fs::read_dir("/proc") else {
            return HashMap::new();
        };
        let pids: HashSet<i32> = entries
            .flatten()
            .filter_map(|entry| entry.file_name().to_str()?.parse().ok())
            .collect();
        self.kernel.retain(|pid| pids.contains(pid));
        let mut uses = HashMap::with_capacity(pids.len());
        for pid in pids {
            if own.contains(&pid) || self.kernel.contains(&pid) {
                continue;
            }
            let Ok(stat) = stat(pid) else { continue };
            if pid == KTHREADD || stat.ppid == KTHREADD {
                self.kernel.insert(pid);
                continue;
            }
            uses.insert(
                pid,
                Use {
                    start: stat.starttime,
                    parent: stat.ppid,
                    own: stat.utime + stat.stime,
                    booked: u64::try_from(stat.cutime + stat.cstime).unwrap_or(0),
                    command: stat.comm,
                },
            );
        }
        uses
    }
}

/// Who used most between two looks. What short-lived children used is told of the parent that waited for them.
fn biggest(
    before: &HashMap<i32, Use>,
    now: &HashMap<i32, Use>,
    ticks_per_core: f64,
) -> Vec<ProcessLoad> {
    let mut gone: HashMap<i32, u64> = HashMap::new();
    for (pid, old) in before {
        if now.get(pid).is_none_or(|new| new.start != old.start) {
            *gone.entry(old.parent).or_default() += old.own + old.booked;
        }
    }
    let mut loads: Vec<ProcessLoad> = now
        .iter()
        .map(|(pid, new)| {
            let (own, booked) = match before.get(pid) {
                Some(old) if old.start == new.start => (old.own, old.booked),
                // It began in between: all that it used, it used now.
                _ => (0, 0),
            };
            let children = new
                .booked
                .saturating_sub(booked)
                .saturating_sub(gone.get(pid).copied().unwrap_or(0));
            ProcessLoad {
                command: new.command.clone(),
                cores: (new.own.saturating_sub(own) + children) as f64 / ticks_per_core,
            }
        })
        .filter(|load| load.cores >= LEAST_CORES)
        .collect();
    loads.sort_by(|a, b| {
        b.cores
            .total_cmp(&a.cores)
            .then_with(|| a.command.cmp(&b.command))
    });
    loads.truncate(TOP);
    loads
}

#[cfg(test)]
mod tests {
    use super::*;

    fn used(parent: i32, own: u64, booked: u64, command: &str) -> Use {
        Use {
            start: 1,
            parent,
            own,
            booked,
            command: command.into(),
        }
    }

    #[test]
    fn the_biggest_are_named_with_their_short_lived_children() {
        let before = HashMap::from([
            (10, used(1, 500, 0, "make")),
            (11, used(10, 30, 0, "cc1")),
            (12, used(1, 900, 0, "idle")),
        ]);
        let now = HashMap::from([
            // cc1 had 30 before and ended with 70; two more compilers came and went with 60.
            (10, used(1, 510, 130, "make")),
            (12, used(1, 900, 0, "idle")),
            (13, used(1, 50, 0, "new")),
        ]);
        let loads = biggest(&before, &now, 100.0);
        let named: Vec<_> = loads
            .iter()
            .map(|l| (l.command.as_str(), l.cores))
            .collect();
        assert_eq!(named, [("make", 1.1), ("new", 0.5)]);
    }

    #[test]
    fn a_bad_second_is_answered_when_a_look_covers_it() {
        let mut others = Others::default();
        let own = HashSet::new();
        others.look(3, &own);
        others.ask(1);
        others.ask(3);
        assert!(others.answers().is_empty());
        others.thrift = Thrift::default();
        others.look(4, &own);
        let seconds: Vec<_> = others.answers().iter().map(|facts| facts.second).collect();
        assert_eq!(seconds, [3]);
        assert!(others.asked.is_empty(), "second 1 will never be covered");
    }
}
