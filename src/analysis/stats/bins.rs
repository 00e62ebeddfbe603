//! How wide a bin is, and counting a finer series into bins.
//!
//! Must never keep a partial bin: half a bin has half the count and would read as a fall.

/// The widths a series may be counted in, in seconds.
pub const WIDTHS_S: [u64; 9] = [1, 2, 5, 10, 30, 60, 300, 600, 1800];

/// No more bins than this: the quadratic parts of the description stay affordable.
pub const MOST_BINS: u64 = 1_000;

/// The bin width in seconds for a series of `duration_s` seconds: the shortest of [`WIDTHS_S`] that leaves at most
/// [`MOST_BINS`] whole bins. Longer than the widest allows (some 20 days), the width is the next multiple of it.
pub fn width(duration_s: u64) -> u64 {
    if let Some(width) = WIDTHS_S.into_iter().find(|w| duration_s / w <= MOST_BINS) {
        return width;
    }
    let widest = WIDTHS_S[WIDTHS_S.len() - 1];
    widest * (duration_s / widest).div_ceil(MOST_BINS)
}

/// Sums of consecutive groups of `width` values, from the start; a last partial group is dropped.
pub fn sums(values: &[f64], width: usize) -> Vec<f64> {
    values
        .chunks_exact(width.max(1))
        .map(|bin| bin.iter().sum())
        .collect()
}

/// Means of consecutive groups of `width` values, from the start; a last partial group is dropped.
pub fn means(values: &[f64], width: usize) -> Vec<f64> {
    values
        .chunks_exact(width.max(1))
        .map(super::series::mean)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_shortest_width_that_leaves_a_thousand_bins() {
        for (duration, expected) in [
            (0, 1),
            (120, 1),
            (1_000, 1),
            (1_001, 2),
            (2_001, 2),
            (2_002, 5),
            (5_005, 10),
            (10_010, 30),
            (30_030, 60),
            (86_400, 300),
            (259_200, 300),
            (300_300, 600),
            (600_600, 1_800),
            (1_801_800, 3_600),
        ] {
            assert_eq!(width(duration), expected, "{duration} s");
        }
    }

    #[test]
    fn a_width_never_leaves_more_bins_than_allowed() {
        for duration in (0..4_000_000).step_by(977) {
            assert!(duration / width(duration) <= MOST_BINS, "{duration} s");
        }
    }

    #[test]
    fn only_a_last_partial_bin_is_dropped() {
        assert_eq!(sums(&[1.0, 2.0, 3.0, 4.0, 5.0], 2), [3.0, 7.0]);
        assert_eq!(means(&[1.0, 2.0, 3.0, 4.0, 5.0], 2), [1.5, 3.5]);
        assert!(sums(&[1.0], 2).is_empty());
    }
}
