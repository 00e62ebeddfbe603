//! The readings that the sampling thread takes itself: the host each second, process trees each period.

use std::collections::HashSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant, SystemTime};

use tokio::sync::mpsc::UnboundedSender;

use super::cgroup::Groups;
use super::history::History;
use super::host::HostReading;
use super::others::Others;
use super::output::Output;
use super::process::{Processes, Sharing};
use super::runner::Runner;
use super::smaps;
use super::sockets::Tables;
use super::spec::{Observation, SampleSpec};
use crate::measure::{EventKind, HOST, RUNNER};

/// A look at processes serves all readings that are due within this time.
const FRESH: Duration = Duration::from_millis(100);

/// Everything that is read of `/proc` and of control groups.
pub(super) struct Rounds {
    out: Output,
    services: Vec<Watched>,
    runner: Runner,
    completed: Option<Arc<AtomicU64>>,
    /// The last reading of the host, the second that it opens, and the origin that the second counts from.
    host: Option<(HostReading, i64, Instant)>,
    /// CPU seconds of deployment and runner since that reading.
    own_cpu_s: f64,
    looked: Option<Instant>,
    others: Others,
    /// Read once a round for all services.
    sockets: Tables,
    history: History,
    /// When proportional set sizes were last asked for, and under which origin.
    pss_asked: Option<(Instant, Instant)>,
    /// Origin and the wall clock at it.
    wall: Option<(Instant, SystemTime)>,
}

/// One service's instruments.
struct Watched {
    processes: Processes,
    groups: Groups,
    out: Output,
    pss: UnboundedSender<smaps::Request>,
}

impl Rounds {
    /// Instruments for all services; `pss` starts a reader of proportional set sizes.
    pub(super) fn new(
        spec: &SampleSpec,
        out: &Output,
        mut pss: impl FnMut(Output) -> UnboundedSender<smaps::Request>,
    ) -> Self {
        let services = spec.services.iter().map(|service| {
            let sharing = match service.sql {
                Some(_) => Sharing::Segment,
                None => Sharing::Private,
            };
            let cgroups = service.cgroups.clone();
            Watched {
                processes: Processes::new(service.process.clone(), cgroups.clone(), sharing),
                groups: Groups::new(cgroups),
                out: out.of(service.name.as_str()),
                pss: pss(out.of(service.name.as_str())),
            }
        });
        Self {
            services: services.collect(),
            runner: Runner::new(out.of(RUNNER)),
            completed: spec.completed.clone(),
            host: None,
            own_cpu_s: 0.0,
            looked: None,
            others: Others::default(),
            sockets: Tables::default(),
            history: History::new(spec.period),
            pss_asked: None,
            wall: None,
            out: out.of(HOST),
        }
    }

    /// Asks what else ran in a second of the measured time, and how the services used their processors in it.
    pub(super) fn bad_second(&mut self, second: u64) {
        self.others.ask(second);
        self.history.ask(second);
        self.answer();
    }

    fn look(&mut self) {
        for watched in &mut self.services {
            self.own_cpu_s += watched.processes.look(&watched.out);
        }
        self.own_cpu_s += self.runner.look();
        self.looked = Some(Instant::now());
    }

    /// Closes the second before `index`.
    pub(super) fn second(&mut self, index: i64) {
        self.look();
        let origin = *self.out.clock.origin.borrow();
        if self
            .host
            .as_ref()
            .is_some_and(|(_, _, from)| *from != origin)
        {
            self.host = None;
            self.others.begin_anew();
            self.history.begin_anew();
        }
        self.host_second(index, origin);
        let own: HashSet<i32> = self
            .services
            .iter()
            .flat_map(|watched| watched.processes.pids())
            .chain([self.runner.pid])
            .collect();
        self.others.look(index, &own);
        let used = self.services.iter().map(|watched| watched.processes.cpu);
        self.history
            .note(index, self.out.clock.now(), used.collect());
        self.answer();
        if index >= 0 && index % 60 == 0 {
            self.clocks();
        }
    }

    fn host_second(&mut self, index: i64, origin: Instant) {
        let now = match HostReading::take() {
            Ok(now) => now,
            Err(error) => {
                let reason = format!("the host can't be read: {error:#}");
                return self.out.not_observed("host", reason);
            }
        };
        if let Some((before, from, _)) = &self.host {
            let host = now.since(before, self.own_cpu_s);
            // A late reading speaks for all seconds that it covers.
            for second in (*from..index).filter_map(|s| u64::try_from(s).ok()) {
                self.out.send(Observation::Host { second, host });
            }
        }
        self.host = Some((now, index, origin));
        self.own_cpu_s = 0.0;
    }

    /// Tells what was asked about bad seconds, as far as it is known by now.
    fn answer(&mut self) {
        for facts in self.others.answers() {
            self.out.event(self.out.clock.now(), EventKind::Host(facts));
        }
        for (at_s, used) in self.history.answers() {
            for (watched, cpu) in self.services.iter().zip(used) {
                let emit = |metric, value| {
                    watched.out.reading(at_s, metric, "cpu_s", value, cpu.epoch);
                };
                emit("cpu_user_s", cpu.user_s);
                emit("cpu_system_s", cpu.system_s);
            }
        }
    }

    /// Reads both clocks together.
    fn clocks(&mut self) {
        let origin = *self.out.clock.origin.borrow();
        let (monotonic, wall) = (Instant::now(), SystemTime::now());
        let Some(since) = monotonic.checked_duration_since(origin) else {
            return;
        };
        let at_origin = match self.wall {
            Some((from, at_origin)) if from == origin => at_origin,
            _ => wall.checked_sub(since).unwrap_or(wall),
        };
        self.wall = Some((origin, at_origin));
        let wall_s = match wall.duration_since(at_origin) {
            Ok(after) => after.as_secs_f64(),
            Err(before) => -before.duration().as_secs_f64(),
        };
        let monotonic_s = since.as_secs_f64();
        self.out.event(
            monotonic_s,
            EventKind::Clock {
                monotonic_s,
                wall_s,
            },
        );
    }

    /// One round of resource samples.
    pub(super) fn round(&mut self) {
        if self.looked.is_none_or(|looked| looked.elapsed() > FRESH) {
            self.look();
        }
        let at_s = self.out.clock.now();
        if let Some(completed) = &self.completed {
            let count = completed.load(Ordering::Relaxed) as f64;
            self.runner
                .out
                .reading(at_s, "requests_completed", "count_total", count, 0);
        }
        for watched in &mut self.services {
            let began = Instant::now();
            let up = watched
                .processes
                .round(at_s, &mut watched.out, &mut self.sockets);
            let epoch = watched.processes.cpu.epoch;
            if up {
                watched.groups.round(at_s, epoch, &mut watched.out);
                let ms = began.elapsed().as_secs_f64() * 1e3;
                watched.out.reading(at_s, "sample_ms", "ms", ms, epoch);
            }
        }
        self.runner.round(at_s);
        if at_s >= 0.0 && self.pss_is_due() {
            self.ask_pss(at_s);
        }
    }

    fn pss_is_due(&self) -> bool {
        let origin = *self.out.clock.origin.borrow();
        self.pss_asked
            .is_none_or(|(when, under)| under != origin || when.elapsed() >= smaps::LEAST)
    }

    fn ask_pss(&mut self, at_s: f64) {
        self.pss_asked = Some((Instant::now(), *self.out.clock.origin.borrow()));
        for watched in &self.services {
            let pids: Vec<i32> = watched.processes.pids().collect();
            if !pids.is_empty() {
                // A reader that is gone has said why.
                let _ = watched.pss.send(smaps::Request {
                    at_s,
                    epoch: watched.processes.cpu.epoch,
                    pids,
                });
            }
        }
    }

    /// The last readings.
    pub(super) fn close(&mut self) {
        self.look();
        self.round();
        let at_s = self.out.clock.now();
        let just_asked = self
            .pss_asked
            .is_some_and(|(when, _)| when.elapsed() < FRESH);
        if at_s >= 0.0 && !just_asked {
            self.ask_pss(at_s);
        }
        self.clocks();
        for watched in &mut self.services {
            watched.processes.close(&mut watched.out);
        }
    }
}
