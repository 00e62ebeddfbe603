//! The data folder that both arms start from: made once, closed, then copied, so that they start from the same bytes.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, anyhow, bail};
use postgres_protocol::password::scram_sha_256;
use tokio_postgres::error::ErrorPosition;

use super::programs::Programs;
use crate::deploy::account;
use crate::deploy::logs;
use crate::deploy::prepare::Site;
use crate::deploy::program;
use crate::deploy::supervisor::User;
use crate::experiment::{Postgres, Service};
use crate::sql::{self, Login, Password, Reach, Role, Server, quote_identifier};

/// Owner of the databases, and the server's superuser.
pub(crate) const OWNER: &str = "ceteris";
const START_WITHIN: Duration = Duration::from_secs(60);

/// A closed data folder, and the logins that work in it.
#[derive(Debug, Clone)]
pub(crate) struct Seed {
    /// The data folder.
    pub(crate) data: PathBuf,
    /// Roles and passwords; where it is reached is each arm's own.
    pub(crate) server: Server,
    /// Whether pg_stat_statements is installed there.
    pub(crate) statements: bool,
}

/// Makes the data folder of a service.
pub(crate) async fn make(
    site: &Site,
    service: &Service,
    declared: &Postgres,
    programs: &Programs,
    user: Option<&User>,
) -> Result<Seed> {
    let scratch = site.scratch.join("seed");
    std::fs::create_dir_all(&scratch)
        .with_context(|| format!("creating the folder {}", scratch.display()))?;
    // Both arms may need one of their own.
    let mut home = scratch.join(service.name.as_str());
    while home.exists() {
        home.as_mut_os_string().push("-2");
    }
    account::private_folder(&home, user)?;
    account::must_reach(&home, user, "the data folder")?;
    account::must_reach(&programs.bin.join("postgres"), user, "the program")?;
    let data = home.join("data");
    let log = site.logs.join(format!("{}.prepare.log", service.name));
    let key = format!("seed/{}", service.name);
    initdb(site, &key, programs, &data, &log, user).await?;
    let socket = super::socket_folder(&home, &site.root, service.name.as_str(), user)?;
    let server = Server::new(
        Reach::Socket(socket.clone()),
        5432,
        Login {
            user: OWNER.to_owned(),
            password: Password::random(),
        },
    );
    let args = [
        "-D".to_owned(),
        data.display().to_string(),
        // Nobody but the owner of the socket's folder can come in while no password is set.
        "-c".to_owned(),
        "listen_addresses=".to_owned(),
        "-c".to_owned(),
        format!("unix_socket_directories={}", socket.display()),
        "-c".to_owned(),
        "port=5432".to_owned(),
        "-c".to_owned(),
        "fsync=off".to_owned(),
    ];
    let mut child = site
        .start(
            &key,
            programs.bin.join("postgres"),
            args.to_vec(),
            program::base_env(&site.env),
            &log,
            user,
            Some(Path::new("/")),
        )
        .await?;
    let deadline = Instant::now() + START_WITHIN;
    loop {
        if let Ok(ended) = child.ended.try_recv() {
            bail!(
                "{}: PostgreSQL {ended}; {}",
                service.name,
                logs::quoted(&log)
            );
        }
        match sql::connect(&server, Role::Owner, "postgres", "ceteris").await {
            Ok(_) => break,
            Err(error) if Instant::now() >= deadline => {
                return Err(error.context(format!(
                    "{}: PostgreSQL is not ready after {START_WITHIN:?}; {}",
                    service.name,
                    logs::quoted(&log)
                )));
            }
            Err(_) => tokio::time::sleep(Duration::from_millis(30)).await,
        }
    }
    let filled = fill(site, service, declared, &server).await;
    site.supervisor
        .stop(&key, "INT", false, Duration::from_secs(60))
        .await?;
    let statements = filled?;
    lock_up(&data, user)?;
    if socket != home {
        // A short folder made for the socket alone.
        let _ = std::fs::remove_dir_all(&socket);
    }
    Ok(Seed {
        data,
        server,
        statements,
    })
}

async fn initdb(
    site: &Site,
    key: &str,
    programs: &Programs,
    data: &Path,
    log: &Path,
    user: Option<&User>,
) -> Result<()> {
    let args = [
        "-D",
        &data.display().to_string(),
        "-U",
        OWNER,
        "--auth=trust",
        "--encoding=UTF8",
        // The same collation on every machine.
        "--locale=C",
        "--no-sync",
    ]
    .map(str::to_owned);
    let ended = site
        .run(
            key,
            programs.bin.join("initdb"),
            args.to_vec(),
            program::base_env(&site.env),
            log,
            user,
            Some(Path::new("/")),
        )
        .await
        .context("making PostgreSQL's data folder")?;
    if !ended.success() {
        bail!("initdb {ended}; {}", logs::quoted(log));
    }
    Ok(())
}

/// Roles, databases, extension, schema. Returns whether pg_stat_statements is there.
async fn fill(
    site: &Site,
    service: &Service,
    declared: &Postgres,
    server: &Server,
) -> Result<bool> {
    let first = sql::connect(server, Role::Owner, "postgres", "ceteris").await?;
    let verifier = |password: &Password| -> Result<String> {
        sql::quote_literal(&scram_sha_256(password.reveal().as_bytes()))
    };
    let password = verifier(&server.owner.password)?;
    first
        .batch_execute(&format!(
            "ALTER ROLE {} PASSWORD {password}",
            quote_identifier(OWNER)?
        ))
        .await
        .context("setting the owner's password")?;
    for role in &declared.roles {
        first
            .batch_execute(&format!(
                "CREATE ROLE {} LOGIN PASSWORD {password}",
                quote_identifier(role)?
            ))
            .await
            .with_context(|| format!("{}: making the role {role}", service.name))?;
    }
    sql::make_roles(&first, server).await?;
    let statements = first
        .query_opt(
            "SELECT 1 FROM pg_available_extensions WHERE name = 'pg_stat_statements'",
            &[],
        )
        .await
        .context("asking for pg_stat_statements")?
        .is_some();
    for database in &declared.databases {
        first
            .batch_execute(&format!("CREATE DATABASE {}", quote_identifier(database)?))
            .await
            .with_context(|| format!("{}: making the database {database}", service.name))?;
    }
    let all = declared.databases.iter().map(String::as_str);
    for database in all.chain(["postgres"]) {
        if statements {
            sql::connect(server, Role::Owner, database, "ceteris")
                .await?
                .batch_execute("CREATE EXTENSION IF NOT EXISTS pg_stat_statements")
                .await
                .with_context(|| format!("adding pg_stat_statements to {database}"))?;
        }
    }
    schema(site, service, declared, server).await?;
    Ok(statements)
}

/// Runs the schema files in the first database, in order.
pub(super) async fn schema(
    site: &Site,
    service: &Service,
    declared: &Postgres,
    server: &Server,
) -> Result<()> {
    let target = declared
        .databases
        .first()
        .map_or("postgres", String::as_str);
    for file in &declared.schema {
        let path = site.working_dir.join(file);
        let text = std::fs::read_to_string(&path)
            .with_context(|| format!("{}: reading the schema {}", service.name, file.display()))?;
        let session = sql::connect(server, Role::Owner, target, "ceteris").await?;
        session
            .batch_execute(&text)
            .await
            .map_err(|error| refused(&error, file, &text))
            .with_context(|| format!("{}: schema for database {target}", service.name))?;
    }
    Ok(())
}

/// What PostgreSQL said about a schema file, with the line that it means.
fn refused(error: &tokio_postgres::Error, file: &Path, text: &str) -> anyhow::Error {
    let Some(said) = error.as_db_error() else {
        return anyhow!("{}: {error}", file.display());
    };
    let place = match said.position() {
        Some(ErrorPosition::Original(position)) => {
            let (line, column) = line_of(text, *position);
            format!("{}:{line}:{column}", file.display())
        }
        _ => file.display().to_string(),
    };
    let hint = said
        .hint()
        .map_or_else(String::new, |hint| format!(" (hint: {hint})"));
    let psql = if text.lines().any(|line| line.starts_with('\\')) {
        "; commands of psql such as \\i and \\copy are not SQL"
    } else {
        ""
    };
    anyhow!(
        "{place}: {} {}: {}{hint}{psql}",
        said.severity(),
        said.code().code(),
        said.message()
    )
}

/// Line and column, from 1, of PostgreSQL's position: characters from 1.
fn line_of(text: &str, position: u32) -> (usize, usize) {
    let before: String = text
        .chars()
        .take((position as usize).saturating_sub(1))
        .collect();
    let line = before.matches('\n').count() + 1;
    let column = before
        .rsplit('\n')
        .next()
        .map_or(1, |rest| rest.chars().count() + 1);
    (line, column)
}

/// Ends the passwordless time: from here on every connection needs one.
fn lock_up(data: &Path, user: Option<&User>) -> Result<()> {
    let hba = data.join("pg_hba.conf");
    std::fs::write(
        &hba,
        "local all all scram-sha-256\n\
         host all all 127.0.0.1/32 scram-sha-256\n\
         host all all ::1/128 scram-sha-256\n",
    )
    .with_context(|| format!("writing {}", hba.display()))?;
    account::give(&hba, user)?;
    let main = data.join("postgresql.conf");
    let mut text =
        std::fs::read_to_string(&main).with_context(|| format!("reading {}", main.display()))?;
    text.push_str("\ninclude 'ceteris.conf'\n");
    std::fs::write(&main, text).with_context(|| format!("writing {}", main.display()))?;
    Ok(())
}

/// Copies a closed data folder; owners and modes stay as they are.
pub(crate) fn copy(from: &Path, to: &Path, user: Option<&User>) -> Result<()> {
    let kind = from
        .symlink_metadata()
        .with_context(|| format!("reading {}", from.display()))?
        .file_type();
    if kind.is_dir() {
        std::fs::create_dir(to).with_context(|| format!("creating {}", to.display()))?;
        let permissions = from.metadata()?.permissions();
        for entry in std::fs::read_dir(from)
            .with_context(|| format!("reading {}", from.display()))?
            .collect::<std::io::Result<Vec<_>>>()?
        {
            copy(&entry.path(), &to.join(entry.file_name()), user)?;
        }
        std::fs::set_permissions(to, permissions)?;
    } else if kind.is_symlink() {
        std::os::unix::fs::symlink(std::fs::read_link(from)?, to)
            .with_context(|| format!("copying {}", from.display()))?;
    } else if kind.is_file() {
        std::fs::copy(from, to).with_context(|| format!("copying {}", from.display()))?;
    }
    account::give(to, user)
}

/// A `postgresql.conf` text with one setting a line.
pub(crate) fn configuration(settings: &BTreeMap<String, String>) -> Result<String> {
    let mut text = String::new();
    for (name, value) in settings {
        let legal = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '.';
        if name.is_empty() || !name.chars().all(legal) {
            bail!("'{name}' is no name of a PostgreSQL setting");
        }
        if value.contains(['\n', '\r', '\0']) {
            bail!("the setting {name} has a line end in its value");
        }
        let quoted = value.replace('\\', "\\\\").replace('\'', "''");
        text.push_str(&format!("{name} = '{quoted}'\n"));
    }
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn positions_become_lines() {
        assert_eq!(line_of("create table a();\ncreate tabel b();", 26), (2, 8));
        assert_eq!(line_of("é\nx", 3), (2, 1));
        assert_eq!(line_of("", 1), (1, 1));
    }

    #[test]
    fn settings_can_not_leave_their_quotes() {
        let settings = BTreeMap::from([("a.b".to_owned(), "it's\\x".to_owned())]);
        assert_eq!(configuration(&settings).unwrap(), "a.b = 'it''s\\\\x'\n");
        for (name, value) in [("a b", "x"), ("", "x"), ("a", "x\ny = 1")] {
            let settings = BTreeMap::from([(name.to_owned(), value.to_owned())]);
            assert!(configuration(&settings).is_err(), "{name}");
        }
    }

    #[test]
    fn a_copy_has_the_same_bytes_and_modes() {
        use std::os::unix::fs::PermissionsExt;
        let dir = tempfile::tempdir().unwrap();
        let from = dir.path().join("from");
        std::fs::create_dir_all(from.join("base/1")).unwrap();
        std::fs::write(from.join("base/1/2"), [0, 1, 2]).unwrap();
        std::fs::set_permissions(&from, std::fs::Permissions::from_mode(0o700)).unwrap();
        let to = dir.path().join("to");
        copy(&from, &to, None).unwrap();
        assert_eq!(std::fs::read(to.join("base/1/2")).unwrap(), [0, 1, 2]);
        assert_eq!(to.metadata().unwrap().permissions().mode() & 0o777, 0o700);
    }
}
