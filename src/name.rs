//! Identities: which arm, which service, which step.
//!
//! Newtypes so that a step can't be passed where a service is meant. They know nothing else.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// One of the two arms of an experiment.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Arm {
    /// The arm whose behaviour is in question.
    Treatment,
    /// The arm that it is compared with.
    Control,
}

impl Arm {
    /// Both arms, in the order in which tables print them.
    pub const BOTH: [Arm; 2] = [Arm::Treatment, Arm::Control];

    /// The word used in files, folders and figure names.
    pub fn as_str(self) -> &'static str {
        match self {
            Arm::Treatment => "treatment",
            Arm::Control => "control",
        }
    }

    /// The arm it is compared with.
    pub fn other(self) -> Arm {
        match self {
            Arm::Treatment => Arm::Control,
            Arm::Control => Arm::Treatment,
        }
    }
}

impl fmt::Display for Arm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl FromStr for Arm {
    type Err = anyhow::Error;

    fn from_str(text: &str) -> anyhow::Result<Self> {
        match text {
            "treatment" => Ok(Arm::Treatment),
            "control" => Ok(Arm::Control),
            other => anyhow::bail!("'{other}' is no arm: write treatment or control"),
        }
    }
}

/// A value for each arm.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Arms<T> {
    /// The treatment's.
    pub treatment: T,
    /// The control's.
    pub control: T,
}

impl<T> Arms<T> {
    /// The value of one arm.
    pub fn get(&self, arm: Arm) -> &T {
        match arm {
            Arm::Treatment => &self.treatment,
            Arm::Control => &self.control,
        }
    }

    /// The value of one arm, to change it.
    pub fn get_mut(&mut self, arm: Arm) -> &mut T {
        match arm {
            Arm::Treatment => &mut self.treatment,
            Arm::Control => &mut self.control,
        }
    }

    /// Both values, with their arm.
    pub fn iter(&self) -> impl Iterator<Item = (Arm, &T)> {
        [
            (Arm::Treatment, &self.treatment),
            (Arm::Control, &self.control),
        ]
        .into_iter()
    }

    /// A value for each arm, made from this one.
    pub fn map<U>(&self, mut make: impl FnMut(Arm, &T) -> U) -> Arms<U> {
        Arms {
            treatment: make(Arm::Treatment, &self.treatment),
            control: make(Arm::Control, &self.control),
        }
    }
}

/// Whether `text` may name a service, step, table, pattern or field: `[a-z][a-z0-9_]*`.
/// A dash would read as a subtraction in an expression.
pub fn is_name(text: &str) -> bool {
    let mut letters = text.bytes();
    letters.next().is_some_and(|b| b.is_ascii_lowercase())
        && letters.all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'_')
}

/// The candidate that `word` most likely stands for: one that it begins or ends with, or the one at the smallest edit distance
/// (a swap of neighbours counts as one edit), if that is small against the word's length. For hints only.
pub fn nearest<'c>(word: &str, candidates: impl IntoIterator<Item = &'c str>) -> Option<&'c str> {
    let candidates: Vec<&str> = candidates.into_iter().collect();
    // "cpu_ms" for "cpu_ms_per_request", "SIGKILL" for "KILL": one holds the other.
    let begun = candidates
        .iter()
        .filter(|candidate| word.len() >= 4 && candidate.starts_with(word))
        .min_by_key(|candidate| candidate.len());
    let held = candidates
        .iter()
        .filter(|candidate| candidate.len() >= 3 && word.ends_with(**candidate));
    let holding = begun
        .or(held.max_by_key(|candidate| candidate.len()))
        .copied();
    let word: Vec<char> = word.chars().take(64).collect();
    let allowed = match word.len() {
        0..=2 => 1,
        3..=5 => 2,
        n => (n / 3).min(4),
    };
    let close = candidates
        .into_iter()
        .map(|candidate| {
            let letters: Vec<char> = candidate.chars().take(64).collect();
            (edits(&word, &letters), candidate)
        })
        .filter(|(distance, candidate)| {
            *distance <= allowed && *distance < candidate.chars().count().max(2)
        })
        .min_by_key(|(distance, _)| *distance);
    match (close, holding) {
        (Some((distance, candidate)), _) if distance <= 2 => Some(candidate),
        (_, Some(holding)) => Some(holding),
        (close, None) => close.map(|(_, candidate)| candidate),
    }
}

/// Optimal string alignment distance.
fn edits(a: &[char], b: &[char]) -> usize {
    let mut before_last: Vec<usize> = Vec::new();
    let mut last: Vec<usize> = (0..=b.len()).collect();
    for i in 1..=a.len() {
        let mut row = vec![i; b.len() + 1];
        for j in 1..=b.len() {
            let substitution = last[j - 1] + usize::from(a[i - 1] != b[j - 1]);
            row[j] = substitution.min(last[j] + 1).min(row[j - 1] + 1);
            if i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] {
                row[j] = row[j].min(before_last[j - 2] + 1);
            }
        }
        before_last = std::mem::replace(&mut last, row);
    }
    last[b.len()]
}

macro_rules! name {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
        #[serde(transparent)]
        pub struct $name(String);

        impl $name {
            /// Takes a text that [`is_name`] accepts; `None` otherwise.
            pub fn new(text: impl Into<String>) -> Option<Self> {
                let text = text.into();
                is_name(&text).then_some(Self(text))
            }

            /// The name as written.
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }

        impl std::borrow::Borrow<str> for $name {
            fn borrow(&self) -> &str {
                &self.0
            }
        }
    };
}

name!(
    /// A service of the deployment, as in `[deployment.<service>.<kind>]`.
    ServiceName
);
name!(
    /// A step of the workload, as in `[[workload.step]] name`.
    StepName
);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_words_that_an_expression_can_hold() {
        for good in ["a", "db", "app_2", "x9"] {
            assert!(is_name(good), "{good}");
        }
        for bad in ["", "9a", "a-b", "A", "a.b", "é", "_a"] {
            assert!(!is_name(bad), "{bad}");
        }
    }

    #[test]
    fn the_nearest_name_is_a_plausible_one() {
        let keys = ["duration", "window", "sample", "seed"];
        assert_eq!(nearest("duratoin", keys), Some("duration"));
        assert_eq!(nearest("sede", keys), Some("seed"));
        assert_eq!(nearest("Window", keys), Some("window"));
        assert_eq!(nearest("colour", keys), None);
        assert_eq!(nearest("", keys), None);
        assert_eq!(nearest("dura", keys), Some("duration"));
        assert_eq!(nearest("SIGKILL", ["TERM", "KILL"]), Some("KILL"));
    }

    #[test]
    fn arms_read_back_what_they_print() {
        for arm in Arm::BOTH {
            assert_eq!(arm.as_str().parse::<Arm>().ok(), Some(arm));
            assert_eq!(arm.other().other(), arm);
        }
        assert!("both".parse::<Arm>().is_err());
    }
}
