//! What `ceteris check` shows of an experiment without faults: pure data, no judgement beyond arithmetic of times and sizes.

use std::time::Duration;

use serde::Serialize;

use super::problem::render;
use super::{
    Action, ActionKind, ArmSetup, Checked, Control, Experiment, Load, Order, Probe, PruneRule,
    Pruning, Schedule, ServiceKind, Stage, Stop,
};
use crate::name::{Arm, Arms};
use crate::quantity::write_duration;

/// What would be done.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct CheckReport {
    /// `[experiment] name`.
    pub name: String,
    /// `[experiment] title`.
    pub title: String,
    /// The file, as named.
    pub file: String,
    /// Hex SHA-256 of the file.
    pub sha256: String,
    /// What each arm is.
    pub arms: Arms<ArmReport>,
    /// What differs; absent in a null experiment.
    pub difference: Option<DifferenceReport>,
    /// Both arms run this often.
    pub pairs: u32,
    /// In which order, in words.
    pub order: String,
    /// What follows the pairs, in words.
    pub after: Vec<String>,
    /// Estimated time without builds, in seconds; absent when arms end after a number of requests.
    pub seconds: Option<f64>,
    /// The same in words.
    pub time: String,
    /// Estimated size of the run's folder in bytes, without the services' logs and data.
    pub disk_bytes: Option<u64>,
    /// `[analysis] margin`, as a share.
    pub margin: Option<f64>,
    /// `[analysis] run_sd`, as a share.
    pub run_sd: Option<f64>,
    /// Pairs that the margin needs at that run-to-run spread; whoever judges fills it in.
    pub pairs_needed: Option<u32>,
    /// Programs that it needs.
    pub programs: Vec<Program>,
    /// Doubts as plain text.
    pub warnings: Vec<String>,
}

/// What one arm is.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ArmReport {
    /// Services in starting order, as `name (kind)`.
    pub services: Vec<String>,
    /// The service that is driven.
    pub target: String,
    /// Who drives it, in words.
    pub load: String,
    /// Steps with their share of the requests.
    pub steps: Vec<StepReport>,
    /// Pruning in words; absent where nothing is pruned.
    pub pruning: Option<String>,
    /// Actions in words.
    pub actions: Vec<String>,
    /// How long it is measured, in words.
    pub measured: String,
}

/// One step of the workload.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct StepReport {
    /// Its name.
    pub name: String,
    /// Method and path, as written.
    pub request: String,
    /// Its share of the draws.
    pub share: f64,
}

/// The one difference.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct DifferenceReport {
    /// Path of the variable.
    pub variable: String,
    /// Its values as TOML; absent where the key is.
    pub values: Arms<Option<String>>,
    /// What shows that it took effect, in words or as an expression.
    pub took_effect: Option<String>,
    /// Further differences that are permitted.
    pub also_differs: Vec<String>,
}

/// A program that must be there.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Program {
    /// For which service or part.
    pub needed_by: String,
    /// What it is called: a path, a name on PATH, or a kind of server.
    pub program: String,
    /// It need not be there yet, since this service's build makes it.
    pub built: bool,
    /// Where it was found; whoever looks for it fills it in.
    pub found: Option<String>,
}

/// What `ceteris check` shows.
pub fn render_check(checked: &Checked) -> CheckReport {
    let experiment = &checked.experiment;
    let schedule = &experiment.schedule;
    let seconds = total_seconds(experiment);
    CheckReport {
        name: experiment.header.name.clone(),
        title: experiment.header.title.clone(),
        file: experiment.source.path.display().to_string(),
        sha256: experiment.source.sha256.clone(),
        arms: experiment
            .arms
            .map(|arm, setup| arm_report(arm, setup, schedule)),
        difference: match &experiment.control {
            Control::Null => None,
            Control::Variable(difference) => Some(DifferenceReport {
                variable: difference.variable.clone(),
                values: difference.values.clone(),
                took_effect: difference.took_effect.clone().or_else(|| {
                    (difference.variable == "pruning.enabled")
                        .then(|| "rows are pruned in one arm and none in the other".to_owned())
                }),
                also_differs: difference.also_differs.clone(),
            }),
        },
        pairs: schedule.pairs,
        order: order(schedule).to_owned(),
        after: after(experiment),
        seconds,
        time: seconds.map_or_else(
            || "as long as the requests take".to_owned(),
            |s| write_duration(Duration::from_secs_f64(s.ceil().max(0.0))),
        ),
        disk_bytes: disk_bytes(experiment),
        margin: experiment.analysis.margin,
        run_sd: experiment.analysis.run_sd,
        pairs_needed: None,
        programs: programs(experiment),
        warnings: checked
            .warnings
            .iter()
            .map(|problem| render(problem, &experiment.source))
            .collect(),
    }
}

fn order(schedule: &Schedule) -> &'static str {
    match (schedule.order, schedule.pairs) {
        (Order::Random, 1) => "the first arm is drawn by seed",
        (Order::Random, _) => "the first arm of each pair is drawn by seed",
        (Order::TreatmentFirst, _) => "treatment, then control",
        (Order::ControlFirst, _) => "control, then treatment",
        (Order::Abba, _) => "quartets A B B A, the first letter drawn by seed",
    }
}

/// What follows the pairs.
fn after(experiment: &Experiment) -> Vec<String> {
    let micro = experiment
        .micro
        .iter()
        .map(|micro| format!("counted calls of {}, {} rounds", micro.name, micro.rounds));
    let probe = experiment.probe.iter().map(|probe| {
        let levels: Vec<String> = probe.clients.iter().map(u32::to_string).collect();
        format!(
            "a probe of {} clients, {} each, on a deployment of the {}",
            levels.join(", "),
            write_duration(probe.each),
            Probe::ARM
        )
    });
    micro.chain(probe).collect()
}

fn arm_report(arm: Arm, setup: &ArmSetup, schedule: &Schedule) -> ArmReport {
    let weights: u64 = setup
        .workload
        .steps
        .iter()
        .map(|s| u64::from(s.weight))
        .sum();
    ArmReport {
        services: setup
            .services
            .iter()
            .map(|s| format!("{} ({})", s.name, s.kind.as_str()))
            .collect(),
        target: setup.clients.target.to_string(),
        load: load(&setup.clients.load),
        steps: setup
            .workload
            .steps
            .iter()
            .map(|step| StepReport {
                name: step.name.to_string(),
                request: format!("{} {}", step.method, step.path),
                share: f64::from(step.weight) / (weights.max(1) as f64),
            })
            .collect(),
        pruning: setup.pruning.as_ref().filter(|p| p.enabled).map(pruning),
        actions: setup.actions.iter().map(action).collect(),
        measured: match schedule.stop {
            Stop::Duration(durations) => write_duration(*durations.get(arm)),
            Stop::Requests(count) => format!("{count} requests"),
        },
    }
}

fn load(load: &Load) -> String {
    let levels = |stages: &[Stage], unit: &str| -> String {
        let parts: Vec<String> = stages
            .iter()
            .map(|stage| match stage.length {
                Some(length) => format!("{}{unit} for {}", stage.level, write_duration(length)),
                None => format!("{}{unit}", stage.level),
            })
            .collect();
        parts.join(", then ")
    };
    match load {
        Load::Closed { stages, think, .. } => {
            let think = match *think {
                Duration::ZERO => String::new(),
                think => format!(", thinking {}", write_duration(think)),
            };
            format!("closed loop, {}{think}", levels(stages, " clients"))
        }
        Load::Open { stages, .. } => format!("open loop, {}", levels(stages, "/s")),
    }
}

fn pruning(pruning: &Pruning) -> String {
    let tables: Vec<String> = pruning
        .tables
        .iter()
        .map(|table| match &table.rule {
            PruneRule::KeepNewest { rows, by } => {
                format!("{}: the newest {rows} by {by} stay", table.table)
            }
            PruneRule::DeleteWhere(condition) => {
                format!("{}: delete where {condition}", table.table)
            }
        })
        .collect();
    format!(
        "each {}{}: {}",
        write_duration(pruning.every),
        if pruning.vacuum { ", with VACUUM" } else { "" },
        tables.join("; ")
    )
}

fn action(action: &Action) -> String {
    let what = match &action.what {
        ActionKind::Restart { service, signal } => format!("restart {service} with {signal}"),
        ActionKind::Signal { service, signal } => format!("{signal} to {service}"),
        ActionKind::Stop(service) => format!("stop {service}"),
        ActionKind::Start(service) => format!("start {service}"),
        ActionKind::Http {
            service,
            method,
            path,
            ..
        } => format!("{method} {path} on {service}"),
        ActionKind::Sql {
            service, database, ..
        } => format!("a statement in {service}/{database}"),
        ActionKind::Command(command) => command.join(" "),
        ActionKind::Clients { closed, length } => {
            format!("{closed} clients for {}", write_duration(*length))
        }
        ActionKind::Limits { service, .. } => format!("new limits for {service}"),
    };
    let repeated = match (action.every, action.times) {
        (Some(every), times) if times != 1 => {
            format!(", {times} times, each {}", write_duration(every))
        }
        _ => String::new(),
    };
    format!(
        "{} at {}{repeated}: {what}",
        action.name,
        write_duration(action.at)
    )
}

/// Estimated start and stop of an arm's services, in seconds.
const AROUND_AN_ARM: f64 = 5.0;

fn total_seconds(experiment: &Experiment) -> Option<f64> {
    let schedule = &experiment.schedule;
    let Stop::Duration(durations) = schedule.stop else {
        return None;
    };
    let measured = durations.treatment.as_secs_f64() + durations.control.as_secs_f64();
    let around =
        2.0 * (schedule.warmup.as_secs_f64() + schedule.rest.as_secs_f64() + AROUND_AN_ARM);
    let probe = experiment.probe.as_ref().map_or(0.0, |p| {
        p.each.as_secs_f64() * (p.clients.len() as f64 + 1.0)
    });
    Some(f64::from(schedule.pairs) * (measured + around) + probe)
}

/// Bytes of a second's row, of one histogram, of one sampled value: as measured on runs of the examples, rounded up.
const SECOND_BYTES: f64 = 250.0;
const HISTOGRAM_BYTES: f64 = 2_000.0;
const SAMPLE_BYTES: f64 = 60.0;
/// Values sampled of a service's processes, and of a database beside.
const PROCESS_VALUES: f64 = 12.0;
const POSTGRES_VALUES: f64 = 30.0;

fn disk_bytes(experiment: &Experiment) -> Option<u64> {
    let schedule = &experiment.schedule;
    let Stop::Duration(durations) = schedule.stop else {
        return None;
    };
    let window = schedule.window.as_secs_f64();
    let interval = [60.0, 30.0, 10.0, 5.0]
        .into_iter()
        .find(|i| window % i == 0.0 && *i <= window / 20.0)
        .unwrap_or(1.0);
    let mut bytes = 0.0;
    for (arm, setup) in experiment.arms.iter() {
        let seconds = durations.get(arm).as_secs_f64() + schedule.warmup.as_secs_f64();
        let steps = setup.workload.steps.len() as f64;
        let values: f64 = setup
            .services
            .iter()
            .map(|service| match service.kind {
                ServiceKind::Postgres(_) => PROCESS_VALUES + POSTGRES_VALUES,
                ServiceKind::External { .. } => 0.0,
                _ => PROCESS_VALUES,
            })
            .sum();
        bytes += seconds * SECOND_BYTES;
        bytes += seconds / interval * steps * HISTOGRAM_BYTES;
        bytes += seconds / schedule.sample.as_secs_f64().max(0.1) * values * SAMPLE_BYTES;
    }
    Some((bytes * f64::from(schedule.pairs)).ceil() as u64)
}

fn programs(experiment: &Experiment) -> Vec<Program> {
    let mut programs: Vec<Program> = Vec::new();
    let mut need = |needed_by: &str, program: &str, built: bool| {
        let known = programs
            .iter()
            .any(|p| p.needed_by == needed_by && p.program == program);
        if !known {
            programs.push(Program {
                needed_by: needed_by.to_owned(),
                program: program.to_owned(),
                built,
                found: None,
            });
        }
    };
    for (_, setup) in experiment.arms.iter() {
        for service in &setup.services {
            let name = service.name.as_str();
            match &service.kind {
                ServiceKind::Process(process) => {
                    if let Some(program) = process.build.as_ref().and_then(|b| b.first()) {
                        need(name, program, false);
                    }
                    if let Some(program) = process.command.first() {
                        need(name, program, process.build.is_some());
                    }
                }
                ServiceKind::Postgres(postgres) if postgres.url.is_none() => {
                    let version = postgres.version.map_or(String::new(), |v| format!(" {v}"));
                    need(name, &format!("postgres{version}"), false);
                }
                ServiceKind::Caddy(_) => need(name, "caddy", false),
                ServiceKind::Nginx(_) => need(name, "nginx", false),
                ServiceKind::Postgres(_) | ServiceKind::External { .. } => {}
            }
        }
        for action in &setup.actions {
            if let ActionKind::Command(command) = &action.what
                && let Some(program) = command.first()
            {
                need(&action.name, program, false);
            }
        }
    }
    let builds = experiment
        .arms
        .iter()
        .flat_map(|(_, setup)| &setup.services)
        .any(|service| matches!(&service.kind, ServiceKind::Process(p) if p.build.is_some()));
    for micro in &experiment.micro {
        for command in [&micro.command, &micro.baseline] {
            if let Some(program) = command.first() {
                // A build makes more than the service's own program; what is on PATH is there without it.
                need(&micro.name, program, builds && program.contains('/'));
            }
        }
    }
    programs
}
