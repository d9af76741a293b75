//! Checkpoints in an object store, which cannot rename a folder: what makes a checkpoint of objects is
//! the description that is written last.

use std::ops::ControlFlow;
use std::process::Stdio;

use feedline_store::{EntryKind, Remote, RemoteOptions, Store as _};

use crate::bed::{Bed, Ran, Running};
use crate::object_stores::Server;
use crate::tiny::{self, FIRST, LOAD_ONLY, bed, counts, results};

const PLACE: &str = "checkpoint.checkpoint_folder=s3://bucket/jobs/saved";

/// A run of two ranks with these keys set.
fn run(server: &Server, bed: &Bed, endpoint: &str, sets: &[&str]) -> Ran {
    let sets = [&[PLACE], sets].concat();
    server.feedline(bed, endpoint, &[&["run"], &tiny::args("2", &sets)[..]].concat())
}

#[track_caller]
fn runs(server: &Server, bed: &Bed, endpoint: &str, sets: &[&str]) {
    let ran = run(server, bed, endpoint, sets);
    assert_eq!(ran.code, Some(0), "{sets:?}: {ran:?}");
}

/// The objects that are there, sorted, without what all of their names begin with.
fn objects(server: &Server) -> Vec<String> {
    let options = RemoteOptions {
        access_key_id: Some("feedline".to_owned()),
        secret_access_key: Some("only-for-tests".to_owned()),
        endpoint_url: Some(server.direct.clone()),
        ..RemoteOptions::default()
    };
    let store = Remote::connect("s3://bucket/jobs/saved", &options).expect("a place");
    let (mut folders, mut objects) = (vec![String::new()], Vec::new());
    while let Some(folder) = folders.pop() {
        let front = if folder.is_empty() { folder.clone() } else { format!("{folder}/") };
        let mut visit = |entry: feedline_store::FolderEntry<'_>| {
            let list = if entry.kind == EntryKind::Folder { &mut folders } else { &mut objects };
            list.push(format!("{front}{}", entry.name));
            ControlFlow::Continue(())
        };
        if store.kind(&folder).expect("an answer").is_some() {
            store.list(&folder, &mut visit).expect("a listing");
        }
    }
    objects.sort();
    objects
}

#[test]
fn every_container_is_saved_to_a_bucket_and_loaded_from_it() {
    let (bed, server) = (bed(), Server::new(&[]));
    for container in ["torch", "safetensors", "dcp", "raw"] {
        for mode in ["sync", "async"] {
            let (container, mode) = (
                format!("checkpoint.container={container}"),
                format!("checkpoint.save_mode={mode}"),
            );
            runs(&server, &bed, &server.direct, &[&container, &mode]);
            assert_eq!(counts(&bed), (2, 2), "{container}, {mode}");
            let own = results(&bed);
            assert!(own["requests"].as_u64() > Some(0) && own["retries"] == 0, "{own}");
        }
    }
    assert!(!bed.path("saved").exists() && !bed.path("s3:").exists());
}

/// Every seventh request goes wrong; the bytes are right and the retries are counted.
#[test]
fn saves_and_loads_survive_faults() {
    for fault in ["503", "500", "reset", "reset-in-body", "lose-answer"] {
        let every = format!("7={fault}");
        let (bed, server) = (bed(), Server::new(&["--every", &every]));
        runs(&server, &bed, &server.proxy, &["storage.storage_options.s3_max_attempts=8"]);
        assert_eq!(counts(&bed), (2, 2), "{fault}");
        let own = results(&bed);
        assert!(own["retries"].as_u64() > Some(0), "{fault}: {own}");
        runs(&server, &bed, &server.direct, &[LOAD_ONLY]);
    }
}

/// Objects of more than one part.
#[test]
fn large_files_are_uploaded_in_parts() {
    let (bed, server) = (bed(), Server::new(&["--every", "5=503"]));
    let large = ["model.transformer.vocab_size=60000", "checkpoint.num_checkpoints_write=1"];
    let large = [&large[..], &["checkpoint.num_checkpoints_read=1"]].concat();
    runs(&server, &bed, &server.proxy, &large);
    assert_eq!(counts(&bed), (1, 1));
}

/// What a save cannot write for good is no checkpoint, and what it had written is gone.
#[test]
fn a_save_that_fails_leaves_no_checkpoint() {
    for (only, mode) in [
        ("PUT /bucket/jobs/saved/global_epoch1_step1/zero", "checkpoint.save_mode=sync"),
        ("PUT /bucket/jobs/saved/global_epoch1_step1/zero", "checkpoint.save_mode=async"),
        ("PUT /bucket/jobs/saved/global_epoch1_step1/.feedline", "checkpoint.save_mode=sync"),
    ] {
        let (bed, server) = (bed(), Server::new(&["--every", "1=403", "--only", only]));
        let ran = run(&server, &bed, &server.proxy, &[mode]);
        assert_eq!(ran.code, Some(2), "{ran:?}");
        let error = ran.stderr.lines().find(|line| line.starts_with("error: ")).unwrap_or_default();
        let place = format!("s3://bucket/jobs/saved/{FIRST}/");
        assert!(error.contains(&place) && error.contains("access denied (403 "), "{ran:?}");
        let found = run(&server, &bed, &server.direct, &[LOAD_ONLY]);
        assert_eq!(
            found.stderr.lines().next(),
            Some("error: s3://bucket/jobs/saved: expected 2 complete checkpoints, found 0"),
            "{found:?}"
        );
        assert_eq!(objects(&server), [""; 0], "{only}");
    }
}

#[test]
fn old_checkpoints_are_removed_from_a_bucket() {
    let (bed, server) = (bed(), Server::new(&[]));
    let keep = ["checkpoint.num_checkpoints_write=3", "checkpoint.keep_last=1"];
    runs(
        &server,
        &bed,
        &server.direct,
        &[&keep[..], &["checkpoint.num_checkpoints_read=1"]].concat(),
    );
    assert_eq!(
        objects(&server),
        [
            ".feedline-checkpoint.json",
            "model_0_model_states.pt",
            "zero_pp_rank_0_mp_rank_0_optim_states.pt",
            "zero_pp_rank_1_mp_rank_0_optim_states.pt",
        ]
        .map(|name| format!("global_epoch1_step3/{name}"))
    );
}

/// Objects of the one that had the name are gone with it.
#[test]
fn a_smaller_checkpoint_leaves_nothing_of_the_larger_one_in_a_bucket() {
    let (bed, server) = (bed(), Server::new(&[]));
    let one = ["checkpoint.num_checkpoints_write=1", "checkpoint.num_checkpoints_read=1"];
    runs(&server, &bed, &server.direct, &one);
    runs(&server, &bed, &server.direct, &[&one[..], &["checkpoint.container=dcp"]].concat());
    let names = [".feedline-checkpoint.json", ".metadata", "__0_0.distcp", "__1_0.distcp"];
    assert_eq!(objects(&server), names.map(|name| format!("{FIRST}/{name}")));
}

/// The server does not answer when the description is sent: by then all else is there.
#[test]
fn the_description_comes_last() {
    let only = format!("PUT /bucket/jobs/saved/{FIRST}/.feedline");
    let (bed, server) = (bed(), Server::new(&["--every", "1=stall", "--only", &only]));
    let sets = [PLACE, "storage.storage_options.stall_timeout=3600"];
    let mut command = bed.feedline(&[&["run"], &tiny::args("2", &sets)[..]].concat());
    command.env("AWS_ENDPOINT_URL", &server.proxy).env("AWS_ACCESS_KEY_ID", "feedline");
    command.env("AWS_SECRET_ACCESS_KEY", "only-for-tests");
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    let run = Running::new(command.spawn().expect("the command starts"));
    bed.wait_until("the files are there", |_| objects(&server).len() == 3);
    assert!(objects(&server).iter().all(|name| name.ends_with(".pt")), "{:?}", objects(&server));
    run.signal("INT");
    let ran = run.wait();
    assert_eq!(ran.code, Some(130), "{ran:?}");
    assert_eq!(objects(&server), [""; 0]);
}
