//! Quantiles of latencies: read from merged counts, with an interval, or not at all.
//!
//! [`Quantile`] has no arithmetic on purpose: percentiles of parts say nothing about the percentile of the whole. Must
//! never interpolate, clamp, or leave failed requests out of the count.

use anyhow::{Result, ensure};
use hdrhistogram::Histogram;
use serde::{Deserialize, Serialize};

/// A quantile's value in microseconds. It can be compared and printed; it cannot be added or averaged:
///
/// ```compile_fail
/// # use ceteris::analysis::stats::quantile::Quantile;
/// fn mean_of_percentiles(a: Quantile, b: Quantile) -> Quantile {
///     a + b
/// }
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Quantile(u64);

impl Quantile {
    /// Microseconds.
    pub fn as_micros(self) -> u64 {
        self.0
    }

    /// Milliseconds, for printing.
    pub fn as_millis_f64(self) -> f64 {
        self.0 as f64 / 1_000.0
    }
}

/// What can be said of a quantile.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "is")]
pub enum Reading {
    /// It was observed.
    Value { value: Quantile },
    /// It lies among the failed requests: at least the client's timeout.
    AtLeast { timeout: Quantile },
    /// n is too small for an interval of this quantile.
    TooFew { n: u64, needed: u64 },
}

/// The ranks (from 1) whose order statistics enclose a quantile, and the exact probability that they do.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Ranks {
    /// `None`: even the smallest value may lie above the quantile.
    pub lower: Option<u64>,
    /// `None`: even the largest value may lie below it.
    pub upper: Option<u64>,
    pub coverage: f64,
}

/// The smallest n whose extremes enclose the quantile `q` with `tail` in each tail: below it no interval exists.
/// 6 for the median, 368 for p99 at 2.5 %. `u64::MAX` unless 0 < q < 1 and 0 < tail < 1.
pub fn fewest(q: f64, tail: f64) -> u64 {
    if !(q > 0.0 && q < 1.0 && tail > 0.0 && tail < 1.0) {
        return u64::MAX;
    }
    (tail.ln() / q.max(1.0 - q).ln()).ceil() as u64
}

/// Binomial ranks of the quantile `q` among `n` values, `tail` in each tail (David and Nagaraja 2003, 7.1).
///
/// # Errors
/// No values, or a quantile or tail that is not inside (0, 1).
pub fn ranks(n: u64, q: f64, tail: f64) -> Result<Ranks> {
    ensure!(n > 0, "no values, no quantile");
    ensure!(
        q > 0.0 && q < 1.0 && tail > 0.0 && tail < 0.5,
        "quantile {q} or tail {tail} is not a probability"
    );
    let weights = Weights::new(n, q);
    // Largest l with P(B <= l - 1) <= tail.
    let (mut below, mut lower) = (0.0, None);
    for (k, weight) in weights.ascending() {
        if below + weight > tail {
            break;
        }
        below += weight;
        lower = Some(k + 1);
    }
    // Smallest u with P(B >= u) <= tail.
    let (mut above, mut upper) = (0.0, None);
    for (k, weight) in weights.descending() {
        if above + weight > tail {
            break;
        }
        above += weight;
        upper = (k > 0).then_some(k);
    }
    Ok(Ranks {
        lower,
        upper,
        coverage: 1.0 - below - above,
    })
}

/// Binomial probabilities around the mode: those left out sum to less than 1e-20.
struct Weights {
    first: u64,
    weights: Vec<f64>,
}

impl Weights {
    fn new(n: u64, q: f64) -> Self {
        let mode = (((n + 1) as f64 * q).floor() as u64).min(n);
        let odds = q / (1.0 - q);
        let mut down = Vec::new();
        let (mut weight, mut k) = (1.0, mode);
        while k > 0 && weight > 1e-25 {
            weight *= k as f64 / ((n - k + 1) as f64 * odds);
            k -= 1;
            down.push(weight);
        }
        let first = mode - down.len() as u64;
        let mut weights: Vec<f64> = down.into_iter().rev().collect();
        weights.push(1.0);
        let (mut weight, mut k) = (1.0, mode);
        while k < n && weight > 1e-25 {
            weight *= (n - k) as f64 * odds / (k + 1) as f64;
            k += 1;
            weights.push(weight);
        }
        // Relative weights divided by their sum: no factorial of ten million is needed. Small ones are summed first.
        let mut sorted = weights.clone();
        sorted.sort_by(f64::total_cmp);
        let total: f64 = sorted.iter().sum();
        weights.iter_mut().for_each(|w| *w /= total);
        Self { first, weights }
    }

    fn ascending(&self) -> impl Iterator<Item = (u64, f64)> + '_ {
        // Values below the first kept one have no weight worth a digit; their ranks are passed in one step.
        self.weights
            .iter()
            .enumerate()
            .map(|(i, w)| (self.first + i as u64, *w))
    }

    fn descending(&self) -> impl Iterator<Item = (u64, f64)> + '_ {
        self.weights
            .iter()
            .enumerate()
            .rev()
            .map(|(i, w)| (self.first + i as u64, *w))
    }
}

/// The rank (from 1) of the quantile `q` among `n` values: the nearest rank, ceil(q n).
pub fn nearest_rank(n: u64, q: f64) -> u64 {
    // 0.999 x 2000 must be 1998, whichever way the product was rounded.
    let place = q * n as f64;
    let rank = (place - place.abs() * 1e-12).ceil() as u64;
    rank.clamp(1, n.max(1))
}

/// Adds the counts of histograms. They must agree in bounds and digits, so that no count moves.
///
/// # Errors
/// Histograms with different digits or lowest values, or none at all.
pub fn merged<'a>(parts: impl IntoIterator<Item = &'a Histogram<u64>>) -> Result<Histogram<u64>> {
    let mut parts = parts.into_iter();
    let Some(first) = parts.next() else {
        anyhow::bail!("no histogram to read a quantile from");
    };
    let mut all = first.clone();
    all.auto(true);
    for part in parts {
        ensure!(
            part.sigfig() == all.sigfig() && part.low() == all.low(),
            "histograms of {} and {} digits cannot be added without moving counts",
            all.sigfig(),
            part.sigfig()
        );
        all.add(part)
            .map_err(|error| anyhow::anyhow!("adding histograms: {error}"))?;
    }
    Ok(all)
}

/// Reads the quantile `q` of all requests: `ok` holds those that were answered, `failed` counts those that failed or
/// timed out. They are censored: wherever the rank falls among them, the quantile is at least `timeout_us`.
pub fn read(ok: &Histogram<u64>, failed: u64, timeout_us: u64, q: f64) -> Reading {
    let n = ok.len() + failed;
    let needed = fewest(q, 0.025);
    if n < needed {
        return Reading::TooFew { n, needed };
    }
    let rank = nearest_rank(n, q);
    if rank > ok.len() {
        return Reading::AtLeast {
            timeout: Quantile(timeout_us),
        };
    }
    Reading::Value {
        value: value_at_rank(ok, rank),
    }
}

/// The value at a rank from 1, to the histogram's precision, never above the largest recorded value's own bucket.
pub fn value_at_rank(histogram: &Histogram<u64>, rank: u64) -> Quantile {
    let mut seen = 0;
    for bucket in histogram.iter_recorded() {
        seen += bucket.count_since_last_iteration();
        if seen >= rank {
            return Quantile(bucket.value_iterated_to());
        }
    }
    Quantile(histogram.max())
}

/// The interval of the quantile `q`, `tail` in each tail: the values at the binomial ranks. It knows the sampling of
/// requests only, since requests depend on each other; say so where it is printed. `None` for an end that does not
/// exist or lies among the failed.
///
/// # Errors
/// As [`ranks`].
pub fn interval(
    ok: &Histogram<u64>,
    failed: u64,
    q: f64,
    tail: f64,
) -> Result<(Option<Quantile>, Option<Quantile>)> {
    let found = ranks(ok.len() + failed, q, tail)?;
    let at = |rank: Option<u64>| {
        rank.filter(|r| *r <= ok.len())
            .map(|r| value_at_rank(ok, r))
    };
    Ok((at(found.lower), at(found.upper)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn histogram(values: impl IntoIterator<Item = u64>) -> Histogram<u64> {
        let mut h = Histogram::new(3).unwrap();
        for v in values {
            h.record(v).unwrap();
        }
        h
    }

    #[test]
    fn no_percentile_below_its_smallest_n() {
        for (q, n) in [(0.5, 6), (0.9, 36), (0.95, 72), (0.99, 368), (0.999, 3_688)] {
            assert_eq!(fewest(q, 0.025), n, "{q}");
            let all = histogram(1..=n);
            assert!(matches!(read(&all, 0, 10_000, q), Reading::Value { .. }));
            assert_eq!(
                read(&histogram(1..n), 0, 10_000, q),
                Reading::TooFew {
                    n: n - 1,
                    needed: n
                }
            );
            let found = ranks(n, q, 0.025).unwrap();
            assert!(found.upper.is_some() && found.lower.is_some(), "{q}");
        }
        assert_eq!(fewest(1.0, 0.025), u64::MAX);
    }

    #[test]
    fn failed_requests_are_censored_and_not_dropped() {
        let ok = histogram((1..=990).map(|v| v * 10));
        let timeout = Reading::AtLeast {
            timeout: Quantile(5_000_000),
        };
        // 10 of 1,000 failed: exactly 1 - q of p99; 11 are more.
        assert!(matches!(
            read(&ok, 10, 5_000_000, 0.99),
            Reading::Value { .. }
        ));
        assert_eq!(read(&ok, 11, 5_000_000, 0.99), timeout);
        assert_eq!(read(&histogram([]), 1_000, 5_000_000, 0.5), timeout);
        // The median moves up with them: rank 1000 of 2000 is above all ok ones.
        assert_eq!(read(&ok, 1_010, 5_000_000, 0.5), timeout);
    }

    #[test]
    fn counts_are_added_and_digits_must_agree() {
        let (a, b) = (histogram([10, 20, 30]), histogram([1_000_000]));
        let all = merged([&a, &b]).unwrap();
        assert_eq!((all.len(), all.min()), (4, 10));
        assert!(all.max() >= 1_000_000);
        let coarse = Histogram::<u64>::new(2).unwrap();
        assert!(merged([&a, &coarse]).is_err());
        assert!(merged([]).is_err());
    }

    #[test]
    fn quantiles_lie_between_the_smallest_and_the_largest() {
        let all = histogram([7, 7, 7, 7, 7, 7, 7, 7, 9]);
        assert_eq!(read(&all, 0, 1, 0.5), Reading::Value { value: Quantile(7) });
        assert_eq!(value_at_rank(&all, 9), Quantile(9));
        assert_eq!(value_at_rank(&all, 99), Quantile(9));
    }

    #[test]
    fn an_interval_end_that_does_not_exist_is_absent() {
        let all = histogram(1..=10);
        let (low, high) = interval(&all, 0, 0.9, 0.025).unwrap();
        assert_eq!((low.map(Quantile::as_micros), high), (Some(7), None));
        let (_, high) = interval(&histogram(1..=100), 30, 0.7, 0.025).unwrap();
        assert_eq!(high, None, "the upper rank lies among the failed");
        assert!(interval(&histogram([]), 0, 0.5, 0.025).is_err());
    }

    #[test]
    fn the_nearest_rank_does_not_depend_on_rounding() {
        assert_eq!(nearest_rank(2_000, 0.999), 1_998);
        assert_eq!(nearest_rank(100, 0.07), 7);
        assert_eq!(nearest_rank(10, 0.95), 10);
        assert_eq!(nearest_rank(0, 0.5), 1);
    }
}
