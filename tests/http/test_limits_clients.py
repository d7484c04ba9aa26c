"""Limits for clients: connections in total and from an address, requests, heads and bodies."""

import os
import signal
import time

import pytest

from harness import PATIENCE, readable, request, wait_until
from limits import busy, connections, figure, is_refused, limited, start  # noqa: F401
from processes import stopped

FULL = (r"pagewise: warning: cannot accept connections: max_connections reached "
        r"\(%d\); raise it, if there is memory for more\n")
REFUSED = (r"pagewise: warning: refused a connection from %s: "
           r"max_connections_per_address reached \(%d\); raise it, if many clients share that address\n")


# ---------------------------------------------------------------- in total


@pytest.mark.parametrize("workers", [1, 2])
def test_as_many_as_max_connections_are_served(start, workers):
    server = start({"max_connections": 5, "workers": workers})
    held = [busy(server) for _ in range(5)]
    assert connections(server) == 5
    assert limited(server, "max_connections") == 0
    for c in held:
        c.reset()


@pytest.mark.parametrize("workers", [1, 2])
def test_further_client_waits_until_a_connection_closes(start, workers):
    server = start({"max_connections": 5, "workers": workers})
    held = [busy(server) for _ in range(5)]
    waiting = server.connect()
    waiting.send(request("/small"))
    wait_until(lambda: limited(server, "max_connections") > 0, "the limit")
    assert waiting.quiet(0.6)
    assert connections(server) == 5
    held.pop().reset()
    assert waiting.response().body == b"small"
    waiting.finish()
    for c in held:
        c.reset()
    wait_until(lambda: connections(server) == 0, "all to end")
    server.stop(messages=FULL % 5 + ("(%s)?" % (FULL % 5) if workers > 1 else ""))


def test_new_client_evicts_the_longest_idle_connection(start):
    server = start({"max_connections": 6})
    idle = []
    for _ in range(9):
        idle.append(server.connect())
        assert idle[-1].ask("/small").body == b"small"
    assert figure(server, "pagewise_connections_reclaimed_total") == 3
    for c in idle[:3]:
        c.eof()
    for c in idle[3:]:
        assert c.ask("/small").body == b"small"


@pytest.mark.slow
def test_slot_of_an_idle_connection_of_another_worker_is_freed(start):
    """One place, two workers: half of the clients come to the other one."""
    server = start({"max_connections": 1, "workers": 2})
    held = []
    for _ in range(16):
        held.append(server.connect())
        assert held[-1].ask("/small").body == b"small"
    server.stop(messages="(%s){1,2}" % (FULL % 1))


@pytest.mark.parametrize("idle", [True, False], ids=["idle", "busy"])
def test_slot_of_another_worker_is_freed_at_once(start, idle):
    """Half of the clients come to the other worker: that it looks four times a second
    would be too slow for all of them."""
    server = start({"max_connections": 1, "workers": 2, "send_timeout": 60})
    end = time.monotonic() + PATIENCE
    held = None
    for _ in range(20 * int(PATIENCE)):
        c = server.connect(rcvbuf=4096)
        c.send(request("/small" if idle else "/big"))
        if held and not idle:
            held.reset()
        assert c.read_exactly(15) == b"HTTP/1.1 200 OK"
        assert time.monotonic() < end, "it takes too long"
        held = c
    held.reset()
    server.stop(messages="(%s){1,2}" % (FULL % 1))


@pytest.mark.plain("a client whose handshake takes 20 ms gives up its place, and these take turns")
def test_free_slot_is_used_at_once(start):
    """A quarter of a second each, which is when a clock would say so, is too long for all."""
    server = start({"max_connections": 1})
    os.kill(server.pid, signal.SIGSTOP)  # else the first would be silent for too long
    wait_until(lambda: stopped(server), "all threads to stop")
    try:
        waiting = [server.connect() for _ in range(2 * 4 * int(PATIENCE))]
        for c in waiting:
            c.send(request("/small", fields={"Connection": "close"}))
    finally:
        os.kill(server.pid, signal.SIGCONT)
    for c in waiting:
        assert c.response().body == b"small"
        c.eof()
        c.sock.close()
    server.stop(messages=FULL % 1)


def stuck(server):
    """Idle, but the client has not taken all of its answer."""
    c = server.connect(rcvbuf=4096)
    c.send(request("/tail"))
    wait_until(lambda: figure(server, "pagewise_connections", '{state="idle"}') == 1,
               "the answer to be in the kernel")
    return c


def test_slot_of_a_client_with_its_response_is_freed_first(start, site):
    """Though the other has been idle for longer."""
    (site / "tail").write_bytes(bytes(60000))
    server = start({"max_connections": 2})
    first = stuck(server)
    second = server.connect()
    assert second.ask("/small").body == b"small"
    with server.connect() as c:
        assert c.ask("/small").body == b"small"
        second.eof()
        assert first.response().body == bytes(60000)
        c.finish()
    first.finish()


def test_evicted_connection_leaves_nothing_in_the_kernel(start, site):
    (site / "tail").write_bytes(bytes(60000))
    server = start({"max_connections": 1})
    first = stuck(server)
    assert len(server.in_kernel()) == 1
    with server.connect() as c:
        assert c.ask("/small").body == b"small"
        assert len(server.in_kernel()) == 1
        c.finish()
    first.reset()
    server.stop(messages="(%s)?" % (FULL % 1))  # a response in flight has a second


def test_response_in_flight_is_not_aborted_for_another(start, site):
    """All of it is in the kernel."""
    (site / "tail").write_bytes(bytes(300000))
    server = start({"max_connections": 1})
    first = stuck(server)
    with server.connect() as c:
        c.send(request("/small"))
        wait_until(lambda: limited(server, "max_connections") > 0, "the limit")
        assert first.response().body == bytes(300000)
        assert c.response().body == b"small"
        c.finish()
    first.eof()
    server.stop(messages=FULL % 1)


def test_sigterm_ends_a_server_that_is_full(start):
    server = start({"max_connections": 2, "shutdown_timeout": 0})
    held = [busy(server) for _ in range(2)]
    waiting = server.connect()
    wait_until(lambda: limited(server, "max_connections") > 0, "the limit")
    server.stop(messages=True)
    for c in held + [waiting]:
        c.drain()


# ------------------------------------------------------------ of an address


def test_only_an_address_at_its_limit_is_refused(start):
    server = start({"max_connections_per_address": 3, "workers": 2})
    held = [busy(server, source="127.0.0.2") for _ in range(3)]
    assert limited(server, "max_connections_per_address") == 0
    for _ in range(4):
        assert is_refused(server, "127.0.0.2")
    assert limited(server, "max_connections_per_address") == 4
    for source in ("127.0.0.1", "127.0.0.3"):
        with server.connect(source=source) as c:
            assert c.ask("/small").body == b"small"
            c.finish()
    for c in held:
        c.reset()
    server.stop(messages="(%s){1,2}" % (REFUSED % ("127.0.0.2", 3)))


def test_closed_connection_frees_the_slot_of_its_address(start):
    server = start({"max_connections_per_address": 2})
    for _ in range(3):
        held = [server.connect(source="127.0.0.2") for _ in range(2)]
        for c in held:
            assert c.ask("/small").body == b"small"
        assert is_refused(server, "127.0.0.2")
        for c in held:
            c.finish()
        wait_until(lambda: connections(server) == 0, "all to end")
    server.stop(messages=REFUSED % ("127.0.0.2", 2))


@pytest.mark.slow
def test_ipv4_counts_the_same_when_it_comes_as_ipv6(serve_conf, site):
    """An IPv6 socket for all addresses sees ::ffff:127.0.0.2."""
    (site / "small").write_bytes(b"small")
    server = serve_conf(
        {"workers": 1, "listen": ["[::]:0"], "max_connections_per_address": 1},
        [("s", {"root": site}, {})],
    )
    server.address = ("127.0.0.1", server.address[1])
    for source in ("127.0.0.2", "127.0.0.3"):
        c = server.connect(source=source)
        assert c.ask("/small").body == b"small"
        assert is_refused(server, source)
    server.stop(messages=REFUSED % ("127.0.0.2", 1))


def test_refused_connections_leave_nothing_behind(start):
    server = start({"max_connections_per_address": 1, "max_connections": 3})
    with server.connect(source="127.0.0.2") as c:
        assert c.ask("/small").body == b"small"
        for _ in range(50):
            assert is_refused(server, "127.0.0.2")
        # Each of them gave its place back.
        others = [server.connect(source="127.0.0.%d" % i) for i in (3, 4)]
        for other in others:
            assert other.ask("/small").body == b"small"
        assert connections(server) == 3
        for other in others:
            other.finish()
        c.finish()
    server.stop(messages=REFUSED % ("127.0.0.2", 1))


# ----------------------------------------------------------------- requests


@pytest.mark.parametrize("hot", [0, 1 << 20], ids=["long way", "hot set"])
def test_last_of_max_requests_says_close(start, hot):
    server = start({"max_requests": 5, "hot_set": hot})
    for _ in range(3):
        with server.connect() as c:
            answers = [c.ask("/small") for _ in range(5)]
            assert [a.closes for a in answers] == [False] * 4 + [True]
            assert {a.body for a in answers} == {b"small"}
            c.finish(answers[-1])
    assert limited(server, "max_requests") == 3


@pytest.mark.slow
def test_hot_answers_are_counted_as_requests(start, site):
    """All of it is there: the short way is taken, and the last goes the long way."""
    server = start({"max_requests": 40})
    # Only files that have not changed for two seconds are hot.
    wait_until(lambda: time.time() - (site / "small").stat().st_ctime > 2.5, "an old file")
    for _ in range(4):
        with server.connect() as c:
            c.send(request("/small") * 60)
            answers = [c.response() for _ in range(40)]
            assert [a.closes for a in answers] == [False] * 39 + [True]
            c.half_close()
            c.eof()
    assert figure(server, "pagewise_hot_requests_total") > 80


@pytest.mark.parametrize("count", [1, 2, 16, 17, 18])
def test_pipelined_requests_behind_the_last_are_not_answered(start, count):
    server = start({"max_requests": count})
    with server.connect() as c:
        c.send(request("/small") * (count + 5))
        answers = [c.response() for _ in range(count)]
        assert [a.closes for a in answers] == [False] * (count - 1) + [True]
        c.half_close()
        c.eof()


def test_requests_without_a_limit_go_on(start):
    server = start({})
    with server.connect() as c:
        for _ in range(30):
            c.send(request("/small") * 100)
            assert not any(c.response().closes for _ in range(100))
        c.finish()


# ------------------------------------------------------------- head and body


def trickle(server, begin, more, pause=0.1):
    """Sends a byte at a time; returns what it was answered, until the end."""
    answer = b""
    with server.connect() as c:
        c.send(begin)
        end = time.monotonic() + PATIENCE
        while time.monotonic() < end:
            try:
                if readable(c.sock, pause):
                    data = c.sock.recv(1 << 16)
                    if not data:
                        return answer
                    answer += data
                c.sock.send(more)
            except (BrokenPipeError, ConnectionResetError):
                return answer
    raise AssertionError("it goes on for ever")


@pytest.mark.parametrize("begin, more", [
    (b"GET /", b"a"),
    (b"\r\n", b"\r\n"),
], ids=["line", "blank"])
@pytest.mark.http1("a head in parts")
def test_head_that_trickles_ends_with_head_timeout(start, begin, more):
    server = start({"head_timeout": 1})
    answer = trickle(server, begin, more)
    assert answer.startswith(b"HTTP/1.1 408 ") or answer.startswith(b"HTTP/1.1 400 ")
    wait_until(lambda: connections(server) == 0, "the connection to be closed")


@pytest.mark.http1("its answer has been sent")
def test_body_that_trickles_ends_with_head_timeout(start):
    """Its answer was sent: nothing waits for it but its own connection."""
    server = start({"head_timeout": 1})
    answer = trickle(
        server, request("/small", "POST", fields={"Content-Length": "60000"}), b"b")
    assert answer.startswith(b"HTTP/1.1 405 ")
    wait_until(lambda: connections(server) == 0, "the connection to be closed")
