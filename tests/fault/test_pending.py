"""What may happen to a transmission while it waits for a disk, on every send path
that does not wait on the loop."""

import errno
import os
import signal

import pytest

import harness
import mounts
import test_slowfs
import tree as t
from harness import request, wait_until
from hung_disk import HOT, LATE, MANY, SIZE, disk, disk_image  # fixtures
from test_slowfs import TIMEOUTS, fast, refuses, slow  # fixtures
from test_syscalls import WAITS, evict, may_trace, public_file, traced  # fixtures

WAITING = [p for p in harness.FILE_PATHS if p not in ("blocking", "copy")]


@pytest.fixture
def serve_disk(disk, fast, serve_conf):
    """One worker, a site on the disk and one elsewhere.

    Torn down in this order: the gates, the server, the mount.
    """

    def start(send_path, becomes=(), **top):
        return serve_conf(
            {"workers": 1, "send_path": send_path, "shutdown_timeout": 20, **TIMEOUTS, **top},
            [
                ("disk", {"names": ["disk"], "root": disk.dir}, {}),
                ("fast", {"names": ["fast"], "root": fast}, {}),
            ],
            becomes=becomes,
        )

    try:
        yield start
    finally:
        disk.slow.release()


def ask(server, n, **kw):
    c = server.connect(**kw)
    c.send(request("/cold-%d.bin" % n, host="disk"))
    return c


def hangs(disk, server, *numbers, **kw):
    """Connections whose files the disk does not give, until it is released."""
    disk.cold(*numbers)
    assert [n for n in numbers if mounts.resident(disk.path(n))] == []
    disk.hang()
    connections = [ask(server, n, **kw) for n in numbers]
    disk.slow.wait_held("read")
    return connections


def hot_requests(server, count=20, hosts=("disk", "fast")):
    for host in hosts:
        with server.connect() as c:
            for _ in range(count):
                assert c.ask("/hot.bin", host=host).body == t.content(9, HOT)
            c.finish()


def finishes(c, n, size=SIZE):
    response = c.response()
    assert response.status == 200
    assert response.body == t.content(n, size)
    c.finish()


def answers(server, n):
    assert server.get("/cold-%d.bin" % n, host="disk").body == t.content(n, SIZE)


def descriptors(server, kind):
    where = "/proc/%d/fd" % server.pid
    links = []
    for name in os.listdir(where):
        try:
            links.append(os.readlink(os.path.join(where, name)))
        except FileNotFoundError:
            pass
    return sum(link.startswith(kind) for link in links)


@pytest.mark.parametrize("path_name", WAITING)
def test_cached_files_are_served_while_the_disk_hangs(serve_disk, disk, path_name):
    """Those of the same disk as well, if their data is in memory."""
    server = serve_disk(path_name)
    (c,) = hangs(disk, server, 1)
    hot_requests(server)
    assert disk.slow.held("read") >= 1
    assert c.quiet(0)
    disk.slow.release()
    finishes(c, 1)


@pytest.mark.parametrize("path_name", ["blocking", "copy"])
def test_blocking_paths_hang(serve_disk, disk, path_name):
    """That the test above can fail."""
    server = serve_disk(path_name)
    (c,) = hangs(disk, server, 1)
    other = server.connect()
    other.send(request("/hot.bin", host="fast"))
    assert other.quiet(1)
    disk.slow.release()
    assert other.response().body == t.content(9, HOT)
    other.finish()
    finishes(c, 1)


@pytest.mark.parametrize("path_name", [p for p in WAITING if p not in ("aio", "ring")])
def test_a_hung_disk_uses_only_its_own_threads(serve_disk, disk, path_name):
    """aio and ring are not here: the kernel's workers are one pool for all disks."""
    server = serve_disk(path_name, threads=2)
    clients = hangs(disk, server, *range(MANY))
    hot_requests(server, hosts=("fast",))
    disk.slow.release()
    for n, c in enumerate(clients):
        finishes(c, n)


@pytest.mark.parametrize("path_name", WAITING)
@pytest.mark.parametrize("how", ["reset", "close", "half"])
def test_client_leaves_while_its_request_waits(serve_disk, disk, path_name, how):
    """A socket that another thread may send on stays until the read has ended: a number that was given
    to a new client would bring that one the rest of this answer.  Others are closed after a reset, while
    the disk still hangs."""
    server = serve_disk(path_name)
    hot_requests(server, 1)
    before = descriptors(server, "socket:")
    clients = hangs(disk, server, 1, 2, 3)
    for c in clients:
        if how == "reset":
            c.reset()
        elif how == "close":
            c.sock.close()
        else:
            c.half_close()
    hot_requests(server, 2)
    if how != "reset":
        assert descriptors(server, "socket:") >= before + 3
    elif path_name == "nodiskio":
        wait_until(lambda: descriptors(server, "socket:") <= before, "the sockets to be closed")
    new = [server.connect() for _ in range(6)]
    for c in new:
        assert c.ask("/hot.bin", host="fast").body == t.content(9, HOT)
    disk.slow.release()
    if how == "half":
        for n, c in enumerate(clients, 1):
            assert c.response().body == t.content(n, SIZE)
            c.eof()
    for c in new:
        assert c.ask("/hot.bin", host="disk").body == t.content(9, HOT)
        c.finish()
    for n in (1, 2, 3):
        answers(server, n)
    wait_until(lambda: descriptors(server, "socket:") <= before, "the sockets to be closed")


@pytest.mark.parametrize("path_name", WAITING)
def test_timeouts_do_not_count_while_the_disk_is_waited_for(serve_disk, disk, path_name):
    """They are for clients; this one does not make anybody wait."""
    server = serve_disk(path_name, head_timeout=1, keepalive_timeout=1, send_timeout=1)
    idle = server.connect()
    idle.ask("/hot.bin", host="fast")
    (c,) = hangs(disk, server, 1)
    idle.eof()  # the timers do run
    assert c.quiet(1.5)
    disk.slow.release()
    assert c.response().body == t.content(1, SIZE)


@pytest.mark.parametrize("path_name", WAITING)
def test_disk_hangs_in_the_middle_of_a_response(serve_disk, disk, path_name):
    server = serve_disk(path_name)
    disk.cold(1)
    disk.hang(1, LATE)
    c = ask(server, 1)
    head = c.read_head()
    data = c.read_exactly(t.MIB)
    disk.slow.wait_held("read")
    hot_requests(server, 2)
    disk.slow.release()
    data += c.read_exactly(head.length - len(data))
    assert data == t.content(1, SIZE)
    c.finish()


@pytest.mark.parametrize("path_name", WAITING)
def test_client_resets_while_its_response_waits(serve_disk, disk, path_name):
    server = serve_disk(path_name)
    before = descriptors(server, "socket:")
    disk.cold(1)
    disk.hang(1, LATE)
    c = ask(server, 1)
    c.read_head()
    c.read_exactly(t.MIB)
    disk.slow.wait_held("read")
    c.reset()
    hot_requests(server, 2)
    disk.slow.release()
    answers(server, 1)
    wait_until(lambda: descriptors(server, "socket:") <= before, "the socket to be closed")


@pytest.mark.parametrize("read_ahead", [128, 4096])
@pytest.mark.parametrize("path_name", WAITING)
def test_read_error_is_500_before_the_response_and_aborts_it_later(serve_disk, disk, path_name, read_ahead):
    disk.read_ahead(read_ahead)
    server = serve_disk(path_name)
    disk.cold(1, 2)
    disk.fail(errno.EIO, 1)
    disk.fail(errno.EIO, 2, LATE)
    assert server.get("/cold-1.bin", host="disk").status == 500
    c = ask(server, 2)
    head = c.read_head()
    body = c.drain()
    assert t.MIB <= len(body) < head.length
    assert t.content(2, SIZE).startswith(body)
    hot_requests(server, 2)
    disk.slow.release()
    answers(server, 1)
    answers(server, 2)
    server.stop(messages=r"(pagewise: [^\n]*(cold-\d\.bin|Input/output error)[^\n]*\n)*")


@pytest.mark.parametrize("path_name", WAITING)
def test_shutdown_waits_for_the_disk_within_its_timeout(serve_disk, disk, path_name):
    server = serve_disk(path_name)
    (c,) = hangs(disk, server, 1)
    server.terminate()
    wait_until(lambda: refuses(server), "the listener to be closed")
    disk.slow.release()
    assert c.response().body == t.content(1, SIZE)
    c.eof()
    server.stop()


@pytest.mark.parametrize("path_name", WAITING)
def test_shutdown_does_not_wait_for_a_disk_for_ever(serve_disk, disk, path_name):
    server = serve_disk(path_name, shutdown_timeout=1)
    (c,) = hangs(disk, server, 1)
    server.terminate()
    assert server.wait() in (0, 1)
    assert disk.slow.held("read") >= 1
    c.drain()
    server.stop(codes=(0, 1), messages=r"(pagewise: [^\n]*\n)*")


@pytest.mark.parametrize("path_name", WAITING)
def test_read_ends_after_its_connection_was_aborted(serve_disk, disk, path_name):
    """What it uses is still there.  With bad luck the server is gone by then."""
    server = serve_disk(path_name, shutdown_timeout=1)
    clients = hangs(disk, server, 1, 2)
    server.terminate()
    wait_until(lambda: "closing the remaining connections" in server.output, "the cut")
    disk.slow.release()
    for c in clients:
        c.drain()
    server.stop(codes=(0, 1), messages=r"(pagewise: [^\n]*\n)?")


@pytest.mark.parametrize("path_name", WAITING)
def test_reload_while_a_request_waits_for_the_disk(serve_disk, disk, path_name):
    """Another process serves; what waits is not disturbed."""
    server = serve_disk(path_name)
    (c,) = hangs(disk, server, 1)
    server.reload()
    hot_requests(server, 2)
    disk.slow.release()
    finishes(c, 1)
    answers(server, 1)


# ---------------------------------------------- files that cannot be asked about


@pytest.fixture
def serve_fuse(slow, fast, serve_conf):
    def start(send_path):
        return serve_conf(
            {"workers": 1, "send_path": send_path, "shutdown_timeout": 20, **TIMEOUTS},
            [
                ("fast", {"names": ["fast"], "root": fast}, {}),
                ("slow", {"names": ["slow"], "root": slow.dir}, {}),
            ],
        )

    yield start
    slow.release()


@pytest.mark.parametrize("slow", [[], [0, "direct"]], indirect=True, ids=["cached", "direct"])
@pytest.mark.parametrize("path_name", WAITING)
def test_hung_file_on_fuse_delays_no_other_client(serve_fuse, slow, path_name):
    server = serve_fuse(path_name)
    slow.hang("read", "cold.bin", t.MIB)
    c = server.connect()
    c.send(request("/cold.bin", host="slow"))
    slow.wait_held("read")
    hot_requests(server, hosts=("fast",))
    slow.hang("read", "cold.bin", 2 * t.MIB, verb="swap")
    slow.wait_held("read")
    hot_requests(server, hosts=("fast",))
    slow.release()
    finishes(c, 1, test_slowfs.SIZE)


# ----------------------------------------------------- what the loop itself calls


def waits_of_the_loop(run, path):
    """Calls on the file that may wait; advice about read-ahead does not."""
    return {
        c.name
        for c in run.of("pw-worker0")
        if c.name in WAITS
        and "<%s>" % path in c.args
        and not (c.name == "fadvise64" and "WILLNEED" not in c.args)
        and not (c.name == "preadv2" and "RWF_NOWAIT" in c.args)
    }


def asked_for(traced, root, name, path_name):
    """Those calls.  Of pinned windows there are none, and copies with RWF_NOWAIT do not wait."""
    run = traced("--root", root, "--send-path", path_name)
    run.begin()
    assert run.server.get("/" + name).status == 200
    run.end()
    return waits_of_the_loop(run, os.path.join(root, name))


@pytest.mark.parametrize("slow", [[], [0, "direct"]], indirect=True, ids=["cached", "direct"])
@pytest.mark.parametrize("path_name", WAITING)
def test_loop_never_reads_a_file_without_a_residency_check(slow, traced, path_name):
    """With direct_io it would wait although the file was fetched: the server of
    the file system is asked once more."""
    assert asked_for(traced, slow.dir, "cold.bin", path_name) == set()


def test_blocking_path_reads_a_file_without_a_residency_check(slow, traced):
    """That the test above can fail."""
    assert asked_for(traced, slow.dir, "cold.bin", "blocking") == {"sendfile", "pread64"}


@pytest.mark.parametrize(
    "path_name, calls",
    [
        ("nodiskio", set()),
        ("uring", set()),
        ("splice", {"splice"}),
        ("mlock", {"sendfile"}),
        ("aio", set()),
        ("ring", set()),
        ("pool", set()),
    ],
)
def test_loop_only_sends_and_reads_nothing(traced, public_file, path_name, calls):
    evict(public_file)
    root, name = os.path.split(public_file)
    assert asked_for(traced, root, name, path_name) == calls
