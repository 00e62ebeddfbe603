//! Every figure there is, as name patterns.
//!
//! A pattern's `<word>` stands for one segment that the experiment declares (a service, a step) or that a fixed list holds (a
//! failure class). An entry marked `series` also has `.first .last .min .max .change .trend`.

use super::{Direction, Kind};

/// One line of the catalogue.
#[derive(Debug, Clone, Copy)]
pub struct Entry {
    /// Its name without the arm; `<word>` stands for one segment.
    pub pattern: &'static str,
    /// What its value is.
    pub kind: Kind,
    /// Unit of its value; empty for counts and words.
    pub unit: &'static str,
    /// Which way is better.
    pub direction: Direction,
    /// Whether it is a sampled series, with first, last, min, max, change and trend.
    pub series: bool,
    /// Printed in texts, never argued with in an expression.
    pub text_only: bool,
    /// What it means, in one line.
    pub meaning: &'static str,
}

/// What a series has beside its own value: suffix, kind, meaning.
pub const SERIES: [(&str, Kind, &str); 6] = [
    ("first", Kind::Number, "first reading of the measured time"),
    ("last", Kind::Number, "last reading of the measured time"),
    ("min", Kind::Number, "smallest reading"),
    ("max", Kind::Number, "largest reading"),
    ("change", Kind::Number, "last minus first"),
    ("trend", Kind::Word, "flat, falls, rises or unclear"),
];

/// The words that a trend can be.
pub const TREND_WORDS: [&str; 4] = ["flat", "falls", "rises", "unclear"];

const fn number(
    pattern: &'static str,
    unit: &'static str,
    direction: Direction,
    meaning: &'static str,
) -> Entry {
    Entry {
        pattern,
        kind: Kind::Number,
        unit,
        direction,
        series: false,
        text_only: false,
        meaning,
    }
}

const fn series(
    pattern: &'static str,
    unit: &'static str,
    direction: Direction,
    meaning: &'static str,
) -> Entry {
    Entry {
        series: true,
        ..number(pattern, unit, direction, meaning)
    }
}

const fn described(pattern: &'static str, unit: &'static str, meaning: &'static str) -> Entry {
    Entry {
        text_only: true,
        ..number(pattern, unit, Direction::Neither, meaning)
    }
}

use Direction::{Higher, Lower, Neither};

/// Figures of one arm: written after `treatment.`, `control.` or, in a criterion, `arm.`.
#[rustfmt::skip]
pub const OF_AN_ARM: &[Entry] = &[
    number("seconds", "s", Neither, "measured time"),
    number("requests.sent", "", Neither, "requests whose sending began: ok + failed + cut"),
    number("requests.ok", "", Higher, "whole answers as the step expects"),
    number("requests.failed", "", Lower, "failed requests of all classes"),
    number("requests.cut", "", Neither, "in flight when the arm ended; never called an error"),
    number("requests.not_sent", "", Lower, "open loop: due, but not sent in time"),
    number("requests.redrawn", "", Neither, "steps drawn again since a kept value was missing"),
    number("requests.stale_connections", "", Neither, "idle connections that the peer closed"),
    number("requests.steps.<step>.ok", "", Higher, "ok requests of one step"),
    number("throughput.mean", "ok per second", Higher, "ok requests a second, whole arm"),
    number("throughput.first", "ok per second", Higher, "ok requests a second, first window"),
    number("throughput.last", "ok per second", Higher, "ok requests a second, last window"),
    Entry { kind: Kind::Word, ..number("throughput.trend", "", Neither, "flat, falls, rises or unclear") },
    number("throughput.fall", "share", Lower, "1 - last / first"),
    number("throughput.fall_low", "share", Lower, "lower end of fall's interval"),
    number("throughput.fall_high", "share", Lower, "upper end of fall's interval"),
    number("throughput.slope", "share per hour", Higher, "Prais-Winsten slope"),
    number("throughput.slope_low", "share per hour", Higher, "lower end of slope's interval"),
    number("throughput.slope_high", "share per hour", Higher, "upper end of slope's interval"),
    described("throughput.described.theil_sen", "share per hour", "Theil-Sen slope, described only"),
    described("throughput.described.mann_kendall_p", "", "Mann-Kendall p with the AR(1) variance factor, described only"),
    described("throughput.described.change_point_s", "s", "one change point (PELT), described only"),
    described("throughput.described.last_quarter_to_first", "ratio", "last quarter / first quarter, described only"),
    number("latency.<latency>", "ms", Lower, "of completed requests, from merged histograms"),
    number("latency.<latency>_first", "ms", Lower, "the same, first window"),
    number("latency.<latency>_last", "ms", Lower, "the same, last window"),
    number("latency.steps.<step>.<latency>", "ms", Lower, "of one step"),
    number("failures.<class>", "", Lower, "failed requests of one class; status_503 is also in status_5xx"),
    number("bad_seconds", "s", Lower, "seconds with a failed request"),
    number("slow_seconds", "s", Lower, "seconds below half of the arm's median throughput"),
    Entry { kind: Kind::List, text_only: true, ..number("windows", "", Neither, "from, to, throughput, p50, p99, max, failed of each window") },
    series("services.<started>.cpu_ms_per_request", "ms", Lower, "user + system of the process tree / completed requests"),
    series("services.<started>.memory.rss", "MiB", Lower, "resident set of the process tree; alone: mean"),
    series("services.<started>.memory.pss", "MiB", Lower, "proportional set of the process tree; alone: mean"),
    series("services.<started>.memory.cgroup", "MiB", Lower, "what its cgroup is charged; alone: mean"),
    series("services.<started>.descriptors", "", Lower, "open descriptors of the process tree; alone: mean"),
    series("services.<started>.threads", "", Lower, "threads of the process tree; alone: mean"),
    series("services.<started>.oom_kills", "", Lower, "processes of it that the kernel killed for memory; alone: in all"),
    series("services.<started>.throttled_s", "s", Lower, "time for which its limit on processors held it back; alone: in all"),
    number("services.<service>.ready_ms", "ms", Lower, "time to readiness, mean of all starts"),
    number("services.<service>.ready_ms.<spread>", "ms", Lower, "its spread over all starts: min, p50, p90, max"),
    number("services.<started>.restarts", "", Neither, "starts after the first"),
    number("services.<service>.log.<pattern>", "", Lower, "lines of its log that match"),
    series("services.<service>.status.<gauge>", "as served", Neither, "a level of its status page; alone: mean"),
    number("services.<service>.status.<counter>", "as served", Neither, "increase of a total of its status page"),
    number("services.<service>.status.<counter>.per_request", "as served", Neither, "that increase / completed requests"),
    series("services.<postgres>.sql_per_request", "", Lower, "statements / completed requests"),
    series("services.<postgres>.table.<table>.rows", "rows", Neither, "live rows of a table; alone: mean"),
    series("services.<postgres>.table.<table>.dead", "rows", Lower, "dead rows of a table; alone: mean"),
    series("services.<postgres>.table.<table>.bytes", "bytes", Lower, "a table with its indexes; alone: mean"),
    series("services.<postgres>.wal_bytes", "bytes", Lower, "WAL written; alone: in all"),
    series("services.<postgres>.checkpoints", "", Lower, "checkpoints; alone: in all"),
    series("services.<postgres>.autovacuums", "", Neither, "autovacuums; alone: in all"),
    series("services.<postgres>.oldest_xmin_age", "", Lower, "transactions that the oldest snapshot holds back; alone: mean"),
    series("services.<postgres>.cache_hit", "share", Higher, "block reads answered by shared buffers; alone: whole arm"),
    series("host.busy", "cores", Neither, "cores busy; alone: mean"),
    series("host.steal", "cores", Lower, "cores taken by the hypervisor; alone: mean"),
    series("host.other_cpu", "cores", Lower, "cores used by neither the deployment nor the runner; alone: mean"),
    series("host.pressure.cpu", "share", Lower, "share of time in which a task waited for a processor; alone: mean"),
    series("host.pressure.io", "share", Lower, "the same for block I/O"),
    series("host.pressure.memory", "share", Lower, "the same for memory"),
    number("pruned.<pruned>", "rows", Neither, "rows that pruning deleted"),
    number("prune_ms", "ms", Neither, "time that pruning took"),
    number("actions.<action>.done", "", Higher, "executions that succeeded"),
    number("actions.<action>.failed", "", Lower, "executions that failed"),
    number("actions.<action>.recovery_ms", "ms", Lower, "from the action's start until an ok answer came again, mean of its executions"),
    number("actions.<action>.recovery_ms.<spread>", "ms", Lower, "its spread over the executions: min, p50, p90, max"),
    number("actions.<action>.failed_requests", "", Lower, "requests that failed within recovery"),
    number("actions.<action>.slow_seconds", "s", Lower, "seconds of its executions' recovery below half of the throughput before"),
    number("actions.<action>.throughput", "ok per second", Higher, "ok requests a second while a burst of clients lasts"),
    number("actions.<action>.rss_change", "MiB", Lower, "change of the service's resident memory from before an execution to before the next, mean"),
    number("actions.<action>.rss_returned", "share", Higher, "share of what they added to resident memory at most that came back by the end"),
    number("actions.<action>.cgroup_change", "MiB", Lower, "the same of what its cgroup is charged"),
    number("actions.<action>.cgroup_returned", "share", Higher, "the same of what its cgroup is charged"),
];

/// Figures that belong to no single arm.
#[rustfmt::skip]
pub const OF_NO_ARM: &[Entry] = &[
    number("ratio.throughput", "ratio", Neither, "control / treatment"),
    number("ratio.throughput.low", "ratio", Neither, "lower end of its interval"),
    number("ratio.throughput.high", "ratio", Neither, "upper end of its interval"),
    number("probe.knee", "clients", Higher, "clients at the saturation knee"),
    number("probe.at_knee", "ok per second", Higher, "throughput at the knee"),
    number("micro.<micro>.ns_per_call", "ns", Lower, "a counted call, without the empty loop"),
    number("margin", "share", Neither, "what \"flat\" may move, as declared"),
];

/// What `<latency>` may be.
pub const LATENCIES: [&str; 7] = ["mean", "p50", "p90", "p95", "p99", "p999", "max"];

/// What `<spread>` may be: order statistics of a few values.
pub const SPREAD: [&str; 4] = ["min", "p50", "p90", "max"];

/// What `<class>` may be: the words of the classes of failed requests.
pub const FAILURE_CLASSES: [&str; 12] = [
    "refused",
    "connect_timeout",
    "reset",
    "closed",
    "timeout",
    "malformed",
    "status_4xx",
    "status_5xx",
    "status_503",
    "unexpected_status",
    "unexpected_body",
    "client_side",
];
