//! Which arm runs when: pure, from the experiment and its seed.

use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

use crate::experiment::{Order, Schedule};
use crate::name::Arm;

/// One arm of one pair, to be run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Trial {
    /// From 1.
    pub pair: u32,
    /// Which arm.
    pub arm: Arm,
}

/// The trials in their order. The same schedule and seed always give the same order.
///
/// `abba` makes quartets A B B A whose first letter is drawn for the first quartet and then follows the Thue-Morse
/// sequence, so that a drift over the whole campaign cancels too; with an odd number of pairs the last one is drawn.
pub fn plan(schedule: &Schedule) -> Vec<Trial> {
    // A stream of its own, so that the order does not depend on how the workload draws.
    let mut rng = ChaCha8Rng::seed_from_u64(schedule.seed);
    rng.set_stream(u64::from_be_bytes(*b"order\0\0\0"));
    let mut drawn = || {
        if rng.random::<bool>() {
            Arm::Treatment
        } else {
            Arm::Control
        }
    };
    let lead = drawn();
    (0..schedule.pairs)
        .flat_map(|pair| {
            let first = match schedule.order {
                Order::TreatmentFirst => Arm::Treatment,
                Order::ControlFirst => Arm::Control,
                Order::Random if pair == 0 => lead,
                Order::Random => drawn(),
                Order::Abba => {
                    let quartet = pair / 2;
                    // Thue-Morse: the parity of the ones in the quartet's number flips its first letter; the second
                    // pair of a quartet mirrors the first.
                    let flips = quartet.count_ones() + pair % 2;
                    if flips.is_multiple_of(2) {
                        lead
                    } else {
                        lead.other()
                    }
                }
            };
            [first, first.other()].map(|arm| Trial {
                pair: pair + 1,
                arm,
            })
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::experiment::Stop;
    use crate::name::Arms;

    fn letters(pairs: u32, order: Order, seed: u64) -> String {
        let length = Duration::from_secs(60);
        let schedule = Schedule {
            warmup: length,
            stop: Stop::Duration(Arms {
                treatment: length,
                control: length,
            }),
            window: length,
            sample: length,
            rest: length,
            pairs,
            order,
            seed,
        };
        let trials = plan(&schedule);
        for (i, trial) in trials.iter().enumerate() {
            assert_eq!(trial.pair as usize, i / 2 + 1);
        }
        trials
            .iter()
            .map(|trial| {
                if trial.arm == Arm::Treatment {
                    'T'
                } else {
                    'C'
                }
            })
            .collect()
    }

    #[test]
    fn quartets_mirror_and_follow_thue_morse() {
        let all: Vec<_> = (0..20).map(|seed| letters(8, Order::Abba, seed)).collect();
        assert!(all.contains(&"TCCTCTTCCTTCTCCT".to_owned()), "{all:?}");
        assert!(all.contains(&"CTTCTCCTTCCTCTTC".to_owned()), "{all:?}");
        assert_eq!(
            all.iter().collect::<std::collections::BTreeSet<_>>().len(),
            2
        );
    }

    #[test]
    fn one_pair_starts_with_either_arm_by_seed_and_always_the_same() {
        let first: Vec<_> = (0..40)
            .map(|seed| letters(1, Order::Random, seed))
            .collect();
        let treatment_first = first.iter().filter(|order| *order == "TC").count();
        assert!((8..=32).contains(&treatment_first), "{first:?}");
        assert_eq!(
            first,
            (0..40)
                .map(|seed| letters(1, Order::Random, seed))
                .collect::<Vec<_>>()
        );
    }

    #[test]
    fn a_fixed_order_is_kept_in_every_pair() {
        assert_eq!(letters(3, Order::TreatmentFirst, 9), "TCTCTC");
        assert_eq!(letters(2, Order::ControlFirst, 9), "CTCT");
    }
}
