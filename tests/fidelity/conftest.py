"""Runs the real readers and Feedline on the same files under strace, once per session.

Everything is mounted in a mount namespace of the session's own, which goes with the process, so that
nothing is left behind whatever happens to it.
"""

import ctypes
import glob
import importlib.metadata
import json
import os
import platform
import shutil
import subprocess
import sys
import sysconfig
from dataclasses import dataclass
from pathlib import Path

import pytest
import yaml

import datasets
import strace

CLONE_NEWNS = 0x00020000
MS_REC_PRIVATE = 0x4000 | 0x40000
# st_blksize of the file systems on which calls are compared.
BLOCK_SIZES = (4096, 2 << 20)
PACKAGES = ("numpy", "h5py", "pillow", "pandas", "pyarrow", "safetensors", "webdataset",
            "tensorflow-cpu")


@dataclass(frozen=True)
class Measured:
    """Calls of one program on one data set."""

    counts: strace.Counts
    # (file name, offset) of all reads in the order in which they ended.
    order: tuple

    def order_in_files(self):
        """The offsets of each file in their order, whatever was read of other files in between."""
        found = {}
        for name, offset in self.order:
            found.setdefault(name, []).append(offset)
        return tuple(sorted((name, offset) for name, offsets in found.items()
                            for offset in enumerate(offsets)))


def pytest_sessionstart(session):
    """Ends at once, with the command that helps, where nothing can be compared."""
    if os.geteuid() != 0:
        pytest.exit("the readers are compared on file systems of their own, which only root can "
                    "mount; run as root: sudo -E make test", 2)
    for program, package in (("strace", "strace"), ("losetup", "mount"), ("mkfs.ext4", "e2fsprogs")):
        if not shutil.which(program):
            pytest.exit(f"no {program}; bring it with: apt-get install -y {package}", 2)
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.unshare(CLONE_NEWNS) or libc.mount(b"none", b"/", None, MS_REC_PRIVATE, None):
        pytest.exit(f"no mount namespace ({os.strerror(ctypes.get_errno())}); run as root outside "
                    "of a container, or in one with: docker run --privileged", 2)


@pytest.fixture(name="binary", scope="session")
def fixture_binary():
    """The built program, from FEEDLINE_BIN."""
    path = os.environ.get("FEEDLINE_BIN", "")
    if not os.access(path, os.X_OK):
        pytest.exit(
            f"no program at FEEDLINE_BIN={path!r}; build and run everything with: make test", 2
        )
    return Path(path).resolve()


@pytest.fixture(name="torch_python", scope="session")
def fixture_torch_python():
    """The Python of the torch judges, from FEEDLINE_TORCH_PYTHON or where tests/run.sh makes it."""
    cache = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    made = sorted(glob.glob(f"{cache}/feedline/judges-torch-*/complete"))
    found = [str(Path(path).parent / "bin" / "python") for path in made]
    path = os.environ.get("FEEDLINE_TORCH_PYTHON") or (found[-1] if found else "")
    if not os.access(path, os.X_OK):
        pytest.fail("no Python with torch; bring it with: make test-torch")
    return path


@pytest.fixture(name="roots", scope="session")
def fixture_roots(binary, tmp_path_factory):
    """Folders with all data sets, by st_blksize."""
    folder = tmp_path_factory.mktemp("fidelity")
    roots = {}
    for size in BLOCK_SIZES:
        root = folder / f"blocks-{size}"
        root.mkdir()
        huge = "never" if size == 4096 else "always"
        mount("tmpfs", "-o", f"size=2g,huge={huge}", "tmpfs", root)
        probe = root / "probe"
        probe.touch()
        if probe.stat().st_blksize != size:
            pytest.fail(f"st_blksize is {probe.stat().st_blksize}, not {size}, on tmpfs with "
                        f"huge={huge}; the kernel needs CONFIG_TRANSPARENT_HUGEPAGE")
        roots[size] = root
    small, large = (roots[size] for size in BLOCK_SIZES)
    for data_set in datasets.ALL:
        make(binary, data_set, small)
        if data_set.large_blocks:
            shutil.copytree(small / data_set.name, large / data_set.name)
    yield roots
    for root in roots.values():
        subprocess.run(["umount", "--lazy", root], check=True)


def mount(kind, *arguments):
    """Mounts, or fails with the words of mount."""
    ended = subprocess.run(["mount", "-t", kind, *map(str, arguments)], capture_output=True,
                           text=True, check=False)
    if ended.returncode != 0:
        pytest.fail(f"cannot mount {kind}: {ended.stderr.strip()}")


def workload_of(data_set, root):
    """The workload file of a data set: beside `root`, so that reading it is no I/O there."""
    return root.parent / f"{data_set.name}.yaml"


def make(binary, data_set, root):
    """Makes a data set below `root`."""
    workload = workload_of(data_set, root)
    workload.write_text(yaml.safe_dump(data_set.workload(), sort_keys=False))
    if data_set.writer:
        datasets.write(data_set, root)
        return
    call(binary, "run", workload, "--generate-only", "--set", "workflow.generate_data=true",
         "--data", root / data_set.name, "--out", root.parent / f"{data_set.name}-made")


def call(*argv):
    """Runs a command to its end, which must be a good one."""
    ended = subprocess.run(list(map(str, argv)), capture_output=True, text=True, check=False,
                           stdin=subprocess.DEVNULL, timeout=300)
    assert ended.returncode == 0, f"{argv}\n{ended.stdout[-2000:]}\n{ended.stderr[-2000:]}"
    return ended.stdout


def run_of(binary, data_set, root, workers, out):
    """The command line with which Feedline reads a data set once."""
    return [binary, "run", workload_of(data_set, root), "--data", root / data_set.name,
            "--out", out, "--overwrite", "--set", f"reader.read_threads={workers}"]


@pytest.fixture(name="real", scope="session")
def fixture_real(roots, torch_python, tmp_path_factory):
    """What the real reader did: a function of data set, st_blksize and workers.

    One process per loader and number of workers reads all data sets.
    """
    folder = tmp_path_factory.mktemp("real")
    cache = {}

    def recorded(framework, workers):
        if (framework, workers) not in cache:
            plan = folder / f"{framework}-{workers}.json"
            plan.write_text(json.dumps({
                "loader": framework, "workers": workers,
                "packages": [sysconfig.get_path("purelib")],
                "sets": [data_set.plan(root) for size, root in roots.items()
                         for data_set in chosen(framework, workers, size)],
            }))
            python = torch_python if framework == "pytorch" else sys.executable
            cache[framework, workers] = strace.record(
                [python, Path(__file__).with_name("readers.py"), plan],
                folder / f"{framework}-{workers}.log", belongs_to(roots.values()),
                env={**os.environ, "TF_CPP_MIN_LOG_LEVEL": "3"})
        return cache[framework, workers]

    def look(data_set, size, workers):
        calls = recorded(data_set.framework, workers)
        return measured(calls.below(roots[size] / data_set.name))

    return look


def chosen(framework, workers, size):
    """The data sets that are read by a loader with so many workers on such a file system."""
    return [data_set for data_set in datasets.ALL
            if data_set.framework == framework and workers in data_set.workers
            and (size == 4096 or data_set.large_blocks)]


@pytest.fixture(name="ours", scope="session")
def fixture_ours(binary, roots, tmp_path_factory):
    """What Feedline did: a function of data set, st_blksize and workers."""
    folder = tmp_path_factory.mktemp("ours")
    cache = {}

    def look(data_set, size, workers):
        key = (data_set.name, size, workers)
        if key not in cache:
            name = f"{data_set.name}-{size}-{workers}"
            calls = strace.record(
                run_of(binary, data_set, roots[size], workers, folder / name),
                folder / f"{name}.log", belongs_to([roots[size]]))
            cache[key] = measured(readers_only(calls, workers))
        return cache[key]

    return look


def readers_only(calls, workers):
    """The calls of Feedline's readers: its plan and its look at the page cache are no part of the model.

    Workers are threads called `reader N`. Without workers the thread `rank N` reads and looks; it only
    opens what it looks at. TFRecords always have a worker.
    """
    found = calls.of_threads("reader")
    if workers > 0 or found.reads:
        return found
    return calls.of_threads("rank").without_looks()


def belongs_to(roots):
    """Whether a path is that of a data file below one of the roots."""
    prefixes = tuple(f"{root}/" for root in roots)

    def belongs(path):
        return path.startswith(prefixes) and "/train/" in path and not path.endswith("/train/")

    return belongs


def measured(calls):
    """Counts and order."""
    order = tuple((Path(path).name, call.offset) for path, call in calls.reads)
    return Measured(strace.counts(calls), order)


@pytest.fixture(name="results", scope="session")
def fixture_results():
    """What was measured; goes to the file that FEEDLINE_FIDELITY_OUT names."""
    found = {"versions": versions(), "calls": {}, "devices": {}}
    yield found
    path = os.environ.get("FEEDLINE_FIDELITY_OUT")
    if path:
        Path(path).write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")


def versions():
    """Versions of what is compared with."""
    packages = {name: importlib.metadata.version(name) for name in PACKAGES}
    return {"CPython": platform.python_version(), **packages, "torch": torch_version(),
            "Linux": platform.release()}


def torch_version():
    """Version of torch in the requirements of which its environment is made."""
    lines = (Path(__file__).parent.parent / "requirements-torch.txt").read_text(encoding="utf-8")
    return next(line.removeprefix("torch==") for line in lines.splitlines()
                if line.startswith("torch=="))
