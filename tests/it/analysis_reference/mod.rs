//! The statistics against reference values computed with independent programs (scipy, statsmodels, pymannkendall,
//! hdrhistogram); see `stats/expected*.json` for versions. Relative tolerance 1e-9 unless an entry carries its own.

mod runs;

use ceteris::analysis::stats::described::{
    self, describe, mann_kendall, mann_kendall_ar1, theil_sen,
};
use ceteris::analysis::stats::distribution::{chi_square_quantile, normal_quantile, t_upper};
use ceteris::analysis::stats::ends::{Contrast, Ends};
use ceteris::analysis::stats::linear::{Line, Scale};
use ceteris::analysis::stats::prais_winsten::{Fit, ljung_box, prais_winsten};
use ceteris::analysis::stats::series::{Interval, batch_means};
use ceteris::analysis::stats::trend::{Options, Reason, Word, judge, verdict};
use ceteris::analysis::stats::warmup::{WarmUp, mser5};
use serde_json::Value;

/// The classical values.
fn classical() -> Value {
    serde_json::from_str(include_str!("../stats/expected.json")).unwrap()
}

/// The values of the recommended algorithms.
fn recommended() -> Value {
    serde_json::from_str(include_str!("../stats/expected_recommended.json")).unwrap()
}

/// The last column of a reference series.
fn column(csv: &str) -> Vec<f64> {
    csv.lines()
        .skip(1)
        .map(|line| line.rsplit(',').next().unwrap().parse().unwrap())
        .collect()
}

fn series(name: &str) -> Vec<f64> {
    column(match name {
        "s1_flat_iid" => include_str!("../stats/s1_flat_iid.csv"),
        "s2_flat_ar1" => include_str!("../stats/s2_flat_ar1.csv"),
        "s3_decay81_ar1" => include_str!("../stats/s3_decay81_ar1.csv"),
        "s5_warmup_then_flat" => include_str!("../stats/s5_warmup_then_flat.csv"),
        _ => panic!("no series {name}"),
    })
}

const SERIES: [&str; 4] = [
    "s1_flat_iid",
    "s2_flat_ar1",
    "s3_decay81_ar1",
    "s5_warmup_then_flat",
];

#[track_caller]
fn close_within(what: &str, actual: f64, expected: &Value, tolerance: f64) {
    let expected = expected
        .as_f64()
        .unwrap_or_else(|| panic!("{what}: no reference value"));
    assert!(
        (actual - expected).abs() <= tolerance * expected.abs().max(1e-12),
        "{what}: {actual} is not {expected}"
    );
}

#[track_caller]
fn close(what: &str, actual: f64, expected: &Value) {
    close_within(what, actual, expected, 1e-9);
}

#[track_caller]
fn close_interval(what: &str, actual: Interval, expected: &Value) {
    close(&format!("{what} lower"), actual.lower, &expected[0]);
    close(&format!("{what} upper"), actual.upper, &expected[1]);
}

/// A fit and the Ljung-Box statistic of what it leaves.
#[track_caller]
fn check_fit(what: &str, y: &[f64], fit: &Fit, expected: &Value) {
    assert_eq!(fit.n as u64, expected["n"].as_u64().unwrap());
    for (name, actual) in [
        ("rho", fit.rho),
        ("slope", fit.slope),
        ("level", fit.level),
        ("se", fit.se),
        ("df", fit.df),
        ("t_quantile", t_upper(0.05, fit.df)),
    ] {
        close(&format!("{what} {name}"), actual, &expected[name]);
    }
    let half = t_upper(0.05, fit.df) * fit.se;
    close(
        &format!("{what} ci lower"),
        fit.slope - half,
        &expected["ci"][0],
    );
    close(
        &format!("{what} ci upper"),
        fit.slope + half,
        &expected["ci"][1],
    );
    let (q, p) = ljung_box(y, fit).unwrap();
    close_within(
        &format!("{what} Ljung-Box Q"),
        q,
        &expected["ljung_box"]["Q"],
        1e-7,
    );
    close_within(
        &format!("{what} Ljung-Box p"),
        p,
        &expected["ljung_box"]["p"],
        1e-7,
    );
}

/// Both fits of a series, the choice between them and the relative interval.
fn check_line(what: &str, y: &[f64], expected: &Value) {
    let line = Line::fit(y, Scale::Linear).unwrap();
    check_fit(&format!("{what} raw"), y, &line.raw, &expected["raw"]);
    let (batched, size) = line.batched.unwrap();
    assert_eq!(size as u64, expected["batched"]["batch"].as_u64().unwrap());
    let means = batch_means(&y[y.len() % 20..], size);
    check_fit(
        &format!("{what} batched"),
        &means,
        &batched,
        &expected["batched"],
    );
    let half = t_upper(0.05, batched.df) * batched.se;
    let per_value = &expected["batched"]["ci_per_sample"];
    close(what, (batched.slope - half) / size as f64, &per_value[0]);
    close(what, (batched.slope + half) / size as f64, &per_value[1]);
    let counted = line.counted(0.05).unwrap();
    assert_eq!(counted.batch > 1, expected["chosen"] == "batched", "{what}");
    close_interval(what, counted.interval, &expected["rel_change_ci90"]);
    close(what, counted.change, &expected["rel_change"]);
}

#[test]
fn the_line_is_the_reference_line() {
    let expected = recommended();
    for name in SERIES {
        check_line(name, &series(name), &expected[name]);
    }
    check_line(
        "s5 after the cut",
        &series("s5_warmup_then_flat")[75..],
        &expected["s5_after_mser5_truncation_75"],
    );
}

#[test]
fn the_line_agrees_with_the_classical_table() {
    let expected = classical();
    for name in SERIES {
        let fit = prais_winsten(&series(name)).unwrap();
        let expected = &expected[name]["prais_winsten_bc"];
        close(name, fit.rho, &expected["rho"]);
        close(name, fit.slope, &expected["slope"]);
        close(name, fit.level, &expected["level_at_centre"]);
        close(name, fit.se, &expected["se"]);
        close(name, fit.n_eff, &expected["n_eff"]);
    }
}

#[test]
fn a_large_change_is_fitted_to_logarithms() {
    let expected = &recommended()["s3_log_scale"];
    let y = series("s3_decay81_ar1");
    let line = Line::on_fitting_scale(&y).unwrap();
    assert_eq!(line.scale, Scale::Log);
    let counted = line.counted(0.05).unwrap();
    assert_eq!(counted.batch > 1, expected["chosen"] == "batched");
    close_interval(
        "s3 on the log scale",
        counted.interval,
        &expected["multiplicative_change_ci90"],
    );
    let half = t_upper(0.05, counted.fit.df) * counted.fit.se;
    let size = counted.batch as f64;
    close(
        "s3 log slope",
        (counted.fit.slope - half) / size,
        &expected["slope_ci_log_per_min"][0],
    );
    close(
        "s3 log slope",
        (counted.fit.slope + half) / size,
        &expected["slope_ci_log_per_min"][1],
    );
}

fn check_contrast(what: &str, contrast: &Contrast, expected: &Value) {
    assert_eq!(contrast.m as u64, expected["m"].as_u64().unwrap());
    for (name, actual) in [
        ("first", contrast.first),
        ("last", contrast.last),
        ("change", contrast.change),
        ("rho", contrast.rho),
        ("variance_factor", contrast.variance_factor),
        ("se", contrast.se),
        ("df", contrast.df),
    ] {
        close(&format!("{what} {name}"), actual, &expected[name]);
    }
    close_interval(what, contrast.interval(0.05), &expected["ci"]);
}

#[test]
fn the_ends_are_the_reference_ends() {
    let expected = recommended();
    let mut all: Vec<(String, Vec<f64>)> = SERIES
        .map(|name| (format!("thirds_{name}"), series(name)))
        .into();
    all.push((
        "thirds_s5_after_truncation_75".into(),
        series("s5_warmup_then_flat")[75..].to_vec(),
    ));
    for (name, y) in all {
        let expected = &expected[&name];
        let ends = Ends::of(&y).unwrap();
        check_contrast(&name, &ends.raw, &expected["raw"]);
        let batched = ends.batched.unwrap();
        assert_eq!(
            batched.batch as u64,
            expected["batched"]["batch"].as_u64().unwrap()
        );
        check_contrast(&name, &batched, &expected["batched"]);
        let (counted, interval) = ends.counted(0.05);
        assert_eq!(counted.batch > 1, expected["chosen"] == "batched", "{name}");
        close_interval(&name, interval, &expected["ci"]);
    }
}

fn word(reference: &str) -> Word {
    match reference {
        "flat" => Word::Flat,
        "decaying" => Word::Falls,
        "rising" => Word::Rises,
        "inconclusive" => Word::Unclear,
        other => panic!("no word {other}"),
    }
}

#[test]
fn the_combined_verdict_is_the_reference_verdict() {
    let expected = recommended();
    let mut all: Vec<(String, Vec<f64>)> = SERIES
        .map(|name| (format!("combined_{name}"), series(name)))
        .into();
    all.push((
        "combined_s5_after_truncation_75".into(),
        series("s5_warmup_then_flat")[75..].to_vec(),
    ));
    for (name, y) in all {
        let expected = &expected[&name];
        let line = Line::fit(&y, Scale::Linear).unwrap();
        let ends = Ends::of(&y).unwrap();
        for (tail, level) in [(0.05, "90"), (0.025, "95")] {
            let linear = line.counted(tail).unwrap().interval;
            close_interval(&name, linear, &expected[format!("linear_ci{level}")]);
            close_interval(
                &name,
                ends.counted(tail).1,
                &expected[format!("thirds_ci{level}")],
            );
        }
        for (margin, reference) in expected["verdict"].as_object().unwrap() {
            let options = Options {
                search_warm_up: false,
                ..Options::with_margin(margin.parse().unwrap())
            };
            let trend = verdict(&y, &options).unwrap();
            let expected_word = if trend.reason == Reason::Few {
                // The reference knows no slow noise; there `flat` on 125 bins is one step less sure.
                assert_eq!((reference.as_str(), trend.n), (Some("flat"), 125));
                Word::Unclear
            } else {
                word(reference.as_str().unwrap())
            };
            assert_eq!(trend.word, expected_word, "{name} at {margin}");
            // Beyond 30 % the reference table stays linear and the product's line does not.
            if trend.linear.unwrap().scale == Scale::Linear {
                close(
                    &name,
                    trend.smallest_flat_margin.unwrap(),
                    &expected["smallest_margin_flat"],
                );
            }
        }
    }
}

#[test]
fn mser_cuts_the_reference_warm_up() {
    let expected = classical();
    for name in ["s1_flat_iid", "s5_warmup_then_flat"] {
        let y = series(name);
        let expected = &expected[name]["mser5"];
        let found = mser5(&y).unwrap();
        assert_eq!(
            found.batches as u64,
            expected["n_batches"].as_u64().unwrap()
        );
        assert_eq!(
            found.last_allowed as u64,
            expected["search_max_d"].as_u64().unwrap()
        );
        assert_eq!(
            found.cut_batches as u64,
            expected["d_batches"].as_u64().unwrap()
        );
        close(name, found.minimum, &expected["mser_min"]);
        close(name, found.at_start, &expected["mser_at_0"]);
        let rest = &y[found.cut_batches * 5..];
        close(
            name,
            rest.iter().sum::<f64>() / rest.len() as f64,
            &expected["mean_after"],
        );
    }
}

#[test]
fn a_warm_up_is_judged_with_and_without() {
    // Without the cut it is unclear for its width; with it flat, or at 2 % too near to the margin under slow noise.
    let y = series("s5_warmup_then_flat");
    for (margin, reason) in [(0.1, Reason::WarmUpSensitive), (0.02, Reason::Few)] {
        let trend = judge(&y, &Options::with_margin(margin)).unwrap();
        assert_eq!(trend.warm_up, WarmUp::Cut { bins: 75 });
        assert_eq!(trend.word_without_cut, Some(Word::Unclear));
        assert_eq!(
            (trend.word, trend.reason, trend.n),
            (Word::Unclear, reason, 125)
        );
    }
    let options = Options {
        search_warm_up: false,
        ..Options::with_margin(0.1)
    };
    assert_eq!(judge(&y[75..], &options).unwrap().word, Word::Flat);
}

#[test]
fn the_description_is_the_classical_one() {
    let expected = classical();
    for name in SERIES {
        let y = series(name);
        let expected = &expected[name];
        let described = describe(&y);
        let slope = described.theil_sen_slope.unwrap();
        close(name, slope, &expected["theil_sen"]["slope"]);
        let classic = mann_kendall(&y).unwrap();
        close(name, classic.s, &expected["mk"]["S"]);
        close(name, classic.variance, &expected["mk"]["var_S"]);
        close(name, classic.z, &expected["mk"]["z"]);
        close(name, classic.tau, &expected["mk"]["tau"]);
        assert!(
            (classic.p - expected["mk"]["p"].as_f64().unwrap()).abs() < 1e-12,
            "{name}"
        );
        let corrected = described.mann_kendall.unwrap();
        let factor = &expected["mk_ar1_bias_corrected"];
        close(name, corrected.rho, &factor["rho"]);
        close(name, corrected.factor, &factor["factor"]);
        close(
            name,
            corrected.variance * corrected.factor,
            &factor["var_S"],
        );
        close(name, corrected.z, &factor["z"]);
        close(name, corrected.p, &factor["p"]);
        assert_eq!(mann_kendall_ar1(&y, slope), Some(corrected));
    }
    let quarters = &recommended()["s3_quarters"];
    let (first, last) = described::quarters(&series("s3_decay81_ar1")).unwrap();
    close("first quarter", first, &quarters["first_quarter_mean"]);
    close("last quarter", last, &quarters["last_quarter_mean"]);
    close("last over first quarter", last / first, &quarters["ratio"]);
    let log: Vec<f64> = series("s3_decay81_ar1").iter().map(|v| v.ln()).collect();
    close(
        "s3 log slope",
        theil_sen(&log).unwrap(),
        &classical()["s3_decay81_ar1"]["log_scale"]["sen_slope"],
    );
}

#[test]
fn small_series_and_ties_have_the_classical_test() {
    let expected = classical();
    for name in ["tiny_inline", "ties_inline"] {
        let expected = &expected[name];
        let y: Vec<f64> = serde_json::from_value(expected["values"].clone()).unwrap();
        let test = mann_kendall(&y).unwrap();
        close(name, test.s, &expected["S"]);
        close(name, test.variance, &expected["var_S"]);
        close(name, test.z, &expected["z"]);
        close(name, test.p, &expected["p"]);
        close(name, test.tau, &expected["tau"]);
        close(name, theil_sen(&y).unwrap(), &expected["sen_slope"]);
    }
}

#[test]
fn quantiles_of_the_distributions() {
    let expected = &classical()["quantiles"];
    for (key, value) in expected["t"].as_object().unwrap() {
        let (df, p) = key.split_once('_').unwrap();
        close(
            key,
            t_upper(1.0 - p.parse::<f64>().unwrap(), df.parse().unwrap()),
            value,
        );
    }
    for (p, value) in expected["z"].as_object().unwrap() {
        close(p, normal_quantile(p.parse().unwrap()), value);
    }
    for (key, value) in expected["chi2"].as_object().unwrap() {
        let (df, p) = key.split_once('_').unwrap();
        close(
            key,
            chi_square_quantile(p.parse().unwrap(), df.parse().unwrap()),
            value,
        );
    }
}
