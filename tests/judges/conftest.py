"""What every judge needs: the built program, and a short way to run it."""

import json
import os
import subprocess
from dataclasses import dataclass
from pathlib import Path

import pytest
import yaml


@dataclass(frozen=True)
class Ended:
    """A run of the program that has ended."""

    argv: list
    code: int
    out: str
    err: str

    def ok(self):
        """This run, if it ended with status 0; otherwise the test fails with what it printed."""
        assert self.code == 0, f"{' '.join(self.argv)}\nstatus {self.code}\n{self.out}\n{self.err}"
        return self


class Feedline:
    """The program under test, called as a user would call it, in a folder of its own."""

    def __init__(self, binary, folder):
        self.binary = binary
        self.folder = folder
        # The same program under DLIO's name takes DLIO's command line.
        self.as_dlio = folder / "dlio_benchmark"
        self.as_dlio.symlink_to(binary)

    def __call__(self, *args):
        return self._call([str(self.binary), *map(str, args)])

    def dlio(self, *args):
        """Calls the program through the link named `dlio_benchmark`."""
        return self._call([str(self.as_dlio), *map(str, args)])

    def workload(self, **sections):
        """Writes a workload file of these sections and returns its path."""
        path = self.folder / f"workload_{len(list(self.folder.glob('workload_*.yaml')))}.yaml"
        path.write_text(yaml.safe_dump(sections, sort_keys=False))
        return path

    def _call(self, argv):
        ended = subprocess.run(
            argv,
            capture_output=True,
            text=True,
            cwd=self.folder,
            stdin=subprocess.DEVNULL,
            timeout=300,
            check=False,
        )
        return Ended(argv, ended.returncode, ended.stdout, ended.stderr)


def strict_json(path):
    """Reads JSON as RFC 8259 has it: NaN and Infinity are errors."""

    def refuse(token):
        raise ValueError(f"{path}: {token} is not JSON")

    return json.loads(Path(path).read_text(encoding="utf-8"), parse_constant=refuse)


@pytest.fixture(name="binary", scope="session")
def fixture_binary():
    """The built program, from FEEDLINE_BIN."""
    path = os.environ.get("FEEDLINE_BIN", "")
    if not os.access(path, os.X_OK):
        pytest.exit(
            f"no program at FEEDLINE_BIN={path!r}; build and run everything with: make test", 2
        )
    return Path(path).resolve()


@pytest.fixture(name="feedline")
def fixture_feedline(binary, tmp_path):
    """The program with an empty working folder."""
    return Feedline(binary, tmp_path)


@pytest.fixture(name="presets", scope="session")
def fixture_presets(binary, tmp_path_factory):
    """The text of a shipped workload, by name, as `feedline workloads NAME` prints it."""
    feedline = Feedline(binary, tmp_path_factory.mktemp("presets"))
    texts = {}

    def text(name):
        if name not in texts:
            texts[name] = feedline("workloads", name).ok().out
        return texts[name]

    return text


def generate_two(feedline, **dataset):
    """Generates a data set of two training files in a folder of its own and returns that folder."""
    dataset = {"num_files_train": 2, **dataset}
    data = feedline.folder / f"data-{dataset['format']}-{dataset.get('compression', 'none')}"
    workload = feedline.workload(
        model={"name": "judged"},
        framework="pytorch",
        workflow={"generate_data": True, "train": False},
        dataset=dataset,
        reader={"data_loader": "pytorch", "batch_size": 1},
    )
    out = feedline.folder / f"out-{data.name}"
    feedline("run", workload, "--generate-only", "--data", data, "--out", out).ok()
    return data
