//! What the judge must say.

use super::super::simulate::{Drift, Noise, Simulation};
use super::*;

fn word(y: &[f64], margin: f64) -> Word {
    verdict(y, &Options::with_margin(margin)).unwrap().word
}

pub(super) fn unsearched(y: &[f64], margin: f64) -> Trend {
    verdict(
        y,
        &Options {
            search_warm_up: false,
            ..Options::with_margin(margin)
        },
    )
    .unwrap()
}

/// A mild fixed pattern around a level.
fn steady(n: usize, level: f64) -> Vec<f64> {
    (0..n)
        .map(|t| level * (1.0 + 0.01 * [0.0, 1.0, -1.0, 2.0, -2.0, 1.0, -1.0][t % 7]))
        .collect()
}

pub(super) fn times(y: &[f64], factor: f64) -> Vec<f64> {
    y.iter().map(|v| v * factor).collect()
}

/// Requests a second per 10 s of an application whose jobs table grows unpruned.
const GROWING_TABLE: [f64; 12] = [
    1662.0, 1114.0, 1006.0, 991.0, 1085.0, 983.0, 822.0, 809.0, 607.0, 520.0, 568.0, 574.0,
];

#[test]
fn a_growing_table_falls_whatever_the_noise() {
    for seed in 0..100 {
        let mut noise = Simulation::new(seed, 0);
        let y: Vec<f64> = GROWING_TABLE
            .iter()
            .flat_map(|mean| [*mean; 10])
            .map(|mean| mean * (1.0 + 0.05 * noise.normal()))
            .collect();
        let trend = verdict(&y, &Options::with_margin(0.2)).unwrap();
        assert_eq!(trend.word, Word::Falls, "seed {seed}: {trend:?}");
    }
}

#[test]
fn a_soak_that_decays_over_three_days_falls() {
    // Window means at these hours, joined smoothly: straight lines between logarithms of hour and rate.
    let known = [
        (3.0f64, 794.0f64),
        (15.0, 349.0),
        (27.0, 244.0),
        (51.0, 181.0),
        (69.0, 154.0),
    ];
    let rate = |hour: f64| {
        let right = known
            .iter()
            .position(|(h, _)| *h >= hour)
            .unwrap_or(4)
            .max(1);
        let ((h0, r0), (h1, r1)) = (known[right - 1], known[right]);
        (r0.ln() + (hour.ln() - h0.ln()) / (h1.ln() - h0.ln()) * (r1.ln() - r0.ln())).exp()
    };
    let bins = 72 * 12;
    let smooth: Vec<f64> = (0..bins)
        .map(|t| rate((f64::from(t) + 0.5) / 12.0) * 300.0)
        .collect();
    assert_eq!(word(&smooth, 0.2), Word::Falls);
    for (per_hour, stream) in [(12, 1), (1, 2)] {
        let mut noise = Simulation::new(5, stream);
        let y: Vec<f64> = (0..72 * per_hour)
            .map(|t| {
                rate((f64::from(t) + 0.5) / f64::from(per_hour)) * (1.0 + 0.05 * noise.normal())
            })
            .collect();
        assert_eq!(word(&y, 0.2), Word::Falls, "{per_hour} bins an hour");
    }
}

#[test]
fn a_step_and_a_slope_beyond_the_margin_are_found_both_ways() {
    for drift in [0.35, -0.35] {
        for shape in [
            Drift::Linear(drift),
            Drift::Exponential(drift),
            Drift::Step(drift),
        ] {
            let y = Simulation::new(3, 0).series(300, 0.03, Noise::Ar1 { phi: 0.3 }, shape);
            let expected = if drift < 0.0 {
                Word::Falls
            } else {
                Word::Rises
            };
            assert_eq!(unsearched(&y, 0.2).word, expected, "{shape:?}");
        }
    }
}

#[test]
fn constant_series_are_flat_and_a_zero_series_has_no_level() {
    for level in [1.0, 0.1, 1e-310, 1e300] {
        let trend = judge(&[level; 60], &Options::with_margin(0.01)).unwrap();
        assert_eq!(
            (trend.word, trend.reason),
            (Word::Flat, Reason::InsideMargin),
            "{level}"
        );
        assert_eq!(trend.smallest_flat_margin, Some(0.0));
        assert!((trend.level.unwrap() / level - 1.0).abs() < 1e-9);
    }
    for level in [0.0, -5.0] {
        let trend = judge(&[level; 100], &Options::with_margin(0.1)).unwrap();
        assert_eq!(
            (trend.word, trend.reason),
            (Word::Unclear, Reason::NoLevel),
            "{level}"
        );
    }
}

#[test]
fn a_mean_of_zero_has_no_level() {
    let y: Vec<f64> = (0..200)
        .map(|t| if t % 2 == 0 { 1.0 } else { -1.0 })
        .collect();
    assert_eq!(unsearched(&y, 0.1).word, Word::Unclear);
    let through_zero: Vec<f64> = (0..201).map(|t| f64::from(t) - 100.0).collect();
    assert_eq!(unsearched(&through_zero, 0.1).word, Word::Unclear);
}

#[test]
fn a_service_that_dies_falls_though_its_bins_are_zero() {
    let mut y = steady(300, 500.0);
    y[150..].fill(0.0);
    assert_eq!(word(&y, 0.2), Word::Falls);
}

#[test]
fn few_bins_give_no_word_and_very_few_no_direction() {
    let fall = |n: usize| -> Vec<f64> {
        (0..n)
            .map(|t| 1_000.0 - 600.0 * t as f64 / n as f64 + (t % 3) as f64)
            .collect()
    };
    assert_eq!(unsearched(&fall(60), 0.2).word, Word::Falls);
    for (n, direction) in [
        (59, Direction::Down),
        (30, Direction::Down),
        (29, Direction::NotEstablished),
        (3, Direction::NotEstablished),
        (1, Direction::NotEstablished),
    ] {
        let trend = unsearched(&fall(n), 0.2);
        assert_eq!(
            (trend.word, trend.reason, trend.direction),
            (Word::Unclear, Reason::Few, direction),
            "{n} bins"
        );
    }
    let rise: Vec<f64> = fall(59).into_iter().rev().collect();
    let trend = unsearched(&rise, 0.2);
    assert_eq!(
        (trend.word, trend.direction),
        (Word::Unclear, Direction::Up)
    );
    assert_eq!(unsearched(&steady(59, 10.0), 0.2).reason, Reason::Few);
    assert_eq!(unsearched(&steady(60, 10.0), 0.2).word, Word::Flat);
}

#[test]
fn slow_noise_on_few_bins_is_not_flat() {
    // Slow waves of 2 % under a fast pattern: the batch means see them, the lag-1 fit hardly.
    let wavy = |n: usize| -> Vec<f64> {
        steady(n, 1_000.0)
            .iter()
            .enumerate()
            .map(|(t, v)| v + 15.0 * (t as f64 / 9.0).sin())
            .collect()
    };
    let judged = |n: usize, of_smallest: f64| {
        let smallest = unsearched(&wavy(n), 0.2).smallest_flat_margin.unwrap();
        unsearched(&wavy(n), smallest * of_smallest)
    };
    let trend = judged(239, 1.1);
    assert_eq!((trend.word, trend.reason), (Word::Unclear, Reason::Few));
    assert!(trend.times_as_long_for_flat.unwrap() >= 240.0 / 239.0);
    assert_eq!(judged(239, 0.99).reason, Reason::Wide);
    // With room to spare the uncertain width does not matter, and with more bins it is known.
    let trend = judged(239, SLOW_NOISE_ALLOWANCE);
    assert_eq!(
        (trend.word, trend.times_as_long_for_flat),
        (Word::Flat, Some(1.0))
    );
    assert_eq!(judged(240, 1.001).word, Word::Flat);
}

#[test]
fn not_significant_is_not_flat() {
    let y = Simulation::new(11, 0).series(120, 0.30, Noise::Ar1 { phi: 0.6 }, Drift::None);
    let trend = unsearched(&y, 0.1);
    assert_eq!((trend.word, trend.reason), (Word::Unclear, Reason::Wide));
    assert!(trend.smallest_flat_margin.unwrap() > 0.1);
}

#[test]
fn the_smallest_flat_margin_is_where_flat_begins() {
    let y = Simulation::new(4, 0).series(400, 0.05, Noise::Ar1 { phi: 0.3 }, Drift::None);
    let smallest = unsearched(&y, 0.2).smallest_flat_margin.unwrap();
    assert_eq!(unsearched(&y, smallest * 1.000_001).word, Word::Flat);
    assert_eq!(unsearched(&y, smallest * 0.999_999).word, Word::Unclear);
}

#[test]
fn longer_runs_make_flat_possible_unless_the_change_is_too_large() {
    let y = Simulation::new(4, 0).series(400, 0.05, Noise::Ar1 { phi: 0.3 }, Drift::None);
    let wide = unsearched(&y, 0.2);
    let change = [wide.linear, wide.ends].map(|f| f.unwrap().change.abs());
    // Between what is estimated and what would be flat already.
    let margin = (change[0].max(change[1]) + wide.smallest_flat_margin.unwrap()) / 2.0;
    let trend = unsearched(&y, margin);
    assert_eq!(trend.word, Word::Unclear);
    let half = trend.flat_interval.unwrap().width() / 2.0;
    let room = margin - trend.estimate.unwrap().abs();
    assert!(trend.times_as_long_for_flat.unwrap() >= (half / room).powi(2) * 0.99);
    assert_eq!(
        unsearched(&times(&steady(400, 1.0), 1.0), 0.2).times_as_long_for_flat,
        Some(1.0)
    );
    let drifting =
        Simulation::new(4, 0).series(400, 0.05, Noise::Ar1 { phi: 0.3 }, Drift::Linear(-0.3));
    assert_eq!(unsearched(&drifting, 0.1).times_as_long_for_flat, None);
}

#[test]
fn a_cold_start_that_hides_the_verdict_leaves_it_unclear() {
    let mut y = steady(300, 100.0);
    y[..15].fill(5.0);
    let trend = verdict(&y, &Options::with_margin(0.05)).unwrap();
    assert_eq!(trend.warm_up, WarmUp::Cut { bins: 15 });
    assert_ne!(trend.word_without_cut, Some(Word::Flat));
    assert_eq!(
        (trend.word, trend.reason, trend.n),
        (Word::Unclear, Reason::WarmUpSensitive, 285)
    );
    assert_eq!(unsearched(&y, 0.05).warm_up, WarmUp::NotSearched);
    assert_eq!(unsearched(&y[15..], 0.05).word, Word::Flat);
}

#[test]
fn a_cut_that_changes_nothing_is_told_and_no_more() {
    let mut y = steady(300, 100.0);
    y[..10].fill(90.0);
    let trend = verdict(&y, &Options::with_margin(0.2)).unwrap();
    assert_eq!(
        (trend.word, trend.word_without_cut),
        (Word::Flat, Some(Word::Flat))
    );
    assert_eq!(trend.warm_up, WarmUp::Cut { bins: 10 });
}

#[test]
fn each_rule_can_decide_alone() {
    // A line: the linear rule.
    let y: Vec<f64> = steady(300, 1.0)
        .iter()
        .enumerate()
        .map(|(t, v)| v * (1.0 - 0.25 * t as f64 / 300.0))
        .collect();
    assert_eq!(unsearched(&y, 0.2).rule, Some(Rule::Linear));
    // A clean step: the line is too uncertain, the ends are not.
    let y: Vec<f64> = steady(300, 1.0)
        .iter()
        .enumerate()
        .map(|(t, v)| if t < 150 { *v } else { 0.88 * v })
        .collect();
    let step = unsearched(&y, 0.1);
    assert_eq!(
        (step.word, step.rule, step.reason),
        (Word::Falls, Some(Rule::Ends), Reason::BeyondMargin)
    );
    assert_eq!(step.estimate, step.ends.map(|f| f.change));
    // Steep at first: only the separation.
    let mut noise = Simulation::new(1, 0);
    let y: Vec<f64> = GROWING_TABLE
        .iter()
        .flat_map(|m| [*m; 10])
        .map(|m| m * (1.0 + 0.05 * noise.normal()))
        .collect();
    let decay = unsearched(&y, 0.2);
    assert_eq!(
        (decay.rule, decay.reason),
        (Some(Rule::Separation), Reason::Separated)
    );
}

#[test]
fn rules_that_point_in_opposite_directions_decide_nothing() {
    let mut trend = unsearched(&steady(300, 10.0), 0.2);
    let beyond = |figures: Option<RuleFigures>, lower: f64, upper: f64| {
        figures.map(|f| RuleFigures {
            direction_interval: Interval {
                lower,
                upper,
                level: 0.95,
            },
            ..f
        })
    };
    trend.linear = beyond(trend.linear, -0.5, -0.4);
    trend.ends = beyond(trend.ends, 0.4, 0.5);
    trend.decide_word(false);
    assert_eq!(
        (trend.word, trend.reason),
        (Word::Unclear, Reason::Contradiction)
    );
}

#[test]
fn the_separation_finds_a_rise_too() {
    let mut noise = Simulation::new(1, 0);
    let y: Vec<f64> = GROWING_TABLE
        .iter()
        .rev()
        .flat_map(|m| [*m; 10])
        .map(|m| m * (1.0 + 0.05 * noise.normal()))
        .collect();
    let trend = unsearched(&y, 0.2);
    assert_eq!(
        (trend.word, trend.rule),
        (Word::Rises, Some(Rule::Separation))
    );
}

#[test]
fn flat_needs_both_intervals_inside_the_margin() {
    let flat = unsearched(&steady(300, 10.0), 0.2);
    assert_eq!(flat.word, Word::Flat);
    for (lower, upper) in [(-0.3, 0.1), (-0.1, 0.3), (-0.2, 0.1), (-0.1, 0.2)] {
        let reaching = |f: RuleFigures| RuleFigures {
            flat_interval: Interval {
                lower,
                upper,
                level: 0.9,
            },
            ..f
        };
        let mut one = flat.clone();
        one.linear = one.linear.map(reaching);
        one.decide_word(false);
        assert_eq!((one.word, one.reason), (Word::Unclear, Reason::Wide));
        let mut other = flat.clone();
        other.ends = other.ends.map(reaching);
        other.decide_word(false);
        assert_eq!(
            (other.word, other.reason, other.rule),
            (Word::Unclear, Reason::Wide, Some(Rule::Ends))
        );
    }
}

#[test]
fn the_smallest_flat_margin_is_that_of_the_wider_rule() {
    let (mut by_linear, mut by_ends) = (0, 0);
    for seed in 0..60 {
        let drift = if seed % 2 == 0 {
            Drift::None
        } else {
            Drift::Exponential(-0.6)
        };
        let y = Simulation::new(seed, 0).series(150, 0.05, Noise::Ar1 { phi: 0.3 }, drift);
        let trend = unsearched(&y, 0.2);
        let reach = [trend.linear, trend.ends]
            .map(|f| f.unwrap().flat_interval)
            .map(|i| i.lower.abs().max(i.upper.abs()));
        if reach[0] > reach[1] {
            by_linear += 1;
        } else {
            by_ends += 1;
        }
        assert_eq!(
            trend.smallest_flat_margin,
            Some(reach[0].max(reach[1])),
            "seed {seed}"
        );
    }
    assert!(by_linear > 0 && by_ends > 0, "{by_linear} {by_ends}");
}

#[test]
fn changes_beyond_thirty_per_cent_are_judged_on_logarithms() {
    for (change, scale) in [
        (-0.25, Scale::Linear),
        (0.25, Scale::Linear),
        (-0.4, Scale::Log),
        (0.6, Scale::Log),
    ] {
        let y: Vec<f64> = steady(300, 1.0)
            .iter()
            .enumerate()
            .map(|(t, v)| v * (1.0 + change * t as f64 / 299.0))
            .collect();
        assert_eq!(unsearched(&y, 0.1).linear.unwrap().scale, scale, "{change}");
    }
}

#[test]
fn sharing_the_error_rate_widens_both_intervals() {
    let y = Simulation::new(9, 0).series(200, 0.05, Noise::Ar1 { phi: 0.3 }, Drift::None);
    let alone = unsearched(&y, 0.2);
    let shared = verdict(
        &y,
        &Options {
            alpha: 0.05 / 4.0,
            search_warm_up: false,
            margin: 0.2,
        },
    )
    .unwrap();
    assert!(
        shared.linear.unwrap().flat_interval.width() > alone.linear.unwrap().flat_interval.width()
    );
    assert!((shared.linear.unwrap().flat_interval.level - 0.975).abs() < 1e-12);
    for rule in [alone.linear.unwrap(), alone.ends.unwrap()] {
        assert!((rule.flat_interval.level - 0.90).abs() < 1e-12);
        assert!((rule.direction_interval.level - 0.95).abs() < 1e-12);
        assert!(rule.direction_interval.width() > rule.flat_interval.width());
    }
}

#[test]
fn what_cannot_be_judged_is_refused_in_words() {
    let options = Options::with_margin(0.1);
    for (y, part) in [
        (vec![], "empty"),
        (vec![1.0, f64::NAN], "value 2"),
        (vec![f64::INFINITY; 70], "value 1"),
    ] {
        let message = judge(&y, &options).unwrap_err().to_string();
        assert!(message.contains(part), "{message}");
    }
    for margin in [0.0, -0.1, f64::NAN, f64::INFINITY] {
        assert!(
            judge(&[1.0; 70], &Options::with_margin(margin)).is_err(),
            "margin {margin}"
        );
    }
    assert!(
        judge(
            &[1.0; 70],
            &Options {
                alpha: 0.0,
                ..options
            }
        )
        .is_err()
    );
}

#[test]
fn a_verdict_survives_its_file() {
    let y = Simulation::new(2, 0).series(150, 0.05, Noise::Ar1 { phi: 0.3 }, Drift::Linear(-0.5));
    let trend = judge(&y, &Options::with_margin(0.1)).unwrap();
    let text = serde_json::to_string(&trend).unwrap();
    assert!(
        text.contains("\"word\":\"falls\"") && text.contains("\"reason\":\"beyond_margin\""),
        "{text}"
    );
    let read: Trend = serde_json::from_str(&text).unwrap();
    assert_eq!(read.word, trend.word);
    assert_eq!(
        read.direction_interval.map(|i| i.level),
        trend.direction_interval.map(|i| i.level)
    );
}
