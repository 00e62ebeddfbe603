//! The command line: subcommands, progress, and the only printer. It holds no logic.

mod arguments;
mod check;
mod exit;
mod judge;
mod load;
mod output;
mod probe;
mod progress;
mod record;
mod run;
mod tools;

use std::process::ExitCode;

use anyhow::Result;
use clap::Parser as _;
use clap::error::ErrorKind;

use self::arguments::{Arguments, Command};
use self::exit::Exit;
use self::output::complain;
use crate::deploy;

/// Runs the program.
pub fn main() -> ExitCode {
    let arguments = match Arguments::try_parse() {
        Ok(arguments) => arguments,
        Err(error) => {
            // Nothing is left to do when even this can't be printed.
            let _ = error.print();
            return match error.kind() {
                ErrorKind::DisplayHelp | ErrorKind::DisplayVersion => Exit::Fine.into(),
                _ => Exit::Wrong.into(),
            };
        }
    };
    match command(arguments.command) {
        Ok(exit) => exit.into(),
        Err(error) if error.is::<run::StoppedNow>() => {
            complain(&error);
            Exit::Interrupted.into()
        }
        Err(error) => {
            complain(&error);
            Exit::NotValid.into()
        }
    }
}

fn command(command: Command) -> Result<Exit> {
    match command {
        Command::Check { file, json } => check::check(&file, json),
        Command::Run(arguments) => run::run(&arguments),
        Command::Analyze { run } => judge::analyze(&run),
        Command::Report {
            run,
            template,
            format,
        } => judge::report(&run, template.as_deref(), &format),
        Command::Verify { run } => record::verify(&run),
        Command::Publish {
            run,
            dir,
            with_host,
        } => record::publish(&run, &dir, with_host),
        Command::Note { run, at, text } => record::note(&run, at.as_deref(), &text),
        Command::List { dir } => record::list(&dir),
        Command::Load(arguments) => load::load(&arguments),
        Command::Probe(arguments) => probe::probe(&arguments),
        Command::Trend { file, margin, json } => tools::trend(&file, &margin, json),
        Command::Calibrate { runs, seed, json } => tools::calibrate(runs, seed, json),
        Command::Fetch { program } => tools::fetch(program),
        Command::Init { name } => tools::init(&name),
        Command::Schema => tools::schema(),
        Command::Supervise { .. } => {
            deploy::supervisor::main()?;
            Ok(Exit::Fine)
        }
    }
}
