//! One HTTP/1.1 connection that carries one request at a time.
//!
//! It reads and writes the stream itself, so that errno and bytes promised are seen as they are. It must never retry, and
//! never hold more of an answer than was asked for.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Instant;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use super::classify::{Doing, io_error};
use super::exchange::Exchange;
use super::expect::{Expectation, SAID};
use super::framing::{self, BodyReader, HEAD_LIMIT};
use super::stream::Stream;
use super::timer::Timer;
use crate::measure::FailureClass;

/// Bytes read at once. An answer that fills it is read in several pieces.
const BUFFER: usize = 16 << 10;
/// Interim answers (1xx) before the final one.
const INTERIM_LIMIT: u32 = 32;

/// A connection and its buffers.
#[derive(Debug)]
pub(super) struct Connection {
    stream: Stream,
    /// Bytes read and not yet understood: `buffer[..filled]`.
    buffer: Vec<u8>,
    filled: usize,
    /// The part of the answer's body that was asked for, or what came in place of an answer.
    body: Vec<u8>,
    /// It has carried a whole answer.
    used: bool,
}

/// The progress of one exchange.
struct Progress<'a> {
    request: &'a [u8],
    written: usize,
    write_error: Option<io::Error>,
    body: Option<BodyReader>,
    keep_alive: bool,
    interim: u32,
    /// Bytes of the body to keep.
    wanted: usize,
    exchange: Exchange,
}

impl Connection {
    /// Takes over a stream.
    pub(super) fn new(stream: Stream) -> Self {
        Connection {
            stream,
            buffer: vec![0; BUFFER],
            filled: 0,
            body: Vec::new(),
            used: false,
        }
    }

    /// What was kept of the last answer's body.
    pub(super) fn body(&self) -> &[u8] {
        &self.body
    }

    /// Whether it has carried an answer before.
    pub(super) fn is_used(&self) -> bool {
        self.used
    }

    /// Whether the peer has closed it, or said something unasked, while it was idle. No system call unless the poller
    /// has seen something.
    pub(super) fn poll_stale(&mut self, cx: &mut Context<'_>) -> bool {
        let mut probe = [0; 1];
        let mut probe = ReadBuf::new(&mut probe);
        Pin::new(&mut self.stream)
            .poll_read(cx, &mut probe)
            .is_ready()
    }

    /// Sends a request and reads its answer, until `deadline`.
    pub(super) async fn exchange(
        &mut self,
        request: &[u8],
        expect: &Expectation,
        timer: &mut Timer,
        deadline: Instant,
    ) -> Exchange {
        self.filled = 0;
        self.body.clear();
        let mut progress = Progress {
            request,
            written: 0,
            write_error: None,
            body: None,
            keep_alive: false,
            interim: 0,
            wanted: 0,
            exchange: Exchange::default(),
        };
        let end = std::future::poll_fn(|cx| {
            if let Poll::Ready(end) = self.poll(cx, &mut progress, expect) {
                return Poll::Ready(end);
            }
            ready!(timer.poll(cx, deadline));
            Poll::Ready(Err((
                FailureClass::Timeout,
                "no whole answer in time".into(),
            )))
        })
        .await;
        let mut exchange = progress.exchange;
        if let Some(body) = &progress.body {
            exchange.received = body.received;
            exchange.promised = body.promised;
        }
        match end {
            Ok(()) => {
                self.used = true;
                exchange.reusable = progress.keep_alive && progress.written == request.len();
                exchange
            }
            Err((class, why)) => {
                if progress.body.is_none() {
                    let said = self.filled.min(SAID);
                    self.body.extend_from_slice(&self.buffer[..said]);
                }
                exchange.broken(class, why)
            }
        }
    }

    fn poll(
        &mut self,
        cx: &mut Context<'_>,
        progress: &mut Progress<'_>,
        expect: &Expectation,
    ) -> Poll<Result<(), (FailureClass, String)>> {
        self.poll_write(cx, progress);
        loop {
            let read = match self.poll_read(cx) {
                Poll::Pending => {
                    // A broken pipe may still hold an answer, but none that is to come.
                    return match progress.write_error.take() {
                        Some(error) => Poll::Ready(Err(failed(&error))),
                        None => Poll::Pending,
                    };
                }
                Poll::Ready(Ok(read)) => read,
                Poll::Ready(Err(error)) => return Poll::Ready(Err(failed(&error))),
            };
            progress.exchange.bytes_read += read as u64;
            if read == 0 {
                return Poll::Ready(match &progress.body {
                    Some(body) if body.ends_with_close() => Ok(()),
                    _ => Err((FailureClass::Closed, "closed before a whole answer".into())),
                });
            }
            match self.understand(progress, expect) {
                Ok(true) => return Poll::Ready(Ok(())),
                Ok(false) => {}
                Err(framing::NotHttp(why)) => {
                    return Poll::Ready(Err((FailureClass::Malformed, why.into())));
                }
            }
        }
    }

    fn poll_write(&mut self, cx: &mut Context<'_>, progress: &mut Progress<'_>) {
        while progress.written < progress.request.len() && progress.write_error.is_none() {
            let rest = &progress.request[progress.written..];
            match Pin::new(&mut self.stream).poll_write(cx, rest) {
                Poll::Pending => return,
                Poll::Ready(Ok(0)) => {
                    progress.write_error = Some(io::ErrorKind::BrokenPipe.into());
                }
                Poll::Ready(Ok(written)) => progress.written += written,
                // The peer may have answered before it stopped listening, so reading goes on.
                Poll::Ready(Err(error)) => progress.write_error = Some(error),
            }
        }
        if progress.write_error.is_none()
            && let Poll::Ready(Err(error)) = Pin::new(&mut self.stream).poll_flush(cx)
        {
            progress.write_error = Some(error);
        }
    }

    fn poll_read(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<usize>> {
        if self.filled == self.buffer.len() {
            // Only a head is gathered beyond the buffer, and `framing::head` bounds that.
            self.buffer.resize(HEAD_LIMIT + BUFFER, 0);
        }
        let mut space = ReadBuf::new(&mut self.buffer[self.filled..]);
        ready!(Pin::new(&mut self.stream).poll_read(cx, &mut space))?;
        let read = space.filled().len();
        self.filled += read;
        Poll::Ready(Ok(read))
    }

    /// Makes what it can of the bytes at hand; true when the answer is whole.
    fn understand(
        &mut self,
        progress: &mut Progress<'_>,
        expect: &Expectation,
    ) -> Result<bool, framing::NotHttp> {
        let mut at = 0;
        while progress.body.is_none() {
            let headers = &mut progress.exchange.headers;
            *headers = Default::default();
            let bytes = &self.buffer[at..self.filled];
            let head = framing::head(bytes, expect.head_only, |name, value| {
                expect.header(name, value, headers);
            })?;
            let Some(head) = head else {
                self.buffer.copy_within(at..self.filled, 0);
                self.filled -= at;
                return Ok(false);
            };
            at += head.length;
            if head.status < 200 && head.status != 101 {
                progress.interim += 1;
                if progress.interim > INTERIM_LIMIT {
                    return Err(framing::NotHttp("interim answers without end"));
                }
                continue;
            }
            progress.exchange.status = Some(head.status);
            progress.keep_alive = head.keep_alive;
            progress.wanted = expect.wants(head.status);
            progress.body = Some(BodyReader::new(head.body));
        }
        let Some(reader) = &mut progress.body else {
            return Ok(false);
        };
        let kept = &mut self.body;
        let wanted = progress.wanted;
        let used = reader.feed(&self.buffer[at..self.filled], |piece| {
            let room = wanted.saturating_sub(kept.len()).min(piece.len());
            kept.extend_from_slice(&piece[..room]);
        })?;
        let leftover = at + used < self.filled;
        self.filled = 0;
        if reader.is_done() {
            // Bytes that nobody asked for: the next answer could not be told from them.
            progress.keep_alive &= !leftover;
            return Ok(true);
        }
        if too_long(reader, expect) {
            // Nothing that is still to come could make it right; the rest is not fetched.
            progress.keep_alive = false;
            return Ok(true);
        }
        Ok(false)
    }
}

fn too_long(reader: &BodyReader, expect: &Expectation) -> bool {
    let length = reader.received.max(reader.promised.unwrap_or(0));
    expect.max_bytes.is_some_and(|max| length > max)
}

fn failed(error: &io::Error) -> (FailureClass, String) {
    (io_error(error, Doing::Exchanging), error.to_string())
}

#[cfg(test)]
#[path = "http1_tests.rs"]
mod tests;
