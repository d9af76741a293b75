//! What the ranks of a workload save, known before anything is written.

use feedline_checkpoint::{
    DType, Layers, Layout, LayoutError, Model, Optimizer, Parallelism, Transformer,
};
use feedline_workload::{CheckpointMode, Datatype, SaveMode, StateSource, Workload};
use serde_json::{Value, json};

/// Files whose names are shown.
const NAMES_SHOWN: usize = 3;

/// A checkpoint of a workload: who saves what, and the memory that takes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CheckpointPlan {
    layout: Layout,
    saving: Saving,
}

/// The settings that decide about memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Saving {
    mode: SaveMode,
    saves_in_flight: u64,
    chunk_a_stream: u64,
    pool_size: Option<u64>,
    state: StateSource,
}

/// Memory of the rank that needs most, and of all together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Memory {
    /// Buffers of one rank.
    pub rank_buffer_bytes: u64,
    /// Tensors that one rank holds.
    pub rank_state_bytes: u64,
    /// Both, of all ranks that save.
    pub all_bytes: u128,
}

impl CheckpointPlan {
    /// Plans for a workload that has passed [`feedline_workload::check_checkpoint`].
    ///
    /// # Errors
    /// The ranks do not fit the model, or there is nothing to save, or more than can be counted.
    pub fn new(workload: &Workload, ranks: u32) -> Result<Self, LayoutError> {
        let checkpoint = &workload.checkpoint;
        let saving = Saving {
            mode: checkpoint.save_mode,
            saves_in_flight: u64::from(checkpoint.saves_in_flight),
            chunk_a_stream: u64::from(checkpoint.streams) * checkpoint.chunk_size,
            pool_size: checkpoint.pool_size,
            state: checkpoint.state,
        };
        Ok(Self { layout: Layout::new(model(workload), ranks)?, saving })
    }

    /// Which rank saves what.
    pub fn layout(&self) -> &Layout {
        &self.layout
    }

    /// The same, without the rest of the plan.
    pub(crate) fn into_layout(self) -> Layout {
        self.layout
    }

    /// Bytes of buffers for a rank that saves this many bytes.
    pub fn buffer_bytes(&self, state_bytes: u64) -> u64 {
        let Saving { mode, saves_in_flight, chunk_a_stream, pool_size, .. } = self.saving;
        pool_size.unwrap_or(match mode {
            SaveMode::Sync => chunk_a_stream.min(state_bytes),
            SaveMode::Async => state_bytes.saturating_mul(saves_in_flight),
        })
    }

    /// What the ranks need beside the program itself.
    pub fn memory(&self) -> Memory {
        let held = |bytes| if self.saving.state == StateSource::Resident { bytes } else { 0 };
        let mut memory = Memory { rank_buffer_bytes: 0, rank_state_bytes: 0, all_bytes: 0 };
        for group in self.layout.groups().iter().filter(|group| group.each.files > 0) {
            let bytes = group.each.bytes.total();
            let (buffers, state) = (self.buffer_bytes(bytes), held(bytes));
            memory.rank_buffer_bytes = memory.rank_buffer_bytes.max(buffers);
            memory.rank_state_bytes = memory.rank_state_bytes.max(state);
            let each = u128::from(buffers) + u128::from(state);
            memory.all_bytes += each * u128::from(group.ranks);
        }
        memory
    }

    /// Ranks that save anything.
    pub fn writers(&self) -> u64 {
        let groups = self.layout.groups();
        let writers = groups.iter().filter(|group| group.each.files > 0);
        writers.map(|group| u64::from(group.ranks)).sum()
    }

    /// The first names of rank 0's files, without their ending, and how many it has.
    pub fn names(&self) -> (Vec<String>, u64) {
        let stems = self.layout.files(0).into_iter().map(|file| file.stem);
        (stems.take(NAMES_SHOWN).collect(), self.layout.amount(0).files)
    }

    /// The plan as one object.
    pub fn to_json(&self, workload: &str) -> Value {
        let (geometry, total) = (self.layout.geometry(), self.layout.total());
        let parallelism = geometry.parallelism();
        let (names, memory) = (self.names().0, self.memory());
        let groups = self.layout.groups();
        let groups = groups.iter().map(|group| {
            json!({
                "first_rank": group.first,
                "ranks": group.ranks,
                "files_per_rank": group.each.files,
                "bytes_per_rank": bytes_json(&group.each.bytes),
            })
        });
        json!({
            "workload": workload,
            "ranks": geometry.ranks(),
            "world_ranks": geometry.world(),
            "writers": self.writers(),
            "parallelism": {
                "tensor": parallelism.tensor,
                "pipeline": parallelism.pipeline,
                "data": geometry.copies(),
                "zero_stage": parallelism.zero_stage,
            },
            "parameters": self.layout.parameters().and_then(|count| u64::try_from(count).ok()),
            "files": total.files,
            "bytes": bytes_json(&total.bytes),
            "groups": groups.collect::<Vec<_>>(),
            "rank_0_files": names,
            "memory": {
                "buffer_bytes_per_rank": memory.rank_buffer_bytes,
                "state_bytes_per_rank": memory.rank_state_bytes,
                "bytes": u64::try_from(memory.all_bytes).unwrap_or(u64::MAX),
            },
        })
    }
}

fn bytes_json(bytes: &feedline_checkpoint::StateBytes) -> Value {
    json!({
        "blob": bytes.blob,
        "layers": bytes.layers,
        "optimizer": bytes.optimizer,
        "total": bytes.total(),
    })
}

/// The model as its checkpoint sees it, by DLIO's rules of which keys go before which.
fn model(workload: &Workload) -> Model {
    let model = &workload.model;
    let shape = &model.transformer;
    let transformer = model.num_layers.map(|layers| Transformer {
        layers,
        vocab: shape.vocab_size,
        hidden: shape.hidden_size,
        ffn: shape.ffn_hidden_size,
        heads: shape.num_attention_heads,
        kv_heads: shape.num_kv_heads,
    });
    let layers = match transformer {
        None => Layers::None,
        Some(shape) if model.layer_parameters.is_empty() => Layers::Transformer(shape),
        Some(shape) => {
            Layers::Explicit { count: shape.layers, lengths: model.layer_parameters.clone() }
        }
    };
    let optimizer = match transformer {
        _ if !model.optimization_groups.is_empty() => {
            Optimizer::Groups(model.optimization_groups.clone())
        }
        Some(shape) => Optimizer::Derived(shape),
        None => Optimizer::None,
    };
    let parallelism = &model.parallelism;
    let subset = workload.checkpoint.mode == CheckpointMode::Subset;
    Model {
        blob_bytes: (!model.is_transformer()).then_some(model.model_size_bytes),
        layers,
        optimizer,
        model_dtype: dtype(model.model_datatype),
        optimizer_dtype: dtype(model.optimizer_datatype),
        parallelism: Parallelism {
            tensor: parallelism.tensor,
            pipeline: parallelism.pipeline,
            data: parallelism.data.filter(|_| subset),
            zero_stage: parallelism.zero_stage,
        },
    }
}

fn dtype(datatype: Datatype) -> DType {
    match datatype {
        Datatype::Int8 => DType::Int8,
        Datatype::Uint8 => DType::UInt8,
        Datatype::Fp16 => DType::Float16,
        Datatype::Bf16 => DType::BFloat16,
        Datatype::Fp32 => DType::Float32,
        Datatype::Fp64 => DType::Float64,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use feedline_workload::{BUILT_IN, Override, Source, compose, presets, resolve};

    fn shipped(name: &str, overrides: &[&str]) -> Workload {
        let text = presets::find(name).unwrap().yaml;
        let overrides: Vec<_> =
            overrides.iter().map(|text| Override::parse_friendly(text).unwrap()).collect();
        let source = Source { name, origin: BUILT_IN, text };
        resolve(&compose(source, &overrides, &|_| String::new()).unwrap()).unwrap().workload
    }

    #[test]
    fn shipped_workloads_have_the_files_and_bytes_of_dlio() {
        let rows = [
            ("llama_7b", 9, 94_339_784_704),
            ("llama_7b_zero3", 16, 94_339_784_704),
            ("llama_8b_zero3", 16, 112_425_623_552),
            ("llama_70b", 728, 978_406_572_032),
            ("llama_70b_zero3", 128, 978_406_572_032),
            ("llama_405b", 1544, 5_682_508_791_808),
            ("llama_1t", 2072, 16_564_174_094_592),
            ("megatron_deepspeed_LLNL", 224, 190_504_755_904),
        ];
        for (name, files, bytes) in rows {
            let ranks = presets::find(name).unwrap().ranks.unwrap();
            let workload = shipped(name, &[]);
            assert_eq!(feedline_workload::check_checkpoint(&workload, ranks), Ok(()), "{name}");
            let total = CheckpointPlan::new(&workload, ranks).unwrap().layout().total();
            assert_eq!((total.files, total.bytes.total()), (files, bytes), "{name}");
        }
        let unet = CheckpointPlan::new(&shipped("unet3d_h100", &[]), 4).unwrap();
        let total = unet.layout().total();
        assert_eq!(
            (total.files, total.bytes.blob, total.bytes.total()),
            (1, 499_153_191, 499_153_191)
        );
    }

    #[test]
    fn keys_go_before_one_another_as_in_dlio() {
        let plan = |overrides: &[&str]| {
            let bytes = CheckpointPlan::new(&shipped("llama_7b", overrides), 1).unwrap();
            let bytes = bytes.layout().total().bytes;
            [bytes.blob, bytes.layers, bytes.optimizer]
        };
        let small = ["++model.num_layers=2", "++model.transformer.hidden_size=4"];
        let derived = plan(&small)[2];
        let with = |more: &[&'static str]| plan(&[&small[..], more].concat());
        assert_eq!(with(&["++model.layer_parameters=[7]"]), [0, 14, derived]);
        assert_eq!(
            with(&["++model.layer_parameters=[7]", "++model.optimization_groups=[5]"]),
            [0, 14, 15]
        );
        assert_eq!(with(&["++model.type=other", "++model.layer_parameters=[7]"])[0], 10_240);
        let groups = ["++model.num_layers=-1", "++model.optimization_groups=[5]"];
        assert_eq!(plan(&[&groups[..], &["++model.layer_parameters=[7]"]].concat()), [0, 0, 15]);
        // A transformer without layers has nothing at all.
        let nothing = CheckpointPlan::new(&shipped("llama_7b", &["++model.num_layers=-1"]), 1);
        assert_eq!(nothing, Err(LayoutError::NothingToSave));
        // Copies of the model count only in a subset.
        let data = shipped(
            "llama_8b_zero3",
            &["++model.parallelism.data=1024", "++checkpoint.mode=subset"],
        );
        let total = CheckpointPlan::new(&data, 2).unwrap().layout().total();
        assert_eq!((total.files, total.bytes.layers), (4, 2 * 15_684_104));
    }

    #[test]
    fn memory_follows_from_the_way_of_saving() {
        let memory = |overrides: &[&str]| {
            CheckpointPlan::new(&shipped("llama_405b", overrides), 512).unwrap().memory()
        };
        let total = 5_682_508_791_808;
        let largest = 13_226_441_600;
        let expected = |buffers, state, all| Memory {
            rank_buffer_bytes: buffers,
            rank_state_bytes: state,
            all_bytes: all,
        };
        assert_eq!(memory(&[]), expected(32 << 20, 0, 512 << 25));
        assert_eq!(memory(&["++checkpoint.save_mode=async"]), expected(largest, 0, total));
        assert_eq!(
            memory(&["++checkpoint.save_mode=async", "++checkpoint.saves_in_flight=2"]),
            expected(2 * largest, 0, 2 * total)
        );
        assert_eq!(
            memory(&["++checkpoint.state=resident", "++checkpoint.pool_size=33554432"]),
            expected(1 << 25, largest, total + (512 << 25))
        );
    }
}
