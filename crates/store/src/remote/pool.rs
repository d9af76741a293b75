//! Connections of one lane, used again as long as their server keeps them open.
//!
//! Nobody drives the connections of a lane that is not in use, so a server that closes one is not
//! noticed at once. Before it is used again the socket itself is asked, which costs one system call;
//! otherwise the next request would go wrong and count as one that had to be repeated.

use std::io;
use std::net::TcpStream;
use std::sync::atomic::AtomicU64;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use hyper::client::conn::http1::{self, SendRequest};
use hyper_util::rt::TokioIo;
use object_store::client::HttpRequestBody;

use super::wire::{Dialer, Origin};

/// Idle connections kept; a queue has that many requests under way at most before it makes new ones.
const IDLE_MAX: usize = 256;
/// How long a connection may be idle. Devices between us and the server forget it after minutes
/// without telling anyone.
const IDLE_TIME_MAX: Duration = Duration::from_secs(60);
/// Most that is read from a socket at once. Measured on objects of 16 MiB, one thread, a busy machine:
/// 64 KiB cost 0.34 CPU-s/GiB, 256 KiB 0.25, this 0.20, and twice as much 0.21.
const READ_BUFFER_BYTES: usize = 512 << 10;

/// A connection that no request uses.
pub(crate) struct Connection {
    pub(crate) sender: SendRequest<HttpRequestBody>,
    pub(crate) moved: Arc<AtomicU64>,
    origin: Origin,
    probe: TcpStream,
    idle_since: Instant,
}

/// The idle connections.
pub(crate) struct Pool {
    dialer: Arc<Dialer>,
    connect_timeout: Duration,
    idle: Mutex<Vec<Connection>>,
}

impl std::fmt::Debug for Pool {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Pool").finish_non_exhaustive()
    }
}

impl Pool {
    pub(crate) fn new(dialer: Arc<Dialer>, connect_timeout: Duration) -> Pool {
        Pool { dialer, connect_timeout, idle: Mutex::default() }
    }

    /// An idle connection that its server has not closed, the one used last first.
    pub(crate) async fn take(&self, origin: &Origin) -> Option<Connection> {
        loop {
            let mut connection = self.pop(origin)?;
            if connection.is_open() && connection.sender.ready().await.is_ok() {
                return Some(connection);
            }
        }
    }

    /// A new connection.
    pub(crate) async fn dial(&self, origin: &Origin) -> io::Result<Connection> {
        let (wire, probe) = self.dialer.dial(origin, self.connect_timeout).await?;
        let moved = wire.moved();
        let shaken = http1::Builder::new()
            .read_buf_exact_size(Some(READ_BUFFER_BYTES))
            .handshake(TokioIo::new(wire))
            .await;
        let (sender, driver) = shaken.map_err(io::Error::other)?;
        // Errors reach the request under way; there is nobody else to tell.
        tokio::spawn(async move { drop(driver.await) });
        let idle_since = Instant::now();
        Ok(Connection { sender, moved, origin: origin.clone(), probe, idle_since })
    }

    /// Keeps a connection whose answer was read to its end.
    pub(crate) fn put(&self, mut connection: Connection) {
        connection.idle_since = Instant::now();
        let mut idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner);
        if idle.len() < IDLE_MAX {
            idle.push(connection);
        }
    }

    fn pop(&self, origin: &Origin) -> Option<Connection> {
        let mut idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner);
        let at = idle.iter().rposition(|connection| connection.origin == *origin)?;
        Some(idle.swap_remove(at))
    }
}

impl Connection {
    /// Whether nothing came since the last answer: neither the end nor bytes nobody asked for.
    fn is_open(&self) -> bool {
        let peeked = self.probe.peek(&mut [0]);
        let silent = peeked.is_err_and(|error| error.kind() == io::ErrorKind::WouldBlock);
        silent && self.idle_since.elapsed() < IDLE_TIME_MAX && !self.sender.is_closed()
    }
}
