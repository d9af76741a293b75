"""PyTorch's DataLoader over npz files, as fast as it goes; prints samples per second and CPU ms per sample.

    real_loader.py FOLDER BATCH WORKERS EPOCHS

The first epoch starts the workers and is not counted.
"""

import json
import os
import sys
import time
from pathlib import Path

import numpy
import torch
import torch.utils.data

TICKS = os.sysconf("SC_CLK_TCK")


class Npz(torch.utils.data.Dataset):
    """One sample per file."""

    def __init__(self, folder):
        self.paths = sorted(Path(folder).glob("*.npz"))

    def __len__(self):
        return len(self.paths)

    def __getitem__(self, index):
        with numpy.load(self.paths[index]) as file:
            return file["x"]


def cpu_s(pids):
    """CPU time of this process and of its workers so far."""
    total = time.process_time()
    for pid in pids:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        total += (int(fields[11]) + int(fields[12])) / TICKS
    return total


def main(folder, batch, workers, epochs):
    """Goes through all epochs and prints one line of JSON."""
    torch.set_num_threads(1)
    data = Npz(folder)
    loader = torch.utils.data.DataLoader(
        data, batch, shuffle=True, num_workers=workers, persistent_workers=workers > 0
    )
    for _ in loader:
        pass
    pids = [worker.pid for worker in loader._iterator._workers] if workers else []
    before, start = cpu_s(pids), time.monotonic()
    for _ in range(epochs):
        for _ in loader:
            pass
    samples = len(data) * epochs
    rate = samples / (time.monotonic() - start)
    print(json.dumps({"rate": rate, "cpu_ms": 1e3 * (cpu_s(pids) - before) / samples}))


if __name__ == "__main__":
    main(sys.argv[1], *map(int, sys.argv[2:5]))
