"""Makes the golden files beside this script: python3 make.py (needs NumPy; run it with Python 3.11.4 or later).

`old-python.npz` is the one exception: the script ran under Python 3.11.2 for it (python3 make.py old).
Files of the other formats come in groups (python3 make.py records|images|columns|hdf5), each made by a function
that names the versions of what it imports.
"""

import pathlib
import struct
import sys
import zipfile
import zlib

import numpy as np

HERE = pathlib.Path(__file__).parent
X = np.arange(6, dtype=np.uint8).reshape(2, 3, 1)
Y = np.zeros(1, dtype=np.int64)

def records():
    """python3 make.py records: needs TensorFlow (tensorflow-cpu 2.21.0), NumPy 2.4.6 and pandas 3.1.1."""
    import pandas as pd
    import tensorflow as tf

    def example(image, **more):
        features = {
            "image": tf.train.Feature(bytes_list=tf.train.BytesList(value=[image])),
            "size": tf.train.Feature(int64_list=tf.train.Int64List(value=[len(image)])),
        }
        features.update(more)
        made = tf.train.Example(features=tf.train.Features(feature=features))
        return made.SerializeToString(deterministic=True)

    def write(name, payloads, compression=""):
        with tf.io.TFRecordWriter(str(HERE / name), compression) as file:
            for payload in payloads:
                file.write(payload)

    def image(size):
        return bytes(i % 251 for i in range(size))

    sizes = [0, 10, 60, 90, 100, 120, 127, 128, 300, 16000]
    write("sizes.tfrecord", [example(image(size)) for size in sizes])
    ints = tf.train.Feature(int64_list=tf.train.Int64List(value=[-1, 1 << 40, 3]))
    floats = tf.train.Feature(float_list=tf.train.FloatList(value=[0.5, 1.5]))
    write("features.tfrecord", [example(image(40), zeta=ints, alpha=floats, empty=tf.train.Feature())])
    write("gzip.tfrecord", [example(image(40))], "GZIP")
    write("zlib.tfrecord", [example(image(40))], "ZLIB")

    # Every value a float16 sample can have, as pandas prints it, and what it prints of others.
    halves = pd.DataFrame(np.arange(2048).reshape(16, 128) / 2048).astype(np.float16)
    halves.to_csv(HERE / "float16.csv", header=False, index=False)
    singles = np.array([0, 1 / 3, 1e-3, 1.2e-4, 9.999e-5, 2**-23, 1 - 2**-23, 0.5], np.float32)
    pd.DataFrame([singles]).to_csv(HERE / "float32.csv", header=False, index=False)
    doubles = np.array([0, 1 / 3, 1e-3, 1.2e-4, 9.999e-5, 2**-52, 1 - 2**-52, 0.5])
    pd.DataFrame([doubles]).to_csv(HERE / "float64.csv", header=False, index=False)
    pd.DataFrame([[True, False], [False, False]]).to_csv(HERE / "bool.csv", header=False, index=False)
    numbers = pd.DataFrame(np.arange(-6, 6).reshape(3, 4) * 12345)
    numbers.to_csv(HERE / "numbers.csv.gz", header=False, index=False)

    # An array that deflate shrinks to nothing, and one that takes it several blocks.
    np.savez_compressed(HERE / "zeros.npz", x=np.zeros((1000, 1000, 1), np.uint8), y=Y)
    digits = np.random.RandomState(1).randint(0, 4, (200, 300, 1)).astype(np.uint8)
    np.savez_compressed(HERE / "blocks.npz", x=digits, y=Y)


if sys.argv[1:] == ["records"]:
    records()
    sys.exit()


def images():
    """The `image-*` files: what Pillow writes by default and with its options, 21 rows by 35 columns.

    Pillow 13.0.0 with libjpeg-turbo 3.2.0 and zlib-ng 2.3.3. Interlaced PNG is made by hand.
    """
    from PIL import Image, PngImagePlugin

    y, x = np.mgrid[0:21, 0:35]
    waves = np.stack([127 + 90 * np.sin(x / 9 + y / 15), 127 + 90 * np.cos(x / 6), 4 * x + 2 * y], -1)
    rgb = Image.fromarray(waves.astype(np.uint8))
    noise = np.random.default_rng(1).integers(0, 255, (21, 35), dtype=np.uint8)
    gray = Image.fromarray(noise)
    exif = Image.Exif()
    exif[0x010E] = "described"

    def save(name, image, **options):
        image.save(HERE / f"image-{name}", **options)

    save("gray.jpeg", gray)
    np.asarray(Image.open(HERE / "image-gray.jpeg")).tofile(HERE / "image-gray.pixels")
    save("gray-optimized.jpeg", gray, optimize=True, quality=30)
    save("gray-restarts.jpeg", gray, restart_marker_blocks=2)
    save("gray-progressive.jpeg", gray, progressive=True)
    save("color-420.jpeg", rgb, exif=exif, comment=b"commented")
    save("color-422.jpeg", rgb, subsampling="4:2:2")
    save("color-444.jpeg", rgb, subsampling="4:4:4")
    save("color-restarts.jpeg", rgb, restart_marker_rows=1)
    save("color-progressive.jpeg", rgb, progressive=True)
    save("cmyk.jpeg", rgb.convert("CMYK"))
    text = PngImagePlugin.PngInfo()
    text.add_text("Title", "titled", zip=True)
    save("gray.png", gray, pnginfo=text)
    save("gray-16.png", Image.fromarray(noise.astype(np.uint16) * 257))
    save("bilevel.png", gray.convert("1"))
    save("gray-alpha.png", gray.convert("LA"))
    save("rgb.png", rgb, icc_profile=b"a profile" * 20, exif=exif)
    save("rgba.png", rgb.convert("RGBA"))
    save("palette.png", rgb.convert("P", palette=Image.Palette.ADAPTIVE, colors=200))
    save("palette-4.png", rgb.convert("P", palette=Image.Palette.ADAPTIVE, colors=16), bits=4)
    save("animated.png", gray, save_all=True, append_images=[gray.rotate(180)])

    passes = [(0, 0, 8, 8), (0, 4, 8, 8), (4, 0, 8, 4), (0, 2, 4, 4), (2, 0, 4, 2), (0, 1, 2, 2), (1, 0, 2, 1)]
    rows = (row for top, left, down, right in passes for row in noise[top::down, left::right] if len(row))
    data = zlib.compress(b"".join(b"\0" + row.tobytes() for row in rows))
    chunks = [(b"IHDR", struct.pack(">IIBBBBB", 35, 21, 8, 0, 0, 0, 1)), (b"IDAT", data), (b"IEND", b"")]
    with open(HERE / "image-interlaced.png", "wb") as file:
        file.write(b"\x89PNG\r\n\x1a\n")
        for kind, body in chunks:
            file.write(struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body)))
    assert (np.asarray(Image.open(HERE / "image-interlaced.png")) == noise).all()
    noise.tofile(HERE / "image-noise.pixels")


if sys.argv[1:] == ["images"]:
    images()
    sys.exit()


def columns():
    """Shards of WebDataset 1.0.2 and tar, safetensors 0.8.0, Parquet of pyarrow 26.0.1 (Python 3.11, NumPy 2.4.6)."""
    import io
    import tarfile

    import pyarrow as pa
    import pyarrow.parquet as pq
    import safetensors.numpy
    import webdataset

    with webdataset.TarWriter(str(HERE / "writer.tar"), mtime=0) as shard:
        for i in range(3):
            shard.write({"__key__": f"s{i}", "npy": X, "cls": i, "txt": "word" * i})

    def add(archive, name, data, kind=tarfile.REGTYPE):
        member = tarfile.TarInfo(name)
        member.size, member.type = len(data), kind
        archive.addfile(member, io.BytesIO(data))

    for name, archive_format in [("gnu.tar", tarfile.GNU_FORMAT), ("pax.tar", tarfile.PAX_FORMAT)]:
        with tarfile.open(HERE / name, "w", format=archive_format) as archive:
            add(archive, "folder", b"", tarfile.DIRTYPE)
            add(archive, "__meta__", b"about the shard")
            add(archive, "folder/a.jpg", b"j" * 700)
            add(archive, "README", b"belongs to no sample")
            add(archive, "folder/a.seg.png", b"p" * 30)
            add(archive, "other/a.jpg", b"j" * 5)
            add(archive, "long/" * 30 + "\u00e4.b.jpg", b"j" * 513)
            add(archive, "long/" * 30 + "\u00e4.cls", b"7")
        # Not all writers pad the end of an archive to 10240 bytes.
        shard = (HERE / name).read_bytes()
        used = -(-len(shard.rstrip(b"\0")) // 512) * 512
        (HERE / name).write_bytes(shard[: used + 1024])

    safetensors.numpy.save_file(
        {"x": np.arange(24, dtype=np.float32).reshape(2, 3, 4), "y": np.zeros(2, np.int64)},
        HERE / "samples.safetensors",
    )
    safetensors.numpy.save_file(
        {"b": np.ones((3, 2), np.float16), "a": np.ones((5,), np.int32)},
        HERE / "model.safetensors",
        {"format": "np", "x": "no tensor"},
    )

    sizes = [0, 1, 200, 200, 3, 200, 17, 200]
    values = [bytes([i]) * size for i, size in enumerate(sizes)]
    nulls = [None if i in (1, 4) else value for i, value in enumerate(values)]
    lists = [None if value is None else list(value) for value in nulls]
    plain = {"compression": "none", "use_dictionary": False}
    for name, array, options in [
        ("default", pa.array(nulls, pa.binary()), {"row_group_size": 5}),
        ("required", pa.array(values, pa.binary()), {**plain, "write_page_checksum": True}),
        ("fixed", pa.array([b"12345678"] * 3, pa.binary(8)), {**plain, "compression": "gzip"}),
        ("list", pa.array(lists, pa.list_(pa.uint8())), {}),
        ("plain-list", pa.array(lists, pa.list_(pa.uint8())), {**plain, "data_page_size": 100}),
        ("newer", pa.array(nulls, pa.binary()), {"data_page_version": "2.0", "compression": "gzip"}),
        ("newer-list", pa.array(lists, pa.list_(pa.uint8())), {"data_page_version": "2.0"}),
        ("booleans", pa.array([True, False, None] * 4), {"data_page_version": "2.0"}),
        ("zstd", pa.array(values, pa.binary()), {"compression": "zstd"}),
        ("delta", pa.array(values, pa.binary()), {**plain, "column_encoding": {"x": "DELTA_LENGTH_BYTE_ARRAY"}}),
    ]:
        schema = pa.schema([pa.field("before", pa.int32()), pa.field("x", array.type, name != "required")])
        table = pa.table([pa.array(range(len(array)), pa.int32()), array], schema=schema)
        pq.write_table(table, HERE / f"{name}.parquet", store_schema=False, **options)
    images = pa.array([{"bytes": value, "path": "p"} for value in values])
    pq.write_table(pa.table({"image": images, "label": sizes}), HERE / "image.parquet", store_schema=False)


if sys.argv[1:] == ["columns"]:
    columns()
    sys.exit()

if sys.argv[1:] == ["old"]:
    assert sys.version_info < (3, 11, 4)
    np.savez(HERE / "old-python.npz", x=X, y=Y)
    sys.exit()


def hdf5():
    """The files hdf5-*.h5 (python3 make.py hdf5), made with h5py 3.16.0, HDF5 2.0.0, NumPy 2.4.6.

    Byte `i` of what all datasets `records_*` of a file hold, joined, is `i % 251`.
    """
    import h5py

    def write(name, libver, shapes, dtype, **options):
        size = np.dtype(dtype).itemsize
        at = 0
        with h5py.File(HERE / f"hdf5-{name}.h5", "w", libver=libver) as file:
            for i, shape in enumerate(shapes):
                count = int(np.prod(shape)) * size
                values = (np.arange(at, at + count) % 251).astype(np.uint8).view(dtype).reshape(shape)
                at += count
                dataset = file.create_dataset(f"records_{i}", data=values, **options)
                dataset.attrs["about"] = "any text"
            file.create_dataset("labels", data=np.zeros(shapes[0][0], dtype=np.int64))

    v110 = ("v110", "v110")
    packed = {"compression": "gzip", "shuffle": True, "fletcher32": True}
    write("earliest", "earliest", [(3, 5, 7)] * 2, ">i2", chunks=(2, 2, 3), **packed)
    write("contiguous", "earliest", [(3, 5, 7)], "<f8")
    write("dense", "latest", [(2, 3)] * 9, "<u4")
    write("single", "latest", [(2, 30, 4)], "<u2", chunks=(2, 30, 4), compression="gzip")
    write("paged", v110, [(3, 400)], "i1", chunks=(1, 1))
    write("extensible", v110, [(60, 4, 3)], "<f4", chunks=(1, 4, 2), maxshape=(None, 4, 3), compression="lzf")
    write("two-unlimited", "latest", [(9, 40)], "<u2", chunks=(2, 7), maxshape=(None, None), compression="lzf")


if sys.argv[1:] == ["hdf5"]:
    hdf5()
    sys.exit()

assert sys.version_info >= (3, 11, 4)
np.savez(HERE / "new-python.npz", x=X, y=Y)
np.savez(HERE / "labels-first.npz", y=Y, x=X)
np.savez(HERE / "no-samples.npz", y=Y)
np.savez_compressed(HERE / "deflated.npz", x=X, y=Y)
np.savez(HERE / "comment.npz", x=X, y=Y)
with zipfile.ZipFile(HERE / "comment.npz", "a") as archive:
    archive.comment = b"PK\x05\x06 is how a directory ends" * 70
np.save(HERE / "float16.npy", np.zeros((2, 3, 2), dtype=np.float16))
np.save(HERE / "fortran-big-endian.npy", np.asfortranarray(np.ones((2, 3), dtype=">i4")))
np.save(HERE / "no-axes.npy", np.float64(1.5))
for version in (2, 3):
    with open(HERE / f"version-{version}.npy", "wb") as file:
        np.lib.format.write_array(file, X, version=(version, 0))
with open(HERE / "headers.txt", "w") as file:
    for dtype in "bool int8 int16 int32 int64 uint8 uint16 uint32 uint64 float16 float32 float64 complex64 complex128".split():
        for shape in [(), (7,), (338, 338, 1), (1, 2, 3, 4, 5), (12107, 12107, 1)]:
            header = bytearray()
            file_like = type("", (), {"write": lambda self, data: header.extend(data)})()
            np.lib.format.write_array_header_1_0(
                file_like, {"descr": np.lib.format.dtype_to_descr(np.dtype(dtype)), "fortran_order": False, "shape": shape}
            )
            axes = ",".join(map(str, shape))
            file.write(f"{dtype} {axes}; {header.hex()}\n")
