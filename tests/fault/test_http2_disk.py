"""Streams of HTTP/2 on a disk that hangs: one that waits holds up no other one of its connection."""

import errno
import mmap

import pytest

import mounts
import tree as t
from harness import wait_until
from hung_disk import HOT, LATE, MANY, SIZE, disk, disk_image  # fixtures
from test_disk_timeout import GAVE_UP
from test_pending import WAITING, descriptors, serve_disk  # fixtures
from test_slowfs import fast, serve_slow, slow  # fixtures

h2 = pytest.importorskip("h2.errors", reason="no Python module h2")
Client = pytest.importorskip("h2_client", reason="no Python module h2").Client


def hangs(disk, c, *numbers):
    """Streams whose files the disk does not give, until it is released."""
    disk.cold(*numbers)
    assert [n for n in numbers if mounts.resident(disk.path(n))] == []
    disk.hang()
    streams = [c.begin("/cold-%d.bin" % n, host="disk") for n in numbers]
    disk.slow.wait_held("read")
    return streams


def hot(c, count=20):
    for host in ("disk", "fast"):
        for _ in range(count):
            assert c.ask("/hot.bin", host=host).body == t.content(9, HOT)


def connect(server):
    return Client(server, window=1 << 24, connection=1 << 26)


@pytest.mark.parametrize("path_name", WAITING)
def test_a_waiting_stream_does_not_delay_others(serve_disk, disk, path_name):
    server = serve_disk(path_name)
    with connect(server) as c:
        numbers = range(MANY)
        streams = hangs(disk, c, *numbers)
        hot(c)
        assert disk.slow.held("read") >= 1
        assert not any(c.answers[s].status for s in streams)
        disk.slow.release()
        with disk.explained(server):
            for n, stream in zip(numbers, streams):
                assert c.answer(stream).body == t.content(n, SIZE)


@pytest.mark.parametrize("path_name", WAITING)
def test_stream_whose_disk_hangs_is_503_and_the_connection_goes_on(serve_disk, disk, path_name):
    server = serve_disk(path_name, disk_timeout=1)
    with connect(server) as c:
        streams = hangs(disk, c, 1, 2)
        hot(c, 2)
        for stream in streams:
            answer = c.answer(stream)
            assert (answer.status, answer.fields["retry-after"], answer.over) == (503, "1", True)
            assert answer.body
        hot(c, 2)
        disk.slow.release()
        assert c.ask("/cold-1.bin", host="disk").body == t.content(1, SIZE)
    server.stop(messages=GAVE_UP)


@pytest.mark.parametrize("path_name", WAITING)
def test_response_that_has_begun_is_reset(serve_disk, disk, path_name):
    """In its middle: nobody takes it for whole."""
    server = serve_disk(path_name, disk_timeout=1)
    with connect(server) as c:
        disk.cold(1)
        disk.hang(1, LATE)
        stream = c.begin("/cold-1.bin", host="disk")
        answer = c.answer(stream)
        assert answer.status == 200 and not answer.over and answer.error
        assert len(answer.body) < SIZE and t.content(1, SIZE).startswith(answer.body)
        hot(c, 2)
        disk.slow.release()
        assert c.ask("/cold-1.bin", host="disk").body == t.content(1, SIZE)
    server.stop(messages=GAVE_UP)


@pytest.mark.parametrize("path_name", ["nodiskio", "uring", "pool"])
def test_client_resets_streams_that_wait(serve_disk, disk, path_name):
    """The connection goes on; what the disk gives then is nobody's."""
    server = serve_disk(path_name)
    with connect(server) as c:
        streams = hangs(disk, c, 1, 2, 3)
        for stream in streams[:2]:
            c.reset(stream)
        hot(c, 2)
        disk.slow.release()
        assert c.answer(streams[2]).body == t.content(3, SIZE)
        assert not any(c.answers[s].body for s in streams[:2])
        for n in (1, 2):
            assert c.ask("/cold-%d.bin" % n, host="disk").body == t.content(n, SIZE)
    server.stop()


@pytest.mark.parametrize("path_name", ["nodiskio", "uring", "pool"])
def test_client_leaves_while_streams_wait(serve_disk, disk, path_name):
    server = serve_disk(path_name)
    with connect(server) as c:
        hot(c, 1)
    wait_until(lambda: descriptors(server, "socket:"), "the descriptors")
    before = descriptors(server, "socket:")
    with connect(server) as c:
        hangs(disk, c, 1, 2, 3)
    with connect(server) as c:
        hot(c, 2)
    disk.slow.release()
    wait_until(lambda: descriptors(server, "socket:") <= before, "the sockets to be closed")
    with connect(server) as c:
        assert c.ask("/cold-1.bin", host="disk").body == t.content(1, SIZE)
    server.stop()


def closed_by_stream(server):
    return Client(server, window=0, auto=False)


def closed_by_connection(server):
    """An earlier response has taken the window of the connection."""
    c = Client(server, window=1 << 24, connection=0, auto=False)
    stream = c.begin("/hot.bin", host="disk")
    c.until(lambda: len(c.answers[stream].body) == 65535, "the window was used up")
    return c


def in_memory(disk, *numbers):
    return sum(mounts.resident(disk.path(n)) for n in numbers)


@pytest.mark.parametrize("closed", [closed_by_stream, closed_by_connection])
@pytest.mark.parametrize("path_name", WAITING)
def test_stream_with_a_closed_window_gets_its_head_and_reads_nothing(serve_disk, disk, path_name, closed):
    """Also if it is reset then and comes again, as by a client that takes the disk from others."""
    server = serve_disk(path_name)
    numbers = range(MANY)
    with closed(server) as c:
        disk.cold(*numbers)
        disk.hang()
        for _ in range(3):
            streams = [c.begin("/cold-%d.bin" % n, host="disk", fields=[("range", "bytes=1000000-")])
                       for n in numbers]
            c.until(lambda: all(c.answers[s].status == 206 for s in streams), "all heads came")
            for stream in streams:
                c.reset(stream)
            c.ping()
        assert disk.slow.held("read") == 0
        assert in_memory(disk, *numbers) == 0
    server.stop()


@pytest.mark.parametrize("path_name", [p for p in WAITING if p not in ("ring", "aio", "pool")])
def test_no_more_is_read_than_the_window_takes(serve_disk, disk, path_name):
    """And as much again as the client has taken.  Residency may be asked by pieces of 64 KiB, which are read whole.

    For the other paths the kernel reads ahead.
    """
    server = serve_disk(path_name)
    window, took = 20000, 0
    with Client(server, window=0, connection=1 << 24, auto=False) as c:
        disk.cold(1)
        stream = c.begin("/cold-1.bin", host="disk")
        body = c.answers[stream].body
        while took < 12 * window:
            took += window
            c.open_window(window, stream)
            c.until(lambda: len(body) == took, "the window was used up")
            c.ping()
            assert in_memory(disk, 1) * mmap.PAGESIZE <= 2 * took + (64 << 10)
        c.open_window(1 << 24, stream)
        assert c.answer(stream).body == t.content(1, SIZE)
    server.stop()


def test_disk_error_behind_a_head_that_was_sent_resets_the_stream(serve_disk, disk):
    server = serve_disk("nodiskio")
    with closed_by_stream(server) as c:
        disk.cold(1)
        disk.fail(errno.EIO, 1)
        stream = c.begin("/cold-1.bin", host="disk")
        c.until(lambda: c.answers[stream].status == 200, "its head came")
        c.open_window(1 << 20, stream)
        assert c.answer(stream).error == h2.ErrorCodes.INTERNAL_ERROR
        hot_stream = c.begin("/hot.bin", host="disk")
        c.open_window(1 << 20, hot_stream)
        c.until(lambda: len(c.answers[hot_stream].body) > 60000, "another stream goes on")
    server.stop(messages=".*Input/output error.*\n")


def cancelled(c, count):
    """Streams that wait for a lookup, which the disk does not give."""
    streams = [c.begin("/dir/%d" % n, host="slow") for n in range(count)]
    c.ping()
    for stream in streams:
        c.reset(stream)
    c.ping()


def test_map_that_zooms_on_a_slow_disk_goes_on(serve_slow, slow):
    server = serve_slow(http2_max_streams=200)
    slow.hang("lookup", "dir")
    with connect(server) as c:
        cancelled(c, 200)
        assert c.ask("/hot.bin", host="fast").status == 200
    slow.release()
    server.stop()


def test_rapid_reset_of_what_waits_for_the_disk_ends_the_connection(serve_slow, slow):
    server = serve_slow(http2_max_streams=1000)
    slow.hang("lookup", "dir")
    with connect(server) as c:
        with pytest.raises(AssertionError, match="the connection ended"):
            cancelled(c, 500)
        assert c.goaways[-1][1] == h2.ErrorCodes.ENHANCE_YOUR_CALM
    slow.release()
    server.stop(messages=".*flood of control frames.*\n")


def test_server_that_ends_answers_a_stream_that_waits(serve_disk, disk):
    server = serve_disk("nodiskio")
    with connect(server) as c:
        (stream,) = hangs(disk, c, 1)
        server.terminate()
        c.until(lambda: c.goaways, "GOAWAY")
        disk.slow.release()
        assert c.answer(stream).body == t.content(1, SIZE)
        assert c.end()[1] == 0
    server.stop()


@pytest.mark.parametrize("op, target", [("lookup", "/dir/file.bin"), ("open", "/cold2.bin"), ("readdir", "/dir/")])
def test_hung_lookup_open_and_listing_delay_no_other_stream(serve_slow, slow, op, target):
    server = serve_slow(disk_timeout=1)
    slow.hang(op, target.strip("/"))
    with connect(server) as c:
        stream = c.begin(target, host="slow")
        slow.wait_held(op)
        for _ in range(10):
            assert c.ask("/hot.bin", host="fast").status == 200
        assert c.answer(stream).status == 503
        slow.release()
        assert c.ask("/hot.bin", host="fast").status == 200
    server.stop(messages=GAVE_UP)
