//! Bodies that go from the socket straight into their reader's memory.
//!
//! `object_store` hands on the chunks of a body, which somebody else has allocated. That copy is the
//! largest cost of a read, so it is left out: a reader that holds a [`Tap`] gets the connection itself
//! there as soon as the head of an answer is complete, reads as many bytes as the head promises, and
//! `object_store` gets a body that has nothing in it ([`Passed`]).
//!
//! It is `object_store` nevertheless that resumes an answer that breaks off, with all its bounds and
//! comparisons. For that the reader enters in the tap how far it came and what went wrong, and asks the
//! stream, which yields as many zeros and then the error. The reader skips the zeros. What comes
//! after them is an empty chunk, and a new connection in the tap, or an answer of another kind whose
//! bytes come through the stream itself.

use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard};
use std::task::{Context, Poll};

use bytes::{Buf, Bytes};
use futures_util::StreamExt;
use futures_util::stream::BoxStream;
use http::header::CONTENT_RANGE;
use http::{HeaderMap, HeaderValue, StatusCode};
use http_body::{Body, Frame};
use object_store::client::HttpError;

use super::attempts::Attempts;
use super::broken::Broken;
use super::exchange::WatchedBody;
use crate::lock::lock;

/// Placeholder for bytes that were read past `object_store`.
static ZEROS: [u8; 64 << 10] = [0; 64 << 10];

/// Where an answer waits for its reader, and a reader's trouble for `object_store`.
#[derive(Default)]
pub(crate) struct Tap {
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    body: Option<WatchedBody>,
    /// Bytes that were read past a stream that has not been told.
    untold: u64,
    broken: Option<Broken>,
}

impl Tap {
    fn state(&self) -> MutexGuard<'_, State> {
        lock(&self.state)
    }

    pub(crate) fn put(&self, body: WatchedBody) {
        *self.state() = State { body: Some(body), ..State::default() };
    }
}

impl std::fmt::Debug for Tap {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Tap").finish_non_exhaustive()
    }
}

/// The body that `object_store` sees.
pub(crate) struct Passed {
    pub(crate) attempts: Arc<Attempts>,
}

impl Body for Passed {
    type Data = Bytes;
    type Error = HttpError;

    fn poll_frame(
        self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, HttpError>>> {
        let Some(tap) = &self.attempts.tap else { return Poll::Ready(None) };
        let mut state = tap.state();
        if state.untold > 0 {
            let count = state.untold.min(ZEROS.len() as u64);
            state.untold -= count;
            let told = Bytes::from_static(&ZEROS[..count as usize]);
            return Poll::Ready(Some(Ok(Frame::data(told))));
        }
        if let Some(broken) = state.broken.take() {
            self.attempts.fail(broken.failure());
            return Poll::Ready(Some(Err(broken.into_http())));
        }
        // Lets the reader look into the tap.
        let waits = state.body.is_some();
        Poll::Ready(waits.then(|| Ok(Frame::data(Bytes::new()))))
    }
}

/// Whether an answer is what was asked for, byte for byte, so that a reader needs nothing but its body.
pub(crate) fn is_exact(range: Option<&HeaderValue>, status: StatusCode, head: &HeaderMap) -> bool {
    let Some(range) = range else { return status == StatusCode::OK };
    let start = |value: &HeaderValue, unit: &str| {
        let (start, _) = value.to_str().ok()?.strip_prefix(unit)?.split_once('-')?;
        start.parse::<u64>().ok()
    };
    let asked = start(range, "bytes=");
    let found = head.get(CONTENT_RANGE).and_then(|value| start(value, "bytes "));
    status == StatusCode::PARTIAL_CONTENT && asked.is_some() && asked == found
}

/// The bytes of an answer, in whichever way they come.
pub(crate) struct BodyReader {
    stream: BoxStream<'static, object_store::Result<Bytes>>,
    attempts: Arc<Attempts>,
    body: Option<WatchedBody>,
    /// What was read from `body`.
    passed: u64,
    /// How much of what the stream gives has been read already.
    skip: u64,
    /// Bytes of the stream that were not taken yet.
    rest: Bytes,
}

impl BodyReader {
    /// An answer that was asked for under `attempts`.
    pub(crate) fn new(found: object_store::GetResult, attempts: Arc<Attempts>) -> BodyReader {
        let stream = found.into_stream();
        let mut source =
            BodyReader { stream, attempts, body: None, passed: 0, skip: 0, rest: Bytes::new() };
        source.look();
        source
    }

    fn look(&mut self) {
        let body = self.attempts.tap.as_ref().and_then(|tap| tap.state().body.take());
        if let Some(body) = body {
            (self.body, self.passed) = (Some(body), 0);
        }
    }

    /// Fills `buf` with what comes next. Gives how much that is: less only at the end of the answer.
    pub(crate) async fn fill(&mut self, buf: &mut [u8]) -> object_store::Result<usize> {
        let mut done = 0;
        while done < buf.len() {
            if let Some(body) = &mut self.body {
                if body.is_end_stream() {
                    break;
                }
                let space = &mut buf[done..];
                match std::future::poll_fn(|cx| body.poll_read(cx, space)).await {
                    Ok(count) => {
                        done += count;
                        self.passed += count as u64;
                    }
                    Err(broken) => self.hand_back(broken),
                }
                continue;
            }
            if self.rest.is_empty() {
                match self.stream.next().await {
                    Some(chunk) => self.take_chunk(chunk?),
                    None => break,
                }
                continue;
            }
            let count = self.rest.len().min(buf.len() - done);
            self.rest.copy_to_slice(&mut buf[done..done + count]);
            done += count;
        }
        Ok(done)
    }

    /// Drops what comes next, up to the end of the answer; gives how much that was.
    pub(crate) async fn skip_all(&mut self) -> object_store::Result<u64> {
        debug_assert!(self.body.is_none(), "only a reader that wants the bytes has a tap");
        let mut count = 0;
        while let Some(chunk) = self.stream.next().await {
            count += chunk?.len() as u64;
        }
        Ok(count)
    }

    /// Leaves an answer that broke off to `object_store`.
    fn hand_back(&mut self, broken: Broken) {
        self.body = None;
        self.skip = self.passed;
        if let Some(tap) = &self.attempts.tap {
            *tap.state() = State { body: None, untold: self.passed, broken: Some(broken) };
        }
    }

    fn take_chunk(&mut self, mut chunk: Bytes) {
        let count = self.skip.min(chunk.len() as u64);
        self.skip -= count;
        chunk.advance(count as usize);
        self.rest = chunk;
        if self.rest.is_empty() && self.skip == 0 {
            self.look();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::{self, BufRead, BufReader, Write};
    use std::net::TcpListener;
    use std::task::Waker;

    use super::*;
    use crate::{Remote, RemoteOptions, Store};

    #[test]
    fn an_answer_that_begins_elsewhere_is_not_exact() {
        let exact = |asked: Option<&'static str>, status: u16, found: Option<&'static str>| {
            let found = found.map(|found| (CONTENT_RANGE, HeaderValue::from_static(found)));
            let asked = asked.map(HeaderValue::from_static);
            let status = StatusCode::from_u16(status).unwrap();
            is_exact(asked.as_ref(), status, &found.into_iter().collect())
        };
        assert!(exact(None, 200, None) && !exact(None, 204, None) && !exact(None, 404, None));
        assert!(exact(Some("bytes=5-9"), 206, Some("bytes 5-7/8")));
        assert!(!exact(Some("bytes=5-9"), 206, Some("bytes 0-7/8")));
        assert!(!exact(Some("bytes=5-9"), 206, None) && !exact(Some("bytes=5-9"), 200, None));
        assert!(!exact(Some("bytes=-9"), 206, Some("bytes 0-7/8")));
    }

    #[test]
    fn what_was_read_past_a_stream_is_told_before_what_went_wrong() {
        let attempts = Attempts::tapped();
        let mut passed = Passed { attempts: Arc::clone(&attempts) };
        let mut next = || {
            let mut cx = Context::from_waker(Waker::noop());
            let Poll::Ready(frame) = Pin::new(&mut passed).poll_frame(&mut cx) else {
                panic!("it never waits")
            };
            frame.map(|frame| frame.map(|frame| frame.into_data().unwrap().len()).ok())
        };
        let broken = Some(Broken::Wire(io::ErrorKind::ConnectionReset.into()));
        *attempts.tap.as_ref().unwrap().state() = State { body: None, untold: 100_000, broken };
        assert_eq!([next(), next()], [Some(Some(65_536)), Some(Some(34_464))]);
        assert_eq!(attempts.failure(), None);
        assert_eq!(next(), Some(None));
        assert!(attempts.failure().is_some_and(|failure| failure.is_passing()));
        assert_eq!(next(), None);
    }

    /// Answers each request with the next of `answers` on the connection it came by. Gives how many
    /// connections were made for that.
    fn serve(answers: &'static [&'static str]) -> (String, std::thread::JoinHandle<usize>) {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let served = std::thread::spawn(move || {
            let (mut answers, mut connections) = (answers.iter().peekable(), 0);
            while answers.peek().is_some() {
                let (mut stream, _) = listener.accept().unwrap();
                connections += 1;
                let mut asked = BufReader::new(stream.try_clone().unwrap()).lines();
                while answers.peek().is_some()
                    && asked.by_ref().map_while(Result::ok).any(|line| line.is_empty())
                {
                    stream.write_all(answers.next().unwrap().as_bytes()).unwrap();
                }
            }
            connections
        });
        (url, served)
    }

    fn check(answers: &'static [&'static str], connections: usize) {
        let (url, served) = serve(answers);
        let store = Remote::connect(&url, &RemoteOptions::default()).unwrap();
        for _ in answers {
            let mut object = store.open_whole("it").unwrap();
            assert_eq!(object.len().unwrap(), 10);
            let mut buf = [0; 4];
            // Ahead, then from the front.
            for (offset, expected) in [(6, "6789"), (0, "0123"), (4, "4567")] {
                object.read_exact_at(offset, &mut buf).unwrap();
                assert_eq!(&buf, expected.as_bytes());
            }
            object.read_exact_at(8, &mut buf[..2]).unwrap();
            assert_eq!(&buf[..2], b"89");
        }
        drop(store);
        assert_eq!(served.join().unwrap(), connections, "{answers:?}");
    }

    #[test]
    fn a_connection_is_used_again_if_its_server_keeps_it() {
        const KEPT: &str = "HTTP/1.1 200 OK\r\ncontent-length: 10\r\n\r\n0123456789";
        const CLOSED: &str =
            "HTTP/1.1 200 OK\r\nconnection: x, Close\r\ncontent-length: 10\r\n\r\n0123456789";
        const OLD: &str = "HTTP/1.0 200 OK\r\ncontent-length: 10\r\n\r\n0123456789";
        const MORE: &str = "HTTP/1.1 200 OK\r\ncontent-length: 10\r\n\r\n0123456789more";
        check(&[KEPT, KEPT, KEPT], 1);
        check(&[CLOSED, KEPT, KEPT], 2);
        check(&[OLD, KEPT], 2);
        check(&[MORE, KEPT], 2);
    }
}
