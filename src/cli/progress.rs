//! Live progress: a bar on a terminal, one plain line a minute elsewhere.

use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use super::output::{is_watched, tell};
use super::probe::told;
use crate::measure::Phase;
use crate::run::{Progress, Pulse};

/// Between two plain lines where nobody watches.
const PLAIN_PERIOD: Duration = Duration::from_secs(60);

/// Shows what happens.
pub(super) struct Display {
    bar: Option<ProgressBar>,
    last_plain: Option<Instant>,
    trials: usize,
    begun: usize,
}

impl Display {
    /// A bar where a person watches standard error, plain lines elsewhere.
    pub(super) fn new() -> Self {
        let bar = is_watched().then(|| {
            let bar = ProgressBar::with_draw_target(None, ProgressDrawTarget::stderr());
            bar.set_style(spinner());
            bar.enable_steady_tick(Duration::from_millis(200));
            bar
        });
        Self {
            bar,
            last_plain: None,
            trials: 0,
            begun: 0,
        }
    }

    /// Shows one event.
    pub(super) fn show(&mut self, progress: Progress) {
        match progress {
            Progress::RunStarted {
                folder,
                trials,
                planned_s,
            } => {
                self.trials = trials.len();
                let order: Vec<_> = trials.iter().map(|trial| trial.arm.as_str()).collect();
                let time = planned_s
                    .map(|s| format!(", about {}", length(s)))
                    .unwrap_or_default();
                self.line(&format!(
                    "run {}: {}{time}",
                    folder.display(),
                    order.join(", ")
                ));
            }
            Progress::Preparing { what } => self.line(&what),
            Progress::Level(row) => self.line(&told(&row)),
            Progress::Phase {
                trial,
                phase,
                planned_s,
            } => {
                if phase == Phase::Starting {
                    self.begun += 1;
                }
                let text = format!(
                    "arm {} of {} ({}, pair {}): {}",
                    self.begun,
                    self.trials,
                    trial.arm,
                    trial.pair,
                    word(phase)
                );
                match (&self.bar, planned_s) {
                    (Some(bar), Some(planned_s)) => {
                        bar.set_style(timed());
                        bar.set_length(planned_s.ceil() as u64);
                        bar.set_position(0);
                        bar.set_message(text);
                    }
                    (Some(bar), None) => {
                        bar.set_style(spinner());
                        bar.set_message(text);
                    }
                    (None, _) => {
                        if phase == Phase::Measuring {
                            self.last_plain = Some(Instant::now());
                        }
                        tell(&text);
                    }
                }
            }
            Progress::ServiceReady { service, ready_ms } => {
                if self.bar.is_some() {
                    self.line(&format!("  {service} is ready after {ready_ms:.0} ms"));
                }
            }
            Progress::Second(pulse) => self.second(&pulse),
            Progress::Warning(text) => self.line(&format!("warning: {text}")),
            Progress::TrialEnded { trial, ok, failed } => self.line(&format!(
                "{} of pair {} ended: {ok} requests ok, {failed} failed",
                trial.arm, trial.pair
            )),
            Progress::Resting { seconds } => match &self.bar {
                Some(bar) => {
                    bar.set_style(spinner());
                    bar.set_message(format!("resting for {}", length(seconds)));
                }
                None => tell(&format!("resting for {}", length(seconds))),
            },
        }
    }

    /// Takes the bar away.
    pub(super) fn end(&mut self) {
        if let Some(bar) = self.bar.take() {
            bar.finish_and_clear();
        }
    }

    fn line(&self, text: &str) {
        match &self.bar {
            Some(bar) => bar.println(text),
            None => tell(text),
        }
    }

    fn second(&mut self, pulse: &Pulse) {
        let text = describe(pulse);
        match &self.bar {
            Some(bar) => {
                bar.set_position(pulse.elapsed_s);
                bar.set_message(text);
            }
            None => {
                let due = self
                    .last_plain
                    .is_none_or(|last| last.elapsed() >= PLAIN_PERIOD);
                if pulse.phase == Phase::Measuring && due {
                    self.last_plain = Some(Instant::now());
                    tell(&format!("{} s: {text}", pulse.elapsed_s));
                }
            }
        }
    }
}

fn spinner() -> ProgressStyle {
    ProgressStyle::with_template("{spinner} {msg}")
        .unwrap_or_else(|_| ProgressStyle::default_spinner())
}

fn timed() -> ProgressStyle {
    ProgressStyle::with_template("{bar:20} {pos}/{len} s {wide_msg}")
        .unwrap_or_else(|_| ProgressStyle::default_bar())
}

/// One second in one line.
fn describe(pulse: &Pulse) -> String {
    let ms = |value: Option<f64>| value.map_or_else(|| "-".to_owned(), |ms| format!("{ms:.1} ms"));
    let rows = pulse
        .rows
        .iter()
        .take(2)
        .map(|(table, rows)| format!(", {table} {rows} rows"))
        .collect::<String>();
    format!(
        "{} {}: {} requests/s, p50 {}, p99 {}, {} failed{rows}",
        pulse.trial.arm,
        word(pulse.phase),
        pulse.ok,
        ms(pulse.p50_ms),
        ms(pulse.p99_ms),
        pulse.failed
    )
}

fn word(phase: Phase) -> &'static str {
    match phase {
        Phase::Starting => "starting services",
        Phase::Preflight => "sending each step once",
        Phase::Warmup => "warming up",
        Phase::Settling => "settling the database",
        Phase::Measuring => "measuring",
        Phase::Stopping => "stopping services",
    }
}

/// Seconds as a person says them.
fn length(seconds: f64) -> String {
    let whole = seconds.round() as u64;
    match (whole / 3600, whole % 3600 / 60, whole % 60) {
        (0, 0, s) => format!("{s} s"),
        (0, m, 0) => format!("{m} min"),
        (0, m, s) => format!("{m} min {s} s"),
        (h, m, _) => format!("{h} h {m} min"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::name::Arm;
    use crate::run::Trial;

    #[test]
    fn a_second_without_requests_shows_no_latency() {
        let text = describe(&Pulse {
            trial: Trial {
                pair: 1,
                arm: Arm::Control,
            },
            phase: Phase::Measuring,
            elapsed_s: 3,
            ok: 0,
            p50_ms: None,
            p99_ms: None,
            failed: 7,
            rows: vec![("jobs".into(), 12)],
        });
        assert_eq!(
            text,
            "control measuring: 0 requests/s, p50 -, p99 -, 7 failed, jobs 12 rows"
        );
    }

    #[test]
    fn lengths_read_as_one_says_them() {
        assert_eq!(length(59.6), "1 min");
        assert_eq!(length(5.0), "5 s");
        assert_eq!(length(262.0), "4 min 22 s");
        assert_eq!(length(259_200.0), "72 h 0 min");
    }
}
