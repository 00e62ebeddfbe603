//! Byte streams to the target: TCP, Unix socket, or TLS over either.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use rustls::pki_types::ServerName;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpStream, UnixStream};
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

use super::classify::{Doing, io_error};
use super::target::Target;
use crate::measure::FailureClass;

/// A connected stream.
#[derive(Debug)]
pub(super) enum Stream {
    Tcp(TcpStream),
    Unix(UnixStream),
    TlsTcp(Box<TlsStream<TcpStream>>),
    TlsUnix(Box<TlsStream<UnixStream>>),
}

/// How to open streams; shared by all clients.
#[derive(Debug)]
pub(super) struct Connector {
    pub target: Target,
    pub tls: Option<Arc<rustls::ClientConfig>>,
    pub timeout: Duration,
}

/// A connection that could not be opened.
#[derive(Debug)]
pub(super) struct NotConnected {
    pub class: FailureClass,
    pub said: String,
}

impl Connector {
    /// Opens a stream within the connect timeout, TLS included. Addresses are tried in order; the last error counts.
    pub(super) async fn open(&self) -> Result<Stream, NotConnected> {
        match tokio::time::timeout(self.timeout, self.open_untimed()).await {
            Ok(Ok(stream)) => Ok(stream),
            Ok(Err(error)) => Err(NotConnected {
                class: io_error(&error, Doing::Connecting),
                said: error.to_string(),
            }),
            Err(_) => Err(NotConnected {
                class: FailureClass::ConnectTimeout,
                said: format!("no connection within {:?}", self.timeout),
            }),
        }
    }

    async fn open_untimed(&self) -> io::Result<Stream> {
        if let Some(path) = &self.target.socket {
            let plain = UnixStream::connect(path).await?;
            return match &self.tls {
                None => Ok(Stream::Unix(plain)),
                Some(config) => {
                    let stream = self.handshake(config, plain).await?;
                    Ok(Stream::TlsUnix(Box::new(stream)))
                }
            };
        }
        let mut last = io::Error::new(io::ErrorKind::AddrNotAvailable, "the target has no address");
        for address in &self.target.addresses {
            match TcpStream::connect(address).await {
                Ok(plain) => {
                    plain.set_nodelay(true)?;
                    return match &self.tls {
                        None => Ok(Stream::Tcp(plain)),
                        Some(config) => {
                            let stream = self.handshake(config, plain).await?;
                            Ok(Stream::TlsTcp(Box::new(stream)))
                        }
                    };
                }
                Err(error) => last = error,
            }
        }
        Err(last)
    }

    async fn handshake<S: AsyncRead + AsyncWrite + Unpin>(
        &self,
        config: &Arc<rustls::ClientConfig>,
        plain: S,
    ) -> io::Result<TlsStream<S>> {
        let name = ServerName::try_from(self.target.bare_host().to_owned())
            .map_err(|error| io::Error::new(io::ErrorKind::InvalidInput, error))?;
        TlsConnector::from(config.clone())
            .connect(name, plain)
            .await
    }
}

impl Stream {
    /// The protocol that TLS agreed on.
    pub(super) fn agreed(&self) -> Option<&[u8]> {
        match self {
            Stream::Tcp(_) | Stream::Unix(_) => None,
            Stream::TlsTcp(stream) => stream.get_ref().1.alpn_protocol(),
            Stream::TlsUnix(stream) => stream.get_ref().1.alpn_protocol(),
        }
    }
}

impl AsyncRead for Stream {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Stream::Tcp(stream) => Pin::new(stream).poll_read(cx, buffer),
            Stream::Unix(stream) => Pin::new(stream).poll_read(cx, buffer),
            Stream::TlsTcp(stream) => Pin::new(stream).poll_read(cx, buffer),
            Stream::TlsUnix(stream) => Pin::new(stream).poll_read(cx, buffer),
        }
    }
}

impl AsyncWrite for Stream {
    fn poll_write(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        match self.get_mut() {
            Stream::Tcp(stream) => Pin::new(stream).poll_write(cx, bytes),
            Stream::Unix(stream) => Pin::new(stream).poll_write(cx, bytes),
            Stream::TlsTcp(stream) => Pin::new(stream).poll_write(cx, bytes),
            Stream::TlsUnix(stream) => Pin::new(stream).poll_write(cx, bytes),
        }
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Stream::Tcp(stream) => Pin::new(stream).poll_flush(cx),
            Stream::Unix(stream) => Pin::new(stream).poll_flush(cx),
            Stream::TlsTcp(stream) => Pin::new(stream).poll_flush(cx),
            Stream::TlsUnix(stream) => Pin::new(stream).poll_flush(cx),
        }
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Stream::Tcp(stream) => Pin::new(stream).poll_shutdown(cx),
            Stream::Unix(stream) => Pin::new(stream).poll_shutdown(cx),
            Stream::TlsTcp(stream) => Pin::new(stream).poll_shutdown(cx),
            Stream::TlsUnix(stream) => Pin::new(stream).poll_shutdown(cx),
        }
    }
}
