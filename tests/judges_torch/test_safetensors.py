"""safetensors reads our files; we find tensors in its files."""

import golden
import safetensors
import safetensors.torch
from conftest import check


def test_safetensors_reads_what_we_write(example, state):
    path, (printed,) = example.write("safetensors", "ours.safetensors", [state], seed=3)
    joined = [entry | {"path": [".".join(entry["path"])]} for entry in printed]
    loaded = safetensors.torch.load_file(path)
    check(joined, {(name,): tensor for name, tensor in loaded.items()})
    with safetensors.safe_open(path, framework="pt") as opened:
        check(joined, {(name,): opened.get_tensor(name) for name in opened.keys()})
    check(example.index("safetensors", path), {(n,): t for n, t in loaded.items()})


def test_the_file_is_the_one_that_safetensors_writes(example, state, tmp_path):
    path, _ = example.write("safetensors", "ours.safetensors", [state], seed=3)
    theirs = tmp_path / "theirs.safetensors"
    safetensors.torch.save_file(safetensors.torch.load_file(path), theirs)
    assert path.read_bytes() == theirs.read_bytes()


def test_names_that_json_must_escape(example):
    names = ['with "quotes"', "back\\slash", "tab\tnew\nline", "umlaut ü 模"]
    tensors = [{"path": [name], "dtype": "float32", "len": 3} for name in names]
    path, (printed,) = example.write("safetensors", "ours.safetensors", [tensors], seed=3)
    loaded = safetensors.torch.load_file(path)
    check(printed, {(name,): tensor for name, tensor in loaded.items()})
    check(example.index("safetensors", path), {(n,): t for n, t in loaded.items()})


def test_files_by_safetensors_are_indexed(example, tmp_path):
    path = tmp_path / "theirs.safetensors"
    state = golden.flat()
    state["matrix"] = state["model.w"].repeat(4, 1)
    safetensors.torch.save_file(state, path, metadata={"format": "pt"})
    check(example.index("safetensors", path), {(name,): t for name, t in state.items()})
