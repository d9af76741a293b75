//! The hashes that replace paths, hosts and other strings in DFTracer's files.

use md5::{Digest, Md5};

/// A hash as a file has it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Hash {
    /// Sixteen hex digits, the same for the same string in every file.
    Hex(u64),
    /// A JSON number: of old versions, and if it is small only good within its own file.
    Number(u64),
    /// Something else in quotes, itself hashed.
    Other(u64),
}

/// Numbers from here on are made of a digest, so they mean the same in every file.
const DIGESTS_FROM: u64 = 1 << 32;

impl Hash {
    /// The hash of a text in a record.
    pub fn from_text(text: &str) -> Self {
        if text.len() == 16
            && let Some(number) = hex(text.as_bytes())
        {
            return Self::Hex(number);
        }
        Self::Other(fnv(text.as_bytes()))
    }

    /// Whether it means the same string in all files.
    pub fn is_global(self) -> bool {
        !matches!(self, Self::Number(number) if number < DIGESTS_FROM)
    }
}

/// Hex digits in lower case.
fn hex(digits: &[u8]) -> Option<u64> {
    digits.iter().try_fold(0, |number: u64, digit| {
        let value = match digit {
            b'0'..=b'9' => digit - b'0',
            b'a'..=b'f' => digit - b'a' + 10,
            _ => return None,
        };
        Some(number << 4 | u64::from(value))
    })
}

fn fnv(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3)
    })
}

/// The hash of a string as current versions write it: the bytes at even places of its MD5.
pub fn hash_of(text: &str) -> u64 {
    let digest = Md5::digest(text.as_bytes());
    u64::from_be_bytes(std::array::from_fn(|at| digest[2 * at]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_hash_of_a_host_is_the_one_that_dftracer_wrote() {
        assert_eq!(format!("{:016x}", hash_of("vm")), "6882804a826580cd");
    }

    #[test]
    fn only_digests_are_joined_across_files() {
        assert_eq!(Hash::from_text("00000000000000ff"), Hash::Hex(255));
        assert!(Hash::Hex(255).is_global());
        assert!(matches!(Hash::from_text("ff"), Hash::Other(_)));
        assert!(!Hash::Number(17).is_global());
        assert!(Hash::Number(7_777_777_777).is_global());
    }
}
