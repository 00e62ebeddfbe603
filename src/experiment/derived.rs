//! What follows from a checked experiment: its names, a shortened copy.

use std::time::Duration;

use super::check::declared;
use super::{Experiment, Stop};
use crate::figure::Declared;
use crate::name::Arms;

impl Experiment {
    /// The names that figures of this experiment can hold, in either arm.
    pub fn declared(&self) -> Declared {
        let mut all = Declared::default();
        for (_, arm) in self.arms.iter() {
            let one = declared(
                &arm.services,
                &arm.workload,
                arm.pruning.as_ref(),
                &arm.actions,
                &self.micro,
            );
            all.services.extend(one.services);
            all.steps.extend(one.steps);
            all.pruned.extend(one.pruned);
            all.actions.extend(one.actions);
            all.micro.extend(one.micro);
        }
        all
    }

    /// A shortened copy that exercises every part: arms of `length`, one pair, a short warm-up and rest. Actions that don't
    /// fit are left out. It is never evidence.
    pub fn smoke(&self, length: Duration) -> Smoke {
        let mut experiment = self.clone();
        let schedule = &mut experiment.schedule;
        schedule.stop = Stop::Duration(Arms {
            treatment: length,
            control: length,
        });
        schedule.warmup = schedule.warmup.min(length.div_f64(4.0));
        schedule.rest = schedule.rest.min(Duration::from_secs(1));
        schedule.pairs = 1;
        if schedule.order == super::Order::Abba {
            schedule.order = super::Order::Random;
        }
        let shortest = Duration::from_secs((length.as_secs() / 6).max(1));
        schedule.window = schedule.window.min(shortest);
        schedule.sample = schedule.sample.min(Duration::from_secs(1));
        if let Some(probe) = &mut experiment.probe {
            probe.each = probe.each.min(Duration::from_secs(1));
        }
        for micro in &mut experiment.micro {
            micro.rounds = micro.rounds.min(2);
        }
        let mut dropped = Vec::new();
        for arm in [crate::name::Arm::Treatment, crate::name::Arm::Control] {
            experiment.arms.get_mut(arm).actions.retain(|action| {
                let fits = action.at < length && action.ends().is_none_or(|end| end <= length);
                if !fits && !dropped.contains(&action.name) {
                    dropped.push(action.name.clone());
                }
                fits
            });
        }
        Smoke {
            experiment,
            dropped_actions: dropped,
        }
    }
}

/// A shortened experiment.
#[derive(Debug, Clone)]
pub struct Smoke {
    /// It.
    pub experiment: Experiment,
    /// Names of actions that the short arms have no room for.
    pub dropped_actions: Vec<String>,
}
