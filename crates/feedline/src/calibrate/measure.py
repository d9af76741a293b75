"""Measures what Python readers and torch's DataLoader cost, in CPU time.

Takes one request per line on stdin, a JSON object with the key `measure`, and answers each with one
line of JSON on stdout. All files it is asked to read lie in the page cache, and all times are CPU
time of processes: neither depends on storage, and load from other programs changes them little.

Each measurement has a process of its own. What was allocated before decides whether the C library gets
the memory of a sample from the kernel or has it already, which can more than double the cost of reading it.
"""

import json
import os
import statistics
import sys
import time

ROUNDS = 5
# Samples of a batch.
SAMPLES = 4

PACKAGES = ["numpy", "torch", "h5py", "PIL", "pandas", "pyarrow", "tensorflow", "webdataset", "safetensors"]


# The readers: what a Dataset's __getitem__, or DLIO's reader of the format, does for a file.


def npz_reader():
    import numpy as np

    def read(path):
        with np.load(path, allow_pickle=True) as file:
            return file["x"]

    return 'np.load(path)["x"]', read


def npy_reader():
    import numpy as np

    return "np.load(path)", np.load


def hdf5_reader():
    import h5py

    def read(path):
        with h5py.File(path, "r") as file:
            # Labels stand beside them.
            name = next(name for name in file if name.startswith("records"))
            return file[name][()]

    return "h5py.File(path)[name][()]", read


def image_reader():
    import numpy as np
    from PIL import Image

    def read(path):
        with Image.open(path) as image:
            return np.asarray(image)

    return "np.asarray(Image.open(path))", read


def csv_reader():
    import pandas as pd

    return "pd.read_csv(path, header=None).to_numpy()", lambda path: pd.read_csv(path, header=None).to_numpy()


def parquet_reader():
    import pyarrow.parquet as pq

    return "pq.read_table(path)", pq.read_table


def tfrecord_reader():
    import tensorflow as tf

    def read(path):
        for record in tf.data.TFRecordDataset(path):
            record.numpy()

    return "for record in tf.data.TFRecordDataset(path): record.numpy()", read


def webdataset_reader():
    import webdataset as wds

    def read(path):
        for _ in wds.WebDataset(path, shardshuffle=False):
            pass

    return "for sample in wds.WebDataset(path)", read


def indexed_binary_reader():
    import numpy as np

    def read(path):
        offset = int(np.fromfile(path + ".off.idx", dtype=np.uint64)[0])
        size = int(np.fromfile(path + ".sz.idx", dtype=np.uint64)[0])
        with open(path, "rb") as file:
            file.seek(offset)
            return np.frombuffer(file.read(size), dtype=np.uint8)

    return "np.frombuffer(open(path).read(size))", read


def mmap_indexed_binary_reader():
    import numpy as np

    def read(path):
        offset = int(np.memmap(path + ".off.idx", dtype=np.uint64, mode="r")[0])
        size = int(np.memmap(path + ".sz.idx", dtype=np.uint64, mode="r")[0])
        return np.array(np.memmap(path, dtype=np.uint8, mode="r")[offset : offset + size])

    return "np.array(np.memmap(path)[a:b])", read


def safetensors_reader():
    from safetensors import safe_open

    def read(path):
        with safe_open(path, framework="np") as file:
            return [file.get_tensor(name) for name in file.keys()]

    return "safe_open(path).get_tensor(name)", read


READERS = {
    "npz": npz_reader,
    "npy": npy_reader,
    "hdf5": hdf5_reader,
    "jpeg": image_reader,
    "png": image_reader,
    "csv": csv_reader,
    "parquet": parquet_reader,
    "tfrecord": tfrecord_reader,
    "webdataset": webdataset_reader,
    "indexed_binary": indexed_binary_reader,
    "mmap_indexed_binary": mmap_indexed_binary_reader,
    "safetensors": safetensors_reader,
}


def per_call_ns(call, arguments, seconds):
    """Median over rounds of the CPU time of one call. Each round goes through all arguments, over
    and over, for as long as asked. Results live until a batch of them is there, as in a loader: a
    loop that drops each at once gets the same memory over and over, and pays for no page of it."""
    begin = time.process_time()
    call(arguments[0])
    if time.process_time() - begin > seconds:
        # Long enough, and long enough to be asked for no more often than needed.
        arguments = arguments[:SAMPLES]
    batches = [arguments[first : first + SAMPLES] for first in range(0, len(arguments), SAMPLES)]
    for batch in batches:
        [call(argument) for argument in batch]
    means = []
    for _ in range(ROUNDS):
        calls, begin = 0, time.process_time()
        while calls == 0 or time.process_time() - begin < seconds:
            for batch in batches:
                [call(argument) for argument in batch]
            calls += len(arguments)
        means.append((time.process_time() - begin) / calls)
    return 1e9 * statistics.median(means)


def measure_reader(format, paths, seconds):
    call, read = READERS[format]()
    return {"call": call, "cpu_ns": per_call_ns(read, paths, seconds)}


# torch's DataLoader.


class Counted:
    """A data set without end. Workers leave their CPU time and their number of samples."""

    def __init__(self, read, workers):
        import multiprocessing

        self.read = read
        self.first = multiprocessing.RawArray("d", max(workers, 1))
        self.cpu = multiprocessing.RawArray("d", max(workers, 1))
        self.count = multiprocessing.RawArray("q", max(workers, 1))

    def __len__(self):
        return 1 << 40

    def __getitem__(self, index):
        import torch.utils.data

        info = torch.utils.data.get_worker_info()
        if info is not None:
            self.cpu[info.id] = time.process_time()
            if self.count[info.id] == 0:
                self.first[info.id] = self.cpu[info.id]
            self.count[info.id] += 1
        return self.read(index)


class Ready:
    """Samples that are ready in memory: what is left is putting batches together and handing them over."""

    def __init__(self, bytes):
        import numpy as np

        self.sample = np.ones(max(bytes, 1), dtype=np.uint8)

    def __call__(self, index):
        return self.sample


def data_loader(read, workers, context=None):
    import torch.utils.data

    data = Counted(read, workers)
    sampler = torch.utils.data.SequentialSampler(range(1 << 40))
    loader = torch.utils.data.DataLoader(
        data,
        batch_size=SAMPLES,
        sampler=sampler,
        num_workers=workers,
        multiprocessing_context=context if workers else None,
    )
    return data, loader


def per_batch_ns(read, workers, seconds):
    """Medians over rounds of the CPU time of one batch in the workers and in the consumer, when the
    pipeline is full."""
    import torch

    data, loader = data_loader(read, workers)
    # Threads that wait for one another spin, which on a busy machine is all that would be measured.
    torch.set_num_threads(1)
    batches = iter(loader)
    # All that are outstanding at the start, and one round more.
    for _ in range(max(4 * workers, 2)):
        batch = next(batches)
    consumers, in_workers = [], []
    for _ in range(ROUNDS):
        cpu, count = list(data.cpu), list(data.count)
        done, begin, start = 0, time.process_time(), time.monotonic()
        while done < max(2 * workers, 1) or time.monotonic() - start < seconds:
            batch = next(batches)
            done += 1
        consumers.append((time.process_time() - begin) / done)
        spent = sum(data.cpu) - sum(cpu)
        made = (sum(data.count) - sum(count)) / SAMPLES
        in_workers.append(spent / max(made, 1))
    return {
        "bytes": batch.nbytes,
        "worker_cpu_ns": 1e9 * statistics.median(in_workers),
        "consumer_cpu_ns": 1e9 * statistics.median(consumers),
    }


def measure_batch(format, paths, workers, seconds):
    """A batch that is read and handed over. Where the reader gives no array, a few bytes are."""
    import numpy as np

    _, read = READERS[format]()
    few = np.ones(64, dtype=np.uint8)

    def sample(index):
        found = read(paths[index % len(paths)])
        return found if isinstance(found, np.ndarray) else few

    return per_batch_ns(sample, workers, seconds)


def measure_hand_over(bytes, workers, seconds):
    return per_batch_ns(Ready(bytes // SAMPLES), workers, seconds)


def measure_start(context, workers):
    data, loader = data_loader(Ready(16), workers, context)
    begin = time.process_time()
    batches = iter(loader)
    consumer = time.process_time() - begin
    for _ in range(2 * workers):
        next(batches)
    first = list(data.first)
    del batches
    return {
        "worker_cpu_ns": 1e9 * statistics.median(first),
        "consumer_cpu_ns": 1e9 * consumer / workers,
    }


def versions():
    import importlib
    import importlib.metadata

    names = {"PIL": "pillow"}
    found, missing = {}, {}
    for package in PACKAGES:
        name = names.get(package, package)
        try:
            module = importlib.import_module(package)
            # The package may have been installed under another name, as tensorflow-cpu.
            found[name] = getattr(module, "__version__", None) or importlib.metadata.version(name)
        except Exception as error:  # A package that is there and broken raises anything.
            missing[name] = str(error).splitlines()[0] if str(error) else type(error).__name__
    return {"version": sys.version.split()[0], "executable": sys.executable, "packages": found, "missing": missing}


MEASURES = {
    "versions": versions,
    "reader": measure_reader,
    "batch": measure_batch,
    "hand_over": measure_hand_over,
    "start": measure_start,
}


def answer_to(request):
    try:
        return MEASURES[request.pop("measure")](**request)
    except Exception as error:
        return {"error": f"{type(error).__name__}: {error}"}


def in_own_process(request):
    there, here = os.pipe()
    child = os.fork()
    if child == 0:
        with os.fdopen(here, "w") as pipe:
            json.dump(answer_to(request), pipe)
        os._exit(0)
    os.close(here)
    with os.fdopen(there) as pipe:
        answer = pipe.read()
    _, status = os.waitpid(child, 0)
    return json.loads(answer) if answer else {"error": f"the process ended with status {status}"}


def main():
    # Libraries may print; answers must stand alone.
    answers, sys.stdout = sys.stdout, sys.stderr
    for line in sys.stdin:
        request = json.loads(line)
        # It imports all packages, for all that follow.
        answer = answer_to(request) if request["measure"] == "versions" else in_own_process(request)
        answers.write(json.dumps(answer) + "\n")
        answers.flush()


if __name__ == "__main__":
    main()
