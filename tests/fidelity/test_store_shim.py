"""The slow store of `bench/fidelity.py` counts what strace counts, and takes the time that it should."""

import json
import os
import struct
import subprocess
import sys
import sysconfig
import time
from pathlib import Path

import pytest

import datasets

SOURCE = Path(__file__).resolve().parents[2] / "bench" / "store_shim.c"
NPZ = next(data_set for data_set in datasets.ALL if data_set.name == "npz-small")
# Rates and latencies are lower bounds of the time, so a busy machine cannot break these tests.
CALLS_PER_SAMPLE = 10


@pytest.fixture(name="shim", scope="module")
def fixture_shim(tmp_path_factory):
    """The library."""
    library = tmp_path_factory.mktemp("shim") / "store_shim.so"
    subprocess.run(["gcc", "-O2", "-Wall", "-Werror", "-shared", "-fPIC", "-o", library, SOURCE,
                    "-ldl"], check=True)
    return library


def seconds_of(shim, roots, folder, processes=1, **store):
    """Reads all samples in so many processes at once; gives seconds and the counts of the store."""
    plan = folder / "plan.json"
    plan.write_text(json.dumps(NPZ.plan(roots[4096])))
    readers = str(Path(__file__).parent)
    script = ("import json, sys; sys.path.insert(0, sys.argv[2]); from readers import Samples;"
              "samples = Samples(json.load(open(sys.argv[1])));"
              "[samples[number] for number in range(len(samples))]")
    environment = {
        **os.environ, "LD_PRELOAD": str(shim), "STORE_SHIM_FOLDER": str(roots[4096]),
        "STORE_SHIM_STATE": str(folder / "state"), **store,
        "PYTHONPATH": sysconfig.get_path("purelib"),
    }
    start = time.monotonic()
    started = [subprocess.Popen([sys.executable, "-c", script, plan, readers], env=environment)
               for _ in range(processes)]
    assert [process.wait() for process in started] == [0] * processes
    opens, reads, preads, moved = struct.unpack("=4Q", (folder / "state").read_bytes()[:32])
    return time.monotonic() - start, (opens, reads, preads, moved)


def test_counts_are_those_of_strace(shim, roots, real, tmp_path):
    _, (opens, reads, preads, moved) = seconds_of(shim, roots, tmp_path)
    expected = real(NPZ, 4096, 0).counts
    assert (opens, reads, preads, moved) == (expected.opens, expected.reads, 0, expected.bytes)


def test_every_call_waits(shim, roots, tmp_path):
    seconds, (opens, reads, _, _) = seconds_of(shim, roots, tmp_path, STORE_SHIM_LATENCY_US="5000")
    assert opens + reads == NPZ.samples * CALLS_PER_SAMPLE
    assert seconds >= 0.005 * NPZ.samples * CALLS_PER_SAMPLE


def test_processes_share_the_rate(shim, roots, tmp_path):
    seconds, (*_, moved) = seconds_of(
        shim, roots, tmp_path, processes=2, STORE_SHIM_RATE="2000000")
    assert moved == 2 * NPZ.samples * 114343
    # The bucket may hold 5 ms of it.
    assert seconds >= moved / 2e6 - 0.005
