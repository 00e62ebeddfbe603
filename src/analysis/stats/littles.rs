//! Little's law as an account of the clients' time.
//!
//! In a closed loop each of N clients is, at every moment of measured time, in a request, thinking, connecting, pausing
//! after a failure, or inside the client's own code. The parts must add up to N x time; what is missing was not measured.
//! Must never be applied as a gate bin by bin: one stall across a second's edge gives 0.69 and 1.30 in a perfect client.

use anyhow::{Result, ensure};
use serde::{Deserialize, Serialize};

/// Client-seconds of one arm, each clipped to the measured time.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Account {
    /// In a request, failed ones too.
    pub in_flight_s: f64,
    pub think_s: f64,
    pub connect_s: f64,
    /// Pausing after a failure.
    pub pause_s: f64,
    /// The client's own code between requests.
    pub overhead_s: f64,
    /// Number of clients.
    pub clients: f64,
    /// Measured seconds.
    pub seconds: f64,
}

impl Account {
    /// Accounted client-seconds over clients x time; 1 in a client that measured everything.
    ///
    /// # Errors
    /// No clients or no measured time.
    pub fn ratio(&self) -> Result<f64> {
        let total = self.total()?;
        Ok(
            (self.in_flight_s + self.think_s + self.connect_s + self.pause_s + self.overhead_s)
                / total,
        )
    }

    /// The client's own overhead as a share of clients x time.
    ///
    /// # Errors
    /// As [`Account::ratio`].
    pub fn overhead_share(&self) -> Result<f64> {
        Ok(self.overhead_s / self.total()?)
    }

    fn total(&self) -> Result<f64> {
        let total = self.clients * self.seconds;
        ensure!(
            total > 0.0 && total.is_finite(),
            "{} clients over {} s have no time to account for",
            self.clients,
            self.seconds
        );
        Ok(total)
    }
}

/// X (R + Z)/N: 1 where throughput, the mean response time of all requests (failed ones too) and think time agree.
/// `None` without clients.
pub fn ratio(throughput: f64, mean_response_s: f64, think_s: f64, clients: f64) -> Option<f64> {
    (clients > 0.0).then(|| throughput * (mean_response_s + think_s) / clients)
}

/// N/(R + Z): the throughput that N clients with these times can have. `None` where the times are zero.
pub fn throughput_bound(mean_response_s: f64, think_s: f64, clients: f64) -> Option<f64> {
    let cycle = mean_response_s + think_s;
    (cycle > 0.0).then(|| clients / cycle)
}

#[cfg(test)]
mod tests {
    use super::*;

    const FULL: Account = Account {
        in_flight_s: 60.0,
        think_s: 20.0,
        connect_s: 1.0,
        pause_s: 2.0,
        overhead_s: 17.0,
        clients: 10.0,
        seconds: 10.0,
    };

    #[test]
    fn every_part_counts() {
        assert!((FULL.ratio().unwrap() - 1.0).abs() < 1e-15);
        assert!((FULL.overhead_share().unwrap() - 0.17).abs() < 1e-15);
        for (missing, expected) in [
            (
                Account {
                    in_flight_s: 0.0,
                    ..FULL
                },
                0.40,
            ),
            (
                Account {
                    think_s: 0.0,
                    ..FULL
                },
                0.80,
            ),
            (
                Account {
                    connect_s: 0.0,
                    ..FULL
                },
                0.99,
            ),
            (
                Account {
                    pause_s: 0.0,
                    ..FULL
                },
                0.98,
            ),
            (
                Account {
                    overhead_s: 0.0,
                    ..FULL
                },
                0.83,
            ),
        ] {
            assert!((missing.ratio().unwrap() - expected).abs() < 1e-12);
        }
    }

    #[test]
    fn no_time_is_no_ratio() {
        assert!(
            Account {
                clients: 0.0,
                ..FULL
            }
            .ratio()
            .is_err()
        );
        assert!(
            Account {
                seconds: f64::NAN,
                ..FULL
            }
            .overhead_share()
            .is_err()
        );
        assert_eq!(
            (ratio(1.0, 1.0, 0.0, 0.0), throughput_bound(0.0, 0.0, 3.0)),
            (None, None)
        );
    }
}
