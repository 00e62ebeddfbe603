//! What each path answers.

use std::io;
use std::time::Duration;

use tokio::io::AsyncWriteExt;
use tokio::net::TcpStream;

use super::{Request, Then};

const JSON: &str = "{\"items\":[{\"id\":11},{\"id\":12},{\"id\":13}],\"state\":\"ready\"}";

fn with_length(status: &str, body: &str) -> String {
    format!(
        "HTTP/1.1 {status}\r\nContent-Length: {}\r\nX-Kind: test\r\n\r\n{body}",
        body.len()
    )
}

pub async fn answer(request: &Request, stream: &mut TcpStream) -> io::Result<Then> {
    let ok = "HTTP/1.1 200 OK\r\n";
    let (text, then) = match request.path.as_str() {
        "/ok" => (with_length("200 OK", "ok"), Then::Keep),
        "/list" => (with_length("200 OK", JSON), Then::Keep),
        "/empty-list" => (with_length("200 OK", "{\"items\":[]}"), Then::Keep),
        "/echo" => {
            let body = String::from_utf8_lossy(&request.body).into_owned();
            let text = format!(
                "{}?{} {body}\n{}",
                request.method, request.query, request.head
            );
            (with_length("200 OK", &text), Then::Keep)
        }
        "/head" => {
            // The length of a body that HEAD does not get.
            (format!("{ok}Content-Length: 1000\r\n\r\n"), Then::Keep)
        }
        "/no-content" => ("HTTP/1.1 204 No Content\r\n\r\n".into(), Then::Keep),
        "/hints" => {
            let hint = "HTTP/1.1 103 Early Hints\r\nLink: </x>\r\n\r\n";
            (
                format!("{hint}{hint}{}", with_length("200 OK", "ok")),
                Then::Keep,
            )
        }
        "/chunked" => {
            let text =
                "Transfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n4;x=y\r\ndefg\r\n0\r\nT: v\r\n\r\n";
            (format!("{ok}{text}"), Then::Keep)
        }
        "/until-close" => (format!("{ok}\r\nas long as it lasts"), Then::Close),
        "/503" => (
            with_length("503 Service Unavailable", "too busy"),
            Then::Keep,
        ),
        "/500" => (with_length("500 Internal Server Error", "oops"), Then::Keep),
        "/404" => (with_length("404 Not Found", "no such thing"), Then::Keep),
        "/302" => (with_length("302 Found", ""), Then::Keep),
        "/not-json" => (with_length("200 OK", "{\"items\":"), Then::Keep),
        "/never" => (String::new(), Then::Hold),
        "/half-head" => (format!("{ok}Content-Le"), Then::Close),
        "/short" => (
            format!("{ok}Content-Length: 100\r\n\r\n{}", "x".repeat(40)),
            Then::Close,
        ),
        "/short-chunked" => {
            let text = "Transfer-Encoding: chunked\r\n\r\n10\r\n0123456789";
            (format!("{ok}{text}"), Then::Close)
        }
        "/close" => (String::new(), Then::Close),
        "/reset-before" => (String::new(), Then::Reset),
        "/reset-head" => (format!("{ok}Content-"), Then::Reset),
        "/reset-body" => (format!("{ok}Content-Length: 100\r\n\r\nx"), Then::Reset),
        "/garbage" => ("SSH-2.0-OpenSSH_9.2\r\n".into(), Then::Hold),
        "/bad-chunk" => (
            format!("{ok}Transfer-Encoding: chunked\r\n\r\nzz\r\n"),
            Then::Hold,
        ),
        "/idle-close" => (with_length("200 OK", "ok"), Then::CloseIdle(20)),
        "/slow" => {
            let ms = request.query.trim_start_matches("ms=").parse().unwrap();
            tokio::time::sleep(Duration::from_millis(ms)).await;
            (with_length("200 OK", "ok"), Then::Keep)
        }
        "/drip" => {
            stream
                .write_all(format!("{ok}Content-Length: 1000\r\n\r\n").as_bytes())
                .await?;
            loop {
                stream.write_all(b"x").await?;
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
        }
        "/endless-head" => {
            stream.write_all(ok.as_bytes()).await?;
            loop {
                stream
                    .write_all(format!("X: {}\r\n", "y".repeat(1000)).as_bytes())
                    .await?;
            }
        }
        "/big" => {
            const LENGTH: usize = 100 << 20;
            stream
                .write_all(format!("{ok}Content-Length: {LENGTH}\r\n\r\n").as_bytes())
                .await?;
            let piece = vec![b'z'; 1 << 16];
            for _ in 0..LENGTH / piece.len() {
                stream.write_all(&piece).await?;
            }
            return Ok(Then::Keep);
        }
        _ => (with_length("404 Not Found", "unknown path"), Then::Keep),
    };
    stream.write_all(text.as_bytes()).await?;
    Ok(then)
}
