//! Whether a service is ready, asked again and again until its deadline.

use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use http_body_util::{BodyExt, Empty, Limited};
use hyper_util::rt::TokioIo;
use tokio::net::TcpStream;

use super::logs;
use super::program;
use super::render::{Names, ReadEnv};
use crate::experiment::ReadyBy;

/// Largest answer of a health check that is looked at.
const BODY: usize = 64 * 1024;
/// One attempt.
const ATTEMPT: Duration = Duration::from_secs(2);

/// A question with everything rendered.
#[derive(Debug)]
pub(crate) enum Question {
    /// The kind's own.
    Own,
    /// HTTP: address, path.
    Http(String, String),
    /// TCP: address.
    Tcp(String),
    /// A line of the log.
    Line(regex::Regex),
    /// A command that exits with 0.
    Command(Vec<String>),
}

/// What an attempt found.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Attempt {
    /// It is ready.
    Ready,
    /// Not yet, and why.
    NotYet(String),
    /// It will never be: somebody else answers.
    Wrong(String),
}

impl Question {
    /// Renders the question of a service whose own address is `address`.
    pub(crate) fn new(
        by: Option<&ReadyBy>,
        names: &Names,
        address: &str,
        what: &str,
    ) -> Result<Self> {
        Ok(match by {
            None => Question::Own,
            Some(ReadyBy::Path(path)) => {
                Question::Http(address.to_owned(), names.render(path, what)?)
            }
            Some(ReadyBy::Tcp(target)) if target == "true" => Question::Tcp(address.to_owned()),
            Some(ReadyBy::Tcp(target)) => Question::Tcp(names.render(target, what)?),
            Some(ReadyBy::Log(pattern)) => Question::Line(
                regex::Regex::new(pattern)
                    .with_context(|| format!("{what}: '{pattern}' is no regular expression"))?,
            ),
            Some(ReadyBy::Command(command)) => Question::Command(
                command
                    .iter()
                    .map(|argument| names.render(argument, what))
                    .collect::<Result<_>>()?,
            ),
        })
    }

    /// Whether a ready answer implies that somebody listens on the service's port.
    pub(crate) fn implies_listener(&self, address: &str) -> bool {
        match self {
            Question::Http(..) => true,
            Question::Tcp(target) => target == address,
            Question::Own | Question::Line(_) | Question::Command(_) => false,
        }
    }
}

/// In words, for the message when the deadline passes: as the file writes it, since what is rendered may hold a secret.
pub(crate) fn describe(by: Option<&ReadyBy>, address: &str) -> String {
    match by {
        None => "an answer on its address".to_owned(),
        Some(ReadyBy::Path(path)) => format!("GET http://{address}{path} to answer 200-299"),
        Some(ReadyBy::Tcp(target)) if target == "true" => {
            format!("{address} to accept a connection")
        }
        Some(ReadyBy::Tcp(target)) => format!("{target} to accept a connection"),
        Some(ReadyBy::Log(pattern)) => format!("a line of its log that matches '{pattern}'"),
        Some(ReadyBy::Command(command)) => format!("'{}' to exit with 0", command.join(" ")),
    }
}

/// Asks once. `Own` is asked by the caller.
pub(crate) async fn ask(
    question: &Question,
    log: &Path,
    log_from: u64,
    run_token: &str,
    dir: &Path,
    env: &ReadEnv,
) -> Attempt {
    let asked = async {
        match question {
            Question::Own => Ok(Attempt::Ready),
            Question::Http(address, path) => http(address, path, run_token).await,
            Question::Tcp(address) => super::kind::accepts(address).await.map(|()| Attempt::Ready),
            Question::Line(pattern) => {
                let text = logs::since(log, log_from);
                Ok(if text.lines().any(|line| pattern.is_match(line)) {
                    Attempt::Ready
                } else {
                    Attempt::NotYet("no such line yet".to_owned())
                })
            }
            Question::Command(command) => run(command, dir, env).await,
        }
    };
    match tokio::time::timeout(ATTEMPT, asked).await {
        Ok(Ok(attempt)) => attempt,
        Ok(Err(error)) => Attempt::NotYet(format!("{error:#}")),
        Err(_) => Attempt::NotYet(format!("no answer within {ATTEMPT:?}")),
    }
}

async fn http(address: &str, path: &str, run_token: &str) -> Result<Attempt> {
    let stream = TcpStream::connect(address)
        .await
        .with_context(|| format!("connecting to {address}"))?;
    let (mut sender, connection) =
        hyper::client::conn::http1::handshake(TokioIo::new(stream)).await?;
    let driver = tokio::spawn(async move {
        // Its error is also the error of the request.
        let _ = connection.await;
    });
    let answer = async {
        let request = hyper::Request::get(path)
            .header("host", address)
            .header("connection", "close")
            .body(Empty::<bytes::Bytes>::new())
            .context("asking for the path of 'ready', which is none that HTTP knows")?;
        let response = sender.send_request(request).await?;
        let status = response.status();
        let body = Limited::new(response.into_body(), BODY)
            .collect()
            .await
            .map(|body| body.to_bytes())
            .unwrap_or_default();
        anyhow::Ok((status, body))
    }
    .await;
    driver.abort();
    let (status, body) = answer?;
    if !status.is_success() {
        return Ok(Attempt::NotYet(format!("it answers {status}")));
    }
    Ok(match token_in(&body) {
        Some(token) if token != run_token => Attempt::Wrong(format!(
            "what answers at http://{address} is not the process that was started: it echoes another run token"
        )),
        _ => Attempt::Ready,
    })
}

/// The run token that a health check echoes, as a JSON field or as the whole body.
fn token_in(body: &[u8]) -> Option<String> {
    let value: serde_json::Value = serde_json::from_slice(body).ok()?;
    ["run_token", "token"]
        .iter()
        .find_map(|name| value.get(name)?.as_str().map(str::to_owned))
}

async fn run(command: &[String], dir: &Path, env: &ReadEnv) -> Result<Attempt> {
    let (name, args) = command.split_first().context("the command is empty")?;
    let path = program::find(name, dir, env)?;
    let status = tokio::process::Command::new(path)
        .args(args)
        .env_clear()
        .envs(program::base_env(env))
        .current_dir(dir)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .kill_on_drop(true)
        .status()
        .await
        .context("running the command")?;
    if status.success() {
        Ok(Attempt::Ready)
    } else {
        bail!("it ends with {status}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_waited_for_is_told_as_it_is_written() {
        let command = ["check".to_owned(), "{{ env.TOKEN }}".to_owned()].to_vec();
        assert_eq!(
            describe(Some(&ReadyBy::Command(command)), "127.0.0.1:1"),
            "'check {{ env.TOKEN }}' to exit with 0"
        );
        let path = ReadyBy::Path("/h?key={{ env.K }}".to_owned());
        assert!(describe(Some(&path), "127.0.0.1:1").contains("{{ env.K }}"));
    }

    #[test]
    fn a_token_is_found_only_where_one_is_echoed() {
        assert_eq!(token_in(b"{\"token\":\"abc\"}").as_deref(), Some("abc"));
        assert_eq!(token_in(b"{\"run_token\":\"x\"}").as_deref(), Some("x"));
        assert_eq!(token_in(b"ok"), None);
        assert_eq!(token_in(b"{\"token\":null}"), None);
    }
}
