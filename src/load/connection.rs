//! The seam between a client and the protocol it speaks.

use std::task::Context;
use std::time::Instant;

use super::exchange::Exchange;
use super::expect::Expectation;
use super::stream::{Connector, NotConnected};
use super::timer::Timer;
use super::{http1, http2};
use crate::experiment::Protocol;

/// One client's connection.
#[derive(Debug)]
pub(super) enum Connection {
    Http1(http1::Connection),
    Http2(http2::Connection),
}

impl Connection {
    /// Opens one.
    pub(super) async fn open(
        connector: &Connector,
        protocol: Protocol,
    ) -> Result<Connection, NotConnected> {
        let stream = connector.open().await?;
        match protocol {
            Protocol::Http1 => Ok(Connection::Http1(http1::Connection::new(stream))),
            Protocol::Http2 => {
                let scheme = connector.target.scheme;
                let connection = http2::Connection::open(stream, scheme, connector.timeout);
                Ok(Connection::Http2(connection.await?))
            }
        }
    }

    /// Sends a request (as the bytes of HTTP/1.1) and reads its answer, until `deadline`.
    pub(super) async fn exchange(
        &mut self,
        request: &[u8],
        expect: &Expectation,
        timer: &mut Timer,
        deadline: Instant,
    ) -> Exchange {
        match self {
            Connection::Http1(one) => one.exchange(request, expect, timer, deadline).await,
            Connection::Http2(two) => two.exchange(request, expect, deadline).await,
        }
    }

    /// Whether the peer has closed it while it was idle.
    pub(super) fn poll_stale(&mut self, cx: &mut Context<'_>) -> bool {
        match self {
            Connection::Http1(one) => one.poll_stale(cx),
            Connection::Http2(two) => two.is_closed(),
        }
    }

    /// Whether it has carried an answer before.
    pub(super) fn is_used(&self) -> bool {
        match self {
            Connection::Http1(one) => one.is_used(),
            Connection::Http2(two) => two.is_used(),
        }
    }

    /// What was kept of the last answer's body.
    pub(super) fn body(&self) -> &[u8] {
        match self {
            Connection::Http1(one) => one.body(),
            Connection::Http2(two) => two.body(),
        }
    }
}
