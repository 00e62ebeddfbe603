//! What one counted call costs: its program's time a call minus its empty loop's, round by round.
//!
//! A rate is told only when the whole interval of the difference is above zero: a loop that is slower than the calls says
//! nothing about them.

use std::collections::BTreeMap;

use super::figures::Figures;
use super::stats::distribution::t_upper;
use super::stats::series::{mean, variance};
use super::summary::MicroSummary;
use crate::experiment::Micro;
use crate::results::MicroRow;

/// Judges every kind of counted calls of an experiment. `not_whole`: why rounds are missing, by `micro.NAME`.
pub(super) fn judge(
    declared: &[Micro],
    rows: &[MicroRow],
    not_whole: &BTreeMap<String, String>,
) -> Vec<MicroSummary> {
    declared
        .iter()
        .filter_map(|micro| {
            let own: Vec<&MicroRow> = rows.iter().filter(|row| row.name == micro.name).collect();
            let missing = not_whole.get(&key(micro));
            // A run that never came to its counted calls has nothing to tell about them.
            (!own.is_empty() || missing.is_some()).then(|| one(micro, &own, missing))
        })
        .collect()
}

/// Where the manifest says why rounds are missing.
fn key(micro: &Micro) -> String {
    format!("micro.{}", micro.figure)
}

fn one(micro: &Micro, rows: &[&MicroRow], missing: Option<&String>) -> MicroSummary {
    let each = |(calls, seconds): (u64, f64)| seconds * 1e9 / calls as f64;
    let differences: Vec<f64> = rows
        .iter()
        .map(|row| each(row.command) - each(row.baseline))
        .collect();
    let loops: Vec<f64> = rows.iter().map(|row| each(row.baseline)).collect();
    let average = |values: &[f64]| (!values.is_empty()).then(|| mean(values));
    let ns_per_call = average(&differences);
    let interval = ns_per_call.filter(|_| differences.len() > 1).map(|middle| {
        let n = differences.len() as f64;
        let half = t_upper(0.025, n - 1.0) * (variance(&differences) / n).sqrt();
        [middle - half, middle + half]
    });
    let least = differences.iter().copied().reduce(f64::min);
    let most = differences.iter().copied().reduce(f64::max);
    MicroSummary {
        name: micro.name.clone(),
        figure: micro.figure.clone(),
        rounds: u32::try_from(rows.len()).unwrap_or(u32::MAX),
        calls: rows.iter().map(|row| row.command.0).sum(),
        ns_per_call,
        interval,
        range: least.zip(most).map(|(least, most)| [least, most]),
        baseline_ns: average(&loops),
        per_second: ns_per_call
            .filter(|_| interval.is_some_and(|[low, _]| low > 0.0))
            .map(|ns| 1e9 / ns),
        not_whole: missing.cloned(),
    }
}

/// `micro.<name>.ns_per_call`, or why it is absent.
pub(super) fn figures(declared: &[Micro], judged: &[MicroSummary], figures: &mut Figures) {
    if declared.is_empty() {
        figures.absent("micro", "no counted calls are declared");
    }
    for micro in declared {
        let name = format!("{}.ns_per_call", key(micro));
        let found = judged.iter().find(|one| one.figure == micro.figure);
        figures.maybe(name, found.and_then(|one| one.ns_per_call), || {
            found
                .and_then(|one| one.not_whole.clone())
                .unwrap_or_else(|| "the run ended before its counted calls".to_owned())
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asked() -> Vec<Micro> {
        vec![Micro {
            name: "op boundary".into(),
            figure: "op_boundary".into(),
            command: Vec::new(),
            baseline: Vec::new(),
            rounds: 3,
        }]
    }

    fn row(round: u32, command_s: f64, baseline_s: f64) -> MicroRow {
        MicroRow {
            name: "op boundary".into(),
            round,
            baseline_first: round % 2 == 1,
            command: (1_000_000, command_s),
            // Half of the calls: times are compared a call.
            baseline: (500_000, baseline_s / 2.0),
        }
    }

    #[test]
    fn the_loop_is_subtracted_round_by_round() {
        let rows = [
            row(0, 0.110, 0.010),
            row(1, 0.125, 0.020),
            row(2, 0.120, 0.025),
        ];
        let judged = judge(&asked(), &rows, &BTreeMap::new());
        let [one] = &judged[..] else {
            panic!("{judged:?}")
        };
        // 100, 105 and 95 ns.
        assert_eq!((one.rounds, one.calls), (3, 3_000_000));
        assert!((one.ns_per_call.unwrap() - 100.0).abs() < 1e-9);
        let [low, high] = one.interval.unwrap();
        // t(2, 0.975) = 4.302653, sd = 5, n = 3.
        assert!((high - 100.0 - 12.420_687).abs() < 1e-4, "{high}");
        assert!((low + high - 200.0).abs() < 1e-9);
        let [least, most] = one.range.unwrap();
        assert!((least - 95.0).abs() < 1e-9 && (most - 105.0).abs() < 1e-9);
        assert!((one.per_second.unwrap() - 1e7).abs() < 1e-3);
        let mut all = Figures::default();
        figures(&asked(), &judged, &mut all);
        assert_eq!(
            all.told("micro.op_boundary.ns_per_call"),
            "micro.op_boundary.ns_per_call is 100"
        );
    }

    #[test]
    fn a_call_that_is_lost_in_the_loop_has_no_rate() {
        for rows in [
            vec![row(0, 0.011, 0.010), row(1, 0.010, 0.011)],
            vec![row(0, 0.011, 0.010)],
        ] {
            let judged = judge(&asked(), &rows, &BTreeMap::new());
            assert!(judged[0].per_second.is_none(), "{judged:?}");
            assert!(judged[0].ns_per_call.is_some());
        }
    }

    #[test]
    fn what_was_not_counted_says_why() {
        let mut all = Figures::default();
        figures(&asked(), &judge(&asked(), &[], &BTreeMap::new()), &mut all);
        assert!(
            all.told("micro.op_boundary.ns_per_call")
                .contains("ended before")
        );
        let why = BTreeMap::from([(
            "micro.op_boundary".to_owned(),
            "opbench ended with 9".to_owned(),
        )]);
        let judged = judge(&asked(), &[], &why);
        let mut all = Figures::default();
        figures(&asked(), &judged, &mut all);
        assert!(
            all.told("micro.op_boundary.ns_per_call")
                .contains("ended with 9")
        );
    }
}
