//! Which step a client sends next: by weight, drawn, or in file order.

use super::draw::{Lane, Seed};
use super::plan::{Plan, Turn};
use super::template::Kept;
use crate::experiment::{Pick, Workload};

/// After so many draws of steps that can't be sent yet, the first that can be sent is taken.
const DRAWS: u64 = 64;

/// Chooses steps.
#[derive(Debug, Clone)]
pub(super) struct Picker {
    pick: Pick,
    /// For each step the sum of the weights up to and with it.
    upto: Vec<u64>,
}

/// A chosen step, and how many were drawn before it that could not be sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Picked {
    pub step: usize,
    pub redrawn: u64,
}

impl Picker {
    /// Weights of a workload.
    pub(super) fn new(workload: &Workload) -> Self {
        let mut sum = 0;
        let weights = workload.steps.iter().map(|step| {
            sum += u64::from(step.weight);
            sum
        });
        Picker {
            pick: workload.pick,
            upto: weights.collect(),
        }
    }

    fn at(&self, place: u64) -> usize {
        self.upto.partition_point(|&upto| upto <= place)
    }

    /// The next step of a client; steps whose kept values are missing are drawn again.
    pub(super) fn next(
        &self,
        plan: &Plan,
        seed: Seed,
        turn: Turn,
        kept: &[Option<Kept>],
    ) -> Picked {
        let total = self.upto.last().copied().unwrap_or(0).max(1);
        let mut draw = seed.at(Lane::Step, turn.key, turn.iteration);
        for redrawn in 0..DRAWS.max(total) {
            let place = match self.pick {
                Pick::Weighted => draw.below(total),
                Pick::Cycle => turn.iteration.wrapping_add(redrawn) % total,
            };
            let step = self.at(place);
            if plan.can_send(step, kept) {
                return Picked { step, redrawn };
            }
        }
        // Compiling made sure that some step needs nothing.
        let step = (0..plan.steps.len()).find(|&step| plan.can_send(step, kept));
        Picked {
            step: step.unwrap_or(0),
            redrawn: DRAWS.max(total),
        }
    }
}
