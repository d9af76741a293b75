"""Pillow judges the images that Feedline writes, and makes images for Feedline to read.

Pixels are compared with the npy that Feedline makes of the same data set: the noise of a file is the
same in every format.
"""

import io

import numpy as np
import pytest
from PIL import Image

from conftest import generate_two, strict_json

# One axis is a column, as in Pillow.
SHAPES = [([7], (7, 1)), ([1, 1], (1, 1)), ([17, 9], (17, 9)), ([64, 200], (64, 200))]


def noise_of(feedline, shape, **dataset):
    """The pixels of both files, from the npy of the same data set."""
    data = generate_two(feedline, format="npy", num_samples_per_file=1, **dataset)
    return [np.load(data / "train" / f"img_{i}_of_2.npy").reshape(shape) for i in range(2)]


def train(feedline, data, files, samples, **dataset):
    """Reads one epoch; returns the run and how many steps it took, if it ended well."""
    out = feedline.folder / "out-read"
    workload = feedline.workload(
        model={"name": "judged"},
        framework="pytorch",
        workflow={"generate_data": False, "train": True},
        dataset={"num_files_train": files, "num_samples_per_file": samples, **dataset},
        reader={"data_loader": "pytorch", "batch_size": 1},
        train={"epochs": 1, "computation_time": 0},
    )
    ended = feedline("run", workload, "--data", data, "--out", out)
    if ended.code:
        return ended, None
    return ended, len(strict_json(out / "0_output.json")["1"]["load"]["block1"])


def distance(a, b):
    """Root of the mean square of the differences."""
    return np.sqrt(np.mean((a.astype(float) - b.astype(float)) ** 2))


@pytest.mark.parametrize("samples", [1, 3])
@pytest.mark.parametrize("dims,shape", SHAPES)
def test_pillow_reads_our_png(feedline, dims, shape, samples):
    data = generate_two(feedline, format="png", num_samples_per_file=samples, record_dims=dims)
    for i, noise in enumerate(noise_of(feedline, shape, record_dims=dims)):
        with Image.open(data / "train" / f"img_{i}_of_2.png") as image:
            image.verify()  # Every chunk's checksum.
        with Image.open(data / "train" / f"img_{i}_of_2.png") as image:
            assert (image.format, image.mode) == ("PNG", "L")
            assert np.array_equal(np.asarray(image), noise)


# jpeg-encoder writes the divisors of color, too, which a gray image does not use.
SECOND_TABLE_BYTES = 69


@pytest.mark.parametrize("samples", [1, 3])
@pytest.mark.parametrize("dims,shape", SHAPES)
def test_pillow_reads_our_jpeg(feedline, dims, shape, samples):
    data = generate_two(feedline, format="jpeg", num_samples_per_file=samples, record_dims=dims)
    for i, noise in enumerate(noise_of(feedline, shape, record_dims=dims)):
        path = data / "train" / f"img_{i}_of_2.jpeg"
        theirs = io.BytesIO()
        Image.fromarray(noise).save(theirs, "jpeg")
        with Image.open(path) as image, Image.open(theirs) as pillow:
            assert (image.format, image.mode) == ("JPEG", "L")
            assert image.quantization[0] == pillow.quantization[0]
            ours, expected = np.asarray(image), np.asarray(pillow)
        assert ours.shape == shape
        # As close to the noise as what Pillow makes of it, and as large but for the second table.
        assert distance(ours, noise) <= distance(expected, noise) + 0.3
        larger = path.stat().st_size - SECOND_TABLE_BYTES - len(theirs.getvalue())
        assert abs(larger) <= 2 + len(theirs.getvalue()) // 500


@pytest.mark.parametrize("extension", ["jpeg", "png"])
def test_sizes_follow_the_record_length(feedline, extension):
    data = generate_two(feedline, format=extension, record_length_bytes=114660.07)
    for path in (data / "train").iterdir():
        with Image.open(path) as image:
            assert np.asarray(image).shape == (338, 338)


def images():
    """Images of all modes, with the options to save them."""
    y, x = np.mgrid[0:40, 0:52]
    waves = np.stack([127 + 90 * np.sin(x / 9 + y / 15), 127 + 90 * np.cos(x / 6), 4 * x + 2 * y], -1)
    rgb = Image.fromarray(waves.astype(np.uint8))
    gray = Image.fromarray(np.random.default_rng(1).integers(0, 255, (40, 52), dtype=np.uint8))
    yield "jpeg", gray, {}
    yield "jpeg", gray, {"optimize": True, "quality": 95}
    yield "jpeg", gray, {"progressive": True}
    yield "jpeg", gray, {"restart_marker_blocks": 3}
    for subsampling in ("4:2:0", "4:2:2", "4:4:4"):
        yield "jpeg", rgb, {"subsampling": subsampling}
        yield "jpeg", rgb, {"subsampling": subsampling, "progressive": True}
    yield "jpeg", rgb, {"restart_marker_rows": 1}
    yield "jpeg", rgb.convert("CMYK"), {}
    yield "png", gray, {}
    yield "png", gray, {"compress_level": 9}
    yield "png", Image.fromarray(np.asarray(gray).astype(np.uint16) * 257), {}
    for mode in ("1", "LA", "RGB", "RGBA", "P"):
        yield "png", rgb.convert(mode), {}
    yield "png", rgb.convert("P", palette=Image.Palette.ADAPTIVE, colors=4), {"bits": 2}


@pytest.mark.parametrize("samples", [1, 4])
@pytest.mark.parametrize("extension", ["jpeg", "png"])
def test_images_of_pillow_are_read(feedline, extension, samples):
    data = feedline.folder / "data"
    (data / "train").mkdir(parents=True)
    found = [(image, options) for kind, image, options in images() if kind == extension]
    width = len(str(len(found)))
    for i, (image, options) in enumerate(found):
        image.save(data / "train" / f"img_{i:0{width}}_of_{len(found)}.{extension}", **options)
    ended, steps = train(
        feedline, data, len(found), samples, format=extension, record_dims=[40, 52]
    )
    ended.ok()
    assert steps == len(found) * samples


@pytest.mark.parametrize("extension", ["jpeg", "png"])
def test_a_truncated_image_is_named(feedline, extension):
    data = generate_two(feedline, format=extension, record_dims=[40, 52])
    victim = data / "train" / f"img_1_of_2.{extension}"
    victim.write_bytes(victim.read_bytes()[:700])
    ended, _ = train(feedline, data, 2, 1, format=extension, record_dims=[40, 52])
    assert ended.code == 2
    assert victim.name in ended.err and "truncated" in ended.err
