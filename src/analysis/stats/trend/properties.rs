//! What must hold of the judge for any series.

use proptest::prelude::*;

use super::super::simulate::{Drift, Noise, Simulation};
use super::tests::{times, unsearched};
use super::*;

fn simulated() -> impl Strategy<Value = Vec<f64>> {
    (
        0u64..1_000,
        60usize..260,
        0.0f64..0.9,
        -0.6f64..0.6,
        0.01f64..0.2,
    )
        .prop_map(|(seed, n, phi, change, sd)| {
            Simulation::new(seed, 0).series(n, sd, Noise::Ar1 { phi }, Drift::Exponential(change))
        })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn scaling_changes_no_relative_figure(y in simulated(), exponent in -60i32..60, factor in 1.0f64..10.0) {
        let plain = unsearched(&y, 0.1);
        // Powers of two change no digit; other factors round, so figures are compared and words are not.
        let exact = unsearched(&times(&y, 2f64.powi(exponent)), 0.1);
        prop_assert_eq!((exact.word, exact.linear, exact.ends, exact.smallest_flat_margin),
            (plain.word, plain.linear, plain.ends, plain.smallest_flat_margin));
        let scaled = unsearched(&times(&y, factor), 0.1);
        let (a, b) = (plain.linear.unwrap(), scaled.linear.unwrap());
        if a.scale == b.scale && a.batch == b.batch {
            prop_assert!((a.change - b.change).abs() < 1e-6, "{} {}", a.change, b.change);
            prop_assert!((a.flat_interval.width() - b.flat_interval.width()).abs() < 1e-6 * a.flat_interval.width());
        }
    }

    #[test]
    fn reversing_time_flips_falls_and_rises(seed in 0u64..500, change in 1.0f64..3.0, phi in 0.0f64..0.5) {
        // Far beyond the margin, since a fall by half is a rise by all.
        let y = Simulation::new(seed, 0).series(200, 0.03, Noise::Ar1 { phi }, Drift::Linear(change));
        let back: Vec<f64> = y.iter().rev().copied().collect();
        prop_assert_eq!(unsearched(&y, 0.1).word, Word::Rises);
        prop_assert_eq!(unsearched(&back, 0.1).word, Word::Falls);
    }

    #[test]
    fn flat_stays_flat_backwards(seed in 0u64..500) {
        let y = Simulation::new(seed, 0).series(300, 0.02, Noise::Ar1 { phi: 0.0 }, Drift::None);
        let back: Vec<f64> = y.iter().rev().copied().collect();
        prop_assert_eq!(unsearched(&y, 0.2).word, Word::Flat);
        prop_assert_eq!(unsearched(&back, 0.2).word, Word::Flat);
    }

    #[test]
    fn no_finite_input_panics(y in proptest::collection::vec(proptest::num::f64::NORMAL | proptest::num::f64::SUBNORMAL | proptest::num::f64::ZERO, 1..130), margin in 0.001f64..3.0) {
        let trend = judge(&y, &Options::with_margin(margin)).unwrap();
        let text = serde_json::to_string(&trend).unwrap();
        prop_assert!(serde_json::from_str::<Trend>(&text).is_ok(), "{}", text);
    }

    #[test]
    fn no_small_integers_panic(y in proptest::collection::vec(0u8..4, 1..130), margin in 0.001f64..3.0) {
        let y: Vec<f64> = y.into_iter().map(f64::from).collect();
        let trend = judge(&y, &Options::with_margin(margin)).unwrap();
        prop_assert!(trend.n <= y.len());
    }
}
