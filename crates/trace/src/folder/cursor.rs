//! Reading the files of tables: columns by their names, some rows at a time.

use std::fs::File;
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use parquet::basic::Type as Physical;
use parquet::column::reader::ColumnReader;
use parquet::data_type::ByteArray;
use parquet::errors::ParquetError;
use parquet::file::metadata::ParquetMetaData;
use parquet::file::reader::FileReader as _;
use parquet::file::serialized_reader::SerializedFileReader;

use super::at::At as _;
use super::page_head::{self, Most};
use super::schema::{Column, Table, Type, VERSION};
use super::table_file::{CHECKSUMS_KEY, VERSION_KEY};
use crate::error::{Result, TraceError};

/// Columns of a table, and where they are in a file.
pub(crate) type Places = Vec<(Column, Option<usize>)>;

/// A file of a table.
pub(crate) struct TableReader {
    path: PathBuf,
    file: SerializedFileReader<File>,
    /// The same file, for checksums.
    bytes: File,
    /// The table's columns and where they are in the file.
    places: Places,
    /// Checksums of columns, a line per row group.
    checksums: Vec<Box<str>>,
}

impl TableReader {
    /// Opens a file and compares its columns with those of the table. A file of an earlier version may
    /// lack optional ones.
    pub(crate) fn open(table: Table, path: &Path) -> Result<Self> {
        let bytes = File::open(path).at(path)?;
        let file = bytes.try_clone().at(path)?;
        let file = SerializedFileReader::new(file).at(path)?;
        let facts = file.metadata().file_metadata();
        let schema = facts.schema_descr();
        let mut places = Vec::new();
        for column in table.columns {
            let place = schema.columns().iter().position(|found| found.name() == column.name);
            let fits = match place {
                Some(place) => {
                    let found = schema.column(place);
                    found.physical_type() == physical(column.kind)
                        && found.max_rep_level() == 0
                        && found.max_def_level() <= i16::from(column.is_optional)
                }
                None => column.is_optional,
            };
            if !fits {
                let expected = column.kind.name();
                return Err(TraceError::Column {
                    path: path.to_owned(),
                    column: column.name,
                    expected,
                });
            }
            places.push((*column, place));
        }
        let mut reader = Self { path: path.to_owned(), file, bytes, places, checksums: Vec::new() };
        let checksums = reader.fact(CHECKSUMS_KEY).unwrap_or_default();
        reader.checksums = checksums.lines().map(Box::from).collect();
        reader.check_groups().at(path)?;
        reader.check_heads().at(path)?;
        let version = reader.fact(VERSION_KEY).and_then(|text| text.parse::<u32>().ok());
        match version {
            Some(found) if found > VERSION => {
                Err(TraceError::Version { path: path.to_owned(), found, known: VERSION })
            }
            _ => Ok(reader),
        }
    }

    /// The value of a key in the file's footer.
    pub(crate) fn fact(&self, key: &str) -> Option<&str> {
        let facts = self.file.metadata().file_metadata().key_value_metadata()?;
        facts.iter().find(|fact| fact.key == key)?.value.as_deref()
    }

    /// What the file says at its end, where the table's columns are, and their checksums.
    pub(crate) fn into_parts(self) -> (Arc<ParquetMetaData>, Places, Vec<Box<str>>) {
        (Arc::new(self.file.metadata().clone()), self.places, self.checksums)
    }

    /// How many row groups there are.
    pub(crate) fn groups(&self) -> usize {
        self.file.num_row_groups()
    }

    /// The columns of a row group for which `is_wanted` holds, in the order of the table.
    pub(crate) fn group(&self, index: usize, is_wanted: impl Fn(&str) -> bool) -> Result<Group> {
        let group = self.file.get_row_group(index).at(&self.path)?;
        let rows = usize::try_from(group.metadata().num_rows()).unwrap_or(0);
        let mut cursors = Vec::new();
        for (column, place) in &self.places {
            if let Some(place) = place.filter(|_| is_wanted(column.name)) {
                self.check(index, place).at(&self.path)?;
                let reader = group.get_column_reader(place).at(&self.path)?;
                let found = self.file.metadata().file_metadata().schema_descr().column(place);
                cursors.push(Cursor::new(*column, reader, found.max_def_level() > 0));
            }
        }
        Ok(Group { path: self.path.clone(), rows, cursors })
    }

    /// Looks whether all columns are inside the file and as long as their row groups.
    fn check_groups(&self) -> Result<(), ParquetError> {
        let size = self.bytes.metadata()?.len();
        for group in self.file.metadata().row_groups() {
            for column in group.columns() {
                let data = column.data_page_offset();
                let start = column.dictionary_page_offset().unwrap_or(data);
                let end = start.checked_add(column.compressed_size());
                let is_inside = start >= 0
                    && (start..start.saturating_add(column.compressed_size())).contains(&data)
                    && end.and_then(|end| u64::try_from(end).ok()).is_some_and(|end| end <= size);
                if !is_inside || column.num_values() != group.num_rows() {
                    return Err(ParquetError::General(
                        "a column beyond the end of the file, or of the wrong length".to_owned(),
                    ));
                }
            }
        }
        Ok(())
    }

    /// Looks at what pages say of their sizes, in columns without a checksum: nothing else does before room
    /// is made for them.
    fn check_heads(&self) -> Result<(), ParquetError> {
        for (index, group) in self.file.metadata().row_groups().iter().enumerate() {
            for place in self.places.iter().filter_map(|(_, place)| *place) {
                if self.checksum(index, place).is_some() {
                    continue;
                }
                let column = group.column(place);
                let rows = usize::try_from(group.num_rows())?;
                let most = Most { bytes: column.uncompressed_size(), rows };
                page_head::check(&self.column_bytes(index, place)?, most)
                    .map_err(|what| ParquetError::General(what.to_owned()))?;
            }
        }
        Ok(())
    }

    fn checksum(&self, group: usize, place: usize) -> Option<u32> {
        let digits = self.checksums.get(group)?.get(place * 8..place * 8 + 8)?;
        u32::from_str_radix(digits, 16).ok()
    }

    fn column_bytes(&self, group: usize, place: usize) -> Result<Vec<u8>, ParquetError> {
        let (start, length) = self.file.metadata().row_group(group).column(place).byte_range();
        let mut bytes = vec![0; usize::try_from(length)?];
        self.bytes.read_exact_at(&mut bytes, start)?;
        Ok(bytes)
    }

    /// Compares a column of a row group with its checksum, if the file has one: the `parquet` crate is
    /// not made to survive all damage.
    fn check(&self, group: usize, place: usize) -> Result<(), ParquetError> {
        let Some(expected) = self.checksum(group, place) else { return Ok(()) };
        if crc32fast::hash(&self.column_bytes(group, place)?) == expected {
            Ok(())
        } else {
            Err(ParquetError::General("a column of an unexpected type".to_owned()))
        }
    }

    /// All rows of a row group.
    pub(crate) fn all(&self, index: usize) -> Result<Group> {
        let mut group = self.group(index, |_| true)?;
        group.next(usize::MAX)?;
        Ok(group)
    }
}

fn physical(kind: Type) -> Physical {
    match kind {
        Type::Int64 | Type::Timestamp => Physical::INT64,
        Type::Int32 | Type::Uint32 => Physical::INT32,
        Type::Double => Physical::DOUBLE,
        Type::Boolean => Physical::BOOLEAN,
        Type::Text => Physical::BYTE_ARRAY,
    }
}

/// A row group that is being read.
pub(crate) struct Group {
    path: PathBuf,
    /// Rows that were not read yet.
    rows: usize,
    pub(crate) cursors: Vec<Cursor>,
}

impl Group {
    /// Reads the next rows of all columns, at most `most`; how many there were.
    pub(crate) fn next(&mut self, most: usize) -> Result<usize> {
        let rows = self.rows.min(most);
        for cursor in &mut self.cursors {
            cursor.read(rows).at(&self.path)?;
        }
        self.rows -= rows;
        Ok(rows)
    }

    /// Whether all rows were read.
    pub(crate) fn is_done(&self) -> bool {
        self.rows == 0
    }

    /// A column by its name.
    pub(crate) fn cursor(&self, name: &str) -> Option<&Cursor> {
        self.cursors.iter().find(|cursor| cursor.column.name == name)
    }
}

/// A column of a row group: the rows that were read last.
pub(crate) struct Cursor {
    pub(crate) column: Column,
    reader: ColumnReader,
    /// 1 where there is a value. Not used if all rows have one.
    levels: Vec<i16>,
    has_levels: bool,
    numbers: Vec<i64>,
    narrow: Vec<i32>,
    reals: Vec<f64>,
    truths: Vec<bool>,
    texts: Vec<ByteArray>,
}

impl Cursor {
    fn new(column: Column, reader: ColumnReader, has_levels: bool) -> Self {
        Self {
            column,
            reader,
            levels: Vec::new(),
            has_levels,
            numbers: Vec::new(),
            narrow: Vec::new(),
            reals: Vec::new(),
            truths: Vec::new(),
            texts: Vec::new(),
        }
    }

    fn read(&mut self, rows: usize) -> Result<(), ParquetError> {
        self.levels.clear();
        self.numbers.clear();
        self.texts.clear();
        let is_unsigned = self.column.kind == Type::Uint32;
        let Self { reader, levels, numbers, narrow, reals, truths, texts, .. } = self;
        let mut done = 0;
        while done < rows {
            let left = rows - done;
            let levels = self.has_levels.then_some(&mut *levels);
            let (read, ..) = match reader {
                ColumnReader::Int64ColumnReader(reader) => {
                    reader.read_records(left, levels, None, numbers)?
                }
                ColumnReader::Int32ColumnReader(reader) => {
                    narrow.clear();
                    let read = reader.read_records(left, levels, None, narrow)?;
                    numbers.extend(narrow.iter().map(|number| {
                        if is_unsigned {
                            i64::from(number.cast_unsigned())
                        } else {
                            i64::from(*number)
                        }
                    }));
                    read
                }
                ColumnReader::DoubleColumnReader(reader) => {
                    reals.clear();
                    let read = reader.read_records(left, levels, None, reals)?;
                    numbers.extend(reals.iter().map(|real| real.to_bits().cast_signed()));
                    read
                }
                ColumnReader::BoolColumnReader(reader) => {
                    truths.clear();
                    let read = reader.read_records(left, levels, None, truths)?;
                    numbers.extend(truths.iter().map(|truth| i64::from(*truth)));
                    read
                }
                ColumnReader::ByteArrayColumnReader(reader) => {
                    reader.read_records(left, levels, None, texts)?
                }
                _ => return Err(ParquetError::General("an unsupported column type".to_owned())),
            };
            if read == 0 {
                return Err(ParquetError::EOF(format!("{left} rows are missing")));
            }
            done += read;
        }
        Ok(())
    }

    /// The rows in which there is a value, and the values.
    pub(crate) fn numbers(&self) -> impl Iterator<Item = (usize, i64)> {
        self.rows().zip(self.numbers.iter().copied())
    }

    /// The rows in which there is a text, and the texts.
    pub(crate) fn texts(&self) -> impl Iterator<Item = (usize, &ByteArray)> {
        self.rows().zip(&self.texts)
    }

    fn rows(&self) -> impl Iterator<Item = usize> {
        let values = self.numbers.len().max(self.texts.len());
        let (levels, all) = if self.has_levels { (&*self.levels, 0) } else { (&[][..], values) };
        let present = levels.iter().enumerate().filter(|(_, level)| **level > 0);
        present.map(|(row, _)| row).chain(0..all)
    }
}
