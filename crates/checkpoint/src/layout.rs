//! Which files every rank writes, and which tensors are in them.
//!
//! The formulas, the names and the order are DLIO's: see [`Layout::files`]. A layout is a pure
//! function of a model and a number of ranks; it holds neither tensors nor lists of them, so that of a
//! model of a trillion parameters costs nothing until a rank asks for its files.
//!
//! Two things differ from DLIO. Every layer has tensors of its own, where DLIO lets layers of explicit
//! lengths share theirs (which a container that recognizes them then stores once). And a file that
//! would hold no tensor is not written.

use crate::geometry::{Geometry, Place, check_shape, layers_of_stage};
use crate::layout_error::LayoutError;
use crate::{DType, FileSpec, Layers, Model, Optimizer, Share, StateKind, Tensor, Transformer};

/// Bytes of a checkpoint, so that sums of a few fit 64 bits.
const MOST_BYTES: u128 = 1 << 62;
/// Tensors of all layers together.
const MOST_TENSORS: u64 = 1 << 20;

/// What the ranks of a model write.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Layout {
    model: Model,
    geometry: Geometry,
}

/// Bytes of tensors by kind of state.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct StateBytes {
    /// Of the opaque tensor.
    pub blob: u64,
    /// Bytes of the layers.
    pub layers: u64,
    /// Bytes of the optimizer state.
    pub optimizer: u64,
}

impl StateBytes {
    /// Of all of it.
    pub fn total(&self) -> u64 {
        self.blob + self.layers + self.optimizer
    }
}

/// What a rank, or several together, write.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Amount {
    /// Number of files.
    pub files: u64,
    /// Bytes of the tensors in them.
    pub bytes: StateBytes,
}

/// Ranks that write equally much.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RankGroup {
    /// The first of them.
    pub first: u32,
    /// How many there are.
    pub ranks: u32,
    /// What each of them writes.
    pub each: Amount,
}

/// How a tensor of a layer is spread over the ranks of its stage.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Spread {
    /// Cut over the ranks that share the layer, then over the copies that ZeRO 3 cuts layers over.
    Everywhere,
    /// Cut over those copies; every rank that shares the layer has its own.
    OverCopies,
    /// Cut over the ranks that share the layer; every copy that writes has its own.
    OverTensorRanks,
}

/// A tensor of a layer, as long as it is on one rank.
struct Piece {
    len: u128,
    spread: Spread,
}

impl Layout {
    /// Lays a model out over the first `ranks` ranks of its world.
    ///
    /// # Errors
    /// The ranks do not fit the model, or there is nothing to save, or more than can be counted.
    pub fn new(model: Model, ranks: u32) -> Result<Self, LayoutError> {
        if let Layers::Transformer(shape) = &model.layers {
            check_shape(shape)?;
        }
        if let Optimizer::Derived(shape) = &model.optimizer {
            check_shape(shape)?;
        }
        if let Layers::Explicit { count, lengths } = &model.layers
            && count.saturating_mul(lengths.len() as u64) > MOST_TENSORS
        {
            let tensors = lengths.len() as u64;
            return Err(LayoutError::TooManyTensors {
                layers: *count,
                tensors,
                most: MOST_TENSORS,
            });
        }
        let geometry = Geometry::new(model.parallelism, &model.layers, ranks)?;
        let layout = Self { model, geometry };
        let world = geometry.world();
        match layout.world_bytes() {
            0 => Err(LayoutError::NothingToSave),
            bytes if bytes > MOST_BYTES => Err(LayoutError::TooManyBytes { ranks: world, bytes }),
            _ => Ok(layout),
        }
    }

    /// The positions of the ranks in the model.
    pub fn geometry(&self) -> &Geometry {
        &self.geometry
    }

    /// The model that is laid out.
    pub fn model(&self) -> &Model {
        &self.model
    }

    /// Parameters of the whole model, where they follow from a shape.
    pub fn parameters(&self) -> Option<u128> {
        match &self.model.layers {
            Layers::Transformer(shape) => Some(shape.parameters()),
            Layers::None | Layers::Explicit { .. } => None,
        }
    }

    /// The layers of a stage of the pipeline. Embedding (0), head and last norm belong to the first and
    /// the last stage of a transformer; explicit layers have none.
    pub fn layers_of(&self, stage: u32) -> std::ops::Range<u64> {
        let pipeline = self.geometry.parallelism().pipeline;
        let layers = self.model.layers.count().unwrap_or(0);
        let mut range = layers_of_stage(layers, pipeline, stage);
        if let Layers::Transformer(_) = self.model.layers {
            if stage == 0 {
                range.start = 0;
            }
            if stage + 1 == pipeline {
                range.end = layers + 3;
            }
        }
        range
    }

    /// The ranks that write a file.
    pub fn writers(&self) -> impl Iterator<Item = u32> + '_ {
        (0..self.geometry.ranks()).filter(|&rank| self.amount(rank).files > 0)
    }

    /// What a rank writes.
    pub fn amount(&self, rank: u32) -> Amount {
        let Place { stage, copy, .. } = self.geometry.place(rank);
        self.amount_at(stage, copy)
    }

    /// What all ranks of the job write.
    pub fn total(&self) -> Amount {
        let mut total = Amount::default();
        for peers in self.geometry.peers(u64::from(self.geometry.ranks())) {
            let each = self.amount_at(peers.stage, peers.copy);
            total.files += each.files * peers.count;
            total.bytes.blob += each.bytes.blob * peers.count;
            total.bytes.layers += each.bytes.layers * peers.count;
            total.bytes.optimizer += each.bytes.optimizer * peers.count;
        }
        total
    }

    /// The ranks by what they write, those that write equally much together, in the order of the first
    /// of each.
    pub fn groups(&self) -> Vec<RankGroup> {
        let mut groups: Vec<RankGroup> = Vec::new();
        let of_rank = |number: u64| u32::try_from(number).expect("a job numbers ranks in 32 bits");
        for peers in self.geometry.peers(u64::from(self.geometry.ranks())) {
            let each = self.amount_at(peers.stage, peers.copy);
            let ranks = of_rank(peers.count);
            match groups.iter_mut().find(|group| group.each == each) {
                Some(group) => group.ranks += ranks,
                None => groups.push(RankGroup { first: of_rank(peers.first), ranks, each }),
            }
        }
        groups
    }

    /// The files of a rank in the order in which it writes them: opaque tensor, layers, optimizer. None
    /// for a rank that writes nothing, or that there is not.
    pub fn files(&self, rank: u32) -> Vec<FileSpec> {
        let place = self.geometry.place(rank);
        if rank >= self.geometry.ranks() || !self.geometry.writes(place.copy) {
            return Vec::new();
        }
        let mut files = Vec::new();
        files.extend(self.blob_file(rank));
        if self.geometry.writes_layers(place.copy) {
            self.layer_files(place, &mut files);
        }
        files.extend(self.optimizer_file(rank, place));
        files
    }

    fn blob_file(&self, rank: u32) -> Option<FileSpec> {
        let len = self.model.blob_bytes.filter(|&len| len > 0)?;
        let share = Share {
            name: "model.blob".to_owned(),
            total: len * self.writers_of_world(),
            first: len * u64::from(rank),
        };
        let tensor = Tensor { path: vec!["a".to_owned()], dtype: DType::Int8, len, share };
        let stem = format!("model_states-{rank}");
        Some(FileSpec { stem, state: StateKind::Blob, tensors: vec![tensor] })
    }

    fn layer_files(&self, place: Place, files: &mut Vec<FileSpec>) {
        let Place { model, copy, stage, .. } = place;
        let parallelism = self.geometry.parallelism();
        let state = StateKind::Layers;
        let layers = self.layers_of(stage);
        let grouped = matches!(parallelism.zero_stage, 1 | 2);
        if grouped && parallelism.pipeline > 1 {
            files.extend(layers.filter_map(|layer| {
                let stem = format!("layer_{layer}-model_{model}_model_states");
                let tensors: Vec<_> = self.layer_tensors(layer, place, Vec::new()).collect();
                (!tensors.is_empty()).then_some(FileSpec { stem, state, tensors })
            }));
            return;
        }
        let stem = match grouped {
            true => format!("model_{model}_model_states"),
            false => format!("zero_pp_rank_{copy}_mp_rank_{model}_model_states"),
        };
        let tensors: Vec<_> = layers
            .flat_map(|layer| self.layer_tensors(layer, place, vec![layer.to_string()]))
            .collect();
        if !tensors.is_empty() {
            files.push(FileSpec { stem, state, tensors });
        }
    }

    /// The tensors of a layer, below the keys of `above`.
    fn layer_tensors(
        &self,
        layer: u64,
        place: Place,
        above: Vec<String>,
    ) -> impl Iterator<Item = Tensor> {
        let dtype = self.layer_dtype();
        let pieces = self.pieces(layer).into_iter().enumerate();
        pieces.filter(|(_, piece)| piece.len > 0).map(move |(index, piece)| {
            let len = counted(piece.len);
            let share = self.layer_share(format!("model.layers.{layer}.{index}"), &piece, place);
            let path = above.iter().cloned().chain([index.to_string()]).collect();
            Tensor { path, dtype, len, share }
        })
    }

    /// Copies that a rank has of its own are tensors of their own: their number is part of the name.
    fn layer_share(&self, mut name: String, piece: &Piece, place: Place) -> Share {
        let parallelism = self.geometry.parallelism();
        let parts = self.geometry.layer_parts();
        let part = if parts > 1 { place.copy } else { 0 };
        let (tensor, parts, part) =
            (u64::from(parallelism.tensor), u64::from(parts), u64::from(part));
        let (shards, shard) = match piece.spread {
            Spread::Everywhere => (tensor * parts, u64::from(place.tensor) * parts + part),
            Spread::OverCopies => {
                name.push_str(&format!(".tp{}", place.tensor));
                (parts, part)
            }
            Spread::OverTensorRanks => {
                if parallelism.zero_stage == 3 {
                    name.push_str(&format!(".dp{}", place.copy));
                }
                (tensor, u64::from(place.tensor))
            }
        };
        let len = counted(piece.len);
        Share { name, total: len * shards, first: len * shard }
    }

    fn optimizer_file(&self, rank: u32, place: Place) -> Option<FileSpec> {
        let tensors = match &self.model.optimizer {
            Optimizer::None => return None,
            Optimizer::Groups(groups) => group_tensors(groups, rank),
            Optimizer::Derived(shape) => self.derived_tensors(shape, rank, place),
        };
        let Place { model, copy, .. } = place;
        let stem = format!("zero_pp_rank_{copy}_mp_rank_{model}_optim_states");
        let state = StateKind::Optimizer;
        (!tensors.is_empty()).then_some(FileSpec { stem, state, tensors })
    }

    /// Three times a part of all parameters and a small tensor that every rank has of its own.
    fn derived_tensors(&self, shape: &Transformer, rank: u32, place: Place) -> Vec<Tensor> {
        let [part, small] = self.optimizer_lengths(shape).map(counted);
        if part == 0 {
            return Vec::new();
        }
        let shards = counted(self.optimizer_parts());
        let shard = u64::from(place.copy) * self.geometry.model_ranks() + place.model;
        let tensor = |index: u64| {
            let cut = index.is_multiple_of(2);
            let (len, share) = match cut {
                true => {
                    let name = format!("optimizer.{index}");
                    (part, Share { name, total: part * shards, first: part * shard })
                }
                false => (small, own_share(format!("optimizer.{index}"), rank, small)),
            };
            Tensor { path: vec![index.to_string()], dtype: self.model.optimizer_dtype, len, share }
        };
        (0..6).map(tensor).collect()
    }

    /// Lengths of the two kinds of derived optimizer tensors.
    fn optimizer_lengths(&self, shape: &Transformer) -> [u128; 2] {
        [shape.parameters() / self.optimizer_parts(), 5 * u128::from(shape.hidden)]
    }

    /// Ranks that all parameters are cut over for the optimizer.
    fn optimizer_parts(&self) -> u128 {
        let copies =
            if self.geometry.parallelism().zero_stage > 0 { self.geometry.copies() } else { 1 };
        u128::from(self.geometry.model_ranks()) * u128::from(copies)
    }

    /// Ranks of the world that write.
    fn writers_of_world(&self) -> u64 {
        let world = self.geometry.world();
        match self.geometry.parallelism().zero_stage {
            0 => world.min(self.geometry.model_ranks()),
            _ => world,
        }
    }

    /// The tensors of a layer, if it is on one rank.
    fn pieces(&self, layer: u64) -> Vec<Piece> {
        let parallelism = self.geometry.parallelism();
        let tensor = u128::from(parallelism.tensor);
        let parts = u128::from(self.geometry.layer_parts());
        match &self.model.layers {
            Layers::None => Vec::new(),
            Layers::Explicit { lengths, .. } => lengths
                .iter()
                .map(|&len| u128::from(len) / tensor)
                .map(|len| Piece { len, spread: Spread::OverTensorRanks })
                .collect(),
            Layers::Transformer(shape) => {
                let matrix =
                    |len: u128| Piece { len: len / tensor / parts, spread: Spread::Everywhere };
                let norm =
                    || Piece { len: u128::from(shape.hidden) / parts, spread: Spread::OverCopies };
                match layer {
                    0 => vec![matrix(shape.embedding())],
                    layer if layer == shape.layers + 1 => vec![matrix(shape.embedding())],
                    layer if layer > shape.layers => vec![norm()],
                    _ => vec![
                        norm(),
                        matrix(shape.attention()),
                        matrix(shape.dense()),
                        norm(),
                        matrix(shape.ffn_in()),
                        matrix(shape.ffn_out()),
                    ],
                }
            }
        }
    }

    fn layer_dtype(&self) -> DType {
        match self.model.layers {
            Layers::Transformer(_) => self.model.model_dtype,
            Layers::None | Layers::Explicit { .. } => DType::Int8,
        }
    }
}

/// Two tensors for each group, and one as long as all of them.
fn group_tensors(groups: &[u64], rank: u32) -> Vec<Tensor> {
    let tensor = |keys: &[&str], len: u64| Tensor {
        path: keys.iter().map(|&key| key.to_owned()).collect(),
        dtype: DType::Int8,
        len,
        share: own_share(format!("optimizer.{}", keys.join(".")), rank, len),
    };
    let mut tensors = Vec::new();
    for (index, &len) in groups.iter().enumerate().filter(|(_, len)| **len > 0) {
        let index = index.to_string();
        tensors.push(tensor(&[&index, "a"], len));
        tensors.push(tensor(&[&index, "b"], len));
    }
    if !tensors.is_empty() {
        tensors.push(tensor(&["combined"], groups.iter().sum()));
    }
    tensors
}

/// The place of a tensor that no other rank has a part of.
fn own_share(name: String, rank: u32, len: u64) -> Share {
    Share { name: format!("{name}.rank{rank}"), total: len, first: 0 }
}

/// A number that [`Layout::new`] found to be small enough.
fn counted(number: u128) -> u64 {
    u64::try_from(number).expect("a layout has fewer than 2^62 bytes")
}

mod weight;

#[cfg(test)]
mod tests;
