"""The checkpoints of whole runs: torch and safetensors find in them what DLIO would save."""

import json

import dlio
import pytest
import safetensors.torch
import torch
from conftest import flattened
from models import JOBS, describe_again, states, transformer

NAMES = ["global_epoch1_step1", "global_epoch1_step2"]
WAYS = {
    "async": {"save_mode": "async", "saves_in_flight": 2},
    "small chunks": {"streams": 3, "chunk_size": 4096},
    "page cache": {"odirect": False, "fsync": True},
}

# The least of a thousand elements is below, the greatest above; brain floats begin at a half.
RANGES = {"int8": (-120, 120), "uint8": (5, 250), "bf16": (0.51, 0.98)}


def listed(folder):
    """The files of a checkpoint that other tools look at."""
    return sorted(path.name for path in folder.iterdir() if not path.name.startswith("."))


def contents(folder):
    """Every byte below a folder."""
    return {str(p.relative_to(folder)): p.read_bytes() for p in folder.rglob("*") if p.is_file()}


def keys(state, path=()):
    """The paths of what is no dictionary."""
    if not isinstance(state, dict):
        return [path]
    return [inner for key in state for inner in keys(state[key], (*path, key))]


def check_values(tensor):
    """Random values in the range that DLIO draws from, and not all the same."""
    if tensor.dtype.is_floating_point:
        assert 0 <= tensor.min() and tensor.max() < 1
    if tensor.numel() >= 36:
        assert tensor.unique().numel() > 12


@pytest.mark.parametrize("ranks, tensor, pipeline, zero", JOBS)
def test_torch_loads_what_dlio_would_save(program, ranks, tensor, pipeline, zero):
    model = transformer(tensor, pipeline, zero)
    saved = program.save("saved", model, ranks)
    expected = {file.stem: file.state for file in dlio.files(model, ranks)}
    assert sorted(path.name for path in saved.iterdir()) == NAMES
    loaded = [states(saved / name) for name in NAMES]
    for name, found in zip(NAMES, loaded):
        assert listed(saved / name) == sorted(f"{stem}.pt" for stem in expected)
        for stem, state in expected.items():
            assert dlio.described(found[stem]) == state
            # Keys stand in the order in which DLIO makes them.
            assert [*flattened(found[stem])] == keys(state)
            assert dlio.described(dlio.load(saved / name / f"{stem}.pt")) == state
            for value in flattened(found[stem]).values():
                check_values(value)
    # The second checkpoint is not the first once more, in no tensor.
    first, second = (flattened(found) for found in loaded)
    assert [path for path, value in first.items() if torch.equal(value, second[path])] == []


@pytest.mark.parametrize("dtype", dlio.DTYPES)
def test_elements_have_the_type_and_the_range_that_was_asked_for(program, dtype):
    model = transformer(zero=1, dtype=dtype, optimizer_dtype=dtype)
    saved = program.save("saved", model, 2)
    for found in states(saved / NAMES[0]).values():
        for value in flattened(found).values():
            assert value.dtype == dlio.DTYPES[dtype]
            check_values(value)
            if value.numel() >= 1000:
                low, high = RANGES.get(dtype, (0.02, 0.98))
                assert value.min() < low and high < value.max()


@pytest.mark.parametrize("dtype", dlio.DTYPES)
def test_tensors_that_are_not_random_are_ones(program, dtype):
    model = transformer(zero=3, dtype=dtype, optimizer_dtype=dtype)
    saved = program.save("saved", model, 2, randomize_tensor=False)
    found = flattened(states(saved / NAMES[1]))
    assert len(found) == 2 * (3 + 5 * 6 + 6)
    for value in found.values():
        assert torch.equal(value, torch.ones_like(value))


def test_a_model_of_explicit_lengths(program):
    model = {
        "model_size_bytes": 5000,
        "num_layers": 2,
        "layer_parameters": [300, 70],
        "optimization_groups": [1000, 333],
        "parallelism": {"tensor": 2, "pipeline": 1, "zero_stage": 0},
    }
    saved = program.save("saved", model, 2)
    layer = {"0": (torch.int8, 150), "1": (torch.int8, 35)}
    groups = {
        str(index): {key: (torch.int8, length) for key in ("a", "b")}
        for index, length in enumerate([1000, 333])
    }
    expected = {}
    for rank in range(2):
        stem = f"zero_pp_rank_0_mp_rank_{rank}"
        expected |= {
            f"model_states-{rank}": {"a": (torch.int8, 5000)},
            f"{stem}_model_states": {"1": layer, "2": layer},
            f"{stem}_optim_states": groups | {"combined": (torch.int8, 1333)},
        }
    found = states(saved / NAMES[0])
    assert {stem: dlio.described(state) for stem, state in found.items()} == expected


@pytest.mark.parametrize("ranks, tensor, pipeline, zero", JOBS)
def test_safetensors_loads_the_same_tensors(program, ranks, tensor, pipeline, zero):
    model = transformer(tensor, pipeline, zero, dtype="bf16")
    torch_folder = program.save("torch", model, ranks) / NAMES[1]
    folder = program.save("safe", model, ranks, container="safetensors") / NAMES[1]
    expected = states(torch_folder)
    assert listed(folder) == sorted(f"{stem}.safetensors" for stem in expected)
    for stem, state in expected.items():
        loaded = safetensors.torch.load_file(folder / f"{stem}.safetensors")
        tensors = {".".join(path): value for path, value in flattened(state).items()}
        assert loaded.keys() == tensors.keys()
        for name, value in tensors.items():
            assert loaded[name].dtype == value.dtype
            assert torch.equal(loaded[name], value)


def test_raw_files_are_the_same_tensors_and_an_index(program):
    model = transformer(tensor=2, zero=1)
    torch_folder = program.save("torch", model, 4) / NAMES[0]
    folder = program.save("raw", model, 4, container="raw") / NAMES[0]
    expected = states(torch_folder)
    assert listed(folder) == sorted(f"{stem}.bin" for stem in expected)
    for stem, state in expected.items():
        data = (folder / f"{stem}.bin").read_bytes()
        assert data[-8:] == b"FEEDRAW1"
        length = int.from_bytes(data[-16:-8], "little")
        index = json.loads(data[-16 - length : -16])["tensors"]
        tensors = flattened(state)
        assert [tuple(entry["path"]) for entry in index] == [*tensors]
        for entry, value in zip(index, tensors.values()):
            dtype = getattr(torch, entry["dtype"])
            found = torch.frombuffer(
                bytearray(data), dtype=dtype, count=entry["len"], offset=entry["at"]
            )
            assert found.dtype == value.dtype
            assert torch.equal(found, value)


@pytest.mark.parametrize("container", ["torch", "safetensors", "dcp", "raw"])
def test_every_way_of_saving_writes_the_same_bytes(program, container):
    model = transformer(tensor=2, zero=1)
    plain = contents(program.save("plain", model, 4, container=container))
    # Layers of two ranks and optimizers of four; dcp has a file a rank and its metadata; and in each
    # checkpoint there is its description.
    assert len(plain) == 2 * ((4 + 1 if container == "dcp" else 2 + 4) + 1)
    for name, way in WAYS.items():
        found = contents(program.save(name, model, 4, container=container, **way))
        assert found == plain, name


def test_a_state_in_memory_is_saved_as_it_is(program):
    model = transformer(zero=2)
    for way in ({}, WAYS["async"]):
        saved = program.save("saved", model, 2, state="resident", **way)
        first, second = (flattened(states(saved / name)) for name in NAMES)
        assert len(first) == (3 + 5 * 6) + 2 * 6
        for path, value in first.items():
            check_values(value)
            assert torch.equal(value, second[path])


@pytest.mark.parametrize("mode", ["sync", "async"])
def test_checkpoints_of_a_training_job(program, mode):
    model = transformer(zero=1)
    train = {
        "workflow": {"generate_data": True},
        "dataset": {
            "data_folder": str(program.folder / "data"),
            "format": "npz",
            "num_files_train": 12,
            "record_length_bytes": 1000,
        },
        "reader": {"data_loader": "pytorch", "batch_size": 1, "read_threads": 1},
        "train": {"epochs": 2, "computation_time": 0.001},
    }
    saved = program.run(
        "saved", model, 2, train, steps_between_checkpoints=2, keep_last=3, save_mode=mode
    )
    # Of six steps an epoch, the last three of those that were saved.
    names = sorted(path.name for path in saved.iterdir())
    assert names == [f"global_epoch2_step{step}" for step in (2, 4, 6)]
    expected = {file.stem: file.state for file in dlio.files(model, 2)}
    loaded = [states(saved / name) for name in names]
    for found in loaded:
        assert {stem: dlio.described(state) for stem, state in found.items()} == expected
    first, *others = (flattened(found) for found in loaded)
    for other in others:
        assert [path for path, value in first.items() if torch.equal(value, other[path])] == []


def test_what_torch_saves_again_is_loaded_and_checked(program):
    model = transformer(tensor=2, zero=1)
    saved = program.save("saved", model, 4)
    for path in saved.rglob("*.pt"):
        torch.save(torch.load(path), path)
    for name in NAMES:
        describe_again(saved / name)
    read = {"num_checkpoints_write": 0, "num_checkpoints_read": 2, "verify": True}
    program.run("saved", model, 4, **read)
    # The check is one: a single element of one file is found.
    path = saved / NAMES[1] / "model_1_model_states.pt"
    state = torch.load(path)
    state["3"]["4"][1000] += 1
    torch.save(state, path)
    found = r"model_1_model_states\.pt: tensor 3\.4 differs from what was saved"
    with pytest.raises(AssertionError, match=found):
        program.run("saved", model, 4, **read)


def test_the_golden_sizes_of_a_shipped_workload(program):
    settings = {
        "checkpoint.checkpoint_folder": program.folder / "saved",
        "checkpoint.mode": "subset",
        "checkpoint.time_between_checkpoints": 0,
        "checkpoint.num_checkpoints_write": 1,
        "checkpoint.num_checkpoints_read": 0,
        "model.parallelism.data": 1024,
    }
    arguments = [word for key, value in settings.items() for word in ("--set", f"{key}={value}")]
    program("llama_8b_zero3", "-n", 1, *arguments)
    found = states(program.folder / "saved" / NAMES[0])
    sizes = {
        stem: sum(value.nbytes for value in flattened(state).values())
        for stem, state in found.items()
    }
    assert sizes == {
        "zero_pp_rank_0_mp_rank_0_model_states": 15_684_104,
        "zero_pp_rank_0_mp_rank_0_optim_states": 94_350_384,
    }
    model = {
        "num_layers": 32,
        "model_datatype": "fp16",
        "optimizer_datatype": "fp32",
        "parallelism": {"tensor": 1, "pipeline": 1, "data": 1024, "zero_stage": 3},
        "transformer": {
            "vocab_size": 128_256,
            "hidden_size": 4096,
            "ffn_hidden_size": 14_336,
            "num_attention_heads": 32,
            "num_kv_heads": 8,
        },
    }
    assert dlio.parameters(model) == 8_030_261_248
    assert {stem: dlio.described(state) for stem, state in found.items()} == {
        file.stem: file.state for file in dlio.files(model, 1)
    }
    for value in flattened(found).values():
        check_values(value)
