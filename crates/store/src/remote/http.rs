//! The HTTP layer below `object_store`: HTTP/1.1 over connections that the caller's thread drives.
//!
//! One request at a time a connection, no total time limit, a limit for how long nothing moves.
//! Every attempt is entered in the [`Attempts`] of its operation. Small answers (everything but the
//! bytes of an object) are read whole before they are handed on, so that one that breaks off is an
//! attempt that failed, which `object_store` repeats, and not an answer that cannot be understood.

use std::fmt;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;

use async_trait::async_trait;
use bytes::{Bytes, BytesMut};
use http::header::{CONTENT_LENGTH, HOST, RANGE, USER_AGENT};
use http::{HeaderValue, Method, StatusCode};
use hyper::body::{Body, Frame, Incoming, SizeHint};
use object_store::ClientOptions;
use object_store::client::{
    HttpClient, HttpConnector, HttpError, HttpErrorKind, HttpRequest, HttpResponse,
    HttpResponseBody, HttpService,
};
use tokio::time::{Instant, Sleep};

use super::attempts::Attempts;
use super::fault::{Failure, Refusal, RemoteFault, innermost, one_line};
use super::pool::{Connection, Pool};
use super::uri_keys::UriKeys;
use super::wire::{Dialer, Origin};

/// Largest answer that is read whole: pages of listings are below 2 MiB.
const ANSWER_BYTES_MAX: usize = 64 << 20;
const AGENT: &str = concat!("feedline/", env!("CARGO_PKG_VERSION"));

/// Makes the HTTP client of one lane.
#[derive(Clone)]
pub(crate) struct Connector {
    pub(crate) dialer: Arc<Dialer>,
    pub(crate) connect_timeout: Duration,
    pub(crate) stall_timeout: Duration,
    pub(crate) uri_keys: Option<UriKeys>,
}

impl fmt::Debug for Connector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Connector").finish_non_exhaustive()
    }
}

impl HttpConnector for Connector {
    fn connect(&self, options: &ClientOptions) -> object_store::Result<HttpClient> {
        // Set for the addresses inside a cloud that give credentials, which are there or are not.
        let key = object_store::ClientConfigKey::ConnectTimeout;
        let quick = options.get_config_value(&key).is_some_and(|value| value == "1s");
        let connect_timeout = if quick { Duration::from_secs(1) } else { self.connect_timeout };
        Ok(HttpClient::new(Http {
            pool: Arc::new(Pool::new(Arc::clone(&self.dialer), connect_timeout)),
            stall_timeout: self.stall_timeout,
            uri_keys: self.uri_keys.clone(),
        }))
    }
}

/// The client.
struct Http {
    pool: Arc<Pool>,
    stall_timeout: Duration,
    uri_keys: Option<UriKeys>,
}

impl fmt::Debug for Http {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Http").finish_non_exhaustive()
    }
}

#[async_trait]
impl HttpService for Http {
    async fn call(&self, request: HttpRequest) -> Result<HttpResponse, HttpError> {
        let attempts = Attempts::current();
        if let Some(attempts) = &attempts {
            attempts.begin();
        }
        let result = self.attempt(request, attempts.clone()).await;
        if let (Err(broken), Some(attempts)) = (&result, &attempts) {
            attempts.fail(broken.failure());
        }
        result.map_err(Broken::into_http)
    }
}

impl Http {
    async fn attempt(
        &self,
        mut request: HttpRequest,
        attempts: Option<Arc<Attempts>>,
    ) -> Result<HttpResponse, Broken> {
        let streams = is_object(&request);
        let from_start = streams && asks_from_start(&request);
        if let Some(keys) = &self.uri_keys {
            keys.rewrite(&mut request).await.map_err(Broken::Before)?;
        }
        let origin = Origin::of(request.uri()).map_err(|e| Broken::Before(Box::new(e)))?;
        complete(&mut request);
        let (response, connection) = self.send(&origin, request).await?;
        let (mut parts, body) = response.into_parts();
        let pool = Arc::clone(&self.pool);
        let lease = Some((connection, pool));
        let stall = Stall::new(self.stall_timeout, lease.as_ref().map(|l| Arc::clone(&l.0.moved)));
        let mut body = WatchedBody { body, lease, stall, attempts: attempts.clone() };
        if body.body.is_end_stream() {
            body.finish();
        }
        if from_start && parts.status == StatusCode::OK && is_empty(&parts.headers) {
            // No byte of an empty object is in any range; some servers answer with all there is.
            parts.status = StatusCode::RANGE_NOT_SATISFIABLE;
        }
        if streams && parts.status.is_success() {
            return Ok(HttpResponse::from_parts(parts, HttpResponseBody::new(body)));
        }
        // Entered by the caller, once.
        body.attempts = None;
        let mut bytes = collect(body).await?;
        let is_error = parts.status.is_success() && bytes.starts_with_error();
        if let Some(attempts) = attempts
            && (!parts.status.is_success() || is_error)
        {
            let status = if is_error { 500 } else { parts.status.as_u16() };
            let header = |name| parts.headers.get(name).and_then(|value| value.to_str().ok());
            let (region, code) = (header("x-amz-bucket-region"), header("x-ms-error-code"));
            let body = &*String::from_utf8_lossy(&bytes);
            attempts.fail(Failure::of_answer(Refusal { status, region, code, body }));
        }
        if let Some(keys) = &self.uri_keys {
            bytes = keys.strip(bytes);
        }
        Ok(HttpResponse::from_parts(parts, bytes.into()))
    }

    /// Sends a request over a connection that is there, or a new one.
    async fn send(
        &self,
        origin: &Origin,
        mut request: HttpRequest,
    ) -> Result<(http::Response<Incoming>, Connection), Broken> {
        loop {
            let (mut connection, is_new) = match self.pool.take(origin).await {
                Some(connection) => (connection, false),
                None => (self.pool.dial(origin).await.map_err(Broken::Connect)?, true),
            };
            let moved = Arc::clone(&connection.moved);
            let mut stall = Stall::new(self.stall_timeout, Some(moved));
            let mut sent = std::pin::pin!(connection.sender.try_send_request(request));
            let answer = std::future::poll_fn(|cx| match sent.as_mut().poll(cx) {
                Poll::Ready(answer) => Poll::Ready(Ok(answer)),
                Poll::Pending => stall.poll(cx).map(Err),
            });
            match answer.await {
                Ok(Ok(response)) => return Ok((response, connection)),
                Ok(Err(mut error)) => match error.take_message() {
                    // The server closed it in the moment we took it, and no byte was sent.
                    Some(unsent) if !is_new => request = unsent,
                    _ => return Err(Broken::Request(error.into_error())),
                },
                Err(Stalled) => return Err(Broken::Stalled(self.stall_timeout)),
            }
        }
    }
}

/// Whether the answer, if it is a good one, is the bytes of an object.
fn is_object(request: &HttpRequest) -> bool {
    let query = request.uri().query().unwrap_or_default();
    let lists = query.split('&').any(|part| matches!(part, "list-type=2" | "comp=list"));
    *request.method() == Method::GET && !lists
}

fn asks_from_start(request: &HttpRequest) -> bool {
    let range = request.headers().get(RANGE).map(HeaderValue::as_bytes);
    range.is_some_and(|range| range.starts_with(b"bytes=0-"))
}

fn is_empty(headers: &http::HeaderMap) -> bool {
    headers.get(CONTENT_LENGTH).is_some_and(|value| value.as_bytes() == b"0")
}

/// What HTTP/1.1 wants: the host as a header, and only the path in the first line.
fn complete(request: &mut HttpRequest) {
    let uri = request.uri().clone();
    if let Some(authority) = uri.authority() {
        let host = authority.as_str().rsplit('@').next().unwrap_or_default();
        if let Ok(host) = HeaderValue::from_str(host) {
            request.headers_mut().entry(HOST).or_insert(host);
        }
    }
    request.headers_mut().entry(USER_AGENT).or_insert(HeaderValue::from_static(AGENT));
    let path = uri.path_and_query().map_or("/", |path| path.as_str());
    if let Ok(path) = path.parse() {
        *request.uri_mut() = path;
    }
}

/// Reads an answer whole.
async fn collect(mut body: WatchedBody) -> Result<Bytes, Broken> {
    let mut whole = BytesMut::new();
    loop {
        let frame = std::future::poll_fn(|cx| Pin::new(&mut body).poll_frame_plainly(cx)).await;
        match frame {
            None => return Ok(whole.freeze()),
            Some(Err(broken)) => return Err(broken),
            Some(Ok(frame)) => {
                if let Ok(data) = frame.into_data() {
                    whole.extend_from_slice(&data);
                }
            }
        }
        if whole.len() > ANSWER_BYTES_MAX {
            return Err(Broken::Before("an answer of more than 64 MiB".into()));
        }
    }
}

/// Answers that say `200 OK` and mean the opposite: S3 begins to answer before it has put the parts
/// of an upload together.
trait StartsWithError {
    fn starts_with_error(&self) -> bool;
}

impl StartsWithError for Bytes {
    fn starts_with_error(&self) -> bool {
        let head = String::from_utf8_lossy(&self[..self.len().min(512)]);
        let head = head.trim_start();
        let head = match head.strip_prefix("<?xml") {
            Some(rest) => rest.split_once("?>").map_or("", |(_, rest)| rest).trim_start(),
            None => head,
        };
        head.starts_with("<Error>")
    }
}

/// What can go wrong with an attempt before an answer is complete.
enum Broken {
    /// Before anything was sent.
    Before(Box<dyn std::error::Error + Send + Sync>),
    Connect(std::io::Error),
    Request(hyper::Error),
    Stalled(Duration),
}

impl Broken {
    fn failure(&self) -> Failure {
        let (fault, message) = match self {
            Broken::Before(error) => (RemoteFault::Protocol, error.to_string()),
            Broken::Connect(error) => (RemoteFault::Unreachable, error.to_string()),
            Broken::Request(error) => (RemoteFault::Broken, innermost(error)),
            Broken::Stalled(limit) => (RemoteFault::Stalled, format!("no byte for {limit:?}")),
        };
        Failure { fault, message: one_line(&message) }
    }

    /// As `object_store` wants to know it, to decide about another attempt. All requests sent here
    /// may be repeated, which is what `Request` says.
    fn into_http(self) -> HttpError {
        match self {
            Broken::Before(error) => HttpError::new_boxed(HttpErrorKind::Unknown, error),
            Broken::Connect(error) => HttpError::new(HttpErrorKind::Connect, error),
            Broken::Request(error) => HttpError::new(HttpErrorKind::Request, error),
            Broken::Stalled(_) => {
                let error = std::io::Error::from(std::io::ErrorKind::TimedOut);
                HttpError::new(HttpErrorKind::Request, error)
            }
        }
    }
}

/// Nothing moved for too long.
struct Stalled;

/// Sees to it that something moves. Counts from the first time it is polled until [`Stall::rest`].
struct Stall {
    limit: Duration,
    moved: Option<Arc<AtomicU64>>,
    seen: u64,
    timer: Option<Pin<Box<Sleep>>>,
    waiting: bool,
}

impl Stall {
    fn new(limit: Duration, moved: Option<Arc<AtomicU64>>) -> Stall {
        Stall { limit, moved, seen: 0, timer: None, waiting: false }
    }

    fn count(&self) -> u64 {
        self.moved.as_ref().map_or(0, |moved| moved.load(Ordering::Relaxed))
    }

    /// What was waited for has come.
    fn rest(&mut self) {
        self.waiting = false;
    }

    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Stalled> {
        loop {
            let limit = self.limit;
            let timer = self.timer.get_or_insert_with(|| Box::pin(tokio::time::sleep(limit)));
            if !self.waiting {
                timer.as_mut().reset(Instant::now() + limit);
            }
            if timer.as_mut().poll(cx).is_pending() {
                if !std::mem::replace(&mut self.waiting, true) {
                    self.seen = self.count();
                }
                return Poll::Pending;
            }
            if self.count() == self.seen {
                return Poll::Ready(Stalled);
            }
            self.waiting = false;
        }
    }
}

/// The body of an answer, which gives its connection back at the end.
struct WatchedBody {
    body: Incoming,
    lease: Option<(Connection, Arc<Pool>)>,
    stall: Stall,
    attempts: Option<Arc<Attempts>>,
}

impl WatchedBody {
    fn finish(&mut self) {
        if let Some((connection, pool)) = self.lease.take() {
            pool.put(connection);
        }
    }

    fn poll_frame_plainly(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Broken>>> {
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

/// A request as tests make it.
#[cfg(test)]
pub(crate) fn request(method: Method, uri: &str) -> HttpRequest {
    let builder = http::Request::builder().method(method).uri(uri);
    builder.body(object_store::client::HttpRequestBody::empty()).expect("a plain request")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_objects_are_streamed() {
        let streams = |method, uri| is_object(&request(method, uri));
        assert!(streams(Method::GET, "http://h/b/k"));
        assert!(streams(Method::GET, "http://h/b/k?versionId=1"));
        assert!(!streams(Method::GET, "http://h/b?list-type=2&prefix=x"));
        assert!(!streams(Method::GET, "http://h/b?restype=container&comp=list"));
        assert!(!streams(Method::HEAD, "http://h/b/k"));
        assert!(!streams(Method::POST, "http://h/b/k?uploads="));
    }

    #[test]
    fn an_error_that_calls_itself_a_success_is_one() {
        let found = |text: &'static str| Bytes::from_static(text.as_bytes()).starts_with_error();
        assert!(found("<?xml version=\"1.0\"?>\n <Error><Code>InternalError</Code></Error>"));
        assert!(found("<Error><Code>x</Code></Error>"));
        assert!(!found("<?xml version=\"1.0\"?><CompleteMultipartUploadResult/>"));
        assert!(!found("") && !found("<?xml"));
    }

    #[test]
    fn the_first_line_has_the_path_and_the_host_is_a_header() {
        let mut asked = request(Method::GET, "http://h:90/a%20b/s3%3A//c?x=1");
        complete(&mut asked);
        assert_eq!(asked.uri().to_string(), "/a%20b/s3%3A//c?x=1");
        assert_eq!(asked.headers()[HOST], "h:90");
    }
}
