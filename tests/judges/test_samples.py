"""The libraries that made a file judge the samples that Feedline reads out of it.

Needs NumPy, pandas, h5py, Pillow, pyarrow, safetensors, webdataset and TensorFlow.
"""

import json
import os
import subprocess
import zlib

import h5py
import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import safetensors.numpy
import tensorflow as tf
import webdataset
from PIL import Image

DTYPES = [
    "bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64",
    "float16", "float32", "float64", "complex64", "complex128",
]


@pytest.fixture(name="samples")
def fixture_samples(tmp_path):
    """Reads the files in `tmp_path`: all parts of all samples, in the order of files and samples."""
    program = os.environ.get("FEEDLINE_READ_SAMPLES", "")
    if not os.access(program, os.X_OK):
        pytest.exit(f"no program at FEEDLINE_READ_SAMPLES={program!r}; run: make test", 2)

    def read():
        ended = subprocess.run(
            [program, tmp_path], capture_output=True, text=True, timeout=60, check=False
        )
        assert ended.returncode == 0, ended.stderr
        parts = [json.loads(line) for line in ended.stdout.splitlines()]
        # Files come format by format; within one, in the order of their names.
        parts.sort(key=lambda part: part["file"])
        return [(part["part"], part["element"], part["shape"], part["crc32"]) for part in parts]

    return read


def array(name, values):
    """What is expected of an array."""
    values = np.asarray(values)
    native = np.ascontiguousarray(values.astype(values.dtype.newbyteorder("<")))
    return name, values.dtype.name, list(values.shape), zlib.crc32(native.tobytes())


def raw(name, content):
    """What is expected of bytes."""
    return name, None, [len(content)], zlib.crc32(content)


def noise(shape, dtype):
    """Random values of any type."""
    count = int(np.prod(shape)) * np.dtype(dtype).itemsize
    drawn = np.random.default_rng(7).integers(0, 256, count, dtype=np.uint8)
    if dtype == "bool":
        return (drawn & 1).astype(bool).reshape(shape)
    return drawn.view(dtype).reshape(shape)


@pytest.mark.parametrize("dtype", [*DTYPES, ">u2", ">f8", ">c8"])
@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("shape", [(5, 7, 3), (40, 50, 2), (6, 4, 1), (9,), (2, 3, 4, 5)])
def test_samples_of_numpy(tmp_path, samples, shape, order, dtype):
    values = np.asarray(noise(shape, dtype), order=order)
    np.save(tmp_path / "a.npy", values)
    np.savez(tmp_path / "b.npz", x=values, y=np.zeros(3))
    np.savez_compressed(tmp_path / "c.npz", x=values, y=np.zeros(3))
    expected = [
        array(name, values[..., i]) for name in ["", "x", "x"] for i in range(shape[-1])
    ]
    assert samples() == expected


@pytest.mark.parametrize("dtype", [*DTYPES, ">i4", ">c16"])
@pytest.mark.parametrize("libver", ["earliest", "latest"])
def test_samples_of_h5py(tmp_path, samples, libver, dtype):
    values = noise((5, 11, 13, 3), dtype)
    ways = [
        {}, {"chunks": (2, 4, 5, 2)}, {"chunks": (1, 11, 13, 3), "compression": "gzip"},
        {"chunks": (2, 3, 13, 2), "compression": "lzf", "shuffle": True},
        {"chunks": (3, 4, 4, 3), "compression": "gzip", "shuffle": True, "fletcher32": True},
        {"chunks": (1, 2, 2, 2), "maxshape": (None, None, 13, 3)},
    ]
    for i, options in enumerate(ways):
        with h5py.File(tmp_path / f"{i}.h5", "w", libver=libver) as file:
            file.create_dataset("records_0" if i else "records", data=values, **options)
    names = ["records", *["records_0"] * (len(ways) - 1)]
    assert samples() == [array(name, values[i]) for name in names for i in range(5)]


def test_what_was_never_written_is_the_fill_value(tmp_path, samples):
    for libver in ["earliest", "latest"]:
        for fill in [0, 7]:
            for chunks in [None, (1, 2, 2)]:
                path = tmp_path / f"{libver}-{fill}-{chunks is None}.h5"
                with h5py.File(path, "w", libver=libver) as file:
                    file.create_dataset(
                        "records_0", (2, 5, 5), ">i4", fillvalue=fill, chunks=chunks
                    )
                    if chunks:
                        file["records_0"][1, 1, 1] = 1000
    expected = []
    for path in sorted(tmp_path.iterdir()):
        with h5py.File(path) as file:
            expected += [array("records_0", file["records_0"][i]) for i in range(2)]
    assert samples() == expected


@pytest.mark.parametrize("kind", ["int64", "float64", "bool", "uint64", "int8"])
def test_samples_of_pandas(tmp_path, samples, kind):
    values = np.random.default_rng(3).random((4, 9)) * 1e3
    if kind != "float64":
        values = noise((4, 9), kind)
    if kind == "uint64":
        values[0, 0] = 2**64 - 1
    pd.DataFrame(values).to_csv(tmp_path / "a.csv", header=False, index=False)
    pd.DataFrame(values).to_csv(tmp_path / "b.csv.gz", header=False, index=False)
    read = pd.read_csv(tmp_path / "a.csv", header=None, float_precision="round_trip")
    if kind == "uint64":
        # pandas chooses a type for each column, and NumPy none that holds all of them.
        read = read.astype("uint64")
    assert samples() == 2 * [array("", row) for row in read.to_numpy()]


@pytest.mark.parametrize("mode", ["1", "L", "LA", "P", "RGB", "RGBA", "I;16"])
def test_samples_of_pillow_png(tmp_path, samples, mode):
    image = Image.fromarray(noise((21, 35, 3), "uint8")).convert("L" if mode == "I;16" else mode)
    if mode == "I;16":
        image = Image.fromarray(noise((21, 35), "uint16"))
    image.save(tmp_path / "a.png")
    pixels = np.array(Image.open(tmp_path / "a.png"))
    pixels = pixels.astype("uint8") if mode == "1" else pixels
    assert samples() == [array("", pixels.reshape(21, 35, -1))]


GOLDEN = os.path.join(os.path.dirname(__file__), "../../crates/formats/golden")
IMAGES = sorted(name for name in os.listdir(GOLDEN) if name.endswith(".png"))


@pytest.mark.parametrize("name", IMAGES)
def test_pixels_of_stored_png(tmp_path, samples, name):
    image = Image.open(os.path.join(GOLDEN, name))
    (tmp_path / "a.png").write_bytes(open(os.path.join(GOLDEN, name), "rb").read())
    pixels = np.array(image)
    pixels = pixels.astype("uint8") if image.mode == "1" else pixels
    assert samples() == [array("", pixels.reshape(*pixels.shape[:2], -1))]


@pytest.mark.parametrize("progressive", [False, True])
def test_samples_of_pillow_jpeg(tmp_path, samples, progressive):
    for name, shape in [("gray", (21, 35)), ("rgb", (21, 35, 3))]:
        image = Image.fromarray(np.full(shape, 200, "uint8"))
        image.save(tmp_path / f"{name}.jpeg", progressive=progressive)
    # Decoders round differently; of one flat color all give the same.
    decoded = [np.array(Image.open(tmp_path / f"{name}.jpeg")) for name in ["gray", "rgb"]]
    assert samples() == [array("", pixels.reshape(21, 35, -1)) for pixels in decoded]


def test_samples_of_pyarrow(tmp_path, samples):
    generator = np.random.default_rng(5)
    strings = [generator.bytes(n) for n in (0, 5, 70_000, 3, 3, 9)]
    lists = [[], [1, 2, 3], [4], list(range(1000)), [7, 8], [9]]
    columns = {
        "bytes": pa.array(strings), "fixed": pa.array([b"abcd", b"efgh"] * 3, pa.binary(4)),
        "int8": pa.array([-1, 2, -3, 4, 5, -128], pa.int8()),
        "double": pa.array([0.5, 1.5, -2.5, 0.5, 0.5, 9.0]),
        "bool": pa.array([True, False, True, True, False, True]),
        "lists": pa.array(lists, pa.list_(pa.int32())),
    }
    ways = [
        {"compression": "none", "use_dictionary": False}, {"compression": "none"},
        {"compression": "snappy"}, {"compression": "gzip", "use_dictionary": False},
        {"compression": "snappy", "data_page_version": "2.0", "row_group_size": 2},
    ]
    expected = []
    for name, column in columns.items():
        for i, options in enumerate(ways):
            table = pa.table({"y": pa.array(range(6)), "x": column})
            pq.write_table(table, tmp_path / f"{name}-{i}.parquet", **options)
    for path in sorted(tmp_path.iterdir()):
        kind = path.name.split("-")[0]
        for value in columns[kind].to_pylist():
            if isinstance(value, bytes):
                expected.append(raw("x", value))
            else:
                dtype = {"int8": "int8", "double": "float64", "bool": "bool", "lists": "int32"}
                expected.append(array("x", np.array(value, dtype[kind])))
    assert samples() == expected


@pytest.mark.parametrize("dtype", [dtype for dtype in DTYPES if dtype != "complex128"])
def test_samples_of_safetensors(tmp_path, samples, dtype):
    values = noise((3, 5, 7), dtype)
    tensors = {"x": values, "other": np.zeros(4)}
    safetensors.numpy.save_file(tensors, tmp_path / "a.safetensors")
    assert samples() == [array("x", values[i]) for i in range(3)]


def test_samples_of_webdataset(tmp_path, samples):
    values = noise((4, 5, 6), "float32")
    expected = []
    with webdataset.TarWriter(str(tmp_path / "a.tar")) as tar:
        for i, value in enumerate(values):
            text = f"sample {i}".encode() * 200
            tar.write({"__key__": f"{i:06}", "npy": value, "cls": i, "left.txt": text})
            parts = [array("npy", value), raw("cls", str(i).encode()), raw("left.txt", text)]
            expected += sorted(parts)
    assert sorted(samples()) == sorted(expected)


def test_samples_of_tensorflow(tmp_path, samples):
    path = str(tmp_path / "a.tfrecord")
    with tf.io.TFRecordWriter(path) as writer:
        for i in range(3):
            image = tf.train.Feature(bytes_list=tf.train.BytesList(value=[os.urandom(50_000 * i)]))
            size = tf.train.Feature(int64_list=tf.train.Int64List(value=[50_000 * i]))
            features = tf.train.Features(feature={"image": image, "size": size})
            writer.write(tf.train.Example(features=features).SerializeToString())
    records = [record.numpy() for record in tf.data.TFRecordDataset(path)]
    assert samples() == [raw("", record) for record in records]
