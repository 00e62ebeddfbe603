//! Gates on the load driver's own account: Little's law, and whether the driver was the limit.

use super::arm::ArmRuns;
use super::figures::{brief, percent};
use super::gates::{passed, unseen};
use super::verdict::Verdict;
use crate::experiment::{ActionKind, ArmSetup, Load};

/// Little's law must hold within this.
const LITTLE: [f64; 2] = [0.97, 1.03];

/// Largest share of the clients' time that the client itself may use.
const OVERHEAD: f64 = 0.03;

/// Largest share of a core that a load thread may use.
pub(super) const DRIVER: f64 = 0.8;

/// Send delay below this never matters, in microseconds.
pub(super) const DELAY_US: f64 = 100.0;

/// Client-seconds that the declared load offers in `seconds` of measured time; `None` for an open loop.
pub(super) fn client_seconds(setup: &ArmSetup, warmup_s: f64, seconds: f64) -> Option<f64> {
    let Load::Closed { stages, ramp, .. } = &setup.clients.load else {
        return None;
    };
    let mut total = 0.0;
    let mut from = 0.0;
    for stage in stages {
        let to = stage
            .length
            .map_or(seconds, |length| from + length.as_secs_f64())
            .min(seconds);
        total += stage.level * (to - from).max(0.0);
        from = to;
    }
    // Clients that start after the measured time began are missing until then; starts are spread evenly over the ramp.
    let ramp_s = ramp.as_secs_f64();
    if let Some(first) = stages.first()
        && ramp_s > warmup_s
    {
        let left = (ramp_s - warmup_s).min(seconds);
        let (at_start, at_end) = (warmup_s / ramp_s, (warmup_s + left) / ramp_s);
        total -= first.level * left * (1.0 - 0.5 * (at_start + at_end));
    }
    for action in &setup.actions {
        if let ActionKind::Clients { closed, length } = &action.what {
            for i in 0..action.times {
                let at = action.at.as_secs_f64()
                    + f64::from(i) * action.every.map_or(0.0, |every| every.as_secs_f64());
                let to = (at + length.as_secs_f64()).min(seconds);
                total += f64::from(*closed) * (to - at).max(0.0);
            }
        }
    }
    Some(total)
}

/// Clients (closed loop) or requests a second (open loop) that are declared for a moment of the measured time; a ramp counts
/// as its end, which warm-up leaves behind.
pub(super) fn declared_level(setup: &ArmSetup, at_s: f64) -> f64 {
    let (Load::Closed { stages, .. } | Load::Open { stages, .. }) = &setup.clients.load;
    let mut ends = 0.0;
    let mut level = 0.0;
    for stage in stages {
        let begins = ends;
        ends = stage
            .length
            .map_or(f64::INFINITY, |length| begins + length.as_secs_f64());
        if (begins..ends).contains(&at_s) {
            level = stage.level;
        }
    }
    for action in &setup.actions {
        let ActionKind::Clients { closed, length } = &action.what else {
            continue;
        };
        let every = action.every.map_or(0.0, |every| every.as_secs_f64());
        for i in 0..action.times {
            let begins = action.at.as_secs_f64() + f64::from(i) * every;
            if (begins..begins + length.as_secs_f64()).contains(&at_s) {
                level += f64::from(*closed);
            }
        }
    }
    level
}

pub(super) fn littles(runs: &ArmRuns<'_>, setup: &ArmSetup) -> (Verdict, String) {
    if !matches!(setup.clients.load, Load::Closed { .. }) {
        return (
            Verdict::Supported,
            "does not apply: the loop is open".to_owned(),
        );
    }
    match &runs.littles {
        Some(littles) => (
            passed(
                (LITTLE[0]..=LITTLE[1]).contains(&littles.ratio) && littles.overhead <= OVERHEAD,
            ),
            format!(
                "{:.3} of clients × time is accounted for (0.97 to 1.03 may be); the client itself used {} (at most 3 %)",
                littles.ratio,
                percent(littles.overhead)
            ),
        ),
        None => unseen("no client-second was measured"),
    }
}

pub(super) fn driver(runs: &ArmRuns<'_>) -> (Verdict, String) {
    let (mut cpu, mut seconds) = (0.0, 0.0);
    let mut delays: Vec<(f64, u64)> = Vec::new();
    let mut all = 0u64;
    for run in &runs.runs {
        seconds += run.measured.seconds;
        for row in run.measured.trial.seconds.iter() {
            cpu += row.driver_cpu_s;
            if row.counts.sent > 0 {
                delays.push((row.send_delay_us, row.counts.sent));
                all += row.counts.sent;
            }
        }
    }
    if all == 0 || seconds <= 0.0 {
        return unseen("nothing was sent");
    }
    // The median over seconds, each weighted by what it sent: half of the requests lie in seconds with a lower one.
    delays.sort_by(|a, b| a.0.total_cmp(&b.0));
    let mut below = 0;
    let delay_us = delays
        .iter()
        .find(|(_, sent)| {
            below += sent;
            below * 2 >= all
        })
        .map_or(0.0, |d| d.0);
    let share = cpu / seconds;
    let p50_us = runs
        .runs
        .iter()
        .filter_map(|run| run.measured.latency.whole.quantile_ms(0.5).ok())
        .fold(f64::INFINITY, f64::min)
        * 1e3;
    let limit_us = if p50_us.is_finite() {
        (0.05 * p50_us).max(DELAY_US)
    } else {
        DELAY_US
    };
    (
        passed(share < DRIVER && delay_us < limit_us),
        format!(
            "its busiest thread used {} of a core (under 80 % may be); median delay before sending {} us (under {} may be)",
            percent(share),
            brief(delay_us),
            brief(limit_us)
        ),
    )
}
