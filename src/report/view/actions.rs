//! Tables about actions: what each did, how it was recovered from, what memory did around it, and the starts it led to.

use super::arms::by_class;
use super::{Kind, Table, arm_figure};
use crate::analysis::Summary;
use crate::analysis::summary::{ActionResult, FigureValue};
use crate::name::Arm;
use crate::report::words;

/// The first execution of each action in each arm, in the order of the summary.
fn first_of_each(summary: &Summary) -> Vec<&ActionResult> {
    let mut seen: Vec<&ActionResult> = Vec::new();
    for action in &summary.actions {
        if !seen
            .iter()
            .any(|known| known.name == action.name && known.arm == action.arm)
        {
            seen.push(action);
        }
    }
    seen
}

/// A figure of an action in an arm.
fn of(summary: &Summary, action: &ActionResult, figure: &str, unit: &str) -> String {
    // Summaries of before actions bore the name that they have in figures.
    let own = if action.figure.is_empty() {
        &action.name
    } else {
        &action.figure
    };
    arm_figure(
        summary,
        action.arm,
        &format!("actions.{own}.{figure}"),
        unit,
    )
}

/// Whether an action is a burst of clients: only that has a throughput of its own.
fn is_burst(action: &ActionResult) -> bool {
    action.throughput.is_some()
}

pub(super) fn totals(summary: &Summary) -> Option<Table> {
    let mut table = Table::new(
        "Actions, all executions of an arm together",
        &[
            ("action", Kind::Text),
            ("arm", Kind::Text),
            ("done", Kind::Number),
            ("failed", Kind::Number),
            ("ok answer again after, mean ms", Kind::Number),
            ("median ms", Kind::Number),
            ("longest ms", Kind::Number),
            ("failed requests", Kind::Number),
            ("slow seconds", Kind::Number),
        ],
    );
    for action in first_of_each(summary) {
        let recovery = |figure: &str| match is_burst(action) {
            true => "–".to_owned(),
            false => of(summary, action, figure, ""),
        };
        table.rows.push(vec![
            action.name.clone(),
            action.arm.to_string(),
            of(summary, action, "done", ""),
            of(summary, action, "failed", ""),
            recovery("recovery_ms"),
            recovery("recovery_ms.p50"),
            recovery("recovery_ms.max"),
            of(summary, action, "failed_requests", ""),
            of(summary, action, "slow_seconds", ""),
        ]);
    }
    table.filled()
}

pub(super) fn executions(summary: &Summary) -> Option<Table> {
    let bursts = summary.actions.iter().any(is_burst);
    let mut columns = vec![
        ("action", Kind::Text),
        ("arm", Kind::Text),
        ("pair", Kind::Number),
        ("from–to", Kind::Text),
        ("result", Kind::Text),
        ("ok answer again after ms", Kind::Number),
        ("failed requests", Kind::Text),
        ("slow seconds", Kind::Number),
    ];
    if bursts {
        columns.push(("ok/s while it lasted", Kind::Number));
    }
    let mut table = Table::new("Executions of actions", &columns);
    for action in &summary.actions {
        let result = if action.ok { "done" } else { "failed" };
        let result = if action.detail.is_empty() {
            result.to_owned()
        } else {
            format!("{result}: {}", action.detail)
        };
        let recovery = match (is_burst(action), action.recovery_ms) {
            (true, _) => "–".to_owned(),
            (false, Some(0.0)) => "not disturbed".to_owned(),
            (false, ms) => words::maybe(ms, ""),
        };
        let mut row = vec![
            action.name.clone(),
            action.arm.to_string(),
            action.pair.to_string(),
            format!(
                "{}–{}",
                words::clock(action.at_s),
                words::clock(action.ended_s)
            ),
            result,
            recovery,
            by_class(&action.failed),
            words::count(action.slow_seconds),
        ];
        if bursts {
            row.push(
                action
                    .throughput
                    .map_or_else(|| "–".to_owned(), words::number),
            );
        }
        table.rows.push(row);
    }
    table.thinned("executions").filled()
}

pub(super) fn memory(summary: &Summary) -> Option<Table> {
    let mut table = Table::new(
        "Memory around actions: before the first execution, after the last, and what each changed on average",
        &[
            ("action", Kind::Text),
            ("arm", Kind::Text),
            ("memory", Kind::Code),
            ("executions", Kind::Number),
            ("before the first MiB", Kind::Number),
            ("most MiB", Kind::Number),
            ("after the last MiB", Kind::Number),
            ("change an execution MiB", Kind::Number),
            ("came back", Kind::Number),
        ],
    );
    for action in first_of_each(summary) {
        for instrument in ["rss", "cgroup"] {
            let around: Vec<_> = summary
                .actions
                .iter()
                .filter(|other| other.name == action.name && other.arm == action.arm)
                .flat_map(|other| &other.memory)
                .filter(|memory| memory.instrument == instrument)
                .collect();
            let (Some(first), Some(last)) = (around.first(), around.last()) else {
                continue;
            };
            let most = around
                .iter()
                .map(|m| m.most)
                .fold(f64::NEG_INFINITY, f64::max);
            table.rows.push(vec![
                action.name.clone(),
                action.arm.to_string(),
                format!("{}.memory.{instrument}", first.service),
                words::count(around.len() as u64),
                words::number(first.before),
                words::number(most),
                words::number(last.after),
                of(summary, action, &format!("{instrument}_change"), ""),
                of(summary, action, &format!("{instrument}_returned"), "share"),
            ]);
        }
    }
    table.filled()
}

/// Services that were started more than once in some arm.
pub(super) fn starts(summary: &Summary) -> Option<Table> {
    let mut table = Table::new(
        "Time from a start until ready, over all starts of an arm",
        &[
            ("service", Kind::Text),
            ("arm", Kind::Text),
            ("restarts", Kind::Number),
            ("least ms", Kind::Number),
            ("median ms", Kind::Number),
            ("p90 ms", Kind::Number),
            ("most ms", Kind::Number),
            ("mean ms", Kind::Number),
        ],
    );
    for service in &summary.setup.services {
        let figure = |rest: &str| format!("services.{}.{rest}", service.service);
        let restarted = |arm: Arm| {
            matches!(
                summary.figures.get(&format!("{arm}.{}", figure("restarts"))),
                Some(FigureValue::Number(n)) if *n > 0.0
            )
        };
        if !Arm::BOTH.into_iter().any(restarted) {
            continue;
        }
        for arm in Arm::BOTH {
            let quantile = |which: &str| {
                let name = figure(&format!("ready_ms.{which}"));
                match summary.figures.contains_key(&format!("{arm}.{name}")) {
                    true => arm_figure(summary, arm, &name, ""),
                    false => "n too small".to_owned(),
                }
            };
            table.rows.push(vec![
                service.service.clone(),
                arm.to_string(),
                arm_figure(summary, arm, &figure("restarts"), ""),
                quantile("min"),
                quantile("p50"),
                quantile("p90"),
                quantile("max"),
                arm_figure(summary, arm, &figure("ready_ms"), ""),
            ]);
        }
    }
    table.filled()
}

/// What each action did, a sentence each for both arms.
pub(super) fn sentences(summary: &Summary) -> Vec<String> {
    let firsts = first_of_each(summary);
    let mut names: Vec<&str> = Vec::new();
    for action in &firsts {
        if !names.contains(&action.name.as_str()) {
            names.push(&action.name);
        }
    }
    names
        .into_iter()
        .map(|name| {
            let arms: Vec<String> = firsts
                .iter()
                .filter(|action| action.name == name)
                .map(|action| format!("in the {} {}", action.arm, told(summary, action)))
                .collect();
            format!("The action \"{name}\": {}.", arms.join("; "))
        })
        .collect()
}

/// One action in one arm.
fn told(summary: &Summary, action: &ActionResult) -> String {
    let number = |figure: &str| {
        let own = if action.figure.is_empty() {
            &action.name
        } else {
            &action.figure
        };
        match summary
            .figures
            .get(&format!("{}.actions.{own}.{figure}", action.arm))
        {
            Some(FigureValue::Number(number)) => Some(*number),
            _ => None,
        }
    };
    let ms = |value: f64| words::duration(value / 1e3);
    let times = |figure: &str| match of(summary, action, figure, "") {
        once if once == "1" => "once".to_owned(),
        many => format!("{many} times"),
    };
    let mut parts = vec![match number("failed") {
        Some(failed) if failed > 0.0 => {
            format!("done {}, failed {}", times("done"), times("failed"))
        }
        _ => format!("done {}", times("done")),
    }];
    if is_burst(action) {
        parts.push(format!(
            "{} ok requests a second while it lasted",
            of(summary, action, "throughput", "")
        ));
    } else {
        parts.push(
            match (number("recovery_ms.p50"), number("recovery_ms.max")) {
                (_, Some(0.0)) => "no request was disturbed".to_owned(),
                (Some(median), Some(most)) => format!(
                    "an ok answer came again after {} in the middle, {} at most",
                    ms(median),
                    ms(most)
                ),
                (None, Some(most)) => {
                    format!("an ok answer came again after {} at most", ms(most))
                }
                _ => "an ok answer after each was not observed".to_owned(),
            },
        );
        if number("failed_requests").is_some_and(|failed| failed > 0.0) {
            parts.push(format!(
                "{} requests failed meanwhile",
                of(summary, action, "failed_requests", "")
            ));
        }
    }
    let service = action.memory.first().map(|memory| &memory.service);
    if let (Some(service), Some(change)) = (service, number("rss_change")) {
        let sign = if change > 0.0 { "+" } else { "" };
        let each = if number("done") == Some(1.0) {
            ""
        } else {
            " each time"
        };
        parts.push(format!(
            "resident memory of {service} changed by {sign}{} MiB{each}",
            words::number(change)
        ));
    }
    parts.join(", ")
}
