"""torch.load and Python's zipfile read our files; we find tensors in files by torch.save."""

import io
import zipfile

import golden
import torch
from conftest import check, flattened


def test_torch_reads_what_we_write(example, state):
    path, (printed,) = example.write("torch", "ours.pt", [state], seed=7)
    for options in ({}, {"mmap": True}):
        loaded = torch.load(path, weights_only=True, **options)
        assert list(loaded) == ["model", "optimizer", "empty"]
        assert list(loaded["model"]) == [entry["path"][1] for entry in state[:6]]
        check(printed, flattened(loaded))
    check(example.index("torch", path), flattened(loaded))
    # Storages are aligned as torch aligns its own.
    assert [entry["at"] % 64 for entry in printed] == [0] * len(state)


def test_zipfile_finds_nothing_wrong(example, state):
    path, _ = example.write("torch", "ours.pt", [state], seed=7)
    with zipfile.ZipFile(path) as archive:
        assert archive.testzip() is None
        assert len(archive.namelist()) == len(state) + 6
        assert archive.read("archive/byteorder") == b"little"


def test_the_archive_is_the_one_that_torch_writes(example, state):
    path, _ = example.write("torch", "ours.pt", [state], seed=7)
    loaded = torch.load(path)
    stream = io.BytesIO()
    torch.save(loaded, stream)
    ours, theirs = path.read_bytes(), stream.getvalue()
    assert len(ours) == len(theirs)
    name = b"archive/.data/serialization_id"
    at = (ours.index(name) + len(name) + 4 + 63) // 64 * 64
    entry = ours.rindex(name) - 30
    # Only the identity differs: its 40 digits, and their checksum in two places.
    assert ours[:at] == theirs[:at]
    assert ours[at + 48 : entry] == theirs[at + 48 : entry]
    assert ours[entry + 4 :] == theirs[entry + 4 :]


def test_more_than_4_gib_in_a_sparse_file(example):
    tensors = [
        {"path": ["large"], "dtype": "float32", "len": 3 << 30},
        {"path": ["small"], "dtype": "float64", "len": 3},
        {"path": ["also"], "dtype": "int8", "len": (4 << 30) + 1},
        {"path": ["last"], "dtype": "bfloat16", "len": 5},
    ]
    path, (printed,) = example.write("torch", "sparse.pt", [tensors], zeros=True)
    assert path.stat().st_size > 16 << 30
    assert path.stat().st_blocks * 512 < 1 << 20
    with zipfile.ZipFile(path) as archive:
        sizes = {info.filename: info.file_size for info in archive.infolist()}
        assert sizes["archive/data/0"] == 12 << 30
        assert sizes["archive/data/2"] == (4 << 30) + 1
        assert archive.read("archive/data/3") == bytes(10)
    loaded = torch.load(path, mmap=True, weights_only=True)
    assert {k: (v.dtype, v.numel()) for k, v in loaded.items()} == {
        "large": (torch.float32, 3 << 30),
        "small": (torch.float64, 3),
        "also": (torch.int8, (4 << 30) + 1),
        "last": (torch.bfloat16, 5),
    }
    assert loaded["large"][-1] == 0 and loaded["last"].sum() == 0
    # torch maps the whole file, so its addresses tell where it thinks that tensors are.
    base = loaded["large"].data_ptr() - printed[0]["at"]
    assert [t.data_ptr() - base for t in loaded.values()] == [entry["at"] for entry in printed]


def test_more_tensors_than_16_bits_can_count(example):
    tensors = [{"path": ["t", str(i)], "dtype": "int8", "len": 1} for i in range(66_000)]
    path, (printed,) = example.write("torch", "many.pt", [tensors], seed=1)
    check(printed, flattened(torch.load(path, weights_only=True)))
    with zipfile.ZipFile(path) as archive:
        assert len(archive.namelist()) == 66_006


def test_files_by_torch_are_indexed(example, tmp_path):
    path = tmp_path / "theirs.pt"
    state = golden.nested() | {
        "list": [torch.rand(3), {"deep": torch.rand(2, 3, 4)}],
        5: torch.rand(1),
        "scalar": torch.tensor(1.5),
        "step": 17,
        "parameter": torch.nn.Parameter(torch.rand(4, 4)),
        "module": torch.nn.Linear(3, 2).state_dict(),
    }
    torch.save(state, path)
    found = example.index("torch", path)
    check(found, flattened(state))
    assert [entry["at"] for entry in found] == sorted(entry["at"] for entry in found)


def test_views_are_found_at_their_own_places(example, tmp_path):
    path = tmp_path / "views.pt"
    whole = torch.arange(100, dtype=torch.float32)
    state = {"whole": whole, "part": whole[30:50], "rows": whole.view(10, 10)[2:4], "same": whole}
    torch.save(state, path)
    found = example.index("torch", path)
    check(found, flattened(state))
    places = {entry["path"][0]: entry["at"] for entry in found}
    at = places["whole"]
    assert places == {"whole": at, "part": at + 120, "rows": at + 80, "same": at}


def test_other_alignments_and_no_checksums_are_read(example, tmp_path, monkeypatch):
    config = torch.utils.serialization.config.save
    for name, value in (("storage_alignment", 4096), ("compute_crc32", False)):
        path = tmp_path / f"{name}.pt"
        with monkeypatch.context() as patch:
            patch.setattr(config, name, value)
            torch.save(golden.nested(), path)
        check(example.index("torch", path), flattened(golden.nested()))


def test_what_has_no_single_place_is_refused(example, tmp_path):
    for name, tensor, words in (
        ("turned", torch.rand(3, 4).t(), 'tensor "turned", which is not contiguous'),
        ("long", torch.arange(3), "a LongStorage"),
        ("sparse", torch.eye(3).to_sparse(), "a tensor made by _rebuild_sparse_tensor"),
    ):
        torch.save({name: tensor}, tmp_path / "theirs.pt")
        assert words in example.refusal("torch", tmp_path / "theirs.pt")


def test_files_of_the_old_format_are_refused(example, tmp_path):
    path = tmp_path / "old.pt"
    torch.save(golden.nested(), path, _use_new_zipfile_serialization=False)
    assert "no end-of-archive record" in example.refusal("torch", path)
