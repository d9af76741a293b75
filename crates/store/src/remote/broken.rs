//! How an attempt ends that gets no whole answer, and the clock that ends one on which nothing moves.

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;

use object_store::client::{HttpError, HttpErrorKind};
use tokio::time::{Instant, Sleep};

use super::failure::{Failure, innermost, one_line};
use crate::RemoteFault;

/// What can go wrong with an attempt before an answer is complete.
pub(crate) enum Broken {
    /// Before anything was sent.
    Before(Box<dyn std::error::Error + Send + Sync>),
    /// There is nothing to sign the request with.
    Unsigned(object_store::Error),
    Connect(std::io::Error),
    /// Between the first byte of the request and the last one of the answer.
    Wire(std::io::Error),
    Stalled(Duration),
}

impl Broken {
    pub(crate) fn failure(&self) -> Failure {
        let (fault, message) = match self {
            Broken::Before(error) => (RemoteFault::Protocol, error.to_string()),
            Broken::Unsigned(error) => (RemoteFault::NoCredentials, innermost(error)),
            Broken::Connect(error) => (RemoteFault::Unreachable, error.to_string()),
            Broken::Wire(error) => (RemoteFault::Broken, error.to_string()),
            Broken::Stalled(limit) => (RemoteFault::Stalled, format!("no byte for {limit:?}")),
        };
        Failure { fault, message: one_line(&message) }
    }

    /// As `object_store` wants to know it, to decide about another attempt. All requests sent here
    /// may be repeated, which is what `Request` says.
    pub(crate) fn into_http(self) -> HttpError {
        match self {
            Broken::Before(error) => HttpError::new_boxed(HttpErrorKind::Unknown, error),
            Broken::Unsigned(error) => HttpError::new(HttpErrorKind::Unknown, error),
            Broken::Connect(error) => HttpError::new(HttpErrorKind::Connect, error),
            Broken::Wire(error) => HttpError::new(HttpErrorKind::Request, error),
            Broken::Stalled(_) => {
                let error = std::io::Error::from(std::io::ErrorKind::TimedOut);
                HttpError::new(HttpErrorKind::Request, error)
            }
        }
    }
}

/// Nothing moved for too long.
pub(crate) struct Stalled;

/// How often a waiting caller checks whether the answer is still needed.
const TICK: Duration = Duration::from_millis(100);

/// Checks that bytes move and that the answer is still needed. Counts from the first time it is polled until
/// [`Stall::rest`], or until bytes have moved.
///
/// Its timer stays from one wait to the next and runs out when it runs out: to set it for each wait
/// would cost more than the few times it wakes a caller for nothing.
pub(crate) struct Stall {
    pub(crate) limit: Duration,
    stop: Arc<AtomicBool>,
    since: Instant,
    seen: u64,
    timer: Option<Pin<Box<Sleep>>>,
    waiting: bool,
}

impl Stall {
    pub(crate) fn new(limit: Duration, stop: Arc<AtomicBool>) -> Stall {
        Stall { limit, stop, since: Instant::now(), seen: 0, timer: None, waiting: false }
    }

    /// What was waited for has come.
    pub(crate) fn rest(&mut self) {
        self.waiting = false;
    }

    /// `moved` grows with everything that moves.
    pub(crate) fn poll(&mut self, cx: &mut Context<'_>, moved: u64) -> Poll<Stalled> {
        if !self.waiting || moved != self.seen {
            (self.waiting, self.seen, self.since) = (true, moved, Instant::now());
        }
        let tick = self.limit.min(TICK);
        loop {
            let timer = self.timer.get_or_insert_with(|| Box::pin(tokio::time::sleep(tick)));
            if timer.as_mut().poll(cx).is_pending() {
                return Poll::Pending;
            }
            let now = Instant::now();
            let left = self.limit.saturating_sub(now - self.since);
            if self.stop.load(Ordering::Relaxed) || left.is_zero() {
                return Poll::Ready(Stalled);
            }
            timer.as_mut().reset(now + left.min(TICK));
        }
    }
}
