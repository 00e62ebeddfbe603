//! `probe`: where more clients bring no more throughput, of a URL or of an experiment's deployment.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result};
use clap::Args;
use jiff::Timestamp;

use super::check::{load as load_file, look_up};
use super::exit::Exit;
use super::load::{runtime, value};
use super::output::{print, tell};
use super::progress::Display;
use super::run::heard;
use crate::analysis::probe::judge;
use crate::analysis::summary::{Bound, ProbeLevel, ProbeSummary};
use crate::experiment::{Probe, render_check};
use crate::load::{self, Adhoc, StopRule};
use crate::quantity;
use crate::results::{ProbeRow, ProbeWriter, Reading, read_probe};
use crate::run::{self, Options, Progress};

/// Levels when neither the command line nor the file names any.
const LEVELS: [u32; 8] = [1, 2, 4, 8, 16, 32, 64, 128];
/// Time a level, likewise.
const EACH: Duration = Duration::from_secs(10);

/// Arguments of `probe`.
#[derive(Debug, Args)]
pub(super) struct ProbeArguments {
    /// A URL, as http://127.0.0.1:8080/path; or an experiment file, whose control is deployed and probed.
    target: String,
    /// Levels, in clients; else those of the file, else 1,2,4,8,16,32,64,128.
    #[arg(long, value_delimiter = ',')]
    clients: Vec<u32>,
    /// Time a level; else that of the file, else 10s.
    #[arg(long, value_name = "TIME")]
    each: Option<String>,
    /// Seed of the levels' order; else that of the file, else 1.
    #[arg(long)]
    seed: Option<u64>,
    /// The URL may be another machine's.
    #[arg(long)]
    allow_remote: bool,
    /// Where an experiment's probe is kept.
    #[arg(long, value_name = "DIR", default_value = "results")]
    results: PathBuf,
    /// Keep the levels of a URL below results/probe/.
    #[arg(long)]
    keep: bool,
    /// Print one JSON object.
    #[arg(long)]
    json: bool,
}

/// Finds the saturation knee.
///
/// # Errors
/// When the target can't be driven at all, or a file can't be written.
pub(super) fn probe(arguments: &ProbeArguments) -> Result<Exit> {
    if arguments.target.contains("://") {
        of_url(arguments)
    } else {
        of_file(arguments)
    }
}

/// The levels to run, or the message that says what is wrong with them.
fn levels(arguments: &ProbeArguments, declared: Option<&Probe>) -> Result<Probe, String> {
    let clients = match declared {
        _ if !arguments.clients.is_empty() => arguments.clients.clone(),
        Some(declared) => declared.clients.clone(),
        None => LEVELS.to_vec(),
    };
    let each = match (&arguments.each, declared) {
        (Some(text), _) => value("--each", quantity::duration(text))?,
        (None, Some(declared)) => declared.each,
        (None, None) => EACH,
    };
    let mut different = clients.clone();
    different.sort_unstable();
    different.dedup();
    if each < Duration::from_secs(1) || different.len() < 3 || clients.contains(&0) {
        return Err(
            "error: a probe needs at least three different levels of one client or more, each of a second or longer"
                .to_owned(),
        );
    }
    Ok(Probe { clients, each })
}

fn of_url(arguments: &ProbeArguments) -> Result<Exit> {
    let levels = match levels(arguments, None) {
        Ok(levels) => levels,
        Err(message) => {
            tell(&message);
            return Ok(Exit::Wrong);
        }
    };
    let mut adhoc = Adhoc::new(&arguments.target, 1, StopRule::After(levels.each));
    adhoc.allow_remote = arguments.allow_remote;
    let mut file = match arguments.keep {
        true => Some(kept()?),
        false => None,
    };
    let mut rows = Vec::new();
    let seed = arguments.seed.unwrap_or(1);
    runtime()?.block_on(load::probe_url(&adhoc, &levels, seed, |level| {
        let row = run::probe_row(level, Vec::new());
        tell(&told(&row));
        if let Some((writer, _)) = &mut file {
            writer.level(&row)?;
        }
        rows.push(row);
        Ok(())
    }))?;
    if let Some((_, path)) = file {
        tell(&format!("kept as {}", path.display()));
    }
    report(judge(&rows, None), arguments.json, false)
}

/// The file of a probe that is to be kept.
fn kept() -> Result<(ProbeWriter, PathBuf)> {
    let folder = Path::new("results/probe");
    fs::create_dir_all(folder).with_context(|| format!("making {}", folder.display()))?;
    let stamp = Timestamp::now().strftime("%Y%m%dT%H%M%SZ");
    let path = folder.join(format!("{stamp}-{:04x}.csv", rand::random::<u16>()));
    Ok((ProbeWriter::create(&path, &[])?, path))
}

fn of_file(arguments: &ProbeArguments) -> Result<Exit> {
    let env = |name: &str| std::env::var(name).ok();
    let file = Path::new(&arguments.target);
    if arguments.allow_remote || arguments.keep {
        tell(
            "error: --allow-remote and --keep are for a URL; an experiment says itself where its load may go, and its probe is always kept",
        );
        return Ok(Exit::Wrong);
    }
    let Some(checked) = load_file(file, Some(&env)) else {
        return Ok(Exit::Wrong);
    };
    let absent = look_up(&mut render_check(&checked), &checked.experiment)?;
    if !absent.is_empty() {
        tell(&format!("error: {}", absent.join("\nerror: ")));
        return Ok(Exit::Wrong);
    }
    let mut experiment = checked.experiment;
    let levels = match levels(arguments, experiment.probe.as_ref()) {
        Ok(levels) => levels,
        Err(message) => {
            tell(&message);
            return Ok(Exit::Wrong);
        }
    };
    experiment.schedule.seed = arguments.seed.unwrap_or(experiment.schedule.seed);
    let options = Options {
        results: arguments.results.clone(),
        smoke: None,
        keep_services: false,
        command_line: std::env::args().collect(),
        working_dir: std::env::current_dir().context("finding the working folder")?,
        supervisor_exe: std::env::current_exe().context("finding this program")?,
        env: Arc::new(env),
    };
    let mut display = Display::new();
    let mut show = |progress: Progress| display.show(progress);
    let alone = heard(|cancel| run::probe_alone(&experiment, &levels, &options, cancel, &mut show));
    display.end();
    let alone = alone?;
    let rows = read_probe(&alone.file)?;
    tell(&format!("kept in {}", alone.folder.display()));
    let judged = judge(&rows, alone.not_whole.as_deref());
    report(judged, arguments.json, alone.interrupted)
}

/// Prints what was found. Exit as `load`: 1 when something failed, a level is missing or the driver was the limit, 3 when
/// nothing answered.
fn report(judged: Option<ProbeSummary>, json: bool, interrupted: bool) -> Result<Exit> {
    let Some(probe) = judged else {
        tell("error: no level was measured");
        return Ok(Exit::NotValid);
    };
    if json {
        let text = serde_json::to_string(&probe).context("writing the probe as JSON")?;
        print(&format!("{text}\n"))?;
    } else {
        let short = probe.not_whole.as_ref();
        let short = short.map_or(String::new(), |why| format!("not whole: {why}\n"));
        print(&format!("{}\n{}\n{short}", table(&probe), probe.verdict))?;
    }
    let limited = probe
        .found
        .as_ref()
        .is_none_or(|found| found.driver_was_the_limit);
    Ok(if interrupted {
        Exit::Interrupted
    } else if probe.levels.iter().all(|level| level.ok == 0) {
        Exit::NotValid
    } else if limited
        || probe.not_whole.is_some()
        || probe.levels.iter().any(|level| level.failed > 0)
    {
        Exit::DoesNotHold
    } else {
        Exit::Fine
    })
}

/// One level in a line.
pub(super) fn told(row: &ProbeRow) -> String {
    let p99 = match row.p99 {
        Some(Reading::Seen(ms)) => format!("{ms:.3} ms"),
        Some(Reading::AtLeast(ms)) => format!("at least {ms:.0} ms"),
        None => "unknown (n too small)".to_owned(),
    };
    format!(
        "{} clients: {:.1} ok a second, p99 {p99}, {} failed",
        row.clients,
        row.counts.ok as f64 / row.seconds.max(f64::MIN_POSITIVE),
        row.counts.failed_total()
    )
}

fn table(probe: &ProbeSummary) -> String {
    let mut head =
        "clients  ok/s       p50 ms     p95 ms     p99 ms     max ms     failed   driver"
            .to_owned();
    if let Some(level) = probe.levels.first() {
        for used in &level.services {
            head.push_str(&format!("   {0} cores   {0} MiB", used.service));
        }
    }
    let mut lines = vec![head];
    for level in &probe.levels {
        lines.push(line(level));
    }
    lines.join("\n")
}

fn line(level: &ProbeLevel) -> String {
    let bound = |bound: Option<Bound>| match bound {
        Some(Bound {
            ms,
            at_least: false,
        }) => format!("{ms:.3}"),
        Some(Bound { ms, .. }) => format!(">= {ms:.0}"),
        None => "-".to_owned(),
    };
    let number = |value: Option<f64>, digits: usize| {
        value.map_or_else(|| "-".to_owned(), |value| format!("{value:.digits$}"))
    };
    let mut text = format!(
        "{:<8} {:<10.1} {:<10} {:<10} {:<10} {:<10} {:<8} {:<6}",
        level.clients,
        level.rate,
        bound(level.p50),
        bound(level.p95),
        bound(level.p99),
        number(level.max_ms, 3),
        level.failed,
        format!("{:.0} %", level.driver_share * 100.0),
    );
    for used in &level.services {
        let width = used.service.chars().count();
        text.push_str(&format!(
            "   {:<cores$}   {:<mib$}",
            number(used.cpu_cores, 2),
            number(used.memory_mib, 1),
            cores = width + 6,
            mib = width + 4
        ));
    }
    if level.repeated {
        text.push_str("  (once more, last)");
    }
    for why in &level.driver_limits {
        text.push_str(&format!("  driver: {why}"));
    }
    text
}
