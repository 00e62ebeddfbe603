//! `load`: the driver alone, against a URL.

use std::fs;
use std::io::IsTerminal as _;
use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context, Result};
use clap::Args;
use jiff::Timestamp;

use super::exit::Exit;
use super::output::{print, tell};
use crate::experiment::Protocol;
use crate::load::{self, Adhoc, AdhocReport, Environment, Quantile, StopRule};
use crate::quantity;

/// Arguments of `load`.
#[derive(Debug, Args)]
pub(super) struct LoadArguments {
    /// Where to, as http://127.0.0.1:8080/path.
    url: String,
    /// Closed-loop clients.
    #[arg(short = 'c', long, default_value_t = 8)]
    clients: u32,
    /// Send exactly so many requests.
    #[arg(short = 'n', long, conflicts_with = "duration")]
    requests: Option<u64>,
    /// Send for so long; 10s without -n.
    #[arg(short = 'd', long, value_name = "TIME")]
    duration: Option<String>,
    /// Open loop: so many requests a second, as 200/s.
    #[arg(long, value_name = "RATE")]
    rate: Option<String>,
    /// Drive for so long before, not counted.
    #[arg(long, value_name = "TIME")]
    warmup: Option<String>,
    /// For a whole answer.
    #[arg(long, value_name = "TIME", default_value = "10s")]
    timeout: String,
    /// GET, POST, PUT, PATCH, DELETE or HEAD.
    #[arg(short = 'X', long, default_value = "GET")]
    method: String,
    /// A header, as "Name: value"; may be given again. A secret comes as {{ env.NAME }}.
    #[arg(short = 'H', long = "header", value_name = "HEADER")]
    headers: Vec<String>,
    /// A body, as it is.
    #[arg(long)]
    body: Option<String>,
    /// Speak HTTP/2.
    #[arg(long)]
    http2: bool,
    /// Certificates (PEM) to trust alone.
    #[arg(long, value_name = "FILE")]
    ca: Option<PathBuf>,
    /// Trust any certificate.
    #[arg(long)]
    insecure: bool,
    /// A Unix socket in place of the URL's address.
    #[arg(long, value_name = "PATH")]
    socket: Option<PathBuf>,
    /// The URL may be another machine's.
    #[arg(long)]
    allow_remote: bool,
    /// Print the JSON object on a terminal too.
    #[arg(long)]
    json: bool,
    /// Keep the object below results/load/.
    #[arg(long)]
    keep: bool,
}

/// A value of the command line, or the message that says what is wrong with it.
pub(super) fn value<T>(name: &str, parsed: Result<T, impl std::fmt::Display>) -> Result<T, String> {
    parsed.map_err(|error| format!("error: {name}: {error}"))
}

fn asked(arguments: &LoadArguments) -> Result<Adhoc, String> {
    let time = |name: &str, text: &str| value(name, quantity::duration(text));
    let stop = match (arguments.requests, &arguments.duration) {
        (Some(requests), _) => StopRule::Requests(requests),
        (None, Some(text)) => StopRule::After(time("-d", text)?),
        (None, None) => StopRule::After(Duration::from_secs(10)),
    };
    let mut adhoc = Adhoc::new(&arguments.url, arguments.clients, stop);
    if let Some(rate) = &arguments.rate {
        adhoc.rate = Some(value("--rate", quantity::rate(rate))?);
    }
    if let Some(warmup) = &arguments.warmup {
        adhoc.warmup = time("--warmup", warmup)?;
    }
    adhoc.timeout = time("--timeout", &arguments.timeout)?;
    adhoc.method = arguments.method.to_uppercase();
    for header in &arguments.headers {
        let (name, text) = header.split_once(':').ok_or_else(|| {
            format!("error: --header: '{header}' has no colon; write \"Name: value\"")
        })?;
        adhoc
            .headers
            .push((name.trim().to_owned(), text.trim().to_owned()));
    }
    let values = adhoc.headers.iter().map(|(_, value)| value.as_str());
    adhoc.environment = value(
        "--header",
        Environment::named_in(values, &|name| std::env::var(name).ok()),
    )?;
    adhoc.body = arguments.body.clone().map(String::into_bytes);
    adhoc.protocol = if arguments.http2 {
        Protocol::Http2
    } else {
        Protocol::Http1
    };
    adhoc.ca = arguments.ca.clone();
    adhoc.insecure = arguments.insecure;
    adhoc.socket = arguments.socket.clone();
    adhoc.allow_remote = arguments.allow_remote;
    Ok(adhoc)
}

/// Drives a URL and tells what became of it.
///
/// # Errors
/// When the URL can't be driven at all, or the report can't be written.
pub(super) fn load(arguments: &LoadArguments) -> Result<Exit> {
    let adhoc = match asked(arguments) {
        Ok(adhoc) => adhoc,
        Err(message) => {
            tell(&message);
            return Ok(Exit::Wrong);
        }
    };
    let Some(report) = runtime()?.block_on(driven(&adhoc)) else {
        tell("stopped at once: nothing of it is told");
        return Ok(Exit::Interrupted);
    };
    let report = report?;
    let json = serde_json::to_string(&report).context("writing the report as JSON")?;
    if arguments.keep {
        let folder = PathBuf::from("results/load");
        fs::create_dir_all(&folder).with_context(|| format!("making {}", folder.display()))?;
        let stamp = Timestamp::now().strftime("%Y%m%dT%H%M%SZ");
        let path = folder.join(format!("{stamp}-{:04x}.json", rand::random::<u16>()));
        fs::write(&path, format!("{json}\n"))
            .with_context(|| format!("writing {}", path.display()))?;
        tell(&format!("kept as {}", path.display()));
    }
    if arguments.json || !std::io::stdout().is_terminal() {
        print(&format!("{json}\n"))?;
    } else {
        print(&in_words(&report))?;
    }
    Ok(if report.interrupted {
        Exit::Interrupted
    } else if report.nothing_answered() {
        Exit::NotValid
    } else if report.has_fault() {
        Exit::DoesNotHold
    } else {
        Exit::Fine
    })
}

/// The first Ctrl-C stops the load and tells what was measured; `None` when a second one does not wait for that.
async fn driven(adhoc: &Adhoc) -> Option<Result<AdhocReport>> {
    let (stop, stopped) = tokio::sync::oneshot::channel::<()>();
    let mut stop = Some(stop);
    let load = load::adhoc(adhoc, async {
        // Without a first Ctrl-C the sender lives as long as the load.
        let _ = stopped.await;
    });
    tokio::pin!(load);
    loop {
        tokio::select! {
            report = &mut load => return Some(report),
            () = interrupted() => match stop.take() {
                Some(stop) => {
                    // The load has ended by itself when it hears no more.
                    let _ = stop.send(());
                    tell("stopping; requests in flight may take their timeout, Ctrl-C again stops at once");
                }
                None => return None,
            },
        }
    }
}

/// The runtime of one command.
///
/// # Errors
/// When it can't be started.
pub(super) fn runtime() -> Result<tokio::runtime::Runtime> {
    tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .context("starting the runtime")
}

/// Completes at Ctrl-C; never when that can't be heard.
async fn interrupted() {
    if tokio::signal::ctrl_c().await.is_err() {
        std::future::pending::<()>().await;
    }
}

fn ms(value: Option<f64>) -> String {
    value.map_or_else(|| "-".to_owned(), |ms| format!("{ms:.3}"))
}

fn quantile(value: Quantile) -> String {
    match value {
        Quantile::Seen(ms) => format!("{ms:.3}"),
        Quantile::AtLeast { at_least } => format!("at least {at_least:.0}"),
        Quantile::TooFew(()) => "n too small".to_owned(),
    }
}

fn in_words(report: &AdhocReport) -> String {
    let (requests, latency, driver) = (&report.requests, &report.latency_ms, &report.driver);
    let mut lines = vec![
        format!("{}: {}", report.url, report.load),
        format!(
            "requests     {} sent in {:.3} s: {} ok, {} failed, {} cut, {} not sent",
            requests.sent,
            report.seconds,
            requests.ok,
            requests.failed,
            requests.cut,
            requests.not_sent
        ),
        match report.rate.asked {
            Some(asked) => format!(
                "rate         {asked:.1} a second asked, {:.1} ok a second delivered",
                report.rate.delivered
            ),
            None => format!("rate         {:.1} ok a second", report.rate.delivered),
        },
        format!(
            "latency ms   min {}  p50 {}  p90 {}  p95 {}  p99 {}  p99.9 {}  max {}  mean {}",
            ms(latency.min),
            quantile(latency.p50),
            quantile(latency.p90),
            quantile(latency.p95),
            quantile(latency.p99),
            quantile(latency.p999),
            ms(latency.max),
            ms(latency.mean)
        ),
        format!(
            "connect ms   p50 {}  max {} (n {})",
            quantile(report.connect_ms.p50),
            ms(report.connect_ms.max),
            report.connect_ms.n
        ),
        format!(
            "driver       {} us of processor a request, busiest thread {:.0} % of a core, send delay {:.0} us",
            driver
                .cpu_us_per_request
                .map_or_else(|| "-".to_owned(), |us| format!("{us:.2}")),
            driver.busiest_share * 100.0,
            driver.send_delay_us
        ),
    ];
    if let Some(ratio) = report.littles_ratio {
        lines.push(format!(
            "Little's law {ratio:.3} (0.97 to 1.03 when the records are whole)"
        ));
    }
    for (class, count) in &report.failures {
        lines.push(format!("failed       {class}: {count}"));
    }
    for why in &driver.because {
        lines.push(format!("the driver may be the limit: {why}"));
    }
    if report.shares_processors {
        lines.push("the driver shares processors with what it measures".to_owned());
    }
    lines.push(String::new());
    lines.join("\n")
}
