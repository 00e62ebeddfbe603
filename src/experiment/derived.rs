//! What follows from a checked experiment: its names, a shortened copy, what can't be run yet.

use std::time::Duration;

use super::check::declared;
use super::{ArmSetup, Body, Experiment, Stop};
use crate::figure::Declared;
use crate::name::Arms;
use crate::template;

/// Parts that can be declared and checked, but not run yet. Whoever builds one removes it here.
const NOT_BUILT: &[Part] = &[Part::Probe, Part::Micro, Part::WorkloadEnvironment];

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Part {
    Probe,
    Micro,
    WorkloadEnvironment,
}

impl Part {
    /// How the file writes it.
    fn as_str(self) -> &'static str {
        match self {
            Part::Probe => "[probe]",
            Part::Micro => "[[micro]]",
            Part::WorkloadEnvironment => "{{ env.NAME }} in headers and steps",
        }
    }

    fn is_used(self, experiment: &Experiment) -> bool {
        match self {
            Part::Probe => experiment.probe.is_some(),
            Part::Micro => !experiment.micro.is_empty(),
            Part::WorkloadEnvironment => experiment
                .arms
                .iter()
                .any(|(_, arm)| sent(arm).iter().any(|text| names_environment(text))),
        }
    }
}

/// Every template of what is sent.
fn sent(arm: &ArmSetup) -> Vec<String> {
    let mut texts: Vec<String> = arm.clients.headers.iter().map(|(_, v)| v.clone()).collect();
    for step in &arm.workload.steps {
        texts.push(step.path.clone());
        texts.extend(step.headers.iter().map(|(_, v)| v.clone()));
        match &step.body {
            Some(Body::Json(json)) => texts.extend(json_texts(json)),
            Some(Body::Form(form)) => texts.extend(form.iter().map(|(_, v)| v.clone())),
            Some(Body::Raw(raw)) => texts.push(raw.clone()),
            Some(Body::File { .. }) | None => {}
        }
    }
    texts
}

fn json_texts(json: &serde_json::Value) -> Vec<String> {
    match json {
        serde_json::Value::String(text) => vec![text.clone()],
        serde_json::Value::Array(items) => items.iter().flat_map(json_texts).collect(),
        serde_json::Value::Object(entries) => entries.values().flat_map(json_texts).collect(),
        _ => Vec::new(),
    }
}

fn names_environment(text: &str) -> bool {
    template::is_template(text)
        && template::names(text).is_ok_and(|names| {
            names
                .iter()
                .any(|name| name == "env" || name.starts_with("env."))
        })
}

impl Experiment {
    /// Parts of this experiment that `run` can't execute yet, as the file writes them. Empty: it can run.
    pub fn not_built(&self) -> Vec<String> {
        NOT_BUILT
            .iter()
            .filter(|part| part.is_used(self))
            .map(|part| part.as_str().to_owned())
            .collect()
    }

    /// The names that figures of this experiment can hold, in either arm.
    pub fn declared(&self) -> Declared {
        let mut all = Declared::default();
        for (_, arm) in self.arms.iter() {
            let one = declared(
                &arm.services,
                &arm.workload,
                arm.pruning.as_ref(),
                &arm.actions,
                &self.micro,
            );
            all.services.extend(one.services);
            all.steps.extend(one.steps);
            all.pruned.extend(one.pruned);
            all.actions.extend(one.actions);
            all.micro.extend(one.micro);
        }
        all
    }

    /// A shortened copy that exercises every part: arms of `length`, one pair, a short warm-up and rest. Actions that don't
    /// fit are left out. It is never evidence.
    pub fn smoke(&self, length: Duration) -> Smoke {
        let mut experiment = self.clone();
        let schedule = &mut experiment.schedule;
        schedule.stop = Stop::Duration(Arms {
            treatment: length,
            control: length,
        });
        schedule.warmup = schedule.warmup.min(length.div_f64(4.0));
        schedule.rest = schedule.rest.min(Duration::from_secs(1));
        schedule.pairs = 1;
        if schedule.order == super::Order::Abba {
            schedule.order = super::Order::Random;
        }
        let shortest = Duration::from_secs((length.as_secs() / 6).max(1));
        schedule.window = schedule.window.min(shortest);
        schedule.sample = schedule.sample.min(Duration::from_secs(1));
        let mut dropped = Vec::new();
        for arm in [crate::name::Arm::Treatment, crate::name::Arm::Control] {
            experiment.arms.get_mut(arm).actions.retain(|action| {
                let fits = action.at < length && action.ends().is_none_or(|end| end <= length);
                if !fits && !dropped.contains(&action.name) {
                    dropped.push(action.name.clone());
                }
                fits
            });
        }
        Smoke {
            experiment,
            dropped_actions: dropped,
        }
    }
}

/// A shortened experiment.
#[derive(Debug, Clone)]
pub struct Smoke {
    /// It.
    pub experiment: Experiment,
    /// Names of actions that the short arms have no room for.
    pub dropped_actions: Vec<String>,
}
