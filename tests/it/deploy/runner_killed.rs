//! kill -9 of the runner, and of the supervisor as well.

use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};

use rustix::process::{Pid, Signal, kill_process};

use super::*;

/// Set in the process that plays the runner.
const BASE: &str = "CETERIS_TEST_RUNNER_BASE";

/// The scratch folder that a runner under `base` makes.
fn root_in(base: &Path) -> PathBuf {
    base.join(format!("ceteris-{}", Site::token_under(base)))
}

/// Starts this test program again as a runner, and waits until its services are up.
fn runner(test: &str, base: &Path) -> Child {
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args([test, "--exact", "--nocapture"])
        .env(BASE, base)
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let up = lines
        .map_while(Result::ok)
        .any(|line| line.ends_with("services are up"));
    assert!(up, "the runner did not get its services up");
    child
}

/// What the runner does: everything up, then nothing.
fn play(base: &Path) {
    runtime().block_on(async {
        let site = Site::under(base);
        site.write("schema.sql", "CREATE TABLE items (id int);");
        site.write("answer.py", HTTP);
        let mut away = script(
            "away",
            "trap '' TERM; (trap '' TERM QUIT; setsid sleep 600 &); echo ready; while :; do sleep 600; done",
        );
        away.needs = vec![name("db")];
        let services = [postgres("db", &["schema.sql"]), http("app"), away];
        let prepared = site.prepare(&services).await.unwrap();
        let _deployment = site.start(&prepared, &services).await.unwrap();
        println!("services are up");
        std::future::pending::<()>().await;
    });
}

/// Cycles of the test below; a longer run sets more.
const CYCLES: &str = "CETERIS_KILLED_RUNNERS";

/// One PostgreSQL, one application, one proxy, started and stopped again and again until somebody kills this process.
fn play_on(base: &Path) {
    use ceteris::experiment::Proxy;
    runtime().block_on(async {
        let site = Site::under(base);
        site.write("answer.py", HTTP);
        let mut edge = service(
            "edge",
            ServiceKind::Nginx(Proxy {
                upstream: vec![name("app")],
                config: None,
                bin: None,
            }),
        );
        edge.needs = vec![name("app")];
        let services = [postgres("db", &[]), http("app"), edge];
        println!("services are up");
        let prepared = site.prepare(&services).await.unwrap();
        loop {
            let deployment = site.start(&prepared, &services).await.unwrap();
            deployment.stop().await.unwrap();
        }
    });
}

#[test]
fn kill_9_at_any_moment_leaves_nothing_after_the_next_start() {
    if let Some(base) = std::env::var_os(BASE) {
        return play_on(Path::new(&base));
    }
    let cycles = std::env::var(CYCLES).map_or(5, |text| text.parse().unwrap());
    let before = shared_memory();
    for cycle in 0..cycles {
        let base = tempfile::tempdir().unwrap();
        let mut child = runner(
            "deploy::runner_killed::kill_9_at_any_moment_leaves_nothing_after_the_next_start",
            base.path(),
        );
        let root = root_in(base.path());
        let wait = rand::random_range(0..4000);
        std::thread::sleep(Duration::from_millis(wait));
        kill(child.id());
        child.wait().unwrap();
        nothing_is_left(&root);
        // A runner that was killed before its supervisor knew the folder leaves it to the next start.
        runtime().block_on(until("the scratch folder is gone", || {
            deploy::sweep(base.path()).unwrap();
            !root.exists()
        }));
        let left = cgroups_of(&root.file_name().unwrap().to_string_lossy());
        assert!(
            left.is_empty(),
            "cycle {cycle}, killed after {wait} ms: {left:?}"
        );
    }
    assert!(shared_memory().is_subset(&before), "shared memory is left");
}

/// Shared memory of PostgreSQL on this machine that nobody uses: System V segments without a process, by id.
fn shared_memory() -> std::collections::BTreeSet<String> {
    let table = std::fs::read_to_string("/proc/sysvipc/shm").unwrap();
    table
        .lines()
        .skip(1)
        .filter_map(|line| {
            let fields: Vec<&str> = line.split_ascii_whitespace().collect();
            (fields.get(6) == Some(&"0")).then(|| fields[1].to_owned())
        })
        .collect()
}

fn kill(pid: u32) {
    let pid = i32::try_from(pid).ok().and_then(Pid::from_raw).unwrap();
    kill_process(pid, Signal::KILL).unwrap();
}

fn nothing_is_left(root: &Path) {
    runtime().block_on(until("no process is left", || marked(root).is_empty()));
}

fn cgroups_of(mark: &str) -> Vec<PathBuf> {
    fn walk(folder: &Path, mark: &str, found: &mut Vec<PathBuf>) {
        for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
            if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
                if entry.file_name().to_string_lossy().starts_with(mark) {
                    found.push(entry.path());
                }
                walk(&entry.path(), mark, found);
            }
        }
    }
    let mut found = Vec::new();
    walk(Path::new("/sys/fs/cgroup"), mark, &mut found);
    found
}

#[test]
fn kill_9_of_the_runner_leaves_nothing() {
    if let Some(base) = std::env::var_os(BASE) {
        return play(Path::new(&base));
    }
    let base = tempfile::tempdir().unwrap();
    let mut child = runner(
        "deploy::runner_killed::kill_9_of_the_runner_leaves_nothing",
        base.path(),
    );
    let root = root_in(base.path());
    assert!(marked(&root).len() >= 5, "{:?}", marked(&root));
    kill(child.id());
    child.wait().unwrap();
    nothing_is_left(&root);
    runtime().block_on(until("the scratch folder is gone", || !root.exists()));
    assert_eq!(
        cgroups_of(&root.file_name().unwrap().to_string_lossy()),
        Vec::<PathBuf>::new()
    );
}

#[test]
fn kill_9_of_runner_and_supervisor_is_cleaned_up_at_the_next_start() {
    if let Some(base) = std::env::var_os(BASE) {
        return play(Path::new(&base));
    }
    let base = tempfile::tempdir().unwrap();
    let mut child = runner(
        "deploy::runner_killed::kill_9_of_runner_and_supervisor_is_cleaned_up_at_the_next_start",
        base.path(),
    );
    let root = root_in(base.path());
    let supervisor = supervisor_of(child.id()).unwrap();
    kill(child.id());
    kill(supervisor);
    child.wait().unwrap();
    runtime().block_on(until("both are gone", || !alive(supervisor)));
    assert!(root.exists());
    let swept = deploy::sweep(base.path()).unwrap();
    assert_eq!(swept.folders, std::slice::from_ref(&root));
    nothing_is_left(&root);
    assert!(!root.exists());
    assert_eq!(
        cgroups_of(&root.file_name().unwrap().to_string_lossy()),
        Vec::<PathBuf>::new()
    );
    assert!(deploy::sweep(base.path()).unwrap().is_empty());
}

fn supervisor_of(runner: u32) -> Option<u32> {
    std::fs::read_dir("/proc")
        .unwrap()
        .flatten()
        .find_map(|entry| {
            let pid: u32 = entry.file_name().to_str()?.parse().ok()?;
            let stat = std::fs::read_to_string(entry.path().join("stat")).ok()?;
            let parent = stat.rsplit(')').next()?.split_ascii_whitespace().nth(1)?;
            let command = std::fs::read(entry.path().join("cmdline")).ok()?;
            let supervises = command
                .split(|byte| *byte == 0)
                .any(|part| part == b"__supervise");
            (supervises && parent == runner.to_string()).then_some(pid)
        })
}
