//! What an action does to the deployment. One that fails is a finding, never the end of the run.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use anyhow::{Context as _, Result, bail, ensure};
use bytes::Bytes;
use http_body_util::{BodyExt as _, Full, Limited};
use hyper_util::rt::TokioIo;
use tokio::net::TcpStream;

use crate::deploy::{Deployment, ServiceStarted};
use crate::experiment::{Action, ActionKind, Expect, Limits};
use crate::name::ServiceName;
use crate::sql::{self, Role};

/// The longest that one execution may take, beside the time that a service has to end and to be ready.
pub(super) const PATIENCE: Duration = Duration::from_secs(60);
/// The most that is read of an answer.
const LARGEST_ANSWER: usize = 1 << 20;
/// The most of an answer that is quoted.
const QUOTED: usize = 200;

/// What an execution did.
#[derive(Debug)]
pub(super) struct Done {
    /// In words.
    pub(super) detail: String,
    /// The service that it started, with its new life.
    pub(super) started: Option<ServiceStarted>,
}

impl Done {
    fn said(detail: impl Into<String>) -> Self {
        Self {
            detail: detail.into(),
            started: None,
        }
    }

    fn started(started: ServiceStarted) -> Self {
        Self {
            detail: format!(
                "{} is ready after {:.0} ms",
                started.service, started.ready_ms
            ),
            started: Some(started),
        }
    }
}

/// Executes an action once; a burst of clients is the driver's and not done here.
///
/// # Errors
/// When it could not be done, was not answered as expected, or took longer than [`PATIENCE`] and the service's own deadlines.
pub(super) async fn perform(deployment: &Deployment, action: &Action, logs: &Path) -> Result<Done> {
    let patience = match &action.what {
        ActionKind::Restart { service, .. }
        | ActionKind::Stop(service)
        | ActionKind::Start(service) => PATIENCE + deployment.patience(service)?,
        _ => PATIENCE,
    };
    tokio::time::timeout(patience, act(deployment, action, logs))
        .await
        .map_err(|_| anyhow::anyhow!("it took longer than {} s", patience.as_secs()))?
}

async fn act(deployment: &Deployment, action: &Action, logs: &Path) -> Result<Done> {
    match &action.what {
        ActionKind::Restart { service, signal } => {
            deployment.restart(service, signal).await.map(Done::started)
        }
        ActionKind::Signal { service, signal } => {
            deployment.signal(service, signal).await?;
            Ok(Done::said(format!("{signal} sent to {service}")))
        }
        ActionKind::Stop(service) => {
            deployment.stop_service(service).await?;
            Ok(Done::said(format!("{service} stopped")))
        }
        ActionKind::Start(service) => deployment.start_service(service).await.map(Done::started),
        ActionKind::Http {
            service,
            method,
            path,
            body,
            expect,
        } => {
            let url = deployment.endpoint(service)?;
            let address = format!("{}:{}", url.host, url.port);
            request(&address, method, path, body.as_ref(), expect)
                .await
                .with_context(|| format!("{method} {path} of {service}"))
                .map(Done::said)
        }
        ActionKind::Sql {
            service,
            database,
            statement,
        } => run_sql(deployment, service, database, statement).await,
        ActionKind::Command(command) => {
            let command = command
                .iter()
                .map(|part| deployment.render(part, &format!("action {}", action.name)))
                .collect::<Result<Vec<_>>>()?;
            let ended = deployment
                .run_command(
                    &format!("action/{}", action.figure),
                    &command,
                    &BTreeMap::new(),
                    logs,
                )
                .await?;
            ensure!(ended.success(), "the command ended with {ended}");
            Ok(Done::said("the command ended well"))
        }
        ActionKind::Limits { service, limits } => {
            // What the action does not name stays as it is.
            let now = deployment.limits(service)?;
            let limits = Limits {
                memory: limits.memory.or(now.memory),
                cpus: limits.cpus.or(now.cpus),
            };
            deployment.set_limits(service, limits)?;
            let memory = limits.memory.map_or_else(
                || "no memory limit".to_owned(),
                |bytes| format!("memory {} MiB", bytes >> 20),
            );
            let cpus = limits.cpus.map_or_else(
                || "no processor limit".to_owned(),
                |cores| format!("{cores} processors"),
            );
            Ok(Done::said(format!("limits of {service}: {memory}, {cpus}")))
        }
        ActionKind::Clients { .. } => bail!("a burst of clients is the driver's to do"),
    }
}

async fn run_sql(
    deployment: &Deployment,
    service: &ServiceName,
    database: &str,
    statement: &str,
) -> Result<Done> {
    let server = deployment
        .sql(service)
        .with_context(|| format!("{service} can't be reached by SQL"))?;
    let session = sql::connect(&server, Role::Owner, database, "ceteris-action").await?;
    session
        .batch_execute(statement)
        .await
        .with_context(|| format!("running the statement in {database}"))?;
    Ok(Done::said("the statement ran"))
}

/// One request over a connection of its own.
async fn request(
    address: &str,
    method: &str,
    path: &str,
    body: Option<&serde_json::Value>,
    expect: &Expect,
) -> Result<String> {
    let stream = TcpStream::connect(address)
        .await
        .with_context(|| format!("connecting to {address}"))?;
    let (mut sender, connection) = hyper::client::conn::http1::handshake(TokioIo::new(stream))
        .await
        .context("beginning HTTP")?;
    // The connection ends when the sender is dropped at the end of this function.
    tokio::spawn(connection);
    let mut request = hyper::Request::builder()
        .method(method)
        .uri(path)
        .header(hyper::header::HOST, address);
    let bytes = match body {
        Some(json) => {
            request = request.header(hyper::header::CONTENT_TYPE, "application/json");
            Bytes::from(serde_json::to_vec(json).context("writing the body as JSON")?)
        }
        None => Bytes::new(),
    };
    let request = request
        .body(Full::new(bytes))
        .context("building the request")?;
    let answer = sender
        .send_request(request)
        .await
        .context("sending the request")?;
    let status = answer.status().as_u16();
    let content = Limited::new(answer.into_body(), LARGEST_ANSWER)
        .collect()
        .await
        .map_err(|error| anyhow::anyhow!("reading the answer: {error}"))?
        .to_bytes();
    let expected = if expect.status.is_empty() {
        (200..300).contains(&status)
    } else {
        expect.status.contains(&status)
    };
    if !expected {
        let said = String::from_utf8_lossy(&content[..content.len().min(QUOTED)]).into_owned();
        bail!("status {status}: {said}");
    }
    Ok(format!("status {status}"))
}
