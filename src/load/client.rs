//! One client: it draws a step, sends it, judges the answer, and keeps values for its next steps.
//!
//! A client has one connection and one request in flight. It never retries: a request has one outcome, and what failed has
//! failed. After a broken or refused connection it pauses shortly before the next, so that no loop runs hot.

use std::rc::Rc;
use std::time::{Duration, Instant};

use super::connection::Connection;
use super::draw::Lane;
use super::exchange::Exchange;
use super::failure::{FailureRow, said};
use super::phase::{Phase, Setup, Watch};
use super::plan::{Plan, Turn};
use super::record::Part;
use super::template::Kept;
use super::timer::Timer;
use crate::measure::{FailureClass, Outcome};

/// First pause after a connection that broke or could not be opened; it doubles up to [`LONGEST_PAUSE`].
const FIRST_PAUSE: Duration = Duration::from_millis(10);
/// Longest pause: a recovering server is seen at most so late.
const LONGEST_PAUSE: Duration = Duration::from_millis(100);

/// One client; it outlives a phase.
#[derive(Debug)]
pub(super) struct Client {
    /// Its number, over all threads.
    pub index: u64,
    pub kept: Vec<Option<Kept>>,
    pub connection: Option<Connection>,
    pub timer: Timer,
    pub request: Vec<u8>,
    /// Connections in a row that broke or could not be opened.
    broken_in_a_row: u32,
}

/// What comes after a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum After {
    Go,
    Pause(Duration),
    Stop,
}

/// How an answer was judged.
#[derive(Debug)]
pub(super) struct Judgement {
    pub failed: Option<FailureClass>,
    pub why: String,
}

impl Client {
    /// A client that holds nothing yet.
    pub(super) fn new(index: u64, plan: &Plan) -> Self {
        Client {
            index,
            kept: vec![None; plan.names.len()],
            connection: None,
            timer: Timer::default(),
            request: Vec::new(),
            broken_in_a_row: 0,
        }
    }

    /// Draws a step, sends it, records what became of it. `due`: when an open loop meant to send it.
    pub(super) async fn turn(
        &mut self,
        phase: &Phase,
        watch: &Rc<Watch>,
        turn: Turn,
        due: Option<Instant>,
    ) -> After {
        let setup = &phase.setup;
        let plan = &setup.plan;
        let picked = plan.picker.next(plan, phase.seed, turn, &self.kept);
        let step = picked.step;
        let written = plan.write(step, phase.seed, turn, &self.kept, &mut self.request);
        if let Err(fault) = written {
            let now = Instant::now();
            if phase.is_over(now) {
                return After::Stop;
            }
            phase.begin(watch, step, now, picked.redrawn);
            let judgement = Judgement {
                failed: Some(FailureClass::ClientSide),
                why: fault.0,
            };
            let exchange = Exchange::default();
            self.record(
                phase,
                watch,
                step,
                &exchange,
                judgement,
                (due.unwrap_or(now), now),
            );
            return After::Pause(self.pause());
        }
        self.drop_stale(phase).await;
        let mut start = Instant::now();
        if phase.is_over(start) {
            return After::Stop;
        }
        phase.begin(watch, step, start, picked.redrawn);
        let mut ready_since = due.unwrap_or_else(|| watch.since());
        if self.connection.is_none() {
            phase.enter(watch, Part::Connecting, start);
            let opened = Connection::open(&setup.connector, setup.protocol).await;
            let now = Instant::now();
            let over = phase.is_over(now);
            match opened {
                Ok(connection) => {
                    self.connection = Some(connection);
                    if over {
                        watch.give_up();
                        return After::Stop;
                    }
                    phase.recorder.borrow_mut().connected(now - start);
                    if due.is_none() {
                        ready_since = now;
                    }
                    start = now;
                }
                Err(fault) => {
                    phase.enter(watch, Part::Overhead, now);
                    let judgement = Judgement {
                        failed: Some(fault.class),
                        why: fault.said,
                    };
                    let exchange = Exchange::default();
                    let from = due.unwrap_or(start);
                    self.record(phase, watch, step, &exchange, judgement, (from, now));
                    return After::Pause(self.pause());
                }
            }
        }
        phase.enter(watch, Part::InFlight, start);
        let delay = start.saturating_duration_since(ready_since);
        let bytes = self.request.len();
        phase.recorder.borrow_mut().send_delay(delay, bytes);
        let Some(connection) = &mut self.connection else {
            return After::Stop;
        };
        let was_used = connection.is_used();
        let expect = &plan.steps[step].expect;
        let deadline = start + setup.timeout;
        let exchange = connection
            .exchange(&self.request, expect, &mut self.timer, deadline)
            .await;
        let end = Instant::now();
        phase.is_over(end);
        phase.enter(watch, Part::Overhead, end);
        let judgement = self.judge(setup, step, &exchange, phase, turn);
        let broken = exchange.broken;
        let stale = was_used
            && exchange.bytes_read == 0
            && exchange.status.is_none()
            && matches!(broken, Some(FailureClass::Closed | FailureClass::Reset));
        if stale && !phase.recorder.borrow().is_ended() {
            phase.recorder.borrow_mut().stale();
        }
        self.record(
            phase,
            watch,
            step,
            &exchange,
            judgement,
            (due.unwrap_or(start), end),
        );
        if !exchange.reusable {
            self.connection = None;
        }
        match broken {
            Some(_) if !stale => After::Pause(self.pause()),
            _ => {
                self.broken_in_a_row = 0;
                After::Go
            }
        }
    }

    /// Drops a connection that the peer closed while it was idle.
    async fn drop_stale(&mut self, phase: &Phase) {
        let Some(connection) = &mut self.connection else {
            return;
        };
        let stale =
            std::future::poll_fn(|cx| std::task::Poll::Ready(connection.poll_stale(cx))).await;
        if stale {
            self.connection = None;
            let mut recorder = phase.recorder.borrow_mut();
            if !recorder.is_ended() {
                recorder.stale();
            }
        }
    }

    /// Judges a finished exchange and keeps values of the answer.
    fn judge(
        &mut self,
        setup: &Setup,
        step: usize,
        exchange: &Exchange,
        phase: &Phase,
        turn: Turn,
    ) -> Judgement {
        let expect = &setup.plan.steps[step].expect;
        if let Some(class) = exchange.broken {
            return Judgement {
                failed: Some(class),
                why: exchange.why.clone(),
            };
        }
        if let Some(class) = exchange.status.and_then(|status| expect.status(status)) {
            return Judgement {
                failed: Some(class),
                why: String::new(),
            };
        }
        let mut draw = phase.seed.at(Lane::Keep, turn.key, turn.iteration);
        let body = self.connection.as_ref().map_or(&b""[..], Connection::body);
        let length = exchange.received.max(exchange.promised.unwrap_or(0));
        match expect.body(exchange.headers, length, body, &mut draw, &mut self.kept) {
            Ok(()) => Judgement {
                failed: None,
                why: String::new(),
            },
            Err(why) => Judgement {
                failed: Some(FailureClass::UnexpectedBody),
                why,
            },
        }
    }

    /// Writes down what became of a request that was under way from `span.0` to `span.1`.
    fn record(
        &self,
        phase: &Phase,
        watch: &Watch,
        step: usize,
        exchange: &Exchange,
        judgement: Judgement,
        span: (Instant, Instant),
    ) {
        let outcome = match judgement.failed {
            None => Outcome::Ok,
            Some(class) => Outcome::Failed(class),
        };
        let counted = phase.conclude(watch, outcome, span.1);
        let mut recorder = phase.recorder.borrow_mut();
        if !counted || recorder.is_ended() {
            return;
        }
        let latency = span.1.saturating_duration_since(span.0);
        recorder.read(exchange.bytes_read);
        recorder.outcome(
            step,
            outcome,
            (!is_censored(outcome)).then_some(latency),
            span.1,
        );
        if let Some(class) = judgement.failed {
            let body = self.connection.as_ref().map_or(&b""[..], Connection::body);
            recorder.failure(class, |at_s| FailureRow {
                at_s,
                step,
                class,
                status: exchange.status,
                latency_us: latency.as_micros().min(u128::from(u64::MAX)) as u64,
                received: exchange.received,
                promised: exchange.promised,
                said: phase.setup.plan.without_secrets(said(&judgement.why, body)),
            });
        }
    }

    fn pause(&mut self) -> Duration {
        let doubled = FIRST_PAUSE * 2u32.pow(self.broken_in_a_row.min(8));
        self.broken_in_a_row = self.broken_in_a_row.saturating_add(1);
        doubled.min(LONGEST_PAUSE)
    }
}

/// Ends without a time of their own: how long the answer would have taken was not seen.
fn is_censored(outcome: Outcome) -> bool {
    matches!(
        outcome,
        Outcome::Cut
            | Outcome::Failed(
                FailureClass::Timeout
                    | FailureClass::ConnectTimeout
                    | FailureClass::Refused
                    | FailureClass::ClientSide
            )
    )
}
