//! The folder in which a trace is kept: tables in Parquet, so that any tool can read them, in parts that
//! several processes write at once. `docs/trace-format.md` describes it for its readers.

mod at;
mod blocks;
mod claim;
mod column;
mod cursor;
mod event_columns;
mod page_head;
mod reader;
mod row_group_contents;
mod schema;
mod sink;
mod table_file;
mod writer;

pub use blocks::{ABSENT, Block, BlockFacts, Blocks, Column};
pub use reader::Folder;
pub use row_group_contents::RowGroupContents;
pub use schema::{ColumnFacts, VERSION, columns_of};
pub use sink::FolderSink;
pub use writer::{FolderWriter, Written};

pub(crate) use at::At;
pub(crate) use claim::{Claim, WRITERS, numbers};
pub(crate) use cursor::TableReader;
pub(crate) use reader::parts;
pub(crate) use schema::EVENTS;
pub(crate) use writer::{FILE_EVENTS, SEGMENTS_KEY, TRACE_FILE};
