"""Roots on FUSE, whose residency cannot be checked: the tier has their windows across restarts and mounts, and
never returns those of another file or version."""

import contextlib
import os
import pathlib
import signal
import time

import pytest

import tree as t
from harness import ProtocolError, wait_until
from test_slowfs import slow  # a fixture
from test_tier import COPY, FILES, LARGE, SETTLED, SIZE, Tiered, flip_bits, shm

FRESH = [0, "fresh"]  # the kernel keeps no attributes, so that it sees changes of the source


def source(slow, n):
    return os.path.join(slow.source, "%d.bin" % n)


def mounted(*params):
    """How slowfs is started for a test."""
    return pytest.mark.parametrize("slow", [list(params)], indirect=True, ids=[params[-1]])


@pytest.fixture
def remote(slow, serve_conf, shm):
    """A function that starts a server whose root is on FUSE."""
    for n in range(FILES):
        slow.add("%d.bin" % n, t.content(n, SIZE))
        os.utime(source(slow, n), (10**9, 10**9))
    time.sleep(SETTLED)
    return lambda **top: Tiered(serve_conf, pathlib.Path(slow.dir), shm, **top)


def mount_again(slow, *params):
    slow.stop()
    os.unlink(slow.socket)
    slow.start(*params)


def end(tiered):
    tiered.server.kill()
    tiered.server.stop(codes=(-signal.SIGKILL,), messages=True)


@mounted(*FRESH)
def test_first_requests_are_right_and_not_written(remote):
    tiered = remote()
    tiered.waits("up")
    for n in range(FILES):
        tiered.get(n)
    figures = tiered.figures()
    assert figures["hits_total"] == figures["windows"] == 0


@mounted(*FRESH)
def test_windows_come_from_the_tier_while_the_slow_disk_hangs(remote, slow):
    tiered = remote().fill()
    slow.hang("read", "0.bin")
    tiered.get(0)
    tiered.has_hits(3)
    assert tiered.figures()["hit_bytes_total"] >= SIZE
    assert slow.held("read") == 0


@mounted(*FRESH)
@pytest.mark.parametrize("first, last", [(0, 10), (1, 2 * t.MIB), (3 * t.MIB + 777, SIZE - 1)])
def test_each_range_is_right(remote, first, last):
    tiered = remote().fill()
    answer = tiered.server.get("/1.bin", fields={"Range": "bytes=%d-%d" % (first, last)})
    assert answer.body == t.content(1, SIZE)[first:last + 1]
    tiered.has_hits(1)


@mounted(*FRESH, "inodes")
def test_windows_are_there_after_a_restart_and_a_kill(remote):
    """With the numbers of the source's inodes: libfuse gives a file another one when the kernel has
    forgotten it, which a test that empties the kernel's caches causes."""
    tiered = remote().fill()
    tiered.server.stop()
    for kill in (True, False):
        tiered = remote()
        tiered.waits("up")
        tiered.cold()
        tiered.get(0)
        tiered.has_hits(3)
        if kill:
            end(tiered)


@mounted(*FRESH, "inodes")
def test_windows_are_there_after_another_mount(remote, slow):
    end(remote().fill())
    mount_again(slow, *FRESH, "inodes")
    tiered = remote()
    tiered.waits("up")
    tiered.cold()
    tiered.get(0)
    tiered.has_hits(3)


@mounted(*FRESH, "mtime")
def test_file_that_gets_the_numbers_of_another_one_is_not_taken_for_it(remote, slow):
    """libfuse numbers inodes in the order of the lookups; all else is the same for these files."""
    tiered = remote().fill()
    numbers = {n: os.stat(tiered.root / ("%d.bin" % n)).st_ino for n in range(FILES)}
    end(tiered)
    mount_again(slow, *FRESH, "mtime")
    again = {n: os.stat(tiered.root / ("%d.bin" % n)).st_ino for n in reversed(range(FILES))}
    assert again[0] in numbers.values() and again != numbers
    tiered = remote()
    tiered.waits("up")
    tiered.cold()
    for n in range(FILES):
        tiered.get(n)


@mounted(*FRESH, "mtime")
def test_file_without_times_is_not_written(remote, slow):
    for n in range(FILES):
        os.utime(source(slow, n), (0, 0))
    tiered = remote()
    tiered.waits("up")
    for _ in range(3):
        tiered.cold()
        for n in range(FILES):
            tiered.get(n)
    assert tiered.figures()["windows"] == 0


@mounted(*FRESH)
def test_changed_file_is_never_sent_from_the_tier(remote, slow):
    tiered = remote().fill()
    changed = bytearray(t.content(2, SIZE))
    changed[t.MIB] ^= 1
    with open(source(slow, 2), "r+b") as f:
        f.seek(t.MIB)
        f.write(changed[t.MIB:t.MIB + 1])
    os.utime(source(slow, 2), (10**9, 10**9))  # its ctime alone differs
    time.sleep(1.1)  # the server's own cache of open files
    assert tiered.server.get("/2.bin").body == changed


@mounted(*FRESH)
def test_flipped_bits_are_never_sent(remote, shm):
    tiered = remote().fill()
    flip_bits(shm)
    for n in range(FILES):
        tiered.get(n)
    assert tiered.figures()["corrupt_total"] >= FILES


@mounted(*FRESH)
def test_file_that_changes_while_it_is_sent_is_never_mixed(remote, slow):
    """A response from the tier alone may end with the version that it began with."""
    old = t.content(9, LARGE)
    slow.add("0.bin", old)
    time.sleep(SETTLED)
    tiered = remote()
    tiered.waits("up")

    def filled():
        time.sleep(COPY)
        return tiered.figures()["windows"] >= LARGE // (2 * t.MIB) or not tiered.server.get("/0.bin")

    wait_until(filled, "all windows")
    time.sleep(COPY)
    with tiered.server.connect(rcvbuf=65536) as c:
        c.send(b"GET /0.bin HTTP/1.1\r\nHost: s\r\nConnection: close\r\n\r\n")
        c.read_head()
        with open(source(slow, 0), "r+b") as f:
            f.write(b"x" * (4 * t.MIB))
            f.seek(LARGE - 4 * t.MIB)
            f.write(b"x" * (4 * t.MIB))
        while c.fill():
            pass
        assert len(c.buf) < LARGE or c.buf == old
    assert tiered.figures()["hits_total"] > 0
    tiered.server.stop(messages="(.*0.bin: changed while it was sent: .*\n)?")


@mounted(*FRESH)
def test_loop_does_not_wait_for_the_slow_disk_at_the_end_of_a_response(remote, slow):
    """The last bytes come from a copy: fstat(2) would wait for the daemon."""
    tiered = remote().fill()
    with tiered.server.connect(rcvbuf=65536) as c:
        c.send(b"GET /0.bin HTTP/1.1\r\nHost: s\r\nConnection: close\r\n\r\n")
        c.read_head()
        slow.hang("lookup", "0.bin")
        while c.fill():
            pass
        slow.release()
        assert c.buf == t.content(0, SIZE)


@mounted(*FRESH, "direct")
def test_file_system_without_a_page_cache(remote, slow):
    tiered = remote().fill()
    slow.hang("read", "0.bin")
    tiered.get(0)
    tiered.has_hits(3)


@mounted(0, "inodes", "mtime", "ro")
def test_bytes_that_are_newer_than_the_kernels_attributes_are_not_written(remote, slow):
    """Otherwise the tier would have them for good, also when the file is as before."""
    tiered = remote()
    tiered.waits("up")
    tiered.get(0)
    t.write(source(slow, 0), bytes(SIZE))
    tiered.cold()
    for _ in range(2):  # the first response ends early if statx(2) finds the change meanwhile
        with contextlib.suppress(ProtocolError):
            tiered.server.get("/0.bin")
        tiered.cold()
    end(tiered)
    t.write(source(slow, 0), t.content(0, SIZE))
    os.utime(source(slow, 0), (10**9, 10**9))
    mount_again(slow, 0, "inodes", "mtime", "ro")
    tiered = remote()
    tiered.waits("up")
    tiered.get(0)
