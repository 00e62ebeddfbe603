//! A series from elsewhere: two columns of text, time and value.
//!
//! Exports of other tools are judged by the same rules as a run's own series. Must never read a file, guess a value, or
//! judge rows whose times do not increase.

use anyhow::{Context, Result, bail, ensure};
use jiff::Timestamp;
use jiff::civil::DateTime;
use jiff::tz::TimeZone;
use serde::Serialize;

use super::stats::bins::{self, MOST_BINS};

/// A spacing that differs from the usual one by more than this share is a gap.
const GAP: f64 = 0.5;

/// A series as read.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct CsvSeries {
    /// Name of the value column, where there is a header.
    pub name: Option<String>,
    /// Times as numbers: as written, or seconds since 1970 where they were written as dates.
    pub times: Vec<f64>,
    pub values: Vec<f64>,
    /// The usual distance between rows; 0 for a single row.
    pub step: f64,
    /// Whether times were written as dates, so that `step` is in seconds.
    pub dated: bool,
    /// Rows that do not follow the one before at the usual distance. The judge takes rows as equally spaced: say so.
    pub gaps: usize,
}

impl CsvSeries {
    /// The values to judge: as read up to 1,000 rows, else the means of as few consecutive rows as leave at most that
    /// many. Also the number of rows a bin holds.
    pub fn bins(&self) -> (Vec<f64>, usize) {
        let rows = self.values.len().div_ceil(MOST_BINS as usize).max(1);
        if rows == 1 {
            return (self.values.clone(), 1);
        }
        (bins::means(&self.values, rows), rows)
    }
}

/// Reads two columns, separated by commas, semicolons or tabs. A first line that holds neither a time nor a value is the
/// header; empty lines and lines that start with `#` are passed over. Times are numbers, or dates like
/// `2026-11-30T12:00:00Z` and `2026-11-30 12:00:00` (UTC where no zone is written).
///
/// # Errors
/// Each names the line: not two columns, a time or value that is none, times that do not increase, no rows at all.
pub fn parse(text: &str) -> Result<CsvSeries> {
    let text = text.trim_start_matches('\u{feff}');
    let mut reader = csv::ReaderBuilder::new()
        .has_headers(false)
        .flexible(true)
        .comment(Some(b'#'))
        .delimiter(separator(text))
        .trim(csv::Trim::All)
        .from_reader(text.as_bytes());
    let mut series = CsvSeries {
        name: None,
        times: Vec::new(),
        values: Vec::new(),
        step: 0.0,
        dated: false,
        gaps: 0,
    };
    for (index, record) in reader.records().enumerate() {
        let record = record.context("reading the series as comma-separated text")?;
        let line = record
            .position()
            .map_or(index as u64 + 1, csv::Position::line);
        ensure!(
            record.len() == 2,
            "line {line} has {} column{}: a series has two, time and value; select them before judging",
            record.len(),
            if record.len() == 1 { "" } else { "s" }
        );
        let (time, value) = (&record[0], &record[1]);
        let (parsed_time, parsed_value) = (parse_time(time), value.parse::<f64>());
        if index == 0 && parsed_time.is_none() && parsed_value.is_err() {
            series.name = Some(value.to_owned());
            continue;
        }
        let Some((time_number, dated)) = parsed_time else {
            bail!(
                "line {line}: {time:?} is no time; write a number, or a date like 2026-11-30T12:00:00Z"
            );
        };
        ensure!(
            !value.is_empty(),
            "line {line} has no value; leave the row out"
        );
        let Ok(number) = parsed_value else {
            bail!("line {line}: {value:?} is no number");
        };
        ensure!(
            number.is_finite(),
            "line {line}: {value} is not a finite number; leave the row out or fix its source"
        );
        if let Some(before) = series.times.last() {
            ensure!(
                series.dated == dated,
                "line {line}: {time:?} is written unlike the times before it; use dates or numbers, not both"
            );
            ensure!(
                *before < time_number,
                "line {line}: {time} does not come after the time before it; sort the rows and keep one a time"
            );
        }
        series.dated = dated;
        series.times.push(time_number);
        series.values.push(number);
    }
    ensure!(
        !series.values.is_empty(),
        "the series has no rows: two columns are needed, time and value"
    );
    let mut steps: Vec<f64> = series.times.windows(2).map(|w| w[1] - w[0]).collect();
    steps.sort_by(f64::total_cmp);
    series.step = steps.get(steps.len() / 2).copied().unwrap_or(0.0);
    series.gaps = steps
        .iter()
        .filter(|s| (**s - series.step).abs() > GAP * series.step)
        .count();
    Ok(series)
}

/// The separator of the first line that holds one.
fn separator(text: &str) -> u8 {
    let line = text
        .lines()
        .find(|line| !line.trim().is_empty() && !line.starts_with('#'))
        .unwrap_or_default();
    [b',', b';', b'\t']
        .into_iter()
        .find(|s| line.as_bytes().contains(s))
        .unwrap_or(b',')
}

/// A time as a number, and whether it was a date.
fn parse_time(text: &str) -> Option<(f64, bool)> {
    if let Ok(number) = text.parse::<f64>() {
        return number.is_finite().then_some((number, false));
    }
    if let Ok(stamp) = text.parse::<Timestamp>() {
        return Some((seconds(stamp), true));
    }
    let local: DateTime = text.parse().ok()?;
    Some((seconds(TimeZone::UTC.to_timestamp(local).ok()?), true))
}

fn seconds(stamp: Timestamp) -> f64 {
    stamp.as_second() as f64 + f64::from(stamp.subsec_nanosecond()) / 1e9
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_header_is_optional() {
        let with = parse("minute,rpm\n0,10.5\n1,11\n").unwrap();
        assert_eq!(
            (with.name.as_deref(), &with.values[..], with.step),
            (Some("rpm"), &[10.5, 11.0][..], 1.0)
        );
        let without = parse("0,10.5\n1,11\n").unwrap();
        assert_eq!((without.name, without.values), (None, with.values));
    }

    #[test]
    fn dates_are_read_with_and_without_a_zone() {
        for (text, step) in [
            ("t,v\n2026-11-30T12:00:00Z,1\n2026-11-30T12:00:10Z,2", 10.0),
            ("2026-11-30 12:00:00,1\n2026-11-30 12:01:00,2", 60.0),
            (
                "2026-11-30T12:00:00+02:00,1\n2026-11-30T10:00:00.500Z,2",
                0.5,
            ),
            ("2026-11-30,1\n2026-12-01,2", 86_400.0),
        ] {
            let series = parse(text).unwrap();
            assert!(
                series.dated && (series.step - step).abs() < 1e-6,
                "{text}: {}",
                series.step
            );
        }
    }

    #[test]
    fn other_separators_line_ends_comments_and_marks_are_read() {
        for text in [
            "\u{feff}t;v\r\n1;2\r\n2;3\r\n",
            "# export\nt\tv\n1\t2\n\n2\t3\n",
            " t , v \n 1 , 2 \n2,3",
        ] {
            assert_eq!(parse(text).unwrap().values, [2.0, 3.0], "{text:?}");
        }
    }

    #[test]
    fn what_is_wrong_is_told_with_its_line() {
        for (text, part) in [
            ("", "no rows"),
            ("t,v\n", "no rows"),
            ("us\n1\n2\n", "line 1 has 1 column:"),
            ("a,b,c\n1,2,3\n", "line 1 has 3 columns"),
            ("t,v\n1,2\n2,3,4\n", "line 3 has 3 columns"),
            ("t,v\n1,2\n2,x\n", "line 3: \"x\" is no number"),
            ("t,v\n1,2\n2,\n", "line 3 has no value"),
            ("t,v\n1,2\n2,NaN\n", "line 3: NaN is not a finite number"),
            ("t,v\n1,2\n2,inf\n", "finite"),
            ("t,v\nsoon,2\n", "line 2: \"soon\" is no time"),
            ("t,v\nnan,2\n", "is no time"),
            ("0,x\n1,2\n", "line 1: \"x\" is no number"),
            ("t,v\n2,2\n1,3\n", "line 3: 1 does not come after"),
            ("t,v\n1,2\n1,3\n", "does not come after"),
            (
                "t,v\n1,2\n2026-11-30T12:00:00Z,3\n",
                "unlike the times before",
            ),
        ] {
            let message = parse(text).unwrap_err().to_string();
            assert!(message.contains(part), "{text:?}: {message}");
        }
    }

    #[test]
    fn gaps_are_counted_and_jitter_is_not() {
        assert_eq!(parse("0,1\n1.01,1\n1.98,1\n3,1\n").unwrap().gaps, 0);
        assert_eq!(parse("0,1\n1,1\n2,1\n60,1\n61,1\n").unwrap().gaps, 1);
        assert_eq!(parse("5,1\n").unwrap().step, 0.0);
    }

    #[test]
    fn more_than_a_thousand_rows_become_means() {
        let text: String = (0..2_500).map(|t| format!("{t},{}\n", t % 3)).collect();
        let (bins, rows) = parse(&text).unwrap().bins();
        assert_eq!((bins.len(), rows), (833, 3));
        assert!(bins.iter().all(|v| *v == 1.0));
        let (bins, rows) = parse("0,1\n1,2\n").unwrap().bins();
        assert_eq!((bins, rows), (vec![1.0, 2.0], 1));
    }

    proptest! {
        #[test]
        fn no_text_panics(text in "[0-9a-zA-Z,;\\t\\n\\r\"#:. -]{0,80}") {
            let _ = parse(&text);
        }

        #[test]
        fn a_constant_offset_of_time_changes_nothing(values in proptest::collection::vec(-1e6f64..1e6, 2..40), offset in -1_000_000i64..1_000_000) {
            let text = |from: i64| -> String {
                values.iter().enumerate().map(|(t, v)| format!("{},{v}\n", from + 10 * t as i64)).collect()
            };
            let (plain, moved) = (parse(&text(0)).unwrap(), parse(&text(offset)).unwrap());
            prop_assert_eq!(plain.bins(), moved.bins());
            prop_assert_eq!((plain.step, plain.gaps), (moved.step, moved.gaps));
        }
    }
}
