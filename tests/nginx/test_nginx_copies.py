"""Small files that a worker sends from copies in memory."""

import mmap
import os
import time

import pytest

import mounts
import tree as t
from harness import wait_until

pytestmark = [pytest.mark.once, pytest.mark.xdist_group("nginx")]
SERVER = "server { listen unix:@on@; root %s; pagewise on; %s }"
SIZE = 60000
TIMES = 50
SETTLED = 3  # seconds; the age of a ctime from which on a copy is kept, and one
AGE = 1.0  # seconds after which a copy is made again: NGX_HTTP_PAGEWISE_COPY_AGE


def settle(path):
    wait_until(lambda: time.time() > os.stat(path).st_ctime + SETTLED, "the file to be older")


def bytes_read(server):
    """By the loop's thread; receiving from a socket does not count."""
    (worker,) = server.workers()
    with open("/proc/%d/task/%d/io" % (worker, worker), encoding="ascii") as f:
        return int(dict(line.split(":") for line in f)["rchar"])


@pytest.mark.parametrize("more", [
    "", "pagewise_cache drop;", "open_file_cache max=9;", "sendfile off;"])
def test_a_small_file_is_read_once_a_second(nginx, tmp_path, more):
    path = tmp_path / "f"
    t.write(path, t.content(3, SIZE))
    server = nginx(SERVER % (tmp_path, more))
    settle(path)
    wait_until(lambda: server.get("on", "/f").get("Content-Length") == str(SIZE), "the file")
    before, begin = bytes_read(server), time.monotonic()
    for _ in range(TIMES):
        assert server.get("on", "/f").body == t.content(3, SIZE)
    seconds = time.monotonic() - begin
    assert bytes_read(server) - before <= (seconds + 2) * SIZE


@pytest.mark.parametrize("more", ["", "open_file_cache max=9;"])
def test_a_copy_is_sent_while_its_file_is_not_in_memory(nginx, tmp_path, more):
    """Such a request waits for no disk, which may be busy."""
    path = tmp_path / "f"
    t.write(path, t.content(3, SIZE))
    server = nginx(SERVER % (tmp_path, more))
    settle(path)

    def read_nothing():
        assert server.get("on", "/f").body == t.content(3, SIZE)  # makes a copy, if that is due
        if not mounts.evict(path):
            return False
        before, end = bytes_read(server), time.monotonic() + AGE + 0.1
        while time.monotonic() < end:
            assert server.get("on", "/f").body == t.content(3, SIZE)
            time.sleep(AGE / 5)
        return bytes_read(server) - before < SIZE // 2
    wait_until(read_nothing, "responses that were not read")


def test_a_copy_is_made_soon_after_the_file_was_fetched(nginx, tmp_path):
    """And not a second later: a file that becomes popular is sent from its copy."""
    files = [tmp_path / str(i) for i in range(40)]
    for path in files:
        t.write(path, t.content(3, SIZE))
    server = nginx(SERVER % (tmp_path, ""))
    settle(files[-1])

    def read_nothing():
        path = files.pop()
        if not mounts.evict(path):
            return False
        assert server.get("on", f"/{path.name}").body == t.content(3, SIZE)  # from the disk
        time.sleep(AGE / 5)
        assert server.get("on", f"/{path.name}").body == t.content(3, SIZE)  # makes a copy
        before = bytes_read(server)
        assert server.get("on", f"/{path.name}").body == t.content(3, SIZE)
        return bytes_read(server) - before < SIZE // 2
    wait_until(read_nothing, "a response from a copy")


@pytest.mark.parametrize("more", ["", "open_file_cache max=9;"])
def test_a_kept_copy_is_not_sent_after_a_change(nginx, tmp_path, more):
    """Only the ctime tells the versions apart."""
    path = tmp_path / "f"
    server = nginx(SERVER % (tmp_path, more))
    for version in range(3):
        with open(path, "r+b" if version else "wb") as f:
            f.write(b"%d" % version * SIZE)
        os.utime(path, (t.MTIME, t.MTIME))
        assert server.get("on", "/f").body == b"%d" % version * SIZE
        settle(path)
        for _ in range(3):
            assert server.get("on", "/f").body == b"%d" % version * SIZE


def test_a_store_through_a_mapping_is_sent_later(nginx, tmp_path):
    """The kernel sets the times when the page becomes dirty, and not at the next store."""
    path = tmp_path / "f"
    t.write(path, b"0" * SIZE)
    server = nginx(SERVER % (tmp_path, ""))
    with open(path, "r+b") as f, mmap.mmap(f.fileno(), SIZE) as view:
        for byte in b"123":
            view[0] = byte
            wait_until(lambda b=byte: server.get("on", "/f").body[0] == b, "the new byte")
            settle(path)
            assert server.get("on", "/f").body[0] == byte
