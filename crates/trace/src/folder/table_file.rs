//! One file of a table while it is written: hidden until it is complete.

use std::fs::{self, File};
use std::io::{BufWriter, Write as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use bytes::Bytes;
use parquet::basic::{Compression, Encoding, ZstdLevel};
use parquet::column::page::{CompressedPage, Page, PageWriter as _};
use parquet::column::writer::ColumnCloseResult;
use parquet::errors::ParquetError;
use parquet::file::metadata::{ColumnChunkMetaData, ColumnChunkMetaDataBuilder, KeyValue};
use parquet::file::properties::WriterProperties;
use parquet::file::statistics::Statistics;
use parquet::file::writer::{SerializedFileWriter, SerializedPageWriter, TrackedWrite};
use parquet::schema::types::{ColumnDescPtr, SchemaDescPtr};

use super::at::At as _;
use super::column::{Extent, Gathered, Pages};
use super::schema::{Table, Type, VERSION};
use crate::error::Result;

/// Zstandard's level. Higher ones cost more than the tracing itself and win a few per cent.
const LEVEL: i32 = 1;

/// The key under which a file says which version of the format it has.
pub(crate) const VERSION_KEY: &str = "feedline.trace.version";

/// The key under which a file has the checksums of its columns: eight digits each, a line per row group.
/// Some readers of Parquet crash on damaged values.
pub(crate) const CHECKSUMS_KEY: &str = "feedline.trace.crc32";

/// A file that is being written.
pub(crate) struct TableFile {
    table: Table,
    schema: SchemaDescPtr,
    writer: SerializedFileWriter<BufWriter<File>>,
    partial: PathBuf,
    path: PathBuf,
    press: Press,
    checksums: String,
}

impl std::fmt::Debug for TableFile {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("TableFile").field("path", &self.path).finish_non_exhaustive()
    }
}

impl TableFile {
    /// Begins a file that will be at `path`.
    pub(crate) fn create(table: Table, path: PathBuf) -> Result<Self> {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        let partial = path.with_file_name(format!(".{name}.partial"));
        let schema = table.schema();
        let properties = WriterProperties::builder()
            .set_created_by(format!("Feedline {}", env!("CARGO_PKG_VERSION")))
            .set_offset_index_disabled(true)
            .build();
        let file = File::create(&partial).at(&partial)?;
        let writer = SerializedFileWriter::new(
            BufWriter::new(file),
            schema.root_schema_ptr(),
            Arc::new(properties),
        )
        .at(&partial)?;
        Ok(Self {
            table,
            schema,
            writer,
            partial,
            path,
            press: Press::new()?,
            checksums: String::new(),
        })
    }

    /// Writes the columns, which are those of the table in its order, and empties them.
    pub(crate) fn write_group(&mut self, columns: &mut [Gathered<'_>]) -> Result<()> {
        self.try_group(columns).at(&self.partial)
    }

    fn try_group(&mut self, columns: &mut [Gathered<'_>]) -> Result<(), ParquetError> {
        let Self { table, schema, writer, press, checksums, .. } = self;
        let mut group = writer.next_row_group()?;
        for (index, (column, facts)) in columns.iter_mut().zip(table.columns).enumerate() {
            let (extent, pages) = column.take(&mut |pages| press.size(pages));
            let (chunk, close) = press.seal(schema.column(index), facts.kind, &extent, pages)?;
            group.append_column(&chunk, close)?;
            checksums.push_str(&format!("{:08x}", crc32fast::hash(&chunk)));
        }
        checksums.push('\n');
        group.close()?;
        Ok(())
    }

    /// Completes the file, with these facts at its end, and gives it its name.
    pub(crate) fn commit(mut self, facts: &[(&str, String)]) -> Result<u64> {
        let checksums = std::mem::take(&mut self.checksums);
        let own = [(VERSION_KEY, VERSION.to_string()), (CHECKSUMS_KEY, checksums)];
        for (key, value) in own.iter().chain(facts) {
            self.writer.append_key_value_metadata(KeyValue::new((*key).to_owned(), value.clone()));
        }
        let buffered = self.writer.into_inner().at(&self.partial)?;
        let file = buffered.into_inner().map_err(std::io::IntoInnerError::into_error);
        let bytes = file.and_then(|file| file.metadata()).at(&self.partial)?.len();
        fs::rename(&self.partial, &self.path).at(&self.path)?;
        Ok(bytes)
    }

    /// Where the file will be.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }
}

/// Compresses pages.
struct Press {
    compressor: zstd::bulk::Compressor<'static>,
}

impl Press {
    fn new() -> Result<Self> {
        let compressor = zstd::bulk::Compressor::new(LEVEL).at(Path::new("zstd"))?;
        Ok(Self { compressor })
    }

    fn compress(&mut self, bytes: &[u8]) -> Result<Vec<u8>, ParquetError> {
        self.compressor.compress(bytes).map_err(|error| ParquetError::External(Box::new(error)))
    }

    /// How large pages would be.
    fn size(&mut self, pages: &Pages) -> usize {
        let size = |bytes: &[u8], press: &mut Self| {
            press.compress(bytes).map_or(bytes.len(), |small| small.len().min(bytes.len()))
        };
        let dictionary = pages.dictionary.as_ref().map_or(0, |(page, _)| size(page, self));
        dictionary + size(&pages.data, self)
    }

    /// The bytes of a column in the file and their description.
    fn seal(
        &mut self,
        column: ColumnDescPtr,
        kind: Type,
        extent: &Extent,
        pages: Pages,
    ) -> Result<(Bytes, ColumnCloseResult), ParquetError> {
        let raw = pages.data.len() + pages.dictionary.as_ref().map_or(0, |(page, _)| page.len());
        let dictionary = match &pages.dictionary {
            Some((page, _)) => Some(self.compress(page)?),
            None => None,
        };
        let data = self.compress(&pages.data)?;
        let small = data.len() + dictionary.as_ref().map_or(0, Vec::len);
        let is_smaller = small < raw;
        let choose = |small: Vec<u8>, raw: Vec<u8>| {
            let size = raw.len();
            (Bytes::from(if is_smaller { small } else { raw }), size)
        };
        let mut chunk = Chunk { bytes: Vec::with_capacity(small + 64), unpacked: 0 };
        let mut encodings = vec![Encoding::RLE, pages.encoding];
        if let (Some(small), Some((raw, count))) = (dictionary, pages.dictionary) {
            let (buf, size) = choose(small, raw);
            let encoding = Encoding::PLAIN;
            let num_values = count as u32;
            let page = Page::DictionaryPage { buf, num_values, encoding, is_sorted: false };
            chunk.push(page, size)?;
            encodings.push(encoding);
        }
        let data_offset = chunk.bytes.len() as i64;
        let (buf, size) = choose(data, pages.data);
        let page = Page::DataPage {
            buf,
            num_values: extent.rows as u32,
            encoding: pages.encoding,
            def_level_encoding: Encoding::RLE,
            rep_level_encoding: Encoding::RLE,
            statistics: None,
        };
        chunk.push(page, size)?;
        let codec = if is_smaller {
            Compression::ZSTD(ZstdLevel::try_new(LEVEL)?)
        } else {
            Compression::UNCOMPRESSED
        };
        let metadata = ColumnChunkMetaData::builder(column)
            .set_compression(codec)
            .set_encodings(encodings)
            .set_data_page_offset(data_offset)
            .set_dictionary_page_offset((data_offset > 0).then_some(0))
            .set_statistics(statistics(kind, extent));
        chunk.close(metadata, extent.rows)
    }
}

/// The bytes of a column chunk.
struct Chunk {
    bytes: Vec<u8>,
    /// Their number if nothing were compressed.
    unpacked: usize,
}

impl Chunk {
    /// Adds a page that had so many bytes before it was compressed.
    fn push(&mut self, page: Page, size: usize) -> Result<(), ParquetError> {
        let mut sink = TrackedWrite::new(&mut self.bytes);
        let page = CompressedPage::new(page, size);
        self.unpacked += SerializedPageWriter::new(&mut sink).write_page(page)?.uncompressed_size;
        sink.flush()?;
        Ok(())
    }

    fn close(
        self,
        metadata: ColumnChunkMetaDataBuilder,
        rows: usize,
    ) -> Result<(Bytes, ColumnCloseResult), ParquetError> {
        let metadata = metadata
            .set_total_compressed_size(self.bytes.len() as i64)
            .set_total_uncompressed_size(self.unpacked as i64)
            .set_num_values(rows as i64)
            .build()?;
        let close = ColumnCloseResult {
            bytes_written: self.bytes.len() as u64,
            rows_written: rows as u64,
            metadata,
            bloom_filter: None,
            column_index: None,
            offset_index: None,
        };
        Ok((Bytes::from(self.bytes), close))
    }
}

/// Least and largest numbers let readers leave out row groups.
fn statistics(kind: Type, extent: &Extent) -> Statistics {
    let nulls = Some(extent.nulls as u64);
    let (least, most) = extent.range.unzip();
    match kind {
        Type::Int64 | Type::Timestamp => Statistics::int64(least, most, None, nulls, false),
        Type::Int32 => {
            let narrow = |number: Option<i64>| number.and_then(|n| i32::try_from(n).ok());
            Statistics::int32(narrow(least), narrow(most), None, nulls, false)
        }
        Type::Uint32 => Statistics::int32(None, None, None, nulls, false),
        Type::Double => Statistics::double(None, None, None, nulls, false),
        Type::Boolean => Statistics::boolean(None, None, None, nulls, false),
        Type::Text => Statistics::byte_array(None, None, None, nulls, false),
    }
}
