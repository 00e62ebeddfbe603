//! Several pairs and null experiments.

use ceteris::analysis::summary::{FigureValue, Summary};
use ceteris::analysis::{JudgeContext, NullRun};
use ceteris::name::Arm;

use super::made::{EXPERIMENT, Made};
use super::play::{Play, noise};

/// `pairs` short pairs in which the control is `ratio` times as fast, give or take 2 %.
fn plays(pairs: u32, ratio: f64, seconds: u64) -> Vec<Play> {
    let mut plays = Vec::new();
    for pair in 1..=pairs {
        for arm in Arm::BOTH {
            let jitter = 0.98 + 0.04 * noise(77 + arm as u64, u64::from(pair));
            let rate = match arm {
                Arm::Treatment => 1_000.0 * jitter,
                Arm::Control => 1_000.0 * ratio * jitter,
            };
            plays.push(Play {
                pair,
                seconds,
                ..Play::flat(arm, rate)
            });
        }
    }
    plays
}

fn text(pairs: u32, null: bool) -> String {
    let text = EXPERIMENT
        .replace("seed = 7", &format!("seed = 7\npairs = {pairs}"))
        .replace("duration = \"2m\"", "duration = \"60s\"")
        .replace("window = \"20s\"", "window = \"10s\"");
    if !null {
        return text;
    }
    // A null experiment has one arm, which explains and claims nothing.
    let from = text.find("[control]").unwrap();
    let to = text.find("[analysis]").unwrap();
    let end = text.find("[[explanation]]").unwrap();
    format!(
        "{}[control]\nnull = true\n\n{}",
        &text[..from],
        &text[to..end]
    )
    .replace("run_sd = \"10%\"\n", "")
}

fn pairs(k: u32, ratio: f64) -> Summary {
    Made::run(&text(k, false), &plays(k, ratio, 60)).judged()
}

#[test]
fn six_pairs_have_an_interval_and_an_exact_p() {
    let summary = pairs(6, 1.3);
    assert!(summary.validity.valid, "{:?}", summary.validity);
    let between = summary.between.unwrap();
    let [low, high] = between.ratio_ci95.unwrap();
    assert!(low < 1.3 && 1.3 < high && low > 1.2, "{low} {high}");
    assert_eq!(between.sign_flip_p, Some(2.0 / 64.0));
    assert_eq!(summary.pairs.len(), 6);
    let number = |name: &str| match summary.figures[name] {
        FigureValue::Number(number) => number,
        FigureValue::Word(_) => f64::NAN,
    };
    assert_eq!(number("treatment.seconds"), 360.0);
    assert_eq!(number("ratio.throughput.low"), low);
    let sum: f64 = summary
        .pairs
        .iter()
        .map(|p| p.mean.treatment.unwrap())
        .sum();
    assert!((number("treatment.throughput.mean") - sum / 6.0).abs() < 1e-9);
}

#[test]
fn two_pairs_allow_a_direction_and_no_more() {
    let between = pairs(2, 1.3).between.unwrap();
    assert!(
        between.wording.contains("same direction in 2 of 2"),
        "{}",
        between.wording
    );
    assert!(between.wording.contains("too few"));
}

#[test]
fn a_null_experiment_measures_the_noise_that_a_later_run_cites() {
    let mut made = plays(6, 1.0, 60);
    for play in &mut made {
        play.pruned = 0;
    }
    let null = Made::run(&text(6, true), &made).judged();
    assert!(null.run.null);
    assert_eq!(null.exit_code, 0, "{:?}", null.validity);
    let found = NullRun::of(&null).unwrap();
    assert_eq!(found.pairs, 6);
    assert!(
        found.sigma_mean > 0.005 && found.sigma_mean < 0.05,
        "{found:?}"
    );
    let context = JudgeContext {
        null_runs: vec![found.clone()],
        ..JudgeContext::default()
    };
    let later = Made::run(
        EXPERIMENT,
        &[
            Play::decays(Arm::Treatment, 1_600.0, 0.33),
            Play::flat(Arm::Control, 1_700.0),
        ],
    );
    assert_eq!(NullRun::of(&later.judged()), None);
    let between = later.judged_in(&context).between.unwrap();
    assert_eq!(between.run_sd, Some(found.sigma_mean));
    assert!(between.run_sd_source.unwrap().contains("null run"));
}

#[test]
fn the_order_in_which_pairs_are_written_changes_nothing() {
    let forward = plays(4, 1.1, 60);
    let mut backward = plays(4, 1.1, 60);
    backward.reverse();
    let of = |plays: &[Play]| Made::run(&text(4, false), plays).judged();
    let (a, b) = (of(&forward), of(&backward));
    let near = |x: Option<f64>, y: Option<f64>| (x.unwrap() - y.unwrap()).abs() < 1e-12;
    let (x, y) = (a.between.unwrap(), b.between.unwrap());
    assert!(near(x.ratio_mean, y.ratio_mean));
    assert!(near(x.sign_flip_p, y.sign_flip_p));
    assert_eq!(a.figures, b.figures);
}

#[test]
fn a_series_that_one_pair_lacks_is_not_observed_in_all_of_them() {
    let mut made = plays(4, 1.1, 60);
    for play in &mut made {
        if play.pair == 1 && play.arm == Arm::Treatment {
            play.unread = Some(("db", 0..3_600));
        }
    }
    let summary = Made::run(&text(4, false), &made).judged();
    let name = "treatment.services.db.cpu_ms_per_request";
    assert_eq!(summary.figures.get(name), None);
    assert_eq!(
        summary.not_observed[name],
        "it was read in 3 of the arm's 4 runs"
    );
    assert!(
        summary
            .figures
            .contains_key("control.services.db.cpu_ms_per_request")
    );
}
