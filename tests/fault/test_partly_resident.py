"""A file of which single pages have left memory: whatever way there is to ask, the loop never
sleeps in a call on it.  Without asking it does, so the test would see it."""

import mmap
import os
import time

import pytest

import harness
import mounts
import tree as t
from admin import Admin
from laboratory import forbid
from test_asleep import slept
from test_without import may_filter  # a fixture

PAGES = 320
SIZE = PAGES * mmap.PAGESIZE + 77  # and a page of 77 bytes
HOLES = [[0], [5], [16], [17], [PAGES // 2], [PAGES - 1], [PAGES], [1, 33, 70], range(1, PAGES, 2)]

# Who asks, and what cachestat answers them.
WAYS = {
    "cachestat": ("root", None),
    "mincore": ("root", "ENOSYS"),
    "nowait": ("nobody", "EPERM"),
    "nobody": ("nobody", None),
}


@pytest.fixture(scope="module")
def disk():
    with mounts.made("ext4") as made:
        t.write(os.path.join(made.files, "file"), t.content(7, SIZE))
        yield made


def read_pages(fd):
    """One by one: a page of a large folio cannot be evicted alone."""
    os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_RANDOM)
    for off in range(0, SIZE, mmap.PAGESIZE):
        os.pread(fd, mmap.PAGESIZE, off)


def evict_only(path, holes):
    """True if these pages are not in memory, and all others are."""
    fd = os.open(path, os.O_RDONLY)
    try:
        read_pages(fd)
        mounts.let_go_of_packets()
        for hole in holes:
            os.posix_fadvise(fd, hole * mmap.PAGESIZE, mmap.PAGESIZE, os.POSIX_FADV_DONTNEED)
    finally:
        os.close(fd)
    return mounts.resident(path) == PAGES + 1 - len(holes)


def evict_singly(path, holes):
    """A page may be in use for a moment."""
    harness.wait_until(lambda: evict_only(path, holes), "pages to be evicted singly")


def ask_with_holes(server, disk):
    path = os.path.join(disk.dir, "file")
    with server.connect() as c:
        assert c.ask("/file").body == t.content(7, SIZE)
        for holes in HOLES:
            evict_singly(path, holes)
            time.sleep(mounts.HOLDS + 0.02)
            assert c.ask("/file").body == t.content(7, SIZE)


@pytest.fixture
def start(serve, disk, may_filter):
    def with_path(send_path, way):
        user, error = WAYS[way]
        mounts.drop(os.path.join(disk.dir, "file"))
        with open(os.path.join(disk.dir, "file"), "rb") as f:
            read_pages(f.fileno())
        return serve(
            "--root", disk.dir, "--workers", "1", "--send-path", send_path, "--hot-set", "0",
            "--admin", "127.0.0.1:0", user=None if user == "root" else user,
            binary=harness.RELEASE,
            wrapper=forbid.wrapper("%d:%s" % (mounts.CACHESTAT, error)) if error else [],
        )

    return with_path


@pytest.mark.once
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("send_path", ["nodiskio", "splice", "uring"])
def test_loop_never_sleeps_for_an_evicted_page(start, disk, send_path, way):
    server = start(send_path, way)
    admin = Admin(server)
    ask_with_holes(server, disk)  # memory and threads: to get them is to wait for the process' map
    before = slept(admin)
    ask_with_holes(server, disk)
    assert slept(admin) == before


@pytest.mark.once
def test_loop_without_a_residency_check_sleeps(start, disk):
    server = start("blocking", "cachestat")
    admin = Admin(server)
    ask_with_holes(server, disk)
    assert slept(admin).get("sendfile", 0) >= 1
    server.stop(messages=True)
