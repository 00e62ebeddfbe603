//! A PostgreSQL of the test's own: in a temporary folder, by a Unix socket only, gone at the end.

use std::os::unix::fs::{PermissionsExt, chown};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use tempfile::TempDir;
use tokio_postgres::{Client, NoTls};

pub struct Postgres {
    programs: PathBuf,
    /// User and group to run as, when the tests run as root: PostgreSQL refuses root.
    owner: Option<(u32, u32)>,
    folder: TempDir,
    server: Option<Child>,
}

impl Postgres {
    /// A running server with the service's schema in database `invoicing`.
    pub async fn start() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let mut postgres = Self {
            programs: programs(),
            owner: rustix::process::geteuid().is_root().then(owner),
            folder,
            server: None,
        };
        if let Some((user, group)) = postgres.owner {
            chown(postgres.folder.path(), Some(user), Some(group)).unwrap();
        }
        std::fs::set_permissions(postgres.folder.path(), PermissionsExt::from_mode(0o700)).unwrap();
        let made = postgres
            .command("initdb")
            .args([
                "--no-sync",
                "--auth=trust",
                "--username=postgres",
                "--pgdata",
            ])
            .arg(postgres.data())
            .output()
            .unwrap();
        assert!(
            made.status.success(),
            "{}",
            String::from_utf8_lossy(&made.stderr)
        );
        postgres.run().await;
        let client = postgres.connect("postgres").await.unwrap();
        client
            .batch_execute("CREATE DATABASE invoicing")
            .await
            .unwrap();
        let client = postgres.connect("invoicing").await.unwrap();
        client
            .batch_execute(include_str!("../../schema.sql"))
            .await
            .unwrap();
        postgres
    }

    /// Starts the server again after `kill`.
    pub async fn run(&mut self) {
        let log = std::fs::File::create(self.folder.path().join("log")).unwrap();
        let server = self
            .command("postgres")
            .arg("-D")
            .arg(self.data())
            .arg("-k")
            .arg(self.folder.path())
            .args(["-c", "listen_addresses=", "-c", "fsync=off"])
            .stderr(log)
            .spawn()
            .unwrap();
        self.server = Some(server);
        let start = Instant::now();
        while let Err(error) = self.connect("postgres").await {
            assert!(
                start.elapsed() < Duration::from_secs(60),
                "PostgreSQL did not start: {error}\n{}",
                std::fs::read_to_string(self.folder.path().join("log")).unwrap()
            );
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    }

    /// Ends the server without a farewell to anyone.
    pub fn kill(&mut self) {
        let Some(mut server) = self.server.take() else {
            return;
        };
        // SIGQUIT to the postmaster: all its processes end at once, and none outlives it.
        let postmaster = rustix::process::Pid::from_child(&server);
        let _ = rustix::process::kill_process(postmaster, rustix::process::Signal::QUIT);
        let _ = server.wait();
    }

    pub async fn connect(&self, database: &str) -> Result<Client, tokio_postgres::Error> {
        let (client, connection) = self
            .url(database)
            .parse::<tokio_postgres::Config>()?
            .connect(NoTls)
            .await?;
        tokio::spawn(connection);
        Ok(client)
    }

    pub fn url(&self, database: &str) -> String {
        let folder = self.folder.path().to_str().unwrap().replace('/', "%2F");
        format!("postgres://postgres@{folder}/{database}")
    }

    fn data(&self) -> PathBuf {
        self.folder.path().join("data")
    }

    fn command(&self, program: &str) -> Command {
        let mut command = Command::new(self.programs.join(program));
        command
            .current_dir("/")
            .env_remove("PGPORT")
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .process_group(0);
        if let Some((user, group)) = self.owner {
            command.uid(user).gid(group);
        }
        command
    }
}

impl Drop for Postgres {
    fn drop(&mut self) {
        self.kill();
    }
}

/// The folder with PostgreSQL's server programs.
fn programs() -> PathBuf {
    let has_them =
        |folder: &Path| folder.join("postgres").is_file() && folder.join("initdb").is_file();
    let on_path = std::env::var_os("PATH").unwrap_or_default();
    if let Some(folder) = std::env::split_paths(&on_path).find(|folder| has_them(folder)) {
        return folder;
    }
    let mut versions: Vec<(u32, PathBuf)> = std::fs::read_dir("/usr/lib/postgresql")
        .into_iter()
        .flatten()
        .flatten()
        .filter_map(|entry| {
            Some((
                entry.file_name().to_str()?.parse().ok()?,
                entry.path().join("bin"),
            ))
        })
        .filter(|(_, folder)| has_them(folder))
        .collect();
    versions.sort();
    let (_, newest) = versions
        .pop()
        .expect("these tests need PostgreSQL's server programs: apt install postgresql");
    newest
}

/// User and group of `postgres` on this machine.
fn owner() -> (u32, u32) {
    let users = std::fs::read_to_string("/etc/passwd").unwrap();
    users
        .lines()
        .map(|line| line.split(':').collect::<Vec<_>>())
        .find(|fields| fields[0] == "postgres")
        .map(|fields| (fields[2].parse().unwrap(), fields[3].parse().unwrap()))
        .expect("as root these tests need a user `postgres`, since PostgreSQL refuses root")
}
