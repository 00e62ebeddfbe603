//! HTTP/1.1 message framing (RFC 9112): where an answer's head ends and where its body ends.
//!
//! Pure: bytes in, verdicts out. It must never do I/O, and never call an answer whole that is not.

/// Longest head that is read.
pub(super) const HEAD_LIMIT: usize = 64 << 10;
/// Most header fields that are read.
const HEADER_LIMIT: usize = 128;
/// Longest line of chunk extensions or trailers in all.
const CHUNK_EXTRA_LIMIT: usize = 16 << 10;

/// What came is not HTTP; the text is for people.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct NotHttp(pub &'static str);

/// The head of an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Head {
    /// Its bytes, the empty line included.
    pub length: usize,
    /// 100 to 999.
    pub status: u16,
    /// How its body ends.
    pub body: Body,
    /// The connection stays open after the body.
    pub keep_alive: bool,
}

/// How a body ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Body {
    /// There is none.
    Empty,
    /// After so many bytes.
    Length(u64),
    /// With the last chunk and its trailers.
    Chunked,
    /// With the connection.
    UntilClose,
}

/// Reads a head; `None` when it is not whole yet. `header` sees each field.
pub(super) fn head(
    bytes: &[u8],
    head_only: bool,
    mut header: impl FnMut(&[u8], &[u8]),
) -> Result<Option<Head>, NotHttp> {
    let mut fields = [std::mem::MaybeUninit::uninit(); HEADER_LIMIT];
    let mut response = httparse::Response::new(&mut []);
    let parsed = httparse::ParserConfig::default().parse_response_with_uninit_headers(
        &mut response,
        bytes,
        &mut fields,
    );
    let length = match parsed {
        Ok(httparse::Status::Complete(length)) => length,
        Ok(httparse::Status::Partial) if bytes.len() >= HEAD_LIMIT => {
            return Err(NotHttp("the head is longer than 64 KiB"));
        }
        Ok(httparse::Status::Partial) => return Ok(None),
        Err(httparse::Error::TooManyHeaders) => {
            return Err(NotHttp("the head has more than 128 fields"));
        }
        Err(httparse::Error::Status) => return Err(NotHttp("the status line is no HTTP")),
        Err(httparse::Error::Version) => {
            return Err(NotHttp("the first bytes are not HTTP/1"));
        }
        Err(_) => return Err(NotHttp("the head is no HTTP")),
    };
    let status = response.code.unwrap_or(0);
    if status < 100 {
        return Err(NotHttp("the status is below 100"));
    }
    let mut keep_alive = response.version == Some(1);
    let mut content_length: Option<u64> = None;
    let mut chunked = None;
    for field in response.headers.iter() {
        let name = field.name.as_bytes();
        // Names are told apart by length first: most fields are none of ours.
        match name.len() {
            14 if name.eq_ignore_ascii_case(b"content-length") => {
                for one in field.value.split(|b| *b == b',') {
                    let value = decimal(one).ok_or(NotHttp("Content-Length is no number"))?;
                    if content_length.is_some_and(|other| other != value) {
                        return Err(NotHttp("Content-Length is given twice and differs"));
                    }
                    content_length = Some(value);
                }
            }
            17 if name.eq_ignore_ascii_case(b"transfer-encoding") => {
                let last = field.value.rsplit(|b| *b == b',').next().unwrap_or(b"");
                chunked = Some(last.trim_ascii().eq_ignore_ascii_case(b"chunked"));
            }
            10 if name.eq_ignore_ascii_case(b"connection") => {
                for option in field.value.split(|b| *b == b',') {
                    let option = option.trim_ascii();
                    if option.eq_ignore_ascii_case(b"close") {
                        keep_alive = false;
                    } else if option.eq_ignore_ascii_case(b"keep-alive")
                        && response.version == Some(0)
                    {
                        keep_alive = true;
                    }
                }
            }
            _ => {}
        }
        header(name, field.value);
    }
    let body = if head_only || status < 200 || status == 204 || status == 304 {
        Body::Empty
    } else {
        match (chunked, content_length) {
            (Some(true), _) => Body::Chunked,
            (Some(false), _) | (None, None) => Body::UntilClose,
            (None, Some(0)) => Body::Empty,
            (None, Some(length)) => Body::Length(length),
        }
    };
    // Both fields at once is how requests are smuggled; the connection is not used again.
    if chunked.is_some() && content_length.is_some() || body == Body::UntilClose {
        keep_alive = false;
    }
    Ok(Some(Head {
        length,
        status,
        body,
        keep_alive,
    }))
}

fn decimal(text: &[u8]) -> Option<u64> {
    let text = text.trim_ascii();
    if text.is_empty() || !text.iter().all(u8::is_ascii_digit) {
        return None;
    }
    std::str::from_utf8(text).ok()?.parse().ok()
}

/// Finds the end of a body, piece by piece.
#[derive(Debug, Clone)]
pub(super) struct BodyReader {
    state: State,
    /// Bytes of chunk extensions and trailers so far.
    extra: usize,
    /// Bytes of the body itself so far.
    pub received: u64,
    /// Bytes that were promised, as far as that is known.
    pub promised: Option<u64>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Done,
    Length(u64),
    UntilClose,
    ChunkSize { digits: u32, size: u64 },
    ChunkExtension { size: u64 },
    ChunkSizeEnd { size: u64 },
    ChunkData(u64),
    ChunkDataReturn,
    ChunkDataEnd,
    TrailerStart,
    Trailer,
    TrailerEnd,
    LastReturn,
}

impl BodyReader {
    /// For a body that ends as `body` says.
    pub(super) fn new(body: Body) -> Self {
        let (state, promised) = match body {
            Body::Empty => (State::Done, None),
            Body::Length(length) => (State::Length(length), Some(length)),
            Body::Chunked => (State::ChunkSize { digits: 0, size: 0 }, None),
            Body::UntilClose => (State::UntilClose, None),
        };
        BodyReader {
            state,
            extra: 0,
            received: 0,
            promised,
        }
    }

    /// Whether the body is whole.
    pub(super) fn is_done(&self) -> bool {
        self.state == State::Done
    }

    /// Whether the peer's closing of the connection makes the body whole.
    pub(super) fn ends_with_close(&self) -> bool {
        matches!(self.state, State::Done | State::UntilClose)
    }

    /// Takes bytes as they come; returns how many belonged to this answer. `sink` sees the body's own.
    pub(super) fn feed(
        &mut self,
        input: &[u8],
        mut sink: impl FnMut(&[u8]),
    ) -> Result<usize, NotHttp> {
        let mut at = 0;
        while at < input.len() && self.state != State::Done {
            let rest = &input[at..];
            at += match self.state {
                State::Length(left) | State::ChunkData(left) => {
                    let taken = usize::try_from(left).map_or(rest.len(), |l| l.min(rest.len()));
                    sink(&rest[..taken]);
                    self.received += taken as u64;
                    self.state = self.after_data(left - taken as u64);
                    taken
                }
                State::UntilClose => {
                    sink(rest);
                    self.received += rest.len() as u64;
                    rest.len()
                }
                _ => {
                    self.state = self.chunk_byte(rest[0])?;
                    1
                }
            };
        }
        Ok(at)
    }

    fn after_data(&self, left: u64) -> State {
        match (self.state, left) {
            (State::Length(_), 0) => State::Done,
            (State::Length(_), left) => State::Length(left),
            (_, 0) => State::ChunkDataReturn,
            (_, left) => State::ChunkData(left),
        }
    }

    /// Everything of the chunked coding but the data.
    fn chunk_byte(&mut self, byte: u8) -> Result<State, NotHttp> {
        const BAD: NotHttp = NotHttp("a chunk's size is no number");
        Ok(match (self.state, byte) {
            (State::ChunkSize { digits, size }, byte) => {
                match ((byte as char).to_digit(16), byte) {
                    (Some(_), _) if digits == 16 => return Err(BAD),
                    (Some(digit), _) => State::ChunkSize {
                        digits: digits + 1,
                        size: size << 4 | u64::from(digit),
                    },
                    _ if digits == 0 => return Err(BAD),
                    (None, b'\r') => State::ChunkSizeEnd { size },
                    (None, b';' | b' ' | b'\t') => State::ChunkExtension { size },
                    _ => return Err(BAD),
                }
            }
            (State::ChunkExtension { size }, b'\r') => State::ChunkSizeEnd { size },
            (State::ChunkExtension { size }, byte) if byte != b'\n' => {
                self.count_extra()?;
                State::ChunkExtension { size }
            }
            (State::ChunkSizeEnd { size: 0 }, b'\n') => State::TrailerStart,
            (State::ChunkSizeEnd { size }, b'\n') => State::ChunkData(size),
            (State::ChunkDataReturn, b'\r') => State::ChunkDataEnd,
            (State::ChunkDataEnd, b'\n') => State::ChunkSize { digits: 0, size: 0 },
            (State::TrailerStart, b'\r') => State::LastReturn,
            (State::TrailerStart | State::Trailer, byte) if byte != b'\n' => {
                self.count_extra()?;
                match byte {
                    b'\r' => State::TrailerEnd,
                    _ => State::Trailer,
                }
            }
            (State::TrailerEnd, b'\n') => State::TrailerStart,
            (State::LastReturn, b'\n') => State::Done,
            _ => return Err(NotHttp("a chunk does not end where its size says")),
        })
    }

    fn count_extra(&mut self) -> Result<(), NotHttp> {
        self.extra += 1;
        if self.extra > CHUNK_EXTRA_LIMIT {
            return Err(NotHttp("chunk extensions or trailers without end"));
        }
        Ok(())
    }
}

#[cfg(test)]
#[path = "framing_tests.rs"]
mod tests;
