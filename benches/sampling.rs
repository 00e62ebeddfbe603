//! What sampling costs: a deployment of twenty processes, sampled each second, beside the share of one core that this takes.
//!
//! Proportional set sizes are read on a thread of their own and counted apart.

use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use ceteris::name::ServiceName;
use ceteris::sample::{ProcessRoot, SampleSpec, WatchedService, start};
use tokio::sync::{mpsc, watch};

/// Processes in the deployment.
const PROCESSES: usize = 20;
/// How long it is sampled.
const LENGTH: Duration = Duration::from_secs(30);
/// The cost that sampling each second must stay below, as a share of one core.
const LIMIT: f64 = 0.01;

/// Processes that end with the value.
struct Deployment(Vec<Child>);

impl Drop for Deployment {
    fn drop(&mut self) {
        for child in &mut self.0 {
            // One that has ended already can't be killed.
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

fn main() -> Result<()> {
    let mut deployment = Deployment(Vec::new());
    let mut services = Vec::new();
    let mut ups = Vec::new();
    for i in 0..PROCESSES {
        let child = Command::new("sleep")
            .arg("600")
            .stdin(Stdio::null())
            .spawn()
            .context("starting a process to sample")?;
        let (up, process) = watch::channel(Some(ProcessRoot {
            pid: child.id(),
            epoch: 0,
        }));
        deployment.0.push(child);
        ups.push(up);
        services.push(WatchedService {
            name: ServiceName::new(format!("s{i}")).context("naming a service")?,
            process,
            cgroups: Vec::new(),
            sql: None,
            status: None,
            log: None,
        });
    }
    let (sink, mut received) = mpsc::unbounded_channel();
    let spec = SampleSpec {
        services,
        period: Duration::from_secs(1),
        window: LENGTH,
        origin: watch::channel(Instant::now()).1,
        disks: vec![std::env::temp_dir()],
        min_free_bytes: 0,
        completed: None,
    };
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    let (totals, observations) = runtime.block_on(async {
        let sampler = start(spec, sink)?;
        tokio::time::sleep(LENGTH).await;
        let totals = sampler.stop().await;
        let mut observations = 0_u64;
        while received.recv().await.is_some() {
            observations += 1;
        }
        anyhow::Ok((totals, observations))
    })?;
    let share = totals.cost_cpu_s / LENGTH.as_secs_f64();
    let report = serde_json::json!({
        "processes": PROCESSES,
        "seconds": LENGTH.as_secs_f64(),
        "observations": observations,
        "readings_planned": totals.planned,
        "readings_taken": totals.taken,
        "share_of_a_core": share,
        "pss_ms": totals.pss_s * 1e3,
        "limit": LIMIT,
    });
    write_line(&report.to_string())?;
    ensure!(
        share < LIMIT,
        "sampling took {:.2} % of one core, and {:.0} % is the limit",
        share * 100.0,
        LIMIT * 100.0
    );
    Ok(())
}

fn write_line(line: &str) -> Result<()> {
    use std::io::Write;
    let mut out = std::io::stdout().lock();
    writeln!(out, "{line}").context("writing the result")
}
