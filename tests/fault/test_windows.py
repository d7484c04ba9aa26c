"""What is read from a disk for a window, page by page: neither more nor less, and
in large folios where the file system has them."""

import ctypes
import mmap
import os
import struct

import pytest

import mounts
import tree as t
from harness import wait_until

WINDOW = 2 * t.MIB
SIZE = 4 * WINDOW + 300001
COMPOUND_TAIL = 1 << 16  # linux/kernel-page-flags.h
PATHS = ["nodiskio", "splice", "mlock", "uring"]
FOLIO_PATHS = PATHS[:3]  # those whose windows the pool fetches


@pytest.fixture(scope="module", params=mounts.params(["ext4", "xfs"]))
def disk(request):
    with mounts.made(request.param) as made:
        device = os.stat(made.dir).st_dev
        number = "%d:%d" % (os.major(device), os.minor(device))
        with open("/sys/dev/block/%s/queue/read_ahead_kb" % number, "w") as f:
            f.write("128")  # as it is when a loop device is new
        t.write(os.path.join(made.dir, "big.bin"), t.content(1, SIZE))
        yield made


@pytest.fixture
def big(disk):
    path = os.path.join(disk.dir, "big.bin")

    wait_until(lambda: mounts.evict(path), "the pages to leave memory")
    return path


@pytest.fixture
def start(disk, serve):
    def with_path(name, *more):
        return serve("--root", disk.dir, "--send-path", name, "--workers", "1", *more)

    return with_path


def pages(first, end):
    return -(-end // mmap.PAGESIZE) - first // mmap.PAGESIZE


@pytest.mark.parametrize("path_name", PATHS)
@pytest.mark.parametrize(
    "first, end",
    [
        (0, WINDOW),
        (WINDOW, 2 * WINDOW),
        (WINDOW, 2 * WINDOW - 100000),
        (4 * WINDOW, SIZE),
        (3 * t.MIB, 3 * t.MIB + 300000),
        (SIZE - 1, SIZE),
    ],
)
def test_a_range_fetches_only_its_own_pages(start, big, path_name, first, end):
    """Asked for more than once: what was left behind must not make anybody read more.
    Fewer pages are left only where the kernel has taken some back at once."""
    server = start(path_name)
    left = []
    while len(left) < 2 or (len(left) < 10 and max(left) < pages(first, end)):
        fields = {"Range": "bytes=%d-%d" % (first, end - 1)}
        assert server.get("/big.bin", fields=fields).body == t.content(1, SIZE)[first:end]
        left.append(mounts.resident(big))
    assert max(left) == pages(first, end)


def flags_of(path, offset):
    """Kernel's flags of the page in memory."""
    with mounts.mapped(path, offset, mmap.PAGESIZE) as (_, address, _):
        ctypes.string_at(address, 1)
        with open("/proc/self/pagemap", "rb") as f:
            f.seek(address // mmap.PAGESIZE * 8)
            frame = struct.unpack("Q", f.read(8))[0] & ((1 << 55) - 1)
    with open("/proc/kpageflags", "rb") as f:
        f.seek(frame * 8)
        return struct.unpack("Q", f.read(8))[0]


def has_large_folios(kind):
    release = tuple(int(n) for n in os.uname().release.split("-")[0].split(".")[:2])
    try:
        with open("/sys/kernel/mm/transparent_hugepage/hpage_pmd_size") as f:
            return int(f.read()) == WINDOW and release >= {"xfs": (6, 5), "ext4": (6, 16)}[kind]
    except FileNotFoundError:
        return False  # built without


@pytest.mark.parametrize("path_name", FOLIO_PATHS)
def test_windows_are_large_folios(start, disk, big, path_name):
    if not has_large_folios(disk.kind):
        pytest.skip("this kernel's %s has no large folios" % disk.kind)
    assert start(path_name).get("/big.bin").body == t.content(1, SIZE)
    # A smaller folio would begin there, and have its head.
    middles = range(t.MIB, SIZE - t.MIB, WINDOW)
    large = [at for at in middles if flags_of(big, at) & COMPOUND_TAIL]
    # Where memory is in pieces the kernel makes do with small ones.
    assert len(large) >= len(middles) // 2
