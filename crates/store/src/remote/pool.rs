//! Connections of one lane, used again as long as their server keeps them open.
//!
//! The connections of an idle lane are not watched, so a server that closes one is not
//! noticed at once. Before it is used again the socket itself is asked, which costs one system call;
//! otherwise the next request would go wrong and count as one that had to be repeated.

use std::io;
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, ready};
use std::time::{Duration, Instant};

use bytes::{BufMut, BytesMut};
use tokio::io::{AsyncRead, AsyncReadExt, ReadBuf};

use super::broken::{Broken, Stall};
use super::socket::{Dialer, Origin, Socket};
use crate::lock::lock;

/// Idle connections kept; a queue has that many requests under way at most before it makes new ones.
const IDLE_MAX: usize = 256;
/// How long a connection may be idle. Devices between us and the server forget it after minutes
/// without telling anyone.
const IDLE_TIME_MAX: Duration = Duration::from_secs(60);

/// A connection, with what serves one request after the other.
pub(crate) struct Connection {
    pub(crate) wire: Socket,
    /// Bytes read but not taken yet.
    pub(crate) read: BytesMut,
    stall: Stall,
    origin: Origin,
    idle_since: Instant,
}

/// How long to wait before giving up.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Timeouts {
    /// For a connection to be established.
    pub(crate) connect: Duration,
    /// For the next byte, in either direction.
    pub(crate) stall: Duration,
}

/// Idle connections, kept for reuse by later requests.
pub(crate) struct Pool {
    dialer: Arc<Dialer>,
    timeouts: Timeouts,
    idle: Mutex<Vec<Connection>>,
}

impl std::fmt::Debug for Pool {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Pool").finish_non_exhaustive()
    }
}

impl Pool {
    pub(crate) fn new(dialer: Arc<Dialer>, timeouts: Timeouts) -> Pool {
        Pool { dialer, timeouts, idle: Mutex::default() }
    }

    /// An idle connection that its server has not closed, the one used last first.
    pub(crate) fn take(&self, uri: &http::Uri) -> Option<Connection> {
        loop {
            let connection = self.pop(uri)?;
            if connection.is_open() {
                return Some(connection);
            }
        }
    }

    /// Opens a new connection.
    pub(crate) async fn dial(&self, origin: Origin) -> io::Result<Connection> {
        let wire = self.dialer.dial(&origin, self.timeouts.connect).await?;
        let stall = Stall::new(self.timeouts.stall, Arc::clone(&self.dialer.stop));
        let (read, idle_since) = (BytesMut::new(), Instant::now());
        Ok(Connection { wire, read, stall, origin, idle_since })
    }

    /// Keeps a connection whose answer was read to its end.
    pub(crate) fn put(&self, mut connection: Connection) {
        connection.idle_since = Instant::now();
        let mut idle = lock(&self.idle);
        if idle.len() < IDLE_MAX {
            idle.push(connection);
        }
    }

    /// Whether a connection was given back.
    #[cfg(test)]
    pub(crate) fn keeps_any(&self) -> bool {
        !lock(&self.idle).is_empty()
    }

    fn pop(&self, uri: &http::Uri) -> Option<Connection> {
        let mut idle = lock(&self.idle);
        let at = idle.iter().rposition(|connection| connection.origin.serves(uri))?;
        Some(idle.swap_remove(at))
    }
}

impl Connection {
    /// Whether nothing came since the last answer: neither its end nor unexpected bytes.
    fn is_open(&self) -> bool {
        self.wire.is_silent() && self.idle_since.elapsed() < IDLE_TIME_MAX
    }

    /// Reads at most `most` more bytes into the buffer. None means that the server has closed.
    pub(crate) fn poll_more(
        &mut self,
        cx: &mut Context<'_>,
        most: usize,
    ) -> Poll<Result<usize, Broken>> {
        self.read.reserve(most);
        let mut space = (&mut self.read).limit(most);
        let read = std::pin::pin!(self.wire.read_buf(&mut space)).poll(cx);
        self.watch(cx, read)
    }

    /// Reads into memory of the caller's. None means that the server has closed.
    pub(crate) fn poll_into(
        &mut self,
        cx: &mut Context<'_>,
        buf: &mut [u8],
    ) -> Poll<Result<usize, Broken>> {
        let mut space = ReadBuf::new(buf);
        let read = Pin::new(&mut self.wire).poll_read(cx, &mut space);
        let count = space.filled().len();
        self.watch(cx, read.map_ok(|()| count))
    }

    /// Sees to it that a wait has an end.
    fn watch(
        &mut self,
        cx: &mut Context<'_>,
        read: Poll<io::Result<usize>>,
    ) -> Poll<Result<usize, Broken>> {
        let Poll::Ready(read) = read else {
            ready!(self.stall.poll(cx, self.wire.moved()));
            self.stall.rest();
            return Poll::Ready(Err(Broken::Stalled(self.stall.limit)));
        };
        self.stall.rest();
        Poll::Ready(read.map_err(Broken::Wire))
    }
}
