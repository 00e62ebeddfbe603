//! The service as a process, and requests to it.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde_json::Value;

pub struct Service {
    process: Child,
    pub address: SocketAddr,
    log: Arc<Mutex<String>>,
}

/// An answer: status, head, body.
#[derive(Debug)]
pub struct Answer {
    pub status: u16,
    pub head: String,
    pub body: Value,
}

impl Service {
    pub fn start(database: &str, arguments: &[&str]) -> Self {
        let mut process = Command::new(env!("CARGO_BIN_EXE_invoicing"))
            .args(["--listen", "127.0.0.1:0", "--image", "100KiB"])
            .args(arguments)
            .env("DATABASE_URL", database)
            .env("RUN_TOKEN", "a word")
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(process.stderr.take().unwrap()).lines();
        let mut first = String::new();
        let address = lines.by_ref().map_while(Result::ok).find_map(|line| {
            first.push_str(&line);
            let address = line
                .split_once("listening on ")?
                .1
                .split_once(',')?
                .0
                .parse();
            address.ok()
        });
        let log = Arc::new(Mutex::new(String::new()));
        let copy = Arc::clone(&log);
        std::thread::spawn(move || {
            for line in lines.map_while(Result::ok) {
                let mut log = copy.lock().unwrap();
                log.push_str(&line);
                log.push('\n');
            }
        });
        let address = address.unwrap_or_else(|| panic!("the service did not start: {first}"));
        Self {
            process,
            address,
            log,
        }
    }

    pub fn get(&self, path: &str) -> Answer {
        self.send(&format!(
            "GET {path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"
        ))
    }

    pub fn post(&self, path: &str, body: &str) -> Answer {
        self.send(&format!(
            "POST {path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Length: {}\r\n\r\n{body}",
            body.len()
        ))
    }

    fn send(&self, request: &str) -> Answer {
        let mut stream = TcpStream::connect(self.address).unwrap();
        stream
            .set_read_timeout(Some(Duration::from_secs(30)))
            .unwrap();
        stream.write_all(request.as_bytes()).unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        let (head, body) = answer.split_once("\r\n\r\n").unwrap();
        Answer {
            status: head.split(' ').nth(1).unwrap().parse().unwrap(),
            head: head.to_lowercase(),
            body: serde_json::from_str(body).unwrap(),
        }
    }

    /// What the service has logged since it listens.
    pub fn log(&self) -> String {
        self.log.lock().unwrap().clone()
    }

    pub fn terminate(&mut self) -> ExitStatus {
        let process = rustix::process::Pid::from_child(&self.process);
        rustix::process::kill_process(process, rustix::process::Signal::TERM).unwrap();
        self.process.wait().unwrap()
    }
}

impl Drop for Service {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}
