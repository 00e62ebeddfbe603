//! The calibration table as text.

use std::fmt::Write as _;

use super::super::stats::simulate::Noise;
use super::{CalibrationTable, Gate, Shape, Truth};

/// A noise as the table names it.
pub(super) fn noise_name(noise: Noise) -> String {
    match noise {
        Noise::Ar1 { phi } => format!("AR(1) phi {phi}"),
        Noise::WhiteAndSlow => "white + AR(0.95)".to_owned(),
        Noise::Bursts => "bursts of -40 %".to_owned(),
        Noise::SawTooth => "saw-tooth of 17".to_owned(),
        Noise::HeavyTails => "t with 3 df".to_owned(),
    }
}

impl CalibrationTable {
    /// The table for a terminal: counts of each word in per cent, and every gate with what it allows.
    pub fn text(&self) -> String {
        let mut text = format!(
            "{} runs a cell, seed {}, margin {:.0} %, noise of {:.0} %; shares in per cent\n\n",
            self.runs,
            self.seed,
            100.0 * self.margin,
            100.0 * self.sd
        );
        text.push_str(
            "noise             truth      shape        bins   flat  falls  rises  unclear  gate\n",
        );
        for row in &self.trends {
            let share = |count: usize| 100.0 * count as f64 / self.runs as f64;
            // Writing to a String cannot fail.
            let _ = writeln!(
                text,
                "{:<17} {:<10} {:<11} {:>5}  {:>5.1}  {:>5.1}  {:>5.1}  {:>7.1}  {}",
                row.noise,
                truth_name(row.truth),
                shape_name(row.shape),
                row.bins,
                share(row.flat),
                share(row.falls),
                share(row.rises),
                share(row.unclear),
                gates_text(&row.gates)
            );
        }
        text.push_str("\nnull pairs  drift a run  difference found  sign-flip p <= 0.05  gate\n");
        for row in &self.pairs {
            let share = |count: usize| 100.0 * count as f64 / self.runs as f64;
            let _ = writeln!(
                text,
                "{:>10}  {:>9.1} %  {:>14.1} %  {:>17.1} %  {}",
                row.pairs,
                100.0 * row.drift,
                share(row.differences),
                share(row.sign_flips),
                gates_text(&[row.gate])
            );
        }
        let broken = self.gates().filter(|gate| !gate.holds()).count();
        let all = self.gates().count();
        let _ = match broken {
            0 => writeln!(text, "\nAll {all} gates hold."),
            _ => writeln!(text, "\n{broken} of {all} gates are BROKEN."),
        };
        text
    }
}

fn gates_text(gates: &[Gate]) -> String {
    if gates.is_empty() {
        return "-".to_owned();
    }
    let one = |gate: &Gate| {
        let verdict = if gate.holds() { "" } else { " BROKEN" };
        format!("{} {} <= {}{verdict}", gate.of, gate.wrong, gate.allowed)
    };
    gates.iter().map(one).collect::<Vec<_>>().join(", ")
}

fn truth_name(truth: Truth) -> &'static str {
    match truth {
        Truth::Flat => "flat",
        Truth::AtMargin => "at margin",
        Truth::Beyond => "3 margins",
    }
}

fn shape_name(shape: Shape) -> &'static str {
    match shape {
        Shape::None => "-",
        Shape::Linear => "linear",
        Shape::Exponential => "exponential",
        Shape::Step => "step",
    }
}
