"""The data sets on which the real readers and Feedline are compared.

Most are made by Feedline; those with a `writer` by the library that the format belongs to, since a reader's
calls depend on the layout (HDF5) and on how well the bytes compress (ZIP, gzip).
"""

from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

# Side of a square of bytes: 110 KB, 2.8 MB, and unet3d's 146 MB.
SMALL, MEDIUM, LARGE = 331, 1673, 12108


@dataclass(frozen=True)
class DataSet:
    """A data set and the keys of the workload that reads it."""

    name: str
    format: str
    # As it stands in tables: "110 KB", "4 samples per file".
    variant: str
    files: int
    # Keys below `dataset`.
    keys: dict
    # Keys below `reader`.
    reader: dict = field(default_factory=dict)
    # Function of a path and a generator of noise that writes one file; None: Feedline writes them all.
    writer: object = None
    # Numbers of workers with which it is read.
    workers: tuple = (0, 1, 2, 4)
    # Whether it is also read on a file system with a large st_blksize.
    large_blocks: bool = True

    @property
    def per_file(self):
        """Samples in a file."""
        return self.keys.get("num_samples_per_file", 1)

    @property
    def samples(self):
        """Samples of all files."""
        return self.files * self.per_file

    @property
    def framework(self):
        """Whose loader reads it."""
        return "tensorflow" if self.format == "tfrecord" else "pytorch"

    def workload(self):
        """The sections of the workload file."""
        return {
            "model": {"name": self.name},
            "framework": self.framework,
            "workflow": {"generate_data": False, "train": True},
            "dataset": {"format": self.format, "num_files_train": self.files, **self.keys},
            "reader": {
                "data_loader": self.framework, "batch_size": 1, "sample_order": "sequential",
                "read_model": "framework", **self.reader,
            },
            "train": {"epochs": 1, "computation_time": 0},
        }

    def paths(self, root):
        """The data files of this set below `root`, in the order of their names."""
        folder = Path(root) / self.name / "train"
        return sorted(path for path in folder.iterdir() if path.suffix != ".idx")

    def plan(self, root):
        """What `readers.py` needs to know."""
        return {
            "name": self.name, "format": self.format, "per_file": self.per_file,
            "files": [str(path) for path in self.paths(root)],
            "sets": self.keys.get("hdf5", {}).get("num_dset_per_record", 1),
            "transfer_size": self.reader.get("transfer_size"),
        }


def _square(side):
    return {"record_dims": [side, side]}


def _noise(random, *shape):
    return random.integers(0, 255, shape, dtype=np.uint8)


def _npz_compressible(path, random):
    np.savez_compressed(path, x=_noise(random, MEDIUM, MEDIUM, 1) // 64, y=[0])


def _hdf5_default(**options):
    def write(path, random):
        import h5py

        with h5py.File(path, "w") as file:
            file.create_dataset("records_0", data=_noise(random, 4, SMALL, SMALL), **options)
            file.create_dataset("labels", data=[0] * 4)
    return write


def _image(side, **options):
    def write(path, random):
        from PIL import Image

        Image.fromarray(_noise(random, side, side)).save(path, **options)
    return write


def _csv_gzip(path, random):
    import pandas

    pandas.DataFrame(_noise(random, 20, 4000)).to_csv(
        path, header=False, index=False, compression="gzip")


def _parquet_groups(path, random):
    import pyarrow
    import pyarrow.parquet

    table = pyarrow.table({
        "x": [_noise(random, SMALL * SMALL).tobytes() for _ in range(4)], "y": [0, 1, 2, 3],
    })
    pyarrow.parquet.write_table(table, path, row_group_size=2)


ALL = (
    DataSet("npz-small", "npz", "110 KB", 8, _square(SMALL)),
    DataSet("npz-medium", "npz", "2.8 MB", 4, _square(MEDIUM)),
    DataSet("npz-large", "npz", "146 MB", 1, _square(LARGE), workers=(1,), large_blocks=False),
    DataSet("npz-4", "npz", "4 samples of 110 KB per file", 4,
            {**_square(SMALL), "num_samples_per_file": 4}),
    DataSet("npz-deflated", "npz", "110 KB deflated", 8, {**_square(SMALL), "compression": "zip"}),
    DataSet("npz-numpy-deflated", "npz", "2.8 MB deflated 3:1 by NumPy", 4,
            {**_square(MEDIUM), "compression": "zip"}, writer=_npz_compressible),
    DataSet("npy-small", "npy", "110 KB", 8, _square(SMALL)),
    DataSet("npy-medium", "npy", "2.8 MB", 4, _square(MEDIUM)),
    DataSet("hdf5-small", "hdf5", "110 KB", 8, _square(SMALL)),
    DataSet("hdf5-medium", "hdf5", "2.8 MB", 4, _square(MEDIUM)),
    DataSet("hdf5-4", "hdf5", "4 samples of 110 KB per file", 4,
            {**_square(SMALL), "num_samples_per_file": 4}),
    DataSet("hdf5-sets", "hdf5", "4 datasets per record", 4,
            {"record_dims": [64, 1712], "num_samples_per_file": 2, "hdf5": {"num_dset_per_record": 4}}),
    DataSet("hdf5-chunked", "hdf5", "chunks of one sample", 4,
            {**_square(SMALL), "num_samples_per_file": 4,
             "hdf5": {"chunk_dims": [1, SMALL, SMALL]}}),
    DataSet("hdf5-chunks", "hdf5", "chunks of 64 x 64", 4,
            {**_square(SMALL), "num_samples_per_file": 4, "hdf5": {"chunk_dims": [1, 64, 64]}}),
    DataSet("hdf5-gzip", "hdf5", "2.8 MB gzip", 4, {**_square(MEDIUM), "compression": "gzip"}),
    DataSet("hdf5-h5py", "hdf5", "4 samples of 110 KB per file by h5py", 4,
            {**_square(SMALL), "num_samples_per_file": 4}, writer=_hdf5_default()),
    DataSet("hdf5-h5py-gzip", "hdf5", "the same, gzip", 4,
            {**_square(SMALL), "num_samples_per_file": 4, "compression": "gzip"},
            writer=_hdf5_default(compression="gzip")),
    DataSet("jpeg-small", "jpeg", "63 KB by Pillow", 8, _square(250),
            writer=_image(250, quality=95)),
    DataSet("jpeg-medium", "jpeg", "1.56 MB by Pillow", 4, _square(1250),
            writer=_image(1250, quality=95)),
    DataSet("jpeg-own", "jpeg", "36 KB", 8, _square(250)),
    DataSet("png-small", "png", "110 KB", 8, _square(SMALL)),
    DataSet("png-medium", "png", "2.8 MB by Pillow", 4, _square(MEDIUM), writer=_image(MEDIUM)),
    DataSet("csv", "csv", "36 KB", 4, {"record_length_bytes": 10_000}, workers=(0, 1, 2)),
    # pandas takes long for many columns, so the larger files have rows.
    DataSet("csv-rows", "csv", "20 samples in 286 KB", 1,
            {"record_length_bytes": 4000, "num_samples_per_file": 20}, workers=(1, 2)),
    DataSet("csv-gzip", "csv", "20 samples, gzip by pandas", 1,
            {"record_length_bytes": 4000, "num_samples_per_file": 20, "compression": "gzip"},
            writer=_csv_gzip, workers=(1, 2)),
    DataSet("tfrecord", "tfrecord", "10 samples of 110 KB per file", 4,
            {**_square(SMALL), "num_samples_per_file": 10}),
    DataSet("tfrecord-64k", "tfrecord", "the same, transfer_size 65536", 4,
            {**_square(SMALL), "num_samples_per_file": 10}, reader={"transfer_size": 65536}),
    # Feedline refuses to stream without a worker.
    DataSet("webdataset", "webdataset", "shards of 10 samples of 110 KB", 4,
            {**_square(SMALL), "num_samples_per_file": 10}, workers=(1, 2, 4)),
    DataSet("parquet", "parquet", "4 samples of 110 KB in one row group", 4,
            {**_square(SMALL), "num_samples_per_file": 4}),
    DataSet("parquet-groups", "parquet", "row groups of 2 samples by pyarrow", 4,
            {**_square(SMALL), "num_samples_per_file": 4}, writer=_parquet_groups),
    DataSet("safetensors", "safetensors", "4 samples of 110 KB per file", 4,
            {**_square(SMALL), "num_samples_per_file": 4}, workers=(1, 2, 4)),
    DataSet("indexed", "indexed_binary", "4 samples of 110 KB per file", 4,
            {**_square(SMALL), "num_samples_per_file": 4}),
    # Feedline's look at the page cache maps files too, in the thread that reads where there are no workers.
    DataSet("mmap-indexed", "mmap_indexed_binary", "4 samples of 110 KB per file", 4,
            {**_square(SMALL), "num_samples_per_file": 4}, workers=(1, 2, 4)),
)


def write(data_set, root):
    """Writes a data set that has a `writer`."""
    random = np.random.default_rng(1)
    folder = Path(root) / data_set.name / "train"
    folder.mkdir(parents=True)
    extension = data_set.format
    if data_set.format == "csv" and data_set.keys.get("compression") == "gzip":
        extension = "csv.gz"
    for number in range(data_set.files):
        data_set.writer(str(folder / f"img_{number}_of_{data_set.files}.{extension}"), random)
