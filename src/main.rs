use std::process::ExitCode;

fn main() -> ExitCode {
    if std::env::args().nth(1).as_deref() == Some(ceteris::deploy::SUBCOMMAND) {
        return match ceteris::deploy::supervisor::main() {
            Ok(()) => ExitCode::SUCCESS,
            Err(_) => ExitCode::from(3),
        };
    }
    ExitCode::SUCCESS
}
