//! The tree that a workload file is parsed into.
//!
//! Seven types of value, as in YAML; a mapping keeps the order of its keys. Every node knows its line,
//! so that messages can point to it.

/// One value of a workload file, and its line.
#[derive(Debug, Clone)]
pub struct Node {
    /// The value itself.
    pub value: Value,
    /// Line of the file, counted from 1; 0 for a value from an override or a program.
    pub line: u32,
}

/// A value of YAML.
#[derive(Debug, Clone, PartialEq)]
pub enum Value {
    /// Nothing: `null`, `~` or an empty value.
    Null,
    /// A boolean.
    Bool(bool),
    /// A whole number.
    Int(i64),
    /// A number with a fraction or an exponent, or one beyond 64 bits.
    Float(f64),
    /// A string.
    Str(String),
    /// A sequence.
    List(Vec<Node>),
    /// A mapping.
    Map(Map),
}

/// A mapping from text to nodes that keeps the order of insertion.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Map {
    entries: Vec<(String, Node)>,
}

/// Nodes are equal if their values are; the line only says where a value was found.
impl PartialEq for Node {
    fn eq(&self, other: &Self) -> bool {
        self.value == other.value
    }
}

impl Node {
    /// A node that does not come from a file.
    pub fn new(value: Value) -> Self {
        Self { value, line: 0 }
    }

    /// A node from a line of a file.
    pub fn at(value: Value, line: u32) -> Self {
        Self { value, line }
    }

    /// The mapping in this node, if it is one.
    pub fn as_map(&self) -> Option<&Map> {
        match &self.value {
            Value::Map(map) => Some(map),
            _ => None,
        }
    }

    /// The mapping in this node, for changes.
    pub fn as_map_mut(&mut self) -> Option<&mut Map> {
        match &mut self.value {
            Value::Map(map) => Some(map),
            _ => None,
        }
    }

    /// The text in this node, if it is text.
    pub fn as_str(&self) -> Option<&str> {
        match &self.value {
            Value::Str(text) => Some(text),
            _ => None,
        }
    }

    /// The node at a dotted path below this one; a number indexes a list.
    pub fn get(&self, path: &str) -> Option<&Node> {
        path.split('.').try_fold(self, |node, step| match &node.value {
            Value::Map(map) => map.get(step),
            Value::List(items) => items.get(step.parse::<usize>().ok()?),
            _ => None,
        })
    }

    /// The value, as an error message shows it: `"abc"`, `12`, `a list`.
    pub fn describe(&self) -> String {
        match &self.value {
            Value::Null => "null".to_owned(),
            Value::Bool(value) => value.to_string(),
            Value::Int(value) => value.to_string(),
            Value::Float(value) => crate::emit::float_text(*value),
            Value::Str(text) => format!("{text:?}"),
            Value::List(_) => "a list".to_owned(),
            Value::Map(_) => "a mapping".to_owned(),
        }
    }
}

impl Map {
    /// An empty mapping.
    pub fn new() -> Self {
        Self::default()
    }

    /// The node of a key.
    pub fn get(&self, key: &str) -> Option<&Node> {
        self.entries.iter().find(|(name, _)| name == key).map(|(_, node)| node)
    }

    /// The node of a key, for changes.
    pub fn get_mut(&mut self, key: &str) -> Option<&mut Node> {
        self.entries.iter_mut().find(|(name, _)| name == key).map(|(_, node)| node)
    }

    /// Whether the key is present, with any value.
    pub fn contains_key(&self, key: &str) -> bool {
        self.get(key).is_some()
    }

    /// Sets a key and returns the old node; a new key comes last, an existing one keeps its place.
    pub fn insert(&mut self, key: impl Into<String>, node: Node) -> Option<Node> {
        let key = key.into();
        match self.get_mut(&key) {
            Some(slot) => Some(std::mem::replace(slot, node)),
            None => {
                self.entries.push((key, node));
                None
            }
        }
    }

    /// The node of a key; a missing key is added last, as null.
    pub(crate) fn entry(&mut self, key: &str) -> &mut Node {
        let index = self.entries.iter().position(|(name, _)| name == key).unwrap_or_else(|| {
            self.entries.push((key.to_owned(), Node::new(Value::Null)));
            self.entries.len() - 1
        });
        &mut self.entries[index].1
    }

    /// Removes a key and returns its node.
    pub fn remove(&mut self, key: &str) -> Option<Node> {
        let index = self.entries.iter().position(|(name, _)| name == key)?;
        Some(self.entries.remove(index).1)
    }

    /// The entries in order.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &Node)> {
        self.entries.iter().map(|(key, node)| (key.as_str(), node))
    }

    /// The entries in order, for changes.
    pub fn iter_mut(&mut self) -> impl Iterator<Item = (&str, &mut Node)> {
        self.entries.iter_mut().map(|(key, node)| (key.as_str(), node))
    }

    /// The keys in order.
    pub fn keys(&self) -> impl Iterator<Item = &str> {
        self.entries.iter().map(|(key, _)| key.as_str())
    }

    /// Number of keys.
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Whether the mapping has no keys.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }
}

impl FromIterator<(String, Node)> for Map {
    fn from_iter<I: IntoIterator<Item = (String, Node)>>(entries: I) -> Self {
        let mut map = Self::new();
        for (key, node) in entries {
            map.insert(key, node);
        }
        map
    }
}

impl IntoIterator for Map {
    type Item = (String, Node);
    type IntoIter = std::vec::IntoIter<(String, Node)>;

    fn into_iter(self) -> Self::IntoIter {
        self.entries.into_iter()
    }
}

impl From<bool> for Node {
    fn from(value: bool) -> Self {
        Self::new(Value::Bool(value))
    }
}

impl From<i64> for Node {
    fn from(value: i64) -> Self {
        Self::new(Value::Int(value))
    }
}

impl From<f64> for Node {
    fn from(value: f64) -> Self {
        Self::new(Value::Float(value))
    }
}

impl From<&str> for Node {
    fn from(value: &str) -> Self {
        Self::new(Value::Str(value.to_owned()))
    }
}

impl From<String> for Node {
    fn from(value: String) -> Self {
        Self::new(Value::Str(value))
    }
}

impl From<Vec<Node>> for Node {
    fn from(value: Vec<Node>) -> Self {
        Self::new(Value::List(value))
    }
}

impl From<Map> for Node {
    fn from(value: Map) -> Self {
        Self::new(Value::Map(value))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_known_key_keeps_its_place_and_its_line_is_not_its_value() {
        let mut map = Map::new();
        map.insert("b", Node::from(1));
        map.insert("a", Node::from(2));
        assert_eq!(map.insert("b", Node::at(Value::Int(3), 7)), Some(Node::from(1)));
        assert_eq!(map.keys().collect::<Vec<_>>(), ["b", "a"]);
        assert_eq!(map.get("b"), Some(&Node::from(3)));
    }

    #[test]
    fn a_path_steps_through_maps_and_lists() {
        let inner: Map = [("list".to_owned(), Node::from(vec![Node::from(4), Node::from(5)]))]
            .into_iter()
            .collect();
        let root = Node::from(Map::from_iter([("a".to_owned(), Node::from(inner))]));
        assert_eq!(root.get("a.list.1"), Some(&Node::from(5)));
        assert_eq!(root.get("a.list.2"), None);
        assert_eq!(root.get("a.none.1"), None);
    }
}
