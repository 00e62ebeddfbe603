//! Writing one arm as it happens.

use std::fs::{self, File};
use std::io::Write;

use anyhow::{Context, Result};

use super::folder::ArmFolder;
use super::hlog::LatencyLog;
use super::rows::{FAILURE_COLUMNS, SecondRow, columns, failure_fields, number};
use crate::measure::{Event, FailureRow, HostSecond, LoadSecond, Sample};

/// What the columns and intervals of an arm's files depend on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ArmLayout {
    /// Names of the workload's steps, in file order.
    pub steps: Vec<String>,
    /// Seconds an interval of latency.hlog.
    pub latency_interval_s: u64,
}

/// Appends to one arm's files. Every call ends with its lines handed to the kernel, so a killed runner loses nothing of
/// them; latency.hlog is one interval behind.
#[derive(Debug)]
pub struct ArmWriter {
    seconds: File,
    warmup: File,
    latency: LatencyLog,
    failures: File,
    samples: File,
    events: File,
    end_s: u64,
}

impl ArmWriter {
    /// Makes the arm's folder and files, with their headers.
    ///
    /// # Errors
    /// When one can't be made.
    pub fn create(folder: &ArmFolder, layout: &ArmLayout) -> Result<Self> {
        fs::create_dir_all(folder.logs())
            .with_context(|| format!("making {}", folder.logs().display()))?;
        let table = |path: std::path::PathBuf, header: &[String]| -> Result<File> {
            let mut file =
                File::create(&path).with_context(|| format!("making {}", path.display()))?;
            file.write_all(&csv_line(header)?)
                .with_context(|| format!("writing {}", path.display()))?;
            Ok(file)
        };
        let own = |names: &[&str]| {
            names
                .iter()
                .map(|name| (*name).to_owned())
                .collect::<Vec<_>>()
        };
        Ok(Self {
            seconds: table(folder.seconds(), &columns(&layout.steps))?,
            warmup: table(folder.warmup(), &columns(&layout.steps))?,
            latency: LatencyLog::create(
                &folder.latency(),
                &layout.steps,
                layout.latency_interval_s,
            )?,
            failures: table(folder.failures(), &own(&FAILURE_COLUMNS))?,
            samples: table(
                folder.samples(),
                &own(&["at_s", "service", "metric", "unit", "value", "epoch"]),
            )?,
            events: File::create(folder.events())
                .with_context(|| format!("making {}", folder.events().display()))?,
            end_s: 0,
        })
    }

    /// One measured second.
    ///
    /// # Errors
    /// When a file can't be written.
    pub fn second(&mut self, second: &LoadSecond, host: Option<HostSecond>) -> Result<SecondRow> {
        self.latency.add(second.index, &second.latency_us)?;
        let row = row_of(second, host)?;
        self.seconds
            .write_all(&csv_line(&row.fields())?)
            .context("appending to seconds.csv")?;
        self.end_s = second.index + 1;
        Ok(row)
    }

    /// One second of warm-up: recorded apart, never counted.
    ///
    /// # Errors
    /// When the file can't be written.
    pub fn warmup_second(
        &mut self,
        second: &LoadSecond,
        host: Option<HostSecond>,
    ) -> Result<SecondRow> {
        let row = row_of(second, host)?;
        self.warmup
            .write_all(&csv_line(&row.fields())?)
            .context("appending to warmup.csv")?;
        Ok(row)
    }

    /// Failed requests of the measured time.
    ///
    /// # Errors
    /// When the file can't be written.
    pub fn failures(&mut self, rows: &[FailureRow]) -> Result<()> {
        let mut lines = Vec::new();
        for row in rows {
            lines.extend(csv_line(&failure_fields(row))?);
        }
        self.failures
            .write_all(&lines)
            .context("appending to failures.csv")
    }

    /// Samples.
    ///
    /// # Errors
    /// When the file can't be written.
    pub fn samples(&mut self, samples: &[Sample]) -> Result<()> {
        let mut lines = Vec::new();
        for sample in samples {
            lines.extend(csv_line(&[
                number(sample.at_s),
                sample.service.clone(),
                sample.metric.clone(),
                sample.unit.clone(),
                number(sample.value),
                sample.epoch.to_string(),
            ])?);
        }
        self.samples
            .write_all(&lines)
            .context("appending to samples.csv")
    }

    /// An event.
    ///
    /// # Errors
    /// When the file can't be written.
    pub fn event(&mut self, event: &Event) -> Result<()> {
        let mut line = serde_json::to_vec(event).context("writing an event as JSON")?;
        line.push(b'\n');
        self.events
            .write_all(&line)
            .context("appending to events.jsonl")
    }

    /// Writes out the last, perhaps incomplete interval.
    ///
    /// # Errors
    /// When a file can't be written.
    pub fn finish(mut self) -> Result<()> {
        self.latency.flush(self.end_s)
    }
}

pub(super) fn csv_line(fields: &[String]) -> Result<Vec<u8>> {
    let mut writer = csv::WriterBuilder::new().from_writer(Vec::new());
    writer.write_record(fields).context("writing a row")?;
    writer
        .into_inner()
        .map_err(|error| anyhow::anyhow!("writing a row: {}", error.error()))
}

fn row_of(second: &LoadSecond, host: Option<HostSecond>) -> Result<SecondRow> {
    let mut all = hdrhistogram::Histogram::<u64>::new(3)
        .map_err(|error| anyhow::anyhow!("making a histogram: {error}"))?;
    for part in &second.latency_us {
        all.add(part)
            .map_err(|error| anyhow::anyhow!("merging a second's latencies: {error}"))?;
    }
    let ms = |us: u64| (!all.is_empty()).then_some(us as f64 / 1_000.0);
    Ok(SecondRow {
        at_s: second.index,
        counts: second.counts,
        ok_by_step: second.ok_by_step.clone(),
        p50_ms: ms(all.value_at_quantile(0.5)),
        p99_ms: ms(all.value_at_quantile(0.99)),
        max_ms: ms(all.max()),
        in_flight: second.in_flight,
        account: second.account,
        driver_cpu_s: second.driver_cpu_s,
        send_delay_us: second.send_delay_us,
        silence: second.silence,
        host,
    })
}
