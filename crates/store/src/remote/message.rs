//! What requests and answers look like on the wire: HTTP/1.1, without a socket.
//!
//! Only what a client of object stores needs: no upgrades, no requests of unknown length, no trailers
//! that anybody reads. Whatever could be understood in two ways is an error, or ends the connection.

use std::io;
use std::mem::MaybeUninit;

use bytes::{Buf, Bytes, BytesMut};
use http::header::{CONNECTION, CONTENT_LENGTH, TRANSFER_ENCODING};
use http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode, Version};
use object_store::client::HttpRequest;

/// Most headers of an answer.
const HEADERS_MAX: usize = 100;
/// Longest head of an answer, and the longest trailer.
const HEAD_BYTES_MAX: usize = 256 << 10;
/// Longest line before a chunk.
const CHUNK_LINE_MAX: usize = 4 << 10;

/// How the end of a body is found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Framing {
    /// The body has this many bytes.
    Exact(u64),
    /// Each chunk says how long it is.
    Chunked,
    /// The server closes the connection.
    UntilClose,
}

/// The head of an answer.
#[derive(Debug)]
pub(crate) struct Head {
    pub(crate) parts: http::response::Parts,
    pub(crate) framing: Framing,
    /// Whether the connection can be used again after the body.
    pub(crate) keeps_open: bool,
}

/// An answer that is not what the protocol says.
fn malformed(why: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, why)
}

/// Writes the head of a request, whose headers name the host already.
pub(crate) fn write_head(request: &HttpRequest, out: &mut Vec<u8>) {
    let path = request.uri().path_and_query().map_or("/", |path| path.as_str());
    for part in [request.method().as_str(), " ", path, " HTTP/1.1\r\n"] {
        out.extend_from_slice(part.as_bytes());
    }
    for (name, value) in request.headers() {
        if *name == CONTENT_LENGTH {
            continue;
        }
        for part in [name.as_str().as_bytes(), b": ", value.as_bytes(), b"\r\n"] {
            out.extend_from_slice(part);
        }
    }
    let len = request.body().content_length();
    // Servers wait for a body of these two unless the request says it is empty.
    if len > 0 || matches!(*request.method(), Method::PUT | Method::POST) {
        out.extend_from_slice(format!("content-length: {len}\r\n").as_bytes());
    }
    out.extend_from_slice(b"\r\n");
}

/// Takes the head of the answer to a request from what was read, if it is complete.
pub(crate) fn take_head(read: &mut BytesMut, asked: &Method) -> io::Result<Option<Head>> {
    loop {
        let mut headers = [const { MaybeUninit::uninit() }; HEADERS_MAX];
        let mut found = httparse::Response::new(&mut []);
        let config = httparse::ParserConfig::default();
        let parsed = config.parse_response_with_uninit_headers(&mut found, read, &mut headers);
        let len = match parsed.map_err(|error| malformed(&error.to_string()))? {
            httparse::Status::Complete(len) => len,
            httparse::Status::Partial if read.len() > HEAD_BYTES_MAX => {
                return Err(malformed("the head of the answer is too long"));
            }
            httparse::Status::Partial => return Ok(None),
        };
        let head = head_of(&found, asked)?;
        read.advance(len);
        // What comes before the answer proper says nothing that is asked for here.
        if !head.parts.status.is_informational() {
            return Ok(Some(head));
        }
    }
}

fn head_of(found: &httparse::Response<'_, '_>, asked: &Method) -> io::Result<Head> {
    let status = found.code.and_then(|code| StatusCode::from_u16(code).ok());
    let status = status.ok_or_else(|| malformed("the answer has no valid status"))?;
    if status == StatusCode::SWITCHING_PROTOCOLS {
        return Err(malformed("the server changes the protocol"));
    }
    let mut headers = HeaderMap::with_capacity(found.headers.len());
    for header in &*found.headers {
        let name = HeaderName::from_bytes(header.name.as_bytes());
        let value = HeaderValue::from_bytes(header.value);
        let (Ok(name), Ok(value)) = (name, value) else {
            return Err(malformed("a header of the answer is not valid"));
        };
        headers.append(name, value);
    }
    let is_current = found.version == Some(1);
    let framing = framing(status, &headers, asked)?;
    let is_double = headers.contains_key(TRANSFER_ENCODING) && headers.contains_key(CONTENT_LENGTH);
    let keeps_open = is_current
        && !is_double
        && framing != Framing::UntilClose
        && !headers.get_all(CONNECTION).iter().any(|value| names(value, "close"));
    let (mut parts, ()) = http::Response::new(()).into_parts();
    parts.status = status;
    parts.version = if is_current { Version::HTTP_11 } else { Version::HTTP_10 };
    parts.headers = headers;
    Ok(Head { parts, framing, keeps_open })
}

fn framing(status: StatusCode, headers: &HeaderMap, asked: &Method) -> io::Result<Framing> {
    let has_none = matches!(status, StatusCode::NO_CONTENT | StatusCode::NOT_MODIFIED);
    if *asked == Method::HEAD || has_none || status.is_informational() {
        return Ok(Framing::Exact(0));
    }
    if let Some(last) = headers.get_all(TRANSFER_ENCODING).iter().next_back() {
        let last = last.to_str().unwrap_or_default().rsplit(',').next().unwrap_or_default();
        return Ok(match last.trim().eq_ignore_ascii_case("chunked") {
            true => Framing::Chunked,
            false => Framing::UntilClose,
        });
    }
    let mut len = None;
    for value in headers.get_all(CONTENT_LENGTH) {
        let found = value.to_str().ok().filter(|text| text.bytes().all(|b| b.is_ascii_digit()));
        let found: Option<u64> = found.and_then(|text| text.parse().ok());
        if found.is_none() || (len.is_some() && len != found) {
            return Err(malformed("the answer has no valid length"));
        }
        len = found;
    }
    Ok(len.map_or(Framing::UntilClose, Framing::Exact))
}

/// Whether a list has that word. What cannot be read may have it.
fn names(value: &HeaderValue, word: &str) -> bool {
    let words = value.to_str().unwrap_or(word);
    words.split(',').any(|found| found.trim().eq_ignore_ascii_case(word))
}

/// Where the reader of a body in chunks is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Chunks {
    /// Before the line that says how long the next chunk is.
    Size,
    /// In a chunk, with this many bytes left.
    Data(u64),
    /// After the bytes of a chunk.
    DataEnd,
    /// After the last chunk, with this many bytes of trailers read.
    Trailers(usize),
    End,
}

impl Chunks {
    /// The next bytes of the body in what was read. `None` if there are none, or at the end.
    pub(crate) fn next(&mut self, read: &mut BytesMut) -> io::Result<Option<Bytes>> {
        loop {
            *self = match *self {
                Chunks::Size => match take_line(read, CHUNK_LINE_MAX)? {
                    None => return Ok(None),
                    Some(line) => match chunk_len(&line)? {
                        0 => Chunks::Trailers(0),
                        len => Chunks::Data(len),
                    },
                },
                Chunks::Data(0) => Chunks::DataEnd,
                Chunks::Data(_) if read.is_empty() => return Ok(None),
                Chunks::Data(left) => {
                    let count = left.min(read.len() as u64);
                    *self = Chunks::Data(left - count);
                    return Ok(Some(read.split_to(count as usize).freeze()));
                }
                Chunks::DataEnd => match take_line(read, 0)? {
                    None => return Ok(None),
                    Some(_) => Chunks::Size,
                },
                Chunks::Trailers(seen) => match take_line(read, HEAD_BYTES_MAX - seen)? {
                    None => return Ok(None),
                    Some(line) if line.is_empty() => Chunks::End,
                    Some(line) => Chunks::Trailers(HEAD_BYTES_MAX.min(seen + line.len() + 2)),
                },
                Chunks::End => return Ok(None),
            };
        }
    }
}

/// Takes a line of at most `most` bytes without its end.
fn take_line(read: &mut BytesMut, most: usize) -> io::Result<Option<BytesMut>> {
    match read.windows(2).position(|two| two == b"\r\n") {
        Some(len) if len <= most => {
            let line = read.split_to(len);
            read.advance(2);
            Ok(Some(line))
        }
        None if read.len() <= most + 1 => Ok(None),
        _ => Err(malformed("a chunk of the answer has no end")),
    }
}

fn chunk_len(line: &[u8]) -> io::Result<u64> {
    let digits = line.split(|&byte| byte == b';').next().unwrap_or_default().trim_ascii();
    let digits = std::str::from_utf8(digits).ok();
    let digits = digits.filter(|text| text.bytes().all(|byte| byte.is_ascii_hexdigit()));
    let len = digits.and_then(|text| u64::from_str_radix(text, 16).ok());
    len.ok_or_else(|| malformed("a chunk of the answer has no valid length"))
}

#[cfg(test)]
mod tests {
    use super::super::http::request;
    use super::*;

    fn written(method: Method, body: &'static str) -> String {
        let mut asked = request(method, "http://h:90/a%20b/s3%3A//c?x=1");
        asked.headers_mut().insert(http::header::HOST, HeaderValue::from_static("h:90"));
        asked.headers_mut().insert(CONTENT_LENGTH, HeaderValue::from_static("77"));
        *asked.body_mut() = Bytes::from_static(body.as_bytes()).into();
        let mut out = Vec::new();
        write_head(&asked, &mut out);
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn a_request_names_the_path_and_the_length_of_its_body() {
        let start = "/a%20b/s3%3A//c?x=1 HTTP/1.1\r\nhost: h:90\r\n";
        assert_eq!(written(Method::GET, ""), format!("GET {start}\r\n"));
        assert_eq!(written(Method::PUT, ""), format!("PUT {start}content-length: 0\r\n\r\n"));
        assert_eq!(written(Method::POST, "abc"), format!("POST {start}content-length: 3\r\n\r\n"));
    }

    fn head(text: &str, asked: &Method) -> Result<(u16, Framing, bool), String> {
        let mut read = BytesMut::from(text);
        let head = take_head(&mut read, asked).map_err(|error| error.to_string())?;
        let head = head.ok_or("incomplete")?;
        assert_eq!(read, "rest", "{text}");
        Ok((head.parts.status.as_u16(), head.framing, head.keeps_open))
    }

    fn check_head(lines: &str, expected: (u16, Framing, bool)) {
        let text = format!("{}\r\n\r\nrest", lines.replace('\n', "\r\n"));
        assert_eq!(head(&text, &Method::GET), Ok(expected), "{lines}");
    }

    #[test]
    fn a_head_says_where_the_body_ends() {
        use Framing::{Chunked, Exact, UntilClose};
        check_head("HTTP/1.1 200 OK\nContent-Length: 7", (200, Exact(7), true));
        check_head("HTTP/1.1 200 OK\ncontent-length: 7\ncontent-length: 7", (200, Exact(7), true));
        check_head("HTTP/1.1 200 OK\nTransfer-Encoding: gzip, Chunked", (200, Chunked, true));
        let double = "HTTP/1.1 200 OK\ncontent-length: 7\ntransfer-encoding: chunked";
        check_head(double, (200, Chunked, false));
        check_head("HTTP/1.1 200 OK\ntransfer-encoding: gzip", (200, UntilClose, false));
        check_head("HTTP/1.1 200 OK", (200, UntilClose, false));
        check_head("HTTP/1.0 200 OK\ncontent-length: 7", (200, Exact(7), false));
        check_head(
            "HTTP/1.1 404 No\nconnection: x, Close\ncontent-length: 7",
            (404, Exact(7), false),
        );
        check_head("HTTP/1.1 204 No Content", (204, Exact(0), true));
        check_head("HTTP/1.1 304 Not Modified\ncontent-length: 7", (304, Exact(0), true));
        let early = "HTTP/1.1 100 Continue\n\nHTTP/1.1 200 OK\ncontent-length: 7";
        check_head(early, (200, Exact(7), true));
        let text = "HTTP/1.1 200 OK\r\ncontent-length: 7\r\n\r\nrest";
        assert_eq!(head(text, &Method::HEAD), Ok((200, Exact(0), true)));
    }

    #[test]
    fn a_head_that_can_be_read_in_two_ways_is_refused() {
        let refused = |text: &str| head(text, &Method::GET).unwrap_err();
        let length = "the answer has no valid length";
        let two = "HTTP/1.1 200 OK\r\ncontent-length: 7\r\ncontent-length: 8\r\n\r\nrest";
        assert_eq!(refused(two), length);
        assert_eq!(refused("HTTP/1.1 200 OK\r\ncontent-length: +7\r\n\r\nrest"), length);
        assert_eq!(refused("HTTP/1.1 200 OK\r\ncontent-length: \r\n\r\nrest"), length);
        let other = "HTTP/1.1 101 Go\r\n\r\nrest";
        assert_eq!(refused(other), "the server changes the protocol");
        assert_eq!(refused("HTTP/1.1 200 OK\r\ncontent-le"), "incomplete");
        assert_eq!(refused("HTTP/2 200\r\n\r\nrest"), "invalid HTTP version");
        let long = format!("HTTP/1.1 200 OK\r\nx: {}", "y".repeat(HEAD_BYTES_MAX));
        assert_eq!(refused(&long), "the head of the answer is too long");
    }

    /// Feeds a body in pieces of `step` bytes; what it says, where its reader is, what is left over.
    fn chunks(text: &str, step: usize) -> Result<(String, Chunks, String), String> {
        let (mut at, mut read, mut body) = (Chunks::Size, BytesMut::new(), Vec::new());
        for piece in text.as_bytes().chunks(step) {
            read.extend_from_slice(piece);
            while let Some(data) = at.next(&mut read).map_err(|error| error.to_string())? {
                body.extend_from_slice(&data);
            }
        }
        let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
        Ok((text(&body), at, text(&read)))
    }

    #[test]
    fn chunks_are_joined_however_they_come() {
        let text = "3\r\nabc\r\n00A ; x=y\r\n0123456789\r\n0\r\nt: u\r\n\r\nmore";
        for step in [1, 2, 3, 7, text.len()] {
            let expected = ("abc0123456789".to_owned(), Chunks::End, "more".to_owned());
            assert_eq!(chunks(text, step), Ok(expected), "in steps of {step}");
        }
        let cut = Ok(("ab".to_owned(), Chunks::Data(1), String::new()));
        assert_eq!(chunks("3\r\nab", 1), cut);
    }

    #[test]
    fn chunks_without_a_valid_length_or_end_are_refused() {
        let (length, end) =
            ("a chunk of the answer has no valid length", "a chunk of the answer has no end");
        for text in ["\r\n", "-1\r\n", "g\r\n", "11111111111111111\r\n", "+3\r\nabc"] {
            assert_eq!(chunks(text, 1), Err(length.to_owned()), "{text:?}");
        }
        assert_eq!(chunks("3\r\nabcd\r\n", 1), Err(end.to_owned()));
        assert_eq!(chunks(&"1".repeat(CHUNK_LINE_MAX + 2), 64), Err(end.to_owned()));
        let trailers = format!("0\r\n{}", "a: b\r\n".repeat(HEAD_BYTES_MAX / 6 + 2));
        assert_eq!(chunks(&trailers, 1024), Err(end.to_owned()));
    }
}
