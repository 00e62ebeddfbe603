//! The one place that writes an arm: joins the load's seconds with the host's, and stamps events.

use std::collections::{BTreeMap, VecDeque};
use std::time::Instant;

use anyhow::Result;
use jiff::{SignedDuration, Timestamp};
use tokio::sync::watch;

use crate::measure::{Event, EventKind, FailureRow, HostSecond, LoadSecond, Phase, Sample};
use crate::results::{ArmWriter, SecondRow};

/// Seconds that a second of load waits for the host's reading of the same second before it is written without it.
const HOST_PATIENCE_S: u64 = 3;

/// Writes one arm.
pub(super) struct Ledger {
    writer: ArmWriter,
    /// Start of the measured time; an estimate until measuring begins.
    origin: watch::Sender<Instant>,
    waiting: VecDeque<LoadSecond>,
    hosts: BTreeMap<u64, HostSecond>,
    /// The last second of which the host was read.
    host_upto: Option<u64>,
    rows: BTreeMap<String, u64>,
    ok: u64,
    failed: u64,
}

impl Ledger {
    /// Begins to write; `expected` is when measuring is expected to begin.
    pub(super) fn new(writer: ArmWriter, expected: Instant) -> Self {
        Self {
            writer,
            origin: watch::Sender::new(expected),
            waiting: VecDeque::new(),
            hosts: BTreeMap::new(),
            host_upto: None,
            rows: BTreeMap::new(),
            ok: 0,
            failed: 0,
        }
    }

    /// Where samplers learn when the measured time begins.
    pub(super) fn origin(&self) -> watch::Receiver<Instant> {
        self.origin.subscribe()
    }

    /// Sets the start of the measured time.
    pub(super) fn set_origin(&mut self, origin: Instant) {
        self.origin.send_replace(origin);
        self.hosts.clear();
        self.host_upto = None;
    }

    /// Seconds of measured time at `moment`, negative before it begins.
    pub(super) fn at(&self, moment: Instant) -> f64 {
        let origin = *self.origin.borrow();
        match moment.checked_duration_since(origin) {
            Some(after) => after.as_secs_f64(),
            None => -(origin - moment).as_secs_f64(),
        }
    }

    /// Ok and failed requests of the measured time so far.
    pub(super) fn totals(&self) -> (u64, u64) {
        (self.ok, self.failed)
    }

    /// Whether a second of load still waits for the host's reading of it.
    pub(super) fn waits_for_host(&self) -> bool {
        self.waiting
            .back()
            .is_some_and(|second| self.host_upto.is_none_or(|upto| upto < second.index))
    }

    /// Rows of tables as last sampled, largest first.
    pub(super) fn rows(&self) -> Vec<(String, u64)> {
        let mut rows: Vec<_> = self
            .rows
            .iter()
            .map(|(table, rows)| (table.clone(), *rows))
            .collect();
        rows.sort_by_key(|(_, rows)| std::cmp::Reverse(*rows));
        rows
    }

    /// Something that happens now.
    pub(super) fn event(&mut self, kind: EventKind) -> Result<()> {
        self.event_at(self.at(Instant::now()), kind)
    }

    /// Something that happened at this second of measured time.
    pub(super) fn event_at(&mut self, at_s: f64, kind: EventKind) -> Result<()> {
        let ago = self.at(Instant::now()) - at_s;
        let wall = SignedDuration::try_from_secs_f64(ago)
            .ok()
            .and_then(|ago| Timestamp::now().checked_sub(ago).ok())
            .unwrap_or_else(Timestamp::now);
        self.writer.event(&Event {
            at_s: (at_s * 1e6).round() / 1e6,
            wall: format!("{wall:.3}"),
            kind,
        })
    }

    /// A reading.
    pub(super) fn sample(&mut self, sample: &Sample) -> Result<()> {
        if let Some(table) = sample
            .metric
            .strip_prefix("table.")
            .and_then(|rest| rest.strip_suffix(".rows"))
        {
            self.rows
                .insert(table.to_owned(), sample.value.max(0.0) as u64);
        }
        self.writer.samples(std::slice::from_ref(sample))
    }

    /// The host over one second of the measured time. Returns the rows that were complete with it.
    pub(super) fn host(&mut self, second: u64, host: HostSecond) -> Result<Vec<SecondRow>> {
        self.hosts.insert(second, host);
        self.host_upto = Some(second);
        self.write_ready(false)
    }

    /// A closed second of load. Returns the rows that were written: seconds of measured time wait for the host's reading.
    pub(super) fn second(&mut self, phase: Phase, second: LoadSecond) -> Result<Vec<SecondRow>> {
        if phase != Phase::Measuring {
            return Ok(vec![self.writer.warmup_second(&second, None)?]);
        }
        self.ok += second.counts.ok;
        self.failed += second.counts.failed_total();
        self.waiting.push_back(second);
        self.write_ready(false)
    }

    /// Failed requests of the measured time.
    pub(super) fn failures(&mut self, rows: &[FailureRow]) -> Result<()> {
        self.writer.failures(rows)
    }

    fn write_ready(&mut self, all: bool) -> Result<Vec<SecondRow>> {
        let newest = self.waiting.back().map_or(0, |second| second.index);
        let mut written = Vec::new();
        while let Some(first) = self.waiting.front() {
            let host = self.hosts.remove(&first.index);
            if host.is_none() && !all && newest < first.index + HOST_PATIENCE_S {
                break;
            }
            let Some(second) = self.waiting.pop_front() else {
                break;
            };
            written.push(self.writer.second(&second, host)?);
            self.hosts = self.hosts.split_off(&second.index);
        }
        Ok(written)
    }

    /// Writes what still waits, and the last interval.
    pub(super) fn finish(mut self) -> Result<()> {
        self.write_ready(true)?;
        self.writer.finish()
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use hdrhistogram::Histogram;

    use super::*;
    use crate::measure::{Account, Counts};
    use crate::name::Arm;
    use crate::results::{ArmLayout, RunFolder};

    fn second(index: u64) -> LoadSecond {
        LoadSecond {
            index,
            counts: Counts {
                sent: 1,
                ok: 1,
                ..Counts::default()
            },
            ok_by_step: vec![1],
            latency_us: vec![Histogram::new(3).unwrap()],
            in_flight: 0,
            account: Account::default(),
            driver_cpu_s: 0.0,
            send_delay_us: 0.0,
            silence: None,
        }
    }

    #[test]
    fn a_second_waits_for_its_host_and_not_for_ever() {
        let dir = tempfile::tempdir().unwrap();
        let folder = RunFolder::create(dir.path(), "x", "20260101T000000Z", 1).unwrap();
        let layout = ArmLayout {
            steps: vec!["a".into()],
            latency_interval_s: 1,
        };
        let writer = ArmWriter::create(&folder.arm(1, Arm::Control), &layout).unwrap();
        let mut ledger = Ledger::new(writer, Instant::now() + Duration::from_secs(10));
        assert!(ledger.at(Instant::now()) < -9.0);

        assert_eq!(ledger.second(Phase::Measuring, second(0)).unwrap(), []);
        let host = HostSecond {
            busy: 1.0,
            ..HostSecond::default()
        };
        let written = ledger.host(0, host).unwrap();
        assert_eq!(written.len(), 1);
        assert_eq!(written[0].host, Some(host));

        // No host for second 1: it goes out when second 4 is there, and second 2 still waits for its own.
        assert_eq!(ledger.second(Phase::Measuring, second(1)).unwrap(), []);
        assert_eq!(ledger.second(Phase::Measuring, second(2)).unwrap(), []);
        assert_eq!(ledger.second(Phase::Measuring, second(3)).unwrap(), []);
        let written = ledger.second(Phase::Measuring, second(4)).unwrap();
        assert_eq!(
            written
                .iter()
                .map(|row| (row.at_s, row.host))
                .collect::<Vec<_>>(),
            [(1, None)]
        );
        assert_eq!(ledger.totals(), (5, 0));
        ledger.finish().unwrap();
        let text = std::fs::read_to_string(folder.arm(1, Arm::Control).seconds()).unwrap();
        assert_eq!(text.lines().count(), 6);
    }
}
