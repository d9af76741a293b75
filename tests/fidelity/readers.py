"""The real readers, as a training script or DLIO's classes call them.

Run as a program: `readers.py PLAN.json` reads every data set of the plan once, in order, through PyTorch's
DataLoader with the plan's number of workers, through tf.data, or (`"loader": "plain"`) one sample after
the other without a loader. Nothing that is read is handed over: calls are judged, not data.

Feedline's own process never imports this.
"""

import json
import os
import sys
import time


class Npz:
    """np.load as DLIO's NPZReader calls it; the file is read again for every sample."""

    def __init__(self, plan):
        import numpy

        self.numpy = numpy

    def __call__(self, path, index):
        return self.numpy.load(path, allow_pickle=True)["x"][..., index]


class Npy(Npz):
    """np.load of one array."""

    def __call__(self, path, index):
        return self.numpy.load(path)[..., index]


class Hdf5:
    """h5py as DLIO's HDF5Reader calls it: all datasets of a record, no labels."""

    def __init__(self, plan):
        import h5py

        self.h5py = h5py
        self.names = [f"records_{number}" for number in range(plan["sets"])]

    def __call__(self, path, index):
        file = self.h5py.File(path, "r")
        for name in self.names:
            file[name][index]
        file.close()


class Image:
    """Pillow as DLIO's ImageReader calls it."""

    def __init__(self, plan):
        import numpy
        from PIL import Image as pillow

        self.numpy, self.pillow = numpy, pillow

    def __call__(self, path, index):
        return self.numpy.asarray(self.pillow.open(path))


class Csv:
    """pandas as DLIO's CSVReader calls it."""

    def __init__(self, plan):
        import pandas

        self.pandas = pandas

    def __call__(self, path, index):
        return self.pandas.read_csv(path, compression="infer", header=None).to_numpy()[index]


class Parquet:
    """pyarrow: the row group of the sample, and of it the column that is wanted."""

    def __init__(self, plan):
        import pyarrow.parquet

        self.parquet = pyarrow.parquet

    def __call__(self, path, index):
        with self.parquet.ParquetFile(path) as file:
            group = 0
            while index >= file.metadata.row_group(group).num_rows:
                index -= file.metadata.row_group(group).num_rows
                group += 1
            return file.read_row_group(group, columns=["x"])["x"][index].as_py()


class Safetensors:
    """safetensors: the part of `x` that is the sample."""

    def __init__(self, plan):
        import safetensors

        self.safe_open = safetensors.safe_open

    def __call__(self, path, index):
        with self.safe_open(path, framework="np") as file:
            return file.get_slice("x")[index]


class Indexed:
    """DLIO's IndexedBinaryReader: the indices of all files when a worker starts, then seek and readinto."""

    def __init__(self, plan):
        import numpy

        self.numpy = numpy
        self.places = {path: [self.longs(path + end, plan["per_file"])
                              for end in (".off.idx", ".sz.idx")] for path in plan["files"]}

    def longs(self, path, count):
        """Reads `count` numbers."""
        numbers = self.numpy.empty(count, dtype=self.numpy.int64)
        with open(path, "rb") as file:
            file.readinto(numbers)
        return numbers

    def __call__(self, path, index):
        offsets, sizes = self.places[path]
        with open(path, "rb") as file:
            file.seek(offsets[index])
            sample = self.numpy.empty(sizes[index], dtype=self.numpy.uint8)
            file.readinto(sample)
        return sample


class MappedIndexed:
    """DLIO's IndexedBinaryMMapReader: maps all files when a worker starts."""

    def __init__(self, plan):
        import numpy

        self.places = {path: [numpy.memmap(path + end, dtype=dtype, mode="r") for end, dtype in (
            (".off.idx", numpy.int64), (".sz.idx", numpy.int64), ("", numpy.uint8))]
            for path in plan["files"]}

    def __call__(self, path, index):
        offsets, sizes, data = self.places[path]
        return data[offsets[index]:offsets[index] + sizes[index]]


READERS = {
    "npz": Npz, "npy": Npy, "hdf5": Hdf5, "jpeg": Image, "png": Image, "csv": Csv,
    "parquet": Parquet, "safetensors": Safetensors, "indexed_binary": Indexed,
    "mmap_indexed_binary": MappedIndexed,
}


class Samples:
    """A map-style dataset over one plan; its reader is made by the worker that needs it, as in DLIO."""

    def __init__(self, plan):
        self.plan = plan
        self.reader = None

    def __len__(self):
        return len(self.plan["files"]) * self.plan["per_file"]

    def __getitem__(self, number):
        if self.reader is None:
            self.reader = READERS[self.plan["format"]](self.plan)
        per_file = self.plan["per_file"]
        self.reader(self.plan["files"][number // per_file], number % per_file)
        return 0


def torch_loader(plans, workers):
    """One DataLoader over the samples of all data sets, and one per set of shards."""
    import torch.utils.data

    maps = [Samples(plan) for plan in plans if plan["format"] != "webdataset"]
    loader = torch.utils.data.DataLoader(
        torch.utils.data.ConcatDataset(maps), batch_size=1, num_workers=workers,
        prefetch_factor=2 if workers else None)
    for _ in loader:
        pass
    for plan in plans:
        if plan["format"] == "webdataset":
            import webdataset

            shards = webdataset.WebDataset(plan["files"], shardshuffle=False, empty_check=False)
            shards = shards.map(lambda sample: 0)
            for _ in torch.utils.data.DataLoader(shards, batch_size=None, num_workers=workers):
                pass


def tensorflow_loader(plans, workers):
    """tf.data as DLIO's TFReader builds it; DLIO makes one reader of none."""
    import tensorflow

    for plan in plans:
        records = tensorflow.data.TFRecordDataset(
            plan["files"], buffer_size=plan["transfer_size"], num_parallel_reads=max(workers, 1))
        for _ in records.batch(1, drop_remainder=True).prefetch(2):
            pass


def reads_of_device(device):
    """I/Os that a block device has completed, once nothing is under way."""
    before = None
    while True:
        with open(f"/sys/block/{device}/stat", encoding="ascii") as file:
            fields = file.read().split()
        now = (int(fields[0]), int(fields[2]))
        if now == before and fields[8] == "0":
            return {"ios": now[0], "bytes": now[1] * 512}
        before = now
        time.sleep(0.02)


def plain_loader(plans, device):
    """One sample after the other; gives the I/Os of the device for each data set."""
    counted = {}
    for plan in plans:
        samples = Samples(plan)
        before = reads_of_device(device)
        for number in range(len(samples)):
            samples[number]
        after = reads_of_device(device)
        counted[plan["name"]] = {key: after[key] - before[key] for key in after}
    return counted


def main(path):
    """Does what a plan says."""
    with open(path, encoding="utf-8") as file:
        plan = json.load(file)
    # Behind the environment's own packages: the judges' readers beside PyTorch.
    sys.path.extend(plan.get("packages", []))
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
    if plan["loader"] == "pytorch":
        torch_loader(plan["sets"], plan["workers"])
    elif plan["loader"] == "tensorflow":
        tensorflow_loader(plan["sets"], plan["workers"])
    else:
        print(json.dumps(plain_loader(plan["sets"], plan["device"])))


if __name__ == "__main__":
    main(sys.argv[1])
