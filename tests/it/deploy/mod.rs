//! Services up and down on real parts: processes that misbehave, a real PostgreSQL, and no survivor on any way out.

mod placement;
mod postgres;
mod process;
mod proxy;
mod readiness;
mod runner_killed;
pub mod running;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use ceteris::deploy::{self, Deployment, Prepared, Scratch, StartError};
use ceteris::experiment::{
    ArmSetup, Clients, Limits, Load, Pick, Postgres, Process, Protocol, Ready, ReadyBy, Service,
    ServiceKind, Workload,
};
use ceteris::name::{Arm, Arms, ServiceName};
use tokio::sync::watch;

/// A run's surroundings in temporary folders.
pub struct Site {
    _owned: Option<tempfile::TempDir>,
    pub base: PathBuf,
    pub scratch: Scratch,
    pub logs: PathBuf,
    cancel: watch::Sender<bool>,
}

impl Site {
    pub fn new(token: &str) -> Self {
        let owned = tempfile::tempdir().unwrap();
        let mut site = Self::at(owned.path(), token);
        site._owned = Some(owned);
        site
    }

    /// In a folder that outlives this process.
    pub fn under(base: &Path) -> Self {
        Self::at(base, &Self::token_under(base))
    }

    /// A token that no other folder's run has.
    pub fn token_under(base: &Path) -> String {
        let name = base.file_name().unwrap().to_string_lossy();
        format!("killed{}", name.trim_start_matches(".tmp"))
    }

    fn at(base: &Path, token: &str) -> Self {
        Self::open(base);
        let scratch = Scratch::create(base, token).unwrap();
        Self::open(scratch.path());
        let logs = base.join("logs");
        std::fs::create_dir(&logs).unwrap();
        Self {
            _owned: None,
            base: base.to_owned(),
            scratch,
            logs,
            cancel: watch::Sender::new(false),
        }
    }

    /// PostgreSQL runs as another user when the tests run as root, so its folders' parents must be passable.
    fn open(folder: &Path) {
        use std::os::unix::fs::PermissionsExt;
        std::fs::set_permissions(folder, std::fs::Permissions::from_mode(0o755)).unwrap();
    }

    pub fn context(&self) -> deploy::Context {
        deploy::Context {
            scratch: self.scratch.path().to_owned(),
            logs: self.logs.clone(),
            run_token: "token-of-this-run".to_owned(),
            env: Arc::new(|name| std::env::var(name).ok()),
            working_dir: self.base.clone(),
            supervisor_exe: PathBuf::from(env!("CARGO_BIN_EXE_ceteris")),
            keep_services: false,
            cancel: self.cancel.subscribe(),
        }
    }

    pub fn write(&self, name: &str, text: &str) {
        std::fs::write(self.base.join(name), text).unwrap();
    }

    pub async fn prepare(&self, services: &[Service]) -> anyhow::Result<Prepared> {
        let arms = Arms {
            treatment: setup(services),
            control: setup(services),
        };
        deploy::prepare(&arms, self.context()).await
    }

    pub async fn start(
        &self,
        prepared: &Prepared,
        services: &[Service],
    ) -> Result<Deployment, StartError> {
        Deployment::start(prepared, &setup(services), Arm::Treatment, &self.logs).await
    }

    pub fn log(&self, service: &str) -> String {
        std::fs::read_to_string(self.logs.join(format!("{service}.log"))).unwrap_or_default()
    }
}

pub fn name(text: &str) -> ServiceName {
    ServiceName::new(text).unwrap()
}

/// An arm with these services and a load that nobody drives here.
pub fn setup(services: &[Service]) -> ArmSetup {
    ArmSetup {
        services: services.to_vec(),
        clients: Clients {
            target: services[0].name.clone(),
            load: Load::Closed {
                stages: Vec::new(),
                think: Duration::ZERO,
                ramp: Duration::ZERO,
            },
            timeout: Duration::from_secs(1),
            connect_timeout: Duration::from_secs(1),
            protocol: Protocol::Http1,
            ca: None,
            insecure: false,
            socket: None,
            pin: None,
            allow_remote: false,
            headers: Vec::new(),
        },
        workload: Workload {
            pick: Pick::Weighted,
            steps: Vec::new(),
        },
        pruning: None,
        actions: Vec::new(),
    }
}

pub fn service(service: &str, kind: ServiceKind) -> Service {
    Service {
        name: name(service),
        kind,
        env: BTreeMap::new(),
        needs: Vec::new(),
        ready: Ready {
            by: None,
            within: Duration::from_secs(20),
        },
        grace: Duration::from_secs(5),
        limits: Limits::default(),
        pin: None,
        log: BTreeMap::new(),
        status: None,
    }
}

pub fn process(service_name: &str, command: &[&str]) -> Service {
    service(
        service_name,
        ServiceKind::Process(Process {
            command: command.iter().map(|part| (*part).to_owned()).collect(),
            build: None,
            dir: None,
        }),
    )
}

/// A shell script that is ready when it says so.
pub fn script(service_name: &str, text: &str) -> Service {
    let mut service = process(service_name, &["sh", "-c", text]);
    service.ready.by = Some(ReadyBy::Log("^ready$".to_owned()));
    service
}

/// A small HTTP server in Python that echoes the run token.
pub const HTTP: &str = r#"
import http.server, json, os, sys
class Answer(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        body = json.dumps({"run_token": os.environ.get("ECHO", os.environ["RUN_TOKEN"])}).encode()
        self.send_response(200)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)
    def log_message(self, *args): pass
http.server.ThreadingHTTPServer((sys.argv[1], int(sys.argv[2])), Answer).serve_forever()
"#;

pub fn http(service_name: &str) -> Service {
    let host = format!("{{{{ {service_name}.host }}}}");
    let port = format!("{{{{ {service_name}.port }}}}");
    let mut service = process(service_name, &["python3", "answer.py", &host, &port]);
    service.ready.by = Some(ReadyBy::Path("/healthz".to_owned()));
    service
}

pub fn postgres(service_name: &str, schema: &[&str]) -> Service {
    service(
        service_name,
        ServiceKind::Postgres(Postgres {
            databases: vec!["shop".to_owned()],
            schema: schema.iter().map(PathBuf::from).collect(),
            settings: BTreeMap::new(),
            roles: Vec::new(),
            version: None,
            bin: None,
            url: None,
            settle: true,
            cold: false,
        }),
    )
}

/// Processes whose environment names this scratch folder.
pub fn marked(root: &Path) -> Vec<String> {
    let needle = format!("CETERIS_MARK={}", root.display());
    let Ok(entries) = std::fs::read_dir("/proc") else {
        panic!("these tests read /proc")
    };
    entries
        .flatten()
        .filter_map(|entry| {
            let environ = std::fs::read(entry.path().join("environ")).ok()?;
            let command = std::fs::read_to_string(entry.path().join("comm")).ok()?;
            environ
                .split(|byte| *byte == 0)
                .any(|part| part == needle.as_bytes())
                .then(|| format!("{:?} {}", entry.file_name(), command.trim()))
        })
        .collect()
}

/// Waits until something holds; fails the test after a time that is long beside any machine's noise.
pub async fn until(what: &str, mut holds: impl FnMut() -> bool) {
    let deadline = Instant::now() + Duration::from_secs(60);
    while !holds() {
        assert!(Instant::now() < deadline, "still waiting until {what}");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

pub fn alive(pid: u32) -> bool {
    std::fs::read_to_string(format!("/proc/{pid}/stat"))
        .is_ok_and(|stat| !stat.rsplit(')').next().unwrap_or("").starts_with(" Z"))
}

pub fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .unwrap()
}
