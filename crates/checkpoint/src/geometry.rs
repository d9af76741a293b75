//! Which part of a model a rank holds.
//!
//! Ranks are dealt as in DLIO: the ranks that share a layer are neighbors, then come the stages of
//! the pipeline, then the copies of the model. A job may be the first few ranks of a larger world;
//! everything that depends on the number of copies then depends on that of the world.

use std::ops::Range;

use crate::layout_error::LayoutError;
use crate::{Layers, Parallelism, Transformer};

/// Layers of a model, and ranks that share a layer or a copy.
const MOST_ALONG_AN_AXIS: u64 = 1 << 16;
/// Widths and counts of a transformer. All that is made of them fits 128 bits.
const MOST_OF_A_SHAPE: u64 = 1 << 24;

/// The ranks of a job in the world of a model.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Geometry {
    ranks: u32,
    parallelism: Parallelism,
    copies: u32,
}

/// The position of a rank in the world of a model.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Place {
    /// Which of the ranks that share a layer.
    pub tensor: u32,
    /// Which stage of the pipeline.
    pub stage: u32,
    /// Which rank of its copy of the model.
    pub model: u64,
    /// Which copy of the model.
    pub copy: u32,
}

/// Ranks that hold equally much: those of one stage, in the first copy of the model or in later ones.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Peers {
    pub(crate) first: u64,
    pub(crate) count: u64,
    pub(crate) stage: u32,
    pub(crate) copy: u32,
}

impl Geometry {
    /// Without layers the ranks need not fill whole copies of the model.
    pub(crate) fn new(
        parallelism: Parallelism,
        layers: &Layers,
        ranks: u32,
    ) -> Result<Self, LayoutError> {
        check_parallelism(&parallelism)?;
        in_range("the number of ranks", (1, u64::from(u32::MAX)), u64::from(ranks))?;
        if let Some(layers) = layers.count() {
            check_fit(layers, &parallelism, ranks)?;
        }
        let world = parallelism.data.map(|data| u64::from(data) * parallelism.model_ranks());
        if let Some(world) = world
            && world < u64::from(ranks)
        {
            return Err(LayoutError::SubsetTooSmall { ranks, world });
        }
        let copies = u64::from(ranks).div_ceil(parallelism.model_ranks());
        let copies = u32::try_from(copies).expect("no more copies than ranks");
        Ok(Self { ranks, parallelism, copies: parallelism.data.unwrap_or(copies) })
    }

    /// Ranks of the job.
    pub fn ranks(&self) -> u32 {
        self.ranks
    }

    /// Ranks of the world: those of the job, unless it is a subset.
    pub fn world(&self) -> u64 {
        match self.parallelism.data {
            None => u64::from(self.ranks),
            Some(data) => u64::from(data) * self.model_ranks(),
        }
    }

    /// How the model is spread over the world.
    pub fn parallelism(&self) -> &Parallelism {
        &self.parallelism
    }

    /// Copies of the model in the world.
    pub fn copies(&self) -> u32 {
        self.copies
    }

    /// Ranks that hold one copy of the model.
    pub fn model_ranks(&self) -> u64 {
        self.parallelism.model_ranks()
    }

    /// The position of a rank.
    pub fn place(&self, rank: u32) -> Place {
        let Parallelism { tensor, pipeline, .. } = self.parallelism;
        let (rank_of_model, copy) =
            (u64::from(rank) % self.model_ranks(), u64::from(rank) / self.model_ranks());
        Place {
            tensor: rank % tensor,
            stage: (rank / tensor) % pipeline,
            model: rank_of_model,
            copy: u32::try_from(copy).expect("a copy has at least one rank"),
        }
    }

    /// Copies that the layers of a model are cut over.
    pub(crate) fn layer_parts(&self) -> u32 {
        if self.parallelism.zero_stage == 3 { self.copies } else { 1 }
    }

    /// Whether ranks of this copy of the model write at all.
    pub(crate) fn writes(&self, copy: u32) -> bool {
        copy == 0 || self.parallelism.zero_stage > 0
    }

    /// Whether ranks of this copy of the model write layers.
    pub(crate) fn writes_layers(&self, copy: u32) -> bool {
        copy == 0 || self.parallelism.zero_stage == 3
    }

    /// The first `ranks` ranks by what they hold, in the order of their first ranks.
    pub(crate) fn peers(&self, ranks: u64) -> Vec<Peers> {
        let tensor = u64::from(self.parallelism.tensor);
        let (full, rest) = (ranks / self.model_ranks(), ranks % self.model_ranks());
        let mut found = Vec::new();
        let mut behind = Vec::new();
        for stage in 0..self.parallelism.pipeline {
            let before = u64::from(stage) * tensor;
            let of_first = ranks.saturating_sub(before).min(tensor);
            let of_all = full * tensor + rest.saturating_sub(before).min(tensor);
            let first = Peers { first: before, count: of_first, stage, copy: 0 };
            let others = of_all - of_first;
            let other =
                Peers { first: before + self.model_ranks(), count: others, copy: 1, ..first };
            found.extend((of_first > 0).then_some(first));
            behind.extend((others > 0).then_some(other));
        }
        found.append(&mut behind);
        found
    }
}

/// The transformer or explicit layers, from 1 on, of a stage: the first ones have one more when they
/// cannot be dealt evenly.
pub(crate) fn layers_of_stage(layers: u64, pipeline: u32, stage: u32) -> Range<u64> {
    let (pipeline, stage) = (u64::from(pipeline), u64::from(stage));
    let (each, more) = (layers / pipeline, layers % pipeline);
    let first = 1 + stage * each + stage.min(more);
    first..first + each + u64::from(stage < more)
}

/// Checks one number of the workload.
fn in_range(key: &'static str, (least, most): (u64, u64), found: u64) -> Result<(), LayoutError> {
    match (least..=most).contains(&found) {
        true => Ok(()),
        false => Err(LayoutError::OutOfRange { key, least, most, found }),
    }
}

/// Checks what must hold whatever the model is.
fn check_parallelism(parallelism: &Parallelism) -> Result<(), LayoutError> {
    let axis = (1, MOST_ALONG_AN_AXIS);
    in_range("`model.parallelism.tensor`", axis, u64::from(parallelism.tensor))?;
    in_range("`model.parallelism.pipeline`", axis, u64::from(parallelism.pipeline))?;
    if let Some(data) = parallelism.data {
        in_range("`model.parallelism.data`", (1, u64::from(u32::MAX)), u64::from(data))?;
    }
    in_range("`model.parallelism.zero_stage`", (0, 3), u64::from(parallelism.zero_stage))
}

/// Checks how the layers fall on the ranks.
fn check_fit(layers: u64, parallelism: &Parallelism, ranks: u32) -> Result<(), LayoutError> {
    in_range("`model.num_layers`", (1, MOST_ALONG_AN_AXIS), layers)?;
    let pipeline = parallelism.pipeline;
    if layers < u64::from(pipeline) {
        return Err(LayoutError::LayersFewerThanStages { layers, pipeline });
    }
    if pipeline > 1 && parallelism.zero_stage == 3 {
        return Err(LayoutError::ZeroWithPipeline { pipeline });
    }
    let model_ranks = parallelism.model_ranks();
    if parallelism.data.is_none() && !u64::from(ranks).is_multiple_of(model_ranks) {
        return Err(LayoutError::RanksNotMultiple { ranks, model_ranks });
    }
    Ok(())
}

/// Checks that what is made of a shape can be counted.
pub(crate) fn check_shape(shape: &Transformer) -> Result<(), LayoutError> {
    in_range("`model.num_layers`", (1, MOST_ALONG_AN_AXIS), shape.layers)?;
    let keys = [
        ("`model.transformer.vocab_size`", shape.vocab),
        ("`model.transformer.hidden_size`", shape.hidden),
        ("`model.transformer.ffn_hidden_size`", shape.ffn),
        ("`model.transformer.num_attention_heads`", shape.heads),
        ("`model.transformer.num_kv_heads`", shape.kv_heads),
    ];
    keys.into_iter().try_for_each(|(key, found)| in_range(key, (1, MOST_OF_A_SHAPE), found))
}
