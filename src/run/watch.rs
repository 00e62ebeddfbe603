//! What the samplers follow: the deployment's services in the sampler's own words.

use tokio::sync::watch;

use crate::deploy::{Deployment, Life, Watched};
use crate::experiment::{ArmSetup, Service, ServiceKind};
use crate::name::ServiceName;
use crate::sample::{ProcessRoot, WatchedLog, WatchedService, WatchedSql, WatchedStatus};

/// Every service of the arm that can be observed.
pub(super) fn watched_services(deployment: &Deployment, setup: &ArmSetup) -> Vec<WatchedService> {
    let running = deployment.watched();
    setup
        .services
        .iter()
        .map(|service| {
            let process = running
                .iter()
                .find(|watched| watched.service == service.name);
            WatchedService {
                name: service.name.clone(),
                process: match process {
                    Some(watched) => root_of(watched.life.clone()),
                    // Nothing of ours runs there: it stays without a process.
                    None => watch::Sender::new(None).subscribe(),
                },
                cgroups: process.map_or_else(Vec::new, cgroup_folders),
                sql: sql_of(deployment, service),
                status: status_of(deployment, service),
                log: process
                    .filter(|_| !service.log.is_empty())
                    .map(|watched| WatchedLog {
                        path: watched.log.clone(),
                        patterns: service.log.clone(),
                    }),
            }
        })
        .collect()
}

fn cgroup_folders(watched: &Watched) -> Vec<std::path::PathBuf> {
    watched
        .cgroups
        .folders()
        .into_iter()
        .map(std::path::Path::to_owned)
        .collect()
}

/// The sampler's view of a service's life: a process id and its epoch, nothing while it is down.
fn root_of(mut life: watch::Receiver<Life>) -> watch::Receiver<Option<ProcessRoot>> {
    let root = |life: &Life| {
        life.pid.map(|pid| ProcessRoot {
            pid,
            epoch: life.epoch,
        })
    };
    let (sender, receiver) = watch::channel(root(&life.borrow_and_update()));
    tokio::spawn(async move {
        while life.changed().await.is_ok() {
            let now = root(&life.borrow_and_update());
            if sender.send(now).is_err() {
                return;
            }
        }
    });
    receiver
}

fn sql_of(deployment: &Deployment, service: &Service) -> Option<WatchedSql> {
    let ServiceKind::Postgres(postgres) = &service.kind else {
        return None;
    };
    let server = deployment.sql(&service.name)?;
    Some(WatchedSql {
        databases: postgres
            .databases
            .iter()
            .map(|name| server.database(name).to_owned())
            .collect(),
        server,
        tables: Vec::new(),
    })
}

fn status_of(deployment: &Deployment, service: &Service) -> Option<WatchedStatus> {
    Some(WatchedStatus {
        base: base_url(deployment, &service.name)?,
        page: service.status.clone()?,
    })
}

fn base_url(deployment: &Deployment, service: &ServiceName) -> Option<String> {
    let endpoint = deployment.endpoint(service).ok()?;
    endpoint
        .url
        .starts_with("http")
        .then(|| endpoint.url.trim_end_matches('/').to_owned())
}
