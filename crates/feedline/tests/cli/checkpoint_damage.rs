//! Checkpoints that are not what they were when they were saved: what is wrong is named, and what to do
//! about it.

use std::fs;

use crate::tiny::{DESCRIPTION, FIRST, LOAD_ONLY, SECOND, bed, counts, flip, refuses, runs};

/// The hint behind everything that is wrong with a checkpoint on disk.
const ANEW: &str = "hint: remove that checkpoint and save it again with \
                    --set checkpoint.num_checkpoints_write=N\n";

/// The byte that is named begins the stretch of 64 KiB of the file in which the tensor is wrong.
#[test]
fn a_byte_that_is_not_the_one_that_was_saved_is_found() {
    for (container, file, tensor, at) in [
        ("torch", "zero_pp_rank_1_mp_rank_0_optim_states.pt", "2", 231_936),
        ("safetensors", "zero_pp_rank_1_mp_rank_0_optim_states.safetensors", "2", 232_672),
        ("raw", "zero_pp_rank_1_mp_rank_0_optim_states.bin", "2", 233_088),
        ("dcp", "__1_0.distcp", "optimizer.2", 229_230),
    ] {
        let bed = bed();
        let container_is = format!("checkpoint.container={container}");
        runs(&bed, "2", &[&container_is]);
        let path = format!("saved/{SECOND}/{file}");
        flip(&bed, &path);
        let error = format!(
            "error: {path}: tensor {tensor} differs from what was saved, somewhere after byte {at}\n\
             {ANEW}"
        );
        refuses(&bed, "2", &[LOAD_ONLY], &error);
        // Who only reads does not look.
        runs(&bed, "2", &[LOAD_ONLY, "checkpoint.verify=false"]);
    }
}

#[test]
fn a_file_that_is_cut_short_or_gone_is_named() {
    for (container, file) in [
        ("torch", "model_0_model_states.pt"),
        ("safetensors", "model_0_model_states.safetensors"),
        ("raw", "model_0_model_states.bin"),
        ("dcp", "__1_0.distcp"),
    ] {
        let bed = bed();
        let container_is = format!("checkpoint.container={container}");
        runs(&bed, "2", &[&container_is]);
        let path = format!("saved/{FIRST}/{file}");
        let bytes = fs::read(bed.path(&path)).unwrap();
        let size = bytes.len();
        for left in [size - 1, 4096, 0] {
            bed.write(&path, &bytes[..left]);
            let error = format!("error: {path}: expected {size} bytes, found {left}\n{ANEW}");
            refuses(&bed, "2", &[LOAD_ONLY, "checkpoint.verify=false"], &error);
        }
        fs::remove_file(bed.path(&path)).unwrap();
        let error = format!("error: {path}: expected {size} bytes, found no file\n{ANEW}");
        refuses(&bed, "2", &[LOAD_ONLY], &error);
    }
}

#[test]
fn a_file_that_is_no_container_is_named() {
    for (container, file, what) in [
        (
            "torch",
            "model_0_model_states.pt",
            "not a torch file: no end-of-archive record at byte 559442",
        ),
        (
            "safetensors",
            "model_0_model_states.safetensors",
            "safetensors: header at byte 0 would take 8680820740569200760 bytes, the limit is 100000000",
        ),
        ("raw", "model_0_model_states.bin", "not a raw file: no footer at byte 553680"),
        ("dcp", ".metadata", "not a dcp file: an unknown opcode at byte 0"),
    ] {
        let bed = bed();
        let container_is = format!("checkpoint.container={container}");
        runs(&bed, "2", &[&container_is]);
        let path = format!("saved/{FIRST}/{file}");
        let size = fs::metadata(bed.path(&path)).unwrap().len();
        bed.write(&path, vec![b'x'; size as usize]);
        refuses(&bed, "2", &[LOAD_ONLY], &format!("error: cannot read {path}: {what}\n{ANEW}"));
    }
}

#[test]
fn a_folder_without_its_description_is_no_checkpoint() {
    let bed = bed();
    runs(&bed, "2", &[]);
    fs::remove_file(bed.path(format!("saved/{FIRST}/{DESCRIPTION}"))).unwrap();
    let few = "error: saved: expected 2 complete checkpoints, found 1\n\
               hint: write them first: --set checkpoint.num_checkpoints_write=N\n";
    refuses(&bed, "2", &[LOAD_ONLY], few);
    runs(&bed, "2", &[LOAD_ONLY, "checkpoint.num_checkpoints_read=1"]);
    // A save takes the place of what is there, whatever that is.
    runs(&bed, "2", &[]);
    assert_eq!(counts(&bed), (2, 2));
    let path = format!("saved/{FIRST}/{DESCRIPTION}");
    bed.write(&path, "{}");
    let error = format!(
        "error: {path} does not describe a checkpoint: missing field `format` at line 1 column 2\n{ANEW}"
    );
    refuses(&bed, "2", &[LOAD_ONLY], &error);
}

#[test]
fn a_model_that_is_not_the_one_that_was_saved_is_refused() {
    let bed = bed();
    runs(&bed, "2", &["checkpoint.container=dcp"]);
    refuses(
        &bed,
        "1",
        &[LOAD_ONLY, "model.transformer.vocab_size=2000"],
        &format!(
            "error: saved/{FIRST}: tensor model.layers.0.0: expected 128000 of Float16, found 64000 of \
             Float16\nhint: load it with the `model` of the workload that it was saved with\n"
        ),
    );
}
