//! Opening a session.

use std::ops::Deref;
use std::time::Duration;

use anyhow::Context;
use tokio::task::JoinHandle;
use tokio_postgres::{Client, Config, NoTls};

use super::server::{Reach, Role, Server};

/// How long a server may take to accept a session before it counts as not answering.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);

/// A session with a server: the client, and the task that moves its bytes. Dropping it closes the connection.
pub struct Session {
    client: Client,
    driver: JoinHandle<()>,
}

impl Deref for Session {
    type Target = Client;

    fn deref(&self) -> &Client {
        &self.client
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        self.driver.abort();
    }
}

/// Logs in as `role` to `database`; the bytes are moved by a task on the current runtime.
///
/// Fails when the server can't be reached, refuses the login, or takes longer than five seconds (a stopped server accepts
/// connections in its backlog and never answers).
pub async fn connect(
    server: &Server,
    role: Role,
    database: &str,
    application_name: &str,
) -> anyhow::Result<Session> {
    let login = server.login(role);
    let database = server.database(database);
    let mut config = Config::new();
    match &server.reach {
        Reach::Socket(folder) => config.host_path(folder),
        Reach::Tcp(host) => config.host(host),
    };
    config
        .port(server.port)
        .user(&login.user)
        .password(login.password.reveal())
        .dbname(database)
        .application_name(application_name);
    let doing = || {
        format!(
            "connecting to PostgreSQL at {server}, database {database}, as {}",
            login.user
        )
    };
    let (client, connection) = tokio::time::timeout(CONNECT_TIMEOUT, config.connect(NoTls))
        .await
        .with_context(|| format!("no answer within {CONNECT_TIMEOUT:?}"))
        .with_context(doing)?
        .with_context(doing)?;
    let driver = tokio::spawn(async move {
        // An error here also fails the query in flight, which is where it is reported.
        if let Err(error) = connection.await {
            tracing::debug!(%error, "a PostgreSQL session ended");
        }
    });
    Ok(Session { client, driver })
}
