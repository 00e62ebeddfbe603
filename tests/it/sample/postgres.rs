//! A PostgreSQL server of a test's own: a folder, a socket, gone with the value.

use std::os::unix::fs::{MetadataExt, chown};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use ceteris::sql::{Login, Password, Reach, Role, Server, Session, connect, make_roles};
use rustix::process::{Pid, Signal, kill_process};

/// A running server.
pub struct Postgres {
    folder: tempfile::TempDir,
    child: Option<Child>,
    pub server: Server,
}

fn programs() -> PathBuf {
    let mut found: Vec<_> = std::fs::read_dir("/usr/lib/postgresql")
        .into_iter()
        .flatten()
        .flatten()
        .map(|entry| entry.path().join("bin"))
        .filter(|bin| bin.join("postgres").exists())
        .collect();
    found.sort();
    found
        .pop()
        .expect("these tests need PostgreSQL's server programs: apt install postgresql")
}

/// The user `postgres` when the test runs as root, which PostgreSQL refuses to run as.
fn unprivileged() -> Option<(u32, u32)> {
    if !rustix::process::geteuid().is_root() {
        return None;
    }
    let users = std::fs::read_to_string("/etc/passwd").unwrap();
    let line = users
        .lines()
        .find(|line| line.starts_with("postgres:"))
        .expect("these tests need the user postgres when run as root: apt install postgresql");
    let mut fields = line.split(':').skip(2).map(|id| id.parse().unwrap());
    Some((fields.next().unwrap(), fields.next().unwrap()))
}

fn command(program: &str, folder: &Path) -> Command {
    let mut command = Command::new(programs().join(program));
    command.current_dir("/").stdin(Stdio::null());
    command.env_clear().env("PATH", "/usr/bin:/bin");
    let owner = std::fs::metadata(folder).unwrap();
    if let Some((uid, gid)) = unprivileged() {
        assert_eq!(owner.uid(), uid);
        command.uid(uid).gid(gid);
    }
    command
}

impl Postgres {
    /// Makes and starts a server with one database `app`, an extension for statements, and the roles of sampler and pruner.
    pub async fn start() -> Self {
        let folder = tempfile::tempdir().unwrap();
        if let Some((uid, gid)) = unprivileged() {
            chown(folder.path(), Some(uid), Some(gid)).unwrap();
        }
        let password = Password::random();
        let secret = folder.path().join("password");
        std::fs::write(&secret, password.reveal()).unwrap();
        let made = command("initdb", folder.path())
            .arg("-D")
            .arg(folder.path().join("data"))
            .args(["-U", "postgres", "-A", "scram-sha-256", "--no-sync"])
            .arg("--pwfile")
            .arg(&secret)
            .output()
            .unwrap();
        assert!(made.status.success(), "{made:?}");
        let owner = Login {
            user: "postgres".into(),
            password,
        };
        let server = Server::new(Reach::Socket(folder.path().into()), 5432, owner);
        let mut postgres = Self {
            folder,
            child: None,
            server,
        };
        postgres.up().await;
        let session = postgres.session("postgres").await;
        session.batch_execute("CREATE DATABASE app").await.unwrap();
        make_roles(&session, &postgres.server).await.unwrap();
        let session = postgres.session("app").await;
        session
            .batch_execute("CREATE EXTENSION pg_stat_statements")
            .await
            .unwrap();
        postgres
    }

    /// Starts the server and waits until it answers.
    pub async fn up(&mut self) {
        let log = std::fs::File::create(self.folder.path().join("log")).unwrap();
        let child = command("postgres", self.folder.path())
            .arg("-D")
            .arg(self.folder.path().join("data"))
            .arg("-k")
            .arg(self.folder.path())
            .args(["-p", "5432", "-c", "listen_addresses="])
            .args(["-c", "shared_preload_libraries=pg_stat_statements"])
            .args(["-c", "fsync=off", "-c", "shared_buffers=16MB"])
            .stdout(log.try_clone().unwrap())
            .stderr(log)
            .spawn()
            .unwrap();
        self.child = Some(child);
        let began = Instant::now();
        while connect(&self.server, Role::Owner, "postgres", "test")
            .await
            .is_err()
        {
            assert!(
                began.elapsed() < Duration::from_secs(30),
                "{}",
                std::fs::read_to_string(self.folder.path().join("log")).unwrap()
            );
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    }

    pub fn pid(&self) -> u32 {
        self.child.as_ref().unwrap().id()
    }

    /// Sends a signal to the server's first process.
    pub fn signal(&self, signal: Signal) {
        let pid = Pid::from_raw(self.pid() as i32).unwrap();
        kill_process(pid, signal).unwrap();
    }

    /// Ends the server at once, as a crash would.
    pub fn down(&mut self) {
        if let Some(mut child) = self.child.take() {
            let pid = Pid::from_raw(child.id() as i32).unwrap();
            // A stopped process would never see the other signal.
            kill_process(pid, Signal::CONT).unwrap();
            kill_process(pid, Signal::QUIT).unwrap();
            child.wait().unwrap();
        }
    }

    pub async fn session(&self, database: &str) -> Session {
        connect(&self.server, Role::Owner, database, "test")
            .await
            .unwrap()
    }
}

impl Drop for Postgres {
    fn drop(&mut self) {
        self.down();
    }
}
