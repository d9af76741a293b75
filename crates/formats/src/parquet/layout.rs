//! How samples are cut into pages and row groups, and the structures that say so.
//!
//! Sizes are known before a byte is written unless pages are compressed, so nothing but a compressed
//! page is ever held.

use super::NAME;
use crate::{EncodeError, Encoded, FileSpec};
use feedline_parquet_pages::thrift::Writer;

/// What every file begins and ends with.
pub(super) const MAGIC: &[u8; 4] = b"PAR1";
/// The magic and the footer's length before it.
pub(super) const TAIL_BYTES: u64 = 8;
/// A page has no more data, unless one value is larger.
const PAGE_BYTES: u64 = 1 << 20;
/// Samples of a row group have no more data, unless one is larger.
const GROUP_BYTES: u64 = 16 << 20;
/// As many rows as pyarrow puts into a group at most.
const GROUP_ROWS: u64 = 1 << 20;
/// pyarrow refuses lists in the footer that are longer.
const MAX_GROUPS: u64 = 1_000_000;
const LABEL_BYTES: u64 = 8;
const RLE: u32 = 3;

/// The sizes in a file.
#[derive(Debug, Clone)]
pub(super) struct Layout {
    pub(super) samples: u64,
    pub(super) sample_bytes: u64,
    pub(super) group_rows: u64,
    codec: u32,
    shape: String,
    dtype: &'static str,
}

/// One of the two columns.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Column {
    Samples,
    Labels,
}

/// A column chunk that has been written.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Chunk {
    /// Headers and pages as they are in the file.
    pub(super) bytes: u64,
    /// The same, uncompressed.
    pub(super) plain_bytes: u64,
}

impl Layout {
    /// Refuses what the format cannot hold.
    pub(super) fn of(file: &FileSpec, codec: u32) -> Encoded<Layout> {
        let total = file.payload_bytes().filter(|&bytes| bytes < 1 << 60);
        let sample_bytes = file.sample_bytes().filter(|_| total.is_some());
        let sample_bytes = sample_bytes.ok_or_else(|| file.too_large())?;
        let refuse = |what| EncodeError::Layout { format: NAME, what };
        if sample_bytes > i32::MAX as u64 {
            return Err(refuse(format!(
                "a sample of {sample_bytes} bytes does not fit a value, which has less than 2^31"
            )));
        }
        let value_bytes = sample_bytes.max(1);
        let layout = Layout {
            samples: file.samples,
            sample_bytes,
            group_rows: (GROUP_BYTES / value_bytes).clamp(1, GROUP_ROWS),
            codec,
            shape: format!("{:?}", file.dims),
            dtype: file.element.name(),
        };
        if layout.groups() > MAX_GROUPS {
            return Err(refuse(format!(
                "{} row groups are more than the {MAX_GROUPS} that readers take",
                layout.groups()
            )));
        }
        Ok(layout)
    }

    pub(super) fn groups(&self) -> u64 {
        self.samples.div_ceil(self.group_rows)
    }

    pub(super) fn rows_of(&self, group: u64) -> u64 {
        self.group_rows.min(self.samples - group * self.group_rows)
    }

    /// Bytes of a value in a page. A value of no bytes is stored with its length, because a fixed
    /// length of zero is not allowed.
    pub(super) fn value_bytes(&self, column: Column) -> u64 {
        match column {
            Column::Labels => LABEL_BYTES,
            Column::Samples if self.sample_bytes == 0 => 4,
            Column::Samples => self.sample_bytes,
        }
    }

    pub(super) fn page_rows(&self, column: Column) -> u64 {
        (PAGE_BYTES / self.value_bytes(column)).max(1)
    }

    /// The size of a chunk with that many rows, uncompressed.
    fn chunk(&self, column: Column, rows: u64) -> Chunk {
        let page = |rows: u64| {
            let bytes = rows * self.value_bytes(column);
            page_header(rows, bytes, bytes).len() as u64 + bytes
        };
        let (full, rest) = (rows / self.page_rows(column), rows % self.page_rows(column));
        let last = if rest > 0 { page(rest) } else { 0 };
        let bytes = full * page(self.page_rows(column)) + last;
        Chunk { bytes, plain_bytes: bytes }
    }

    /// The size of the file, uncompressed.
    pub(super) fn size(&self) -> u64 {
        let columns = [Column::Samples, Column::Labels];
        let of_rows = |rows| columns.map(|column| self.chunk(column, rows));
        let full = of_rows(self.group_rows);
        let chunks: Vec<[Chunk; 2]> = (0..self.groups())
            .map(|group| match self.rows_of(group) {
                rows if rows == self.group_rows => full,
                rows => of_rows(rows),
            })
            .collect();
        let data: u64 = chunks.iter().flatten().map(|chunk| chunk.bytes).sum();
        let footer = self.footer(&chunks).len() as u64;
        MAGIC.len() as u64 + data + footer + TAIL_BYTES
    }

    /// The footer, given the two chunks of every row group.
    pub(super) fn footer(&self, chunks: &[[Chunk; 2]]) -> Vec<u8> {
        Writer::bytes_of(|out| {
            out.i32(1, 1);
            self.schema(out);
            out.i64(3, self.samples);
            out.list_of_structures(4, chunks.len());
            let mut offset = MAGIC.len() as u64;
            for (group, pair) in chunks.iter().enumerate() {
                out.element(|out| self.row_group(out, self.rows_of(group as u64), offset, pair));
                offset += pair[0].bytes + pair[1].bytes;
            }
            out.list_of_structures(5, 2);
            for (key, value) in [("shape", &self.shape[..]), ("dtype", self.dtype)] {
                out.element(|out| {
                    out.text(1, key);
                    out.text(2, value);
                });
            }
            out.text(6, "feedline");
        })
    }

    fn schema(&self, out: &mut Writer) {
        out.list_of_structures(2, 3);
        out.element(|out| {
            out.text(4, "schema");
            out.i32(5, 2);
        });
        out.element(|out| {
            out.i32(1, self.physical(Column::Samples));
            if self.sample_bytes > 0 {
                out.i32(2, self.sample_bytes as u32);
            }
            out.i32(3, 0);
            out.text(4, "x");
        });
        out.element(|out| {
            out.i32(1, self.physical(Column::Labels));
            out.i32(3, 0);
            out.text(4, "y");
        });
    }

    fn physical(&self, column: Column) -> u32 {
        match column {
            Column::Labels => 2,
            Column::Samples if self.sample_bytes == 0 => 6,
            Column::Samples => 7,
        }
    }

    fn row_group(&self, out: &mut Writer, rows: u64, offset: u64, chunks: &[Chunk; 2]) {
        out.list_of_structures(1, 2);
        let [x, y] = *chunks;
        for (column, name, chunk, at) in
            [(Column::Samples, "x", x, offset), (Column::Labels, "y", y, offset + x.bytes)]
        {
            out.element(|out| {
                out.i64(2, 0);
                out.structure(3, |out| {
                    out.i32(1, self.physical(column));
                    out.list_of_i32(2, &[0, RLE]);
                    out.list_of_texts(3, &[name]);
                    out.i32(4, self.codec);
                    out.i64(5, rows);
                    out.i64(6, chunk.plain_bytes);
                    out.i64(7, chunk.bytes);
                    out.i64(9, at);
                });
            });
        }
        out.i64(2, x.plain_bytes + y.plain_bytes);
        out.i64(3, rows);
    }
}

/// The header of a page of plain values.
pub(super) fn page_header(rows: u64, plain_bytes: u64, bytes: u64) -> Vec<u8> {
    Writer::bytes_of(|out| {
        out.i32(1, 0);
        out.i32(2, plain_bytes as u32);
        out.i32(3, bytes as u32);
        out.structure(5, |out| {
            out.i32(1, rows as u32);
            out.i32(2, 0);
            out.i32(3, RLE);
            out.i32(4, RLE);
        });
    })
}
