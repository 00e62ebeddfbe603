//! What an exchange of one request and one answer came to, whatever the protocol.

use super::expect::HeadersSeen;
use crate::measure::FailureClass;

/// The end of an exchange.
#[derive(Debug, Clone, Default)]
pub(super) struct Exchange {
    /// The class of a broken exchange; `None`: a whole answer.
    pub broken: Option<FailureClass>,
    /// Why, for people.
    pub why: String,
    /// Status, once a head was read.
    pub status: Option<u16>,
    /// Bytes of the body.
    pub received: u64,
    /// Bytes of the body that the head promised.
    pub promised: Option<u64>,
    /// Bytes read off the connection.
    pub bytes_read: u64,
    /// Which expected headers were there.
    pub headers: HeadersSeen,
    /// The connection can carry another request.
    pub reusable: bool,
}

impl Exchange {
    /// An exchange that broke.
    pub(super) fn broken(mut self, class: FailureClass, why: impl Into<String>) -> Self {
        self.broken = Some(class);
        self.why = why.into();
        self.reusable = false;
        self
    }
}
