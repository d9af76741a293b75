"""What a program asked the kernel for, file by file, from a log of strace.

The log is made with `-f -Y -y -s 0`: every descriptor comes with its path and every thread with its name.
Descriptors made by `dup` need no bookkeeping to be known, only to be placed: a `read` has no offset of
its own, it is where the last `read` or `lseek` of any descriptor of the same opened file left it.
"""

import posixpath
import re
import shutil
import subprocess
from collections import Counter, defaultdict
from dataclasses import dataclass, field

# Calls that look at a file, move in it, or hand a descriptor on.
WATCHED = (
    "open", "openat", "openat2", "newfstatat", "fstat", "statx", "stat", "lstat", "read", "pread64",
    "readv", "preadv", "preadv2", "lseek", "mmap", "ioctl", "fadvise64", "close", "dup", "dup2",
    "dup3", "fcntl", "flock", "fork", "vfork", "clone", "clone3",
)
OPENS = ("open", "openat", "openat2")
STATS = ("newfstatat", "fstat", "statx", "stat", "lstat")
READS = ("read", "pread64", "readv", "preadv", "preadv2")
BIRTHS = ("fork", "vfork", "clone", "clone3")

_LINE = re.compile(r"^(\d+)(?:<([^>]*)>)? +(.*)$")
_RESUMED = re.compile(r"^<\.\.\. (\w+) resumed>(.*)$")
_CALL = re.compile(r"^(\w+)\((.*)\) += (-?\d+|0x[0-9a-f]+|\?)(.*)$")
_DESCRIPTOR = re.compile(r"^(\d+)<([^>]*)>")
_NAMED = re.compile(r'^(?:AT_FDCWD(?:<[^>]*>)?, |\d+<[^>]*>, )?"([^"]*)"')
_LAST_NUMBER = re.compile(r", (\d+)$")
_LAST_TWO = re.compile(r", (\d+), (\d+)$")
_MAPPED = re.compile(r", (\d+), PROT_[^,]*, MAP_[^,]*, (\d+)<([^>]*)>, (0x[0-9a-f]+|0)$")
_VECTOR = re.compile(r"iov_len=(\d+)")


@dataclass
class Call:
    """One call on one file."""

    name: str
    process: int
    # Name of the thread that called.
    thread: str = ""
    offset: int | None = None
    asked: int | None = None
    got: int | None = None
    detail: str = ""

    @property
    def is_read(self):
        """Whether the call moves bytes of the file."""
        return self.name in READS


@dataclass
class Opened:
    """One opened file of one process, from `open` to the last call on it."""

    path: str
    process: int
    calls: list = field(default_factory=list)
    position: int = 0

    @property
    def reads(self):
        """The reads of this opened file, in order."""
        return [call for call in self.calls if call.is_read]


@dataclass
class Calls:
    """The calls on the files of interest."""

    opened: list = field(default_factory=list)
    # Calls by path, in the order in which they ended, those by name (`stat`) included.
    by_path: dict = field(default_factory=lambda: defaultdict(list))
    # (path, call) of all reads, in the order in which they ended.
    reads: list = field(default_factory=list)

    def below(self, folder):
        """The calls on files below a folder."""
        prefix = f"{str(folder).rstrip('/')}/"
        return self._only(lambda one: one.path.startswith(prefix),
                          lambda path, call: path.startswith(prefix))

    def of_threads(self, names):
        """The calls of threads whose name begins with `names`."""
        return self._only(lambda one: one.calls[0].thread.startswith(names),
                          lambda path, call: call.thread.startswith(names))

    def without_looks(self):
        """The calls without files that were opened and not read."""
        looks = {id(call) for one in self.opened if not one.reads for call in one.calls}
        return self._only(lambda one: one.reads, lambda path, call: id(call) not in looks)

    def _only(self, keep_opened, keep_call):
        kept = Calls(opened=[one for one in self.opened if keep_opened(one)])
        for path, listed in self.by_path.items():
            chosen = [call for call in listed if keep_call(path, call)]
            if chosen:
                kept.by_path[path] = chosen
        kept.reads = [(path, call) for path, call in self.reads if keep_call(path, call)]
        return kept


def command():
    """The beginning of a command under strace; the path of the log goes behind it."""
    if not shutil.which("strace"):
        raise FileNotFoundError("no strace; bring it with: apt-get install -y strace")
    return ["strace", "-f", "--seccomp-bpf", "-Y", "-y", "-s", "0", "-e", "signal=none",
            "-e", "trace=" + ",".join(WATCHED), "-o"]


def record(argv, log, belongs, **options):
    """Runs a command under strace and returns the calls on the files for which `belongs(path)` holds."""
    ended = subprocess.run([*command(), str(log), *map(str, argv)], capture_output=True, text=True,
                           check=False, stdin=subprocess.DEVNULL, **options)
    if ended.returncode != 0:
        raise RuntimeError(f"{' '.join(map(str, argv))}\nstatus {ended.returncode}\n"
                           f"{ended.stdout[-2000:]}\n{ended.stderr[-4000:]}")
    with open(log, encoding="utf-8", errors="replace") as lines:
        return parse(lines, belongs)


def parse(lines, belongs):
    """The calls in a log on the files for which `belongs(path)` holds."""
    whole = list(_joined(lines))
    table = _Table(belongs)
    processes = _processes(whole)
    for thread, name, text in whole:
        matched = _CALL.match(text)
        if matched and matched[3] != "?":
            table.thread = name
            table.take(processes.get(thread, thread), *matched.groups())
    return table.calls


def _joined(lines):
    """(thread, its name, call) in the order in which the calls ended, cut calls put together."""
    unfinished = {}
    for line in lines:
        matched = _LINE.match(line.rstrip("\n"))
        if not matched:
            continue
        thread, name, text = int(matched[1]), matched[2] or "", matched[3]
        if text.endswith("<unfinished ...>"):
            unfinished[thread] = text.removesuffix("<unfinished ...>").rstrip()
            continue
        resumed = _RESUMED.match(text)
        if resumed:
            text = unfinished.pop(thread, f"{resumed[1]}(") + resumed[2]
        yield thread, name, text


def _processes(whole):
    """Process of each thread."""
    parents = {}
    for thread, _, text in whole:
        matched = _CALL.match(text)
        if matched and matched[1] in BIRTHS and matched[3].isdigit() and int(matched[3]) > 0:
            if "CLONE_THREAD" in matched[2]:
                parents[int(matched[3])] = thread
    processes = {}
    for thread in parents:
        process = thread
        while process in parents:
            process = parents[process]
        processes[thread] = process
    return processes


class _Table:
    """Descriptors of all processes, and what was called on them."""

    def __init__(self, belongs):
        self.belongs = belongs
        self.calls = Calls()
        self.descriptors = {}
        # Name of the thread whose call is taken.
        self.thread = ""

    def take(self, process, name, arguments, result, rest):
        number = int(result, 0)
        if name in BIRTHS:
            self.birth(process, number, arguments)
        elif name in OPENS:
            # Behind a descriptor stands the path of the file, behind an error its name.
            opened = _DESCRIPTOR.match(result + rest)
            call = Call(name, process, self.thread, got=number, detail=_flags(arguments))
            self.open(process, call, opened[2] if opened else _name(arguments))
        elif name == "mmap":
            self.map(process, arguments)
        elif name in ("stat", "lstat", "newfstatat", "statx") and not _DESCRIPTOR.match(arguments):
            self.named(process, name, arguments, number)
        else:
            self.described(process, name, arguments, number)

    def birth(self, process, child, arguments):
        if child <= 0 or "CLONE_FILES" in arguments:
            return
        for (owner, descriptor), opened in list(self.descriptors.items()):
            # A child that already opened a file of its own under this number keeps it.
            if owner == process:
                self.descriptors.setdefault((child, descriptor), opened)

    def open(self, process, call, path):
        self.descriptors.pop((process, call.got), None)
        if not self.belongs(path):
            return
        if call.got < 0:
            self.calls.by_path[path].append(call)
            return
        opened = Opened(path, process)
        self.descriptors[process, call.got] = opened
        self.calls.opened.append(opened)
        self.add(opened, call)

    def map(self, process, arguments):
        mapped = _MAPPED.search(arguments)
        if mapped and self.belongs(mapped[3]):
            opened = self.opened(process, int(mapped[2]), mapped[3])
            self.add(opened, Call("mmap", process, self.thread, int(mapped[4], 0), int(mapped[1])))

    def named(self, process, name, arguments, result):
        path = _name(arguments)
        if self.belongs(path):
            self.calls.by_path[path].append(Call(name, process, self.thread, got=result))

    def described(self, process, name, arguments, result):
        matched = _DESCRIPTOR.match(arguments)
        if not matched:
            return
        path = matched[2]
        if name in STATS:
            # A path relative to a folder's descriptor.
            inner = _name(arguments)
            if inner:
                path = posixpath.join(path, inner)
                if self.belongs(path):
                    self.calls.by_path[path].append(Call(name, process, self.thread, got=result))
                return
        if not self.belongs(path):
            return
        opened = self.opened(process, int(matched[1]), path)
        call = Call(name, process, self.thread, got=result,
                    detail=arguments[matched.end():].lstrip(", "))
        if name in READS:
            _place(opened, call, arguments)
        elif name == "lseek" and result >= 0:
            opened.position = call.offset = result
        elif name == "close":
            self.descriptors.pop((process, int(matched[1])), None)
        elif name in ("dup", "dup2", "dup3") or (name == "fcntl" and "F_DUPFD" in arguments):
            self.descriptors[process, result] = opened
        self.add(opened, call)

    def opened(self, process, descriptor, path):
        found = self.descriptors.get((process, descriptor))
        if found is None or found.path != path:
            found = Opened(path, process)
            self.descriptors[process, descriptor] = found
            self.calls.opened.append(found)
        return found

    def add(self, opened, call):
        opened.calls.append(call)
        self.calls.by_path[opened.path].append(call)
        if call.is_read:
            self.calls.reads.append((opened.path, call))


def _place(opened, call, arguments):
    """Sets size and offset of a read, and moves the opened file on."""
    if call.name == "pread64":
        asked, offset = _LAST_TWO.search(arguments).groups()
        call.asked, call.offset = int(asked), int(offset)
        return
    if call.name == "read":
        call.asked = int(_LAST_NUMBER.search(arguments)[1])
    else:
        call.asked = sum(map(int, _VECTOR.findall(arguments)))
    if call.name.startswith("preadv"):
        call.offset = int(re.search(r"\], \d+, (\d+)", arguments)[1])
        return
    call.offset = opened.position
    opened.position += max(call.got, 0)


def _name(arguments):
    matched = _NAMED.match(arguments)
    return matched[1] if matched else ""


def _flags(arguments):
    matched = re.search(r"(O_[A-Z_|]+)", arguments)
    return matched[1] if matched else ""


@dataclass(frozen=True)
class Counts:
    """Calls of a whole run on its data files."""

    opens: int
    stats: int
    reads: int
    bytes: int
    asked: Counter
    maps: int


def counts(calls):
    """Adds up the calls of all files."""
    every = [call for listed in calls.by_path.values() for call in listed]
    reads = [call for call in every if call.is_read]
    return Counts(
        opens=sum(call.name in OPENS for call in every),
        stats=sum(call.name in STATS for call in every),
        reads=len(reads),
        bytes=sum(max(call.got, 0) for call in reads),
        asked=Counter(call.asked for call in reads),
        maps=sum(call.name == "mmap" for call in every),
    )


def distance(one, other):
    """Half of the L1 distance between two normalized histograms: 0 alike, 1 disjoint."""
    first, second = sum(one.values()), sum(other.values())
    if not first or not second:
        return 0.0 if first == second else 1.0
    return sum(abs(one[size] / first - other[size] / second) for size in one | other) / 2
