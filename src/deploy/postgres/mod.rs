//! The kind `postgres`: a server of its own per arm, from a data folder that was made once.
//!
//! It listens on a Unix socket in a closed folder and on loopback, and every connection needs a random password that exists
//! in memory only.

mod programs;
mod running;
mod seed;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Context, Result, bail};

pub(crate) use programs::find;
pub(crate) use running::{Running, RunningPostgres};
pub(crate) use seed::Seed;

use super::account;
use super::kind::{Ending, Kind, Later, Material, Place, Plan, Told};
use super::prepare::Site;
use super::program::Program;
use super::render::{Names, Offer};
use super::supervisor::User;
use crate::experiment::{Postgres, Service, ServiceKind};
use crate::name::Arm;
use crate::sql::{self, Reach, Role, Server};

/// Longest path of a Unix socket on Linux, without the final NUL.
const SOCKET_PATH: usize = 107;

#[derive(Debug)]
pub(crate) struct PostgresKind {
    declared: Postgres,
}

impl PostgresKind {
    pub(crate) fn new(declared: Postgres) -> Self {
        Self { declared }
    }
}

impl Kind for PostgresKind {
    fn prepare<'a>(&'a self, service: &'a Service, site: &'a Site) -> Later<'a, Result<Material>> {
        Box::pin(async move {
            let found = programs::find(
                self.declared.bin.as_deref(),
                self.declared.version,
                &site.working_dir,
                &site.env,
            )
            .await
            .with_context(|| service.name.to_string())?;
            let user = account::unprivileged()?;
            let seed = seed::make(site, service, &self.declared, &found, user.as_ref()).await?;
            Ok(Material {
                program: Some(Program::at(found.bin.join("postgres"))?),
                version: Some(found.version),
                seed: Some(Arc::new(seed)),
                user,
                ..Material::default()
            })
        })
    }

    fn shares(&self, other: &ServiceKind) -> bool {
        // Settings are applied to the copy.
        matches!(other, ServiceKind::Postgres(other) if Postgres {
            settings: self.declared.settings.clone(),
            settle: self.declared.settle,
            cold: self.declared.cold,
            ..other.clone()
        } == self.declared)
    }

    fn offer(
        &self,
        material: &Material,
        _: &Names,
        port: u16,
        dir: &Path,
        _: Arm,
    ) -> Result<Offer> {
        let owner = &seed_of(material)?.server.owner;
        let address = format!("127.0.0.1:{port}");
        let url = format!(
            "postgres://{}:{}@{address}",
            owner.user,
            owner.password.reveal()
        );
        Ok(Offer {
            databases: self
                .declared
                .databases
                .iter()
                .map(|name| (name.clone(), format!("{url}/{name}")))
                .collect(),
            url,
            address,
            host: "127.0.0.1".to_owned(),
            port: port.to_string(),
            dir: dir.display().to_string(),
        })
    }

    fn plan(&self, service: &Service, material: &Material, names: &Names) -> Result<Plan> {
        let offer = names.offer(service.name.as_str())?;
        let mut declared = BTreeMap::new();
        for (name, value) in &self.declared.settings {
            let what = format!("{}: settings.{name}", service.name);
            declared.insert(name.clone(), names.render(value, &what)?);
        }
        let mut settings = BTreeMap::from([
            ("listen_addresses".to_owned(), "127.0.0.1".to_owned()),
            ("port".to_owned(), offer.port.clone()),
        ]);
        if seed_of(material)?.statements {
            settings.insert(
                "shared_preload_libraries".to_owned(),
                "pg_stat_statements".to_owned(),
            );
        }
        settings.extend(declared.clone());
        let text = seed::configuration(&settings).with_context(|| service.name.to_string())?;
        Ok(Plan {
            args: vec!["-D".to_owned(), format!("{}/data", offer.dir)],
            files: BTreeMap::from([("data/ceteris.conf".to_owned(), text)]),
            dir: Some(PathBuf::from("/")),
            env: BTreeMap::new(),
            settings: declared,
        })
    }

    fn furnish<'a>(&'a self, place: &'a Place<'a>) -> Later<'a, Result<()>> {
        Box::pin(async move {
            let user = place.material.user.clone();
            account::private_folder(place.dir, user.as_ref())?;
            account::must_reach(place.dir, user.as_ref(), "the data folder")?;
            let from = seed_of(place.material)?.data.clone();
            let to = place.dir.join("data");
            let cold = self.declared.cold;
            tokio::task::spawn_blocking(move || {
                seed::copy(&from, &to, user.as_ref())?;
                if cold {
                    forget(&to)?;
                }
                Ok(())
            })
            .await
            .context("copying the data folder")?
        })
    }

    fn extra_args(&self, place: &Place<'_>) -> Vec<String> {
        // A path, so no part of what the arms are compared by.
        vec![
            "-c".to_owned(),
            format!("unix_socket_directories={}", place.socket.display()),
        ]
    }

    fn answers<'a>(&'a self, place: &'a Place<'a>) -> Later<'a, Result<()>> {
        Box::pin(async move {
            let server = server(place)?;
            let session = sql::connect(&server, Role::Owner, "postgres", "ceteris").await?;
            session
                .simple_query("SELECT 1")
                .await
                .context("asking PostgreSQL")?;
            Ok(())
        })
    }

    fn told<'a>(&'a self, place: &'a Place<'a>) -> Later<'a, Result<Told>> {
        Box::pin(async move { told(&server(place)?, place).await })
    }

    fn sql(&self, place: &Place<'_>) -> Option<Server> {
        server(place).ok()
    }

    fn ending(&self) -> Ending {
        Ending {
            // PostgreSQL's fast shutdown; TERM would wait for its clients to leave.
            signal: "INT",
            group: false,
            last: "QUIT",
        }
    }
}

/// Version and all settings; what is each arm's own (paths, the port) as placeholders.
async fn told(server: &Server, place: &Place<'_>) -> Result<Told> {
    let session = sql::connect(server, Role::Owner, "postgres", "ceteris").await?;
    let rows = session
        .query(
            "SELECT name, COALESCE(setting, ''), COALESCE(unit, ''), source, context FROM pg_settings ORDER BY name",
            &[],
        )
        .await
        .context("reading pg_settings")?;
    let mut told = Told::default();
    for row in rows {
        let (name, setting, unit): (String, String, String) = (row.get(0), row.get(1), row.get(2));
        let (source, context): (String, String) = (row.get(3), row.get(4));
        if name == "server_version" {
            told.version = Some(setting.clone());
        }
        if context == "internal" || source == "override" {
            told.computed.push(name.clone());
        }
        let own = format!("<{}.dir>", place.service.name);
        let mut value = setting
            .replace(&place.dir.display().to_string(), &own)
            .replace(&place.socket.display().to_string(), &own);
        if name == "port" {
            value = format!("<{}.port>", place.service.name);
        }
        if !unit.is_empty() {
            value = format!("{value} {unit}");
        }
        told.settings.insert(name, value);
    }
    Ok(told)
}

fn seed_of(material: &Material) -> Result<&Seed> {
    material
        .seed
        .as_deref()
        .context("the data folder was not prepared")
}

fn server(place: &Place<'_>) -> Result<Server> {
    let mut server = seed_of(place.material)?.server.clone();
    server.reach = Reach::Socket(place.socket.to_owned());
    server.port = place
        .offer
        .port
        .parse()
        .context("the service has no port yet")?;
    Ok(server)
}

/// A folder for a Unix socket: `home` itself, or a short one beside the scratch folder when the path would be too long.
pub(crate) fn socket_folder(
    home: &Path,
    root: &Path,
    service: &str,
    user: Option<&User>,
) -> Result<PathBuf> {
    const NAME: usize = "/.s.PGSQL.65535".len();
    let fits = |folder: &Path| folder.as_os_str().len() + NAME <= SOCKET_PATH;
    if fits(home) {
        return Ok(home.to_owned());
    }
    for number in 0..100 {
        let short = root.join(format!("s{number}"));
        if fits(&short) && !short.exists() {
            account::private_folder(&short, user)?;
            return Ok(short);
        }
    }
    bail!(
        "{service}: the scratch folder {} is too deep for a Unix socket ({SOCKET_PATH} bytes): set TMPDIR to a shorter one",
        root.display()
    )
}

/// Drops a folder's files from the page cache, after writing them out.
fn forget(folder: &Path) -> Result<()> {
    for entry in std::fs::read_dir(folder)
        .with_context(|| format!("reading {}", folder.display()))?
        .flatten()
    {
        let path = entry.path();
        if entry.file_type()?.is_dir() {
            forget(&path)?;
        } else if let Ok(file) = std::fs::File::open(&path) {
            file.sync_all()
                .with_context(|| format!("writing out {}", path.display()))?;
            rustix::fs::fadvise(&file, 0, None, rustix::fs::Advice::DontNeed)
                .with_context(|| format!("dropping {} from the page cache", path.display()))?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_socket_path_that_is_too_long_gets_a_short_folder() {
        let base = tempfile::tempdir().unwrap();
        let deep = base.path().join("x".repeat(90));
        std::fs::create_dir(&deep).unwrap();
        let folder = socket_folder(&deep, base.path(), "db", None).unwrap();
        assert_eq!(folder, base.path().join("s0"));
        let near = base.path().join("db");
        assert_eq!(socket_folder(&near, base.path(), "db", None).unwrap(), near);
        assert!(socket_folder(&deep, &deep, "db", None).is_err());
    }
}
