//! Writing JSON text piece by piece, for formats whose lines are too many to be built as values.

use memchr::memmem;
use serde_json::{Map, Value};

/// Appends a string with its quotes.
pub(crate) fn text(out: &mut Vec<u8>, text: &str) {
    out.push(b'"');
    let bytes = text.as_bytes();
    let mut clean = 0;
    for (at, &byte) in bytes.iter().enumerate() {
        if byte >= b' ' && byte != b'"' && byte != b'\\' {
            continue;
        }
        out.extend_from_slice(&bytes[clean..at]);
        clean = at + 1;
        match byte {
            b'"' => out.extend_from_slice(b"\\\""),
            b'\\' => out.extend_from_slice(b"\\\\"),
            b'\n' => out.extend_from_slice(b"\\n"),
            b'\r' => out.extend_from_slice(b"\\r"),
            b'\t' => out.extend_from_slice(b"\\t"),
            _ => out.extend_from_slice(format!("\\u{byte:04x}").as_bytes()),
        }
    }
    out.extend_from_slice(&bytes[clean..]);
    out.push(b'"');
}

/// Appends the name of a member, after a comma unless it is the first one.
pub(crate) fn key(out: &mut Vec<u8>, name: &str) {
    comma(out);
    text(out, name);
    out.push(b':');
}

/// Appends a comma unless an object has just begun.
pub(crate) fn comma(out: &mut Vec<u8>) {
    if !matches!(out.last(), None | Some(b'{')) {
        out.push(b',');
    }
}

/// Appends the members of an object whose text is `object`. A name must not come twice: one that is
/// `reserved`, or among the members from `begin` on, gets a prefix.
pub(crate) fn append(out: &mut Vec<u8>, begin: usize, object: &str, reserved: Option<&str>) {
    let Ok(members) = serde_json::from_str::<Map<String, Value>>(object) else { return };
    let taken = out[begin..].to_vec();
    for (name, value) in members {
        let mut quoted = Vec::new();
        text(&mut quoted, &name);
        quoted.push(b':');
        let is_taken = reserved == Some(name.as_str()) || memmem::find(&taken, &quoted).is_some();
        key(out, &if is_taken { format!("extra_{name}") } else { name });
        out.extend_from_slice(value.to_string().as_bytes());
    }
}

/// Appends a whole number.
pub(crate) fn int(out: &mut Vec<u8>, number: impl itoa::Integer) {
    out.extend_from_slice(itoa::Buffer::new().format(number).as_bytes());
}

/// Appends a number; JSON has none that is not finite, so those become null.
pub(crate) fn float(out: &mut Vec<u8>, number: f64) {
    if number.is_finite() {
        out.extend_from_slice(zmij::Buffer::new().format_finite(number).as_bytes());
    } else {
        out.extend_from_slice(b"null");
    }
}

/// The members of an object whose text is `object`, as text: what is between its braces.
pub(crate) fn inner(object: &str) -> &str {
    let trimmed = object.trim();
    trimmed.strip_prefix('{').and_then(|rest| rest.strip_suffix('}')).unwrap_or("").trim()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn strings_are_escaped_as_other_readers_expect() {
        for sample in ["", "plain", "a\"b\\c", "tab\tnew\nline\r", "\u{1}\u{1f}", "päth/日本"] {
            let mut out = Vec::new();
            text(&mut out, sample);
            assert_eq!(serde_json::from_slice::<String>(&out).unwrap(), sample);
        }
    }

    #[test]
    fn numbers_are_json() {
        let mut out = Vec::new();
        int(&mut out, i64::MIN);
        out.push(b' ');
        float(&mut out, 0.1);
        out.push(b' ');
        float(&mut out, f64::NAN);
        assert_eq!(out, b"-9223372036854775808 0.1 null");
    }
}
