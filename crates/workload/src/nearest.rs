//! Finds the known name that is most similar to an unknown one.

use crate::node::Node;

/// Least similarity, from 0 to 1, of a suggestion.
const MIN_SIMILARITY: f64 = 0.7;

/// The most similar of several names, if any is similar enough. Ties go to the first.
pub(crate) fn nearest<'a>(name: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let mut best: Option<(f64, &str)> = None;
    for candidate in known {
        let score = similarity(name, candidate);
        if score >= MIN_SIMILARITY && best.is_none_or(|(top, _)| score > top) {
            best = Some((score, candidate));
        }
    }
    best.map(|(_, candidate)| candidate)
}

/// Similarity of two names from 0 to 1, ignoring case.
pub(crate) fn similarity(left: &str, right: &str) -> f64 {
    strsim::normalized_damerau_levenshtein(&left.to_lowercase(), &right.to_lowercase())
}

/// The dotted path in the tree that is most similar to `key`.
///
/// Prefers the same name in another section: a misplaced key is the most common mistake.
pub(crate) fn nearest_key(root: &Node, key: &str) -> Option<String> {
    let mut paths = Vec::new();
    collect(root, "", &mut paths);
    let last = key.rsplit('.').next().unwrap_or(key);
    if let Some(path) = paths.iter().find(|path| path.rsplit('.').next() == Some(last)) {
        return Some(path.clone());
    }
    nearest(key, paths.iter().map(String::as_str)).map(str::to_owned)
}

/// Collects every path in the tree, children before parents.
fn collect(node: &Node, path: &str, out: &mut Vec<String>) {
    let Some(map) = node.as_map() else { return };
    for (key, child) in map.iter() {
        let path = if path.is_empty() { key.to_owned() } else { format!("{path}.{key}") };
        collect(child, &path, out);
        out.push(path);
    }
}
