//! Rows of a probe as a summary: each level by its own account, then the knee.
//!
//! It must never take what the driver could not do for what the target could not, and never a refusal for an answer.

use super::figures::{Figures, brief, percent};
use super::load_gates::{DELAY_US, DRIVER};
use super::saturation::{self, SaturationPoint};
use super::summary::{Bound, LevelService, ProbeLevel, ProbeSummary};
use crate::measure::FailureClass;
use crate::results::{ProbeRow, Reading};

/// Judges the levels of a probe. `not_whole`: why some are missing. `None`: nothing was probed and nothing was to be.
pub fn judge(rows: &[ProbeRow], not_whole: Option<&str>) -> Option<ProbeSummary> {
    if rows.is_empty() && not_whole.is_none() {
        return None;
    }
    let mut levels: Vec<ProbeLevel> = rows.iter().map(level).collect();
    levels.sort_by_key(|level| (level.clients, level.place));
    let points: Vec<SaturationPoint> = levels
        .iter()
        .map(|level| SaturationPoint {
            clients: level.clients,
            rate: level.rate,
            repeated: level.repeated,
            driver_was_the_limit: !level.driver_limits.is_empty(),
        })
        .collect();
    let (found, mut verdict) = match saturation::judge(&points) {
        Ok(found) => {
            let verdict = found.in_words();
            (Some(found), verdict)
        }
        Err(why) => (None, format!("not judged: {why}")),
    };
    let (sent, failed) = levels
        .iter()
        .fold((0, 0), |(s, f), level| (s + level.sent, f + level.failed));
    if failed > 0 {
        verdict.push_str(&format!(
            "; {failed} of {sent} requests failed, and only ok requests count as throughput"
        ));
    }
    Some(ProbeSummary {
        levels,
        found,
        verdict,
        not_whole: not_whole.map(str::to_owned),
    })
}

/// `probe.knee` and `probe.at_knee`, or why they are absent.
pub(super) fn figures(probe: Option<&ProbeSummary>, figures: &mut Figures) {
    let Some(probe) = probe else {
        figures.absent("probe", "no probe was run");
        return;
    };
    let found = match (&probe.not_whole, &probe.found) {
        (Some(why), _) => Err(format!("the probe is not whole: {why}")),
        (None, None) => Err(probe.verdict.clone()),
        (None, Some(found)) if found.driver_was_the_limit => {
            Err("the load driver was at its own limit, so a knee may be its own".to_owned())
        }
        (None, Some(found)) => Ok(found),
    };
    match found {
        Err(why) => figures.absent("probe", why),
        Ok(found) => match (found.knee, found.at_knee) {
            (Some(knee), Some(rate)) => {
                figures.number("probe.knee", f64::from(knee));
                figures.number("probe.at_knee", rate);
            }
            _ => figures.absent(
                "probe",
                "throughput still grew at the highest level that was probed",
            ),
        },
    }
}

fn level(row: &ProbeRow) -> ProbeLevel {
    let counts = &row.counts;
    ProbeLevel {
        clients: row.clients,
        place: row.place,
        repeated: row.repeated,
        seconds: row.seconds,
        rate: if row.seconds > 0.0 {
            counts.ok as f64 / row.seconds
        } else {
            0.0
        },
        sent: counts.sent,
        ok: counts.ok,
        failed: counts.failed_total(),
        cut: counts.cut,
        failures: FailureClass::ALL
            .into_iter()
            .map(|class| (class.to_string(), counts.class(class)))
            .filter(|(_, count)| *count > 0)
            .collect(),
        p50: row.p50.map(bound),
        p95: row.p95.map(bound),
        p99: row.p99.map(bound),
        max_ms: row.max_ms,
        driver_share: row.driver_share,
        send_delay_us: row.send_delay_us,
        driver_cpu_us: row.driver_cpu_us,
        driver_limits: driver_limits(row),
        services: row
            .services
            .iter()
            .map(|used| LevelService {
                service: used.service.clone(),
                cpu_cores: used.cpu_cores,
                memory_mib: used.memory_mib,
            })
            .collect(),
    }
}

fn bound(reading: Reading) -> Bound {
    match reading {
        Reading::Seen(ms) => Bound {
            ms,
            at_least: false,
        },
        Reading::AtLeast(ms) => Bound { ms, at_least: true },
    }
}

/// Gate 6 for one level, and what the client's own side failed.
fn driver_limits(row: &ProbeRow) -> Vec<String> {
    let mut limits = Vec::new();
    if row.driver_share >= DRIVER {
        limits.push(format!(
            "its busiest thread used {} of a core (under 80% may be)",
            percent(row.driver_share)
        ));
    }
    let p50_us = row.p50.map_or(0.0, |reading| bound(reading).ms * 1e3);
    let allowed = (0.05 * p50_us).max(DELAY_US);
    if row.counts.sent > 0 && row.send_delay_us > allowed {
        limits.push(format!(
            "median delay before sending {} us (under {} may be)",
            brief(row.send_delay_us),
            brief(allowed)
        ));
    }
    let own = row.counts.class(FailureClass::ClientSide);
    if own > 0 {
        limits.push(format!("{own} requests failed on the client's own side"));
    }
    limits
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::measure::Counts;

    fn row(place: u32, clients: u32, ok: u64, repeated: bool) -> ProbeRow {
        ProbeRow {
            place,
            clients,
            repeated,
            seconds: 10.0,
            counts: Counts {
                sent: ok + 1,
                ok,
                cut: 1,
                ..Counts::default()
            },
            p50: Some(Reading::Seen(1.0)),
            p95: None,
            p99: None,
            max_ms: None,
            driver_share: 0.2,
            send_delay_us: 5.0,
            driver_cpu_us: None,
            services: Vec::new(),
        }
    }

    fn flat() -> Vec<ProbeRow> {
        vec![
            row(0, 4, 40_000, false),
            row(1, 16, 41_000, false),
            row(2, 1, 10_000, false),
            row(3, 8, 41_000, false),
            row(4, 2, 20_000, false),
            row(5, 4, 40_000, true),
        ]
    }

    fn judged(rows: &[ProbeRow], not_whole: Option<&str>) -> (ProbeSummary, Figures) {
        let probe = judge(rows, not_whole).unwrap();
        let mut all = Figures::default();
        figures(Some(&probe), &mut all);
        (probe, all)
    }

    #[test]
    fn levels_are_sorted_and_a_knee_is_a_figure() {
        let (probe, all) = judged(&flat(), None);
        let clients: Vec<u32> = probe.levels.iter().map(|level| level.clients).collect();
        assert_eq!(clients, [1, 2, 4, 4, 8, 16]);
        assert!(probe.levels[3].repeated);
        assert_eq!(all.told("probe.knee"), "probe.knee is 4");
        assert_eq!(all.told("probe.at_knee"), "probe.at_knee is 4000");
        assert!(
            probe.verdict.starts_with("flat at 4000"),
            "{}",
            probe.verdict
        );
    }

    #[test]
    fn a_knee_is_no_figure_when_it_may_be_another_s_or_levels_are_missing() {
        let mut busy = flat();
        busy[0].driver_share = 0.8;
        let mut late = flat();
        late[0].send_delay_us = 101.0;
        let mut own = flat();
        own[0].counts.failed[FailureClass::ClientSide.index()] = 1;
        for (rows, not_whole, text) in [
            (busy, None, "own limit"),
            (late, None, "own limit"),
            (own, None, "own limit"),
            (flat(), Some("interrupted"), "interrupted"),
            (flat()[..2].to_vec(), None, "a knee needs three"),
            (Vec::new(), Some("app died"), "app died"),
        ] {
            let (_, all) = judged(&rows, not_whole);
            assert!(all.value("probe.knee").is_none(), "{text}");
            let told = all.told("probe.knee");
            assert!(told.contains(text), "{told}");
        }
        let mut none = Figures::default();
        figures(judge(&[], None).as_ref(), &mut none);
        assert!(none.told("probe.knee").contains("no probe was run"));
    }

    #[test]
    fn refusals_are_told_beside_the_rate() {
        let mut rows = flat();
        rows[1].counts.failed[FailureClass::Status503.index()] = 500;
        rows[1].counts.sent += 500;
        let (probe, _) = judged(&rows, None);
        assert!(
            probe.verdict.contains("500 of 192506 requests failed"),
            "{}",
            probe.verdict
        );
        let failures = &probe.levels[5].failures;
        assert_eq!(failures["status_503"], 500);
        assert_eq!(failures["status_5xx"], 500);
    }
}
