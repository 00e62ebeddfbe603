//! `probe.csv` and `micro.csv`: what is measured beside the pairs, a row as it ends.

use std::fs::File;
use std::io::Write;
use std::path::Path;

use anyhow::{Context, Result, bail};

use super::arm::csv_line;
use super::lines::whole_lines;
use super::rows::number;
use crate::measure::{Counts, FailureClass};

/// A quantile in ms.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Reading {
    /// As measured.
    Seen(f64),
    /// More requests than lie above it timed out: it is the timeout or more.
    AtLeast(f64),
}

/// One level of the saturation probe.
#[derive(Debug, Clone, PartialEq)]
pub struct ProbeRow {
    /// From 0, in the order in which levels ran.
    pub place: u32,
    /// Closed-loop clients.
    pub clients: u32,
    /// The first level once more.
    pub repeated: bool,
    /// Measured seconds.
    pub seconds: f64,
    /// Requests: sent, ok, failed by class, cut.
    pub counts: Counts,
    /// Of completed requests; absent when there are too few for it.
    pub p50: Option<Reading>,
    /// The same.
    pub p95: Option<Reading>,
    /// The same.
    pub p99: Option<Reading>,
    /// Largest latency in ms.
    pub max_ms: Option<f64>,
    /// The busiest load thread's largest share of a processor in a second.
    pub driver_share: f64,
    /// Median delay before sending in microseconds.
    pub send_delay_us: f64,
    /// Of the load threads a completed request, in microseconds.
    pub driver_cpu_us: Option<f64>,
    /// What each service of the deployment used.
    pub services: Vec<ServiceUse>,
}

/// What one service used during a level.
#[derive(Debug, Clone, PartialEq)]
pub struct ServiceUse {
    /// Its name.
    pub service: String,
    /// User and system time a second.
    pub cpu_cores: Option<f64>,
    /// Largest reading of its memory in MiB: resident, of PostgreSQL the anonymous part, since its processes share the rest.
    pub memory_mib: Option<f64>,
}

/// One round of counted calls.
#[derive(Debug, Clone, PartialEq)]
pub struct MicroRow {
    /// Name as the file writes it.
    pub name: String,
    /// From 0.
    pub round: u32,
    /// The empty loop ran first.
    pub baseline_first: bool,
    /// Calls and their seconds.
    pub command: (u64, f64),
    /// The same of the empty loop.
    pub baseline: (u64, f64),
}

const PROBE_HEAD: [&str; 6] = ["place", "clients", "repeated", "seconds", "sent", "ok"];
const PROBE_TAIL: [&str; 8] = [
    "cut",
    "p50_ms",
    "p95_ms",
    "p99_ms",
    "max_ms",
    "driver_share",
    "send_delay_us",
    "driver_cpu_us",
];
const CPU: &str = "cpu_cores_";
const MEMORY: &str = "memory_mib_";
const MICRO: [&str; 7] = [
    "name",
    "round",
    "baseline_first",
    "calls",
    "seconds",
    "baseline_calls",
    "baseline_seconds",
];

/// Appends to `probe.csv`.
#[derive(Debug)]
pub struct ProbeWriter {
    file: File,
    services: Vec<String>,
}

impl ProbeWriter {
    /// Makes the file with its header; `services` are those of the deployment.
    ///
    /// # Errors
    /// When it can't be made.
    pub fn create(path: &Path, services: &[String]) -> Result<Self> {
        let mut columns: Vec<String> = PROBE_HEAD.map(String::from).to_vec();
        columns.extend(FailureClass::ALL.iter().map(|c| c.as_str().to_owned()));
        columns.extend(PROBE_TAIL.map(String::from));
        columns.extend(services.iter().map(|name| format!("{CPU}{name}")));
        columns.extend(services.iter().map(|name| format!("{MEMORY}{name}")));
        Ok(ProbeWriter {
            file: with_header(path, &columns)?,
            services: services.to_vec(),
        })
    }

    /// One level.
    ///
    /// # Errors
    /// When the file can't be written.
    pub fn level(&mut self, row: &ProbeRow) -> Result<()> {
        let mut fields = vec![
            row.place.to_string(),
            row.clients.to_string(),
            row.repeated.to_string(),
            number(row.seconds),
            row.counts.sent.to_string(),
            row.counts.ok.to_string(),
        ];
        fields.extend(
            FailureClass::ALL
                .iter()
                .map(|&class| row.counts.class(class).to_string()),
        );
        fields.push(row.counts.cut.to_string());
        fields.extend([row.p50, row.p95, row.p99].map(|reading| match reading {
            Some(Reading::Seen(ms)) => number(ms),
            Some(Reading::AtLeast(ms)) => format!(">={}", number(ms)),
            None => String::new(),
        }));
        let optional = |value: Option<f64>| value.map(number).unwrap_or_default();
        fields.push(optional(row.max_ms));
        fields.extend([row.driver_share, row.send_delay_us].map(number));
        fields.push(optional(row.driver_cpu_us));
        let used = |name: &String| row.services.iter().find(|used| used.service == *name);
        for name in &self.services {
            fields.push(optional(used(name).and_then(|used| used.cpu_cores)));
        }
        for name in &self.services {
            fields.push(optional(used(name).and_then(|used| used.memory_mib)));
        }
        self.file
            .write_all(&csv_line(&fields)?)
            .context("appending to probe.csv")
    }
}

/// Appends to `micro.csv`.
#[derive(Debug)]
pub struct MicroWriter {
    file: File,
}

impl MicroWriter {
    /// Makes the file with its header.
    ///
    /// # Errors
    /// When it can't be made.
    pub fn create(path: &Path) -> Result<Self> {
        Ok(MicroWriter {
            file: with_header(path, &MICRO.map(String::from))?,
        })
    }

    /// One round. Seconds are written in full: a loop of a million calls may take less than a millisecond.
    ///
    /// # Errors
    /// When the file can't be written.
    pub fn round(&mut self, row: &MicroRow) -> Result<()> {
        let fields = [
            row.name.clone(),
            row.round.to_string(),
            row.baseline_first.to_string(),
            row.command.0.to_string(),
            row.command.1.to_string(),
            row.baseline.0.to_string(),
            row.baseline.1.to_string(),
        ];
        self.file
            .write_all(&csv_line(&fields)?)
            .context("appending to micro.csv")
    }
}

fn with_header(path: &Path, columns: &[String]) -> Result<File> {
    let mut file = File::create(path).with_context(|| format!("making {}", path.display()))?;
    file.write_all(&csv_line(columns)?)
        .with_context(|| format!("writing {}", path.display()))?;
    Ok(file)
}

/// Reads `probe.csv`; a row that a kill cut short is left out. A missing file is empty.
///
/// # Errors
/// When it can't be read, lacks a column, or holds a row that is not one.
pub fn read_probe(path: &Path) -> Result<Vec<ProbeRow>> {
    let Some(table) = Table::read(path)? else {
        return Ok(Vec::new());
    };
    let services: Vec<String> = table
        .columns
        .iter()
        .filter_map(|column| column.strip_prefix(CPU).map(String::from))
        .collect();
    table
        .rows()
        .map(|row| {
            let mut counts = Counts {
                sent: row.parsed("sent")?,
                ok: row.parsed("ok")?,
                cut: row.parsed("cut")?,
                ..Counts::default()
            };
            for class in FailureClass::ALL {
                counts.failed[class.index()] = row.parsed(class.as_str())?;
            }
            let unavailable = counts.failed[FailureClass::Status503.index()];
            let server = &mut counts.failed[FailureClass::Status5xx.index()];
            *server = server
                .checked_sub(unavailable)
                .with_context(|| row.fault("status_5xx", "it is below status_503"))?;
            Ok(ProbeRow {
                place: row.parsed("place")?,
                clients: row.parsed("clients")?,
                repeated: row.parsed("repeated")?,
                seconds: row.real("seconds")?,
                counts,
                p50: row.reading("p50_ms")?,
                p95: row.reading("p95_ms")?,
                p99: row.reading("p99_ms")?,
                max_ms: row.optional("max_ms")?,
                driver_share: row.real("driver_share")?,
                send_delay_us: row.real("send_delay_us")?,
                driver_cpu_us: row.optional("driver_cpu_us")?,
                services: services
                    .iter()
                    .map(|name| {
                        Ok(ServiceUse {
                            service: name.clone(),
                            cpu_cores: row.optional(&format!("{CPU}{name}"))?,
                            memory_mib: row.optional(&format!("{MEMORY}{name}"))?,
                        })
                    })
                    .collect::<Result<_>>()?,
            })
        })
        .collect()
}

/// Reads `micro.csv`, as [`read_probe`] does.
///
/// # Errors
/// As [`read_probe`].
pub fn read_micro(path: &Path) -> Result<Vec<MicroRow>> {
    let Some(table) = Table::read(path)? else {
        return Ok(Vec::new());
    };
    table
        .rows()
        .map(|row| {
            let calls = |calls: &str, seconds: &str| -> Result<(u64, f64)> {
                let made: u64 = row.parsed(calls)?;
                if made == 0 {
                    bail!(row.fault(calls, "no call was made"));
                }
                Ok((made, row.real(seconds)?))
            };
            Ok(MicroRow {
                name: row.text("name")?.to_owned(),
                round: row.parsed("round")?,
                baseline_first: row.parsed("baseline_first")?,
                command: calls("calls", "seconds")?,
                baseline: calls("baseline_calls", "baseline_seconds")?,
            })
        })
        .collect()
}

/// A small file, read whole.
struct Table<'p> {
    path: &'p Path,
    columns: Vec<String>,
    records: Vec<csv::StringRecord>,
}

impl<'p> Table<'p> {
    fn read(path: &'p Path) -> Result<Option<Self>> {
        let Some(bytes) = whole_lines(path)? else {
            return Ok(None);
        };
        let mut reader = csv::Reader::from_reader(bytes.as_slice());
        let columns = reader
            .headers()
            .with_context(|| format!("reading the header of {}", path.display()))?
            .iter()
            .map(String::from)
            .collect();
        let records = reader
            .records()
            .collect::<Result<_, _>>()
            .with_context(|| format!("reading {}", path.display()))?;
        Ok(Some(Table {
            path,
            columns,
            records,
        }))
    }

    fn rows(&self) -> impl Iterator<Item = Row<'_>> {
        self.records.iter().enumerate().map(|(i, record)| Row {
            table: self,
            line: i + 2,
            record,
        })
    }
}

struct Row<'t> {
    table: &'t Table<'t>,
    line: usize,
    record: &'t csv::StringRecord,
}

impl Row<'_> {
    fn fault(&self, column: &str, what: &str) -> String {
        let path = self.table.path.display();
        format!("{path}, line {}, column {column}: {what}", self.line)
    }

    fn text(&self, column: &str) -> Result<&str> {
        let at = self.table.columns.iter().position(|name| name == column);
        at.and_then(|at| self.record.get(at))
            .with_context(|| self.fault(column, "it is missing"))
    }

    fn parsed<T: std::str::FromStr>(&self, column: &str) -> Result<T> {
        let text = self.text(column)?;
        let parsed = text.parse().ok();
        parsed.with_context(|| self.fault(column, &format!("'{text}' is not what belongs there")))
    }

    fn real(&self, column: &str) -> Result<f64> {
        let value: f64 = self.parsed(column)?;
        if !value.is_finite() {
            bail!(self.fault(column, "it is no finite number"));
        }
        Ok(value)
    }

    fn optional(&self, column: &str) -> Result<Option<f64>> {
        match self.text(column)? {
            "" => Ok(None),
            _ => self.real(column).map(Some),
        }
    }

    fn reading(&self, column: &str) -> Result<Option<Reading>> {
        match self.text(column)?.strip_prefix(">=") {
            Some(text) => text
                .parse()
                .ok()
                .filter(|ms: &f64| ms.is_finite())
                .map(|ms| Some(Reading::AtLeast(ms)))
                .with_context(|| self.fault(column, "it is no number")),
            None => Ok(self.optional(column)?.map(Reading::Seen)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::measure::Outcome;

    fn level() -> ProbeRow {
        let mut counts = Counts {
            sent: 5,
            ..Counts::default()
        };
        for outcome in [
            Outcome::Ok,
            Outcome::Failed(FailureClass::Status503),
            Outcome::Failed(FailureClass::Status5xx),
            Outcome::Failed(FailureClass::Timeout),
            Outcome::Cut,
        ] {
            counts.record(outcome);
        }
        ProbeRow {
            place: 0,
            clients: 8,
            repeated: false,
            seconds: 9.0,
            counts,
            p50: Some(Reading::Seen(1.25)),
            p95: Some(Reading::AtLeast(10_000.0)),
            p99: None,
            max_ms: Some(12.5),
            driver_share: 0.25,
            send_delay_us: 3.0,
            driver_cpu_us: None,
            services: vec![
                ServiceUse {
                    service: "app".into(),
                    cpu_cores: Some(0.5),
                    memory_mib: Some(64.0),
                },
                ServiceUse {
                    service: "edge".into(),
                    cpu_cores: None,
                    memory_mib: None,
                },
            ],
        }
    }

    #[test]
    fn levels_read_back_as_written_but_for_a_cut_row() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("probe.csv");
        assert_eq!(read_probe(&path).unwrap(), []);
        let names = ["app".to_owned(), "edge".to_owned()];
        let mut writer = ProbeWriter::create(&path, &names).unwrap();
        writer.level(&level()).unwrap();
        let again = ProbeRow {
            place: 1,
            repeated: true,
            ..level()
        };
        writer.level(&again).unwrap();
        drop(writer);
        let mut text = std::fs::read(&path).unwrap();
        text.extend_from_slice(b"2,16,fal");
        std::fs::write(&path, text).unwrap();
        assert_eq!(read_probe(&path).unwrap(), [level(), again]);
    }

    #[test]
    fn counted_calls_keep_every_digit_and_bad_rows_are_told_with_their_line() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("micro.csv");
        let row = MicroRow {
            name: "op, \"boundary\"".into(),
            round: 3,
            baseline_first: true,
            command: (1_000_000, 0.123_456_789_012),
            baseline: (1_000_000, 1.2e-9),
        };
        let mut writer = MicroWriter::create(&path).unwrap();
        writer.round(&row).unwrap();
        drop(writer);
        assert_eq!(read_micro(&path).unwrap(), [row]);
        let good = std::fs::read_to_string(&path).unwrap();
        for bad in ["1000000,NaN", "0,1", "x,1"] {
            let text = good.replace("1000000,0.123456789012", bad);
            assert_ne!(text, good);
            std::fs::write(&path, text).unwrap();
            let said = format!("{:#}", read_micro(&path).unwrap_err());
            assert!(said.contains("line 2, column"), "{said}");
        }
    }
}
