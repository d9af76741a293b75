//! Connections of one lane, used again as long as their server keeps them open.
//!
//! Nobody watches the connections of a lane that is not in use, so a server that closes one is not
//! noticed at once. Before it is used again the socket itself is asked, which costs one system call;
//! otherwise the next request would go wrong and count as one that had to be repeated.

use std::io;
use std::net::TcpStream;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use super::wire::{Dialer, Origin, Wire};

/// Idle connections kept; a queue has that many requests under way at most before it makes new ones.
const IDLE_MAX: usize = 256;
/// How long a connection may be idle. Devices between us and the server forget it after minutes
/// without telling anyone.
const IDLE_TIME_MAX: Duration = Duration::from_secs(60);

/// A connection between two requests.
pub(crate) struct Connection {
    pub(crate) wire: Wire,
    pub(crate) place: Place,
}

/// What is known about a connection beside its bytes.
pub(crate) struct Place {
    origin: Origin,
    probe: TcpStream,
    idle_since: Instant,
    /// Set when nobody wants answers any more.
    pub(crate) stop: Arc<AtomicBool>,
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
    pub(crate) fn take(&self, origin: &Origin) -> Option<Connection> {
        loop {
            let connection = self.pop(origin)?;
            if connection.place.is_open() {
                return Some(connection);
            }
        }
    }

    /// A new connection.
    pub(crate) async fn dial(&self, origin: &Origin) -> io::Result<Connection> {
        let (wire, probe) = self.dialer.dial(origin, self.connect_timeout).await?;
        let stop = Arc::clone(&self.dialer.stop);
        let place = Place { origin: origin.clone(), probe, idle_since: Instant::now(), stop };
        Ok(Connection { wire, place })
    }

    /// Keeps a connection whose answer was read to its end.
    pub(crate) fn put(&self, mut connection: Connection) {
        connection.place.idle_since = Instant::now();
        let mut idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner);
        if idle.len() < IDLE_MAX {
            idle.push(connection);
        }
    }

    fn pop(&self, origin: &Origin) -> Option<Connection> {
        let mut idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner);
        let at = idle.iter().rposition(|connection| connection.place.origin == *origin)?;
        Some(idle.swap_remove(at))
    }
}

impl Place {
    /// Whether nothing came since the last answer: neither the end nor bytes nobody asked for.
    fn is_open(&self) -> bool {
        let peeked = self.probe.peek(&mut [0]);
        let silent = peeked.is_err_and(|error| error.kind() == io::ErrorKind::WouldBlock);
        silent && self.idle_since.elapsed() < IDLE_TIME_MAX
    }
}
