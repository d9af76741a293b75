"""DFTracer's own tools, Perfetto's own messages and a strict JSON reader judge converted traces."""

import gzip
import json
import subprocess
import sys
from collections import Counter, defaultdict
from pathlib import Path

import pytest
from conftest import strict_json
from perfetto.protos.perfetto.trace import perfetto_trace_pb2 as pb

HOST = "0a1b2c3d4e5f6071"
FILES = {f"/data/shard \"{n}\".npz": f"93aa5be1c07f22{n:02x}" for n in range(4)}
START = 1800000000000000
CALLS = 500


def record(name, args, pid, **fields):
    """A line of DFTracer 2.2."""
    return json.dumps({"name": name, **fields, "pid": pid, "args": {"hhash": HOST, **args}}, separators=(",", ":"))


def lines(pid):
    """What one process did: 5 steps, 100 reads in each, one of which fails."""
    meta = {"cat": "dftracer", "type": 1, "tid": pid, "ph": 4}
    yield record("HH", {"name": "nodeA", "value": HOST}, pid, **meta)
    yield record("PR", {"name": "rank", "value": str(pid - 100)}, pid, **meta)
    for path, value in FILES.items():
        yield record("FH", {"name": path, "value": value}, pid, **meta)
    for step in range(5):
        begin = START + step * 10_000
        for n in range(CALLS // 5):
            args = {
                "fhash": list(FILES.values())[n % len(FILES)],
                "count": 4096,
                "offset": n * 4096,
                "ret": -1 if n == 7 else 4096,
            }
            times = {"ts": begin + n * 90, "dur": 50}
            yield record("pread64", args, pid, cat="POSIX", type=3, tid=pid, ph=1, **times)
        span = {"cat": "compute", "type": 6, "tid": pid, "ph": 1, "ts": begin, "dur": 9_500}
        yield record("compute", {"epoch": 1, "step": step}, pid, **span)


@pytest.fixture(name="trace")
def fixture_trace(tmp_path):
    """Two ranks, as DFTracer leaves them: several gzip members a file."""
    folder = tmp_path / "trace"
    folder.mkdir()
    for pid in (100, 101):
        text = [line + "\n" for line in lines(pid)]
        members = ["".join(text[at : at + 200]) for at in range(0, len(text), 200)]
        data = b"".join(gzip.compress(member.encode()) for member in members)
        (folder / f"trace-{pid}.pfw.gz").write_bytes(data)
    return folder


EVENTS = 2 * (CALLS + 5)


def tool(name, *args):
    """Runs one of DFTracer's tools and gives what it printed."""
    path = Path(sys.executable).parent / name
    argv = [str(path), *map(str, args)]
    ended = subprocess.run(argv, capture_output=True, text=True, timeout=120, check=False)
    assert ended.returncode == 0, f"{argv}\n{ended.stdout}\n{ended.stderr}"
    return ended.stdout


@pytest.mark.parametrize("dialect", ["dftracer", "dftracer-legacy"])
def test_dftracers_tools_accept_and_count(feedline, trace, tmp_path, dialect):
    """Every line is valid, and all events are there: those of the source, and start and end."""
    out = tmp_path / "out"
    feedline("convert", trace, out / "t.pfw.gz", "--to", dialect).ok()
    files = sorted(out.glob("t-*-app.pfw.gz"))
    assert len(files) == 2
    assert "2 passed, 0 failed" in tool("dftracer_validate", "-d", out)
    assert int(tool("dftracer_event_count", "-d", out).split()[-1]) == EVENTS + 4
    names = tool("dftracer_stats", "-d", out, "--report", "names")
    counts = {
        words[0]: int(words[1].replace(",", ""))
        for words in map(str.split, names.splitlines())
        if len(words) > 1 and words[1].replace(",", "").isdigit()
    }
    assert counts["pread64"] == 2 * CALLS
    assert counts["compute"] == 10


def test_chromes_json_is_strict_json_and_complete(feedline, trace, tmp_path):
    """All events with their arguments, and small numbers of processes."""
    feedline("convert", trace, tmp_path / "t.json").ok()
    events = strict_json(tmp_path / "t.json")["traceEvents"]
    kinds = Counter(event["ph"] for event in events)
    assert kinds["X"] == EVENTS
    assert {event["pid"] for event in events} == {1, 2}
    reads = [event for event in events if event["name"] == "pread64"]
    assert {read["args"]["file"] for read in reads} == set(FILES)
    assert sum(max(read["args"]["result"], 0) for read in reads) == 2 * (CALLS - 5) * 4096
    titles = {event["args"]["name"] for event in events if event["name"] == "process_name"}
    assert titles == {"rank 0 [nodeA 100]", "rank 1 [nodeA 101]"}


def perfetto(path):
    """Parses a trace: tracks, slices as (track, path of names, annotations), counters."""
    trace = pb.Trace()
    trace.ParseFromString(Path(path).read_bytes())
    tracks, names, events = {}, defaultdict(dict), []
    for packet in trace.packet:
        assert packet.trusted_packet_sequence_id == 1
        for field, values in packet.interned_data.ListFields():
            for value in values:
                text = value.str.decode() if field.name.endswith("values") else value.name
                names[field.name][value.iid] = text
        if packet.HasField("track_descriptor"):
            tracks[packet.track_descriptor.uuid] = packet.track_descriptor
        if packet.HasField("track_event"):
            events.append((packet.timestamp, packet.track_event))
    events.sort(key=lambda event: event[0])
    slices, counters, stacks, flows = [], defaultdict(list), defaultdict(list), Counter()
    for at, event in events:
        if event.type == pb.TrackEvent.TYPE_SLICE_BEGIN:
            notes = {}
            for note in event.debug_annotations:
                value = note.int_value
                if note.HasField("string_value_iid"):
                    value = names["debug_annotation_string_values"][note.string_value_iid]
                notes[names["debug_annotation_names"][note.name_iid]] = value
            flows.update([*event.flow_ids, *event.terminating_flow_ids])
            stacks[event.track_uuid].append((names["event_names"][event.name_iid], at, notes))
        elif event.type == pb.TrackEvent.TYPE_SLICE_END:
            path_of = tuple(name for name, _, _ in stacks[event.track_uuid])
            _, begin, notes = stacks[event.track_uuid].pop()
            slices.append((event.track_uuid, path_of, at - begin, notes))
        elif event.type == pb.TrackEvent.TYPE_COUNTER:
            counters[event.track_uuid].append((at, event.double_counter_value))
    assert not any(stacks.values())
    return tracks, slices, counters


def test_perfettos_messages_hold_the_tree_and_all_slices(feedline, trace, tmp_path):
    """Hosts, processes and threads, calls within steps, annotations, counters."""
    feedline("convert", trace, tmp_path / "t.pftrace").ok()
    tracks, slices, counters = perfetto(tmp_path / "t.pftrace")
    hosts = [t for t in tracks.values() if t.name == "host nodeA"]
    assert len(hosts) == 1
    processes = {t.process.process_name: t for t in tracks.values() if t.HasField("process")}
    assert set(processes) == {"rank 0 [nodeA 100]", "rank 1 [nodeA 101]"}
    assert {t.process.pid for t in processes.values()} == {100, 101}
    assert {t.parent_uuid for t in processes.values()} == {hosts[0].uuid}
    threads = {t.uuid: t for t in tracks.values() if t.HasField("thread")}
    assert {t.thread.tid for t in threads.values()} == {100, 101}
    paths = Counter(path for _, path, _, _ in slices)
    assert paths == {("compute",): 10, ("compute", "pread64"): 2 * CALLS}
    assert {track for track, _, _, _ in slices} == set(threads)
    reads = [(length, notes) for _, path, length, notes in slices if path[-1] == "pread64"]
    assert {length for length, _ in reads} == {50_000}
    assert {notes["file"] for _, notes in reads} == set(FILES)
    assert sum(notes["result"] == -1 for _, notes in reads) == 10
    series = {t.name: t for t in tracks.values() if t.HasField("counter")}
    assert set(series) == {"bytes read", "calls in flight"}
    assert series["bytes read"].counter.unit_name == "B/s"
    moved = 0
    for track in (t for t in tracks.values() if t.name == "bytes read"):
        points = counters[track.uuid]
        pairs = zip(points, points[1:])
        moved += sum(value * (end - begin) / 1e9 for (begin, value), (end, _) in pairs)
    assert moved == pytest.approx(2 * (CALLS - 5) * 4096)


def test_perfetto_merges_the_shortest_and_keeps_their_sums(feedline, trace, tmp_path):
    """A small limit is kept, and no call and no byte is lost."""
    feedline("convert", trace, tmp_path / "t.pftrace", "--max-events", 1000).ok()
    _, slices, _ = perfetto(tmp_path / "t.pftrace")
    paths = Counter(path for _, path, _, _ in slices)
    assert paths[("compute",)] == 10
    assert len(slices) <= 1000
    merged = [notes for _, path, _, notes in slices if path == ("compute", "pread64 (merged)")]
    single = [notes for _, path, _, notes in slices if path == ("compute", "pread64")]
    assert merged
    assert sum(notes["calls"] for notes in merged) + len(single) == 2 * CALLS
    moved = sum(notes["bytes"] for notes in merged)
    assert moved + sum(max(notes["result"], 0) for notes in single) == 2 * (CALLS - 5) * 4096


def test_perfetto_shows_the_part_that_was_asked_for(feedline, trace, tmp_path):
    """A window of two steps of one rank."""
    args = ("--window", "0.01..0.0299", "--ranks", "1", "--min-duration", "1ms")
    feedline("convert", trace, tmp_path / "t.pftrace", *args).ok()
    tracks, slices, _ = perfetto(tmp_path / "t.pftrace")
    names = {t.process.process_name for t in tracks.values() if t.HasField("process")}
    assert names == {"rank 1 [nodeA 101]"}
    assert [path for _, path, _, _ in slices] == [("compute",)] * 2


PROGRAM = """
import os, sys
data = os.open(sys.argv[1], os.O_RDONLY)
child = os.fork()
for block in range(300 if child else 200):
    os.pread(data, 512, block * 8)
if child:
    os.waitpid(child, 0)
"""


def test_a_traced_program_in_all_formats(feedline, tmp_path):
    """What `feedline trace` recorded of two processes is counted alike by everyone."""
    (tmp_path / "data").write_bytes(bytes(4096))
    trace = tmp_path / "trace"
    command = [sys.executable, "-c", PROGRAM, tmp_path / "data"]
    feedline("trace", "-o", trace, "--", *command).ok()
    report = strict_json(trace / "report.json")
    assert (report["processes"], report["dropped"]) == (2, 0)
    out = tmp_path / "out"
    feedline("convert", trace, out / "t.pfw.gz").ok()
    assert "2 passed, 0 failed" in tool("dftracer_validate", "-d", out)
    counted = int(tool("dftracer_event_count", "-d", out).split()[-1])
    assert counted == report["events"] + 2 * report["processes"]
    reads = [
        json.loads(line)
        for path in out.glob("*.pfw.gz")
        for line in gzip.decompress(path.read_bytes()).splitlines()
        if b'"name":"pread' in line
    ]
    assert sorted(Counter(read["pid"] for read in reads).values()) == [200, 300]
    assert {(read["args"]["count"], read["args"]["ret"]) for read in reads} == {(512, 512)}
    feedline("convert", trace, tmp_path / "t.json").ok()
    chrome = strict_json(tmp_path / "t.json")["traceEvents"]
    assert sum(event["ph"] == "X" for event in chrome) == report["events"]
    feedline("convert", trace, tmp_path / "t.pftrace").ok()
    packets = pb.Trace.FromString((tmp_path / "t.pftrace").read_bytes()).packet
    begins = sum(
        packet.track_event.type == pb.TrackEvent.TYPE_SLICE_BEGIN
        for packet in packets if packet.HasField("track_event")
    )
    assert begins == report["events"]
    # And back into a folder, start and end of DFTracer included.
    back = tmp_path / "back"
    feedline("convert", out, back).ok()
    again = feedline("convert", back, tmp_path / "back.json").ok()
    assert f"{counted} events" in again.err.replace(",", "")
