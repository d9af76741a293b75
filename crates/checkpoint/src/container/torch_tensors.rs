//! The tensors in an archive by `torch.save`: what its pickle says about them.
//!
//! Dictionaries, lists and tuples are looked through, other objects are not. A tensor of a kind that
//! has no single place in the file (sparse, transposed, of another type) is an error, not left out.

use std::collections::HashMap;

use super::Found;
use super::directory::Directory;
use super::stretch::Stretch;
use super::torch::storage_class;
use super::unpickle::{Node, Pickle, Ref};
use crate::{DType, Result};

/// The first read of a file, from its end: the directory of some 900 tensors is in it.
const TAIL_BYTES: u64 = 64 << 10;
/// Bytes that may be between the pickle and the byte order for both to be read at once.
const GAP_BYTES: u64 = 4096;
/// Dictionaries in one another, at most.
const DEPTH_MAX: usize = 64;
/// As many axes as torch knows.
const AXES_MAX: usize = 64;

const TENSOR: (&str, &str) = ("torch._utils", "_rebuild_tensor_v2");
const PARAMETERS: [&str; 2] = ["_rebuild_parameter", "_rebuild_parameter_with_state"];

/// The tensors of the archive that the stretch consists of, in the order of their places.
pub(super) fn list(stretch: &mut Stretch<'_>) -> Result<Vec<Found>> {
    let directory = Directory::read(stretch, TAIL_BYTES)?;
    if directory.archive_at != 0 {
        return Err(stretch.damaged("data before the archive", 0));
    }
    list_archive(stretch, &directory)
}

/// The tensors of an archive whose directory was read, in the order of their places.
pub(super) fn list_archive(stretch: &mut Stretch<'_>, directory: &Directory) -> Result<Vec<Found>> {
    let members: HashMap<&str, usize> =
        directory.members.iter().enumerate().map(|(at, it)| (it.name.as_str(), at)).collect();
    let pickled = directory.members.iter().position(|member| {
        member.name.strip_suffix("/data.pkl").is_some_and(|root| !root.contains('/'))
    });
    let pickled = pickled.ok_or_else(|| stretch.damaged("an archive without data.pkl", 0))?;
    let root = directory.members[pickled].name.trim_end_matches("data.pkl");
    let byteorder = members.get(format!("{root}byteorder").as_str()).copied();
    let (bytes, pickle_at) = read_pickle(stretch, directory, pickled, byteorder)?;
    let pickle = Pickle::read(&bytes);
    let pickle =
        pickle.map_err(|broken| stretch.damaged(broken.what, pickle_at + broken.at as u64))?;
    let mut walk = Walk {
        pickle: &pickle,
        directory,
        members: &members,
        root,
        pickle_at,
        entries_left: 4 * pickle.values() + 1024,
        path_bytes_left: 8 * bytes.len() + (64 << 10),
        path: Vec::new(),
        found: Vec::new(),
    };
    walk.visit(stretch, pickle.root)?;
    let mut found = walk.found;
    found.sort_by_key(|tensor| tensor.at);
    Ok(found)
}

/// The pickle and where it begins in the stretch; refuses files of big-endian machines.
fn read_pickle(
    stretch: &mut Stretch<'_>,
    directory: &Directory,
    pickled: usize,
    byteorder: Option<usize>,
) -> Result<(Vec<u8>, u64)> {
    let at = directory.data_at(stretch, pickled)?;
    let size = directory.members[pickled].size;
    // Files from before torch 2.1 do not name their byte order; those machines were little-endian.
    let Some(byteorder) = byteorder else { return Ok((stretch.read(at, size, "pickle")?, at)) };
    let order_at = directory.data_at(stretch, byteorder)?;
    let order_len = directory.members[byteorder].size.min(64);
    let near = matches!(order_at.checked_sub(at + size), Some(0..GAP_BYTES));
    let len = if near { order_at + order_len - at } else { size };
    let mut bytes = stretch.read(at, len, "pickle")?;
    let order = match near {
        true => bytes.split_off((order_at - at) as usize),
        false => stretch.read(order_at, order_len, "byte order")?,
    };
    if order != b"little" {
        return Err(stretch.unsupported("elements that are not little-endian"));
    }
    bytes.truncate(size as usize);
    Ok((bytes, at))
}

/// A way through a pickle's dictionaries.
struct Walk<'a, 'p> {
    pickle: &'a Pickle<'p>,
    directory: &'a Directory,
    members: &'a HashMap<&'a str, usize>,
    /// What the names of all members begin with.
    root: &'a str,
    pickle_at: u64,
    /// Values that contain one another can be walked through for ever, so there is an end to it.
    entries_left: usize,
    path_bytes_left: usize,
    path: Vec<String>,
    found: Vec<Found>,
}

impl Walk<'_, '_> {
    fn visit(&mut self, stretch: &mut Stretch<'_>, value: Ref) -> Result<()> {
        self.entries_left = match self.entries_left.checked_sub(1) {
            Some(left) if self.path.len() <= DEPTH_MAX => left,
            _ => return Err(stretch.unsupported("dictionaries that contain each other")),
        };
        let pickle = self.pickle;
        if let Some(items) = pickle.items(value) {
            for &(key, item) in items {
                let key = match pickle.node(key) {
                    Node::Text { .. } => pickle.text(key).map(str::to_owned),
                    Node::Int(number) => Some(number.to_string()),
                    _ => None,
                };
                let Some(key) = key else {
                    return Err(stretch.unsupported("a key that is neither a string nor a number"));
                };
                self.descend(stretch, key, item)?;
            }
        } else if let Some(elements) = pickle.elements(value) {
            for (number, &element) in elements.iter().enumerate() {
                self.descend(stretch, number.to_string(), element)?;
            }
        } else if let Some(args) = self.tensor(stretch, value)? {
            let found = self.place(stretch, args)?;
            let path_bytes: usize = self.path.iter().map(String::len).sum();
            match self.path_bytes_left.checked_sub(path_bytes) {
                Some(left) => self.path_bytes_left = left,
                None => return Err(stretch.unsupported("names longer than the whole pickle")),
            }
            self.found.push(found);
        }
        Ok(())
    }

    fn descend(&mut self, stretch: &mut Stretch<'_>, key: String, value: Ref) -> Result<()> {
        self.path.push(key);
        self.visit(stretch, value)?;
        self.path.pop();
        Ok(())
    }

    /// The arguments from which torch would make the tensor, if the value is one.
    fn tensor(&self, stretch: &Stretch<'_>, value: Ref) -> Result<Option<&[Ref]>> {
        let pickle = self.pickle;
        let Some(object) = pickle.object(value) else { return Ok(None) };
        if let Some(args) = pickle.made_by(value, TENSOR) {
            return Ok(Some(args));
        }
        match pickle.global(object.class) {
            Some(("torch._utils", name)) if PARAMETERS.contains(&name) => {
                let inner = pickle.elements(object.args).and_then(|args| args.first());
                Ok(inner.and_then(|&inner| pickle.made_by(inner, TENSOR)))
            }
            Some(("torch._utils", name)) if name.starts_with("_rebuild_") => {
                Err(stretch.unsupported(format!("a tensor made by {name}")))
            }
            _ => Ok(None),
        }
    }

    fn place(&self, stretch: &mut Stretch<'_>, args: &[Ref]) -> Result<Found> {
        let damaged = stretch.damaged("an invalid tensor in the pickle", self.pickle_at);
        let Some(tensor) = Described::of(self.pickle, args) else { return Err(damaged) };
        let dtype = DType::ALL.into_iter().find(|it| storage_class(*it) == tensor.class);
        let Some(dtype) = dtype else {
            return Err(stretch.unsupported(format!("a {}", tensor.class)));
        };
        let Some(elements) = tensor.elements() else { return Err(damaged) };
        if !tensor.in_a_row() {
            let name = self.path.join(".");
            return Err(stretch.unsupported(format!("tensor {name:?}, which is not contiguous")));
        }
        let member = format!("{}data/{}", self.root, tensor.storage);
        let Some(&member) = self.members.get(member.as_str()) else { return Err(damaged) };
        let size = dtype.size_bytes();
        let begin = tensor.offset.checked_mul(size);
        let end = elements.checked_mul(size).and_then(|bytes| bytes.checked_add(begin?));
        match (begin, end) {
            (Some(begin), Some(end)) if end <= self.directory.members[member].size => {
                let at = self.directory.data_at(stretch, member)? + begin;
                let at = stretch.outside(at);
                Ok(Found { path: self.path.clone(), dtype, shape: tensor.shape, at })
            }
            _ => Err(damaged),
        }
    }
}

/// A tensor as the pickle describes it.
struct Described<'a> {
    class: &'a str,
    storage: &'a str,
    /// Elements of the storage before it.
    offset: u64,
    shape: Vec<u64>,
    strides: Vec<u64>,
}

impl<'a> Described<'a> {
    fn of(pickle: &Pickle<'a>, args: &[Ref]) -> Option<Described<'a>> {
        let [storage, offset, shape, strides, ..] = *args else { return None };
        let Node::Persistent(name) = pickle.node(storage) else { return None };
        let [kind, class, key, ..] = *pickle.elements(name)? else { return None };
        if pickle.text(kind)? != "storage" {
            return None;
        }
        let (_, class) = pickle.global(class)?;
        let offset = pickle.unsigned(offset)?;
        let (shape, strides) = (axes(pickle, shape)?, axes(pickle, strides)?);
        let storage = pickle.text(key)?;
        let alike = shape.len() == strides.len();
        alike.then_some(Described { class, storage, offset, shape, strides })
    }

    fn elements(&self) -> Option<u64> {
        self.shape.iter().try_fold(1_u64, |product, &len| product.checked_mul(len))
    }

    fn in_a_row(&self) -> bool {
        let mut expected = 1;
        self.shape.contains(&0)
            || self.shape.iter().zip(&self.strides).rev().all(|(&len, &stride)| {
                let fits = len == 1 || stride == expected;
                expected *= len;
                fits
            })
    }
}

/// The numbers in a tuple.
pub(super) fn axes(pickle: &Pickle<'_>, value: Ref) -> Option<Vec<u64>> {
    let elements = pickle.elements(value).filter(|axes| axes.len() <= AXES_MAX)?;
    elements.iter().map(|&axis| pickle.unsigned(axis)).collect()
}
