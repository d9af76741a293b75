//! What pages of a column say of themselves, looked at before anyone believes it.
//!
//! The `parquet` crate and our decoders make room for as many bytes and values as a page announces. A damaged
//! page may announce anything; here it is compared with what the column and its row group have.

use super::decode::{self, Wrong};

const BAD: Wrong = "a page whose head is damaged";
/// Structures in a page's head stand no deeper.
const DEPTH: u32 = 6;

/// What a column has in all.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Most {
    /// Bytes of its pages before they were compressed, with their heads.
    pub(crate) bytes: i64,
    /// Rows of its row group; a dictionary has no more values, nor has a page.
    pub(crate) rows: usize,
}

/// Looks at all pages of a column.
pub(crate) fn check(mut column: &[u8], most: Most) -> Result<(), Wrong> {
    let mut bytes = 0_i64;
    while !column.is_empty() {
        let mut reader = Reader { bytes: column, at: 0 };
        let mut head = Head::default();
        reader.structure(0, &mut head)?;
        bytes = bytes.saturating_add(head.unpacked.max(0));
        let fits = head.unpacked >= 0
            && bytes <= most.bytes
            && usize::try_from(head.values).is_ok_and(|values| values <= most.rows);
        if !fits {
            return Err("a page that is larger than its column");
        }
        let packed = usize::try_from(head.packed).map_err(|_| BAD)?;
        column = column.get(reader.at.saturating_add(packed)..).ok_or(BAD)?;
    }
    Ok(())
}

/// Sizes of a page, and its values.
#[derive(Debug, Default)]
struct Head {
    unpacked: i64,
    packed: i64,
    values: i64,
}

/// Thrift's compact protocol, as far as heads of pages need it.
struct Reader<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl Reader<'_> {
    fn byte(&mut self) -> Result<u8, Wrong> {
        let byte = *self.bytes.get(self.at).ok_or(BAD)?;
        self.at += 1;
        Ok(byte)
    }

    fn varint(&mut self) -> Result<u64, Wrong> {
        decode::varint(self.bytes, &mut self.at).map_err(|_| BAD)
    }

    fn number(&mut self) -> Result<i64, Wrong> {
        self.varint().map(decode::unzigzag)
    }

    fn skip(&mut self, bytes: u64) -> Result<(), Wrong> {
        let bytes = usize::try_from(bytes).map_err(|_| BAD)?;
        self.at = self.at.checked_add(bytes).filter(|at| *at <= self.bytes.len()).ok_or(BAD)?;
        Ok(())
    }

    /// A structure. At depth 0 it is the head; the first field of those in it says how many values there are,
    /// whatever kind of page it is.
    fn structure(&mut self, depth: u32, head: &mut Head) -> Result<(), Wrong> {
        if depth > DEPTH {
            return Err(BAD);
        }
        let mut field = 0_i64;
        loop {
            let byte = self.byte()?;
            if byte == 0 {
                return Ok(());
            }
            field = match byte >> 4 {
                0 => self.number()?,
                step => field.checked_add(i64::from(step)).ok_or(BAD)?,
            };
            match (depth, field, byte & 0xf) {
                (0, 2, 5) => head.unpacked = self.number()?,
                (0, 3, 5) => head.packed = self.number()?,
                (1, 1, 5) => head.values = self.number()?,
                (_, _, 12) => self.structure(depth + 1, head)?,
                (_, _, kind) => self.value(kind)?,
            }
        }
    }

    /// A value that nobody wants to know; no page of a trace has lists in its head.
    fn value(&mut self, kind: u8) -> Result<(), Wrong> {
        match kind {
            1 | 2 => Ok(()),
            3 => self.skip(1),
            4..=6 => self.varint().map(drop),
            7 => self.skip(8),
            8 => {
                let length = self.varint()?;
                self.skip(length)
            }
            _ => Err(BAD),
        }
    }
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
        assert_eq!(check(20, 7, 10, 20, 10), Err("a page that is larger than its column"));
        assert_eq!(check(20, 7, 10, 21, 9), Err("a page that is larger than its column"));
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
