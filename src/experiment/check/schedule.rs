//! `[schedule]`.

use std::time::Duration;

use super::Checker;
use crate::experiment::document::Node;
use crate::experiment::format;
use crate::experiment::{Order, Schedule, Stop};
use crate::name::Arms;
use crate::quantity::write_duration;

const SECOND: Duration = Duration::from_secs(1);

impl Schedule {
    /// Measured time that both arms have; `None` when requests are counted instead.
    pub fn common_time(&self) -> Option<Duration> {
        match self.stop {
            Stop::Duration(durations) => Some(durations.treatment.min(durations.control)),
            Stop::Requests(_) => None,
        }
    }
}

pub(super) fn check(root: &Node, checker: &mut Checker<'_>) -> Schedule {
    let empty = Node::empty();
    let table = root.table("schedule").unwrap_or(&empty);
    let stop = stop(
        table,
        root.table("schedule")
            .is_some_and(|t| !format::SCHEDULE.has_unknown(t)),
        checker,
    );
    let common = match stop {
        Stop::Duration(durations) => Some(durations.treatment.min(durations.control)),
        Stop::Requests(_) => None,
    };
    let length = common.unwrap_or(Duration::from_secs(600));
    let window = window(table, common, checker);
    let default_sample = if length <= Duration::from_secs(600) {
        1
    } else {
        60
    };
    let sample = table
        .get("sample")
        .and_then(Node::duration)
        .unwrap_or(Duration::from_secs(default_sample));
    if let Some(node) = table.get("sample").filter(|n| n.duration().is_some()) {
        if sample < Duration::from_millis(100) {
            checker.error(
                node.span.clone(),
                format!("`schedule.sample` is {}", write_duration(sample)),
                "sampling more often than each 100ms disturbs what is measured",
            );
        } else if sample > length && common.is_some() {
            checker.error(
                node.span.clone(),
                "`schedule.sample` is longer than the duration",
                "choose a shorter period",
            );
        }
    }
    let pairs = table.get("pairs").and_then(Node::integer).unwrap_or(1);
    let pairs = u32::try_from(pairs.clamp(1, 1000)).unwrap_or(1);
    Schedule {
        warmup: table
            .get("warmup")
            .and_then(Node::duration)
            .unwrap_or(10 * SECOND),
        stop,
        window,
        sample,
        rest: table
            .get("rest")
            .and_then(Node::duration)
            .unwrap_or(5 * SECOND),
        pairs,
        order: order(table, pairs, checker),
        seed: table
            .get("seed")
            .and_then(Node::integer)
            .and_then(|seed| u64::try_from(seed).ok())
            .unwrap_or(1),
    }
}

fn stop(table: &Node, present: bool, checker: &mut Checker<'_>) -> Stop {
    let duration = table.get("duration");
    let requests = table.entry("requests");
    match (duration, requests) {
        (Some(_), Some(requests)) => checker.error(
            requests.key_span.clone(),
            "`schedule` has both `duration` and `requests`",
            "keep the one that ends an arm",
        ),
        (None, None) if present => checker.error(
            table.span.clone(),
            "`schedule` does not say when an arm ends",
            "add `duration = \"2m\"` (or `requests = 100000`)",
        ),
        _ => {}
    }
    if let (None, Some(requests)) = (duration, requests) {
        let count = requests.node.integer().unwrap_or(1);
        return Stop::Requests(u64::try_from(count).unwrap_or(1));
    }
    let mut time = |node: Option<&Node>| {
        let time = node.and_then(Node::duration);
        if let (Some(node), Some(time)) = (node, time)
            && time < SECOND
        {
            checker.error(
                node.span.clone(),
                format!("an arm of {} measures nothing", write_duration(time)),
                "write at least \"1s\"; a trend needs \"60s\"",
            );
        }
        time.unwrap_or(120 * SECOND)
    };
    match duration {
        Some(node) if !node.entries().is_empty() => Stop::Duration(Arms {
            treatment: time(node.get("treatment")),
            control: time(node.get("control")),
        }),
        node => {
            let both = time(node);
            Stop::Duration(Arms {
                treatment: both,
                control: both,
            })
        }
    }
}

fn window(table: &Node, common: Option<Duration>, checker: &mut Checker<'_>) -> Duration {
    let default = common.map_or(20 * SECOND, |common| {
        Duration::from_secs((common.as_secs() / 6).max(1))
    });
    let Some(node) = table.get("window") else {
        return default;
    };
    let Some(window) = node.duration() else {
        return default;
    };
    if window < SECOND || window.subsec_nanos() != 0 {
        checker.error(
            node.span.clone(),
            format!("`schedule.window` is {}", write_duration(window)),
            "windows are whole seconds, at least \"1s\"",
        );
        return default;
    }
    if let Some(common) = common
        && window > common
    {
        checker.error(
            node.span.clone(),
            format!(
                "`schedule.window` is {}, longer than an arm of {}",
                write_duration(window),
                write_duration(common)
            ),
            format!("write \"{}\" or leave it out", write_duration(default)),
        );
    }
    window
}

fn order(table: &Node, pairs: u32, checker: &mut Checker<'_>) -> Order {
    let node = table.get("order");
    let written = node.and_then(Node::text);
    let order = match written {
        Some("random") => Order::Random,
        Some("treatment-first") => Order::TreatmentFirst,
        Some("control-first") => Order::ControlFirst,
        Some("abba") => Order::Abba,
        _ if pairs >= 2 => Order::Abba,
        _ => Order::Random,
    };
    let pairs_span = || {
        table
            .get("pairs")
            .map_or(table.span.clone(), |n| n.span.clone())
    };
    match order {
        Order::Abba if pairs % 2 == 1 => {
            let span = node.map_or_else(pairs_span, |n| n.span.clone());
            checker.error(
                span,
                format!("the order \"abba\" needs an even number of pairs, not {pairs}"),
                format!("write `pairs = {}`, or `order = \"random\"`", pairs + 1),
            );
        }
        Order::TreatmentFirst | Order::ControlFirst if pairs >= 2 => checker.error(
            node.map_or_else(pairs_span, |n| n.span.clone()),
            "with several pairs a fixed order lets a drift of the machine pass for a difference",
            "write \"abba\" (the default) or \"random\"",
        ),
        _ => {}
    }
    order
}
