//! Alternative spellings: each is moved to its current key, with a warning.

use crate::compose::BUILT_IN_MARK;
use crate::emit::to_yaml;
use crate::error::Place;
use crate::node::{Map, Node, Value};
use crate::read::Sections;
use crate::schema::{Effect, find_key, has_keys_below, is_known, keys, nearest_path};
use crate::warning::{Warning, WarningKind};

impl Sections {
    /// Replaces alternative spellings, and warns about each, about unknown keys and about keys without
    /// effect.
    pub(crate) fn modernize(sections: Map, label: String, warnings: &mut Vec<Warning>) -> Self {
        let mut out = Self { root: Node::from(sections), label };
        out.model_name(warnings);
        out.data_reader(warnings);
        for key in keys() {
            if let Effect::Alias(target) = key.effect {
                out.rename(key.path, target, warnings);
            }
        }
        let mut found = Vec::new();
        survey(&out.root, "", &mut found);
        for (line, kind) in found {
            // The user cannot fix a built-in workload.
            let built_in = line > 0 && out.label.ends_with(BUILT_IN_MARK);
            if built_in && matches!(kind, WarningKind::NoEffect { .. }) {
                continue;
            }
            let place = Place { origin: out.label.clone(), line };
            warnings.push(Warning::at(place, kind));
        }
        out
    }

    /// Turns `model: NAME` into `model.name`.
    fn model_name(&mut self, warnings: &mut Vec<Warning>) {
        let label = self.label.clone();
        let Some(model) = self.root.as_map_mut().and_then(|map| map.get_mut("model")) else {
            return;
        };
        if matches!(model.value, Value::Str(_)) {
            let line = model.line;
            let name = Node::at(std::mem::replace(&mut model.value, Value::Null), line);
            model.value = Value::Map(Map::from_iter([("name".to_owned(), name)]));
            let kind =
                WarningKind::Alias { key: "model".to_owned(), target: "model.name".to_owned() };
            warnings.push(Warning::at(Place { origin: label, line }, kind));
        }
    }

    /// Merges `data_reader` into `reader`; as in DLIO, its keys take precedence.
    fn data_reader(&mut self, warnings: &mut Vec<Warning>) {
        let Some(root) = self.root.as_map_mut() else { return };
        let is_mapping = root.get("data_reader").is_some_and(|node| node.as_map().is_some());
        let Some(old) = is_mapping.then(|| root.remove("data_reader")).flatten() else { return };
        let place = |line| Place { origin: self.label.clone(), line };
        let kind =
            WarningKind::Alias { key: "data_reader".to_owned(), target: "reader".to_owned() };
        warnings.push(Warning::at(place(old.line), kind));
        let reader = root.entry("reader");
        if reader.as_map().is_none() {
            *reader = Node::at(Value::Map(Map::new()), old.line);
        }
        let (Value::Map(entries), Some(reader)) = (old.value, reader.as_map_mut()) else { return };
        for (key, node) in entries {
            let line = node.line;
            if reader.insert(key.clone(), node).is_some() {
                warnings.push(Warning::at(place(line), WarningKind::ReaderReplaced { key }));
            }
        }
    }

    /// Moves one key, unless the current spelling is set too.
    fn rename(&mut self, path: &str, target: &str, warnings: &mut Vec<Warning>) {
        let Some((section, name)) = path.rsplit_once('.') else { return };
        let Some(root) = self.root.as_map_mut() else { return };
        let removed =
            root.get_mut(section).and_then(Node::as_map_mut).and_then(|map| map.remove(name));
        let Some(node) = removed else { return };
        let place = self.place(&node);
        let (key, owned) = (path.to_owned(), target.to_owned());
        if self.get(target).is_some() {
            let kind = WarningKind::AliasShadowed { key, target: owned };
            warnings.push(Warning::at(place, kind));
            return;
        }
        warnings.push(Warning::at(place, WarningKind::Alias { key, target: owned }));
        let (parents, last) = target.rsplit_once('.').unwrap_or(("", target));
        let mut slot = &mut self.root;
        for step in parents.split('.') {
            if slot.as_map().is_none() {
                *slot = Node::at(Value::Map(Map::new()), node.line);
            }
            slot = slot.as_map_mut().expect("made a mapping above").entry(step);
        }
        if slot.as_map().is_none() {
            *slot = Node::at(Value::Map(Map::new()), node.line);
        }
        slot.as_map_mut().expect("made a mapping above").insert(last, node);
    }
}

/// Collects warnings about every unknown or unused key below a node.
fn survey(node: &Node, path: &str, found: &mut Vec<(u32, WarningKind)>) {
    let Some(map) = node.as_map() else { return };
    for (name, child) in map.iter() {
        let key = if path.is_empty() { name.to_owned() } else { format!("{path}.{name}") };
        if !is_known(&key) {
            let nearest = nearest_path(&key);
            found.push((child.line, WarningKind::UnknownKey { key, nearest }));
        } else if let Some((row, Effect::NoEffect(reason))) =
            find_key(&key).map(|row| (row, row.effect))
        {
            // A default value asks for nothing that Feedline would not do.
            let asks = child.value != Value::Null && to_yaml(child).trim_end() != row.default;
            if asks {
                found.push((child.line, WarningKind::NoEffect { key, reason }));
            }
        } else if has_keys_below(&key) {
            survey(child, &key, found);
        }
    }
}
