"""Listings of directories that hang or fail while they are read, in the midst of a page
too; and how often the disk is asked for one."""

import errno
import math
import os
import re
import time

import pytest

from harness import wait_until
from test_disk_timeout import GAVE_UP
from test_pending import descriptors
from test_slowfs import ask_slow, fast, fast_requests, refuses, serve_slow, server, slow  # fixtures

# Long names: a page of 1.2 MB, in blocks of a hundred.
NAMES = 2000
# Behind what is read to find out that the page is large.
MIDDLE = 1500


def name(n):
    return ("%06d" % n).ljust(255, "x")


@pytest.fixture
def large(slow):
    path = os.path.join(slow.source, "large")
    os.mkdir(path)
    fd = os.open(path, os.O_RDONLY)
    for n in range(NAMES):
        os.mknod(name(n), dir_fd=fd)
    os.close(fd)
    return slow


def ask(server, **kw):
    return ask_slow(server, "/large/", may_be_chunked=True, **kw)


def finishes(c):
    response = c.response()
    assert response.status == 200 and response.chunked
    names = re.findall(rb'href="(\d{6}x{249})"', response.body)
    assert len(names) == NAMES
    assert set(names) == {name(n).encode() for n in range(NAMES)}
    c.finish()


def begins(c):
    """The head and what comes before the middle; the connection stays open."""
    assert c.read_head().chunked
    return c.chunk()


def is_cut(c):
    """Some of the page, and not the last chunk."""
    begins(c)
    assert not c.drain().endswith(b"0\r\n\r\n")


def directories(server, slow):
    return descriptors(server, slow.dir + "/large")


def test_directory_that_hangs_midway_delays_no_other_client(server, large):
    large.hang("readdir", "large", MIDDLE)
    c = ask(server)
    large.wait_held("readdir")
    assert b"000" in begins(c)
    fast_requests(server)
    assert large.held("readdir") == 1
    large.release()
    names = re.findall(rb'href="(\d{6}x{249})"', b"".join(c.chunks()))
    assert 0 < len(set(names)) == len(names) < NAMES
    c.finish()
    finishes(ask(server))


def test_names_that_hang_midway_delay_no_other_client(server, large):
    """To look at a name may wait as well."""
    large.hang("lookup", "large/0019")
    c = ask(server)
    large.wait_held("lookup")
    fast_requests(server)
    large.release()
    finishes(c)


def test_eio_midway_aborts_only_that_connection(server, large):
    large.fail("readdir", errno.EIO, "large", MIDDLE)
    other = server.connect()
    assert other.ask("/hot.bin", host="fast").status == 200
    is_cut(ask(server))
    assert other.ask("/hot.bin", host="fast").status == 200
    other.finish()
    wait_until(lambda: directories(server, large) == 0, "the directory to be closed")
    large.release()
    finishes(ask(server))
    server.stop(messages=r"pagewise: cannot read large/: Input/output error; look for disk errors \(dmesg\), or at the server or program of a network or FUSE file system\n")


def test_eio_at_the_beginning_is_500(server, large):
    assert server.get("/dir/", host="slow").status == 200
    large.fail("readdir", errno.EIO, "large")
    assert server.get("/large/", host="slow").status == 500
    server.stop(messages=r"pagewise: cannot read large/: Input/output error; look for disk errors \(dmesg\), or at the server or program of a network or FUSE file system\n")


@pytest.mark.parametrize("how", ["reset", "close", "half"])
def test_client_leaves_midway(server, large, how):
    large.hang("readdir", "large", MIDDLE)
    c = ask(server)
    large.wait_held("readdir")
    begins(c)
    {"reset": c.reset, "close": c.sock.close, "half": c.half_close}[how]()
    fast_requests(server, 10)
    large.release()
    if how == "half":
        for _ in c.chunks():
            pass
        c.eof()
    wait_until(lambda: directories(server, large) == 0, "the directory to be closed")
    finishes(ask(server))


def test_block_that_hangs_for_too_long_ends_the_answer(serve_slow, large):
    server = serve_slow(disk_timeout=1)
    large.hang("readdir", "large", MIDDLE)
    is_cut(ask(server))
    fast_requests(server, 10)
    large.release()
    wait_until(lambda: directories(server, large) == 0, "the directory to be closed")
    finishes(ask(server))
    server.stop(messages=GAVE_UP)


def test_block_of_a_slow_disk_is_sent_before_it_is_full(serve_slow, large):
    """A name takes 30 ms, so a whole block more than a disk may be silent for."""
    server = serve_slow(disk_timeout=2)
    large.delay("lookup", 30, "large/")
    c = ask(server)
    assert c.read_head().chunked
    for _ in range(3):
        assert 0 < c.chunk().count(b"href=") < 66
    c.reset()
    wait_until(lambda: directories(server, large) == 0, "the directory to be closed")


@pytest.mark.parametrize("timeout", [2, pytest.param(7, marks=pytest.mark.waits)])
def test_small_directory_of_a_slow_disk_is_streamed_at_last(serve_slow, slow, timeout):
    """All its names take more than the disk may be silent for."""
    server = serve_slow(disk_timeout=timeout)
    for n in range(60):
        slow.add("dir/%d" % n, b"")
    slow.delay("lookup", 150, "dir/")
    c = ask_slow(server, "/dir/", may_be_chunked=True)
    response = c.response()
    assert response.chunked
    assert len(set(re.findall(rb'<a href="([^"./]+)"', response.body))) == 60
    c.finish()


def test_shutdown_midway_waits_for_a_reader(serve_slow, large):
    server = serve_slow(shutdown_timeout=600)
    large.hang("readdir", "large", MIDDLE)
    c = ask(server)
    large.wait_held("readdir")
    begins(c)
    server.terminate()
    wait_until(lambda: refuses(server), "the listener to be closed")
    large.release()
    for _ in c.chunks():
        pass
    c.eof()
    server.stop()


def test_shutdown_does_not_wait_for_a_block_for_ever(serve_slow, large):
    server = serve_slow(shutdown_timeout=1)
    large.hang("readdir", "large", MIDDLE)
    c = ask(server)
    large.wait_held("readdir")
    server.terminate()
    assert server.wait() in (0, 1)
    is_cut(c)
    server.stop(codes=(0, 1), messages=r"(pagewise: [^\n]*\n)*")


def test_shutdown_with_a_client_that_reads_nothing(serve_slow, large):
    """What is open is closed by the pool, and that is waited for."""
    server = serve_slow(shutdown_timeout=1)
    c = ask(server, rcvbuf=4096)
    begins(c)
    server.terminate()
    assert server.wait() == 0
    c.sock.close()
    server.stop(messages=r"(pagewise: [^\n]*\n)*")


# ------------------------------------------------------- how often it is read


def reads(slow):
    return slow.command("seen", "readdir")


def test_clients_share_one_listing(serve_slow, slow):
    server = serve_slow()
    before = reads(slow)
    assert server.get("/dir/", host="slow").status == 200
    each = reads(slow) - before
    server.stop()
    server = serve_slow()
    slow.hang("readdir", "dir")
    before = reads(slow)
    clients = [ask_slow(server, "/dir/") for _ in range(5)]
    slow.wait_held("readdir")
    fast_requests(server, 10)
    assert slow.held("readdir") == 1
    slow.release()
    bodies = {c.response().body for c in clients}
    assert len(bodies) == 1 and b"file.bin" in bodies.pop()
    for c in clients:
        c.finish()
    assert reads(slow) - before == each


def test_client_that_leaves_does_not_end_a_shared_listing(server, slow):
    slow.hang("readdir", "dir")
    clients = [ask_slow(server, "/dir/") for _ in range(3)]
    slow.wait_held("readdir")
    clients.pop(0).reset()
    fast_requests(server, 10)
    slow.release()
    for c in clients:
        assert b"file.bin" in c.response().body
        c.finish()


def test_listing_is_kept_for_a_while(server, slow):
    with server.connect() as c:
        before = reads(slow)
        c.ask("/dir/", host="slow")
        each = reads(slow) - before
        begin = time.monotonic()
        for _ in range(300):
            c.ask("/dir/", host="slow")
        seconds = math.ceil(time.monotonic() - begin)
        c.finish()
    # The directory is new: its page is trusted for a second.
    assert reads(slow) - before <= each * (1 + seconds) < 300
