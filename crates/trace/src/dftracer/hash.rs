//! The hashes that replace paths, hosts and other strings in DFTracer's files.

use std::sync::LazyLock;

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
    let digest = md5(text.as_bytes());
    u64::from_be_bytes(std::array::from_fn(|at| digest[2 * at]))
}

/// RFC 1321. It names strings and protects nothing; forty lines are cheaper than six crates.
fn md5(message: &[u8]) -> [u8; 16] {
    const SHIFTS: [[u32; 4]; 4] =
        [[7, 12, 17, 22], [5, 9, 14, 20], [4, 11, 16, 23], [6, 10, 15, 21]];
    let sines = &*SINES;
    let mut state = [0x6745_2301_u32, 0xefcd_ab89, 0x98ba_dcfe, 0x1032_5476];
    let mut padded = message.to_vec();
    padded.push(0x80);
    padded.resize(padded.len().next_multiple_of(64), 0);
    if padded.len() < message.len() + 9 {
        padded.resize(padded.len() + 64, 0);
    }
    let bits = (message.len() as u64).wrapping_mul(8);
    let end = padded.len() - 8;
    padded[end..].copy_from_slice(&bits.to_le_bytes());
    for block in padded.chunks_exact(64) {
        let words: [u32; 16] = std::array::from_fn(|at| {
            u32::from_le_bytes(std::array::from_fn(|byte| block[4 * at + byte]))
        });
        let [mut a, mut b, mut c, mut d] = state;
        for step in 0..64 {
            let (mixed, word) = match step / 16 {
                0 => ((b & c) | (!b & d), step),
                1 => ((d & b) | (!d & c), 5 * step + 1),
                2 => (b ^ c ^ d, 3 * step + 5),
                _ => (c ^ (b | !d), 7 * step),
            };
            let sum =
                mixed.wrapping_add(a).wrapping_add(sines[step]).wrapping_add(words[word % 16]);
            (a, d, c) = (d, c, b);
            b = b.wrapping_add(sum.rotate_left(SHIFTS[step / 16][step % 4]));
        }
        state = [
            state[0].wrapping_add(a),
            state[1].wrapping_add(b),
            state[2].wrapping_add(c),
            state[3].wrapping_add(d),
        ];
    }
    std::array::from_fn(|at| state[at / 4].to_le_bytes()[at % 4])
}

/// The constants of the steps are digits of sines, which 53 bits give exactly.
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "below 2^32")]
static SINES: LazyLock<[u32; 64]> = LazyLock::new(|| {
    std::array::from_fn(|step| (((step + 1) as f64).sin().abs() * 2_f64.powi(32)) as u32)
});

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn digests_are_those_of_rfc_1321() {
        let check = |text: &str, digest: &str| {
            let found: String = md5(text.as_bytes()).iter().map(|b| format!("{b:02x}")).collect();
            assert_eq!(found, digest, "{text}");
        };
        check("", "d41d8cd98f00b204e9800998ecf8427e");
        check("abc", "900150983cd24fb0d6963f7d28e17f72");
        check("abcdefghijklmnopqrstuvwxyz", "c3fcd3d76192e4007dfb496cca67e13b");
        let digits = "1234567890".repeat(8);
        check(&digits, "57edf4a22be3c955ac49da2e2107b67a");
    }

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
