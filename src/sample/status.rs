//! A service's own status page: numbers in JSON, as series.

use std::time::Duration;

use anyhow::{Context, bail, ensure};
use http_body_util::{BodyExt, Empty, Limited};
use hyper::body::Bytes;
use hyper_util::rt::TokioIo;
use serde_json::Value;
use tokio::net::TcpStream;
use tokio::sync::watch;

use super::output::Output;
use super::pace::{Pace, Tally};
use super::spec::{ProcessRoot, WatchedStatus};
use crate::experiment::FieldKind;

/// After this long the page counts as not answering.
const PATIENCE: Duration = Duration::from_millis(500);
/// A page longer than this is none.
const MAX_BYTES: usize = 1 << 20;

/// Reads the page at its pace until told to stop, and then once more.
pub(super) async fn observe(
    status: WatchedStatus,
    process: watch::Receiver<Option<ProcessRoot>>,
    period: Duration,
    mut out: Output,
    mut stop: watch::Receiver<bool>,
) -> Tally {
    let period = status.page.every.unwrap_or(period);
    let mut pace = Pace::new(out.clock.origin.clone(), period);
    let mut reader = Reader {
        status,
        process,
        started: false,
        silent: false,
    };
    loop {
        let tick = tokio::select! {
            biased;
            _ = stop.changed() => break,
            tick = pace.next() => tick,
        };
        if reader.is_down() {
            pace.excused(tick);
            continue;
        }
        let at_s = out.clock.now();
        if reader.round(&mut out).await {
            pace.taken(tick, at_s, &out);
        } else {
            pace.gap(tick, out.clock.now(), &out);
        }
    }
    if !reader.is_down() {
        reader.round(&mut out).await;
    }
    pace.tally
}

struct Reader {
    status: WatchedStatus,
    process: watch::Receiver<Option<ProcessRoot>>,
    /// Whether the deployment ever said that the service is up.
    started: bool,
    silent: bool,
}

impl Reader {
    /// Whether the deployment knows that the service is down: then there is nothing to read.
    fn is_down(&mut self) -> bool {
        let up = self.process.borrow_and_update().is_some();
        self.started |= up;
        self.started && !up
    }

    /// Reads the page once; false when it can't be had.
    async fn round(&mut self, out: &mut Output) -> bool {
        let url = format!("{}{}", self.status.base, self.status.page.path);
        let page = match tokio::time::timeout(PATIENCE, fetch(&self.status.base, &url)).await {
            Ok(page) => page,
            Err(_) => Err(anyhow::anyhow!("no answer within {PATIENCE:?}")),
        };
        let page = match page {
            Ok(page) => page,
            Err(error) => {
                if !std::mem::replace(&mut self.silent, true) {
                    let detail = format!("the status page {url} can't be read: {error:#}");
                    out.server(out.clock.now(), "status_page_missing", detail);
                    out.not_observed("status", format!("{error:#}"));
                }
                return false;
            }
        };
        if std::mem::replace(&mut self.silent, false) {
            let detail = "the status page can be read again".to_string();
            out.server(out.clock.now(), "status_page_back", detail);
        }
        let at_s = out.clock.now();
        let epoch = self.process.borrow().map_or(0, |root| root.epoch);
        for (name, field) in &self.status.page.fields {
            let metric = format!("status.{name}");
            match (number(&page, &field.at), field.kind) {
                (Ok(value), FieldKind::Gauge) => {
                    out.reading(at_s, &metric, "count", value, epoch);
                }
                (Ok(value), FieldKind::Counter) => {
                    out.counter(at_s, &metric, "count_total", value, epoch);
                }
                (Err(reason), _) => out.not_observed(&metric, reason),
            }
        }
        true
    }
}

/// The JSON of a page.
async fn fetch(base: &str, url: &str) -> anyhow::Result<Value> {
    let base: http::Uri = base.parse().context("its address is no URL")?;
    ensure!(
        base.scheme_str() == Some("http"),
        "only http:// pages are read, and this is {base}"
    );
    let host = base.host().context("its address names no host")?;
    let port = base.port_u16().unwrap_or(80);
    let stream = TcpStream::connect((host.trim_matches(['[', ']']), port)).await?;
    let (mut sender, connection) =
        hyper::client::conn::http1::handshake::<_, Empty<Bytes>>(TokioIo::new(stream)).await?;
    let exchange = async {
        let url: http::Uri = url.parse().context("its path is no URL")?;
        let path = url.path_and_query().map_or("/", |path| path.as_str());
        let request = http::Request::get(path)
            .header("host", format!("{host}:{port}"))
            .header("accept", "application/json")
            .header("connection", "close")
            .body(Empty::new())?;
        let answer = sender.send_request(request).await?;
        let status = answer.status();
        ensure!(status.is_success(), "it answers {status}");
        let body = Limited::new(answer.into_body(), MAX_BYTES)
            .collect()
            .await
            .map_err(|error| anyhow::anyhow!("reading its body: {error}"))?;
        serde_json::from_slice(&body.to_bytes()).context("it is no JSON")
    };
    tokio::select! {
        page = exchange => page,
        // The connection ends by itself only when something is wrong with it.
        Err(error) = connection => bail!("its connection broke: {error}"),
    }
}

/// The number that a JSON Pointer leads to. A text is none, also when it looks like one: "1.2GiB" would be read wrong.
fn number(page: &Value, at: &str) -> Result<f64, String> {
    match page.pointer(at) {
        Some(Value::Number(number)) => number
            .as_f64()
            .filter(|value| value.is_finite())
            .ok_or_else(|| format!("the status page's {at} is beyond what a number can hold")),
        Some(Value::Bool(flag)) => Ok(f64::from(u8::from(*flag))),
        Some(Value::String(_)) => Err(format!("the status page's {at} is a text, not a number")),
        Some(_) => Err(format!("the status page's {at} is not a number")),
        None => Err(format!("the status page has nothing at {at}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_numbers_are_numbers() {
        let page =
            serde_json::json!({"jobs": {"done": 7, "ok": true}, "rss": "1.2GiB", "list": [1.5]});
        assert_eq!(number(&page, "/jobs/done"), Ok(7.0));
        assert_eq!(number(&page, "/jobs/ok"), Ok(1.0));
        assert_eq!(number(&page, "/list/0"), Ok(1.5));
        assert!(number(&page, "/rss").unwrap_err().contains("text"));
        assert!(number(&page, "/jobs").is_err());
        assert!(number(&page, "/none").unwrap_err().contains("nothing"));
    }
}
