"""What the ranks of a DLIO job would save: file names, dictionaries, lengths.

Written after DLIO's own checkpointing, so that it agrees with Feedline only if Feedline agrees with
DLIO: that of commit e1919d7, since release 2.0.0 has no transformers and reads nothing back. In place
of tensors stand their types and lengths.
"""

from dataclasses import dataclass

import torch

DTYPES = {
    "int8": torch.int8,
    "uint8": torch.uint8,
    "fp16": torch.float16,
    "bf16": torch.bfloat16,
    "fp32": torch.float32,
    "fp64": torch.float64,
}


@dataclass(frozen=True)
class File:
    """One file of a rank. A file of a single layer has no key for it."""

    rank: int
    tensor_rank: int
    copy: int
    stem: str
    state: dict
    layer: int | None = None


def files(model, ranks):
    """The files of all ranks of a transformer, in the order in which they are written."""
    parallelism = model["parallelism"]
    tensor, pipeline = parallelism["tensor"], parallelism["pipeline"]
    zero, model_ranks = parallelism["zero_stage"], tensor * pipeline
    copies = parallelism.get("data", ranks // model_ranks)
    saved = []
    for rank in range(ranks):
        part, copy = rank % model_ranks, rank // model_ranks
        if zero == 0 and copy > 0:
            continue
        place = (rank, rank % tensor, copy)
        stem = f"zero_pp_rank_{copy}_mp_rank_{part}"
        layers = {
            str(layer): layer_state(model, layer, copies)
            for layer in stage_layers(model, rank // tensor % pipeline)
        }
        if zero in (0, 3):
            saved.append(File(*place, f"{stem}_model_states", layers))
        elif copy == 0 and pipeline == 1:
            saved.append(File(*place, f"model_{part}_model_states", layers))
        elif copy == 0:
            for layer, state in layers.items():
                name = f"layer_{layer}-model_{part}_model_states"
                saved.append(File(*place, name, state, int(layer)))
        optimizer = optimizer_state(model, model_ranks, copies if zero else 1)
        saved.append(File(*place, f"{stem}_optim_states", optimizer))
    return saved


def stage_layers(model, stage):
    """The layers of a stage; the embedding belongs to the first, head and last norm to the last."""
    layers, stages = model["num_layers"], model["parallelism"]["pipeline"]
    each, more = divmod(layers, stages)
    first = 1 + stage * each + min(stage, more)
    end = first + each + (1 if stage < more else 0)
    return range(0 if stage == 0 else first, layers + 3 if stage == stages - 1 else end)


def layer_state(model, layer, copies):
    """The tensors of a layer on one rank."""
    shape, parallelism = model["transformer"], model["parallelism"]
    hidden, ffn = shape["hidden_size"], shape["ffn_hidden_size"]
    copies = copies if parallelism["zero_stage"] == 3 else 1

    def cut(length):
        return length // parallelism["tensor"] // copies

    if layer in (0, model["num_layers"] + 1):
        lengths = [cut(hidden * shape["vocab_size"])]
    elif layer == model["num_layers"] + 2:
        lengths = [hidden // copies]
    else:
        attention = hidden * (hidden + 2 * key_values(shape))
        lengths = [
            hidden // copies,
            cut(attention),
            cut(hidden * hidden),
            hidden // copies,
            cut(2 * hidden * ffn),
            cut(hidden * ffn),
        ]
    dtype = DTYPES[model["model_datatype"]]
    return {str(index): (dtype, length) for index, length in enumerate(lengths) if length > 0}


def optimizer_state(model, model_ranks, copies):
    """The tensors of the optimizer on one rank."""
    part = parameters(model) // (model_ranks * copies)
    small = 5 * model["transformer"]["hidden_size"]
    dtype = DTYPES[model["optimizer_datatype"]]
    return {str(index): (dtype, length) for index, length in enumerate([part, small] * 3)}


def parameters(model):
    """All parameters of a transformer."""
    shape = model["transformer"]
    hidden, ffn = shape["hidden_size"], shape["ffn_hidden_size"]
    layer = 2 * hidden + hidden * (hidden + 2 * key_values(shape)) + hidden**2 + 3 * ffn * hidden
    return 2 * shape["vocab_size"] * hidden + hidden + model["num_layers"] * layer


def key_values(shape):
    """The width of keys and of values."""
    return shape["hidden_size"] // shape["num_attention_heads"] * shape["num_kv_heads"]


def described(value):
    """A dictionary of tensors in the same words: types and lengths in place of tensors."""
    if isinstance(value, torch.Tensor):
        (length,) = value.shape
        return value.dtype, length
    return {key: described(inner) for key, inner in value.items()}


def load(path):
    """What DLIO does with a file that it reads back; ours ask for `weights_only` besides."""
    state = torch.load(path)
    assert len(state.keys()) > 0
    return state
