"""The golden files of the Rust tests are still what torch and safetensors write."""

import io
from pathlib import Path

import golden
import safetensors.torch
import torch

GOLDEN = Path(__file__).parents[2] / "crates/checkpoint/tests/golden"


def test_the_golden_torch_file_is_what_torch_writes():
    stream = io.BytesIO()
    torch.save(golden.nested(), stream)
    assert stream.getvalue() == (GOLDEN / "nested.pt").read_bytes()


def test_the_golden_safetensors_file_is_what_safetensors_writes():
    assert safetensors.torch.save(golden.flat()) == (GOLDEN / "flat.safetensors").read_bytes()
