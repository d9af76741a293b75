"""The distributed checkpoints of whole runs: torch puts them together, and cuts them anew."""

import os
import shutil
import socket

import dlio
import pytest
import torch
import torch.distributed as dist
import torch.distributed.checkpoint as dcp
import torch.multiprocessing as mp
from models import JOBS, describe_again, states, transformer, wholes
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.tensor import DTensor, Shard, distribute_tensor

NAME = "global_epoch1_step2"


def same_model(program, model, ranks, **checkpoint):
    """A distributed checkpoint, and the tensors of the model from the torch files of an equal run."""
    folder = program.save("dcp", model, ranks, container="dcp", **checkpoint) / NAME
    loaded = states(program.save("torch", model, ranks, **checkpoint) / NAME)
    return folder, wholes(model, dlio.files(model, ranks), loaded)


def empty(tensors):
    """Room for the same tensors, with a value that none of them has."""
    return {name: torch.full_like(value, -1) for name, value in tensors.items()}


def check(found, expected):
    """The same tensors, to the last bit."""
    assert found.keys() == expected.keys()
    different = [
        name
        for name, value in expected.items()
        if found[name].dtype != value.dtype or not torch.equal(found[name], value)
    ]
    assert different == []


@pytest.mark.parametrize("ranks, tensor, pipeline, zero", JOBS)
def test_torch_puts_the_model_together(program, ranks, tensor, pipeline, zero):
    model = transformer(tensor, pipeline, zero, dtype="bf16")
    folder, expected = same_model(program, model, ranks)
    metadata = dcp.FileSystemReader(folder).read_metadata()
    assert metadata.state_dict_metadata.keys() == expected.keys()
    state = empty(expected)
    dcp.load(state, checkpoint_id=folder)
    check(state, expected)
    writers = sorted({file.rank for file in dlio.files(model, ranks)})
    names = sorted(path.name for path in folder.glob("*.distcp"))
    assert names == [f"__{rank}_0.distcp" for rank in writers]


@pytest.mark.parametrize("way", [{"save_mode": "async"}, {"randomize_tensor": False}])
def test_torch_puts_other_models_together(program, way):
    model = transformer(tensor=2, zero=3)
    folder, expected = same_model(program, model, 4, **way)
    state = empty(expected)
    dcp.load(state, checkpoint_id=folder)
    check(state, expected)
    if "randomize_tensor" in way:
        assert all(torch.equal(value, torch.ones_like(value)) for value in state.values())


def load_rank(rank, folder, port):
    """One of two ranks: takes its half of every tensor, and leaves that beside the checkpoint."""
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port))
    dist.init_process_group("gloo", rank=rank, world_size=2)
    mesh = init_device_mesh("cpu", (2,))
    listed = dcp.FileSystemReader(folder).read_metadata().state_dict_metadata
    state = {}
    for name, tensor in listed.items():
        room = torch.full(tensor.size, -1, dtype=tensor.properties.dtype)
        state[name] = distribute_tensor(room, mesh, [Shard(0)])
    dcp.load(state, checkpoint_id=folder)
    assert all(isinstance(value, DTensor) for value in state.values())
    torch.save({name: value.to_local() for name, value in state.items()}, f"{folder}.{rank}.pt")
    dist.destroy_process_group()


def test_two_processes_of_torch_take_their_halves(program):
    model = transformer(tensor=2, zero=3)
    folder, expected = same_model(program, model, 4)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    mp.spawn(load_rank, args=(str(folder), port), nprocs=2)
    halves = [torch.load(f"{folder}.{rank}.pt", weights_only=True) for rank in range(2)]
    # Torch's halves, the first one longer where the length is odd, are none of the pieces saved.
    for half, take in zip(halves, (lambda two: two[0], lambda two: two[1])):
        check(half, {name: take(value.chunk(2)) for name, value in expected.items()})


def test_what_torch_saves_again_is_loaded_by_other_ranks(program):
    model = transformer(zero=3)
    folder, expected = same_model(program, model, 4)
    state = empty(expected)
    dcp.load(state, checkpoint_id=folder)
    # Everything is in one file now, and nothing in the other three.
    dcp.save(state, checkpoint_id=folder)
    for rank in (1, 2, 3):
        (folder / f"__{rank}_0.distcp").write_bytes(b"")
    describe_again(folder)
    shutil.rmtree(folder.with_name("global_epoch1_step1"))
    read = {"num_checkpoints_write": 0, "num_checkpoints_read": 1, "container": "dcp"}
    for ranks in (4, 2):
        program.run("dcp", model, ranks, verify=True, **read)
    state["model.layers.3.4"][1000] += 1
    dcp.save(state, checkpoint_id=folder)
    with pytest.raises(AssertionError, match=r"__0_0\.distcp: tensor model\.layers\.3\.4 differs from what was saved"):
        program.run("dcp", model, 2, verify=True, **read)
