//! References inside values: `${section.key}` and `${now:%Y-%m-%d}`.
//!
//! A value that is a single reference becomes the value it names, of any type; a reference inside a
//! longer text is replaced by its text. Paths start at the root of the tree. The caller supplies the time.

use std::cell::Cell;

use crate::emit::float_text;
use crate::error::{Place, Result, WorkloadError};
use crate::node::{Map, Node, Value};

/// Longest chain of references; a longer one counts as circular.
const CHAIN_LIMIT: usize = 64;
/// Most references replaced in one tree, because texts that double each other grow exponentially.
const REFERENCE_LIMIT: usize = 10_000;

/// Replaces every reference in the tree.
///
/// # Errors
/// A reference to a missing key, to itself or of an unknown form; names the key that contains it.
pub fn interpolate(tree: &Node, origin: &str, now: &dyn Fn(&str) -> String) -> Result<Node> {
    Interpolation { root: tree, origin, now, replaced: Cell::new(0) }.node(tree, "", 0)
}

struct Interpolation<'a> {
    root: &'a Node,
    origin: &'a str,
    now: &'a dyn Fn(&str) -> String,
    replaced: Cell<usize>,
}

impl Interpolation<'_> {
    fn node(&self, node: &Node, key: &str, chain: usize) -> Result<Node> {
        let below = |step: &str| match key {
            "" => step.to_owned(),
            key => format!("{key}.{step}"),
        };
        let value = match &node.value {
            Value::Map(map) => {
                let mut out = Map::new();
                for (name, child) in map.iter() {
                    out.insert(name, self.node(child, &below(name), chain)?);
                }
                Value::Map(out)
            }
            Value::List(items) => {
                let items = items.iter().enumerate();
                let items =
                    items.map(|(index, item)| self.node(item, &below(&index.to_string()), chain));
                Value::List(items.collect::<Result<_, _>>()?)
            }
            Value::Str(text) if text.contains("${") => self.text(text, node, key, chain)?,
            other => other.clone(),
        };
        Ok(Node::at(value, node.line))
    }

    /// A text with its references replaced.
    fn text(&self, text: &str, node: &Node, key: &str, chain: usize) -> Result<Value> {
        let mut out = String::new();
        let mut rest = text;
        while let Some(start) = rest.find("${") {
            // OmegaConf's escape: a backslash before the dollar sign keeps the text literal.
            if rest[..start].ends_with('\\') {
                out.push_str(&rest[..start - 1]);
                out.push_str("${");
                rest = &rest[start + 2..];
                continue;
            }
            let body = &rest[start + 2..];
            let Some(end) = body.find('}') else {
                return Err(self.bad(node, key, &rest[start..], "unclosed brace"));
            };
            let found = self.reference(&body[..end], node, key, chain)?;
            if start == 0 && end + 1 == body.len() && out.is_empty() {
                return Ok(found.value);
            }
            out.push_str(&rest[..start]);
            match &found.value {
                Value::List(_) | Value::Map(_) => {
                    let expression = &rest[start..start + 3 + end];
                    return Err(self.bad(
                        node,
                        key,
                        expression,
                        "a list or mapping cannot be inserted into text",
                    ));
                }
                Value::Null => out.push_str("None"),
                Value::Bool(value) => out.push_str(if *value { "True" } else { "False" }),
                Value::Int(value) => out.push_str(&value.to_string()),
                Value::Float(value) => out.push_str(&float_text(*value)),
                Value::Str(value) => out.push_str(value),
            }
            rest = &body[end + 1..];
        }
        out.push_str(rest);
        Ok(Value::Str(out))
    }

    /// The value of one reference.
    fn reference(&self, expression: &str, node: &Node, key: &str, chain: usize) -> Result<Node> {
        let place = || self.place(node);
        self.replaced.set(self.replaced.get() + 1);
        if self.replaced.get() > REFERENCE_LIMIT {
            let (limit, what) = (REFERENCE_LIMIT, "references");
            return Err(WorkloadError::YamlTooLarge { place: place(), limit, what });
        }
        if let Some(format) = expression.strip_prefix("now:") {
            return Ok(Node::from((self.now)(format)));
        }
        let whole = || format!("${{{expression}}}");
        if expression.contains(':') {
            return Err(self.bad(node, key, &whole(), "the only supported function is `now`"));
        }
        if expression.starts_with('.') || expression.contains("${") {
            return Err(self.bad(node, key, &whole(), "only absolute paths are supported"));
        }
        let path = expression.trim();
        let target = self.root.get(path).ok_or_else(|| WorkloadError::UnresolvedReference {
            place: place(),
            key: key.to_owned(),
            expression: expression.to_owned(),
        })?;
        let holds_itself = key == path || key.starts_with(&format!("{path}."));
        if holds_itself || chain == CHAIN_LIMIT {
            return Err(WorkloadError::CircularReference {
                place: place(),
                key: key.to_owned(),
                expression: expression.to_owned(),
            });
        }
        // The key stays that of the first reference, so that the error names what the user wrote.
        let mut found = self.node(target, key, chain + 1)?;
        found.line = node.line;
        Ok(found)
    }

    fn bad(&self, node: &Node, key: &str, expression: &str, reason: &'static str) -> WorkloadError {
        WorkloadError::BadReference {
            place: self.place(node),
            key: key.to_owned(),
            expression: expression.to_owned(),
            reason,
        }
    }

    fn place(&self, node: &Node) -> Place {
        Place { origin: self.origin.to_owned(), line: node.line }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::yaml::parse_yaml;

    fn resolved(yaml: &str) -> Result<Node> {
        let tree = parse_yaml("w.yaml", yaml).expect("the text is valid");
        interpolate(&tree, "w.yaml", &|format| format.replace("%Y", "2031"))
    }

    #[test]
    fn a_reference_takes_the_value_it_names() {
        let tree = resolved(
            "a: {b: 5, c: [1, 2], n: x}\nd: ${a.b}\ne: ${a.c}\nf: data/${a.n}/${now:%Y}\ng: ${d}\nh: \\${a}\n",
        )
        .expect("every reference exists");
        assert_eq!(tree.get("d"), Some(&Node::from(5)));
        assert_eq!(tree.get("e.1"), Some(&Node::from(2)));
        assert_eq!(tree.get("f"), Some(&Node::from("data/x/2031")));
        assert_eq!(tree.get("g"), Some(&Node::from(5)));
        assert_eq!(tree.get("h"), Some(&Node::from("${a}")));
    }

    #[test]
    fn references_that_double_each_other_are_bounded() {
        let mut yaml = "a0: x\n".to_owned();
        for level in 1..40 {
            let below = level - 1;
            yaml.push_str(&format!("a{level}: ${{a{below}}}${{a{below}}}\n"));
        }
        let err = resolved(&yaml).expect_err("it would hold 2^39 letters");
        assert_eq!(err.to_string(), "w.yaml:2: more than 10000 references");
    }

    #[test]
    fn a_reference_to_nothing_is_refused_with_its_key() {
        #[track_caller]
        fn check(yaml: &str, message: &str) {
            assert_eq!(resolved(yaml).expect_err("it is wrong").to_string(), message);
        }
        check("a:\n  b: ${x.y}\n", "w.yaml:2: `a.b` refers to `${x.y}`, which does not exist");
        check("a: ${a}\n", "w.yaml:1: `a` refers to itself through `${a}`");
        check("a: {b: '${a}'}\n", "w.yaml:1: `a.b` refers to itself through `${a}`");
        check("a: ${b}\nb: ${a}\n", "w.yaml:2: `a` refers to itself through `${a}`");
        check("b: '${c'\n", "w.yaml:1: invalid reference `${c` in `b`: unclosed brace");
        check(
            "b: ${env:HOME}\n",
            "w.yaml:1: invalid reference `${env:HOME}` in `b`: the only supported function is `now`",
        );
        check(
            "b: ${.c}\n",
            "w.yaml:1: invalid reference `${.c}` in `b`: only absolute paths are supported",
        );
        check(
            "b: x${c}\nc: [1]\n",
            "w.yaml:1: invalid reference `${c}` in `b`: a list or mapping cannot be inserted into text",
        );
    }
}
