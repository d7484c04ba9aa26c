"""tcp_memory: while the kernel has too much for TCP, a socket is given little.

How much the kernel has is said by a file of the test's: PAGEWISE_SOCKSTAT, debug builds.
"""

import os
import re
import subprocess
import time

import pytest

import h2_raw as raw
import groups
import harness
import hot
import tree as t
from harness import request, wait_until
from limits import QUIET, figure, limited
from mounts import forget

PAGE = os.sysconf("SC_PAGESIZE")
MOST = 1 << 20
LITTLE = 400 << 10  # 128K and what is on its way
MUCH = 1 << 20

pytestmark = pytest.mark.skipif(
    os.path.exists("/proc/sys/net/ipv4/tcp_notsent_lowat")
    and int(open("/proc/sys/net/ipv4/tcp_notsent_lowat").read()) < MUCH,
    reason="all sockets are given little here: net.ipv4.tcp_notsent_lowat")


class Kernel:
    """Its account of sockets."""

    def __init__(self, path):
        self.path = path
        self.has(0)

    def has(self, size):
        """So many bytes for TCP.  At once: a reader sees the old text or the new one."""
        line = "TCP: inuse 1 orphan 0 tw 0 alloc 1 mem %010d\n" % (size // PAGE)
        fd = os.open(self.path, os.O_WRONLY | os.O_CREAT)
        os.pwrite(fd, line.encode(), 0)
        os.close(fd)


@pytest.fixture
def kernel(tmp_path):
    return Kernel(tmp_path / "sockstat")


@pytest.fixture
def start(serve_conf, site, tmp_path, kernel):
    (site / "small").write_bytes(b"small")
    (site / "middle").write_bytes(bytes(60000))
    (site / "big").write_bytes(bytes(range(256)) * (64 << 10))

    def start(**top):
        top = {"workers": 1, "admin": str(tmp_path / "admin"), **QUIET,
               "tcp_memory": "%dK" % (MOST >> 10), **top}
        server = serve_conf(top, [("s", {"root": site}, {})],
                            env={"PAGEWISE_SOCKSTAT": str(kernel.path)})
        server.admin = str(tmp_path / "admin")
        return server

    return start


def pressure(server):
    return figure(server, "pagewise_tcp_memory_pressure")


def noticed(server):
    """Somebody is served: otherwise nobody looks."""
    def asked():
        with server.connect() as c:
            c.send(request("/middle") * 2)
            c.response()
            c.response()
        return pressure(server) == 1

    wait_until(asked, "it to be noticed")


def in_sockets(clients):
    """Bytes that the kernel has for clients and that they have not acknowledged.  Other servers' clients may have
    the same ports, and the table has a row twice if sockets come and go while it is read."""
    pairs = {tuple(":%04X" % a[1] for a in (c.sock.getpeername(), c.sock.getsockname())) for c in clients}
    with open("/proc/net/tcp", encoding="ascii") as table:
        rows = {(f[1][-5:], f[2][-5:]): f[4] for f in (line.split() for line in table)}
    return sum(int(rows[pair].partition(":")[0], 16) for pair in pairs & rows.keys())


def queued(conn):
    """Bytes that the kernel has for a client and that it has not acknowledged, at the end."""
    def settled():
        before = in_sockets([conn])
        time.sleep(0.2)
        return before > 0 and before == in_sockets([conn]) and before

    return wait_until(settled, "a full socket")


def stalled(server, target="/big", n=1):
    c = server.connect(rcvbuf=4096)
    c.send(request(target) * n)
    return c


ASKED = pytest.mark.parametrize("target, n", [
    ("/big", 1), ("/middle", 200), ("/middle", 30),
], ids=["one", "pipelined", "few"])


def warm(server):
    """What is small is answered the short way then: once its last change is 2 s old."""
    hot.needed()
    def is_hot():
        before = figure(server, "pagewise_hot_requests_total")
        with server.connect() as c:
            for target in ("/small", "/middle", "/big") * 2:
                c.ask(target)
            c.finish()
        return figure(server, "pagewise_hot_requests_total") == before + 4

    wait_until(is_hot, "hot answers")


@pytest.mark.slow
@ASKED
def test_a_socket_is_given_much_as_long_as_there_is_memory(start, kernel, target, n):
    server = start()
    kernel.has(MOST)
    warm(server)
    c = stalled(server, target, n)
    assert queued(c) > MUCH
    assert pressure(server) == limited(server, "tcp_memory") == 0
    c.reset()


@ASKED
def test_a_socket_is_given_little_under_pressure(start, kernel, target, n):
    server = start()
    warm(server)
    kernel.has(MOST + PAGE)
    noticed(server)
    assert limited(server, "tcp_memory") == 1
    c = stalled(server, target, n)
    assert queued(c) < LITTLE
    c.reset()


@pytest.mark.slow
def test_that_holds_for_a_connection_from_before(start, kernel):
    """Its first answer, and the next ones, are given the short way."""
    server = start()
    warm(server)
    with server.connect(rcvbuf=4096) as c:
        assert c.ask("/small").body == b"small"
        kernel.has(MOST + PAGE)
        noticed(server)
        c.send(request("/middle") * 200)
        assert queued(c) < LITTLE
        c.reset()


@pytest.mark.slow
def test_small_answers_are_noticed_too(start, kernel):
    """On a connection of each, so that no socket is ever full."""
    server = start()
    warm(server)
    kernel.has(MOST + PAGE)

    def asked():
        with server.connect() as c:
            assert c.ask("/small").body == b"small"
            c.finish()
        return pressure(server) == 1

    wait_until(asked, "it to be noticed", pause=0)


def test_it_is_noticed_in_the_middle_of_an_answer(start, kernel):
    """It is the only one, and begun before."""
    server = start()
    with server.connect(rcvbuf=4096) as c:
        c.send(request("/big"))
        before = queued(c)
        assert before > MUCH
        kernel.has(MOST + PAGE)
        head = c.read_head()
        rest = 4 * MUCH
        body = c.read_exactly(head.length - rest)
        assert pressure(server) == 1
        assert queued(c) < LITTLE
        assert len(body) + len(c.read_exactly(rest)) == head.length
        c.reset()


@pytest.mark.parametrize("most, on", [(0, 0), ("64K", 1)])
def test_that_it_is_over_is_seen_when_nobody_asks(start, kernel, most, on):
    server = start(tcp_memory=most)
    kernel.has(MOST)
    if on:
        noticed(server)
    else:
        warm(server)
    assert pressure(server) == limited(server, "tcp_memory") == on
    kernel.has(0)
    wait_until(lambda: pressure(server) == 0, "the end of it")
    with server.connect(rcvbuf=4096) as c:
        c.send(request("/big"))
        assert queued(c) > MUCH
        c.reset()


@pytest.mark.slow
def test_a_socket_is_given_more_when_there_is_memory_again(start, kernel):
    """Of one connection: what it may be given is not decided for ever."""
    server = start()
    with server.connect(rcvbuf=4096) as c:
        for size in (MOST + PAGE, 0) * 2:
            kernel.has(size)
            if size:
                noticed(server)
            else:
                wait_until(lambda: pressure(server) == 0, "the end of it")
            c.send(request("/big"))
            assert queued(c) < LITTLE if size else queued(c) > MUCH
            c.response()
        c.finish()


@pytest.mark.parametrize("path", ["nodiskio", "copy", "splice", "uring", "ring", "aio", "pool"])
def test_answers_are_the_same_under_pressure(start, site, kernel, path):
    server = start(send_path=path)
    kernel.has(MOST + PAGE)
    noticed(server)
    big = (site / "big").read_bytes()
    with server.connect() as c:
        for _ in range(3):
            c.send(request("/big") + request("/small") + request("/big"))
            assert [c.response().body for _ in range(3)] == [big, b"small", big]
        c.finish()
    with server.connect(rcvbuf=4096) as c:
        assert c.ask("/big").body == big
        c.finish()


def test_that_it_cannot_be_asked_is_said(serve, site):
    server = serve("--root", site, env={"PAGEWISE_SOCKSTAT": "/no/such/file"})
    server.get("/")
    assert "cannot read how much memory TCP uses: No such file or directory" in server.output


# ------------------------------------------------------- a control group with a limit

LIMIT = 256 << 20
SHARE = LIMIT // 8
PART = 4 << 20
HOGS = 200  # each takes 1 MB or more where nothing bounds it


@pytest.fixture
def group():
    with groups.limited(LIMIT) as path:
        yield path


@pytest.fixture
def limited_server(group, serve_conf, site, tmp_path, kernel):
    """Its kernel has nothing for TCP: with what the sockets of other tests hold, under pressure, hogs
    would stay below their share."""
    (site / "big").write_bytes(bytes(range(256)) * (32 << 10))

    def start(**top):
        admin = str(tmp_path / "admin")
        server = serve_conf({"workers": 1, "admin": admin, **QUIET, **top}, [("s", {"root": site}, {})],
                            becomes=groups.inside(group),
                            env={"PAGEWISE_SOCKSTAT": str(kernel.path)})
        server.admin = admin
        return server

    return start


def hogs_until(server, condition):
    """As many as it takes: beside other tests the kernel gives each socket less."""
    hogs = []

    def more():
        hogs.extend(stalled(server) for _ in range(20))
        return condition(hogs)

    wait_until(more, "too much in sockets", pause=0.1)
    return hogs


def test_the_check_adds_up_the_memory_of_a_group(group, site):
    run = subprocess.run([*groups.inside(group), harness.PAGEWISE, "-t",
                          "--root", site, "--workers", "2"],
                         capture_output=True, text=True, check=False, timeout=harness.PATIENCE)
    assert (run.returncode, run.stderr) == (0, "")
    plan = re.search(r"memory: (\d+) MiB of the control group\n    hot_set (\d+) MiB\n"
                     r"    connections, at most (\d+) MiB\n    file data to be sent, at most (\d+) MiB\n", run.stdout)
    limit, hot_set, connections, unsent = map(int, plan.groups())
    assert limit == LIMIT >> 20 and unsent == limit // 3
    assert 0 < hot_set < limit and 0 < connections <= (limit - hot_set) // 2


@pytest.mark.parametrize("workers", [1, 3])
def test_clients_that_read_nothing_hold_a_share_of_the_limit(limited_server, site, workers):
    server = limited_server(workers=workers)
    assert figure(server, "pagewise_memory_limit_bytes") == LIMIT
    assert figure(server, "pagewise_unacked_bytes") == 0
    hogs = hogs_until(server, lambda _: limited(server, "memory") >= 1)
    hogs += [stalled(server) for _ in range(HOGS - len(hogs))]
    with server.connect() as c:
        for _ in range(3):
            assert c.ask("/big").body == (site / "big").read_bytes()
        c.finish()
    assert in_sockets(hogs) < SHARE + HOGS * (64 << 10)
    wait_until(lambda: "clients that do not read hold" in server.messages, "a warning")
    for c in hogs:
        c.reset()
    wait_until(lambda: figure(server, "pagewise_unacked_bytes") < SHARE // 8, "the end of it")
    server.stop(messages=True)


def test_nothing_is_bounded_with_tcp_memory_0(limited_server):
    server = limited_server(tcp_memory=0)
    assert figure(server, "pagewise_memory_limit_bytes") == 0
    hogs = hogs_until(server, lambda hogs: in_sockets(hogs) > SHARE + HOGS * (64 << 10))
    assert limited(server, "memory") == 0
    for c in hogs:
        c.reset()


@pytest.mark.slow
def test_the_hot_set_is_a_part_of_the_limit(limited_server, site):
    """A sixteenth of it, for three workers; one of them has more files than its part holds."""
    files, most = 150, LIMIT // 16 // 3
    for i in range(files):
        t.write(site / str(i), t.content(i, 65536))
    server = limited_server(workers=3, hot_set="auto")
    with server.connect() as c:

        def filled():
            for i in range(files):
                assert c.ask("/%d" % i).body == t.content(i, 65536)
            return figure(server, "pagewise_hot_bytes") > most // 2

        wait_until(filled, "files whose last change is old enough")
        assert filled()
        assert figure(server, "pagewise_hot_bytes") <= most < files * 65536
        c.finish()
    server.stop()


@pytest.mark.slow
@pytest.mark.parametrize("window", [0, 1 << 30], ids=["closed", "open"])
@pytest.mark.plain("HTTP/2 in clear text")
def test_streams_that_nobody_reads_keep_no_cold_file_waiting(limited_server, site, window):
    """Two thousand of them, each for a part of a file that is not in memory."""
    server = limited_server()
    with open(site / "sparse", "wb") as f:
        f.truncate(2000 * PART)
    hogs = []
    for of in range(20):
        c = raw.Client(server.address, window=window, rcvbuf=4096)
        c.send(raw.update(0, 1 << 30) + b"".join(
            raw.get(2 * n + 1, b"/sparse", more=((b"range", b"bytes=%d-" % ((100 * of + n) * PART)),))
            for n in range(100)))
        hogs.append(c)
    wait_until(lambda: figure(server, "pagewise_http2_streams_total") == 2000, "all requests")
    for _ in range(5):
        forget(site / "big")
        assert server.get("/big").body == (site / "big").read_bytes()
    for c in hogs:
        c.sock.close()
    server.stop(messages=True)
