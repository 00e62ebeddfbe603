//! A service's log: lines counted by pattern, the first examples of each, and how large it grows.

use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;
use std::time::Duration;

use regex::Regex;
use tokio::sync::watch;

use super::output::Output;
use super::pace::{Pace, Tally};
use super::spec::WatchedLog;
use crate::measure::EventKind;

/// How many lines are kept of each pattern.
const EXAMPLES: u64 = 3;
/// Longest line that is looked at; what follows is skipped.
const LINE_BYTES: usize = 8 << 10;
/// Longest example that is kept.
const EXAMPLE_CHARS: usize = 500;
/// Bytes read at most at a time: a flood is caught up with, second by second, and never fills memory.
const PART_BYTES: usize = 4 << 20;
const SECOND: Duration = Duration::from_secs(1);

/// Follows a log until told to stop, and then to its present end.
pub(super) async fn observe(
    log: WatchedLog,
    period: Duration,
    mut out: Output,
    mut stop: watch::Receiver<bool>,
) -> Tally {
    let mut looks = Pace::new(out.clock.origin.clone(), SECOND.min(period));
    let mut rounds = Pace::new(out.clock.origin.clone(), period);
    let mut follower = Follower::new(log, &mut out);
    loop {
        tokio::select! {
            biased;
            _ = stop.changed() => break,
            _ = looks.next() => follower.look(&mut out),
            _ = rounds.next() => {
                follower.look(&mut out);
                follower.emit(&mut out);
            }
        }
    }
    follower.look(&mut out);
    follower.emit(&mut out);
    // Reading a file again catches up with all that was missed, so the plan of a log is never short.
    Tally::default()
}

struct Follower {
    path: PathBuf,
    patterns: Vec<Pattern>,
    file: Option<File>,
    inode: u64,
    read: u64,
    /// The beginning of a line whose end isn't written yet.
    rest: Vec<u8>,
    /// The end of an overlong line is being skipped.
    skipping: bool,
}

struct Pattern {
    name: String,
    regex: Regex,
    count: u64,
}

impl Follower {
    fn new(log: WatchedLog, out: &mut Output) -> Self {
        let mut patterns = Vec::new();
        for (name, regex) in log.patterns {
            match Regex::new(&regex) {
                Ok(regex) => patterns.push(Pattern {
                    name,
                    regex,
                    count: 0,
                }),
                Err(error) => out.not_observed(
                    &format!("log.{name}"),
                    format!("its pattern is no regular expression: {error}"),
                ),
            }
        }
        Self {
            path: log.path,
            patterns,
            file: None,
            inode: 0,
            read: 0,
            rest: Vec::new(),
            skipping: false,
        }
    }

    /// Reads what was written since the last look.
    fn look(&mut self, out: &mut Output) {
        if let Err(error) = self.follow(out) {
            let reason = format!("the log {} can't be read: {error}", self.path.display());
            out.not_observed("log", reason);
        }
    }

    fn follow(&mut self, out: &mut Output) -> std::io::Result<()> {
        let meta = match std::fs::metadata(&self.path) {
            Ok(meta) => meta,
            // Not written yet, or moved away until the next is begun.
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(()),
            Err(error) => return Err(error),
        };
        if meta.ino() != self.inode || meta.len() < self.read {
            // Another file, or one that was emptied: what it says now is new.
            self.file = None;
            self.read = 0;
            self.rest.clear();
            self.skipping = false;
        }
        let file = match &mut self.file {
            Some(file) => file,
            none => {
                self.inode = meta.ino();
                none.insert(File::open(&self.path)?)
            }
        };
        if meta.len() == self.read || self.patterns.is_empty() {
            return Ok(());
        }
        file.seek(SeekFrom::Start(self.read))?;
        let mut part = Vec::new();
        file.take(PART_BYTES as u64).read_to_end(&mut part)?;
        self.read += part.len() as u64;
        self.take(&part, out);
        Ok(())
    }

    fn take(&mut self, mut part: &[u8], out: &mut Output) {
        while let Some(end) = part.iter().position(|byte| *byte == b'\n') {
            let (head, tail) = (&part[..end], &part[end + 1..]);
            part = tail;
            if std::mem::replace(&mut self.skipping, false) {
                continue;
            }
            if self.rest.is_empty() {
                self.line(&head[..head.len().min(LINE_BYTES)], out);
            } else {
                let mut line = std::mem::take(&mut self.rest);
                line.extend_from_slice(head);
                line.truncate(LINE_BYTES);
                self.line(&line, out);
            }
        }
        if self.skipping {
            return;
        }
        self.rest.extend_from_slice(part);
        if self.rest.len() > LINE_BYTES {
            let mut line = std::mem::take(&mut self.rest);
            line.truncate(LINE_BYTES);
            self.line(&line, out);
            self.skipping = true;
        }
    }

    fn line(&mut self, bytes: &[u8], out: &mut Output) {
        let line = String::from_utf8_lossy(bytes);
        for pattern in &mut self.patterns {
            if !pattern.regex.is_match(&line) {
                continue;
            }
            pattern.count += 1;
            if pattern.count <= EXAMPLES {
                out.event(
                    out.clock.now(),
                    EventKind::LogLine {
                        service: out.service().to_string(),
                        pattern: pattern.name.clone(),
                        line: line.trim_end().chars().take(EXAMPLE_CHARS).collect(),
                    },
                );
            }
        }
    }

    fn emit(&mut self, out: &mut Output) {
        let at_s = out.clock.now();
        for pattern in &self.patterns {
            let metric = format!("log.{}", pattern.name);
            // Counted here and not by the process, so a restart doesn't end the count.
            out.reading(at_s, &metric, "count_total", pattern.count as f64, 0);
        }
        if let Ok(meta) = std::fs::metadata(&self.path) {
            out.reading(at_s, "log_bytes", "bytes", meta.len() as f64, 0);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::output::tests::output;
    use super::super::spec::Observation;
    use super::*;
    use std::io::Write;

    fn follower(
        path: &std::path::Path,
    ) -> (
        Follower,
        Output,
        tokio::sync::mpsc::UnboundedReceiver<Observation>,
    ) {
        let (mut out, received) = output("app");
        let log = WatchedLog {
            path: path.into(),
            patterns: [
                ("warn".to_string(), "WARN".to_string()),
                ("broken".to_string(), "(".to_string()),
            ]
            .into(),
        };
        let follower = Follower::new(log, &mut out);
        (follower, out, received)
    }

    #[test]
    fn lines_are_counted_once_whatever_the_parts_they_come_in() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("app.log");
        let (mut follower, mut out, mut received) = follower(&path);
        follower.look(&mut out);
        let mut file = File::create(&path).unwrap();
        file.write_all(b"WARN 1\nfine\nWA").unwrap();
        follower.look(&mut out);
        file.write_all(b"RN 2\nWARN 3\nWARN \xff 4\n").unwrap();
        follower.look(&mut out);
        follower.look(&mut out);
        assert_eq!(follower.patterns[0].count, 4);
        // A line without an end is cut once, and counted once.
        file.write_all(&vec![b'x'; LINE_BYTES]).unwrap();
        file.write_all(b" WARN beyond").unwrap();
        follower.look(&mut out);
        file.write_all(b" and WARN more\nWARN 5\n").unwrap();
        follower.look(&mut out);
        assert_eq!(follower.patterns[0].count, 5);
        // Emptied, as a restart or a rotation does.
        File::create(&path).unwrap().write_all(b"WARN 6\n").unwrap();
        follower.look(&mut out);
        assert_eq!(follower.patterns[0].count, 6);

        let (mut examples, mut not_observed) = (0, 0);
        while let Ok(Observation::Event { kind, .. }) = received.try_recv() {
            match kind {
                EventKind::LogLine { .. } => examples += 1,
                EventKind::NotObserved { metric, .. } => {
                    assert_eq!(metric, "log.broken");
                    not_observed += 1;
                }
                other => panic!("{other:?}"),
            }
        }
        assert_eq!((examples, not_observed), (3, 1));
    }
}
