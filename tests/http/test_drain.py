"""What a server process leaves behind after a reload, while clients still read from it."""

import contextlib
import os
import re
import signal

import pytest

import groups
import h2_raw as raw
import tree as t
from harness import Connection, request, wait_until

pytestmark = pytest.mark.once

SMALL = 500
OLD = 32  # MASTER_OLD
MOST = 2500 << 10  # bytes of an old process with one client
CLOSED = "pagewise: drain_timeout has passed since the reload: closing the remaining connections\n"


@pytest.fixture
def start(serve_conf, site, release):
    (site / "big").write_bytes(t.content(7, 32 << 20))
    for i in range(SMALL):
        (site / ("%d" % i)).write_bytes(b"%d" % i * 4000)
        os.utime(site / ("%d" % i), (1, 1))

    def start(becomes=(), **top):
        return serve_conf({"workers": 2, "stall_log": 0, **top}, [("s", {"root": site}, {})], binary=release,
                          becomes=becomes)

    return start


def slow(server):
    """A client that has the head, and reads no more."""
    c = server.connect(rcvbuf=4096)
    c.send(request("/big"))
    c.read_head()
    return c


def private(pid):
    with open("/proc/%d/smaps_rollup" % pid, encoding="ascii") as f:
        return int(re.search(r"^Private_Dirty: +(\d+) kB", f.read(), re.M).group(1)) << 10


def descriptors(pid):
    return len(os.listdir("/proc/%d/fd" % pid))


def warm(server):
    """Everything is asked for often enough to be kept."""
    with Connection(server.address) as a, Connection(server.address) as b:
        for _ in range(4):
            for i in range(SMALL):
                for c in (a, b):
                    assert c.ask("/%d" % i).status == 200


def test_an_old_process_keeps_no_caches(start):
    server = start()
    old = server.pid
    with slow(server):
        # Only files that have not changed for 2 s are kept in memory.
        wait_until(lambda: warm(server) or private(old) > 2 * MOST, "the cache to fill")
        assert descriptors(old) > SMALL
        server.reload()
        wait_until(lambda: descriptors(old) < 64, "its files to be closed")
        wait_until(lambda: private(old) < MOST, "its memory to go back")
        assert server.processes() != [server.pid]
    wait_until(lambda: server.processes() == [server.pid], "the old one to end")
    server.stop()


def test_after_drain_timeout_connections_end(start):
    server = start(drain_timeout=2, http2=True)
    old = server.pid
    with slow(server) as one, raw.Client(server.address, window=1000, rcvbuf=4096) as two:
        two.send(raw.get(1, b"/big"))
        two.until(raw.HEADERS)
        server.reload()
        assert server.pid != old
        wait_until(lambda: server.processes() == [server.pid], "the old one to end")
        assert two.goaway() == (1, raw.NO_ERROR)
        assert len(one.drain()) < 32 << 20
    assert CLOSED in server.output
    server.stop()


def test_shutdown_ends_an_old_process_before_drain_timeout(start):
    server = start(shutdown_timeout=0)
    with slow(server):
        server.reload()
        assert len(server.processes()) == 2
        server.stop()


@pytest.mark.slow
def test_the_oldest_of_too_many_old_processes_ends(start):
    server = start()
    clients, pids = [], []
    for _ in range(OLD + 2):
        clients.append(slow(server))
        pids.append(server.pid)
        server.reload()
    wait_until(lambda: len(server.processes()) == OLD + 1, "two of them to end")
    assert set(server.processes()) == {server.pid, *pids[2:]}
    assert len(clients[0].drain()) < 32 << 20
    for i in range(2):
        assert "the connections of the oldest, %d;" % pids[i] in server.messages
    for c in clients:
        c.sock.close()
    wait_until(lambda: server.processes() == [server.pid], "the others to end")
    server.stop(messages=True)


@pytest.mark.slow
def test_many_reloads_with_a_slow_client_each_fit_into_128_mib(start):
    with groups.limited(128 << 20) as group, contextlib.ExitStack() as clients:
        server = start(becomes=groups.inside(group))
        for _ in range(OLD):
            warm(server)
            clients.enter_context(slow(server))
            server.reload()
        assert len(server.processes()) == OLD + 1
        clients.close()
        server.stop()


@pytest.mark.slow
def test_the_master_outlives_the_deaths_of_old_processes(start):
    server = start()
    clients = []
    for _ in range(6):
        clients.append(slow(server))
        old = server.pid
        server.reload()
        os.kill(old, signal.SIGKILL)
    wait_until(lambda: server.processes() == [server.pid], "them to end")
    assert server.get("/1").status == 200
    for c in clients:
        c.sock.close()
    server.stop(messages=r"(pagewise: server process \d+ was killed by signal 9 \(Killed\)\n){6}")
