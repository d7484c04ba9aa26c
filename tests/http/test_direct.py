"""Files that do not stay in the page cache are read past it (docs/design/prefetching.md, "Direct
reads"): each byte is right, over each protocol, and the page cache stays as it was."""

import os
import threading
import time

import pytest

import mounts
import tree as t

SIZE = 5 * t.MIB + 12345
SETTLED = 3.1  # s: lib/disk/fetch.c has 2, and compares whole ones
CLIENTS = 8


@pytest.fixture(scope="module")
def settled(tmp_path_factory):
    """A directory with a file whose times are older than a file system's clock is coarse."""
    root = tmp_path_factory.mktemp("settled")
    root.chmod(0o755)
    t.write(root / "file.bin", t.content(7, SIZE))
    mounts.drop(root / "file.bin")
    if mounts.resident(root / "file.bin"):
        pytest.skip("this file system keeps everything in memory")
    time.sleep(max(0, os.stat(root / "file.bin").st_ctime + SETTLED - time.time()))
    return root


@pytest.fixture
def server(serve, settled):
    assert mounts.evict(settled / "file.bin")
    return serve("--root", settled, "--cache", "drop", "--workers", "1", "--hot-set", "0",
                 "--send-path", "nodiskio")


RANGES = [(0, SIZE - 1), (0, t.MIB - 1), (1, 2 * t.MIB), (2 * t.MIB - 1, 4 * t.MIB + 1), (3 * t.MIB + 777, SIZE - 1),
          (SIZE - 300000, SIZE - 1), (4095, 4096 + 262144)]


@pytest.mark.parametrize("first, last", RANGES)
def test_each_range_is_right(server, first, last):
    answer = server.get("/file.bin", fields={"Range": "bytes=%d-%d" % (first, last)})
    assert answer.body == t.content(7, SIZE)[first:last + 1]


def test_page_cache_stays_as_it_was(server, settled):
    """But for pieces that are too small to be worth memory of their own."""
    assert server.get("/file.bin").body == t.content(7, SIZE)
    answer = server.get("/file.bin", fields={"Range": "bytes=0-%d" % (2 * t.MIB - 1)})
    assert answer.length == 2 * t.MIB
    assert mounts.resident(settled / "file.bin") == 0


def test_clients_of_one_file_at_a_time_get_what_it_is(server):
    data, wrong = t.content(7, SIZE), []

    def ask():
        try:
            if server.get("/file.bin").body != data:
                wrong.append("bytes")
        except Exception as error:
            wrong.append(error)

    clients = [threading.Thread(target=ask) for _ in range(CLIENTS)]
    for c in clients:
        c.start()
    for c in clients:
        c.join()
    assert wrong == []


def test_changed_file_is_never_mixed_with_what_was_read_before(server, settled):
    """The copies of the first version can be taken for a second; nobody who asks later gets them."""
    assert server.get("/file.bin").length == SIZE
    changed = bytearray(t.content(7, SIZE))
    changed[t.MIB] ^= 1
    try:
        with open(settled / "file.bin", "r+b") as f:
            f.seek(t.MIB)
            f.write(changed[t.MIB:t.MIB + 1])
        assert server.get("/file.bin").body == bytes(changed)
    finally:
        t.write(settled / "file.bin", t.content(7, SIZE))
