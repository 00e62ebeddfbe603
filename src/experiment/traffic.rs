//! One arm as it is driven: clients and workload.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::name::{ServiceName, StepName};

/// `[clients]`.
#[derive(Debug, Clone, PartialEq, Serialize)]
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
#[derive(Debug, Clone, PartialEq, Serialize)]
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
#[derive(Debug, Clone, PartialEq, Serialize)]
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
#[derive(Debug, Clone, PartialEq, Serialize)]
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
#[derive(Debug, Clone, PartialEq, Serialize)]
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
        #[serde(skip)]
        bytes: Vec<u8>,
    },
}

/// What a step's answer must be.
#[derive(Debug, Clone, PartialEq, Default, Serialize)]
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
