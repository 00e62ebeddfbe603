//! The judge on series whose truth is known: how often it is wrong.
//!
//! Simulates flat series, series that change by exactly the margin, and series that change by three times it, under noise
//! of several kinds, and counts the verdicts; then null pairs. The gates are part of the product's own tests. Must never
//! be told which verdict would be convenient: it calls the judge that judges runs.

mod table;

use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use anyhow::{Result, ensure};
use serde::Serialize;

use super::stats::null::most_rejections;
use super::stats::pairs::{Run, paired, replicates, sequence};
use super::stats::simulate::{Drift, Noise, Simulation};
use super::stats::trend::{Options, Word, verdict};

/// Runs a cell of the full form.
pub const FULL_RUNS: usize = 1_000;

/// Runs a cell of the short form.
pub const SHORT_RUNS: usize = 200;

/// The margin that series are judged at.
const MARGIN: f64 = 0.10;

/// Standard deviation of the noise as a share of the level.
const SD: f64 = 0.05;

/// `falls` on a truly flat series, at most this share.
const FALSE_FALLS: f64 = 0.015;

/// `flat` (nominally 5 %) and `falls` (nominally 2.5 % a rule) of what falls by exactly the margin, each at most this share.
const WRONG_AT_MARGIN: f64 = 0.075;

/// The same under white plus slow noise, which no rule sees well in few bins.
const WRONG_AT_MARGIN_SLOW: f64 = 0.15;

/// What a series truly does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Truth {
    /// Nothing.
    Flat,
    /// Falls by exactly the margin: neither `flat` nor `falls` is right.
    AtMargin,
    /// Falls by three times the margin.
    Beyond,
}

/// How it changes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Shape {
    None,
    Linear,
    Exponential,
    Step,
}

/// A limit on how often something wrong is said.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Gate {
    /// What is wrong: a word, or `difference` for null pairs.
    pub of: &'static str,
    /// How often it was said.
    pub wrong: usize,
    /// At most so many.
    pub allowed: usize,
}

impl Gate {
    /// Whether the limit is kept.
    pub fn holds(self) -> bool {
        self.wrong <= self.allowed
    }
}

/// One kind of series and what was said of it.
#[derive(Debug, Clone, Serialize)]
pub struct TrendRow {
    pub noise: String,
    pub truth: Truth,
    pub shape: Shape,
    pub bins: usize,
    pub flat: usize,
    pub falls: usize,
    pub rises: usize,
    pub unclear: usize,
    /// None where the row is only described.
    pub gates: Vec<Gate>,
}

/// Null pairs: one arm twice, so that each difference found is a false alarm.
#[derive(Debug, Clone, Serialize)]
pub struct PairsRow {
    pub pairs: usize,
    /// Change of the machine a run.
    pub drift: f64,
    /// Standard deviation of a run.
    pub run_sd: f64,
    /// Differences found by the t interval.
    pub differences: usize,
    /// Sign-flip p at most 0.05.
    pub sign_flips: usize,
    /// On the differences found, nominally 5 %.
    pub gate: Gate,
}

/// Everything that was simulated.
#[derive(Debug, Clone, Serialize)]
pub struct CalibrationTable {
    /// Runs a cell.
    pub runs: usize,
    pub seed: u64,
    pub margin: f64,
    /// Standard deviation of the noise as a share of the level.
    pub sd: f64,
    pub trends: Vec<TrendRow>,
    pub pairs: Vec<PairsRow>,
}

impl CalibrationTable {
    /// Whether every gate holds.
    pub fn gates_hold(&self) -> bool {
        self.gates().all(Gate::holds)
    }

    fn gates(&self) -> impl Iterator<Item = Gate> + '_ {
        self.trends
            .iter()
            .flat_map(|row| row.gates.iter().copied())
            .chain(self.pairs.iter().map(|row| row.gate))
    }
}

/// A cell of the trend table.
#[derive(Debug, Clone, Copy)]
struct Cell {
    noise: Noise,
    truth: Truth,
    shape: Shape,
    bins: usize,
}

/// Cells of the pairs table: number of pairs, drift a run.
const PAIR_CELLS: [(usize, f64); 4] = [(6, 0.0), (6, 0.01), (12, 0.0), (12, 0.01)];

/// Simulates `runs` series a cell, on all cores. The same seed gives the same table whatever the number of cores.
///
/// # Errors
/// No runs, or a simulated series that the judge refuses.
pub fn run(runs: usize, seed: u64) -> Result<CalibrationTable> {
    ensure!(runs > 0, "calibrating needs at least one run a cell");
    let cells = cells();
    let jobs = cells.len() + PAIR_CELLS.len();
    let next = AtomicUsize::new(0);
    let done = Mutex::new((Vec::new(), Vec::new()));
    let work = || -> Result<()> {
        loop {
            let job = next.fetch_add(1, Ordering::Relaxed);
            if job >= jobs {
                return Ok(());
            }
            // A stream a run: neither the order of cells nor the number of threads moves a draw.
            let stream = |run: usize| ((job as u64) << 32) + run as u64;
            if let Some(cell) = cells.get(job) {
                let row = trend_row(cell, runs, seed, stream)?;
                lock(&done).0.push((job, row));
            } else {
                let (pairs, drift) = PAIR_CELLS[job - cells.len()];
                let row = pairs_row(pairs, drift, runs, seed, stream)?;
                lock(&done).1.push((job, row));
            }
        }
    };
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    std::thread::scope(|scope| {
        let workers: Vec<_> = (0..threads).map(|_| scope.spawn(work)).collect();
        workers
            .into_iter()
            .try_for_each(|worker| match worker.join() {
                Ok(result) => result,
                Err(panic) => std::panic::resume_unwind(panic),
            })
    })?;
    let (mut trends, mut pairs) = std::mem::take(&mut *lock(&done));
    trends.sort_by_key(|(job, _)| *job);
    pairs.sort_by_key(|(job, _)| *job);
    Ok(CalibrationTable {
        runs,
        seed,
        margin: MARGIN,
        sd: SD,
        trends: trends.into_iter().map(|(_, row)| row).collect(),
        pairs: pairs.into_iter().map(|(_, row)| row).collect(),
    })
}

/// A poisoned lock means that a worker panicked, which is passed on when it is joined.
fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex
        .lock()
        .unwrap_or_else(std::sync::PoisonError::into_inner)
}

/// Every noise flat and at the margin; the drifts beyond the margin under the usual noises.
fn cells() -> Vec<Cell> {
    let mut cells = Vec::new();
    for noise in noises() {
        for bins in [120, 480] {
            cells.push(Cell {
                noise,
                truth: Truth::Flat,
                shape: Shape::None,
                bins,
            });
        }
    }
    for truth in [Truth::AtMargin, Truth::Beyond] {
        for noise in noises() {
            for shape in [Shape::Linear, Shape::Exponential, Shape::Step] {
                cells.push(Cell {
                    noise,
                    truth,
                    shape,
                    bins: 120,
                });
            }
            if truth == Truth::AtMargin {
                cells.push(Cell {
                    noise,
                    truth,
                    shape: Shape::Linear,
                    bins: 480,
                });
            }
        }
    }
    cells
}

fn noises() -> [Noise; 9] {
    [
        Noise::Ar1 { phi: 0.0 },
        Noise::Ar1 { phi: 0.3 },
        Noise::Ar1 { phi: 0.6 },
        Noise::Ar1 { phi: 0.8 },
        Noise::Ar1 { phi: 0.9 },
        Noise::WhiteAndSlow,
        Noise::Bursts,
        Noise::SawTooth,
        Noise::HeavyTails,
    ]
}

impl Cell {
    /// The drift whose relative change, as the rules measure it, is that of the cell: over the level at the centre for
    /// what is gradual, last over first for a step.
    fn drift(&self) -> Drift {
        let change = match self.truth {
            Truth::Flat => return Drift::None,
            Truth::AtMargin => -MARGIN,
            Truth::Beyond => -3.0 * MARGIN,
        };
        let from_start = change / (1.0 - change / 2.0);
        match self.shape {
            Shape::None => Drift::None,
            Shape::Linear => Drift::Linear(from_start),
            Shape::Exponential => Drift::Exponential(from_start),
            Shape::Step => Drift::Step(change),
        }
    }

    /// The gates of the cell, given how often each word was said.
    fn gates(&self, flat: usize, falls: usize, rises: usize, runs: usize) -> Vec<Gate> {
        let gate = |of, wrong, share: f64| Gate {
            of,
            wrong,
            allowed: (share * runs as f64).floor() as usize,
        };
        let share = match (self.truth, self.noise) {
            (Truth::Flat, _) => {
                return vec![
                    gate("falls", falls, FALSE_FALLS),
                    gate("rises", rises, FALSE_FALLS),
                ];
            }
            (Truth::AtMargin, Noise::Ar1 { phi }) if phi <= 0.8 => WRONG_AT_MARGIN,
            (Truth::AtMargin, Noise::WhiteAndSlow) => WRONG_AT_MARGIN_SLOW,
            _ => return Vec::new(),
        };
        let mut gates = vec![gate("flat", flat, share)];
        // The line of a step is half as steep again as the step is high: to it, such a series lies beyond the margin.
        if self.shape != Shape::Step {
            gates.push(gate("falls", falls, share));
        }
        gates
    }
}

fn trend_row(
    cell: &Cell,
    runs: usize,
    seed: u64,
    stream: impl Fn(usize) -> u64,
) -> Result<TrendRow> {
    let options = Options::with_margin(MARGIN);
    let (mut flat, mut falls, mut rises, mut unclear) = (0, 0, 0, 0);
    for run in 0..runs {
        let y = Simulation::new(seed, stream(run)).series(cell.bins, SD, cell.noise, cell.drift());
        *match verdict(&y, &options)?.word {
            Word::Flat => &mut flat,
            Word::Falls => &mut falls,
            Word::Rises => &mut rises,
            Word::Unclear => &mut unclear,
        } += 1;
    }
    Ok(TrendRow {
        noise: table::noise_name(cell.noise),
        truth: cell.truth,
        shape: cell.shape,
        bins: cell.bins,
        flat,
        falls,
        rises,
        unclear,
        gates: cell.gates(flat, falls, rises, runs),
    })
}

fn pairs_row(
    pairs: usize,
    drift: f64,
    runs: usize,
    seed: u64,
    stream: impl Fn(usize) -> u64,
) -> Result<PairsRow> {
    const RUN_SD: f64 = 0.02;
    let (mut differences, mut sign_flips) = (0, 0);
    for run in 0..runs {
        let mut noise = Simulation::new(seed, stream(run));
        let first = if noise.uniform() < 0.5 {
            super::stats::pairs::Arm::Treatment
        } else {
            super::stats::pairs::Arm::Control
        };
        let order: Vec<Run> = sequence(pairs, first)
            .into_iter()
            .enumerate()
            .map(|(slot, arm)| Run {
                arm,
                log: drift * slot as f64 + RUN_SD * noise.normal(),
            })
            .collect();
        let (d, _) = replicates(&order)?;
        let found = paired(&d, 0.025)?;
        differences += usize::from(
            found
                .log_interval
                .is_some_and(|i| i.lower > 0.0 || i.upper < 0.0),
        );
        sign_flips += usize::from(found.sign_flip_p.is_some_and(|p| p <= 0.05));
    }
    Ok(PairsRow {
        pairs,
        drift,
        run_sd: RUN_SD,
        differences,
        sign_flips,
        gate: Gate {
            of: "difference",
            wrong: differences,
            allowed: most_rejections(runs, 0.05),
        },
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_gates_hold_in_the_short_form() {
        let table = run(SHORT_RUNS, 1).unwrap();
        assert!(table.gates_hold(), "\n{}", table.text());
        assert_eq!(table.trends.len(), cells().len());
        assert!(
            table
                .trends
                .iter()
                .all(|r| r.flat + r.falls + r.rises + r.unclear == SHORT_RUNS)
        );
        // A judge that never says anything would keep every gate.
        let row = |truth: Truth, shape: Shape| {
            table
                .trends
                .iter()
                .find(|r| r.noise == "AR(1) phi 0.3" && r.truth == truth && r.shape == shape)
                .unwrap()
        };
        assert!(
            row(Truth::Flat, Shape::None).flat > SHORT_RUNS / 2,
            "\n{}",
            table.text()
        );
        for shape in [Shape::Linear, Shape::Exponential, Shape::Step] {
            assert!(
                row(Truth::Beyond, shape).falls > SHORT_RUNS * 9 / 10,
                "\n{}",
                table.text()
            );
        }
    }

    #[test]
    fn a_seed_gives_one_table() {
        let (a, b) = (run(2, 9).unwrap(), run(2, 9).unwrap());
        assert_eq!(
            serde_json::to_string(&a).unwrap(),
            serde_json::to_string(&b).unwrap()
        );
        assert!(run(0, 9).is_err());
    }

    #[test]
    fn one_broken_gate_is_enough() {
        let mut table = run(1, 1).unwrap();
        table.pairs[0].gate = Gate {
            of: "difference",
            wrong: 2,
            allowed: 1,
        };
        assert!(!table.gates_hold());
        assert!(table.text().contains("BROKEN"), "{}", table.text());
    }
}
