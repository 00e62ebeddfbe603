//! Several verdicts that share one error rate.
//!
//! Bonferroni: with m distinct verdicts behind the primary claims, each is judged at alpha/m. What must all hold at once
//! needs no correction, and exploratory verdicts get none because they claim nothing.

/// The error rate of each of `m` verdicts that share `alpha`.
pub fn shared(alpha: f64, m: usize) -> f64 {
    alpha / m.max(1) as f64
}

/// A p value among `m` of them, adjusted: at most 1.
pub fn adjusted(p: f64, m: usize) -> f64 {
    (p * m.max(1) as f64).min(1.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_rate_is_divided_and_one_verdict_keeps_it() {
        assert_eq!(shared(0.05, 0), 0.05);
        assert_eq!(shared(0.05, 1), 0.05);
        assert_eq!(shared(0.05, 5), 0.01);
        assert_eq!(adjusted(0.3, 4), 1.0);
        assert_eq!(adjusted(0.01, 4), 0.04);
    }
}
