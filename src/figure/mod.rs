//! The catalogue of figures: which names there are, of what type, in what unit, and which of them bear a trend.
//!
//! Expressions, predictions and texts name figures by dotted paths; a path that is not in the catalogue is a fault before
//! anything runs. This module must never compute a figure.

mod catalogue;
mod declared;

use std::collections::BTreeSet;

pub use catalogue::{
    Entry, FAILURE_CLASSES, LATENCIES, OF_AN_ARM, OF_NO_ARM, SERIES, SPREAD, TREND_WORDS,
};
pub use declared::{Declared, DeclaredService, StatusKind};

use crate::name::{Arm, nearest};

/// What the value of a figure is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// A number.
    Number,
    /// A word of [`TREND_WORDS`].
    Word,
    /// A list of rows, for texts and reports.
    List,
}

/// Which way a figure is better.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Direction {
    /// More is better.
    Higher,
    /// Less is better.
    Lower,
    /// Neither is.
    Neither,
}

/// The value of a figure that was observed. One that was not observed is the absence of a value, never a value.
#[derive(Debug, Clone, PartialEq)]
pub enum Value {
    /// A number in the figure's unit.
    Number(f64),
    /// A word.
    Word(String),
}

/// Whose figure it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scope {
    /// One arm's.
    Arm(Arm),
    /// Written `arm.` in a criterion: each arm's in turn.
    EachArm,
    /// Neither arm's: a ratio, a probe, a counted call, a declared margin.
    Neither,
}

/// A figure that is in the catalogue.
#[derive(Debug, Clone, PartialEq)]
pub struct Figure {
    /// As written: `treatment.throughput.trend`.
    pub path: String,
    /// Whose it is.
    pub scope: Scope,
    /// Without the arm: `throughput.trend`.
    pub name: String,
    /// What its value is.
    pub kind: Kind,
    /// Its unit.
    pub unit: &'static str,
    /// Which way it is better.
    pub direction: Direction,
    /// Printed in texts, never argued with.
    pub text_only: bool,
}

/// Why a path names no figure.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NoFigure {
    /// What is wrong.
    pub message: String,
    /// What would be right.
    pub hint: String,
}

/// Where a figure is named: decides whether `arm.` may be written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Place {
    /// `[[criterion]] holds`: `arm.` stands for each arm in turn.
    Criterion,
    /// `[[claim]]` and `took_effect`: an arm is named.
    Claim,
}

impl Figure {
    /// Reads a dotted path as a figure of an arm (or of neither).
    ///
    /// # Errors
    /// The path is not in the catalogue, or names something that the experiment does not declare.
    pub fn parse(path: &str, place: Place, declared: &Declared) -> Result<Figure, NoFigure> {
        let (first, rest) = path.split_once('.').unwrap_or((path, ""));
        let scope = match first {
            "treatment" => Scope::Arm(Arm::Treatment),
            "control" => Scope::Arm(Arm::Control),
            "arm" if place == Place::Criterion => Scope::EachArm,
            "arm" => {
                return Err(NoFigure {
                    message: format!("`{path}` names no arm"),
                    hint: format!(
                        "write `treatment.{rest}` or `control.{rest}`; `arm` is for criteria"
                    ),
                });
            }
            _ => Scope::Neither,
        };
        let (entries, name) = match scope {
            Scope::Neither => (OF_NO_ARM, path),
            Scope::Arm(_) | Scope::EachArm => (OF_AN_ARM, rest),
        };
        if let Some((entry, suffix)) = find(entries, name, declared) {
            let kind = suffix.map_or(entry.kind, |(_, kind, _)| *kind);
            return Ok(Figure {
                path: path.to_owned(),
                scope,
                name: name.to_owned(),
                kind,
                unit: if kind == Kind::Word { "" } else { entry.unit },
                direction: entry.direction,
                text_only: entry.text_only,
            });
        }
        if scope == Scope::Neither && find(OF_AN_ARM, path, declared).is_some() {
            let arm = match place {
                Place::Criterion => "arm",
                Place::Claim => "treatment",
            };
            return Err(NoFigure {
                message: format!("`{path}` does not say which arm's"),
                hint: format!("write `{arm}.{path}`"),
            });
        }
        let prefix = match scope {
            Scope::Neither => "",
            Scope::Arm(_) | Scope::EachArm => first,
        };
        Err(explain(entries, prefix, name, declared))
    }

    /// Whether the figure is a trend: its verdict needs a margin and enough bins.
    pub fn is_trend(&self) -> bool {
        self.kind == Kind::Word
    }
}

/// Whether `name` (without an arm) has a `.trend`: `throughput` and each sampled series.
pub fn has_trend(name: &str, declared: &Declared) -> bool {
    find(OF_AN_ARM, &format!("{name}.trend"), declared).is_some()
}

/// Like [`has_trend`], with the reason.
///
/// # Errors
/// It is not in the catalogue, or bears no trend.
pub fn bears_trend(name: &str, declared: &Declared) -> Result<(), NoFigure> {
    if has_trend(name, declared) {
        return Ok(());
    }
    let bearers: Vec<String> = names(OF_AN_ARM, declared, name)
        .into_iter()
        .filter_map(|name| name.strip_suffix(".trend").map(str::to_owned))
        .collect();
    if let Some((arm, rest)) = name.split_once('.')
        && matches!(arm, "treatment" | "control" | "arm")
    {
        return Err(NoFigure {
            message: format!("`{name}` names an arm"),
            hint: format!("write `{rest}` here, without the arm"),
        });
    }
    if let Some(series) = name.strip_suffix(".trend") {
        return Err(NoFigure {
            message: format!("`{name}` is already a trend"),
            hint: format!("write `{series}`"),
        });
    }
    let message = if find(OF_AN_ARM, name, declared).is_some() {
        format!("`{name}` bears no trend")
    } else {
        format!("`{name}` is not a figure")
    };
    let hint = match nearest(name, bearers.iter().map(String::as_str)) {
        Some(near) => format!("did you mean `{near}`?"),
        None => "figures with a trend are `throughput` and the sampled series, such as \
                 `services.<service>.memory.rss`"
            .to_owned(),
    };
    Err(NoFigure { message, hint })
}

type Suffix = &'static (&'static str, Kind, &'static str);

/// The entry that `name` is, and which of a series' values.
fn find(
    entries: &'static [Entry],
    name: &str,
    declared: &Declared,
) -> Option<(&'static Entry, Option<Suffix>)> {
    let matches = |pattern: &str, name: &str| {
        let mut segments = name.split('.');
        pattern.split('.').all(|p| {
            segments
                .next()
                .is_some_and(|segment| declared.fits(p, segment))
        }) && segments.next().is_none()
    };
    // A field or step may bear the name of a suffix, so the whole name is tried first.
    if let Some(entry) = entries.iter().find(|e| matches(e.pattern, name)) {
        return declared.of_service(name).then_some((entry, None));
    }
    let (series, last) = name.rsplit_once('.')?;
    let suffix = SERIES.iter().find(|(suffix, ..)| *suffix == last)?;
    let entry = entries
        .iter()
        .find(|e| e.series && matches(e.pattern, series))?;
    declared.of_service(series).then_some((entry, Some(suffix)))
}

/// Every name that the entries have under what is declared. A segment that nothing declares (a table) is taken from `like`.
fn names(entries: &[Entry], declared: &Declared, like: &str) -> Vec<String> {
    let mut all = BTreeSet::new();
    let like: Vec<&str> = like.split('.').collect();
    for entry in entries {
        let mut paths = vec![String::new()];
        for (i, segment) in entry.pattern.split('.').enumerate() {
            let options = declared.options(segment, like.get(i).copied());
            paths = paths
                .iter()
                .flat_map(|path| {
                    options.iter().map(move |option| match path.as_str() {
                        "" => option.clone(),
                        path => format!("{path}.{option}"),
                    })
                })
                .take(5_000)
                .collect();
        }
        paths.retain(|path| declared.of_service(path));
        for path in paths {
            if entry.series {
                for (suffix, ..) in SERIES {
                    all.insert(format!("{path}.{suffix}"));
                }
            }
            all.insert(path);
        }
    }
    all.into_iter().collect()
}

/// Says what is wrong with a name that is not in the catalogue.
fn explain(entries: &[Entry], arm: &str, name: &str, declared: &Declared) -> NoFigure {
    let dotted = |name: &str| match arm {
        "" => name.to_owned(),
        arm => format!("{arm}.{name}"),
    };
    let segments: Vec<&str> = name.split('.').collect();
    if let ["services", service, ..] = segments.as_slice()
        && !declared.services.contains_key(*service)
    {
        return NoFigure {
            message: format!("`{}`: no service is named `{service}`", dotted(name)),
            hint: match nearest(service, declared.services.keys().map(String::as_str)) {
                Some(near) => format!("did you mean `{near}`?"),
                None => listing("services are", declared.services.keys()),
            },
        };
    }
    for (place, what, known) in [
        (["pruned", ""], "pruned table", &declared.pruned),
        (["actions", ""], "action", &declared.actions),
        (["micro", ""], "counted call", &declared.micro),
        (["requests", "steps"], "step", &declared.steps),
        (["latency", "steps"], "step", &declared.steps),
    ] {
        let at = if place[1].is_empty() { 1 } else { 2 };
        if segments.first() == Some(&place[0])
            && (at == 1 || segments.get(1) == Some(&place[1]))
            && let Some(word) = segments.get(at)
            && !known.contains(*word)
        {
            return NoFigure {
                message: format!("`{}`: no {what} is named `{word}`", dotted(name)),
                hint: match nearest(word, known.iter().map(String::as_str)) {
                    Some(near) => format!("did you mean `{near}`?"),
                    None => listing(&format!("each {what} that is declared:"), known.iter()),
                },
            };
        }
    }
    let all = names(entries, declared, name);
    let below: Vec<&str> = all
        .iter()
        .filter_map(|full| full.strip_prefix(name)?.strip_prefix('.'))
        .filter(|rest| !rest.is_empty() && !rest.starts_with("described"))
        .collect();
    if !below.is_empty() && !name.is_empty() {
        return NoFigure {
            message: format!("`{}` is not a figure but a group of them", dotted(name)),
            hint: listing(
                "write one of",
                below.iter().map(|rest| dotted(&format!("{name}.{rest}"))),
            ),
        };
    }
    let arms = ["treatment", "control"];
    let hint = match nearest(name, all.iter().map(String::as_str)) {
        Some(near) if !near.is_empty() => format!("did you mean `{}`?", dotted(near)),
        _ => match nearest(segments[0], arms) {
            Some(near) if arm.is_empty() => format!("did you mean `{near}.…`?"),
            _ if arm.is_empty() => {
                "a figure begins with `treatment.`, `control.`, `arm.` (in a criterion), `ratio.`, `probe.` or `micro.`"
                    .to_owned()
            }
            _ => "the catalogue of figures lists what there is, such as `throughput.mean`, `latency.p99`, \
                  `failures.status_5xx`"
                .to_owned(),
        },
    };
    NoFigure {
        message: format!("`{}` is not a figure", dotted(name)),
        hint,
    }
}

fn listing(intro: &str, words: impl Iterator<Item = impl AsRef<str>>) -> String {
    let words: Vec<String> = words
        .take(10)
        .map(|word| format!("`{}`", word.as_ref()))
        .collect();
    if words.is_empty() {
        format!("{intro} none")
    } else {
        format!("{intro} {}", words.join(", "))
    }
}

#[cfg(test)]
mod tests;
