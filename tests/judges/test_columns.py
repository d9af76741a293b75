"""Python's tarfile, WebDataset, safetensors and pyarrow judge those formats, in both directions.

Needs webdataset, safetensors and pyarrow (tried with 1.0.2, 0.8.0 and 26.0.1).
"""

import io
import json
import tarfile

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import safetensors
import safetensors.numpy
import webdataset

from conftest import strict_json

DTYPES = [
    "bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64",
    "float16", "float32", "float64", "complex64", "complex128",
]
SHAPES = [((5, 7), 3), ((11,), 1), ((2, 3, 4), 10)]
EXTENSIONS = {"webdataset": "tar", "safetensors": "safetensors", "parquet": "parquet"}


def generate(feedline, name, **dataset):
    """Generates a data set of its own and returns the paths of its training files in order."""
    data = feedline.folder / f"data-{name}-{dataset.get('compression', 'plain')}"
    workload = feedline.workload(
        model={"name": "judged"},
        framework="pytorch",
        workflow={"generate_data": True, "train": False},
        dataset={"format": name, **dataset},
        reader={"data_loader": "pytorch", "batch_size": 1},
    )
    feedline(
        "run", workload, "--generate-only", "--data", data, "--out", feedline.folder / "out"
    ).ok()
    extension = EXTENSIONS.get(name, name)
    files = sorted((data / "train").glob(f"*.{extension}"))
    assert len(files) == dataset["num_files_train"]
    return files


def expected_samples(feedline, dims, samples, dtype, files):
    """The samples of every file, axis of the samples first: the same bytes as in an npy."""
    for path in generate(
        feedline, "npy", num_files_train=files, num_samples_per_file=samples,
        record_dims=list(dims), record_element_type=dtype,
    ):
        array = np.load(path, allow_pickle=False)
        yield np.frombuffer(array.tobytes(), dtype).reshape((samples, *dims))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("dims,samples", SHAPES)
def test_webdataset_opens_the_shards(feedline, dtype, dims, samples):
    files = generate(
        feedline, "webdataset", num_files_train=2, num_samples_per_file=samples,
        record_dims=list(dims), record_element_type=dtype,
    )
    keys = set()
    for path, expected in zip(
        files, expected_samples(feedline, dims, samples, dtype, 2), strict=True
    ):
        assert path.stat().st_size % tarfile.RECORDSIZE == 0
        with tarfile.open(path) as archive:
            members = archive.getmembers()
        assert len(members) == 2 * samples
        assert all(member.isreg() for member in members)
        found = list(webdataset.WebDataset(str(path), shardshuffle=False).decode())
        assert len(found) == samples
        for sample, array in zip(found, expected, strict=True):
            assert sample["npy"].dtype == np.dtype(dtype)
            assert sample["npy"].shape == dims
            assert sample["npy"].tobytes() == array.tobytes()
            assert sample["cls"] == 0
            keys.add(sample["__key__"])
    # A key names one sample of the data set, not only of its shard.
    assert len(keys) == 2 * samples


@pytest.mark.parametrize("dtype", DTYPES[:-1])
@pytest.mark.parametrize("dims,samples", SHAPES)
def test_safetensors_opens_the_files(feedline, dtype, dims, samples):
    files = generate(
        feedline, "safetensors", num_files_train=2, num_samples_per_file=samples,
        record_dims=list(dims), record_element_type=dtype,
    )
    for path, expected in zip(
        files, expected_samples(feedline, dims, samples, dtype, 2), strict=True
    ):
        tensors = safetensors.numpy.load_file(path)
        assert sorted(tensors) == ["x", "y"]
        assert tensors["x"].dtype == np.dtype(dtype)
        assert tensors["x"].shape == (samples, *dims)
        assert tensors["x"].tobytes() == expected.tobytes()
        assert tensors["y"].dtype == np.int64
        assert tensors["y"].shape == (samples,)
        assert not tensors["y"].any()
        # Byte for byte what the reference makes of the same tensors.
        assert safetensors.numpy.save(tensors) == path.read_bytes()
        with safetensors.safe_open(path, "np") as opened:
            last = opened.get_slice("x")[samples - 1 : samples]
        assert last.tobytes() == expected[-1:].tobytes()


def test_safetensors_has_no_complex128(feedline):
    workload = feedline.workload(
        model={"name": "judged"},
        framework="pytorch",
        workflow={"generate_data": True, "train": False},
        dataset={
            "format": "safetensors", "num_files_train": 1, "record_dims": [3],
            "record_element_type": "complex128",
        },
        reader={"data_loader": "pytorch", "batch_size": 1},
    )
    ended = feedline(
        "run", workload, "--generate-only", "--data", feedline.folder / "data",
        "--out", feedline.folder / "out",
    )
    assert ended.code == 2
    assert "complex128" in ended.err


@pytest.mark.parametrize("compression", ["none", "gzip"])
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("dims,samples", SHAPES)
def test_pyarrow_opens_the_files(feedline, dtype, dims, samples, compression):
    files = generate(
        feedline, "parquet", num_files_train=2, num_samples_per_file=samples,
        record_dims=list(dims), record_element_type=dtype, compression=compression,
    )
    for path, expected in zip(
        files, expected_samples(feedline, dims, samples, dtype, 2), strict=True
    ):
        opened = pq.ParquetFile(path)
        table = opened.read()
        assert table.schema.field("x").type == pa.binary(expected[0].nbytes)
        assert table.schema.field("y").type == pa.int64()
        assert [bytes(value) for value in table["x"].to_pylist()] == [
            array.tobytes() for array in expected
        ]
        assert table["y"].to_pylist() == [0] * samples
        about = opened.metadata.metadata
        assert tuple(json.loads(about[b"shape"])) == dims
        assert about[b"dtype"].decode() == dtype
        chunk = opened.metadata.row_group(0).column(0)
        assert chunk.compression == {"none": "UNCOMPRESSED", "gzip": "GZIP"}[compression]


def test_row_groups_and_pages_are_bounded(feedline):
    (path,) = generate(
        feedline, "parquet", num_files_train=1, num_samples_per_file=40, record_dims=[1 << 20],
    )
    metadata = pq.ParquetFile(path).metadata
    assert [metadata.row_group(i).num_rows for i in range(metadata.num_row_groups)] == [16, 16, 8]
    for i in range(3):
        assert pq.ParquetFile(path).read_row_group(i, ["x"]).num_rows == metadata.row_group(i).num_rows


def read_back(feedline, name, write, files, samples, dims, dtype="uint8"):
    """Has `write(path, samples)` write a data set and Feedline read it twice; the steps it took."""
    data, out = feedline.folder / "data", feedline.folder / "out"
    (data / "train").mkdir(parents=True)
    random = np.random.default_rng(1)
    for i in range(files):
        shape = (samples, *dims)
        array = random.integers(0, 100, size=shape).astype(dtype)
        write(data / "train" / f"img_{i}_of_{files}.{EXTENSIONS[name]}", array)
    workload = feedline.workload(
        model={"name": "judged"},
        framework="pytorch",
        workflow={"generate_data": False, "train": True},
        dataset={
            "format": name, "num_files_train": files, "num_samples_per_file": samples,
            "record_dims": list(dims), "record_element_type": dtype,
        },
        reader={"data_loader": "pytorch", "batch_size": 2, "read_threads": 2},
        train={"epochs": 2, "computation_time": 0},
    )
    feedline("run", workload, "--data", data, "--out", out).ok()
    for epoch in ("1", "2"):
        steps = strict_json(out / "0_output.json")[epoch]["load"]["block1"]
        assert len(steps) == files * samples // 2


def test_reads_what_webdataset_wrote(feedline):
    def write(path, array):
        with webdataset.TarWriter(str(path)) as shard:
            for i, sample in enumerate(array):
                shard.write({"__key__": f"s{i}", "npy": sample, "cls": i, "json": {"i": i}})

    read_back(feedline, "webdataset", write, 4, 6, (16, 12), "float32")


@pytest.mark.parametrize(
    "archive_format", [tarfile.USTAR_FORMAT, tarfile.GNU_FORMAT, tarfile.PAX_FORMAT]
)
def test_reads_what_tar_wrote(feedline, archive_format):
    def write(path, array):
        with tarfile.open(path, "w", format=archive_format) as archive:
            for i, sample in enumerate(array):
                for ending, content in [("raw", sample.tobytes()), ("cls", b"3")]:
                    folder = "/".join(["a_rather_long_folder_name"] * 5)
                    member = tarfile.TarInfo(f"{folder}/{i}.{ending}")
                    member.size = len(content)
                    archive.addfile(member, io.BytesIO(content))

    read_back(feedline, "webdataset", write, 4, 3, (16, 12))


def test_reads_what_safetensors_wrote(feedline):
    def write(path, array):
        labels = np.zeros(len(array), np.int64)
        safetensors.numpy.save_file({"x": array, "y": labels}, path, {"made": "elsewhere"})

    read_back(feedline, "safetensors", write, 4, 6, (16, 12), "float16")


@pytest.mark.parametrize("kind", ["binary", "fixed", "list"])
@pytest.mark.parametrize(
    "options",
    [
        {},
        {"compression": "none", "use_dictionary": False, "write_page_checksum": True},
        {"compression": "gzip", "data_page_version": "2.0", "row_group_size": 4},
    ],
)
def test_reads_what_pyarrow_wrote(feedline, kind, options):
    def write(path, array):
        rows = [sample.tobytes() for sample in array]
        if kind == "list":
            column = pa.array([list(row) for row in rows], pa.list_(pa.uint8()))
        else:
            column = pa.array(rows, pa.binary(len(rows[0]) if kind == "fixed" else -1))
        table = pa.table({"x": column, "y": pa.array([0] * len(rows), pa.int64())})
        pq.write_table(table, path, **options)

    read_back(feedline, "parquet", write, 4, 6, (16, 12))


@pytest.mark.parametrize("name", sorted(EXTENSIONS))
def test_a_damaged_file_is_named(feedline, name):
    files = generate(
        feedline, name, num_files_train=4, num_samples_per_file=2, record_dims=[20, 20]
    )
    victim = files[2]
    victim.write_bytes(victim.read_bytes()[:300])
    workload = feedline.workload(
        model={"name": "judged"},
        framework="pytorch",
        workflow={"generate_data": False, "train": True},
        dataset={
            "format": name, "num_files_train": 4, "num_samples_per_file": 2,
            "record_dims": [20, 20],
        },
        reader={"data_loader": "pytorch", "batch_size": 1},
        train={"epochs": 1, "computation_time": 0},
    )
    ended = feedline(
        "run", workload, "--data", victim.parent.parent, "--out", feedline.folder / "out-damaged"
    )
    assert ended.code == 2
    assert victim.name in ended.err
