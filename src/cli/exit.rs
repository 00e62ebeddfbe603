//! Exit codes: one place, one meaning each.

use std::process::ExitCode;

/// How a command ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Exit {
    /// It did what it should; of a run: and every criterion holds.
    Fine,
    /// A run that ran, and a criterion does not hold or was not observed; a comparison that differs.
    DoesNotHold,
    /// The file or the command line is wrong, nothing was started.
    Wrong,
    /// Not valid, not whole, or it could not be done.
    NotValid,
    /// Interrupted; what was measured is kept and reported.
    Interrupted,
}

impl Exit {
    /// The code that a summary carries.
    pub(super) fn from_code(code: u8) -> Self {
        match code {
            0 => Exit::Fine,
            1 => Exit::DoesNotHold,
            2 => Exit::Wrong,
            130 => Exit::Interrupted,
            _ => Exit::NotValid,
        }
    }

    fn code(self) -> u8 {
        match self {
            Exit::Fine => 0,
            Exit::DoesNotHold => 1,
            Exit::Wrong => 2,
            Exit::NotValid => 3,
            Exit::Interrupted => 130,
        }
    }
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        ExitCode::from(exit.code())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_code_reads_back_and_an_unknown_one_is_not_a_pass() {
        for exit in [
            Exit::Fine,
            Exit::DoesNotHold,
            Exit::Wrong,
            Exit::NotValid,
            Exit::Interrupted,
        ] {
            assert_eq!(Exit::from_code(exit.code()), exit);
        }
        assert_eq!(Exit::from_code(77), Exit::NotValid);
    }
}
