//! Verdicts: what the data says of a statement, with the unknown as a value of its own.

use serde::{Deserialize, Serialize};

/// What the data says of one statement. Nothing degrades to a pass.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "verdict", content = "reason", rename_all = "snake_case")]
pub enum Verdict {
    /// The data supports it.
    Supported,
    /// Observed, but it cannot be decided; the reason is a code.
    Undetermined(String),
    /// Something that it rests on was not observed.
    NotObserved(String),
    /// The data contradicts it.
    Refuted,
    /// The run cannot speak about it; the reason says which gate failed.
    Invalid(String),
}

impl Verdict {
    /// Rank from the best (0) to the worst (4).
    fn badness(&self) -> u8 {
        match self {
            Verdict::Supported => 0,
            Verdict::Undetermined(_) => 1,
            Verdict::NotObserved(_) => 2,
            Verdict::Refuted => 3,
            Verdict::Invalid(_) => 4,
        }
    }

    /// The worse of two: Invalid > Refuted > NotObserved > Undetermined > Supported. The first wins a tie.
    pub fn worst(self, other: Verdict) -> Verdict {
        if other.badness() > self.badness() {
            other
        } else {
            self
        }
    }

    /// Whether the data supports the statement.
    pub fn is_supported(&self) -> bool {
        matches!(self, Verdict::Supported)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_worst_wins_whatever_the_order() {
        let all = [
            Verdict::Supported,
            Verdict::Undetermined("few".into()),
            Verdict::NotObserved("x".into()),
            Verdict::Refuted,
            Verdict::Invalid("gate".into()),
        ];
        for (i, a) in all.iter().enumerate() {
            for (j, b) in all.iter().enumerate() {
                assert_eq!(a.clone().worst(b.clone()), all[i.max(j)]);
            }
        }
    }
}
