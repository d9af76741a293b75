"""pandas and NumPy judge indexed binary, csv and compressed npz files.

Values are compared with the npy that Feedline makes of the same data set: the samples of a file are
the same bytes in every format.
"""

import zipfile

import numpy as np
import pandas as pd
import pytest

from conftest import generate_two, strict_json

DTYPES = ["uint8", "int8", "uint16", "int32", "int64", "uint64", "float16", "float32", "float64"]
SHAPES = [([11], 1), ([4, 6], 3), ([2, 3, 4], 10)]


def expected_samples(feedline, samples, **dataset):
    """The samples of each file, one row a sample, from the npy of the same data set."""
    data = generate_two(feedline, format="npy", num_samples_per_file=samples, **dataset)
    for i in range(2):
        array = np.load(data / "train" / f"img_{i}_of_2.npy")
        yield array.reshape(-1).reshape(samples, -1)


def train(feedline, data, samples, **dataset):
    """Reads one epoch of the data set's two files and returns how many steps that took."""
    out = feedline.folder / f"out-read-{data.name}"
    framework = "tensorflow" if dataset["format"] == "tfrecord" else "pytorch"
    workload = feedline.workload(
        model={"name": "judged"},
        framework=framework,
        workflow={"generate_data": False, "train": True},
        dataset={"num_files_train": 2, "num_samples_per_file": samples, **dataset},
        reader={"data_loader": framework, "batch_size": 1},
        train={"epochs": 1, "computation_time": 0},
    )
    feedline("run", workload, "--data", data, "--out", out).ok()
    return len(strict_json(out / "0_output.json")["1"]["load"]["block1"])


@pytest.mark.parametrize("name", ["indexed_binary", "mmap_indexed_binary"])
@pytest.mark.parametrize("dtype", ["uint8", "float32", "int64"])
@pytest.mark.parametrize("dims,samples", SHAPES)
def test_numpy_reads_indexed_binary(feedline, name, dims, samples, dtype):
    dataset = {"record_dims": dims, "record_element_type": dtype}
    data = generate_two(feedline, format=name, num_samples_per_file=samples, **dataset)
    for i, expected in enumerate(expected_samples(feedline, samples, **dataset)):
        path = data / "train" / f"img_{i}_of_2.{name}"
        offsets = np.fromfile(f"{path}.off.idx", dtype="<u8")
        sizes = np.fromfile(f"{path}.sz.idx", dtype="<u8")
        assert len(offsets) == len(sizes) == samples
        stored = np.memmap(path, dtype=np.uint8, mode="r")
        assert stored.size == expected.nbytes
        for offset, size, sample in zip(offsets, sizes, expected):
            assert stored[int(offset) : int(offset + size)].tobytes() == sample.tobytes()


@pytest.mark.parametrize("name", ["indexed_binary", "mmap_indexed_binary"])
def test_indexed_binary_of_numpy_is_read(feedline, name):
    data = feedline.folder / "data"
    (data / "train").mkdir(parents=True)
    for i in range(2):
        path = data / "train" / f"img_{i}_of_2.{name}"
        sizes = np.array([64, 10, 200], dtype="<u8")
        offsets = np.array([210, 200, 0], dtype="<u8")
        np.zeros(274, dtype=np.uint8).tofile(path)
        offsets.tofile(f"{path}.off.idx")
        sizes.tofile(f"{path}.sz.idx")
    assert train(feedline, data, 3, format=name, record_dims=[8, 8]) == 6


@pytest.mark.parametrize("compression,extension", [("none", "csv"), ("gzip", "csv.gz")])
@pytest.mark.parametrize("dtype", ["bool", *DTYPES])
@pytest.mark.parametrize("dims,samples", SHAPES)
def test_pandas_reads_csv(feedline, dims, samples, dtype, compression, extension):
    dataset = {"record_dims": dims, "record_element_type": dtype}
    data = generate_two(
        feedline, format="csv", num_samples_per_file=samples, compression=compression, **dataset
    )
    for i, expected in enumerate(expected_samples(feedline, samples, **dataset)):
        path = data / "train" / f"img_{i}_of_2.{extension}"
        frame = pd.read_csv(path, header=None)
        assert frame.shape == expected.shape
        np.testing.assert_array_equal(frame.astype(dtype).to_numpy(), expected)
        if compression == "none":
            assert path.read_text() == pd.DataFrame(expected).to_csv(header=False, index=False)


@pytest.mark.parametrize("compression,extension", [("none", "csv"), ("gzip", "csv.gz")])
@pytest.mark.parametrize("dtype", ["uint8", "int64", "float32", "float64"])
def test_csv_of_pandas_is_read(feedline, compression, extension, dtype):
    data = feedline.folder / "data"
    (data / "train").mkdir(parents=True)
    random = np.random.default_rng(1)
    for i in range(2):
        frame = pd.DataFrame((random.normal(size=(5, 64)) * 100).astype(dtype))
        frame.to_csv(data / "train" / f"img_{i}_of_2.{extension}", header=False, index=False)
    dataset = {"record_dims": [8, 8], "record_element_type": dtype, "compression": compression}
    assert train(feedline, data, 5, format="csv", **dataset) == 10


@pytest.mark.parametrize("level", [0, 1, 6, 9])
@pytest.mark.parametrize("dtype", DTYPES)
def test_numpy_reads_compressed_npz(feedline, dtype, level):
    dataset = {"record_dims": [5, 7], "record_element_type": dtype}
    data = generate_two(
        feedline, format="npz", num_samples_per_file=4, compression="zip",
        compression_level=level, **dataset,
    )
    for i, expected in enumerate(expected_samples(feedline, 4, **dataset)):
        path = data / "train" / f"img_{i}_of_2.npz"
        with zipfile.ZipFile(path) as archive:
            assert archive.testzip() is None
            assert archive.namelist() == ["x.npy", "y.npy"]
            assert {info.compress_type for info in archive.infolist()} == {zipfile.ZIP_DEFLATED}
        with np.load(path, allow_pickle=False) as arrays:
            assert arrays["x"].dtype == np.dtype(dtype)
            assert arrays["x"].shape == (5, 7, 4)
            assert arrays["x"].tobytes() == expected.tobytes()
            assert arrays["y"].dtype == np.int64
            assert arrays["y"].shape == (4,) and not arrays["y"].any()


@pytest.mark.parametrize("compression", ["none", "zip"])
def test_compressed_npz_of_numpy_is_read(feedline, compression):
    """Whatever the workload says: the archive knows how its members are stored."""
    data = feedline.folder / "data"
    (data / "train").mkdir(parents=True)
    random = np.random.default_rng(1)
    for i in range(2):
        samples = random.integers(0, 9, size=(30, 40, 3)).astype(np.uint8)
        np.savez_compressed(data / "train" / f"img_{i}_of_2.npz", x=samples, y=[0] * 3)
    dataset = {"record_dims": [30, 40], "compression": compression}
    assert train(feedline, data, 3, format="npz", **dataset) == 6
