"""Trace folders: pyarrow and pandas are asked what stands in what a known program recorded."""

import json
import os
import subprocess

import pandas
import pyarrow.parquet as parquet
import pytest

from conftest import strict_json


@pytest.fixture(name="trace", scope="module")
def fixture_trace(tmp_path_factory):
    """A trace of known events, and the number of the process that recorded them."""
    program = os.environ.get("FEEDLINE_TRACE_KNOWN", "")
    if not os.access(program, os.X_OK):
        pytest.exit(f"no program at FEEDLINE_TRACE_KNOWN={program!r}; run: make test", 2)
    folder = tmp_path_factory.mktemp("trace") / "trace"
    ended = subprocess.run(
        [program, "judge", folder], capture_output=True, text=True, timeout=60, check=True
    )
    pid, events, dropped = map(int, ended.stdout.split())
    assert (events, dropped) == (1006, 0)
    return folder, pid


def table(trace, name):
    """A table of a trace."""
    return parquet.read_table(trace[0] / name)


def test_folder(trace):
    """Nothing but what the documentation names, and nothing half done."""
    folder = trace[0]
    described = strict_json(folder / "trace.json")
    assert (described["format"], described["version"]) == ("feedline-trace", 1)
    assert sorted(path.name for path in folder.iterdir()) == [
        "events", "files", "processes", "segments", "trace.json", "writers"
    ]
    files = [path for path in folder.rglob("*") if path.is_file()]
    assert not [path for path in files if path.name.startswith(".")]
    assert not list((folder / "segments").iterdir())


def test_types(trace):
    """Types are those of the documentation."""
    schema = table(trace, "events").schema
    types = {field.name: str(field.type) for field in schema}
    assert types == {
        "process": "int64", "thread": "uint32", "start": "timestamp[ns, tz=UTC]",
        "duration": "int64", "kind": "string", "category": "string", "name": "string",
        "class": "string", "file": "int64", "other_file": "int64", "offset": "int64",
        "size": "int64", "result": "int64", "errno": "int32", "arg": "int64", "epoch": "int64",
        "step": "int64", "sample": "int64", "count": "int64", "shortest": "int64",
        "longest": "int64", "value": "double", "extra": "string",
    }
    assert not schema.field("start").nullable and schema.field("offset").nullable


def test_events(trace):
    """Every event is the one that was recorded."""
    rows = table(trace, "events").to_pylist()
    paths = {row["id"]: row["path"] for row in table(trace, "files").to_pylist()}
    assert [row["name"] for row in rows] == (
        ["open"] + ["pread64"] * 1000 + ["write", "rename", "item", "depth", "close"]
    )
    assert [row["class"] for row in rows] == (
        ["open"] + ["read"] * 1000 + ["write", "name", None, None, "close"]
    )
    assert [row["offset"] for row in rows[1:1001]] == [4096 * index for index in range(1000)]
    assert {row["size"] for row in rows[1:1001]} == {4096}
    assert {paths[row["file"]] for row in rows[:1001]} == {"/data/other/a.bin"}
    opened, write, rename, span, counter = rows[0], *rows[1001:1005]
    assert (opened["arg"], json.loads(opened["extra"])) == (0o1101, {"mode": 0o644})
    assert (write["result"], write["errno"], paths[write["file"]]) == (-1, 32, "pipe:[7]")
    assert paths[rename["other_file"]] == "/data/set"
    assert (span["kind"], span["category"], span["epoch"], span["step"], span["sample"]) == (
        "span", "data", 2, 7, 41
    )
    assert (counter["kind"], counter["category"], counter["value"]) == ("counter", "queue", 2.5)
    starts = [row["start"] for row in rows]
    assert starts == sorted(starts)
    assert all(0 <= row["duration"] < 10**9 for row in rows)


def test_processes(trace):
    """The process is the one that ran, and its events are inside its life."""
    [process] = table(trace, "processes").to_pylist()
    assert process["pid"] == trace[1]
    assert process["parent_pid"] == os.getpid()
    assert json.loads(process["arguments"]) == ["known", "events"]
    assert (process["rank"], process["dropped"], process["is_traced"]) == (3, 0, True)
    assert (process["ending"], process["status"]) == ("exited", 0)
    events = table(trace, "events").to_pandas()
    assert set(events["process"]) == {process["id"]}
    assert process["start"] <= events["start"].min()
    ends = events["start"] + pandas.to_timedelta(events["duration"])
    assert ends.max() <= process["end"]


def test_joins_as_documented(trace):
    """The example of the documentation, in pandas."""
    events = pandas.read_parquet(
        trace[0] / "events", columns=["process", "file", "class", "duration"]
    )
    files = pandas.read_parquet(trace[0] / "files")
    reads = events[events["class"] == "read"].merge(files, left_on="file", right_on="id")
    assert reads.groupby("path")["duration"].count().to_dict() == {"/data/other/a.bin": 1000}


def test_statistics_leave_out_row_groups(trace):
    """Row groups know their times."""
    [path] = (trace[0] / "events").glob("*.parquet")
    file = parquet.ParquetFile(path)
    group = file.metadata.row_group(0)
    columns = {group.column(index).path_in_schema: group.column(index) for index in range(23)}
    statistics = columns["start"].statistics
    starts = file.read(columns=["start"]).column("start").to_pylist()
    assert (statistics.min, statistics.max) == (min(starts), max(starts))
    assert columns["epoch"].statistics.null_count == 1005
    # An empty column costs next to nothing.
    assert columns["shortest"].total_compressed_size < 40
