"""One command, measured: wall time, CPU time and peak memory of it and of all it started.

The kernel adds a process's CPU time to its parent only when the parent waits for it. Worker
processes that outlive their parent would be lost that way, so each command runs below a small
process of its own that adopts orphans and waits for every one of them.
"""

import ctypes
import json
import os
import resource
import subprocess
import sys
import threading
import time
from dataclasses import asdict, dataclass

PR_SET_CHILD_SUBREAPER = 36
# Between two looks at the memory of all processes together. A look stops each of them for a moment: 5 to
# 15 ms for one that has imported torch, which is a lot for a job with short steps.
LOOK_S = 0.2
NO_LOOKS = float("inf")


@dataclass(frozen=True)
class Usage:
    """What a command used. `peak_rss_bytes` is the largest single process, not a sum;
    `peak_together_bytes` is the sum of all at one moment, pages that they share counted once, as far
    as looking from time to time shows it (0 if it ended before the first look)."""

    exit_code: int
    wall_s: float
    user_s: float
    sys_s: float
    peak_rss_bytes: int
    peak_together_bytes: int = 0

    @property
    def cpu_s(self):
        """User and system time together."""
        return self.user_s + self.sys_s


class CommandFailed(Exception):
    """The command ended with another status than 0. The text holds the end of its output."""


def measure(argv, log_path, env=None, cwd=None, look_s=LOOK_S):
    """Runs `argv` with its output in `log_path` and returns its `Usage`; raises `CommandFailed`."""
    read_end, write_end = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.close(read_end)
        status = 1
        try:
            usage = _run_and_reap(argv, log_path, env, cwd, look_s)
            os.write(write_end, json.dumps(asdict(usage)).encode())
            status = 0
        except OSError as error:
            print(f"error: cannot run {argv[0]}: {error}", file=sys.stderr)
        finally:
            os._exit(status)
    os.close(write_end)
    with os.fdopen(read_end, "rb") as pipe:
        answer = pipe.read()
    os.waitpid(pid, 0)
    if not answer:
        raise CommandFailed(f"{argv[0]} was not started")
    usage = Usage(**json.loads(answer))
    if usage.exit_code != 0:
        with open(log_path, encoding="utf-8", errors="replace") as log:
            tail = "".join(log.readlines()[-15:])
        raise CommandFailed(f"{' '.join(argv)}\nended with status {usage.exit_code}:\n{tail}")
    return usage


def _run_and_reap(argv, log_path, env, cwd, look_s):
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) != 0:
        raise OSError(ctypes.get_errno(), "prctl")
    with open(log_path, "wb") as log:
        start = time.monotonic()
        process = subprocess.Popen(
            argv, stdin=subprocess.DEVNULL, stdout=log, stderr=log, env=env, cwd=cwd
        )
        watch = Watch(os.getpid(), look_s)
        watch.start()
        exit_code, wall_s = None, None
        while True:
            try:
                pid, status = os.wait()
            except ChildProcessError:
                break
            if pid == process.pid:
                exit_code = os.waitstatus_to_exitcode(status)
                wall_s = time.monotonic() - start
        watch.ended.set()
        watch.join()
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return Usage(exit_code, wall_s, used.ru_utime, used.ru_stime, used.ru_maxrss * 1024,
                 watch.peak_bytes)


class Watch(threading.Thread):
    """Looks at the memory of all that a process started. Its own time is not the command's."""

    def __init__(self, ancestor, look_s):
        super().__init__(daemon=True)
        self.ancestor = ancestor
        self.pause_s = None if look_s == NO_LOOKS else look_s
        self.ended = threading.Event()
        self.peak_bytes = 0

    def run(self):
        while not self.ended.wait(self.pause_s):
            self.peak_bytes = max(self.peak_bytes, sum(map(shared_out_bytes, self.descendants())))

    def descendants(self):
        """Numbers of the processes below the ancestor."""
        children = {}
        for name in filter(str.isdigit, os.listdir("/proc")):
            try:
                with open(f"/proc/{name}/stat", encoding="utf-8", errors="replace") as stat:
                    # The name in brackets may hold anything.
                    parent = int(stat.read().rpartition(")")[2].split()[1])
            except OSError:
                continue
            children.setdefault(parent, []).append(int(name))
        found = list(children.get(self.ancestor, []))
        for pid in found:
            found.extend(children.get(pid, []))
        return found


def shared_out_bytes(pid):
    """Memory of a process; of pages that several have, its share. 0 if it is gone."""
    try:
        with open(f"/proc/{pid}/smaps_rollup", encoding="ascii") as rollup:
            for line in rollup:
                if line.startswith("Pss:"):
                    return int(line.split()[1]) * 1024
    except OSError:
        pass
    return 0
