"""torch.distributed.checkpoint loads our folders; we find every piece in those that it saved."""

import socket
import zipfile

import golden
import pytest
import torch
import torch.distributed.checkpoint as dcp
from conftest import crc
from torch.distributed.checkpoint.default_planner import _EmptyStateDictLoadPlanner
from torch.distributed.checkpoint.format_utils import dcp_to_torch_save
from torch.distributed.checkpoint.state_dict_loader import _load_state_dict

DTYPES = {"a.weight": "float32", "b": "bfloat16", "c": "int8", "whole": "float64"}


def ranks():
    """The files of three ranks: tensors in uneven pieces, one that only the last rank has."""
    files = []
    for rank in range(3):
        tensors = [
            {"name": "a.weight", "total": 100, "first": 40 * rank, "len": 40 if rank < 2 else 20},
            {"name": "b", "total": 9, "first": 3 * rank, "len": 3},
            {"name": "c", "total": 5, "first": 5 * min(rank, 1), "len": 5 if rank == 0 else 0},
        ]
        if rank == 2:
            tensors.append({"name": "whole", "total": 70_000, "first": 0, "len": 70_000})
        for tensor in tensors:
            tensor |= {"path": ["x", tensor["name"]], "dtype": DTYPES[tensor["name"]]}
        files.append(tensors)
    return files


@pytest.fixture
def ours(example):
    """A folder of ours, and for every tensor the checksums of its pieces by where they begin."""
    files = ranks()
    folder, printed = example.write("dcp", "ours", files, seed=11)
    pieces = {}
    for tensors, answers in zip(files, printed):
        for tensor, answer in zip(tensors, answers):
            if tensor["len"]:
                piece = (tensor["len"], answer["crc32"])
                pieces.setdefault(tensor["name"], {})[tensor["first"]] = piece
    return folder, pieces


def check(state, pieces):
    """Every piece of every tensor has the bytes that were written."""
    assert state.keys() == pieces.keys()
    for name, tensor in state.items():
        assert tensor.dtype == getattr(torch, DTYPES[name])
        assert tensor.numel() == sum(len_ for len_, _ in pieces[name].values())
        for first, (len_, expected) in pieces[name].items():
            assert crc(tensor[first : first + len_]) == expected, (name, first)


def test_torch_loads_what_we_write(ours):
    folder, pieces = ours
    totals = {"a.weight": 100, "b": 9, "c": 5, "whole": 70_000}
    state = {n: torch.zeros(len_, dtype=getattr(torch, DTYPES[n])) for n, len_ in totals.items()}
    dcp.load(state, checkpoint_id=folder)
    check(state, pieces)


def test_torch_loads_a_dictionary_that_it_makes_itself(ours):
    folder, pieces = ours
    state = {}
    planner = _EmptyStateDictLoadPlanner()
    reader = dcp.FileSystemReader(folder)
    _load_state_dict(state, storage_reader=reader, planner=planner, no_dist=True)
    check(state, pieces)


def test_torch_turns_it_into_one_file(ours, tmp_path):
    folder, pieces = ours
    dcp_to_torch_save(folder, tmp_path / "one.pt")
    check(torch.load(tmp_path / "one.pt", weights_only=True), pieces)


def test_torch_reads_the_metadata(ours):
    folder, pieces = ours
    metadata = dcp.FileSystemReader(folder).read_metadata()
    assert metadata.planner_data == {name: (name,) for name in pieces}
    for name, tensor in metadata.state_dict_metadata.items():
        assert tensor.properties.dtype == getattr(torch, DTYPES[name])
        chunks = {chunk.offsets[0]: chunk.sizes[0] for chunk in tensor.chunks}
        assert chunks == {first: len_ for first, (len_, _) in pieces[name].items()}
    for index, place in metadata.storage_data.items():
        path = folder / place.relative_path
        piece = path.read_bytes()[place.offset : place.offset + place.length]
        (folder / "piece.pt").write_bytes(piece)
        with zipfile.ZipFile(folder / "piece.pt") as archive:
            assert archive.testzip() is None
        loaded = torch.load(folder / "piece.pt", weights_only=True)
        assert crc(loaded) == pieces[index.fqn][index.offset[0]][1]


def test_pieces_are_the_archives_that_torch_would_write(ours):
    folder, _ = ours
    metadata = dcp.FileSystemReader(folder).read_metadata()
    place = next(iter(metadata.storage_data.values()))
    data = (folder / place.relative_path).read_bytes()[place.offset :][: place.length]
    path = folder / "piece.pt"
    path.write_bytes(data)
    with open(folder / "again.pt", "wb") as stream:
        torch.save(torch.load(path), stream)
    again = (folder / "again.pt").read_bytes()
    assert len(again) == len(data)
    assert again[: data.index(b"archive/.data")] == data[: data.index(b"archive/.data")]


def test_we_find_what_we_wrote(ours, example):
    folder, pieces = ours
    found = {
        tensor["name"]: {
            chunk["offsets"][0]: (chunk["sizes"][0], chunk["crc32"]) for chunk in tensor["chunks"]
        }
        for tensor in example.index("dcp", folder)
    }
    assert found == pieces


@pytest.mark.parametrize("threads", [1, 2])
def test_pieces_by_two_ranks_of_torch_are_found(example, tmp_path, threads):
    folder = tmp_path / "theirs"
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    golden.save_stock(folder, threads, port)
    assert len(list(folder.glob("*.distcp"))) == 2 * threads
    vector = torch.arange(10, dtype=torch.float32)
    matrix = torch.arange(6, dtype=torch.bfloat16).reshape(2, 3)
    both = torch.arange(4, dtype=torch.int8)
    expected = {
        "layers.0": ("float32", [10], {(0,): crc(vector[:5]), (5,): crc(vector[5:])}),
        "layers.w": ("bfloat16", [2, 3], {(0, 0): crc(matrix[:1]), (1, 0): crc(matrix[1:])}),
        "both": ("int8", [4], {(0,): crc(both)}),
    }
    found = {
        tensor["name"]: (
            tensor["dtype"],
            tensor["shape"],
            {tuple(chunk["offsets"]): chunk["crc32"] for chunk in tensor["chunks"]},
        )
        for tensor in example.index("dcp", folder)
    }
    assert found == expected
