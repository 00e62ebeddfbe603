//! Each step, sent once in file order before any load, must answer as it expects.

use std::time::Instant;

use super::connection::Connection;
use super::draw::{Lane, Seed};
use super::failure::said;
use super::phase::Setup;
use super::plan::Turn;
use super::template::Kept;
use super::timer::Timer;

/// One step's answer before load.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Preflight {
    /// The step's name.
    pub step: String,
    /// It answered as it expects, and every value that it keeps was there.
    pub ok: bool,
    /// What was answered, or why nothing was.
    pub detail: String,
}

/// Sends them all, whatever the others answered.
pub(super) async fn run(setup: &Setup, seed: Seed) -> Vec<Preflight> {
    let mut kept = vec![None; setup.plan.names.len()];
    let mut connection = None;
    let mut results = Vec::new();
    for step in 0..setup.plan.steps.len() {
        let result = send(setup, seed, step, &mut kept, &mut connection).await;
        results.push(Preflight {
            step: setup.plan.steps[step].name.clone(),
            ok: result.is_ok(),
            detail: setup
                .plan
                .without_secrets(result.unwrap_or_else(|fault| fault)),
        });
    }
    results
}

/// `Ok` and `Err` both hold what is to be told.
async fn send(
    setup: &Setup,
    seed: Seed,
    step: usize,
    kept: &mut [Option<Kept>],
    held: &mut Option<Connection>,
) -> Result<String, String> {
    let plan = &setup.plan;
    let this = &plan.steps[step];
    if let Some(missing) = this.needs.iter().find(|at| kept[**at].is_none()) {
        return Err(format!(
            "it needs '{}', which no step before it has kept; a step that keeps it must stand before it and find it",
            plan.names[*missing]
        ));
    }
    let turn = Turn {
        key: 0,
        client: 0,
        iteration: step as u64,
    };
    let mut request = Vec::new();
    plan.write(step, seed, turn, kept, &mut request)
        .map_err(|fault| format!("it can't be sent: {}", fault.0))?;
    let mut connection = match held.take() {
        Some(connection) => connection,
        None => Connection::open(&setup.connector, setup.protocol)
            .await
            .map_err(|fault| format!("{}: {}", fault.class, fault.said))?,
    };
    let deadline = Instant::now() + setup.timeout;
    let mut timer = Timer::default();
    let exchange = connection
        .exchange(&request, &this.expect, &mut timer, deadline)
        .await;
    if let Some(class) = exchange.broken {
        return Err(format!(
            "{class}: {}",
            said(&exchange.why, connection.body())
        ));
    }
    let status = exchange.status.unwrap_or(0);
    if this.expect.status(status).is_some() {
        let why = format!("answered {status}");
        return Err(said(&why, connection.body()));
    }
    let length = exchange.received.max(exchange.promised.unwrap_or(0));
    let mut draw = seed.at(Lane::Keep, 0, step as u64);
    let body = connection.body();
    this.expect
        .body(exchange.headers, length, body, &mut draw, kept)
        .map_err(|why| said(&format!("answered {status}, but {why}"), body))?;
    for (place, pointer) in this.expect.keeps() {
        if kept[place].is_none() {
            let name = &plan.names[place];
            let why = format!("answered {status}, but '{name}' at {pointer} is not there to keep");
            return Err(said(&why, body));
        }
    }
    if exchange.reusable {
        *held = Some(connection);
    }
    Ok(format!(
        "answered {status} with {} bytes",
        exchange.received
    ))
}
