//! The class of an I/O error, from its kind and errno, never from a text.

use std::io;

use rustix::io::Errno;

use crate::measure::FailureClass;

/// What the client was doing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Doing {
    /// Opening a connection.
    Connecting,
    /// Sending a request or reading its answer.
    Exchanging,
}

/// The class of an error.
pub(super) fn io_error(error: &io::Error, doing: Doing) -> FailureClass {
    if let Some(errno) = error.raw_os_error().map(Errno::from_raw_os_error)
        && is_own_fault(errno)
    {
        return FailureClass::ClientSide;
    }
    if let Some(tls) = error
        .get_ref()
        .and_then(|inner| inner.downcast_ref::<rustls::Error>())
    {
        return match tls {
            // The client's own refusal to trust; the server did nothing wrong.
            rustls::Error::InvalidCertificate(_) => FailureClass::ClientSide,
            _ => FailureClass::Malformed,
        };
    }
    match (error.kind(), doing) {
        // A Unix socket without a file is a server that does not listen; one whose queue is full says "again".
        (io::ErrorKind::ConnectionRefused, _)
        | (io::ErrorKind::NotFound | io::ErrorKind::WouldBlock, Doing::Connecting) => {
            FailureClass::Refused
        }
        (io::ErrorKind::TimedOut, Doing::Connecting) => FailureClass::ConnectTimeout,
        (io::ErrorKind::TimedOut, Doing::Exchanging) => FailureClass::Timeout,
        (io::ErrorKind::UnexpectedEof, _) => FailureClass::Closed,
        (
            io::ErrorKind::ConnectionReset
            | io::ErrorKind::ConnectionAborted
            | io::ErrorKind::BrokenPipe
            | io::ErrorKind::NotConnected,
            _,
        ) => FailureClass::Reset,
        (io::ErrorKind::InvalidData, _) => FailureClass::Malformed,
        // No route, no permission, no memory: this side could not do what it was asked to.
        (_, Doing::Connecting) => FailureClass::ClientSide,
        (_, Doing::Exchanging) => FailureClass::Reset,
    }
}

/// Resources of this machine that ran out: local ports, descriptors, buffers.
fn is_own_fault(errno: Errno) -> bool {
    [
        Errno::ADDRNOTAVAIL,
        Errno::ADDRINUSE,
        Errno::MFILE,
        Errno::NFILE,
        Errno::NOBUFS,
        Errno::NOMEM,
        Errno::PERM,
        Errno::ACCESS,
        Errno::NETUNREACH,
        Errno::HOSTUNREACH,
        Errno::AFNOSUPPORT,
    ]
    .contains(&errno)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn class(errno: Errno, doing: Doing) -> FailureClass {
        io_error(&io::Error::from_raw_os_error(errno.raw_os_error()), doing)
    }

    #[test]
    fn errno_tells_whose_fault_it_is() {
        use FailureClass::*;
        for (errno, doing, expected) in [
            (Errno::CONNREFUSED, Doing::Connecting, Refused),
            (Errno::TIMEDOUT, Doing::Connecting, ConnectTimeout),
            (Errno::TIMEDOUT, Doing::Exchanging, Timeout),
            (Errno::CONNRESET, Doing::Connecting, Reset),
            (Errno::CONNRESET, Doing::Exchanging, Reset),
            (Errno::PIPE, Doing::Exchanging, Reset),
            (Errno::NOENT, Doing::Connecting, Refused),
            (Errno::ADDRNOTAVAIL, Doing::Connecting, ClientSide),
            (Errno::MFILE, Doing::Connecting, ClientSide),
            (Errno::NFILE, Doing::Connecting, ClientSide),
            (Errno::NOBUFS, Doing::Exchanging, ClientSide),
            (Errno::HOSTUNREACH, Doing::Connecting, ClientSide),
        ] {
            assert_eq!(class(errno, doing), expected, "{errno:?} {doing:?}");
        }
    }

    #[test]
    fn tls_faults_are_told_apart() {
        let wrapped = |error| io::Error::new(io::ErrorKind::InvalidData, error);
        let untrusted = rustls::Error::InvalidCertificate(rustls::CertificateError::UnknownIssuer);
        let doing = Doing::Connecting;
        assert_eq!(
            io_error(&wrapped(untrusted), doing),
            FailureClass::ClientSide
        );
        let noise = rustls::Error::InvalidMessage(rustls::InvalidMessage::InvalidContentType);
        assert_eq!(io_error(&wrapped(noise), doing), FailureClass::Malformed);
        let eof = io::Error::from(io::ErrorKind::UnexpectedEof);
        assert_eq!(io_error(&eof, doing), FailureClass::Closed);
    }
}
