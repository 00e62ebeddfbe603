//! A server that does what servers must not do, one way a path, and counts what it was asked.

mod answers;

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

/// What happens to the connection after an answer.
pub enum Then {
    Keep,
    Close,
    /// Closed after so many milliseconds without a word.
    CloseIdle(u64),
    /// RST in place of FIN.
    Reset,
    /// Held open and silent until the peer goes.
    Hold,
}

/// The server; its thread ends with the test process.
pub struct Misbehaving {
    pub address: SocketAddr,
    hits: Arc<Mutex<BTreeMap<String, u64>>>,
}

impl Misbehaving {
    pub fn start() -> Self {
        let (tell, told) = std::sync::mpsc::channel();
        let hits = Arc::new(Mutex::new(BTreeMap::new()));
        let counted = hits.clone();
        std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread()
                .enable_all()
                .build()
                .unwrap();
            runtime.block_on(async move {
                let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
                tell.send(listener.local_addr().unwrap()).unwrap();
                loop {
                    let (stream, _) = listener.accept().await.unwrap();
                    tokio::spawn(serve(stream, counted.clone()));
                }
            });
        });
        let address = told.recv().unwrap();
        Misbehaving { address, hits }
    }

    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Requests whose path (without query) this is.
    pub fn hits(&self, path: &str) -> u64 {
        let hits = self.hits.lock().unwrap();
        hits.get(path).copied().unwrap_or(0)
    }

    /// Requests in all.
    pub fn all_hits(&self) -> u64 {
        self.hits.lock().unwrap().values().sum()
    }
}

/// A request as far as the server looks at it.
pub struct Request {
    pub method: String,
    pub path: String,
    pub query: String,
    pub head: String,
    pub body: Vec<u8>,
}

async fn read_request(stream: &mut TcpStream, buffer: &mut Vec<u8>) -> Option<Request> {
    let end = loop {
        if let Some(at) = buffer.windows(4).position(|w| w == b"\r\n\r\n") {
            break at + 4;
        }
        if stream.read_buf(buffer).await.ok()? == 0 {
            return None;
        }
    };
    let head = String::from_utf8(buffer.drain(..end).collect()).ok()?;
    let length = head
        .lines()
        .filter_map(|line| line.split_once(':'))
        .find(|(name, _)| name.eq_ignore_ascii_case("content-length"))
        .map_or(0, |(_, value)| value.trim().parse().unwrap());
    while buffer.len() < length {
        if stream.read_buf(buffer).await.ok()? == 0 {
            return None;
        }
    }
    let mut first = head.split(' ');
    let method = first.next()?.to_owned();
    let target = first.next()?;
    let (path, query) = target.split_once('?').unwrap_or((target, ""));
    Some(Request {
        method,
        path: path.to_owned(),
        query: query.to_owned(),
        body: buffer.drain(..length).collect(),
        head: head.clone(),
    })
}

async fn serve(mut stream: TcpStream, hits: Arc<Mutex<BTreeMap<String, u64>>>) {
    let mut buffer = Vec::new();
    stream.set_nodelay(true).unwrap();
    while let Some(request) = read_request(&mut stream, &mut buffer).await {
        *hits
            .lock()
            .unwrap()
            .entry(request.path.clone())
            .or_default() += 1;
        let Ok(then) = answers::answer(&request, &mut stream).await else {
            return;
        };
        match then {
            Then::Keep => {}
            Then::Close => {
                let _ = stream.shutdown().await;
                return;
            }
            Then::CloseIdle(ms) => {
                let idle = std::time::Duration::from_millis(ms);
                let mut byte = [0; 1];
                match tokio::time::timeout(idle, stream.peek(&mut byte)).await {
                    Ok(_) => {}
                    Err(_) => return,
                }
            }
            Then::Reset => {
                // Let what was said arrive before the connection is torn down.
                tokio::time::sleep(std::time::Duration::from_millis(30)).await;
                let zero = Some(std::time::Duration::ZERO);
                rustix::net::sockopt::set_socket_linger(&stream, zero).unwrap();
                return;
            }
            Then::Hold => {
                let mut sink = [0; 1024];
                while stream.read(&mut sink).await.is_ok_and(|read| read > 0) {}
                return;
            }
        }
    }
}
