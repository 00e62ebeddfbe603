//! A PostgreSQL server that runs already, by its URL: databases of our own naming are made in it and dropped, and nothing
//! else of it is touched.
//!
//! Both arms' databases are copies of one template, made before the first arm. It must never make a role, change a setting,
//! or drop a database that does not bear a run's name and belong to the role that it works under. What a killed run left is
//! dropped by the next one on the same server.

use std::collections::BTreeMap;
use std::fmt;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use tokio_postgres::config::{Host, SslMode};

use super::seed;
use crate::deploy::kind::{Ending, Kind, Later, Material, Place, Plan, Told};
use crate::deploy::prepare::Site;
use crate::deploy::render::{Names, Offer};
use crate::experiment::{Postgres, Service, ServiceKind};
use crate::name::Arm;
use crate::sql::{self, Login, Password, Reach, Role, Server, Session, quote_identifier};

/// What every database of ours is named by.
const PREFIX: &str = "ceteris_";
/// The oldest server that is known to work.
const OLDEST: u32 = 150_000;
/// Longest name of a database in PostgreSQL, in bytes.
const LONGEST_NAME: usize = 63;
/// A template may be copied only when its last session is gone, which takes the server a moment to notice.
const COPY_WITHIN: Duration = Duration::from_secs(10);

#[derive(Debug)]
pub(crate) struct RunningPostgres {
    declared: Postgres,
}

/// A running server, with this run's template databases in it.
pub(crate) struct Running {
    /// Sessions of all roles log in as the URL says; `names` is each arm's own.
    server: Server,
    address: Address,
    /// In the names of databases.
    token: String,
    databases: Vec<String>,
    /// Open for as long as the run lives: by it another run knows that these databases are in use.
    _alive: Session,
}

impl fmt::Debug for Running {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Running")
            .field("server", &self.server)
            .finish_non_exhaustive()
    }
}

/// A URL in parts: a database's own is `before`, its name, `after`.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Address {
    before: String,
    after: String,
}

impl Address {
    fn of(url: &str) -> Self {
        let (url, after) = match url.find('?') {
            Some(at) => url.split_at(at),
            None => (url, ""),
        };
        let authority = url.find("://").map_or(0, |at| at + 3);
        let end = url[authority..]
            .find('/')
            .map_or(url.len(), |at| authority + at);
        Self {
            before: url[..end].to_owned(),
            after: after.to_owned(),
        }
    }

    fn database(&self, name: &str) -> String {
        format!("{}/{name}{}", self.before, self.after)
    }
}

/// Where the server is and who logs in, without a word of the URL in any message: it may hold a password.
fn server(url: &str) -> Result<(Server, String)> {
    let config: tokio_postgres::Config = url.parse().map_err(|_| {
        anyhow::anyhow!("'url' is no PostgreSQL URL: write postgres://user@127.0.0.1:5432")
    })?;
    ensure!(
        config.get_ssl_mode() != SslMode::Require,
        "'url' asks for TLS, which ceteris does not speak with PostgreSQL: leave sslmode out, on loopback or behind a tunnel"
    );
    let reach = match config.get_hosts() {
        [Host::Tcp(host)] => Reach::Tcp(host.clone()),
        [Host::Unix(folder)] => Reach::Socket(folder.clone()),
        [] => bail!("'url' names no host: write postgres://user@127.0.0.1:5432"),
        _ => bail!("'url' names several hosts: name one server"),
    };
    let login = Login {
        user: config
            .get_user()
            .context("'url' names no user: write postgres://user@127.0.0.1:5432")?
            .to_owned(),
        password: Password::new(String::from_utf8_lossy(
            config.get_password().unwrap_or_default(),
        )),
    };
    let maintenance = config.get_dbname().unwrap_or("postgres").to_owned();
    let port = config.get_ports().first().copied().unwrap_or(5432);
    Ok((Server::of_one_login(reach, port, login), maintenance))
}

impl Running {
    fn name(&self, part: &str, database: &str) -> String {
        name(&self.token, part, database)
    }

    /// The server with the names of one part: an arm, or the template.
    fn of(&self, part: &str) -> Server {
        let mut server = self.server.clone();
        for database in &self.databases {
            server
                .names
                .insert(database.clone(), self.name(part, database));
        }
        server
    }

    async fn maintenance(&self) -> Result<Session> {
        sql::connect(&self.server, Role::Owner, "postgres", "ceteris").await
    }

    /// Makes an arm's databases from the templates.
    async fn copy(&self, arm: Arm) -> Result<()> {
        let session = self.maintenance().await?;
        for database in &self.databases {
            let make = format!(
                "CREATE DATABASE {} TEMPLATE {}",
                quote_identifier(&self.name(arm.as_str(), database))?,
                quote_identifier(&self.name("seed", database))?
            );
            let deadline = Instant::now() + COPY_WITHIN;
            loop {
                match session.batch_execute(&make).await {
                    Ok(()) => break,
                    Err(error)
                        if error.code()
                            == Some(&tokio_postgres::error::SqlState::OBJECT_IN_USE)
                            && Instant::now() < deadline =>
                    {
                        tokio::time::sleep(Duration::from_millis(50)).await;
                    }
                    Err(error) => {
                        return Err(error).with_context(|| {
                            format!("copying the template of the database {database}")
                        });
                    }
                }
            }
        }
        Ok(())
    }

    /// Drops the databases of one part.
    pub(crate) async fn drop_part(&self, part: &str) -> Result<()> {
        let session = self.maintenance().await?;
        for database in &self.databases {
            let name = self.name(part, database);
            session
                .batch_execute(&format!(
                    "DROP DATABASE IF EXISTS {} WITH (FORCE)",
                    quote_identifier(&name)?
                ))
                .await
                .with_context(|| format!("dropping the database {name}"))?;
        }
        Ok(())
    }
}

/// `ceteris_<run>_<part>_<database>`.
fn name(token: &str, part: &str, database: &str) -> String {
    format!("{PREFIX}{token}_{part}_{database}")
}

/// A run's token as part of a database's name.
fn token_of(run: &str) -> String {
    run.chars()
        .map(|c| match c.to_ascii_lowercase() {
            c if c.is_ascii_alphanumeric() => c,
            _ => '_',
        })
        .collect()
}

/// The run's name under which its session is listed by the server.
fn application(token: &str) -> String {
    format!("{PREFIX}{token}")
}

/// Drops what killed runs left: databases of our naming that belong to this role, of runs that have no session any more.
async fn sweep(session: &Session) -> Result<()> {
    let left = session
        .query(
            "SELECT d.datname FROM pg_database d JOIN pg_roles r ON r.oid = d.datdba \
             WHERE r.rolname = current_user AND d.datname ~ '^ceteris_.+_(seed|treatment|control)_' \
             AND NOT EXISTS (SELECT FROM pg_stat_activity a WHERE a.application_name ~ '^ceteris_' \
             AND starts_with(d.datname, a.application_name || '_'))",
            &[],
        )
        .await
        .context("looking for databases that killed runs left")?;
    for row in left {
        let name: String = row.get(0);
        // In use after all, or gone meanwhile: then it is not ours to drop.
        let dropped = session
            .batch_execute(&format!("DROP DATABASE {}", quote_identifier(&name)?))
            .await;
        tracing::info!(name, dropped = dropped.is_ok(), "a killed run's database");
    }
    Ok(())
}

impl RunningPostgres {
    pub(crate) fn new(declared: Postgres) -> Self {
        Self { declared }
    }

    async fn reach(&self, service: &Service, site: &Site) -> Result<(Running, String)> {
        let names = Names::real(BTreeMap::new(), site.env.clone());
        let url = names.render(
            self.declared.url.as_deref().unwrap_or_default(),
            &format!("{}: url", service.name),
        )?;
        let (mut server, maintenance) = server(&url)?;
        server.names.insert("postgres".to_owned(), maintenance);
        let token = token_of(&site.run_token);
        for database in &self.declared.databases {
            let name = name(&token, "treatment", database);
            ensure!(
                name.len() <= LONGEST_NAME,
                "the database's name {name} would be longer than PostgreSQL's {LONGEST_NAME} bytes: choose a shorter one than \
                 '{database}'"
            );
        }
        let session = sql::connect(&server, Role::Owner, "postgres", &application(&token)).await?;
        let version = sql::server_version_num(&session).await?;
        ensure!(
            version >= OLDEST,
            "the server is PostgreSQL {}, and 15 or newer is needed",
            version / 10_000
        );
        let row = session
            .query_one(
                "SELECT (rolcreatedb OR rolsuper), current_setting('server_version') FROM pg_roles WHERE rolname = current_user",
                &[],
            )
            .await
            .context("asking what this role may do")?;
        ensure!(
            row.get::<_, bool>(0),
            "the role {} may not make databases: ALTER ROLE {} CREATEDB, or name another in 'url'",
            server.owner.user,
            quote_identifier(&server.owner.user)?
        );
        sweep(&session).await?;
        let running = Running {
            server,
            address: Address::of(&url),
            token,
            databases: self.declared.databases.clone(),
            _alive: session,
        };
        Ok((running, row.get(1)))
    }

    async fn template(&self, service: &Service, site: &Site, running: &Running) -> Result<()> {
        let session = running.maintenance().await?;
        for database in &running.databases {
            let name = running.name("seed", database);
            session
                .batch_execute(&format!("CREATE DATABASE {}", quote_identifier(&name)?))
                .await
                .with_context(|| format!("making the database {name}"))?;
        }
        seed::schema(site, service, &self.declared, &running.of("seed")).await
    }
}

impl Kind for RunningPostgres {
    fn prepare<'a>(&'a self, service: &'a Service, site: &'a Site) -> Later<'a, Result<Material>> {
        Box::pin(async move {
            let (running, version) = self
                .reach(service, site)
                .await
                .with_context(|| service.name.to_string())?;
            if let Err(error) = self.template(service, site, &running).await {
                // What was made of it is worth nothing; the error says what matters.
                let _ = running.drop_part("seed").await;
                return Err(error);
            }
            Ok(Material {
                version: Some(version),
                running: Some(Arc::new(running)),
                ..Material::default()
            })
        })
    }

    fn shares(&self, other: &ServiceKind) -> bool {
        matches!(other, ServiceKind::Postgres(other) if Postgres {
            settle: self.declared.settle,
            ..other.clone()
        } == self.declared)
    }

    fn is_started(&self) -> bool {
        false
    }

    fn offer(&self, material: &Material, _: &Names, _: u16, dir: &Path, arm: Arm) -> Result<Offer> {
        let running = running(material)?;
        let host = match &running.server.reach {
            Reach::Tcp(host) => host.clone(),
            Reach::Socket(folder) => folder.display().to_string(),
        };
        Ok(Offer {
            url: running.address.before.clone(),
            address: format!("{host}:{}", running.server.port),
            host,
            port: running.server.port.to_string(),
            dir: dir.display().to_string(),
            databases: running
                .databases
                .iter()
                .map(|database| {
                    let own = running.name(arm.as_str(), database);
                    (database.clone(), running.address.database(&own))
                })
                .collect(),
        })
    }

    fn plan(&self, _: &Service, _: &Material, _: &Names) -> Result<Plan> {
        Ok(Plan::default())
    }

    fn furnish<'a>(&'a self, place: &'a Place<'a>) -> Later<'a, Result<()>> {
        Box::pin(async move { running(place.material)?.copy(place.arm).await })
    }

    fn dismantle<'a>(&'a self, place: &'a Place<'a>) -> Later<'a, Result<()>> {
        Box::pin(async move { running(place.material)?.drop_part(place.arm.as_str()).await })
    }

    fn answers<'a>(&'a self, place: &'a Place<'a>) -> Later<'a, Result<()>> {
        Box::pin(async move {
            let session = running(place.material)?.maintenance().await?;
            session
                .simple_query("SELECT 1")
                .await
                .context("asking PostgreSQL")?;
            Ok(())
        })
    }

    fn told<'a>(&'a self, place: &'a Place<'a>) -> Later<'a, Result<Told>> {
        Box::pin(async move { super::told(&running(place.material)?.server, place).await })
    }

    fn sql(&self, place: &Place<'_>) -> Option<Server> {
        Some(running(place.material).ok()?.of(place.arm.as_str()))
    }

    fn ending(&self) -> Ending {
        Ending {
            signal: "TERM",
            group: false,
            last: "TERM",
        }
    }
}

fn running(material: &Material) -> Result<&Running> {
    material
        .running
        .as_deref()
        .context("the running server was not prepared")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_databases_url_keeps_user_and_parameters() {
        for (url, whole) in [
            (
                "postgres://u:p%2F@127.0.0.1:5432",
                "postgres://u:p%2F@127.0.0.1:5432/x",
            ),
            ("postgres://h/main", "postgres://h/x"),
            (
                "postgresql://u@h/main?connect_timeout=2",
                "postgresql://u@h/x?connect_timeout=2",
            ),
            ("postgres://u@h?a=/b", "postgres://u@h/x?a=/b"),
        ] {
            assert_eq!(Address::of(url).database("x"), whole);
        }
    }

    #[test]
    fn a_url_is_understood_and_never_repeated_in_a_fault() {
        let (server, maintenance) = super::server("postgres://u:secret@127.0.0.1:6000/m").unwrap();
        assert_eq!(server.to_string(), "127.0.0.1:6000");
        assert_eq!(
            (server.owner.user.as_str(), maintenance.as_str()),
            ("u", "m")
        );
        assert_eq!(server.sample, server.owner);
        for wrong in [
            "postgres://u:secret@h1,h2/x",
            "postgres://secret@/x",
            "http://secret",
            "postgres://127.0.0.1/secret",
            "postgres://u:secret@h/x?sslmode=require",
        ] {
            let error = format!("{:#}", super::server(wrong).unwrap_err());
            assert!(
                error.contains("'url'") && !error.contains("secret"),
                "{error}"
            );
        }
    }

    #[test]
    fn names_bear_run_part_and_database() {
        let token = token_of("20261201T031549Z-ab12");
        assert_eq!(
            name(&token, "control", "shop"),
            "ceteris_20261201t031549z_ab12_control_shop"
        );
    }
}
