//! What became of a request: exactly one outcome each.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// The class of a failed request, taken from its cause by type, never from a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FailureClass {
    /// The peer refused the connection.
    Refused,
    /// No connection within the connect timeout.
    ConnectTimeout,
    /// The peer reset the connection.
    Reset,
    /// The peer closed before a whole answer.
    Closed,
    /// No whole answer within the client's timeout.
    Timeout,
    /// What came back is not HTTP.
    Malformed,
    /// A status from 400 to 499 that the step does not expect.
    #[serde(rename = "status_4xx")]
    Status4xx,
    /// A status from 500 to 599 other than 503 that the step does not expect.
    #[serde(rename = "status_5xx")]
    Status5xx,
    /// Status 503: refusals are told apart from faults. As a figure it is counted in `status_5xx` too.
    #[serde(rename = "status_503")]
    Status503,
    /// Another status than the step expects.
    UnexpectedStatus,
    /// The status is right; header, body or size is not as the step expects.
    UnexpectedBody,
    /// No local port, no descriptor, a name not resolved: never blamed on the server.
    ClientSide,
}

impl FailureClass {
    /// Every class, in the order of columns.
    pub const ALL: [FailureClass; 12] = [
        FailureClass::Refused,
        FailureClass::ConnectTimeout,
        FailureClass::Reset,
        FailureClass::Closed,
        FailureClass::Timeout,
        FailureClass::Malformed,
        FailureClass::Status4xx,
        FailureClass::Status5xx,
        FailureClass::Status503,
        FailureClass::UnexpectedStatus,
        FailureClass::UnexpectedBody,
        FailureClass::ClientSide,
    ];

    /// The word used for columns and figures.
    pub fn as_str(self) -> &'static str {
        match self {
            FailureClass::Refused => "refused",
            FailureClass::ConnectTimeout => "connect_timeout",
            FailureClass::Reset => "reset",
            FailureClass::Closed => "closed",
            FailureClass::Timeout => "timeout",
            FailureClass::Malformed => "malformed",
            FailureClass::Status4xx => "status_4xx",
            FailureClass::Status5xx => "status_5xx",
            FailureClass::Status503 => "status_503",
            FailureClass::UnexpectedStatus => "unexpected_status",
            FailureClass::UnexpectedBody => "unexpected_body",
            FailureClass::ClientSide => "client_side",
        }
    }

    /// Its place in [`FailureClass::ALL`].
    pub fn index(self) -> usize {
        self as usize
    }
}

impl fmt::Display for FailureClass {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl FromStr for FailureClass {
    type Err = anyhow::Error;

    fn from_str(text: &str) -> anyhow::Result<Self> {
        FailureClass::ALL
            .into_iter()
            .find(|class| class.as_str() == text)
            .ok_or_else(|| anyhow::anyhow!("'{text}' is no failure class"))
    }
}

/// What became of one request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Outcome {
    /// A whole answer, as the step expects it.
    Ok,
    /// Anything else that has an end.
    Failed(FailureClass),
    /// Still in flight when the arm ended: neither a success nor an error.
    Cut,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_class_reads_back_and_knows_its_column() {
        for (i, class) in FailureClass::ALL.into_iter().enumerate() {
            assert_eq!(class.index(), i);
            assert_eq!(class.as_str().parse::<FailureClass>().ok(), Some(class));
            let json = serde_json::to_string(&class).unwrap();
            assert_eq!(json, format!("\"{class}\""));
        }
    }
}
