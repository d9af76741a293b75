"""Tracing: what a call costs more, what an event takes on disk, beside DFTracer."""

import json
import os
import shutil
import statistics
import subprocess
import time
from pathlib import Path

from table import Goal, Row
from usage import CommandFailed

CALLS = 1_000_000
# A file of its own that stays in the page cache: 16 MiB.
FILE_BYTES = 4096 * 4096
STARTS = 100
# The reader in Python makes the same calls; fewer, since each costs more.
PYTHON_CALLS = 300_000
PYTHON_LOOP = """
import os, sys, time
fd = os.open(sys.argv[1], os.O_RDONLY)
calls = int(sys.argv[2])
pread = os.pread
start = time.thread_time_ns()
for call in range(calls):
    pread(fd, 4096, call % 4096 * 4096)
print((time.thread_time_ns() - start) / calls)
os.close(fd)
"""


class TraceSections:
    """Sections of a `Bench`."""

    def __init__(self, bench):
        self.bench = bench
        self.rounds = max(bench.options.rounds, 3)
        self.folder = bench.data / "traces"
        self.file = self.folder / "data"
        self.program = self.folder / "preads"
        self.library = bench.options.target / "release" / "libfeedline_preload.so"
        self.python = bench.options.peers / "dftracer" / "bin" / "python"

    # --- ways of running a program ------------------------------------------------------------

    def prepare(self):
        """The program, its file, and a folder that holds no older trace."""
        self.bench.require(self.library, "cargo build --release --package feedline-preload")
        self.folder.mkdir(parents=True, exist_ok=True)
        if not self.program.exists():
            source = Path(__file__).parent / "preads.c"
            subprocess.run(["cc", "-O2", "-pthread", "-o", self.program, source], check=True)
        if not self.file.exists():
            self.file.write_bytes(os.urandom(FILE_BYTES))

    def fresh(self, name):
        """An empty folder, and the path of a trace in it."""
        folder = self.folder / name
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir()
        return folder / "trace"

    def untraced(self, argv):
        """The program alone."""
        return self.output(argv, {})

    def feedline(self, argv, *options):
        """The program under `feedline trace`, which writes the trace meanwhile."""
        out = self.fresh("feedline")
        launcher = [str(self.bench.feedline.binary), "trace", "--quiet", "-o", str(out), *options]
        return self.output([*launcher, "--", *argv], {})

    def plain(self, argv):
        """The program with the library alone: raw segments stay in the folder."""
        return self.output(argv, {"FEEDLINE_TRACE": str(self.fresh("plain")),
                                  "LD_PRELOAD": str(self.library)})

    def dftracer(self, argv, metadata, compression):
        """The program under DFTracer's preload library."""
        self.bench.require(self.python, f"bench/peers.sh {self.bench.options.peers}")
        site = next(self.python.parent.parent.glob("lib/python*/site-packages/dftracer"))
        return self.output(argv, {
            "LD_PRELOAD": str(next(site.glob("lib*/libdftracer_preload.so"))),
            "DFTRACER_ENABLE": "1", "DFTRACER_INIT": "PRELOAD", "DFTRACER_DATA_DIR": "all",
            "DFTRACER_LOG_FILE": str(self.fresh("dftracer")),
            "DFTRACER_INC_METADATA": metadata, "DFTRACER_TRACE_COMPRESSION": compression,
        })

    def output(self, argv, variables):
        """What the program prints, a number a line."""
        done = subprocess.run([str(word) for word in argv], env={**os.environ, **variables},
                              stdin=subprocess.DEVNULL, capture_output=True, text=True)
        if done.returncode != 0:
            raise CommandFailed(f"{argv[0]} ended with status {done.returncode}:\n{done.stderr}")
        return [float(line) for line in done.stdout.split()]

    def preads(self, threads):
        """The program's command line."""
        return [self.program, self.file, CALLS, threads]

    def cheapest(self, ways, argv):
        """Nanoseconds a call of each way: the best of the rounds, in which all take turns."""
        rounds = {name: [] for name in ways}
        for _ in range(self.rounds):
            for name, way in ways.items():
                rounds[name].append(statistics.mean(way(argv)))
        return {name: min(times) for name, times in rounds.items()}, rounds

    # --- sections -----------------------------------------------------------------------------

    def calls(self):
        """A cached 4 KiB pread: nanoseconds of the thread's own CPU time that tracing adds."""
        self.prepare()
        ways = {
            "none": self.untraced, "feedline": self.feedline, "plain": self.plain,
            "DFTracer": lambda argv: self.dftracer(argv, "1", "1"),
            "DFTracer, no arguments": lambda argv: self.dftracer(argv, "0", "0"),
        }
        best, rounds = self.cheapest(ways, self.preads(1))
        added = {name: ns - best["none"] for name, ns in best.items()}
        for name in ("DFTracer", "DFTracer, no arguments"):
            self.bench.add(Row(
                "added to a 4 KiB pread, 1 thread", "ns", added["feedline"], name, added[name],
                added["feedline"] / added[name], None, rounds=rounds,
            ))
        self.bench.add(Row("added to a 4 KiB pread, 1 thread", "ns", added["feedline"],
                           goal=Goal("<=", 100), note=f"the call itself: {best['none']:.0f} ns"))
        self.bench.add(Row("the same, segments left on disk", "ns", added["plain"]))
        both, rounds = self.cheapest(
            {"none": self.untraced, "feedline": self.feedline}, self.preads(2))
        added_each = both["feedline"] - both["none"]
        self.bench.add(Row("added to a 4 KiB pread, each of 2 threads", "ns", added_each,
                           "1 thread", added["feedline"], added_each / added["feedline"],
                           Goal("<=", 1.0), rounds=rounds))

    def python_calls(self):
        """The same from Python."""
        self.prepare()
        self.bench.require(self.python, f"bench/peers.sh {self.bench.options.peers}")
        argv = [self.python, "-c", PYTHON_LOOP, self.file, PYTHON_CALLS]
        ways = {"none": self.untraced, "feedline": self.feedline,
                "DFTracer": lambda argv: self.dftracer(argv, "1", "1")}
        best, rounds = self.cheapest(ways, argv)
        ours, theirs = (best[name] - best["none"] for name in ("feedline", "DFTracer"))
        self.bench.add(Row("added to os.pread of 4 KiB in Python", "ns", ours, "DFTracer", theirs,
                           ours / theirs, rounds=rounds,
                           note=f"the call itself: {best['none']:.0f} ns"))

    def size(self):
        """Bytes on disk of an event, of the same run."""
        self.prepare()
        self.feedline(self.preads(1))
        self.dftracer(self.preads(1), "1", "1")
        trace = self.folder / "feedline" / "trace"
        report = json.loads((trace / "report.json").read_text())
        files = [path for path in trace.rglob("*") if path.is_file()]
        ours = sum(path.stat().st_size for path in files) / report["events"]
        pfw = list((self.folder / "dftracer").rglob("*.pfw.gz"))
        lines = sum(int(subprocess.run(f"zcat '{path}' | wc -l", shell=True, check=True,
                                       capture_output=True, text=True).stdout) for path in pfw)
        theirs = sum(path.stat().st_size for path in pfw) / lines
        self.bench.add(Row("trace on disk, bytes per event", "B", ours, "DFTracer .pfw.gz", theirs,
                           ours / theirs, Goal("<=", 0.5),
                           note=f"{report['events']} events, DFTracer {lines}"))
        cpu = report["tracer_cpu_seconds"] * 1e9 / report["events"]
        self.bench.add(Row("the tracer's own CPU time an event", "ns", cpu))

    def starts(self):
        """Start and end of a process: the median of many, in turns."""
        self.prepare()
        trace = self.fresh("starts")
        ways = {"none": {}, "traced": {"FEEDLINE_TRACE": str(trace), "LD_PRELOAD": str(self.library)}}
        times = {name: [] for name in ways}
        for _ in range(STARTS):
            for name, variables in ways.items():
                start = time.perf_counter()
                subprocess.run(["/bin/true"], env={**os.environ, **variables}, check=True)
                times[name].append((time.perf_counter() - start) * 1e3)
        added = statistics.median(times["traced"]) - statistics.median(times["none"])
        self.bench.add(Row("added to start and end of a process", "ms", added, goal=Goal("<=", 1),
                           rounds=times))


def sections(bench):
    """Names and functions, in the order in which they run."""
    traces = TraceSections(bench)
    yield "l: traced calls", traces.calls
    yield "l: traced calls of Python", traces.python_calls
    yield "l: size of a trace", traces.size
    yield "l: start of a traced process", traces.starts
