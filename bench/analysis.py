"""Analysis: what it takes to read a trace and say what is in it, beside DFTracer's analyzers."""

import json
import os
import shutil
import subprocess
import sys
from collections import Counter
from dataclasses import replace
from pathlib import Path

from table import Goal, Row
from usage import CommandFailed, measure

MB = 1e6
MIB = 1 << 20
HERE = Path(__file__).parent
# The bound of memory that a user sets, in MiB.
CAPS_MIB = (256, 512)
# dftracer-analyzer may wait for its workers forever.
PATIENCE_S = 1800
# Each takes half a minute and more.
LARGE_ROUNDS = 3


class AnalysisSections:
    """Sections of a `Bench`."""

    def __init__(self, bench, cost_row):
        self.bench = bench
        self.cost_row = cost_row
        self.folder = bench.data / "analysis"
        self.tools = bench.options.peers / "dftracer" / "bin"
        self.analyzer = bench.options.peers / "dfanalyzer" / "bin" / "dfanalyzer"
        self.log = self.folder / "log"

    # --- the programs -------------------------------------------------------------------------

    def peer(self, path):
        """A program of a peer, which must be there."""
        self.bench.require(path, f"bench/peers.sh {self.bench.options.peers}")
        return str(path)

    def run(self, *argv, **more):
        """What a command used. Its output is in the log."""
        self.folder.mkdir(parents=True, exist_ok=True)
        return measure([str(word) for word in argv], self.log, **more)

    def feedline(self, trace, *options):
        """What `feedline analyze` used."""
        return self.run(self.bench.feedline.binary, "analyze", trace, *options)

    def answer(self, trace, *options):
        """What `feedline analyze` used, and its analysis."""
        usage = self.feedline(trace, "--json", *options)
        return usage, json.loads(self.printed())

    def printed(self):
        """The JSON object that the latest command printed, a line."""
        with open(self.log, encoding="utf-8", errors="replace") as log:
            lines = [line for line in log if line.startswith("{")]
        if not lines:
            raise CommandFailed(f"no JSON in {self.log}")
        return lines[-1]

    def tool(self, name, *argv):
        """What one of DFTracer's tools prints."""
        argv = [self.peer(self.tools / f"dftracer_{name}"), *map(str, argv), "--log-level", "off"]
        done = subprocess.run(argv, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            raise CommandFailed(f"{' '.join(argv)}\nended with {done.returncode}:\n{done.stderr}")
        return done.stdout

    def fresh(self, name):
        """An empty folder."""
        folder = self.folder / name
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        return folder

    # --- counts -------------------------------------------------------------------------------

    def counts_of_tools(self, trace):
        """Events by name, as DFTracer's tools count them in one way and in another, and all of them; and
        how many of all are lines with which its library begins and ends: no function has them."""
        index = self.fresh("index")
        events = int(self.tool("event_count", "-d", trace, "--index-dir", index).split()[-1])
        viewed, own = Counter(), Counter()
        rows = self.tool("view", "-d", trace, "--index-dir", index, "--group-by", "name,cat",
                         "--agg", "count")
        for row in map(json.loads, rows.splitlines()):
            (own if row["cat"] == "dftracer" else viewed)[row["name"]] += row["count"]
        stats = Counter()
        for file in json.loads(self.tool("stats", "-d", trace, "--index-dir", index, "--report",
                                         "names", "--json")):
            stats.update({row["name"]: row["count"] for row in file["results"]})
        stats.subtract(own)
        return {"dftracer_event_count": events, "dftracer_view": viewed,
                "dftracer_stats": +stats}, own.total()

    def compare_counts(self, what, analysis, counts, borders=0):
        """A row, and a failure of the bench if any count is another than that of the analysis.

        `counts` has, by who counted, events of each name or their number; `borders` of all are the
        library's own."""
        ours, events = by_name(analysis), analysis["trace"]["events"]
        wrong = [] if ours.total() + borders == events else [
            f"functions have {ours.total()} events, the trace {events}"]
        for who, theirs in counts.items():
            if isinstance(theirs, int):
                if theirs != events:
                    wrong.append(f"{who} has {theirs} events, Feedline {events}")
                continue
            wrong += [f"{who} has {theirs[name]} {name}, Feedline {ours[name]}"
                      for name in sorted({*ours, *theirs}) if theirs[name] != ours[name]]
        for text in wrong:
            self.bench.fail(f"{what}: {text}")
        least = min(n if isinstance(n, int) else n.total() for n in counts.values())
        self.bench.add(Row(
            f"{what}: same counts", "events", events, ", ".join(counts), least,
            0.0 if wrong else 1.0, Goal(">=", 1),
            "; ".join(wrong) or f"{len(ours)} functions, by name: equal",
        ))

    # --- a trace of DFTracer's format ---------------------------------------------------------

    def made(self):
        """The trace with known content, in two dialects; what is in it."""
        events = self.bench.options.dftracer_events
        folder = self.folder / f"made-{events}"
        known = folder / "known.json"
        if not known.exists():
            shutil.rmtree(folder, ignore_errors=True)
            self.run(sys.executable, HERE / "made_trace.py", folder, events)
        return folder, json.loads(known.read_text())

    def ways(self, trace):
        """Who reads the trace and how, in the order in which they take turns."""
        files = sorted(trace.glob("*.pfw.gz"))
        cache = self.folder / "cache-kept"

        def cached():
            return self.feedline(trace, "--quiet", "--cache", cache)

        ways = {
            "zcat": lambda: self.run("sh", "-c", 'zcat "$@" >/dev/null', "sh", *files),
            "no cache": lambda: self.feedline(trace, "--quiet", "--no-cache"),
            "new cache": first(cache, cached),
            "from the cache": cached,
        }
        return {**ways, **self.ways_of_tools(trace)} if self.has_tools() else ways

    def ways_of_tools(self, trace):
        """The same for dftracer-utils. Each has an index of its own, so that `first` is one."""
        names = ("stats", "view", "index")
        of_stats, of_view, before = (self.folder / f"{name}-kept" for name in names)
        stats = [self.tools / "dftracer_stats", "-d", trace, "--report", "names", "--index-dir"]
        view = [self.tools / "dftracer_view", "-d", trace, "--group-by", "name",
                "--agg", "count,sum:dur", "--index-dir"]

        def indexed():
            self.run(self.tools / "dftracer_index", "-d", trace, "--index-dir", before)
            return self.run(*stats, before)

        return {
            "dftracer_stats": first(of_stats, lambda: self.run(*stats, of_stats)),
            "dftracer_stats again": lambda: self.run(*stats, of_stats),
            "dftracer_stats, indexed": first(before, indexed),
            "dftracer_view": first(of_view, lambda: self.run(*view, of_view)),
            "dftracer_view again": lambda: self.run(*view, of_view),
        }

    def has_tools(self):
        """Whether dftracer-utils is there."""
        return (self.tools / "dftracer_stats").exists()

    def beside_tools(self):
        """CPU time and memory of all, on the same trace; the programs take turns."""
        folder, known = self.made()
        trace = folder / "current"
        ways = self.ways(trace)
        rounds = {name: [] for name in ways}
        for _ in range(self.bench.options.rounds):
            for name, way in ways.items():
                rounds[name].append(way())
        self.check(known, trace)
        what = f"{known['events'] / 1e6:.2f} million events of .pfw.gz"
        self.cost_rows(what, rounds)
        peers = [name for name in ("zcat", "dftracer_stats", "dftracer_view") if name in rounds]
        self.memory_rows(what, rounds, ("no cache", "new cache", "from the cache"), peers)
        # What needs no peer is measured without them.
        self.peer(self.tools / "dftracer_stats")

    def cost_rows(self, what, rounds):
        """Feedline in its three ways beside each of the others."""
        cpu = {name: [usage.cpu_s for usage in usages] for name, usages in rounds.items()}
        kept, third = plain(rounds), Goal("<=", 1 / 3)
        for ours, peer, goal in (
            ("no cache", "zcat", Goal("<=", 1.3)),
            ("new cache", "zcat", None),
            ("from the cache", "zcat", None),
            ("no cache", "dftracer_stats", third),
            ("no cache", "dftracer_view", third),
            ("from the cache", "dftracer_stats, indexed", third),
            ("from the cache", "dftracer_stats again", third),
            ("from the cache", "dftracer_view again", third),
            ("no cache", "dftracer_stats, indexed", None),
            ("no cache", "dftracer_view again", None),
        ):
            if peer not in cpu:
                continue
            row = self.cost_row(f"{what}, {ours}", "CPU-s", cpu[ours], peer, cpu[peer], goal, kept)
            if peer == "dftracer_stats again":
                row = replace(row, note=f"{row.note}; it prints what its first run stored")
            self.bench.add(row)
            kept = {}

    def memory_rows(self, what, rounds, ours, peers):
        """The most that any round took; of several processes, all together."""
        peak = {
            name: max(max(usage.peak_rss_bytes, usage.peak_together_bytes) for usage in usages) / MB
            for name, usages in rounds.items()
        }
        note = ", ".join(f"{name} {peak[name]:.0f}" for name in peers)
        for name in ours:
            self.bench.add(Row(f"{what}, {name}", "MB peak", peak[name], goal=Goal("<=", 600),
                               note=f"peers, in MB: {note}"))

    def check(self, known, trace):
        """That everybody saw all events: those that were written."""
        cache = self.folder / "cache-kept"
        _, analysis = self.answer(trace, "--no-cache")
        _, again = self.answer(trace, "--cache", cache)
        counts = {"written": Counter(known["names"]), "from the cache": by_name(again)}
        if self.has_tools():
            counts |= self.counts_of_tools(trace)[0]
        self.compare_counts("made trace", analysis, counts, 2 * known["processes"])

    def beside_analyzer(self):
        """The same events in the dialect that dftracer-analyzer reads.

        One worker: of two, it leaves out the events of one. Always a new index: with one that was
        there it stood still for minutes and was given up."""
        folder, known = self.made()
        trace = folder / "legacy"
        program = self.peer(self.analyzer)
        rounds = {"no cache": [], "dftracer-analyzer": []}
        for _ in range(min(self.bench.options.rounds, self.bench.options.dlio_rounds)):
            rounds["no cache"].append(self.feedline(trace, "--quiet", "--no-cache"))
            rounds["dftracer-analyzer"].append(self.analyzed(program, trace))
        counted = json.loads((self.folder / "analyzer" / "answer.json").read_text())["raw_stats"]
        _, analysis = self.answer(trace, "--no-cache")
        # The library's first and last line of each process are events to it.
        self.compare_counts("made trace, older dialect", analysis, {
            "written": Counter(known["names"]),
            "dftracer-analyzer": counted["total_event_count"]}, 2 * known["processes"])
        ours, theirs = ([usage.cpu_s for usage in usages] for usages in rounds.values())
        what = f"{known['events'] / 1e6:.2f} million events, older dialect"
        self.bench.add(self.cost_row(
            f"{what}, no cache", "CPU-s", ours, "dftracer-analyzer", theirs, Goal("<=", 1 / 15),
            plain(rounds),
        ))
        self.memory_rows(what, rounds, ("no cache",), ("dftracer-analyzer",))

    def analyzed(self, program, trace):
        """What dftracer-analyzer used for its smallest analysis."""
        folder = self.fresh("analyzer")
        for left in [*trace.glob("worker_*"), *trace.glob(".dftindex*")]:
            shutil.rmtree(left)
        return self.run(
            "timeout", PATIENCE_S, program, f"trace_path={trace}", "analyzer/preset=posix",
            "cluster=local", "cluster.n_workers=1", f"cluster.local_directory={folder / 'dask'}",
            "output=json", f"output.file_path={folder / 'answer.json'}",
            f"hydra.run.dir={folder / 'run'}", cwd=folder,
        )

    # --- a trace that DFTracer wrote ----------------------------------------------------------

    def real(self):
        """A loader with forked readers under DFTracer: every function has its count."""
        folder = self.fresh("real")
        python = self.peer(self.tools / "python")
        program, trace = HERE / "annotated_loader.py", folder / "trace"
        self.run(python, program, folder / "data", trace / "loader", env={
            **os.environ, "DFTRACER_ENABLE": "1", "DFTRACER_INIT": "FUNCTION",
            "DFTRACER_INC_METADATA": "1", "DFTRACER_TRACE_COMPRESSION": "1"})
        _, analysis = self.answer(trace, "--no-cache")
        self.compare_counts("a trace by DFTracer", analysis, *self.counts_of_tools(trace))

    # --- Feedline's own format ----------------------------------------------------------------

    def large(self):
        """Events a CPU second of a trace that is far larger than the memory that is allowed."""
        program = self.bench.examples / "large"
        self.bench.require(program, "cargo build --release --package feedline-trace --example large")
        wanted = self.bench.options.events
        trace = self.folder / f"large-{wanted}"
        fact_file = self.folder / f"large-{wanted}.known.json"
        if not fact_file.exists():
            shutil.rmtree(trace, ignore_errors=True)
            self.run(program, trace, wanted)
            fact_file.write_text(self.printed())
        known = json.loads(fact_file.read_text())
        rounds = {cap: [] for cap in CAPS_MIB}
        for number in range(min(self.bench.options.rounds, LARGE_ROUNDS)):
            for cap, usages in rounds.items():
                usage, analysis = self.answer(trace, "--no-cache", "--memory", cap)
                usages.append(usage)
                if number == 0:
                    self.compare_counts(f"own format, {cap} MiB", analysis,
                                        {"written": Counter(known["names"])})
        kept = plain(rounds)
        what = f"{known['events'] / 1e6:.0f} million events of Feedline's format"
        for cap, usages in rounds.items():
            rates = sorted(known["events"] / usage.cpu_s / 1e6 for usage in usages)
            self.bench.add(Row(
                f"{what}, {cap} MiB", "million events/CPU-s", rates[len(rates) // 2],
                goal=Goal(">=", 5), rounds=kept,
                note=f"best {rates[-1]:.3g}; {known['bytes'] / known['events']:.1f} bytes per event",
            ))
            peak = max(usage.peak_rss_bytes for usage in usages) / MIB
            self.bench.add(Row(f"{what}, {cap} MiB", "MiB peak", peak, "cap", cap, peak / cap,
                               Goal("<=", 1)))
            kept = {}


def first(folder, way):
    """The way, with nothing in a folder that an earlier run left."""
    def go():
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        return way()
    return go


def by_name(analysis):
    """Events of each name."""
    names = Counter()
    for function in analysis["functions"]:
        names[function["name"]] += function["count"]
    return names


def plain(rounds):
    """Measurements for the results file."""
    return {str(name): [{"cpu_s": usage.cpu_s, "wall_s": usage.wall_s,
                         "peak_rss_bytes": usage.peak_rss_bytes,
                         "peak_together_bytes": usage.peak_together_bytes} for usage in usages]
            for name, usages in rounds.items()}


def sections(bench, cost_row):
    """Names and functions, in the order in which they run."""
    analysis = AnalysisSections(bench, cost_row)
    yield "m: a trace by DFTracer, analyzed", analysis.real
    yield "m: analysis beside dftracer-utils", analysis.beside_tools
    yield "m: analysis beside dftracer-analyzer", analysis.beside_analyzer
    yield "m: analysis of a large trace", analysis.large
