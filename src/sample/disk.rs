//! File systems that must not fill up while a run writes to them.

use std::path::PathBuf;
use std::time::Duration;

use tokio::sync::watch;

use super::output::Output;
use super::pace::{Pace, Tally};
use super::process::MIB;
use super::spec::Observation;

/// How often free space is looked at.
const PERIOD: Duration = Duration::from_secs(5);

/// Watches until told to stop. Each folder is reported as low once.
pub(super) async fn observe(
    mut folders: Vec<PathBuf>,
    min_free_bytes: u64,
    mut out: Output,
    mut stop: watch::Receiver<bool>,
) -> Tally {
    let mut pace = Pace::new(out.clock.origin.clone(), PERIOD);
    loop {
        tokio::select! {
            biased;
            _ = stop.changed() => return Tally::default(),
            _ = pace.next() => {}
        }
        let at_s = out.clock.now();
        let mut least: Option<u64> = None;
        let mut low = Vec::new();
        for folder in &folders {
            match rustix::fs::statvfs(folder) {
                Ok(found) => {
                    let free_bytes = found.f_bavail.saturating_mul(found.f_frsize);
                    least = Some(least.map_or(free_bytes, |least| least.min(free_bytes)));
                    if free_bytes < min_free_bytes {
                        low.push(folder.clone());
                        out.send(Observation::DiskLow {
                            path: folder.clone(),
                            free_bytes,
                        });
                    }
                }
                Err(error) => out.not_observed(
                    "disk_free",
                    format!(
                        "the free space of {} can't be read: {error}",
                        folder.display()
                    ),
                ),
            }
        }
        folders.retain(|folder| !low.contains(folder));
        if let Some(least) = least {
            out.reading(at_s, "disk_free", "MiB", least as f64 / MIB, 0);
        }
    }
}
