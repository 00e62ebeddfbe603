//! The data dictionary of a published run: every file and every column, with its unit and meaning.

use std::fmt::Write as _;

use crate::measure::FailureClass;

/// Files of a run's folder.
pub(super) const FILES: [(&str, &str); 21] = [
    (
        "experiment.toml",
        "the experiment file, byte for byte, written before the first request",
    ),
    (
        "manifest.json",
        "what ran: tool, machine, programs with their SHA-256, services and their settings, both arms resolved, realised order",
    ),
    (
        "summary.json",
        "every figure and every verdict of the report, with what it rests on",
    ),
    ("report.md, report.html, charts/", "the report"),
    (
        "report.json",
        "what the report's templates get: ready-made texts",
    ),
    (
        "junit.xml, github-summary.md",
        "short forms of the report for continuous integration",
    ),
    (
        "runs.json",
        "every run of this experiment that was kept when the report was made",
    ),
    (
        "rendered.json",
        "what the report was rendered with: version of the tool, a team's own templates",
    ),
    (
        "null_run.json",
        "figures of the null experiment that the run cites, where there is one",
    ),
    ("notes.jsonl", "the author's remarks, added afterwards"),
    (
        "pairs/NN/ARM/seconds.csv",
        "a row a second of the measured time",
    ),
    (
        "pairs/NN/ARM/warmup.csv",
        "the same for the warm-up, which is never counted",
    ),
    (
        "pairs/NN/ARM/latency.hlog",
        "HdrHistogram interval log (V2), tagged by step, values in microseconds",
    ),
    (
        "pairs/NN/ARM/failures.csv",
        "failed requests, the first of each class",
    ),
    (
        "pairs/NN/ARM/samples.csv",
        "readings of every instrument, in long form",
    ),
    (
        "pairs/NN/ARM/events.jsonl",
        "phases, actions, prunes, starts and ends of services, clock readings; an object a line, its kind in `event`",
    ),
    ("pairs/NN/ARM/logs/", "what each service wrote"),
    (
        "probe.csv",
        "a row a level of the saturation probe, in the order in which they ran",
    ),
    ("micro.csv", "a row a round of counted calls"),
    (
        "logs/",
        "what builds wrote; below probe/ what each service wrote while it was probed",
    ),
    (
        "SHA256SUMS",
        "checksums of every other file: sha256sum -c SHA256SUMS",
    ),
];

/// Columns of seconds.csv and warmup.csv, but for the failure classes and the steps.
pub(super) const SECONDS: [(&str, &str, &str); 30] = [
    (
        "at_s",
        "s",
        "start of the second since the start of the measured time",
    ),
    ("sent", "requests", "begun in this second"),
    (
        "completed",
        "requests",
        "ended in this second with an answer or an error",
    ),
    ("ok", "requests", "answered in whole as their step expects"),
    (
        "cut",
        "requests",
        "in flight when the arm ended: neither ok nor failed",
    ),
    (
        "not_sent",
        "requests",
        "open loop: due, but not sent in time",
    ),
    (
        "redrawn",
        "draws",
        "steps drawn again since a kept value was missing",
    ),
    (
        "stale_connections",
        "connections",
        "idle, closed by the peer before any byte of an answer",
    ),
    ("connects", "connections", "opened"),
    (
        "p50_ms",
        "ms",
        "median latency of completed requests; empty without any",
    ),
    (
        "p99_ms",
        "ms",
        "99th percentile of this second: to look at, never to average",
    ),
    ("max_ms", "ms", "largest latency"),
    ("in_flight", "requests", "in flight at the second's end"),
    (
        "in_flight_s",
        "client-seconds",
        "from the first byte written to the end of the request",
    ),
    ("think_s", "client-seconds", "think time"),
    ("connect_s", "client-seconds", "opening connections"),
    ("pause_s", "client-seconds", "pauses after a failure"),
    (
        "overhead_s",
        "client-seconds",
        "the client's own work between requests",
    ),
    ("driver_cpu_s", "CPU-seconds", "of the busiest load thread"),
    (
        "send_delay_us",
        "us",
        "median delay between the moment a request could be sent and its first byte",
    ),
    (
        "silence_ms",
        "ms",
        "longest time without an ok answer that touches this second, earlier seconds included",
    ),
    (
        "silence_until_ms",
        "ms",
        "millisecond of this second in which it ended; 1000: not in this second",
    ),
    ("busy", "cores", "busy on the host: all but idle and iowait"),
    ("steal", "cores", "taken by the hypervisor"),
    ("iowait", "cores", "idle while waiting for a disk"),
    (
        "other_cpu",
        "cores",
        "busy with what is neither the deployment nor the runner",
    ),
    ("run_queue", "tasks", "ready to run at the second's end"),
    (
        "pressure_cpu",
        "share",
        "of the second in which some task waited for a processor; empty without PSI",
    ),
    ("pressure_io", "share", "the same for block I/O"),
    ("pressure_memory", "share", "the same for memory"),
];

/// Columns of failures.csv.
pub(super) const FAILURES: [(&str, &str, &str); 8] = [
    (
        "at_s",
        "s",
        "end of the request since the start of the measured time",
    ),
    ("step", "", "step of the workload"),
    (
        "class",
        "",
        "the one class of the failure, as the columns of seconds.csv name them",
    ),
    ("status", "", "HTTP status; empty when none came"),
    (
        "latency_ms",
        "ms",
        "until the failure; empty when it has no end of its own",
    ),
    ("received", "bytes", "of the body"),
    (
        "promised",
        "bytes",
        "of the body, by Content-Length; empty without",
    ),
    ("said", "", "first bytes of what was said"),
];

/// Columns of samples.csv.
pub(super) const SAMPLES: [(&str, &str, &str); 6] = [
    (
        "at_s",
        "s",
        "since the start of the measured time; negative during warm-up",
    ),
    (
        "service",
        "",
        "the service; -host and -runner are the machine and the runner",
    ),
    ("metric", "", "name of the figure, without services.NAME."),
    ("unit", "", "unit of the value"),
    (
        "value",
        "",
        "the reading; counters are cumulative within an epoch",
    ),
    (
        "epoch",
        "",
        "which life of the process: 0, and one more with each restart",
    ),
];

/// Columns of probe.csv, but for the failure classes and the services.
pub(super) const PROBE: [(&str, &str, &str); 14] = [
    ("place", "", "from 0, in the order in which levels ran"),
    ("clients", "", "closed-loop clients"),
    (
        "repeated",
        "",
        "true: the first level once more, at the end",
    ),
    ("seconds", "s", "measured time of the level"),
    ("sent", "requests", "begun"),
    ("ok", "requests", "answered in whole as their step expects"),
    (
        "cut",
        "requests",
        "in flight when the level ended: neither ok nor failed",
    ),
    (
        "p50_ms",
        "ms",
        "median latency of completed requests; empty when there are too few, >= when those beyond it timed out",
    ),
    ("p95_ms", "ms", "95th percentile, likewise"),
    ("p99_ms", "ms", "99th percentile, likewise"),
    ("max_ms", "ms", "largest latency"),
    (
        "driver_share",
        "cores",
        "the busiest load thread's largest use of a processor in a second",
    ),
    ("send_delay_us", "us", "median delay before sending"),
    (
        "driver_cpu_us",
        "us",
        "processor time of the load threads a completed request",
    ),
];

/// Columns of probe.csv for each service.
const PROBE_SERVICES: [(&str, &str, &str); 2] = [
    (
        "cpu_cores_SERVICE",
        "cores",
        "user and system time of the service's processes a second; empty when not observed",
    ),
    (
        "memory_mib_SERVICE",
        "MiB",
        "largest reading of its resident memory; of PostgreSQL the anonymous part, since its processes share the rest",
    ),
];

/// Columns of micro.csv.
pub(super) const MICRO: [(&str, &str, &str); 7] = [
    ("name", "", "as the experiment file names it"),
    ("round", "", "from 0"),
    ("baseline_first", "", "true: the empty loop ran first"),
    ("calls", "calls", "made by the program"),
    ("seconds", "s", "that they took, by its own clock"),
    ("baseline_calls", "calls", "counted by the empty loop"),
    ("baseline_seconds", "s", "that they took"),
];

/// The dictionary as Markdown. `steps` are the names of the workload's steps.
pub(super) fn markdown(steps: &[String]) -> String {
    let mut text = String::from(
        "# Data dictionary\n\nEach number is written with a point and without thousands separators; an empty field means not observed.\nA file whose name ends with `.gz` is compressed: `gunzip` restores it.\n\n## Files\n\n| file | content |\n| --- | --- |\n",
    );
    for (file, content) in FILES {
        let _ = writeln!(text, "| {file} | {content} |");
    }
    let mut seconds: Vec<(String, String, String)> = Vec::new();
    let owned = |(name, unit, meaning): &(&str, &str, &str)| {
        (
            (*name).to_owned(),
            (*unit).to_owned(),
            (*meaning).to_owned(),
        )
    };
    seconds.extend(SECONDS.iter().map(owned));
    seconds.extend(FailureClass::ALL.iter().map(|class| {
        (
            class.as_str().to_owned(),
            "requests".to_owned(),
            class_meaning(*class).to_owned(),
        )
    }));
    seconds.extend(steps.iter().map(|step| {
        (
            format!("ok_{step}"),
            "requests".to_owned(),
            "ok requests of this step".to_owned(),
        )
    }));
    table(&mut text, "seconds.csv and warmup.csv", &seconds);
    table(
        &mut text,
        "failures.csv",
        &FAILURES.iter().map(owned).collect::<Vec<_>>(),
    );
    table(
        &mut text,
        "samples.csv",
        &SAMPLES.iter().map(owned).collect::<Vec<_>>(),
    );
    let mut probe: Vec<(String, String, String)> = PROBE.iter().map(owned).collect();
    probe.extend(FailureClass::ALL.iter().map(|class| {
        (
            class.as_str().to_owned(),
            "requests".to_owned(),
            class_meaning(*class).to_owned(),
        )
    }));
    probe.extend(PROBE_SERVICES.iter().map(owned));
    table(&mut text, "probe.csv", &probe);
    table(
        &mut text,
        "micro.csv",
        &MICRO.iter().map(owned).collect::<Vec<_>>(),
    );
    text
}

fn table(text: &mut String, title: &str, rows: &[(String, String, String)]) {
    let _ = write!(
        text,
        "\n## {title}\n\n| column | unit | meaning |\n| --- | --- | --- |\n"
    );
    for (column, unit, meaning) in rows {
        let unit = if unit.is_empty() { "–" } else { unit };
        let _ = writeln!(text, "| `{column}` | {unit} | {meaning} |");
    }
}

fn class_meaning(class: FailureClass) -> &'static str {
    match class {
        FailureClass::Refused => "failed: the peer refused the connection",
        FailureClass::ConnectTimeout => "failed: no connection within the connect timeout",
        FailureClass::Reset => "failed: the peer reset the connection",
        FailureClass::Closed => "failed: the peer closed before a whole answer",
        FailureClass::Timeout => "failed: no whole answer within the client's timeout",
        FailureClass::Malformed => "failed: what came back is not HTTP",
        FailureClass::Status4xx => "failed: a status from 400 to 499 that the step does not expect",
        FailureClass::Status5xx => {
            "failed: a status from 500 to 599 that the step does not expect, 503 included"
        }
        FailureClass::Status503 => "the part of status_5xx that is a 503",
        FailureClass::UnexpectedStatus => "failed: another status than the step expects",
        FailureClass::UnexpectedBody => "failed: header, body or size not as the step expects",
        FailureClass::ClientSide => {
            "failed on the client's side: no local port, no descriptor, a name not resolved"
        }
    }
}
