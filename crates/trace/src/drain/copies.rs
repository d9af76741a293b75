//! Copies of full segments, so that processes have theirs again at once.
//!
//! Segments become a file when there are enough for a million events. A process that waited for that
//! would fill a new segment each time, and the kernel would find and clear new pages for all it
//! records, which costs it more than the recording. So full segments are copied, beside the originals
//! in memory, and the originals are given back; the copies wait instead. A copy lives as long as the
//! system does, as the original would have: the next drainer finds it if this one is killed.
//!
//! A copy is named after its original and the filling of it. Both hold the same events, so that of
//! an original that its drainer could not give back any more only one is taken.

use std::path::PathBuf;

use feedline_recorder::{SEGMENT_SUFFIX, SegmentFile};

use super::{Drainer, Scope, Tracked};

/// Copies may take as many times the room of a file; processes that are faster than their drainer fill
/// new segments then.
const FILES_OF_COPIES: u64 = 2;

/// A filling of a segment, whether it is in the segment or in a copy of it.
pub(super) type Filling = (String, u32);

/// The filling that a file holds, be it an original or a copy.
pub(super) fn filling(name: &str, file: &SegmentFile) -> Filling {
    (original(name).unwrap_or_else(|| name.to_owned()), file.generation())
}

/// The name of a copy.
fn copy_name(name: &str, generation: u32) -> String {
    let stem = name.strip_suffix(SEGMENT_SUFFIX).unwrap_or(name);
    format!("{stem}+{generation}{SEGMENT_SUFFIX}")
}

/// The name of the segment of which a file is a copy, if it is one.
pub(super) fn original(name: &str) -> Option<String> {
    let (stem, generation) = name.strip_suffix(SEGMENT_SUFFIX)?.rsplit_once('+')?;
    generation.parse::<u32>().is_ok().then(|| format!("{stem}{SEGMENT_SUFFIX}"))
}

/// Whether a segment is one of those that are copied: its process uses it again, and it is in memory.
pub(super) fn may_copy(file: &SegmentFile, folders: &[PathBuf]) -> bool {
    file.is_kept() && file.path().parent() == folders.first().map(PathBuf::as_path)
}

impl Drainer {
    /// Gives full segments back to processes that run, as far as there is room for copies; those that
    /// are left wait themselves. Whether there was any.
    pub(super) fn relieve(&mut self) -> bool {
        let Some(memory) = self.folders.first().filter(|_| self.scope == Scope::Everyone) else {
            return false;
        };
        let most = self.file_bytes.saturating_mul(FILES_OF_COPIES);
        self.has_room = true;
        let mut copies = Vec::new();
        for (name, tracked) in &self.segments {
            let file = &tracked.file;
            if tracked.is_pending || !file.is_full() || !may_copy(file, &self.folders) {
                continue;
            }
            let Some(index) = self.processes.index(file.process()) else { continue };
            let process = self.processes.get_mut(index);
            if process.is_gone {
                continue;
            }
            if self.copied_bytes + file.bytes() > most {
                self.has_room = false;
                break;
            }
            let texts = &mut process.texts;
            if !file.texts(|number, base, kind, text| texts.add(number, base, kind, text)) {
                continue;
            }
            let copy = copy_name(name, file.generation());
            // Without room the segment itself waits, as it would have without copies.
            let Ok(copied) = file.copy_to(&memory.join(&copy)) else {
                self.has_room = false;
                break;
            };
            file.mark_drained();
            process.segments += 1;
            self.copied_bytes += copied.bytes();
            self.pending_bytes += copied.bytes();
            copies.push((copy, Tracked { file: copied, is_pending: true }));
        }
        let is_any = !copies.is_empty();
        self.segments.extend(copies);
        is_any
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn copies_are_told_by_their_names() {
        assert_eq!(copy_name("host-7-99-3.segment", 12), "host-7-99-3+12.segment");
        assert_eq!(original("host-7-99-3+12.segment").as_deref(), Some("host-7-99-3.segment"));
        for name in ["host-7-99-3.segment", "a+5-7-99-3.segment", "h-7-99-3+1.process", "x+1"] {
            assert_eq!(original(name), None, "{name}");
        }
    }
}
