//! The seconds of an arm, packed: a run of days has hundreds of thousands, and both arms lie in memory at once.
//!
//! Rows go in and come out as [`SecondRow`]s; what lies between is columns of the narrowest type that holds them without
//! loss. It must never round.

use std::collections::BTreeMap;

use anyhow::{Context, Result};

use super::rows::SecondRow;
use crate::measure::{Account, Counts, FailureClass, HostSecond, Silence};

/// Every measured second of an arm, in order.
#[derive(Clone, Default)]
pub struct Seconds {
    steps: usize,
    whole: Vec<Whole>,
    /// Ok requests by step, row after row.
    ok_by_step: Vec<u32>,
    /// Counts that nearly every second lacks, by row.
    rare: BTreeMap<usize, Rare>,
}

/// What every second has. An absent number is NaN.
#[derive(Clone)]
struct Whole {
    at_s: u32,
    sent: u32,
    ok: u32,
    connects: u32,
    in_flight: u32,
    run_queue: u32,
    quantiles_ms: [f64; 3],
    account: Account,
    driver_cpu_s: f64,
    send_delay_us: f64,
    /// Length and end in milliseconds; absent together.
    silence_ms: Option<[u32; 2]>,
    /// Busy, steal, iowait, other: absent together.
    host: [f64; 4],
    /// CPU, I/O, memory.
    pressure: [f64; 3],
}

#[derive(Clone, Copy, PartialEq, Eq, Default)]
struct Rare {
    failed: [u64; FailureClass::ALL.len()],
    cut: u64,
    not_sent: u64,
    redrawn: u64,
    stale_connections: u64,
}

impl Seconds {
    /// Adds a row behind the others.
    ///
    /// # Errors
    /// When a count is beyond what a second can hold, or the row has another number of steps than those before it.
    pub(super) fn push(&mut self, row: &SecondRow) -> Result<()> {
        if self.whole.is_empty() {
            self.steps = row.ok_by_step.len();
        }
        anyhow::ensure!(
            row.ok_by_step.len() == self.steps,
            "a row has counts of {} steps in place of {}",
            row.ok_by_step.len(),
            self.steps
        );
        let narrow = |count: u64| {
            u32::try_from(count)
                .with_context(|| format!("{count} is beyond what a second can hold"))
        };
        let SecondRow { counts, host, .. } = row;
        let absent = f64::NAN;
        let whole = Whole {
            at_s: narrow(row.at_s)?,
            sent: narrow(counts.sent)?,
            ok: narrow(counts.ok)?,
            connects: narrow(counts.connects)?,
            in_flight: narrow(row.in_flight)?,
            run_queue: narrow(host.map_or(0, |host| host.run_queue))?,
            quantiles_ms: [row.p50_ms, row.p99_ms, row.max_ms].map(|ms| ms.unwrap_or(absent)),
            account: row.account,
            driver_cpu_s: row.driver_cpu_s,
            send_delay_us: row.send_delay_us,
            silence_ms: match row.silence {
                Some(silence) => Some([narrow(silence.length_ms)?, narrow(silence.until_ms)?]),
                None => None,
            },
            host: host.map_or([absent; 4], |host| {
                [host.busy, host.steal, host.iowait, host.other_cpu]
            }),
            pressure: host.map_or([absent; 3], |host| {
                [host.pressure_cpu, host.pressure_io, host.pressure_memory]
                    .map(|share| share.unwrap_or(absent))
            }),
        };
        let rare = Rare {
            failed: counts.failed,
            cut: counts.cut,
            not_sent: counts.not_sent,
            redrawn: counts.redrawn,
            stale_connections: counts.stale_connections,
        };
        for &ok in &row.ok_by_step {
            self.ok_by_step.push(narrow(ok)?);
        }
        if rare != Rare::default() {
            self.rare.insert(self.whole.len(), rare);
        }
        self.whole.push(whole);
        Ok(())
    }

    /// Gives back what growing took and nothing uses.
    pub(super) fn shrink(&mut self) {
        self.whole.shrink_to_fit();
        self.ok_by_step.shrink_to_fit();
    }

    /// How many rows there are.
    pub fn len(&self) -> usize {
        self.whole.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.whole.is_empty()
    }

    /// Every row in order.
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = SecondRow> + ExactSizeIterator + Clone {
        (0..self.len()).map(|i| self.row(i))
    }

    /// The last row.
    pub fn last(&self) -> Option<SecondRow> {
        self.iter().next_back()
    }

    /// Rows from second `from` up to the one before `to`.
    pub fn between(&self, from: u64, to: u64) -> impl Iterator<Item = SecondRow> + Clone {
        let at = |second: u64| {
            self.whole
                .partition_point(|row| u64::from(row.at_s) < second)
        };
        let start = at(from);
        (start..at(to).max(start)).map(|i| self.row(i))
    }

    /// Row `i`, which must be there.
    fn row(&self, i: usize) -> SecondRow {
        let whole = &self.whole[i];
        let rare = self.rare.get(&i).copied().unwrap_or_default();
        let seen = |value: f64| (!value.is_nan()).then_some(value);
        let [p50_ms, p99_ms, max_ms] = whole.quantiles_ms.map(seen);
        let [busy, steal, iowait, other_cpu] = whole.host;
        let [pressure_cpu, pressure_io, pressure_memory] = whole.pressure.map(seen);
        SecondRow {
            at_s: u64::from(whole.at_s),
            counts: Counts {
                sent: u64::from(whole.sent),
                ok: u64::from(whole.ok),
                failed: rare.failed,
                cut: rare.cut,
                not_sent: rare.not_sent,
                redrawn: rare.redrawn,
                stale_connections: rare.stale_connections,
                connects: u64::from(whole.connects),
            },
            ok_by_step: self.ok_by_step[i * self.steps..(i + 1) * self.steps]
                .iter()
                .map(|&ok| u64::from(ok))
                .collect(),
            p50_ms,
            p99_ms,
            max_ms,
            in_flight: u64::from(whole.in_flight),
            account: whole.account,
            driver_cpu_s: whole.driver_cpu_s,
            send_delay_us: whole.send_delay_us,
            silence: whole.silence_ms.map(|[length, until]| Silence {
                length_ms: u64::from(length),
                until_ms: u64::from(until),
            }),
            host: seen(busy).map(|busy| HostSecond {
                busy,
                steal,
                iowait,
                other_cpu,
                run_queue: u64::from(whole.run_queue),
                pressure_cpu,
                pressure_io,
                pressure_memory,
            }),
        }
    }
}

impl PartialEq for Seconds {
    fn eq(&self, other: &Self) -> bool {
        self.len() == other.len() && self.iter().eq(other.iter())
    }
}

impl std::fmt::Debug for Seconds {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_list().entries(self.iter()).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn rows() -> impl Strategy<Value = Vec<SecondRow>> {
        let real = || any::<u32>().prop_map(|x| f64::from(x) / 1e3);
        let maybe = move || proptest::option::of(real());
        let counts = (any::<[u32; 3]>(), any::<[u16; 4]>(), any::<[u8; 12]>()).prop_map(
            |([sent, ok, connects], [cut, not_sent, redrawn, stale], failed)| Counts {
                sent: sent.into(),
                ok: ok.into(),
                failed: std::array::from_fn(|i| u64::from(failed[i] & failed[0] & 1)),
                cut: u64::from(cut & 1),
                not_sent: not_sent.into(),
                redrawn: redrawn.into(),
                stale_connections: stale.into(),
                connects: connects.into(),
            },
        );
        let host =
            (real(), any::<u32>(), maybe()).prop_map(|(busy, run_queue, pressure)| HostSecond {
                busy,
                steal: busy / 7.0,
                iowait: 0.0,
                other_cpu: busy / 3.0,
                run_queue: run_queue.into(),
                pressure_cpu: pressure,
                pressure_io: None,
                pressure_memory: Some(0.0),
            });
        let row = (
            counts,
            any::<[u32; 2]>(),
            [maybe(), maybe(), maybe()],
            real(),
            any::<u32>(),
            proptest::option::of(host),
        )
            .prop_map(
                |(counts, ok, [p50_ms, p99_ms, max_ms], x, in_flight, host)| SecondRow {
                    at_s: 0,
                    counts,
                    ok_by_step: ok.map(u64::from).to_vec(),
                    p50_ms,
                    p99_ms,
                    max_ms,
                    in_flight: in_flight.into(),
                    account: Account {
                        in_flight_s: x,
                        think_s: x / 3.0,
                        ..Account::default()
                    },
                    driver_cpu_s: x,
                    send_delay_us: x / 9.0,
                    silence: (in_flight % 3 > 0).then_some(Silence {
                        length_ms: in_flight.into(),
                        until_ms: 1_000,
                    }),
                    host,
                },
            );
        proptest::collection::vec(row, 0..20).prop_map(|mut rows| {
            // Gaps: a second may have no row.
            for (i, row) in rows.iter_mut().enumerate() {
                row.at_s = (i + i / 5) as u64;
            }
            rows
        })
    }

    proptest! {
        #[test]
        fn rows_come_out_as_they_went_in(rows in rows(), from in 0_u64..30, to in 0_u64..30) {
            let mut packed = Seconds::default();
            for row in &rows {
                packed.push(row).unwrap();
            }
            packed.shrink();
            prop_assert_eq!(packed.iter().collect::<Vec<_>>(), rows.clone());
            prop_assert_eq!(packed.last(), rows.last().cloned());
            let between: Vec<SecondRow> = rows
                .into_iter()
                .filter(|row| row.at_s >= from && row.at_s < to)
                .collect();
            prop_assert_eq!(packed.between(from, to).collect::<Vec<_>>(), between);
        }
    }

    #[test]
    fn a_count_that_no_second_can_hold_is_refused() {
        let mut packed = Seconds::default();
        let row = SecondRow {
            at_s: u64::MAX,
            counts: Counts::default(),
            ok_by_step: Vec::new(),
            p50_ms: None,
            p99_ms: None,
            max_ms: None,
            in_flight: 0,
            account: Account::default(),
            driver_cpu_s: 0.0,
            send_delay_us: 0.0,
            silence: None,
            host: None,
        };
        assert!(packed.push(&row).is_err());
        assert!(packed.is_empty());
    }
}
