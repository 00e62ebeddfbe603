//! The service's entry: read the arguments, start the runtime, serve until told to stop.

use std::process::ExitCode;

use anyhow::Context;
use clap::Parser;
use invoicing::arguments::{Arguments, Environment};

fn main() -> ExitCode {
    tracing_subscriber::fmt()
        .with_writer(std::io::stderr)
        .with_ansi(false)
        .init();
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            tracing::error!("{error:#}");
            ExitCode::FAILURE
        }
    }
}

fn run() -> anyhow::Result<()> {
    let arguments = Arguments::parse();
    let environment = Environment::read()?;
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(arguments.threads())
        .enable_all()
        .build()
        .context("the threads that serve requests cannot be started")?;
    runtime.block_on(invoicing::server::serve(arguments, environment))
}
