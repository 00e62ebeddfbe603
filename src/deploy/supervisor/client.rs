//! The runner's side of the supervisor.

use std::collections::HashMap;
use std::fs::File;
use std::os::fd::OwnedFd;
use std::path::Path;
use std::process::Stdio;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use anyhow::{Context, Result, bail};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::net::UnixStream;
use tokio::net::unix::{OwnedReadHalf, OwnedWriteHalf};
use tokio::sync::{mpsc, oneshot};

use super::SUBCOMMAND;
use super::protocol::{Ask, Ended, Notice, Request, Spawn};

/// A process that the supervisor started.
pub(crate) struct Child {
    /// Its process id.
    pub(crate) pid: u32,
    /// How it ended, once it has.
    pub(crate) ended: oneshot::Receiver<Ended>,
}

#[derive(Default)]
struct Open {
    last: u64,
    answers: HashMap<u64, oneshot::Sender<Result<Answer, String>>>,
    ended: HashMap<(String, u32), oneshot::Sender<Ended>>,
    keys: HashMap<u64, (String, oneshot::Sender<Ended>)>,
    gone: bool,
}

struct Answer {
    pid: Option<u32>,
    killed: bool,
}

/// The supervisor process. When the last handle is dropped it stops and removes everything.
pub(crate) struct Supervisor {
    open: Arc<Mutex<Open>>,
    lines: mpsc::UnboundedSender<Vec<u8>>,
    process: tokio::sync::Mutex<tokio::process::Child>,
}

impl Supervisor {
    /// Starts `exe __supervise`; `root` bears the mark and is removed at the end unless `keep`.
    pub(crate) async fn start(exe: &Path, root: &Path, keep: bool) -> Result<Self> {
        let (ours, theirs) = std::os::unix::net::UnixStream::pair()
            .context("making the socket to the supervisor")?;
        let errors = root.join("supervisor.log");
        let errors =
            File::create(&errors).with_context(|| format!("creating {}", errors.display()))?;
        let process = tokio::process::Command::new(exe)
            .arg(SUBCOMMAND)
            .stdin(Stdio::from(OwnedFd::from(theirs)))
            .stdout(Stdio::null())
            .stderr(errors)
            .current_dir("/")
            .spawn()
            .with_context(|| format!("starting the supervisor {}", exe.display()))?;
        ours.set_nonblocking(true)?;
        let (read, write) = UnixStream::from_std(ours)
            .context("listening to the supervisor")?
            .into_split();
        let open = Arc::new(Mutex::new(Open::default()));
        let (lines, outgoing) = mpsc::unbounded_channel();
        tokio::spawn(write_lines(write, outgoing));
        tokio::spawn(read_notices(read, open.clone()));
        let supervisor = Self {
            open,
            lines,
            process: tokio::sync::Mutex::new(process),
        };
        supervisor
            .ask(Ask::Begin {
                root: root.to_owned(),
                keep,
            })
            .await
            .context("greeting the supervisor")?;
        Ok(supervisor)
    }

    /// Starts a process.
    pub(crate) async fn spawn(&self, spawn: Spawn) -> Result<Child> {
        let (sender, ended) = oneshot::channel();
        let key = spawn.key.clone();
        let answer = self.send(Ask::Spawn(Box::new(spawn)), Some((key, sender)))?;
        let answer = wait(answer).await?;
        let pid = answer
            .pid
            .context("the supervisor started a process without saying which")?;
        Ok(Child { pid, ended })
    }

    /// Sends a signal to the first process of a tree.
    pub(crate) async fn signal(&self, key: &str, signal: &str) -> Result<()> {
        self.ask(Ask::Signal {
            key: key.to_owned(),
            signal: signal.to_owned(),
        })
        .await?;
        Ok(())
    }

    /// Stops a tree and returns whether KILL was needed; to the whole group if `group`, else to its first process.
    pub(crate) async fn stop(
        &self,
        key: &str,
        signal: &str,
        group: bool,
        grace: Duration,
    ) -> Result<bool> {
        let answer = self.ask(stop(key, signal, group, grace)).await?;
        Ok(answer.killed)
    }

    /// Kills a tree without waiting: for `Drop`, where nothing can be awaited.
    pub(crate) fn kill_now(&self, key: &str) {
        // A supervisor that is gone has killed it already.
        let _ = self.send(stop(key, "KILL", true, Duration::ZERO), None);
    }

    /// Hands over a control group for the final removal.
    pub(crate) async fn own_cgroup(&self, path: &Path) -> Result<()> {
        self.ask(Ask::Cgroup {
            path: path.to_owned(),
        })
        .await?;
        Ok(())
    }

    /// Stops and removes everything and waits for the supervisor's end.
    pub(crate) async fn finish(&self) -> Result<()> {
        self.ask(Ask::Finish).await?;
        self.process
            .lock()
            .await
            .wait()
            .await
            .context("waiting for the supervisor's end")?;
        Ok(())
    }

    async fn ask(&self, ask: Ask) -> Result<Answer> {
        wait(self.send(ask, None)?).await
    }

    fn send(
        &self,
        ask: Ask,
        ended: Option<(String, oneshot::Sender<Ended>)>,
    ) -> Result<oneshot::Receiver<Result<Answer, String>>> {
        let (sender, receiver) = oneshot::channel();
        let id = {
            let mut open = lock(&self.open);
            if open.gone {
                bail!("the supervisor has ended, and all services with it");
            }
            open.last += 1;
            let id = open.last;
            open.answers.insert(id, sender);
            if let Some(ended) = ended {
                open.keys.insert(id, ended);
            }
            id
        };
        let mut line = serde_json::to_vec(&Request { id, ask }).context("writing a request")?;
        line.push(b'\n');
        self.lines
            .send(line)
            .map_err(|_| anyhow::anyhow!("the supervisor has ended, and all services with it"))?;
        Ok(receiver)
    }
}

fn stop(key: &str, signal: &str, group: bool, grace: Duration) -> Ask {
    Ask::Stop {
        key: key.to_owned(),
        signal: signal.to_owned(),
        group,
        grace_ms: u64::try_from(grace.as_millis()).unwrap_or(u64::MAX),
    }
}

async fn wait(answer: oneshot::Receiver<Result<Answer, String>>) -> Result<Answer> {
    match answer.await {
        Ok(Ok(answer)) => Ok(answer),
        Ok(Err(error)) => Err(anyhow::anyhow!(error)),
        Err(_) => bail!("the supervisor has ended, and all services with it"),
    }
}

fn lock(open: &Mutex<Open>) -> MutexGuard<'_, Open> {
    open.lock().unwrap_or_else(PoisonError::into_inner)
}

async fn write_lines(mut write: OwnedWriteHalf, mut lines: mpsc::UnboundedReceiver<Vec<u8>>) {
    while let Some(line) = lines.recv().await {
        if write.write_all(&line).await.is_err() {
            return;
        }
    }
}

async fn read_notices(read: OwnedReadHalf, open: Arc<Mutex<Open>>) {
    let mut lines = BufReader::new(read).lines();
    while let Ok(Some(line)) = lines.next_line().await {
        let Ok(notice) = serde_json::from_str::<Notice>(&line) else {
            break;
        };
        let mut open = lock(&open);
        match notice {
            Notice::Done { id, pid, killed } => {
                if let (Some((key, sender)), Some(pid)) = (open.keys.remove(&id), pid) {
                    open.ended.insert((key, pid), sender);
                }
                if let Some(sender) = open.answers.remove(&id) {
                    let _ = sender.send(Ok(Answer { pid, killed }));
                }
            }
            Notice::Failed { id, error } => {
                open.keys.remove(&id);
                if let Some(sender) = open.answers.remove(&id) {
                    let _ = sender.send(Err(error));
                }
            }
            Notice::Exited { key, pid, status } => {
                if let Some(sender) = open.ended.remove(&(key, pid)) {
                    let _ = sender.send(status);
                }
            }
        }
    }
    let mut open = lock(&open);
    open.gone = true;
    // Dropping the senders of answers tells everyone who waits.
    open.answers.clear();
    open.keys.clear();
    for (_, sender) in open.ended.drain() {
        let _ = sender.send(Ended::Unknown);
    }
}
