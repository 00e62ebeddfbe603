//! A running total over a tree of processes that come and go.
//!
//! The kernel books a child's use on its parent when the parent waits for it. Summing what live processes used *and* what
//! they were booked counts each bit once, as long as every child is waited for inside the tree. A child whose parent ignores
//! it (`SIGCHLD` ignored), or that is waited for by a process outside (an orphan), is booked nowhere in the tree: its last
//! reading is kept here instead, so that the total never falls.

use std::collections::HashMap;

/// One live process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Entry {
    pub(super) pid: i32,
    /// Start time in clock ticks since boot: with the pid it names one process for good.
    pub(super) start: u64,
    pub(super) parent: i32,
    /// What it used itself and was booked for children: its part of the total.
    pub(super) value: u64,
    /// A reading that grows by a child's whole `value` when the child is waited for.
    pub(super) booked: u64,
}

/// The total of one quantity over one tree.
#[derive(Debug, Default)]
pub(super) struct Account {
    last: HashMap<i32, Entry>,
    /// Use of processes that vanished without being booked on one of the tree.
    kept: u64,
    total: u64,
}

impl Account {
    /// Takes the readings of all live processes and gives the total so far, which never falls.
    pub(super) fn update(&mut self, live: impl IntoIterator<Item = Entry>) -> u64 {
        let now: HashMap<i32, Entry> = live.into_iter().map(|e| (e.pid, e)).collect();
        let mut lost: HashMap<Option<i32>, u64> = HashMap::new();
        for old in self.last.values() {
            if !self.survives(old, &now) {
                *lost.entry(self.heir(old, &now)).or_default() += old.value;
            }
        }
        for (heir, lost) in lost {
            let booked = heir.map_or(0, |pid| {
                now[&pid].booked.saturating_sub(self.last[&pid].booked)
            });
            self.kept += lost.saturating_sub(booked);
        }
        let total = self.kept + now.values().map(|e| e.value).sum::<u64>();
        self.last = now;
        self.total = self.total.max(total);
        self.total
    }

    fn survives(&self, old: &Entry, now: &HashMap<i32, Entry>) -> bool {
        now.get(&old.pid).is_some_and(|new| new.start == old.start)
    }

    /// The nearest ancestor, by the last known parents, that is still there.
    fn heir(&self, gone: &Entry, now: &HashMap<i32, Entry>) -> Option<i32> {
        let mut pid = gone.parent;
        // Bounded, since a pid that was used again could close a circle.
        for _ in 0..self.last.len() {
            let ancestor = self.last.get(&pid)?;
            if self.survives(ancestor, now) {
                return Some(pid);
            }
            pid = ancestor.parent;
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn entry(pid: i32, parent: i32, own: u64, booked: u64) -> Entry {
        Entry {
            pid,
            start: 7,
            parent,
            value: own + booked,
            booked,
        }
    }

    #[test]
    fn a_child_that_is_waited_for_is_counted_once() {
        let mut account = Account::default();
        assert_eq!(account.update([entry(1, 0, 10, 0), entry(2, 1, 50, 0)]), 60);
        // It used 5 more before it ended, and its parent was booked all 55.
        assert_eq!(account.update([entry(1, 0, 11, 55)]), 66);
    }

    #[test]
    fn a_child_that_nobody_waits_for_is_kept() {
        let mut account = Account::default();
        account.update([entry(1, 0, 10, 0), entry(2, 1, 50, 0)]);
        assert_eq!(account.update([entry(1, 0, 12, 0)]), 62);
        assert_eq!(account.update([entry(1, 0, 12, 0)]), 62);
    }

    #[test]
    fn a_grandchild_goes_to_the_nearest_survivor() {
        let mut account = Account::default();
        account.update([entry(1, 0, 1, 0), entry(2, 1, 2, 0), entry(3, 2, 40, 0)]);
        assert_eq!(account.update([entry(1, 0, 1, 42)]), 43);
        // An orphan has no heir in the tree.
        let mut account = Account::default();
        account.update([entry(1, 0, 1, 0), entry(3, 999, 40, 0)]);
        assert_eq!(account.update([entry(1, 0, 1, 0)]), 41);
    }

    #[test]
    fn a_pid_used_again_is_another_process() {
        let mut account = Account::default();
        account.update([entry(1, 0, 1, 0), entry(2, 1, 40, 0)]);
        let again = Entry {
            start: 8,
            ..entry(2, 1, 3, 0)
        };
        assert_eq!(account.update([entry(1, 0, 1, 40), again]), 44);
    }

    #[derive(Debug, Clone)]
    enum Step {
        Work(usize, u64),
        Fork(usize),
        Exit(usize, bool),
        Look,
    }

    fn step() -> impl Strategy<Value = Step> {
        prop_oneof![
            (any::<usize>(), 1..100u64).prop_map(|(i, n)| Step::Work(i, n)),
            any::<usize>().prop_map(Step::Fork),
            (any::<usize>(), any::<bool>()).prop_map(|(i, w)| Step::Exit(i, w)),
            Just(Step::Look),
        ]
    }

    proptest! {
        /// Whatever a tree does, the total never falls and never exceeds what was used; with every child waited for it is
        /// exact.
        #[test]
        fn the_total_never_falls(steps in prop::collection::vec(step(), 1..200)) {
            let mut live = vec![entry(1, 0, 0, 0)];
            let mut next_pid = 2;
            let mut used = 0;
            let mut all_waited = true;
            let mut account = Account::default();
            let mut last = 0;
            for step in steps.into_iter().chain([Step::Look]) {
                match step {
                    Step::Work(i, n) => {
                        let i = i % live.len();
                        live[i].value += n;
                        used += n;
                    }
                    Step::Fork(i) => {
                        let parent = live[i % live.len()].pid;
                        live.push(entry(next_pid, parent, 0, 0));
                        next_pid += 1;
                    }
                    Step::Exit(i, waited) => {
                        let i = i % live.len();
                        let gone = live[i];
                        // The root stays, and so do processes with children of their own, which would be orphans.
                        if gone.pid == 1 || live.iter().any(|e| e.parent == gone.pid) {
                            continue;
                        }
                        live.remove(i);
                        if waited {
                            let parent = live.iter_mut().find(|e| e.pid == gone.parent).unwrap();
                            parent.value += gone.value;
                            parent.booked += gone.value;
                        } else {
                            all_waited = false;
                        }
                    }
                    Step::Look => {
                        let total = account.update(live.clone());
                        prop_assert!(total >= last, "{total} after {last}");
                        prop_assert!(total <= used, "{total} of {used}");
                        if all_waited {
                            prop_assert_eq!(total, used);
                        }
                        last = total;
                    }
                }
            }
        }
    }
}
