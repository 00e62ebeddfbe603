//! What stands beside bad seconds: how much processor each service used in them, against outside.

use super::counters::{Increase, increases};
use super::figures::brief;
use crate::results::SampleSeries;

/// A service's CPU time by interval.
pub(super) struct ServiceCpu<'r> {
    service: &'r str,
    increases: Vec<Increase>,
    total_s: f64,
    total_cpu_s: f64,
}

impl<'r> ServiceCpu<'r> {
    pub(super) fn of(
        service: &'r str,
        user: &SampleSeries,
        system: Option<&SampleSeries>,
        seconds: f64,
    ) -> Self {
        let mut increases_: Vec<Increase> = increases(user, seconds).collect();
        if let Some(system) = system {
            let mut system = increases(system, seconds).peekable();
            for one in &mut increases_ {
                while system.next_if(|s| s.to_s < one.to_s).is_some() {}
                if let Some(s) = system.next_if(|s| s.to_s == one.to_s) {
                    one.by += s.by;
                }
            }
        }
        let total_s = increases_.iter().map(|i| i.to_s - i.from_s).sum();
        let total_cpu_s = increases_.iter().map(|i| i.by).sum();
        Self {
            service,
            increases: increases_,
            total_s,
            total_cpu_s,
        }
    }

    /// Its CPU rate inside against outside, where the samples are close enough to tell.
    pub(super) fn told(&self, from_s: f64, to_s: f64) -> Option<String> {
        let (inside_cpu_s, inside_s) = within(&self.increases, from_s, to_s)?;
        let outside_s = self.total_s - inside_s;
        if outside_s <= 0.0 || inside_s <= 0.0 {
            return None;
        }
        let inside = inside_cpu_s / inside_s;
        let outside = (self.total_cpu_s - inside_cpu_s).max(0.0) / outside_s;
        let stalled = outside >= 0.05 && inside < 0.1 * outside;
        Some(format!(
            "{} used {} cores inside, {} outside{}",
            self.service,
            brief(inside),
            brief(outside),
            if stalled { ": it stood still" } else { "" }
        ))
    }
}

/// What of a counter's increase falls into a time, and how much of that time was seen; `None` when the readings are too far
/// apart to tell.
pub(super) fn within(all: &[Increase], from_s: f64, to_s: f64) -> Option<(f64, f64)> {
    let start = all.partition_point(|i| i.to_s <= from_s);
    let (mut by, mut seen) = (0.0, 0.0);
    for one in all[start..].iter().take_while(|i| i.from_s < to_s) {
        let length = one.to_s - one.from_s;
        if length > 2.0 * (to_s - from_s) {
            return None;
        }
        let part = one.to_s.min(to_s) - one.from_s.max(from_s);
        by += one.by * part / length;
        seen += part;
    }
    (seen > 0.5 * (to_s - from_s)).then_some((by, seen))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn readings_too_far_apart_tell_nothing_about_an_episode() {
        let minute = [Increase {
            from_s: 0.0,
            to_s: 60.0,
            by: 30.0,
        }];
        assert_eq!(within(&minute, 10.0, 13.0), None);
        assert_eq!(within(&minute, 0.0, 60.0), Some((30.0, 60.0)));
        let seconds: Vec<Increase> = (0..10)
            .map(|i| Increase {
                from_s: f64::from(i),
                to_s: f64::from(i) + 1.0,
                by: if i == 4 { 0.0 } else { 1.0 },
            })
            .collect();
        assert_eq!(within(&seconds, 4.0, 5.0), Some((0.0, 1.0)));
        assert_eq!(within(&seconds, 20.0, 22.0), None);
    }
}
