//! When actions are due: pure, from the arm's setup.

use std::collections::VecDeque;
use std::time::Duration;

use crate::experiment::Action;
use crate::name::Arm;

/// One execution of an action that is due at a moment of the measured time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Due {
    /// From the start of the measured time.
    pub(super) at: Duration,
    /// Which action, by its place in the file.
    pub(super) action: usize,
    /// Which execution of it, from 1.
    pub(super) number: u32,
}

/// Every execution of the actions of one arm, in time order; those of one moment in file order.
pub(super) fn timeline(actions: &[Action], arm: Arm) -> VecDeque<Due> {
    let mut all: Vec<Due> = actions
        .iter()
        .enumerate()
        .filter(|(_, action)| action.arm.is_none_or(|only| only == arm))
        .flat_map(|(place, action)| {
            (0..action.times).map(move |i| Due {
                at: action.at + action.every.unwrap_or_default() * i,
                action: place,
                number: i + 1,
            })
        })
        .collect();
    all.sort_by_key(|due| (due.at, due.action));
    all.into()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::experiment::ActionKind;
    use crate::name::ServiceName;

    fn action(at: u64, every: Option<u64>, times: u32, arm: Option<Arm>) -> Action {
        Action {
            name: "x".into(),
            figure: "x".into(),
            at: Duration::from_secs(at),
            every: every.map(Duration::from_secs),
            times,
            arm,
            what: ActionKind::Stop(ServiceName::new("app").unwrap()),
        }
    }

    #[test]
    fn repetitions_interleave_in_time_order_and_an_arm_has_its_own() {
        let actions = [
            action(10, Some(5), 3, None),
            action(12, None, 1, Some(Arm::Control)),
            action(15, None, 1, None),
        ];
        let at = |arm| {
            timeline(&actions, arm)
                .iter()
                .map(|due| (due.at.as_secs(), due.action, due.number))
                .collect::<Vec<_>>()
        };
        assert_eq!(
            at(Arm::Treatment),
            [(10, 0, 1), (15, 0, 2), (15, 2, 1), (20, 0, 3)]
        );
        assert_eq!(
            at(Arm::Control),
            [(10, 0, 1), (12, 1, 1), (15, 0, 2), (15, 2, 1), (20, 0, 3)]
        );
    }
}
