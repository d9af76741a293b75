"""Jobs of several processes: what a step of all ranks costs beside a bare MPI barrier."""

import json
import os
import shutil
import statistics
import subprocess
from pathlib import Path

from table import Goal, Row
from usage import CommandFailed

RANKS = 8
STEPS = 2000
MPIRUN = ["mpirun", "--allow-run-as-root", "--oversubscribe", "--bind-to", "none"]
BRING = "apt-get install -y libopenmpi-dev openmpi-bin libclang-dev, then make bench"


def last_json(argv):
    """Runs a command; the JSON object in the last line of its output."""
    done = subprocess.run(argv, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise CommandFailed(f"{argv[0]} ended with {done.returncode}: {done.stderr.strip()[-300:]}")
    return json.loads(done.stdout.strip().splitlines()[-1])


class JobSections:
    """Needs Feedline and the example `barrier` built with MPI."""

    def __init__(self, bench):
        self.bench = bench
        self.feedline = bench.options.target / "release" / "mpi" / "feedline"
        self.program = bench.examples / "barrier"

    def check(self):
        """Says what is missing."""
        if shutil.which("mpirun") is None:
            raise FileNotFoundError(f"no mpirun; install it with: {BRING}")
        self.bench.require(self.feedline, BRING)
        self.bench.require(self.program, BRING)

    def barrier(self):
        """A meeting of the ranks, by itself and as a part of a step."""
        self.check()
        rounds = self.bench.options.rounds
        # The bare barrier is always one of as many processes as there are ranks.
        alone = [self.meeting(RANKS) for _ in range(rounds)]
        self.add(f"meeting of {RANKS} ranks in {RANKS} processes", alone, "own_us")
        few = [{**self.meeting(RANKS), "own_us": self.meeting(2)["own_us"]} for _ in range(rounds)]
        self.add(f"meeting of {RANKS} ranks in 2 processes", few, "own_us")
        steps = [{**self.meeting(RANKS), "own_us": self.step_us()} for _ in range(rounds)]
        self.add(f"whole step without data, {RANKS} processes of a rank", steps, "own_us")

    def meeting(self, processes):
        """Microseconds of a bare barrier of the processes, and of a meeting of all ranks in them."""
        return last_json([*MPIRUN, "-n", str(processes), str(self.program), str(RANKS)])

    def step_us(self):
        """Microseconds of a step whose samples cost nothing and whose computation is none."""
        out = Path(self.bench.data) / "out-mpi"
        shutil.rmtree(out, ignore_errors=True)
        keys = {
            "dataset.format": "synthetic", "reader.data_loader": "synthetic",
            "dataset.num_files_train": RANKS * STEPS, "dataset.record_length_bytes": 4096,
            "dataset.skip_listing": True, "reader.batch_size": 1, "train.computation_time": 0,
            "train.epochs": 1, "workflow.checkpoint": False,
        }
        sets = [word for key, value in keys.items() for word in ("--set", f"{key}={value}")]
        argv = [*MPIRUN, "-n", str(RANKS), str(self.feedline), "run", "unet3d_h100",
                "--out", str(out), *sets]
        done = subprocess.run(argv, capture_output=True, text=True, check=False,
                              env={**os.environ, "NO_COLOR": "1"})
        if done.returncode != 0:
            raise CommandFailed(f"feedline ended with {done.returncode}: {done.stderr[-300:]}")
        own = json.loads((out / "summary.json").read_text())["feedline"]
        seconds = sum(own["per_rank"][0]["time_split_seconds"].values())
        return seconds / own["steps"] * 1e6

    def add(self, what, rounds, key):
        """A row of microseconds; the ratio is the median of the rounds'."""
        own = statistics.median(round_[key] for round_ in rounds)
        bare = statistics.median(round_["bare_us"] for round_ in rounds)
        ratio = statistics.median(round_[key] / round_["bare_us"] for round_ in rounds)
        self.bench.add(Row(what, "us", own, "bare MPI_Barrier", bare, ratio, Goal("<=", 2),
                           rounds={"rounds": rounds}))


def sections(bench):
    """Names and functions."""
    return [("i: ranks beside a bare MPI barrier", JobSections(bench).barrier)]
