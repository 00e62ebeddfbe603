//! Framing is the one place where a wrong answer could pass as a whole one, so it is tested by properties.

use super::*;
use proptest::prelude::*;

fn parsed(text: &str) -> Result<Option<Head>, NotHttp> {
    head(text.as_bytes(), false, |_, _| {})
}

fn body_of(text: &str) -> Body {
    parsed(text).unwrap().unwrap().body
}

#[test]
fn a_body_ends_as_rfc_9112_says() {
    let ok = "HTTP/1.1 200 OK\r\n";
    assert_eq!(
        body_of(&format!("{ok}Content-Length: 5\r\n\r\n")),
        Body::Length(5)
    );
    assert_eq!(
        body_of(&format!("{ok}content-length: 5, 5\r\n\r\n")),
        Body::Length(5)
    );
    assert_eq!(
        body_of(&format!("{ok}Content-Length: 0\r\n\r\n")),
        Body::Empty
    );
    assert_eq!(
        body_of(&format!("{ok}Transfer-Encoding: gzip, Chunked\r\n\r\n")),
        Body::Chunked
    );
    assert_eq!(
        body_of(&format!("{ok}Transfer-Encoding: gzip\r\n\r\n")),
        Body::UntilClose
    );
    assert_eq!(body_of(&format!("{ok}\r\n")), Body::UntilClose);
    for empty in [
        "204 No Content",
        "304 Not Modified",
        "100 Continue",
        "103 Early Hints",
    ] {
        let text = format!("HTTP/1.1 {empty}\r\nContent-Length: 9\r\n\r\n");
        assert_eq!(body_of(&text), Body::Empty, "{empty}");
    }
    let text = format!("{ok}Content-Length: 9\r\n\r\n");
    let of_head = head(text.as_bytes(), true, |_, _| {}).unwrap().unwrap();
    assert_eq!(of_head.body, Body::Empty);
}

#[test]
fn a_connection_is_kept_as_version_and_field_say() {
    for (text, kept) in [
        ("HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\n", true),
        (
            "HTTP/1.1 200 OK\r\nContent-Length: 1\r\nConnection: x, Close\r\n\r\n",
            false,
        ),
        ("HTTP/1.0 200 OK\r\nContent-Length: 1\r\n\r\n", false),
        (
            "HTTP/1.0 200 OK\r\nContent-Length: 1\r\nConnection: keep-alive\r\n\r\n",
            true,
        ),
        ("HTTP/1.1 200 OK\r\n\r\n", false),
        (
            "HTTP/1.1 200 OK\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n",
            false,
        ),
    ] {
        assert_eq!(parsed(text).unwrap().unwrap().keep_alive, kept, "{text}");
    }
}

#[test]
fn what_is_not_http_is_said_to_be_so() {
    for bad in [
        "SSH-2.0-OpenSSH\r\n",
        "HTTP/1.1 abc OK\r\n\r\n",
        "HTTP/1.1 099 No\r\n\r\n",
        "HTTP/1.1 200 OK\r\nContent-Length: x\r\n\r\n",
        "HTTP/1.1 200 OK\r\nContent-Length: +5\r\n\r\n",
        "HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n",
        "HTTP/1.1 200 OK\r\nContent-Length: 99999999999999999999\r\n\r\n",
    ] {
        assert!(parsed(bad).is_err(), "{bad}");
    }
    let endless = format!("HTTP/1.1 200 OK\r\nX: {}", "x".repeat(HEAD_LIMIT));
    assert!(parsed(&endless).is_err());
    let many = format!("HTTP/1.1 200 OK\r\n{}\r\n", "X: y\r\n".repeat(200));
    assert!(parsed(&many).is_err());
    assert_eq!(parsed("HTTP/1.1 200 OK\r\nContent-Le"), Ok(None));
}

fn chunked(text: &[u8]) -> Result<(Vec<u8>, usize, bool), NotHttp> {
    let mut reader = BodyReader::new(Body::Chunked);
    let mut body = Vec::new();
    let used = reader.feed(text, |piece| body.extend_from_slice(piece))?;
    Ok((body, used, reader.is_done()))
}

#[test]
fn chunks_are_read_and_bad_ones_refused() {
    let (body, used, done) =
        chunked(b"3;x=\"y\"\r\nabc\r\nA \r\n0123456789\r\n0\r\nT: v\r\n\r\nnext").unwrap();
    assert_eq!(body, b"abc0123456789");
    assert!(done);
    assert_eq!(
        used,
        b"3;x=\"y\"\r\nabc\r\nA \r\n0123456789\r\n0\r\nT: v\r\n\r\n".len()
    );
    for bad in [
        &b"x\r\n"[..],
        b"\r\n",
        b"-1\r\n",
        b"3\nabc",
        b"3\r\nabcd\r\n",
        b"11111111111111111\r\n",
        b"0\r\nT: v\n",
    ] {
        assert!(chunked(bad).is_err(), "{bad:?}");
    }
    let mut endless = b"1;".to_vec();
    endless.resize(1 << 20, b'x');
    assert!(chunked(&endless).is_err());
}

/// Encodes a body in chunks of the given sizes.
fn encode(body: &[u8], sizes: &[usize]) -> Vec<u8> {
    let mut out = Vec::new();
    let mut rest = body;
    for &size in sizes.iter().cycle() {
        if rest.is_empty() {
            break;
        }
        let (chunk, more) = rest.split_at(size.clamp(1, rest.len()));
        out.extend_from_slice(format!("{:x}\r\n", chunk.len()).as_bytes());
        out.extend_from_slice(chunk);
        out.extend_from_slice(b"\r\n");
        rest = more;
    }
    out.extend_from_slice(b"0\r\n\r\n");
    out
}

proptest! {
    /// Whatever the pieces in which it arrives, a body comes out as it went in, is whole at its last byte and not before,
    /// and what follows is left alone.
    #[test]
    fn a_body_survives_any_split(
        body in proptest::collection::vec(any::<u8>(), 0..300),
        sizes in proptest::collection::vec(1usize..50, 1..4),
        cuts in proptest::collection::vec(1usize..20, 1..6),
        by_length in any::<bool>(),
    ) {
        let (kind, wire) = if by_length && !body.is_empty() {
            (Body::Length(body.len() as u64), body.clone())
        } else {
            (Body::Chunked, encode(&body, &sizes))
        };
        let mut stream = wire.clone();
        stream.extend_from_slice(b"HTTP/1.1 200 OK");
        let mut reader = BodyReader::new(kind);
        let (mut out, mut at) = (Vec::new(), 0);
        for &cut in cuts.iter().cycle() {
            if reader.is_done() {
                break;
            }
            prop_assert!(at < wire.len());
            let end = (at + cut).min(stream.len());
            at += reader.feed(&stream[at..end], |piece| out.extend_from_slice(piece)).unwrap();
        }
        prop_assert_eq!(at, wire.len());
        prop_assert_eq!(reader.received, body.len() as u64);
        prop_assert_eq!(out, body);
    }

    /// A body cut at any byte is never whole.
    #[test]
    fn a_cut_body_is_never_whole(
        body in proptest::collection::vec(any::<u8>(), 1..200),
        sizes in proptest::collection::vec(1usize..50, 1..4),
        at in 0.0f64..1.0,
    ) {
        for (kind, wire) in [
            (Body::Length(body.len() as u64), body.clone()),
            (Body::Chunked, encode(&body, &sizes)),
        ] {
            let cut = (wire.len() as f64 * at) as usize;
            let mut reader = BodyReader::new(kind);
            reader.feed(&wire[..cut], |_| {}).unwrap();
            prop_assert!(!reader.is_done() && !reader.ends_with_close());
        }
    }

    /// Any bytes at all: no panic, never more used than given, an answer is a head or an error.
    #[test]
    fn any_bytes_are_judged(bytes in proptest::collection::vec(any::<u8>(), 0..400), prefix in any::<bool>()) {
        let mut text = if prefix { b"HTTP/1.1 200 OK\r\n".to_vec() } else { Vec::new() };
        text.extend_from_slice(&bytes);
        if let Ok(Some(head)) = head(&text, false, |_, _| {}) {
            prop_assert!(head.length <= text.len());
        }
        for kind in [Body::Chunked, Body::UntilClose, Body::Length(7)] {
            let mut reader = BodyReader::new(kind);
            if let Ok(used) = reader.feed(&bytes, |_| {}) {
                prop_assert!(used <= bytes.len());
                prop_assert!(reader.received <= used as u64);
            }
        }
    }
}
