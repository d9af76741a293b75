//! The HTTP layer below `object_store`: HTTP/1.1 over connections that the caller's thread drives.
//!
//! One request at a time a connection, no total time limit, a limit for how long nothing moves.
//! Every attempt is entered in the [`Attempts`] of its operation. Small answers (everything but the
//! bytes of an object) are read whole before they are handed on, so that one that breaks off is an
//! attempt that failed, which `object_store` repeats, and not an answer that cannot be understood.

use std::fmt;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use bytes::{Bytes, BytesMut};
use http::header::{CONTENT_LENGTH, HOST, RANGE, USER_AGENT};
use http::{HeaderValue, Method, StatusCode};
use hyper::body::{Body, Incoming};
use object_store::ClientOptions;
use object_store::client::{
    HttpClient, HttpConnector, HttpError, HttpRequest, HttpResponse, HttpResponseBody, HttpService,
};

use super::attempts::Attempts;
use super::broken::Broken;
use super::exchange::{Exchange, Reads, Unanswered, WatchedBody};
use super::fault::{Failure, Refusal};
use super::pool::Pool;
use super::raw::{self, Passed, RawBody};
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
        let range = request.headers().get(RANGE).cloned();
        let tap = attempts.as_ref().and_then(|attempts| attempts.tap.as_ref()).filter(|_| streams);
        let reads = if streams && tap.is_none() { Reads::Long } else { Reads::Short };
        let (response, exchange) = self.send(&origin, request, reads).await?;
        let (mut parts, body) = response.into_parts();
        if from_start && parts.status == StatusCode::OK && is_empty(&parts.headers) {
            // No byte of an empty object is in any range; some servers answer with all there is.
            parts.status = StatusCode::RANGE_NOT_SATISFIABLE;
        }
        let (pool, limit) = (Arc::clone(&self.pool), self.stall_timeout);
        if let (Some(attempts), Some(tap), Some(len)) = (&attempts, tap, body.size_hint().exact())
            && raw::is_exact(range.as_ref(), parts.status, &parts.headers)
        {
            tap.put(RawBody::new(&parts, body, len, exchange, pool, limit));
            let passed = Passed { attempts: Arc::clone(attempts) };
            return Ok(HttpResponse::from_parts(parts, HttpResponseBody::new(passed)));
        }
        let mut body = WatchedBody::new(body, exchange, pool, limit);
        if streams && parts.status.is_success() {
            body.attempts = attempts;
            return Ok(HttpResponse::from_parts(parts, HttpResponseBody::new(body)));
        }
        // What goes wrong is entered by the caller, once.
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
        reads: Reads,
    ) -> Result<(http::Response<Incoming>, Exchange), Broken> {
        loop {
            let (connection, is_new) = match self.pool.take(origin) {
                Some(connection) => (connection, false),
                None => (self.pool.dial(origin).await.map_err(Broken::Connect)?, true),
            };
            let exchange = Exchange::over(connection, reads).await?;
            match exchange.ask(request, self.stall_timeout).await {
                Ok(answer) => return Ok(answer),
                // The server closed it in the moment we took it.
                Err(Unanswered::Unsent(unsent, _)) if !is_new => request = *unsent,
                Err(Unanswered::Unsent(_, error)) => return Err(Broken::Request(error)),
                Err(Unanswered::Broken(broken)) => return Err(broken),
            }
        }
    }
}

/// Whether the answer, if it is a good one, is the bytes of an object.
fn is_object(request: &HttpRequest) -> bool {
    let query = request.uri().query().unwrap_or_default();
    // A session is what a directory bucket gives credentials by.
    let asks_else = |part| matches!(part, "list-type=2" | "comp=list" | "session" | "session=");
    *request.method() == Method::GET && !query.split('&').any(asks_else)
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
        assert!(!streams(Method::GET, "http://h/b?session="));
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
