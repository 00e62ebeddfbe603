//! What stands around an execution of an action: memory before, during and after it, and throughput while a burst lasts.
//!
//! Two instruments, never compared with each other: resident memory of the process tree, and what the control group is
//! charged. Readings of another life of the service are no measure of this one's change.

use super::measured::Measured;
use super::recovery::rows;
use super::series::EDGE_S;
use super::summary::MemoryAround;
use crate::experiment::{Action, ActionKind, ArmSetup, ServiceKind};
use crate::name::ServiceName;

/// Instruments that are read often enough: the proportional set size is read once a minute at most.
const INSTRUMENTS: [&str; 2] = ["rss", "cgroup"];

/// The service whose memory an action is about; of a burst the one behind the proxies that its clients talk to.
fn service<'s>(action: &'s Action, setup: &'s ArmSetup) -> Option<&'s ServiceName> {
    match &action.what {
        // Another life of the service: its memory is no change of the last one's.
        ActionKind::Restart { .. } | ActionKind::Stop(_) | ActionKind::Start(_) => None,
        ActionKind::Signal { service, .. }
        | ActionKind::Http { service, .. }
        | ActionKind::Sql { service, .. }
        | ActionKind::Limits { service, .. } => Some(service),
        ActionKind::Command(_) => None,
        ActionKind::Clients { .. } => {
            let mut at = &setup.clients.target;
            // As many steps as there are services: a proxy in front of itself leads nowhere.
            for _ in &setup.services {
                let behind = setup.services.iter().find(|s| s.name == *at)?;
                match &behind.kind {
                    ServiceKind::Caddy(proxy) | ServiceKind::Nginx(proxy) => {
                        at = proxy.upstream.first()?;
                    }
                    _ => return Some(at),
                }
            }
            None
        }
    }
}

/// Memory around one execution that began, ended, and was followed by the next one (or the arm's end) at these moments.
pub(super) fn memory(
    measured: &Measured<'_>,
    setup: &ArmSetup,
    action: &Action,
    (at_s, ended_s, until_s): (f64, f64, f64),
) -> Vec<MemoryAround> {
    let Some(service) = service(action, setup) else {
        return Vec::new();
    };
    INSTRUMENTS
        .iter()
        .filter_map(|instrument| {
            let key = (service.to_string(), format!("memory.{instrument}"));
            let points = &measured.trial.samples.get(&key)?.points;
            // One execution's last reading is the next one's first, so that their changes add up to the whole. Those nearer
            // to each other than readings are share a change, which the last of them bears.
            let before = points.iter().rev().find(|p| p.0 <= at_s)?;
            let after = points.iter().rev().find(|p| p.0 <= until_s)?;
            let is_over = points.last().is_some_and(|last| last.0 > at_s);
            if !is_over || after.2 != before.2 {
                return None;
            }
            // What lasts only an instant is as large as it gets until the next one.
            let during = if ended_s - at_s > 1.0 {
                ended_s
            } else {
                until_s
            };
            let most = points
                .iter()
                .filter(|p| p.0 >= at_s && p.0 <= during && p.2 == before.2)
                .map(|p| p.1)
                .fold(before.1, f64::max);
            Some(MemoryAround {
                service: service.to_string(),
                instrument: (*instrument).to_owned(),
                before: before.1,
                most: most.max(after.1),
                after: after.1,
            })
        })
        .collect()
}

/// Ok requests a second over the whole seconds between two moments.
pub(super) fn throughput(measured: &Measured<'_>, from_s: f64, to_s: f64) -> Option<f64> {
    let (from, to) = ((from_s - EDGE_S).ceil() as u64, to_s.floor() as u64);
    let seconds: Vec<u64> = rows(measured, from, to).map(|row| row.counts.ok).collect();
    (!seconds.is_empty()).then(|| seconds.iter().sum::<u64>() as f64 / seconds.len() as f64)
}
