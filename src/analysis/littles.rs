//! Little's law as an account over a closed loop: the clients' time, all of it, has gone somewhere.

use super::load_gates::client_seconds;
use super::observed::Observed;
use super::stats::littles as account_of;
use super::summary::Littles;
use crate::experiment::ArmSetup;
use crate::measure::Account;

/// The account of all runs of an arm. `None` for an open loop, or when nothing was measured.
pub(super) fn of(runs: &[Observed<'_>], setup: &ArmSetup, warmup_s: f64) -> Option<Littles> {
    let mut account = Account::default();
    let (mut offered, mut seconds, mut stalled_s) = (0.0, 0.0, 0.0);
    for run in runs {
        let length = run.measured.seconds;
        let clients_s = client_seconds(setup, warmup_s, length)?;
        offered += clients_s;
        seconds += length;
        account.add(&run.measured.account);
        if length > 0.0 {
            stalled_s += run.bad.lost_share_s * clients_s / length;
        }
    }
    let account = account_of::Account {
        in_flight_s: account.in_flight_s,
        think_s: account.think_s,
        connect_s: account.connect_s,
        pause_s: account.pause_s,
        overhead_s: account.overhead_s,
        // The mean level, where stages or bursts change it.
        clients: offered / seconds,
        seconds,
    };
    Some(Littles {
        ratio: account.ratio().ok()?,
        overhead: account.overhead_share().ok()?,
        stalled_s,
    })
}
