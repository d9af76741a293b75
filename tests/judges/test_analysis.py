"""Analyses: pandas counts by brute force what `feedline analyze` must say of a run's own trace.

The run says itself, in summary.json, what its accelerators waited for. So there are three answers: the
benchmark's, measured while it ran; the analysis, of the trace; and the one counted here.
"""

import json
import re
from dataclasses import dataclass
from types import SimpleNamespace

import pandas
import pytest

from conftest import Feedline, strict_json

CAUSES = [
    "open", "read", "write", "object-store", "decode", "transform", "python", "collate", "hand-off",
    "workers", "prefetch", "start-up", "peer", "unknown",
]
# What the storage is held to, whom the benchmark blames, and what the analysis finds first. NumPy reads nine
# times for each open, so that a latency per call is a matter of reads.
RUNS = {
    "latency": ("12ms", "storage", "slow-read"),
    "rate": ("6MB/s", "storage", "slow-read"),
    "fed": (None, None, "not-input-bound"),
}


@dataclass(frozen=True)
class Judged:
    """A run, its own report, its trace as tables, and the analysis of that."""

    name: str
    summary: dict
    events: pandas.DataFrame
    analysis: dict


def intervals(rows):
    """The times of events."""
    return list(zip(rows["start"], rows["end"]))


def union(times):
    """Disjoint intervals that cover the same time."""
    joined = []
    for start, end in sorted(time for time in times if time[0] < time[1]):
        if joined and start <= joined[-1][1]:
            joined[-1] = (joined[-1][0], max(end, joined[-1][1]))
        else:
            joined.append((start, end))
    return joined


def common(one, other):
    """How long both sets last at once: each pair is looked at."""
    return sum(
        max(0, min(a[1], b[1]) - max(a[0], b[0])) for a in union(one) for b in union(other)
    )


def measure(times):
    """How long a set lasts."""
    return sum(end - start for start, end in union(times))


def read_events(folder):
    """All events with their ends, and the ranks and names of their threads."""
    events = pandas.read_parquet(folder / "events")
    events["start"] = events["start"].astype("int64")
    events["end"] = events["start"] + events["duration"]
    names = events[events["category"] == "thread"].groupby("thread")["name"].last()
    events["lane"] = events["thread"].map(names)
    ranks = events["lane"].str.extract(r"^rank (\d+)")[0]
    events["rank"] = pandas.to_numeric(ranks).astype("Int64")
    files = pandas.read_parquet(folder / "files").set_index("id")["path"]
    events["path"] = events["file"].map(files)
    return events[events["category"] != "thread"]


@pytest.fixture(name="judged", scope="module", params=RUNS)
def fixture_judged(request, binary, tmp_path_factory):
    """A run under a limit of storage, traced and analyzed."""
    name = request.param
    limit = RUNS[name][0]
    folder = tmp_path_factory.mktemp(name)
    feedline = Feedline(binary, folder)
    workload = feedline.workload(
        model={"name": "judged"},
        framework="pytorch",
        workflow={"generate_data": True, "train": True, "evaluation": True},
        dataset={
            "data_folder": str(folder / "data"), "format": "npz", "num_files_train": 96,
            "num_files_eval": 16, "record_length_bytes": 65536,
        },
        reader={"data_loader": "pytorch", "batch_size": 2, "read_threads": 2, "prefetch_size": 4},
        train={"epochs": 2, "computation_time": 0.004 if limit else 0.03},
        evaluation={"eval_time": 0.002},
    )
    feedline("run", workload, "--generate-only").ok()
    limited = ["--store-limit", limit] if limit else []
    trace, out = folder / "trace", folder / "out"
    feedline(
        "run", workload, "-s", "workflow.generate_data=false", "--accelerators", 2,
        "--out", out, "--trace", trace, *limited,
    ).ok()
    analysis = json.loads(feedline("analyze", trace, "--json").ok().out, parse_constant=refuse)
    return Judged(name, strict_json(out / "summary.json"), read_events(trace), analysis)


def refuse(token):
    """NaN and Infinity are not JSON."""
    raise ValueError(f"{token} is not JSON")


def phases(events, rank):
    """Trainings and evaluations of a rank: what, epoch, time."""
    rows = events[(events["category"] == "pipeline") & (events["rank"] == rank)]
    rows = rows[rows["name"].isin(["train", "evaluate"])]
    return [(row["name"], int(row["epoch"]), row["start"], row["end"]) for _, row in rows.iterrows()]


def expected_steps(events):
    """Every step by rank, phase, epoch and step: its fetch, and what of it was which work."""
    steps = {}
    for rank in sorted(events["rank"].dropna().unique()):
        own = events[events["rank"] == rank]
        for phase, epoch, begin, end in phases(events, rank):
            inside = own[(own["start"] >= begin) & (own["end"] <= end) & (own["epoch"] == epoch)]
            batches = inside[(inside["category"] == "dataloader") & (inside["name"] == "batch")]
            fetches = inside[inside["name"] == "fetch.iter"]
            computed = set(inside[inside["name"] == "compute"]["step"])
            for _, fetch in fetches[fetches["step"].isin(computed)].iterrows():
                [batch] = batches[batches["step"] == fetch["step"]].itertuples()
                key = (int(rank), phase, epoch, int(fetch["step"]))
                assert key not in steps
                steps[key] = split(fetch, batch, own, begin)
    return steps


def split(fetch, batch, own, begin):
    """What a consumer waited for, in nanoseconds by cause."""
    window = [(fetch["start"], fetch["end"])]
    work = own[
        (own["thread"] == batch.thread) & (own["start"] >= batch.start) & (own["end"] <= batch.end)
    ]
    calls = work[work["category"] == "POSIX"]
    reads = intervals(calls[calls["name"] == "read"])
    opens = intervals(calls[calls["name"] != "read"])
    parts = dict.fromkeys(CAUSES, 0)
    parts["read"] = common(window, reads)
    parts["open"] = common(window, opens)
    busy = common(window, [(batch.start, batch.end)])
    # Nothing is preprocessed here: what is no call is decoding.
    parts["decode"] = busy - parts["read"] - parts["open"]
    parts["hand-off"] = common(window, [(batch.end, fetch["end"])])
    before = common(window, [(begin, batch.start)])
    return SimpleNamespace(
        start=fetch["start"], fetch=fetch["duration"], parts=parts, before=before
    )


def analyzed_steps(analysis):
    """The same of the analysis."""
    steps = {
        (step["rank"], step["phase"], step["epoch"], step["step"]): step
        for step in analysis["steps"]
    }
    assert len(steps) == len(analysis["steps"])
    return steps


def test_facts(judged):
    """What was read, and by whom."""
    trace, events = judged.analysis["trace"], judged.events
    assert (judged.analysis["format"], judged.analysis["version"]) == ("feedline-analysis", 1)
    assert (trace["source"], trace["events"]) == ("feedline", len(events))
    assert trace["start_ns"] == events["start"].min()
    assert trace["run_ns"] == events["end"].max() - events["start"].min()
    allocation = judged.analysis["allocation"]
    assert (allocation["ranks"], len(allocation["hosts"])) == (2, 1)
    assert judged.analysis["health"] == {"coverage": "full", "problems": []}
    # Two readers of each of two ranks, started anew in each epoch and evaluation.
    threads = {role["role"]: role["count"] for role in allocation["threads"]}
    assert (threads["rank"], threads["worker"]) == (2, 16)


def test_functions(judged):
    """Counts, times and bytes of every name."""
    groups = judged.events.groupby(["category", "name"])
    found = {(row["category"], row["name"]): row for row in judged.analysis["functions"]}
    assert set(found) == set(groups.groups)
    for key, rows in groups:
        row = found[key]
        assert row["count"] == len(rows), key
        assert row["total_ns"] == rows["duration"].sum(), key
        latency, times = row["latency"], rows["duration"].sort_values().tolist()
        assert (latency["min"], latency["max"]) == (times[0], times[-1]), key
        for percent in (5, 25, 50, 75, 95, 99):
            exact = times[-(-len(times) * percent // 100) - 1]
            assert abs(latency[f"p{percent}"] - exact) <= exact / 128 + 1, (key, percent)
        if key[1] == "read":
            assert row["bytes"] == rows["result"].sum()
            assert row["bytes"] == judged.analysis["data"]["bytes_read"]


def test_files(judged):
    """Bytes of each file."""
    calls = judged.events[judged.events["category"] == "POSIX"]
    reads = calls[calls["name"] == "read"]
    data = judged.analysis["data"]
    assert data["files"] == calls["path"].nunique()
    assert data["files_read"] == reads["path"].nunique()
    assert (data["calls"], data["errors"]) == (len(calls), 0)
    by_path = reads.groupby("path")["result"].sum()
    times = calls.groupby("path")["duration"].sum()
    assert judged.analysis["files"]
    for row in judged.analysis["files"]:
        assert row["bytes_read"] == by_path[row["path"]], row["path"]
        assert row["ns"] == times[row["path"]], row["path"]
    assert judged.analysis["files"][0]["ns"] == times.max()


def test_unions_and_overlaps(judged):
    """Input, output and computation of each rank are unions of intervals."""
    totals, both, alone = [], [], []
    for rank in judged.analysis["ranks"]:
        own = judged.events[judged.events["rank"] == rank["rank"]]
        calls = intervals(own[own["category"] == "POSIX"])
        compute = intervals(own[own["name"] == "compute"])
        assert rank["io_ns"] == measure(calls)
        totals.append(measure(calls))
        both.append(common(calls, compute))
        alone.append(measure(compute) - common(calls, compute))
    [io] = [row for row in judged.analysis["overlaps"] if row["what"] == "io"]
    assert io["total_ns"] == sum(totals) // 2
    assert io["overlapped_ns"] == sum(both) // 2
    assert abs(io["exposed_ns"] - (sum(totals) - sum(both)) // 2) <= 1
    # The parts of a mean may be off by what the mean has lost.
    assert abs(io["compute_alone_ns"] - sum(alone) // 2) <= 1
    timeline = judged.analysis["timeline"]
    calls = judged.events[judged.events["category"] == "POSIX"]
    assert sum(timeline["io_ns"]) == calls["duration"].sum()
    assert sum(timeline["calls"]) == len(calls)
    assert sum(timeline["bytes_read"]) == judged.analysis["data"]["bytes_read"]


def test_steps(judged):
    """Every step of every rank stalled so long, for those reasons."""
    truth, found = expected_steps(judged.events), analyzed_steps(judged.analysis)
    # Two ranks and epochs, 24 steps each, and evaluations of 8 samples a rank, one at a time.
    assert len(truth) == 2 * 2 * (24 + 8)
    assert set(found) == set(truth)
    start = judged.analysis["trace"]["start_ns"]
    for key, step in found.items():
        parts = dict(zip(CAUSES, step["parts_ns"], strict=True))
        exact = truth[key]
        assert sum(parts.values()) == step["stall_ns"], key
        assert start + step["start_ns"] == exact.start, key
        assert step["fetch_ns"] == exact.fetch, key
        assert step["stall_ns"] - parts["peer"] == exact.fetch, key
        for cause in ("open", "read", "decode", "hand-off"):
            assert parts[cause] == exact.parts[cause], (key, cause)
        before = parts["workers"] + parts["prefetch"] + parts["start-up"]
        assert (before, parts["unknown"], parts["python"]) == (exact.before, 0, 0), key


def test_sums(judged):
    """Steps, ranks, epochs and causes add up to the verdict."""
    verdict = judged.analysis["verdict"]
    steps = [step for step in judged.analysis["steps"] if step["phase"] == "train"]
    assert verdict["steps"] == len(steps) == 96
    for name in ("stall_ns", "step_ns"):
        of_step = "duration_ns" if name == "step_ns" else name
        assert verdict[name] == sum(step[of_step] for step in steps)
        assert verdict[name] == sum(rank[name] for rank in judged.analysis["ranks"])
        epochs = [epoch for epoch in judged.analysis["epochs"] if epoch["phase"] == "train"]
        assert verdict[name] == sum(epoch[name] for epoch in epochs)
    assert verdict["stall_ns"] == sum(part["ns"] for part in judged.analysis["stall"])
    assert verdict["stall_share"] == pytest.approx(verdict["stall_ns"] / verdict["step_ns"])
    assert verdict["confidence"] == "high"


def test_agrees_with_the_benchmark(judged):
    """The run's own report says the same within 5 % of the steps' time."""
    own, verdict = judged.summary["feedline"], judged.analysis["verdict"]
    seconds = own["time_split_seconds"]
    parts = {part["cause"]: part["ns"] / 1e9 for part in judged.analysis["stall"]}
    total = sum(seconds.values())
    assert verdict["step_ns"] / 1e9 == pytest.approx(total, rel=0.05)

    def shared(*causes):
        return sum(parts.get(cause, 0) for cause in causes) / total

    assert shared("open", "read") == pytest.approx(seconds["storage"] / total, abs=0.05)
    assert shared("decode") == pytest.approx(seconds["decode"] / total, abs=0.05)
    waiting = shared("hand-off", "workers", "prefetch", "start-up")
    assert waiting == pytest.approx(seconds["workers"] / total, abs=0.05)
    assert shared("peer") <= seconds["peers"] / total + 0.05
    compute = sum(rank["compute_ns"] for rank in judged.analysis["ranks"]) / 1e9
    assert compute == pytest.approx(seconds["compute"], rel=0.05)
    assert verdict["au_percent"] == pytest.approx(
        judged.summary["metric"]["train_au_mean_percentage"], rel=0.05
    )


def test_verdict_and_first_finding(judged):
    """Who is blamed."""
    _, blamed, code = RUNS[judged.name]
    verdict, findings = judged.analysis["verdict"], judged.analysis["findings"]
    own = judged.summary["feedline"]["verdict"]
    assert own["result"] == ("starved" if blamed else "fed")
    assert own.get("starved_by") == blamed
    assert verdict["answer"] == ("input-bound" if blamed else "not-input-bound")
    assert findings[0]["code"] == code, [finding["code"] for finding in findings]
    if blamed:
        cause = code.removeprefix("slow-")
        [part] = [part for part in judged.analysis["stall"] if part["cause"] == cause]
        assert findings[0]["explains_ns"] == pytest.approx(part["ns"], rel=0.05)
    for finding in findings:
        assert re.search(r"(?i)select\b.*\bfrom\b", finding["sql"], re.DOTALL), finding["code"]
        assert finding["title"] and finding["evidence"] and finding["threshold"]


def test_the_trace_agrees_with_the_benchmark(judged):
    """What is counted here is what the run measured: the judge is right."""
    steps = expected_steps(judged.events)
    seconds = judged.summary["feedline"]["time_split_seconds"]
    total = sum(seconds.values())
    training = [step for key, step in steps.items() if key[1] == "train"]

    def counted(*causes):
        return sum(step.parts[cause] for step in training for cause in causes) / 1e9 / total

    assert counted("open", "read") == pytest.approx(seconds["storage"] / total, abs=0.02)
    assert counted("decode") == pytest.approx(seconds["decode"] / total, abs=0.02)
