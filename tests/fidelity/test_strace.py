"""The parser of strace's logs, on logs written by hand."""

from collections import Counter

import strace

FILE = "/d/train/a.npz"


def parsed(text):
    return strace.parse(text.strip().splitlines(), lambda path: path.startswith("/d/train/"))


def test_reads_follow_the_position_of_the_opened_file():
    calls = parsed(f"""
7<python> openat(AT_FDCWD</w>, "{FILE}", O_RDONLY|O_CLOEXEC) = 3<{FILE}>
7<python> newfstatat(3<{FILE}>, "", {{st_mode=S_IFREG|0644, st_size=100, ...}}, AT_EMPTY_PATH) = 0
7<python> read(3<{FILE}>, ""..., 64) = 64
7<python> lseek(3<{FILE}>, -22, SEEK_END) = 78
7<python> fcntl(3<{FILE}>, F_DUPFD_CLOEXEC, 0) = 4<{FILE}>
7<python> read(4<{FILE}>, ""..., 23) = 22
7<python> read(3<{FILE}>, "", 1) = 0
7<python> pread64(3<{FILE}>, ""..., 8, 40) = 8
7<python> read(3<{FILE}>, "", 5) = 0
7<python> openat(AT_FDCWD</w>, "/etc/passwd", O_RDONLY) = 5</etc/passwd>
7<python> read(5</etc/passwd>, ""..., 4096) = 4096
""")
    assert [(call.offset, call.asked, call.got) for _, call in calls.reads] == [
        (0, 64, 64), (78, 23, 22), (100, 1, 0), (40, 8, 8), (100, 5, 0)]
    assert strace.counts(calls) == strace.Counts(
        opens=1, stats=1, reads=5, bytes=94, asked=Counter({64: 1, 23: 1, 1: 1, 8: 1, 5: 1}), maps=0)


def test_a_call_in_two_lines_counts_when_it_ends():
    calls = parsed(f"""
7<a> openat(AT_FDCWD</w>, "{FILE}", O_RDONLY <unfinished ...>
8<b> stat("{FILE}", {{st_mode=S_IFREG|0644, st_size=100, ...}}) = 0
7<a> <... openat resumed>) = 3<{FILE}>
7<a> read(3<{FILE}>,  <unfinished ...>
8<b> lstat("/d/train/none", 0x7ffe) = -1 ENOENT (No such file or directory)
7<a> <... read resumed>""..., 10) = 10
""")
    assert [(path, call.asked) for path, call in calls.reads] == [(FILE, 10)]
    assert strace.counts(calls).stats == 2
    assert strace.counts(calls).opens == 1


def test_threads_share_descriptors_and_processes_do_not():
    calls = parsed(f"""
7<main> clone3({{flags=CLONE_VM|CLONE_FILES|CLONE_THREAD, stack=0x7f}} => {{parent_tid=[8]}}, 88) = 8<main>
7<main> clone(child_stack=NULL, flags=CLONE_CHILD_SETTID|SIGCHLD, child_tidptr=0x7f) = 9<main>
7<main> openat(AT_FDCWD</w>, "{FILE}", O_RDONLY) = 3<{FILE}>
9<main> openat(AT_FDCWD</w>, "{FILE}", O_RDONLY) = 3<{FILE}>
8<reader 0> read(3<{FILE}>, ""..., 10) = 10
9<main> read(3<{FILE}>, ""..., 10) = 10
7<main> read(3<{FILE}>, ""..., 10) = 10
""")
    assert [(call.process, call.offset) for _, call in calls.reads] == [(7, 0), (9, 0), (7, 10)]
    assert len(calls.opened) == 2


def test_a_map_is_placed_and_a_look_is_left_out():
    calls = parsed(f"""
7<rank 0> openat(AT_FDCWD</w>, "{FILE}", O_RDONLY) = 3<{FILE}>
7<rank 0> mmap(NULL, 100, PROT_READ, MAP_SHARED, 3<{FILE}>, 0x1000) = 0x7f0000000000
7<rank 0> close(3<{FILE}>) = 0
8<reader 0> openat(AT_FDCWD</w>, "{FILE}", O_RDONLY) = 3<{FILE}>
8<reader 0> readv(3<{FILE}>, [{{iov_base=""..., iov_len=6}}, {{iov_base=""..., iov_len=4}}], 2) = 10
""")
    assert strace.counts(calls).maps == 1
    assert strace.counts(calls.without_looks()) == strace.counts(calls.of_threads("reader"))
    assert strace.counts(calls.of_threads("reader")).asked == Counter({10: 1})
    assert not calls.below("/d/train/a").reads
    assert len(calls.below("/d").reads) == 1


def test_distance_is_half_of_the_difference_of_the_shares():
    assert strace.distance(Counter({4096: 3, 10: 1}), Counter({4096: 6, 10: 2})) == 0
    assert strace.distance(Counter({4096: 3, 10: 1}), Counter({4096: 1})) == 0.25
    assert strace.distance(Counter({1: 1}), Counter({2: 5})) == 1
    assert strace.distance(Counter(), Counter()) == 0
    assert strace.distance(Counter(), Counter({1: 1})) == 1
