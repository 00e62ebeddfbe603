//! Where the warm-up ends: MSER-5.
//!
//! White (1997): over batch means of five, cut the head that makes the standard error of the rest's mean smallest. A
//! minimum at the last allowed place means that the series never settles. A head above the rest is a decay, not a
//! warm-up: cutting it would remove the evidence. Must never leave fewer than [`FEWEST_BINS`] bins.

use serde::{Deserialize, Serialize};

use super::series::mean;

/// Bins a batch mean holds.
pub const BATCH: usize = 5;

/// Never cut below this many bins.
pub const FEWEST_BINS: usize = 60;

/// What MSER-5 found.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Mser {
    /// Whole batches in the series.
    pub batches: usize,
    /// The largest number of batches that may be cut.
    pub last_allowed: usize,
    /// The number of batches to cut: the first place of the minimum.
    pub cut_batches: usize,
    /// The criterion at its minimum: sum of squared deviations over the squared count of what is left.
    pub minimum: f64,
    /// The criterion without a cut.
    pub at_start: f64,
}

/// Searches d = 0..=floor(batches/2). `None` below two batches.
pub fn mser5(y: &[f64]) -> Option<Mser> {
    let z: Vec<f64> = y.chunks_exact(BATCH).map(mean).collect();
    if z.len() < 2 {
        return None;
    }
    let criterion = |d: usize| {
        let rest = &z[d..];
        let centre = mean(rest);
        rest.iter().map(|v| (v - centre).powi(2)).sum::<f64>() / (rest.len() as f64).powi(2)
    };
    let at_start = criterion(0);
    let last_allowed = z.len() / 2;
    let mut best = (0, at_start);
    for d in 1..=last_allowed {
        let value = criterion(d);
        if value < best.1 {
            best = (d, value);
        }
    }
    Some(Mser {
        batches: z.len(),
        last_allowed,
        cut_batches: best.0,
        minimum: best.1,
        at_start,
    })
}

/// What is done about a warm-up that is left after the declared one was cut.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "handling")]
pub enum WarmUp {
    /// The caller wanted no search.
    NotSearched,
    /// Nothing to cut: the minimum is at the start, or the head does not lie below the rest.
    None,
    /// The first `bins` bins are a warm-up: judged with and without them.
    Cut { bins: usize },
    /// A cut of `bins` bins would leave too few: not cut, which leaves the verdict alone.
    NotCutFew { bins: usize },
    /// The minimum is at the last allowed place: the series does not settle. Not cut.
    NoSteadyState,
}

/// Applies MSER-5 and the limits on cutting.
pub fn search(y: &[f64]) -> WarmUp {
    let Some(found) = mser5(y) else {
        return WarmUp::None;
    };
    if found.cut_batches == 0 {
        return WarmUp::None;
    }
    if found.cut_batches == found.last_allowed {
        return WarmUp::NoSteadyState;
    }
    let bins = found.cut_batches * BATCH;
    if mean(&y[..bins]) >= mean(&y[bins..]) {
        return WarmUp::None;
    }
    if y.len() - bins < FEWEST_BINS {
        return WarmUp::NotCutFew { bins };
    }
    WarmUp::Cut { bins }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A flat series with a small fixed pattern, `head` bins of it divided by two.
    fn warming(n: usize, head: usize) -> Vec<f64> {
        (0..n)
            .map(|t| (if t < head { 50.0 } else { 100.0 }) + [0.0, 1.0, -1.0, 2.0, -2.0][t % 5])
            .collect()
    }

    #[test]
    fn a_cold_start_is_cut_where_it_ends() {
        assert_eq!(search(&warming(200, 20)), WarmUp::Cut { bins: 20 });
        assert_eq!(search(&warming(200, 0)), WarmUp::None);
    }

    #[test]
    fn a_hot_start_is_evidence_and_stays() {
        let falling: Vec<f64> = warming(200, 20).iter().map(|v| 200.0 - v).collect();
        assert!(mser5(&falling).unwrap().cut_batches > 0);
        assert_eq!(search(&falling), WarmUp::None);
    }

    #[test]
    fn a_series_that_climbs_to_the_end_has_no_steady_state() {
        let climbing: Vec<f64> = (0..200).map(f64::from).collect();
        assert_eq!(search(&climbing), WarmUp::NoSteadyState);
    }

    #[test]
    fn sixty_bins_stay() {
        let y = warming(200, 20);
        assert_eq!(search(&y[..80]), WarmUp::Cut { bins: 20 });
        assert_eq!(search(&y[..79]), WarmUp::NotCutFew { bins: 20 });
    }

    #[test]
    fn too_short_or_constant_has_nothing_to_cut() {
        assert_eq!(search(&[1.0; 9]), WarmUp::None);
        assert_eq!(search(&[3.0; 100]), WarmUp::None);
    }
}
