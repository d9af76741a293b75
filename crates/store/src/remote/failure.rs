//! Why an attempt went wrong, as one line that names no secret.

use object_store::Error;

use crate::{Op, RemoteFault, StoreError};

/// Longest message kept of a server's answer.
const MESSAGE_CHARS_MAX: usize = 240;

/// Why an attempt went wrong.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Failure {
    pub(crate) fault: RemoteFault,
    pub(crate) message: String,
}

/// An answer other than success.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Refusal<'a> {
    pub(crate) status: u16,
    /// From the header that tells where an S3 bucket is.
    pub(crate) region: Option<&'a str>,
    /// From Azure's header, which is all that answers to `HEAD` say.
    pub(crate) code: Option<&'a str>,
    pub(crate) body: &'a str,
}

impl Failure {
    /// What a server meant.
    pub(crate) fn of_answer(refusal: Refusal<'_>) -> Failure {
        let Refusal { status, region, code, body } = refusal;
        let code = element(body, "Code").or_else(|| code.map(str::to_owned)).unwrap_or_default();
        let said = element(body, "Message").unwrap_or_default();
        let fault = match (status, code.as_str()) {
            (_, "NoSuchBucket" | "ContainerNotFound") => RemoteFault::NoBucket,
            (_, "SignatureDoesNotMatch") => RemoteFault::Signature,
            (
                _,
                "InvalidAccessKeyId" | "InvalidToken" | "ExpiredToken" | "AuthenticationFailed",
            ) => RemoteFault::Credentials,
            (_, "AuthorizationHeaderMalformed" | "PermanentRedirect") | (300..=399, _) => {
                RemoteFault::Region
            }
            (401, _) => RemoteFault::Credentials,
            (403, _) => RemoteFault::Denied,
            (404, _) => RemoteFault::Missing,
            (412, _) => RemoteFault::Changed,
            (429 | 503, _) | (_, "SlowDown") => RemoteFault::Throttled,
            (500..=599, _) => RemoteFault::Server(status),
            _ => RemoteFault::Status(status),
        };
        let mut message = match code.as_str() {
            "" => status.to_string(),
            code => format!("{status} {code}"),
        };
        if !said.is_empty() {
            message = format!("{message}: {said}");
        }
        let found = element(body, "Region");
        if let Some(region) = region.or(found.as_deref()).filter(|_| fault == RemoteFault::Region) {
            message = format!("{message}; expected region {region}");
        }
        Failure { fault, message: one_line(&message) }
    }

    /// Whether the same request may succeed later.
    pub(crate) fn is_passing(&self) -> bool {
        matches!(
            self.fault,
            RemoteFault::Unreachable
                | RemoteFault::Broken
                | RemoteFault::Stalled
                | RemoteFault::Throttled
                | RemoteFault::Server(_)
                | RemoteFault::Status(408)
        )
    }

    pub(crate) fn error(self, op: Op, path: &str) -> StoreError {
        let Failure { fault, message } = self;
        StoreError::Remote { op, path: path.to_owned(), fault, message }
    }
}

/// The error of an operation: what its last attempt met, or what was wrong before the first.
pub(crate) fn of_error(op: Op, path: &str, seen: Option<Failure>, error: &Error) -> StoreError {
    if let Some(seen) = seen {
        return seen.error(op, path);
    }
    let fault = match error {
        Error::NotFound { .. } => RemoteFault::Missing,
        Error::PermissionDenied { .. } => RemoteFault::Denied,
        Error::Unauthenticated { .. } => RemoteFault::NoCredentials,
        Error::Precondition { .. } => RemoteFault::Changed,
        Error::NotSupported { .. } | Error::NotImplemented { .. } => RemoteFault::Unsupported,
        _ => RemoteFault::Protocol,
    };
    Failure { fault, message: one_line(&innermost(error)) }.error(op, path)
}

/// The words of the first cause: those above repeat it, and name URLs.
pub(crate) fn innermost(error: &(dyn std::error::Error + 'static)) -> String {
    let mut last = error;
    while let Some(source) = last.source() {
        last = source;
    }
    last.to_string()
}

/// The text of the first element of that name. Servers' errors are flat, and what is no XML has none.
fn element(body: &str, name: &str) -> Option<String> {
    let (_, rest) = body.split_once(&format!("<{name}>"))?;
    let (text, _) = rest.split_once("</")?;
    let text = text.replace("&quot;", "\"").replace("&apos;", "'");
    let text = text.replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&");
    Some(text.lines().next().unwrap_or_default().to_owned())
}

/// Text on one line, without what follows a `?` in it: queries may carry signatures and tokens.
pub(crate) fn one_line(text: &str) -> String {
    let words = text.split_whitespace().map(|word| match word.split_once('?') {
        Some((before, query)) if query.contains('=') => before,
        _ => word,
    });
    let line = words.collect::<Vec<_>>().join(" ");
    line.chars().filter(|c| !c.is_control()).take(MESSAGE_CHARS_MAX).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(status: u16, body: &str, expected: RemoteFault, message: &str) {
        let failure = Failure::of_answer(Refusal { status, body, ..Refusal::default() });
        assert_eq!((failure.fault, failure.message.as_str()), (expected, message), "{body}");
    }

    fn xml(code: &str, rest: &str) -> String {
        format!("<?xml version=\"1.0\"?>\n<Error><Code>{code}</Code>{rest}</Error>")
    }

    #[test]
    fn answers_have_a_kind_and_one_line() {
        check(404, "", RemoteFault::Missing, "404");
        let body = xml("NoSuchKey", "<Message>The key &quot;a&amp;b&quot; is gone</Message>");
        check(404, &body, RemoteFault::Missing, "404 NoSuchKey: The key \"a&b\" is gone");
        check(404, &xml("NoSuchBucket", ""), RemoteFault::NoBucket, "404 NoSuchBucket");
        check(403, &xml("AccessDenied", ""), RemoteFault::Denied, "403 AccessDenied");
        let body = xml(
            "SignatureDoesNotMatch",
            "<Message>no\nRequestId: 1</Message><StringToSign>AWS4 secret</StringToSign>",
        );
        check(403, &body, RemoteFault::Signature, "403 SignatureDoesNotMatch: no");
        check(
            403,
            &xml("InvalidAccessKeyId", ""),
            RemoteFault::Credentials,
            "403 InvalidAccessKeyId",
        );
        let body = xml("AuthorizationHeaderMalformed", "<Region>eu-west-1</Region>");
        let message = "400 AuthorizationHeaderMalformed; expected region eu-west-1";
        check(400, &body, RemoteFault::Region, message);
        check(412, "", RemoteFault::Changed, "412");
        check(503, &xml("SlowDown", ""), RemoteFault::Throttled, "503 SlowDown");
        check(503, "", RemoteFault::Throttled, "503");
        check(500, "<html>sorry</html>", RemoteFault::Server(500), "500");
        check(409, "", RemoteFault::Status(409), "409");
    }

    #[test]
    fn a_redirect_says_where_to() {
        let region = Some("us-west-2");
        let failure = Failure::of_answer(Refusal { status: 301, region, ..Refusal::default() });
        assert_eq!(failure.fault, RemoteFault::Region);
        assert_eq!(failure.message, "301; expected region us-west-2");
    }

    #[test]
    fn an_answer_without_a_body_says_its_code_in_a_header() {
        let said = |status, code, body| {
            let failure =
                Failure::of_answer(Refusal { status, code: Some(code), body, region: None });
            (failure.fault, failure.message)
        };
        let expected = |fault, message: &str| (fault, message.to_owned());
        assert_eq!(
            said(403, "AuthenticationFailed", ""),
            expected(RemoteFault::Credentials, "403 AuthenticationFailed")
        );
        assert_eq!(
            said(404, "ContainerNotFound", ""),
            expected(RemoteFault::NoBucket, "404 ContainerNotFound")
        );
        let body = xml("BlobNotFound", "<Message>gone</Message>");
        assert_eq!(
            said(404, "BlobNotFound", &body),
            expected(RemoteFault::Missing, "404 BlobNotFound: gone")
        );
    }

    #[test]
    fn what_a_server_does_not_know_is_said_as_such() {
        let said =
            |status| Failure::of_answer(Refusal { status, ..Refusal::default() }).fault.to_string();
        assert_eq!(said(405), "the server does not allow that");
        assert_eq!(said(501), "the server cannot do that");
        assert_eq!(said(500), "server error 500");
    }

    #[test]
    fn queries_are_cut_off() {
        let text = "GET https://h/x?sig=abc&X-Amz-Signature=1 went\n wrong?";
        assert_eq!(one_line(text), "GET https://h/x went wrong?");
        assert_eq!(one_line(&"x".repeat(1000)).len(), MESSAGE_CHARS_MAX);
    }

    #[test]
    fn passing_faults_are_those_that_are_retried() {
        let passing =
            |status| Failure::of_answer(Refusal { status, ..Refusal::default() }).is_passing();
        let found = [400, 403, 404, 408, 409, 412, 416, 429, 500, 503].map(passing);
        let expected = [false, false, false, true, false, false, false, true, true, true];
        assert_eq!(found, expected);
    }
}
