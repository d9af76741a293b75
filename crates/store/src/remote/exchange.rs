//! One request and its answer on a connection.
//!
//! The caller that waits for the answer drives it: there is no separate task. All that is set up for
//! a connection (its buffer, its timer) stays with it from one request to the next, and the socket can
//! be read directly after the head of an answer. No HTTP library offers both: hyper had to be set
//! up again for each request so that the socket could be taken back from it, which made 25,000
//! instructions per request of what are 12,000 here.

use std::io::{self, IoSlice};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use bytes::{Buf, Bytes, BytesMut};
use http_body::{Body, Frame, SizeHint};
use object_store::client::{HttpError, HttpRequest, HttpRequestBody};
use tokio::io::AsyncWrite;

use super::attempts::Attempts;
use super::broken::Broken;
use super::message::{self, Chunks, Framing, Head};
use super::pool::{Connection, Pool};

/// Most that is read at once together with the head of an answer, and of small answers. What it has
/// of a body is copied once more.
const SHORT_BYTES: usize = 4 << 10;
/// Most that is read at once where the bytes of an object go through our buffer. Measured on objects
/// of 16 MiB, one thread, a busy machine: 64 KiB cost 0.34 CPU-s/GiB, 256 KiB 0.25, this 0.20, and
/// twice as much 0.21.
const LONG_BYTES: usize = 512 << 10;
/// Most that is read at once of an answer that is kept whole, after its head.
const WHOLE_BYTES: usize = 64 << 10;

/// How much is read at once.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Reads {
    /// Little: the answer is small, or its body is read from the socket by someone else.
    Short,
    /// Much: it is the bytes of an object.
    Long,
}

/// Why there is no answer.
pub(crate) enum Unanswered {
    /// No byte of the request was sent.
    Unsent(io::Error),
    Broken(Broken),
}

/// A request on its way out.
struct Sending {
    head: Bytes,
    body: HttpRequestBody,
    chunk: Bytes,
    sent: bool,
    flushed: bool,
}

impl Sending {
    fn new(request: &HttpRequest) -> Sending {
        let mut head = Vec::with_capacity(1 << 10);
        message::write_head(request, &mut head);
        let (body, chunk) = (request.body().clone(), Bytes::new());
        Sending { head: head.into(), body, chunk, sent: false, flushed: false }
    }

    /// Sends as much as possible; ready when all of it is on the wire.
    fn poll(&mut self, connection: &mut Connection, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let mut wire = Pin::new(&mut connection.wire);
        while !self.flushed {
            while self.chunk.is_empty()
                && let Poll::Ready(Some(Ok(frame))) = Pin::new(&mut self.body).poll_frame(cx)
            {
                self.chunk = frame.into_data().unwrap_or_default();
            }
            if self.head.is_empty() && self.chunk.is_empty() {
                ready!(wire.as_mut().poll_flush(cx))?;
                self.flushed = true;
                break;
            }
            let parts = [IoSlice::new(&self.head), IoSlice::new(&self.chunk)];
            let written = match self.chunk.is_empty() {
                true => wire.as_mut().poll_write(cx, &self.head),
                false => wire.as_mut().poll_write_vectored(cx, &parts),
            };
            let written = ready!(written)?;
            if written == 0 {
                return Poll::Ready(Err(io::ErrorKind::WriteZero.into()));
            }
            self.sent = true;
            let of_head = written.min(self.head.len());
            self.head.advance(of_head);
            self.chunk.advance(written - of_head);
        }
        Poll::Ready(Ok(()))
    }
}

/// Sends the request and waits for the head of its answer. What came after it is in the
/// connection's buffer.
pub(crate) async fn ask(
    mut connection: Connection,
    request: &HttpRequest,
    reads: Reads,
) -> Result<(Head, Connection), Unanswered> {
    let mut sending = Sending::new(request);
    let most = if reads == Reads::Long { LONG_BYTES } else { SHORT_BYTES };
    let mut unsent = None;
    let asked = std::future::poll_fn(|cx| {
        if unsent.is_none() && !sending.flushed {
            match sending.poll(&mut connection, cx) {
                Poll::Ready(Err(error)) if !sending.sent => {
                    return Poll::Ready(Err(Unanswered::Unsent(error)));
                }
                // A server that refuses a body closes after its answer, which may have come.
                Poll::Ready(Err(error)) => unsent = Some(error),
                Poll::Ready(Ok(())) | Poll::Pending => {}
            }
        }
        loop {
            let read = match ready!(connection.poll_more(cx, most)) {
                Ok(0) => Err(Broken::Wire(ended())),
                Ok(_) => {
                    message::take_head(&mut connection.read, request.method()).map_err(Broken::Wire)
                }
                Err(broken) => Err(broken),
            };
            match read {
                Ok(None) => {}
                Ok(Some(head)) => return Poll::Ready(Ok(head)),
                Err(broken) => {
                    let broken = unsent.take().map_or(broken, Broken::Wire);
                    return Poll::Ready(Err(Unanswered::Broken(broken)));
                }
            }
        }
    });
    let mut head = asked.await?;
    // The rest of the request is not sent any more, so nothing can follow it.
    head.keeps_open &= sending.flushed;
    Ok((head, connection))
}

/// The error of an answer that is cut off.
fn ended() -> io::Error {
    io::Error::new(io::ErrorKind::UnexpectedEof, "the answer ends before its last byte")
}

/// The body of an answer, which gives its connection back at the end.
pub(crate) struct WatchedBody {
    place: At,
    lease: Option<(Connection, Arc<Pool>)>,
    keeps_open: bool,
    most: usize,
    /// Whether chunks of the connection's buffer were handed on.
    shares_buffer: bool,
    pub(crate) attempts: Option<Arc<Attempts>>,
}

/// Where a body is being read.
enum At {
    Counted(u64),
    Chunked(Chunks),
    UntilClose,
    End,
}

impl WatchedBody {
    pub(crate) fn new(
        head: &Head,
        connection: Connection,
        pool: Arc<Pool>,
        reads: Reads,
    ) -> WatchedBody {
        let place = match head.framing {
            Framing::Exact(len) => At::Counted(len),
            Framing::Chunked => At::Chunked(Chunks::Size),
            Framing::UntilClose => At::UntilClose,
        };
        let most = if reads == Reads::Long { LONG_BYTES } else { WHOLE_BYTES };
        let (lease, keeps_open) = (Some((connection, pool)), head.keeps_open);
        let mut body =
            WatchedBody { place, lease, keeps_open, most, shares_buffer: false, attempts: None };
        body.finish_at_end();
        body
    }

    fn finish_at_end(&mut self) {
        if matches!(self.place, At::Counted(0) | At::Chunked(Chunks::End)) {
            self.place = At::End;
        }
        if matches!(self.place, At::End)
            && let Some((mut connection, pool)) = self.lease.take()
            && self.keeps_open
            && connection.read.is_empty()
        {
            if self.shares_buffer {
                // Chunks of it may be in use, and it may be large.
                connection.read = BytesMut::new();
            }
            pool.put(connection);
        }
    }

    /// What was read and not handed on.
    fn take_read(&mut self) -> io::Result<Option<Bytes>> {
        let Some((connection, _)) = &mut self.lease else { return Ok(None) };
        let read = &mut connection.read;
        self.shares_buffer = true;
        match &mut self.place {
            At::Chunked(chunks) => return chunks.next(read),
            At::Counted(_) | At::UntilClose if read.is_empty() => {}
            At::Counted(left) => {
                let count = (*left).min(read.len() as u64);
                *left -= count;
                return Ok(Some(read.split_to(count as usize).freeze()));
            }
            At::UntilClose => return Ok(Some(read.split().freeze())),
            At::End => {}
        }
        Ok(None)
    }

    fn poll_data(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Bytes, Broken>>> {
        loop {
            let data = self.take_read();
            self.finish_at_end();
            match data {
                Ok(Some(data)) => return Poll::Ready(Some(Ok(data))),
                Ok(None) => {}
                Err(error) => return Poll::Ready(Some(Err(Broken::Wire(error)))),
            }
            let Some((connection, _)) = &mut self.lease else { return Poll::Ready(None) };
            match ready!(connection.poll_more(cx, self.most)) {
                Ok(0) if matches!(self.place, At::UntilClose) => self.place = At::End,
                Ok(0) => return Poll::Ready(Some(Err(Broken::Wire(ended())))),
                Ok(_) => {}
                Err(broken) => return Poll::Ready(Some(Err(broken))),
            }
        }
    }

    /// Reads some of a body of known length straight into `buf`, at least one byte.
    pub(crate) fn poll_read(
        &mut self,
        cx: &mut Context<'_>,
        buf: &mut [u8],
    ) -> Poll<Result<usize, Broken>> {
        let (Some((connection, _)), At::Counted(left)) = (&mut self.lease, &mut self.place) else {
            return Poll::Ready(Err(Broken::Wire(io::ErrorKind::NotConnected.into())));
        };
        let mut count = buf.len().min(usize::try_from(*left).unwrap_or(usize::MAX));
        if connection.read.is_empty() {
            count = ready!(connection.poll_into(cx, &mut buf[..count]))?;
        } else {
            count = count.min(connection.read.len());
            connection.read.copy_to_slice(&mut buf[..count]);
        }
        if count == 0 {
            return Poll::Ready(Err(Broken::Wire(ended())));
        }
        *left -= count as u64;
        self.finish_at_end();
        Poll::Ready(Ok(count))
    }

    pub(crate) fn poll_data_plainly(
        &mut self,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Bytes, Broken>>> {
        let data = ready!(self.poll_data(cx));
        if let Some(Err(broken)) = &data {
            (self.lease, self.place) = (None, At::End);
            if let Some(attempts) = &self.attempts {
                attempts.fail(broken.failure());
            }
        }
        Poll::Ready(data)
    }
}

impl Body for WatchedBody {
    type Data = Bytes;
    type Error = HttpError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, HttpError>>> {
        let data = ready!(self.poll_data_plainly(cx));
        Poll::Ready(data.map(|data| data.map(Frame::data).map_err(Broken::into_http)))
    }

    fn is_end_stream(&self) -> bool {
        matches!(self.place, At::End)
    }

    fn size_hint(&self) -> SizeHint {
        match self.place {
            At::Counted(left) => SizeHint::with_exact(left),
            At::End => SizeHint::with_exact(0),
            At::Chunked(_) | At::UntilClose => SizeHint::default(),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::{BufRead, BufReader, Write};
    use std::net::TcpListener;
    use std::sync::mpsc;
    use std::thread::JoinHandle;
    use std::time::Duration;

    use http::{Method, Uri};

    use super::super::http::request;
    use super::super::pool::Timeouts;
    use super::super::socket::{Dialer, Origin};
    use super::*;

    /// A server that answers one request after its head, and keeps the connection until it is told.
    fn serve(answer: &'static str, until: mpsc::Receiver<()>) -> (Uri, JoinHandle<()>) {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let uri = format!("http://{}/x", listener.local_addr().unwrap()).parse().unwrap();
        let served = std::thread::spawn(move || {
            let (mut stream, _) = listener.accept().unwrap();
            let asked = BufReader::new(stream.try_clone().unwrap()).lines();
            assert!(asked.map_while(Result::ok).any(|line| line.is_empty()));
            stream.write_all(answer.as_bytes()).unwrap();
            if !answer.contains("403") {
                stream.shutdown(std::net::Shutdown::Write).unwrap();
            }
            // Bodies are left unread, so that none of them fits.
            let _ = until.recv();
        });
        (uri, served)
    }

    /// Asks once: status, body or its error, and whether the connection was given back.
    fn asked(
        method: Method,
        len: usize,
        answer: &'static str,
    ) -> (u16, Result<String, String>, bool) {
        let (done, until) = mpsc::channel();
        let (uri, served) = serve(answer, until);
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let limit = Duration::from_secs(60);
        let timeouts = Timeouts { connect: limit, stall: limit };
        let pool = Arc::new(Pool::new(Arc::new(Dialer::default()), timeouts));
        let mut asked = request(method, &uri.to_string());
        *asked.body_mut() = vec![7; len].into();
        let told = runtime.block_on(async {
            let connection = pool.dial(Origin::of(&uri).unwrap()).await.unwrap();
            let Ok((head, connection)) = ask(connection, &asked, Reads::Short).await else {
                panic!("no answer")
            };
            let mut body = WatchedBody::new(&head, connection, Arc::clone(&pool), Reads::Short);
            let (mut whole, mut error) = (Vec::new(), None);
            while let Some(data) = std::future::poll_fn(|cx| body.poll_data_plainly(cx)).await {
                match data {
                    Ok(data) => whole.extend_from_slice(&data),
                    Err(broken) => error = Some(broken.failure().message),
                }
            }
            let whole = String::from_utf8(whole).unwrap();
            (head.parts.status.as_u16(), error.map_or(Ok(whole), Err), pool.keeps_any())
        });
        drop(done);
        served.join().unwrap();
        told
    }

    fn check(answer: &'static str, body: Result<&str, &str>, kept: bool) {
        let expected = body.map(str::to_owned).map_err(str::to_owned);
        assert_eq!(asked(Method::GET, 0, answer), (200, expected, kept), "{answer:?}");
    }

    #[test]
    fn bodies_end_where_their_heads_say() {
        const CUT: Result<&str, &str> = Err("the answer ends before its last byte");
        check("HTTP/1.1 200 OK\r\ncontent-length: 3\r\n\r\nabc", Ok("abc"), true);
        check("HTTP/1.1 200 OK\r\ncontent-length: 3\r\n\r\nabcd", Ok("abc"), false);
        check("HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n", Ok(""), true);
        check("HTTP/1.1 200 OK\r\ncontent-length: 4\r\n\r\nabc", CUT, false);
        check("HTTP/1.1 200 OK\r\n\r\nabc", Ok("abc"), false);
        const CHUNKED: &str = "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n\
                               3\r\nabc\r\n1\r\nd\r\n0\r\n\r\n";
        check(CHUNKED, Ok("abcd"), true);
        check("HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n3\r\nabc\r\n", CUT, false);
        let no_length = Err("a chunk of the answer has no valid length");
        check("HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\nx\r\n", no_length, false);
    }

    #[test]
    fn a_refusal_is_heard_before_the_body_is_sent() {
        let answer = "HTTP/1.1 403 Forbidden\r\ncontent-length: 2\r\n\r\nno";
        let refused = (403, Ok("no".to_owned()), false);
        // More than the buffers between the two hold.
        assert_eq!(asked(Method::PUT, 64 << 20, answer), refused);
        assert_eq!(asked(Method::PUT, 0, answer), (403, Ok("no".to_owned()), true));
    }
}
