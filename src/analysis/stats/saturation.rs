//! Where more clients stop helping: the knee by elasticity, and the universal scalability law beside it.
//!
//! X = lambda N/(1 + sigma (N − 1) + kappa N (N − 1)) (Gunther 1993). Must never extrapolate: a peak outside the tested
//! levels is not told, and "retrograde" needs the lower bound of kappa above zero.

use anyhow::{Result, ensure};
use serde::{Deserialize, Serialize};

use super::distribution::t_upper;
use super::series::{Interval, mean};

/// A relative gain of throughput at most this share of the relative gain of clients is none.
pub const KNEE_ELASTICITY: f64 = 0.1;

/// The fitted law.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Usl {
    /// Throughput of one client, lambda > 0.
    pub lambda: f64,
    /// Contention, 0 to 1.
    pub sigma: f64,
    /// Coherency, >= 0.
    pub kappa: f64,
    /// Standard errors in the same order; 0 for a parameter at its bound.
    pub se: [f64; 3],
    /// 95 % interval of kappa, cut off at 0.
    pub kappa_interval: Interval,
    /// Throughput falls beyond the peak: kappa's lower bound lies above zero.
    pub retrograde: bool,
    /// Clients at the peak, only inside the tested levels.
    pub peak_clients: Option<f64>,
    /// Share of the variance that the law explains.
    pub r2: f64,
}

/// d ln X/d ln N between successive levels.
///
/// # Errors
/// Fewer than two levels, levels that do not increase, or a value that is not positive.
pub fn elasticities(clients: &[f64], throughput: &[f64]) -> Result<Vec<f64>> {
    check(clients, throughput, 2)?;
    Ok((1..clients.len())
        .map(|i| (throughput[i] / throughput[i - 1]).ln() / (clients[i] / clients[i - 1]).ln())
        .collect())
}

/// The first level after which two successive steps gain nothing ([`KNEE_ELASTICITY`]). `None`: no knee among the levels.
///
/// # Errors
/// As [`elasticities`].
pub fn knee(clients: &[f64], throughput: &[f64]) -> Result<Option<f64>> {
    let steps = elasticities(clients, throughput)?;
    Ok(steps
        .windows(2)
        .position(|pair| pair.iter().all(|e| *e <= KNEE_ELASTICITY))
        .map(|at| clients[at]))
}

/// Throughput by the law.
pub fn usl(clients: f64, [lambda, sigma, kappa]: [f64; 3]) -> f64 {
    lambda * clients / (1.0 + sigma * (clients - 1.0) + kappa * clients * (clients - 1.0))
}

/// Least squares by Levenberg and Marquardt with bounds: a parameter at its bound stays there while the gradient pushes
/// it out, and its standard error is 0.
///
/// # Errors
/// Fewer than four levels, and as [`elasticities`].
pub fn fit(clients: &[f64], throughput: &[f64]) -> Result<Usl> {
    check(clients, throughput, 4)?;
    // Throughput in units of its maximum: the three parameters then have comparable effects.
    let unit = throughput.iter().copied().fold(0.0, f64::max);
    let y: Vec<f64> = throughput.iter().map(|x| x / unit).collect();
    let cost = |p: [f64; 3]| {
        clients
            .iter()
            .zip(&y)
            .map(|(n, v)| (v - usl(*n, p)).powi(2))
            .sum::<f64>()
    };
    let mut p = start(clients, &y);
    let mut best = cost(p);
    let mut damping = 1e-3;
    for _ in 0..500 {
        let (normal, gradient) = normal_equations(clients, &y, p);
        let free = free_parameters(p, gradient);
        let mut damped = normal;
        for (i, row) in damped.iter_mut().enumerate() {
            row[i] *= 1.0 + damping;
        }
        let Some(step) = solve_free(damped, gradient, free) else {
            break;
        };
        let next = clamp([p[0] + step[0], p[1] + step[1], p[2] + step[2]]);
        let value = cost(next);
        if value <= best {
            let moved = (0..3).any(|i| (next[i] - p[i]).abs() > 1e-14 * p[i].abs().max(1e-9));
            p = next;
            best = value;
            damping = (damping * 0.2).max(1e-15);
            if !moved {
                break;
            }
        } else {
            damping *= 5.0;
            if damping > 1e12 {
                break;
            }
        }
    }
    let (normal, gradient) = normal_equations(clients, &y, p);
    let free = free_parameters(p, gradient);
    let freedom = clients.len() as f64 - free.iter().filter(|f| **f).count() as f64;
    let variance = best / freedom;
    let mut se = [0.0; 3];
    for (i, place) in se.iter_mut().enumerate() {
        let mut unit_vector = [0.0; 3];
        unit_vector[i] = 1.0;
        if free[i]
            && let Some(column) = solve_free(normal, unit_vector, free)
        {
            *place = (variance * column[i]).max(0.0).sqrt();
        }
    }
    let half = t_upper(0.025, freedom) * se[2];
    let kappa_interval = Interval {
        lower: (p[2] - half).max(0.0),
        upper: p[2] + half,
        level: 0.95,
    };
    let centre = mean(&y);
    let total: f64 = y.iter().map(|v| (v - centre).powi(2)).sum();
    let (fewest, most) = (clients[0], clients[clients.len() - 1]);
    let peak = ((1.0 - p[1]) / p[2]).sqrt();
    Ok(Usl {
        lambda: p[0] * unit,
        sigma: p[1],
        kappa: p[2],
        se: [se[0] * unit, se[1], se[2]],
        kappa_interval,
        retrograde: p[2] > 0.0 && p[2] - half > 0.0,
        peak_clients: (p[2] > 0.0 && (fewest..=most).contains(&peak)).then_some(peak),
        r2: if total > 0.0 { 1.0 - best / total } else { 0.0 },
    })
}

fn check(clients: &[f64], throughput: &[f64], fewest: usize) -> Result<()> {
    ensure!(
        clients.len() == throughput.len() && clients.len() >= fewest,
        "{} levels and {} throughputs: a saturation curve needs at least {fewest} of both",
        clients.len(),
        throughput.len()
    );
    ensure!(
        clients
            .iter()
            .chain(throughput)
            .all(|v| v.is_finite() && *v > 0.0),
        "a level without clients or without throughput has no place on a saturation curve: leave it out"
    );
    ensure!(
        clients.windows(2).all(|pair| pair[0] < pair[1]),
        "the levels must increase: sort them and average those that were run twice"
    );
    Ok(())
}

fn clamp([lambda, sigma, kappa]: [f64; 3]) -> [f64; 3] {
    [lambda.max(1e-12), sigma.clamp(0.0, 1.0), kappa.max(0.0)]
}

/// The linear form N/X = 1/lambda + sigma/lambda (N − 1) + kappa/lambda N (N − 1), by least squares, inside the bounds.
fn start(clients: &[f64], y: &[f64]) -> [f64; 3] {
    let mut normal = [[0.0; 3]; 3];
    let mut right = [0.0; 3];
    for (n, v) in clients.iter().zip(y) {
        let row = [1.0, n - 1.0, n * (n - 1.0)];
        for i in 0..3 {
            right[i] += row[i] * n / v;
            for j in 0..3 {
                normal[i][j] += row[i] * row[j];
            }
        }
    }
    match solve_free(normal, right, [true; 3]) {
        Some([a, b, c]) if a > 0.0 => clamp([1.0 / a, b / a, c / a]),
        _ => clamp([y[0] / clients[0], 0.01, 0.0]),
    }
}

/// J'J and J'(y − f).
fn normal_equations(clients: &[f64], y: &[f64], p: [f64; 3]) -> ([[f64; 3]; 3], [f64; 3]) {
    let mut normal = [[0.0; 3]; 3];
    let mut gradient = [0.0; 3];
    for (n, v) in clients.iter().zip(y) {
        let below = 1.0 + p[1] * (n - 1.0) + p[2] * n * (n - 1.0);
        let f = p[0] * n / below;
        let row = [
            n / below,
            -f * (n - 1.0) / below,
            -f * n * (n - 1.0) / below,
        ];
        for i in 0..3 {
            gradient[i] += row[i] * (v - f);
            for j in 0..3 {
                normal[i][j] += row[i] * row[j];
            }
        }
    }
    (normal, gradient)
}

/// Which parameters may move: not those at a bound that the gradient pushes further out.
fn free_parameters(p: [f64; 3], gradient: [f64; 3]) -> [bool; 3] {
    [
        true,
        !(p[1] <= 0.0 && gradient[1] <= 0.0 || p[1] >= 1.0 && gradient[1] >= 0.0),
        !(p[2] <= 0.0 && gradient[2] <= 0.0),
    ]
}

/// Solves the equations of the free parameters by elimination with pivoting on a scaled matrix; the others stay 0.
fn solve_free(mut a: [[f64; 3]; 3], mut b: [f64; 3], free: [bool; 3]) -> Option<[f64; 3]> {
    for (i, moves) in free.into_iter().enumerate() {
        if !moves {
            a[i] = [0.0; 3];
            for row in &mut a {
                row[i] = 0.0;
            }
            a[i][i] = 1.0;
            b[i] = 0.0;
        }
    }
    let scale: [f64; 3] = std::array::from_fn(|i| 1.0 / a[i][i].max(f64::MIN_POSITIVE).sqrt());
    for i in 0..3 {
        b[i] *= scale[i];
        for j in 0..3 {
            a[i][j] *= scale[i] * scale[j];
        }
    }
    for column in 0..3 {
        let pivot =
            (column..3).max_by(|x, y| a[*x][column].abs().total_cmp(&a[*y][column].abs()))?;
        if a[pivot][column].abs() < 1e-14 {
            return None;
        }
        a.swap(column, pivot);
        b.swap(column, pivot);
        for row in column + 1..3 {
            let above = a[column];
            let factor = a[row][column] / above[column];
            for (place, known) in a[row].iter_mut().zip(above).skip(column) {
                *place -= factor * known;
            }
            b[row] -= factor * b[column];
        }
    }
    let mut x = [0.0; 3];
    for row in (0..3).rev() {
        let known: f64 = (row + 1..3).map(|k| a[row][k] * x[k]).sum();
        x[row] = (b[row] - known) / a[row][row];
    }
    let x = std::array::from_fn(|i| x[i] * scale[i]);
    x.iter().all(|v: &f64| v.is_finite()).then_some(x)
}

#[cfg(test)]
mod tests {
    use super::*;

    const LEVELS: [f64; 10] = [1.0, 2.0, 4.0, 8.0, 12.0, 16.0, 24.0, 32.0, 48.0, 64.0];

    fn curve(p: [f64; 3]) -> Vec<f64> {
        LEVELS.iter().map(|n| usl(*n, p)).collect()
    }

    #[test]
    fn a_curve_without_noise_gives_its_parameters_back() {
        for p in [
            [995.0, 0.02671, 0.000_769],
            [10.0, 0.3, 0.01],
            [1e6, 0.0, 0.001],
            [5.0, 0.5, 0.0],
        ] {
            let found = fit(&LEVELS, &curve(p)).unwrap();
            assert!((found.lambda / p[0] - 1.0).abs() < 1e-6, "{p:?}: {found:?}");
            assert!(
                (found.sigma - p[1]).abs() < 1e-6 && (found.kappa - p[2]).abs() < 1e-7,
                "{p:?}: {found:?}"
            );
            assert!((found.r2 - 1.0).abs() < 1e-9);
        }
    }

    #[test]
    fn more_than_linear_growth_stays_at_the_bounds() {
        let better: Vec<f64> = LEVELS.iter().map(|n| n.powf(1.1)).collect();
        let found = fit(&LEVELS, &better).unwrap();
        assert_eq!((found.sigma, found.kappa), (0.0, 0.0));
        assert!(!found.retrograde && found.peak_clients.is_none());
    }

    #[test]
    fn a_peak_is_told_only_inside_the_tested_levels() {
        let p = [995.0, 0.02671, 0.000_769];
        assert!((fit(&LEVELS, &curve(p)).unwrap().peak_clients.unwrap() - 35.576).abs() < 0.01);
        let short = fit(&LEVELS[..6], &curve(p)[..6]).unwrap();
        assert_eq!(short.peak_clients, None);
    }

    #[test]
    fn a_plateau_is_a_knee_and_no_retrograde() {
        let wobble = [1.0, 0.99, 1.01, 1.0, 0.985, 1.012, 1.0, 0.99, 1.01, 1.0];
        let plateau: Vec<f64> = LEVELS
            .iter()
            .zip(wobble)
            .map(|(n, w)| w * 100.0 * n.min(12.0))
            .collect();
        assert_eq!(knee(&LEVELS, &plateau).unwrap(), Some(12.0));
        let rising: Vec<f64> = LEVELS.iter().map(|n| n.sqrt()).collect();
        assert_eq!(knee(&LEVELS, &rising).unwrap(), None);
        assert!(!fit(&LEVELS, &rising).unwrap().retrograde);
    }

    #[test]
    fn one_step_without_gain_is_no_knee() {
        assert_eq!(
            knee(&[1.0, 2.0, 4.0, 8.0], &[1.0, 2.0, 2.0, 4.0]).unwrap(),
            None
        );
        assert_eq!(
            knee(&[1.0, 2.0, 4.0, 8.0], &[1.0, 2.0, 2.0, 2.0]).unwrap(),
            Some(2.0)
        );
    }

    #[test]
    fn what_is_no_curve_is_refused() {
        assert!(fit(&[1.0, 2.0, 3.0], &[1.0, 2.0, 3.0]).is_err());
        assert!(knee(&[2.0, 1.0], &[1.0, 2.0]).is_err());
        assert!(knee(&[1.0, 2.0], &[0.0, 2.0]).is_err());
        assert!(knee(&[1.0, 2.0], &[1.0]).is_err());
    }

    #[test]
    fn the_unit_of_throughput_does_not_matter() {
        let p = [3.0, 0.05, 0.001];
        let noisy: Vec<f64> = curve(p)
            .iter()
            .enumerate()
            .map(|(i, x)| x * [1.01, 0.98, 1.02][i % 3])
            .collect();
        let small = fit(&LEVELS, &noisy).unwrap();
        let large = fit(&LEVELS, &noisy.iter().map(|x| x * 1e6).collect::<Vec<_>>()).unwrap();
        assert!(
            (small.kappa / large.kappa - 1.0).abs() < 1e-6
                && (small.se[2] / large.se[2] - 1.0).abs() < 1e-6
        );
    }
}
