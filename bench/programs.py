"""The two programs that are compared, run on the same job.

Both take the same Hydra overrides; DLIO 2.0.0, the version that is published as a package, knows
the record length under its older name.
"""

import json
import os
import shutil
from dataclasses import dataclass
from pathlib import Path

from usage import LOOK_S, measure


@dataclass(frozen=True)
class Job:
    """A data set and how it is read: one rank, PyTorch's loader, as fast as it goes unless told."""

    data: Path
    files: int
    record_bytes: int
    batch: int
    workers: int = 4
    epochs: int = 1
    # Bytes of the tensor that DLIO hands over in place of a sample; 0: as large as the sample.
    resize_bytes: int = 0
    compute_s: float = 0
    preprocess_s: float = 0
    format: str = "npz"
    # Samples in a file.
    per_file: int = 1
    # Further overrides, as key and value below `workload`.
    more: tuple = ()
    # What Feedline's readers do for a sample; speed is the business of the models named for it.
    read_model: str = "native"

    def overrides(self, length_key, generate):
        """The job as Hydra overrides of the `unet3d_h100` workload."""
        values = {
            "workflow.generate_data": generate,
            "workflow.train": not generate,
            "workflow.checkpoint": False,
            "dataset.data_folder": self.data,
            "dataset.num_files_train": self.files,
            f"dataset.{length_key}": self.record_bytes,
            f"dataset.{length_key}_stdev": 0,
            f"dataset.{length_key}_resize": self.resize_bytes,
            "reader.batch_size": self.batch,
            "reader.read_threads": self.workers,
            "train.computation_time": self.compute_s,
            "reader.preprocess_time": self.preprocess_s,
            "train.epochs": self.epochs,
        }
        if self.format != "npz":
            values["dataset.format"] = self.format
        if self.per_file > 1:
            values["dataset.num_samples_per_file"] = self.per_file
        values.update(self.more)
        return [f"++workload.{key}={value}" for key, value in values.items()]

    @property
    def samples(self):
        """How many samples one run of this job reads."""
        return self.files * self.per_file // self.batch * self.batch * self.epochs


class Program:
    """Runs jobs and counts the samples its result files tell of."""

    name = ""
    length_key = ""
    # Between two looks at its memory.
    look_s = LOOK_S

    def __init__(self, scratch):
        self.out = scratch / f"out-{self.name.lower()}"
        self.log = scratch / f"log-{self.name.lower()}"
        self.scratch = scratch

    def generate(self, job):
        """Writes the job's data set, in place of what may be there."""
        shutil.rmtree(job.data, ignore_errors=True)
        return self.run(self.argv(job, True))

    def train(self, job):
        """Reads the job's data set; raises ValueError if a sample is missing from the results."""
        usage = self.run(self.argv(job, False))
        read = self.samples_read(job)
        if read != job.samples:
            raise ValueError(f"{self.name} read {read} samples, expected {job.samples}")
        return usage

    def run(self, argv):
        """Measures a command line of this program, possibly inside another one's."""
        shutil.rmtree(self.out, ignore_errors=True)
        return measure(argv, self.log, self.environment(), self.scratch, self.look_s)

    def samples_read(self, job):
        """Samples in rank 0's list of steps, over all epochs."""
        results = json.loads((self.out / "0_output.json").read_text())
        steps = sum(
            len(block)
            for epoch, result in results.items()
            if epoch.isdigit()
            for block in result["load"].values()
        )
        return steps * job.batch

    def utilization(self):
        """The accelerator utilization of the last run in percent, as the program reports it."""
        summary = json.loads((self.out / "summary.json").read_text())
        return summary["metric"]["train_au_mean_percentage"]

    def rate_bytes(self):
        """Bytes of samples per second of the last run, from its first step to its last."""
        summary = json.loads((self.out / "summary.json").read_text())
        return summary["feedline"]["sample_MB_per_second"] * 1e6

    def argv(self, job, generate):
        """The command line of this job."""
        raise NotImplementedError

    def environment(self):
        """The environment of the command."""
        return dict(os.environ)


class Feedline(Program):
    """The program of this repository."""

    name = "Feedline"
    length_key = "record_length_bytes"

    def __init__(self, scratch, binary):
        super().__init__(scratch)
        self.binary = binary

    def argv(self, job, generate):
        overrides = job.overrides(self.length_key, generate)
        overrides.append(f"++workload.reader.read_model={job.read_model}")
        return [str(self.binary), "run", "unet3d_h100", *overrides, "--out", str(self.out)]


class Dlio(Program):
    """DLIO with PyTorch, from the environment that `bench/peers.sh` makes."""

    name = "DLIO"
    length_key = "record_length"

    def __init__(self, scratch, peers):
        super().__init__(scratch)
        self.binary = peers / "dlio" / "bin" / "dlio_benchmark"

    def argv(self, job, generate):
        overrides = job.overrides(self.length_key, generate)
        return [
            str(self.binary), "workload=unet3d_h100", *overrides, f"hydra.run.dir={self.out}",
        ]

    def environment(self):
        # Open MPI refuses to start as root unless told twice; harmless for everyone else.
        return dict(
            os.environ, OMPI_ALLOW_RUN_AS_ROOT="1", OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1"
        )
