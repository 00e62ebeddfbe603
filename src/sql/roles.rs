//! The roles of the sampler and the pruner.

use anyhow::Context;
use postgres_protocol::password::scram_sha_256;
use tokio_postgres::Client;

use super::quote::{quote_identifier, quote_literal};
use super::server::{Login, Server};

/// Makes the sampler's and the pruner's roles, with the passwords that `server` holds. The sampler may read all statistics,
/// and all tables, since it counts their rows; the pruner is a member of the owner, since VACUUM is an owner's right. Needs
/// a session of the owner with CREATEROLE.
///
/// Passwords travel as SCRAM verifiers, so that neither the server's log nor its statement statistics ever hold one.
pub async fn make_roles(client: &Client, server: &Server) -> anyhow::Result<()> {
    make_role(client, &server.sample, &["pg_monitor", "pg_read_all_data"]).await?;
    make_role(client, &server.prune, &[&server.owner.user]).await
}

async fn make_role(client: &Client, login: &Login, member_of: &[&str]) -> anyhow::Result<()> {
    let name = quote_identifier(&login.user)?;
    let verifier = quote_literal(&scram_sha_256(login.password.reveal().as_bytes()))?;
    let exists = client
        .query_opt("SELECT 1 FROM pg_roles WHERE rolname = $1", &[&login.user])
        .await
        .context("reading PostgreSQL's roles")?
        .is_some();
    let verb = if exists { "ALTER" } else { "CREATE" };
    let granted: Vec<String> = member_of
        .iter()
        .map(|role| quote_identifier(role))
        .collect::<anyhow::Result<_>>()?;
    let granted = granted.join(", ");
    client
        .batch_execute(&format!(
            "{verb} ROLE {name} LOGIN PASSWORD {verifier}; GRANT {granted} TO {name}"
        ))
        .await
        .with_context(|| format!("making the PostgreSQL role {}", login.user))
}
