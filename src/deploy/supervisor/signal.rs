//! Signals by name.

use rustix::process::Signal;

const NAMED: [(&str, Signal); 14] = [
    ("HUP", Signal::HUP),
    ("INT", Signal::INT),
    ("QUIT", Signal::QUIT),
    ("ABRT", Signal::ABORT),
    ("KILL", Signal::KILL),
    ("USR1", Signal::USR1),
    ("USR2", Signal::USR2),
    ("SEGV", Signal::SEGV),
    ("PIPE", Signal::PIPE),
    ("ALRM", Signal::ALARM),
    ("TERM", Signal::TERM),
    ("STOP", Signal::STOP),
    ("CONT", Signal::CONT),
    ("WINCH", Signal::WINCH),
];

/// The signal of this name, with or without `SIG`.
pub(crate) fn parse(text: &str) -> anyhow::Result<Signal> {
    let bare = text.strip_prefix("SIG").unwrap_or(text);
    NAMED
        .iter()
        .find(|(name, _)| *name == bare)
        .map(|(_, signal)| *signal)
        .ok_or_else(|| {
            let known: Vec<&str> = NAMED.iter().map(|(name, _)| *name).collect();
            anyhow::anyhow!(
                "'{text}' is no signal that can be sent: write one of {}",
                known.join(", ")
            )
        })
}

/// The name of a signal number.
pub(crate) fn name(number: i32) -> Option<&'static str> {
    NAMED
        .iter()
        .find(|(_, signal)| signal.as_raw() == number)
        .map(|(name, _)| *name)
}

/// Whether a process that gets it is meant to end.
pub(crate) fn ends(signal: Signal) -> bool {
    ![Signal::HUP, Signal::STOP, Signal::CONT, Signal::WINCH].contains(&signal)
        && ![Signal::USR1, Signal::USR2, Signal::ALARM].contains(&signal)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_read_with_and_without_their_prefix() {
        assert_eq!(parse("TERM").ok(), Some(Signal::TERM));
        assert_eq!(parse("SIGKILL").ok(), Some(Signal::KILL));
        assert!(parse("BANG").unwrap_err().to_string().contains("TERM"));
        assert_eq!(name(9), Some("KILL"));
    }
}
