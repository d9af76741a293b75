//! A writer of Python pickles, protocol 2: as many opcodes as dictionaries of tensors need.
//!
//! Values are remembered in the order in which CPython's own pickler does, so that the bytes agree.

use std::collections::HashMap;

/// Elements of a dictionary or list that CPython writes at a time.
const BATCH: usize = 1000;

/// A pickle that grows. Texts are borrowed from the tensors whose names they are.
pub(super) struct Pickler<'a> {
    out: Vec<u8>,
    /// Values that were remembered so far.
    remembered: u32,
    texts: HashMap<&'a str, u32>,
    globals: HashMap<(&'static str, &'static str), u32>,
}

impl<'a> Pickler<'a> {
    pub(super) fn new() -> Pickler<'a> {
        let (texts, globals) = (HashMap::new(), HashMap::new());
        Pickler { out: vec![0x80, 2], remembered: 0, texts, globals }
    }

    /// The pickle of what was put last.
    pub(super) fn finish(mut self) -> Vec<u8> {
        self.out.push(b'.');
        self.out
    }

    pub(super) fn none(&mut self) {
        self.out.push(b'N');
    }

    pub(super) fn bool_false(&mut self) {
        self.out.push(0x89);
    }

    pub(super) fn int(&mut self, value: u64) {
        match value {
            0..=0xFF => self.out.extend([b'K', value as u8]),
            0x100..=0xFFFF => self.op_with(b'M', &(value as u16).to_le_bytes()),
            0x1_0000..=0x7FFF_FFFF => self.op_with(b'J', &(value as u32).to_le_bytes()),
            _ => {
                // Two's complement, as short as it goes: the last byte carries the sign.
                let bytes = u128::from(value).to_le_bytes();
                let len = (64 - value.leading_zeros() as usize) / 8 + 1;
                self.out.extend([0x8A, len as u8]);
                self.out.extend(&bytes[..len]);
            }
        }
    }

    /// A text that may come again.
    pub(super) fn text(&mut self, text: &'a str) {
        match self.texts.get(text) {
            Some(&number) => self.recall(number),
            None => {
                let number = self.fresh_text(text);
                self.texts.insert(text, number);
            }
        }
    }

    /// A new string in CPython, so that it is not the same object as an equal one.
    pub(super) fn fresh_text(&mut self, text: &str) -> u32 {
        self.op_with(b'X', &(text.len() as u32).to_le_bytes());
        self.out.extend(text.as_bytes());
        self.remember()
    }

    /// A class or function.
    pub(super) fn global(&mut self, module: &'static str, name: &'static str) {
        if let Some(&number) = self.globals.get(&(module, name)) {
            return self.recall(number);
        }
        self.out.extend(format!("c{module}\n{name}\n").bytes());
        let number = self.remember();
        self.globals.insert((module, name), number);
    }

    /// A dictionary; `put` puts a key and its value.
    pub(super) fn dict<T>(&mut self, items: &[T], mut put: impl FnMut(&mut Self, &T)) {
        self.out.push(b'}');
        self.remember();
        self.batches(items, b's', b'u', &mut put);
    }

    /// A list; `put` puts an element.
    pub(super) fn list<T>(&mut self, items: &[T], mut put: impl FnMut(&mut Self, &T)) {
        self.out.push(b']');
        self.remember();
        self.batches(items, b'a', b'e', &mut put);
    }

    fn batches<T>(&mut self, items: &[T], one: u8, many: u8, put: &mut impl FnMut(&mut Self, &T)) {
        match items {
            [] => {}
            [item] => {
                put(self, item);
                self.out.push(one);
            }
            _ => {
                // CPython notices that a full batch was the last one by an empty batch after it.
                let mut rest = items;
                loop {
                    let (batch, behind) = rest.split_at(rest.len().min(BATCH));
                    self.mark();
                    batch.iter().for_each(|item| put(self, item));
                    self.out.push(many);
                    if batch.len() < BATCH {
                        break;
                    }
                    rest = behind;
                }
            }
        }
    }

    pub(super) fn mark(&mut self) {
        self.out.push(b'(');
    }

    /// A tuple of everything since the mark.
    pub(super) fn tuple(&mut self) {
        self.out.push(b't');
        self.remember();
    }

    /// A tuple of the last value.
    pub(super) fn tuple1(&mut self) {
        self.out.push(0x85);
        self.remember();
    }

    pub(super) fn empty_tuple(&mut self) {
        self.out.push(b')');
    }

    /// What the callable before the last value gives for it.
    pub(super) fn reduce(&mut self) {
        self.out.push(b'R');
        self.remember();
    }

    /// An object of a class, of which `state` puts the state.
    pub(super) fn object(
        &mut self,
        module: &'static str,
        name: &'static str,
        state: impl FnOnce(&mut Self),
    ) {
        self.global(module, name);
        self.empty_tuple();
        self.out.push(0x81);
        self.remember();
        state(self);
        self.out.push(b'b');
    }

    /// What the last value is the name of outside of the pickle.
    pub(super) fn persistent(&mut self) {
        self.out.push(b'Q');
    }

    fn op_with(&mut self, op: u8, argument: &[u8]) {
        self.out.push(op);
        self.out.extend(argument);
    }

    fn remember(&mut self) -> u32 {
        let number = self.remembered;
        match u8::try_from(number) {
            Ok(number) => self.out.extend([b'q', number]),
            Err(_) => self.op_with(b'r', &number.to_le_bytes()),
        }
        self.remembered += 1;
        number
    }

    fn recall(&mut self, number: u32) {
        match u8::try_from(number) {
            Ok(number) => self.out.extend([b'h', number]),
            Err(_) => self.op_with(b'j', &number.to_le_bytes()),
        }
    }
}
