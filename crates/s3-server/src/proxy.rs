//! A proxy that does to chosen requests what networks and busy servers do.

use std::collections::VecDeque;
use std::io;
use std::net::SocketAddr;
use std::pin::pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use futures_util::future::select;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::runtime::{Builder, Runtime};
use tokio::sync::Notify;

/// Longest head of a request or an answer.
const HEAD_BYTES_MAX: usize = 64 << 10;

/// What happens to a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    /// The proxy answers with that status in place of the server, and with the words S3 has for it.
    Status(u16),
    /// The connection is reset before the server has seen the request.
    ResetBefore,
    /// The connection is reset after the head of the answer.
    ResetAfterHead,
    /// The connection is reset in the middle of the answer's body.
    ResetInBody,
    /// The connection ends in the middle of the answer's body, as if that were all.
    Truncate,
    /// No answer comes; the server has not seen the request.
    StallBefore,
    /// The second half of the answer's body never comes.
    StallInBody,
    /// The server did as it was asked, and the answer is lost.
    LoseAnswer,
}

impl Fault {
    /// The fault of that name.
    pub fn named(name: &str) -> Option<Fault> {
        Some(match name {
            "reset" => Fault::ResetBefore,
            "reset-after-head" => Fault::ResetAfterHead,
            "reset-in-body" => Fault::ResetInBody,
            "truncate" => Fault::Truncate,
            "stall" => Fault::StallBefore,
            "stall-in-body" => Fault::StallInBody,
            "lose-answer" => Fault::LoseAnswer,
            status => Fault::Status(status.parse().ok().filter(|s| (400..600).contains(s))?),
        })
    }
}

/// A request that came by.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Seen {
    /// `GET` and so on.
    pub method: String,
    /// Path and query as sent, still percent-encoded.
    pub target: String,
    /// The value of the header `range`.
    pub range: Option<String>,
    /// What was done to it.
    pub fault: Option<Fault>,
}

/// A running proxy, which ends when it is dropped.
#[derive(Debug)]
pub struct Proxy {
    address: SocketAddr,
    course: Arc<Mutex<Course>>,
    close: Arc<Notify>,
    _runtime: Runtime,
}

#[derive(Debug, Default)]
struct Course {
    /// What happens to the next requests.
    next: VecDeque<Option<Fault>>,
    /// What happens to every so manieth request when nothing is left in `next`.
    every: Option<(u64, Fault)>,
    /// Requests whose line begins otherwise go through and do not count.
    only: String,
    count: u64,
    seen: Vec<Seen>,
    connections: u64,
    open: usize,
}

impl Course {
    fn decide(&mut self, mut seen: Seen) -> Option<Fault> {
        if format!("{} {}", seen.method, seen.target).starts_with(&self.only) {
            self.count += 1;
            let regular = match self.every {
                Some((every, fault)) if self.count.is_multiple_of(every) => Some(fault),
                _ => None,
            };
            seen.fault = self.next.pop_front().unwrap_or(regular);
        }
        let fault = seen.fault;
        self.seen.push(seen);
        fault
    }
}

impl Proxy {
    /// Starts a proxy to `server` on a free port of the loopback.
    pub fn start(server: SocketAddr) -> io::Result<Proxy> {
        Proxy::start_at(server, 0)
    }

    /// Starts a proxy on a port of the loopback.
    pub fn start_at(server: SocketAddr, port: u16) -> io::Result<Proxy> {
        let mut builder = Builder::new_multi_thread();
        let runtime = builder.worker_threads(1).thread_name("proxy").enable_all().build()?;
        let listener = runtime.block_on(TcpListener::bind(("127.0.0.1", port)))?;
        let address = listener.local_addr()?;
        let course = Arc::new(Mutex::new(Course::default()));
        let close = Arc::new(Notify::new());
        let (shared, closing) = (Arc::clone(&course), Arc::clone(&close));
        runtime.spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                let (course, closing) = (Arc::clone(&shared), Arc::clone(&closing));
                lock(&course).connections += 1;
                lock(&course).open += 1;
                tokio::spawn(async move {
                    let relayed = pin!(relay(client, server, Arc::clone(&course)));
                    let closed = pin!(closing.notified());
                    // Broken connections are what this is for.
                    drop(select(relayed, closed).await);
                    lock(&course).open -= 1;
                });
            }
        });
        Ok(Proxy { address, course, close, _runtime: runtime })
    }

    /// `http://` and its address.
    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// What happens to the next requests, one after the other; later ones go through.
    pub fn arm(&self, faults: impl IntoIterator<Item = Option<Fault>>) {
        self.course().next = faults.into_iter().collect();
    }

    /// Lets every `nth` request have the fault, from the first one on.
    pub fn arm_every(&self, nth: u64, fault: Fault) {
        let mut course = self.course();
        (course.every, course.count) = (Some((nth.max(1), fault)), 0);
    }

    /// Lets only requests count whose line begins so, such as `PUT /bucket/key`.
    pub fn only(&self, start: &str) {
        self.course().only = start.to_owned();
    }

    /// The requests since the last call of this.
    pub fn take_seen(&self) -> Vec<Seen> {
        std::mem::take(&mut self.course().seen)
    }

    /// Closes all connections, and comes back when they are closed. Meant for those without a request.
    pub fn close_idle(&self) {
        self.close.notify_waiters();
        while self.course().open > 0 {
            std::thread::yield_now();
        }
    }

    /// Connections that clients have made.
    pub fn connections(&self) -> u64 {
        self.course().connections
    }

    fn course(&self) -> MutexGuard<'_, Course> {
        lock(&self.course)
    }
}

fn lock(course: &Mutex<Course>) -> MutexGuard<'_, Course> {
    course.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Passes requests of one client on, until one of them meets its fault.
async fn relay(
    mut client: TcpStream,
    server: SocketAddr,
    course: Arc<Mutex<Course>>,
) -> io::Result<()> {
    client.set_nodelay(true)?;
    let mut upstream = TcpStream::connect(server).await?;
    upstream.set_nodelay(true)?;
    let mut held = Vec::new();
    while let Some(head) = read_head(&mut client, &mut held).await? {
        let line = head.lines().next().unwrap_or_default();
        let mut words = line.split(' ').map(str::to_owned);
        let method = words.next().unwrap_or_default();
        let target = words.next().unwrap_or_default();
        let range = header(&head, "range").map(str::to_owned);
        let is_head = method == "HEAD";
        let fault = lock(&course).decide(Seen { method, target, range, fault: None });
        let body = read_body(&mut client, &mut held, length(&head)).await?;
        match fault {
            Some(Fault::ResetBefore) => return client.set_zero_linger(),
            Some(Fault::StallBefore) => return hold(client).await,
            Some(Fault::Status(status)) => {
                let (head, body) = refusal(status);
                client.write_all(head.as_bytes()).await?;
                if !is_head {
                    client.write_all(body.as_bytes()).await?;
                }
                continue;
            }
            _ => {}
        }
        upstream.write_all(head.as_bytes()).await?;
        upstream.write_all(&body).await?;
        let mut left = Vec::new();
        let Some(head) = read_head(&mut upstream, &mut left).await? else { return Ok(()) };
        let len = if is_head { 0 } else { length(&head) };
        let body = read_body(&mut upstream, &mut left, len).await?;
        if fault == Some(Fault::LoseAnswer) {
            return client.set_zero_linger();
        }
        client.write_all(head.as_bytes()).await?;
        let half = &body[..body.len() / 2];
        match fault {
            Some(Fault::ResetAfterHead) => return reset_when_read(client).await,
            Some(Fault::ResetInBody) => {
                client.write_all(half).await?;
                return reset_when_read(client).await;
            }
            Some(Fault::Truncate) => return client.write_all(half).await,
            Some(Fault::StallInBody) => {
                client.write_all(half).await?;
                return hold(client).await;
            }
            _ => client.write_all(&body).await?,
        }
    }
    Ok(())
}

/// Resets a connection once the other side has everything: a reset overtakes what it has not read.
async fn reset_when_read(client: TcpStream) -> io::Result<()> {
    // Nothing tells when that is; the loopback needs far less.
    tokio::time::sleep(std::time::Duration::from_millis(20)).await;
    client.set_zero_linger()
}

/// Keeps a connection open until the other side gives up.
async fn hold(mut client: TcpStream) -> io::Result<()> {
    client.read(&mut [0; 1]).await.map(drop)
}

/// The head of a message, with the empty line after it; `None` at the end of the connection.
async fn read_head(stream: &mut TcpStream, held: &mut Vec<u8>) -> io::Result<Option<String>> {
    loop {
        if let Some(at) = held.windows(4).position(|four| four == b"\r\n\r\n") {
            let rest = held.split_off(at + 4);
            let head = std::mem::replace(held, rest);
            return Ok(Some(String::from_utf8_lossy(&head).into_owned()));
        }
        if held.len() > HEAD_BYTES_MAX || stream.read_buf(held).await? == 0 {
            return Ok(None);
        }
    }
}

async fn read_body(stream: &mut TcpStream, held: &mut Vec<u8>, len: usize) -> io::Result<Vec<u8>> {
    held.reserve(len.saturating_sub(held.len()));
    while held.len() < len {
        if stream.read_buf(held).await? == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
    }
    let rest = held.split_off(len);
    Ok(std::mem::replace(held, rest))
}

fn header<'a>(head: &'a str, name: &str) -> Option<&'a str> {
    head.lines().skip(1).find_map(|line| {
        let (key, value) = line.split_once(':')?;
        key.eq_ignore_ascii_case(name).then_some(value.trim())
    })
}

/// Messages in chunks are not understood; neither our client nor the server sends any.
fn length(head: &str) -> usize {
    header(head, "content-length").and_then(|len| len.parse().ok()).unwrap_or(0)
}

/// The head and the body of an answer with this status, in S3's words.
fn refusal(status: u16) -> (String, String) {
    let code = match status {
        403 => "AccessDenied",
        429 | 503 => "SlowDown",
        _ => "InternalError",
    };
    let body = format!("<Error><Code>{code}</Code><Message>made to fail</Message></Error>");
    (format!("HTTP/1.1 {status} {code}\r\ncontent-length: {}\r\n\r\n", body.len()), body)
}
