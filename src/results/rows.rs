//! Rows of `seconds.csv` and `failures.csv`: names of columns, and the way there and back.

use std::collections::HashMap;
use std::path::Path;

use anyhow::{Context, Result, bail};

use super::lines::{whole_lines, whole_lines_of};
use super::seconds::Seconds;
use crate::measure::{Account, Counts, FailureClass, FailureRow, HostSecond, Silence};

/// One row of `seconds.csv`.
#[derive(Debug, Clone, PartialEq)]
pub struct SecondRow {
    /// Whole seconds since the start of the measured time: the row covers `at_s..at_s + 1`.
    pub at_s: u64,
    /// Requests.
    pub counts: Counts,
    /// Ok requests of each step, in the order of the columns `ok_<step>`.
    pub ok_by_step: Vec<u64>,
    /// Median latency of completed requests in ms; absent when there was none.
    pub p50_ms: Option<f64>,
    /// 99th percentile in ms. Of one second: to look at, never to average.
    pub p99_ms: Option<f64>,
    /// Largest in ms.
    pub max_ms: Option<f64>,
    /// In flight at the second's end.
    pub in_flight: u64,
    /// Where the clients' time went.
    pub account: Account,
    /// CPU seconds of the busiest load thread.
    pub driver_cpu_s: f64,
    /// Median delay before sending, in microseconds.
    pub send_delay_us: f64,
    /// The longest time without an ok answer that touches this second; absent in runs of before it was kept.
    pub silence: Option<Silence>,
    /// The host; absent when it could not be read.
    pub host: Option<HostSecond>,
}

/// Columns before and after those of the classes and steps.
const HEAD: [&str; 4] = ["at_s", "sent", "completed", "ok"];
const COUNTS: [&str; 5] = [
    "cut",
    "not_sent",
    "redrawn",
    "stale_connections",
    "connects",
];
const TIMES: [&str; 11] = [
    "p50_ms",
    "p99_ms",
    "max_ms",
    "in_flight",
    "in_flight_s",
    "think_s",
    "connect_s",
    "pause_s",
    "overhead_s",
    "driver_cpu_s",
    "send_delay_us",
];
const SILENCE: [&str; 2] = ["silence_ms", "silence_until_ms"];
const HOST: [&str; 8] = [
    "busy",
    "steal",
    "iowait",
    "other_cpu",
    "run_queue",
    "pressure_cpu",
    "pressure_io",
    "pressure_memory",
];

/// The header line's columns. `status_5xx` counts every 5xx; `status_503` is the part of it that is a 503.
pub(super) fn columns(steps: &[String]) -> Vec<String> {
    let own = |names: &[&str]| {
        names
            .iter()
            .map(|name| (*name).to_owned())
            .collect::<Vec<_>>()
    };
    let mut all = own(&HEAD);
    all.extend(
        FailureClass::ALL
            .iter()
            .map(|class| class.as_str().to_owned()),
    );
    all.extend(own(&COUNTS));
    all.extend(own(&TIMES));
    all.extend(own(&SILENCE));
    all.extend(own(&HOST));
    all.extend(steps.iter().map(|step| format!("ok_{step}")));
    all
}

/// A number as the files write it: up to six digits behind the point, none that says nothing.
pub(super) fn number(value: f64) -> String {
    let text = format!("{value:.6}");
    let text = text.trim_end_matches('0').trim_end_matches('.');
    if text == "-0" {
        "0".to_owned()
    } else {
        text.to_owned()
    }
}

fn optional(value: Option<f64>) -> String {
    value.map(number).unwrap_or_default()
}

impl SecondRow {
    /// Its fields in the order of [`columns`].
    pub(super) fn fields(&self) -> Vec<String> {
        let counts = &self.counts;
        let mut row = vec![
            self.at_s.to_string(),
            counts.sent.to_string(),
            counts.completed().to_string(),
            counts.ok.to_string(),
        ];
        row.extend(
            FailureClass::ALL
                .iter()
                .map(|&class| counts.class(class).to_string()),
        );
        row.extend(
            [
                counts.cut,
                counts.not_sent,
                counts.redrawn,
                counts.stale_connections,
                counts.connects,
            ]
            .map(|count| count.to_string()),
        );
        row.extend([self.p50_ms, self.p99_ms, self.max_ms].map(optional));
        row.push(self.in_flight.to_string());
        let account = &self.account;
        row.extend(
            [
                account.in_flight_s,
                account.think_s,
                account.connect_s,
                account.pause_s,
                account.overhead_s,
                self.driver_cpu_s,
                self.send_delay_us,
            ]
            .map(number),
        );
        match self.silence {
            Some(s) => row.extend([s.length_ms, s.until_ms].map(|ms| ms.to_string())),
            None => row.extend(SILENCE.map(|_| String::new())),
        }
        match &self.host {
            Some(host) => {
                row.extend([host.busy, host.steal, host.iowait, host.other_cpu].map(number));
                row.push(host.run_queue.to_string());
                row.extend(
                    [host.pressure_cpu, host.pressure_io, host.pressure_memory].map(optional),
                );
            }
            None => row.extend(HOST.map(|_| String::new())),
        }
        row.extend(self.ok_by_step.iter().map(u64::to_string));
        row
    }
}

/// Reads `seconds.csv` (or `warmup.csv`); a row that a kill cut short is left out. A missing file is empty.
///
/// # Errors
/// When the file can't be read, lacks a column, or holds a row that is not one.
pub(super) fn read_seconds(path: &Path) -> Result<(Vec<String>, Seconds)> {
    let Some(lines) = whole_lines_of(path)? else {
        return Ok((Vec::new(), Seconds::default()));
    };
    let mut reader = csv::Reader::from_reader(lines);
    let header = reader
        .headers()
        .with_context(|| format!("reading the header of {}", path.display()))?
        .clone();
    let place: HashMap<&str, usize> = header
        .iter()
        .enumerate()
        .map(|(i, name)| (name, i))
        .collect();
    let find = |name: &str| {
        place
            .get(name)
            .copied()
            .with_context(|| format!("{} has no column {name}", path.display()))
    };
    let at = find("at_s")?;
    let sent = find("sent")?;
    let ok = find("ok")?;
    let classes = FailureClass::ALL
        .iter()
        .map(|class| find(class.as_str()))
        .collect::<Result<Vec<_>>>()?;
    let counts = COUNTS
        .iter()
        .map(|name| find(name))
        .collect::<Result<Vec<_>>>()?;
    let times = TIMES
        .iter()
        .map(|name| find(name))
        .collect::<Result<Vec<_>>>()?;
    let host = HOST
        .iter()
        .map(|name| find(name))
        .collect::<Result<Vec<_>>>()?;
    let silence = SILENCE.map(|name| place.get(name).copied());
    let mut steps = Vec::new();
    let mut step_columns = Vec::new();
    for (i, name) in header.iter().enumerate() {
        if let Some(step) = name.strip_prefix("ok_") {
            steps.push(step.to_owned());
            step_columns.push(i);
        }
    }

    let mut rows = Seconds::default();
    let mut record = csv::StringRecord::new();
    while reader
        .read_record(&mut record)
        .with_context(|| format!("reading row {} of {}", rows.len() + 2, path.display()))?
    {
        let line = rows.len() + 2;
        let fault = |column: usize| {
            format!(
                "{}, line {line}, column {}: '{}' is not a number",
                path.display(),
                &header[column],
                record.get(column).unwrap_or_default()
            )
        };
        let count = |column: usize| -> Result<u64> {
            record
                .get(column)
                .unwrap_or_default()
                .parse()
                .with_context(|| fault(column))
        };
        let real = |column: usize| -> Result<Option<f64>> {
            match record.get(column).unwrap_or_default() {
                "" => Ok(None),
                text => text.parse().map(Some).with_context(|| fault(column)),
            }
        };
        let must = |column: usize| -> Result<f64> { real(column)?.with_context(|| fault(column)) };
        let mut row = SecondRow {
            at_s: count(at)?,
            counts: Counts {
                sent: count(sent)?,
                ok: count(ok)?,
                cut: count(counts[0])?,
                not_sent: count(counts[1])?,
                redrawn: count(counts[2])?,
                stale_connections: count(counts[3])?,
                connects: count(counts[4])?,
                ..Counts::default()
            },
            ok_by_step: step_columns
                .iter()
                .map(|&i| count(i))
                .collect::<Result<_>>()?,
            p50_ms: real(times[0])?,
            p99_ms: real(times[1])?,
            max_ms: real(times[2])?,
            in_flight: count(times[3])?,
            account: Account {
                in_flight_s: must(times[4])?,
                think_s: must(times[5])?,
                connect_s: must(times[6])?,
                pause_s: must(times[7])?,
                overhead_s: must(times[8])?,
            },
            driver_cpu_s: must(times[9])?,
            send_delay_us: must(times[10])?,
            silence: None,
            host: None,
        };
        for (slot, &column) in row.counts.failed.iter_mut().zip(&classes) {
            *slot = count(column)?;
        }
        let unavailable = row.counts.failed[FailureClass::Status503.index()];
        let server = &mut row.counts.failed[FailureClass::Status5xx.index()];
        *server = server.checked_sub(unavailable).with_context(|| {
            format!(
                "{}, line {line}: status_5xx is below status_503",
                path.display()
            )
        })?;
        if let [Some(length), Some(until)] = silence
            && record.get(length).is_some_and(|field| !field.is_empty())
        {
            row.silence = Some(Silence {
                length_ms: count(length)?,
                until_ms: count(until)?,
            });
        }
        if let Some(busy) = real(host[0])? {
            row.host = Some(HostSecond {
                busy,
                steal: must(host[1])?,
                iowait: must(host[2])?,
                other_cpu: must(host[3])?,
                run_queue: count(host[4])?,
                pressure_cpu: real(host[5])?,
                pressure_io: real(host[6])?,
                pressure_memory: real(host[7])?,
            });
        }
        rows.push(&row)
            .with_context(|| format!("{}, line {line}", path.display()))?;
    }
    rows.shrink();
    Ok((steps, rows))
}

/// Columns of `failures.csv`.
pub(super) const FAILURE_COLUMNS: [&str; 8] = [
    "at_s",
    "step",
    "class",
    "status",
    "latency_ms",
    "received",
    "promised",
    "said",
];

/// One row of `failures.csv`.
pub type FailureLine = FailureRow;

pub(super) fn failure_fields(row: &FailureRow) -> [String; 8] {
    [
        number(row.at_s),
        row.step.clone(),
        row.class.as_str().to_owned(),
        row.status
            .map(|status| status.to_string())
            .unwrap_or_default(),
        optional(row.latency_ms),
        row.received.to_string(),
        row.promised
            .map(|bytes| bytes.to_string())
            .unwrap_or_default(),
        row.said.clone(),
    ]
}

/// Reads `failures.csv`. A missing file is empty.
///
/// # Errors
/// When it can't be read or holds a row that is not one.
pub(super) fn read_failures(path: &Path) -> Result<Vec<FailureRow>> {
    let Some(bytes) = whole_lines(path)? else {
        return Ok(Vec::new());
    };
    let mut reader = csv::Reader::from_reader(bytes.as_slice());
    let mut rows = Vec::new();
    for record in reader.records() {
        // What was said may hold line ends, so a kill can leave a quoted field open: the rest is the cut row.
        let Ok(record) = record else { break };
        if record.len() != FAILURE_COLUMNS.len() {
            bail!(
                "{}, row {}: {} fields in place of {}",
                path.display(),
                rows.len() + 1,
                record.len(),
                FAILURE_COLUMNS.len()
            );
        }
        let fault = || format!("{}, row {}", path.display(), rows.len() + 1);
        let real = |text: &str| -> Result<Option<f64>> {
            if text.is_empty() {
                return Ok(None);
            }
            text.parse().map(Some).with_context(fault)
        };
        rows.push(FailureRow {
            at_s: real(&record[0])?.unwrap_or_default(),
            step: record[1].to_owned(),
            class: record[2].parse().with_context(fault)?,
            status: match &record[3] {
                "" => None,
                text => Some(text.parse().with_context(fault)?),
            },
            latency_ms: real(&record[4])?,
            received: record[5].parse().with_context(fault)?,
            promised: match &record[6] {
                "" => None,
                text => Some(text.parse().with_context(fault)?),
            },
            said: record[7].to_owned(),
        });
    }
    Ok(rows)
}
