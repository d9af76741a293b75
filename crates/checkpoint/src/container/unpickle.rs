//! A reader of Python pickles, protocols 2 to 5, that runs nothing.
//!
//! Classes and functions stay names; calling one gives an [`Node::Object`] that remembers the name and
//! the arguments. All values are in one table and refer to one another by number, so that a pickle that
//! contains itself costs no more than any other, and is freed. Texts stay where they are in the pickle.

/// Values of a pickle at most: a gibibyte of table, as much as 256 MiB of a pickle can sensibly need.
const VALUES_MAX: usize = 1 << 26;
/// In place of a value that is not there.
const NOTHING: Ref = Ref(u32::MAX);

/// The number of a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct Ref(u32);

/// A value.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Node {
    None,
    Bool,
    Int(i64),
    /// Floats, bytes, and integers of more than 64 bits: nothing that anyone here asks for.
    Other,
    Text {
        at: u32,
        len: u32,
    },
    /// References in [`Pickle::pool`].
    Tuple {
        at: u32,
        len: u32,
    },
    List(u32),
    Dict(u32),
    /// A class or function, by two texts.
    Global {
        module: Ref,
        name: Ref,
    },
    Object(u32),
    /// Something outside of the pickle, by its name there.
    Persistent(Ref),
}

/// What a class or function gave for its arguments.
#[derive(Debug, Clone)]
pub(super) struct Object {
    pub(super) class: Ref,
    pub(super) args: Ref,
    state: Ref,
    items: Vec<(Ref, Ref)>,
}

/// Why a pickle cannot be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Broken {
    pub(super) what: &'static str,
    /// Where in the pickle.
    pub(super) at: usize,
}

/// A pickle that was read.
pub(super) struct Pickle<'a> {
    bytes: &'a [u8],
    nodes: Vec<Node>,
    pool: Vec<Ref>,
    lists: Vec<Vec<Ref>>,
    dicts: Vec<Vec<(Ref, Ref)>>,
    objects: Vec<Object>,
    pub(super) root: Ref,
}

impl<'a> Pickle<'a> {
    /// Reads a pickle of less than 4 GiB.
    pub(super) fn read(bytes: &'a [u8]) -> Result<Pickle<'a>, Broken> {
        let pickle = Pickle {
            bytes,
            nodes: Vec::new(),
            pool: Vec::new(),
            lists: Vec::new(),
            dicts: Vec::new(),
            objects: Vec::new(),
            root: NOTHING,
        };
        let mut machine =
            Machine { pickle, at: 0, stack: Vec::new(), marks: Vec::new(), memo: Vec::new() };
        loop {
            let at = machine.at;
            let step = machine.step();
            match step.and_then(|step| step.ok_or("a pickle cut off, or an opcode out of place")) {
                Ok(Step::Next) => {}
                Ok(Step::Stop) => return Ok(machine.pickle),
                Err(what) => return Err(Broken { what, at }),
            }
        }
    }

    /// How many values there are.
    pub(super) fn values(&self) -> usize {
        self.nodes.len()
    }

    pub(super) fn node(&self, value: Ref) -> Node {
        self.nodes.get(value.0 as usize).copied().unwrap_or(Node::None)
    }

    pub(super) fn text(&self, value: Ref) -> Option<&'a str> {
        let Node::Text { at, len } = self.node(value) else { return None };
        str::from_utf8(&self.bytes[at as usize..(at + len) as usize]).ok()
    }

    pub(super) fn unsigned(&self, value: Ref) -> Option<u64> {
        let Node::Int(value) = self.node(value) else { return None };
        u64::try_from(value).ok()
    }

    /// The elements of a tuple or list.
    pub(super) fn elements(&self, value: Ref) -> Option<&[Ref]> {
        match self.node(value) {
            Node::Tuple { at, len } => Some(&self.pool[at as usize..(at + len) as usize]),
            Node::List(list) => Some(&self.lists[list as usize]),
            _ => None,
        }
    }

    /// The items of a dictionary, or of an object that is one.
    pub(super) fn items(&self, value: Ref) -> Option<&[(Ref, Ref)]> {
        match self.node(value) {
            Node::Dict(dict) => Some(&self.dicts[dict as usize]),
            Node::Object(object) if self.is_global(self.objects[object as usize].class, DICT) => {
                Some(&self.objects[object as usize].items)
            }
            _ => None,
        }
    }

    pub(super) fn object(&self, value: Ref) -> Option<&Object> {
        let Node::Object(object) = self.node(value) else { return None };
        Some(&self.objects[object as usize])
    }

    /// The module and name of a class or function.
    pub(super) fn global(&self, value: Ref) -> Option<(&'a str, &'a str)> {
        let Node::Global { module, name } = self.node(value) else { return None };
        self.text(module).zip(self.text(name))
    }

    pub(super) fn is_global(&self, value: Ref, expected: (&str, &str)) -> bool {
        self.global(value) == Some(expected)
    }

    /// The arguments of an object, if it is of that class or made by that function.
    pub(super) fn made_by(&self, value: Ref, expected: (&str, &str)) -> Option<&[Ref]> {
        let object = self.object(value)?;
        if self.is_global(object.class, expected) { self.elements(object.args) } else { None }
    }

    /// The state of an object, if it is of that class.
    pub(super) fn state(&self, value: Ref, expected: (&str, &str)) -> Option<Ref> {
        let object = self.object(value)?;
        self.is_global(object.class, expected).then_some(object.state)
    }

    /// The attribute of an object of that class whose state is a dictionary.
    pub(super) fn attribute(
        &self,
        value: Ref,
        class: (&str, &str),
        attribute: &str,
    ) -> Option<Ref> {
        let items = self.items(self.state(value, class)?)?;
        items.iter().find(|item| self.text(item.0) == Some(attribute)).map(|item| item.1)
    }
}

const DICT: (&str, &str) = ("collections", "OrderedDict");

enum Step {
    Next,
    Stop,
}

/// What runs a pickle: `None` from any of its methods means that the pickle is broken.
struct Machine<'a> {
    pickle: Pickle<'a>,
    at: usize,
    stack: Vec<Ref>,
    /// Heights of the stack.
    marks: Vec<usize>,
    memo: Vec<Ref>,
}

impl Machine<'_> {
    fn step(&mut self) -> Result<Option<Step>, &'static str> {
        if self.pickle.nodes.len() >= VALUES_MAX {
            return Err("too many values: more than a gibibyte");
        }
        let Some(&op) = self.pickle.bytes.get(self.at) else { return Ok(None) };
        self.at += 1;
        let known = match op {
            b'.' => {
                self.pickle.root = match self.stack.pop() {
                    Some(root) => root,
                    None => return Ok(None),
                };
                return Ok(Some(Step::Stop));
            }
            0x80 => self.protocol()?,
            _ => self
                .plain(op)
                .or_else(|| self.sized(op))
                .or_else(|| self.collect(op))
                .or_else(|| self.call(op)),
        };
        match known {
            Some(Some(())) => Ok(Some(Step::Next)),
            Some(None) => Ok(None),
            None => Err("an unknown opcode"),
        }
    }

    fn protocol(&mut self) -> Result<Option<Option<()>>, &'static str> {
        match self.take(1) {
            Some([2..=5]) => Ok(Some(Some(()))),
            Some(_) => Err("a pickle protocol other than 2 to 5"),
            None => Ok(Some(None)),
        }
    }

    /// Opcodes without operands on the stack and of fixed size. The outer option says whether it is one.
    fn plain(&mut self, op: u8) -> Option<Option<()>> {
        Some(match op {
            b'N' => self.push(Node::None),
            0x88 | 0x89 => self.push(Node::Bool),
            b'K' => self.number(1, |bytes| Node::Int(i64::from(bytes[0]))),
            b'M' => self
                .number(2, |bytes| Node::Int(i64::from(u16::from_le_bytes([bytes[0], bytes[1]])))),
            b'J' => self.number(4, |bytes| {
                Node::Int(i64::from(i32::from_le_bytes([bytes[0], bytes[1], bytes[2], bytes[3]])))
            }),
            b'G' => self.number(8, |_| Node::Other),
            b']' | 0x8F => self.push_list(Vec::new()),
            b')' => self.push(Node::Tuple { at: 0, len: 0 }),
            b'}' => self.push_dict(Vec::new()),
            b'(' => {
                self.marks.push(self.stack.len());
                Some(())
            }
            // A frame only says how many bytes belong together.
            0x95 => self.take(8).map(|_| ()),
            b'q' => self.take_len(1).and_then(|number| self.remember(number)),
            b'r' => self.take_len(4).and_then(|number| self.remember(number)),
            0x94 => self.remember(self.memo.len()),
            b'h' => self.take_len(1).and_then(|number| self.recall(number)),
            b'j' => self.take_len(4).and_then(|number| self.recall(number)),
            b'c' => self.named_global(),
            _ => return None,
        })
    }

    /// Opcodes with a length before their bytes.
    fn sized(&mut self, op: u8) -> Option<Option<()>> {
        let (width, text) = match op {
            0x8C => (1, true),
            b'X' => (4, true),
            0x8D => (8, true),
            b'C' => (1, false),
            b'B' => (4, false),
            0x8E | 0x96 => (8, false),
            0x8A => return Some(self.take_len(1).and_then(|len| self.long(len))),
            0x8B => return Some(self.take_len(4).and_then(|len| self.long(len))),
            _ => return None,
        };
        let node = self.take_len(width).and_then(|len| {
            let at = self.at;
            self.take(len)?;
            // A pickle of 4 GiB was refused before.
            Some(if text { Node::Text { at: at as u32, len: len as u32 } } else { Node::Other })
        });
        Some(node.and_then(|node| self.push(node)))
    }

    /// Opcodes that put what is on the stack into tuples, lists and dictionaries.
    fn collect(&mut self, op: u8) -> Option<Option<()>> {
        Some(match op {
            b't' => self.since_mark().and_then(|values| self.push_tuple(&values)),
            0x85..=0x87 => {
                self.last(usize::from(op - 0x84)).and_then(|values| self.push_tuple(&values))
            }
            b'l' | 0x91 => self.since_mark().and_then(|values| self.push_list(values)),
            b'd' => self.since_mark().and_then(|values| self.push_dict(pairs(&values)?)),
            b'a' => self.last(1).and_then(|values| self.append(&values)),
            b'e' | 0x90 => self.since_mark().and_then(|values| self.append(&values)),
            b's' => self.last(2).and_then(|values| self.set_items(&values)),
            b'u' => self.since_mark().and_then(|values| self.set_items(&values)),
            b'0' => self.pop(),
            b'1' => self.since_mark().map(|_| ()),
            b'2' => {
                let last = self.stack.last().copied();
                last.map(|last| self.stack.push(last))
            }
            _ => return None,
        })
    }

    /// Opcodes that would call something.
    fn call(&mut self, op: u8) -> Option<Option<()>> {
        Some(match op {
            b'R' | 0x81 => self.last(2).and_then(|values| self.push_object(values[0], values[1])),
            // With keyword arguments, which checkpoints do not use.
            0x92 => self.last(3).and_then(|values| self.push_object(values[0], values[1])),
            0x93 => self
                .last(2)
                .and_then(|values| self.push(Node::Global { module: values[0], name: values[1] })),
            b'b' => self.build(),
            b'Q' => self.last(1).and_then(|values| self.push(Node::Persistent(values[0]))),
            _ => return None,
        })
    }

    fn take(&mut self, len: usize) -> Option<&[u8]> {
        let end = self.at.checked_add(len)?;
        let bytes = self.pickle.bytes.get(self.at..end)?;
        self.at = end;
        Some(bytes)
    }

    /// A little-endian number of `width` bytes.
    fn take_len(&mut self, width: usize) -> Option<usize> {
        let mut wide = [0; 8];
        wide[..width].copy_from_slice(self.take(width)?);
        usize::try_from(u64::from_le_bytes(wide)).ok()
    }

    fn number(&mut self, width: usize, node: impl Fn(&[u8]) -> Node) -> Option<()> {
        let node = node(self.take(width)?);
        self.push(node)
    }

    /// An integer of `len` bytes in two's complement.
    fn long(&mut self, len: usize) -> Option<()> {
        let bytes = self.take(len)?;
        let negative = bytes.last().is_some_and(|&last| last >= 0x80);
        let fill = if negative { 0xFF } else { 0 };
        let mut wide = [fill; 16];
        let node = match bytes.len() {
            0..=9 => {
                wide[..bytes.len()].copy_from_slice(bytes);
                i64::try_from(i128::from_le_bytes(wide)).map_or(Node::Other, Node::Int)
            }
            _ => Node::Other,
        };
        self.push(node)
    }

    /// Two lines: module and name.
    fn named_global(&mut self) -> Option<()> {
        let mut line = || {
            let at = self.at;
            let len = self.pickle.bytes[at..].iter().position(|&byte| byte == b'\n')?;
            self.at += len + 1;
            self.push(Node::Text { at: at as u32, len: len as u32 })?;
            self.stack.pop()
        };
        let (module, name) = (line()?, line()?);
        self.push(Node::Global { module, name })
    }

    fn push(&mut self, node: Node) -> Option<()> {
        self.stack.push(Ref(self.pickle.nodes.len() as u32));
        self.pickle.nodes.push(node);
        Some(())
    }

    fn push_tuple(&mut self, values: &[Ref]) -> Option<()> {
        let at = u32::try_from(self.pickle.pool.len()).ok()?;
        self.pickle.pool.extend(values);
        self.push(Node::Tuple { at, len: values.len() as u32 })
    }

    fn push_list(&mut self, values: Vec<Ref>) -> Option<()> {
        self.pickle.lists.push(values);
        self.push(Node::List(self.pickle.lists.len() as u32 - 1))
    }

    fn push_dict(&mut self, items: Vec<(Ref, Ref)>) -> Option<()> {
        self.pickle.dicts.push(items);
        self.push(Node::Dict(self.pickle.dicts.len() as u32 - 1))
    }

    fn push_object(&mut self, class: Ref, args: Ref) -> Option<()> {
        let object = Object { class, args, state: NOTHING, items: Vec::new() };
        self.pickle.objects.push(object);
        self.push(Node::Object(self.pickle.objects.len() as u32 - 1))
    }

    /// The lowest height that an opcode may take the stack down to.
    fn floor(&self) -> usize {
        self.marks.last().copied().unwrap_or(0)
    }

    fn pop(&mut self) -> Option<()> {
        // Below a mark there is no lone value to take: the mark itself goes.
        if self.stack.len() == self.floor() {
            return self.marks.pop().map(|_| ());
        }
        self.stack.pop().map(|_| ())
    }

    fn last(&mut self, count: usize) -> Option<Vec<Ref>> {
        let at = self.stack.len().checked_sub(count).filter(|&at| at >= self.floor())?;
        Some(self.stack.split_off(at))
    }

    fn since_mark(&mut self) -> Option<Vec<Ref>> {
        let at = self.marks.pop()?;
        (at <= self.stack.len()).then(|| self.stack.split_off(at))
    }

    fn append(&mut self, values: &[Ref]) -> Option<()> {
        // Other types than lists take elements too, but checkpoints do not use them.
        if let Node::List(list) = self.pickle.node(*self.stack.last()?) {
            self.pickle.lists[list as usize].extend(values);
        }
        Some(())
    }

    fn set_items(&mut self, values: &[Ref]) -> Option<()> {
        let items = pairs(values)?;
        match self.pickle.node(*self.stack.last()?) {
            Node::Dict(dict) => self.pickle.dicts[dict as usize].extend(items),
            Node::Object(object) => self.pickle.objects[object as usize].items.extend(items),
            _ => {}
        }
        Some(())
    }

    fn build(&mut self) -> Option<()> {
        let state = self.last(1)?[0];
        if let Node::Object(object) = self.pickle.node(*self.stack.last()?) {
            self.pickle.objects[object as usize].state = state;
        }
        Some(())
    }

    fn remember(&mut self, number: usize) -> Option<()> {
        let value = *self.stack.last()?;
        // Picklers count from zero; no pickler writes a number beyond the bytes of the pickle.
        if number >= self.pickle.bytes.len() {
            return None;
        }
        if number >= self.memo.len() {
            self.memo.resize(number + 1, NOTHING);
        }
        self.memo[number] = value;
        Some(())
    }

    fn recall(&mut self, number: usize) -> Option<()> {
        let value = *self.memo.get(number).filter(|&&value| value != NOTHING)?;
        self.stack.push(value);
        Some(())
    }
}

/// Keys and values that take turns.
fn pairs(values: &[Ref]) -> Option<Vec<(Ref, Ref)>> {
    let (pairs, rest) = values.as_chunks::<2>();
    rest.is_empty().then(|| pairs.iter().map(|&[key, value]| (key, value)).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `{"a": (1, -2, 2**40, 300, 70000), "n": [None, True, "é", 1.5, b"xy"], "d": {"k": "a"}}`, and the
    /// list once more as `"self"`, as Python 3.11 pickles it with the protocols 2 to 5.
    const PICKLES: [&str; 4] = [
        "80027d7100285801000000617101284b014afeffffff8a060000000000014d2c014a7011010074710258010000006e\
         71035d7104284e885802000000c3a97105473ff8000000000000635f636f646563730a656e636f64650a7106580200\
         00007879710758060000006c6174696e31710886710952710a65580100000064710b7d710c58010000006b710d6801\
         73580400000073656c66710e6804752e",
        "80037d7100285801000000617101284b014afeffffff8a060000000000014d2c014a7011010074710258010000006e\
         71035d7104284e885802000000c3a97105473ff80000000000004302787971066558010000006471077d7108580100\
         00006b7109680173580400000073656c66710a6804752e",
        "80049556000000000000007d94288c016194284b014afeffffff8a060000000000014d2c014a7011010074948c016e\
         945d94284e888c02c3a994473ff80000000000004302787994658c0164947d948c016b946801738c0473656c669468\
         04752e",
        "80059556000000000000007d94288c016194284b014afeffffff8a060000000000014d2c014a7011010074948c016e\
         945d94284e888c02c3a994473ff80000000000004302787994658c0164947d948c016b946801738c0473656c669468\
         04752e",
    ];

    fn unhex(text: &str) -> Vec<u8> {
        let digits = text.as_bytes().as_chunks::<2>().0;
        let byte = |pair: &[u8; 2]| u8::from_str_radix(str::from_utf8(pair).unwrap(), 16).unwrap();
        digits.iter().map(byte).collect()
    }

    #[test]
    fn all_protocols_of_today_are_read() {
        for text in PICKLES {
            let bytes = unhex(text);
            let pickle = Pickle::read(&bytes).unwrap_or_else(|broken| panic!("{broken:?}"));
            let items = pickle.items(pickle.root).unwrap();
            let keys: Vec<&str> = items.iter().filter_map(|item| pickle.text(item.0)).collect();
            assert_eq!(keys, ["a", "n", "d", "self"]);
            let numbers = pickle.elements(items[0].1).unwrap().iter().map(|&it| pickle.node(it));
            let expected = [1, -2, 1 << 40, 300, 70_000].map(Node::Int);
            assert_eq!(numbers.collect::<Vec<_>>(), expected);
            let list = pickle.elements(items[1].1).unwrap();
            assert_eq!((list.len(), pickle.node(list[0])), (5, Node::None));
            assert_eq!(pickle.node(list[1]), Node::Bool);
            assert_eq!(pickle.text(list[2]), Some("é"));
            let inner = pickle.items(items[2].1).unwrap();
            assert_eq!((pickle.text(inner[0].0), pickle.text(inner[0].1)), (Some("k"), Some("a")));
            assert_eq!(items[3].1, items[1].1);
        }
    }

    #[test]
    fn what_is_wrong_with_a_pickle_is_said_with_its_place() {
        let check = |bytes: &[u8], what: &'static str, at: usize| {
            let broken = Pickle::read(bytes).err();
            assert_eq!(broken, Some(Broken { what, at }), "{bytes:02x?}");
        };
        let out_of_place = "a pickle cut off, or an opcode out of place";
        check(b"", out_of_place, 0);
        check(b"\x80\x02.", out_of_place, 2);
        check(b"\x80\x02K", out_of_place, 2);
        check(b"\x80\x02(u.", out_of_place, 3);
        check(b"\x80\x02Nq\xFF.", out_of_place, 3);
        check(b"\x80\x02Nh\x00.", out_of_place, 3);
        check(b"\x80\x02N(\x85.", out_of_place, 4);
        check(b"\x80\x02X\xFF\xFF\xFF\xFFa.", out_of_place, 2);
        check(b"\x80\x01N.", "a pickle protocol other than 2 to 5", 0);
        check(b"\x80\x02I1\n.", "an unknown opcode", 2);
    }
}
