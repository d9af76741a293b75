//! What pages of a column say of themselves, looked at before anyone believes it.
//!
//! The `parquet` crate and our decoders make room for as many bytes and values as a page announces. A damaged
//! page may announce anything; here it is compared with what the column and its row group have.

use feedline_parquet_pages::PageHeader;
use feedline_parquet_pages::decode::Wrong;

const BAD: Wrong = "a damaged page header";

/// What a column has in all.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Most {
    /// Bytes of its pages before they were compressed, with their heads.
    pub(crate) bytes: i64,
    /// Rows of its row group; a dictionary has no more values, nor has a page.
    pub(crate) rows: usize,
}

/// Compares all pages of a column with what it has in all.
pub(crate) fn check(mut column: &[u8], most: Most) -> Result<(), Wrong> {
    let mut bytes = 0_i64;
    while !column.is_empty() {
        let header = PageHeader::read(column, 0).map_err(|_| BAD)?;
        bytes = bytes.saturating_add(header.plain_bytes.into());
        if bytes > most.bytes || header.values() as usize > most.rows {
            return Err("a page larger than its column");
        }
        column = usize::try_from(header.end()).ok().and_then(|end| column.get(end..)).ok_or(BAD)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A head of a page of values: type, sizes, and how many.
    fn head(unpacked: u8, packed: u8, values: u8) -> Vec<u8> {
        let zigzag = |number: u8| number * 2;
        let mut bytes = vec![0x15, 0, 0x15, zigzag(unpacked), 0x15, zigzag(packed)];
        // The structure of a data page is field 5; encodings follow the number of values.
        bytes.extend([0x2c, 0x15, zigzag(values), 0x15, 0, 0x15, 6, 0x15, 6, 0, 0]);
        bytes.extend(vec![9; usize::from(packed)]);
        bytes
    }

    #[test]
    fn pages_are_as_large_as_their_column() {
        let check = |unpacked, packed, values, most_bytes, rows| {
            let mut column = head(unpacked, packed, values);
            column.extend(head(1, 1, 0));
            check(&column, Most { bytes: most_bytes, rows })
        };
        assert_eq!(check(20, 7, 10, 21, 10), Ok(()));
        assert_eq!(check(20, 7, 10, 20, 10), Err("a page larger than its column"));
        assert_eq!(check(20, 7, 10, 21, 9), Err("a page larger than its column"));
    }

    #[test]
    fn a_head_that_is_cut_off_is_damaged() {
        let whole = head(20, 7, 10);
        let most = Most { bytes: 100, rows: 10 };
        assert_eq!(super::check(&whole, most), Ok(()));
        for cut in 1..whole.len() {
            assert_eq!(super::check(&whole[..cut], most), Err(BAD), "{cut}");
        }
        // Nested without end.
        assert_eq!(super::check(&[0x1c; 1000], most), Err(BAD));
    }
}
