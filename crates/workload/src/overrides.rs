//! Overrides on the command line: `key=value`, `+key=value`, `++key=value` and `~key`.

use crate::error::{Result, WorkloadError};
use crate::nearest::nearest_key;
use crate::node::{Map, Node, Value};
use crate::value_grammar::parse_value;

/// One override as given on the command line.
#[derive(Debug, Clone, PartialEq)]
pub struct Override {
    /// The override in Hydra's spelling, as written to `overrides.yaml`.
    pub text: String,
    /// Full path of the key: `workload.reader.batch_size`.
    pub key: String,
    /// What it does to the key.
    pub action: Action,
}

/// What an override does to its key.
#[derive(Debug, Clone, PartialEq)]
pub enum Action {
    /// `key=value`: changes a key that must exist.
    Change(Node),
    /// `+key=value`: adds a key that must not exist.
    Add(Node),
    /// `++key=value`: changes or adds the key.
    ForceAdd(Node),
    /// `~key` or `~key=value`: deletes the key; the second form requires that value.
    Delete(Option<Node>),
}

impl Override {
    /// Parses an override in Hydra's grammar.
    ///
    /// # Errors
    /// Text that is not in the grammar, with the position of the offending character.
    pub fn parse(text: &str) -> Result<Self> {
        let syntax = |column: usize, reason: String| WorkloadError::OverrideSyntax {
            text: text.to_owned(),
            column,
            reason,
        };
        let rest = text.trim_start_matches(['+', '~']);
        let marks = &text[..text.len() - rest.len()];
        let (key, value) = match rest.split_once('=') {
            Some((key, value)) => (key, Some(value)),
            None => (rest, None),
        };
        let key_start = marks.len() + (key.len() - key.trim_start().len());
        let key = key.trim();
        check_key(key).map_err(|(at, reason)| syntax(key_start + at + 1, reason))?;
        let value = value.map(|value| {
            let start = text.chars().count() - value.chars().count();
            parse_value(value).map_err(|err| syntax(start + err.at + 1, err.reason))
        });
        let action = match (marks, value.transpose()?) {
            ("", Some(value)) => Action::Change(value),
            ("+", Some(value)) => Action::Add(value),
            ("++", Some(value)) => Action::ForceAdd(value),
            ("~", value) => Action::Delete(value),
            ("" | "+" | "++", None) => {
                let column = text.chars().count() + 1;
                return Err(syntax(column, "expected `=` and a value after the key".to_owned()));
            }
            _ => return Err(syntax(1, format!("expected `+`, `++` or `~`, found `{marks}`"))),
        };
        let parsed = Self { text: text.to_owned(), key: key.to_owned(), action };
        if parsed.key == "workload" && parsed.workload_choice().is_none() {
            return Err(syntax(1, "choose a workload with `workload=NAME`".to_owned()));
        }
        Ok(parsed)
    }

    /// Parses an override whose key may omit `workload.`; such a key is changed or added, as with
    /// `++`. [`Override::text`] becomes the form that DLIO understands.
    ///
    /// # Errors
    /// As [`Override::parse`].
    pub fn parse_friendly(text: &str) -> Result<Self> {
        let bare = text.trim_start_matches(['+', '~']);
        let head = bare.split(['.', '/', '=']).next().unwrap_or(bare).trim();
        if matches!(head, "workload" | "hydra" | "") {
            return Self::parse(text);
        }
        let marks = &text[..text.len() - bare.len()];
        let marks = if marks.is_empty() { "++" } else { marks };
        Self::parse(&format!("{marks}workload.{bare}")).map_err(|err| match err {
            WorkloadError::OverrideSyntax { column, reason, .. } => WorkloadError::OverrideSyntax {
                text: text.to_owned(),
                column: column.saturating_sub(marks.len() + "workload.".len()).max(1),
                reason,
            },
            other => other,
        })
    }

    /// The name in `workload=NAME`.
    pub fn workload_choice(&self) -> Option<&str> {
        match &self.action {
            Action::Change(value) if self.key == "workload" => {
                value.as_str().filter(|name| !name.is_empty())
            }
            _ => None,
        }
    }

    /// Whether the override is for Hydra rather than the workload.
    pub fn is_hydra(&self) -> bool {
        self.key.split(['.', '/']).next() == Some("hydra")
    }

    /// Applies the override to the tree.
    ///
    /// # Errors
    /// A key that must exist and does not, or the other way round.
    pub fn apply(&self, root: &mut Node) -> Result<()> {
        match &self.action {
            Action::Delete(expected) => self.delete(root, expected.as_ref()),
            Action::Change(value) => {
                if root.get(&self.key).is_none() {
                    return Err(WorkloadError::OverrideAbsent {
                        text: self.text.clone(),
                        key: self.key.clone(),
                        nearest: nearest_key(root, &self.key),
                    });
                }
                self.set(root, value)
            }
            Action::Add(value) => {
                if root.get(&self.key).is_some() {
                    let (text, key) = (self.text.clone(), self.key.clone());
                    return Err(WorkloadError::OverrideExists { text, key });
                }
                self.set(root, value)
            }
            Action::ForceAdd(value) => self.set(root, value),
        }
    }

    /// Sets the key, creating mappings on the way; a mapping replaces a scalar in the way.
    fn set(&self, root: &mut Node, value: &Node) -> Result<()> {
        let mut node = root;
        let mut walked = String::new();
        let (parents, last) = match self.key.rsplit_once('.') {
            Some((parents, last)) => (parents.split('.').collect(), last),
            None => (Vec::new(), self.key.as_str()),
        };
        for step in parents {
            node = self.child_map(node, &walked)?.entry(step);
            if !walked.is_empty() {
                walked.push('.');
            }
            walked.push_str(step);
        }
        let map = self.child_map(node, &walked)?;
        // Hydra merges a mapping into the mapping that is there instead of replacing it.
        match (map.get_mut(last), &value.value) {
            (Some(Node { value: Value::Map(old), line }), Value::Map(new)) => {
                *line = 0;
                merge(old, new);
            }
            _ => {
                map.insert(last, value.clone());
            }
        }
        Ok(())
    }

    /// The mapping in a node; a scalar is replaced by one.
    fn child_map<'a>(&self, node: &'a mut Node, path: &str) -> Result<&'a mut Map> {
        if matches!(node.value, Value::List(_)) {
            let (text, key) = (self.text.clone(), path.to_owned());
            return Err(WorkloadError::OverrideThroughList { text, key });
        }
        if node.as_map().is_none() {
            *node = Node::from(Map::new());
        }
        Ok(node.as_map_mut().expect("a scalar was just replaced by a mapping"))
    }

    fn delete(&self, root: &mut Node, expected: Option<&Node>) -> Result<()> {
        let Some(found) = root.get(&self.key) else {
            return Err(WorkloadError::DeleteAbsent {
                text: self.text.clone(),
                key: self.key.clone(),
                nearest: nearest_key(root, &self.key),
            });
        };
        if expected.is_some_and(|expected| expected != found) {
            return Err(WorkloadError::DeleteMismatch {
                text: self.text.clone(),
                key: self.key.clone(),
                found: found.describe(),
            });
        }
        let (parent, last) = match self.key.rsplit_once('.') {
            Some((parent, last)) => (parent, last),
            None => ("", self.key.as_str()),
        };
        let mut parent = parent.split('.').filter(|step| !step.is_empty());
        let node = parent.try_fold(root, |node, step| node.as_map_mut()?.get_mut(step));
        match node.and_then(Node::as_map_mut) {
            Some(map) => {
                map.remove(last);
                Ok(())
            }
            None => {
                let (text, key) = (self.text.clone(), self.key.clone());
                Err(WorkloadError::OverrideThroughList { text, key })
            }
        }
    }
}

/// Copies the entries of one mapping over another.
fn merge(old: &mut Map, new: &Map) {
    for (key, node) in new.iter() {
        match (old.get_mut(key), &node.value) {
            (Some(Node { value: Value::Map(old), .. }), Value::Map(new)) => merge(old, new),
            _ => {
                old.insert(key, node.clone());
            }
        }
    }
}

/// Checks a key; the error has the offending character, counted from 0.
fn check_key(key: &str) -> Result<(), (usize, String)> {
    if key.is_empty() {
        return Err((0, "expected a key".to_owned()));
    }
    if key.starts_with('-') {
        return Err((0, "a key cannot start with `-`".to_owned()));
    }
    for (at, c) in key.chars().enumerate() {
        match c {
            // Hydra's own groups are recorded and have no effect.
            '/' if key.starts_with("hydra/") => {}
            '@' | ':' | '/' => {
                return Err((at, format!("`{c}`: config groups and packages are not supported")));
            }
            c if c.is_alphanumeric() || matches!(c, '_' | '-' | '.') => {}
            c => return Err((at, format!("`{c}` is not allowed in a key"))),
        }
    }
    match key.split('.').any(str::is_empty) {
        true => Err((0, "the key has an empty part".to_owned())),
        false => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::emit::to_yaml;
    use crate::yaml::parse_yaml;

    fn apply(yaml: &str, overrides: &[&str]) -> Result<String> {
        let mut tree = parse_yaml("w.yaml", yaml).expect("the text is valid");
        for text in overrides {
            Override::parse(text)?.apply(&mut tree)?;
        }
        Ok(to_yaml(&tree))
    }

    #[track_caller]
    fn check(yaml: &str, overrides: &[&str], expected: &str) {
        assert_eq!(apply(yaml, overrides), Ok(expected.to_owned()), "{overrides:?}");
    }

    #[track_caller]
    fn refused(yaml: &str, text: &str, message: &str, hint: Option<&str>) {
        let err = apply(yaml, &[text]).expect_err("the override is wrong");
        assert_eq!(err.to_string(), message);
        assert_eq!(err.hint().as_deref(), hint);
    }

    #[test]
    fn the_four_forms_change_add_force_and_delete() {
        check("workload: {a: 1}", &["workload.a=2"], "workload:\n  a: 2\n");
        check("workload: {a: 1}", &["+workload.b.c=x"], "workload:\n  a: 1\n  b:\n    c: x\n");
        check(
            "workload: {a: 1}",
            &["++workload.a=2", "++workload.b=3"],
            "workload:\n  a: 2\n  b: 3\n",
        );
        check("workload: {a: 1, b: 2}", &["~workload.a"], "workload:\n  b: 2\n");
        check("workload: {a: 1, b: 2}", &["~workload.a=1"], "workload:\n  b: 2\n");
        check("workload: {a: 1}", &["++workload.a="], "workload:\n  a: ''\n");
    }

    #[test]
    fn a_later_override_wins() {
        check("workload: {a: 1}", &["workload.a=2", "++workload.a=3"], "workload:\n  a: 3\n");
    }

    #[test]
    fn a_scalar_in_the_way_gives_place_to_a_mapping() {
        check(
            "workload: {train: {computation_time: 0.5}}",
            &[
                "++workload.train.computation_time.type=uniform",
                "++workload.train.computation_time.min=1",
            ],
            "workload:\n  train:\n    computation_time:\n      type: uniform\n      min: 1\n",
        );
    }

    #[test]
    fn a_mapping_is_merged_and_a_list_is_replaced() {
        check(
            "workload: {a: {b: 1, c: 2}}",
            &["workload.a={c: 3}"],
            "workload:\n  a:\n    b: 1\n    c: 3\n",
        );
        check("workload: {a: [1, 2]}", &["workload.a=[3]"], "workload:\n  a:\n  - 3\n");
    }

    #[test]
    fn an_absent_key_suggests_plus_and_the_nearest_key() {
        refused(
            "workload: {reader: {batch_size: 1}}",
            "workload.reader.batchsize=2",
            "override `workload.reader.batchsize=2`: the workload has no key `workload.reader.batchsize`",
            Some(
                "did you mean `workload.reader.batch_size`? Otherwise, add it with \
                 `+workload.reader.batchsize=2` or `++workload.reader.batchsize=2`",
            ),
        );
        refused(
            "workload: {a: 1}",
            "foo=2",
            "override `foo=2`: the workload has no key `foo`",
            Some("add it with `+foo=2` or `++foo=2`"),
        );
    }

    #[test]
    fn what_does_not_fit_the_tree_is_refused() {
        refused(
            "workload: {a: 1}",
            "+workload.a=2",
            "override `+workload.a=2`: the workload already has key `workload.a`",
            Some("change it with `++workload.a=2`"),
        );
        refused(
            "workload: {abcdef: 1}",
            "~workload.abcdeg",
            "override `~workload.abcdeg`: cannot delete `workload.abcdeg`, the workload does not have it",
            Some("did you mean `~workload.abcdef`?"),
        );
        refused(
            "workload: {a: 1}",
            "~workload.a=2",
            "override `~workload.a=2`: cannot delete `workload.a`, its value is 1",
            None,
        );
        refused(
            "workload: {a: [1]}",
            "++workload.a.b=2",
            "override `++workload.a.b=2`: `workload.a` is a list and has no keys",
            None,
        );
    }

    #[test]
    fn what_the_grammar_does_not_know_is_refused_with_its_place() {
        #[track_caller]
        fn check(text: &str, column: usize, reason: &str) {
            assert_eq!(
                Override::parse(text).map_err(|err| err.to_string()),
                Err(format!("override `{text}`, character {column}: {reason}"))
            );
        }
        check("workload.a", 11, "expected `=` and a value after the key");
        check("++workload.a", 13, "expected `=` and a value after the key");
        check("=1", 1, "expected a key");
        check("", 1, "expected a key");
        check("+++a=1", 1, "expected `+`, `++` or `~`, found `+++`");
        check("a..b=1", 1, "the key has an empty part");
        check("-a=1", 1, "a key cannot start with `-`");
        check("a b=1", 2, "` ` is not allowed in a key");
        check("workload@x=1", 9, "`@`: config groups and packages are not supported");
        check("db/engine=x", 3, "`/`: config groups and packages are not supported");
        check("++workload.a=[1", 16, "unclosed list, expected `]`");
        check("++workload=x", 1, "choose a workload with `workload=NAME`");
        check("workload=", 1, "choose a workload with `workload=NAME`");
        check("~workload", 1, "choose a workload with `workload=NAME`");
    }

    #[test]
    fn a_friendly_key_leaves_out_the_root_and_is_forced() {
        #[track_caller]
        fn check(text: &str, expected: &str) {
            assert_eq!(Override::parse_friendly(text), Override::parse(expected), "{text}");
        }
        check("reader.read_threads=8", "++workload.reader.read_threads=8");
        check("framework=pytorch", "++workload.framework=pytorch");
        check("+train.x=1", "+workload.train.x=1");
        check("~train.x", "~workload.train.x");
        check("workload.a=1", "workload.a=1");
        check("workload=unet3d_h100", "workload=unet3d_h100");
        check("hydra.run.dir=x", "hydra.run.dir=x");
        assert_eq!(
            Override::parse_friendly("reader.x=[1").map_err(|err| err.to_string()),
            Err("override `reader.x=[1`, character 12: unclosed list, expected `]`".to_owned())
        );
    }

    #[test]
    fn the_choice_of_a_workload_is_recognized() {
        let choice = Override::parse("workload=unet3d_h100").expect("the override is valid");
        assert_eq!(choice.workload_choice(), Some("unet3d_h100"));
        let other = Override::parse("++hydra.run.dir=out").expect("the override is valid");
        assert_eq!((other.workload_choice(), other.is_hydra()), (None, true));
    }
}
