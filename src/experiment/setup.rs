//! One arm as it is deployed: services, pruning, actions.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::traffic::{Clients, Expect, Workload};
use crate::name::{Arm, ServiceName};

/// One arm, resolved: what is deployed, who drives it, with what.
#[derive(Debug, Clone, PartialEq, Serialize)]
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
#[derive(Debug, Clone, PartialEq, Serialize)]
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
#[derive(Debug, Clone, PartialEq, Serialize)]
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
#[derive(Debug, Clone, PartialEq, Serialize)]
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
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Process {
    /// Program and arguments; templates.
    pub command: Vec<String>,
    /// Run once before the first arm.
    pub build: Option<Vec<String>>,
    /// Working folder; the caller's when absent. Template.
    pub dir: Option<String>,
}

/// `[deployment.<service>.caddy]` and `nginx`.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Proxy {
    /// Services behind it; empty when `config` is given.
    pub upstream: Vec<ServiceName>,
    /// The user's own configuration file (a template).
    pub config: Option<PathBuf>,
    /// The program.
    pub bin: Option<PathBuf>,
}

/// How one knows that a service is ready.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Ready {
    /// What to ask; `None`: the kind's own way (PostgreSQL answers a query, a proxy or process accepts a connection).
    pub by: Option<ReadyBy>,
    /// Deadline.
    pub within: Duration,
}

/// What to ask a service that should be ready.
#[derive(Debug, Clone, PartialEq, Serialize)]
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
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct StatusPage {
    /// Path on the service.
    pub path: String,
    /// Period; the schedule's `sample` when absent.
    pub every: Option<Duration>,
    /// Field name to where it stands.
    pub fields: BTreeMap<String, StatusField>,
}

/// One number of a status page.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
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

/// `[pruning]`.
#[derive(Debug, Clone, PartialEq, Serialize)]
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
#[derive(Debug, Clone, PartialEq, Serialize)]
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
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
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
#[derive(Debug, Clone, PartialEq, Serialize)]
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
#[derive(Debug, Clone, PartialEq, Serialize)]
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
