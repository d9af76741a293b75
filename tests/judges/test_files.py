"""NumPy and Python's zip reader judge the data files Feedline writes."""

import zipfile

import numpy as np
import pytest

# Sizes are drawn from NumPy's legacy generator with this seed (part of the data set's definition).
SIZE_SEED = 10


def workload(feedline, dataset):
    """A workload that is only good for generating this data set."""
    return feedline.workload(
        model={"name": "judged"},
        framework="pytorch",
        workflow={"generate_data": True, "train": False},
        dataset=dataset,
        reader={"data_loader": "pytorch", "batch_size": 1},
    )


def generate(feedline, **dataset):
    """Generates the data set and returns its folder."""
    data = feedline.folder / "data"
    feedline(
        "run", workload(feedline, dataset), "--generate-only",
        "--data", data, "--out", feedline.folder / f"out-{dataset['format']}",
    ).ok()
    return data


def names(part, folders, files, prefix, extension):
    """The relative paths a data set of this shape consists of, in file order."""
    width = len(str(files))
    folder_width = len(str(folders))
    for i in range(files):
        folder = f"{i % folders:0{folder_width}}/" if folders > 1 else ""
        yield f"{part}/{folder}{prefix}_{i:0{width}}_of_{files}.{extension}"


def open_array(path):
    """The sample array of an npz or npy file; an npz must be sound in every other way too."""
    if path.suffix == ".npy":
        return np.load(path, allow_pickle=False)
    with zipfile.ZipFile(path) as archive:
        assert archive.testzip() is None
        assert archive.namelist() == ["x.npy", "y.npy"]
        assert {member.compress_type for member in archive.infolist()} == {zipfile.ZIP_STORED}
    with np.load(path, allow_pickle=False) as arrays:
        assert arrays.files == ["x", "y"]
        labels = arrays["y"]
        samples = arrays["x"]
    assert labels.dtype == np.int64
    assert labels.shape == (samples.shape[-1],)
    assert not labels.any()
    return samples


DTYPES = ["uint8", "int8", "uint16", "int32", "int64", "float16", "float32", "float64"]


@pytest.mark.parametrize("extension", ["npz", "npy"])
@pytest.mark.parametrize("dtype", DTYPES)
def test_every_dtype_opens(feedline, extension, dtype):
    data = generate(
        feedline, format=extension, num_files_train=3, num_samples_per_file=2,
        record_dims=[5, 7], record_element_type=dtype,
    )
    for name in names("train", 0, 3, "img", extension):
        samples = open_array(data / name)
        assert samples.dtype == np.dtype(dtype)
        assert samples.shape == (5, 7, 2)
        assert samples.flags.c_contiguous
        # Noise: a constant array would make compressing or deduplicating storage look fast.
        assert len(np.unique(samples)) > 10
        if samples.dtype.kind == "f":
            assert samples.min() >= 0 and samples.max() <= 1


@pytest.mark.parametrize("extension", ["npz", "npy"])
@pytest.mark.parametrize("samples_per_file", [1, 3, 10])
@pytest.mark.parametrize("dims", [[11], [4, 6], [2, 3, 4], [2, 1, 3, 5]])
def test_every_shape_opens(feedline, extension, samples_per_file, dims):
    data = generate(
        feedline, format=extension, num_files_train=2, num_samples_per_file=samples_per_file,
        record_dims=dims,
    )
    for name in names("train", 0, 2, "img", extension):
        samples = open_array(data / name)
        assert samples.shape == (*dims, samples_per_file)
        assert samples.dtype == np.uint8


@pytest.mark.parametrize(
    "train,valid,train_folders,valid_folders,prefix",
    [
        (8, 0, 0, 0, "img"),
        (10, 3, 0, 0, "part"),
        (7, 2, 2, 2, "img"),
        (23, 11, 10, 3, "img"),
        (5, 5, 1, 1, "img"),
    ],
)
def test_names_and_folders(feedline, train, valid, train_folders, valid_folders, prefix):
    data = generate(
        feedline, format="npz", num_files_train=train, num_files_eval=valid,
        num_subfolders_train=train_folders, num_subfolders_eval=valid_folders,
        record_length_bytes=64, file_prefix=prefix,
    )
    expected = [
        *names("train", train_folders, train, prefix, "npz"),
        *names("valid", valid_folders, valid, prefix, "npz"),
    ]
    found = [str(path.relative_to(data)) for path in data.rglob("*.npz")]
    assert sorted(found) == sorted(expected)
    for name in expected:
        assert open_array(data / name).shape == (8, 8, 1)


@pytest.mark.parametrize(
    "length,stdev,train,valid",
    [
        (146600628 // 4000, 68341808 // 4000, 24, 0),
        (2828486 // 100, 71311 // 100, 16, 5),
        (4096, 4000, 40, 8),
        (100.5, 90, 30, 1),
        (114660.07 / 50, 0, 3, 2),
        (2048, 0, 1, 0),
        (1, 0, 2, 0),
    ],
)
@pytest.mark.parametrize("extension", ["npz", "npy"])
def test_sizes_are_numpys(feedline, length, stdev, train, valid, extension):
    data = generate(
        feedline, format=extension, num_files_train=train, num_files_eval=valid,
        record_length_bytes=length, record_length_bytes_stdev=stdev,
    )
    side = int(np.sqrt(length))
    if stdev > 0:
        # Two sides a file, drawn once for all files: training files first, then the others.
        draws = np.random.RandomState(SIZE_SEED).normal(
            side, stdev / 2.0 / np.sqrt(length), 2 * (train + valid)
        )
        sides = [max(int(draw), 1) for draw in draws]
    else:
        sides = [side] * (2 * (train + valid))
    files = [
        *names("train", 0, train, "img", extension),
        *names("valid", 0, valid, "img", extension),
    ]
    for i, name in enumerate(files):
        assert open_array(data / name).shape == (sides[2 * i], sides[2 * i + 1], 1), name


def test_files_are_what_numpy_would_write(feedline):
    """Given the same arrays, numpy.savez and numpy.save produce the same number of bytes."""
    for extension, save in [("npz", np.savez), ("npy", np.save)]:
        data = generate(
            feedline, format=extension, num_files_train=1, num_samples_per_file=4,
            record_dims=[9, 13], record_element_type="float32",
        )
        ours = data / "train" / f"img_0_of_1.{extension}"
        theirs = feedline.folder / f"theirs.{extension}"
        samples = open_array(ours)
        if extension == "npz":
            save(theirs, x=samples, y=[0] * 4)
        else:
            save(theirs, samples)
        assert ours.stat().st_size == theirs.stat().st_size
