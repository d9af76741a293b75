//! The lines that nearly all lines are: an event of the current dialects, its fields in the usual order.
//!
//! [`Chunk`] reads these without taking them apart first, if it wants rows only. Whatever is unusual here
//! is left, untouched, to the reader of all lines; so this may be as narrow as it likes.

use crate::dftracer::chunk::{Chunk, Item, Named, RawEvent, fold_number};
use crate::dftracer::hash::Hash;
use crate::dftracer::record::is_about_others;
use crate::dftracer::scanner::Scanner;
use crate::event::{Event, EventKind};
use crate::field_names::{FieldNames, LIBC_LAYER, usual_kind};

/// Strings that came last, and what they are: neighbors are often about the same.
#[derive(Debug, Default)]
pub(crate) struct Recent {
    host: Option<([u8; 16], Hash)>,
    file: Option<([u8; 16], Hash)>,
    /// Numbers of words, plus 1, by a rough hash.
    words: Vec<u32>,
}

/// Places of [`Recent::words`].
const PLACES: usize = 64;

impl Chunk {
    /// Reads a line if it is a usual one; false, and nothing has changed, if it is not.
    pub(crate) fn parse_usual(&mut self, text: &str) -> bool {
        let Some(raw) = self.usual(text) else { return false };
        self.records += 1;
        self.items.push(Item::Event(raw));
        true
    }

    fn usual(&mut self, text: &str) -> Option<RawEvent> {
        let mut line = Scanner::new(text);
        line.literal(b"{\"id\":")?;
        line.number()?;
        line.literal(b",\"name\":\"")?;
        let name = line.string()?;
        line.literal(b",\"cat\":\"")?;
        let category = line.string()?;
        let layer = if line.literal(b",\"type\":").is_some() { Some(line.number()?) } else { None };
        line.literal(b",\"pid\":")?;
        let pid = u32::try_from(line.number()?).ok()?;
        line.literal(b",\"tid\":")?;
        let thread = u32::try_from(line.number()?).ok()?;
        line.literal(b",\"ts\":")?;
        let start_ns = line.number()?;
        line.literal(b",\"dur\":")?;
        let duration_ns = u64::try_from(line.number()?).ok()?;
        line.literal(b",\"ph\":1").or_else(|| line.literal(b",\"ph\":\"X\""))?;
        if category == "dftracer" || is_about_others(name) {
            return None;
        }
        let is_call = layer == Some(LIBC_LAYER);
        let kind = if is_call { EventKind::Call } else { usual_kind(layer, category) };
        let (category, name) = (self.recent_word(category), self.recent_word(name));
        let event = Event {
            thread,
            start_ns,
            duration_ns,
            kind,
            category,
            name,
            count: 1,
            ..Event::default()
        };
        let mut raw = RawEvent::new(event, pid);
        let layout = self.layout(name, kind);
        if layout.counts_elements {
            return None;
        }
        if line.literal(b",\"args\":{").is_some() {
            self.arguments(&mut line, &layout, &mut raw)?;
        }
        line.literal(b"}")?;
        line.is_at_end().then_some(raw)
    }

    fn arguments(
        &mut self,
        line: &mut Scanner,
        layout: &FieldNames,
        raw: &mut RawEvent,
    ) -> Option<()> {
        loop {
            line.literal(b"\"")?;
            let key = line.string()?;
            line.literal(b":")?;
            if line.literal(b"\"").is_some() {
                let text = line.string()?;
                match key {
                    "hhash" => raw.host = Named::Hash(known(&mut self.recent.host, text)),
                    "fhash" => raw.file = Named::Hash(known(&mut self.recent.file, text)),
                    // Numbers in quotes, strings by hash, and what names itself.
                    "hostname" | "fname" | "feedline" | "cwd" => return None,
                    _ if key.ends_with("_hash") => return None,
                    _ if text.bytes().next().is_some_and(|b| b.is_ascii_digit() || b == b'-') => {
                        return None;
                    }
                    _ => {}
                }
            } else {
                let number = line.number()?;
                let is_whole = line.fraction()?;
                match key {
                    "hhash" | "fhash" | "cwd" | "feedline" => return None,
                    "level" | "p_idx" => {}
                    _ if key.ends_with("_hash") => return None,
                    _ if is_whole => {
                        fold_number(&mut raw.event, layout, key, number);
                    }
                    _ => {}
                }
            }
            match line.next()? {
                b',' => {}
                b'}' => return Some(()),
                _ => return None,
            }
        }
    }

    fn recent_word(&mut self, text: &str) -> u32 {
        let bytes = text.as_bytes();
        let end = usize::from(bytes.last().copied().unwrap_or(0));
        let begin = usize::from(bytes.first().copied().unwrap_or(0));
        let place = (bytes.len() * 31 + begin * 5 + end) % PLACES;
        if self.recent.words.is_empty() {
            self.recent.words.resize(PLACES, 0);
        }
        if let Some(word) = self.recent.words[place].checked_sub(1)
            && *self.words()[word as usize] == *text
        {
            return word;
        }
        let word = self.word(text);
        self.recent.words[place] = word + 1;
        word
    }
}

/// The hash that a text is.
fn known(last: &mut Option<([u8; 16], Hash)>, text: &str) -> Hash {
    let Ok(letters) = <[u8; 16]>::try_from(text.as_bytes()) else { return Hash::from_text(text) };
    match last {
        Some((known, hash)) if *known == letters => *hash,
        _ => {
            let hash = Hash::from_text(text);
            *last = Some((letters, hash));
            hash
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dftracer::chunk::ParseScope;

    /// Events of a line that are read as rows.
    fn lean(line: &str) -> (Vec<String>, u64) {
        let chunk = Chunk::parse(line.as_bytes(), ParseScope::Rows);
        (chunk.items.iter().map(|item| format!("{item:?}")).collect(), chunk.records)
    }

    #[test]
    fn usual_lines_are_what_the_other_reader_makes_of_them() {
        let lines = [
            r#"{"id":41,"name":"pread","cat":"POSIX","type":3,"pid":7101,"tid":7115,"ts":1800000000123456,"dur":87,"ph":1,"args":{"hhash":"0a1b2c3d4e5f6071","fhash":"93aa5be1c07f2210","count":262144,"offset":1048576,"ret":-1,"errno":5}}"#,
            r#"{"id":42,"name":"Trainer.step","cat":"COMPUTE","type":6,"pid":7101,"tid":7101,"ts":1800000000123600,"dur":15400,"ph":1}"#,
            r#"{"id":4,"name":"item","cat":"data","pid":1,"tid":2,"ts":18,"dur":0,"ph":"X","args":{"epoch":1,"step":3,"image_size":15.5,"level":2,"note":"text"}},"#,
            r#"{"id":4,"name":"item","cat":"data","pid":1,"tid":2,"ts":18,"dur":0,"ph":"X","args":{"image_size":15.0,"image_idx":9}}"#,
        ];
        for line in lines {
            let mut chunk = Chunk::parse(b"", ParseScope::Rows);
            assert!(chunk.parse_usual(line), "{line}");
            // A blank makes it unusual.
            let unusual = line.replacen("{\"id\":", "{ \"id\":", 1);
            assert!(!chunk.parse_usual(&unusual));
            assert_eq!(lean(line), lean(&unusual), "{line}");
            assert_eq!(lean(line).1, 1);
        }
    }

    #[test]
    fn unusual_lines_are_left() {
        let mut chunk = Chunk::parse(b"", ParseScope::Rows);
        for line in [
            r#"{"id":1,"name":"a\"b","cat":"c","pid":1,"tid":2,"ts":18,"dur":0,"ph":1}"#,
            r#"{"id":1,"name":"start","cat":"dftracer","pid":1,"tid":2,"ts":18,"dur":0,"ph":1}"#,
            r#"{"id":1,"name":"a","cat":"c","pid":1,"tid":2,"ts":18,"dur":-1,"ph":1}"#,
            r#"{"id":1,"name":"a","cat":"c","pid":1,"tid":2,"ts":018,"dur":0,"ph":1}"#,
            r#"{"id":1,"name":"a","cat":"c","pid":1,"tid":2,"ts":1e3,"dur":0,"ph":1}"#,
            r#"{"id":1,"name":"a","cat":"c","pid":1,"tid":2,"ts":18,"dur":0,"ph":14}"#,
            r#"{"id":1,"name":"fread","cat":"STDIO","pid":1,"tid":2,"ts":18,"dur":0,"ph":1}"#,
            r#"{"id":1,"name":"a","cat":"c","pid":1,"tid":2,"ts":18,"dur":0,"ph":1,"args":{"x":{}}}"#,
            r#"{"id":1,"name":"a","cat":"c","pid":1,"tid":2,"ts":18,"dur":0,"ph":1,"args":{"ret":"7"}}"#,
            r#"{"id":1,"name":"a","cat":"c","pid":1,"tid":2,"ts":18,"dur":0,"ph":1}x"#,
            r#"{"id":1,"name":"a","cat":"c","pid":1,"tid":2,"ts":18"#,
        ] {
            assert!(!chunk.parse_usual(line), "{line}");
        }
        assert_eq!((chunk.items.len(), chunk.records), (0, 0));
    }
}
