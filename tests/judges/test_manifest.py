"""Python's zlib and json judge the manifest that a generation writes, and what `verify` says."""

import json
import zlib

import pytest
from conftest import strict_json

NAME = "feedline.manifest.json"


def generate(feedline, out, **dataset):
    """Generates the data set and returns its folder."""
    workload = feedline.workload(
        model={"name": "judged"},
        framework="pytorch",
        workflow={"generate_data": True, "train": False},
        dataset=dataset,
        reader={"data_loader": "pytorch", "batch_size": 1},
    )
    data = feedline.folder / "data"
    feedline(
        "run", workload, "--generate-only", "--data", data, "--out", feedline.folder / out,
    ).ok()
    return data


def sums(data):
    """Size and checksum of every file of the data set, as the manifest would say it."""
    found = {}
    for path in data.rglob("*"):
        if path.is_file() and path.name != NAME:
            content = path.read_bytes()
            found[str(path.relative_to(data))] = (len(content), f"{zlib.crc32(content):08x}")
    return found


def check(data):
    """Every file is in the manifest once, nothing else is, and the numbers are right."""
    manifest = strict_json(data / NAME)
    assert manifest["feedline_manifest"] == 1
    assert manifest["complete"] is True
    entries = {entry["name"]: (entry["bytes"], entry["crc32"]) for entry in manifest["files"]}
    assert len(entries) == len(manifest["files"])
    assert entries == sums(data)
    totals = {"files": len(entries), "bytes": sum(size for size, _ in entries.values())}
    assert manifest["totals"] == totals
    return manifest


@pytest.mark.parametrize(
    "dataset",
    [
        {"format": "npz", "num_files_train": 5, "record_length_bytes": 4096},
        {"format": "npz", "num_files_train": 3, "record_length_bytes": 5_000_000},
        {"format": "npy", "num_files_train": 23, "num_files_eval": 11, "num_subfolders_train": 10,
         "num_subfolders_eval": 3, "record_length_bytes": 1000, "record_length_bytes_stdev": 900},
        {"format": "npy", "num_files_train": 2, "num_samples_per_file": 7,
         "record_dims": [3, 5, 70_001], "record_element_type": "float32"},
        {"format": "synthetic", "num_files_train": 12},
        {"format": "tfrecord", "num_files_train": 6, "num_files_eval": 2,
         "num_subfolders_train": 3, "num_samples_per_file": 4, "record_length_bytes": 900},
        {"format": "indexed_binary", "num_files_train": 3, "num_samples_per_file": 5},
        {"format": "hdf5", "num_files_train": 2, "compression": "gzip"},
        {"format": "csv", "num_files_train": 2, "compression": "gzip"},
    ],
    ids=lambda dataset: f"{dataset['format']}-{dataset['num_files_train']}",
)
def test_every_checksum_is_zlibs(feedline, dataset):
    data = generate(feedline, "out", **dataset)
    manifest = check(data)
    assert manifest["recipe"]["format"] == dataset["format"]
    verified = json.loads(feedline("verify", data, "--json").ok().out)
    assert verified["good"] is True
    assert verified["files"] == manifest["totals"]["files"]


def test_a_repaired_set_is_the_old_one(feedline):
    dataset = {"format": "npz", "num_files_train": 6, "record_length_bytes": 30_000,
               "record_length_bytes_stdev": 5_000}
    data = generate(feedline, "out", **dataset)
    before = sums(data)
    files = sorted((data / "train").iterdir())
    files[0].unlink()
    files[1].write_bytes(files[1].read_bytes()[:-1])
    ended = feedline("verify", data)
    assert ended.code == 1
    assert ended.out.splitlines()[-1] == "2 of 6 files are bad"
    generate(feedline, "again", **dataset)
    check(data)
    assert sums(data) == before


def test_every_flipped_byte_is_found(feedline):
    data = generate(feedline, "out", format="npy", num_files_train=1, record_length_bytes=64)
    path = next((data / "train").iterdir())
    content = path.read_bytes()
    expected = f"{zlib.crc32(content):08x}"
    for place in range(0, len(content), 17):
        flipped = bytearray(content)
        flipped[place] ^= 0x10
        path.write_bytes(flipped)
        ended = feedline("verify", data, "--json")
        assert ended.code == 1
        found = f"{zlib.crc32(flipped):08x}"
        bad = {"name": f"train/{path.name}", "fault": "crc32", "found": found, "expected": expected}
        assert json.loads(ended.out)["bad"] == [bad]
