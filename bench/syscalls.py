"""What a program asked of the kernel, from strace: an account no program can write itself."""

import re
import shutil
from dataclasses import dataclass

READS = ("read", "pread64", "readv", "preadv", "preadv2")
# `-f` puts the thread first; a call that another thread interrupts is printed in two lines.
BEGUN = re.compile(r"^(\d+)\s+(\d+\.\d+) (\w+)\((.*)")
RESUMED = re.compile(r"^(\d+)\s+\d+\.\d+ <\.\.\. (\w+) resumed>(.*)")
RESULT = re.compile(r"= (\d+)$")


@dataclass(frozen=True)
class Reads:
    """The reads of files below one folder."""

    first_ms: float
    calls: int
    bytes: int


def traced_reads(program, job, trace):
    """Trains once under strace; raises ValueError if no file below the job's folder was read."""
    if shutil.which("strace") is None:
        raise FileNotFoundError("no strace; install it with: apt-get install -y strace")
    program.run([
        "strace", "-f", "-qq", "--seccomp-bpf", "-y", "-ttt", "-s", "0",
        "-e", f"trace=execve,{','.join(READS)}", "-o", str(trace), *program.argv(job, False),
    ])
    with open(trace, encoding="utf-8", errors="replace") as lines:
        reads = parse(lines, str(job.data))
    if reads is None:
        raise ValueError(f"{program.name} read no file below {job.data}, says strace")
    return reads


def parse(lines, folder):
    """The reads below `folder` in a trace, or None."""
    start = first = None
    calls = total = 0
    waiting = set()
    for line in lines:
        result = RESULT.search(line)
        got = int(result[1]) if result else 0
        begun = BEGUN.match(line)
        if begun:
            thread, at, call, arguments = begun[1], float(begun[2]), begun[3], begun[4]
            start = at if start is None else start
            if call not in READS or f"<{folder}/" not in arguments.split(",")[0]:
                continue
            first = at if first is None else first
            calls += 1
            total += got
            if "<unfinished" in arguments:
                waiting.add(thread)
        else:
            resumed = RESUMED.match(line)
            if resumed and resumed[1] in waiting:
                waiting.discard(resumed[1])
                total += got
    return None if first is None else Reads((first - start) * 1e3, calls, total)
