"""Checkpoints: saves and loads beside the machine's limits, PyTorch and safetensors."""

import json
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

from limits import BLOCK_BYTES, GIB, MIB, Limits
from table import Goal, Row
from usage import CommandFailed, measure

LARGE_BYTES = 64 * MIB
SMALL_BYTES = MIB // 4
CONTAINERS = ("torch", "safetensors", "dcp", "raw")
JOBS = (1, 4)
# Kinds of peers and their cases: the first round tries all, the others the fastest of each kind.
PEERS = {
    "torch.save + fsync": ("torch",), "torch.save without CRC + fsync": ("torch_no_crc",),
    "safetensors + fsync": ("safetensors",), "DCP": ("dcp_1", "dcp_2", "dcp_4"),
}
ASYNC_PEERS = {"async_reused": "dcp.async_save, reused memory", "async_fresh": "dcp.async_save"}
STEP_S = 0.02
# Steps before a save in the background, and almost as many behind it.
STEPS = 100


@dataclass(frozen=True)
class Measured:
    """A run: what its summary says of checkpoints, and its largest memory, if that was seen."""

    checkpoints: dict
    peak_rss_bytes: int | None

    def seconds(self, way, what="duration_seconds"):
        """The time of its only save or load."""
        return self.checkpoints[way][what]["mean"]


class CheckpointSections:
    """Sections of a `Bench`. One rank's state of equal tensors, bytes without a meaning."""

    def __init__(self, bench, row):
        self.bench = bench
        self.row = row
        self.rounds = bench.options.rounds
        self.size = bench.options.checkpoint_mib * MIB
        self.folder = bench.data / "checkpoints"
        self.limits = Limits(bench.data)
        self.python = bench.options.peers / "dlio" / "bin" / "python"
        # A process begins with the peak of the one that started it, so that Python must not.
        self.time = Path("/usr/bin/time")
        # Kept for the section about memory.
        self.seen = {}

    # --- running ------------------------------------------------------------------------------

    def workload(self, tensor_bytes, size, parts, **checkpoint):
        """A model of `parts` ranks whose only state is `size` bytes in tensors of equal lengths."""
        lengths = [tensor_bytes] * (size // tensor_bytes)
        return {
            "model": {
                "name": "state", "type": "transformer", "num_layers": 1,
                "layer_parameters": lengths,
                # Explicit groups take the place of computed ones; of no bytes, there are none.
                "optimization_groups": [0],
                "parallelism": {"tensor": parts},
            },
            "framework": "pytorch",
            "workflow": {"generate_data": False, "train": False, "checkpoint": True},
            "checkpoint": {
                "checkpoint_folder": str(self.folder), "fsync": True, "state": "resident",
                "time_between_checkpoints": 0, "num_checkpoints_write": 1,
                "num_checkpoints_read": 0, **checkpoint,
            },
        }

    def run(self, workload, ranks=1, keep=False):
        """Runs Feedline on a workload file made for the purpose."""
        path = self.bench.data / "checkpoint.yaml"
        # JSON is YAML.
        path.write_text(json.dumps(workload))
        feedline = self.bench.feedline
        argv = [str(feedline.binary), "run", str(path), "-n", str(ranks),
                "--out", str(feedline.out)]
        peak = self.bench.data / "peak"
        if self.time.exists():
            argv = [str(self.time), "--format=%M", f"--output={peak}", *argv]
        shutil.rmtree(feedline.out, ignore_errors=True)
        if workload["checkpoint"]["num_checkpoints_write"]:
            # What a run that failed may have left.
            shutil.rmtree(self.folder, ignore_errors=True)
        measure(argv, feedline.log, feedline.environment(), feedline.scratch)
        if not keep:
            shutil.rmtree(self.folder)
        own = json.loads((feedline.out / "summary.json").read_text())["feedline"]
        kib = int(peak.read_text()) if self.time.exists() else None
        return Measured(own["checkpoints"], kib and kib << 10)

    def save(self, tensor_bytes=LARGE_BYTES, size=None, **checkpoint):
        """A save, and a load unless told otherwise."""
        loads = {"num_checkpoints_read": 1}
        size = size or self.size
        return self.run(self.workload(tensor_bytes, size, 1, **{**loads, **checkpoint}))

    def peers(self, cases):
        """What the cases of `torch_checkpoints.py` measured."""
        script = Path(__file__).with_name("torch_checkpoints.py")
        argv = [self.python, "-W", "ignore", script, self.bench.data / "peer-checkpoints",
                LARGE_BYTES, self.size // LARGE_BYTES, *cases]
        done = subprocess.run([str(word) for word in argv], capture_output=True, text=True,
                              check=False)
        if done.returncode != 0:
            raise CommandFailed(f"{script.name} ended with {done.returncode}: {done.stderr[-300:]}")
        found = [json.loads(line) for line in done.stdout.splitlines()]
        return {result.pop("case"): result for result in found}

    def check_size(self):
        """Raises ValueError if the state cannot be cut as the rows need it."""
        if self.size <= 0 or self.size % (4 * LARGE_BYTES):
            raise ValueError("--checkpoint-mib expects a multiple of 256")

    # --- saving and loading -------------------------------------------------------------------

    def saves_and_loads(self):
        """Everything that takes turns: limits, containers, lengths of tensors, peers."""
        self.check_size()
        rates = Rates(self)
        cases = [case for cases in PEERS.values() for case in cases]
        for _ in range(self.rounds):
            rates.limits.append(self.all_limits())
            rates.rounds.append(self.all_saves())
            if self.python.exists():
                rates.peers.append(self.peers(cases))
                cases = rates.best_peers().values()
        rates.beside_limits()
        rates.small_beside_large()
        self.bench.require(self.python, f"bench/peers.sh {self.bench.options.peers}")
        rates.beside_peers()

    def all_limits(self):
        """Bytes a second by limit and way."""
        best = {"buffered": {"write": self.limits.buffered_write(self.size)}}
        for name, measured in (("fio", self.limits.fio), ("huge", self.limits.huge)):
            for jobs in JOBS:
                best[f"{name}_{jobs}"] = measured(self.size, jobs)
        return best

    def all_saves(self):
        """Bytes a second by kind of save and way."""
        runs = {name: (self.save(container=name), self.size) for name in CONTAINERS}
        # Half as much, so that 2 GiB make 4096 of the small ones.
        half = self.size // 2
        for name in ("torch", "dcp"):
            runs[f"{name}_large"] = (self.save(size=half, container=name), half)
            runs[f"{name}_small"] = (self.save(SMALL_BYTES, half, container=name), half)
        # Without reads: there is no memory that they could go to.
        generated = self.save(state="generated", num_checkpoints_read=0)
        runs["generated"] = (generated, self.size)
        self.seen["generated"], self.seen["resident"] = generated, runs["torch"][0]
        return {
            name: {way: size / run.seconds(way) for way in ("save", "load")
                   if run.checkpoints[way]}
            for name, (run, size) in runs.items()
        }

    # --- saving behind the caller's back ------------------------------------------------------

    def behind(self):
        """The pause of a save in the background, beside a copy of as much memory and DCP's."""
        self.check_size()
        workload = self.workload(LARGE_BYTES, self.size, 1, save_mode="async",
                                 steps_between_checkpoints=STEPS)
        workload["workflow"]["train"] = True
        workload["dataset"] = {"format": "synthetic", "num_files_train": 2 * STEPS - 1,
                               "record_length_bytes": 4096, "skip_listing": True}
        workload["reader"] = {"data_loader": "synthetic", "batch_size": 1}
        workload["train"] = {"epochs": 1, "computation_time": STEP_S}
        runs, copies, peers = [], [], []
        for number in range(self.rounds):
            copies.append(self.limits.memcpy_s(self.size))
            runs.append(self.run(workload))
            if self.python.exists():
                # A fresh copy is slower in every round; once shows by how much.
                cases = list(ASYNC_PEERS) if number == 0 else ["async_reused"]
                peers.append(self.peers(cases))
        self.seen["async"] = runs[-1]
        pauses = [run.seconds("save", "pause_seconds") for run in runs]
        self.bench.add(self.row(
            "asynchronous save, pause", "s", pauses, "warm memcpy, 1 thread", copies,
            Goal("<=", 1.3), {"feedline": pauses, "memcpy": copies},
        ))
        for case, name in ASYNC_PEERS.items():
            # The faster number of threads inside torch.
            theirs = [min(round_[case].values(), key=lambda one: one["pause_s"])
                      for round_ in peers if case in round_]
            if theirs:
                self.beside_async(name, runs, pauses, theirs)
        self.bench.require(self.python, f"bench/peers.sh {self.bench.options.peers}")

    def beside_async(self, name, runs, pauses, theirs):
        """The pause, what follows it, and what that does to the steps."""
        behind = [run.seconds("save", "background_seconds") for run in runs]
        slowdown = [run.checkpoints["step_slowdown_while_saving"] for run in runs]
        for what, unit, ours, key in (
            ("asynchronous save, pause", "s", pauses, "pause_s"),
            ("the same, in the background", "s", behind, "background_s"),
            ("the same, steps meanwhile", "times as long", slowdown, "slowdown"),
        ):
            self.bench.add(self.row(what, unit, ours, name, [one[key] for one in theirs], None,
                                    {"feedline": ours, name: theirs}))

    # --- memory -------------------------------------------------------------------------------

    def memory(self):
        """Largest memory, less that of a run that saves 4 KiB, beside what it was told to use."""
        self.check_size()
        self.bench.require(self.time, "apt-get install -y time")
        tiny = self.run(self.workload(4096, 4096, 1, state="generated", chunk_size=4096, streams=1))
        # Twice a chunk for each of the four streams: a pool whose size was set.
        pooled = self.save(state="generated", num_checkpoints_read=0,
                           pool_size=8 * BLOCK_BYTES)
        runs = {"generated, pool set": (pooled, 0)}
        for name, state in (("generated", 0), ("resident", self.size), ("async", self.size)):
            if name in self.seen:
                runs[name] = (self.seen[name], state)
        for name, (run, state) in runs.items():
            told = run.checkpoints["pool_bytes_per_rank"] + state
            used = run.peak_rss_bytes - tiny.peak_rss_bytes
            self.bench.add(Row(
                f"peak memory, {self.size / GIB:g} GiB {name}", "MiB", used / MIB,
                "pool + state" if state else "pool", told / MIB, used / told, None,
                f"{tiny.peak_rss_bytes / MIB:.0f} MiB of a run that saves 4 KiB are taken off",
                {"peak_rss_bytes": run.peak_rss_bytes, "tiny_bytes": tiny.peak_rss_bytes},
            ))

    # --- other ranks --------------------------------------------------------------------------

    def reshard(self):
        """Bytes that two ranks read of what four have saved, beside those they want."""
        self.check_size()
        self.run(self.workload(LARGE_BYTES, self.size, 4, container="dcp"), 4, keep=True)
        load = self.workload(LARGE_BYTES, self.size, 2, container="dcp", num_checkpoints_write=0,
                             num_checkpoints_read=1)
        found = self.run(load, 2).checkpoints
        moved, wanted = found["load"]["moved_bytes"], found["bytes"]
        rate = self.size / found["load"]["duration_seconds"]["mean"] / GIB
        self.bench.add(Row(
            "DCP of 4 ranks loaded by 2, read", "bytes", moved, "wanted", wanted,
            found["load"]["amplification"], None, f"at {rate:.3g} GiB/s", {"load": found["load"]},
        ))


class Rates:
    """Rows of rates, each against one of the same round."""

    def __init__(self, sections):
        self.bench, self.row, self.size = sections.bench, sections.row, sections.size
        # Of every round: bytes a second by name and way, and what the peers said.
        self.rounds, self.limits, self.peers = [], [], []

    def best_peers(self):
        """The fastest case of every kind of peer, by the first round."""
        return {kind: min(cases, key=lambda case: min(self.peers[0][case]["save_s"]))
                for kind, cases in PEERS.items()}

    def peer(self, kind, way):
        """A rate of every round: of the faster save, of the faster number of threads in a load."""
        case = self.best_peers()[kind]
        if way == "save":
            return [self.size / min(round_[case]["save_s"]) for round_ in self.peers]
        return [self.size / min(round_[case]["load_s"].values()) for round_ in self.peers]

    def ours(self, name, way):
        """A rate of every round."""
        return [round_[name][way] for round_ in self.rounds]

    def limit(self, name, way):
        """The rate of every round, with as many threads as were fastest in it."""
        return [max(round_[f"{name}_{jobs}"][way] for jobs in JOBS) for round_ in self.limits]

    def add(self, what, ours, name, theirs, goal, rounds=None):
        """A row in GiB a second."""
        rates = [[rate / GIB for rate in each] for each in (ours, theirs)]
        self.bench.add(self.row(what, "GiB/s", rates[0], name, rates[1], goal, rounds or {},
                                best=max))

    def beside_limits(self):
        """The device, as fio sees it and as buffers in huge pages see it."""
        every = {"feedline": self.rounds, "limits": self.limits}
        for way, direction in (("save", "write"), ("load", "read")):
            what = {"save": "durable save", "load": "cold load"}[way]
            names = [name for name in (*CONTAINERS, "generated") if way in self.rounds[0][name]]
            for name in names:
                ours = self.ours(name, way)
                jobs = "best of 1 and 4"
                for limit, peer in (("fio", f"fio, O_DIRECT, {jobs}"),
                                    ("huge", f"O_DIRECT, huge pages, {jobs}")):
                    self.add(f"{what}, {name}", ours, peer, self.limit(limit, direction),
                             Goal(">=", 0.85), every)
                    every = None
        buffered = [round_["buffered"]["write"] for round_ in self.limits]
        self.add("durable save, torch", self.ours("torch", "save"), "buffered write + fsync",
                 buffered, None)

    def small_beside_large(self):
        """As many bytes in many tensors."""
        for name in ("torch", "dcp"):
            for way in ("save", "load"):
                self.add(f"{way}, {name}, tensors of 256 KiB", self.ours(f"{name}_small", way),
                         "of 64 MiB", self.ours(f"{name}_large", way), Goal(">=", 0.9))

    def beside_peers(self):
        """Other people's programs, each beside the container that is its own."""
        every = {"peers": self.peers}
        for kind, name, save_goal, load_goal in (
            ("torch.save + fsync", "torch", 2.5, 3),
            ("torch.save without CRC + fsync", "torch", None, None),
            ("safetensors + fsync", "safetensors", None, 3),
            ("DCP", "dcp", 2.5, 3),
        ):
            for way, what, goal in (("save", "durable save", save_goal),
                                    ("load", "cold load", load_goal)):
                if way == "load" and kind.startswith("torch.save without"):
                    continue
                self.add(f"{what}, {name}", self.ours(name, way), self.peer_name(kind, way),
                         self.peer(kind, way), Goal(">=", goal) if goal else None, every)
                every = None

    @staticmethod
    def peer_name(kind, way):
        """What the peer did."""
        loads = {"torch.save + fsync": "torch.load", "safetensors + fsync": "load_file",
                 "DCP": "DCP, into existing tensors"}
        saves = {"safetensors + fsync": "save_file + fsync", "DCP": "DCP, best of 1, 2, 4 threads"}
        return loads[kind] if way == "load" else saves.get(kind, kind)


def sections(bench, row):
    """Names and functions, in the order in which they run."""
    checkpoints = CheckpointSections(bench, row)
    yield "k: checkpoints saved and loaded", checkpoints.saves_and_loads
    yield "k: checkpoints saved in the background", checkpoints.behind
    yield "k: memory of checkpoints", checkpoints.memory
    yield "k: checkpoints loaded by other ranks", checkpoints.reshard
