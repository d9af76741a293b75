//! The built-in workloads: those of DLIO, and three of MLPerf Storage.

use crate::nearest::similarity;

/// A built-in workload.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Preset {
    /// The name that `workload=NAME` takes.
    pub name: &'static str,
    /// Its YAML text.
    pub yaml: &'static str,
    /// What it models, in one line.
    pub summary: &'static str,
    /// Usual number of ranks, for workloads that are about checkpoints.
    pub ranks: Option<u32>,
}

/// A row of the table: the text is the file of the same name.
macro_rules! preset {
    ($name:literal, $summary:literal) => {
        preset!($name, $summary, None)
    };
    ($name:literal, $summary:literal, $ranks:expr) => {
        Preset {
            name: $name,
            yaml: include_str!(concat!("../presets/", $name, ".yaml")),
            summary: $summary,
            ranks: $ranks,
        }
    };
}

const PRESETS: &[Preset] = &[
    preset!("default", "small npz data set with evaluation, to try things out"),
    preset!("unet3d_a100", "3D U-Net on A100, npz volumes of 147 MB"),
    preset!("unet3d_h100", "3D U-Net on H100, npz volumes of 147 MB"),
    preset!("unet3d_b200", "3D U-Net on B200, as in MLPerf Storage v3"),
    preset!("unet3d_v100", "3D U-Net on V100, npz volumes of 147 MB"),
    preset!("unet3d_a100_s3", "3D U-Net on A100, npz objects on S3"),
    preset!("unet3d_h100_s3", "3D U-Net on H100, npz objects on S3"),
    preset!("unet3d_v100_s3", "3D U-Net on V100, npy objects on S3"),
    preset!("resnet50_a100", "ResNet-50 on A100, TFRecords of 1251 images"),
    preset!("resnet50_h100", "ResNet-50 on H100, TFRecords of 1251 images"),
    preset!("resnet50_v100", "ResNet-50 on V100, TFRecords of 1251 images"),
    preset!("resnet50_tf", "ResNet-50, one epoch of the TensorFlow reference"),
    preset!("retinanet_b200", "RetinaNet on B200, one JPEG per sample, as in MLPerf Storage v3"),
    preset!("retinanet_mi355", "RetinaNet on MI355, one JPEG per sample, as in MLPerf Storage v3"),
    preset!("cosmoflow_a100", "CosmoFlow on A100, half a million small TFRecords"),
    preset!("cosmoflow_h100", "CosmoFlow on H100, half a million small TFRecords"),
    preset!("cosmoflow_v100", "CosmoFlow on V100, half a million small TFRecords"),
    preset!("bert_v100", "BERT on V100, 2500-byte records with checkpoints of 4 GB"),
    preset!("dlrm", "DLRM, one indexed file of 687 GB"),
    preset!(
        "megatron_deepspeed_LLNL",
        "Megatron-DeepSpeed on 32 ranks, mapped index with sharded checkpoints",
        Some(32)
    ),
    preset!("llama_7b", "checkpoints of Llama 7B, ZeRO 1", Some(8)),
    preset!("llama_7b_zero3", "checkpoints of Llama 7B, ZeRO 3", Some(8)),
    preset!("llama_8b_zero3", "checkpoints of Llama 3 8B, ZeRO 3", Some(8)),
    preset!("llama_70b", "checkpoints of Llama 3 70B on multiples of 32 ranks, ZeRO 1", Some(64)),
    preset!(
        "llama_70b_zero3",
        "checkpoints of Llama 3 70B on multiples of 8 ranks, ZeRO 3",
        Some(64)
    ),
    preset!(
        "llama_405b",
        "checkpoints of Llama 3 405B on multiples of 256 ranks, ZeRO 1",
        Some(512)
    ),
    preset!(
        "llama_1t",
        "checkpoints of a model of 1 T parameters on multiples of 512 ranks, ZeRO 1",
        Some(1024)
    ),
];

/// Every built-in workload, grouped by model.
pub fn presets() -> &'static [Preset] {
    PRESETS
}

/// The built-in workload of this name.
pub fn find(name: &str) -> Option<&'static Preset> {
    PRESETS.iter().find(|preset| preset.name == name)
}

/// Up to three suggestions for an unknown name: names that start with it, or else the most similar.
pub fn nearest(name: &str) -> Vec<&'static str> {
    let prefix = name.to_lowercase();
    let family: Vec<&'static str> = PRESETS
        .iter()
        .map(|preset| preset.name)
        .filter(|known| prefix.len() >= 3 && known.to_lowercase().starts_with(&prefix))
        .collect();
    if !family.is_empty() {
        return family.into_iter().take(3).collect();
    }
    let mut scored: Vec<(f64, &'static str)> = PRESETS
        .iter()
        .map(|preset| (similarity(name, preset.name), preset.name))
        .filter(|(score, _)| *score >= 0.5)
        .collect();
    scored.sort_by(|left, right| right.0.total_cmp(&left.0));
    scored.into_iter().take(3).map(|(_, known)| known).collect()
}
