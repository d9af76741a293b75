//! Reading YAML into a tree, by the rules of PyYAML and OmegaConf.
//!
//! The syntax comes from `saphyr-parser`'s events; what a word means comes from [`crate::scalar`].
//! Stricter than YAML where OmegaConf is: duplicate keys are errors. Bounded in depth and size, so
//! that nested aliases cannot exhaust memory.

use std::collections::HashMap;

use saphyr_parser::{Event, Parser, ScalarStyle, Span};

use crate::error::{Place, Result, WorkloadError};
use crate::node::{Map, Node, Value};
use crate::scalar;

/// Deepest nesting accepted.
const DEPTH_LIMIT: usize = 100;
/// Most nodes accepted, including those of expanded aliases.
const NODE_LIMIT: usize = 1_000_000;

/// Reads one document whose root is a mapping. `origin` is the file's name in messages.
///
/// # Errors
/// Syntax errors, a duplicate key, a second document, a root that is not a mapping.
pub fn parse_yaml(origin: &str, text: &str) -> Result<Node> {
    let mut builder = Builder::new(origin);
    for item in Parser::new_from_str(text) {
        match item {
            Ok((event, span)) => builder.event(event, span)?,
            Err(err) => {
                return Err(WorkloadError::YamlSyntax {
                    place: builder.place(line_number(err.marker().line())),
                    reason: err.info().to_owned(),
                });
            }
        }
    }
    let root = builder.root.unwrap_or(Node::at(Value::Null, 1));
    match root.value {
        Value::Map(_) => Ok(root),
        _ => Err(WorkloadError::RootNotMap {
            place: Place { origin: origin.to_owned(), line: root.line.max(1) },
            found: root.describe(),
        }),
    }
}

/// A container that is still open.
struct Open {
    anchor: usize,
    line: u32,
    kind: OpenKind,
}

enum OpenKind {
    List(Vec<Node>),
    Map { map: Map, key: Option<(String, u32)>, merged: Vec<Node> },
}

struct Builder<'a> {
    origin: &'a str,
    stack: Vec<Open>,
    anchors: HashMap<usize, Node>,
    root: Option<Node>,
    nodes: usize,
}

impl<'a> Builder<'a> {
    fn new(origin: &'a str) -> Self {
        Self { origin, stack: Vec::new(), anchors: HashMap::new(), root: None, nodes: 0 }
    }

    fn place(&self, line: u32) -> Place {
        Place { origin: self.origin.to_owned(), line }
    }

    fn event(&mut self, event: Event<'_>, span: Span) -> Result<()> {
        let line = line_number(span.start.line());
        match event {
            Event::DocumentStart(_) if self.root.is_some() => {
                Err(WorkloadError::ManyDocuments { place: self.place(line) })
            }
            Event::Scalar(text, style, anchor, tag) => {
                let explicit_text = tag.is_some_and(|tag| tag.suffix == "str");
                let value = if style == ScalarStyle::Plain && !explicit_text {
                    scalar::read(&text)
                } else {
                    Value::Str(text.clone().into_owned())
                };
                if let Some(key) = self.awaits_key() {
                    *key = Some((text.into_owned(), line));
                    return Ok(());
                }
                self.take(Extent { nodes: 1, depth: 0 }, line)?;
                self.finish(Node::at(value, line), anchor)
            }
            Event::SequenceStart(anchor, _) => self.open(anchor, line, OpenKind::List(Vec::new())),
            Event::MappingStart(anchor, _) => {
                let kind = OpenKind::Map { map: Map::new(), key: None, merged: Vec::new() };
                self.open(anchor, line, kind)
            }
            Event::SequenceEnd | Event::MappingEnd => self.close(),
            Event::Alias(anchor) => match self.anchors.get(&anchor) {
                Some(node) => {
                    let extent = Extent::of(node);
                    let mut copy = node.clone();
                    copy.line = line;
                    self.take(extent, line)?;
                    self.finish(copy, 0)
                }
                None => Err(WorkloadError::AliasCycle { place: self.place(line) }),
            },
            _ => Ok(()),
        }
    }

    /// The slot of the next key, when the innermost container is a mapping between two entries.
    fn awaits_key(&mut self) -> Option<&mut Option<(String, u32)>> {
        match self.stack.last_mut().map(|open| &mut open.kind) {
            Some(OpenKind::Map { key, .. }) if key.is_none() => Some(key),
            _ => None,
        }
    }

    fn open(&mut self, anchor: usize, line: u32, kind: OpenKind) -> Result<()> {
        if self.awaits_key().is_some() {
            let found = match kind {
                OpenKind::List(_) => "a list",
                OpenKind::Map { .. } => "a mapping",
            };
            return Err(WorkloadError::KeyNotScalar { place: self.place(line), found });
        }
        self.take(Extent { nodes: 1, depth: 1 }, line)?;
        self.stack.push(Open { anchor, line, kind });
        Ok(())
    }

    /// Counts what is about to be added against the limits.
    fn take(&mut self, extent: Extent, line: u32) -> Result<()> {
        self.nodes += extent.nodes;
        let (limit, what) = if self.stack.len() + extent.depth > DEPTH_LIMIT {
            (DEPTH_LIMIT, "levels of nesting")
        } else if self.nodes > NODE_LIMIT {
            (NODE_LIMIT, "values")
        } else {
            return Ok(());
        };
        Err(WorkloadError::YamlTooLarge { place: self.place(line), limit, what })
    }

    fn close(&mut self) -> Result<()> {
        let open = self.stack.pop().expect("the parser closes only what it opened");
        let value = match open.kind {
            OpenKind::List(items) => Value::List(items),
            OpenKind::Map { mut map, merged, .. } => {
                self.merge(&mut map, merged)?;
                Value::Map(map)
            }
        };
        self.finish(Node::at(value, open.line), open.anchor)
    }

    /// Fills absent keys from the mappings that `<<` names; the first mapping wins.
    fn merge(&self, map: &mut Map, merged: Vec<Node>) -> Result<()> {
        for node in merged {
            let line = node.line;
            match node.value {
                Value::Map(other) => {
                    for (key, node) in other {
                        if !map.contains_key(&key) {
                            map.insert(key, node);
                        }
                    }
                }
                Value::List(items) if items.iter().all(|item| item.as_map().is_some()) => {
                    self.merge(map, items)?;
                }
                _ => {
                    let place = self.place(line);
                    return Err(WorkloadError::MergeNotMap { place, found: node.describe() });
                }
            }
        }
        Ok(())
    }

    /// Adds a finished node to the innermost open container.
    fn finish(&mut self, mut node: Node, anchor: usize) -> Result<()> {
        if anchor != 0 {
            self.anchors.insert(anchor, node.clone());
        }
        let origin = self.origin;
        let Some(open) = self.stack.last_mut() else {
            self.root = Some(node);
            return Ok(());
        };
        match &mut open.kind {
            OpenKind::List(items) => items.push(node),
            OpenKind::Map { map, key, merged } => {
                let Some((key, line)) = key.take() else {
                    let place = Place { origin: origin.to_owned(), line: node.line };
                    return Err(WorkloadError::KeyNotScalar { place, found: "an alias" });
                };
                if key == "<<" {
                    merged.push(node);
                } else if let Some(first) = map.get(&key) {
                    let place = Place { origin: origin.to_owned(), line };
                    return Err(WorkloadError::DuplicateKey { place, first_line: first.line, key });
                } else {
                    // The key's line: a block mapping begins a line below the key that names it.
                    node.line = line;
                    map.insert(key, node);
                }
            }
        }
        Ok(())
    }
}

/// What a node counts toward the limits.
struct Extent {
    nodes: usize,
    depth: usize,
}

impl Extent {
    fn of(node: &Node) -> Self {
        let children: Vec<Self> = match &node.value {
            Value::List(items) => items.iter().map(Self::of).collect(),
            Value::Map(map) => map.iter().map(|(_, node)| Self::of(node)).collect(),
            _ => return Self { nodes: 1, depth: 0 },
        };
        Self {
            nodes: 1 + children.iter().map(|child| child.nodes).sum::<usize>(),
            depth: 1 + children.iter().map(|child| child.depth).max().unwrap_or(0),
        }
    }
}

/// A line number in the type that places use.
fn line_number(line: usize) -> u32 {
    u32::try_from(line).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Node {
        parse_yaml("w.yaml", text).expect("the text is valid")
    }

    #[track_caller]
    fn refused(text: &str, message: &str) {
        let err = parse_yaml("w.yaml", text).expect_err("the text is invalid");
        assert_eq!(err.to_string(), message);
    }

    #[test]
    fn plain_words_have_a_type_and_quoted_words_are_text() {
        let root = parse("a: off\nb: 'off'\nc: \"1\"\nd: 1\ne: !!str 1\nf: |\n  text\n");
        let expected = [
            ("a", Value::Bool(false)),
            ("b", Value::Str("off".to_owned())),
            ("c", Value::Str("1".to_owned())),
            ("d", Value::Int(1)),
            ("e", Value::Str("1".to_owned())),
            ("f", Value::Str("text\n".to_owned())),
        ];
        for (key, value) in expected {
            assert_eq!(root.get(key).map(|node| &node.value), Some(&value), "{key}");
        }
    }

    #[test]
    fn a_value_carries_the_line_of_its_key() {
        let root = parse("a: 1\n\nb:\n  c:\n    - 5\n    - 6\n");
        let line = |path: &str| root.get(path).map(|node| node.line);
        assert_eq!(line("a"), Some(1));
        assert_eq!(line("b"), Some(3));
        assert_eq!(line("b.c"), Some(4));
        assert_eq!(line("b.c.1"), Some(6));
    }

    #[test]
    fn aliases_and_merge_keys_copy() {
        let root = parse("a: &x {p: 1, q: 2}\nb: *x\nc:\n  <<: *x\n  q: 3\n  r: 4\n");
        assert_eq!(root.get("b.q"), Some(&Node::from(2)));
        assert_eq!(root.get("c.p"), Some(&Node::from(1)));
        assert_eq!(root.get("c.q"), Some(&Node::from(3)));
        let both = parse("a: &x {p: 1}\nb: &y {p: 2, q: 2}\nc: {<<: [*x, *y]}\n");
        assert_eq!(both.get("c.p"), Some(&Node::from(1)));
        assert_eq!(both.get("c.q"), Some(&Node::from(2)));
    }

    #[test]
    fn what_is_no_workload_file_is_refused_with_its_line() {
        refused("a: 1\nb: 2\na: 3\n", "w.yaml:3: duplicate key `a`, first used on line 1");
        refused("a: 1\n---\nb: 2\n", "w.yaml:2: expected one YAML document, found a second");
        refused("- 1\n", "w.yaml:1: expected a mapping of sections, found a list");
        refused("", "w.yaml:1: expected a mapping of sections, found null");
        refused("word\n", "w.yaml:1: expected a mapping of sections, found \"word\"");
        refused("? [1]\n: 2\n", "w.yaml:1: a key must be plain text, found a list");
        refused(
            "a: 1\nb: {<<: 3}\n",
            "w.yaml:2: `<<` expects a mapping or a list of mappings, found 3",
        );
    }

    #[test]
    fn syntax_errors_name_the_line() {
        let err = parse_yaml("w.yaml", "a: 1\nb: [1, 2\nc: 3\n").expect_err("a list stays open");
        assert!(
            matches!(&err, WorkloadError::YamlSyntax { place, .. } if place.line >= 2),
            "{err}"
        );
        assert!(parse_yaml("w.yaml", "a: *nothing\n").is_err());
    }

    #[test]
    fn nesting_and_expansion_are_bounded() {
        let deep = format!("a: {}{}\n", "[".repeat(200), "]".repeat(200));
        refused(&deep, "w.yaml:1: more than 100 levels of nesting");
        let mut bomb = "a0: &a0 [1, 1, 1, 1, 1, 1, 1, 1, 1, 1]\n".to_owned();
        for level in 1..8 {
            let alias = vec![format!("*a{}", level - 1); 10].join(", ");
            bomb.push_str(&format!("a{level}: &a{level} [{alias}]\n"));
        }
        refused(&bomb, "w.yaml:6: more than 1000000 values");
    }

    #[test]
    fn an_alias_inside_its_own_anchor_is_refused() {
        refused("a: &x\n  b: *x\n", "w.yaml:2: alias refers to a value that contains it");
    }
}
