"""Feedline reads data sets that NumPy wrote the way DLIO writes them."""

import numpy as np
import pytest

from conftest import strict_json


def write_data_set(data, part, files, shape, extension, folders=0, dtype=np.uint8):
    """Writes files `img_<i>_of_<n>` with the sample axis last, as DLIO's generators do."""
    random = np.random.default_rng(1)
    width = len(str(files))
    for i in range(files):
        folder = data / part
        if folders > 1:
            folder = folder / f"{i % folders:0{len(str(folders))}}"
        folder.mkdir(parents=True, exist_ok=True)
        path = folder / f"img_{i:0{width}}_of_{files}.{extension}"
        samples = random.integers(0, 255, size=shape).astype(dtype)
        if extension == "npz":
            np.savez(path, x=samples, y=[0] * shape[-1])
        else:
            np.save(path, samples)


def steps_of(out, epoch, phase="block1"):
    """How many steps rank 0 recorded in this epoch and phase."""
    return len(strict_json(out / "0_output.json")[str(epoch)]["load"][phase])


@pytest.mark.parametrize("extension", ["npz", "npy"])
@pytest.mark.parametrize(
    "files,samples,folders,batch,threads,dtype",
    [
        (8, 1, 0, 2, 1, np.uint8),
        (8, 1, 0, 1, 0, np.uint8),
        (12, 1, 3, 4, 2, np.uint8),
        (6, 5, 0, 3, 4, np.float32),
        (7, 3, 2, 2, 2, np.int64),
    ],
)
def test_reads_what_numpy_wrote(
    feedline, extension, files, samples, folders, batch, threads, dtype
):
    data, out = feedline.folder / "data", feedline.folder / "out"
    write_data_set(data, "train", files, (16, 12, samples), extension, folders, dtype)
    workload = feedline.workload(
        model={"name": "judged"},
        framework="pytorch",
        workflow={"generate_data": False, "train": True},
        dataset={
            "format": extension, "num_files_train": files, "num_samples_per_file": samples,
            "num_subfolders_train": folders, "record_dims": [16, 12],
            "record_element_type": np.dtype(dtype).name,
        },
        reader={"data_loader": "pytorch", "batch_size": batch, "read_threads": threads},
        train={"epochs": 2, "computation_time": 0},
    )
    feedline("run", workload, "--data", data, "--out", out).ok()
    for epoch in (1, 2):
        # The last batch may be short.
        assert steps_of(out, epoch) == -(-files * samples // batch)
    summary = strict_json(out / "summary.json")
    assert summary["epochs"] == 2
    assert summary["num_files_train"] == files
    assert summary["num_samples_per_file"] == samples


def test_evaluation_reads_the_valid_files(feedline):
    data, out = feedline.folder / "data", feedline.folder / "out"
    write_data_set(data, "train", 8, (16, 16, 1), "npz")
    write_data_set(data, "valid", 6, (16, 16, 1), "npz")
    workload = feedline.workload(
        model={"name": "judged"},
        framework="pytorch",
        workflow={"generate_data": False, "train": True, "evaluation": True},
        dataset={
            "format": "npz", "num_files_train": 8, "num_files_eval": 6,
            "record_length_bytes": 256,
        },
        reader={"data_loader": "pytorch", "batch_size": 4, "batch_size_eval": 3},
        train={"epochs": 1, "computation_time": 0},
        evaluation={"eval_time": 0},
    )
    feedline("run", workload, "--data", data, "--out", out).ok()
    assert steps_of(out, 1) == 2
    assert steps_of(out, 1, "eval") == 2


def test_ranks_share_the_samples(feedline):
    data, out = feedline.folder / "data", feedline.folder / "out"
    write_data_set(data, "train", 12, (8, 8, 1), "npz")
    workload = feedline.workload(
        model={"name": "judged"},
        framework="pytorch",
        workflow={"generate_data": False, "train": True},
        dataset={"format": "npz", "num_files_train": 12, "record_length_bytes": 64},
        reader={"data_loader": "pytorch", "batch_size": 2},
        train={"epochs": 1, "computation_time": 0},
    )
    feedline("run", workload, "--accelerators", 3, "--data", data, "--out", out).ok()
    for rank in range(3):
        assert len(strict_json(out / f"{rank}_output.json")["1"]["load"]["block1"]) == 2
    assert strict_json(out / "summary.json")["num_accelerators"] == 3


def test_a_damaged_file_is_named(feedline):
    data, out = feedline.folder / "data", feedline.folder / "out"
    write_data_set(data, "train", 4, (16, 16, 1), "npz")
    victim = data / "train" / "img_2_of_4.npz"
    victim.write_bytes(victim.read_bytes()[:100])
    workload = feedline.workload(
        model={"name": "judged"},
        framework="pytorch",
        workflow={"generate_data": False, "train": True},
        dataset={"format": "npz", "num_files_train": 4, "record_length_bytes": 256},
        reader={"data_loader": "pytorch", "batch_size": 1},
        train={"epochs": 1, "computation_time": 0},
    )
    ended = feedline("run", workload, "--data", data, "--out", out)
    assert ended.code == 2
    assert "img_2_of_4.npz" in ended.err
