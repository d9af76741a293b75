#!/usr/bin/env python3
"""Writes a trace in DFTracer's format whose content is known: the same events in two dialects.

usage: made_trace.py FOLDER EVENTS

`FOLDER/current` has the lines of DFTracer 2.2 (whole numbers for kinds), `FOLDER/legacy` those of
versions before 2.1.1 (letters and brackets). A training of four processes, a file each, gzip members
of 16 MiB of text: a loop that waits for batches and computes, three readers that open, read, seek and
close files. `FOLDER/known.json` says how many events of each name there are.
"""

import hashlib
import json
import multiprocessing
import random
import sys
import zlib
from collections import Counter
from pathlib import Path

PROCESSES = 4
READERS = 3
BATCH = 8
FILES = 4096
STEPS_AN_EPOCH = FILES // BATCH
# An item, its open64, two lseek64, five reads, close and preprocess.
ITEM_EVENTS = 11
STEP_EVENTS = BATCH * ITEM_EVENTS + 3
MEMBER_BYTES = 16 << 20
START_US = 1_800_000_000_000_000
HOST = "node-0042"
# Readers run ahead of the loop by as many batches.
AHEAD = 2 * READERS
READS = (4096, 65536, 65536, 65536, 65536)


def digest(text):
    """DFTracer's hash of a string: every other byte of its MD5."""
    return hashlib.md5(text.encode()).digest()[::2].hex()


HHASH = digest(HOST)


class Lines:
    """The two files of a process."""

    def __init__(self, folder, pid):
        name = f"trace-{digest(f'train.py-{HOST}-{pid}')}-app.pfw.gz"
        self.current = open(folder / "current" / name, "wb")
        self.legacy = open(folder / "legacy" / name, "wb")
        self.pid = pid
        self.waiting = []
        self.bytes = 0
        self.is_first = True
        self.next_id = 1
        self.names = Counter()

    def line(self, text):
        """Takes a line of the current dialect."""
        self.waiting.append(text)
        self.bytes += len(text) + 1
        if self.bytes >= MEMBER_BYTES:
            self.member()

    def metadata(self, tid, name, key, value):
        """A line that says something about others."""
        self.line(f'{{"name":"{name}","cat":"dftracer","type":1,"pid":{self.pid},"tid":{tid},'
                  f'"ph":4,"args":{{"hhash":"{HHASH}","name":"{key}","value":"{value}"}}}}')

    def event(self, name, rest):
        """An event, whose number comes from its place."""
        self.names[name] += 1
        self.line(f'{{"id":{self.next_id},"name":"{name}",{rest}')
        self.next_id += 1

    def border(self, name, at, args):
        """The event with which the library begins or ends, which is none of the program's."""
        self.line(f'{{"id":{self.next_id},"name":"{name}","cat":"dftracer","type":1,'
                  f'"pid":{self.pid},"tid":{self.pid},"ts":{at},"dur":0,"ph":1,'
                  f'"args":{{"hhash":"{HHASH}",{args}}}}}')
        self.next_id += 1

    def member(self, last=False):
        """Writes what waits as a gzip member of each file."""
        text = "\n".join(self.waiting) + "\n"
        self.waiting, self.bytes = [], 0
        self.current.write(packed(text))
        for layer in (1, 3, 6):
            text = text.replace(f',"type":{layer},', ",")
        text = text.replace(',"ph":1,', ',"ph":"X",').replace(',"ph":4,', ',"ph":"M",')
        begin, end = "[\n" if self.is_first else "", "]\n" if last else ""
        self.is_first = False
        self.legacy.write(packed(begin + text + end))

    def close(self):
        """Writes the rest."""
        self.member(last=True)
        self.current.close()
        self.legacy.close()


def packed(text):
    """A gzip member at the level that DFTracer takes."""
    packer = zlib.compressobj(zlib.Z_DEFAULT_COMPRESSION, zlib.DEFLATED, 31)
    return packer.compress(text.encode()) + packer.flush()


class Process:
    """A rank: its loop and its readers, on one simulated clock of microseconds."""

    def __init__(self, folder, rank):
        self.rank = rank
        self.pid = 1_204_117 + rank * 37
        self.lines = Lines(folder, self.pid)
        self.dice = random.Random(rank)
        means = {"open64": 45, "read": 38, "lseek64": 2, "close": 6, "preprocess": 350}
        self.times = {
            name: [max(1, round(self.dice.lognormvariate(0, 0.6) * mean)) for _ in range(4096)]
            for name, mean in means.items()
        }
        folder = "/lustre/data/unet3d/train"
        self.paths = [f"{folder}/img_{rank:02}_{n:06}_of_016384.npz" for n in range(FILES)]
        self.hashes = [digest(path) for path in self.paths]
        self.sizes = [self.dice.randrange(200_000, 266_000) for _ in range(FILES)]
        self.named = set()
        self.now = START_US
        self.free = [START_US + 150_000] * READERS
        # When the loop took each of the latest batches.
        self.taken = []
        self.events = []

    def took(self, name):
        """How long a call took."""
        return self.times[name][self.dice.getrandbits(12)]

    def add(self, tid, start, duration, name, head, args):
        """An event of the epoch; lines are in the order of ends."""
        rest = (f'{head},"pid":{self.pid},"tid":{tid},"ts":{start},"dur":{duration},"ph":1,'
                f'"args":{{"hhash":"{HHASH}",{args}}}}}')
        self.events.append((start + duration, name, rest))

    def call(self, tid, at, name, file_hash, args):
        """A call on a file; when it ended."""
        duration = self.took(name)
        self.add(tid, at, duration, name, '"cat":"POSIX","type":3', f'"fhash":"{file_hash}",{args}')
        return at + duration

    def item(self, tid, at, file, epoch, step):
        """A reader's work on a sample; when it ended."""
        start, hashed, size = at, self.hashes[file], self.sizes[file]
        if file not in self.named:
            self.named.add(file)
            self.events.append((at, None, (tid, self.paths[file], hashed)))
        at = self.call(tid, at, "open64", hashed, '"flags":524288')
        at = self.call(tid, at + 3, "lseek64", hashed, f'"offset":0,"whence":2,"ret":{size}')
        at = self.call(tid, at + 2, "lseek64", hashed, '"offset":0,"whence":0,"ret":0')
        for count in READS:
            done = min(count, size)
            size -= done
            at = self.call(tid, at + 5, "read", hashed, f'"count":{count},"ret":{done}')
        at = self.call(tid, at + 2, "close", hashed, '"ret":0')
        tags = f'"epoch":{epoch},"step":{step},"image_idx":{file}'
        duration = self.took("preprocess")
        self.add(tid, at + 10, duration, "preprocess", '"cat":"data","type":6', tags)
        at += 10 + duration
        tags += f',"image_size":{self.sizes[file]}'
        self.add(tid, start - 4, at + 4 - start, "item", '"cat":"data","type":6', tags)
        return at + 8

    def step(self, epoch, step, files):
        """A batch by the reader that is due, and the loop's turn with it."""
        reader = step % READERS
        tid = self.pid + 11 + reader
        room = self.taken[-AHEAD] if len(self.taken) >= AHEAD else START_US
        start = at = max(self.free[reader], room) + 20
        for file in files:
            at = self.item(tid, at + 6, file, epoch, step)
        tags = f'"epoch":{epoch},"step":{step}'
        self.add(tid, start, at - start, "batch", '"cat":"dataloader","type":6', tags)
        self.free[reader] = at
        wait = max(at + 120, self.now + 15) - self.now
        self.add(self.pid, self.now, wait, "fetch.iter", '"cat":"dataloader","type":6', tags)
        self.now += wait + 5
        self.taken = [*self.taken[1 - AHEAD:], self.now]
        compute = 2_000 + self.dice.getrandbits(8)
        self.add(self.pid, self.now, compute, "compute", '"cat":"compute","type":6', tags)
        self.now += compute + 12

    def epoch(self, epoch, steps):
        """The steps of an epoch, every file once."""
        order = list(range(FILES))
        self.dice.shuffle(order)
        for step in range(steps):
            self.step(epoch, step + 1, order[step * BATCH:(step + 1) * BATCH])
        self.events.sort(key=lambda event: event[0])
        for _, name, rest in self.events:
            if name is None:
                tid, path, hashed = rest
                self.lines.metadata(tid, "FH", path, hashed)
            else:
                self.lines.event(name, rest)
        self.events = []

    def run(self, steps):
        """All of it; how many events of each name."""
        lines = self.lines
        lines.metadata(self.pid, "HH", HOST, HHASH)
        lines.metadata(self.pid, "thread_name", self.pid, "thread_name")
        lines.metadata(self.pid, "CM", "time_metric", "US")
        lines.metadata(self.pid, "PR", "rank", self.rank)
        strings = {text: digest(text) for text in ("train.py", "python3 train.py", "/home/user/run")}
        for text, hashed in strings.items():
            lines.metadata(self.pid, "SH", text, hashed)
        program, command, folder = strings.values()
        lines.border("start", START_US - 1000,
                     f'"version":20003,"exec_hash":"{program}","cmd_hash":"{command}",'
                     f'"cwd":"{folder}","date":"Fri Jan 15 08:00:00 2027","ppid":1204001')
        for first in range(0, steps, STEPS_AN_EPOCH):
            self.epoch(first // STEPS_AN_EPOCH + 1, min(STEPS_AN_EPOCH, steps - first))
        lines.border("end", self.now + 500, f'"num_events":{lines.next_id}')
        lines.close()
        return lines.names


def write_process(folder, rank, steps):
    """One process' two files."""
    return Process(Path(folder), rank).run(steps)


def main(folder, events):
    """Writes the trace with at least as many events."""
    folder = Path(folder)
    for dialect in ("current", "legacy"):
        (folder / dialect).mkdir(parents=True)
    steps = -(-int(events) // (PROCESSES * STEP_EVENTS))
    with multiprocessing.Pool() as pool:
        parts = pool.starmap(write_process, [(folder, rank, steps) for rank in range(PROCESSES)])
    names = sum(parts, Counter())
    # DFTracer's tools count the first and last line of the library too.
    known = {"events": sum(names.values()), "names": dict(names), "processes": PROCESSES,
             "steps": steps * PROCESSES, "files": PROCESSES * min(FILES, steps * BATCH)}
    (folder / "known.json").write_text(json.dumps(known, indent=2) + "\n")


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit("usage: made_trace.py FOLDER EVENTS")
    main(*sys.argv[1:])
