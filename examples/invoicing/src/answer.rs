//! Answers: JSON bodies, and one JSON form for every problem. Never tells a client what PostgreSQL said.

use bytes::Bytes;
use http_body_util::Full;
use hyper::header::{ALLOW, CONTENT_TYPE, HeaderValue, RETRY_AFTER};
use hyper::{Response, StatusCode};
use serde::Serialize;

/// What the service answers with.
pub type Answer = Response<Full<Bytes>>;

/// Why a request was not done as asked.
#[derive(Debug)]
pub enum Problem {
    /// The request is wrong; the text says what and where.
    Wrong(String),
    /// There is no such thing.
    Absent(&'static str),
    /// The path exists, but not for this method; the text lists those it has.
    Method(&'static str),
    /// The body is longer than the service reads.
    TooLong,
    /// The database cannot be reached just now.
    Unavailable(String),
    /// The fault is on this side; the text goes to the log only.
    Fault(String),
}

/// A JSON answer.
///
/// # Errors
/// When the value has no JSON form.
pub fn json<T: Serialize>(status: StatusCode, value: &T) -> Result<Answer, Problem> {
    let body = encode(value)
        .map_err(|error| Problem::Fault(format!("the answer has no JSON form: {error}")))?;
    Ok(with_body(status, body))
}

/// The JSON encoder of every answer.
///
/// # Errors
/// When the value has no JSON form.
pub fn encode<T: Serialize>(value: &T) -> serde_json::Result<Vec<u8>> {
    serde_json::to_vec(value)
}

fn with_body(status: StatusCode, body: Vec<u8>) -> Answer {
    let mut answer = Response::new(Full::new(Bytes::from(body)));
    *answer.status_mut() = status;
    answer
        .headers_mut()
        .insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    answer
}

impl Problem {
    /// The problem as an answer; what is for the operator alone goes to the log.
    #[must_use]
    pub fn into_answer(self) -> Answer {
        let (status, text) = match &self {
            Self::Wrong(text) => (StatusCode::BAD_REQUEST, text.as_str()),
            Self::Absent(text) => (StatusCode::NOT_FOUND, *text),
            Self::Method(_) => (
                StatusCode::METHOD_NOT_ALLOWED,
                "this path does not know that method",
            ),
            Self::TooLong => (
                StatusCode::PAYLOAD_TOO_LARGE,
                "the body is longer than 64 KiB",
            ),
            Self::Unavailable(_) => (
                StatusCode::SERVICE_UNAVAILABLE,
                "the database cannot be reached; try again",
            ),
            Self::Fault(text) => {
                tracing::error!("{text}");
                (StatusCode::INTERNAL_SERVER_ERROR, "the service is at fault")
            }
        };
        let body = serde_json::json!({ "error": text }).to_string();
        let mut answer = with_body(status, body.into_bytes());
        match self {
            Self::Method(allowed) => {
                answer
                    .headers_mut()
                    .insert(ALLOW, HeaderValue::from_static(allowed));
            }
            Self::Unavailable(_) => {
                answer
                    .headers_mut()
                    .insert(RETRY_AFTER, HeaderValue::from_static("1"));
            }
            Self::Wrong(_) | Self::Absent(_) | Self::TooLong | Self::Fault(_) => {}
        }
        answer
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_problem_has_its_status() {
        let cases = [
            (Problem::Wrong("x".into()), 400),
            (Problem::Absent("x"), 404),
            (Problem::Method("GET"), 405),
            (Problem::TooLong, 413),
            (Problem::Fault("x".into()), 500),
            (Problem::Unavailable("x".into()), 503),
        ];
        for (problem, status) in cases {
            assert_eq!(problem.into_answer().status().as_u16(), status);
        }
        assert_eq!(Problem::Method("GET").into_answer().headers()[ALLOW], "GET");
        assert_eq!(
            Problem::Unavailable(String::new()).into_answer().headers()[RETRY_AFTER],
            "1"
        );
    }
}
