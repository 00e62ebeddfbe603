//! A whole connection against any answer in any pieces, cut anywhere: whole answers are whole, all others are not.

use std::time::Duration;

use proptest::prelude::*;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::UnixStream;

use super::*;
use crate::experiment::{Expect, Step};
use crate::name::StepName;

const REQUEST: &[u8] = b"GET / HTTP/1.1\r\nHost: x\r\n\r\n";

/// How an answer says where its body ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Framing {
    Length,
    Chunked,
    UntilClose,
    /// The answer to HEAD, which promises a body that does not come.
    Head,
    /// 204 or 304.
    Bodiless(u16),
}

#[derive(Debug, Clone)]
struct Answer {
    interim: u8,
    framing: Framing,
    body: Vec<u8>,
    chunk: usize,
    close: bool,
}

impl Answer {
    fn bytes(&self) -> Vec<u8> {
        let mut wire =
            b"HTTP/1.1 103 Early Hints\r\nLink: </x>\r\n\r\n".repeat(self.interim.into());
        let status = match self.framing {
            Framing::Bodiless(status) => status,
            _ => 200,
        };
        wire.extend_from_slice(format!("HTTP/1.1 {status} Some Reason\r\n").as_bytes());
        if self.close {
            wire.extend_from_slice(b"Connection: close\r\n");
        }
        let length = self.body.len();
        match self.framing {
            Framing::Length | Framing::Head => {
                wire.extend_from_slice(format!("Content-Length: {length}\r\n\r\n").as_bytes());
                if self.framing == Framing::Length {
                    wire.extend_from_slice(&self.body);
                }
            }
            Framing::Chunked => {
                wire.extend_from_slice(b"transfer-encoding: chunked\r\n\r\n");
                for piece in self.body.chunks(self.chunk) {
                    wire.extend_from_slice(format!("{:X};a=b\r\n", piece.len()).as_bytes());
                    wire.extend_from_slice(piece);
                    wire.extend_from_slice(b"\r\n");
                }
                wire.extend_from_slice(b"0\r\nTrailer: x\r\n\r\n");
            }
            Framing::UntilClose => {
                wire.extend_from_slice(b"\r\n");
                wire.extend_from_slice(&self.body);
            }
            Framing::Bodiless(_) => wire.extend_from_slice(b"\r\n"),
        }
        wire
    }

    /// Bytes of the body that are on the wire.
    fn length(&self) -> usize {
        match self.framing {
            Framing::Length | Framing::Chunked | Framing::UntilClose => self.body.len(),
            Framing::Head | Framing::Bodiless(_) => 0,
        }
    }

    /// Where the final head ends; from there on an answer that ends with its connection is whole.
    fn head_end(&self, wire: &[u8]) -> usize {
        let heads = usize::from(self.interim) + 1;
        let mut ends = (0..wire.len()).filter(|at| wire[*at..].starts_with(b"\r\n\r\n"));
        ends.nth(heads - 1).unwrap() + 4
    }
}

fn answers() -> impl Strategy<Value = Answer> {
    let framing = prop_oneof![
        Just(Framing::Length),
        Just(Framing::Chunked),
        Just(Framing::UntilClose),
        Just(Framing::Head),
        Just(Framing::Bodiless(204)),
        Just(Framing::Bodiless(304)),
    ];
    let body = prop::collection::vec(any::<u8>(), 0..200);
    (0u8..3, framing, body, 1usize..40, any::<bool>()).prop_map(
        |(interim, framing, body, chunk, close)| Answer {
            interim,
            framing,
            body,
            chunk,
            close,
        },
    )
}

fn expectation(method: &str) -> Expectation {
    let step = Step {
        name: StepName::new("only").unwrap(),
        method: method.to_owned(),
        path: "/".to_owned(),
        weight: 1,
        headers: Vec::new(),
        body: None,
        expect: Expect {
            // What is compared as JSON is kept whole, so the body can be looked at.
            json: [("/a".to_owned(), 1.into())].into(),
            ..Expect::default()
        },
        keep: Default::default(),
    };
    Expectation::compile(&step, &[]).unwrap()
}

/// Sends a request over a pair of sockets whose other end says `wire` in pieces, then closes.
fn exchange(method: &str, wire: &[u8], pieces: &[usize]) -> (Exchange, Vec<u8>) {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    runtime.block_on(async {
        let (ours, mut theirs) = UnixStream::pair().unwrap();
        let mut connection = Connection::new(Stream::Unix(ours));
        let server = async {
            let mut asked = vec![0; REQUEST.len()];
            theirs.read_exact(&mut asked).await.unwrap();
            let mut rest = wire;
            for &size in pieces.iter().cycle() {
                if rest.is_empty() {
                    break;
                }
                let (piece, more) = rest.split_at(size.min(rest.len()));
                // A client that has read what it wanted may have gone.
                if theirs.write_all(piece).await.is_err() {
                    break;
                }
                tokio::task::yield_now().await;
                rest = more;
            }
            drop(theirs);
        };
        let client = async {
            let mut timer = Timer::default();
            let expect = expectation(method);
            let deadline = Instant::now() + Duration::from_secs(60);
            let exchange = connection
                .exchange(REQUEST, &expect, &mut timer, deadline)
                .await;
            (exchange, connection.body().to_vec())
        };
        let ((exchange, body), ()) = tokio::join!(client, server);
        (exchange, body)
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    /// A whole answer is whole, whatever its framing and the pieces in which it comes.
    #[test]
    fn a_whole_answer_is_whole(
        answer in answers(),
        pieces in prop::collection::vec(1usize..30, 1..6),
    ) {
        let method = if answer.framing == Framing::Head { "HEAD" } else { "GET" };
        let (exchange, body) = exchange(method, &answer.bytes(), &pieces);
        prop_assert_eq!(exchange.broken, None, "{}", exchange.why);
        prop_assert_eq!(exchange.received, answer.length() as u64);
        if answer.length() > 0 {
            prop_assert_eq!(body, answer.body);
        }
        let stays = !answer.close && answer.framing != Framing::UntilClose;
        prop_assert_eq!(exchange.reusable, stays);
    }

    /// An answer that is cut before its end is never whole, but for a body that only the close can end.
    #[test]
    fn a_cut_answer_is_never_whole(
        answer in answers(),
        pieces in prop::collection::vec(1usize..30, 1..6),
        at in 0.0f64..1.0,
    ) {
        let method = if answer.framing == Framing::Head { "HEAD" } else { "GET" };
        let wire = answer.bytes();
        let cut = (wire.len() as f64 * at) as usize;
        let (exchange, _) = exchange(method, &wire[..cut], &pieces);
        prop_assert!(!exchange.reusable);
        let head_end = answer.head_end(&wire);
        if answer.framing == Framing::UntilClose && cut >= head_end {
            prop_assert_eq!(exchange.broken, None);
            prop_assert_eq!(exchange.received, (cut - head_end) as u64);
        } else {
            prop_assert_eq!(exchange.broken, Some(FailureClass::Closed), "{}", exchange.why);
        }
    }

    /// Bytes that nobody asked for follow a whole answer: it counts, and the connection is not used again.
    #[test]
    fn a_connection_with_leftovers_is_not_used_again(
        answer in answers(),
        extra in prop::collection::vec(any::<u8>(), 1..20),
    ) {
        prop_assume!(answer.framing != Framing::UntilClose);
        let method = if answer.framing == Framing::Head { "HEAD" } else { "GET" };
        let mut wire = answer.bytes();
        wire.extend_from_slice(&extra);
        // In one piece, so that the leftovers are seen with the answer.
        let whole = [wire.len()];
        let (exchange, _) = exchange(method, &wire, &whole);
        prop_assert_eq!(exchange.broken, None, "{}", exchange.why);
        prop_assert!(!exchange.reusable);
    }

    /// Any bytes at all end in a verdict, and nothing that lacks a head is an answer.
    #[test]
    fn any_bytes_end_in_a_verdict(
        start in prop_oneof![
            Just(&b""[..]),
            Just(&b"HTTP/1.1 200 OK\r\n"[..]),
            Just(&b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"[..]),
            Just(&b"HTTP/1.1 100 Continue\r\n\r\n"[..]),
        ],
        noise in prop::collection::vec(any::<u8>(), 0..300),
        pieces in prop::collection::vec(1usize..60, 1..4),
    ) {
        let wire = [start, noise.as_slice()].concat();
        let (exchange, _) = exchange("GET", &wire, &pieces);
        if exchange.broken.is_none() {
            prop_assert!(exchange.status.is_some_and(|status| status >= 200 || status == 101));
        } else {
            prop_assert!(!exchange.reusable);
        }
    }
}
