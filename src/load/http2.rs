//! One HTTP/2 connection of one client, over hyper: by ALPN under TLS, by prior knowledge without.
//!
//! A client has one request in flight, so a connection carries one stream at a time.

use std::time::{Duration, Instant};

use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use hyper::client::conn::http2;
use hyper_util::rt::{TokioExecutor, TokioIo};

use super::classify::{Doing, io_error};
use super::exchange::Exchange;
use super::expect::Expectation;
use super::stream::{NotConnected, Stream};
use super::target::Scheme;
use crate::measure::FailureClass;

/// A connection; its driving task ends with it.
#[derive(Debug)]
pub(super) struct Connection {
    sender: http2::SendRequest<Full<Bytes>>,
    task: tokio::task::JoinHandle<()>,
    scheme: Scheme,
    body: Vec<u8>,
    used: bool,
}

impl Drop for Connection {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Connection {
    /// Speaks first over a fresh stream.
    pub(super) async fn open(
        stream: Stream,
        scheme: Scheme,
        timeout: Duration,
    ) -> Result<Self, NotConnected> {
        let refused = |class, said: String| NotConnected { class, said };
        if scheme == Scheme::Https && stream.agreed() != Some(b"h2") {
            let said = "the server does not speak HTTP/2 (no h2 by ALPN)";
            return Err(refused(FailureClass::Malformed, said.into()));
        }
        let greeting = http2::handshake(TokioExecutor::new(), TokioIo::new(stream));
        let (sender, connection) = match tokio::time::timeout(timeout, greeting).await {
            Ok(Ok(opened)) => opened,
            Ok(Err(error)) => {
                return Err(refused(class(&error, Doing::Connecting), error.to_string()));
            }
            Err(_) => {
                let said = format!("no HTTP/2 greeting within {timeout:?}");
                return Err(refused(FailureClass::ConnectTimeout, said));
            }
        };
        // Its errors reach the request that they break.
        let task = tokio::spawn(async move { drop(connection.await) });
        Ok(Connection {
            sender,
            task,
            scheme,
            body: Vec::new(),
            used: false,
        })
    }

    pub(super) fn is_closed(&self) -> bool {
        self.sender.is_closed()
    }

    pub(super) fn is_used(&self) -> bool {
        self.used
    }

    pub(super) fn body(&self) -> &[u8] {
        &self.body
    }

    /// Sends a request and reads its answer, until `deadline`.
    pub(super) async fn exchange(
        &mut self,
        request: &[u8],
        expect: &Expectation,
        deadline: Instant,
    ) -> Exchange {
        self.body.clear();
        let mut exchange = Exchange::default();
        let request = match translate(request, self.scheme) {
            Ok(request) => request,
            Err(error) => return exchange.broken(FailureClass::ClientSide, format!("{error:#}")),
        };
        let work = self.converse(request, expect, &mut exchange);
        let end = tokio::time::timeout_at(deadline.into(), work).await;
        match end {
            Ok(Ok(())) => {
                self.used = true;
                exchange.reusable = !self.sender.is_closed();
                exchange
            }
            Ok(Err((class, why))) => exchange.broken(class, why),
            Err(_) => exchange.broken(FailureClass::Timeout, "no whole answer in time"),
        }
    }

    async fn converse(
        &mut self,
        request: http::Request<Full<Bytes>>,
        expect: &Expectation,
        exchange: &mut Exchange,
    ) -> Result<(), (FailureClass, String)> {
        let broken = |error: hyper::Error| (class(&error, Doing::Exchanging), error.to_string());
        self.sender.ready().await.map_err(broken)?;
        let answer = self.sender.send_request(request).await.map_err(broken)?;
        let status = answer.status().as_u16();
        exchange.status = Some(status);
        for (name, value) in answer.headers() {
            expect.header(
                name.as_str().as_bytes(),
                value.as_bytes(),
                &mut exchange.headers,
            );
        }
        let length = answer.headers().get(http::header::CONTENT_LENGTH);
        if !expect.head_only {
            exchange.promised = length.and_then(|length| length.to_str().ok()?.parse().ok());
        }
        let wanted = expect.wants(status);
        let mut incoming = answer.into_body();
        while let Some(frame) = incoming.frame().await {
            let Ok(data) = frame.map_err(broken)?.into_data() else {
                continue;
            };
            exchange.received += data.len() as u64;
            exchange.bytes_read += data.len() as u64;
            let room = wanted.saturating_sub(self.body.len()).min(data.len());
            self.body.extend_from_slice(&data[..room]);
            if expect.max_bytes.is_some_and(|max| exchange.received > max) {
                return Ok(());
            }
        }
        Ok(())
    }
}

/// One plan renders requests for both protocols, so HTTP/2 reads what HTTP/1.1 would have sent.
fn translate(bytes: &[u8], scheme: Scheme) -> anyhow::Result<http::Request<Full<Bytes>>> {
    let mut fields = [httparse::EMPTY_HEADER; 128];
    let mut head = httparse::Request::new(&mut fields);
    let httparse::Status::Complete(length) = head.parse(bytes)? else {
        anyhow::bail!("the request's head has no end");
    };
    let host = (head.headers.iter())
        .find(|field| field.name.eq_ignore_ascii_case("host"))
        .map(|field| String::from_utf8_lossy(field.value));
    let scheme = match scheme {
        Scheme::Http => "http",
        Scheme::Https => "https",
    };
    let uri = http::Uri::builder()
        .scheme(scheme)
        .authority(host.as_deref().unwrap_or("localhost"))
        .path_and_query(head.path.unwrap_or("/"))
        .build()?;
    let mut request = http::Request::builder()
        .method(head.method.unwrap_or("GET"))
        .uri(uri);
    for field in head.headers.iter() {
        if !field.name.eq_ignore_ascii_case("host") {
            request = request.header(field.name, field.value.trim_ascii());
        }
    }
    let body = Bytes::copy_from_slice(&bytes[length..]);
    Ok(request.body(Full::new(body))?)
}

/// The class of hyper's error, by its predicates and by what lies beneath it.
fn class(error: &hyper::Error, doing: Doing) -> FailureClass {
    let mut source = std::error::Error::source(error);
    while let Some(inner) = source {
        if let Some(io) = inner.downcast_ref::<std::io::Error>() {
            return io_error(io, doing);
        }
        source = inner.source();
    }
    if error.is_timeout() {
        FailureClass::Timeout
    } else if error.is_parse() {
        FailureClass::Malformed
    } else if error.is_incomplete_message() || error.is_closed() || error.is_canceled() {
        FailureClass::Closed
    } else {
        // A stream or a connection that the peer ended by an error code.
        FailureClass::Reset
    }
}
