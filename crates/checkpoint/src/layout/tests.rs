//! Layouts against DLIO's numbers and names, and against a count that knows nothing of them.

use std::collections::BTreeMap;

use super::*;
use crate::Parallelism;

const LLAMA_7B: Transformer =
    Transformer { layers: 32, vocab: 32_000, hidden: 4096, ffn: 11_008, heads: 32, kv_heads: 32 };
const LLAMA_8B: Transformer = Transformer { vocab: 128_256, ffn: 14_336, kv_heads: 8, ..LLAMA_7B };
const LLAMA_70B: Transformer =
    Transformer { layers: 80, vocab: 128_256, hidden: 8192, ffn: 28_672, heads: 128, kv_heads: 8 };
const LLAMA_405B: Transformer =
    Transformer { layers: 126, hidden: 16_384, ffn: 53_248, ..LLAMA_70B };
const LLAMA_1T: Transformer =
    Transformer { layers: 128, hidden: 25_872, ffn: 98_304, heads: 192, kv_heads: 32, ..LLAMA_70B };
/// Small, with numbers that no parallelism divides.
const SMALL: Transformer =
    Transformer { layers: 5, vocab: 37, hidden: 22, ffn: 31, heads: 4, kv_heads: 3 };

fn spread(tensor: u32, pipeline: u32, zero_stage: u8) -> Parallelism {
    Parallelism { tensor, pipeline, data: None, zero_stage }
}

fn transformer(shape: Transformer, parallelism: Parallelism) -> Model {
    Model {
        blob_bytes: None,
        layers: Layers::Transformer(shape),
        optimizer: Optimizer::Derived(shape),
        model_dtype: DType::Float16,
        optimizer_dtype: DType::Float32,
        parallelism,
    }
}

/// The shipped `megatron_deepspeed_LLNL`.
fn megatron() -> Model {
    Model {
        blob_bytes: Some(30_102),
        layers: Layers::Explicit { count: 40, lengths: vec![52_583_936, 209_715_200] },
        optimizer: Optimizer::Groups(vec![1_009_254_400, 865_075_200, 793_600]),
        ..transformer(SMALL, spread(4, 8, 1))
    }
}

fn blob(bytes: u64, parallelism: Parallelism) -> Model {
    Model {
        blob_bytes: Some(bytes),
        layers: Layers::None,
        optimizer: Optimizer::None,
        ..transformer(SMALL, parallelism)
    }
}

#[track_caller]
fn laid(model: Model, ranks: u32) -> Layout {
    Layout::new(model, ranks).unwrap_or_else(|err| panic!("{err}"))
}

fn gib(bytes: u64) -> String {
    format!("{:.6}", bytes as f64 / (1u64 << 30) as f64)
}

/// A row of the table of sizes: parameters, model GiB, optimizer GiB, total GiB, files.
#[track_caller]
fn check_size(
    model: Model,
    ranks: u32,
    copies: u32,
    parameters: u128,
    expected: [&str; 3],
    files: u64,
) {
    let layout = laid(model, ranks);
    let total = layout.total();
    let found = [total.bytes.layers, total.bytes.optimizer, total.bytes.total()].map(gib);
    assert_eq!(found, expected);
    assert_eq!((layout.geometry().copies(), layout.parameters()), (copies, Some(parameters)));
    assert_eq!((total.files, total.bytes.blob), (files, 0));
}

#[test]
fn shipped_models_have_the_sizes_that_dlio_reports() {
    let zero3 = |shape, tensor| transformer(shape, spread(tensor, 1, 3));
    let seven = ["12.551277", "75.309494", "87.860771"];
    let seventy = ["130.183716", "781.028412", "911.212128"];
    check_size(transformer(LLAMA_7B, spread(1, 1, 1)), 8, 8, 6_738_415_616, seven, 9);
    check_size(zero3(LLAMA_7B, 1), 8, 8, 6_738_415_616, seven, 16);
    let eight = ["14.957527", "89.746994", "104.704521"];
    check_size(zero3(LLAMA_8B, 1), 8, 8, 8_030_261_248, eight, 16);
    let mut subset = zero3(LLAMA_8B, 1);
    subset.parallelism.data = Some(1024);
    let part = ["0.029214", "0.175741", "0.204955"];
    check_size(subset, 2, 1024, 8_030_261_248, part, 4);
    let staged = |shape, pipeline| transformer(shape, spread(8, pipeline, 1));
    check_size(staged(LLAMA_70B, 4), 64, 2, 69_882_617_856, seventy, 728);
    check_size(zero3(LLAMA_70B, 8), 64, 8, 69_882_617_856, seventy, 128);
    let four = ["756.014893", "4536.233826", "5292.248718"];
    check_size(staged(LLAMA_405B, 32), 512, 2, 405_853_388_800, four, 1544);
    let trillion = ["2203.661289", "13222.927975", "15426.589264"];
    check_size(staged(LLAMA_1T, 64), 1024, 2, 1_183_035_102_480, trillion, 2072);
}

#[test]
fn rank_zero_holds_what_it_holds_in_dlio() {
    let model = transformer(LLAMA_8B, spread(1, 1, 3));
    let bytes = laid(model.clone(), 8).amount(0).bytes;
    assert_eq!((bytes.layers, bytes.optimizer), (2_007_565_312, 12_045_637_632));
    let parallelism = Parallelism { data: Some(1024), ..model.parallelism };
    let bytes = laid(Model { parallelism, ..model }, 2).amount(0).bytes;
    assert_eq!((bytes.layers, bytes.optimizer), (15_684_104, 94_350_384));
}

#[test]
fn layers_are_dealt_to_stages_with_the_remainder_first() {
    let ranges = |shape, pipeline, ranks, stages: &[u32]| -> Vec<_> {
        let layout = laid(transformer(shape, spread(8, pipeline, 1)), ranks);
        let range = |&stage: &u32| layout.layers_of(stage);
        stages.iter().map(range).map(|range| (range.start, range.end - 1)).collect()
    };
    let found = ranges(LLAMA_70B, 4, 64, &[0, 1, 2, 3]);
    assert_eq!(found, [(0, 20), (21, 40), (41, 60), (61, 82)]);
    let found = ranges(LLAMA_405B, 32, 512, &[0, 1, 29, 30, 31]);
    assert_eq!(found, [(0, 4), (5, 8), (117, 120), (121, 123), (124, 128)]);
    let layout = laid(megatron(), 32);
    assert_eq!([0, 7].map(|stage| layout.layers_of(stage)), [1..6, 36..41]);
}

#[track_caller]
fn check_names(model: Model, ranks: u32, rank: u32, expected: &[&str]) {
    let files = laid(model, ranks).files(rank);
    let stems: Vec<_> = files.iter().map(|file| file.stem.as_str()).collect();
    assert_eq!(stems, expected, "rank {rank}");
}

#[test]
fn files_are_called_as_dlio_calls_them() {
    let zero = |tensor, pipeline, zero| transformer(SMALL, spread(tensor, pipeline, zero));
    for zero_stage in [0, 1, 2, 3] {
        let mut model = zero(1, 1, zero_stage);
        model.blob_bytes = Some(7);
        let own = match zero_stage {
            1 | 2 => "model_0_model_states",
            _ => "zero_pp_rank_0_mp_rank_0_model_states",
        };
        let optimizer = "zero_pp_rank_0_mp_rank_0_optim_states";
        check_names(model, 2, 0, &["model_states-0", own, optimizer]);
    }
    check_names(
        zero(2, 1, 0),
        4,
        1,
        &["zero_pp_rank_0_mp_rank_1_model_states", "zero_pp_rank_0_mp_rank_1_optim_states"],
    );
    check_names(zero(2, 1, 0), 4, 2, &[]);
    check_names(
        zero(2, 1, 1),
        4,
        1,
        &["model_1_model_states", "zero_pp_rank_0_mp_rank_1_optim_states"],
    );
    for zero_stage in [1, 2] {
        check_names(zero(2, 1, zero_stage), 4, 3, &["zero_pp_rank_1_mp_rank_1_optim_states"]);
        check_names(
            zero(2, 2, zero_stage),
            8,
            3,
            &[
                "layer_4-model_3_model_states",
                "layer_5-model_3_model_states",
                "layer_6-model_3_model_states",
                "layer_7-model_3_model_states",
                "zero_pp_rank_0_mp_rank_3_optim_states",
            ],
        );
        check_names(zero(2, 2, zero_stage), 8, 7, &["zero_pp_rank_1_mp_rank_3_optim_states"]);
    }
    check_names(
        zero(2, 2, 0),
        8,
        3,
        &["zero_pp_rank_0_mp_rank_3_model_states", "zero_pp_rank_0_mp_rank_3_optim_states"],
    );
    check_names(
        zero(2, 1, 3),
        6,
        5,
        &["zero_pp_rank_2_mp_rank_1_model_states", "zero_pp_rank_2_mp_rank_1_optim_states"],
    );
    check_names(zero(2, 1, 3), 6, 6, &[]);
}

/// `path dtype len name total first` of every tensor of a file.
fn lines(file: &FileSpec) -> Vec<String> {
    let line = |Tensor { path, dtype, len, share }: &Tensor| {
        let path = path.join("/");
        format!("{path} {dtype:?} {len} {} {} {}", share.name, share.total, share.first)
    };
    file.tensors.iter().map(line).collect()
}

#[test]
fn tensors_of_a_transformer_have_dlios_keys_and_a_place_in_the_whole() {
    let files = laid(transformer(SMALL, spread(2, 1, 3)), 6).files(3);
    // 22 / 3 = 7; 22 x (22 + 2 x 5 x 3) / 2 / 3 = 190; 484 / 2 / 3 = 80; 2 x 22 x 31 / 2 / 3 = 227.
    assert_eq!(
        lines(&files[0])[..7],
        [
            "0/0 Float16 135 model.layers.0.0 810 540",
            "1/0 Float16 7 model.layers.1.0.tp1 21 7",
            "1/1 Float16 190 model.layers.1.1 1140 760",
            "1/2 Float16 80 model.layers.1.2 480 320",
            "1/3 Float16 7 model.layers.1.3.tp1 21 7",
            "1/4 Float16 227 model.layers.1.4 1362 908",
            "1/5 Float16 113 model.layers.1.5 678 452",
        ]
    );
    assert_eq!(
        lines(&files[0])[31..],
        ["6/0 Float16 135 model.layers.6.0 810 540", "7/0 Float16 7 model.layers.7.0.tp1 21 7",]
    );
    // P = 2 x 37 x 22 + 22 + 5 x (44 + 1144 + 484 + 3 x 22 x 31) = 20240, a sixth of it 3373.
    assert_eq!(
        lines(&files[1]),
        [
            "0 Float32 3373 optimizer.0 20238 10119",
            "1 Float32 110 optimizer.1.rank3 110 0",
            "2 Float32 3373 optimizer.2 20238 10119",
            "3 Float32 110 optimizer.3.rank3 110 0",
            "4 Float32 3373 optimizer.4 20238 10119",
            "5 Float32 110 optimizer.5.rank3 110 0",
        ]
    );
}

#[test]
fn explicit_layers_and_groups_are_bytes() {
    let layout = laid(megatron(), 32);
    let files = layout.files(31);
    let stems: Vec<_> = files.iter().map(|file| file.stem.as_str()).collect();
    assert_eq!(stems[..2], ["model_states-31", "layer_36-model_31_model_states"]);
    assert_eq!(
        stems[5..],
        ["layer_40-model_31_model_states", "zero_pp_rank_0_mp_rank_31_optim_states"]
    );
    assert_eq!(lines(&files[0]), ["a Int8 30102 model.blob 963264 933162"]);
    assert_eq!(
        lines(&files[1]),
        [
            "0 Int8 13145984 model.layers.36.0 52583936 39437952",
            "1 Int8 52428800 model.layers.36.1 209715200 157286400",
        ]
    );
    assert_eq!(
        lines(&files[6]),
        [
            "0/a Int8 1009254400 optimizer.0.a.rank31 1009254400 0",
            "0/b Int8 1009254400 optimizer.0.b.rank31 1009254400 0",
            "1/a Int8 865075200 optimizer.1.a.rank31 865075200 0",
            "1/b Int8 865075200 optimizer.1.b.rank31 865075200 0",
            "2/a Int8 793600 optimizer.2.a.rank31 793600 0",
            "2/b Int8 793600 optimizer.2.b.rank31 793600 0",
            "combined Int8 1875123200 optimizer.combined.rank31 1875123200 0",
        ]
    );
    // A rank: 5 layers of 65 574 784, 3 groups of 1 875 123 200 in all.
    let each = Amount {
        files: 7,
        bytes: StateBytes { blob: 30_102, layers: 327_873_920, optimizer: 5_625_369_600 },
    };
    assert_eq!(layout.groups(), [RankGroup { first: 0, ranks: 32, each }]);
    assert_eq!(layout.total().files, 224);
    assert_eq!(layout.total().bytes.total(), 32 * 5_953_273_622);
    assert_eq!(layout.parameters(), None);
}

#[test]
fn lengths_of_zero_leave_their_number_free() {
    let mut model = megatron();
    model.layers = Layers::Explicit { count: 2, lengths: vec![0, 9, 3] };
    model.optimizer = Optimizer::Groups(vec![0, 5]);
    model.blob_bytes = Some(0);
    model.parallelism = spread(4, 1, 3);
    let files = laid(model, 8).files(6);
    // A third tensor of 3 bytes is none once four ranks share it.
    assert_eq!(
        lines(&files[0]),
        ["1/1 Int8 2 model.layers.1.1.dp1 8 4", "2/1 Int8 2 model.layers.2.1.dp1 8 4",]
    );
    assert_eq!(
        lines(&files[1]),
        [
            "1/a Int8 5 optimizer.1.a.rank6 5 0",
            "1/b Int8 5 optimizer.1.b.rank6 5 0",
            "combined Int8 5 optimizer.combined.rank6 5 0",
        ]
    );
    assert_eq!(files.len(), 2);
}

#[test]
fn a_blob_is_written_by_every_rank_that_writes() {
    let writers = |zero_stage, ranks| -> Vec<u32> {
        laid(blob(10, spread(2, 2, zero_stage)), ranks).writers().collect()
    };
    assert_eq!(writers(0, 8), [0, 1, 2, 3]);
    assert_eq!(writers(0, 3), [0, 1, 2]);
    assert_eq!(writers(1, 6), [0, 1, 2, 3, 4, 5]);
    assert_eq!(laid(blob(10, spread(2, 2, 0)), 8).total().bytes.total(), 40);
}

#[test]
fn groups_name_the_ranks_that_hold_the_same() {
    let layout = laid(transformer(LLAMA_405B, spread(8, 32, 1)), 512);
    let found: Vec<_> =
        layout.groups().iter().map(|group| (group.first, group.ranks, group.each.files)).collect();
    assert_eq!(found, [(0, 8, 6), (8, 232, 5), (240, 8, 4), (248, 8, 6), (256, 256, 1)]);
    let bytes: Vec<_> = layout.groups().iter().map(|group| gib(group.each.bytes.total())).collect();
    assert_eq!(bytes, ["12.318084", "11.828826", "11.086577", "11.575866", "8.859832"]);
}

/// What DLIO's own loops come to: elements of every tensor of every file of a rank.
fn by_loops(
    shape: &Transformer,
    p: Parallelism,
    copies: u64,
    rank: u64,
) -> Vec<(String, Vec<u64>)> {
    let (tp, pp) = (u64::from(p.tensor), u64::from(p.pipeline));
    let (mp, zero) = (tp * pp, p.zero_stage);
    let (stage, dp, model) = ((rank / tp) % pp, rank / mp, rank % mp);
    if zero == 0 && rank >= mp {
        return Vec::new();
    }
    let Transformer { layers, vocab, hidden, ffn, heads, kv_heads } = *shape;
    let cut = if zero == 3 { copies } else { 1 };
    let keys = hidden / heads * kv_heads;
    let mut of_stages = vec![Vec::new(); pp as usize];
    let mut next = 1;
    for (place, of_stage) in of_stages.iter_mut().enumerate() {
        for _ in 0..layers / pp + u64::from((place as u64) < layers % pp) {
            of_stage.push(next);
            next += 1;
        }
    }
    of_stages[0].insert(0, 0);
    of_stages.last_mut().unwrap().extend([layers + 1, layers + 2]);
    let tensors = |layer: u64| match layer {
        0 => vec![hidden * vocab / tp / cut],
        layer if layer == layers + 1 => vec![hidden * vocab / tp / cut],
        layer if layer == layers + 2 => vec![hidden / cut],
        _ => vec![
            hidden / cut,
            hidden * (hidden + 2 * keys) / tp / cut,
            hidden * hidden / tp / cut,
            hidden / cut,
            2 * hidden * ffn / tp / cut,
            hidden * ffn / tp / cut,
        ],
    };
    let mut files = Vec::new();
    let mine = &of_stages[stage as usize];
    if zero == 0 || zero == 3 {
        let stem = format!("zero_pp_rank_{dp}_mp_rank_{model}_model_states");
        files.push((stem, mine.iter().copied().flat_map(tensors).collect()));
    } else if dp == 0 && pp == 1 {
        let stem = format!("model_{model}_model_states");
        files.push((stem, mine.iter().copied().flat_map(tensors).collect()));
    } else if dp == 0 {
        let stem = |layer| format!("layer_{layer}-model_{model}_model_states");
        files.extend(mine.iter().map(|&layer| (stem(layer), tensors(layer))));
    }
    let mut parameters = 2 * vocab * hidden + hidden;
    for _ in 0..layers {
        parameters +=
            2 * hidden + hidden * (hidden + 2 * keys) + hidden * hidden + 3 * hidden * ffn;
    }
    let part = parameters / if zero > 0 { mp * copies } else { mp };
    let stem = format!("zero_pp_rank_{dp}_mp_rank_{model}_optim_states");
    files.push((stem, [part, 5 * hidden].repeat(3)));
    files
}

/// A tensor that ranks hold together.
struct Whole {
    total: u64,
    dtype: DType,
    pieces: Vec<(u64, u64)>,
}

/// Every name is covered once from its first to its last element, and alike on all ranks.
#[track_caller]
fn check_cover(layout: &Layout) {
    let mut wholes: BTreeMap<String, Whole> = BTreeMap::new();
    for rank in 0..layout.geometry().ranks() {
        for tensor in layout.files(rank).into_iter().flat_map(|file| file.tensors) {
            let Tensor { dtype, len, share: Share { name, total, first }, .. } = tensor;
            let whole = wholes.entry(name).or_insert(Whole { total, dtype, pieces: Vec::new() });
            assert_eq!((whole.total, whole.dtype), (total, dtype));
            whole.pieces.push((first, first + len));
        }
    }
    for (name, Whole { total, mut pieces, .. }) in wholes {
        pieces.sort_unstable();
        let mut covered = 0;
        for (from, to) in pieces {
            assert!(from == covered && to > from, "{name}: {from}..{to} after {covered}");
            covered = to;
        }
        assert_eq!(covered, total, "{name}");
    }
}

/// Sums over files equal what is computed without them.
#[track_caller]
fn check_amounts(layout: &Layout) {
    let mut total = Amount::default();
    let mut writers = Vec::new();
    for rank in 0..layout.geometry().ranks() {
        let files = layout.files(rank);
        let bytes_of = |state| -> u64 {
            files.iter().filter(|file| file.state == state).map(FileSpec::tensor_bytes).sum()
        };
        let bytes = StateBytes {
            blob: bytes_of(StateKind::Blob),
            layers: bytes_of(StateKind::Layers),
            optimizer: bytes_of(StateKind::Optimizer),
        };
        let amount = Amount { files: files.len() as u64, bytes };
        assert_eq!(layout.amount(rank), amount, "rank {rank}");
        writers.extend((!files.is_empty()).then_some(rank));
        total.files += amount.files;
        total.bytes.blob += bytes.blob;
        total.bytes.layers += bytes.layers;
        total.bytes.optimizer += bytes.optimizer;
    }
    assert_eq!(layout.total(), total);
    assert_eq!(layout.writers().collect::<Vec<_>>(), writers);
    let grouped: u64 = layout.groups().iter().map(|group| u64::from(group.ranks)).sum();
    assert_eq!(grouped, u64::from(layout.geometry().ranks()));
    for group in layout.groups() {
        assert_eq!(layout.amount(group.first), group.each);
    }
}

#[test]
fn every_parallelism_gives_what_dlios_loops_give() {
    let mut seen = 0;
    for zero_stage in 0..=3 {
        for (tensor, pipeline) in (1..=4).flat_map(|t| (1..=5).map(move |p| (t, p))) {
            if zero_stage == 3 && pipeline > 1 {
                continue;
            }
            for copies in 1..=4 {
                let parallelism = spread(tensor, pipeline, zero_stage);
                let layout = laid(transformer(SMALL, parallelism), tensor * pipeline * copies);
                for rank in 0..layout.geometry().ranks() {
                    let files = layout.files(rank).into_iter().map(|file| {
                        (file.stem, file.tensors.iter().map(|tensor| tensor.len).collect())
                    });
                    let expected =
                        by_loops(&SMALL, parallelism, u64::from(copies), u64::from(rank));
                    assert_eq!(files.collect::<Vec<_>>(), expected, "{parallelism:?} {rank}");
                }
                check_amounts(&layout);
                check_cover(&layout);
                seen += 1;
            }
        }
    }
    assert_eq!(seen, 3 * 80 + 16);
}

#[test]
fn explicit_models_cover_their_wholes() {
    for zero_stage in 0..=3 {
        let mut model = megatron();
        let pipeline = if zero_stage == 3 { 1 } else { 8 };
        model.parallelism = spread(4, pipeline, zero_stage);
        let layout = laid(model, 64);
        check_amounts(&layout);
        check_cover(&layout);
    }
}

#[test]
fn a_subset_has_the_places_of_the_whole_world() {
    for (tensor, pipeline, zero_stage) in [(2, 3, 1), (2, 1, 3), (2, 3, 0)] {
        let parallelism = spread(tensor, pipeline, zero_stage);
        let mut model = transformer(SMALL, parallelism);
        model.blob_bytes = Some(11);
        let whole = laid(model.clone(), tensor * pipeline * 4);
        model.parallelism.data = Some(4);
        for ranks in 1..=tensor * pipeline * 4 {
            let subset = laid(model.clone(), ranks);
            assert_eq!(subset.geometry().world(), u64::from(tensor * pipeline * 4));
            for rank in 0..ranks {
                assert_eq!(subset.files(rank), whole.files(rank), "{ranks} {rank}");
            }
            check_amounts(&subset);
        }
    }
}

#[track_caller]
fn check_refused(model: Model, ranks: u32, message: &str) {
    match Layout::new(model, ranks) {
        Ok(_) => panic!("accepted, expected: {message}"),
        Err(err) => assert_eq!(err.to_string(), message),
    }
}

#[test]
fn ranks_that_do_not_fit_are_refused_in_words() {
    let small = |parallelism| transformer(SMALL, parallelism);
    check_refused(
        small(spread(1, 6, 1)),
        6,
        "`model.num_layers` must be at least `model.parallelism.pipeline`, found 5 layers for 6 \
         stages",
    );
    check_refused(
        small(spread(1, 2, 3)),
        2,
        "`model.parallelism.zero_stage` 3 excludes `model.parallelism.pipeline`, found 2 stages",
    );
    check_refused(
        small(spread(4, 2, 1)),
        12,
        "the number of ranks must be a multiple of tensor x pipeline = 8, found 12",
    );
    check_refused(
        small(Parallelism { data: Some(2), ..spread(2, 1, 1) }),
        5,
        "checkpoint mode `subset` runs the first ranks of data x tensor x pipeline = 4, found 5 \
         ranks",
    );
    check_refused(
        small(spread(0, 1, 1)),
        1,
        "`model.parallelism.tensor` must be from 1 to 65536, found 0",
    );
    check_refused(
        small(spread(1, 1, 4)),
        1,
        "`model.parallelism.zero_stage` must be from 0 to 3, found 4",
    );
    check_refused(
        small(spread(1, 1, 1)),
        0,
        "the number of ranks must be from 1 to 4294967295, found 0",
    );
}

#[test]
fn models_beyond_counting_are_refused_in_words() {
    check_refused(
        transformer(Transformer { heads: 0, ..SMALL }, spread(1, 1, 0)),
        1,
        "`model.transformer.num_attention_heads` must be from 1 to 16777216, found 0",
    );
    check_refused(
        transformer(Transformer { layers: u64::MAX, ..SMALL }, spread(1, 1, 0)),
        1,
        "`model.num_layers` must be from 1 to 65536, found 18446744073709551615",
    );
    let vast = Transformer {
        layers: 1 << 16,
        vocab: 1 << 24,
        hidden: 1 << 24,
        ffn: 1 << 24,
        heads: 1,
        kv_heads: 1 << 24,
    };
    check_refused(
        transformer(vast, spread(1, 1, 0)),
        1,
        "the checkpoint of 1 ranks has 8665581566277659170877472768 bytes, more than Feedline can \
         count (2^62)",
    );
    let mut model = megatron();
    model.layers = Layers::Explicit { count: 65_536, lengths: vec![u64::MAX; 17] };
    check_refused(
        model.clone(),
        32,
        "65536 layers of 17 tensors (`model.num_layers`, `model.layer_parameters`) are more than \
         1048576 tensors",
    );
    model.layers = Layers::None;
    model.optimizer = Optimizer::None;
    model.blob_bytes = Some(u64::MAX);
    check_refused(
        model.clone(),
        32,
        "the checkpoint of 32 ranks has 590295810358705651680 bytes, more than Feedline can count \
         (2^62)",
    );
    model.blob_bytes = None;
    check_refused(
        model,
        32,
        "the model has nothing to save: a transformer needs `model.num_layers`, any other model also \
         has `model.model_size_bytes` and `model.optimization_groups`",
    );
}
