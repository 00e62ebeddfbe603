//! What is to be observed, and what comes back.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::time::{Duration, Instant};

use tokio::sync::watch;

use crate::experiment::StatusPage;
use crate::measure::{EventKind, HostSecond, Sample};
use crate::name::ServiceName;
use crate::sql::Server;

/// The process that a service's tree grows from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ProcessRoot {
    /// Its process id.
    pub pid: u32,
    /// Which start of the service this is; 0 for the first.
    pub epoch: u32,
}

/// One service to observe.
#[derive(Debug, Clone)]
pub struct WatchedService {
    /// Its name.
    pub name: ServiceName,
    /// Its process while one runs; `None` while it is down. The deployment writes it.
    pub process: watch::Receiver<Option<ProcessRoot>>,
    /// Folders of its control groups, of any hierarchy (v2, v1 memory, v1 cpu, v1 cpuacct); empty when it has none.
    pub cgroups: Vec<PathBuf>,
    /// The server behind it, when it is PostgreSQL.
    pub sql: Option<WatchedSql>,
    /// Its own status page.
    pub status: Option<WatchedStatus>,
    /// Its log.
    pub log: Option<WatchedLog>,
}

/// A PostgreSQL server to observe.
#[derive(Debug, Clone)]
pub struct WatchedSql {
    /// How it is reached.
    pub server: Server,
    /// Databases of the experiment; the first one is also used for what the whole server counts.
    pub databases: Vec<String>,
    /// Schema and table of the tables of interest, in any of the databases; empty: all user tables.
    pub tables: Vec<(String, String)>,
}

/// A status page to read.
#[derive(Debug, Clone)]
pub struct WatchedStatus {
    /// `http://host:port` of the service.
    pub base: String,
    /// Its path and fields.
    pub page: StatusPage,
}

/// A log to follow.
#[derive(Debug, Clone)]
pub struct WatchedLog {
    /// The file.
    pub path: PathBuf,
    /// Pattern name to regular expression.
    pub patterns: BTreeMap<String, String>,
}

/// What is to be observed, and how often.
#[derive(Debug, Clone)]
pub struct SampleSpec {
    /// The services.
    pub services: Vec<WatchedService>,
    /// Period of resource samples; the host is read each second whatever it is.
    pub period: Duration,
    /// Length of a window: the first and the last one's costliest statements are compared.
    pub window: Duration,
    /// When the measured time begins (`at_s` = 0). It may be in the future, and may be set anew: what was read before keeps
    /// the time that it bore.
    pub origin: watch::Receiver<Instant>,
    /// Folders whose file systems must not fill up.
    pub disks: Vec<PathBuf>,
    /// Free bytes below which a file system counts as about to be full.
    pub min_free_bytes: u64,
    /// Completed requests so far, counted by the load driver: read together with CPU times and statements, so that a quotient
    /// has both of its sides from one moment.
    pub completed: Option<Arc<AtomicU64>>,
}

/// What the sampler saw.
#[derive(Debug, Clone, PartialEq)]
pub enum Observation {
    /// One reading of one instrument.
    Sample(Sample),
    /// The host over one second of the measured time.
    Host {
        /// The second: it covers `second..second + 1`.
        second: u64,
        /// What was read.
        host: HostSecond,
    },
    /// Something that happened.
    Event {
        /// Seconds since the start of the measured time.
        at_s: f64,
        /// What.
        kind: EventKind,
    },
    /// A file system is about to be full: the run should stop while it can still write.
    DiskLow {
        /// A folder on it.
        path: PathBuf,
        /// Bytes that are left.
        free_bytes: u64,
    },
}
