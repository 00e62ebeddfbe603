//! Silence: the longest time without an ok answer, second by second.
//!
//! Load threads only mark the milliseconds in which an answer was ok; the marks of all threads together say when none was.
//! A silence is told in every second that it touches, with all of its length so far.

use crate::measure::Silence;

/// Milliseconds of one second.
const MS: u64 = 1_000;

/// The milliseconds of one second in which an answer was ok.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Answered([u64; 16]);

impl Answered {
    /// An answer was ok in this millisecond; one beyond the second is booked at its end.
    pub(super) fn mark(&mut self, ms: u32) {
        let ms = ms.min(MS as u32 - 1);
        self.0[(ms / 64) as usize] |= 1 << (ms % 64);
    }

    /// Adds another thread's marks of the same second.
    pub(super) fn add(&mut self, other: &Answered) {
        for (mine, theirs) in self.0.iter_mut().zip(other.0) {
            *mine |= theirs;
        }
    }

    fn marked(&self) -> impl Iterator<Item = u64> {
        self.0.iter().zip(0u64..).flat_map(|(word, place)| {
            let mut left = *word;
            std::iter::from_fn(move || {
                let bit = (left != 0).then(|| left.trailing_zeros())?;
                left &= left - 1;
                Some(place * 64 + u64::from(bit))
            })
        })
    }
}

/// Follows answers over the seconds of a phase, which counts as answered at its start.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Follower {
    last_ms: u64,
}

impl Follower {
    /// The longest silence that touches the second `index`, of which there are `of_ms` milliseconds. Seconds come in order.
    pub(super) fn second(&mut self, index: u64, answered: &Answered, of_ms: u64) -> Silence {
        let begins = index * MS;
        let mut longest = Silence::default();
        let mut hold = |length_ms: u64, until_ms: u64| {
            if length_ms > longest.length_ms {
                longest = Silence {
                    length_ms,
                    until_ms,
                };
            }
        };
        for ms in answered.marked() {
            hold((begins + ms).saturating_sub(self.last_ms), ms);
            self.last_ms = begins + ms;
        }
        hold((begins + of_ms).saturating_sub(self.last_ms), of_ms);
        longest
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn marks(all: &[u32]) -> Answered {
        let mut answered = Answered::default();
        all.iter().for_each(|ms| answered.mark(*ms));
        answered
    }

    #[test]
    fn a_silence_over_an_edge_is_told_whole() {
        let mut follower = Follower::default();
        let told = [
            follower.second(0, &marks(&[0, 100, 300]), MS),
            follower.second(1, &marks(&[]), MS),
            follower.second(2, &marks(&[250, 260, 999, 5_000]), MS),
            // Its phase ended there.
            follower.second(3, &marks(&[]), 200),
        ];
        let silence = |length_ms, until_ms| Silence {
            length_ms,
            until_ms,
        };
        assert_eq!(
            told,
            [
                silence(700, 1_000),
                silence(1_700, 1_000),
                silence(1_950, 250),
                silence(201, 200)
            ]
        );
    }

    #[test]
    fn what_one_thread_hears_ends_the_silence_of_all() {
        let mut both = marks(&[10, 900]);
        both.add(&marks(&[500]));
        let told = Follower::default().second(0, &both, MS);
        assert_eq!((told.length_ms, told.until_ms), (490, 500));
    }

    proptest! {
        #[test]
        fn the_longest_distance_between_marks_is_found(mut all in proptest::collection::vec(0u32..1_000, 0..40)) {
            let told = Follower::default().second(0, &marks(&all), MS);
            all.push(0);
            all.push(1_000);
            all.sort_unstable();
            let longest = all.windows(2).map(|pair| pair[1] - pair[0]).max();
            prop_assert_eq!(Some(told.length_ms), longest.map(u64::from));
        }
    }
}
