//! Patterns of file names, for users whose shell did not resolve them: `*`, `?`, `[a-z]` and `**`.

use std::fs;
use std::path::{Component, Path, PathBuf};

/// Whether a path has letters of patterns.
pub(crate) fn is_pattern(path: &Path) -> bool {
    path.to_string_lossy().contains(['*', '?', '['])
}

/// The paths that a pattern means, in their order.
pub(crate) fn expand(pattern: &Path) -> Vec<PathBuf> {
    let mut found = vec![PathBuf::new()];
    for component in pattern.components() {
        let Component::Normal(name) = component else {
            found.iter_mut().for_each(|path| path.push(component));
            continue;
        };
        let name = name.to_string_lossy();
        found = found.iter().flat_map(|path| step(path, &name)).collect();
    }
    found.retain(|path| path.exists());
    found.sort();
    found.dedup();
    found
}

/// One component of a pattern further.
fn step(path: &Path, name: &str) -> Vec<PathBuf> {
    if name == "**" {
        let mut all = vec![path.to_owned()];
        let mut next = 0;
        while next < all.len() {
            let folders = entries(&all[next]).into_iter().filter(|(_, path)| {
                // A link to a folder may lead in a circle.
                path.is_dir() && !path.is_symlink()
            });
            let folders: Vec<PathBuf> =
                folders.filter(|(name, _)| !name.starts_with('.')).map(|(_, path)| path).collect();
            all.extend(folders);
            next += 1;
        }
        return all;
    }
    if !is_pattern(Path::new(name)) {
        return vec![path.join(name)];
    }
    let is_named = |(entry, _): &(String, PathBuf)| {
        (name.starts_with('.') || !entry.starts_with('.')) && matches(name, entry)
    };
    entries(path).into_iter().filter(is_named).map(|(_, path)| path).collect()
}

fn entries(folder: &Path) -> Vec<(String, PathBuf)> {
    let place = if folder.as_os_str().is_empty() { Path::new(".") } else { folder };
    let entries = fs::read_dir(place).into_iter().flatten().flatten();
    entries
        .map(|entry| entry.file_name().to_string_lossy().into_owned())
        .map(|name| (name.clone(), folder.join(name)))
        .collect()
}

/// Whether a name is one that a pattern means. Goes back to the last star only, so it takes no longer than
/// the product of the lengths.
fn matches(pattern: &str, name: &str) -> bool {
    let (pattern, name): (Vec<char>, Vec<char>) =
        (pattern.chars().collect(), name.chars().collect());
    let (mut at, mut of) = (0, 0);
    let mut star = None;
    while of < name.len() {
        match pattern.get(at) {
            Some('*') => {
                star = Some((at, of));
                at += 1;
                continue;
            }
            Some('[') => {
                if let Some((is_in, length)) = class(&pattern[at..], name[of])
                    && is_in
                {
                    (at, of) = (at + length, of + 1);
                    continue;
                }
            }
            Some(letter) if *letter == '?' || *letter == name[of] => {
                (at, of) = (at + 1, of + 1);
                continue;
            }
            _ => {}
        }
        let Some((back, taken)) = star else { return false };
        star = Some((back, taken + 1));
        (at, of) = (back + 1, taken + 1);
    }
    pattern[at..].iter().all(|letter| *letter == '*')
}

/// Whether a letter is one of `[a-z]`, and how long that is; none if it is not closed.
fn class(pattern: &[char], letter: char) -> Option<(bool, usize)> {
    let is_not = matches!(pattern.get(1), Some('!' | '^'));
    let first = if is_not { 2 } else { 1 };
    let length = pattern.iter().skip(first + 1).position(|letter| *letter == ']')? + first + 1;
    let (mut at, mut is_in) = (first, false);
    while at < length {
        let range_end = if pattern.get(at + 1) == Some(&'-') { pattern.get(at + 2) } else { None };
        match range_end {
            Some(last) if at + 2 < length => {
                is_in |= (pattern[at]..=*last).contains(&letter);
                at += 3;
            }
            _ => {
                is_in |= pattern[at] == letter;
                at += 1;
            }
        }
    }
    Some((is_in != is_not, length + 1))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_match_as_in_a_shell() {
        let check = |pattern: &str, name: &str, expected: bool| {
            assert_eq!(matches(pattern, name), expected, "{pattern} {name}");
        };
        check("*.pfw.gz", "a-1.pfw.gz", true);
        check("*.pfw.gz", "a-1.pfw", false);
        check("a*b*c", "aXbYbZc", true);
        check("a*b*c", "aXbYbZ", false);
        check("t?.pfw", "t1.pfw", true);
        check("t?.pfw", "t12.pfw", false);
        check("t[0-3x].pfw", "t2.pfw", true);
        check("t[0-3x].pfw", "tx.pfw", true);
        check("t[0-3x].pfw", "t4.pfw", false);
        check("t[!0-3].pfw", "t4.pfw", true);
        check("t[", "t[", false);
        check("*", "", true);
    }

    #[test]
    fn patterns_mean_files_of_folders() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path();
        for name in ["a/x.pfw", "a/y.json", "b/c/z.pfw", "b/.hidden.pfw", "w.pfw"] {
            fs::create_dir_all(root.join(name).parent().unwrap()).unwrap();
            fs::write(root.join(name), "").unwrap();
        }
        let found = |pattern: &str| -> Vec<String> {
            let found = expand(&root.join(pattern));
            found
                .iter()
                .map(|path| path.strip_prefix(root).unwrap().to_string_lossy().into_owned())
                .collect()
        };
        assert_eq!(found("*.pfw"), ["w.pfw"]);
        assert_eq!(found("*/*.pfw"), ["a/x.pfw"]);
        assert_eq!(found("**/*.pfw"), ["a/x.pfw", "b/c/z.pfw", "w.pfw"]);
        assert_eq!(found("?/y.json"), ["a/y.json"]);
        assert!(found("*.tar").is_empty());
    }
}
