"""Programs under `feedline trace` whose workers are killed: everything that they read is in the trace."""

import sys
from collections import Counter

import pyarrow.parquet as parquet
import pytest

# Each worker writes down every read before it makes the next one, past the C library's streams.
PROGRAM = """
import multiprocessing, os, signal, sys, time

def work(folder, number):
    log = os.open(f"{folder}/log-{number}", os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    data = os.open(f"{folder}/data-{number}", os.O_RDONLY)
    for block in range(100_000):
        read = os.pread(data, 512, block % 64 * 512)
        os.write(log, b"%d %d\\n" % (block % 64 * 512, len(read)))

if __name__ == "__main__":
    folder, method, end = sys.argv[1:]
    context = multiprocessing.get_context(method)
    workers = [context.Process(target=work, args=(folder, number)) for number in range(2)]
    for worker in workers:
        worker.start()
    for number in range(2):
        while not os.path.exists(f"{folder}/log-{number}") or os.path.getsize(f"{folder}/log-{number}") < 8000:
            time.sleep(0.001)
    for worker in workers:
        os.kill(worker.pid, getattr(signal, end))
    for worker in workers:
        worker.join()
    print([-worker.exitcode for worker in workers])
"""


@pytest.mark.parametrize("method", ["fork", "spawn", "forkserver"])
@pytest.mark.parametrize("end", ["SIGTERM", "SIGKILL"])
def test_killed_workers(feedline, tmp_path, method, end):
    """Reads of the trace are those of the workers' own logs, but for one that was not logged yet."""
    (tmp_path / "program.py").write_text(PROGRAM)
    for number in range(2):
        (tmp_path / f"data-{number}").write_bytes(bytes(512 * 64))
    trace = tmp_path / "trace"
    ended = feedline("trace", "-o", trace, "--", sys.executable, tmp_path / "program.py", tmp_path,
                     method, end).ok()
    number = {"SIGTERM": 15, "SIGKILL": 9}[end]
    assert ended.out == f"[{number}, {number}]\n"
    paths = {row["id"]: row["path"] for row in parquet.read_table(trace / "files").to_pylist()}
    events = parquet.read_table(trace / "events").to_pylist()
    processes = {row["id"]: row for row in parquet.read_table(trace / "processes").to_pylist()}
    for worker in range(2):
        logged = [
            tuple(map(int, line.split()))
            for line in (tmp_path / f"log-{worker}").read_text().splitlines()
        ]
        reads = [
            row for row in events
            if row["name"] in ("pread", "pread64")
            and paths.get(row["file"]) == str(tmp_path / f"data-{worker}")
        ]
        seen = [(row["offset"], row["result"]) for row in reads]
        assert seen[: len(logged)] == logged
        assert len(seen) - len(logged) in (0, 1)
        [process] = {row["process"] for row in reads}
        assert processes[process]["ending"] == "killed"
        assert processes[process]["dropped"] == 0
    assert Counter(row["kind"] for row in events).keys() == {"call"}
