//! How much the ranks of a layout write, without making the list of their tensors.
//!
//! Before [`Layout::new`] has found that a layout can be counted, its numbers may be anything up to the
//! product of the largest that a workload can hold; all of them fit 128 bits.

use super::{Amount, Layout, StateBytes, counted};
use crate::Optimizer;

/// [`Amount`] in numbers that cannot overflow.
struct Weight {
    files: u64,
    bytes: [u128; 3],
}

impl Layout {
    /// What the ranks of a stage write in one copy of the model. From the second on all copies are
    /// equal.
    pub(super) fn amount_at(&self, stage: u32, copy: u32) -> Amount {
        let weight = self.weigh(stage, copy);
        let [blob, layers, optimizer] = weight.bytes.map(counted);
        Amount { files: weight.files, bytes: StateBytes { blob, layers, optimizer } }
    }

    /// The same before it is known that it can be counted.
    fn weigh(&self, stage: u32, copy: u32) -> Weight {
        let mut weight = Weight { files: 0, bytes: [0; 3] };
        if !self.geometry.writes(copy) {
            return weight;
        }
        let blob = u128::from(self.model.blob_bytes.unwrap_or(0));
        let optimizer = self.optimizer_bytes();
        weight.files = u64::from(blob > 0) + u64::from(optimizer > 0);
        if self.geometry.writes_layers(copy) {
            let (files, layers) = self.weigh_layers(stage);
            weight.files += files;
            weight.bytes[1] = layers;
        }
        weight.bytes[0] = blob;
        weight.bytes[2] = optimizer;
        weight
    }

    fn weigh_layers(&self, stage: u32) -> (u64, u128) {
        let parallelism = self.geometry.parallelism();
        let size = u128::from(self.layer_dtype().size_bytes());
        let bytes_of =
            |layer| self.pieces(layer).iter().map(|piece| piece.len * size).sum::<u128>();
        let (mut filled, mut bytes) = (0, 0);
        for layer in self.layers_of(stage) {
            let of_layer = bytes_of(layer);
            filled += u64::from(of_layer > 0);
            bytes += of_layer;
        }
        let a_file_each = matches!(parallelism.zero_stage, 1 | 2) && parallelism.pipeline > 1;
        (if a_file_each { filled } else { filled.min(1) }, bytes)
    }

    fn optimizer_bytes(&self) -> u128 {
        match &self.model.optimizer {
            Optimizer::None => 0,
            Optimizer::Groups(groups) => {
                3 * groups.iter().map(|&len| u128::from(len)).sum::<u128>()
            }
            Optimizer::Derived(shape) => match self.optimizer_lengths(shape) {
                [0, _] => 0,
                [part, small] => {
                    3 * (part + small) * u128::from(self.model.optimizer_dtype.size_bytes())
                }
            },
        }
    }

    /// Bytes that all ranks of the world would write. Bounds every total and every share.
    pub(super) fn world_bytes(&self) -> u128 {
        let peers = self.geometry.peers(self.geometry.world());
        let of = |stage, copy| self.weigh(stage, copy).bytes.iter().sum::<u128>();
        // A stage holds 2^20 tensors of 2^64 elements at most, and there are fewer than 2^64 ranks.
        peers
            .iter()
            .map(|peers| of(peers.stage, peers.copy).saturating_mul(u128::from(peers.count)))
            .fold(0, u128::saturating_add)
    }
}
