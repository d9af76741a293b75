"""What a block device gets to do for a sample: Feedline's reads and those of the real reader."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

import datasets
from conftest import call, make, run_of
from readers import reads_of_device

# I/Os and bytes per sample, relative.
TOLERANCE = 0.10
READ_AHEAD_KB = (128, 2560)
NAMES = ("npz-small", "npz-medium", "npz-deflated", "npy-small", "npy-medium", "hdf5-small",
         "hdf5-medium", "hdf5-4", "jpeg-small", "jpeg-medium", "png-small", "png-medium", "csv",
         "indexed")
SETS = {data_set.name: data_set for data_set in datasets.ALL if data_set.name in NAMES}
DEVICE_BYTES = 256 << 20


class Device:
    """A loop device with ext4 on it, mounted in the namespace of this session."""

    def __init__(self, folder):
        image = folder / "image"
        with open(image, "wb") as file:
            file.truncate(DEVICE_BYTES)
        # No journal and no lazy initialization: nothing but the readers uses the device.
        call("mkfs.ext4", "-q", "-O", "^has_journal", "-E",
             "lazy_itable_init=0,lazy_journal_init=0,nodiscard", image)
        ended = subprocess.run(["losetup", "--find", "--show", image], capture_output=True,
                               text=True, check=False)
        if ended.returncode != 0:
            pytest.fail(f"no loop device: {ended.stderr.strip()}; bring it with: modprobe loop, "
                        "or in a container: docker run --privileged -v /dev:/dev")
        self.path = ended.stdout.strip()
        self.name = Path(self.path).name
        # Detached while it is in use, the device goes with its last user: this process or its mount.
        self.held = os.open(self.path, os.O_RDONLY)
        call("losetup", "--detach", self.path)
        self.root = folder / "mounted"
        self.root.mkdir()

    def read_ahead(self, kib):
        """Sets how far the kernel reads ahead."""
        (Path("/sys/block") / self.name / "queue" / "read_ahead_kb").write_text(str(kib))

    def mount(self):
        """Mounts, cold: pages go with the file system. Without the option a thread of the kernel reads
        bitmaps some time later."""
        call("mount", "-o", "noatime,no_prefetch_block_bitmaps", self.path, self.root)

    def unmount(self):
        """Unmounts, so that nothing of the files stays in memory."""
        call("umount", self.root)

    def remount(self):
        """Makes everything cold but names and inodes, whose reading is not that of samples."""
        self.unmount()
        self.mount()
        for folder, _, files in os.walk(self.root):
            for name in files:
                os.stat(os.path.join(folder, name))

    def remove(self):
        """Lets the device go."""
        subprocess.run(["umount", self.root], capture_output=True, check=False)
        os.close(self.held)


@pytest.fixture(name="device", scope="module")
def fixture_device(binary, tmp_path_factory):
    """The device with all data sets on it."""
    made = Device(tmp_path_factory.mktemp("device"))
    try:
        made.mount()
        for data_set in SETS.values():
            make(binary, data_set, made.root)
        yield made
    finally:
        made.remove()


@pytest.fixture(name="real_ios", scope="module")
def fixture_real_ios(device, tmp_path_factory):
    """I/Os of the real readers by data set and read-ahead; one process reads all data sets."""
    cache = {}

    def look(name, kib):
        if kib not in cache:
            plan = tmp_path_factory.mktemp("plan") / "plan.json"
            plan.write_text(json.dumps({
                "loader": "plain", "device": device.name,
                "sets": [data_set.plan(device.root) for data_set in SETS.values()],
            }))
            device.read_ahead(kib)
            device.remount()
            cache[kib] = json.loads(call(sys.executable, Path(__file__).with_name("readers.py"), plan))
        return cache[kib][name]

    return look


@pytest.mark.parametrize("kib", READ_AHEAD_KB)
@pytest.mark.parametrize("name", SETS)
def test_device_ios(binary, device, real_ios, results, tmp_path, name, kib):
    data_set = SETS[name]
    theirs = real_ios(name, kib)
    device.read_ahead(kib)
    device.remount()
    before = reads_of_device(device.name)
    call(*run_of(binary, data_set, device.root, 1, tmp_path / "out"))
    after = reads_of_device(device.name)
    mine = {key: after[key] - before[key] for key in after}
    results["devices"][f"{name}/{kib}"] = {
        "data_set": name, "format": data_set.format, "variant": data_set.variant,
        "read_ahead_kb": kib, "samples": data_set.samples, "real": theirs, "feedline": mine,
    }
    assert theirs["ios"] > 0, "the real reader caused no I/O: the device was not cold"
    for key in ("ios", "bytes"):
        assert abs(mine[key] - theirs[key]) <= TOLERANCE * theirs[key], (
            f"{key} of {data_set.samples} samples: {mine[key]}, not {theirs[key]}")
