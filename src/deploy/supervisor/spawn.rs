//! Starting one process the way a service needs it: own group, own user, own processors, own control groups, and a death
//! signal should the supervisor go first.

use std::fs::OpenOptions;
use std::io::Write;
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};

use anyhow::{Context, Result};
use rustix::thread::CpuSet;

use super::protocol::Spawn;
use super::signal;

/// Starts it and returns its process id. Must be called on the supervisor's main thread: the death signal is tied to the
/// thread that forks.
#[expect(
    unsafe_code,
    reason = "death signal, processors and control groups must be set between fork and exec"
)]
pub(super) fn start(spawn: &Spawn) -> Result<u32> {
    let log = OpenOptions::new()
        .create(true)
        .append(true)
        .open(&spawn.log)
        .with_context(|| format!("opening the log {}", spawn.log.display()))?;
    let errors = log.try_clone().context("sharing the log")?;
    let mut command = Command::new(&spawn.program);
    command
        .args(&spawn.args)
        .env_clear()
        .envs(&spawn.env)
        .current_dir(&spawn.dir)
        .stdin(Stdio::null())
        .stdout(log)
        .stderr(errors)
        .process_group(0);
    if let Some(user) = &spawn.user {
        command.uid(user.uid).gid(user.gid);
    }
    let last = signal::parse(&spawn.last_signal)?;
    let processors = spawn.pin.as_ref().map(|pin| {
        let mut set = CpuSet::new();
        for processor in pin.iter().filter(|p| **p < CpuSet::MAX_CPU) {
            set.set(*processor);
        }
        set
    });
    let mut groups = Vec::new();
    for procs in &spawn.cgroups {
        let file = OpenOptions::new()
            .write(true)
            .open(procs)
            .with_context(|| format!("opening {}", procs.display()))?;
        groups.push(file);
    }
    let supervisor = rustix::process::getpid();
    // SAFETY: between fork and exec this closure only makes system calls (write, sched_setaffinity, prctl, getppid) on
    // values made before the fork; it neither allocates nor takes locks.
    unsafe {
        command.pre_exec(move || {
            for group in &mut groups {
                // "0" is the writing process itself. Older kernels refuse this to a changed user; the parent repeats it.
                let _ = group.write(b"0");
            }
            if let Some(set) = &processors {
                rustix::thread::sched_setaffinity(None, set)?;
            }
            // A changed user id clears the death signal, so this comes after std has changed it.
            rustix::process::set_parent_process_death_signal(Some(last))?;
            if rustix::process::getppid() != Some(supervisor) {
                return Err(std::io::ErrorKind::BrokenPipe.into());
            }
            Ok(())
        });
    }
    let child = command
        .spawn()
        .with_context(|| format!("starting {}", spawn.program.display()))?;
    let pid = child.id();
    for procs in &spawn.cgroups {
        // Gone already, or inside already: neither is a fault.
        let _ = std::fs::write(procs, pid.to_string());
    }
    Ok(pid)
}
