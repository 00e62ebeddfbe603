//! Every key of the experiment file.

use super::shape::{Key, Keys, Section, Shape};

use Shape::{
    Anything, Choice, Duration, Either, List, Map, Name, Number, Rate, Scalar, Share, Size, Slug,
    Table, Tables, Text, Truth, Whole,
};

const fn must(name: &'static str, shape: Shape, doc: &'static str) -> Key {
    Key {
        name,
        shape,
        required: true,
        doc,
        default: "",
    }
}

const fn may(name: &'static str, shape: Shape, default: &'static str, doc: &'static str) -> Key {
    Key {
        name,
        shape,
        required: false,
        doc,
        default,
    }
}

/// The whole file.
#[rustfmt::skip]
pub(super) static FILE: Section = Section {
    doc: "One experiment: two arms that differ in one declared thing.",
    keys: &[&[
        must("experiment", Table(&EXPERIMENT), "name, title, question"),
        must("schedule", Table(&SCHEDULE), "how long, how often, in which order"),
        must("deployment", Map(Keys::Names, &Table(&KINDS)), "the services, as [deployment.<service>.<kind>]"),
        must("clients", Table(&CLIENTS), "who drives the target"),
        must("workload", Table(&WORKLOAD), "what is sent"),
        may("pruning", Table(&PRUNING), "", "rows deleted beside the load"),
        must("control", Table(&CONTROL), "the one thing that differs"),
        may("analysis", Table(&ANALYSIS), "", "margins and levels"),
        may("criterion", Tables(&CRITERION), "", "written beforehand; must hold in every arm"),
        may("explanation", Tables(&EXPLANATION), "", "a story, and what it predicts"),
        may("claim", Tables(&CLAIM), "", "a sentence, and when it holds"),
        may("limit", Tables(&LIMIT), "", "what the experiment does not support"),
        may("action", Tables(&ACTION), "", "something done during the measured time"),
        may("micro", Tables(&MICRO), "", "counted calls"),
        may("probe", Table(&PROBE), "", "the saturation probe"),
    ]],
};

#[rustfmt::skip]
static EXPERIMENT: Section = Section {
    doc: "What this experiment is.",
    keys: &[&[
        must("name", Slug, "names the folder under results/"),
        must("title", Text, "the report's title"),
        must("question", Text, "what is asked"),
        may("status", Text, "", "first line of the evidence box"),
        may("footer", Text, "", "printed last: who, contact, disclosures"),
        may("sources", List(&Text), "[]", "links for \"Source data\""),
    ]],
};

#[rustfmt::skip]
pub(super) static SCHEDULE: Section = Section {
    doc: "How long, how often, in which order.",
    keys: &[&[
        may("duration", Either(&[Duration, Table(&ARM_DURATIONS)]), "", "measured time of one arm"),
        may("requests", Whole(1, 1_000_000_000_000), "", "a number of requests in place of a duration"),
        may("warmup", Duration, "\"10s\"", "driven, recorded apart, never counted"),
        may("window", Duration, "duration / 6", "rows of the report's table"),
        may("sample", Duration, "\"1s\" up to 10 minutes, else \"60s\"", "period of resource samples"),
        may("rest", Duration, "\"5s\"", "quiet time between arms"),
        may("pairs", Whole(1, 1000), "1", "how often both arms run"),
        may("order", Choice(&["random", "abba", "treatment-first", "control-first"]), "\"random\", from two pairs on \"abba\"", "in which order arms run"),
        may("seed", Whole(0, i64::MAX), "1", "seed of every draw"),
    ]],
};

static ARM_DURATIONS: Section = Section {
    doc: "A measured time for each arm.",
    keys: &[&[
        must("treatment", Duration, "measured time of the treatment"),
        must("control", Duration, "measured time of the control"),
    ]],
};

#[rustfmt::skip]
pub(super) static KINDS: Section = Section {
    doc: "A service: exactly one kind.",
    keys: &[&[
        may("postgres", Table(&POSTGRES), "", "a PostgreSQL server"),
        may("process", Table(&PROCESS), "", "any program"),
        may("caddy", Table(&PROXY), "", "Caddy in front of others"),
        may("nginx", Table(&PROXY), "", "nginx in front of others"),
        may("external", Table(&EXTERNAL), "", "something that runs already"),
        may("container", Anything, "", "reserved, not built"),
        may("compose", Anything, "", "reserved, not built"),
    ]],
};

#[rustfmt::skip]
static EVERY_SERVICE: &[Key] = &[
    may("env", Map(Keys::Any, &Text), "{}", "environment variables; templates"),
    may("after", Either(&[Text, List(&Text)]), "[]", "services that must be ready before"),
    may("ready", Table(&READY), "the kind's own way", "how one knows that it is ready"),
    may("grace", Duration, "\"10s\"", "between TERM and KILL"),
    may("limits", Table(&LIMITS), "", "limits on its process tree"),
    may("pin", Text, "", "processors, as in \"0-1\""),
    may("log", Map(Keys::Names, &Text), "{}", "lines to count: name to regular expression"),
    may("status", Table(&STATUS), "", "its own status page"),
];

#[rustfmt::skip]
static READY: Section = Section {
    doc: "How one knows that a service is ready: one of path, tcp, log, command.",
    keys: &[&[
        may("path", Text, "", "GET of this path answers 200-299"),
        may("tcp", Either(&[Truth, Text]), "", "an address that accepts a connection; true: its own"),
        may("log", Text, "", "a line of its log matches this regular expression"),
        may("command", List(&Text), "", "this command exits with 0"),
        may("within", Duration, "\"30s\"", "deadline"),
    ]],
};

static LIMITS: Section = Section {
    doc: "Limits on a process tree.",
    keys: &[&[
        may("memory", Size, "", "memory"),
        may("cpus", Number(0.0, 4096.0), "", "cores"),
    ]],
};

#[rustfmt::skip]
static STATUS: Section = Section {
    doc: "A status page in JSON.",
    keys: &[&[
        must("path", Text, "path on the service"),
        may("every", Duration, "the schedule's sample", "period"),
        must("fields", Map(Keys::Names, &Either(&[Text, Table(&FIELD)])), "name to JSON Pointer, or to { at, kind }"),
    ]],
};

#[rustfmt::skip]
static FIELD: Section = Section {
    doc: "One number of a status page.",
    keys: &[&[
        must("at", Text, "JSON Pointer"),
        may("kind", Choice(&["gauge", "counter"]), "\"gauge\"", "a level, or a running total"),
    ]],
};

#[rustfmt::skip]
static POSTGRES: Section = Section {
    doc: "A PostgreSQL server.",
    keys: &[EVERY_SERVICE, &[
        may("databases", List(&Text), "[]", "databases to make"),
        may("schema", Either(&[Text, List(&Text)]), "[]", "SQL files, run in the first database"),
        may("settings", Map(Keys::Any, &Scalar), "{}", "server settings"),
        may("roles", List(&Text), "[]", "roles to make besides the owner"),
        may("version", Whole(9, 99), "", "major version"),
        may("bin", Text, "", "folder of server programs"),
        may("url", Text, "", "a running server; only databases of ceteris' own naming are made there"),
        may("settle", Truth, "true", "VACUUM (ANALYZE) and CHECKPOINT between warm-up and measured time"),
        may("cold", Truth, "false", "start with a cold cache, where that can be done"),
    ]],
};

#[rustfmt::skip]
static PROCESS: Section = Section {
    doc: "Any program.",
    keys: &[EVERY_SERVICE, &[
        must("command", List(&Text), "program and arguments; templates"),
        may("build", List(&Text), "", "run once, before the first arm"),
        may("dir", Text, "the caller's", "working folder"),
    ]],
};

#[rustfmt::skip]
static PROXY: Section = Section {
    doc: "A proxy in front of others.",
    keys: &[EVERY_SERVICE, &[
        may("upstream", Either(&[Text, List(&Text)]), "", "a service, or several"),
        may("config", Text, "", "a configuration file of one's own"),
        may("bin", Text, "", "the program"),
    ]],
};

static EXTERNAL: Section = Section {
    doc: "Something that runs already; never started or stopped.",
    keys: &[EVERY_SERVICE, &[must("url", Text, "where it is")]],
};

#[rustfmt::skip]
pub(super) static CLIENTS: Section = Section {
    doc: "Who drives the target: one of closed, open, stages.",
    keys: &[&[
        must("target", Text, "the service to drive"),
        may("closed", Whole(1, 100_000), "", "closed-loop clients"),
        may("open", Rate, "", "requests a second by a clock"),
        may("stages", List(&Table(&STAGE)), "", "levels over time"),
        may("think", Duration, "\"0ms\"", "between an answer and the next request"),
        may("timeout", Duration, "\"10s\"", "for a whole answer"),
        may("connect_timeout", Duration, "\"5s\"", "for a connection"),
        may("ramp", Duration, "\"0s\"", "clients start spread over this time"),
        may("arrival", Choice(&["poisson", "uniform"]), "\"poisson\"", "how an open loop draws its intervals"),
        may("max_in_flight", Whole(1, 1_000_000), "1000", "open loop: more than this is counted as not sent"),
        may("protocol", Choice(&["http1", "http2"]), "\"http1\"", "protocol"),
        may("ca", Text, "", "CA certificates to trust (PEM)"),
        may("insecure", Truth, "false", "accept any certificate"),
        may("socket", Text, "", "a Unix socket in place of the target's address"),
        may("pin", Text, "", "processors of the load threads, as in \"0-1\""),
        may("allow_remote", Truth, "false", "the target may be another machine"),
        may("headers", Map(Keys::Any, &Text), "{}", "headers of every request; templates"),
    ]],
};

static STAGE: Section = Section {
    doc: "A level held for some time.",
    keys: &[&[
        may("closed", Whole(0, 100_000), "", "closed-loop clients"),
        may("open", Rate, "", "requests a second"),
        may("for", Duration, "to the end", "how long"),
    ]],
};

static WORKLOAD: Section = Section {
    doc: "What is sent.",
    keys: &[&[
        may(
            "pick",
            Choice(&["weighted", "cycle"]),
            "\"weighted\"",
            "how the next step is chosen",
        ),
        must("step", Tables(&STEP), "a request"),
    ]],
};

#[rustfmt::skip]
static STEP: Section = Section {
    doc: "A request: one of get, post, put, patch, delete, head.",
    keys: &[&[
        must("name", Name, "its name in figures"),
        may("get", Text, "", "path and query; a template"),
        may("post", Text, "", "path and query; a template"),
        may("put", Text, "", "path and query; a template"),
        may("patch", Text, "", "path and query; a template"),
        may("delete", Text, "", "path and query; a template"),
        may("head", Text, "", "path and query; a template"),
        may("weight", Whole(0, 1_000_000), "1", "share of draws, or times a round"),
        may("headers", Map(Keys::Any, &Text), "{}", "headers; templates"),
        may("json", Anything, "", "a JSON body whose strings are templates"),
        may("form", Map(Keys::Any, &Scalar), "", "a form; templates"),
        may("body", Text, "", "a body as written; a template"),
        may("body_file", Text, "", "a file that is sent"),
        may("expect", Table(&EXPECT), "status 200-299", "what must come back"),
        may("keep", Map(Keys::Names, &Text), "{}", "values kept for later: name to JSON Pointer"),
    ]],
};

#[rustfmt::skip]
static EXPECT: Section = Section {
    doc: "What an answer must be.",
    keys: &[&[
        may("status", Either(&[Whole(100, 599), List(&Whole(100, 599))]), "200-299", "permitted statuses"),
        may("header", Map(Keys::Any, &Text), "", "headers that must have these values"),
        may("json", Map(Keys::Any, &Anything), "", "JSON Pointers that must have these values"),
        may("max_bytes", Either(&[Size, Whole(0, i64::MAX)]), "", "largest body"),
    ]],
};

#[rustfmt::skip]
static PRUNING: Section = Section {
    doc: "Rows deleted beside the load, from the start of warm-up.",
    keys: &[&[
        must("enabled", Truth, "whether it runs"),
        must("service", Text, "the PostgreSQL service"),
        must("database", Text, "the database"),
        must("every", Duration, "period"),
        may("vacuum", Truth, "false", "VACUUM each table after deleting"),
        may("table", Map(Keys::Names, &Table(&PRUNE_TABLE)), "", "tables, as [pruning.table.<name>]"),
    ]],
};

#[rustfmt::skip]
static PRUNE_TABLE: Section = Section {
    doc: "What goes from one table: keep_newest with by, or delete_where.",
    keys: &[&[
        may("keep_newest", Whole(0, i64::MAX), "", "rows that stay"),
        may("by", Text, "", "the column that says what is new"),
        may("delete_where", Text, "", "an SQL condition"),
        may("schema", Text, "\"public\"", "its schema"),
        may("batch", Whole(1, 10_000_000), "10000", "rows a statement deletes at most"),
    ]],
};

#[rustfmt::skip]
pub(super) static CONTROL: Section = Section {
    doc: "The one thing that differs, or null = true alone.",
    keys: &[&[
        may("variable", Text, "", "the path of what differs, such as pruning.enabled"),
        may("treatment", Anything, "as in the file", "its value in the treatment"),
        may("control", Anything, "as in the file", "its value in the control"),
        may("took_effect", Text, "", "an expression that shows that the change took effect"),
        may("also_differs", List(&Text), "[]", "further differences that are permitted"),
        may("null", Truth, "false", "the same arm twice: it measures the noise between runs"),
    ]],
};

#[rustfmt::skip]
pub(super) static ANALYSIS: Section = Section {
    doc: "How the run is judged.",
    keys: &[&[
        may("margin", Share, "", "what \"flat\" may move"),
        may("margins", Map(Keys::Any, &Share), "{}", "margins of single figures"),
        may("confidence", Number(0.5, 0.9999), "0.95", "level of falls and rises"),
        may("served_at_least", Share, "\"99%\"", "smallest share of ok requests in a valid run"),
        may("run_sd", Share, "", "run-to-run standard deviation of log throughput"),
        may("horizon", Duration, "", "over which memory may grow by its budget"),
        may("budget", Map(Keys::Any, &Size), "{}", "growth of memory permitted over the horizon"),
        may("primary", List(&Either(&[Whole(1, 10_000), Text])), "all claims", "primary claims: explanations' names or indexes from 1"),
    ]],
};

static CRITERION: Section = Section {
    doc: "Written beforehand; must hold in every arm.",
    keys: &[&[
        must("name", Text, "its name"),
        must("holds", Text, "an expression over figures"),
    ]],
};

#[rustfmt::skip]
static EXPLANATION: Section = Section {
    doc: "A story, and what it predicts.",
    keys: &[&[
        must("name", Text, "its name"),
        must("because", Text, "why one would believe it"),
        must("predicts", Map(Keys::Any, &Anything), "figure to { treatment, control }, each flat, falls or rises"),
    ]],
};

#[rustfmt::skip]
static CLAIM: Section = Section {
    doc: "A sentence, and when it holds.",
    keys: &[&[
        must("text", Text, "a template over figures"),
        must("when", Text, "an expression over figures"),
        may("explanation", Text, "", "the explanation that makes it a causal claim"),
    ]],
};

static LIMIT: Section = Section {
    doc: "What the experiment does not support.",
    keys: &[&[must("text", Text, "a sentence")]],
};

#[rustfmt::skip]
static ACTION: Section = Section {
    doc: "Something done during the measured time: one of http, restart, signal, stop, start, sql, command, clients, limits.",
    keys: &[&[
        must("name", Text, "its name"),
        must("at", Duration, "first time, from the start of the measured time"),
        may("every", Duration, "", "period of repetition"),
        may("times", Whole(0, 1_000_000), "1", "how many times in all"),
        may("arm", Choice(&["treatment", "control"]), "both", "the only arm that has it"),
        may("http", Table(&ACTION_HTTP), "", "one request"),
        may("restart", Table(&ACTION_SIGNAL), "", "signal, wait, start again"),
        may("signal", Table(&ACTION_SIGNAL), "", "send a signal"),
        may("stop", Text, "", "stop a service"),
        may("start", Text, "", "start a service that was stopped"),
        may("sql", Table(&ACTION_SQL), "", "one statement"),
        may("command", List(&Text), "", "a command; templates"),
        may("clients", Table(&ACTION_CLIENTS), "", "more clients for some time"),
        may("limits", Table(&ACTION_LIMITS), "", "new limits"),
    ]],
};

#[rustfmt::skip]
static ACTION_HTTP: Section = Section {
    doc: "One request to a service: one of get, post, put, patch, delete, head.",
    keys: &[&[
        must("service", Text, "the service"),
        may("get", Text, "", "path"),
        may("post", Text, "", "path"),
        may("put", Text, "", "path"),
        may("patch", Text, "", "path"),
        may("delete", Text, "", "path"),
        may("head", Text, "", "path"),
        may("json", Anything, "", "a JSON body"),
        may("expect", Table(&EXPECT), "status 200-299", "what must come back"),
    ]],
};

#[rustfmt::skip]
static ACTION_SIGNAL: Section = Section {
    doc: "A service and a signal.",
    keys: &[&[
        must("service", Text, "the service"),
        may("signal", Choice(&["TERM", "INT", "KILL", "HUP", "QUIT", "USR1", "USR2", "STOP", "CONT"]), "\"TERM\"", "the signal"),
    ]],
};

static ACTION_SQL: Section = Section {
    doc: "One statement.",
    keys: &[&[
        must("service", Text, "the PostgreSQL service"),
        must("database", Text, "the database"),
        must("statement", Text, "the statement"),
    ]],
};

static ACTION_CLIENTS: Section = Section {
    doc: "A burst.",
    keys: &[&[
        must("closed", Whole(0, 100_000), "clients during the burst"),
        must("for", Duration, "how long"),
    ]],
};

#[rustfmt::skip]
static ACTION_LIMITS: Section = Section {
    doc: "New limits for a service.",
    keys: &[&[
        must("service", Text, "the service"),
        may("memory", Size, "", "memory"),
        may("cpus", Number(0.0, 4096.0), "", "cores"),
    ]],
};

#[rustfmt::skip]
static MICRO: Section = Section {
    doc: "Counted calls: a program that prints {\"calls\": n, \"seconds\": s}, and the same loop empty.",
    keys: &[&[
        must("name", Text, "its name"),
        must("command", List(&Text), "makes the calls"),
        must("baseline", List(&Text), "the same loop, empty"),
        may("rounds", Whole(1, 100_000), "10", "how often each runs"),
    ]],
};

static PROBE: Section = Section {
    doc: "Finds the saturation knee.",
    keys: &[&[
        must("clients", List(&Whole(1, 100_000)), "levels"),
        must("each", Duration, "time a level"),
    ]],
};

/// The top-level section whose table has this key, for hints about keys in the wrong place.
pub(super) fn home_of(key: &str) -> Option<&'static str> {
    FILE.keys().find_map(|section| match &section.shape {
        Shape::Table(table) | Shape::Tables(table) if table.key(key).is_some() => {
            Some(section.name)
        }
        _ => None,
    })
}
