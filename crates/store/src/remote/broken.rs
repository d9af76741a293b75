//! How an attempt ends that gets no whole answer, and the clock that ends one on which nothing moves.

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;

use object_store::client::{HttpError, HttpErrorKind};
use tokio::time::{Instant, Sleep};

use super::fault::{Failure, RemoteFault, innermost, one_line};

/// What can go wrong with an attempt before an answer is complete.
pub(crate) enum Broken {
    /// Before anything was sent.
    Before(Box<dyn std::error::Error + Send + Sync>),
    Connect(std::io::Error),
    Request(hyper::Error),
    /// Between the head of an answer and the last byte of its body.
    Body(std::io::Error),
    Stalled(Duration),
}

impl Broken {
    pub(crate) fn failure(&self) -> Failure {
        let (fault, message) = match self {
            Broken::Before(error) => (RemoteFault::Protocol, error.to_string()),
            Broken::Connect(error) => (RemoteFault::Unreachable, error.to_string()),
            Broken::Request(error) => (RemoteFault::Broken, innermost(error)),
            Broken::Body(error) => (RemoteFault::Broken, error.to_string()),
            Broken::Stalled(limit) => (RemoteFault::Stalled, format!("no byte for {limit:?}")),
        };
        Failure { fault, message: one_line(&message) }
    }

    /// As `object_store` wants to know it, to decide about another attempt. All requests sent here
    /// may be repeated, which is what `Request` says.
    pub(crate) fn into_http(self) -> HttpError {
        match self {
            Broken::Before(error) => HttpError::new_boxed(HttpErrorKind::Unknown, error),
            Broken::Connect(error) => HttpError::new(HttpErrorKind::Connect, error),
            Broken::Request(error) => HttpError::new(HttpErrorKind::Request, error),
            Broken::Body(error) => HttpError::new(HttpErrorKind::Request, error),
            Broken::Stalled(_) => {
                let error = std::io::Error::from(std::io::ErrorKind::TimedOut);
                HttpError::new(HttpErrorKind::Request, error)
            }
        }
    }
}

/// Nothing moved for too long.
pub(crate) struct Stalled;

/// How often somebody who waits looks whether the answer is still wanted.
const TICK: Duration = Duration::from_millis(100);

/// Sees to it that something moves, and is wanted. Counts from the first time it is polled until
/// [`Stall::rest`].
pub(crate) struct Stall {
    pub(crate) limit: Duration,
    moved: Arc<AtomicU64>,
    stop: Arc<AtomicBool>,
    since: Instant,
    seen: u64,
    timer: Option<Pin<Box<Sleep>>>,
    waiting: bool,
}

impl Stall {
    pub(crate) fn new(limit: Duration, moved: Arc<AtomicU64>, stop: Arc<AtomicBool>) -> Stall {
        Stall { limit, moved, stop, since: Instant::now(), seen: 0, timer: None, waiting: false }
    }

    /// What was waited for has come.
    pub(crate) fn rest(&mut self) {
        self.waiting = false;
    }

    pub(crate) fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Stalled> {
        let tick = self.limit.min(TICK);
        loop {
            let timer = self.timer.get_or_insert_with(|| Box::pin(tokio::time::sleep(tick)));
            if !self.waiting {
                timer.as_mut().reset(Instant::now() + tick);
                self.waiting = true;
                self.since = Instant::now();
                self.seen = self.moved.load(Ordering::Relaxed);
            }
            if timer.as_mut().poll(cx).is_pending() {
                return Poll::Pending;
            }
            let stands_still = self.moved.load(Ordering::Relaxed) == self.seen;
            if self.stop.load(Ordering::Relaxed)
                || (stands_still && self.since.elapsed() >= self.limit)
            {
                return Poll::Ready(Stalled);
            }
            timer.as_mut().reset(Instant::now() + tick);
            self.waiting = stands_still;
        }
    }
}
