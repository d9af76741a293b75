"""A small training loop with readers that are forked, annotated with DFTracer's own interface.

usage: annotated_loader.py FOLDER TRACE, with DFTRACER_ENABLE=1 and DFTracer's Python

Writes numpy files to FOLDER, then reads them in batches, twice over; each process writes its trace to
a file whose name begins with TRACE.
"""

import multiprocessing
import sys
from pathlib import Path

import numpy
from dftracer.python import dftracer
from dftracer.python.ai import ai

WORKERS = 3
FILES = 48
BATCH = 4
EPOCHS = 2
SHAPE = (64, 256)


@ai.data.preprocess
def prepared(sample):
    """Something that takes a moment."""
    return numpy.sqrt(sample.astype(numpy.float64))


@ai.data.item
def item(path):
    """One sample."""
    return prepared(numpy.load(path)["sample"])


def work(paths, epoch, tasks, batches):
    """A reader: batches by their numbers, until there is none."""
    for number in iter(tasks.get, None):
        ai.update(epoch=epoch, step=number + 1)
        members = paths[number * BATCH:(number + 1) * BATCH]
        batches.put((number, numpy.stack([item(path) for path in members])))


def arrivals(batches, count):
    """Batches in the order in which they are there."""
    for _ in range(count):
        yield batches.get()


@ai.compute
def compute(batch):
    """The training."""
    return float((batch @ batch.transpose(0, 2, 1)).sum())


def train(paths, epoch):
    """Reads everything once, with readers of its own."""
    context = multiprocessing.get_context("fork")
    tasks, batches = context.Queue(), context.Queue()
    readers = [context.Process(target=work, args=(paths, epoch, tasks, batches))
               for _ in range(WORKERS)]
    for reader in readers:
        reader.start()
    count = len(paths) // BATCH
    for task in [*range(count), *[None] * WORKERS]:
        tasks.put(task)
    for number, batch in ai.dataloader.fetch.iter(arrivals(batches, count)):
        ai.update(epoch=epoch, step=number + 1)
        compute(batch)
    for reader in readers:
        reader.join()
        if reader.exitcode != 0:
            raise SystemExit(f"a reader ended with {reader.exitcode}")


def main(folder, trace):
    """Files first, which are not traced; then the training."""
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    dice = numpy.random.default_rng(1)
    paths = [str(folder / f"sample-{number:03}.npz") for number in range(FILES)]
    for path in paths:
        numpy.savez(path, sample=dice.random(SHAPE, dtype=numpy.float32))
    tracer = dftracer.initialize_log(trace, str(folder), -1)
    for epoch in range(1, EPOCHS + 1):
        train(paths, epoch)
    tracer.finalize()


if __name__ == "__main__":
    main(*sys.argv[1:])
