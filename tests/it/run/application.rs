//! The application of the run tests: HTTP over the standard library alone, compiled by the tests themselves.
//!
//! It tells each request that names its client and iteration on standard output, and fails as `FAULT` in its environment
//! says: `die:N` ends after N requests, `unavailable:N` answers 503 after N, `deny` answers 401 to creates, `hang:N`
//! answers nothing after N.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

fn main() {
    let address = std::env::args().nth(1).expect("an address to listen on");
    if let (Ok(file), Ok(url)) = (std::env::var("PEEK"), std::env::var("DATABASE_URL")) {
        let mut peek = std::fs::OpenOptions::new()
            .create(true)
            .append(true)
            .open(file)
            .unwrap();
        writeln!(peek, "{url}").unwrap();
    }
    let listener = match TcpListener::bind(&address) {
        Ok(listener) => listener,
        Err(error) => {
            eprintln!("can't listen on {address}: {error}");
            std::process::exit(1);
        }
    };
    let served = Arc::new(AtomicU64::new(0));
    for stream in listener.incoming() {
        let served = served.clone();
        thread::spawn(move || serve(stream.unwrap(), &served));
    }
}

fn serve(mut stream: TcpStream, served: &AtomicU64) {
    let fault = std::env::var("FAULT").unwrap_or_default();
    let (fault, after) = fault.split_once(':').unwrap_or((&fault, "0"));
    let after: u64 = after.parse().unwrap();
    let mut reader = BufReader::new(stream.try_clone().unwrap());
    loop {
        let mut first = String::new();
        if reader.read_line(&mut first).unwrap_or(0) == 0 {
            return;
        }
        let mut length = 0;
        loop {
            let mut line = String::new();
            if reader.read_line(&mut line).unwrap_or(0) == 0 {
                return;
            }
            let line = line.trim().to_ascii_lowercase();
            if line.is_empty() {
                break;
            }
            if let Some(value) = line.strip_prefix("content-length:") {
                length = value.trim().parse().unwrap();
            }
        }
        let mut body = vec![0; length];
        if reader.read_exact(&mut body).is_err() {
            return;
        }
        let mut words = first.split(' ');
        let (method, target) = (words.next().unwrap(), words.next().unwrap());
        let (path, query) = target.split_once('?').unwrap_or((target, ""));
        let (mut status, mut answer) = match (method, path) {
            ("GET", "/healthz") => {
                let token = std::env::var("RUN_TOKEN").unwrap_or_default();
                ("200 OK", format!("{{\"run_token\":\"{token}\"}}"))
            }
            ("GET", "/items") => ("200 OK", "{\"items\":[{\"id\":1},{\"id\":2}]}".to_owned()),
            ("GET", _) if path.starts_with("/items/") => ("200 OK", "{}".to_owned()),
            ("POST", "/hold") => {
                // Eight MiB that are written to and never given back.
                std::mem::forget(vec![1u8; 8 << 20]);
                ("200 OK", "{}".to_owned())
            }
            ("POST", "/items") => ("201 Created", "{\"id\":3}".to_owned()),
            _ => ("404 Not Found", "{}".to_owned()),
        };
        if path != "/healthz" {
            println!("asked {method} {query}");
            let number = served.fetch_add(1, Ordering::Relaxed) + 1;
            match fault {
                "die" if number > after => {
                    eprintln!("my last words: out of luck");
                    std::process::exit(9);
                }
                "unavailable" if number > after => {
                    (status, answer) = ("503 Service Unavailable", "too busy".to_owned());
                }
                "hang" if number > after => thread::sleep(Duration::from_secs(600)),
                "deny" if method == "POST" => {
                    (status, answer) = ("401 Unauthorized", "who are you".to_owned());
                }
                _ => {}
            }
        }
        let text = format!(
            "HTTP/1.1 {status}\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n{answer}",
            answer.len()
        );
        if stream.write_all(text.as_bytes()).is_err() {
            return;
        }
    }
}
