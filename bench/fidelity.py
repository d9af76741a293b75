#!/usr/bin/env python3
"""The utilization that DLIO and Feedline report of the same job on the same slow store.

The store is held below both programs by a preloaded library (store_shim.c): a latency on every open and read
of a data file, a rate that all processes share, or both. It does not know whose calls it slows down, so a
program that asks for other pieces than the real reader gets another answer. Goal: 2 points apart.

Then the rate of PyTorch's own DataLoader from the page cache, where Python is the limit: real_loader.py beside
`feedline run`. Goal: a quarter apart. Both need what `feedline calibrate` measures, which is done here.

Part of `make bench`, and a program of its own:

    bench/fidelity.py --feedline FEEDLINE --dlio VENV/bin/dlio_benchmark [--dlio-main FOLDER --python PYTHON]
"""

import argparse
import json
import os
import shutil
import struct
import subprocess
import sys
from dataclasses import dataclass, replace
from pathlib import Path

from programs import Dlio, Feedline, Job
from table import Goal, Row, render
from usage import NO_LOOKS, CommandFailed

SOURCE = Path(__file__).with_name("store_shim.c")
REAL_LOADER = Path(__file__).with_name("real_loader.py")
GOAL_POINTS = 2
# Of the rates of the real loader and of Feedline, the larger over the smaller.
GOAL_RATES = 1.25
# Side of a square of bytes: 110 KB and 2.8 MB; 250 x 250 pixels of noise are a JPEG of 36 KB.
SMALL_BYTES, MEDIUM_BYTES, LARGE_BYTES, JPEG_BYTES = 109561, 2798929, 146600628, 62500
# Opens and reads of the real reader for a sample, and the bytes that it reads; see tests/fidelity.
CALLS = {"npz": 10, "jpeg": 4, "hdf5": 6}
NPZ_SMALL_READ_BYTES, NPZ_MEDIUM_READ_BYTES = 114343, 2803711
BATCH = 4
FILES = 48
CACHED_EPOCHS = 10
# Long beside what a busy machine adds to a step of Python.
COMPUTE_S = 0.4


@dataclass(frozen=True)
class Store:
    """What the preloaded library does to calls on data files."""

    latency_ms: float = 0
    # All processes together.
    bytes_per_s: float = 0

    def environment(self, library, folder, state):
        """What has to stand in the environment of a program."""
        return {
            "LD_PRELOAD": str(library), "STORE_SHIM_FOLDER": str(folder),
            "STORE_SHIM_STATE": str(state), "STORE_SHIM_LATENCY_US": f"{self.latency_ms * 1e3:.0f}",
            "STORE_SHIM_RATE": f"{self.bytes_per_s:.0f}",
        }


@dataclass(frozen=True)
class Case:
    """A job on a store, and the utilization that its numbers give if nothing else takes time."""

    name: str
    job: Job
    store: Store
    by_hand: float
    ranks: int = 1
    # DLIO 2.0.0 reads and writes a HDF5 layout of its own.
    only_main: bool = False


class HeldFeedline(Feedline):
    """Feedline on a store that is held."""

    ranks = 1
    held = {}
    look_s = NO_LOOKS

    def argv(self, job, generate):
        # DLIO keeps its workers from epoch to epoch.
        more = (*job.more, ("reader.persistent_workers", "True"))
        job = replace(job, read_model="framework", more=more)
        return [*super().argv(job, generate), "--accelerators", str(self.ranks)]

    def environment(self):
        figures = str(self.scratch / "calibration.json")
        return {**super().environment(), "FEEDLINE_CALIBRATION": figures, **self.held}

    def calibrate(self, python):
        """Measures what Python costs here, for all runs."""
        self.run([str(self.binary), "calibrate", "--python", str(python), "--formats",
                  ",".join(CALLS)])


class HeldDlio(Dlio):
    """DLIO 2.0.0 on a store that is held; further ranks come by mpirun."""

    name = "DLIO 2.0.0"
    ranks = 1
    held = {}
    look_s = NO_LOOKS

    def __init__(self, scratch, binary):
        super().__init__(scratch, scratch)
        self.binary = binary

    def command(self):
        """The program itself."""
        return [str(self.binary)]

    def argv(self, job, generate):
        _, *arguments = super().argv(job, generate)
        several = ["mpirun", "--oversubscribe", "-n", str(self.ranks)] if self.ranks > 1 else []
        return [*several, *self.command(), *arguments]

    def environment(self):
        return {**super().environment(), **self.held}


class HeldMain(HeldDlio):
    """DLIO from its repository."""

    name = "DLIO main"
    length_key = "record_length_bytes"

    def __init__(self, scratch, folder, python):
        super().__init__(scratch, folder)
        self.python = python

    def command(self):
        return [str(self.python), "-m", "dlio_benchmark.main"]

    def environment(self):
        return {**super().environment(), "PYTHONPATH": str(self.binary)}


def starved(share, seconds_per_batch=COMPUTE_S):
    """Seconds that reading a batch must take so that this share of the time is spent waiting; a share
    of -1 is a store that takes half as long as the trainer."""
    return seconds_per_batch / (1 - share)


def latency_for(share, workers, calls):
    """Milliseconds per call with which so many workers starve the trainer."""
    return starved(share) * workers / (BATCH * calls) * 1e3


def cases(data):
    """All cases, by the folder of their data sets."""
    npz = Job(data / "npz-small", FILES, SMALL_BYTES, batch=BATCH, workers=1, compute_s=COMPUTE_S,
              read_model="framework")
    medium = replace(npz, data=data / "npz-medium", files=32, record_bytes=MEDIUM_BYTES,
                     resize_bytes=2097152)
    jpeg = replace(npz, data=data / "jpeg", record_bytes=JPEG_BYTES, format="jpeg")
    hdf5 = replace(npz, data=data / "hdf5", format="hdf5")
    yield from latency_cases(npz)
    yield from rate_cases(npz, medium)
    yield from decode_cases(npz)
    yield Case("10 ms per call, npz 110 KB, W1 (the knee)", npz, Store(10), 100)
    yield Case("40 ms per call, jpeg, W1", jpeg, Store(40), 62.5)
    yield Case("20 ms per call, hdf5, W1", hdf5, Store(20), 83.3, only_main=True)
    # Steps are short here, so that there must be many beside the first ones.
    cached = {"workers": 2, "epochs": CACHED_EPOCHS}
    yield Case("cached npz 2.8 MB, W2, 20 ms per batch", replace(medium, compute_s=0.02, **cached),
               Store(), 100)
    yield Case("cached jpeg, W2, 10 ms per batch", replace(jpeg, compute_s=0.01, **cached), Store(),
               100)
    large = Job(data / "npz-large", 14, LARGE_BYTES, batch=7, workers=4, resize_bytes=2097152,
                compute_s=0.323, read_model="framework")
    yield Case("cached unet3d, W4, rate of an H100", large, Store(), 100)


def latency_cases(npz):
    """Calls cost time."""
    for workers in (1, 2, 4):
        job = replace(npz, workers=workers)
        for name, share in (("fed", -1.0), ("20 % starved", 0.2), ("50 % starved", 0.5)):
            latency_ms = latency_for(share, workers, CALLS["npz"])
            yield Case(f"latency, {name}, W{workers}", job, Store(latency_ms),
                       min(100, 100 * (1 - share)))
    for name, share in (("fed", -1.0), ("50 % starved", 0.5)):
        yield Case(f"latency, {name}, W1, 2 ranks", npz, Store(latency_for(share, 1, CALLS["npz"])),
                   min(100, 100 * (1 - share)), ranks=2)


def rate_cases(npz, medium):
    """Bytes cost time, and both."""
    batch_bytes = BATCH * NPZ_SMALL_READ_BYTES
    for name, share in (("fed", -1.0), ("20 % starved", 0.2), ("50 % starved", 0.5)):
        yield Case(f"rate, {name}, W2", replace(npz, workers=2),
                   Store(bytes_per_s=batch_bytes / starved(share)), min(100, 100 * (1 - share)))
    yield Case("rate, 50 % starved, W1, 2 ranks", npz,
               Store(bytes_per_s=2 * batch_bytes / starved(0.5)), 50, ranks=2)
    yield Case("rate, npz 2.8 MB, 50 % starved, W2", replace(medium, workers=2),
               Store(bytes_per_s=BATCH * NPZ_MEDIUM_READ_BYTES / starved(0.5)), 50)
    # Half of the time by calls, half by bytes.
    yield Case("latency and rate, 50 % starved, W1", npz,
               Store(latency_for(0.5, 1, CALLS["npz"]) / 2, 2 * batch_bytes / starved(0.5)), 50)


def decode_cases(npz):
    """The work on a sample costs time, the store nothing."""
    for workers, name, share in ((1, "20 %", 0.2), (1, "50 %", 0.5), (2, "50 %", 0.5),
                                 (4, "50 %", 0.5)):
        preprocess_s = starved(share) * workers / BATCH
        yield Case(f"decode-bound, {name} starved, W{workers}",
                   replace(npz, workers=workers, preprocess_s=preprocess_s), Store(),
                   100 * (1 - share))
    yield Case("decode-bound, 50 % starved, W1, 2 ranks",
               replace(npz, preprocess_s=starved(0.5) / BATCH), Store(), 50, ranks=2)


class Fidelity:
    """Runs cases on both programs and adds a row for each peer."""

    def __init__(self, add, scratch, feedline, peers, rounds):
        self.add = add
        self.scratch = scratch
        self.feedline = feedline
        self.peers = peers
        self.rounds = rounds
        self.library = scratch / "store_shim.so"
        self.state = scratch / "store_shim.state"
        self.made = set()

    def prepare(self, python):
        """Compiles the library, and measures a Python with torch."""
        if not shutil.which("gcc"):
            raise FileNotFoundError("no gcc; install it with: apt-get install -y gcc libc6-dev")
        subprocess.run(["gcc", "-O2", "-shared", "-fPIC", "-o", str(self.library), str(SOURCE),
                        "-ldl"], check=True)
        self.feedline.held = {}
        if not (self.scratch / "calibration.json").exists():
            self.feedline.calibrate(python)

    def generate(self, job):
        """Makes the data set of a job once."""
        if job.data in self.made:
            return
        self.feedline.held, self.feedline.ranks = {}, 1
        self.feedline.generate(job)
        self.made.add(job.data)

    def run(self, program, case):
        """Utilization, and what the store counted, of one run."""
        self.state.unlink(missing_ok=True)
        program.ranks = case.ranks
        # The folder of the samples: Feedline's notes about the data set lie above it.
        program.held = case.store.environment(self.library, case.job.data / "train", self.state)
        program.run(program.argv(case.job, False))
        opens, reads, preads, moved = struct.unpack("=4Q", self.state.read_bytes()[:32])
        return {"au": program.utilization(), "opens": opens, "reads": reads + preads, "bytes": moved,
                "load": os.getloadavg()[0]}

    def case(self, case):
        """Takes turns, then compares."""
        self.generate(case.job)
        peers = [peer for peer in self.peers if peer.name == "DLIO main" or not case.only_main]
        measured = {program.name: [] for program in (self.feedline, *peers)}
        for _ in range(self.rounds):
            for program in (self.feedline, *peers):
                measured[program.name].append(self.run(program, case))
        ours = measured[self.feedline.name]
        for peer in peers:
            self.row(case, peer.name, ours, measured[peer.name])

    def row(self, case, name, ours, theirs):
        """One comparison of the best rounds, as other work on the machine only ever takes utilization
        away; in the place of a ratio stand the points apart."""
        mine, other = (max(one["au"] for one in runs) for runs in (ours, theirs))
        load = max(one["load"] for one in (*ours, *theirs))
        note = (f"ratio: points apart; by hand {case.by_hand:g}; opens + reads "
                f"{ours[0]['opens']} + {ours[0]['reads']} against "
                f"{theirs[0]['opens']} + {theirs[0]['reads']}; load up to {load:.1f}")
        self.add(Row(case.name, "AU %", mine, name, other, abs(mine - other),
                     Goal("<=", GOAL_POINTS), note, {"feedline": ours, "peer": theirs}))


def loader_cases(data):
    """npz files of three sizes, without workers, with two and with four; the peer's epochs last a second or
    two."""
    sizes = (("110 KB", "npz-small", FILES, SMALL_BYTES, 4, 60),
             ("2.8 MB", "npz-medium", 32, MEDIUM_BYTES, 4, 20),
             ("146 MB", "npz-large", 14, LARGE_BYTES, 1, 2))
    for name, folder, files, record_bytes, batch, epochs in sizes:
        for workers in (0, 2, 4):
            yield f"rate of npz {name}, W{workers}", Job(
                data / folder, files, record_bytes, batch, workers, epochs, read_model="framework")


class Rates:
    """The real DataLoader and Feedline on the same files in the page cache, as fast as they go."""

    def __init__(self, fidelity, python):
        self.fidelity = fidelity
        self.python = python

    def real(self, job):
        """Samples per second and CPU ms per sample of PyTorch's DataLoader."""
        argv = [self.python, REAL_LOADER, job.data / "train", job.batch, job.workers, job.epochs]
        done = subprocess.run(list(map(str, argv)), check=True, capture_output=True, text=True)
        return json.loads(done.stdout)

    def ours(self, job):
        """The same of Feedline, start and end of the program included in its CPU time."""
        feedline = self.fidelity.feedline
        feedline.held, feedline.ranks = {}, 1
        usage = feedline.train(job)
        rate = feedline.rate_bytes() / job.record_bytes
        return {"rate": rate, "cpu_ms": 1e3 * usage.cpu_s / job.samples}

    def case(self, name, job):
        """Takes turns, then compares the best rounds."""
        self.fidelity.generate(job)
        rounds = [(self.ours(job), self.real(job)) for _ in range(self.fidelity.rounds)]
        ours, real = ([one[side] for one in rounds] for side in (0, 1))
        mine, other = (max(one["rate"] for one in runs) for runs in (ours, real))
        cpu, other_cpu = (min(one["cpu_ms"] for one in runs) for runs in (ours, real))
        note = f"ratio: times apart; CPU per sample {cpu:.3g} ms against {other_cpu:.3g}"
        self.fidelity.add(Row(name, "samples/s", mine, "DataLoader", other,
                              max(mine / other, other / mine), Goal("<=", GOAL_RATES), note,
                              {"feedline": ours, "peer": real}))


def sections(bench):
    """Names and functions for `make bench`. DLIO from its repository takes part if FEEDLINE_DLIO_MAIN names a
    folder with it and FEEDLINE_DLIO_MAIN_PYTHON a Python with pydftracer 2.0.2 or later; that of DLIO 2.0.0
    has an older one."""
    def started():
        bench.require(bench.dlio.binary, f"bench/peers.sh {bench.options.peers}")
        peers = [HeldDlio(bench.data, bench.dlio.binary)]
        folder, python = map(os.environ.get, ("FEEDLINE_DLIO_MAIN", "FEEDLINE_DLIO_MAIN_PYTHON"))
        if folder and python:
            peers.append(HeldMain(bench.data, Path(folder).resolve(), python))
        fidelity = Fidelity(bench.add, bench.data, HeldFeedline(bench.data, bench.feedline.binary),
                            peers, bench.options.dlio_rounds)
        fidelity.prepare(bench.dlio.binary.with_name("python"))
        return fidelity

    def held():
        fidelity = started()
        for case in cases(bench.data / "fidelity"):
            fidelity.case(case)

    def rates():
        fidelity = started()
        compared = Rates(fidelity, bench.dlio.binary.with_name("python"))
        for name, job in loader_cases(bench.data / "fidelity"):
            compared.case(name, job)

    return [("n: the same answer as DLIO on a slow store", held),
            ("o: the rate of PyTorch's DataLoader", rates)]


def options_of(argv):
    """Command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--feedline", type=Path, required=True)
    parser.add_argument("--dlio", type=Path, help="dlio_benchmark of an environment with DLIO 2.0.0")
    parser.add_argument("--dlio-main", type=Path, help="folder with DLIO's repository")
    parser.add_argument("--python", type=Path, help="a Python with what DLIO main needs")
    parser.add_argument("--data", type=Path, default=Path("fidelity-bench"))
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument("--only", default="", help="cases whose name contains this")
    options = parser.parse_args(argv)
    if not options.dlio and not options.dlio_main:
        parser.error("neither --dlio nor --dlio-main: bring DLIO 2.0.0 with: bench/peers.sh FOLDER")
    if options.dlio_main and not options.python:
        parser.error("--dlio-main needs --python")
    return options


def main(argv):
    """Runs the cases, prints the table; 1 if a goal was missed."""
    options = options_of(argv)
    scratch = options.data.resolve()
    scratch.mkdir(parents=True, exist_ok=True)
    peers = []
    if options.dlio:
        peers.append(HeldDlio(scratch, options.dlio))
    if options.dlio_main:
        peers.append(HeldMain(scratch, options.dlio_main.resolve(), options.python))
    rows, left_out = [], []

    def add(row):
        rows.append(row)
        print("  " + " | ".join(row.cells()), flush=True)

    fidelity = Fidelity(add, scratch, HeldFeedline(scratch, options.feedline.resolve()), peers,
                        options.rounds)
    python = options.dlio.with_name("python") if options.dlio else options.python
    fidelity.prepare(python)
    rates = Rates(fidelity, python)
    work = [(case.name, lambda case=case: fidelity.case(case)) for case in cases(scratch)]
    work += [(name, lambda name=name, job=job: rates.case(name, job))
             for name, job in loader_cases(scratch)]
    for name, compare in work:
        if options.only in name:
            try:
                compare()
            except (CommandFailed, subprocess.CalledProcessError, ValueError,
                    FileNotFoundError) as error:
                left_out.append(f"{name}: {str(error).strip().splitlines()[-1]}")
    print("\n".join(["", *render(rows), *(f"left out: {line}" for line in left_out)]))
    missed = [row for row in rows if row.verdict != "met"]
    print(f"{len(rows) - len(missed)} met, {len(missed)} missed, {len(left_out)} left out")
    return 1 if missed or left_out else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
