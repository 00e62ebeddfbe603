//! What a kind of service must say about itself. One file a kind implements it; the next kind is one more file.

use std::collections::BTreeMap;
use std::fmt;
use std::future::Future;
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::sync::Arc;

use anyhow::Result;

use super::caddy::Caddy;
use super::external::External;
use super::nginx::Nginx;
use super::postgres::{PostgresKind, Running, RunningPostgres, Seed};
use super::prepare::Site;
use super::process::ProcessKind;
use super::program::Program;
use super::render::{Names, Offer};
use super::supervisor::User;
use crate::experiment::{Service, ServiceKind};
use crate::name::Arm;
use crate::sql;

/// A future of a trait object.
pub(crate) type Later<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// What is made once, before the first arm.
#[derive(Debug, Clone, Default)]
pub(crate) struct Material {
    /// The program that will run.
    pub(crate) program: Option<Program>,
    /// Hashes of files that the command names, and the folder that their names are relative to.
    pub(crate) named_files: BTreeMap<String, String>,
    pub(crate) named_in: PathBuf,
    /// The version that the program tells.
    pub(crate) version: Option<String>,
    /// PostgreSQL's data folder, to be copied.
    pub(crate) seed: Option<Arc<Seed>>,
    /// A PostgreSQL server that runs already, with the templates of this run.
    pub(crate) running: Option<Arc<Running>>,
    /// The user's own configuration: its file and what it held when it was prepared.
    pub(crate) config: Option<(PathBuf, String)>,
    /// The user that it runs as, if not the runner's own.
    pub(crate) user: Option<User>,
}

/// What to run, rendered.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Plan {
    /// Arguments without the program.
    pub(crate) args: Vec<String>,
    /// Files to write: path relative to the service's folder, and text.
    pub(crate) files: BTreeMap<String, String>,
    /// Working folder; the service's own when absent.
    pub(crate) dir: Option<PathBuf>,
    /// Environment variables that the kind needs; what the file declares wins.
    pub(crate) env: BTreeMap<String, String>,
    /// Settings as declared and rendered.
    pub(crate) settings: BTreeMap<String, String>,
}

/// How a service is ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Ending {
    /// Asks it to end.
    pub(crate) signal: &'static str,
    /// Whether its whole process group is asked.
    pub(crate) group: bool,
    /// When there is no time left.
    pub(crate) last: &'static str,
}

/// A service of one arm while it is being started, as its kind sees it.
#[derive(Debug)]
pub(crate) struct Place<'a> {
    /// The service as declared.
    pub(crate) service: &'a Service,
    /// What was made beforehand.
    pub(crate) material: &'a Material,
    /// What it offers to others.
    pub(crate) offer: &'a Offer,
    /// Its folder.
    pub(crate) dir: &'a Path,
    /// Where its Unix socket goes, where the kind has one.
    pub(crate) socket: &'a Path,
    /// Which arm it belongs to.
    pub(crate) arm: Arm,
}

/// One kind of service.
pub(crate) trait Kind: Send + Sync + fmt::Debug {
    /// Finds programs, makes what both arms start from. Runs once, before the first arm.
    fn prepare<'a>(&'a self, service: &'a Service, site: &'a Site) -> Later<'a, Result<Material>>;

    /// Whether the other arm's declaration leads to the same material, so that it is made once.
    fn shares(&self, other: &ServiceKind) -> bool;

    /// Whether something is started at all.
    fn is_started(&self) -> bool {
        true
    }

    /// What others may use of it, given a port of its own and its folder.
    fn offer(
        &self,
        material: &Material,
        names: &Names,
        port: u16,
        dir: &Path,
        arm: Arm,
    ) -> Result<Offer>;

    /// The command and the files, with real names or placeholders.
    fn plan(&self, service: &Service, material: &Material, names: &Names) -> Result<Plan>;

    /// Puts data into its folder before its first start.
    fn furnish<'a>(&'a self, _place: &'a Place<'a>) -> Later<'a, Result<()>> {
        Box::pin(async { Ok(()) })
    }

    /// Takes back what furnishing made outside its folder.
    fn dismantle<'a>(&'a self, _place: &'a Place<'a>) -> Later<'a, Result<()>> {
        Box::pin(async { Ok(()) })
    }

    /// Further arguments that are each arm's own and no part of what the arms are compared by.
    fn extra_args(&self, _place: &Place<'_>) -> Vec<String> {
        Vec::new()
    }

    /// The kind's own way to tell that it is ready; the error says what is missing yet.
    fn answers<'a>(&'a self, place: &'a Place<'a>) -> Later<'a, Result<()>>;

    /// Version and settings as a ready server tells them.
    fn told<'a>(&'a self, _place: &'a Place<'a>) -> Later<'a, Result<Told>> {
        Box::pin(async { Ok(Told::default()) })
    }

    /// How to reach it by SQL.
    fn sql(&self, _place: &Place<'_>) -> Option<sql::Server> {
        None
    }

    /// How it is ended.
    fn ending(&self) -> Ending;
}

/// What a ready server tells about itself.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Told {
    /// Its version.
    pub(crate) version: Option<String>,
    /// All its settings.
    pub(crate) settings: BTreeMap<String, String>,
    /// Names of settings that the server computes itself.
    pub(crate) computed: Vec<String>,
}

/// The kind of a service.
pub(crate) fn of(service: &Service) -> Box<dyn Kind> {
    match &service.kind {
        ServiceKind::Postgres(declared) if declared.url.is_some() => {
            Box::new(RunningPostgres::new(declared.clone()))
        }
        ServiceKind::Postgres(declared) => Box::new(PostgresKind::new(declared.clone())),
        ServiceKind::Process(declared) => Box::new(ProcessKind::new(declared.clone())),
        ServiceKind::External { url } => Box::new(External::new(url.clone())),
        ServiceKind::Caddy(declared) => Box::new(Caddy::new(declared.clone())),
        ServiceKind::Nginx(declared) => Box::new(Nginx::new(declared.clone())),
    }
}

/// What a TCP service on loopback offers.
pub(crate) fn loopback(scheme: &str, port: u16, dir: &Path) -> Offer {
    Offer {
        url: format!("{scheme}://127.0.0.1:{port}"),
        address: format!("127.0.0.1:{port}"),
        host: "127.0.0.1".to_owned(),
        port: port.to_string(),
        dir: dir.display().to_string(),
        databases: BTreeMap::new(),
    }
}

/// Ready when its address accepts a connection.
pub(crate) async fn accepts(address: &str) -> Result<()> {
    tokio::net::TcpStream::connect(address)
        .await
        .map(drop)
        .map_err(|error| anyhow::anyhow!("no connection to {address}: {error}"))
}
