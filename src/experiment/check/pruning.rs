//! `[pruning]`.

use std::time::Duration;

use regex::Regex;

use super::Checker;
use super::names::Names;
use crate::experiment::document::Node;
use crate::experiment::{PruneRule, PruneTable, Pruning, Schedule};
use crate::name::ServiceName;
use crate::quantity::write_duration;

pub(super) fn check(
    root: &Node,
    names: &Names<'_>,
    schedule: &Schedule,
    checker: &mut Checker<'_>,
) -> Option<Pruning> {
    let table = root.table("pruning")?;
    let mut service = None;
    if let Some(node) = table.get("service")
        && let Some(found) = names.expect_postgres(node, "pruning.service", checker)
    {
        service = ServiceName::new(found.name);
        if let Some(database) = table.get("database") {
            names.expect_database(found, database, "pruning.database", checker);
        }
    }
    let every = table.get("every").and_then(Node::duration);
    if let (Some(node), Some(every)) = (table.get("every"), every)
        && every < Duration::from_millis(100)
    {
        checker.error(
            node.span.clone(),
            format!("`pruning.every` is {}", write_duration(every)),
            "pruning more often than each 100ms is a load of its own",
        );
    }
    let tables = table.get("table").map_or(&[][..], Node::entries);
    if tables.is_empty() {
        checker.error(
            table.span.clone(),
            "`pruning` names no table",
            "add [pruning.table.<name>] with `keep_newest` and `by`, or `delete_where`",
        );
    }
    let tables = tables
        .iter()
        .filter_map(|entry| prune_table(&entry.key, &entry.node, schedule, checker))
        .collect();
    Some(Pruning {
        enabled: table.get("enabled").and_then(Node::truth).unwrap_or(false),
        service: service?,
        database: table.get("database")?.text()?.to_owned(),
        every: every?,
        vacuum: table.get("vacuum").and_then(Node::truth).unwrap_or(false),
        tables,
    })
}

fn prune_table(
    name: &str,
    node: &Node,
    schedule: &Schedule,
    checker: &mut Checker<'_>,
) -> Option<PruneTable> {
    let newest = node.entry("keep_newest");
    let by = node.entry("by");
    let condition = node.entry("delete_where");
    let rule = match (newest, by, condition) {
        (Some(_), _, Some(condition)) => {
            checker.error(
                condition.key_span.clone(),
                format!("table `{name}` has both `keep_newest` and `delete_where`"),
                "keep one rule a table",
            );
            None
        }
        (None, None, None) => {
            checker.error(
                node.span.clone(),
                format!("nothing says what goes from table `{name}`"),
                "add `keep_newest = 20000` with `by = \"id\"`, or `delete_where = \"…\"`",
            );
            None
        }
        (Some(rows), None, None) => {
            checker.error(
                rows.key_span.clone(),
                format!("table `{name}`: `keep_newest` does not say what is new"),
                "add `by = \"id\"`, the column that grows",
            );
            None
        }
        (None, Some(by), _) => {
            checker.error(
                by.key_span.clone(),
                format!("table `{name}`: `by` has no meaning without `keep_newest`"),
                "add `keep_newest`, or remove `by`",
            );
            None
        }
        (Some(rows), Some(by), None) => Some(PruneRule::KeepNewest {
            rows: rows
                .node
                .integer()
                .and_then(|n| u64::try_from(n).ok())
                .unwrap_or(0),
            by: by.node.text().unwrap_or_default().to_owned(),
        }),
        (None, None, Some(condition)) => {
            let text = condition.node.text().unwrap_or_default();
            if text.contains(';') {
                checker.error(
                    checker.mention(&condition.node, ";"),
                    format!("table `{name}`: `delete_where` holds a semicolon"),
                    "write one SQL condition, as it would follow WHERE",
                );
            }
            retention(name, &condition.node, schedule, checker);
            Some(PruneRule::DeleteWhere(text.to_owned()))
        }
    };
    Some(PruneTable {
        table: name.to_owned(),
        schema: node
            .get("schema")
            .and_then(Node::text)
            .unwrap_or("public")
            .to_owned(),
        batch: node
            .get("batch")
            .and_then(Node::integer)
            .and_then(|n| u64::try_from(n).ok())
            .unwrap_or(10_000),
        rule: rule?,
    })
}

/// Retention must be short against the arm, or the control grows for most of it.
fn retention(name: &str, node: &Node, schedule: &Schedule, checker: &mut Checker<'_>) {
    let (Some(text), Some(duration)) = (node.text(), schedule.common_time()) else {
        return;
    };
    for (range, interval) in intervals(text) {
        if duration >= Duration::from_secs(1) && interval > duration.div_f64(10.0) {
            checker.warning(
                checker.inside(node, range),
                format!(
                    "table `{name}` keeps rows for {}, more than a tenth of an arm of {}",
                    write_duration(interval),
                    write_duration(duration)
                ),
                "the pruned arm grows until the first rows are old enough: shorten the interval or lengthen the arm",
            );
        }
    }
}

/// Intervals in an SQL condition, as PostgreSQL writes them: `interval '3 seconds'`, `'1 hour'::interval`.
fn intervals(sql: &str) -> Vec<(std::ops::Range<usize>, Duration)> {
    let Ok(pattern) = Regex::new(r"(?i)interval\s*'([^']*)'|'([^']*)'\s*::\s*interval") else {
        return Vec::new();
    };
    pattern
        .captures_iter(sql)
        .filter_map(|found| {
            let text = found.get(1).or(found.get(2))?;
            Some((text.range(), interval(text.as_str())?))
        })
        .collect()
}

fn interval(text: &str) -> Option<Duration> {
    let mut seconds = 0.0;
    let mut words = text.split_whitespace();
    while let Some(word) = words.next() {
        if let [h, m, s] = word.split(':').collect::<Vec<_>>().as_slice() {
            seconds += h.parse::<f64>().ok()? * 3600.0
                + m.parse::<f64>().ok()? * 60.0
                + s.parse::<f64>().ok()?;
            continue;
        }
        let end = word.find(|c: char| c.is_alphabetic()).unwrap_or(word.len());
        let (number, unit) = word.split_at(end);
        let number: f64 = number.parse().ok()?;
        let unit = if unit.is_empty() {
            words.next().unwrap_or("s")
        } else {
            unit
        };
        let unit = unit.to_ascii_lowercase();
        let length = match unit
            .strip_suffix('s')
            .filter(|_| unit != "ms")
            .unwrap_or(&unit)
        {
            "" | "second" | "sec" => 1.0,
            "m" | "minute" | "min" => 60.0,
            "h" | "hour" | "hr" => 3600.0,
            "d" | "day" => 86_400.0,
            "w" | "week" => 604_800.0,
            "ms" | "millisecond" => 0.001,
            "mon" | "month" => 2_592_000.0,
            "y" | "year" => 31_557_600.0,
            _ => return None,
        };
        seconds += number * length;
    }
    Duration::try_from_secs_f64(seconds).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn intervals_read_as_postgresql_writes_them() {
        let seconds = |sql: &str| intervals(sql).first().map(|(_, d)| d.as_secs_f64());
        for (sql, expected) in [
            ("at < now() - interval '3 seconds'", Some(3.0)),
            ("at < now() - INTERVAL'1 hour 30 min'", Some(5400.0)),
            ("at < now() - '00:01:00'::interval", Some(60.0)),
            ("at < now() - '2m'::interval", Some(120.0)),
            ("at < now() - interval '1 fortnight'", None),
            ("status = 'done'", None),
        ] {
            assert_eq!(seconds(sql), expected, "{sql}");
        }
    }
}
