//! Names of data files: DLIO's naming rule, and lists of files that follow none.

use std::fmt::Write as _;

use serde::{Deserialize, Serialize};

/// The names of a data set's files, by their number in the sorted list.
pub trait FileNames: Send + Sync {
    /// Writes the key of file `number` into `key`, which is empty.
    fn write_key(&self, number: u64, key: &mut String);
}

/// `<folder>/[<sub-folder>/]<prefix>_<i>_of_<total>.<extension>`, zero-padded; sub-folders take
/// files in turn. A data set of any size is this one rule.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NameRule {
    /// The folder of the files, `train` or `valid`, relative to the data folder.
    pub folder: &'static str,
    /// Name prefix, `img` unless the workload says otherwise.
    pub prefix: String,
    /// Files of the generated set, which the names carry.
    pub total: u64,
    /// Sub-folders; 0 and 1 both mean none (Q33).
    pub subfolders: u64,
    /// The file name extension, without its dot.
    pub extension: &'static str,
}

impl NameRule {
    /// Writes the sub-folder that file `number` lies in.
    pub fn write_folder(&self, number: u64, key: &mut String) {
        key.push_str(self.folder);
        if self.subfolders > 1 {
            let width = digits(self.subfolders);
            let folder = number % self.subfolders;
            write!(key, "/{folder:0width$}").expect("writing to a string cannot end badly");
        }
    }

    /// The number of the file that is called `name` (without its folder), if the rule made it, and
    /// the total that it carries.
    pub fn number_of(&self, name: &str) -> Option<(u64, u64)> {
        let rest = name.strip_prefix(self.prefix.as_str())?.strip_prefix('_')?;
        let rest = rest.strip_suffix(self.extension)?.strip_suffix('.')?;
        let (number, total) = rest.split_once("_of_")?;
        let (value, of) = (number.parse().ok()?, total.parse().ok()?);
        let canonical = number.len() == digits(of) && total.len() == digits(of);
        (canonical && value < of).then_some((value, of))
    }

    /// The number of the file of this set whose full key, with its folder, is `key`.
    pub(crate) fn number_of_key(&self, key: &str) -> Option<u64> {
        let (number, total) = self.number_of(key.rsplit('/').next()?)?;
        let mut own = String::new();
        self.write_key(number, &mut own);
        (total == self.total && own == key).then_some(number)
    }
}

impl FileNames for NameRule {
    fn write_key(&self, number: u64, key: &mut String) {
        self.write_folder(number, key);
        let width = digits(self.total);
        let Self { prefix, total, extension, .. } = self;
        write!(key, "/{prefix}_{number:0width$}_of_{total}.{extension}")
            .expect("writing to a string cannot end badly");
    }
}

/// Files that a listing found, sorted; one allocation for all names.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct NameList {
    text: String,
    ends: Vec<usize>,
}

impl NameList {
    pub(crate) fn from_sorted<'a>(keys: impl IntoIterator<Item = &'a str>) -> Self {
        let mut list = Self::default();
        for key in keys {
            list.text.push_str(key);
            list.ends.push(list.text.len());
        }
        list
    }
}

impl FileNames for NameList {
    fn write_key(&self, number: u64, key: &mut String) {
        let number = number as usize;
        let begin = if number == 0 { 0 } else { self.ends[number - 1] };
        key.push_str(&self.text[begin..self.ends[number]]);
    }
}

/// Decimal digits of `count`.
fn digits(count: u64) -> usize {
    count.checked_ilog10().map_or(1, |log| log as usize + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rule(total: u64, subfolders: u64, extension: &'static str) -> NameRule {
        NameRule { folder: "train", prefix: "img".into(), total, subfolders, extension }
    }

    fn check(rule: &NameRule, number: u64, expected: &str) {
        let mut key = String::new();
        rule.write_key(number, &mut key);
        assert_eq!(key, expected);
        let name = key.rsplit('/').next().unwrap();
        assert_eq!(rule.number_of(name), Some((number, rule.total)));
        assert_eq!(rule.number_of_key(&key), Some(number));
    }

    #[test]
    fn names_are_those_of_dlio() {
        check(&rule(168, 0, "npz"), 0, "train/img_000_of_168.npz");
        check(&rule(8, 0, "npz"), 0, "train/img_0_of_8.npz");
        check(&rule(1024, 0, "tfrecord"), 0, "train/img_0000_of_1024.tfrecord");
        check(&rule(64, 10, "npz"), 13, "train/03/img_13_of_64.npz");
        check(&rule(64, 2, "npz"), 13, "train/1/img_13_of_64.npz");
    }

    #[test]
    fn q33_one_subfolder_is_none() {
        check(&rule(8, 1, "npz"), 3, "train/img_3_of_8.npz");
    }

    #[test]
    fn foreign_names_are_not_of_the_rule() {
        let rule = rule(8, 0, "npz");
        for name in ["img_8_of_8.npz", "img_03_of_8.npz", "img_3_of_8.npy", "scan_3_of_8.npz", "a"]
        {
            assert_eq!(rule.number_of(name), None, "{name}");
        }
        assert_eq!(rule.number_of("img_03_of_16.npz"), Some((3, 16)));
    }

    #[test]
    fn a_key_is_of_the_set_in_its_own_folder_only() {
        let rule = rule(64, 10, "npz");
        assert_eq!(rule.number_of_key("train/03/img_13_of_64.npz"), Some(13));
        let others = ["train/04/img_13_of_64.npz", "train/img_13_of_64.npz", "img_13_of_64.npz"];
        for key in
            others.into_iter().chain(["valid/03/img_13_of_64.npz", "train/03/img_13_of_65.npz"])
        {
            assert_eq!(rule.number_of_key(key), None, "{key}");
        }
    }

    #[test]
    fn a_list_gives_back_its_names() {
        let list = NameList::from_sorted(["train/a.npz", "train/b.npz", "train/c.npz"]);
        let mut key = String::new();
        list.write_key(0, &mut key);
        list.write_key(2, &mut key);
        assert_eq!(key, "train/a.npztrain/c.npz");
    }
}
