"""The small models whose checkpoints are judged, and how their tensors are found in the files."""

import json

import pytest
import torch

# Lengths that leave remainders wherever they are cut.
SHAPE = {
    "vocab_size": 101,
    "hidden_size": 36,
    "ffn_hidden_size": 50,
    "num_attention_heads": 4,
    "num_kv_heads": 2,
}

# Ranks, and how they share a model: tensor x pipeline, ZeRO stage.
JOBS = [
    pytest.param(*job, id="{}ranks-tp{}-pp{}-zero{}".format(*job))
    for job in [
        (2, 1, 1, 0),
        (4, 2, 1, 0),
        (4, 2, 2, 0),
        (3, 1, 1, 1),
        (4, 2, 1, 1),
        (4, 1, 2, 1),
        (2, 1, 1, 2),
        (4, 2, 2, 2),
        (3, 1, 1, 3),
        (4, 1, 1, 3),
        (4, 2, 1, 3),
    ]
]


def transformer(tensor=1, pipeline=1, zero=0, dtype="fp16", optimizer_dtype="fp32"):
    """The section `model` of a transformer of five layers."""
    return {
        "type": "transformer",
        "num_layers": 5,
        "model_datatype": dtype,
        "optimizer_datatype": optimizer_dtype,
        "parallelism": {"tensor": tensor, "pipeline": pipeline, "zero_stage": zero},
        "transformer": SHAPE,
    }


def describe_again(folder):
    """Lets a checkpoint's own description say how large its files are now."""
    path = folder / ".feedline-checkpoint.json"
    described = json.loads(path.read_text())
    described["files"] = [
        [name, (folder / name).stat().st_size] for name, _ in described["files"]
    ]
    path.write_text(json.dumps(described))


def states(folder):
    """The dictionaries of all torch files of a checkpoint, by the stems of their names."""
    return {path.stem: torch.load(path, weights_only=True) for path in sorted(folder.glob("*.pt"))}


def wholes(model, files, states_by_stem):
    """The tensors of the whole model, put together from the pieces of the ranks.

    Matrices are cut over the ranks that share a layer, and with ZeRO 3 each of those parts over the
    copies of the model; norms only over the copies, so every rank that shares a layer has its own.
    The optimizer is cut over all ranks, but for its small tensors, which every rank has for itself.
    """
    pieces = {}
    for file in files:
        state = states_by_stem[file.stem]
        if file.stem.endswith("optim_states"):
            for index, tensor in state.items():
                own = f".rank{file.rank}" if int(index) % 2 else ""
                pieces.setdefault(f"optimizer.{index}{own}", {})[file.rank] = tensor
            continue
        layers = state if file.layer is None else {str(file.layer): state}
        for layer, tensors in layers.items():
            for index, tensor in tensors.items():
                own = f".tp{file.tensor_rank}" if is_norm(model, int(layer), int(index)) else ""
                name = f"model.layers.{layer}.{index}{own}"
                pieces.setdefault(name, {})[file.tensor_rank, file.copy] = tensor
    return {name: torch.cat([found[at] for at in sorted(found)]) for name, found in pieces.items()}


def is_norm(model, layer, index):
    """Whether a tensor is as long as the model is wide."""
    layers = model["num_layers"]
    return layer == layers + 2 or 1 <= layer <= layers and index in (0, 3)
