//! Row groups of a folder's events, column by column and in any order: for readers that want few columns of
//! many events, on many threads.

use std::fs::File;
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use bytes::{Buf as _, Bytes};
use feedline_parquet_pages::decode::{self, Wrong};
use parquet::basic::Encoding;
use parquet::column::page::{Page, PageReader as _};
use parquet::errors::ParquetError;
use parquet::file::metadata::{ParquetMetaData, RowGroupMetaData};
use parquet::file::reader::{ChunkReader, Length};
use parquet::file::serialized_reader::SerializedPageReader;
use parquet::file::statistics::Statistics;

use super::at::At as _;
use super::cursor::TableReader;
use super::page_head::{self, Most};
use super::reader::{Ids, WriterRows, check, parts};
use super::row_group_contents::{self, RowGroupContents, SURVEY_KEY};
use super::schema::{Column as Described, EVENTS, Type};
use crate::error::{Result, TraceError};
use crate::tables::Tables;

/// The row groups of a trace folder, in the order in which they were written.
pub struct Blocks {
    parts: Vec<Part>,
    /// Part and row group.
    groups: Vec<(usize, usize)>,
    ids: Ids,
}

/// A file of events. It is open only while it is read: a trace may have more files than a process may have
/// open.
struct Part {
    path: PathBuf,
    metadata: Arc<ParquetMetaData>,
    places: Vec<(Described, Option<usize>)>,
    /// Checksums of columns, a line per row group; see [`super::table_file::CHECKSUMS_KEY`].
    checksums: Vec<Box<str>>,
    /// What row groups have in them, where the file says it.
    surveys: Vec<Option<RowGroupContents>>,
}

/// What is known of a row group before it is read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BlockFacts {
    /// Number of rows.
    pub rows: u64,
    /// The least and the largest start.
    pub starts_ns: Option<(i64, i64)>,
    /// The shortest and the longest duration.
    pub durations_ns: Option<(i64, i64)>,
}

/// One of the tables of a writer.
type RowsOf = fn(&WriterRows) -> &Vec<Option<u32>>;

/// In a column, marks a row without a value.
pub const ABSENT: i64 = i64::MIN;

/// A column of a row group.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Column {
    cells: Cells,
    /// The different values, or those of all rows; [`ABSENT`] for none. Of texts, their places in `texts`.
    pub values: Vec<i64>,
    /// The different texts, if it is a column of texts.
    pub texts: Vec<String>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
enum Cells {
    /// All rows have the first value.
    #[default]
    Same,
    /// Which value a row has.
    Coded(Vec<u32>),
    /// Every row has its own.
    Each,
}

impl Column {
    fn same(value: i64) -> Self {
        Self { cells: Cells::Same, values: vec![value], texts: Vec::new() }
    }

    /// The value of a row.
    #[inline]
    pub fn at(&self, row: usize) -> i64 {
        match &self.cells {
            Cells::Same => self.values[0],
            Cells::Coded(codes) => self.values[codes[row] as usize],
            Cells::Each => self.values[row],
        }
    }

    /// How many codes there are: places in `values` that a row may have.
    pub fn codes(&self) -> usize {
        if matches!(self.cells, Cells::Same) { 1 } else { self.values.len() }
    }

    /// Goes on with numbers that are made of codes of several columns: what was there, times the number of
    /// [codes](Self::codes), plus the code of the row.
    pub fn append_codes(&self, numbers: &mut [u32]) {
        let factor = self.codes() as u32;
        match &self.cells {
            Cells::Same => {}
            Cells::Coded(codes) => {
                for (number, code) in numbers.iter_mut().zip(codes) {
                    *number = number.wrapping_mul(factor).wrapping_add(*code);
                }
            }
            Cells::Each => {
                for (number, code) in numbers.iter_mut().zip(0..) {
                    *number = number.wrapping_mul(factor).wrapping_add(code);
                }
            }
        }
    }

    /// Hands out the values of rows, in the order in which `rows` names them, with their places in it.
    #[inline]
    pub fn each(&self, rows: &[u32], mut take: impl FnMut(usize, i64)) {
        match &self.cells {
            Cells::Same => (0..rows.len()).for_each(|place| take(place, self.values[0])),
            Cells::Coded(codes) => {
                for (place, row) in rows.iter().enumerate() {
                    take(place, self.values[codes[*row as usize] as usize]);
                }
            }
            Cells::Each => {
                for (place, row) in rows.iter().enumerate() {
                    take(place, self.values[*row as usize]);
                }
            }
        }
    }

    /// The value of all rows, if they have the same.
    pub fn only(&self) -> Option<i64> {
        matches!(self.cells, Cells::Same).then(|| self.values[0])
    }
}

/// Some columns of a row group.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Block {
    /// Number of rows in the block.
    pub rows: usize,
    columns: Vec<(&'static str, Column)>,
}

impl Block {
    /// Takes a column out. One that was not asked for has no values.
    pub fn take(&mut self, name: &str) -> Column {
        let place = self.columns.iter().position(|(known, _)| *known == name);
        place.map_or_else(|| Column::same(ABSENT), |place| self.columns.swap_remove(place).1)
    }
}

impl Blocks {
    /// Opens a folder: what its files say at their ends, and the tables.
    pub fn open(dir: &Path, tables: &mut Tables) -> Result<Self> {
        check(dir)?;
        let mut blocks = Self { parts: Vec::new(), groups: Vec::new(), ids: Ids::default() };
        for (_, _, path) in parts(dir, EVENTS)? {
            let reader = TableReader::open(EVENTS, &path)?;
            let text = reader.fact(SURVEY_KEY).unwrap_or_default().to_owned();
            let (metadata, places, checksums) = reader.into_parts();
            let part = blocks.parts.len();
            blocks.groups.extend((0..metadata.num_row_groups()).map(|group| (part, group)));
            let rows = |group: &RowGroupMetaData| u64::try_from(group.num_rows()).unwrap_or(0);
            let rows: Vec<u64> = metadata.row_groups().iter().map(rows).collect();
            let surveys = row_group_contents::read(&text, &rows);
            blocks.parts.push(Part { path, metadata, places, checksums, surveys });
        }
        blocks.ids = Ids::load(dir, tables)?;
        blocks.resolve_surveys()?;
        Ok(blocks)
    }

    fn resolve_surveys(&mut self) -> Result<()> {
        for part in &mut self.parts {
            for (process, _) in part.surveys.iter_mut().flatten().flat_map(|it| &mut it.lanes) {
                let (writer, at) = super::reader::split(*process);
                let row = self.ids.writer(writer).map(super::reader::processes_of);
                let row = row.and_then(|rows| rows.get(at).copied().flatten());
                let Some(row) = row else {
                    let what = "a process that is missing from its table";
                    return Err(TraceError::Content { path: part.path.clone(), what });
                };
                *process = i64::from(row);
            }
        }
        Ok(())
    }

    /// What a row group has in it, if its file says so.
    pub fn survey(&self, index: usize) -> Option<&RowGroupContents> {
        let (part, group) = self.groups[index];
        self.parts[part].surveys.get(group)?.as_ref()
    }

    /// The file of a row group.
    pub fn path(&self, index: usize) -> &Path {
        &self.parts[self.groups[index].0].path
    }

    /// How many row groups there are.
    pub fn len(&self) -> usize {
        self.groups.len()
    }

    /// Whether the block has no rows.
    pub fn is_empty(&self) -> bool {
        self.groups.is_empty()
    }

    /// What is known of a row group.
    pub fn facts(&self, index: usize) -> BlockFacts {
        let (part, group) = self.groups[index];
        let part = &self.parts[part];
        let group = part.metadata.row_group(group);
        let range = |name: &str| {
            let place = part.places.iter().find(|(column, _)| column.name == name)?.1?;
            match group.column(place).statistics()? {
                Statistics::Int64(range) => Some((*range.min_opt()?, *range.max_opt()?)),
                _ => None,
            }
        };
        BlockFacts {
            rows: u64::try_from(group.num_rows()).unwrap_or(0),
            starts_ns: range("start"),
            durations_ns: range("duration"),
        }
    }

    /// Reads columns of a row group. Processes and files are rows of the tables.
    pub fn read(&self, index: usize, columns: &[&str]) -> Result<Block> {
        let (part, group) = self.groups[index];
        let part = &self.parts[part];
        let file = File::open(&part.path).at(&part.path)?;
        let rows = usize::try_from(part.metadata.row_group(group).num_rows()).unwrap_or(0);
        let mut block = Block { rows, columns: Vec::new() };
        for (described, place) in &part.places {
            if !columns.contains(&described.name) {
                continue;
            }
            let mut column = match place {
                Some(place) => part.column(&file, group, *place, *described, rows)?,
                None => Column::same(ABSENT),
            };
            self.resolve(described.name, &mut column).map_err(|what| part.wrong(what))?;
            block.columns.push((described.name, column));
        }
        Ok(block)
    }

    /// Compares all columns with their checksums.
    pub fn verify(&self) -> Result<()> {
        for (part, group) in &self.groups {
            let part = &self.parts[*part];
            let file = File::open(&part.path).at(&part.path)?;
            for place in part.places.iter().filter_map(|(_, place)| *place) {
                part.bytes(&file, *group, place)?;
            }
        }
        Ok(())
    }

    /// From ids of the folder to rows of the tables.
    fn resolve(&self, name: &str, column: &mut Column) -> Result<(), Wrong> {
        let (which, wrong): (RowsOf, Wrong) = match name {
            "process" => (super::reader::processes_of, "a process that is missing from its table"),
            "file" | "other_file" => {
                (super::reader::files_of, "a file that is missing from its table")
            }
            _ => return Ok(()),
        };
        // Ids of one writer are adjacent: its rows are looked up once.
        let mut writer: Option<(u32, &[Option<u32>])> = None;
        for id in column.values.iter_mut().filter(|id| **id != ABSENT) {
            let (number, at) = super::reader::split(*id);
            let rows = match writer {
                Some((last, rows)) if last == number => rows,
                _ => {
                    let rows = self.ids.writer(number).map(which).ok_or(wrong)?;
                    writer = Some((number, rows));
                    rows
                }
            };
            *id = i64::from(rows.get(at).copied().flatten().ok_or(wrong)?);
        }
        Ok(())
    }
}

impl Part {
    fn wrong(&self, what: &'static str) -> TraceError {
        TraceError::Content { path: self.path.clone(), what }
    }

    fn column(
        &self,
        file: &File,
        group: usize,
        place: usize,
        described: Described,
        rows: usize,
    ) -> Result<Column> {
        let chunk = self.metadata.row_group(group).column(place);
        let (start, _) = chunk.byte_range();
        let bytes = self.bytes(file, group, place)?;
        let most = Most { bytes: chunk.uncompressed_size(), rows };
        page_head::check(&bytes, most).map_err(|what| self.wrong(what))?;
        let window = Arc::new(Window { bytes: bytes.into(), start });
        let mut pages = SerializedPageReader::new(window, chunk, rows, None).at(&self.path)?;
        let has_levels = chunk.column_descr().max_def_level() > 0;
        let mut building = Building { described, has_levels, ..Building::default() };
        while let Some(page) = pages.get_next_page().at(&self.path)? {
            building.add(page).map_err(|what| self.wrong(what))?;
        }
        building.finish(rows).map_err(|what| self.wrong(what))
    }

    /// The bytes of a column of a row group, compared with their checksum.
    fn bytes(&self, file: &File, group: usize, place: usize) -> Result<Vec<u8>> {
        let (start, length) = self.metadata.row_group(group).column(place).byte_range();
        let mut bytes = vec![0; usize::try_from(length).unwrap_or(0)];
        file.read_exact_at(&mut bytes, start).at(&self.path)?;
        if self.checksum(group, place).is_some_and(|expected| crc32fast::hash(&bytes) != expected) {
            let source = ParquetError::General("a column of an unexpected type".to_owned());
            return Err(TraceError::Damaged { path: self.path.clone(), source });
        }
        Ok(bytes)
    }

    fn checksum(&self, group: usize, place: usize) -> Option<u32> {
        let digits = self.checksums.get(group)?.get(place * 8..place * 8 + 8)?;
        u32::from_str_radix(digits, 16).ok()
    }
}

/// A column whose pages are being read.
struct Building {
    described: Described,
    has_levels: bool,
    dictionary: Option<Column>,
    /// What pages held, and their rows.
    pages: Vec<(Column, usize)>,
}

impl Default for Building {
    fn default() -> Self {
        let described = EVENTS.columns[0];
        Self { described, has_levels: false, dictionary: None, pages: Vec::new() }
    }
}

impl Building {
    fn add(&mut self, page: Page) -> Result<(), Wrong> {
        match page {
            Page::DictionaryPage { buf, num_values, .. } => {
                self.dictionary = Some(self.plain(&buf, num_values as usize)?);
                Ok(())
            }
            Page::DataPage { buf, num_values, encoding, .. } => {
                let rows = num_values as usize;
                let column = self.page(&buf, rows, encoding)?;
                self.pages.push((column, rows));
                Ok(())
            }
            Page::DataPageV2 { .. } => Err("a page of an unsupported version"),
        }
    }

    fn size(&self) -> usize {
        if matches!(self.described.kind, Type::Int32 | Type::Uint32) { 4 } else { 8 }
    }

    fn plain(&self, bytes: &[u8], count: usize) -> Result<Column, Wrong> {
        if self.described.kind == Type::Text {
            let texts = decode::plain_texts(bytes, count)?;
            let values = (0..count as i64).collect();
            return Ok(Column { cells: Cells::Each, values, texts });
        }
        let values = decode::plain(bytes, self.size(), count)?;
        Ok(Column { cells: Cells::Each, values: self.unsigned(values), texts: Vec::new() })
    }

    fn unsigned(&self, mut values: Vec<i64>) -> Vec<i64> {
        if self.described.kind == Type::Uint32 {
            values.iter_mut().for_each(|value| *value &= 0xffff_ffff);
        }
        values
    }

    fn page(&self, mut bytes: &[u8], rows: usize, encoding: Encoding) -> Result<Column, Wrong> {
        let mut levels = None;
        let mut present = rows;
        if self.has_levels {
            if bytes.len() < 4 {
                return Err("a page without definition levels");
            }
            let length = bytes.get_u32_le() as usize;
            let packed = bytes.get(..length).ok_or("a page without definition levels")?;
            bytes = &bytes[length..];
            match decode::only_run(packed, 1, rows) {
                Some(0) => return Ok(Column::same(ABSENT)),
                Some(_) => {}
                None => {
                    let marks = decode::hybrid(packed, 1, rows)?;
                    present = marks.iter().map(|mark| *mark as usize).sum();
                    levels = Some(marks);
                }
            }
        }
        let column = self.values(bytes, present, encoding)?;
        Ok(match levels {
            Some(marks) => spread(column, &marks),
            None => column,
        })
    }

    /// The values of a page that are there.
    fn values(&self, bytes: &[u8], count: usize, encoding: Encoding) -> Result<Column, Wrong> {
        let each = |values| Column { cells: Cells::Each, values, texts: Vec::new() };
        match encoding {
            Encoding::PLAIN => self.plain(bytes, count),
            Encoding::DELTA_BINARY_PACKED => Ok(each(self.unsigned(decode::deltas(bytes, count)?))),
            Encoding::BYTE_STREAM_SPLIT => {
                Ok(each(self.unsigned(decode::byte_streams(bytes, self.size(), count)?)))
            }
            Encoding::RLE_DICTIONARY | Encoding::PLAIN_DICTIONARY => {
                let known = self.dictionary.as_ref().ok_or("codes without a dictionary")?;
                let (width, codes) = bytes.split_first().ok_or("a page without codes")?;
                let mut column = known.clone();
                if let Some(code) = decode::only_run(codes, u32::from(*width), count) {
                    let value = column.values.get(code as usize).ok_or(CODE)?;
                    (column.cells, column.values) = (Cells::Same, vec![*value]);
                    return Ok(column);
                }
                let codes = decode::hybrid(codes, u32::from(*width), count)?;
                let mut most = 0;
                codes.iter().for_each(|code| most = most.max(*code));
                if count > 0 && most as usize >= known.values.len() {
                    return Err(CODE);
                }
                column.cells = Cells::Coded(codes);
                Ok(column)
            }
            _ => Err("values in an unsupported encoding"),
        }
    }

    fn finish(mut self, rows: usize) -> Result<Column, Wrong> {
        if self.pages.iter().map(|(_, rows)| rows).sum::<usize>() != rows {
            return Err("a column whose length differs from the number of rows");
        }
        if self.pages.len() == 1 {
            return Ok(self.pages.swap_remove(0).0);
        }
        // Our own files have one page per column; others are put together in the plainest way.
        let mut all = Column { cells: Cells::Each, ..Column::default() };
        for (page, rows) in self.pages {
            let first = all.texts.len() as i64;
            all.values.extend((0..rows).map(|row| match page.at(row) {
                ABSENT => ABSENT,
                place if self.described.kind == Type::Text => place + first,
                number => number,
            }));
            all.texts.extend(page.texts);
        }
        Ok(all)
    }
}

const CODE: Wrong = "a code beyond its dictionary";

/// Puts values where the marks say that there are some.
fn spread(column: Column, marks: &[u32]) -> Column {
    let Column { cells, mut values, texts } = column;
    let absent = values.len() as u32;
    values.push(ABSENT);
    let cells = match cells {
        Cells::Each => {
            let values = spread_out(&values, ABSENT, marks);
            return Column { cells: Cells::Each, values, texts };
        }
        Cells::Coded(mut codes) => {
            codes.push(absent);
            spread_out(&codes, absent, marks)
        }
        Cells::Same => marks.iter().map(|mark| if *mark > 0 { 0 } else { absent }).collect(),
    };
    Column { cells: Cells::Coded(cells), values, texts }
}

/// One value after the last mark is looked at, never taken: without a branch, since marks follow no pattern
/// that a processor foresees.
fn spread_out<T: Copy>(values: &[T], absent: T, marks: &[u32]) -> Vec<T> {
    let mut all = vec![absent; marks.len()];
    let mut next = 0;
    for (place, mark) in all.iter_mut().zip(marks) {
        let value = values[next];
        next += *mark as usize;
        *place = if *mark > 0 { value } else { absent };
    }
    all
}

/// A part of a file, in memory.
struct Window {
    bytes: Bytes,
    /// Where in the file it begins.
    start: u64,
}

impl Length for Window {
    fn len(&self) -> u64 {
        self.start + self.bytes.len() as u64
    }
}

impl ChunkReader for Window {
    type T = bytes::buf::Reader<Bytes>;

    fn get_read(&self, start: u64) -> Result<Self::T, ParquetError> {
        Ok(self.get_bytes(start, usize::try_from(self.len().saturating_sub(start))?)?.reader())
    }

    fn get_bytes(&self, start: u64, length: usize) -> Result<Bytes, ParquetError> {
        let begin = start.checked_sub(self.start).and_then(|at| usize::try_from(at).ok());
        let range = begin.and_then(|begin| Some(begin..begin.checked_add(length)?));
        match range.filter(|range| range.end <= self.bytes.len()) {
            Some(range) => Ok(self.bytes.slice(range)),
            None => Err(ParquetError::EOF("a page outside its column".to_owned())),
        }
    }
}
