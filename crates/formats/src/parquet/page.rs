//! Finding pages in a file.

use feedline_parquet_pages::PageHeader;
use feedline_parquet_pages::thrift::ReadError;

use super::NAME;
use crate::error::check_limit;
use crate::window::Window;
use crate::{DecodeError, Decoded};

/// The page whose header is at `at`, in a chunk that goes to `end`.
pub(super) fn page_at(window: &mut Window<'_>, at: u64, end: u64) -> Decoded<PageHeader> {
    let mut least = 1;
    loop {
        if at >= end {
            return Err(decode_error(ReadError::Short, end));
        }
        let bytes = window.at_least(at, least.min(end - at), end)?;
        let len = bytes.len() as u64;
        match PageHeader::read(bytes, at) {
            Ok(page) => return check(page, end),
            // Statistics make some headers long.
            Err(ReadError::Short) if len < end - at => least = (2 * len).max(64),
            Err(error) => return Err(decode_error(error, at + len)),
        }
        check_limit((NAME, "page header"), at, least, window.capacity())?;
    }
}

fn check(page: PageHeader, end: u64) -> Decoded<PageHeader> {
    let wrong = |expected, found: String| {
        Err(DecodeError::Field { format: NAME, offset: page.offset, expected, found })
    };
    if page.end() > end {
        return wrong("a page inside of its column chunk", format!("{} bytes", page.bytes));
    }
    let levels = page.levels_before();
    if levels > page.bytes.min(page.plain_bytes) as usize {
        return wrong("levels inside of their page", format!("{levels} bytes"));
    }
    Ok(page)
}

/// The error of a structure for which no more bytes can come; `end` is where those that are there end.
pub(super) fn decode_error(error: ReadError, end: u64) -> DecodeError {
    let format = NAME;
    match error {
        ReadError::Wrong { offset, expected, found } => {
            DecodeError::Field { format, offset, expected, found }
        }
        ReadError::Unsupported { offset, feature } => {
            DecodeError::Feature { format, feature, offset }
        }
        ReadError::Short => {
            let (expected, found) = ("more of a structure", "its end".to_owned());
            DecodeError::Field { format, offset: end, expected, found }
        }
    }
}
