//! A checked experiment: what later rooms work with.
//!
//! Values of these types exist only after every check has passed, so nobody downstream checks again. Strings named
//! *template* are minijinja sources that were parsed and whose names were resolved against what is offered to them.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::name::{Arm, Arms, ServiceName, StepName};

/// One experiment: two arms that differ in one declared thing, and everything written beforehand.
#[derive(Debug, Clone)]
pub struct Experiment {
    /// The file, byte for byte.
    pub source: Source,
    /// `[experiment]`.
    pub header: Header,
    /// `[schedule]`.
    pub schedule: Schedule,
    /// `[control]`: what differs.
    pub control: Control,
    /// Both arms, each fully resolved.
    pub arms: Arms<ArmSetup>,
    /// `[analysis]`.
    pub analysis: AnalysisPlan,
    /// `[[criterion]]`.
    pub criteria: Vec<Criterion>,
    /// `[[explanation]]`.
    pub explanations: Vec<Explanation>,
    /// `[[claim]]`.
    pub claims: Vec<Claim>,
    /// `[[limit]]`: the author's own.
    pub limits: Vec<String>,
    /// `[[micro]]`.
    pub micro: Vec<Micro>,
    /// `[probe]`.
    pub probe: Option<Probe>,
}

/// The experiment file as read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Source {
    /// As named on the command line.
    pub path: PathBuf,
    /// Its text.
    pub text: String,
    /// Hex SHA-256 of its bytes.
    pub sha256: String,
}

/// `[experiment]`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Header {
    /// `[a-z0-9-]+`: the folder under results/.
    pub name: String,
    /// The report's title.
    pub title: String,
    /// What is asked.
    pub question: String,
    /// First line of the evidence box.
    pub status: Option<String>,
    /// Printed last.
    pub footer: Option<String>,
    /// Links for "Source data".
    pub sources: Vec<String>,
}

/// `[schedule]`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Schedule {
    /// Driven before the measured time, recorded apart.
    pub warmup: Duration,
    /// When an arm ends.
    pub stop: Stop,
    /// Rows of the report's table.
    pub window: Duration,
    /// Period of resource samples.
    pub sample: Duration,
    /// Quiet time between arms.
    pub rest: Duration,
    /// How many times both arms run.
    pub pairs: u32,
    /// In which order.
    pub order: Order,
    /// Seed of every draw.
    pub seed: u64,
}

/// When an arm ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Stop {
    /// After this much measured time.
    Duration(Arms<Duration>),
    /// After this many requests.
    Requests(u64),
}

/// In which order arms run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Order {
    /// The first arm of each pair by seed.
    Random,
    /// The treatment first in each pair.
    TreatmentFirst,
    /// The control first in each pair.
    ControlFirst,
    /// Quartets A B B A, the first letter by seed.
    Abba,
}

/// `[control]`.
#[derive(Debug, Clone, PartialEq)]
pub enum Control {
    /// One thing differs.
    Variable(Difference),
    /// The same arm twice.
    Null,
}

/// The one declared difference.
#[derive(Debug, Clone, PartialEq)]
pub struct Difference {
    /// The path as written: `pruning.enabled`.
    pub variable: String,
    /// Its value in each arm, as TOML writes it; `None`: the key is absent in that arm.
    pub values: Arms<Option<String>>,
    /// Expression that shows that the change took effect, if written.
    pub took_effect: Option<String>,
    /// Names of further differences that are permitted.
    pub also_differs: Vec<String>,
}

/// One arm, resolved: what is deployed, who drives it, with what.
#[derive(Debug, Clone, PartialEq)]
pub struct ArmSetup {
    /// Services in an order in which they can be started.
    pub services: Vec<Service>,
    /// `[clients]`.
    pub clients: Clients,
    /// `[workload]`.
    pub workload: Workload,
    /// `[pruning]`, also when it is not enabled.
    pub pruning: Option<Pruning>,
    /// `[[action]]` of this arm, in file order.
    pub actions: Vec<Action>,
}

/// One service of the deployment.
#[derive(Debug, Clone, PartialEq)]
pub struct Service {
    /// Its name.
    pub name: ServiceName,
    /// What it is, and the keys of that kind.
    pub kind: ServiceKind,
    /// Environment variables; the values are templates.
    pub env: BTreeMap<String, String>,
    /// Services that must be ready before it starts: those that its templates name, and `after`.
    pub needs: Vec<ServiceName>,
    /// How one knows that it is ready.
    pub ready: Ready,
    /// Time between TERM and KILL.
    pub grace: Duration,
    /// Limits on its process tree.
    pub limits: Limits,
    /// Processors that it may use.
    pub pin: Option<Vec<usize>>,
    /// Lines of its log to count: pattern name to regular expression.
    pub log: BTreeMap<String, String>,
    /// Its own status page.
    pub status: Option<StatusPage>,
}

/// What a service is.
#[derive(Debug, Clone, PartialEq)]
pub enum ServiceKind {
    /// A PostgreSQL server.
    Postgres(Postgres),
    /// Any program.
    Process(Process),
    /// Caddy in front of others.
    Caddy(Proxy),
    /// nginx in front of others.
    Nginx(Proxy),
    /// Something that runs already; never started or stopped.
    External {
        /// Where it is.
        url: String,
    },
}

impl ServiceKind {
    /// The key in the file.
    pub fn as_str(&self) -> &'static str {
        match self {
            ServiceKind::Postgres(_) => "postgres",
            ServiceKind::Process(_) => "process",
            ServiceKind::Caddy(_) => "caddy",
            ServiceKind::Nginx(_) => "nginx",
            ServiceKind::External { .. } => "external",
        }
    }
}

/// `[deployment.<service>.postgres]`.
#[derive(Debug, Clone, PartialEq)]
pub struct Postgres {
    /// Databases to make.
    pub databases: Vec<String>,
    /// SQL files run in the first database, in order; paths as written, relative to the working folder.
    pub schema: Vec<PathBuf>,
    /// Server settings; values are templates.
    pub settings: BTreeMap<String, String>,
    /// Roles to make besides the owner.
    pub roles: Vec<String>,
    /// Major version to use.
    pub version: Option<u32>,
    /// Folder of server programs.
    pub bin: Option<PathBuf>,
    /// A running server (template), where only databases of our own naming are made.
    pub url: Option<String>,
    /// VACUUM (ANALYZE) and CHECKPOINT between warm-up and measured time.
    pub settle: bool,
    /// Drop the page cache's share before the arm, where that can be done.
    pub cold: bool,
}

/// `[deployment.<service>.process]`.
#[derive(Debug, Clone, PartialEq)]
pub struct Process {
    /// Program and arguments; templates.
    pub command: Vec<String>,
    /// Run once before the first arm.
    pub build: Option<Vec<String>>,
    /// Working folder; the caller's when absent. Template.
    pub dir: Option<String>,
}

/// `[deployment.<service>.caddy]` and `nginx`.
#[derive(Debug, Clone, PartialEq)]
pub struct Proxy {
    /// Services behind it; empty when `config` is given.
    pub upstream: Vec<ServiceName>,
    /// The user's own configuration file (a template).
    pub config: Option<PathBuf>,
    /// The program.
    pub bin: Option<PathBuf>,
}

/// How one knows that a service is ready.
#[derive(Debug, Clone, PartialEq)]
pub struct Ready {
    /// What to ask; `None`: the kind's own way (PostgreSQL answers a query, a proxy or process accepts a connection).
    pub by: Option<ReadyBy>,
    /// Deadline.
    pub within: Duration,
}

/// What to ask a service that should be ready.
#[derive(Debug, Clone, PartialEq)]
pub enum ReadyBy {
    /// GET of this path answers 200-299.
    Path(String),
    /// This address (template; the service's own when written `true`) accepts a connection.
    Tcp(String),
    /// A line of its log matches this regular expression.
    Log(String),
    /// This command (templates) exits with 0.
    Command(Vec<String>),
}

/// Limits on a service's process tree.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
pub struct Limits {
    /// Bytes.
    pub memory: Option<u64>,
    /// Cores.
    pub cpus: Option<f64>,
}

/// A service's own status page.
#[derive(Debug, Clone, PartialEq)]
pub struct StatusPage {
    /// Path on the service.
    pub path: String,
    /// Period; the schedule's `sample` when absent.
    pub every: Option<Duration>,
    /// Field name to where it stands.
    pub fields: BTreeMap<String, StatusField>,
}

/// One number of a status page.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StatusField {
    /// JSON Pointer.
    pub at: String,
    /// Whether it only ever grows.
    pub kind: FieldKind,
}

/// Whether a number is a level or a running total.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum FieldKind {
    /// A level.
    Gauge,
    /// A running total.
    Counter,
}

/// `[clients]`.
#[derive(Debug, Clone, PartialEq)]
pub struct Clients {
    /// The service to drive.
    pub target: ServiceName,
    /// Who sends when.
    pub load: Load,
    /// For a whole answer.
    pub timeout: Duration,
    /// For a connection.
    pub connect_timeout: Duration,
    /// `http1` or `http2`.
    pub protocol: Protocol,
    /// CA certificates (PEM file) to trust.
    pub ca: Option<PathBuf>,
    /// Accept any certificate.
    pub insecure: bool,
    /// A Unix socket (template) in place of the target's address.
    pub socket: Option<String>,
    /// Processors for the load threads.
    pub pin: Option<Vec<usize>>,
    /// The target may be another machine.
    pub allow_remote: bool,
    /// Headers of every request; the values are templates.
    pub headers: Vec<(String, String)>,
}

/// Who sends when.
#[derive(Debug, Clone, PartialEq)]
pub enum Load {
    /// Each client waits for its answer before it sends again.
    Closed {
        /// Clients over time; one stage without end for `closed = N`.
        stages: Vec<Stage>,
        /// Between an answer and the next request.
        think: Duration,
        /// Clients start spread over this time.
        ramp: Duration,
    },
    /// Requests leave by a clock, whatever the answers do.
    Open {
        /// Requests a second over time.
        stages: Vec<Stage>,
        /// How intervals are drawn.
        arrival: Arrival,
        /// More than this in flight: the request is counted as not sent.
        max_in_flight: usize,
    },
}

/// One stage: a level held for some time.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Stage {
    /// Clients (closed) or requests a second (open).
    pub level: f64,
    /// How long; `None`: to the end.
    pub length: Option<Duration>,
}

/// How an open loop draws its intervals.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Arrival {
    /// Exponential intervals by seed.
    Poisson,
    /// Equal intervals.
    Uniform,
}

/// The protocol spoken to the target.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Protocol {
    /// HTTP/1.1.
    Http1,
    /// HTTP/2, by ALPN or prior knowledge.
    Http2,
}

/// `[workload]`.
#[derive(Debug, Clone, PartialEq)]
pub struct Workload {
    /// How the next step is chosen.
    pub pick: Pick,
    /// The steps in file order.
    pub steps: Vec<Step>,
}

/// How the next step is chosen.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Pick {
    /// By weight, drawn.
    Weighted,
    /// In file order, `weight` times each a round.
    Cycle,
}

/// `[[workload.step]]`.
#[derive(Debug, Clone, PartialEq)]
pub struct Step {
    /// Its name.
    pub name: StepName,
    /// GET, POST, PUT, PATCH, DELETE or HEAD.
    pub method: String,
    /// Path and query; a template.
    pub path: String,
    /// Share of draws, or times a round.
    pub weight: u32,
    /// Headers of this step; the values are templates.
    pub headers: Vec<(String, String)>,
    /// What is sent.
    pub body: Option<Body>,
    /// What must come back.
    pub expect: Expect,
    /// Values kept for later steps of the same client: name to JSON Pointer, where `*` takes one element at random.
    pub keep: BTreeMap<String, String>,
}

/// The body of a request.
#[derive(Debug, Clone, PartialEq)]
pub enum Body {
    /// JSON whose string leaves are templates.
    Json(serde_json::Value),
    /// A form; the values are templates.
    Form(Vec<(String, String)>),
    /// As written; a template.
    Raw(String),
    /// The bytes of a file.
    File {
        /// As written.
        path: PathBuf,
        /// Read at check.
        bytes: Vec<u8>,
    },
}

/// What a step's answer must be.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Expect {
    /// Permitted statuses; empty: 200-299.
    pub status: Vec<u16>,
    /// Headers that must have these values.
    pub header: BTreeMap<String, String>,
    /// JSON Pointers that must have these values.
    pub json: BTreeMap<String, serde_json::Value>,
    /// Largest body.
    pub max_bytes: Option<u64>,
}

/// `[pruning]`.
#[derive(Debug, Clone, PartialEq)]
pub struct Pruning {
    /// Whether it runs in this arm.
    pub enabled: bool,
    /// The PostgreSQL service.
    pub service: ServiceName,
    /// The database.
    pub database: String,
    /// Period.
    pub every: Duration,
    /// VACUUM each table after deleting.
    pub vacuum: bool,
    /// Tables in file order.
    pub tables: Vec<PruneTable>,
}

/// `[pruning.table.X]`.
#[derive(Debug, Clone, PartialEq)]
pub struct PruneTable {
    /// The table.
    pub table: String,
    /// Its schema.
    pub schema: String,
    /// Rows a DELETE statement takes at most.
    pub batch: u64,
    /// What goes.
    pub rule: PruneRule,
}

/// What pruning deletes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PruneRule {
    /// All but the newest rows by a column.
    KeepNewest {
        /// How many stay.
        rows: u64,
        /// The ordering column.
        by: String,
    },
    /// Rows for which this SQL condition holds.
    DeleteWhere(String),
}

/// `[[action]]`.
#[derive(Debug, Clone, PartialEq)]
pub struct Action {
    /// Its name as written.
    pub name: String,
    /// Name in figures: the name with everything but letters and digits as `_`.
    pub figure: String,
    /// First time, from the start of the measured time.
    pub at: Duration,
    /// Period of repetition.
    pub every: Option<Duration>,
    /// How many times in all.
    pub times: u32,
    /// The only arm that has it; both when `None`.
    pub arm: Option<Arm>,
    /// What is done.
    pub what: ActionKind,
}

/// What an action does.
#[derive(Debug, Clone, PartialEq)]
pub enum ActionKind {
    /// Stop with this signal, wait, start again.
    Restart {
        service: ServiceName,
        signal: String,
    },
    /// Send a signal.
    Signal {
        service: ServiceName,
        signal: String,
    },
    /// Stop a service.
    Stop(ServiceName),
    /// Start a service that was stopped.
    Start(ServiceName),
    /// One request to a service.
    Http {
        service: ServiceName,
        method: String,
        path: String,
        body: Option<serde_json::Value>,
        expect: Expect,
    },
    /// One statement.
    Sql {
        service: ServiceName,
        database: String,
        statement: String,
    },
    /// A command; templates.
    Command(Vec<String>),
    /// More clients for some time.
    Clients { closed: u32, length: Duration },
    /// New limits for a service.
    Limits {
        service: ServiceName,
        limits: Limits,
    },
}

/// `[analysis]`.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct AnalysisPlan {
    /// What "flat" may move, as a share.
    pub margin: Option<f64>,
    /// Margins of single figures, by name without the arm.
    pub margins: BTreeMap<String, f64>,
    /// 0.95: 90 % intervals for flat, 95 % for falls and rises.
    pub confidence: f64,
    /// Smallest share of ok requests in a valid run.
    pub served_at_least: f64,
    /// Declared run-to-run standard deviation of log throughput.
    pub run_sd: Option<f64>,
    /// Horizon of a leak.
    pub horizon: Option<Duration>,
    /// Growth of memory (bytes) permitted over the horizon, by figure.
    pub budget: BTreeMap<String, u64>,
    /// Primary claims: names of their explanations or indexes; empty: all.
    pub primary: Vec<String>,
}

/// `[[criterion]]`: written beforehand; must hold in every arm.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Criterion {
    /// Its name.
    pub name: String,
    /// An expression over figures.
    pub holds: String,
}

/// `[[explanation]]`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Explanation {
    /// Its name.
    pub name: String,
    /// Why one would believe it.
    pub because: String,
    /// Figure (without the arm) to predicted words.
    pub predicts: BTreeMap<String, Arms<Option<TrendWord>>>,
}

/// The words of a trend that one can predict.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum TrendWord {
    /// Stays within the margin.
    Flat,
    /// Goes down by more than the margin.
    Falls,
    /// Goes up by more than the margin.
    Rises,
}

/// `[[claim]]`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Claim {
    /// A template over figures.
    pub text: String,
    /// An expression over figures.
    pub when: String,
    /// The explanation that makes it causal.
    pub explanation: Option<String>,
}

/// `[[micro]]`: counted calls.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Micro {
    /// Its name as written.
    pub name: String,
    /// Name in figures.
    pub figure: String,
    /// Makes the calls.
    pub command: Vec<String>,
    /// The same loop, empty.
    pub baseline: Vec<String>,
    /// How often each runs.
    pub rounds: u32,
}

/// `[probe]`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Probe {
    /// Levels in file order.
    pub clients: Vec<u32>,
    /// Time a level.
    pub each: Duration,
}
