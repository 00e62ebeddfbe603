//! The supervisor's side: starts, stops, reaps, and cleans up when the runner is gone.

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::os::fd::AsFd;
use std::path::PathBuf;
use std::time::{Duration, Instant, SystemTime};

use anyhow::{Context, Result};
use rustix::process::{Signal, WaitOptions};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::net::UnixStream;
use tokio::net::unix::OwnedWriteHalf;
use tokio::signal::unix::{SignalKind, signal as listen};

use super::protocol::{Ask, Ended, Notice, Request};
use super::tree::{self, Table};
use super::{signal, spawn};
use crate::deploy::leftover;

/// How long services have to end by themselves once the runner is gone.
const LAST_GRACE: Duration = Duration::from_secs(3);
/// How often trees that are being stopped are looked at.
const LOOK: Duration = Duration::from_millis(15);

/// Runs the supervisor on standard input, which must be a socket to the runner. Returns when everything is stopped and
/// removed.
pub fn main() -> Result<()> {
    // Keys pressed in the runner's terminal are for the runner alone.
    let _ = rustix::process::setsid();
    rustix::process::set_child_subreaper(Some(rustix::process::getpid()))
        .context("becoming the reaper of all descendants")?;
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .context("starting the supervisor's event loop")?;
    runtime.block_on(serve())
}

struct Job {
    root: u32,
    alive: bool,
    last_signal: Signal,
    cgroups: Vec<PathBuf>,
}

struct Stopping {
    id: u64,
    key: String,
    deadline: Instant,
    killed: bool,
}

struct Server {
    out: OwnedWriteHalf,
    began: SystemTime,
    root: Option<PathBuf>,
    lock: Option<std::fs::File>,
    keep: bool,
    jobs: BTreeMap<String, Job>,
    stopping: Vec<Stopping>,
    cgroups: Vec<PathBuf>,
    /// First processes of all trees so far: owners of System V shared memory.
    roots: HashSet<u32>,
    shared: BTreeSet<PathBuf>,
}

async fn serve() -> Result<()> {
    let stdin = std::io::stdin()
        .as_fd()
        .try_clone_to_owned()
        .context("taking the socket to the runner from standard input")?;
    let stream = std::os::unix::net::UnixStream::from(stdin);
    stream.set_nonblocking(true)?;
    let stream = UnixStream::from_std(stream)
        .context("the supervisor is started by ceteris itself, not by hand")?;
    let (read, out) = stream.into_split();
    let mut lines = BufReader::new(read).lines();
    let mut children = listen(SignalKind::child())?;
    let mut terminate = listen(SignalKind::terminate())?;
    let mut interrupt = listen(SignalKind::interrupt())?;
    let mut hangup = listen(SignalKind::hangup())?;
    let mut look = tokio::time::interval(LOOK);
    look.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    let mut server = Server {
        out,
        began: SystemTime::now(),
        root: None,
        lock: None,
        keep: false,
        jobs: BTreeMap::new(),
        stopping: Vec::new(),
        cgroups: Vec::new(),
        roots: HashSet::new(),
        shared: BTreeSet::new(),
    };
    let finish = loop {
        tokio::select! {
            line = lines.next_line() => match line {
                Ok(Some(line)) => {
                    let request: Request = match serde_json::from_str(&line) {
                        Ok(request) => request,
                        Err(_) => break None,
                    };
                    if matches!(request.ask, Ask::Finish) {
                        break Some(request.id);
                    }
                    server.answer(request).await;
                }
                Ok(None) | Err(_) => break None,
            },
            _ = children.recv() => server.reap().await,
            _ = look.tick(), if !server.stopping.is_empty() => server.look().await,
            _ = terminate.recv() => break None,
            _ = interrupt.recv() => {}
            _ = hangup.recv() => {}
        }
    };
    server.end(finish).await;
    Ok(())
}

impl Server {
    async fn say(&mut self, notice: &Notice) {
        if let Ok(mut line) = serde_json::to_vec(notice) {
            line.push(b'\n');
            // A runner that is gone is seen by the reading side.
            let _ = self.out.write_all(&line).await;
        }
    }

    async fn answer(&mut self, request: Request) {
        let id = request.id;
        let result = match request.ask {
            Ask::Begin { root, keep } => leftover::hold(&root).map(|lock| {
                self.lock = Some(lock);
                self.root = Some(root);
                self.keep = keep;
                None
            }),
            Ask::Spawn(spawn) => spawn::start(&spawn).and_then(|pid| {
                let last_signal = signal::parse(&spawn.last_signal)?;
                self.roots.insert(pid);
                self.jobs.insert(
                    spawn.key,
                    Job {
                        root: pid,
                        alive: true,
                        last_signal,
                        cgroups: spawn.cgroups,
                    },
                );
                Ok(Some(pid))
            }),
            Ask::Signal { key, signal } => signal::parse(&signal).and_then(|signal| {
                let job = self
                    .jobs
                    .get(&key)
                    .filter(|job| job.alive)
                    .with_context(|| format!("{key} is not running"))?;
                let root = job.root;
                if signal == Signal::KILL {
                    self.note_shared(&[root]);
                }
                tree::send(root, signal);
                Ok(None)
            }),
            Ask::Stop {
                key,
                signal,
                group,
                grace_ms,
            } => match signal::parse(&signal) {
                Ok(signal) => return self.stop(id, key, signal, group, grace_ms).await,
                Err(error) => Err(error),
            },
            Ask::Cgroup { path } => {
                self.cgroups.push(path);
                Ok(None)
            }
            Ask::Finish => Ok(None),
        };
        let notice = match result {
            Ok(pid) => Notice::Done {
                id,
                pid,
                killed: false,
            },
            Err(error) => Notice::Failed {
                id,
                error: format!("{error:#}"),
            },
        };
        self.say(&notice).await;
    }

    async fn stop(&mut self, id: u64, key: String, signal: Signal, group: bool, grace_ms: u64) {
        if let Some(job) = self.jobs.get(&key) {
            match (job.alive, group) {
                (true, true) => tree::send_group(job.root, signal),
                (true, false) => tree::send(job.root, signal),
                (false, _) => {
                    for pid in self.members(&key, &Table::read()) {
                        tree::send(pid, signal);
                    }
                }
            }
        }
        self.stopping.push(Stopping {
            id,
            key,
            deadline: Instant::now() + Duration::from_millis(grace_ms),
            killed: false,
        });
        self.look().await;
    }

    /// Every process of a service that is alive.
    fn members(&self, key: &str, table: &Table) -> HashSet<u32> {
        let mut found = HashSet::new();
        let Some(job) = self.jobs.get(key) else {
            return found;
        };
        if job.alive && table.alive(job.root) {
            found.insert(job.root);
            found.extend(table.descendants(job.root));
        }
        let roots: HashSet<u32> = self
            .jobs
            .values()
            .filter(|j| j.alive)
            .map(|j| j.root)
            .collect();
        for child in table.children(std::process::id()) {
            if !roots.contains(child) && tree::environ(*child, tree::KEY).as_deref() == Some(key) {
                found.insert(*child);
                found.extend(table.descendants(*child));
            }
        }
        for procs in &job.cgroups {
            found.extend(tree::in_cgroup(procs));
        }
        found
    }

    /// Goes over the trees that are being stopped.
    async fn look(&mut self) {
        let table = Table::read();
        let mut done = Vec::new();
        for index in 0..self.stopping.len() {
            let key = self.stopping[index].key.clone();
            let members = self.members(&key, &table);
            let root_alive = self.jobs.get(&key).is_some_and(|job| job.alive);
            if members.is_empty() && !root_alive {
                done.push(index);
            } else if Instant::now() >= self.stopping[index].deadline {
                self.note_shared(&members.iter().copied().collect::<Vec<_>>());
                for pid in members {
                    tree::send(pid, Signal::KILL);
                }
                self.stopping[index].killed = true;
            }
        }
        for index in done.into_iter().rev() {
            let stopped = self.stopping.swap_remove(index);
            self.jobs.remove(&stopped.key);
            self.say(&Notice::Done {
                id: stopped.id,
                pid: None,
                killed: stopped.killed,
            })
            .await;
        }
    }

    /// Collects every child that ended, also those that were handed over.
    async fn reap(&mut self) {
        while let Ok(Some((pid, status))) = rustix::process::wait(WaitOptions::NOHANG) {
            let pid = pid.as_raw_nonzero().get().unsigned_abs();
            let ended = match (status.exit_status(), status.terminating_signal()) {
                (Some(code), _) => Ended::Code(code),
                (None, Some(number)) => Ended::Signal(number),
                (None, None) => continue,
            };
            let job = self
                .jobs
                .iter_mut()
                .find(|(_, job)| job.alive && job.root == pid);
            if let Some((key, job)) = job {
                job.alive = false;
                let key = key.clone();
                self.say(&Notice::Exited {
                    key,
                    pid,
                    status: ended,
                })
                .await;
            }
        }
        if !self.stopping.is_empty() {
            self.look().await;
        }
    }

    fn note_shared(&mut self, pids: &[u32]) {
        for pid in pids {
            self.shared.extend(tree::shared_files(*pid));
        }
    }

    /// Stops everything that descends from this process and removes what it owns.
    async fn end(&mut self, finish: Option<u64>) {
        for job in self.jobs.values().filter(|job| job.alive) {
            tree::send(job.root, job.last_signal);
        }
        let me = std::process::id();
        let deadline = Instant::now() + LAST_GRACE;
        loop {
            self.reap().await;
            let mut left = Table::read().descendants(me);
            for procs in self.cgroups.iter().map(|path| path.join("cgroup.procs")) {
                left.extend(tree::in_cgroup(&procs));
            }
            left.remove(&me);
            if left.is_empty() {
                break;
            }
            if Instant::now() >= deadline {
                self.note_shared(&left.iter().copied().collect::<Vec<_>>());
                for pid in left {
                    tree::send(pid, Signal::KILL);
                }
            }
            tokio::time::sleep(LOOK).await;
        }
        leftover::remove_shared_files(&self.shared, self.began);
        leftover::remove_shared_segments(&self.roots, self.began);
        for path in &self.cgroups {
            leftover::remove_cgroup(path);
        }
        if let Some(root) = &self.root
            && !self.keep
        {
            leftover::remove_root(root);
        }
        drop(self.lock.take());
        if let Some(id) = finish {
            self.say(&Notice::Done {
                id,
                pid: None,
                killed: false,
            })
            .await;
        }
    }
}
