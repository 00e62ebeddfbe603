//! A folder to run the program in, experiment files, and the look at what is left behind.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

/// Runs are timed, so they take turns.
pub fn turn() -> MutexGuard<'static, ()> {
    static TURN: Mutex<()> = Mutex::new(());
    TURN.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The application, compiled once.
pub fn application() -> &'static Path {
    static BUILT: OnceLock<PathBuf> = OnceLock::new();
    BUILT.get_or_init(|| {
        let folder = Path::new(env!("CARGO_TARGET_TMPDIR"));
        let out = folder.join(format!("application-{}", std::process::id()));
        let rustc = std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into());
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/run/application.rs");
        let built = Command::new(rustc)
            .args(["--edition", "2024", "-C", "strip=symbols", "-o"])
            .args([&out, &source])
            .output()
            .unwrap();
        assert!(built.status.success(), "{built:?}");
        // Another test process may compile at the same time: each renames a whole file into place.
        let application = folder.join("application");
        fs::rename(out, &application).unwrap();
        application
    })
}

/// A folder that any user may enter, with folders for results and for temporary files.
pub struct Site {
    owned: tempfile::TempDir,
}

/// How a run of the program ended.
#[derive(Debug)]
pub struct Ran {
    pub code: Option<i32>,
    pub out: String,
    pub err: String,
}

impl Site {
    pub fn new() -> Self {
        let owned = tempfile::tempdir().unwrap();
        let site = Self { owned };
        site.open(site.path(), 0o755);
        for name in ["tmp", "results"] {
            fs::create_dir(site.at(name)).unwrap();
            site.open(&site.at(name), 0o1777);
        }
        fs::copy(application(), site.at("application")).unwrap();
        site.write(
            "schema.sql",
            "CREATE TABLE jobs (id bigint PRIMARY KEY); INSERT INTO jobs SELECT generate_series(1, 20000);",
        );
        site
    }

    fn open(&self, path: &Path, mode: u32) {
        fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
    }

    pub fn path(&self) -> &Path {
        self.owned.path()
    }

    pub fn at(&self, name: &str) -> PathBuf {
        self.path().join(name)
    }

    pub fn write(&self, name: &str, text: &str) {
        fs::write(self.at(name), text).unwrap();
    }

    /// The program, to be started in this folder.
    pub fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_ceteris"));
        self.surround(&mut command, arguments);
        command
    }

    pub fn surround(&self, command: &mut Command, arguments: &[&str]) {
        command
            .args(arguments)
            .current_dir(self.path())
            .env("TMPDIR", self.at("tmp"))
            .stdin(Stdio::null());
    }

    pub fn ceteris(&self, arguments: &[&str]) -> Ran {
        ran(&mut self.command(arguments))
    }

    /// Writes an experiment file and runs it.
    pub fn run(&self, experiment: &str) -> Ran {
        self.write("experiment.toml", experiment);
        self.ceteris(&["run", "experiment.toml"])
    }

    /// Writes an experiment file and starts to run it.
    pub fn start(&self, experiment: &str) -> Child {
        self.write("experiment.toml", experiment);
        self.command(&["run", "experiment.toml"])
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap()
    }

    /// The folder of the newest run.
    pub fn folder(&self) -> PathBuf {
        self.at("results/small/latest").canonicalize().unwrap()
    }

    pub fn report(&self) -> String {
        fs::read_to_string(self.folder().join("report.md")).unwrap()
    }

    pub fn summary(&self) -> Value {
        json(&self.folder().join("summary.json"))
    }

    /// Whether any run has so many lines in a file of its arm.
    pub fn measures(&self, lines: usize) -> bool {
        ["treatment", "control"].iter().any(|arm| {
            let file = self.at(&format!("results/small/latest/pairs/01/{arm}/seconds.csv"));
            fs::read_to_string(file).is_ok_and(|text| text.lines().count() > lines)
        })
    }

    /// Processes that carry this folder's name in their environment, or work below it.
    pub fn processes(&self) -> Vec<(u32, String)> {
        let needle = self.path().to_str().unwrap().as_bytes();
        let Ok(entries) = fs::read_dir("/proc") else {
            panic!("these tests read /proc")
        };
        entries
            .flatten()
            .filter(|entry| {
                let names = fs::read(entry.path().join("environ")).is_ok_and(|environ| {
                    environ.windows(needle.len()).any(|window| window == needle)
                });
                names
                    || fs::read_link(entry.path().join("cwd"))
                        .is_ok_and(|cwd| cwd.starts_with(self.path()))
            })
            .filter_map(|entry| {
                let pid = entry.file_name().to_str()?.parse().ok()?;
                let command = fs::read_to_string(entry.path().join("comm")).unwrap_or_default();
                Some((pid, command.trim().to_owned()))
            })
            .collect()
    }

    /// Fails unless every process of the run ends, and its scratch folder is gone.
    pub fn nothing_is_left(&self) {
        until("every process of the run is gone", || {
            self.processes().is_empty()
        });
        until("the scratch folder is gone", || {
            fs::read_dir(self.at("tmp")).unwrap().next().is_none()
        });
    }
}

pub fn ran(command: &mut Command) -> Ran {
    told(
        command
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap(),
    )
}

/// Waits for the end and takes what was said.
pub fn told(child: Child) -> Ran {
    let output = child.wait_with_output().unwrap();
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    Ran {
        code: output.status.code(),
        out: text(output.stdout),
        err: text(output.stderr),
    }
}

impl Ran {
    /// Fails with everything that was said unless the code is this one, and nobody saw a panic.
    #[track_caller]
    pub fn ends(self, code: i32) -> Self {
        assert_eq!(self.code, Some(code), "{}\n{}", self.out, self.err);
        assert!(!self.err.contains("panicked"), "{}", self.err);
        self
    }

    /// Fails unless standard error names all of these.
    #[track_caller]
    pub fn names(&self, parts: &[&str]) {
        for part in parts {
            assert!(self.err.contains(part), "no '{part}' in:\n{}", self.err);
        }
    }
}

pub fn interrupt(child: &Child) {
    let pid = i32::try_from(child.id()).ok().and_then(Pid::from_raw);
    kill_process(pid.unwrap(), Signal::INT).unwrap();
}

/// Waits until something holds; fails the test after a time that is long beside any machine's noise.
#[track_caller]
pub fn until(what: &str, mut holds: impl FnMut() -> bool) {
    let deadline = Instant::now() + Duration::from_secs(120);
    while !holds() {
        assert!(Instant::now() < deadline, "still waiting until {what}");
        std::thread::sleep(Duration::from_millis(50));
    }
}

pub fn json(path: &Path) -> Value {
    serde_json::from_slice(&fs::read(path).unwrap()).unwrap()
}

/// Every file below a folder.
pub fn files_below(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.extend(files_below(&path));
        } else {
            found.push(path);
        }
    }
    found
}

/// Copies a folder.
pub fn copy(from: &Path, to: &Path) {
    for file in files_below(from) {
        let target = to.join(file.strip_prefix(from).unwrap());
        fs::create_dir_all(target.parent().unwrap()).unwrap();
        fs::copy(&file, target).unwrap();
    }
}

/// A text with a part exchanged, which must be there.
#[track_caller]
pub fn with(text: &str, part: &str, other: &str) -> String {
    assert!(text.contains(part), "no '{part}' in:\n{text}");
    text.replace(part, other)
}

/// Two short arms of the application that differ in a variable of its environment.
pub fn plain() -> String {
    format!("{HEAD}{APPLICATION}{LOAD}{CONTROL_ENV}{JUDGED}")
}

/// Two short arms of the application and a PostgreSQL that differ in pruning.
pub fn pruned() -> String {
    let application = with(
        APPLICATION,
        "MODE = \"a\"",
        "DATABASE_URL = \"{{ db.url }}/shop\", APP_PASSWORD = \"{{ env.SMALL_PASSWORD }}\"",
    );
    format!("{HEAD}{DATABASE}{application}{LOAD}{CONTROL_PRUNING}{JUDGED}")
}

const HEAD: &str = r#"
[experiment]
name     = "small"
title    = "A small run"
question = "Does one thing differ?"

[schedule]
warmup   = "1s"
duration = "3s"
window   = "1s"
sample   = "1s"
rest     = "0s"
order    = "control-first"
"#;

const DATABASE: &str = r#"
[deployment.db.postgres]
databases = ["shop"]
schema    = ["schema.sql"]
"#;

const APPLICATION: &str = r#"
[deployment.app.process]
command = ["./application", "{{ app.address }}"]
env     = { MODE = "a", FAULT = "none" }
ready   = { path = "/healthz", within = "60s" }
"#;

const LOAD: &str = r#"
[clients]
target  = "app"
closed  = 4
think   = "5ms"
timeout = "30s"

[workload]
pick = "weighted"

[[workload.step]]
name   = "list"
get    = "/items?client={{ client }}&iteration={{ iteration }}"
weight = 50
expect = { status = 200 }
keep   = { id = "/items/*/id" }

[[workload.step]]
name   = "fetch"
get    = "/items/{{ id }}?client={{ client }}&iteration={{ iteration }}"
weight = 30

[[workload.step]]
name   = "create"
post   = "/items?client={{ client }}&iteration={{ iteration }}&number={{ random_int(1, 1000000) }}"
json   = { number = "{{ random_int(1, 9) }}" }
weight = 20
expect = { status = 201 }
"#;

const CONTROL_ENV: &str = r#"
[control]
variable  = "deployment.app.process.env.MODE"
treatment = "a"
control   = "b"
"#;

const CONTROL_PRUNING: &str = r#"
[pruning]
enabled  = false
service  = "db"
database = "shop"
every    = "1s"

[pruning.table.jobs]
delete_where = "id < 100 * extract(epoch from clock_timestamp() - pg_postmaster_start_time())"

[control]
variable    = "pruning.enabled"
treatment   = false
control     = true
took_effect = "control.pruned.jobs > 0 and treatment.pruned.jobs == 0"
"#;

const JUDGED: &str = r#"
[[criterion]]
name  = "no request is refused"
holds = "arm.failures.status_4xx == 0"

[[claim]]
text = "{{ treatment.requests.ok | count }} and {{ control.requests.ok | count }} requests were answered, none with an error"
when = "treatment.requests.failed == 0 and control.requests.failed == 0"
"#;
