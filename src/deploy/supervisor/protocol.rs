//! What the runner and the supervisor say to each other: one JSON object a line, both ways over one socket.
//!
//! Values only; it must never start or read anything.

use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

/// A line from the runner.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Request {
    /// Comes back in the answer.
    pub(crate) id: u64,
    /// What is asked.
    pub(crate) ask: Ask,
}

/// What the runner asks.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Ask {
    /// The folder that bears the mark; it is removed at the end unless `keep`.
    Begin { root: PathBuf, keep: bool },
    /// Starts a process.
    Spawn(Box<Spawn>),
    /// Sends a signal to the first process of a tree.
    Signal { key: String, signal: String },
    /// Sends a signal, waits for the whole tree to go, kills what is left after the grace.
    Stop {
        key: String,
        signal: String,
        group: bool,
        grace_ms: u64,
    },
    /// A control group to kill and remove at the end.
    Cgroup { path: PathBuf },
    /// Stops everything, removes everything, ends.
    Finish,
}

/// A process to start. Every name is resolved already: the supervisor decides nothing.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Spawn {
    /// Names the tree in later requests.
    pub(crate) key: String,
    /// Absolute path of the program.
    pub(crate) program: PathBuf,
    /// Its arguments.
    pub(crate) args: Vec<String>,
    /// Its whole environment.
    pub(crate) env: BTreeMap<String, String>,
    /// Its working folder.
    pub(crate) dir: PathBuf,
    /// Where its output goes, appended.
    pub(crate) log: PathBuf,
    /// The user that it runs as; the supervisor's own when absent.
    pub(crate) user: Option<User>,
    /// Sent when the supervisor itself dies or has to hurry.
    pub(crate) last_signal: String,
    /// Processors that it may use.
    pub(crate) pin: Option<Vec<usize>>,
    /// `cgroup.procs` files that it enters before its program starts.
    pub(crate) cgroups: Vec<PathBuf>,
}

/// A user to run as.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct User {
    /// Login name.
    pub(crate) name: String,
    /// User id.
    pub(crate) uid: u32,
    /// Group id.
    pub(crate) gid: u32,
}

/// A line from the supervisor.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Notice {
    /// The request was carried out.
    Done {
        id: u64,
        /// Of a process that was started.
        pid: Option<u32>,
        /// Whether KILL was needed.
        killed: bool,
    },
    /// It was not.
    Failed { id: u64, error: String },
    /// The first process of a tree ended.
    Exited {
        key: String,
        pid: u32,
        status: Ended,
    },
}

/// How a process ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Ended {
    /// It called exit.
    Code(i32),
    /// A signal ended it.
    Signal(i32),
    /// The supervisor went away first.
    Unknown,
}

impl Ended {
    /// Whether it is what a program does that has done its work.
    pub fn success(self) -> bool {
        self == Ended::Code(0)
    }
}

impl fmt::Display for Ended {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Ended::Code(code) => write!(f, "exited with status {code}"),
            Ended::Signal(number) => match super::signal::name(*number) {
                Some(name) => write!(f, "ended by signal {number} ({name})"),
                None => write!(f, "ended by signal {number}"),
            },
            Ended::Unknown => f.write_str("ended together with its supervisor"),
        }
    }
}
