"""What the machine itself can do with files and memory, measured beside the programs."""

import json
import mmap
import os
import shutil
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor

from usage import CommandFailed

GIB = 1 << 30
MIB = 1 << 20
BLOCK_BYTES = 8 * MIB
# Copies memory whose pages are there, huge ones where the system has them. One copy warms up.
MEMCPY = """
import ctypes, json, mmap, sys, time
size = int(sys.argv[1])
def touched(fill):
    memory = mmap.mmap(-1, size, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    memory.madvise(mmap.MADV_HUGEPAGE)
    address = ctypes.addressof(ctypes.c_char.from_buffer(memory))
    ctypes.memset(address, fill, size)
    return memory, address
source, target = touched(1), touched(2)
seconds = []
for _ in range(4):
    begin = time.monotonic()
    ctypes.memmove(target[1], source[1], size)
    seconds.append(time.monotonic() - begin)
print(json.dumps(seconds[1:]))
"""


class Limits:
    """Measures in a folder of its own, which it leaves empty."""

    def __init__(self, folder):
        self.folder = folder / "limits"

    def fio(self, size, jobs):
        """Bytes a second that so many writers, then readers, of fio move past the page cache. Each
        has a file of its own; the time of the writers ends when the device has everything."""
        fio = shutil.which("fio")
        if fio is None:
            raise FileNotFoundError("no fio; install it with: apt-get install -y fio")
        self.folder.mkdir(exist_ok=True)
        rates = {}
        for way, more in (("write", ["--end_fsync=1", "--fallocate=none"]), ("read", [])):
            argv = [
                fio, "--name=limit", f"--rw={way}", f"--bs={BLOCK_BYTES}", "--direct=1",
                "--ioengine=psync", f"--numjobs={jobs}", f"--size={size // jobs}",
                f"--directory={self.folder}", "--group_reporting", "--output-format=json", *more,
            ]
            done = subprocess.run(argv, capture_output=True, text=True, check=False)
            if done.returncode != 0:
                raise CommandFailed(f"fio ended with {done.returncode}: {done.stderr[-300:]}")
            moved = json.loads(done.stdout)["jobs"][0][way]
            rates[way] = moved["io_bytes"] / (moved["runtime"] / 1e3)
        shutil.rmtree(self.folder)
        return rates

    def huge(self, size, jobs):
        """The same without fio, whose buffers lie in small pages: those of these threads lie in
        huge ones, which some machines fill and empty several times as fast."""
        self.folder.mkdir(exist_ok=True)
        buffers = [huge_buffer(BLOCK_BYTES) for _ in range(jobs)]

        def write(job):
            with self.open_direct(job, os.O_WRONLY | os.O_CREAT) as file:
                for number in range(size // jobs // BLOCK_BYTES):
                    moved = os.pwrite(file.fileno(), buffers[job], number * BLOCK_BYTES)
                    check_whole(moved)
                os.fsync(file.fileno())

        def read(job):
            with self.open_direct(job, os.O_RDONLY) as file:
                for number in range(size // jobs // BLOCK_BYTES):
                    moved = os.preadv(file.fileno(), [buffers[job]], number * BLOCK_BYTES)
                    check_whole(moved)

        rates = {"write": size / threads_s(write, jobs), "read": size / threads_s(read, jobs)}
        shutil.rmtree(self.folder)
        return rates

    def open_direct(self, job, flags):
        """The file of a writer or reader."""
        handle = os.open(self.folder / f"huge.{job}", flags | os.O_DIRECT)
        return os.fdopen(handle, "wb" if flags & os.O_WRONLY else "rb", buffering=0)

    def buffered_write(self, size):
        """Bytes a second of one writer through the page cache, `fsync` included, the faster of two
        times: on virtual machines the first pays for memory that the host has to bring."""
        block = os.urandom(BLOCK_BYTES)
        seconds = []
        for _ in range(2):
            self.folder.mkdir(exist_ok=True)
            begin = time.monotonic()
            with open(self.folder / "buffered", "wb", buffering=0) as file:
                for _ in range(size // BLOCK_BYTES):
                    file.write(block)
                os.fsync(file.fileno())
            seconds.append(time.monotonic() - begin)
            shutil.rmtree(self.folder)
        return size / min(seconds)

    @staticmethod
    def memcpy_s(size):
        """Seconds in which one thread copies as much memory, the fastest of three times."""
        argv = [sys.executable, "-c", MEMCPY, str(size)]
        return min(json.loads(subprocess.check_output(argv)))


def huge_buffer(size):
    """Memory in huge pages, touched."""
    memory = mmap.mmap(-1, size, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    memory.madvise(mmap.MADV_HUGEPAGE)
    memory[:] = os.urandom(size)
    return memory


def check_whole(moved):
    """Raises ValueError if a block was not moved as a whole."""
    if moved != BLOCK_BYTES:
        raise ValueError(f"a block of {BLOCK_BYTES} bytes was cut to {moved}")


def threads_s(work, jobs):
    """Seconds in which so many threads do their work, each told its number."""
    with ThreadPoolExecutor(jobs) as threads:
        begin = time.monotonic()
        # The list makes the errors of the threads those of this one.
        list(threads.map(work, range(jobs)))
        return time.monotonic() - begin
