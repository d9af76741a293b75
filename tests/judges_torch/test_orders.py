"""torch's samplers and loaders judge who reads what: DistributedSampler, DataLoader, IterableDataset."""

import json
import subprocess

import pytest
from torch.utils.data import DataLoader, DistributedSampler, IterableDataset, get_worker_info

# Samples, ranks, batch, workers; whether the sampler and the loader drop what is uneven.
CASES = [
    (61, 1, 4, 2, False, False),
    (61, 2, 4, 1, False, False),
    (61, 2, 4, 3, True, True),
    (61, 3, 4, 2, False, True),
    (61, 4, 4, 2, True, False),
    (61, 2, 8, 0, False, False),
    (61, 4, 1, 2, False, False),
    (17, 5, 3, 2, False, False),
    (17, 5, 3, 2, True, False),
    (3, 5, 2, 1, False, False),
    (1, 4, 3, 2, False, False),
]


@pytest.fixture(scope="module")
def bed(tmp_path_factory):
    """A folder with 61 npy files and 7 shards of 6."""
    folder = tmp_path_factory.mktemp("orders")
    for name, files, samples in (("npy", 61, 1), ("webdataset", 7, 6)):
        sections = {
            "framework": "pytorch",
            "workflow": {"generate_data": True, "train": False},
            "dataset": {
                "format": name,
                "data_folder": str(folder / name),
                "num_files_train": files,
                "num_samples_per_file": samples,
                "record_length_bytes": 64,
            },
        }
        (folder / f"{name}.yaml").write_text(json.dumps(sections))
        call(folder, "run", f"{name}.yaml", "--out", f"{name}-made")
    return folder


def call(folder, *args):
    import os

    argv = [os.environ["FEEDLINE_BIN"], *map(str, args)]
    ended = subprocess.run(argv, cwd=folder, capture_output=True, text=True, timeout=300, check=False)
    assert ended.returncode == 0, f"{argv}\n{ended.stdout}\n{ended.stderr}"


def traced(folder, data, ranks, **sets):
    """Trains an epoch; the batches of each rank as lists of samples, the readers of each rank's batches,
    and what the results say of the sharding."""
    pairs = {"workflow.generate_data": "false", "workflow.train": "true"} | sets
    words = [word for key, value in pairs.items() for word in ("--set", f"{key}={value}")]
    trace, out = folder / "trace", folder / "out"
    subprocess.run(["rm", "-rf", trace, folder / "trace.json"], check=True)
    call(folder, "run", f"{data}.yaml", "-n", ranks, *words, "--out", out, "--overwrite", "--trace", trace)
    call(folder, "convert", trace, folder / "trace.json", "--to", "chrome")
    events = json.loads((folder / "trace.json").read_text())
    events = events["traceEvents"] if isinstance(events, dict) else events
    names = {e["tid"]: e["args"]["name"] for e in events if e["name"] == "thread_name"}
    batches, readers = {}, {}
    for event in sorted((e for e in events if e["name"] == "item"), key=lambda e: e["ts"]):
        # "rank 0 reader 1", or "rank 0" without workers.
        words = names[event["tid"]].split()
        rank, step = int(words[1]), event["args"]["step"]
        batches.setdefault(rank, {}).setdefault(step, []).append(event["args"]["sample"])
        readers.setdefault(rank, {}).setdefault(step, set()).add(int(words[3]) if words[2:] else 0)
    summary = json.loads((out / "summary.json").read_text())["feedline"]
    in_steps = lambda found: [list(dict(sorted(found.get(r, {}).items())).values()) for r in range(ranks)]
    return in_steps(batches), in_steps(readers), summary


def settings(batch, workers, sampler_drops, loader_drops):
    return {
        "reader.batch_size": batch,
        "reader.read_threads": workers,
        "reader.sampler_drop_last": str(sampler_drops).lower(),
        "reader.drop_last": str(loader_drops).lower(),
    }


def of_torch(samples, ranks, batch, sampler_drops, loader_drops):
    """The batches of each rank."""

    def of(rank):
        data = range(samples)
        sampler = DistributedSampler(data, ranks, rank, shuffle=False, drop_last=sampler_drops)
        loader = DataLoader(data, batch, sampler=sampler, drop_last=loader_drops, collate_fn=list)
        return list(loader)

    return [of(rank) for rank in range(ranks)]


@pytest.mark.parametrize("case", CASES, ids=str)
def test_map_style_orders_are_those_of_torch(bed, case):
    samples, ranks, batch, workers, sampler_drops, loader_drops = case
    expected = of_torch(samples, ranks, batch, sampler_drops, loader_drops)
    if not expected[0]:
        pytest.fail("a case without a step tests nothing")
    sets = settings(batch, workers, sampler_drops, loader_drops)
    sets["dataset.num_files_train"] = samples
    found, readers, summary = traced(bed, "npy", ranks, **sets)
    assert found == expected
    for steps in readers:
        assert steps == [{k % max(workers, 1)} for k in range(len(steps))]
    read = [sample for rank in expected for step in rank for sample in step]
    sharding = summary["sharding"]
    assert sharding["name"] == "strided"
    assert sharding["samples_read"] == len(read)
    assert sharding["samples_read_twice"] == len(read) - len(set(read))
    assert sharding["samples_left_out"] == samples - len(set(read))


def test_what_is_not_said_is_as_torch_does_by_default(bed):
    expected = of_torch(61, 2, 4, False, False)
    found, _, summary = traced(bed, "npy", 2, **{"reader.batch_size": 4})
    assert found == expected
    assert summary["sharding"]["drop_last"] is summary["sharding"]["sampler_drop_last"] is False
    assert summary["dlio_version"] is None


@pytest.mark.parametrize("case", [CASES[1], CASES[4], CASES[7]], ids=str)
def test_shuffled_orders_are_dealt_as_torch_deals_them(bed, case):
    samples, ranks, batch, workers, sampler_drops, loader_drops = case
    sets = settings(batch, workers, sampler_drops, loader_drops)
    sets |= {"dataset.num_files_train": samples, "reader.sample_shuffle": "seed"}
    found, _, _ = traced(bed, "npy", ranks, **sets)
    expected = of_torch(samples, ranks, batch, sampler_drops, loader_drops)
    # Unshuffled, torch names places; whatever stands there must be one sample, and another elsewhere.
    order = {}
    for places, read in zip(expected, found, strict=True):
        assert [len(step) for step in places] == [len(step) for step in read]
        for place, sample in zip(sum(places, []), sum(read, []), strict=True):
            assert order.setdefault(place, sample) == sample
    assert len(set(order.values())) == len(order)
    assert list(order.values()) != sorted(order.values())


class Shards(IterableDataset):
    """Samples of shards that go to nodes and then to workers in turn, as WebDataset's splitters do it."""

    def __init__(self, shards, per_shard, rank, ranks):
        self.shards = list(range(shards))[rank::ranks]
        self.per_shard = per_shard

    def __iter__(self):
        info = get_worker_info()
        mine = self.shards if info is None else self.shards[info.id :: info.num_workers]
        for shard in mine:
            yield from range(shard * self.per_shard, (shard + 1) * self.per_shard)


# Shards, ranks, batch, workers, whether the loader drops.
@pytest.mark.parametrize(
    "case",
    [(5, 1, 4, 2, False), (5, 1, 4, 2, True), (7, 2, 5, 3, False), (3, 2, 4, 0, False), (4, 2, 4, 3, False)],
    ids=str,
)
def test_batches_of_shards_are_those_of_one_worker(bed, case):
    shards, ranks, batch, workers, drops = case

    def of(rank):
        data = Shards(shards, 6, rank, ranks)
        loader = DataLoader(data, batch, num_workers=workers, drop_last=drops, collate_fn=list)
        return list(loader)

    expected = [of(rank) for rank in range(ranks)]
    steps = min(map(len, expected))
    sets = settings(batch, workers, False, drops) | {"dataset.num_files_train": shards}
    del sets["reader.sampler_drop_last"]
    found, _, summary = traced(bed, "webdataset", ranks, **sets)
    # Workers are ahead of the trainer; the last rank says how many steps there are.
    assert [rank[:steps] for rank in found] == [rank[:steps] for rank in expected]
    assert summary["steps"] == steps
    assert summary["sharding"]["samples_read"] == sum(len(s) for r in expected for s in r[:steps])
