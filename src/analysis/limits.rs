//! Limits: what the run does not support, generated from how it was made, then the author's own.
//!
//! The list is never empty: every run has at least its one machine, its one workload and its own length.

use super::between::Pair;
use super::figures::percent;
use super::observed::Observed;
use super::setup::seconds;
use super::stats::series::mean;
use super::summary::{Between, Gate, LimitResult, RunFacts, Setup};
use super::verdict::Verdict;
use crate::experiment::{Experiment, Load, Protocol, ServiceKind};
use crate::measure::{Equality, EqualityItem};

/// Mean cores of other processes that no longer go unmentioned.
const OTHER_CPU: f64 = 0.25;

/// What limits are generated from.
pub(super) struct Made<'a, 'o, 'r> {
    pub(super) experiment: &'a Experiment,
    pub(super) setup: &'a Setup,
    pub(super) run: &'a RunFacts,
    /// Whether the run can support anything.
    pub(super) valid: bool,
    pub(super) gates: &'a [Gate],
    pub(super) equality: &'a [EqualityItem],
    pub(super) between: Option<&'a Between>,
    pub(super) pairs: &'a [Pair<'o, 'r>],
    /// Largest database seen, in bytes.
    pub(super) data_bytes: Option<f64>,
}

/// All limits.
pub(super) fn of(made: &Made<'_, '_, '_>) -> Vec<LimitResult> {
    let mut texts = Vec::new();
    conduct(made, &mut texts);
    statistics(made, &mut texts);
    deployment(made, &mut texts);
    let generated = texts.into_iter().map(|text| LimitResult {
        text,
        from_author: false,
    });
    let own = made.experiment.limits.iter().map(|text| LimitResult {
        text: text.clone(),
        from_author: true,
    });
    generated.chain(own).collect()
}

/// How the run went.
fn conduct(made: &Made<'_, '_, '_>, texts: &mut Vec<String>) {
    if !made.valid {
        texts.push("anything at all: the run is not valid".to_owned());
    }
    if made.run.smoke {
        texts.push(
            "anything at all: this is a smoke run, shortened to show that the parts work"
                .to_owned(),
        );
    }
    // Why a run is not valid is told once, in its validity; without a pair the last gate has nothing to speak of.
    let told = |gate: &Gate| gate.number <= 4 || gate.number == 7 && made.between.is_none();
    for gate in made.gates.iter().filter(|gate| !told(gate)) {
        if gate.verdict.is_supported() {
            continue;
        }
        let arm = gate.arm.map_or(String::new(), |arm| format!(" ({arm})"));
        let how = match &gate.verdict {
            Verdict::NotObserved(_) => "was not observed",
            _ => "does not hold",
        };
        texts.push(format!(
            "{}: gate {}{arm}, \"{}\", {how}: {}",
            gate.blocks, gate.number, gate.name, gate.detail
        ));
    }
    let permitted: Vec<&str> = made
        .equality
        .iter()
        .filter(|item| matches!(item.verdict, Equality::Permitted(_)))
        .map(|item| item.what.as_str())
        .collect();
    if !permitted.is_empty() {
        texts.push(format!(
            "that the control variable alone makes a difference: the arms also differ, as permitted, in {}",
            permitted.join(", ")
        ));
    }
    let [treatment, control] = [
        made.setup.duration_s.treatment,
        made.setup.duration_s.control,
    ];
    if let (Some(t), Some(c)) = (treatment, control)
        && t != c
    {
        texts.push(format!(
            "anything beyond the time that both arms have: the treatment was to run {}, the control {}",
            seconds(t),
            seconds(c)
        ));
    }
    let margin = made.experiment.analysis.margin;
    for pair in made.pairs {
        if let (Some(apart), Some(margin)) = (pair.start_differs_by(), margin)
            && apart.abs() > margin
        {
            texts.push(format!(
                "that the arms started alike: in the first window of pair {} the control served {} {} than the treatment",
                pair.pair,
                percent(apart.abs()),
                if apart > 0.0 { "more" } else { "less" }
            ));
        }
    }
    let treatment = other_cpu(made.pairs.iter().map(|pair| pair.treatment));
    let control = other_cpu(made.pairs.iter().map(|pair| pair.control));
    if let (Some(treatment), Some(control)) = (treatment, control)
        && treatment.max(control) > OTHER_CPU
    {
        texts.push(format!(
            "rates of a machine that does nothing else: other processes used {treatment:.1} cores on average in the treatment, {control:.1} in the control"
        ));
    }
}

/// Mean cores that neither the deployment nor the driver used; `None` where nothing was seen.
fn other_cpu<'o, 'r: 'o>(runs: impl Iterator<Item = &'o Observed<'r>>) -> Option<f64> {
    let seen: Vec<f64> = runs
        .flat_map(|run| run.measured.trial.seconds.iter())
        .filter_map(|row| row.host.map(|host| host.other_cpu))
        .collect();
    (!seen.is_empty()).then(|| mean(&seen))
}

/// What the numbers can't say.
fn statistics(made: &Made<'_, '_, '_>, texts: &mut Vec<String>) {
    match made.between {
        Some(between) if between.pairs == 1 => texts.push(format!(
            "how much another run would differ: one pair was run{}",
            match &between.run_sd_source {
                Some(source) if source.starts_with("null run") => {
                    format!("; the run-to-run standard deviation is that of {source}")
                }
                Some(source) => format!("; the run-to-run standard deviation is {source}"),
                None => ", and run-to-run variation was not measured".to_owned(),
            }
        )),
        Some(between) if between.pairs < 4 => texts.push(format!(
            "a size of the difference beyond these {} pairs: too few for a claim",
            between.pairs
        )),
        Some(_) => {}
        None => texts.push("anything between the arms: there is no complete pair".to_owned()),
    }
    let longest = made
        .run
        .order
        .iter()
        .map(|trial| trial.seconds)
        .fold(0.0, f64::max);
    if longest > 0.0 {
        texts.push(format!(
            "anything that takes longer than {}: that is how long an arm was observed",
            seconds(longest)
        ));
    }
    match &made.experiment.arms.treatment.clients.load {
        Load::Closed { stages, .. } => {
            texts.push(format!(
                "latency under another load than {}: in a closed loop a slow answer holds its client back, so a stall is seen once a client",
                made.setup.clients
            ));
            if stages.len() == 1 {
                texts.push("throughput at saturation: one level of load was driven".to_owned());
            }
        }
        Load::Open { .. } => texts.push(format!(
            "latency under another load than {}",
            made.setup.clients
        )),
    }
    texts.push(match made.setup.steps.len() {
        1 => "other requests than the one step of this workload".to_owned(),
        n => format!("other requests than the {n} steps of this workload"),
    });
}

/// What was deployed, and where.
fn deployment(made: &Made<'_, '_, '_>, texts: &mut Vec<String>) {
    let machine = &made.setup.machine;
    let cores = match machine.cores {
        0 => String::new(),
        n => format!(" with {n} processors"),
    };
    texts.push(format!(
        "other machines, or a network between the parts: clients and services ran on one machine{cores}"
    ));
    if made.setup.shares_cores {
        texts.push("absolute rates: driver and services share the same processors".to_owned());
    }
    let arms = &made.experiment.arms;
    if arms
        .iter()
        .all(|(_, setup)| setup.clients.ca.is_none() && !setup.clients.insecure)
        && arms.treatment.clients.protocol == Protocol::Http1
    {
        texts.push("behaviour behind TLS: plain HTTP was spoken".to_owned());
    }
    for service in &arms.treatment.services {
        let ServiceKind::Postgres(postgres) = &service.kind else {
            continue;
        };
        let name = &service.name;
        match postgres
            .settings
            .get("synchronous_commit")
            .map(|v| v.trim_matches(['"', '\'']))
        {
            Some("off" | "false" | "0" | "no") => texts.push(format!(
                "a database that waits for the disk at each commit: {name} ran with synchronous_commit off"
            )),
            _ if postgres
                .settings
                .get("fsync")
                .is_some_and(|v| matches!(v.trim_matches(['"', '\'']), "off" | "false" | "0")) =>
            {
                texts.push(format!(
                    "a database that reaches the disk: {name} ran with fsync off"
                ));
            }
            _ => {}
        }
        if postgres.url.is_some() {
            texts.push(format!(
                "a database that serves this experiment alone: {name} ran already, so its processes, memory and limits were not \
                 observed, what it did for others counts in its WAL and checkpoints, its caches were as others had left them, \
                 and no CHECKPOINT was made between warm-up and measured time"
            ));
        } else if postgres.settings.is_empty() {
            texts.push(format!(
                "a tuned database: {name} ran with the server's default settings"
            ));
        }
        if postgres.url.is_none() {
            texts.push(if postgres.cold {
                format!(
                    "a warm page cache: the files of {name} were dropped from it before each arm"
                )
            } else {
                format!(
                    "a cold page cache: the files of {name} had just been written when an arm began"
                )
            });
        }
        if let Some(bytes) = made.data_bytes
            && machine.memory_bytes > 0
            && bytes < machine.memory_bytes as f64
        {
            texts.push(format!(
                "data that does not fit into memory: the observed tables of {name} are smaller than the machine's memory"
            ));
        }
    }
}
