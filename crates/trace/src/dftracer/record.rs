//! One line of a DFTracer file, before its hashes are resolved.
//!
//! Lines of all dialects become a [`Line`]: numbers in quotes are numbers, letters and numbers of `ph`
//! are the same. A scanner made for these lines takes nearly all of them; whatever it does not
//! understand goes to a complete JSON reader.

use std::borrow::Cow;

use serde_json::Value;

use crate::dftracer::scanner::{Scanner, is_after_record};

/// What is wrong with a line that is not complete.
pub(crate) const CUT_OFF: &str = "ends too early";

/// What a record is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Phase {
    Complete,
    Counter,
    Aggregate,
    Metadata,
    /// A number or letter that is not known.
    Unknown,
}

/// The value of an argument.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Arg<'a> {
    Int(i64),
    Text(Cow<'a, str>),
    /// Any other JSON value, as text.
    Raw(Cow<'a, str>),
}

impl Arg<'_> {
    /// A whole number; old files put them in quotes, and sizes of samples are written as floats.
    pub(crate) fn number(&self) -> Option<i64> {
        match self {
            Self::Int(number) => Some(*number),
            Self::Text(text) => text.parse().ok(),
            Self::Raw(raw) => {
                let (whole, fraction) = raw.split_once('.')?;
                fraction.bytes().all(|digit| digit == b'0').then(|| whole.parse().ok())?
            }
        }
    }

    /// Any number.
    pub(crate) fn float(&self) -> Option<f64> {
        match self {
            #[expect(clippy::cast_precision_loss, reason = "counters are floats")]
            Self::Int(number) => Some(*number as f64),
            Self::Text(_) => None,
            Self::Raw(raw) => raw.parse().ok(),
        }
    }
}

/// A record.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Line<'a> {
    pub(crate) name: Cow<'a, str>,
    pub(crate) category: Cow<'a, str>,
    pub(crate) layer: Option<i64>,
    pub(crate) pid: i64,
    pub(crate) tid: i64,
    pub(crate) start: Option<i64>,
    pub(crate) duration: Option<i64>,
    pub(crate) phase: Phase,
    pub(crate) args: Vec<(Cow<'a, str>, Arg<'a>)>,
}

/// What became of a line.
#[derive(Debug)]
pub(crate) enum Scanned {
    /// The line's fields are there.
    Record,
    /// Its name is not one of those that were asked for.
    Uninteresting,
    /// It is not what the scanner is made for; it may be good JSON all the same.
    Unusual,
}

/// Names of records that say something about others.
pub(crate) fn is_about_others(name: &str) -> bool {
    matches!(
        name,
        "FH" | "SH" | "HH" | "CM" | "PR" | "process_name" | "thread_name" | "EH" | "ET" | "ER"
    )
}

impl<'a> Line<'a> {
    pub(crate) fn new() -> Self {
        Self {
            name: Cow::Borrowed(""),
            category: Cow::Borrowed(""),
            layer: None,
            pid: 0,
            tid: 0,
            start: None,
            duration: None,
            phase: Phase::Unknown,
            args: Vec::new(),
        }
    }

    fn clear(&mut self) {
        self.args.clear();
        (self.name, self.category) = (Cow::Borrowed(""), Cow::Borrowed(""));
        (self.layer, self.start, self.duration) = (None, None, None);
        (self.pid, self.tid, self.phase) = (0, 0, Phase::Unknown);
    }

    /// Reads a line without leading blanks. `only` says which names matter.
    pub(crate) fn scan(&mut self, text: &'a str, only: Option<fn(&str) -> bool>) -> Scanned {
        self.clear();
        self.fields(&mut Scanner::new(text), only).unwrap_or(Scanned::Unusual)
    }

    fn fields(
        &mut self,
        scanner: &mut Scanner<'a>,
        only: Option<fn(&str) -> bool>,
    ) -> Option<Scanned> {
        scanner.literal(b"{")?;
        loop {
            scanner.literal(b"\"")?;
            let key = scanner.string()?;
            scanner.literal(b":")?;
            if key == "args" {
                self.arguments(scanner)?;
            } else {
                let value = value(scanner)?;
                if key == "name"
                    && let (Some(keeps), Arg::Text(name)) = (only, &value)
                    && !keeps(name)
                {
                    return Some(Scanned::Uninteresting);
                }
                self.set(key, value)?;
            }
            match scanner.next()? {
                b',' => {}
                b'}' => break,
                _ => return None,
            }
        }
        scanner.is_at_end().then_some(Scanned::Record)
    }

    fn arguments(&mut self, scanner: &mut Scanner<'a>) -> Option<()> {
        scanner.literal(b"{")?;
        if scanner.literal(b"}").is_some() {
            return Some(());
        }
        loop {
            scanner.literal(b"\"")?;
            let key = scanner.string()?;
            scanner.literal(b":")?;
            let value = value(scanner)?;
            self.args.push((Cow::Borrowed(key), value));
            match scanner.next()? {
                b',' => {}
                b'}' => return Some(()),
                _ => return None,
            }
        }
    }

    /// None if the value cannot be that field's.
    fn set(&mut self, key: &str, value: Arg<'a>) -> Option<()> {
        match (key, value) {
            ("name", Arg::Text(text)) => self.name = text,
            ("cat", Arg::Text(text)) => self.category = text,
            ("ph", value) => self.phase = phase(&value),
            ("pid", value) => self.pid = value.number()?,
            ("tid", value) => self.tid = value.number()?,
            ("ts", value) => self.start = Some(value.number()?),
            ("dur", value) => self.duration = Some(value.number()?),
            ("type", value) => self.layer = value.number(),
            // Readers count records by themselves.
            ("id", _) => {}
            ("name" | "cat", _) => return None,
            (key, value) => self.args.push((Cow::Owned(key.to_owned()), value)),
        }
        Some(())
    }

    /// Reads a line as any JSON. Returns why if it is not JSON, or not a record.
    pub(crate) fn parse(&mut self, text: &str) -> Result<(), &'static str> {
        self.clear();
        let value: Value = serde_json::from_str(text.trim_end_matches(is_after_record))
            .map_err(|error| if error.is_eof() { CUT_OFF } else { "is not JSON" })?;
        let Value::Object(members) = value else { return Err("is not a JSON object") };
        for (key, value) in members {
            match (key.as_str(), value) {
                ("args", Value::Object(args)) => {
                    self.args
                        .extend(args.into_iter().map(|(key, value)| (Cow::Owned(key), arg(value))));
                }
                (key, value) => {
                    self.set(key, arg(value)).ok_or("has a field of the wrong type")?;
                }
            }
        }
        if self.name.is_empty() && self.phase == Phase::Unknown {
            return Err("is not a trace record");
        }
        Ok(())
    }
}

fn phase(value: &Arg) -> Phase {
    match value {
        Arg::Int(1) => Phase::Complete,
        Arg::Int(2) => Phase::Counter,
        Arg::Int(3) => Phase::Aggregate,
        Arg::Int(4) => Phase::Metadata,
        Arg::Text(text) => match &**text {
            "X" | "1" => Phase::Complete,
            "C" | "2" => Phase::Counter,
            "3" => Phase::Aggregate,
            "M" | "4" => Phase::Metadata,
            _ => Phase::Unknown,
        },
        _ => Phase::Unknown,
    }
}

fn arg(value: Value) -> Arg<'static> {
    match value {
        Value::String(text) => Arg::Text(Cow::Owned(text)),
        Value::Number(number) if number.is_i64() => Arg::Int(number.as_i64().unwrap_or(0)),
        other => Arg::Raw(Cow::Owned(other.to_string())),
    }
}

/// A string, a whole number or a plain decimal number.
fn value<'a>(scanner: &mut Scanner<'a>) -> Option<Arg<'a>> {
    if scanner.literal(b"\"").is_some() {
        return scanner.string().map(|text| Arg::Text(Cow::Borrowed(text)));
    }
    let (number, decimal) = scanner.decimal()?;
    Some(decimal.map_or(Arg::Int(number), |text| Arg::Raw(Cow::Borrowed(text))))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Both readers, which must agree.
    fn read(text: &str) -> Line<'_> {
        let (mut quick, mut full) = (Line::new(), Line::new());
        assert!(matches!(quick.scan(text, None), Scanned::Record), "{text}");
        full.parse(text).unwrap();
        assert_eq!(quick, full);
        quick
    }

    #[test]
    fn both_readers_give_the_same_fields() {
        let line = read(
            r#"{"id":41,"name":"pread","cat":"POSIX","type":3,"pid":7101,"tid":7115,"ts":18,"dur":-87,"ph":1,"args":{"hhash":"0a","ret":-1,"image_size":15.5,"x":{}}}"#
                .replace(r#","x":{}"#, "")
                .leak(),
        );
        assert_eq!(
            (line.pid, line.tid, line.start, line.duration),
            (7101, 7115, Some(18), Some(-87))
        );
        assert_eq!((line.layer, line.phase), (Some(3), Phase::Complete));
        assert_eq!(line.args[2], ("image_size".into(), Arg::Raw("15.5".into())));
        let old = r#"{"id":"3","name":"read","cat":"POSIX","pid":"51","tid":"102","ts":"1700000000000001","dur":"9","ph":"X","args":{"fname":"/data/s0.npz","count":"4096"}}"#;
        let line = read(old);
        assert_eq!(
            (line.pid, line.start, line.duration),
            (51, Some(1_700_000_000_000_001), Some(9))
        );
        assert_eq!(line.args[1].1.number(), Some(4096));
        read(r#"{"name":"x","ph":"M","args":{}},"#);
    }

    #[test]
    fn what_the_scanner_does_not_know_is_left_to_the_reader_of_all_json() {
        for unusual in [
            r#"{"name":"a\"b","ph":1}"#,
            r#"{"name":"a","ph":1,"args":{"cfg":{"io":true}}}"#,
            r#"{ "name": "a", "ph": 1 }"#,
            r#"{"name":"a","ph":1,"args":{"n":18446744073709551615}}"#,
            r#"{"name":"a","ph":1,"args":{"n":1e3}}"#,
        ] {
            let mut line = Line::new();
            assert!(matches!(line.scan(unusual, None), Scanned::Unusual), "{unusual}");
            line.parse(unusual).unwrap();
            assert_eq!(line.phase, Phase::Complete);
        }
        let mut line = Line::new();
        assert_eq!(line.parse(r#"{"name":"a","ph":1"#), Err(CUT_OFF));
        assert_eq!(line.parse(r#"{"name":"a""b"}"#), Err("is not JSON"));
        assert_eq!(line.parse("7"), Err("is not a JSON object"));
        assert_eq!(line.parse("{}"), Err("is not a trace record"));
        assert_eq!(line.parse(r#"{"name":"a","pid":"x"}"#), Err("has a field of the wrong type"));
    }
}
