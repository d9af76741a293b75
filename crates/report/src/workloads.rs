//! The table of shipped workloads.

use feedline_numbers::units;
use feedline_workload::{BUILT_IN, Model, Preset, Source, Workload, compose, resolve};

use crate::style::{Ink, Style};
use crate::wrap::{aligned, hanging, joined};

const COLUMNS: usize = 7;
const HEADER: [&str; COLUMNS] = ["WORKLOAD", "LOADER", "FORMAT", "DATA", "BATCH", "S/STEP", "AU%"];
/// The columns whose texts begin on one line; those of the others end on one.
const LEFT_COLUMNS: usize = 3;
const NOTHING: &str = "-";

/// Two lines a workload: what can be compared in columns, then what it models.
pub fn table(presets: &[Preset], style: Style) -> String {
    let rows: Vec<Row> = presets.iter().map(Row::new).collect();
    let cells: Vec<_> = [HEADER.map(str::to_owned)]
        .into_iter()
        .chain(rows.iter().map(|row| row.cells.clone()))
        .collect();
    // Gaps of one column make the shipped workloads fit into 80.
    let mut aligned = aligned(&cells, LEFT_COLUMNS, style.columns()).into_iter();
    let mut lines: Vec<String> = aligned.next().into_iter().collect();
    for (row, line) in rows.iter().zip(aligned) {
        lines.push(line.replacen(&row.cells[0], &style.paint(Ink::Bold, &row.cells[0]), 1));
        lines.extend(hanging("  ", "  ", &row.text, style.columns()));
    }
    joined(&lines)
}

struct Row {
    cells: [String; COLUMNS],
    text: String,
}

impl Row {
    fn new(preset: &Preset) -> Self {
        let source = Source { name: preset.name, origin: BUILT_IN, text: preset.yaml };
        let workload = compose(source, &[], &|_| String::new())
            .and_then(|composed| resolve(&composed))
            .expect("shipped workloads resolve, which a test holds")
            .workload;
        // A transformer is only ever shipped for its checkpoints.
        if workload.checkpoint_only() || workload.model.is_transformer() {
            Self::checkpoints(preset, &workload.model)
        } else {
            Self::training(preset, &workload)
        }
    }

    fn training(preset: &Preset, workload: &Workload) -> Self {
        let (dataset, reader) = (&workload.dataset, &workload.reader);
        let (files, per_file) = (dataset.num_files_train, dataset.num_samples_per_file);
        let sample_bytes = match dataset.record_dims.as_slice() {
            [] => dataset.record_length_bytes,
            dims => {
                (dims.iter().product::<u64>() * dataset.record_element_type.size_bytes()) as f64
            }
        };
        let cells = [
            preset.name.to_owned(),
            reader.data_loader.to_string(),
            dataset.format.to_string(),
            units::bytes(files as f64 * per_file as f64 * sample_bytes),
            units::count(reader.batch_size),
            units::number(workload.train.computation_time.mean_seconds()),
            units::round_percent(100.0 * workload.metric.au).replace(" %", ""),
        ];
        let samples = match per_file {
            1 => String::new(),
            many => format!(" × {}", units::counted(many, "sample")),
        };
        let (files, bytes) = (units::counted(files, "file"), units::bytes(sample_bytes));
        let text = format!("{}; {files}{samples} of {bytes}", preset.summary);
        Self { cells, text }
    }

    fn checkpoints(preset: &Preset, model: &Model) -> Self {
        let mut cells = [NOTHING; COLUMNS].map(str::to_owned);
        cells[0] = preset.name.to_owned();
        cells[2] = "(model)".to_owned();
        cells[3] = units::bytes(model_bytes(model));
        let text = preset.summary.to_owned();
        Self { cells, text }
    }
}

/// Bytes of the model itself; a checkpoint holds the optimizer's state too.
fn model_bytes(model: &Model) -> f64 {
    if !model.is_transformer() {
        return model.model_size_bytes as f64;
    }
    transformer_parameters(model) as f64 * model.model_datatype.size_bytes() as f64
}

/// Parameters of a Llama-like transformer by DLIO's formula: embedding and output, final norm, and
/// in each layer two norms, attention with grouped keys and values, and a gated feed-forward block.
fn transformer_parameters(model: &Model) -> u64 {
    let shape = &model.transformer;
    let (hidden, ffn, vocab) = (shape.hidden_size, shape.ffn_hidden_size, shape.vocab_size);
    let key_value = hidden / shape.num_attention_heads * shape.num_kv_heads;
    let attention = hidden * (hidden + 2 * key_value) + hidden * hidden;
    let layer = 2 * hidden + attention + 3 * ffn * hidden;
    2 * vocab * hidden + hidden + model.num_layers.unwrap_or(0) * layer
}

#[cfg(test)]
mod tests {
    use feedline_workload::presets::{find, presets};

    use super::*;
    use crate::style::strip;

    const PLAIN: Style = Style { width: 80, color: false };

    fn some(names: &[&str]) -> Vec<Preset> {
        names.iter().map(|name| *find(name).expect("a shipped workload")).collect()
    }

    #[test]
    fn rows_show_data_or_the_model() {
        let chosen = some(&["unet3d_h100", "resnet50_a100", "llama_7b"]);
        assert_eq!(
            table(&chosen, PLAIN),
            "\
WORKLOAD       LOADER      FORMAT       DATA  BATCH  S/STEP  AU%
unet3d_h100    pytorch     npz       24.6 GB      7   0.323   90
  3D U-Net on H100, npz volumes of 147 MB; 168 files of 147 MB
resnet50_a100  tensorflow  tfrecord   147 GB    400   0.435   90
  ResNet-50 on A100, TFRecords of 1251 images; 1,024 files × 1,251 samples of
  115 kB
llama_7b       -           (model)   13.5 GB      -       -    -
  checkpoints of Llama 7B, ZeRO 1
"
        );
    }

    #[test]
    fn all_shipped_workloads_fit_into_80_columns() {
        let text = table(presets(), PLAIN);
        let widest = text.lines().map(|line| line.chars().count()).max();
        assert!(widest <= Some(80), "{widest:?}\n{text}");
        for preset in presets() {
            let named = text.lines().filter(|line| line.starts_with(&format!("{} ", preset.name)));
            assert_eq!(named.count(), 1, "{}", preset.name);
        }
    }

    #[test]
    fn parameters_are_those_of_the_models() {
        // 2 * 32000 * 4096 + 4096 + 32 * (8192 + 4 * 4096^2 + 3 * 11008 * 4096) = 6738415616,
        // the published size of Llama 7B.
        let preset = find("llama_7b").expect("a shipped workload");
        let source = Source { name: preset.name, origin: BUILT_IN, text: preset.yaml };
        let composed = compose(source, &[], &|_| String::new()).expect("it composes");
        let model = resolve(&composed).expect("it resolves").workload.model;
        assert_eq!(transformer_parameters(&model), 6_738_415_616);
        assert_eq!(model_bytes(&model), 13_476_831_232.0);
    }

    #[test]
    fn color_adds_nothing_but_color() {
        let colored = table(presets(), Style { color: true, ..PLAIN });
        assert!(colored.contains("\x1b[1munet3d_h100\x1b[0m"));
        assert_eq!(strip(&colored), table(presets(), PLAIN));
    }
}
