//! Processor use second by second, kept for a while: samples may be a minute apart, and a bad second wants its own.

use std::collections::VecDeque;
use std::time::Duration;

use super::process::Cpu;

/// Seconds that are kept: a bad second is asked for soon after it is over.
const KEPT: usize = 120;

/// What every service had used by the end of each of the last seconds.
#[derive(Debug)]
pub(super) struct History {
    /// Samples come each second or more often: nothing needs to be told twice.
    idle: bool,
    notes: VecDeque<Note>,
    asked: Vec<i64>,
}

#[derive(Debug)]
struct Note {
    index: i64,
    at_s: f64,
    used: Vec<Cpu>,
    told: bool,
}

impl History {
    pub(super) fn new(period: Duration) -> Self {
        Self {
            idle: period <= Duration::from_secs(1),
            notes: VecDeque::new(),
            asked: Vec::new(),
        }
    }

    /// Notes what the services had used when second `index` began.
    pub(super) fn note(&mut self, index: i64, at_s: f64, used: Vec<Cpu>) {
        if self.idle {
            return;
        }
        self.notes.push_back(Note {
            index,
            at_s,
            used,
            told: false,
        });
        if self.notes.len() > KEPT {
            self.notes.pop_front();
        }
    }

    /// Asks for a second's edges.
    pub(super) fn ask(&mut self, second: u64) {
        if let (false, Ok(second)) = (self.idle, i64::try_from(second)) {
            self.asked.push(second);
        }
    }

    /// Forgets what was noted before the origin was set anew.
    pub(super) fn begin_anew(&mut self) {
        self.notes.clear();
        self.asked.clear();
    }

    /// The edges of the seconds asked for, each told once: when, and what every service had used by then.
    pub(super) fn answers(&mut self) -> Vec<(f64, Vec<Cpu>)> {
        let Some(newest) = self.notes.back().map(|note| note.index) else {
            return Vec::new();
        };
        let ready: Vec<i64> = self.asked.extract_if(.., |s| *s < newest).collect();
        self.notes
            .iter_mut()
            .filter(|note| !note.told && ready.iter().any(|s| (*s..=*s + 1).contains(&note.index)))
            .map(|note| {
                note.told = true;
                (note.at_s, note.used.clone())
            })
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bad_second_gets_both_of_its_edges_once() {
        let mut history = History::new(Duration::from_secs(60));
        history.ask(5);
        for index in 3..=5 {
            history.note(index, index as f64, Vec::new());
        }
        assert!(history.answers().is_empty(), "second 5 isn't over");
        history.note(6, 6.0, Vec::new());
        let edges: Vec<_> = history.answers().iter().map(|(at_s, _)| *at_s).collect();
        assert_eq!(edges, [5.0, 6.0]);
        history.ask(4);
        let edges: Vec<_> = history.answers().iter().map(|(at_s, _)| *at_s).collect();
        assert_eq!(edges, [4.0], "the other edge was told before");
    }
}
