//! Which files a run reads.
//!
//! A generated data set is one naming rule and needs no list, however many files it has: a name
//! is unique in its folder and contains its number, so counting the names of the rule is enough. Files
//! that follow no rule, or several, are listed and sorted as DLIO does.

use std::ops::ControlFlow;
use std::sync::Arc;

use crate::names::FileNames;
use feedline_store::{EntryKind, Store};
use serde::{Deserialize, Serialize};

use crate::error::{DatasetError, Result};
use crate::names::{NameList, NameRule};

/// Whether a run looks for its files before it reads them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Listing {
    /// Folders are listed and files counted.
    #[default]
    Look,
    /// The files are assumed to be where the naming rule puts them: listing millions of them can
    /// take longer than the run.
    Trust,
}

/// The files of one data set, ready to be read.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Discovered {
    /// Their names; at least as many as were expected.
    names: Names,
    /// Files that are there.
    pub found: u64,
    /// Something the user should know.
    pub notice: Option<String>,
}

/// How the files are called.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
enum Names {
    /// By the rule, for a set of that many.
    Rule { total: u64 },
    /// As they were found.
    List(NameList),
}

impl Discovered {
    /// The files that `rule` names, without a look.
    pub fn trusted(rule: &NameRule) -> Self {
        Self { names: Names::Rule { total: rule.total }, found: rule.total, notice: None }
    }

    /// Their names, of which `rule` is the rule.
    pub fn names(&self, rule: &NameRule) -> Arc<dyn FileNames> {
        match &self.names {
            Names::Rule { total } => Arc::new(NameRule { total: *total, ..rule.clone() }),
            Names::List(list) => Arc::new(list.clone()),
        }
    }
}

/// Finds the files of `rule` in `store`; `key` is the workload key that counts the sub-folders.
pub fn discover(store: &dyn Store, rule: &NameRule, key: &'static str) -> Result<Discovered> {
    let expected = rule.total;
    for folder in ["", rule.folder] {
        match store.kind(folder)? {
            Some(EntryKind::Folder) => {}
            Some(EntryKind::File) => {
                return Err(DatasetError::NotAFolder { folder: store.locate(folder) });
            }
            None => return Err(DatasetError::NoDataFolder { folder: store.locate(rule.folder) }),
        }
    }
    let survey = Survey::take(store, rule)?;
    let found = survey.files;
    if found < expected {
        let folder = store.locate(rule.folder);
        if found == 0 && rule.subfolders <= 1 && survey.folders > 0 {
            let (found, format, configured) = (survey.folders, rule.extension, rule.subfolders);
            return Err(DatasetError::Subfolders { folder, found, format, key, configured });
        }
        return Err(DatasetError::TooFewFiles { folder, found, expected, format: rule.extension });
    }
    let surplus = found - expected;
    if survey.complete == expected {
        let notice = (surplus > 0).then(|| {
            let folder = store.locate(rule.folder);
            format!("{folder}: {surplus} further {} files are not read", rule.extension)
        });
        return Ok(Discovered { names: Names::Rule { total: expected }, found, notice });
    }
    if let Some(total) = survey.larger_set(expected) {
        let notice = Some(format!(
            "{}: reads the first {expected} of a set of {total} files",
            store.locate(rule.folder)
        ));
        return Ok(Discovered { names: Names::Rule { total }, found, notice });
    }
    let notice = Some(format!(
        "{}: file names do not follow {}_<i>_of_<n>.{}; the first {expected} of {found} in sorted \
         order are read",
        store.locate(rule.folder),
        rule.prefix,
        rule.extension
    ));
    Ok(Discovered { names: Names::List(list_sorted(store, rule)?), found, notice })
}

/// One pass over the folders of a data set.
struct Survey {
    files: u64,
    folders: u64,
    /// Files of the set that the rule describes.
    complete: u64,
    /// Files of a set with another total: that total, and how many of the first ones are there.
    other: Option<(u64, u64)>,
    mixed: bool,
}

impl Survey {
    fn take(store: &dyn Store, rule: &NameRule) -> Result<Self> {
        let mut survey = Self { files: 0, folders: 0, complete: 0, other: None, mixed: false };
        each_file(store, rule, &mut |folder, name, kind| {
            if kind == EntryKind::Folder {
                survey.folders += 1;
                return;
            }
            if !has_extension(name, rule.extension) {
                return;
            }
            survey.files += 1;
            let in_turn = |number| rule.subfolders <= 1 || folder == number % rule.subfolders;
            match rule.number_of(name) {
                Some((number, total)) if in_turn(number) && total == rule.total => {
                    survey.complete += 1;
                }
                Some((number, total)) if in_turn(number) => {
                    survey.note_other(number, total, rule.total);
                }
                _ => survey.mixed = true,
            }
        })?;
        Ok(survey)
    }

    fn note_other(&mut self, number: u64, total: u64, expected: u64) {
        let (of, first) = self.other.get_or_insert((total, 0));
        if *of != total {
            self.mixed = true;
        } else if number < expected {
            *first += 1;
        }
    }

    /// The total of a larger set whose first `expected` files are all there, if it is the only one.
    fn larger_set(&self, expected: u64) -> Option<u64> {
        let (total, first) = self.other?;
        let usable = !self.mixed && self.complete == 0 && first == expected;
        usable.then_some(total)
    }
}

/// Calls `visit` with the sub-folder's number, the name and the kind of every entry.
fn each_file(
    store: &dyn Store,
    rule: &NameRule,
    visit: &mut dyn FnMut(u64, &str, EntryKind),
) -> Result<()> {
    for number in 0..rule.subfolders.max(1) {
        let mut folder = String::new();
        rule.write_folder(number, &mut folder);
        if !store.exists(&folder)? {
            return Err(DatasetError::NoDataFolder { folder: store.locate(&folder) });
        }
        store.list(&folder, &mut |entry| {
            visit(number, entry.name, entry.kind);
            ControlFlow::Continue(())
        })?;
    }
    Ok(())
}

/// All files by base name, as DLIO sorts them; memory grows with their number.
fn list_sorted(store: &dyn Store, rule: &NameRule) -> Result<NameList> {
    let mut files: Vec<(String, u64)> = Vec::new();
    each_file(store, rule, &mut |folder, name, kind| {
        if kind == EntryKind::File && has_extension(name, rule.extension) {
            files.push((name.to_owned(), folder));
        }
    })?;
    files.sort_unstable();
    let keys: Vec<String> = files
        .iter()
        .map(|(name, folder)| {
            let mut key = String::new();
            rule.write_folder(*folder, &mut key);
            key + "/" + name
        })
        .collect();
    Ok(NameList::from_sorted(keys.iter().map(String::as_str)))
}

/// Names starting with a dot are files that are still being written.
pub(crate) fn has_extension(name: &str, extension: &str) -> bool {
    let stem_len = name.len().checked_sub(extension.len() + 1).filter(|&len| len > 0);
    let ending = stem_len.and_then(|len| name.get(len..));
    let found = ending.and_then(|ending| ending.strip_prefix('.'));
    !name.starts_with('.') && found.is_some_and(|found| found.eq_ignore_ascii_case(extension))
}
