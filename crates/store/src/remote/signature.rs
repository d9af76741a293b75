//! Signatures of S3 requests (AWS Signature Version 4), made below `object_store`.
//!
//! `object_store` can sign too, but it derives the key of the day for every request and formats dates
//! and digests piece by piece: 52,000 instructions beside the hashes, which made a quarter of the CPU
//! time of a small GET. Here it is 7,000, and the key is kept as long as the day and the credential stay
//! the same. A request is signed when it is sent and not before its
//! first attempt, so one that is repeated for long does not arrive with an old date.

use std::io::Write as _;
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Waker};
use std::time::{SystemTime, UNIX_EPOCH};

use http::header::{AUTHORIZATION, CONTENT_LENGTH, USER_AGENT};
use http::{HeaderMap, HeaderName, HeaderValue};
use http_body::Body;
use object_store::aws::{AwsCredential, AwsCredentialProvider};
use object_store::client::{HttpRequest, HttpRequestBody};
use ring::{digest, hmac};

use super::broken::Broken;
use crate::lock::lock;

const ALGORITHM: &str = "AWS4-HMAC-SHA256";
const DATE: HeaderName = HeaderName::from_static("x-amz-date");
const DIGEST: HeaderName = HeaderName::from_static("x-amz-content-sha256");
const TOKEN: HeaderName = HeaderName::from_static("x-amz-security-token");
const PAYER: HeaderName = HeaderName::from_static("x-amz-request-payer");
/// The SHA-256 of nothing.
const EMPTY: HeaderValue =
    HeaderValue::from_static("e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
const SECONDS_A_DAY: u64 = 86_400;

/// Signs requests. Holds secrets, so it shows nothing of itself.
pub(crate) struct Signer {
    region: String,
    credentials: AwsCredentialProvider,
    /// Who asks pays for it, where the bucket's owner wants that.
    pub(crate) payer: bool,
    /// Bodies are left out of the signature.
    pub(crate) plain_bodies: bool,
    kept: Mutex<Option<Kept>>,
}

/// What stays the same for many requests.
struct Kept {
    key: Arc<DayKey>,
    unix_s: u64,
    time: Arc<str>,
}

/// A key that follows from a secret, a day, a region and a service.
struct DayKey {
    credential: Arc<AwsCredential>,
    day: u64,
    /// What the key is for, in the words of the protocol.
    scope: String,
    key: hmac::Key,
}

impl Signer {
    pub(crate) fn new(region: &str, credentials: AwsCredentialProvider) -> Signer {
        let (region, kept) = (region.to_owned(), Mutex::default());
        Signer { region, credentials, payer: false, plain_bodies: false, kept }
    }

    /// Signs a request that is otherwise complete: whatever a proxy must not change has to be there.
    pub(crate) async fn sign(&self, request: &mut HttpRequest) -> Result<(), Broken> {
        let credential = self.credentials.get_credential().await.map_err(Broken::Unsigned)?;
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let invalid = |_| Broken::Before("the credentials cannot be sent in a header".into());
        self.sign_at(request, credential, since.as_secs()).map_err(invalid)
    }

    fn sign_at(
        &self,
        request: &mut HttpRequest,
        credential: Arc<AwsCredential>,
        unix_s: u64,
    ) -> Result<(), http::header::InvalidHeaderValue> {
        let (key, time) = self.key_at(credential, unix_s);
        let digest = match self.plain_bodies {
            true => HeaderValue::from_static("UNSIGNED-PAYLOAD"),
            false => body_digest(request.body()),
        };
        let headers = request.headers_mut();
        if let Some(token) = &key.credential.token {
            let mut token = HeaderValue::from_str(token)?;
            token.set_sensitive(true);
            headers.insert(TOKEN, token);
        }
        if self.payer {
            headers.insert(PAYER, HeaderValue::from_static("requester"));
        }
        headers.insert(DATE, HeaderValue::from_str(&time)?);
        headers.insert(DIGEST, digest.clone());
        let names = signed_names(headers);
        let canonical = canonical(request, &names, digest.as_bytes());

        let mut text = Vec::with_capacity(256);
        for line in [ALGORITHM, &*time, &key.scope] {
            text.extend_from_slice(line.as_bytes());
            text.push(b'\n');
        }
        push_hex(&mut text, digest::digest(&digest::SHA256, &canonical).as_ref());
        let signature = hmac::sign(&key.key, &text);

        let mut value = Vec::with_capacity(256);
        // Writing to memory does not go wrong.
        let id = &key.credential.key_id;
        let _ = write!(value, "{ALGORITHM} Credential={id}/{}, SignedHeaders=", key.scope);
        push_names(&mut value, &names);
        value.extend_from_slice(b", Signature=");
        push_hex(&mut value, signature.as_ref());
        let mut value = HeaderValue::from_maybe_shared(bytes::Bytes::from(value))?;
        value.set_sensitive(true);
        request.headers_mut().insert(AUTHORIZATION, value);
        Ok(())
    }

    /// The key of the day, and the time in the words of the protocol.
    fn key_at(&self, credential: Arc<AwsCredential>, unix_s: u64) -> (Arc<DayKey>, Arc<str>) {
        let day = unix_s / SECONDS_A_DAY;
        let mut kept = lock(&self.kept);
        let known = kept.take().filter(|Kept { key, .. }| {
            key.day == day
                && (Arc::ptr_eq(&key.credential, &credential) || key.credential == credential)
        });
        let now = match known {
            Some(known) if known.unix_s == unix_s => known,
            known => {
                let time: Arc<str> = timestamp(unix_s).into();
                let key = known.map(|known| known.key);
                let key =
                    key.unwrap_or_else(|| Arc::new(self.day_key(credential, day, &time[..8])));
                Kept { key, unix_s, time }
            }
        };
        let answer = (Arc::clone(&now.key), Arc::clone(&now.time));
        *kept = Some(now);
        answer
    }

    fn day_key(&self, credential: Arc<AwsCredential>, day: u64, date: &str) -> DayKey {
        let mut key = hmac_key(format!("AWS4{}", credential.secret_key).as_bytes());
        for part in [date, &self.region, "s3", "aws4_request"] {
            key = hmac_key(hmac::sign(&key, part.as_bytes()).as_ref());
        }
        let scope = format!("{date}/{}/s3/aws4_request", self.region);
        DayKey { credential, day, scope, key }
    }
}

fn hmac_key(bytes: &[u8]) -> hmac::Key {
    hmac::Key::new(hmac::HMAC_SHA256, bytes)
}

fn body_digest(body: &HttpRequestBody) -> HeaderValue {
    if body.content_length() == 0 {
        return EMPTY;
    }
    let mut context = digest::Context::new(&digest::SHA256);
    // Its parts are in memory, so it never waits and never goes wrong.
    let mut body = body.clone();
    let mut cx = Context::from_waker(Waker::noop());
    while let Poll::Ready(Some(Ok(frame))) = Pin::new(&mut body).poll_frame(&mut cx) {
        if let Some(data) = frame.data_ref() {
            context.update(data);
        }
    }
    let mut text = Vec::with_capacity(64);
    push_hex(&mut text, context.finish().as_ref());
    HeaderValue::from_bytes(&text).expect("hexadecimal digits make a header")
}

/// The names of all headers that are signed, sorted. The others are for those on the way to change.
fn signed_names(headers: &HeaderMap) -> Vec<HeaderName> {
    let left_out = [AUTHORIZATION, CONTENT_LENGTH, USER_AGENT];
    let signed = headers.keys().filter(|name| !left_out.contains(name));
    let mut names: Vec<HeaderName> = signed.cloned().collect();
    names.sort_unstable_by(|a, b| a.as_str().cmp(b.as_str()));
    names
}

fn push_names(out: &mut Vec<u8>, names: &[HeaderName]) {
    for (number, name) in names.iter().enumerate() {
        if number > 0 {
            out.push(b';');
        }
        out.extend_from_slice(name.as_str().as_bytes());
    }
}

/// The request in the form that both sides compute the digest of. The path of an object is encoded
/// once, which it is already.
fn canonical(request: &HttpRequest, names: &[HeaderName], digest: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(1 << 10);
    for line in [request.method().as_str(), request.uri().path()] {
        out.extend_from_slice(line.as_bytes());
        out.push(b'\n');
    }
    if let Some(query) = request.uri().query() {
        push_query(&mut out, query);
    }
    out.push(b'\n');
    for name in names {
        out.extend_from_slice(name.as_str().as_bytes());
        for (number, value) in request.headers().get_all(name).iter().enumerate() {
            out.push(if number == 0 { b':' } else { b',' });
            push_words(&mut out, value.as_bytes());
        }
        out.push(b'\n');
    }
    out.push(b'\n');
    push_names(&mut out, names);
    out.push(b'\n');
    out.extend_from_slice(digest);
    out
}

/// The parameters of a query, encoded strictly and sorted by how they look then.
fn push_query(out: &mut Vec<u8>, query: &str) {
    let pairs = url::form_urlencoded::parse(query.as_bytes());
    let mut pairs: Vec<_> = pairs.map(|(key, value)| (encoded(&key), encoded(&value))).collect();
    pairs.sort_unstable();
    for (number, (key, value)) in pairs.iter().enumerate() {
        if number > 0 {
            out.push(b'&');
        }
        for part in [&**key, b"=", value] {
            out.extend_from_slice(part);
        }
    }
}

fn encoded(text: &str) -> Vec<u8> {
    let mut out = Vec::with_capacity(text.len());
    for byte in text.bytes() {
        match byte {
            b'-' | b'.' | b'_' | b'~' => out.push(byte),
            _ if byte.is_ascii_alphanumeric() => out.push(byte),
            _ => out.extend_from_slice(format!("%{byte:02X}").as_bytes()),
        }
    }
    out
}

/// The words of a header's value with one space between them.
fn push_words(out: &mut Vec<u8>, value: &[u8]) {
    let words = value.split(u8::is_ascii_whitespace).filter(|word| !word.is_empty());
    for (number, word) in words.enumerate() {
        if number > 0 {
            out.push(b' ');
        }
        out.extend_from_slice(word);
    }
}

fn push_hex(out: &mut Vec<u8>, bytes: &[u8]) {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    for byte in bytes {
        out.extend([DIGITS[usize::from(byte >> 4)], DIGITS[usize::from(byte & 15)]]);
    }
}

/// A time as `20130524T000000Z`.
fn timestamp(unix_s: u64) -> String {
    let time = i64::try_from(unix_s).ok().and_then(|s| jiff::Timestamp::from_second(s).ok());
    time.unwrap_or_default().strftime("%Y%m%dT%H%M%SZ").to_string()
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use http::Method;
    use http::header::{HOST, IF_MATCH, RANGE};
    use object_store::aws::AwsAuthorizer;
    use object_store::{PutPayload, StaticCredentialProvider};

    use super::super::http::request;
    use super::*;

    fn credential(token: Option<&str>) -> AwsCredential {
        AwsCredential {
            key_id: "AKIAIOSFODNN7EXAMPLE".to_owned(),
            secret_key: "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY".to_owned(),
            token: token.map(str::to_owned),
        }
    }

    fn signer(token: Option<&str>) -> Signer {
        Signer::new("us-east-1", Arc::new(StaticCredentialProvider::new(credential(token))))
    }

    #[test]
    fn times_are_those_of_the_calendar() {
        for (unix_s, expected) in [
            (0, "19700101T000000Z"),
            (1_369_353_600, "20130524T000000Z"),
            (951_782_399, "20000228T235959Z"),
            (951_782_400, "20000229T000000Z"),
            (951_868_800, "20000301T000000Z"),
            (1_709_210_096, "20240229T123456Z"),
            (1_735_689_599, "20241231T235959Z"),
            (4_107_542_400, "21000301T000000Z"),
        ] {
            assert_eq!(timestamp(unix_s), expected, "{unix_s}");
        }
    }

    /// The example of Amazon's documentation, "GET Object".
    #[test]
    fn the_documented_example_has_the_documented_signature() {
        let mut asked = request(Method::GET, "https://examplebucket.s3.amazonaws.com/test.txt");
        let host = HeaderValue::from_static("examplebucket.s3.amazonaws.com");
        asked.headers_mut().insert(HOST, host);
        asked.headers_mut().insert(RANGE, HeaderValue::from_static("bytes=0-9"));
        asked.headers_mut().insert(USER_AGENT, HeaderValue::from_static("not signed"));
        let signer = signer(None);
        signer.sign_at(&mut asked, Arc::new(credential(None)), 1_369_353_600).unwrap();
        assert_eq!(
            asked.headers()[AUTHORIZATION],
            "AWS4-HMAC-SHA256 Credential=AKIAIOSFODNN7EXAMPLE/20130524/us-east-1/s3/aws4_request, \
             SignedHeaders=host;range;x-amz-content-sha256;x-amz-date, \
             Signature=f0e8bdb87c964420e857bd35b5d6ed310bd44f0170aba48dd91039c6036bdb41"
        );
    }

    /// Signs as `object_store` does, at the time it took.
    fn check(
        signer: &Signer,
        token: Option<&str>,
        method: Method,
        uri: &str,
        body: HttpRequestBody,
    ) {
        let mut asked = request(method, uri);
        *asked.body_mut() = body;
        let host = asked.uri().authority().unwrap().as_str().to_owned();
        for (name, value) in [(IF_MATCH, "\"a  b\""), (RANGE, " bytes=5-9 "), (CONTENT_LENGTH, "3")]
        {
            asked.headers_mut().insert(name, HeaderValue::from_str(value).unwrap());
        }
        asked.headers_mut().append("x-amz-meta-list", HeaderValue::from_static("one"));
        asked.headers_mut().append("x-amz-meta-list", HeaderValue::from_static("two"));
        let mut expected = asked.clone();
        let frame =
            Pin::new(&mut asked.body().clone()).poll_frame(&mut Context::from_waker(Waker::noop()));
        assert!(frame.is_ready());
        let whole = parts_of(asked.body());
        let digest = digest::digest(&digest::SHA256, &whole);
        let credential = credential(token);
        let authorizer = AwsAuthorizer::new(&credential, "s3", "us-east-1")
            .with_sign_payload(!signer.plain_bodies)
            .with_request_payer(signer.payer);
        authorizer.try_authorize(&mut expected, Some(digest.as_ref())).unwrap();
        let date = expected.headers()[DATE].to_str().unwrap().to_owned();
        let second = (0..60).map(|back| now() - back).find(|&at| timestamp(at) == date);
        asked.headers_mut().insert(HOST, HeaderValue::from_str(&host).unwrap());
        signer.sign_at(&mut asked, Arc::new(credential), second.unwrap()).unwrap();
        asked.headers_mut().remove(HOST);
        assert_eq!(asked.headers(), expected.headers(), "{uri}");
    }

    fn now() -> u64 {
        SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs()
    }

    fn parts_of(body: &HttpRequestBody) -> Vec<u8> {
        let (mut body, mut whole) = (body.clone(), Vec::new());
        let mut cx = Context::from_waker(Waker::noop());
        while let Poll::Ready(Some(Ok(frame))) = Pin::new(&mut body).poll_frame(&mut cx) {
            whole.extend_from_slice(frame.data_ref().unwrap());
        }
        whole
    }

    #[test]
    fn signatures_are_those_of_object_store() {
        let empty = HttpRequestBody::empty;
        let plain = signer(None);
        check(&plain, None, Method::GET, "http://h:9000/b/train/x_1.npz", empty());
        check(&plain, None, Method::HEAD, "https://b.h/s3%3A//b/%C3%A9%20%2B~", empty());
        let listing = "http://h/b?prefix=a%2Fb+c&list-type=2&delimiter=%2F&x&start-after=%C3%A9*~";
        check(&plain, None, Method::GET, listing, empty());
        check(&plain, None, Method::POST, "http://h/b/k?uploads=", empty());
        let text = || Bytes::from_static(b"<x/>").into();
        check(&plain, None, Method::POST, "http://h/b/k?uploadId=a%2Bb", text());
        let parts = PutPayload::from_iter([&b"abc"[..], b"", b"defg"].map(Bytes::from_static));
        let put = "http://h/b/k?partNumber=10&uploadId=2&partNumber=1";
        check(&plain, None, Method::PUT, put, parts.clone().into());

        let token = Some("FwoGZXIvYXdzEA//token==");
        check(&signer(token), token, Method::GET, "http://h/b/k", empty());
        let payer = Signer { payer: true, ..signer(None) };
        check(&payer, None, Method::GET, "http://h/b/k", empty());
        let bare = Signer { plain_bodies: true, ..signer(None) };
        check(&bare, None, Method::PUT, "http://h/b/k", parts.into());
    }

    #[test]
    fn a_key_is_kept_for_its_day_and_its_credential() {
        let signer = signer(None);
        let (one, other) = (Arc::new(credential(None)), Arc::new(credential(Some("t"))));
        let key_on = |day: u64, credential| signer.key_at(credential, day * SECONDS_A_DAY).0;
        let first = key_on(15_849, Arc::clone(&one));
        assert_eq!(first.scope, "20130524/us-east-1/s3/aws4_request");
        assert!(Arc::ptr_eq(&first, &key_on(15_849, Arc::new(credential(None)))));
        assert_eq!(key_on(15_850, one).scope, "20130525/us-east-1/s3/aws4_request");
        assert_eq!(key_on(15_850, other).credential.token.as_deref(), Some("t"));
    }

    #[test]
    fn a_token_that_is_no_header_is_refused() {
        let mut asked = request(Method::GET, "http://h/b/k");
        let refused = signer(None).sign_at(&mut asked, Arc::new(credential(Some("a\nb"))), 0);
        assert!(refused.is_err());
        assert!(!asked.headers().contains_key(AUTHORIZATION));
    }
}
