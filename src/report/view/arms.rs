//! Tables about what each arm did: windows, services, bad seconds, steps, the runner itself.

use std::collections::BTreeMap;

use super::{Kind, Table, arm_figure};
use crate::analysis::Summary;
use crate::analysis::summary::{
    ArmSummary, Episode, FigureValue, Littles, Sampling, SeriesSummary, StepLatency, WindowRow,
};
use crate::measure::{FailureClass, HOST, RUNNER};
use crate::name::{Arm, Arms};
use crate::report::words;

/// How a figure of an account is written.
type Written<T> = fn(&T) -> String;

/// Slowest steps that are shown.
const MOST_STEPS: usize = 3;
/// Examples of failed requests that are shown for an arm.
const MOST_EXAMPLES: usize = 5;

pub(super) fn windows(summary: &Summary) -> Option<Table> {
    let mut table = Table::new(
        "Windows of both arms side by side",
        &[
            ("window", Kind::Text),
            ("treatment ok/s", Kind::Number),
            ("p50 ms", Kind::Number),
            ("p99 ms", Kind::Number),
            ("max ms", Kind::Number),
            ("failed", Kind::Number),
            ("control ok/s", Kind::Number),
            ("p50 ms", Kind::Number),
            ("p99 ms", Kind::Number),
            ("max ms", Kind::Number),
            ("failed", Kind::Number),
        ],
    );
    let of = |arm: Arm| {
        summary
            .arms
            .get(arm)
            .as_ref()
            .map_or(&[][..], |a| &a.windows)
    };
    let (treatment, control) = (of(Arm::Treatment), of(Arm::Control));
    for i in 0..treatment.len().max(control.len()) {
        let (left, right) = (treatment.get(i), control.get(i));
        let Some(window) = left.or(right) else {
            continue;
        };
        let mut row = vec![format!(
            "{}–{}",
            words::clock(window.from_s),
            words::clock(window.to_s)
        )];
        row.extend(window_cells(left));
        row.extend(window_cells(right));
        table.rows.push(row);
    }
    table.thinned("windows").filled()
}

fn window_cells(window: Option<&WindowRow>) -> [String; 5] {
    let Some(window) = window else {
        return std::array::from_fn(|_| "–".to_owned());
    };
    let quantile =
        |value: Option<f64>| value.map_or_else(|| "n too small".to_owned(), words::number);
    [
        words::number(window.throughput),
        quantile(window.p50),
        quantile(window.p99),
        window
            .max
            .map_or_else(|| words::NOT_OBSERVED.to_owned(), words::number),
        words::count(window.failed),
    ]
}

fn is_own(name: &str) -> bool {
    let name = name.strip_prefix("services.").unwrap_or(name);
    ["host.", HOST, RUNNER, "runner."]
        .iter()
        .any(|own| name.starts_with(own))
}

/// Whether a series is shown: what a reader asks of a service first, and what an explanation speaks of.
fn is_headline(summary: &Summary, name: &str) -> bool {
    const ENDS: [&str; 7] = [
        ".cpu_ms_per_request",
        ".sql_per_request",
        ".memory.rss",
        ".memory.pss",
        ".memory.cgroup",
        ".descriptors",
        ".restarts",
    ];
    let predicted = |name: &str| {
        summary
            .explanations
            .iter()
            .flat_map(|explanation| &explanation.predictions)
            .any(|prediction| prediction.figure == name)
    };
    ENDS.iter().any(|end| name.ends_with(end))
        || (name.contains(".table.") && name.ends_with(".rows"))
        || name.contains(".status.") && !is_counter(summary, name)
        || predicted(name)
}

/// Whether a series is the increase of a counter, which says little where its quotient by requests is there too.
fn is_counter(summary: &Summary, name: &str) -> bool {
    let quotient = format!("{name}.per_request");
    let mut series = summary
        .arms
        .iter()
        .flat_map(|(_, seen)| seen.iter().flat_map(|seen| &seen.series));
    series.any(|series| series.name == quotient)
}

pub(super) fn services(summary: &Summary) -> Option<Table> {
    let caption = "Sampled series of both arms";
    let mut table = series(summary, caption, |name| {
        !is_own(name) && is_headline(summary, name)
    })?;
    let all = series(summary, caption, |name| !is_own(name)).map_or(0, |all| all.rows.len());
    let single = "First and last are single readings; a verdict rests on all of them.";
    table.note = Some(if all > table.rows.len() {
        format!(
            "{single} {} of {all} sampled series shown; all are in summary.json.",
            table.rows.len()
        )
    } else {
        single.to_owned()
    });
    Some(table)
}

pub(super) fn runner(summary: &Summary) -> Option<Table> {
    // Counters of CPU time only grow; what the runner took stands in the gates and in the account below.
    let shown = |name: &str| is_own(name) && !name.ends_with("_s");
    let mut table = series(summary, "The runner and the machine", shown)
        .unwrap_or_else(|| series_table("The runner and the machine"));
    let littles = summary
        .arms
        .map(|_, seen| seen.as_ref().and_then(|seen| seen.littles));
    let figures: [(&str, Written<Littles>); 3] = [
        ("client time accounted for", |l| format!("{:.3}", l.ratio)),
        ("load driver's own overhead", |l| words::percent(l.overhead)),
        ("request-seconds lost to stalls", |l| {
            words::number(l.stalled_s)
        }),
    ];
    for (name, format) in figures {
        if littles.iter().all(|(_, littles)| littles.is_none()) {
            break;
        }
        table.rows.push(whole_arm(name, &littles, format));
    }
    let sampling = summary
        .arms
        .map(|_, seen| seen.as_ref().and_then(|seen| seen.sampling));
    let figures: [(&str, Written<Sampling>); 4] = [
        ("readings planned", |s| words::count(s.planned)),
        ("readings taken in their time", |s| words::count(s.taken)),
        ("readings late or not taken", |s| words::count(s.gaps)),
        ("CPU seconds of sampling, warm-up included", |s| {
            words::number(s.cost_cpu_s)
        }),
    ];
    if sampling.iter().any(|(_, sampling)| sampling.is_some()) {
        for (name, format) in figures {
            table.rows.push(whole_arm(name, &sampling, format));
        }
    }
    table.filled()
}

/// A row of what holds for the whole arm.
fn whole_arm<T>(name: &str, arms: &Arms<Option<T>>, format: Written<T>) -> Vec<String> {
    let mut row = vec![name.to_owned()];
    for (_, seen) in arms.iter() {
        let value = seen
            .as_ref()
            .map_or_else(|| words::NOT_OBSERVED.to_owned(), format);
        row.extend([value, "–".to_owned(), "whole arm".to_owned()]);
    }
    row
}

fn series_table(caption: &str) -> Table {
    Table::new(
        caption,
        &[
            ("series", Kind::Code),
            ("treatment first", Kind::Number),
            ("last", Kind::Number),
            ("verdict", Kind::Text),
            ("control first", Kind::Number),
            ("last", Kind::Number),
            ("verdict", Kind::Text),
        ],
    )
}

fn series(summary: &Summary, caption: &str, wanted: impl Fn(&str) -> bool) -> Option<Table> {
    let mut table = series_table(caption);
    let mut names: Vec<&str> = Vec::new();
    for (_, seen) in summary.arms.iter() {
        for series in seen.iter().flat_map(|seen| &seen.series) {
            if wanted(&series.name) && !names.contains(&series.name.as_str()) {
                names.push(&series.name);
            }
        }
    }
    for name in names {
        let mut row = vec![name.strip_prefix("services.").unwrap_or(name).to_owned()];
        for (arm, seen) in summary.arms.iter() {
            let found = seen
                .as_ref()
                .and_then(|seen| seen.series.iter().find(|series| series.name == name));
            row.extend(series_cells(summary, name, arm, found));
        }
        table.rows.push(row);
    }
    table.filled()
}

fn series_cells(
    summary: &Summary,
    name: &str,
    arm: Arm,
    found: Option<&SeriesSummary>,
) -> [String; 3] {
    let Some(series) = found else {
        let why = why_not(summary, &format!("{arm}.{name}"));
        return ["–".to_owned(), "–".to_owned(), why];
    };
    // The name of the series says what is counted.
    let unit = match series.unit.as_str() {
        "rows" => "",
        unit => unit,
    };
    let value = |value: f64| words::in_unit(value, unit);
    let verdict = match (&series.trend, &series.not_judged) {
        (Some(trend), _) => words::trend_word(trend),
        (None, Some(why)) if why != "described" => format!("not judged: {}", words::reason(why)),
        (None, _) => "described, not judged".to_owned(),
    };
    [value(series.first), value(series.last), verdict]
}

/// Why a figure is absent, by the longest name that is a prefix of it.
fn why_not(summary: &Summary, name: &str) -> String {
    let found = summary
        .not_observed
        .iter()
        .filter(|(prefix, _)| name.starts_with(prefix.as_str()))
        .max_by_key(|(prefix, _)| prefix.len());
    found.map_or_else(
        || words::NOT_OBSERVED.to_owned(),
        |(_, why)| format!("{}: {why}", words::NOT_OBSERVED),
    )
}

pub(super) fn bad_seconds(summary: &Summary) -> Vec<String> {
    let mut sentences = Vec::new();
    for (arm, seen) in summary.arms.iter() {
        let Some(seen) = seen else {
            sentences.push(format!("The {arm} was not observed."));
            continue;
        };
        if seen.bad_seconds == 0 && seen.slow_seconds == 0 {
            sentences.push(format!(
                "{}: in no second did a request fail, and in none was throughput below half of the arm's median.",
                capital(arm)
            ));
            continue;
        }
        sentences.push(format!(
            "{}: seconds with a failed request: {}; seconds below half of the arm's median throughput: {}. Outside the episodes listed below: {} ok requests in {}, none failed.",
            capital(arm),
            words::count(seen.bad_seconds),
            words::count(seen.slow_seconds),
            words::count(seen.clean_requests),
            words::duration(seen.clean_hours * 3_600.0)
        ));
    }
    sentences
}

fn capital(arm: Arm) -> &'static str {
    match arm {
        Arm::Treatment => "Treatment",
        Arm::Control => "Control",
    }
}

/// Every class that occurred in an arm; requests in flight at the end beside them.
pub(super) fn failures(summary: &Summary) -> Option<Table> {
    let mut table = Table::new(
        "Requests by outcome",
        &[
            ("outcome", Kind::Code),
            ("treatment", Kind::Number),
            ("control", Kind::Number),
        ],
    );
    let is_zero = |name: &str| {
        Arm::BOTH.iter().all(|arm| {
            summary
                .figures
                .get(&format!("{arm}.{name}"))
                .is_none_or(|value| *value == FigureValue::Number(0.0))
        })
    };
    let mut row = |label: &str, name: &str| {
        table.rows.push(vec![
            label.to_owned(),
            arm_figure(summary, Arm::Treatment, name, ""),
            arm_figure(summary, Arm::Control, name, ""),
        ]);
    };
    for total in ["sent", "ok", "failed", "cut"] {
        row(total, &format!("requests.{total}"));
    }
    if !is_zero("requests.not_sent") {
        row("not_sent", "requests.not_sent");
    }
    for class in FailureClass::ALL {
        let name = format!("failures.{class}");
        if !is_zero(&name) {
            row(class.as_str(), &name);
        }
    }
    if summary.arms.iter().all(|(_, seen)| seen.is_none()) {
        return None;
    }
    table.filled()
}

pub(super) fn episodes(summary: &Summary) -> Option<Table> {
    let mut table = Table::new(
        "Episodes of bad seconds",
        &[
            ("arm", Kind::Text),
            ("pair", Kind::Number),
            ("from–to", Kind::Text),
            ("bad seconds", Kind::Number),
            ("failed", Kind::Text),
            ("ok/s inside (median of the arm)", Kind::Text),
            ("what coincided", Kind::Text),
        ],
    );
    for (arm, seen) in summary.arms.iter() {
        for episode in seen.iter().flat_map(|seen| &seen.episodes) {
            table.rows.push(episode_row(arm, episode));
        }
    }
    table.thinned("episodes").filled()
}

fn episode_row(arm: Arm, episode: &Episode) -> Vec<String> {
    let mut beside: Vec<String> = if episode.coincides.is_empty() {
        vec!["unexplained".to_owned()]
    } else {
        episode.coincides.clone()
    };
    beside.extend(episode.beside.iter().cloned());
    vec![
        arm.to_string(),
        episode.pair.to_string(),
        format!(
            "{}–{}",
            words::clock(episode.from_s as f64),
            words::clock(episode.to_s as f64)
        ),
        words::count(episode.bad_seconds),
        by_class(&episode.failed),
        format!(
            "{} ({})",
            words::number(episode.throughput),
            words::number(episode.median_throughput)
        ),
        beside.join("; "),
    ]
}

pub(super) fn by_class(failed: &BTreeMap<String, u64>) -> String {
    if failed.is_empty() {
        return "none".to_owned();
    }
    let parts: Vec<String> = failed
        .iter()
        .map(|(class, n)| format!("{class} {}", words::count(*n)))
        .collect();
    parts.join(", ")
}

pub(super) fn failure_examples(summary: &Summary) -> Option<Table> {
    let mut table = Table::new(
        "First examples of failed requests",
        &[
            ("arm", Kind::Text),
            ("at", Kind::Text),
            ("step", Kind::Code),
            ("class", Kind::Code),
            ("status", Kind::Number),
            ("what was said", Kind::Code),
        ],
    );
    for (arm, seen) in summary.arms.iter() {
        let examples = seen.iter().flat_map(|seen| &seen.failure_examples);
        for example in examples.take(MOST_EXAMPLES) {
            table.rows.push(vec![
                arm.to_string(),
                words::clock(example.at_s),
                example.step.clone(),
                example.class.clone(),
                example
                    .status
                    .map_or_else(|| "–".to_owned(), |status| status.to_string()),
                example.said.clone(),
            ]);
        }
    }
    table.filled()
}

pub(super) fn steps(summary: &Summary) -> Option<Table> {
    let mut table = Table::new(
        "The slowest steps",
        &[
            ("step", Kind::Code),
            ("request", Kind::Code),
            ("treatment ok", Kind::Number),
            ("p50 / p99 / max ms", Kind::Number),
            ("control ok", Kind::Number),
            ("p50 / p99 / max ms", Kind::Number),
        ],
    );
    let worst = |latency: &Option<StepLatency>| {
        latency.map_or(f64::NEG_INFINITY, |l| l.p99.unwrap_or(l.max))
    };
    let mut steps: Vec<_> = summary
        .setup
        .steps
        .iter()
        .filter(|step| step.latency.iter().any(|(_, latency)| latency.is_some()))
        .collect();
    steps.sort_by(|a, b| {
        let key = |step: &crate::analysis::summary::StepSetup| {
            worst(&step.latency.treatment).max(worst(&step.latency.control))
        };
        key(b).total_cmp(&key(a))
    });
    let ok = |ok: Option<u64>| ok.map_or_else(|| words::NOT_OBSERVED.to_owned(), words::count);
    for step in steps.into_iter().take(MOST_STEPS) {
        table.rows.push(vec![
            step.name.clone(),
            step.request.clone(),
            ok(step.ok.treatment),
            latency(step.latency.treatment),
            ok(step.ok.control),
            latency(step.latency.control),
        ]);
    }
    table.filled()
}

fn latency(latency: Option<StepLatency>) -> String {
    let Some(latency) = latency else {
        return words::NOT_OBSERVED.to_owned();
    };
    let quantile =
        |value: Option<f64>| value.map_or_else(|| "n too small".to_owned(), words::number);
    format!(
        "{} / {} / {}",
        quantile(latency.p50),
        quantile(latency.p99),
        words::number(latency.max)
    )
}

/// Both arms, for callers that draw.
pub(in crate::report) fn seen(summary: &Summary) -> Vec<(Arm, &ArmSummary)> {
    summary
        .arms
        .iter()
        .filter_map(|(arm, seen)| seen.as_ref().map(|seen| (arm, seen)))
        .collect()
}
