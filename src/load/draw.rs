//! Seeded draws: which step comes next, which numbers fill it, when the next request is due.
//!
//! Counter-based: each draw is a pure function of (seed, stream, lane, client, iteration), never of time or of what was
//! drawn before, so both arms draw the same whatever their speed. It must never be used for anything secret.
//!
//! The generator is SplitMix64 (Steele, Lea and Flood, "Fast splittable pseudorandom number generators", 2014); the key is
//! folded through its output function, one word at a time.

const GAMMA: u64 = 0x9e37_79b9_7f4a_7c15;

fn mix(mut z: u64) -> u64 {
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

/// What a draw is for; lanes are independent, so that a redrawn step does not shift the numbers of the next one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Lane {
    /// Which step.
    Step = 1,
    /// `random_int`, `random_choice`, `uuid`.
    Values = 2,
    /// Which element `*` takes.
    Keep = 3,
    /// Intervals of an open loop.
    Arrival = 4,
}

/// The seed of one phase: warm-up and measured time draw from different streams, both arms from the same ones.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Seed {
    folded: u64,
}

impl Seed {
    /// The seed of the file and the number of the phase's stream.
    pub(super) fn new(seed: u64, stream: u64) -> Self {
        Seed {
            folded: fold(fold(0, seed), stream),
        }
    }

    /// The draws of one client's one iteration.
    pub(super) fn at(self, lane: Lane, client: u64, iteration: u64) -> Draw {
        Draw {
            state: fold(fold(fold(self.folded, lane as u64), client), iteration),
        }
    }
}

fn fold(state: u64, word: u64) -> u64 {
    mix(state.wrapping_add(GAMMA) ^ mix(word.wrapping_add(GAMMA)))
}

/// A sequence of draws.
#[derive(Debug, Clone)]
pub(super) struct Draw {
    state: u64,
}

impl Draw {
    /// Goes on from a state that [`Draw::into_state`] gave.
    pub(super) fn from_state(state: u64) -> Self {
        Draw { state }
    }

    /// The state, to go on from.
    pub(super) fn into_state(self) -> u64 {
        self.state
    }

    /// 64 uniform bits.
    pub(super) fn next(&mut self) -> u64 {
        self.state = self.state.wrapping_add(GAMMA);
        mix(self.state)
    }

    /// Uniform in `0..n`, without bias (Lemire 2019); 0 for `n` = 0.
    pub(super) fn below(&mut self, n: u64) -> u64 {
        if n == 0 {
            return 0;
        }
        let threshold = n.wrapping_neg() % n;
        loop {
            let wide = u128::from(self.next()) * u128::from(n);
            if wide as u64 >= threshold {
                return (wide >> 64) as u64;
            }
        }
    }

    /// Uniform in `low..=high`; the ends are swapped if need be.
    pub(super) fn between(&mut self, low: i64, high: i64) -> i64 {
        let (low, high) = (low.min(high), low.max(high));
        let span = (high as u64).wrapping_sub(low as u64).wrapping_add(1);
        let step = if span == 0 {
            self.next()
        } else {
            self.below(span)
        };
        (low as u64).wrapping_add(step) as i64
    }

    /// Uniform in (0, 1].
    pub(super) fn unit(&mut self) -> f64 {
        ((self.next() >> 11) + 1) as f64 / (1u64 << 53) as f64
    }

    /// A random (version 4) UUID in lower-case text.
    pub(super) fn uuid(&mut self) -> String {
        let high = (self.next() & !0xf000) | 0x4000;
        let low = (self.next() & !(0b11 << 62)) | (0b10 << 62);
        format!(
            "{:08x}-{:04x}-{:04x}-{:04x}-{:012x}",
            high >> 32,
            (high >> 16) & 0xffff,
            high & 0xffff,
            low >> 48,
            low & 0xffff_ffff_ffff
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn splitmix_gives_the_published_sequence() {
        // First outputs of the reference implementation for seed 1234567.
        let mut draw = Draw::from_state(1_234_567);
        assert_eq!(draw.next(), 6_457_827_717_110_365_317);
        assert_eq!(draw.next(), 3_203_168_211_198_807_973);
    }

    #[test]
    fn draws_depend_on_every_part_of_the_key_and_on_nothing_else() {
        let first = |seed, stream, lane, client, iteration| {
            Seed::new(seed, stream).at(lane, client, iteration).next()
        };
        let base = first(7, 0, Lane::Step, 3, 9);
        assert_eq!(base, first(7, 0, Lane::Step, 3, 9));
        for other in [
            first(8, 0, Lane::Step, 3, 9),
            first(7, 1, Lane::Step, 3, 9),
            first(7, 0, Lane::Values, 3, 9),
            first(7, 0, Lane::Step, 4, 9),
            first(7, 0, Lane::Step, 3, 10),
            first(7, 0, Lane::Step, 9, 3),
        ] {
            assert_ne!(base, other);
        }
    }

    #[test]
    fn iterations_are_uniform_over_a_small_range() {
        let seed = Seed::new(1, 0);
        let mut counts = [0u32; 10];
        for iteration in 0..100_000 {
            counts[seed.at(Lane::Step, 0, iteration).below(10) as usize] += 1;
        }
        // Chi-squared with 9 degrees of freedom: 27.9 is the 99.9 % quantile; the draw is fixed by its seed.
        let chi: f64 = counts
            .iter()
            .map(|&c| (f64::from(c) - 10_000.0).powi(2) / 10_000.0)
            .sum();
        assert!(chi < 27.9, "{chi} {counts:?}");
    }

    #[test]
    fn ranges_hold_their_ends_and_uuids_their_form() {
        let mut draw = Draw::from_state(5);
        let drawn: Vec<i64> = (0..1000).map(|_| draw.between(-1, 1)).collect();
        for value in [-1, 0, 1] {
            assert!(drawn.contains(&value));
        }
        assert!(drawn.iter().all(|v| (-1..=1).contains(v)));
        assert_eq!(draw.between(4, 4), 4);
        draw.between(i64::MIN, i64::MAX);
        let uuid = draw.uuid();
        assert_eq!(uuid.len(), 36);
        assert_eq!(uuid.as_bytes()[14], b'4');
        assert!(b"89ab".contains(&uuid.as_bytes()[19]), "{uuid}");
    }
}
