#!/usr/bin/env python3
"""Measures Feedline beside DLIO and beside the machine's own limits; `make bench` runs it.

Prints one table of ratios from one run and writes everything it measured as JSON. Programs take
turns within a round, so that a change of the machine's mood hits both; a ratio is the median of
the rounds' ratios. Only the standard library is needed.
"""

import argparse
import json
import os
import platform
import shutil
import statistics
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import analysis
import checkpoints
import fidelity
import jobs
import objects
import traces
from formats import sections
from programs import Dlio, Feedline, Job
from syscalls import traced_reads
from table import Goal, Row, render
from usage import CommandFailed

GIB = 1 << 30
CACHE = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "feedline"
# The sample size of unet3d and that of an ImageNet picture.
LARGE_BYTES = 146600628
SMALL_BYTES = 114660
# All data sets together stay below this.
NEEDED_BYTES = 6 * GIB
# Those that need no data set of samples.
WITHOUT_SAMPLES = ("l", "m")
SECTIONS = """\
sections, by the letters with which their names begin:
  a  the loader beside bare preads       b  beside DLIO
  c  start to first read                 d  planning at scale
  e-h  formats and limits                i  ranks beside a bare MPI barrier
  j  object stores                       k  checkpoints
  l  tracing beside DFTracer             m  analysis beside DFTracer's analyzers
  n  utilization beside DLIO's           o  the rate of PyTorch's DataLoader

Section m: CPU time and peak memory of `feedline analyze` on one trace of 3.9 million events,
beside zcat, dftracer_stats and dftracer_view (dftracer-utils 0.0.14) and dftracer-analyzer 0.0.9,
which gets the same events in its older dialect; that all count the same events, also in a trace
that DFTracer itself writes here; and events per CPU second and memory of a trace of 100 million
events in Feedline's own format (--dftracer-events and --events make them smaller).
A count that differs fails the bench: it ends with status 1.
"""


class Bench:
    """The programs, the folders and the rows so far."""

    def __init__(self, options):
        self.options = options
        self.data = options.data
        self.feedline = Feedline(self.data, options.target / "release" / "feedline")
        self.dlio = Dlio(self.data, options.peers)
        self.examples = options.target / "release" / "examples"
        self.rows = []
        self.left_out = []
        self.failures = []

    def add(self, row):
        """Keeps a row and shows it at once: the whole table is minutes away."""
        self.rows.append(row)
        print("  " + " | ".join(row.cells()), flush=True)

    def fail(self, text):
        """Something is wrong, not slow."""
        self.failures.append(text)
        print(f"  WRONG: {text}", flush=True)

    def attempt(self, name, section):
        """Runs a section; one that cannot be measured is named with the reason, not dropped."""
        if not name.startswith(self.options.only):
            return
        print(f"== {name}", flush=True)
        try:
            section()
        except (CommandFailed, ValueError, FileNotFoundError) as error:
            self.left_out.append(f"{name}: {error}")

    def require(self, path, bring):
        """Raises FileNotFoundError with the command that brings `path`, if it is missing."""
        if not path.exists():
            raise FileNotFoundError(f"no {path.name}; install it with: {bring}")

    def large(self, **changes):
        """14 files of 146.6 MB, 1.9 GiB in all, as Feedline writes them."""
        job = Job(self.data / "large", 14, LARGE_BYTES, batch=7, resize_bytes=2097152)
        return replace(job, **changes)

    def small(self, **changes):
        """2000 files of 114 kB."""
        job = Job(self.data / "small", 2000, SMALL_BYTES, batch=100)
        return replace(job, **changes)

    # --- a: the loader beside bare preads -----------------------------------------------------

    def loader_beside_pread(self):
        """CPU time per GiB and throughput from the page cache, against reading and nothing else."""
        passes = 5
        bare = self.examples / "bare_pread"
        self.require(bare, "cargo build --release --package feedline-bench --examples")
        job = self.large(batch=1, epochs=passes)
        empty = replace(job, data=self.data / "empty", record_bytes=64, resize_bytes=0)
        self.feedline.generate(empty)
        files = sorted(map(str, (job.data / "train").iterdir()))
        size = sum(os.path.getsize(file) for file in files) * passes
        variants = (
            ("bare_128k", [], 128 << 10), ("bare_256k", [], 256 << 10), ("bare_1m", [], 1 << 20),
            ("bare_crc", ["--crc"], 1 << 20), ("bare_whole", ["--whole"], 256 << 10),
        )
        rounds = {"feedline": [], "empty": [], **{name: [] for name, *_ in variants}}
        for _ in range(self.options.rounds):
            for name, flags, block in variants:
                argv = [str(bare), *flags, str(job.workers), str(block), str(passes), *files]
                rounds[name].append(json.loads(subprocess.check_output(argv)))
            for name, which in (("empty", empty), ("feedline", job)):
                usage = self.feedline.train(which)
                rounds[name].append({"wall_s": usage.wall_s, "cpu_s": usage.cpu_s})

        def net(key):
            return [
                full[key] - start[key]
                for full, start in zip(rounds["feedline"], rounds["empty"])
            ]

        sizes = [rounds[name] for name in ("bare_128k", "bare_256k", "bare_1m")]
        bare_cpu, bare_wall = (
            [min(one[key] for one in same) for same in zip(*sizes)] for key in ("cpu_s", "wall_s")
        )
        crc_cpu, crc_wall = (
            [entry[key] for entry in rounds["bare_crc"]] for key in ("cpu_s", "wall_s")
        )
        whole_cpu = [entry["cpu_s"] for entry in rounds["bare_whole"]]
        gib = size / GIB
        self.add(cost_row(
            "native loader from page cache", "CPU-s/GiB", [cpu / gib for cpu in net("cpu_s")],
            "bare pread of 1 MiB + CRC-32", [cpu / gib for cpu in crc_cpu], Goal("<=", 1.1), rounds,
        ))
        self.add(cost_row(
            "the same", "CPU-s/GiB", [cpu / gib for cpu in net("cpu_s")],
            "bare pread, best of three sizes", [cpu / gib for cpu in bare_cpu], None, {},
        ))
        self.add(cost_row(
            "the same", "CPU-s/GiB", [cpu / gib for cpu in net("cpu_s")],
            "bare pread, whole-file buffers", [cpu / gib for cpu in whole_cpu], None, {},
        ))
        self.add(cost_row(
            "native loader from page cache", "GiB/s", [gib / wall for wall in net("wall_s")],
            "bare pread of 1 MiB + CRC-32", [gib / wall for wall in crc_wall],
            Goal(">=", 0.95), {}, best=max,
        ))
        self.add(cost_row(
            "the same", "GiB/s", [gib / wall for wall in net("wall_s")],
            "bare pread, best of three sizes", [gib / wall for wall in bare_wall], None, {},
            best=max,
        ))

    def bytes_read(self):
        """That the loader reads every byte, as strace saw it: a rate needs bytes that moved."""
        job = self.large(batch=1)
        size = sum(file.stat().st_size for file in (job.data / "train").iterdir())
        reads = self.traced(self.feedline, job)
        self.add(Row(
            "bytes read in an epoch", "bytes", reads.bytes, "in the files", size,
            reads.bytes / size, Goal(">=", 0.999), f"{reads.calls} reads, counted by strace",
        ))

    # --- b: beside DLIO -----------------------------------------------------------------------

    def beside_dlio(self, name, job, more_epochs):
        """CPU time per sample, children included, start-up taken off by a run with one epoch."""
        self.require(self.dlio.binary, f"bench/peers.sh {self.options.peers}")
        long = replace(job, epochs=1 + more_epochs)
        extra = long.samples - job.samples
        cost = {program.name: [] for program in (self.feedline, self.dlio)}
        rounds = {program.name: [] for program in (self.feedline, self.dlio)}
        for _ in range(self.options.dlio_rounds):
            for program in (self.feedline, self.dlio):
                once, often = program.train(job), program.train(long)
                rounds[program.name].append({
                    "cpu_once_s": once.cpu_s, "cpu_often_s": often.cpu_s,
                    "wall_once_s": once.wall_s, "wall_often_s": often.wall_s,
                    "peak_rss_bytes": often.peak_rss_bytes, "extra_samples": extra,
                })
                cost[program.name].append((often.cpu_s - once.cpu_s) / extra * 1e3)
        self.add(cost_row(
            f"{name} samples", "CPU-ms/sample", cost["Feedline"], "DLIO", cost["DLIO"],
            Goal("<=", 0.2), rounds,
        ))

    def both_directions(self):
        """Each program reads what the other wrote; both count the samples."""
        self.require(self.dlio.binary, f"bench/peers.sh {self.options.peers}")
        for name, job in (
            ("large", self.large(data=self.data / "dlio-large", files=2, batch=1)),
            ("small", self.small(data=self.data / "dlio-small")),
        ):
            self.dlio.generate(job)
            self.feedline.train(job)
            read = self.feedline.samples_read(job)
            self.add(Row(
                f"Feedline reads DLIO's {name} files", "samples", read, "written", job.samples,
                read / job.samples, Goal(">=", 1),
            ))
            shutil.rmtree(job.data)
        for name, job in (("large", self.large()), ("small", self.small())):
            self.dlio.train(job)
            read = self.dlio.samples_read(job)
            self.add(Row(
                f"DLIO reads Feedline's {name} files", "samples", read, "written", job.samples,
                read / job.samples, Goal(">=", 1),
            ))

    # --- c: start to first read ---------------------------------------------------------------

    def first_read(self):
        """From `execve` to the first read of a data file, as strace sees it."""
        job = Job(self.data / "many", 168, SMALL_BYTES, batch=7)
        self.feedline.generate(job)
        ours = [self.traced(self.feedline, job).first_ms for _ in range(self.options.rounds)]
        theirs = None
        if self.dlio.binary.exists():
            theirs = self.traced(self.dlio, job).first_ms
        value = statistics.median(ours)
        self.add(Row(
            "start to first read, 168 files", "ms", value, "DLIO" if theirs else "", theirs,
            None, Goal("<=", 50), "under strace, which only adds to it",
            {"feedline_ms": ours, "dlio_ms": theirs},
        ))

    def traced(self, program, job):
        """The reads of one run of the job."""
        return traced_reads(program, job, self.data / "strace")

    # --- d: planning at scale -----------------------------------------------------------------

    def planning(self):
        """Time and memory of the plan and the shuffled order of very large jobs."""
        example = self.examples / "plan_scale"
        self.require(example, "cargo build --release --package feedline-bench --examples")
        for name, argv in (
            ("plan 277 million samples", ["megatron_deepspeed_LLNL"]),
            ("plan 4.3 million files", ["files", "4300000"]),
        ):
            runs = [
                json.loads(subprocess.check_output([str(example), *argv]))
                for _ in range(self.options.rounds)
            ]
            seconds = statistics.median(entry["seconds"] for entry in runs)
            peak = max(entry["peak_rss_bytes"] for entry in runs)
            # The example walks what one rank reads, which is not the whole order.
            run = runs[0]
            note = (f"and walk {run['places_walked']:,} of {run['samples']:,} places of the "
                    f"shuffled order, the share of one of {run['ranks']} ranks")
            self.add(Row(name, "s", seconds, goal=Goal("<=", 2), note=note,
                         rounds={"runs": runs}))
            self.add(Row(name, "MiB peak", peak / (1 << 20), goal=Goal("<=", 64)))


def cost_row(what, unit, ours, peer_name, theirs, goal, rounds, best=min):
    """A row of medians; the ratio is the median of the rounds' ratios."""
    ratio = statistics.median(a / b for a, b in zip(ours, theirs))
    top, peer_top = best(ours), best(theirs)
    note = f"best {top:.4g} against {peer_top:.4g}, ratio {top / peer_top:.3g}"
    return Row(
        what, unit, statistics.median(ours), peer_name, statistics.median(theirs), ratio, goal,
        note, rounds,
    )


def machine():
    """What the numbers depend on."""
    cpu = next(
        (line.split(":", 1)[1].strip() for line in open("/proc/cpuinfo", encoding="utf-8")
         if line.startswith("model name")), "unknown",
    )
    return {
        "cpu": cpu, "cpus": len(os.sched_getaffinity(0)), "kernel": platform.release(),
        "memory_bytes": os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"),
        "load_at_start": os.getloadavg()[0],
    }


def options_of(argv):
    """Command line, with the environment for defaults."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0], epilog=SECTIONS,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    env = os.environ.get
    parser.add_argument("--data", type=Path, default=env("FEEDLINE_BENCH_DIR") or CACHE / "bench")
    parser.add_argument("--peers", type=Path, default=env("FEEDLINE_PEERS") or CACHE / "peers")
    parser.add_argument(
        "--results", type=Path, default=env("FEEDLINE_BENCH_RESULTS") or CACHE / "bench-results"
    )
    parser.add_argument(
        "--target", type=Path, default=env("CARGO_TARGET_DIR") or CACHE / "target"
    )
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--dlio-rounds", type=int, default=3)
    parser.add_argument("--checkpoint-mib", type=int, default=2048,
                        help="size of the checkpoints, a multiple of 256")
    parser.add_argument("--events", type=int, default=100_000_000,
                        help="events of the large trace in Feedline's format")
    parser.add_argument("--dftracer-events", type=int, default=3_900_000,
                        help="events of the trace in DFTracer's format")
    parser.add_argument("--only", default="", help="run sections whose name begins with this")
    options = parser.parse_args(argv)
    for name in ("data", "peers", "results", "target"):
        setattr(options, name, Path(getattr(options, name)).resolve())
    return options


def main(argv):
    """Runs every section, prints the table, writes the results file."""
    options = options_of(argv)
    options.data.mkdir(parents=True, exist_ok=True)
    if shutil.disk_usage(options.data).free < NEEDED_BYTES:
        print(f"error: {options.data} has less than 6 GiB free; choose another folder with: "
              "FEEDLINE_BENCH_DIR=DIR make bench", file=sys.stderr)
        return 2
    bench = Bench(options)
    if not bench.feedline.binary.exists():
        print(f"error: no {bench.feedline.binary}; install it with: make bench", file=sys.stderr)
        return 2
    facts = machine()
    if facts["load_at_start"] > facts["cpus"] / 2:
        print("warning: other work is running; ratios of CPU time suffer less than rates")
    try:
        if not options.only.startswith(WITHOUT_SAMPLES):
            for job in (bench.large(), bench.small()):
                bench.feedline.generate(job)
        bench.attempt("a: loader beside bare pread", bench.loader_beside_pread)
        bench.attempt("a: bytes that moved", bench.bytes_read)
        bench.attempt("b: 146.6 MB samples beside DLIO",
                      lambda: bench.beside_dlio("146.6 MB", bench.large(), 5))
        bench.attempt("b: 114 kB samples beside DLIO",
                      lambda: bench.beside_dlio("114 kB", bench.small(), 5))
        bench.attempt("b: each reads the other's files", bench.both_directions)
        bench.attempt("c: start to first read", bench.first_read)
        bench.attempt("d: planning at scale", bench.planning)
        for name, section in sections(bench, cost_row):
            bench.attempt(name, section)
        for name, section in [*jobs.sections(bench), *objects.sections(bench),
                              *checkpoints.sections(bench, cost_row), *traces.sections(bench),
                              *analysis.sections(bench, cost_row), *fidelity.sections(bench)]:
            bench.attempt(name, section)
    finally:
        if os.environ.get("KEEP") != "1":
            shutil.rmtree(options.data, ignore_errors=True)
    print()
    print("\n".join(render(bench.rows)))
    for line in bench.left_out:
        print(f"left out: {line}")
    for line in bench.failures:
        print(f"wrong: {line}")
    options.results.mkdir(parents=True, exist_ok=True)
    path = options.results / time.strftime("%Y-%m-%d-%H-%M-%S.json")
    path.write_text(json.dumps({
        "machine": facts, "rows": [row.as_json() for row in bench.rows],
        "left_out": bench.left_out, "wrong": bench.failures,
    }, indent=2) + "\n")
    print(f"results: {path}")
    return 1 if bench.failures else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
