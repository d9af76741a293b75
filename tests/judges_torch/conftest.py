"""What every judge needs: the program, the example that writes and indexes checkpoints, and ways to
compare."""

import json
import os
import subprocess
import zlib
from pathlib import Path

import pytest
import torch

DTYPES = ["int8", "uint8", "float16", "bfloat16", "float32", "float64"]


def crc(tensor):
    """The CRC-32 of a tensor's elements as they stand in memory."""
    flat = tensor.detach().contiguous().reshape(-1)
    return zlib.crc32(flat.view(torch.uint8).numpy().tobytes())


def described(tensor):
    """What the example prints of a tensor, without its place."""
    dtype = str(tensor.dtype).removeprefix("torch.")
    return {"dtype": dtype, "shape": list(tensor.shape), "crc32": crc(tensor)}


def flattened(value, path=()):
    """The tensors in dictionaries and lists, by their paths."""
    if isinstance(value, torch.Tensor):
        return {path: value}
    if isinstance(value, dict):
        items = value.items()
    elif isinstance(value, (list, tuple)):
        items = enumerate(value)
    else:
        items = ()
    return {p: t for k, v in items for p, t in flattened(v, (*path, str(k))).items()}


def check(printed, tensors):
    """Compares what the example printed with tensors by their paths: names, types, shapes, bytes."""
    ours = {
        tuple(entry["path"]): {k: entry[k] for k in ("dtype", "shape", "crc32")}
        for entry in printed
    }
    assert len(ours) == len(printed)
    assert ours == {path: described(tensor) for path, tensor in tensors.items()}


class Example:
    """The example `write` of the crate `feedline-checkpoint`."""

    def __init__(self, binary, folder):
        self.binary = binary
        self.folder = folder

    def write(self, container, name, files, **spec):
        """Writes a checkpoint; gives its path and what the example says is in each file."""
        spec_path = self.folder / "spec.json"
        spec_path.write_text(json.dumps({"files": [{"tensors": f} for f in files], **spec}))
        out = self.folder / name
        return out, json.loads(self._call(container, out, spec_path).stdout)

    def index(self, container, path):
        """What is found in a file or folder."""
        return json.loads(self._call("--index", container, path).stdout)

    def refusal(self, container, path):
        """The words in which a file is refused."""
        ended = self._run("--index", container, path)
        assert ended.returncode == 2, ended.stdout
        return ended.stderr

    def _call(self, *args):
        ended = self._run(*args)
        assert ended.returncode == 0, ended.stderr
        return ended

    def _run(self, *args):
        argv = [str(self.binary), *map(str, args)]
        return subprocess.run(argv, capture_output=True, text=True, timeout=300, check=False)


class Program:
    """The program itself, which saves checkpoints of small models in a folder of its own."""

    def __init__(self, binary, folder):
        self.binary = binary
        self.folder = folder

    def save(self, name, model, ranks, **checkpoint):
        """Saves twice, reads both back and checks their contents; gives the folder of both."""
        counts = {"num_checkpoints_write": 2, "num_checkpoints_read": 2, "verify": True}
        return self.run(name, model, ranks, **(counts | checkpoint))

    def run(self, name, model, ranks, train=None, **checkpoint):
        """Runs a job with checkpoints in the folder `name`; `train` has the sections of one that trains
        as well."""
        folder = self.folder / name
        alone = {"time_between_checkpoints": 0} if train is None else {}
        sections = {
            "framework": "pytorch",
            "workflow": {"train": train is not None, "checkpoint": True},
            "model": {"name": "judged", **model},
            "checkpoint": {"checkpoint_folder": str(folder), **alone, **checkpoint},
        }
        for key, section in (train or {}).items():
            sections[key] = sections.get(key, {}) | section
        # JSON is YAML.
        workload = self.folder / f"{name}.yaml"
        workload.write_text(json.dumps(sections))
        self(workload, "-n", ranks)
        return folder

    def __call__(self, workload, *args):
        """Runs a workload file, or one that is shipped, to its end."""
        out = self.folder / f"{Path(workload).stem}-results"
        argv = [str(self.binary), "run", str(workload), "--out", str(out), "--overwrite"]
        ended = subprocess.run(
            [*argv, *map(str, args)],
            cwd=self.folder,
            capture_output=True,
            text=True,
            timeout=300,
            check=False,
        )
        assert ended.returncode == 0, ended.stdout + ended.stderr
        # A workload that says what has no effect does not test what it seems to.
        assert "warning" not in ended.stderr, ended.stderr


@pytest.fixture
def program(tmp_path):
    """The program, named by FEEDLINE_BIN, with a folder of its own."""
    binary = Path(os.environ["FEEDLINE_BIN"]).resolve()
    assert binary.is_file(), f"no {binary}: cargo build -p feedline"
    return Program(binary, tmp_path)


@pytest.fixture
def example(tmp_path):
    """The example, named by FEEDLINE_CHECKPOINT_WRITE, with a folder of its own."""
    binary = Path(os.environ["FEEDLINE_CHECKPOINT_WRITE"])
    assert binary.is_file(), f"no {binary}: cargo build -p feedline-checkpoint --example write"
    return Example(binary, tmp_path)


@pytest.fixture
def state():
    """Tensors of all types in dictionaries, with lengths around what is aligned."""
    lens = [1, 63, 64, 65, 1000, 70_001]
    return [
        {"path": [group, f"t{i}.{dtype}"], "dtype": dtype, "len": n}
        for group in ("model", "optimizer")
        for i, (dtype, n) in enumerate(zip(DTYPES, lens))
    ] + [{"path": ["empty"], "dtype": "float32", "len": 0}]
