//! Reads a manifest entry by entry, from front to back.

use std::fmt;
use std::io::{self, BufReader, Read};
use std::ops::ControlFlow;

use feedline_store::{EntryKind, Object, Store, StoreError};
use serde::de::{DeserializeSeed, Error as _, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer};
use serde_json::Value;

use crate::error::{DatasetError, Result};
use crate::manifest::{Entry, FileSum, Head, MANIFEST_NAME, MANIFEST_VERSION, Totals};
use crate::recipe::Recipe;

const BUFFER_BYTES: usize = 64 << 10;

/// What to do with each file. An error ends the reading and is the reader's own.
pub(crate) type Visit<'a> = dyn FnMut(&Head, Entry) -> Result<ControlFlow<()>> + 'a;

/// A manifest that has been opened. What takes its place later does not change it.
pub(crate) struct ManifestReader {
    file: String,
    object: Box<dyn Object>,
}

impl ManifestReader {
    /// The manifest of the data set in `store`, if it has one.
    pub(crate) fn open(store: &dyn Store) -> Result<Option<Self>> {
        if store.kind(MANIFEST_NAME)? != Some(EntryKind::File) {
            return Ok(None);
        }
        let file = store.locate(MANIFEST_NAME);
        Ok(Some(Self { file, object: store.open(MANIFEST_NAME)? }))
    }

    /// Shows every file to `visit` until it breaks off; `None` for the totals then.
    pub(crate) fn read(mut self, visit: &mut Visit<'_>) -> Result<(Head, Option<Totals>)> {
        let left = self.object.len()?;
        let text = ObjectText { object: self.object, offset: 0, left };
        let text = BufReader::with_capacity(BUFFER_BYTES, text);
        let mut json = serde_json::Deserializer::from_reader(text);
        let mut state = State { visit, ended: None, totals: Totals::default() };
        let parsed = Document(&mut state).deserialize(&mut json);
        let parsed = parsed.and_then(|found| json.end().map(|()| found));
        match (state.ended, parsed) {
            (Some(End::Broken(head)), _) => Ok((head, None)),
            (Some(End::Error(error)), _) => Err(error),
            (Some(End::Foreign), _) => Err(DatasetError::ManifestForeign { file: self.file }),
            (Some(End::Version(found)), _) => {
                let (file, known) = (self.file, MANIFEST_VERSION);
                Err(DatasetError::ManifestVersion { file, found, known })
            }
            (None, Ok(head)) => Ok((head, Some(state.totals))),
            (None, Err(error)) => Err(broken(self.file, error)),
        }
    }
}

/// The error of the store if it was one, or where the text is wrong.
fn broken(file: String, error: serde_json::Error) -> DatasetError {
    let (line, column) = (error.line(), error.column());
    let text = error.to_string();
    let place = format!(" at line {line} column {column}");
    let what = text.strip_suffix(&place).unwrap_or(&text).to_owned();
    if error.is_io() {
        let inner = io::Error::from(error).into_inner().map(|inner| inner.downcast::<StoreError>());
        if let Some(Ok(error)) = inner {
            return DatasetError::Store(*error);
        }
    }
    DatasetError::ManifestBroken { file, line, column, what }
}

/// An object as a stream.
struct ObjectText {
    object: Box<dyn Object>,
    offset: u64,
    left: u64,
}

impl Read for ObjectText {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        let count = buf.len().min(usize::try_from(self.left).unwrap_or(usize::MAX));
        if count == 0 {
            return Ok(0);
        }
        self.object.read_exact_at(self.offset, &mut buf[..count]).map_err(io::Error::other)?;
        self.offset += count as u64;
        self.left -= count as u64;
        Ok(count)
    }
}

/// Why the reading ended before the end of the text.
enum End {
    /// The visitor has seen enough.
    Broken(Head),
    /// The visitor failed.
    Error(DatasetError),
    /// The file is not a manifest.
    Foreign,
    /// It is one of a version that is not known.
    Version(u64),
}

struct State<'a, 'v> {
    visit: &'a mut Visit<'v>,
    ended: Option<End>,
    /// Of the entries so far.
    totals: Totals,
}

impl State<'_, '_> {
    /// An error that is never shown: `ended` says what happened.
    fn end<E: serde::de::Error>(&mut self, end: End) -> E {
        self.ended = Some(end);
        E::custom("ended early")
    }
}

#[derive(Deserialize)]
#[serde(field_identifier, rename_all = "snake_case")]
enum Field {
    FeedlineManifest,
    Complete,
    Replaces,
    Workload,
    Recipe,
    Files,
    Totals,
    #[serde(other)]
    Other,
}

/// The whole text.
struct Document<'s, 'a, 'v>(&'s mut State<'a, 'v>);

impl<'de> DeserializeSeed<'de> for Document<'_, '_, '_> {
    type Value = Head;

    fn deserialize<D: Deserializer<'de>>(self, json: D) -> Result<Head, D::Error> {
        json.deserialize_map(self)
    }
}

impl<'de> Visitor<'de> for Document<'_, '_, '_> {
    type Value = Head;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a manifest")
    }

    fn visit_map<M: MapAccess<'de>>(self, mut map: M) -> Result<Head, M::Error> {
        let Document(state) = self;
        let (mut version, mut complete, mut recipe) = (None, None, None);
        let (mut replaces, mut workload, mut totals) = (false, String::new(), None);
        while let Some(field) = map.next_key::<Field>()? {
            match field {
                Field::FeedlineManifest => {
                    let found = map.next_value::<u64>()?;
                    if found != MANIFEST_VERSION {
                        return Err(state.end(End::Version(found)));
                    }
                    version = Some(found);
                }
                Field::Complete => complete = Some(map.next_value::<bool>()?),
                Field::Replaces => replaces = map.next_value()?,
                Field::Workload => workload = map.next_value()?,
                Field::Recipe => recipe = Some(Recipe::parse(map.next_value::<Value>()?)),
                Field::Files => {
                    if version.is_none() {
                        return Err(state.end(End::Foreign));
                    }
                    // Files cannot be interpreted before these are known, so they come first.
                    let complete = complete.ok_or_else(|| M::Error::missing_field("complete"))?;
                    let recipe = recipe.clone().ok_or_else(|| M::Error::missing_field("recipe"))?;
                    let head = Head { complete, replaces, workload: workload.clone(), recipe };
                    map.next_value_seed(Files { state, head: &head })?;
                }
                Field::Totals => totals = Some(map.next_value::<Totals>()?),
                Field::Other => drop(map.next_value::<IgnoredAny>()?),
            }
        }
        if version.is_none() {
            return Err(state.end(End::Foreign));
        }
        let complete = complete.ok_or_else(|| M::Error::missing_field("complete"))?;
        let recipe = recipe.ok_or_else(|| M::Error::missing_field("recipe"))?;
        let said = totals.ok_or_else(|| M::Error::missing_field("totals"))?;
        if said != state.totals {
            let Totals { files, bytes } = state.totals;
            return Err(M::Error::custom(format!(
                "totals are {} files and {} bytes, but the list has {files} files and {bytes} bytes",
                said.files, said.bytes
            )));
        }
        Ok(Head { complete, replaces, workload, recipe })
    }
}

/// The list of files.
struct Files<'s, 'a, 'v> {
    state: &'s mut State<'a, 'v>,
    head: &'s Head,
}

impl<'de> DeserializeSeed<'de> for Files<'_, '_, '_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, json: D) -> Result<(), D::Error> {
        json.deserialize_seq(self)
    }
}

impl<'de> Visitor<'de> for Files<'_, '_, '_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a list of files")
    }

    fn visit_seq<S: SeqAccess<'de>>(self, mut list: S) -> Result<(), S::Error> {
        let Files { state, head } = self;
        while let Some(Line { name, bytes, crc32: Crc(crc32) }) = list.next_element()? {
            state.totals.add(bytes);
            match (state.visit)(head, Entry { name, sum: FileSum { bytes, crc32 } }) {
                Ok(ControlFlow::Continue(())) => {}
                Ok(ControlFlow::Break(())) => return Err(state.end(End::Broken(head.clone()))),
                Err(error) => return Err(state.end(End::Error(error))),
            }
        }
        Ok(())
    }
}

#[derive(Deserialize)]
struct Line {
    name: String,
    bytes: u64,
    crc32: Crc,
}

/// Eight hexadecimal digits.
struct Crc(u32);

impl<'de> Deserialize<'de> for Crc {
    fn deserialize<D: Deserializer<'de>>(json: D) -> Result<Self, D::Error> {
        let text = String::deserialize(json)?;
        let digits = text.len() == 8 && text.bytes().all(|digit| digit.is_ascii_hexdigit());
        match u32::from_str_radix(&text, 16) {
            Ok(crc32) if digits => Ok(Self(crc32)),
            _ => Err(D::Error::custom(format!("crc32 {text:?}, expected 8 hexadecimal digits"))),
        }
    }
}

#[cfg(test)]
mod tests {
    use feedline_clock::Clock;
    use feedline_store::{FaultInjecting, Memory, Op};

    use super::*;
    use crate::manifest::ManifestWriter;
    use crate::recipe::tests::recipe;

    fn head(complete: bool) -> Head {
        let recipe = Some(recipe(|_| ()));
        Head { complete, replaces: false, workload: "a \"b\"".into(), recipe }
    }

    fn entry(number: u64) -> Entry {
        let sum = FileSum { bytes: 1000 + number, crc32: number as u32 * 7 };
        Entry { name: format!("train/\u{fc}\"{number}"), sum }
    }

    fn written(head: &Head, files: u64) -> Memory {
        let store = Memory::new(Clock::real());
        let mut writer = ManifestWriter::begin(&store, head).unwrap();
        for number in 0..files {
            let Entry { name, sum } = entry(number);
            writer.add(&name, sum).unwrap();
        }
        writer.publish().unwrap();
        store
    }

    fn read(store: &dyn Store) -> Result<(Head, Vec<Entry>)> {
        let mut found = Vec::new();
        let reader = ManifestReader::open(store)?.expect("there is one");
        let (head, totals) = reader.read(&mut |_, entry| {
            found.push(entry);
            Ok(ControlFlow::Continue(()))
        })?;
        assert_eq!(totals.expect("read to the end").files, found.len() as u64);
        Ok((head, found))
    }

    #[test]
    fn what_was_written_is_read() {
        // 2000 lines are more than the buffers of writer and reader hold.
        for (files, complete) in [(0, false), (1, true), (2000, true)] {
            let head = head(complete);
            let expected: Vec<_> = (0..files).map(entry).collect();
            assert_eq!(read(&written(&head, files)).unwrap(), (head, expected));
        }
        let replacing = Head { replaces: true, ..head(false) };
        assert_eq!(read(&written(&replacing, 0)).unwrap().0, replacing);
    }

    #[test]
    fn no_manifest_is_no_error() {
        assert!(ManifestReader::open(&Memory::new(Clock::real())).unwrap().is_none());
    }

    #[test]
    fn a_visitor_can_end_the_reading() {
        let mut seen = 0;
        let reader = ManifestReader::open(&written(&head(true), 9)).unwrap().unwrap();
        let (head_read, totals) = reader
            .read(&mut |_, _| {
                seen += 1;
                Ok(if seen == 3 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) })
            })
            .unwrap();
        assert_eq!((head_read, totals, seen), (head(true), None, 3));
    }

    #[test]
    fn an_error_of_the_store_stays_one() {
        let store = FaultInjecting::new(written(&head(true), 9), Op::Read, 1, 5);
        let error = read(&store).unwrap_err();
        assert!(matches!(error, DatasetError::Store(StoreError::Io { .. })), "{error:?}");
    }

    #[track_caller]
    fn check_refused(text: &str, expected: &str) {
        let store = Memory::new(Clock::real());
        store.put(MANIFEST_NAME, text.as_bytes());
        let error = read(&store).unwrap_err().to_string();
        assert_eq!(error.strip_prefix("memory:feedline.manifest.json"), Some(expected));
    }

    #[test]
    fn what_is_not_a_manifest_is_named_with_its_place() {
        check_refused("", ":1:0: EOF while parsing a value");
        check_refused("[]", ":1:1: invalid type: sequence, expected a manifest");
        check_refused("{\"a\": 1}", ": is not a Feedline manifest: it has no `feedline_manifest`");
        check_refused(
            "{\"files\": []}",
            ": is not a Feedline manifest: it has no `feedline_manifest`",
        );
        check_refused(
            "{\"feedline_manifest\": 2, \"complete\": []}",
            ": manifest version 2, expected 1",
        );
        let begin = "{\"feedline_manifest\": 1, \"complete\": true, \"recipe\": {},\n";
        check_refused(
            &format!("{begin}\"files\": [{{\"name\": \"a\", \"bytes\": 1, \"crc32\": \"xyz\"}}]"),
            ":2:51: crc32 \"xyz\", expected 8 hexadecimal digits",
        );
        check_refused(&format!("{begin}\"files\": [\n"), ":3:0: EOF while parsing a list");
        check_refused(
            &format!("{begin}\"files\": [], \"totals\": {{\"files\": 3, \"bytes\": 4}}}}"),
            ":2:48: totals are 3 files and 4 bytes, but the list has 0 files and 0 bytes",
        );
        check_refused(
            "{\"feedline_manifest\": 1, \"complete\": true,\n\"files\": []}",
            ":2:8: missing field `recipe`",
        );
    }

    /// Whatever byte a manifest ends at, that is an error and not a shorter data set.
    #[test]
    fn a_cut_manifest_is_never_taken_for_a_whole_one() {
        let whole = written(&head(true), 3).get(MANIFEST_NAME).unwrap();
        for len in 0..whole.trim_ascii_end().len() {
            let store = Memory::new(Clock::real());
            store.put(MANIFEST_NAME, &whole[..len]);
            assert!(
                matches!(read(&store), Err(DatasetError::ManifestBroken { .. })),
                "{len} bytes"
            );
        }
    }
}
