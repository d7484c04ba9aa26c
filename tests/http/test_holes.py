"""Holes of sparse files (docs/design/prefetching.md): each byte is right, over each protocol, and a
hole takes no read of the disk and no page of memory."""

import ctypes
import mmap
import os
import time

import pytest

import mounts
import tree as t
from admin import Admin
from harness import request

TIB = 1 << 40
GIB = 1 << 30
SETTLED = 3.1  # s: pool_is_settled has 2, and compares whole ones
PIECE = 16 * t.MIB
AROUND = 256 * t.KIB  # bytes beside an island that may be read as well
MIDDLE = 64 * t.MIB + 77
CHANGED = r"pagewise: filled: changed while it was sent: [^\n]*\n"
FETCHED = "pagewise_disk_fetched_bytes"

# {name: (size, [(begin, length)])}
FILES = {
    "tib": (TIB, []),
    "large": (4 * GIB + 12345, [(0, 3 * t.MIB + 5), (5 * t.MIB, 1), (100 * t.MIB + 4096, 9 * t.MIB),
                                (3 * GIB + 777, 2 * t.MIB), (4 * GIB, 12345)]),
    "middle": (MIDDLE, [(4096, 70000), (10 * t.MIB, 3 * t.MIB + 1), (14 * t.MIB, 2 * t.MIB),
                        (40 * t.MIB - 1, 2)]),
}


def expected(name, first, size):
    """These bytes of the file."""
    data = bytearray(size)
    for begin, length in FILES[name][1]:
        a, b = max(first, begin), min(first + size, begin + length)
        if a < b:
            data[a - first:b - first] = t.content(9, b - a, a)
    return bytes(data)


def island_bytes(name):
    return sum(length + AROUND for _, length in FILES[name][1])


@pytest.fixture(scope="module")
def sparse(tmp_path_factory):
    root = tmp_path_factory.mktemp("sparse")
    root.chmod(0o755)
    for name, (size, islands) in FILES.items():
        with open(root / name, "wb") as f:
            try:
                f.truncate(size)
            except OSError:
                pytest.skip("no sparse file of %d bytes here" % size)
            for begin, length in islands:
                f.seek(begin)
                f.write(t.content(9, length, begin))
        mounts.drop(root / name)
    with open(root / "middle", "rb") as f:
        if os.lseek(f.fileno(), 20 * t.MIB, os.SEEK_DATA) != (40 * t.MIB - 1) // 4096 * 4096:
            pytest.skip("no holes in files here")
    if mounts.resident(root / "middle"):
        pytest.skip("this file system keeps everything in memory")
    time.sleep(max(0, os.stat(root / "middle").st_ctime + SETTLED - time.time()))
    yield root
    for name in FILES:
        os.unlink(root / name)


@pytest.fixture
def server(serve, sparse):
    return serve("--root", sparse, "--cache", "keep", "--workers", "1", "--hot-set", "0",
                 "--send-path", "nodiskio", "--admin", "127.0.0.1:0")


def fetched(server):
    return Admin(server).value(FETCHED + "_total", queue="files")


def part(server, name, first, size):
    answer = server.get("/" + name, fields={"Range": "bytes=%d-%d" % (first, first + size - 1)})
    assert answer.status == 206
    return answer.body


def resident_in(path, first, size):
    """Pages in memory of a part of a file that is too large to be looked at as a whole."""
    with mounts.mapped(path, first - first % PIECE, size) as (libc, address, length):
        pages = ctypes.create_string_buffer(-(-length // mmap.PAGESIZE))
        assert libc.mincore(address, length, pages) == 0
        return sum(b & 1 for b in pages.raw)


@pytest.mark.parametrize("first", [0, TIB // 2 + 1, TIB - PIECE - 1, TIB - 1])
def test_hole_of_a_tebibyte_takes_no_disk_and_no_memory(server, sparse, first):
    size = min(PIECE, TIB - first)
    assert part(server, "tib", first, size) == bytes(size)
    assert fetched(server) == 0
    assert resident_in(sparse / "tib", first, size) == 0
    text = Admin(server).ask().text
    assert "pagewise_unsent_bytes 0\n" in text
    assert "pagewise_windows_missed_total 0\n" in text


def test_ranges_around_islands_are_right(server, sparse):
    assert mounts.evict(sparse / "middle")
    ranges = [(0, 5000), (4095, 2), (74096 - 1, 3), (9 * t.MIB, 5 * t.MIB), (13 * t.MIB, t.MIB),
              (40 * t.MIB - 3, 9), (MIDDLE - 1, 1), (MIDDLE - 300000, 300000)]
    for first, size in ranges:
        assert part(server, "middle", first, size) == expected("middle", first, size)


@pytest.mark.parametrize("cache", ["keep", "drop", "auto"])
def test_only_islands_are_read_and_stay(serve, sparse, cache):
    assert mounts.evict(sparse / "middle")
    server = serve("--root", sparse, "--cache", cache, "--workers", "1", "--hot-set", "0",
                   "--send-path", "nodiskio", "--admin", "127.0.0.1:0")
    for _ in range(2):
        assert server.get("/middle").body == expected("middle", 0, MIDDLE)
    assert mounts.resident(sparse / "middle") * 4096 <= island_bytes("middle")
    # Twice if they did not stay, and once more if the kernel evicted them too early.
    assert fetched(server) <= 4 * island_bytes("middle")


@pytest.mark.slow
@pytest.mark.waits
@pytest.mark.http1("a client in Python takes minutes")
def test_download_of_4_gib_is_right_and_reads_only_islands(server, sparse):
    size, _ = FILES["large"]
    with server.connect() as c:
        c.send(request("/large"))
        assert c.read_head().length == size
        for first in range(0, size, PIECE):
            length = min(PIECE, size - first)
            assert c.read_exactly(length) == expected("large", first, length), first
    assert fetched(server) <= 2 * island_bytes("large")
    assert mounts.resident(sparse / "large") * 4096 <= island_bytes("large")


def test_hole_that_is_filled_in_mid_transfer_is_never_sent_whole(server, sparse):
    """The rest is of another version than the head says: the connection ends before it is whole."""
    path = sparse / "filled"
    with open(path, "wb") as f:
        f.truncate(MIDDLE)
    time.sleep(SETTLED)
    try:
        with server.connect(rcvbuf=4096) as c:
            c.send(request("/filled"))
            assert c.read_head().length == MIDDLE
            c.read_exactly(t.MIB)
            with open(path, "r+b") as f:
                f.seek(60 * t.MIB)
                f.write(b"new")
            with pytest.raises(Exception):
                c.read_exactly(MIDDLE - t.MIB)
        answer = server.get("/filled")
        assert answer.body[60 * t.MIB:60 * t.MIB + 3] == b"new"
        assert len(answer.body) == MIDDLE and answer.body.count(0) == MIDDLE - 3
    finally:
        os.unlink(path)
    server.stop(messages=CHANGED)
