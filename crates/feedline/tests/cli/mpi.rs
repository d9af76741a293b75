//! Jobs of several processes, and of several hosts, under a real mpirun.
//!
//! Open MPI adds paragraphs of its own to stderr when a job ends badly, so that errors are looked for
//! by line.

use std::collections::BTreeSet;
use std::fs;
use std::process::{Command, Stdio};

use serde_json::Value;

use crate::bed::{Bed, FILE_BYTES, Ran, Running, ran};
use crate::hosts::{Hosts, single};

/// Twelve files to train on, four to evaluate with, a checkpoint of every rank after each epoch.
const JOB: &str = "\
framework: pytorch
workflow: {generate_data: True, train: True, evaluation: True, checkpoint: True}
model: {model_size_bytes: 5000, parallelism: {zero_stage: 1}}
dataset:
  data_folder: data
  format: npz
  num_files_train: 12
  num_files_eval: 4
  record_length_bytes: 4096
reader: {data_loader: pytorch, batch_size: 1, read_threads: 1, sample_shuffle: seed, read_model: native}
train: {epochs: 2, computation_time: 0.001, seed_change_epoch: True}
evaluation: {eval_time: 0.001}
checkpoint: {checkpoint_folder: saved}
";

/// A bed with the workload above.
fn bed() -> Bed {
    let bed = Bed::new();
    bed.write("job.yaml", JOB);
    bed
}

/// `mpirun`, made by a [`Bed`] or by [`Hosts`], of `feedline` with these arguments.
pub(crate) fn launch(bed: &Bed, mut mpirun: Command, args: &[&str]) -> Command {
    mpirun.current_dir(bed.path("")).stdin(Stdio::null());
    mpirun.arg(env!("CARGO_BIN_EXE_feedline")).args(args);
    mpirun
}

/// Everything that must not depend on where the ranks are.
#[derive(Debug, PartialEq)]
struct Counts {
    files: BTreeSet<String>,
    summary: Vec<(String, Value)>,
    /// Of each rank: the number of entries of every list, and the keys of its statistics.
    ranks: Vec<Value>,
}

/// Lists by their lengths, numbers and texts by nothing.
fn shape(value: &Value) -> Value {
    match value {
        Value::Array(items) => items.len().into(),
        Value::Object(map) => {
            let kept = map.iter().filter(|(key, _)| !key.starts_with("host"));
            kept.map(|(key, value)| (key.clone(), shape(value))).collect()
        }
        _ => Value::Null,
    }
}

fn counts(bed: &Bed, out: &str) -> Counts {
    let inside = |path: String| path.strip_prefix(&format!("{out}/")).map(str::to_owned);
    let summary = bed.json(&format!("{out}/summary.json"));
    let own = &summary["feedline"];
    let storage = |op: &str, count: &str| {
        let name = format!("{op} {count}");
        (name, own["storage"][op][count].clone())
    };
    let whole = ["num_accelerators", "num_files_train", "num_files_eval", "epochs"];
    let mut numbers: Vec<_> =
        whole.iter().map(|key| ((*key).to_owned(), summary[*key].clone())).collect();
    numbers.extend(["steps", "accelerators"].map(|key| (key.to_owned(), own[key].clone())));
    numbers.extend(
        [("open", "calls"), ("read", "calls"), ("read", "bytes")]
            .map(|(op, count)| storage(op, count)),
    );
    let checkpoint = &summary["metric"]["checkpoint_size_GB"];
    numbers.push(("checkpoint".into(), checkpoint.clone()));
    numbers.push(("metrics".into(), shape(&summary["metric"])));
    let of_rank = |rank: u64| {
        let file = |name: &str| shape(&bed.json(&format!("{out}/{rank}_{name}.json")));
        let steps = bed.read(&format!("{out}/{rank}_steps.csv")).lines().count();
        Value::from(vec![file("output"), file("per_epoch_stats"), steps.into()])
    };
    let ranks = summary["num_accelerators"].as_u64().expect("a number");
    Counts {
        files: bed.tree().into_iter().filter_map(inside).collect(),
        summary: numbers,
        ranks: (0..ranks).map(of_rank).collect(),
    }
}

#[track_caller]
pub(crate) fn ends_well(command: &mut Command) -> Ran {
    let ran = ran(command);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    ran
}

#[test]
fn a_job_counts_the_same_wherever_its_ranks_are() {
    let bed = bed();
    bed.runs(&["job.yaml", "-n", "4", "--out", "alone"]);
    let alone = counts(&bed, "alone");
    let number =
        |name: &str| alone.summary.iter().find(|(key, _)| key == name).expect(name).1.clone();
    // 12 files in each of two epochs, 4 evaluation files are not the training readers'.
    assert_eq!((number("open calls"), number("read bytes")), (24.into(), (24 * FILE_BYTES).into()));
    assert_eq!(number("steps"), 6);
    let hosts = Hosts::new(&["alpha", "beta"]);
    let spread = |out: &str, mpirun: Command, more: &[&str]| {
        let args = [&["run", "job.yaml", "--out", out], more].concat();
        ends_well(&mut launch(&bed, mpirun, &args));
        assert_eq!(counts(&bed, out), alone, "{out}");
        bed.json(&format!("{out}/summary.json"))
    };
    let four = spread("four", single::mpirun(4), &[]);
    assert_eq!((&four["feedline"]["processes"], &four["num_hosts"]), (&4.into(), &1.into()));
    let two = spread("two", single::mpirun(2), &["-n", "4"]);
    assert_eq!((&two["feedline"]["processes"], &two["num_hosts"]), (&2.into(), &1.into()));
    let apart = spread("apart", hosts.mpirun(&["alpha:2", "beta:2"]), &[]);
    assert_eq!((&apart["feedline"]["processes"], &apart["num_hosts"]), (&4.into(), &2.into()));
    let pairs = spread("pairs", hosts.mpirun(&["alpha:1", "beta:1"]), &["-n", "4"]);
    assert_eq!((&pairs["feedline"]["processes"], &pairs["num_hosts"]), (&2.into(), &2.into()));
}

/// The nth file is 4^n times as large as the first, so that the sum of all bytes read tells how often
/// each file was, as long as none was four times.
#[test]
fn every_sample_is_read_once_an_epoch() {
    let bed = bed();
    let sizes: Vec<usize> = (0..8).map(|n| 4usize.pow(n)).collect();
    let mut bytes = 0;
    for (number, size) in sizes.iter().enumerate() {
        let head = format!("{{'descr': '|u1', 'fortran_order': False, 'shape': ({size},), }}");
        let mut file = b"\x93NUMPY\x01\x00\x76\x00".to_vec();
        file.extend(format!("{head:117}\n").as_bytes());
        file.resize(file.len() + size, 7);
        bytes += file.len();
        bed.write(&format!("data/train/img_{number}_of_8.npy"), file);
    }
    let set = ["dataset.format=npy", "dataset.num_files_train=8", "workflow.evaluation=False"];
    let set = set.iter().chain(&["workflow.generate_data=False", "train.epochs=1"]);
    let set: Vec<&str> = set.flat_map(|set| ["--set", *set]).collect();
    let hosts = Hosts::new(&["alpha", "beta"]);
    let spreads = [single::mpirun(4), single::mpirun(1), hosts.mpirun(&["alpha:2", "beta:2"])];
    for (number, mpirun) in spreads.into_iter().enumerate() {
        let out = number.to_string();
        let args = [&["run", "job.yaml", "-n", "4", "--out", &out], &set[..]].concat();
        ends_well(&mut launch(&bed, mpirun, &args));
        let read = &bed.json(&format!("{out}/summary.json"))["feedline"]["storage"]["read"];
        assert_eq!((&read["calls"], &read["bytes"]), (&8.into(), &bytes.into()), "{number}");
    }
}

#[test]
fn q40_ranks_dealt_round_the_hosts_are_reported_where_they_are() {
    let bed = bed();
    let hosts = Hosts::new(&["alpha", "beta"]);
    let mut mpirun = hosts.mpirun(&["alpha:2", "beta:2"]);
    mpirun.args(["--map-by", "node"]);
    ends_well(&mut launch(&bed, mpirun, &["run", "job.yaml", "--out", "out"]));
    let summary = bed.json("out/summary.json");
    let own = summary["feedline"]["hosts"].as_array().expect("a list");
    let places: Vec<_> = own.iter().map(|host| (&host["name"], &host["ranks"])).collect();
    assert_eq!(
        places,
        [(&"alpha".into(), &vec![0, 2].into()), (&"beta".into(), &vec![1, 3].into())]
    );
    let name = |rank: u32| bed.json(&format!("out/{rank}_output.json"))["hostname"].clone();
    assert_eq!([0, 1, 2, 3].map(name), ["alpha", "beta", "alpha", "beta"]);
    // One entry a host, and each of the whole host: both have the processors of this machine.
    let cpus = bed.shell("grep -c ^processor /proc/cpuinfo").stdout.trim().parse::<u64>().unwrap();
    assert_eq!(summary["host_cpu_count"], Value::from(vec![cpus, cpus]));
    assert_eq!(summary["host_memory_GB"].as_array().map(Vec::len), Some(2));
    assert_eq!((&summary["num_hosts"], &summary["hostname"]), (&2.into(), &"alpha".into()));
}

#[test]
fn a_set_is_the_same_whoever_made_it() {
    let (one, many) = (bed(), bed());
    one.runs(&["job.yaml", "--generate-only", "--out", "out"]);
    let mpirun = single::mpirun(3);
    ends_well(&mut launch(&many, mpirun, &["run", "job.yaml", "--generate-only", "--out", "out"]));
    assert_eq!(one.tree(), many.tree());
    let entries = |bed: &Bed| {
        let manifest = bed.json("data/feedline.manifest.json");
        let files = manifest["files"].as_array().expect("a list").iter();
        files.map(|entry| (entry["name"].to_string(), entry["crc32"].clone())).collect::<Vec<_>>()
    };
    let (mut expected, mut made) = (entries(&one), entries(&many));
    expected.sort_by(|a, b| a.0.cmp(&b.0));
    made.sort_by(|a, b| a.0.cmp(&b.0));
    assert_eq!((made.len(), &made), (16, &expected));
    let verified = ran(&mut many.feedline(&["verify", "data"]));
    assert_eq!(verified.code, Some(0), "{verified:?}");
}

/// The lines of Feedline's own among what a job said.
pub(crate) fn own_lines<'a>(ran: &'a Ran, begin: &str) -> Vec<&'a str> {
    ran.stderr.lines().filter(|line| line.starts_with(begin)).collect()
}

/// Unshuffled, file 7 of 12 is the last rank's of four, the second one of its process.
#[test]
fn q39_a_failing_rank_ends_the_job_with_its_error() {
    let bed = bed();
    bed.runs(&["job.yaml", "--generate-only", "--out", "made"]);
    bed.write("data/train/img_07_of_12.npz", "no zip");
    let hosts = Hosts::new(&["alpha", "beta"]);
    let sets = ["--set", "workflow.generate_data=False", "--set", "reader.sample_shuffle=off"];
    let args = [&["run", "job.yaml", "-n", "4", "--out", "out"], &sets[..]].concat();
    let ran = ran(&mut launch(&bed, hosts.mpirun(&["alpha:1", "beta:1"]), &args));
    assert_eq!(ran.code, Some(2), "{ran:?}");
    let error = "error: rank 3 on beta: ./data/train/img_07_of_12.npz: sample 0 cannot be read: not \
                 an npz: begins with [6e, 6f, 20, 7a]";
    assert_eq!(own_lines(&ran, "error: "), [error]);
    assert_eq!(own_lines(&ran, "hint: ").len(), 1);
    assert!(
        bed.read("out/dlio.log").contains("rank 3 ended the job: ./data/train/img_07_of_12.npz")
    );
    assert!(!bed.path("out/summary.json").exists());
    assert!(!bed.path("out/.feedline.lock").exists(), "rank 0 has cleaned up");
}

#[test]
fn a_host_that_does_not_see_the_data_is_named() {
    let bed = bed();
    bed.runs(&["job.yaml", "--generate-only", "--out", "made"]);
    let hosts = Hosts::new(&["alpha", "beta"]);
    let mut mount = hosts.on("beta", "mount");
    assert!(mount.args(["-t", "tmpfs", "none"]).arg(bed.path("data")).status().unwrap().success());
    let args = ["run", "job.yaml", "--set", "workflow.generate_data=False", "--out", "out"];
    let ran = ran(&mut launch(&bed, hosts.mpirun(&["alpha:1", "beta:1"]), &args));
    assert_eq!(ran.code, Some(2), "{ran:?}");
    let error = "error: rank 1 on beta: ./data/train/img_00_of_12.npz: missing on host beta, but \
                 present on the host of rank 0";
    assert_eq!(own_lines(&ran, "error: "), [error]);
    assert!(!bed.path("out").exists(), "nothing was written");
}

#[test]
fn what_is_wrong_with_a_command_line_is_said_once() {
    let bed = bed();
    let check = |args: &[&str], error: &str| {
        let ran = ran(&mut launch(&bed, single::mpirun(3), args));
        assert_eq!((ran.code, own_lines(&ran, "error: ")), (Some(2), vec![error]), "{ran:?}");
        assert!(!bed.path("data").exists() && !bed.path("out").exists());
    };
    check(&["run", "jop"], "error: no workload is called `jop`");
    check(&["run", "job.yaml", "--nope"], "error: unexpected argument '--nope' found");
    check(
        &["run", "job.yaml", "-n", "2", "--out", "out"],
        "error: 2 accelerators cannot be spread over 3 processes: each holds at least one",
    );
    check(
        &["verify", "data"],
        "error: only `feedline run` can run in several processes, but 3 were started",
    );
}

#[test]
fn processes_that_mpi_does_not_join_are_refused() {
    let bed = bed();
    let ran = ran(bed.feedline(&["run", "job.yaml", "--out", "out"]).env("WORLD_SIZE", "2"));
    let error = "error: started 2 times by torchrun, but MPI sees 1 of the processes";
    assert_eq!((ran.code, own_lines(&ran, "error: ")), (Some(2), vec![error]), "{ran:?}");
    assert_eq!(bed.tree(), ["job.yaml"]);
}

#[test]
fn as_dlio_one_process_is_one_rank() {
    let bed = bed();
    std::os::unix::fs::symlink(env!("CARGO_BIN_EXE_feedline"), bed.path("dlio_benchmark")).unwrap();
    bed.write("config/workload/job.yaml", JOB);
    let mut mpirun = single::mpirun(2);
    mpirun.current_dir(bed.path("")).arg("./dlio_benchmark");
    mpirun.args(["workload=job", "--config-dir=config", "hydra.run.dir=run"]);
    let ran = ends_well(&mut mpirun);
    let summary = bed.json("run/summary.json");
    assert_eq!(summary["num_accelerators"], 2);
    assert!(bed.path("run/1_output.json").exists() && bed.path("run/.hydra/config.yaml").exists());
    assert_eq!(ran.stderr.matches("[METRIC] Number of Simulated Accelerators: 2").count(), 1);
}

/// A job in the background.
pub(crate) fn start(bed: &Bed, mpirun: Command, args: &[&str]) -> Running {
    let mut command = launch(bed, mpirun, args);
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    Running::new(command.spawn().expect("the command starts"))
}

/// The process of that rank of the job in this folder.
fn process(bed: &Bed, rank: u32) -> Option<u32> {
    let folder = fs::canonicalize(bed.path("")).ok()?;
    let mark = format!("OMPI_COMM_WORLD_RANK={rank}");
    fs::read_dir("/proc").ok()?.find_map(|entry| {
        let path = entry.ok()?.path();
        let pid = path.file_name()?.to_str()?.parse().ok()?;
        let here = fs::read_link(path.join("cwd")).ok()? == folder;
        let environment = fs::read(path.join("environ")).ok()?;
        let marked = environment.split(|&byte| byte == 0).any(|text| text == mark.as_bytes());
        let ours = fs::read_link(path.join("exe")).ok()?
            == fs::canonicalize(env!("CARGO_BIN_EXE_feedline")).ok()?;
        (here && marked && ours).then_some(pid)
    })
}

/// Kills one process of a job; how mpirun ended, when all others are gone.
pub(crate) fn kill_rank(bed: &Bed, job: Running, rank: u32) -> Ran {
    let pid = process(bed, rank).expect("the rank runs");
    assert!(Command::new("kill").args(["-KILL", &pid.to_string()]).status().unwrap().success());
    let ran = job.wait();
    bed.wait_until("no process is left", |bed| (0..4).all(|rank| process(bed, rank).is_none()));
    ran
}

#[test]
fn a_rank_that_is_killed_while_generating_leaves_whole_files_and_a_rerun_goes_on() {
    let bed = bed();
    let more = ["--set", "dataset.num_files_train=3000", "--generate-only"];
    let args = [&["run", "job.yaml", "--out", "out"], &more[..]].concat();
    let job = start(&bed, single::mpirun(3), &args);
    bed.wait_until("some files are there", |bed| {
        fs::read_dir(bed.path("data/train")).is_ok_and(|files| files.count() > 100)
    });
    let killed = kill_rank(&bed, job, 1);
    assert_eq!(killed.code, Some(137), "{killed:?}");
    let whole = |path: &String| path.starts_with("data/") && path.contains("/img_");
    let left: Vec<_> = bed.tree().into_iter().filter(whole).collect();
    assert!((100..3004).contains(&left.len()), "{} files", left.len());
    for file in &left {
        assert_eq!(fs::metadata(bed.path(file)).unwrap().len(), FILE_BYTES, "{file}");
    }
    let args = [&["run", "job.yaml", "--out", "again", "--overwrite"], &more[..]].concat();
    ends_well(&mut launch(&bed, single::mpirun(2), &args));
    let kept = format!("{} of 3004 files already existed", left.len());
    assert!(bed.read("again/dlio.log").contains(&kept), "{kept}: {}", bed.read("again/dlio.log"));
    let verified = ran(&mut bed.feedline(&["verify", "data"]));
    assert_eq!(verified.code, Some(0), "{verified:?}");
    let partial: Vec<_> = bed.tree().into_iter().filter(|path| path.contains("partial")).collect();
    assert_eq!(partial, [""; 0]);
}

#[test]
fn a_rank_that_is_killed_while_training_ends_the_job() {
    let bed = bed();
    let args = ["run", "job.yaml", "--out", "out", "--epochs", "100000"];
    let job = start(&bed, single::mpirun(3), &args);
    bed.wait_for_log("out/dlio.log", "Ending epoch 2");
    let killed = kill_rank(&bed, job, 2);
    assert_eq!(killed.code, Some(137), "{killed:?}");
    assert!(!bed.path("out/summary.json").exists());
    let again = ["run", "job.yaml", "--out", "out", "--overwrite"];
    ends_well(&mut launch(&bed, single::mpirun(3), &again));
    assert_eq!(bed.json("out/summary.json")["num_accelerators"], 3);
    assert_eq!(bed.json("out/summary.json")["feedline"]["generation"]["kept_files"], 16);
}

/// One process is asked to stop while files are made; the other one would make its own for an hour.
#[test]
fn a_stop_of_one_process_is_one_of_all() {
    let bed = bed();
    let slow = ["--generate-only", "--store-limit", "1kB/s"];
    let args = [&["run", "job.yaml", "--out", "out"], &slow[..]].concat();
    let job = start(&bed, single::mpirun(2), &args);
    bed.wait_for_log("out/dlio.log", "Starting data generation");
    let pid = process(&bed, 1).expect("the rank runs").to_string();
    assert!(Command::new("kill").args(["-INT", &pid]).status().unwrap().success());
    let ran = job.wait();
    assert_eq!(ran.code, Some(130), "{ran:?}");
}

#[test]
fn a_signal_that_mpirun_passes_on_stops_the_job_with_its_results() {
    let bed = bed();
    let args = ["run", "job.yaml", "--out", "out", "--epochs", "100000"];
    let hosts = Hosts::new(&["alpha", "beta"]);
    let job = start(&bed, hosts.mpirun(&["alpha:1", "beta:1"]), &args);
    bed.wait_for_log("out/dlio.log", "Ending epoch 2");
    job.signal("USR1");
    let ran = job.wait();
    assert_eq!(ran.code, Some(130), "{ran:?}");
    let summary = bed.json("out/summary.json");
    assert_eq!(summary["feedline"]["interrupted"], true);
    assert!(ran.stdout.starts_with("INTERRUPTED"), "{ran:?}");
    let steps = |rank: u32| {
        bed.read(&format!("out/{rank}_steps.csv"))
            .lines()
            .filter(|line| line.contains("block"))
            .count()
    };
    assert_eq!(steps(0), steps(1));
    assert!(steps(0) >= 12);
}
