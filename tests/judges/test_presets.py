"""The shipped workloads have the values of those in the published DLIO package.

That package (2.0.0) is older than the key names in use today, so its keys are translated first.
What differs on purpose stands in `DELIBERATE`, each with its reason.
"""

import importlib.metadata

import pytest
from omegaconf import OmegaConf

# Old key -> the name it goes by now.
RENAMED = {
    "model": "model.name",
    "dataset.record_length": "dataset.record_length_bytes",
    "dataset.record_length_stdev": "dataset.record_length_bytes_stdev",
    "dataset.record_length_resize": "dataset.record_length_bytes_resize",
    "checkpoint.optimization_groups": "model.optimization_groups",
    "checkpoint.num_layers": "model.num_layers",
    "checkpoint.layer_parameters": "model.layer_parameters",
    # The size of the opaque model state, read under this name alone.
    "checkpoint.model_size": "model.model_size_bytes",
}
WORKLOADS = {"megatron_deepspeed": "megatron_deepspeed_LLNL"}

RESIZED = "DLIO later cut the job down to a size that a test machine can hold"
UNREAD = "no version of DLIO reads this key; later versions dropped it"
LLNL = "the later file describes another machine and model size"
# (workload, key) -> (value in Feedline, or None where the key is gone, and the reason).
DELIBERATE = {
    ("bert_v100", "workflow.debug"): (None, "waits for a key at start; False is the default"),
    ("dlrm", "dataset.num_samples_per_file"): (1024, RESIZED),
    ("dlrm", "dataset.record_length_bytes"): (671088640, RESIZED),
    ("dlrm", "reader.batch_size"): (1, RESIZED),
    ("dlrm", "reader.batch_size_eval"): (None, RESIZED),
    ("dlrm", "train.total_training_steps"): (None, RESIZED),
    ("dlrm", "evaluation.eval_time"): (None, "the later file does not evaluate"),
    ("dlrm", "workflow.do_eval"): (None, UNREAD),
    ("dlrm", "dataset.keep_files"): (None, "True is the default"),
    ("dlrm", "dataset.eval_num_samples_per_file"): (None, UNREAD),
    ("dlrm", "train.total_eval_steps"): (None, UNREAD),
    ("dlrm", "evaluation.steps_between_evals"): (None, UNREAD),
    ("megatron_deepspeed", "checkpoint.type"): (None, "parsed by DLIO, never used"),
    ("megatron_deepspeed", "reader.batch_size"): (16, LLNL),
    ("megatron_deepspeed", "train.epochs"): (3, LLNL),
    ("megatron_deepspeed", "train.computation_time"): (2.44, LLNL),
    ("megatron_deepspeed", "model.num_layers"): (40, LLNL),
    ("megatron_deepspeed", "model.layer_parameters"): ([52583936, 209715200], LLNL),
}


def published():
    """The workload files of the installed package, by name. The package is never imported."""
    files = importlib.metadata.files("dlio-benchmark")
    return {
        path.stem: path.locate()
        for path in files
        if path.match("dlio_benchmark/configs/workload/*.yaml")
    }


def leaves(tree, prefix=""):
    """Every value that is not a mapping, with its dotted key."""
    for key, value in tree.items():
        if isinstance(value, dict):
            yield from leaves(value, f"{prefix}{key}.")
        else:
            yield f"{prefix}{key}", value


def load(text):
    """The plain tree of a workload file."""
    return OmegaConf.to_container(OmegaConf.create(text), resolve=False)


@pytest.mark.parametrize("name", sorted(published()))
def test_values_are_dlios(presets, name):
    theirs = dict(leaves(load(published()[name].read_text())))
    ours = dict(leaves(load(presets(WORKLOADS.get(name, name)))))
    for key, value in theirs.items():
        key = RENAMED.get(key, key)
        if (name, key) in DELIBERATE:
            expected, reason = DELIBERATE[name, key]
            assert ours.get(key) == expected, reason
            continue
        assert key in ours, f"{key} is missing; DLIO has {value!r}"
        assert (type(ours[key]), ours[key]) == (type(value), value), key


def test_every_deliberate_difference_is_one():
    translated = {
        (name, RENAMED.get(key, key)): value
        for name, path in published().items()
        for key, value in leaves(load(path.read_text()))
    }
    for place, (value, reason) in DELIBERATE.items():
        assert place in translated, f"{place} is not in the published package"
        assert translated[place] != value, f"{place} does not differ: {reason}"


NEWER = [
    "llama_1t", "llama_405b", "llama_70b", "llama_70b_zero3", "llama_7b", "llama_7b_zero3",
    "llama_8b_zero3", "unet3d_a100_s3", "unet3d_h100_s3", "unet3d_v100_s3",
]


def test_all_of_dlios_names_are_listed(feedline):
    listed = feedline("workloads").ok().out.split()
    expected = {WORKLOADS.get(name, name) for name in published()} | set(NEWER)
    assert expected <= set(listed), sorted(expected - set(listed))
