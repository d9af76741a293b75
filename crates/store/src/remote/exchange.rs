//! One request and its answer on a connection.
//!
//! hyper speaks the protocol, and whoever waits for the answer drives it: there is no task beside the
//! caller. It gets the connection for one exchange only. That costs no traffic and little time, and it
//! is what allows to take the socket back from it behind the head of an answer.

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use bytes::Bytes;
use hyper::body::{Body, Frame, Incoming, SizeHint};
use hyper::client::conn::http1::{self, SendRequest};
use hyper_util::rt::TokioIo;
use object_store::client::{HttpError, HttpRequest, HttpRequestBody};

use super::attempts::Attempts;
use super::broken::{Broken, Stall, Stalled};
use super::pool::{Connection, Place, Pool};
use super::wire::Wire;

/// Most that hyper reads from a socket at once where the bytes of an object go through its buffer.
/// Measured on objects of 16 MiB, one thread, a busy machine: 64 KiB cost 0.34 CPU-s/GiB, 256 KiB 0.25,
/// this 0.20, and twice as much 0.21.
const READ_BUFFER_BYTES: usize = 512 << 10;

/// How much hyper reads at once.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Reads {
    /// Little: the answer is small, or its body is not for hyper to read.
    Short,
    /// Much: it is the bytes of an object.
    Long,
}

/// A connection with a request on it.
pub(crate) struct Exchange {
    sender: SendRequest<HttpRequestBody>,
    driver: http1::Connection<TokioIo<Wire>, HttpRequestBody>,
    moved: Arc<AtomicU64>,
    place: Place,
    /// The server closed the connection or wants it closed, or it broke.
    ended: bool,
}

/// Why there is no answer.
pub(crate) enum Unanswered {
    /// Nothing was sent, and here is the request again.
    Unsent(Box<HttpRequest>, hyper::Error),
    Broken(Broken),
}

impl Exchange {
    pub(crate) async fn over(connection: Connection, reads: Reads) -> Result<Exchange, Broken> {
        let Connection { wire, place } = connection;
        let moved = wire.moved();
        let mut builder = http1::Builder::new();
        if reads == Reads::Long {
            builder.read_buf_exact_size(Some(READ_BUFFER_BYTES));
        }
        let shaken = builder.handshake(TokioIo::new(wire)).await;
        let (sender, driver) = shaken.map_err(Broken::Request)?;
        Ok(Exchange { sender, driver, moved, place, ended: false })
    }

    pub(crate) fn stall(&self, limit: Duration) -> Stall {
        Stall::new(limit, Arc::clone(&self.moved), Arc::clone(&self.place.stop))
    }

    /// Sends the request and waits for the head of its answer.
    pub(crate) async fn ask(
        mut self,
        request: HttpRequest,
        stall_timeout: Duration,
    ) -> Result<(http::Response<Incoming>, Exchange), Unanswered> {
        let mut stall = self.stall(stall_timeout);
        let mut sent = std::pin::pin!(self.sender.try_send_request(request));
        let mut exchange = Some(self);
        let answer = std::future::poll_fn(|cx| {
            let ended = exchange.as_mut().is_none_or(|exchange| exchange.drive(cx));
            if let Poll::Ready(answer) = sent.as_mut().poll(cx) {
                return Poll::Ready(Ok(answer));
            }
            if ended {
                // What hyper still holds it returns when it is dropped.
                exchange = None;
                return sent.as_mut().poll(cx).map(Ok);
            }
            stall.poll(cx).map(Err)
        });
        let answer = answer.await;
        let mut error = match (answer, exchange) {
            (Ok(Ok(response)), Some(exchange)) => return Ok((response, exchange)),
            (Ok(Err(error)), _) => error,
            _ => return Err(Unanswered::Broken(Broken::Stalled(stall_timeout))),
        };
        Err(match error.take_message() {
            Some(request) => Unanswered::Unsent(Box::new(request), error.into_error()),
            None => Unanswered::Broken(Broken::Request(error.into_error())),
        })
    }

    /// Goes on as far as possible; whether there is nothing left to do, ever.
    fn drive(&mut self, cx: &mut Context<'_>) -> bool {
        // Errors reach the request or the body; there is nobody else to tell.
        self.ended = self.ended || self.driver.poll_without_shutdown(cx).is_ready();
        self.ended
    }

    /// The connection behind an answer that was read to its end, if it can be used again.
    fn finish(mut self) -> Option<Connection> {
        let ended = self.drive(&mut Context::from_waker(Waker::noop()));
        // It cannot while a request still goes on behind its answer.
        let is_usable = !ended && self.sender.is_ready();
        let (connection, read) = self.take_back();
        (is_usable && read.is_empty()).then_some(connection)
    }

    /// The connection as it is, and what hyper has read from it and not used.
    pub(crate) fn take_back(self) -> (Connection, Bytes) {
        let parts = self.driver.into_parts();
        (Connection { wire: parts.io.into_inner(), place: self.place }, parts.read_buf)
    }
}

/// The body of an answer, which gives its connection back at the end.
pub(crate) struct WatchedBody {
    body: Incoming,
    lease: Option<(Exchange, Arc<Pool>)>,
    stall: Stall,
    pub(crate) attempts: Option<Arc<Attempts>>,
}

impl WatchedBody {
    pub(crate) fn new(
        body: Incoming,
        exchange: Exchange,
        pool: Arc<Pool>,
        stall_timeout: Duration,
    ) -> WatchedBody {
        let stall = exchange.stall(stall_timeout);
        let mut body = WatchedBody { body, lease: Some((exchange, pool)), stall, attempts: None };
        if body.body.is_end_stream() {
            body.finish();
        }
        body
    }

    fn finish(&mut self) {
        if let Some((exchange, pool)) = self.lease.take()
            && let Some(connection) = exchange.finish()
        {
            pool.put(connection);
        }
    }

    pub(crate) fn poll_frame_plainly(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Broken>>> {
        if let Some((exchange, _)) = &mut self.lease {
            exchange.drive(cx);
        }
        let broken = match Pin::new(&mut self.body).poll_frame(cx) {
            Poll::Pending => match self.stall.poll(cx) {
                Poll::Pending => return Poll::Pending,
                Poll::Ready(Stalled) => Broken::Stalled(self.stall.limit),
            },
            Poll::Ready(Some(Err(error))) => Broken::Request(error),
            Poll::Ready(Some(Ok(frame))) => {
                self.stall.rest();
                // Readers that know how long a body is do not ask behind its last byte.
                if self.body.is_end_stream() {
                    self.finish();
                }
                return Poll::Ready(Some(Ok(frame)));
            }
            Poll::Ready(None) => {
                self.finish();
                return Poll::Ready(None);
            }
        };
        self.lease = None;
        if let Some(attempts) = &self.attempts {
            attempts.fail(broken.failure());
        }
        Poll::Ready(Some(Err(broken)))
    }
}

impl Body for WatchedBody {
    type Data = Bytes;
    type Error = HttpError;

    fn poll_frame(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, HttpError>>> {
        self.poll_frame_plainly(cx).map(|frame| Some(frame?.map_err(Broken::into_http)))
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
