//! Words used, in one sentence each.

use super::Line;
use crate::analysis::Summary;

/// The terms that this report uses.
pub(super) fn terms(summary: &Summary) -> Vec<Line> {
    let mut terms = about_requests();
    if summary.setup.closed_loop {
        terms.push((
            "closed loop",
            "Each client sends its next request only after the last was answered, so a slow server is asked less often.",
        ));
    } else {
        terms.push((
            "open loop",
            "Requests are due at their own times, whether earlier ones were answered or not; latency counts from when they were due.",
        ));
    }
    terms.extend(about_verdicts(summary));
    terms.extend(about_bad_seconds(summary));
    terms.extend(about_series(summary));
    terms.extend(about_the_driver(summary));
    if summary.between.is_some() {
        terms.push((
            "run-to-run standard deviation",
            "How much the same figure differs between runs of the very same set-up; a difference between arms must stand out from it.",
        ));
    }
    if summary.probe.is_some() {
        terms.push((
            "knee",
            "The number of clients from which on more of them bring no more throughput, only longer waits.",
        ));
    }
    if !summary.micro.is_empty() {
        terms.push((
            "counted call",
            "Something too small for a request, done n times by a program of its own and timed against the same loop without it.",
        ));
    }
    terms
        .into_iter()
        .map(|(term, sentence)| Line::new(term, sentence))
        .collect()
}

type Term = (&'static str, &'static str);

fn about_requests() -> Vec<Term> {
    vec![
        (
            "arm",
            "One of the two set-ups that are compared: the treatment, whose behaviour is in question, and the control.",
        ),
        ("step", "One kind of request of the workload."),
        (
            "ok request",
            "A request that was answered in whole, with the status and content that its step expects.",
        ),
        (
            "failed request",
            "A request with any other end; each has exactly one class, such as refused, timeout or status_5xx.",
        ),
        (
            "cut",
            "In flight when the arm ended: neither ok nor failed.",
        ),
        ("ok/s", "Ok requests a second (throughput)."),
        (
            "p50, p99, max",
            "Half of the requests took at most p50, 99 of 100 at most p99, and the slowest took max.",
        ),
        (
            "window",
            "A stretch of the measured time for which one row is printed; its percentiles come from merged histograms, never from averages.",
        ),
    ]
}

fn about_verdicts(summary: &Summary) -> Vec<Term> {
    let mut terms = vec![
        (
            "margin",
            "How much a series may move and still be called flat; it was declared before the run.",
        ),
        (
            "flat",
            "The whole 90 % interval of the change lies inside the margin.",
        ),
        (
            "falls, rises",
            "The change is beyond the margin: its whole 95 % interval is, or the last third of the run lies apart from the first by more than it.",
        ),
        (
            "unclear",
            "Neither could be shown; it is not the same as flat.",
        ),
        (
            "interval",
            "The range of changes that are compatible with the data at the stated level.",
        ),
        (
            "not observed",
            "No measurement exists, so nothing is concluded; it never counts as a pass.",
        ),
        (
            "described, not judged",
            "First and last values are printed as they were read; nothing was declared that would judge them.",
        ),
    ];
    if !summary.criteria.is_empty() {
        terms.push((
            "criterion",
            "A condition written before the run that must hold; the exit code tells whether all do.",
        ));
    }
    if !summary.explanations.is_empty() {
        terms.extend([
            (
                "explanation",
                "A story written before the run, with the trends that it predicts.",
            ),
            (
                "consistent",
                "An explanation none of whose predictions was contradicted; others may be consistent too.",
            ),
            (
                "refuted",
                "An established observation contradicts the statement.",
            ),
        ]);
    }
    terms.push((
        "gate",
        "A check of the measurement itself; when it fails, the claims that rest on it are blocked.",
    ));
    terms
}

fn about_bad_seconds(summary: &Summary) -> Vec<Term> {
    let mut terms = vec![
        ("bad second", "A second with at least one failed request."),
        (
            "slow second",
            "A second below half of the median throughput of the arm's seconds with the same declared load.",
        ),
    ];
    let arms = || summary.arms.iter().filter_map(|(_, seen)| seen.as_ref());
    if arms().any(|seen| !seen.episodes.is_empty()) {
        terms.push((
            "episode",
            "Bad or slow seconds less than five seconds apart, taken together.",
        ));
    }
    terms
}

fn about_series(summary: &Summary) -> Vec<Term> {
    let sampled = |wanted: &str| {
        let arms = summary.arms.iter().filter_map(|(_, seen)| seen.as_ref());
        arms.flat_map(|seen| &seen.series)
            .any(|series| series.name.ends_with(wanted))
    };
    [
        (
            ".memory.rss",
            "memory.rss",
            "Resident memory summed over the service's processes; pages that they share are counted in each.",
        ),
        (
            ".memory.pss",
            "memory.pss",
            "Resident memory in which a shared page is divided among those who share it.",
        ),
        (
            ".memory.cgroup",
            "memory.cgroup",
            "What the kernel charges to the service as a group, file cache included.",
        ),
        (
            ".cpu_ms_per_request",
            "cpu_ms_per_request",
            "Processor time of the service's processes divided by the requests completed in the same time.",
        ),
        (
            ".sql_per_request",
            "sql_per_request",
            "Statements that the database executed divided by the requests completed in the same time.",
        ),
        (
            ".descriptors",
            "descriptors",
            "Files and connections that the service's processes hold open.",
        ),
        (
            "host.other_cpu",
            "host.other_cpu",
            "Cores used by what is neither the deployment nor the load driver.",
        ),
        (
            "host.steal",
            "host.steal",
            "Cores that the hypervisor gave to others while this machine wanted them.",
        ),
    ]
    .into_iter()
    .filter(|(suffix, _, _)| sampled(suffix))
    .map(|(_, term, sentence)| (term, sentence))
    .collect()
}

fn about_the_driver(summary: &Summary) -> Vec<Term> {
    let mut arms = summary.arms.iter().filter_map(|(_, seen)| seen.as_ref());
    if arms.all(|seen| seen.littles.is_none()) {
        return Vec::new();
    }
    vec![
        (
            "client time accounted for",
            "Time that the clients spent in requests, thinking, connecting, pausing and in their own work, divided by the number of clients times the measured time: 1 when nothing is missing.",
        ),
        (
            "request-seconds lost to stalls",
            "Time that clients stood waiting in seconds far below the usual throughput of the arm; a stall is seen once a client.",
        ),
    ]
}
