//! Latencies of an arm: merged histograms, read once, and the quantiles that they allow.
//!
//! Counts of histograms are added, then read; a quantile can't be added or averaged. Requests that ended without a latency
//! of their own (timed out, never connected) are censored: they stand above every latency that was seen. This file must
//! never print a quantile below its smallest n, or one that lies among censored requests.

use std::collections::BTreeMap;

use anyhow::{Result, anyhow};
use hdrhistogram::Histogram;

use super::stats::quantile::{self, Reading};
use crate::results::LatencyData;

/// Microseconds in a millisecond.
const US_PER_MS: f64 = 1_000.0;

/// Latencies in microseconds beside the number of requests that have none.
#[derive(Debug, Clone)]
pub(super) struct Latencies {
    histogram: Histogram<u64>,
    censored: u64,
    /// The client's timeout: what a censored request took at least.
    timeout_us: u64,
}

impl Latencies {
    /// None yet.
    ///
    /// # Errors
    /// When no histogram can be made.
    pub(super) fn new(timeout_us: u64) -> Result<Self> {
        Ok(Self {
            histogram: Histogram::new(3).map_err(|e| anyhow!("making a histogram: {e}"))?,
            censored: 0,
            timeout_us,
        })
    }

    fn add(&mut self, other: &Histogram<u64>) -> Result<()> {
        self.histogram
            .add(other)
            .map_err(|e| anyhow!("merging latencies: {e}"))
    }

    /// Merges another population into this one.
    ///
    /// # Errors
    /// When a count overflows.
    pub(super) fn merge(&mut self, other: &Latencies) -> Result<()> {
        self.add(&other.histogram)?;
        self.censored += other.censored;
        Ok(())
    }

    /// Tells how many requests completed in all: those without a latency are censored.
    pub(super) fn set_completed(&mut self, completed: u64) {
        self.censored = completed.saturating_sub(self.histogram.len());
    }

    fn clear(&mut self) {
        self.histogram.reset();
        self.censored = 0;
    }

    /// The quantile `q` of the latencies and the censored requests above them.
    fn reading(&self, q: f64) -> Reading {
        quantile::read(&self.histogram, self.censored, self.timeout_us, q)
    }

    /// The quantile `q` in ms, or why there is none.
    ///
    /// # Errors
    /// In words: n is too small, or it lies among requests that ended without a latency.
    pub(super) fn quantile_ms(&self, q: f64) -> Result<f64, String> {
        match self.reading(q) {
            Reading::Value { value } => Ok(value.as_millis_f64()),
            Reading::TooFew { n, needed } => Err(format!(
                "n too small: {n} requests, this quantile needs {needed}"
            )),
            Reading::AtLeast { timeout } => Err(format!(
                "at least the client's timeout of {} ms: {} of {} requests ended without a latency",
                timeout.as_millis_f64(),
                self.censored,
                self.censored + self.histogram.len()
            )),
        }
    }

    /// How many requests completed without a latency.
    pub(super) fn censored(&self) -> u64 {
        self.censored
    }

    /// These latencies, were so many more requests censored.
    pub(super) fn with_censored(&self, censored: u64) -> Self {
        Self {
            censored,
            ..self.clone()
        }
    }

    /// The mean of the latencies that were seen, in ms.
    pub(super) fn mean_ms(&self) -> Option<f64> {
        (!self.histogram.is_empty()).then(|| self.histogram.mean() / US_PER_MS)
    }

    /// The largest latency that was seen, in ms.
    pub(super) fn max_ms(&self) -> Option<f64> {
        (!self.histogram.is_empty()).then(|| self.histogram.max() as f64 / US_PER_MS)
    }

    /// Counts by upper bound in ms, for a picture: buckets that grow by a tenth.
    pub(super) fn buckets(&self) -> Vec<(f64, u64)> {
        let mut buckets: Vec<(f64, u64)> = Vec::new();
        let mut bound = 0.0;
        for value in self.histogram.iter_recorded() {
            let ms = value.value_iterated_to() as f64 / US_PER_MS;
            let count = value.count_since_last_iteration();
            match buckets.last_mut() {
                Some(last) if ms <= bound => {
                    last.0 = ms;
                    last.1 += count;
                }
                _ => {
                    bound = ms * 1.1;
                    buckets.push((ms, count));
                }
            }
        }
        buckets
    }
}

/// Quantiles of one window or one point of a picture, in ms.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub(super) struct Point {
    pub(super) p50: Option<f64>,
    pub(super) p99: Option<f64>,
    pub(super) max: Option<f64>,
}

impl Latencies {
    fn point(&self) -> Point {
        Point {
            p50: self.quantile_ms(0.5).ok(),
            p99: self.quantile_ms(0.99).ok(),
            max: self.max_ms(),
        }
    }
}

/// Where to cut measured time: parts in order, each with its end in seconds and the requests that completed in it.
#[derive(Debug, Clone, PartialEq, Default)]
pub(super) struct Parts {
    pub(super) ends: Vec<u64>,
    pub(super) completed: Vec<u64>,
}

/// Everything that one pass over an arm's log gives.
#[derive(Debug, Clone)]
pub(super) struct Merged {
    /// All requests of the arm.
    pub(super) whole: Latencies,
    /// By step. A request without a latency is not known by step, so nothing is censored here.
    pub(super) by_step: BTreeMap<String, Latencies>,
    /// A point a window.
    pub(super) windows: Vec<Point>,
    /// A point a part of the pictures.
    pub(super) points: Vec<Point>,
    /// The first window's latencies.
    pub(super) first: Option<Latencies>,
    /// The last window's.
    pub(super) last: Option<Latencies>,
}

/// Collects intervals into consecutive parts, one part in memory at a time.
struct Cutter<'a> {
    parts: &'a Parts,
    current: Latencies,
    index: usize,
    points: Vec<Point>,
}

impl<'a> Cutter<'a> {
    fn new(parts: &'a Parts, timeout_us: u64) -> Result<Self> {
        Ok(Self {
            parts,
            current: Latencies::new(timeout_us)?,
            index: 0,
            points: Vec::with_capacity(parts.ends.len()),
        })
    }

    /// End of the part that is being collected.
    fn end(&self) -> f64 {
        self.parts
            .ends
            .get(self.index)
            .map_or(f64::INFINITY, |&end| end as f64)
    }

    /// Closes every part that ends at or before `from_s`; `close` sees each part's index and latencies.
    fn advance(
        &mut self,
        from_s: f64,
        mut close: impl FnMut(usize, &Latencies) -> Result<()>,
    ) -> Result<()> {
        while let Some(&end) = self.parts.ends.get(self.index)
            && end as f64 <= from_s
        {
            let completed = self.parts.completed.get(self.index).copied();
            self.current.set_completed(completed.unwrap_or_default());
            self.points.push(self.current.point());
            close(self.index, &self.current)?;
            self.current.clear();
            self.index += 1;
        }
        Ok(())
    }
}

/// Adds what is pending to the parts that it lies in and to its step, and empties it.
fn hand_on(
    pending: &mut BTreeMap<String, Latencies>,
    by_window: &mut Cutter<'_>,
    by_point: &mut Cutter<'_>,
    by_step: &mut BTreeMap<String, Latencies>,
) -> Result<()> {
    for (step, part) in pending {
        if part.histogram.is_empty() {
            continue;
        }
        by_window.current.add(&part.histogram)?;
        by_point.current.add(&part.histogram)?;
        if let Some(step) = by_step.get_mut(step) {
            step.add(&part.histogram)?;
        }
        part.clear();
    }
    Ok(())
}

/// Reads the log once. `last_window` is the place of the last whole window, whose latencies are kept like the first one's.
///
/// # Errors
/// When the log is damaged, or its intervals are out of order.
pub(super) fn merge(
    data: &LatencyData,
    windows: &Parts,
    last_window: Option<usize>,
    points: &Parts,
    completed: u64,
    timeout_us: u64,
) -> Result<Merged> {
    let mut whole = Latencies::new(timeout_us)?;
    let mut by_step: BTreeMap<String, Latencies> = BTreeMap::new();
    let mut by_window = Cutter::new(windows, timeout_us)?;
    let mut by_point = Cutter::new(points, timeout_us)?;
    let (mut first, mut last) = (None, None);
    let mut before = 0.0f64;
    let mut keep = |index: usize, part: &Latencies| {
        if index == 0 {
            first = Some(part.clone());
        }
        if Some(index) == last_window {
            last = Some(part.clone());
        }
        Ok(())
    };
    // Adding histograms is what takes the time, so intervals are added to one only, and that one to all that it belongs to
    // as soon as a part ends.
    let mut pending: BTreeMap<String, Latencies> = BTreeMap::new();
    let mut until = by_window.end().min(by_point.end());
    for interval in data.intervals() {
        let interval = interval?;
        if interval.from_s < before {
            return Err(anyhow!(
                "latency.hlog is out of order: an interval from {} s follows one from {before} s",
                interval.from_s
            ));
        }
        before = interval.from_s;
        if interval.from_s >= until {
            hand_on(&mut pending, &mut by_window, &mut by_point, &mut by_step)?;
            by_window.advance(interval.from_s, &mut keep)?;
            by_point.advance(interval.from_s, |_, part| whole.merge(part))?;
            until = by_window.end().min(by_point.end());
        }
        match pending.get_mut(&interval.step) {
            Some(step) => step.add(&interval.histogram)?,
            None => {
                let mut step = Latencies::new(timeout_us)?;
                step.add(&interval.histogram)?;
                by_step.insert(interval.step.clone(), Latencies::new(timeout_us)?);
                pending.insert(interval.step, step);
            }
        }
    }
    hand_on(&mut pending, &mut by_window, &mut by_point, &mut by_step)?;
    by_window.advance(f64::INFINITY, &mut keep)?;
    by_point.advance(f64::INFINITY, |_, part| whole.merge(part))?;
    whole.merge(&by_point.current)?;
    whole.set_completed(completed);
    Ok(Merged {
        whole,
        by_step,
        windows: by_window.points,
        points: by_point.points,
        first,
        last,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(values: &[(u64, u64)], censored: u64) -> Latencies {
        let mut all = Latencies::new(10_000_000).unwrap();
        for &(us, count) in values {
            all.histogram.record_n(us, count).unwrap();
        }
        all.set_completed(all.histogram.len() + censored);
        all
    }

    #[test]
    fn below_the_smallest_n_there_is_no_quantile() {
        let few = of(&[(1_000, 367)], 0).quantile_ms(0.99).unwrap_err();
        assert!(few.contains("needs 368"), "{few}");
        assert_eq!(of(&[(1_000, 368)], 0).quantile_ms(0.99), Ok(1.0));
        assert!(of(&[], 0).quantile_ms(0.5).is_err());
        assert_eq!(of(&[], 0).max_ms(), None);
    }

    #[test]
    fn what_timed_out_stands_above_all_that_was_seen() {
        // 2 % timed out: the median moves up a little, the 99th percentile is unknown.
        let some = of(&[(1_000, 500), (2_000, 480)], 20);
        assert_eq!(some.quantile_ms(0.5), Ok(1.0));
        let tail = some.quantile_ms(0.99).unwrap_err();
        assert!(tail.contains("timeout of 10000 ms: 20 of 1000"), "{tail}");
        // Exactly 1 %: the 990th of 1,000 is still one that was seen.
        assert!(of(&[(3_000, 990)], 10).quantile_ms(0.99).is_ok());
        assert!(of(&[], 1_000).quantile_ms(0.5).is_err());
    }

    #[test]
    fn buckets_hold_every_request() {
        let all = of(&[(500, 3), (510, 2), (40_000, 1)], 0);
        let buckets = all.buckets();
        assert_eq!(buckets.len(), 2);
        assert_eq!(buckets.iter().map(|b| b.1).sum::<u64>(), 6);
    }
}
