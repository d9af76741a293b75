"""h5py judges the HDF5 files Feedline writes, and Feedline reads those of h5py."""

import h5py
import numpy as np
import pytest

from conftest import strict_json

SEED = 7
LANES = 8
BLOCK_BYTES = 16 * 1024
WORD = (1 << 64) - 1


def mix(value):
    """The finalizer of splitmix64, with its increment."""
    z = (value + 0x9E3779B97F4A7C15) & WORD
    z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & WORD
    z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & WORD
    return z ^ (z >> 31)


def words(seed, file, count):
    """The first words of a file's samples: blocks of eight lanes of xorshift128+."""
    key = (mix(seed) + mix(file ^ 0x5EEDF11E00000000)) & WORD
    keys = mix(key ^ 1), mix(key ^ 2)
    out = []
    block = 0
    while len(out) < count:
        start = [
            [mix((k + block * LANES + lane) & WORD) for lane in range(LANES)] for k in keys
        ]
        older = np.array(start[0], dtype=np.uint64)
        newer = np.array(start[1], dtype=np.uint64) | np.uint64(1)
        for _ in range(BLOCK_BYTES // 8 // LANES):
            x = older ^ (older << np.uint64(23))
            following = x ^ newer ^ (x >> np.uint64(17)) ^ (newer >> np.uint64(26))
            out.extend(following + newer)
            older, newer = newer, following
        block += 1
    return np.array(out[:count], dtype=np.uint64)


def content(seed, file, dtype, count):
    """The first `count` elements of a file's samples."""
    dtype = np.dtype(dtype)
    raw = words(seed, file, -(-count * dtype.itemsize // 8))
    if dtype == np.bool_:
        return (raw & np.uint64(0x0101010101010101)).view(np.bool_)[:count]
    if dtype == np.float32:
        digits = (raw.view(np.uint32) >> 9) | np.uint32(0x3F800000)
        return (digits.view(np.float32) - np.float32(1))[:count]
    if dtype == np.float64:
        digits = (raw >> np.uint64(12)) | np.uint64(0x3FF0000000000000)
        return (digits.view(np.float64) - 1.0)[:count]
    assert dtype.kind in "iu"
    return raw.view(dtype)[:count]


def generate(feedline, **dataset):
    """Generates the data set, two files by default, and returns its folder."""
    data = feedline.folder / "data"
    workload = feedline.workload(
        model={"name": "judged"},
        framework="pytorch",
        workflow={"generate_data": True, "train": False},
        dataset={"format": "hdf5", "num_files_train": 2, **dataset},
        reader={"data_loader": "pytorch", "batch_size": 1},
        train={"seed": SEED},
    )
    feedline("run", workload, "--generate-only", "--data", data, "--out", feedline.folder / "out").ok()
    return data


def judge(path, index, datasets, shape, dtype):
    """Compares everything in the file and returns the first dataset's layout."""
    each = int(np.prod(shape))
    expected = content(SEED, index, dtype, each * datasets).reshape((datasets, *shape))
    with h5py.File(path) as file:
        names = [*(f"records_{i}" for i in range(datasets)), "labels"]
        assert sorted(file) == sorted(names)
        labels = file["labels"]
        assert (labels.dtype, labels.shape) == (np.int64, (shape[0],))
        assert not labels[...].any()
        for i in range(datasets):
            dataset = file[f"records_{i}"]
            assert (dataset.dtype, dataset.shape) == (np.dtype(dtype), tuple(shape))
            assert np.array_equal(dataset[...], expected[i])
            for sample in range(shape[0]):
                assert np.array_equal(dataset[sample], expected[i][sample])
        first = file["records_0"]
        return first.chunks, first.compression, first.compression_opts, first.maxshape


def files(data, count=2):
    """The training files in order."""
    return [data / "train" / f"img_{i}_of_{count}.hdf5" for i in range(count)]


DTYPES = ["bool", "uint8", "int8", "uint16", "int32", "int64", "float32", "float64"]


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("compression", ["none", "gzip", "lzf"])
def test_every_dtype(feedline, dtype, compression):
    data = generate(
        feedline, record_dims=[5, 7], record_element_type=dtype, num_samples_per_file=3,
        compression=compression,
    )
    for i, path in enumerate(files(data)):
        chunks, found, level, _ = judge(path, i, 1, (3, 5, 7), dtype)
        packed = compression != "none"
        assert chunks == ((1, 5, 7) if packed else None)
        assert found == (compression if packed else None)
        assert level == (4 if compression == "gzip" else None)


@pytest.mark.parametrize("dtype", ["float16", "complex64", "complex128"])
def test_other_dtypes_open(feedline, dtype):
    data = generate(feedline, record_dims=[5, 7], record_element_type=dtype)
    with h5py.File(files(data)[0]) as file:
        assert file["records_0"].dtype == np.dtype(dtype)
        values = file["records_0"][...]
        assert values.shape == (1, 5, 7)
        assert len(np.unique(values)) > 10


def test_square_samples(feedline):
    data = generate(feedline, record_length_bytes=2500, num_samples_per_file=4)
    for i, path in enumerate(files(data)):
        assert judge(path, i, 1, (4, 50, 50), "uint8") == (None, None, None, (4, 50, 50))


@pytest.mark.parametrize(
    "datasets,dims,shape",
    [(2, [6, 5], (3, 3, 5)), (6, [6, 5], (3, 5)), (1, [1, 5], (3, 5)), (30, [60, 2, 3], (3, 2, 2, 3))],
)
@pytest.mark.parametrize("compression", ["none", "gzip"])
def test_records_are_split(feedline, datasets, dims, shape, compression):
    data = generate(
        feedline, record_dims=dims, num_samples_per_file=3, compression=compression,
        hdf5={"num_dset_per_record": datasets},
    )
    for i, path in enumerate(files(data)):
        judge(path, i, datasets, shape, "uint8")


@pytest.mark.parametrize("compression", ["none", "gzip", "lzf"])
@pytest.mark.parametrize(
    "chunk,limit",
    [([1, 3, 4], []), ([2, 5, 40], []), ([3, 30, 40], []), ([1, 1, 1], []), ([1, 7, 7], [40, 50]), ([], [40, 50])],
)
def test_chunks_and_maximum_shape(feedline, compression, chunk, limit):
    data = generate(
        feedline, record_dims=[30, 40], num_samples_per_file=3, compression=compression,
        hdf5={"chunk_dims": chunk, "max_shape": limit},
    )
    for i, path in enumerate(files(data)):
        chunks, _, _, maxshape = judge(path, i, 1, (3, 30, 40), "uint8")
        if chunk:
            assert chunks == tuple(chunk)
        assert maxshape == (3, *(limit or (30, 40)))


def test_a_record_that_cannot_be_split_is_refused(feedline):
    workload = feedline.workload(
        model={"name": "judged"},
        framework="pytorch",
        workflow={"generate_data": True, "train": False},
        dataset={
            "format": "hdf5", "num_files_train": 1, "record_length_bytes": 2500,
            "hdf5": {"num_dset_per_record": 3},
        },
        reader={"data_loader": "pytorch", "batch_size": 1},
    )
    ended = feedline("run", workload, "--generate-only", "--data", feedline.folder / "data")
    assert ended.code == 2
    assert "3 datasets" in ended.err


def write_as_dlio(data, count, shape, datasets=1, libver="latest", dtype=np.uint8, **options):
    """Writes files the way DLIO does, but each dataset with values of its own."""
    random = np.random.default_rng(1)
    folder = data / "train"
    folder.mkdir(parents=True)
    for i in range(count):
        with h5py.File(folder / f"img_{i}_of_{count}.hdf5", "w", libver=libver) as file:
            for k in range(datasets):
                values = random.integers(0, 100, size=shape).astype(dtype)
                file.create_dataset(f"records_{k}", data=values, **options)
            file.create_dataset("labels", data=np.zeros(shape[0], dtype=np.int64))


OPTIONS = [
    {},
    {"chunks": (1, 5, 5)},
    {"compression": "gzip"},
    {"compression": "lzf", "shuffle": True},
    {"compression": "gzip", "shuffle": True, "fletcher32": True, "chunks": (2, 7, 3)},
    {"maxshape": (None, 16, 12), "chunks": (1, 16, 12), "compression": "gzip"},
    {"maxshape": (None, None, 12), "chunks": (1, 4, 4)},
]


@pytest.mark.parametrize("libver", ["earliest", ("v108", "v108"), ("v110", "v110"), "latest"])
@pytest.mark.parametrize("options", OPTIONS)
@pytest.mark.parametrize("datasets", [1, 12])
def test_reads_what_h5py_wrote(feedline, libver, options, datasets):
    data, out = feedline.folder / "data", feedline.folder / "out"
    write_as_dlio(data, 4, (5, 16, 12), datasets, libver, np.float32, **options)
    workload = feedline.workload(
        model={"name": "judged"},
        framework="pytorch",
        workflow={"generate_data": False, "train": True},
        dataset={
            "format": "hdf5", "num_files_train": 4, "num_samples_per_file": 5,
            "record_dims": [16 * datasets, 12], "record_element_type": "float32",
            "hdf5": {"num_dset_per_record": datasets},
        },
        reader={"data_loader": "pytorch", "batch_size": 2, "read_threads": 2},
        train={"epochs": 2, "computation_time": 0},
    )
    feedline("run", workload, "--data", data, "--out", out).ok()
    for epoch in ("1", "2"):
        blocks = strict_json(out / "0_output.json")[epoch]["load"]
        assert len(blocks["block1"]) == 4 * 5 // 2


@pytest.mark.parametrize("options", [{}, {"chunks": (1, 8, 8)}, {"compression": "gzip", "compression_opts": 4}])
def test_reads_what_dlio_2_0_0_wrote(feedline, options):
    """Its only dataset is `records`, made with h5py's defaults."""
    data, out = feedline.folder / "data", feedline.folder / "out"
    (data / "train").mkdir(parents=True)
    for i in range(4):
        with h5py.File(data / "train" / f"img_{i}_of_4.hdf5", "w") as file:
            dataset = file.create_dataset("records", (3, 16, 16), dtype=np.uint8, **options)
            dataset[0:3] = np.random.default_rng(i).integers(0, 255, size=(3, 16, 16), dtype=np.uint8)
            file.create_dataset("labels", data=[0] * 3)
    workload = feedline.workload(
        model={"name": "judged"},
        framework="pytorch",
        workflow={"generate_data": False, "train": True},
        dataset={"format": "hdf5", "num_files_train": 4, "num_samples_per_file": 3, "record_length_bytes": 256},
        reader={"data_loader": "pytorch", "batch_size": 2, "read_threads": 2},
        train={"epochs": 1, "computation_time": 0},
    )
    feedline("run", workload, "--data", data, "--out", out).ok()
    found = strict_json(out / "summary.json")["feedline"]
    assert found["sharding"]["samples_read"] == 12
    assert found["steps"] == 6
    # What cannot be read is the user's, and stays.
    victim = data / "train" / "img_2_of_4.hdf5"
    victim.write_bytes(victim.read_bytes()[:100])
    ended = feedline("run", workload, "--data", data, "--out", out, "--overwrite")
    assert ended.code == 2
    assert "remove" not in ended.err and "hint: name another set" in ended.err


def test_a_damaged_chunk_is_named(feedline):
    data = feedline.folder / "data"
    write_as_dlio(data, 4, (1, 16, 12), compression="gzip", fletcher32=True)
    victim = data / "train" / "img_2_of_4.hdf5"
    with h5py.File(victim) as file:
        offset = file["records_0"].id.get_chunk_info(0).byte_offset
    damaged = bytearray(victim.read_bytes())
    damaged[offset + 20] ^= 1
    victim.write_bytes(damaged)
    workload = feedline.workload(
        model={"name": "judged"},
        framework="pytorch",
        workflow={"generate_data": False, "train": True},
        dataset={"format": "hdf5", "num_files_train": 4, "record_dims": [16, 12]},
        reader={"data_loader": "pytorch", "batch_size": 1},
        train={"epochs": 1, "computation_time": 0},
    )
    ended = feedline("run", workload, "--data", data, "--out", feedline.folder / "out")
    assert ended.code == 2
    assert "img_2_of_4.hdf5" in ended.err and "checksum" in ended.err
