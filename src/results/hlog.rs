//! `latency.hlog`: the standard histogram interval log (V2, compressed), tagged by step, values in microseconds.

use std::fs::File;
use std::io::Write;
use std::path::Path;
use std::time::Duration;

use anyhow::{Context, Result, anyhow};
use base64::Engine as _;
use hdrhistogram::Histogram;
use hdrhistogram::serialization::interval_log::{
    IntervalLogIterator, IntervalLogWriterBuilder, LogEntry, Tag,
};
use hdrhistogram::serialization::{Deserializer, V2DeflateSerializer};

use super::lines::whole_lines;

/// Seconds an interval for this window: the largest of 1, 5, 10, 30, 60 that divides the window and is at most a twentieth.
pub fn interval_seconds(window: Duration) -> u64 {
    let window_s = window.as_secs();
    let whole = window.subsec_nanos() == 0;
    [60, 30, 10, 5]
        .into_iter()
        .find(|length| whole && window_s.is_multiple_of(*length) && length * 20 <= window_s)
        .unwrap_or(1)
}

/// Appends histograms to a log.
#[derive(Debug)]
pub struct LatencyLog {
    file: File,
    /// One histogram a step, over the current interval.
    current: Vec<Histogram<u64>>,
    steps: Vec<String>,
    interval_s: u64,
    start_s: u64,
}

impl LatencyLog {
    /// Begins a log.
    ///
    /// # Errors
    /// When the file can't be made.
    pub fn create(path: &Path, steps: &[String], interval_s: u64) -> Result<Self> {
        let mut file = File::create(path).with_context(|| format!("making {}", path.display()))?;
        file.write_all(
            b"#[Histogram log format version 1.3]\n#Values in microseconds; one line a step and interval; times in seconds of measured time.\n#[StartTime: 0.000 (seconds since epoch)]\n#[BaseTime: 0.000 (seconds since epoch)]\n\"StartTimestamp\",\"Interval_Length\",\"Interval_Max\",\"Interval_Compressed_Histogram\"\n",
        )
        .with_context(|| format!("writing {}", path.display()))?;
        let current = steps.iter().map(|_| empty()).collect::<Result<_>>()?;
        Ok(Self {
            file,
            current,
            steps: steps.to_vec(),
            interval_s,
            start_s: 0,
        })
    }

    /// Adds one second's histograms (one a step, in the order of the steps); writes the interval out when it is full.
    ///
    /// # Errors
    /// When the file can't be written.
    pub fn add(&mut self, second: u64, latency_us: &[Histogram<u64>]) -> Result<()> {
        if second >= self.start_s + self.interval_s {
            self.flush(self.start_s + self.interval_s)?;
            self.start_s = second - second % self.interval_s;
        }
        for (total, part) in self.current.iter_mut().zip(latency_us) {
            total
                .add(part)
                .map_err(|error| anyhow!("adding a second's latencies: {error}"))?;
        }
        Ok(())
    }

    /// Writes what the current interval holds, up to `end_s`.
    ///
    /// # Errors
    /// When the file can't be written.
    pub fn flush(&mut self, end_s: u64) -> Result<()> {
        let mut lines = Vec::new();
        let length = Duration::from_secs(end_s.saturating_sub(self.start_s));
        let mut serializer = V2DeflateSerializer::new();
        let mut builder = IntervalLogWriterBuilder::new();
        builder.with_max_value_divisor(1.0);
        let mut log = builder
            .begin_log_with(&mut lines, &mut serializer)
            .context("beginning an interval of latency.hlog")?;
        for (step, histogram) in self.steps.iter().zip(&mut self.current) {
            if histogram.is_empty() {
                continue;
            }
            log.write_histogram(
                histogram,
                Duration::from_secs(self.start_s),
                length,
                Tag::new(step),
            )
            .map_err(|error| anyhow!("writing an interval of latency.hlog: {error}"))?;
            histogram.reset();
        }
        self.file
            .write_all(&lines)
            .context("appending an interval to latency.hlog")
    }
}

/// An empty latency histogram: 1 us up, three significant digits, growing as needed so that nothing is clamped.
fn empty() -> Result<Histogram<u64>> {
    Histogram::new(3).map_err(|error| anyhow!("making a histogram: {error}"))
}

/// One line of the log, read back.
#[derive(Debug, Clone)]
pub struct LatencyInterval {
    /// Step.
    pub step: String,
    /// Start in seconds of measured time.
    pub from_s: f64,
    /// Length in seconds.
    pub length_s: f64,
    /// Latencies in microseconds.
    pub histogram: Histogram<u64>,
}

/// A log as read: decoded interval by interval, since a long run's histograms would not fit in memory together.
#[derive(Debug, Clone, Default)]
pub struct LatencyData {
    text: Vec<u8>,
}

impl LatencyData {
    /// Reads a log. A last line that a kill cut short is left out; a missing file is an empty log.
    ///
    /// # Errors
    /// When the file can't be read.
    pub fn read(path: &Path) -> Result<Self> {
        // What follows the last line end was cut by a kill.
        let text = whole_lines(path)?.unwrap_or_default();
        Ok(Self { text })
    }

    /// Its intervals in order; stops after the first error.
    pub fn intervals(&self) -> impl Iterator<Item = Result<LatencyInterval>> + '_ {
        // The crate's reader knows no legend line, which the format has in front of the first interval.
        let legend_end = self
            .text
            .windows(2)
            .position(|pair| pair == b"\n\"")
            .and_then(|at| {
                let rest = &self.text[at + 1..];
                rest.iter()
                    .position(|&b| b == b'\n')
                    .map(|end| at + 2 + end)
            })
            .unwrap_or(0);
        let mut entries = IntervalLogIterator::new(&self.text[legend_end..]);
        let mut deserializer = Deserializer::new();
        let mut number = 0usize;
        let mut broken = false;
        std::iter::from_fn(move || {
            loop {
                if broken {
                    return None;
                }
                let interval = match entries.next()? {
                    Ok(LogEntry::Interval(interval)) => interval,
                    Ok(_) => continue,
                    Err(_) => {
                        broken = true;
                        return Some(Err(anyhow!(
                            "latency.hlog is damaged after interval {number}"
                        )));
                    }
                };
                number += 1;
                let decoded = base64::engine::general_purpose::STANDARD
                    .decode(interval.encoded_histogram())
                    .map_err(|error| anyhow!("latency.hlog, interval {number}: {error}"))
                    .and_then(|raw| {
                        deserializer
                            .deserialize(&mut raw.as_slice())
                            .map_err(|error| anyhow!("latency.hlog, interval {number}: {error}"))
                    });
                broken = decoded.is_err();
                return Some(decoded.map(|histogram| {
                    LatencyInterval {
                        step: interval
                            .tag()
                            .map(|tag| tag.as_str().to_owned())
                            .unwrap_or_default(),
                        from_s: interval.start_timestamp().as_secs_f64(),
                        length_s: interval.duration().as_secs_f64(),
                        histogram,
                    }
                }));
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all(path: &Path) -> Vec<LatencyInterval> {
        let data = LatencyData::read(path).unwrap();
        data.intervals().collect::<Result<_>>().unwrap()
    }

    #[test]
    fn an_interval_divides_the_window_and_is_a_twentieth_at_most() {
        let seconds = |s| interval_seconds(Duration::from_secs(s));
        assert_eq!(seconds(20), 1);
        assert_eq!(seconds(100), 5);
        assert_eq!(seconds(99), 1);
        assert_eq!(seconds(43_200), 60);
        assert_eq!(interval_seconds(Duration::from_millis(100_500)), 1);
    }

    #[test]
    fn what_was_written_reads_back_also_when_the_last_line_is_cut() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("latency.hlog");
        let steps = ["list".to_owned(), "create".to_owned()];
        let mut log = LatencyLog::create(&path, &steps, 5).unwrap();
        for second in 0..12 {
            let mut list = empty().unwrap();
            list.record_n(1_000 + second, 10).unwrap();
            let mut create = empty().unwrap();
            if second == 3 {
                create.record(120_000_000).unwrap();
            }
            log.add(second, &[list, create]).unwrap();
        }
        log.flush(12).unwrap();
        let intervals = all(&path);
        let list: Vec<_> = intervals.iter().filter(|i| i.step == "list").collect();
        assert_eq!(
            list.iter()
                .map(|i| (i.from_s, i.length_s))
                .collect::<Vec<_>>(),
            [(0.0, 5.0), (5.0, 5.0), (10.0, 2.0)]
        );
        assert_eq!(list.iter().map(|i| i.histogram.len()).sum::<u64>(), 120);
        let create: Vec<_> = intervals.iter().filter(|i| i.step == "create").collect();
        assert_eq!(create.len(), 1);
        assert!(create[0].histogram.max() >= 120_000_000);

        let bytes = std::fs::read(&path).unwrap();
        std::fs::write(&path, &bytes[..bytes.len() - 5]).unwrap();
        assert_eq!(all(&path).len(), intervals.len() - 1);
    }
}
