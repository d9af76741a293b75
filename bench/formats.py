"""Sections of the comparison that are about formats: writing them, reading them, decoding them."""

import json
import os
import shutil
import subprocess
from dataclasses import replace

from programs import Job
from table import Goal

GIB = 1 << 30
MIB = 1 << 20
# Formats whose samples are bytes as they are, and whether a file of many samples is read for one.
BINARY = {
    "npy": True, "npz": True, "hdf5": False, "indexed_binary": False,
    "mmap_indexed_binary": False, "safetensors": False, "webdataset": False, "parquet": False,
    "tfrecord": False,
}
# Formats that are read in a row, whatever the loader is told.
STREAMED = ("tfrecord", "webdataset")
# Formats with a checksum over all bytes, which must be taken.
CHECKSUMMED = {"npz": "CRC-32", "tfrecord": "CRC-32C"}
# Two readers, as many as the machine of these figures has cores.
READERS = 2
# Decodes pictures like DLIO's reader, one after the other, and prints its CPU time.
PILLOW = """
import json, resource, sys
import numpy
from PIL import Image
def cpu():
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime
start = cpu()
for _ in range(int(sys.argv[1])):
    for path in sys.argv[2:]:
        numpy.asarray(Image.open(path))
print(json.dumps({"cpu_s": cpu() - start}))
"""


def framework(name):
    """The overrides under which `name` can be read."""
    if name == "tfrecord":
        return (("framework", "tensorflow"), ("reader.data_loader", "tensorflow"))
    return ()


class FormatSections:
    """Sections of a `Bench`, which brings the programs, the folders and the table."""

    def __init__(self, bench, row):
        self.bench = bench
        self.row = row
        self.rounds = bench.options.rounds

    # --- e: generation ------------------------------------------------------------------------

    def generation_beside_fio(self):
        """Bytes a second of the whole generation against fio writing as much, both O_DIRECT."""
        job = self.bench.large(more=(("reader.odirect", "True"),))
        fio = shutil.which("fio")
        if fio is None:
            raise FileNotFoundError("no fio; install it with: apt-get install -y fio")
        ours, theirs = [], []
        for _ in range(self.rounds):
            usage = self.bench.feedline.generate(job)
            size = sum(file.stat().st_size for file in (job.data / "train").iterdir())
            ours.append(size / usage.wall_s)
            target = self.bench.data / "fio"
            target.mkdir(exist_ok=True)
            argv = [
                fio, "--name=write", "--rw=write", "--bs=1M", "--direct=1", "--ioengine=psync",
                "--numjobs=4", f"--size={size // 4 // MIB}M", f"--directory={target}",
                "--fallocate=none", "--group_reporting", "--output-format=json",
            ]
            wrote = json.loads(subprocess.check_output(argv))["jobs"][0]["write"]
            theirs.append(wrote["io_bytes"] / (wrote["runtime"] / 1e3))
            shutil.rmtree(target)
        self.bench.add(self.row(
            "generate npz, O_DIRECT", "GiB/s", [rate / GIB for rate in ours],
            "fio, 4 writers of 1 MiB", [rate / GIB for rate in theirs], Goal(">=", 0.85),
            {"feedline": ours, "fio": theirs}, best=max,
        ))

    def generation_beside_dlio(self):
        """Bytes per CPU-second of both generators."""
        bench = self.bench
        bench.require(bench.dlio.binary, f"bench/peers.sh {bench.options.peers}")
        job = bench.large(data=bench.data / "generated", files=4)
        cost = {program.name: [] for program in (bench.feedline, bench.dlio)}
        for _ in range(bench.options.dlio_rounds):
            for program in (bench.feedline, bench.dlio):
                usage = program.generate(job)
                size = sum(file.stat().st_size for file in (job.data / "train").iterdir())
                cost[program.name].append(size / usage.cpu_s / GIB)
        shutil.rmtree(job.data)
        bench.add(self.row(
            "generate npz, page cache", "GiB/CPU-s", cost["Feedline"], "DLIO", cost["DLIO"],
            Goal(">=", 10), cost, best=max,
        ))

    # --- f: reading ---------------------------------------------------------------------------

    def job(self, name):
        """1.5 GiB in 24 files, read by two readers in order, files with many samples kept open: what
        a bare reader does too. Much for an epoch, so that its cold start weighs little."""
        whole = BINARY[name]
        more = [("reader.file_shuffle", "off"), ("reader.sample_shuffle", "off")]
        if not whole and name not in STREAMED:
            more.append(("reader.read_type", "memory"))
        return Job(
            self.bench.data / name, files=24, format=name, workers=READERS,
            record_bytes=64 * MIB if whole else MIB, per_file=1 if whole else 64,
            batch=1 if whole else 16, more=(*framework(name), *more),
        )

    def reading(self, name):
        """Throughput from the page cache and past it, against bare preads of the same files."""
        bench = self.bench
        job = self.job(name)
        bench.feedline.generate(job)
        # Direct reads would wait for what is not written yet.
        os.sync()
        files = sorted(
            str(file) for file in (job.data / "train").iterdir() if not file.name.endswith(".idx")
        )
        self.beside_pread(f"read {name}, page cache", job, files, 4, ())
        if name in CHECKSUMMED:
            self.beside_pread(
                f"the same, with {CHECKSUMMED[name]} there too", job, files, 4, ("--crc",)
            )
        if name != "mmap_indexed_binary":
            direct = replace(job, more=(*job.more, ("reader.odirect", "True")))
            self.beside_pread(f"read {name}, O_DIRECT", direct, files, 1, ("--direct",))
            if name in CHECKSUMMED:
                self.beside_pread("the same, with a CRC there too", direct, files, 1,
                                  ("--crc", "--direct"))
        shutil.rmtree(job.data)

    def beside_pread(self, what, job, files, passes, flags):
        """One row: both read the files `passes` times."""
        bench = self.bench
        bare = bench.examples / "bare_pread"
        block = MIB
        size = sum(os.path.getsize(file) for file in files) * passes
        ours, theirs = [], []
        for _ in range(self.rounds):
            bench.feedline.train(replace(job, epochs=passes))
            ours.append(bench.feedline.rate_bytes() / GIB)
            argv = [str(bare), *flags, str(READERS), str(block), str(passes), *files]
            theirs.append(size / json.loads(subprocess.check_output(argv))["wall_s"] / GIB)
        goal = None if "--crc" in flags else Goal(">=", 0.9)
        bench.add(self.row(
            what, "GiB/s", ours, f"bare pread of {block >> 10} KiB", theirs, goal,
            {"feedline": ours, "bare": theirs}, best=max,
        ))

    # --- g: decoding --------------------------------------------------------------------------

    def decoding(self, name, side, count):
        """CPU time per picture of one reader against Pillow, start-up taken off on both sides."""
        bench = self.bench
        python = bench.options.peers / "dlio" / "bin" / "python"
        bench.require(python, f"bench/peers.sh {bench.options.peers}")
        job = Job(bench.data / name, files=count, format=name, workers=1, batch=1,
                  record_bytes=side * side)
        bench.feedline.generate(job)
        files = sorted(map(str, (job.data / "train").iterdir()))
        passes = 4
        ours, theirs = [], []
        for _ in range(self.rounds):
            once = bench.feedline.train(job)
            often = bench.feedline.train(replace(job, epochs=1 + passes))
            ours.append(count * passes / (often.cpu_s - once.cpu_s))
            argv = [str(python), "-c", PILLOW, str(passes), *files]
            used = json.loads(subprocess.check_output(argv))
            theirs.append(count * passes / used["cpu_s"])
        shutil.rmtree(job.data)
        bench.add(self.row(
            f"decode {name}, {side} x {side} gray", "pictures/CPU-s", ours, "Pillow", theirs,
            Goal(">=", 1.0), {"feedline": ours, "pillow": theirs}, best=max,
        ))

    # --- h: threads ---------------------------------------------------------------------------

    def hdf5_readers(self):
        """Two readers of HDF5 against one, both from the page cache, chunks decompressed or not, and
        what two bare readers do against one: the most that this machine has to give."""
        bare = self.bench.examples / "bare_pread"
        for what, files, passes, more in (
            ("contiguous", 24, 4, ()),
            ("gzip chunks", 8, 3, (("dataset.compression", "gzip"),)),
        ):
            base = self.job("hdf5")
            job = replace(
                base, data=self.bench.data / "readers", files=files, more=(*base.more, *more)
            )
            self.bench.feedline.generate(job)
            names = sorted(map(str, (job.data / "train").iterdir()))
            rates, bare_s = {1: [], 2: []}, {1: [], 2: []}
            for _ in range(self.rounds):
                for readers in rates:
                    self.bench.feedline.train(replace(job, workers=readers, epochs=passes))
                    rates[readers].append(self.bench.feedline.rate_bytes() / GIB)
                    argv = [str(bare), str(readers), str(MIB), str(passes), *names]
                    bare_s[readers].append(json.loads(subprocess.check_output(argv))["wall_s"])
            shutil.rmtree(job.data)
            row = self.row(
                f"read hdf5, {what}, 2 readers", "GiB/s", rates[2], "1 reader", rates[1],
                Goal(">=", 1.7), {str(key): value for key, value in rates.items()}, best=max,
            )
            scaling = min(bare_s[1]) / min(bare_s[2])
            note = f"{row.note}; two bare readers are {scaling:.2f} times as fast as one"
            self.bench.add(replace(row, note=note))

    def ring(self):
        """The deep model over io_uring against one read at a time, both O_DIRECT."""
        base = self.job("npy")
        self.bench.feedline.generate(base)
        os.sync()
        deep = (("reader.odirect", "True"), ("reader.io_engine", "io_uring"),
                ("reader.queue_depth", "32"))
        rates = {"deep": [], "native": []}
        for _ in range(self.rounds):
            for name, more in (("deep", deep), ("native", deep[:1])):
                job = replace(base, more=more, read_model=name, epochs=4, workers=1)
                self.bench.feedline.train(job)
                rates[name].append(self.bench.feedline.rate_bytes() / GIB)
        shutil.rmtree(base.data)
        self.bench.add(self.row(
            "read npy, deep, 32 in flight, O_DIRECT", "GiB/s", rates["deep"],
            "native model", rates["native"], None, rates, best=max,
        ))


def sections(bench, row):
    """Names and functions, in the order in which they run."""
    formats = FormatSections(bench, row)
    yield "e: generation beside fio", formats.generation_beside_fio
    yield "e: generation beside DLIO", formats.generation_beside_dlio
    for name in BINARY:
        yield f"f: reading {name}", lambda name=name: formats.reading(name)
    yield "f: many reads in flight", formats.ring
    for name in ("jpeg", "png"):
        yield f"g: decoding {name}", lambda name=name: formats.decoding(name, 338, 1000)
        yield f"g: decoding {name}, large", lambda name=name: formats.decoding(name, 1024, 150)
    yield "h: readers of HDF5", formats.hdf5_readers
