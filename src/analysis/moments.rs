//! Things that happened and may coincide with bad seconds: prunes, checkpoints, actions, restarts.
//!
//! What happens all the time coincides with everything and explains nothing, so it is left out unless it was unusual of its
//! kind.

use std::collections::BTreeMap;

use super::figures::brief;
use crate::measure::{Event, EventKind};

/// Events of one kind in more than this share of the seconds are everyday.
const EVERYDAY: f64 = 0.05;

/// An event this many seconds before an episode still coincides with it.
pub(super) const BEFORE_S: f64 = 1.0;

/// Fewest other seconds, or events of a kind, that give a 99th percentile.
pub(super) const FEWEST_FOR_P99: usize = 30;

/// Something that happened at a time.
pub(super) struct Moment {
    pub(super) from_s: f64,
    pub(super) to_s: f64,
    pub(super) text: String,
}

/// Events worth naming, everyday ones left out.
pub(super) fn moments(events: &[Event], seconds: f64) -> Vec<Moment> {
    let measured = |e: &&Event| e.at_s >= -BEFORE_S && e.at_s <= seconds;
    let mut prunes: Vec<f64> = Vec::new();
    let mut counts: BTreeMap<(&str, &str), usize> = BTreeMap::new();
    let mut actions = 0usize;
    for event in events.iter().filter(measured) {
        match &event.kind {
            EventKind::Prune { ms, .. } => prunes.push(*ms),
            EventKind::Server { service, what, .. } => {
                *counts.entry((service, what)).or_default() += 1;
            }
            EventKind::Action { .. } => actions += 1,
            _ => {}
        }
    }
    let everyday = |count: usize| count as f64 > EVERYDAY * seconds.max(1.0);
    let prunes_are_everyday = everyday(prunes.len());
    let long_prune = (prunes.len() >= FEWEST_FOR_P99).then(|| nth(&mut prunes, 0.99));
    let mut all = Vec::new();
    for event in events.iter().filter(measured) {
        let at_s = event.at_s;
        let mut push = |to_s: f64, text: String| {
            all.push(Moment {
                from_s: at_s,
                to_s: to_s.max(at_s),
                text,
            });
        };
        match &event.kind {
            // A prune is told when it is done.
            EventKind::Prune {
                table, ms, error, ..
            } => {
                let text = match (long_prune, error) {
                    (_, Some(_)) => format!("a prune of {table} that failed"),
                    (Some(usual), None) if *ms > usual => format!(
                        "a prune of {table} that took {} ms (99 % of the prunes took at most {})",
                        brief(*ms),
                        brief(usual)
                    ),
                    (None, None) if !prunes_are_everyday => {
                        format!("a prune of {table} that took {} ms", brief(*ms))
                    }
                    _ => continue,
                };
                push(at_s + ms / 1e3, text);
            }
            EventKind::Server {
                service,
                what,
                detail,
            } => {
                let count = counts.get(&(service.as_str(), what.as_str()));
                if !everyday(count.copied().unwrap_or_default()) {
                    push(at_s, told(&format!("{service}: {what}"), detail));
                }
            }
            // An action every second or two coincides with everything.
            EventKind::Action { name, ended_s, .. } if actions as f64 <= 0.5 * seconds => {
                push(*ended_s, format!("the action \"{name}\""));
            }
            EventKind::ServiceExited {
                service, status, ..
            } => push(at_s, format!("{service} ended ({status})")),
            EventKind::ServiceStarted {
                service,
                epoch,
                ready_ms,
                ..
            } if *epoch > 0 => push(
                at_s,
                format!(
                    "{service} was started again (ready after {} ms)",
                    brief(*ready_ms)
                ),
            ),
            _ => {}
        }
    }
    all
}

fn told(head: &str, detail: &str) -> String {
    if detail.is_empty() {
        head.to_owned()
    } else {
        format!("{head} ({detail})")
    }
}

/// The order statistic at `q`.
pub(super) fn nth(values: &mut [f64], q: f64) -> f64 {
    let index = ((values.len() as f64 * q).ceil() as usize)
        .saturating_sub(1)
        .min(values.len() - 1);
    *values.select_nth_unstable_by(index, f64::total_cmp).1
}

#[cfg(test)]
mod tests {
    use super::*;

    fn event(at_s: f64, kind: EventKind) -> Event {
        Event {
            at_s,
            wall: String::new(),
            kind,
        }
    }

    fn prune(at_s: f64, ms: f64) -> Event {
        event(
            at_s,
            EventKind::Prune {
                table: "jobs".into(),
                rows: 1,
                ms,
                error: None,
            },
        )
    }

    #[test]
    fn a_prune_each_second_is_named_only_when_it_was_long() {
        let mut events: Vec<Event> = (0..120).map(|i| prune(f64::from(i), 10.0)).collect();
        assert!(moments(&events, 120.0).is_empty());
        events[60] = prune(60.0, 900.0);
        let found = moments(&events, 120.0);
        assert_eq!(found.len(), 1);
        assert!(found[0].text.contains("900 ms"), "{}", found[0].text);
        // Two in an hour are rare enough to be named as they are.
        assert_eq!(
            moments(&[prune(5.0, 10.0), prune(1_800.0, 9.0)], 3_600.0).len(),
            2
        );
    }

    #[test]
    fn a_rare_checkpoint_is_named_and_an_everyday_autovacuum_is_not() {
        let server = |at_s: f64, what: &str| {
            event(
                at_s,
                EventKind::Server {
                    service: "db".into(),
                    what: what.into(),
                    detail: String::new(),
                },
            )
        };
        let mut events: Vec<Event> = (0..24)
            .map(|i| server(f64::from(i) * 5.0, "autovacuum"))
            .collect();
        events.push(server(50.0, "checkpoint"));
        let found = moments(&events, 120.0);
        assert_eq!(found.len(), 1);
        assert_eq!(found[0].text, "db: checkpoint");
    }
}
