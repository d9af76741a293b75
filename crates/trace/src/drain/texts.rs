//! Texts of processes: from the numbers in their records to rows of the tables.

use std::collections::HashMap;

use feedline_recorder::TextKind;

use crate::tables::Tables;

/// A text as it was recorded.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Raw {
    base: u32,
    kind: TextKind,
    bytes: Vec<u8>,
}

/// The category and the name of spans.
pub(crate) type Site = (u32, u32);

/// The texts of one process. A program that opens a million files records a million of them, so that
/// four bytes are kept of each.
#[derive(Debug, Default)]
pub(crate) struct Texts {
    /// The number of the first; lower ones are those of the process that forked this one.
    first: u32,
    /// Rows of files plus 1; 0 where there is none.
    rows: Vec<u32>,
    sites: HashMap<u32, Site>,
    raw: HashMap<u32, Raw>,
    /// Numbers that became rows since the last request.
    fresh: Vec<u32>,
}

impl Texts {
    pub(crate) fn new(first: u32) -> Self {
        Self { first, ..Self::default() }
    }

    /// Whether a number is one of this process's own.
    pub(crate) fn owns(&self, number: u32) -> bool {
        number >= self.first
    }

    /// Takes a text as it was recorded; again, if it was seen before.
    pub(crate) fn add(&mut self, number: u32, base: u32, kind: TextKind, bytes: &[u8]) {
        let is_known = self.file(number).is_some() || self.sites.contains_key(&number);
        if self.owns(number) && !is_known && !self.raw.contains_key(&number) {
            self.raw.insert(number, Raw { base, kind, bytes: bytes.to_vec() });
        }
    }

    /// The row of the file that a number of this process's own names.
    #[inline]
    pub(crate) fn file(&self, number: u32) -> Option<u32> {
        let at = number.checked_sub(self.first)?;
        self.rows.get(at as usize)?.checked_sub(1)
    }

    pub(crate) fn site(&self, number: u32) -> Option<Site> {
        self.sites.get(&number).copied()
    }

    pub(crate) fn set_file(&mut self, number: u32, row: u32) {
        let Some(at) = number.checked_sub(self.first) else { return };
        let at = at as usize;
        if self.rows.len() <= at {
            self.rows.resize(at + 1, 0);
        }
        self.rows[at] = row + 1;
    }

    pub(crate) fn set_site(&mut self, number: u32, site: Site) {
        self.sites.insert(number, site);
    }

    /// Makes rows of everything that was recorded. `inherited` knows texts of the process that forked
    /// this one, `folder` is where this one began.
    pub(crate) fn resolve(
        &mut self,
        tables: &mut Tables,
        folder: &str,
        inherited: impl Fn(u32) -> Option<u32>,
    ) {
        let mut raw: Vec<(u32, Raw)> = self.raw.drain().collect();
        // A base was recorded before what continues it.
        raw.sort_unstable_by_key(|(number, _)| *number);
        for (number, Raw { base, kind, bytes }) in raw {
            let text = String::from_utf8_lossy(&bytes);
            self.fresh.push(number);
            match kind {
                TextKind::Span => {
                    let (category, name) = text.split_once('\0').unwrap_or(("", &text));
                    let site = (tables.name_row(category), tables.name_row(name));
                    self.sites.insert(number, site);
                }
                TextKind::Object => self.set_file(number, tables.file_row(&text)),
                TextKind::Path => {
                    let known = if self.owns(base) { self.file(base) } else { inherited(base) };
                    let path = match (base, known) {
                        (0, _) => full_path(folder, &text),
                        (_, Some(row)) => full_path(tables.file(row), &text),
                        (_, None) => full_path("", &text),
                    };
                    self.set_file(number, tables.file_row(&path));
                }
            }
        }
    }

    /// Numbers that became rows since the last time this was asked.
    pub(crate) fn take_fresh(&mut self) -> Vec<u32> {
        std::mem::take(&mut self.fresh)
    }
}

/// A path that may be relative to a folder, without `.`, `..` and double slashes. Links are not looked
/// at: the file may be gone when the trace is drained. A path whose folder is not known stays relative.
pub(crate) fn full_path(folder: &str, path: &str) -> String {
    let is_absolute = path.starts_with('/');
    let base = if is_absolute { "" } else { folder };
    let rooted = is_absolute || base.starts_with('/');
    let mut parts: Vec<&str> = Vec::new();
    for part in base.split('/').chain(path.split('/')) {
        match part {
            "" | "." => {}
            ".." if parts.last().is_some_and(|last| *last != "..") => _ = parts.pop(),
            ".." if rooted => {}
            part => parts.push(part),
        }
    }
    let joined = parts.join("/");
    match (rooted, joined.is_empty()) {
        (true, _) => format!("/{joined}"),
        (false, true) => ".".to_owned(),
        (false, false) => joined,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_completed_and_tidied() {
        for (folder, path, full) in [
            ("/home/a", "b.txt", "/home/a/b.txt"),
            ("/home/a", "./b//c/", "/home/a/b/c"),
            ("/home/a", "../b", "/home/b"),
            ("/home/a", "../../../../b", "/b"),
            ("/home/a", "/etc/../x", "/x"),
            ("/home/a", ".", "/home/a"),
            ("/home/a/", "/", "/"),
            ("/", "..", "/"),
            ("", "b/../c", "c"),
            ("", "../c", "../c"),
            ("", "a/../../../c", "../../c"),
            ("", "a/..", "."),
            ("rel", "x", "rel/x"),
            ("/d", "a\u{fffd}b", "/d/a\u{fffd}b"),
        ] {
            assert_eq!(full_path(folder, path), full, "{folder:?} {path:?}");
        }
    }

    #[test]
    fn texts_continue_others_of_this_process_and_of_the_one_that_forked_it() {
        let mut tables = Tables::default();
        let parent_row = tables.file_row("/parent");
        let mut texts = Texts::new(5);
        // In any order, as segments come.
        texts.add(7, 6, TextKind::Path, b"leaf");
        texts.add(6, 3, TextKind::Path, b"folder");
        texts.add(8, 0, TextKind::Path, b"x");
        texts.add(9, 0, TextKind::Object, b"pipe:[7]");
        texts.add(10, 0, TextKind::Span, b"data\0item");
        texts.add(11, 99, TextKind::Path, b"lost/../x");
        // Below the first: another process's business.
        texts.add(4, 0, TextKind::Path, b"/no");
        texts.resolve(&mut tables, "/start", |number| (number == 3).then_some(parent_row));
        let path = |number| texts.file(number).map(|row| tables.file(row));
        assert_eq!(path(6), Some("/parent/folder"));
        assert_eq!(path(7), Some("/parent/folder/leaf"));
        assert_eq!(path(8), Some("/start/x"));
        assert_eq!(path(9), Some("pipe:[7]"));
        assert_eq!(path(11), Some("x"));
        assert_eq!(path(4), None);
        let (category, name) = texts.site(10).unwrap();
        assert_eq!((tables.name(category), tables.name(name)), ("data", "item"));
        assert_eq!(texts.take_fresh(), [6, 7, 8, 9, 10, 11]);
        assert!(texts.take_fresh().is_empty());
    }
}
