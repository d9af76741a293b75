"""TensorFlow judges how tf.data's files go to ranks and batches (tensorflow-cpu 2.21.0); strace, that
nobody opens a file before its reader."""

import json
import re
import subprocess

import pytest
import tensorflow as tf

# Files, records each, ranks, readers, batch, whether batches are dropped.
CASES = [
    (6, 10, 4, 1, 4, False),
    (6, 10, 4, 2, 4, True),
    (6, 4, 4, 3, 3, False),
    (5, 7, 2, 2, 4, False),
    (3, 5, 4, 1, 2, False),
    (3, 5, 4, 2, 2, False),
]


def workload(feedline, **sections):
    base = {
        "framework": "tensorflow",
        "workflow": {"generate_data": True, "train": True},
        "model": {"name": "judged"},
    }
    return feedline.workload(**(base | sections))


def traced(feedline, path, ranks):
    """The batches of each rank as lists of samples, and the results."""
    folder = feedline.folder
    feedline("run", path, "-n", ranks, "--out", "out", "--trace", "trace").ok()
    feedline("convert", "trace", "trace.json", "--to", "chrome").ok()
    events = json.loads((folder / "trace.json").read_text())
    events = events["traceEvents"] if isinstance(events, dict) else events
    names = {e["tid"]: e["args"]["name"] for e in events if e["name"] == "thread_name"}
    found = [{} for _ in range(ranks)]
    for event in (e for e in events if e["name"] == "item"):
        # What is read ahead and goes into no batch has no step.
        if (step := event["args"].get("step")) is not None:
            rank = int(names[event["tid"]].split()[1])
            found[rank].setdefault(step, set()).add(event["args"]["sample"])
    summary = json.loads((folder / "out" / "summary.json").read_text())["feedline"]
    return [[steps[k] for k in sorted(steps)] for steps in found], summary


@pytest.mark.parametrize("case", CASES, ids=str)
def test_files_go_to_ranks_as_tf_data_shards_them(feedline, case):
    files, per_file, ranks, readers, batch, drops = case
    reader = {"batch_size": batch, "read_threads": readers} | ({"drop_last": True} if drops else {})
    dataset = {
        "format": "tfrecord",
        "num_files_train": files,
        "num_samples_per_file": per_file,
        "record_length_bytes": 256,
        "data_folder": str(feedline.folder / "data"),
    }
    path = workload(feedline, dataset=dataset, reader=reader)
    found, summary = traced(feedline, path, ranks)

    names = sorted(str(name) for name in (feedline.folder / "data" / "train").iterdir())
    number = {}
    for name in names:
        for record in tf.data.TFRecordDataset(name):
            number[record.numpy()] = len(number)
    assert len(number) == files * per_file, "records differ from one another"

    def of(rank):
        listed = tf.data.Dataset.from_tensor_slices(names)
        if files >= ranks:
            listed = listed.shard(ranks, rank)
        records = tf.data.TFRecordDataset(listed, num_parallel_reads=readers)
        if files < ranks:
            records = records.shard(ranks, rank)
        batches = records.batch(batch, drop_remainder=drops)
        return [{number[record] for record in found.numpy()} for found in batches]

    expected = [of(rank) for rank in range(ranks)]
    steps = min(map(len, expected))
    assert found == [rank[:steps] for rank in expected]
    assert summary["steps"] == steps
    sharding = summary["sharding"]
    assert sharding["name"] == ("files" if files >= ranks else "records")
    assert sharding["samples_read"] == sum(len(step) for rank in expected for step in rank[:steps])
    assert sharding["samples_left_out"] == files * per_file - sharding["samples_read"]


# strace pads numbers of processes to five places.
CALL = re.compile(r"^(\d+)\s+(openat|open|stat|lstat|newfstatat|statx|access|faccessat2?|pread64|read)\((.*)")
FILE = re.compile(r"/data/train/img_\d+_of_24\.npy")


def test_no_file_is_opened_by_anybody_but_its_reader(feedline):
    dataset = {
        "format": "npy",
        "num_files_train": 24,
        "record_length_bytes": 4096,
        "data_folder": str(feedline.folder / "data"),
    }
    path = workload(feedline, framework="pytorch", dataset=dataset, reader={"read_threads": 2})
    feedline("run", path, "--generate-only", "--out", "made").ok()
    log = feedline.folder / "strace.txt"
    argv = ["strace", "-f", "-y", "-o", log, "-e", "trace=openat,open,stat,lstat,newfstatat,statx,access,faccessat,faccessat2,pread64,read"]
    argv += [feedline.binary, "run", path, "--set", "workflow.generate_data=false", "--out", "out"]
    subprocess.run(list(map(str, argv)), cwd=feedline.folder, check=True, capture_output=True, timeout=300)
    first, last = {}, {}
    for line in log.read_text().splitlines():
        found, name = CALL.match(line), FILE.search(line)
        if found and name:
            thread, call = found.group(1), found.group(2)
            first.setdefault(name.group(), (thread, call))
            if call in ("pread64", "read"):
                last.setdefault(name.group(), thread)
    assert len(first) == 24
    for name, (thread, call) in first.items():
        assert call in ("open", "openat"), f"{name} was first touched by {call}"
        assert last[name] == thread, f"{name} was opened by one thread and read by another"
    share = json.loads((feedline.folder / "out" / "summary.json").read_text())["feedline"]
    assert share["cached_share_percentage"] == [100.0], "the data was just written"
