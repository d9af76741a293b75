"""How fast PyTorch and safetensors save and load a state; runs in the peers' environment.

usage: torch_checkpoints.py FOLDER TENSOR_BYTES TENSORS CASE...
CASE is `torch`, `torch_no_crc`, `safetensors`, `dcp_N` (N threads that write), `async_fresh` or
`async_reused` (the memory that is copied to). Prints a line of JSON for each case.

Saves end when the device has everything. Each is made twice, because the first also pays for
modules and, on virtual machines, for memory that the host has to bring. Loads begin with an empty
page cache and end when every page was seen. What torch spreads over threads, which is copying, is
measured with one and with one for each CPU.
"""

import functools
import json
import os
import shutil
import sys
import time
from pathlib import Path

import torch
import torch.distributed.checkpoint as dcp
from safetensors.torch import load_file, save_file
from torch.distributed.checkpoint.staging import DefaultStager, StagingOptions

PAGE_BYTES = 4096
STEP_S = 0.02
SAVES = 2
THREADS = sorted({1, len(os.sched_getaffinity(0))})


def timed(call):
    """The seconds of a call."""
    begin = time.monotonic()
    call()
    return time.monotonic() - begin


def sync(path):
    """Waits until a file or a folder is on the device."""
    handle = os.open(path, os.O_RDONLY)
    os.fsync(handle)
    os.close(handle)


def forget(folder):
    """Drops what the page cache holds of the files."""
    for path in folder.iterdir():
        handle = os.open(path, os.O_RDONLY)
        os.posix_fadvise(handle, 0, 0, os.POSIX_FADV_DONTNEED)
        os.close(handle)


def touch(state):
    """Looks into every page, because some loads only map the file."""
    return sum(int(tensor[::PAGE_BYTES].sum()) for tensor in state.values())


def by_threads(measured):
    """A measurement for every number of threads inside torch."""
    results = {}
    for threads in THREADS:
        torch.set_num_threads(threads)
        results[str(threads)] = measured()
    torch.set_num_threads(1)
    return results


class Cases:
    """A state and a folder for its files, which is empty before each save."""

    def __init__(self, folder, tensor_bytes, tensors):
        self.folder = folder
        pattern = torch.frombuffer(bytearray(os.urandom(tensor_bytes)), dtype=torch.int8)
        self.state = {f"tensor_{number}": pattern.clone() for number in range(tensors)}

    def saves(self, save):
        """The seconds of saves in a row; the last one's files stay."""
        seconds = []
        for _ in range(SAVES):
            shutil.rmtree(self.folder, ignore_errors=True)
            self.folder.mkdir(parents=True)
            seconds.append(timed(save))
        return seconds

    def file(self, name, save, load):
        """A state in one file."""
        path = self.folder / name

        def durable():
            save(self.state, path)
            sync(path)
            sync(self.folder)

        results = {"save_s": self.saves(durable)}
        if load:
            forget(self.folder)
            results["load_s"] = {"1": timed(lambda: touch(load(path)))}
        return results

    def torch(self, crc):
        """What most people use."""
        torch.serialization.set_crc32_options(crc)
        # How it was saved makes no difference to a load.
        load = functools.partial(torch.load, weights_only=True) if crc else None
        return self.file("state.pt", torch.save, load)

    def safetensors(self):
        """Its own functions for whole files."""
        return self.file("state.safetensors", save_file, load_file)

    def dcp(self, threads):
        """PyTorch's distributed checkpoints, by one process, loaded into tensors that are there."""
        def save():
            writer = dcp.FileSystemWriter(self.folder, thread_count=threads, sync_files=True)
            dcp.save(self.state, storage_writer=writer, no_dist=True)

        def cold():
            forget(self.folder)
            reader = dcp.FileSystemReader(self.folder)
            return timed(lambda: dcp.load(self.state, storage_reader=reader, no_dist=True))

        return {"save_s": self.saves(save), "load_s": by_threads(cold)}

    def behind(self, reused):
        """A save behind the caller's back, whose steps are sleeps, as those of the job compared."""
        stager = DefaultStager(StagingOptions(False, False, False, False)) if reused else None
        if stager:
            stager.stage(self.state)
        alone_s = timed(lambda: [time.sleep(STEP_S) for _ in range(50)]) / 50

        def one():
            shutil.rmtree(self.folder, ignore_errors=True)
            writer = dcp.FileSystemWriter(self.folder, sync_files=True)
            begin = time.monotonic()
            future = dcp.async_save(
                self.state, storage_writer=writer, async_stager=stager, no_dist=True
            )
            resumed = time.monotonic()
            steps = []
            while not future.done():
                steps.append(timed(lambda: time.sleep(STEP_S)))
            future.result()
            return {
                "pause_s": resumed - begin, "background_s": time.monotonic() - resumed,
                "slowdown": sum(steps) / max(len(steps), 1) / alone_s,
            }

        # What fresh memory costs does not depend on threads.
        results = by_threads(one) if reused else {"1": one()}
        if stager:
            stager.close()
        return results

    def run(self, case):
        """Measures a case, leaves no file."""
        name, _, detail = case.partition("_")
        call = {
            "torch": lambda: self.torch(detail != "no_crc"),
            "safetensors": self.safetensors,
            "dcp": lambda: self.dcp(int(detail)),
            "async": lambda: self.behind(detail == "reused"),
        }[name]
        result = call()
        shutil.rmtree(self.folder)
        return result


def main(argv):
    """Runs the cases one after the other."""
    folder, tensor_bytes, tensors, *names = argv
    torch.set_num_threads(1)
    cases = Cases(Path(folder), int(tensor_bytes), int(tensors))
    for name in names:
        print(json.dumps({"case": name, **cases.run(name)}), flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
