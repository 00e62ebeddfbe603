//! Judging the levels of a probe: where more clients bring no more throughput.
//!
//! The knee rule is documented beside [`super::stats::saturation`]; here it meets the driver's own limit and the repeated
//! first level. It must never name a knee that the driver itself may have made, other than as "at least".

use anyhow::Result;
use serde::{Deserialize, Serialize};

use super::stats::saturation::{Usl, fit, knee};

/// The repeated first level may differ by this share before the target counts as changed meanwhile.
const REPEAT_TOLERANCE: f64 = 0.1;

/// One level of a probe.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct SaturationPoint {
    /// Closed-loop clients.
    pub clients: u32,
    /// Ok requests a second.
    pub rate: f64,
    /// The first level once more.
    pub repeated: bool,
    /// The rate may be the driver's own.
    pub driver_was_the_limit: bool,
}

/// What a probe found.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Saturation {
    /// Clients from which on throughput no longer grows; absent when it still grows at the highest level.
    pub knee: Option<u32>,
    /// Ok requests a second there.
    pub at_knee: Option<f64>,
    /// The highest rate of any level.
    pub highest: f64,
    /// A level at or below the knee (or any level without one) had the driver at its own limit: figures are "at least".
    pub driver_was_the_limit: bool,
    /// Repeated first level ÷ first level − 1.
    pub repeat_change: Option<f64>,
    /// The Universal Scalability Law, where it can be fitted.
    pub usl: Option<Usl>,
    /// Microseconds of serial time a request that a flat rate implies.
    pub serial_us: Option<f64>,
}

/// Judges levels in any order.
///
/// # Errors
/// When fewer than three different levels had ok requests.
pub fn judge(points: &[SaturationPoint]) -> Result<Saturation> {
    let mut first: Vec<&SaturationPoint> = points.iter().filter(|point| !point.repeated).collect();
    first.sort_by_key(|point| point.clients);
    let seen: Vec<&&SaturationPoint> = first.iter().filter(|point| point.rate > 0.0).collect();
    anyhow::ensure!(
        seen.len() >= 3,
        "only {} levels had an ok request; a knee needs three",
        seen.len()
    );
    let clients: Vec<f64> = seen.iter().map(|point| f64::from(point.clients)).collect();
    let rates: Vec<f64> = seen.iter().map(|point| point.rate).collect();
    let found = knee(&clients, &rates)?;
    let at = found.and_then(|knee| seen.iter().find(|point| f64::from(point.clients) == knee));
    let upto = at.map_or(u32::MAX, |point| point.clients);
    let repeat_change = points
        .iter()
        .find(|point| point.repeated)
        .and_then(|again| {
            let before = first.iter().find(|point| point.clients == again.clients)?;
            (before.rate > 0.0).then(|| again.rate / before.rate - 1.0)
        });
    Ok(Saturation {
        knee: at.map(|point| point.clients),
        at_knee: at.map(|point| point.rate),
        highest: rates.iter().copied().fold(0.0, f64::max),
        driver_was_the_limit: first
            .iter()
            .any(|point| point.clients <= upto && point.driver_was_the_limit),
        repeat_change,
        usl: fit(&clients, &rates).ok(),
        serial_us: at.map(|point| 1e6 / point.rate),
    })
}

impl Saturation {
    /// The verdict in a sentence or two.
    pub fn in_words(&self) -> String {
        let mut text = match (self.knee, self.at_knee, self.driver_was_the_limit) {
            (_, _, true) => format!(
                "at least {:.0} requests a second: the driver was the limit",
                self.highest
            ),
            (Some(knee), Some(rate), false) => format!(
                "flat at {rate:.0} requests a second from {knee} clients on: latency grows with the clients ({:.0} us of serial time a request)",
                self.serial_us.unwrap_or_default()
            ),
            _ => format!(
                "no knee inside the tested levels: throughput still grew at the highest one ({:.0} requests a second)",
                self.highest
            ),
        };
        if let Some(change) = self
            .repeat_change
            .filter(|change| change.abs() > REPEAT_TOLERANCE)
        {
            text.push_str(&format!(
                "; the first level, run once more at the end, gave {:+.0} %: the target changed meanwhile",
                change * 100.0
            ));
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn points(rates: &[(u32, f64)]) -> Vec<SaturationPoint> {
        rates
            .iter()
            .map(|&(clients, rate)| SaturationPoint {
                clients,
                rate,
                repeated: false,
                driver_was_the_limit: false,
            })
            .collect()
    }

    #[test]
    fn a_flat_rate_has_a_knee_and_a_serial_time() {
        let levels = points(&[
            (1, 10e3),
            (2, 20e3),
            (4, 40e3),
            (8, 80e3),
            (16, 90e3),
            (32, 90.2e3),
            (64, 90.1e3),
            (128, 90e3),
        ]);
        let found = judge(&levels).unwrap();
        let knee = found.knee.unwrap();
        assert!((16..=32).contains(&knee), "{knee}");
        assert!(
            found.in_words().starts_with("flat at 9"),
            "{}",
            found.in_words()
        );
        assert!((found.serial_us.unwrap() - 11.1).abs() < 0.1);
    }

    #[test]
    fn a_driver_at_its_limit_makes_it_at_least() {
        let mut levels = points(&[(1, 10e3), (2, 20e3), (4, 40e3), (8, 41e3), (16, 41e3)]);
        levels[3].driver_was_the_limit = true;
        levels[2].driver_was_the_limit = true;
        let found = judge(&levels).unwrap();
        assert!(
            found.in_words().starts_with("at least"),
            "{}",
            found.in_words()
        );
    }

    #[test]
    fn growth_to_the_end_has_no_knee_and_a_changed_target_is_told() {
        let mut levels = points(&[(1, 1e3), (2, 2e3), (4, 4e3), (8, 8e3)]);
        levels.push(SaturationPoint {
            clients: 1,
            rate: 700.0,
            repeated: true,
            driver_was_the_limit: false,
        });
        let found = judge(&levels).unwrap();
        assert_eq!(found.knee, None);
        assert!(found.in_words().contains("-30 %"), "{}", found.in_words());
        assert!(judge(&levels[..2]).is_err());
    }
}
