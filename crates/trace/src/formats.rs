//! The trace formats: one row each. A new format is a module with a [`EventSource`], a [`EventSink`] or both, and
//! one row in [`FORMATS`].

use std::path::{Path, PathBuf};

use crate::chrome::{ChromeSink, ChromeSource};
use crate::dftracer::{DftracerSink, DftracerSource, Dialect, TimeUnit};
use crate::drain::SEGMENTS;
use crate::error::Result;
use crate::file_slice::FileSlice;
use crate::flow::{EventSink, EventSource};
use crate::folder::{Folder, FolderSink, TRACE_FILE};
use crate::perfetto::{PerfettoExport, View};

/// How to recognize, read and write the traces of one format.
#[derive(Clone, Copy, Debug)]
pub struct TraceFormat {
    /// Its name on the command line: `feedline convert --to NAME`.
    pub name: &'static str,
    /// Its name in sentences.
    pub title: &'static str,
    /// What it is, in a few words, with its suffixes.
    pub about: &'static str,
    /// How its files end, the usual ending first; none for folders.
    pub suffixes: &'static [&'static str],
    /// What a trace consists of.
    pub files: Files,
    /// How an analysis gets at its events.
    pub access: Access,
    /// Which of the [`WriteOptions`] have an effect.
    pub options: &'static [WriteOption],
    /// Whether a path is a trace of this format, by the first bytes of its text (decompressed, about 1
    /// MiB). Called without bytes first: a name that leaves no doubt, or a folder, needs none.
    pub recognize: fn(&[u8], &Path) -> bool,
    /// Opens the files of a trace.
    pub open: Option<OpenSource>,
    /// Begins a trace at a path.
    pub create: Option<CreateSink>,
    /// What an earlier trace has left at a path that a new one would replace.
    pub existing: fn(&Path) -> Result<Vec<PathBuf>>,
}

/// Opens a trace of one format.
pub type OpenSource = fn(&[FileSlice]) -> Result<Box<dyn EventSource>>;
/// Begins a trace of one format.
pub type CreateSink = fn(&Path, &WriteOptions) -> Result<Box<dyn EventSink>>;

/// What a trace consists of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Files {
    /// A trace is one file.
    Single,
    /// A file per process, so a folder of them is a trace.
    PerProcess,
    /// A trace is a folder.
    Folder,
}

/// How an analysis gets at the events of a trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// Through [`EventSource`], from the beginning to the end.
    Stream,
    /// Row groups that can be read in any order and more than once.
    RowGroups,
    /// Lines that many threads can parse.
    Lines,
    /// Through [`ChromeSource`], which knows the clock of each file.
    ClockedFiles,
}

/// An option that only some formats have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WriteOption {
    /// [`WriteOptions::time_unit`].
    TimeUnit,
    /// [`WriteOptions::view`].
    View,
}

/// How a trace is written.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct WriteOptions {
    /// The unit of timestamps.
    pub time_unit: TimeUnit,
    /// The part of the trace that is shown.
    pub view: View,
}

impl TraceFormat {
    /// A format of single files that can be neither recognized, read nor written: the rest of a row.
    pub const BASE: Self = Self {
        name: "",
        title: "",
        about: "",
        suffixes: &[],
        files: Files::Single,
        access: Access::Stream,
        options: &[],
        recognize: |_, _| false,
        open: None,
        create: None,
        existing: |path| Ok(if path.exists() { vec![path.to_owned()] } else { Vec::new() }),
    };

    /// Whether a path ends with one of the suffixes.
    pub fn has_suffix(&self, path: &Path) -> bool {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        self.suffixes.iter().any(|suffix| name.ends_with(suffix))
    }
}

/// The formats that can be read, in a sentence.
pub fn readable(formats: &[TraceFormat]) -> String {
    let readable = formats.iter().filter(|format| format.open.is_some());
    let named = readable.map(|format| match format.files {
        Files::Folder => format!("{} trace folders", format.title),
        _ => format!("{} files ({})", format.title, format.suffixes.join(", ")),
    });
    named.collect::<Vec<_>>().join(", ")
}

/// All formats. The first row that recognizes a path has it: a Perfetto trace may look like JSON, and
/// DFTracer's lines are JSON too.
pub const FORMATS: &[TraceFormat] = &[
    TraceFormat {
        name: "feedline",
        title: "Feedline",
        about: "Feedline trace folder: no suffix",
        files: Files::Folder,
        access: Access::RowGroups,
        recognize: is_feedline,
        open: Some(|files| Ok(Box::new(Folder::open(&only(files))?))),
        create: Some(|path, _| Ok(Box::new(FolderSink::create(path)?))),
        ..TraceFormat::BASE
    },
    TraceFormat {
        name: "perfetto",
        title: "Perfetto",
        about: "Perfetto protobuf: *.pftrace, *.perfetto-trace",
        suffixes: &[".pftrace", ".perfetto-trace"],
        options: &[WriteOption::View],
        recognize: |head, _| is_perfetto(head),
        create: Some(|path, options| Ok(Box::new(PerfettoExport::new(path, options.view.clone())))),
        ..TraceFormat::BASE
    },
    TraceFormat {
        name: "dftracer",
        about: "DFTracer lines as of 2.1.1: *.pfw.gz, *.pfw",
        recognize: |head, path| {
            (DFTRACER.has_suffix(path) && !path.is_dir()) || is_line_by_line(head)
        },
        open: Some(|files| Ok(Box::new(DftracerSource::of(files.to_vec())?))),
        create: Some(|path, options| Ok(dftracer(path, Dialect::Current, options))),
        ..DFTRACER
    },
    TraceFormat {
        name: "dftracer-legacy",
        about: "DFTracer lines as before 2.1.1: *.pfw.gz, *.pfw",
        create: Some(|path, options| Ok(dftracer(path, Dialect::Legacy, options))),
        ..DFTRACER
    },
    TraceFormat {
        name: "chrome",
        title: "Chrome",
        about: "Chrome JSON: *.json, *.json.gz",
        suffixes: &[".json", ".json.gz"],
        access: Access::ClockedFiles,
        recognize: |head, _| matches!(head.trim_ascii_start().first(), Some(b'{' | b'[')),
        open: Some(|files| Ok(Box::new(ChromeSource::of(files.to_vec())?))),
        create: Some(|path, _| Ok(Box::new(ChromeSink::new(path)?))),
        ..TraceFormat::BASE
    },
];

/// What both generations of DFTracer's files share.
const DFTRACER: TraceFormat = TraceFormat {
    title: "DFTracer",
    suffixes: &[".pfw.gz", ".pfw"],
    files: Files::PerProcess,
    access: Access::Lines,
    options: &[WriteOption::TimeUnit],
    existing: DftracerSink::existing,
    ..TraceFormat::BASE
};

fn dftracer(path: &Path, dialect: Dialect, options: &WriteOptions) -> Box<dyn EventSink> {
    Box::new(DftracerSink::new(path, dialect, options.time_unit))
}

/// The folder of a trace that is one.
fn only(files: &[FileSlice]) -> PathBuf {
    files.first().map(|file| file.path.clone()).unwrap_or_default()
}

/// Programs that recorded without a launcher leave nothing but their segments.
fn is_feedline(_head: &[u8], path: &Path) -> bool {
    path.join(TRACE_FILE).is_file() || path.join(SEGMENTS).is_dir()
}

/// Packets of Perfetto are field 1 of a message, which looks like an empty line; the size of the first
/// packet may look like a brace.
fn is_perfetto(head: &[u8]) -> bool {
    let is_json = head.trim_ascii_start().get(1..).is_some_and(|rest| {
        rest.trim_ascii_start().first().is_some_and(|byte| b"\"{}[]".contains(byte))
    });
    head.first() == Some(&0x0a) && !is_json
}

/// One object per line, without commas between them.
fn is_line_by_line(head: &[u8]) -> bool {
    let mut lines =
        head.split(|byte| *byte == b'\n').map(<[u8]>::trim_ascii).filter(|line| !line.is_empty());
    let first = lines.next().unwrap_or(&[]);
    let first = if first == b"[" { lines.next().unwrap_or(&[]) } else { first };
    let object = first.strip_prefix(b"[").unwrap_or(first);
    serde_json::from_slice::<serde_json::Map<_, serde_json::Value>>(object)
        .is_ok_and(|object| object.contains_key("ph"))
        && lines.next() != Some(b",")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_unique_and_descriptions_show_the_suffixes() {
        for (number, format) in FORMATS.iter().enumerate() {
            assert!(FORMATS[..number].iter().all(|other| other.name != format.name));
            assert!(!format.title.is_empty(), "{}", format.name);
            for suffix in format.suffixes {
                assert!(format.about.contains(&format!("*{suffix}")), "{}", format.about);
            }
        }
    }

    #[test]
    fn readable_formats_are_listed_with_their_suffixes() {
        assert_eq!(
            readable(FORMATS),
            "Feedline trace folders, DFTracer files (.pfw.gz, .pfw), Chrome files (.json, .json.gz)"
        );
    }
}
