//! The closed loop: each client waits for its answer before it sends again.

use std::rc::Rc;
use std::time::{Duration, Instant};

use super::client::{After, Client};
use super::pace::{Crowd, Presence};
use super::phase::{Phase, Watch};
use super::plan::Turn;
use super::record::Part;

/// Runs a client to the end of the phase, or until the crowd sends it away for good. True when it was sent away: it comes
/// no more, and its connection is to be closed, or the server would hold it as a leak of its own.
pub(super) async fn run(
    client: &mut Client,
    phase: &Phase,
    watch: &Rc<Watch>,
    crowd: &Crowd,
) -> bool {
    let mut gone = false;
    let mut iteration = 0;
    let mut here = false;
    let origin = phase.recorder.borrow().origin();
    loop {
        // While it is among those that send, the end of its last answer is all the time it needs to know.
        let now = if here { watch.since() } else { Instant::now() };
        match crowd.presence(client.index, phase.at(now)) {
            Presence::Here if here => {}
            Presence::Here => {
                // Those who are there from the start count from the start.
                let first = crowd.presence(client.index, Duration::ZERO) == Presence::Here;
                let joined = if iteration == 0 && first { origin } else { now };
                phase.enter(watch, Part::Overhead, joined);
                let leaves = crowd.leaves(client.index, phase.at(now));
                watch.leaves_at(leaves.map(|at| origin + at));
                here = true;
            }
            Presence::From(at) => {
                phase.enter(watch, Part::Away, Instant::now());
                here = false;
                if phase.rest_until(origin + at).await {
                    return gone;
                }
                continue;
            }
            Presence::Gone => {
                gone = true;
                break;
            }
        }
        if phase
            .tickets
            .as_ref()
            .is_some_and(|tickets| !tickets.take())
        {
            break;
        }
        let turn = Turn {
            key: client.index,
            client: client.index,
            iteration,
        };
        let after = client.turn(phase, watch, turn, None).await;
        iteration += 1;
        let (part, length) = match after {
            After::Stop => return gone,
            After::Pause(length) => (Part::Pausing, length),
            After::Go if phase.think.is_zero() => continue,
            After::Go => (Part::Thinking, phase.think),
        };
        let now = watch.since();
        phase.enter(watch, part, now);
        if phase.rest_until(now + length).await {
            return gone;
        }
        phase.enter(watch, Part::Overhead, Instant::now());
    }
    phase.enter(watch, Part::Away, Instant::now());
    gone
}
