"""`feedline calibrate` beside loops of our own: CPU times of the same run, as ratios."""

import json
import os
import resource
import subprocess
import sys
import time

import numpy
import pytest
import torch.utils.data

SAMPLES = 64
BATCH = 4
SIZE = 331 * 331
WORKERS = 2

# Both sides are CPU times of one machine within a minute; load from others moves them by less.
FACTOR = 2.5


def close(ours, theirs, factor=FACTOR):
    assert theirs / factor < ours < theirs * factor, (ours, theirs)


class Npz(torch.utils.data.Dataset):
    """What people write."""

    def __init__(self, paths):
        self.paths = paths

    def __len__(self):
        return len(self.paths)

    def __getitem__(self, index):
        with numpy.load(self.paths[index]) as file:
            return file["x"]


def tree_cpu():
    """CPU seconds of this process and of all children that have ended."""
    own, children = resource.getrusage(resource.RUSAGE_SELF), resource.getrusage(resource.RUSAGE_CHILDREN)
    return own.ru_utime + own.ru_stime + children.ru_utime + children.ru_stime


class Bed:
    def __init__(self, folder):
        self.folder = folder
        self.file = folder / "calibration.json"
        self.environment = dict(os.environ, FEEDLINE_CALIBRATION=str(self.file))
        workload = {
            "framework": "pytorch",
            "workflow": {"train": True},
            "model": {"name": "calibrated"},
            "dataset": {
                "data_folder": str(folder / "data"),
                "format": "npz",
                "num_files_train": SAMPLES,
                "record_length_bytes": SIZE,
            },
            "reader": {
                "data_loader": "pytorch",
                "batch_size": BATCH,
                "read_threads": WORKERS,
                "persistent_workers": True,
            },
            "train": {"epochs": 8, "computation_time": 0.0001},
        }
        # JSON is YAML.
        (folder / "w.yaml").write_text(json.dumps(workload))

    def feedline(self, *args):
        ended = subprocess.run(
            [os.environ["FEEDLINE_BIN"], *map(str, args)],
            cwd=self.folder,
            env=self.environment,
            capture_output=True,
            text=True,
            timeout=300,
            check=False,
        )
        assert ended.returncode == 0, ended.stdout + ended.stderr
        return ended.stdout

    def run(self, *args):
        """The summary of a run and its CPU seconds."""
        before = tree_cpu()
        out = json.loads(self.feedline("run", "w.yaml", "--json", "--out", "out", "--overwrite", *args))
        return out["summary"]["feedline"], tree_cpu() - before


@pytest.fixture(scope="module")
def bed(tmp_path_factory):
    bed = Bed(tmp_path_factory.mktemp("calibration"))
    bed.feedline(
        "calibrate", "--python", sys.executable, "--formats", "npz,safetensors,hdf5",
        "--sizes", f"16384,{SIZE}", "--workers", WORKERS, "--seconds", 0.05,
    )
    bed.found = json.loads(bed.file.read_text())
    bed.environment["FEEDLINE_CALIBRATION"] = ""
    bed.environment["XDG_DATA_HOME"] = str(bed.folder)
    bed.feedline("run", "w.yaml", "--generate-only", "--out", "made")
    bed.environment["FEEDLINE_CALIBRATION"] = str(bed.file)
    bed.paths = sorted((bed.folder / "data" / "train").glob("*.npz"))
    return bed


def batch_with_workers(points, bytes):
    assert {point["workers"] for point in points} == {0, WORKERS}
    (point,) = [point for point in points if (point["workers"], point["bytes"]) == (WORKERS, bytes)]
    return point


def batches(bed):
    """A batch of the larger size that was read and handed over, and one that was only handed over."""
    read = batch_with_workers(bed.found["readers"]["npz"]["points"][1]["in_loader"], BATCH * SIZE)
    handed = batch_with_workers(bed.found["data_loader"]["hand_over"], BATCH * SIZE)
    return read, handed


def test_the_file_says_what_was_measured(bed):
    found = bed.found
    assert found["feedline_calibration"] == 1
    packages = found["python"]["packages"]
    assert packages["numpy"] == numpy.__version__
    assert packages["torch"].split("+")[0] == torch.__version__.split("+")[0]
    assert found["python"]["version"] == sys.version.split()[0]
    assert set(found["readers"]) == {"npz", "safetensors"}
    assert found["left_out"] == {"hdf5": "h5py is missing (pip install h5py)"}
    assert [point["bytes"] for point in found["readers"]["npz"]["points"]] == [16384, SIZE]
    assert set(found["data_loader"]["start"]) == {"fork", "spawn"}
    start = found["data_loader"]["start"]
    assert start["spawn"]["worker_cpu_ns"] > 5 * start["fork"]["worker_cpu_ns"], "it imports torch"


def test_the_readers_cost_is_that_of_a_loop(bed):
    assert len(bed.paths) == SAMPLES
    data = Npz(bed.paths)
    for index in range(SAMPLES):
        data[index]
    begin = time.process_time()
    for _ in range(8):
        for index in range(SAMPLES):
            data[index]
    theirs = (time.process_time() - begin) / (8 * SAMPLES)
    point = bed.found["readers"]["npz"]["points"][1]
    close(point["cpu_ns"] / 1e9, theirs)
    assert point["replay_cpu_ns"] < point["cpu_ns"]


def test_a_batch_costs_what_the_data_loader_takes(bed):
    """All epochs in one process tree; what starting it costs is in a run of one batch."""

    def cpu(epochs, paths):
        loader = torch.utils.data.DataLoader(
            Npz(paths), batch_size=BATCH, num_workers=WORKERS, persistent_workers=True
        )
        before = tree_cpu()
        for _ in range(epochs):
            for _ in loader:
                pass
        del loader
        return tree_cpu() - before

    start = cpu(1, bed.paths[: BATCH * WORKERS])
    theirs = (cpu(8, bed.paths) - start) / (8 * SAMPLES)
    read, handed = batches(bed)
    close((read["worker_cpu_ns"] + read["consumer_cpu_ns"]) / BATCH / 1e9, theirs)
    assert handed["worker_cpu_ns"] < read["worker_cpu_ns"]


def test_a_run_burns_what_was_measured(bed):
    burnt, burnt_cpu = bed.run("--set", "reader.interpreter=calibrated", "--calibration", bed.file)
    plain, plain_cpu = bed.run("--set", "reader.interpreter=none")
    point, (read, handed) = bed.found["readers"]["npz"]["points"][1], batches(bed)
    # The worker's part is that of reading and handing over together, less our own reader's.
    each = (read["worker_cpu_ns"] + handed["consumer_cpu_ns"]) / BATCH - point["replay_cpu_ns"]
    assert burnt["framework"]["per_sample_ms"] == pytest.approx(each / 1e6, rel=0.001)
    start = bed.found["data_loader"]["start"]["fork"]
    expected = 8 * SAMPLES * each + WORKERS * (start["worker_cpu_ns"] + start["consumer_cpu_ns"])
    # Nothing but our own readers' work and its noise is beside it.
    close(burnt_cpu - plain_cpu, expected / 1e9, 1.5)
    # Two batches ahead per worker are rounded to one each by `prefetch_size: 2`; and one more.
    assert burnt["framework"]["held_bytes"] == (2 + 1) * BATCH * SIZE
    assert burnt["time_split_seconds"]["framework"] > 0
    assert plain["time_split_seconds"]["framework"] == 0
    assert plain["framework"] == {"interpreter": "none"}
