"""Feedline's `framework` read model asks the file system for what the real reader asks for."""

import pytest

import comparison
import datasets
from conftest import BLOCK_SIZES

# Per sample, relative; for histograms half of the L1 distance.
TOLERANCE = 0.05

CASES = [
    pytest.param(data_set, size, workers, id=f"{data_set.name}-blocks{size}-workers{workers}")
    for data_set in datasets.ALL
    for size in BLOCK_SIZES
    if size == 4096 or data_set.large_blocks
    for workers in data_set.workers
]


@pytest.mark.parametrize("data_set,size,workers", CASES)
def test_calls(real, ours, results, data_set, size, workers):
    theirs, mine = real(data_set, size, workers), ours(data_set, size, workers)
    compared = comparison.entry(data_set, size, workers, theirs, mine)
    results["calls"][f"{data_set.name}/{size}/{workers}"] = compared
    story = f"\nreal      {describe(compared['real'])}\nFeedline  {describe(compared['feedline'])}"
    assert theirs.counts.opens > 0, f"the real reader opened nothing{story}"
    for key in comparison.KEYS:
        expected, found = compared["real"][key], compared["feedline"][key]
        assert comparison.apart(expected, found) <= TOLERANCE, (
            f"{key} per sample: {found:g}, not {expected:g}{story}")
    assert compared["distance"] <= TOLERANCE, (
        f"sizes asked differ by {compared['distance']:.3f}{story}")
    if workers == 1:
        expected, found = (comparison.orders(data_set, side) for side in (theirs, mine))
        assert found == expected, first_difference(expected, found) + story


def describe(side):
    """One line for a failure."""
    asked = sorted(side["asked"].items(), key=lambda pair: -pair[1])
    sizes = ", ".join(f"{count} x {size}" for size, count in asked[:8])
    counts = ", ".join(f"{side[key]:g} {key}" for key in comparison.KEYS)
    return f"per sample {counts}; asked in all: {sizes}"


def first_difference(expected, found):
    """Where two orders part."""
    for place, (one, other) in enumerate(zip(expected, found)):
        if one != other:
            return f"read {place} is at {other}, not at {one}"
    return f"{len(found)} reads, not {len(expected)}"
