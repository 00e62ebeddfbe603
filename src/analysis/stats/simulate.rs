//! Series with a known truth, from a seed.
//!
//! They calibrate the rules and plant effects in tests. Must never be mistaken for data: nothing here is reachable from
//! the judging of a run.

use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha12Rng;

/// The noise around the level; standard deviations are 1 before scaling.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Noise {
    /// AR(1) with lag-1 correlation `phi`.
    Ar1 { phi: f64 },
    /// Half the variance white, half AR(0.95): short lags look harmless, the slow part is not.
    WhiteAndSlow,
    /// White, and in 1 % of the bins a burst begins that takes 40 % of the level for two bins.
    Bursts,
    /// White on a saw-tooth of period 17 bins.
    SawTooth,
    /// Student's t with 3 degrees of freedom, scaled to unit variance.
    HeavyTails,
}

/// The shape of the level over the series, as relative change from its start to its end.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Drift {
    /// Truly flat.
    None,
    /// A straight line.
    Linear(f64),
    /// A constant rate of change.
    Exponential(f64),
    /// A step in the middle.
    Step(f64),
}

/// Period of the saw-tooth in bins.
pub const SAW_TOOTH_PERIOD: usize = 17;

/// A source of simulated values.
pub struct Simulation {
    random: ChaCha12Rng,
    /// The second normal draw of a pair, not yet given out.
    spare: Option<f64>,
}

impl Simulation {
    /// The stream `stream` of a seed: equal arguments give equal values on every machine.
    pub fn new(seed: u64, stream: u64) -> Self {
        let mut random = ChaCha12Rng::seed_from_u64(seed);
        random.set_stream(stream);
        Self {
            random,
            spare: None,
        }
    }

    /// A uniform draw in [0, 1).
    pub fn uniform(&mut self) -> f64 {
        self.random.random()
    }

    /// A standard normal draw (Box and Muller 1958).
    pub fn normal(&mut self) -> f64 {
        if let Some(spare) = self.spare.take() {
            return spare;
        }
        let radius = (-2.0 * (1.0 - self.uniform()).ln()).sqrt();
        let (sine, cosine) = (std::f64::consts::TAU * self.uniform()).sin_cos();
        self.spare = Some(radius * sine);
        radius * cosine
    }

    /// `n` bins around a level of 1,000 that drifts, under noise with standard deviation `sd` as a share of the level.
    pub fn series(&mut self, n: usize, sd: f64, noise: Noise, drift: Drift) -> Vec<f64> {
        const LEVEL: f64 = 1_000.0;
        let noise = self.noise(n, sd, noise);
        let last = (n.max(2) - 1) as f64;
        (0..n)
            .map(|t| {
                let share = t as f64 / last;
                let shape = match drift {
                    Drift::None => 1.0,
                    Drift::Linear(change) => 1.0 + change * share,
                    Drift::Exponential(change) => (change.ln_1p() * share).exp(),
                    Drift::Step(change) => 1.0 + if 2 * t >= n { change } else { 0.0 },
                };
                LEVEL * shape * (1.0 + noise[t]).max(0.0)
            })
            .collect()
    }

    /// Relative noise.
    fn noise(&mut self, n: usize, sd: f64, noise: Noise) -> Vec<f64> {
        match noise {
            Noise::Ar1 { phi } => self.ar1(n, phi).iter().map(|e| sd * e).collect(),
            Noise::WhiteAndSlow => {
                let slow = self.ar1(n, 0.95);
                slow.iter()
                    .map(|e| sd * std::f64::consts::FRAC_1_SQRT_2 * (e + self.normal()))
                    .collect()
            }
            Noise::Bursts => {
                let mut left = 0;
                (0..n)
                    .map(|_| {
                        if self.uniform() < 0.01 {
                            left = 2;
                        }
                        let burst = if left > 0 { -0.4 } else { 0.0 };
                        left = (left - 1).max(0);
                        sd * self.normal() + burst
                    })
                    .collect()
            }
            Noise::SawTooth => {
                // A ramp over one period has variance (1 − 1/p^2)/12 of its height squared; half the variance each.
                let height = 12f64.sqrt();
                let start = (self.uniform() * SAW_TOOTH_PERIOD as f64) as usize;
                (0..n)
                    .map(|t| {
                        let place = ((t + start) % SAW_TOOTH_PERIOD) as f64
                            / (SAW_TOOTH_PERIOD as f64 - 1.0);
                        sd * std::f64::consts::FRAC_1_SQRT_2
                            * (height * (place - 0.5) + self.normal())
                    })
                    .collect()
            }
            Noise::HeavyTails => (0..n)
                .map(|_| {
                    let square: f64 = (0..3).map(|_| self.normal().powi(2)).sum();
                    // Variance of t with 3 degrees of freedom is 3; t = z / sqrt(chi2/3).
                    sd * self.normal() / square.sqrt()
                })
                .collect(),
        }
    }

    /// A stationary AR(1) series of unit variance.
    fn ar1(&mut self, n: usize, phi: f64) -> Vec<f64> {
        let innovation = (1.0 - phi * phi).sqrt();
        let mut value = self.normal();
        (0..n)
            .map(|t| {
                if t > 0 {
                    value = phi * value + innovation * self.normal();
                }
                value
            })
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::super::described::autocorrelation;
    use super::super::series::{mean, variance};
    use super::*;

    #[test]
    fn a_seed_gives_the_same_series_and_another_stream_another() {
        let draw = |stream| {
            Simulation::new(7, stream).series(50, 0.05, Noise::Ar1 { phi: 0.6 }, Drift::None)
        };
        assert_eq!(draw(1), draw(1));
        assert_ne!(draw(1), draw(2));
    }

    #[test]
    fn the_noise_has_the_spread_and_the_correlation_it_names() {
        for (noise, correlation) in [
            (Noise::Ar1 { phi: 0.0 }, 0.0),
            (Noise::Ar1 { phi: 0.8 }, 0.8),
            (Noise::WhiteAndSlow, 0.475),
        ] {
            let y = Simulation::new(1, 0).series(50_000, 0.05, noise, Drift::None);
            assert!((mean(&y) / 1_000.0 - 1.0).abs() < 0.01, "{noise:?}");
            assert!(
                (variance(&y).sqrt() / 50.0 - 1.0).abs() < 0.1,
                "{noise:?}: {}",
                variance(&y).sqrt()
            );
            assert!(
                (autocorrelation(&y, 1) - correlation).abs() < 0.05,
                "{noise:?}"
            );
        }
    }

    #[test]
    fn bursts_and_the_saw_tooth_look_like_themselves() {
        let y = Simulation::new(2, 0).series(20_000, 0.01, Noise::Bursts, Drift::None);
        let low = y.iter().filter(|v| **v < 700.0).count();
        assert!(
            (300..500).contains(&low),
            "{low} of 20,000 bins inside bursts"
        );
        let y = Simulation::new(2, 0).series(1_700, 0.05, Noise::SawTooth, Drift::None);
        assert!(autocorrelation(&y, SAW_TOOTH_PERIOD) > 0.4 && autocorrelation(&y, 8) < 0.0);
        let y = Simulation::new(2, 0).series(20_000, 0.05, Noise::HeavyTails, Drift::None);
        assert!(y.iter().any(|v| (v - 1_000.0).abs() > 500.0), "no tail");
    }

    #[test]
    fn drifts_end_where_they_say() {
        for drift in [
            Drift::Linear(-0.3),
            Drift::Exponential(-0.3),
            Drift::Step(-0.3),
        ] {
            let y = Simulation::new(3, 0).series(101, 0.0, Noise::Ar1 { phi: 0.0 }, drift);
            assert!(
                (y[0] - 1_000.0).abs() < 1e-9 && (y[100] - 700.0).abs() < 1e-9,
                "{drift:?}"
            );
        }
    }
}
