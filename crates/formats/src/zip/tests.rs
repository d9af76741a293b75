//! ZIP64, whose files are too large to make in a test: only their ends are in memory here.

use super::*;
use crate::{ByteSource, StreamError};

/// A file of which only the first and the last bytes exist.
struct Sparse {
    head: Vec<u8>,
    tail: Vec<u8>,
    len: u64,
}

impl ByteSource for Sparse {
    fn len(&mut self) -> Result<u64, StreamError> {
        Ok(self.len)
    }

    fn read_exact_at(&mut self, offset: u64, buf: &mut [u8]) -> Result<(), StreamError> {
        let tail_at = self.len - self.tail.len() as u64;
        for (at, byte) in (offset..).zip(buf) {
            let in_head = usize::try_from(at).ok().and_then(|at| self.head.get(at));
            let in_tail = at.checked_sub(tail_at).map(|at| &self.tail[at as usize]);
            *byte = in_tail.or(in_head).copied().unwrap_or(0);
        }
        Ok(())
    }
}

fn unhex(text: &str) -> Vec<u8> {
    let byte = |at| u8::from_str_radix(&text[at..at + 2], 16).unwrap();
    (0..text.len()).step_by(2).map(byte).collect()
}

/// Directory and end of `np.savez(f, x=np.zeros((n, 1), np.uint8), y=np.zeros(1, np.int64))`,
/// NumPy 2.4.6 under Python 3.11.7, for n of 2^31 + 100 and of 2^32 + 100.
const GOLDEN: [(u64, u32, &str); 2] = [
    (
        (1 << 31) + 100,
        0xE732_C6E2,
        "504b01022d032d000000000000002100e2c632e7ffffffffffffffff050014000000000000000000800100000000\
         782e6e707901001000e400008000000000e400008000000000\
         504b01022d032d000000000000002100a09abe92880000008800000005000c0000000000000000008001ffffffff\
         792e6e7079010008001b01008000000000\
         504b06062c000000000000002d002d000000000000000000020000000000000002000000000000008600000000000000\
         da01008000000000504b060700000000600200800000000001000000\
         504b0506000000000200020086000000da0100800000",
    ),
    (
        (1 << 32) + 100,
        0xA8B9_F271,
        "504b01022d032d00000000000000210071f2b9a8ffffffffffffffff050014000000000000000000800100000000\
         782e6e707901001000e400000001000000e400000001000000\
         504b01022d032d000000000000002100a09abe92880000008800000005000c0000000000000000008001ffffffff\
         792e6e7079010008001b01000001000000\
         504b06062c000000000000002d002d000000000000000000020000000000000002000000000000008600000000000000\
         da01000001000000504b060700000000600200000100000001000000\
         504b0506000000000200020086000000ffffffff0000",
    ),
];

fn stored(name: &'static str, header_offset: u64, size: u64, crc: u32) -> Written {
    let packing = Packing::Stored;
    Written { name, header_offset, size, packed_size: size, packing, crc }
}

fn members(data_bytes: u64, x_crc: u32) -> [Written; 2] {
    let x_size = 128 + data_bytes;
    let y_offset = local_len("x.npy") + x_size;
    [stored("x.npy", 0, x_size, x_crc), stored("y.npy", y_offset, 136, 0x92BE_9AA0)]
}

#[test]
fn directories_beyond_2_gib_are_those_python_writes() {
    for (data_bytes, crc, golden) in GOLDEN {
        let members = members(data_bytes, crc);
        let directory_at = members[1].header_offset + local_len("y.npy") + 136;
        assert_eq!(directory(&members, directory_at), unhex(golden), "{data_bytes}");
    }
}

#[test]
fn members_beyond_2_gib_are_found() {
    for (data_bytes, crc, golden) in GOLDEN {
        let [x, y] = members(data_bytes, crc);
        let directory_at = y.header_offset + local_len("y.npy") + 136;
        let tail = unhex(golden);
        let len = directory_at + tail.len() as u64;
        let mut file = Sparse { head: local_header(&x), tail, len };
        let mut scratch = vec![0; 4096];
        let mut window = Window::new(&mut file, &mut scratch).unwrap();
        let found = locate(&mut window, "x.npy").unwrap();
        let (packed_size, packing) = (x.size, Packing::Stored);
        assert_eq!(found, Member { data_offset: 55, size: x.size, packed_size, packing, crc });
    }
}

#[test]
fn a_zip64_end_that_points_behind_itself_is_refused() {
    let mut tail = unhex(GOLDEN[0].2);
    let locator = tail.len() - 42;
    tail[locator + 8..locator + 16].copy_from_slice(&u64::MAX.to_le_bytes());
    let len = 1 << 31;
    let mut file = Sparse { head: Vec::new(), tail, len };
    let mut scratch = vec![0; 4096];
    let mut window = Window::new(&mut file, &mut scratch).unwrap();
    let message = locate(&mut window, "x.npy").unwrap_err().to_string();
    let at = len - 42;
    assert_eq!(
        message,
        format!("zip64 locator at byte {at} points to byte {}, file has {at}", u64::MAX)
    );
}
