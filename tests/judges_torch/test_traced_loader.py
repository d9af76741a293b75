"""A DataLoader under `feedline trace` whose workers are killed: everything that they read is there."""

import json
import os
import subprocess
import sys

import pytest

PROGRAM = """
import os, signal, sys
import torch.utils.data

class Files(torch.utils.data.Dataset):
    def __init__(self, folder):
        self.folder = folder

    def __len__(self):
        return 10_000

    def __getitem__(self, index):
        data = os.open(f"{self.folder}/{index % 8}", os.O_RDONLY)
        sample = os.pread(data, 1024, index % 4 * 1024)
        os.close(data)
        log = os.open(f"{self.folder}/log", os.O_WRONLY | os.O_APPEND)
        os.write(log, b"%d %d\\n" % (index % 8, index % 4 * 1024))
        os.close(log)
        return len(sample)

if __name__ == "__main__":
    folder, end = sys.argv[1:]
    loader = torch.utils.data.DataLoader(Files(folder), batch_size=4, num_workers=2)
    batches = iter(loader)
    for _ in range(50):
        assert next(batches).tolist() == [1024] * 4
    for worker in batches._workers:
        os.kill(worker.pid, getattr(signal, end))
    os._exit(0)
"""


@pytest.mark.parametrize("end", ["SIGTERM", "SIGKILL"])
def test_killed_loader_workers(tmp_path, end):
    """The reads of the trace are those of the data set's own log, but for two that were not logged."""
    binary = os.environ["FEEDLINE_BIN"]
    (tmp_path / "program.py").write_text(PROGRAM)
    (tmp_path / "log").touch()
    for number in range(8):
        (tmp_path / str(number)).write_bytes(bytes(4096))
    trace = tmp_path / "trace"
    subprocess.run(
        [binary, "trace", "-o", trace, "--data", tmp_path, "--", sys.executable,
         tmp_path / "program.py", tmp_path, end],
        check=True, timeout=300,
    )
    converted = tmp_path / "trace.json"
    subprocess.run([binary, "convert", trace, converted], check=True, timeout=300)
    events = json.loads(converted.read_text())
    events = events["traceEvents"] if isinstance(events, dict) else events
    reads = sorted(
        (os.path.basename(event["args"]["file"]), event["args"]["offset"])
        for event in events if event["name"] in ("pread", "pread64")
    )
    logged = sorted(
        (name, int(offset))
        for name, offset in (line.split() for line in (tmp_path / "log").read_text().splitlines())
    )
    assert len(logged) >= 200
    unlogged = list(reads)
    for read in logged:
        unlogged.remove(read)
    assert len(unlogged) <= 2
