//! The tree a workload file is read into.
//!
//! Seven kinds of value, as in YAML; a mapping keeps the order of its keys. Every node knows the
//! line it came from, so that a complaint about a value can name its place.

/// One value of a workload file with the line it stands on.
#[derive(Debug, Clone)]
pub struct Node {
    /// What it holds.
    pub value: Value,
    /// Line of the file, counted from 1; 0 for a value that an override or a program brought.
    pub line: u32,
}

/// What a node holds.
#[derive(Debug, Clone, PartialEq)]
pub enum Value {
    /// Nothing: `null`, `~` or an empty value.
    Null,
    /// A truth value.
    Bool(bool),
    /// A whole number.
    Int(i64),
    /// Any other number.
    Float(f64),
    /// Text.
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

/// Two nodes are equal when their values are: the line is where a value was found, not what it is.
impl PartialEq for Node {
    fn eq(&self, other: &Self) -> bool {
        self.value == other.value
    }
}

impl Node {
    /// A node that came from no file.
    pub fn new(value: Value) -> Self {
        Self { value, line: 0 }
    }

    /// A node found at a line.
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

    /// The mapping in this node, to change it.
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

    /// The node at a dotted path below this one; a number steps into a list.
    pub fn get(&self, path: &str) -> Option<&Node> {
        path.split('.').try_fold(self, |node, step| match &node.value {
            Value::Map(map) => map.get(step),
            Value::List(items) => items.get(step.parse::<usize>().ok()?),
            _ => None,
        })
    }

    /// What the node holds, in the words of an error message: `text "abc"`, `a list`.
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

    /// The node of a key, to change it.
    pub fn get_mut(&mut self, key: &str) -> Option<&mut Node> {
        self.entries.iter_mut().find(|(name, _)| name == key).map(|(_, node)| node)
    }

    /// Whether the key is present, with any value.
    pub fn contains_key(&self, key: &str) -> bool {
        self.get(key).is_some()
    }

    /// Sets a key: a new one comes last, a known one keeps its place. Gives back the old node.
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

    /// The node of a key; a key that is not there comes last with null.
    pub(crate) fn entry(&mut self, key: &str) -> &mut Node {
        let index = self.entries.iter().position(|(name, _)| name == key).unwrap_or_else(|| {
            self.entries.push((key.to_owned(), Node::new(Value::Null)));
            self.entries.len() - 1
        });
        &mut self.entries[index].1
    }

    /// Takes a key out.
    pub fn remove(&mut self, key: &str) -> Option<Node> {
        let index = self.entries.iter().position(|(name, _)| name == key)?;
        Some(self.entries.remove(index).1)
    }

    /// The entries in order.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &Node)> {
        self.entries.iter().map(|(key, node)| (key.as_str(), node))
    }

    /// The entries in order, to change the nodes.
    pub fn iter_mut(&mut self) -> impl Iterator<Item = (&str, &mut Node)> {
        self.entries.iter_mut().map(|(key, node)| (key.as_str(), node))
    }

    /// The keys in order.
    pub fn keys(&self) -> impl Iterator<Item = &str> {
        self.entries.iter().map(|(key, _)| key.as_str())
    }

    /// How many keys there are.
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Whether there is no key.
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
