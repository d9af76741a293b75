//! The HTTP layer below `object_store`: HTTP/1.1 over connections that the caller's thread drives.
//!
//! One request at a time a connection, no total time limit, a limit for how long nothing moves.
//! Every attempt is entered in the [`Attempts`] of its operation. Small answers (everything but the
//! bytes of an object) are read whole before they are handed on, so that one that breaks off is an
//! attempt that failed, which `object_store` repeats, and not an answer that cannot be understood.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use bytes::{Bytes, BytesMut};
use http::header::{CONTENT_LENGTH, HOST, RANGE, USER_AGENT};
use http::{HeaderValue, Method, StatusCode};
use object_store::ClientOptions;
use object_store::client::{
    HttpClient, HttpConnector, HttpError, HttpRequest, HttpResponse, HttpResponseBody, HttpService,
};

use super::attempts::Attempts;
use super::broken::Broken;
use super::exchange::{self, Reads, Unanswered, WatchedBody};
use super::failure::{Failure, Refusal};
use super::message::{Framing, Head};
use super::pool::{Connection, Pool, Timeouts};
use super::raw::{self, Passed};
use super::signature::Signer;
use super::socket::{Dialer, Origin};
use super::uri_keys::UriKeys;

/// Largest answer that is read whole: pages of listings are below 2 MiB.
const ANSWER_BYTES_MAX: usize = 64 << 20;
const AGENT: &str = concat!("feedline/", env!("CARGO_PKG_VERSION"));

/// Makes the HTTP client of one lane.
#[derive(Clone)]
pub(crate) struct Connector {
    pub(crate) dialer: Arc<Dialer>,
    pub(crate) timeouts: Timeouts,
    pub(crate) uri_keys: Option<UriKeys>,
    /// For services whose requests are signed here, after everything else was done to them.
    pub(crate) signer: Option<Arc<Signer>>,
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
        let mut timeouts = self.timeouts;
        if quick {
            timeouts.connect = Duration::from_secs(1);
        }
        Ok(HttpClient::new(Http {
            pool: Arc::new(Pool::new(Arc::clone(&self.dialer), timeouts)),
            uri_keys: self.uri_keys.clone(),
            signer: self.signer.clone(),
        }))
    }
}

/// The HTTP client below `object_store`.
struct Http {
    pool: Arc<Pool>,
    uri_keys: Option<UriKeys>,
    signer: Option<Arc<Signer>>,
}

impl fmt::Debug for Http {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Http").finish_non_exhaustive()
    }
}

#[async_trait]
impl HttpService for Http {
    async fn call(&self, mut request: HttpRequest) -> Result<HttpResponse, HttpError> {
        let attempts = Attempts::current();
        let result = match self.prepare(&mut request).await {
            Err(broken) => Err(broken),
            Ok(plan) => {
                if let Some(attempts) = &attempts {
                    attempts.begin();
                }
                self.attempt(request, plan, attempts.clone()).await
            }
        };
        if let (Err(broken), Some(attempts)) = (&result, &attempts) {
            attempts.fail(broken.failure());
        }
        result.map_err(Broken::into_http)
    }
}

/// What is known about a request before anything is rewritten.
#[derive(Clone, Copy)]
struct Asked {
    /// The answer is the bytes of an object.
    streams: bool,
    from_start: bool,
}

impl Http {
    /// Makes of a request what is sent.
    async fn prepare(&self, request: &mut HttpRequest) -> Result<Asked, Broken> {
        let streams = is_object(request);
        let from_start = streams && asks_from_start(request);
        if let Some(keys) = &self.uri_keys {
            keys.rewrite(request).map_err(|e| Broken::Before(Box::new(e)))?;
        }
        complete(request);
        if let Some(signer) = &self.signer {
            signer.sign(request).await?;
        }
        Ok(Asked { streams, from_start })
    }

    async fn attempt(
        &self,
        request: HttpRequest,
        asked: Asked,
        attempts: Option<Arc<Attempts>>,
    ) -> Result<HttpResponse, Broken> {
        let Asked { streams, from_start } = asked;
        let tap = attempts.as_ref().and_then(|attempts| attempts.tap.as_ref()).filter(|_| streams);
        let reads = if streams && tap.is_none() { Reads::Long } else { Reads::Short };
        let (mut head, connection) = self.send(&request, reads).await?;
        let parts = &mut head.parts;
        if from_start && parts.status == StatusCode::OK && is_empty(&parts.headers) {
            // No byte of an empty object is in any range; some servers answer with all there is.
            parts.status = StatusCode::RANGE_NOT_SATISFIABLE;
        }
        let is_exact = matches!(head.framing, Framing::Exact(_))
            && raw::is_exact(request.headers().get(RANGE), parts.status, &parts.headers);
        let mut body = WatchedBody::new(&head, connection, Arc::clone(&self.pool), reads);
        if let (Some(attempts), Some(tap), true) = (&attempts, tap, is_exact) {
            tap.put(body);
            let passed = Passed { attempts: Arc::clone(attempts) };
            return Ok(HttpResponse::from_parts(head.parts, HttpResponseBody::new(passed)));
        }
        let parts = head.parts;
        if streams && parts.status.is_success() {
            body.attempts = attempts;
            return Ok(HttpResponse::from_parts(parts, HttpResponseBody::new(body)));
        }
        // What goes wrong is entered by the caller, once.
        let mut bytes = collect(body).await?;
        let is_error = parts.status.is_success() && starts_with_error(&bytes);
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
        request: &HttpRequest,
        reads: Reads,
    ) -> Result<(Head, Connection), Broken> {
        loop {
            let (connection, is_new) = match self.pool.take(request.uri()) {
                Some(connection) => (connection, false),
                None => {
                    let origin = Origin::of(request.uri());
                    let origin = origin.map_err(|error| Broken::Before(Box::new(error)))?;
                    (self.pool.dial(origin).await.map_err(Broken::Connect)?, true)
                }
            };
            match exchange::ask(connection, request, reads).await {
                Ok(answer) => return Ok(answer),
                // The server closed it in the moment we took it.
                Err(Unanswered::Unsent(_)) if !is_new => {}
                Err(Unanswered::Unsent(error)) => return Err(Broken::Wire(error)),
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

/// What HTTP/1.1 wants: the host as a header.
fn complete(request: &mut HttpRequest) {
    let host = request.uri().authority().map(|authority| {
        let host = authority.as_str().rsplit('@').next().unwrap_or_default();
        HeaderValue::from_str(host)
    });
    if let Some(Ok(host)) = host {
        request.headers_mut().entry(HOST).or_insert(host);
    }
    request.headers_mut().entry(USER_AGENT).or_insert(HeaderValue::from_static(AGENT));
}

/// Reads an answer whole.
async fn collect(mut body: WatchedBody) -> Result<Bytes, Broken> {
    let mut whole = BytesMut::new();
    loop {
        match std::future::poll_fn(|cx| body.poll_data_plainly(cx)).await {
            None => return Ok(whole.freeze()),
            Some(Err(broken)) => return Err(broken),
            Some(Ok(data)) => whole.extend_from_slice(&data),
        }
        if whole.len() > ANSWER_BYTES_MAX {
            return Err(Broken::Before("an answer of more than 64 MiB".into()));
        }
    }
}

/// Whether an answer says `200 OK` and means the opposite: S3 begins to answer before it has put the parts
/// of an upload together.
fn starts_with_error(body: &[u8]) -> bool {
    let head = String::from_utf8_lossy(&body[..body.len().min(512)]);
    let head = head.trim_start();
    let head = match head.strip_prefix("<?xml") {
        Some(rest) => rest.split_once("?>").map_or("", |(_, rest)| rest).trim_start(),
        None => head,
    };
    head.starts_with("<Error>")
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
    use crate::RemoteFault;

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
        let found = |text: &'static str| starts_with_error(text.as_bytes());
        assert!(found("<?xml version=\"1.0\"?>\n <Error><Code>InternalError</Code></Error>"));
        assert!(found("<Error><Code>x</Code></Error>"));
        assert!(!found("<?xml version=\"1.0\"?><CompleteMultipartUploadResult/>"));
        assert!(!found("") && !found("<?xml"));
    }

    #[derive(Debug)]
    struct Nobody;

    #[async_trait]
    impl object_store::CredentialProvider for Nobody {
        type Credential = object_store::aws::AwsCredential;

        async fn get_credential(&self) -> object_store::Result<Arc<Self::Credential>> {
            Err(object_store::Error::NotSupported { source: "nobody knows".into() })
        }
    }

    #[test]
    fn what_cannot_be_signed_is_not_sent() {
        let timeouts = Timeouts { connect: Duration::from_secs(1), stall: Duration::from_secs(1) };
        let pool = Arc::new(Pool::new(Arc::default(), timeouts));
        let signer = Some(Arc::new(Signer::new("us-east-1", Arc::new(Nobody))));
        let client = Http { pool, uri_keys: None, signer };
        let attempts = Arc::new(Attempts::default());
        let asked = attempts
            .over(async move { client.call(request(Method::GET, "http://127.0.0.1:1/b/k")).await });
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let error = runtime.block_on(asked).unwrap_err();
        // A kind that is not repeated.
        assert_eq!(error.kind(), object_store::client::HttpErrorKind::Unknown);
        let failure = Failure { fault: RemoteFault::NoCredentials, message: "nobody knows".into() };
        assert_eq!(attempts.failure(), Some(failure));
        let before = crate::RequestCount::of_thread();
        attempts.charge();
        assert_eq!((crate::RequestCount::of_thread() - before).requests, 0);
    }

    #[test]
    fn the_host_is_a_header() {
        let mut asked = request(Method::GET, "http://u:p@h:90/a%20b/s3%3A//c?x=1");
        complete(&mut asked);
        assert_eq!(asked.headers()[HOST], "h:90");
        assert_eq!(asked.headers()[USER_AGENT], AGENT);
    }
}
