"""Writes the golden files of crates/checkpoint/tests/golden: `python golden.py FOLDER`.

What torch and safetensors write for a few small tensors, to be read and compared in the Rust tests.
"""

import os
import sys
from pathlib import Path

import safetensors.torch
import torch
import torch.distributed as dist
import torch.distributed.checkpoint as dcp
import torch.multiprocessing as mp
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.tensor import Shard, distribute_tensor


def nested():
    """All six types in dictionaries, an empty tensor among them."""
    return {
        "model": {
            "w": torch.arange(3, dtype=torch.float32),
            "b": torch.arange(5, dtype=torch.int8),
        },
        "opt": {
            "m": torch.arange(2, dtype=torch.bfloat16),
            "v": torch.arange(3, dtype=torch.float64),
            "h": torch.arange(2, dtype=torch.float16),
        },
        "u": torch.arange(4, dtype=torch.uint8),
        "e": torch.empty(0),
    }


def flat():
    """The same tensors with dots in their names."""
    state = nested()
    inner = {f"{k}.{n}": t for k in ("model", "opt") for n, t in state[k].items()}
    return inner | {"u": state["u"], "e": state["e"]}


def sharded(mesh):
    """A state of two ranks: a vector and a matrix in two pieces, a tensor that both have, a number."""
    vector = torch.arange(10, dtype=torch.float32)
    matrix = torch.arange(6, dtype=torch.bfloat16).reshape(2, 3)
    return {
        "layers": {
            "0": distribute_tensor(vector, mesh, [Shard(0)]),
            "w": distribute_tensor(matrix, mesh, [Shard(0)]),
        },
        "both": torch.arange(4, dtype=torch.int8),
        "step": 5,
    }


def save_rank(rank, folder, threads, port):
    """One of the two ranks that save [`sharded`] with torch's own writer."""
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port))
    dist.init_process_group("gloo", rank=rank, world_size=2)
    writer = dcp.FileSystemWriter(folder, thread_count=threads)
    dcp.save(sharded(init_device_mesh("cpu", (2,))), storage_writer=writer)
    dist.destroy_process_group()


def save_stock(folder, threads, port):
    """Saves with two processes."""
    mp.spawn(save_rank, args=(str(folder), threads, port), nprocs=2)


if __name__ == "__main__":
    target = Path(sys.argv[1])
    with open(target / "nested.pt", "wb") as stream:
        torch.save(nested(), stream)
    safetensors.torch.save_file(flat(), target / "flat.safetensors")
    save_stock(target / "dcp", 1, 29534)
