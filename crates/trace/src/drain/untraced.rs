//! Programs that did not load the preload library, and why.

use std::fs::{self, File};
use std::io::{Read as _, Seek as _, SeekFrom};
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

/// Why the program of a file was not traced, as far as the file says.
pub(crate) fn reason(program: &Path) -> &'static str {
    let is_set_id =
        fs::metadata(program).is_ok_and(|facts| facts.permissions().mode() & 0o6000 != 0);
    if is_set_id {
        "it runs with the rights of its file's owner, so the system ignored LD_PRELOAD"
    } else if is_static(program).unwrap_or(false) {
        "statically linked"
    } else {
        "its environment had no LD_PRELOAD"
    }
}

/// Whether a file is a program of 64 bits that asks for no dynamic loader.
fn is_static(program: &Path) -> std::io::Result<bool> {
    const INTERPRETER: u32 = 3;
    let mut file = File::open(program)?;
    let mut head = [0; 64];
    file.read_exact(&mut head)?;
    if head[..6] != *b"\x7fELF\x02\x01" {
        return Ok(false);
    }
    let word = |at: usize| u64::from_le_bytes(head[at..at + 8].try_into().unwrap_or_default());
    let half = |at: usize| u16::from_le_bytes([head[at], head[at + 1]]);
    let (place, size, count) = (word(32), half(54), half(56));
    for index in 0..count {
        let at = place.saturating_add(u64::from(index) * u64::from(size));
        file.seek(SeekFrom::Start(at))?;
        let mut kind = [0; 4];
        file.read_exact(&mut kind)?;
        if u32::from_le_bytes(kind) == INTERPRETER {
            return Ok(false);
        }
    }
    Ok(true)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A program head with one entry of this kind.
    fn program(kind: u32) -> Vec<u8> {
        let mut bytes = vec![0; 64 + 56];
        bytes[..6].copy_from_slice(b"\x7fELF\x02\x01");
        bytes[32..40].copy_from_slice(&64_u64.to_le_bytes());
        bytes[54..56].copy_from_slice(&56_u16.to_le_bytes());
        bytes[56..58].copy_from_slice(&1_u16.to_le_bytes());
        bytes[64..68].copy_from_slice(&kind.to_le_bytes());
        bytes
    }

    #[test]
    fn files_say_why() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("program");
        let check = |bytes: &[u8], mode: u32, words: &str| {
            fs::write(&path, bytes).unwrap();
            fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
            assert!(reason(&path).contains(words), "{}", reason(&path));
        };
        check(&program(1), 0o755, "statically linked");
        check(&program(3), 0o755, "no LD_PRELOAD");
        check(&program(1)[..70], 0o755, "statically linked");
        check(&program(3)[..66], 0o755, "no LD_PRELOAD");
        check(b"#!/bin/sh\n", 0o755, "no LD_PRELOAD");
        check(&program(1), 0o4755, "owner");
        assert!(reason(&folder.path().join("none")).contains("no LD_PRELOAD"));
    }
}
