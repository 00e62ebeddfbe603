//! Quantiles and tail probabilities of the standard distributions.
//!
//! Thin, checked wrappers around `statrs`: the quantiles are polished by Newton steps, since an interval is only as good
//! as the quantile in it. Must never return a quantile for a probability outside (0, 1).

use statrs::function::erf::erfc_inv;
use statrs::function::gamma::{gamma_ur, ln_gamma};

/// P(Z > z) of the standard normal distribution, to 13 digits (the crate's `erfc` keeps 10).
///
/// The series of the lower half below 2.5, the continued fraction of the tail beyond (Abramowitz and Stegun 26.2.11
/// and 26.2.14).
pub fn normal_sf(z: f64) -> f64 {
    if z.is_nan() {
        return f64::NAN;
    }
    if z < 0.0 {
        return 1.0 - normal_sf(-z);
    }
    let density = (-0.5 * z * z).exp() / (2.0 * std::f64::consts::PI).sqrt();
    if z < 2.5 {
        let (mut term, mut sum, mut odd) = (z, z, 1.0);
        while term > 1e-17 * sum {
            odd += 2.0;
            term *= z * z / odd;
            sum += term;
        }
        0.5 - density * sum
    } else {
        density / (1..200).rev().fold(z, |rest, k| z + f64::from(k) / rest)
    }
}

/// The z below which a standard normal variable falls with probability `p`; NaN unless 0 < p < 1.
pub fn normal_quantile(p: f64) -> f64 {
    if !(p > 0.0 && p < 1.0) {
        return f64::NAN;
    }
    if p < 0.5 {
        return -normal_quantile_upper(p);
    }
    normal_quantile_upper(1.0 - p)
}

/// The z exceeded with probability `q` <= 0.5.
fn normal_quantile_upper(q: f64) -> f64 {
    let mut z = std::f64::consts::SQRT_2 * erfc_inv(2.0 * q);
    for _ in 0..2 {
        let density = (-0.5 * z * z).exp() / (2.0 * std::f64::consts::PI).sqrt();
        if density > 0.0 {
            z += (normal_sf(z) - q) / density;
        }
    }
    z
}

/// P(T > t) of Student's t with `df` > 0 degrees of freedom, real-valued; NaN where df is not positive.
pub fn t_sf(t: f64, df: f64) -> f64 {
    if df.is_nan() || df <= 0.0 || t.is_nan() {
        return f64::NAN;
    }
    if t < 0.0 {
        return 1.0 - t_sf(-t, df);
    }
    if !t.is_finite() {
        return 0.0;
    }
    if df.is_infinite() {
        return normal_sf(t);
    }
    t_tail(t, df, log_beta_half(0.5 * df))
}

/// The tail for t >= 0, given ln B(df/2, 1/2), by the incomplete beta function of df/(df + t^2).
///
/// Of that argument and its complement the smaller one is exact; 1 − x would lose the digits of the other.
fn t_tail(t: f64, df: f64, log_beta: f64) -> f64 {
    let (a, square) = (0.5 * df, t * t);
    let (x, rest) = (df / (df + square), square / (df + square));
    let front = (a * -(square / df).ln_1p() + 0.5 * rest.ln() - log_beta).exp();
    if t == 0.0 {
        0.5
    } else if x < (a + 1.0) / (a + 2.5) {
        0.5 * front * beta_fraction(a, 0.5, x) / a
    } else {
        0.5 - front * beta_fraction(0.5, a, rest)
    }
}

/// ln B(a, 1/2). The difference of two large logarithms of gamma is taken by its series, where it would lose digits.
fn log_beta_half(a: f64) -> f64 {
    if a < 50.0 {
        return ln_gamma(a) + ln_gamma(0.5) - ln_gamma(a + 0.5);
    }
    // Gamma(a + 1/2)/Gamma(a) = sqrt(a) (1 − 1/(8a) + 1/(128 a^2) + 5/(1024 a^3) − ...) (Abramowitz and Stegun 6.1.47).
    let r = 1.0 / a;
    let series = 1.0
        + r * (-1.0 / 8.0
            + r * (1.0 / 128.0
                + r * (5.0 / 1_024.0 + r * (-21.0 / 32_768.0 + r * (-399.0 / 262_144.0)))));
    0.5 * (std::f64::consts::PI / a).ln() - series.ln()
}

/// The continued fraction of the incomplete beta function by Lentz's method (Abramowitz and Stegun 26.5.8); quick for
/// x below (a + 1)/(a + b + 2).
fn beta_fraction(a: f64, b: f64, x: f64) -> f64 {
    let away_from_zero = |v: f64| if v.abs() < 1e-300 { 1e-300 } else { v };
    let mut c = 1.0;
    let mut d = 1.0 / away_from_zero(1.0 - (a + b) * x / (a + 1.0));
    let mut fraction = d;
    for m in 1..10_000 {
        let m = f64::from(m);
        let even = m * (b - m) * x / ((a + 2.0 * m - 1.0) * (a + 2.0 * m));
        d = 1.0 / away_from_zero(1.0 + even * d);
        c = away_from_zero(1.0 + even / c);
        fraction *= d * c;
        let odd = -(a + m) * (a + b + m) * x / ((a + 2.0 * m) * (a + 2.0 * m + 1.0));
        d = 1.0 / away_from_zero(1.0 + odd * d);
        c = away_from_zero(1.0 + odd / c);
        fraction *= d * c;
        if (d * c - 1.0).abs() < 1e-15 {
            break;
        }
    }
    fraction
}

/// The two-sided p value of a t statistic.
pub fn t_two_sided(t: f64, df: f64) -> f64 {
    (2.0 * t_sf(t.abs(), df)).min(1.0)
}

/// The t exceeded with probability `q` in (0, 0.5], `df` > 0 real-valued; NaN outside.
///
/// Halley's iteration on the upper tail, which is convex, started at the normal quantile, which is never beyond the root;
/// where its correction is too bold the step is Newton's, which cannot overshoot.
pub fn t_upper(q: f64, df: f64) -> f64 {
    if !(q > 0.0 && q <= 0.5 && df > 0.0) {
        return f64::NAN;
    }
    if q == 0.5 {
        return 0.0;
    }
    let mut t = normal_quantile_upper(q);
    if df.is_infinite() {
        return t;
    }
    let log_beta = log_beta_half(0.5 * df);
    for _ in 0..500 {
        let density = (-0.5 * df.ln() - log_beta - 0.5 * (df + 1.0) * (t * t / df).ln_1p()).exp();
        let newton = (t_tail(t, df, log_beta) - q) / density;
        if !newton.is_finite() {
            break;
        }
        let halley = 1.0 - 0.5 * newton * (df + 1.0) * t / (df + t * t);
        t += if halley > 0.5 {
            newton / halley
        } else {
            newton
        };
        if newton.abs() <= 1e-13 * t.abs() {
            break;
        }
    }
    t
}

/// P(X > x) of the chi-square distribution with `df` degrees of freedom.
pub fn chi_square_sf(x: f64, df: f64) -> f64 {
    if df.is_nan() || df <= 0.0 || x.is_nan() {
        return f64::NAN;
    }
    if x <= 0.0 {
        return 1.0;
    }
    gamma_ur(0.5 * df, 0.5 * x)
}

/// The x below which a chi-square variable falls with probability `p`; NaN unless 0 < p < 1 and df > 0.
///
/// Bisection on the tail: slow and certain, and asked for a handful of times a report.
pub fn chi_square_quantile(p: f64, df: f64) -> f64 {
    if !(p > 0.0 && p < 1.0 && df > 0.0) {
        return f64::NAN;
    }
    let mut low = 0.0;
    let mut high = df.max(1.0);
    while chi_square_sf(high, df) > 1.0 - p {
        high *= 2.0;
    }
    for _ in 0..200 {
        let middle = 0.5 * (low + high);
        if middle <= low || middle >= high {
            break;
        }
        if chi_square_sf(middle, df) > 1.0 - p {
            low = middle;
        } else {
            high = middle;
        }
    }
    0.5 * (low + high)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_t_quantile_of_one_and_two_degrees_has_a_closed_form() {
        for q in [0.4, 0.05, 0.025, 1e-4, 1e-9] {
            let cauchy = 1.0 / (std::f64::consts::PI * q).tan();
            assert!(
                (t_upper(q, 1.0) / cauchy - 1.0).abs() < 1e-10,
                "df 1, q {q}"
            );
            let two = (1.0 - 2.0 * q) * (2.0 / (4.0 * q * (1.0 - q))).sqrt();
            assert!((t_upper(q, 2.0) / two - 1.0).abs() < 1e-10, "df 2, q {q}");
        }
    }

    #[test]
    fn many_degrees_approach_the_normal() {
        // Values of scipy 1.17.
        for (df, expected) in [
            (99.0, 1.660_391_156_016_991),
            (101.0, 1.660_080_630_411_786_7),
            (1_234.5, 1.646_088_880_269_02),
            (1e7, 1.644_853_779_328_402),
        ] {
            assert!(
                (t_upper(0.05, df) / expected - 1.0).abs() < 1e-12,
                "{df}: {}",
                t_upper(0.05, df)
            );
        }
        assert!((t_upper(0.05, f64::INFINITY) - normal_quantile(0.95)).abs() < 1e-14);
    }

    #[test]
    fn the_normal_tail_is_one_function_on_both_sides_of_its_seam() {
        // Values of scipy 1.17.
        for (z, expected) in [
            (0.7831244120827019, 0.216777028444926_47),
            (1.3, 0.096800484585610),
            (2.4999999, 0.0062096670786064),
            (2.5, 0.006209665325776),
            (6.0, 9.865876450377e-10),
        ] {
            assert!(
                (normal_sf(z) / expected - 1.0).abs() < 1e-11,
                "{z}: {:e}",
                normal_sf(z)
            );
        }
        assert_eq!(normal_sf(f64::INFINITY), 0.0);
    }

    #[test]
    fn what_is_no_probability_has_no_quantile() {
        assert!(normal_quantile(0.0).is_nan() && normal_quantile(1.0).is_nan());
        assert!(
            t_upper(0.0, 3.0).is_nan() && t_upper(0.6, 3.0).is_nan() && t_upper(0.05, 0.0).is_nan()
        );
        assert!(chi_square_quantile(1.0, 3.0).is_nan());
    }

    #[test]
    fn tails_are_symmetric() {
        assert!((t_sf(-1.3, 5.5) + t_sf(1.3, 5.5) - 1.0).abs() < 1e-15);
        assert_eq!(t_sf(0.0, 5.0), 0.5);
        assert!((normal_quantile(0.2) + normal_quantile(0.8)).abs() < 1e-14);
    }
}
