//! What the fields of an event are called in the files of other tools.

use std::sync::OnceLock;

use feedline_recorder::{Class, OPS, OpInfo};
use rustc_hash::FxHashMap;

use crate::event::EventKind;

/// A field that records carry as a named argument.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Field {
    Size,
    Offset,
    Arg,
    Result,
    Errno,
    Epoch,
    Step,
    Sample,
}

/// What is known about a call, by its name.
pub(crate) fn op_info(name: &str) -> Option<&'static OpInfo> {
    static TABLE: OnceLock<FxHashMap<&'static str, &'static OpInfo>> = OnceLock::new();
    let table = TABLE
        .get_or_init(|| OPS.iter().map(|op| op.info()).map(|facts| (facts.name, facts)).collect());
    table.get(name).copied().filter(|facts| !matches!(facts.class, Class::Span | Class::Counter))
}

/// The kind that a record of this layer and category is, unless it says something else.
pub(crate) fn usual_kind(layer: Option<i64>, category: &str) -> EventKind {
    match (layer, category) {
        (Some(LIBC_LAYER), _) | (_, "POSIX" | "STDIO" | "IO_URING") => EventKind::Call,
        _ => EventKind::Span,
    }
}

/// DFTracer's number of the C library.
pub(crate) const LIBC_LAYER: i64 = 3;

/// The kind that has a name.
pub(crate) fn kind_named(name: &str) -> Option<EventKind> {
    EventKind::ALL.into_iter().find(|kind| kind.name() == name)
}

/// The names under which DFTracer records the fields of one kind of event.
#[derive(Clone, Copy, Debug)]
pub(crate) struct FieldNames {
    pub(crate) size: &'static str,
    pub(crate) offset: &'static str,
    pub(crate) arg: &'static str,
    /// Sizes and results are counted in elements, whose size is the argument: `fread`.
    pub(crate) counts_elements: bool,
    is_call: bool,
}

impl FieldNames {
    pub(crate) fn of(facts: Option<&OpInfo>, kind: EventKind) -> Self {
        let is_call = matches!(kind, EventKind::Call | EventKind::Summary);
        if !is_call {
            return Self {
                size: "image_size",
                offset: "offset",
                arg: "arg",
                counts_elements: false,
                is_call,
            };
        }
        let Some(facts) = facts else {
            return Self {
                size: "count",
                offset: "offset",
                arg: "arg",
                counts_elements: false,
                is_call,
            };
        };
        let named = |name: &'static str, otherwise| if name.is_empty() { otherwise } else { name };
        Self {
            size: named(facts.size, "size"),
            offset: named(facts.offset, "offset"),
            // A new path is a file and has its own place.
            arg: named(facts.arg, "arg").trim_start_matches("newpath"),
            counts_elements: facts.size == "count" && facts.arg == "size",
            is_call,
        }
        .without_gaps()
    }

    fn without_gaps(self) -> Self {
        if self.arg.is_empty() { Self { arg: "arg", ..self } } else { self }
    }

    /// The field of an argument's name.
    pub(crate) fn field(&self, key: &str) -> Option<Field> {
        if key == self.size {
            return Some(Field::Size);
        } else if key == self.arg {
            return Some(Field::Arg);
        } else if key == self.offset {
            return Some(Field::Offset);
        }
        match key {
            "ret" => Some(Field::Result),
            "errno" => Some(Field::Errno),
            "epoch" => Some(Field::Epoch),
            "step" => Some(Field::Step),
            "image_idx" | "sample" => Some(Field::Sample),
            "size" | "image_size" => Some(Field::Size),
            "offset" => Some(Field::Offset),
            "count" | "length" | "len" if self.is_call => Some(Field::Size),
            "flags" | "whence" | "mode" | "cmd" | "operation" | "advice" if self.is_call => {
                Some(Field::Arg)
            }
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_have_the_names_of_the_calls_arguments() {
        let check = |call: &str, size: &str, offset: &str, arg: &str| {
            let layout = FieldNames::of(op_info(call), EventKind::Call);
            assert_eq!((layout.size, layout.offset, layout.arg), (size, offset, arg), "{call}");
        };
        check("pread64", "count", "offset", "arg");
        check("open", "mode", "offset", "flags");
        check("fread", "count", "offset", "size");
        check("rename", "size", "offset", "arg");
        check("mmap", "length", "offset", "flags");
        check("no_such_call", "count", "offset", "arg");
        assert!(FieldNames::of(op_info("fwrite"), EventKind::Call).counts_elements);
        assert!(!FieldNames::of(op_info("setvbuf"), EventKind::Call).counts_elements);
        let span = FieldNames::of(None, EventKind::Span);
        assert_eq!(span.field("count"), None);
        assert_eq!(span.field("image_size"), Some(Field::Size));
        assert_eq!(op_info("span"), None);
    }
}
