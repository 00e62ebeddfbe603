//! What an experiment declares that figure names can hold.

use std::collections::{BTreeMap, BTreeSet};

use super::{FAILURE_CLASSES, LATENCIES, SPREAD};
use crate::name::is_name;

/// The names that an experiment declares, as far as figures hold them.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Declared {
    /// Services by name.
    pub services: BTreeMap<String, DeclaredService>,
    /// Steps of the workload.
    pub steps: BTreeSet<String>,
    /// Tables that are pruned.
    pub pruned: BTreeSet<String>,
    /// Actions, by their name in figures.
    pub actions: BTreeSet<String>,
    /// Counted calls, by their name in figures.
    pub micro: BTreeSet<String>,
}

/// What figures must know of one service.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct DeclaredService {
    /// Whether the runner starts it, so that its process tree is observed.
    pub started: bool,
    /// Whether it is a PostgreSQL server.
    pub postgres: bool,
    /// Names of its log patterns.
    pub patterns: BTreeSet<String>,
    /// Fields of its status page.
    pub fields: BTreeMap<String, StatusKind>,
}

/// Whether a status field is a level or a running total.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StatusKind {
    /// A level.
    Gauge,
    /// A running total.
    Counter,
}

impl Declared {
    /// Whether `segment` of a path may stand where the pattern has `pattern`.
    pub(super) fn fits(&self, pattern: &str, segment: &str) -> bool {
        let service = |holds: &dyn Fn(&DeclaredService) -> bool| {
            self.services.get(segment).is_some_and(holds)
        };
        match pattern {
            "<step>" => self.steps.contains(segment),
            "<pruned>" => self.pruned.contains(segment),
            "<action>" => self.actions.contains(segment),
            "<micro>" => self.micro.contains(segment),
            "<service>" => service(&|_| true),
            "<started>" => service(&|s| s.started),
            "<postgres>" => service(&|s| s.postgres),
            "<latency>" => LATENCIES.contains(&segment),
            "<spread>" => SPREAD.contains(&segment),
            "<latency>_first" => without(segment, "_first"),
            "<latency>_last" => without(segment, "_last"),
            "<class>" => FAILURE_CLASSES.contains(&segment),
            "<table>" => is_name(segment),
            // Which service's is settled by `of_service`.
            "<pattern>" => self.services.values().any(|s| s.patterns.contains(segment)),
            "<gauge>" => self.has_field(segment, StatusKind::Gauge),
            "<counter>" => self.has_field(segment, StatusKind::Counter),
            literal => literal == segment,
        }
    }

    fn has_field(&self, field: &str, kind: StatusKind) -> bool {
        self.services
            .values()
            .any(|s| s.fields.get(field) == Some(&kind))
    }

    /// Whether the pattern or field that a path names is that service's own.
    pub(super) fn of_service(&self, name: &str) -> bool {
        let segments: Vec<&str> = name.split('.').collect();
        let ["services", service, what, rest @ ..] = segments.as_slice() else {
            return true;
        };
        let Some(service) = self.services.get(*service) else {
            return false;
        };
        match (*what, rest) {
            ("log", [pattern]) => service.patterns.contains(*pattern),
            ("status", [field, "per_request"]) => {
                service.fields.get(*field) == Some(&StatusKind::Counter)
            }
            ("status", [field, ..]) => service.fields.contains_key(*field),
            _ => true,
        }
    }

    /// What may stand where the pattern has `pattern`; `like` is what was written there.
    pub(super) fn options(&self, pattern: &str, like: Option<&str>) -> Vec<String> {
        let services = |holds: &dyn Fn(&DeclaredService) -> bool| {
            self.services
                .iter()
                .filter(|(_, s)| holds(s))
                .map(|(name, _)| name.clone())
                .collect()
        };
        let latencies = |end: &str| LATENCIES.map(|l| format!("{l}{end}")).to_vec();
        match pattern {
            "<step>" => self.steps.iter().cloned().collect(),
            "<pruned>" => self.pruned.iter().cloned().collect(),
            "<action>" => self.actions.iter().cloned().collect(),
            "<micro>" => self.micro.iter().cloned().collect(),
            "<service>" => services(&|_| true),
            "<started>" => services(&|s| s.started),
            "<postgres>" => services(&|s| s.postgres),
            "<latency>" => latencies(""),
            "<spread>" => SPREAD.map(str::to_owned).to_vec(),
            "<latency>_first" => latencies("_first"),
            "<latency>_last" => latencies("_last"),
            "<class>" => FAILURE_CLASSES.map(str::to_owned).to_vec(),
            "<table>" => like
                .filter(|l| is_name(l))
                .map(str::to_owned)
                .into_iter()
                .collect(),
            "<pattern>" => self
                .services
                .values()
                .flat_map(|s| s.patterns.iter().cloned())
                .collect(),
            "<gauge>" => self.fields(StatusKind::Gauge),
            "<counter>" => self.fields(StatusKind::Counter),
            literal => vec![literal.to_owned()],
        }
    }

    fn fields(&self, kind: StatusKind) -> Vec<String> {
        self.services
            .values()
            .flat_map(|s| s.fields.iter())
            .filter(|(_, k)| **k == kind)
            .map(|(name, _)| name.clone())
            .collect()
    }
}

fn without(segment: &str, end: &str) -> bool {
    segment
        .strip_suffix(end)
        .is_some_and(|latency| LATENCIES.contains(&latency))
}
