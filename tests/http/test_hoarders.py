"""Clients that keep connections open and ask for nothing: they make room for others."""

import contextlib
import itertools
import os
import resource
import selectors
import signal
import socket
import threading
import time

import pytest

import h2_raw
import tls
import tls_peer
from harness import PATIENCE, readable, request, wait_until
from limits import busy, connections, figure, limited, start  # noqa: F401
from ports import free_port  # noqa: F401
from processes import stopped

OUSTED = "pagewise_connections_ousted_total"
DESCRIPTORS = 64
FULL = r"pagewise: warning: cannot accept connections: max_connections reached \(\d+\); raise it, if there is memory for more\n"
SCARCE = (r"pagewise: warning: cannot accept connections: Too many open files: "
          r"(closing idle connections|pausing); raise ulimit -n, or lower open_files\n")
CLOSED = (r"pagewise: warning: closed a connection from 127\.\d+\.\d+\.\d+ that has sent no "
          r"request, because descriptors ran out or max_connections was reached \(\d+ connections from this address\)\n")
TOLD = "(%s|%s|%s)*" % (FULL, SCARCE, CLOSED)
WITHHOLDS_HTTP2 = h2_raw.PREFACE + h2_raw.settings() + h2_raw.frame(h2_raw.SETTINGS, h2_raw.ACK) + \
    h2_raw.get(1, b"/f0", flags=h2_raw.END_HEADERS, more=[(b"content-length", b"60000")])
RIPE = 0.1  # seconds; a connection is left alone for less


class Hoarder(threading.Thread):
    """Keeps so many connections open from one or more addresses, and opens anew what is closed.

    keeps: it does not close them when the server has; so many more at most.
    """

    def __init__(self, server, says, count=300, source="127.0.0.2", keeps=0):
        super().__init__(daemon=True)
        self.keeps, self.kept = keeps, []
        self.address, self.says = server.address, says
        self.sources = itertools.cycle([source] if isinstance(source, str) else source)
        self.selector = selectors.DefaultSelector()
        self.over = threading.Event()
        self.closed = 0
        for _ in range(count):
            self.open()
        self.start()

    def open(self):
        sock = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
        sock.setsockopt(socket.IPPROTO_IP, socket.IP_BIND_ADDRESS_NO_PORT, 1)
        sock.bind((next(self.sources), 0))
        sock.connect(self.address)
        # Another one may have had its place already.
        with contextlib.suppress(ConnectionResetError, BrokenPipeError):
            sock = tls.wrap(sock, self.address)
            sock.send(self.says)
        self.selector.register(sock, selectors.EVENT_READ)

    def run(self):
        while not self.over.wait(0.002):
            for key, _ in self.selector.select(0):
                if not has_more(key.fileobj):
                    self.replace(key.fileobj)

    def replace(self, sock):
        self.selector.unregister(sock)
        self.closed += 1
        if len(self.kept) < self.keeps:
            self.kept.append(sock)
        else:
            sock.close()
        self.open()

    def end(self):
        self.over.set()
        self.join(PATIENCE)
        assert not self.is_alive()
        for sock in self.kept + [key.fileobj for key in self.selector.get_map().values()]:
            sock.close()
        self.selector.close()


def has_more(sock):
    """An answer, which nobody reads; not its end."""
    try:
        return sock.recv(1 << 16) != b""
    except ConnectionResetError:
        return False


def short_of_descriptors():
    return ("prlimit", "--nofile=%d:%d" % (DESCRIPTORS, DESCRIPTORS))


@pytest.fixture
def full(start, site):  # noqa: F811
    """A server that hoarders can fill."""
    for i in range(11):
        (site / ("f%d" % i)).write_bytes(b"%d" % i)

    def full(limit, workers):
        if limit == "descriptors":
            return start({"workers": workers}, becomes=short_of_descriptors())
        return start({"workers": workers, "max_connections": 100})

    return full


@pytest.mark.slow
@pytest.mark.parametrize("says", [b"", b"G"], ids=["nothing", "begun"])
@pytest.mark.parametrize("workers", [1, 2])
@pytest.mark.parametrize("limit", ["max_connections", "descriptors"])
def test_one_address_cannot_keep_out_other_clients(full, limit, workers, says):
    server = full(limit, workers)
    hoarder = Hoarder(server, says)
    wait_until(lambda: hoarder.closed > 0, "the limit")
    for i in range(11):
        with server.connect(source="127.0.0.3") as c:
            response = c.ask("/f%d" % i)
            assert (response.status, response.body) == (200, b"%d" % i)
    hoarder.end()
    assert figure(server, OUSTED) > 0
    wait_until(lambda: connections(server) == 0, "all to end")
    server.stop(messages=TOLD)


@pytest.mark.parametrize("limit, workers", [("max_connections", 2), ("max_connections", 4), ("descriptors", 2)])
def test_many_addresses_cannot_keep_out_other_clients(full, limit, workers):
    """Each has one connection, so workers ask each other.  A slot costs no fixed time.

    With a wait of 0.2 s for each slot this took more than a minute.
    """
    server = full(limit, workers)
    hoarder = Hoarder(server, b"G", 150, ["127.%d.%d.2" % (1 + i % 200, i) for i in range(250)])
    wait_until(lambda: hoarder.closed > 0, "the limit")
    until = time.monotonic() + 30
    for i in range(30):
        with server.connect(source="127.0.0.3") as c:
            assert c.ask("/small").body == b"small"
    assert time.monotonic() < until
    hoarder.end()
    wait_until(lambda: connections(server) == 0, "all to end")
    server.stop(messages=TOLD)


@pytest.mark.parametrize("workers", [1, 2])
@pytest.mark.parametrize("says", [
    pytest.param(b"G\n", id="lingers"),
    pytest.param(request("/f0", fields={"Connection": "close"}), id="closes"),
    pytest.param(request("/f0", fields={"Content-Length": "60000"}), id="withholds"),
    pytest.param(WITHHOLDS_HTTP2, id="withholds_http2"),
])
@pytest.mark.slow
def test_clients_with_responses_cannot_keep_out_others(full, workers, says):
    server = full("max_connections", workers)
    hoarder = Hoarder(server, says, keeps=3000)
    wait_until(lambda: connections(server) >= 90, "the limit")
    for i in range(11):
        with server.connect(source="127.0.0.3") as c:
            assert c.ask("/f%d" % i).body == b"%d" % i
    hoarder.end()
    wait_until(lambda: connections(server) == 0, "all to end")
    server.stop(messages=TOLD)


@pytest.mark.parametrize("workers", [1, 2])
def test_slow_client_that_is_alone_at_its_address_stays(full, workers):
    """It had sent half of its request before the others came."""
    server = full("max_connections", workers)
    with server.connect(source="127.0.0.3") as slow:
        slow.send(request("/small")[:10])
        wait_until(lambda: connections(server) == 1, "it to be accepted")
        time.sleep(RIPE)
        hoarder = Hoarder(server, b"G")
        wait_until(lambda: hoarder.closed > 1000, "many to be closed")
        slow.send(request("/small")[10:])
        assert slow.response().body == b"small"
        hoarder.end()
    server.stop(messages=TOLD)


def is_closed(c, patience=PATIENCE):
    try:
        return not c.quiet(patience) and c.sock.recv(1) == b""
    except ConnectionResetError:
        return True


def silent(server, source, says=b""):
    before = connections(server)
    c = server.connect(source=source)
    c.send(says)
    wait_until(lambda: connections(server) == before + 1, "it to be accepted")
    return c


def ripen(server, phase):
    """All that was sent has been read, and nobody is young."""
    wait_until(lambda: figure(server, "pagewise_connections", '{state="head"}') == phase,
               "the connections")
    time.sleep(RIPE)


@pytest.mark.slow
def test_slow_client_that_is_alone_with_its_worker_stays(start):  # noqa: F811
    """The other worker has two of one address, now and then: it is asked first."""
    server = start({"max_connections": 3, "workers": 2})
    slow = silent(server, "127.0.0.3", request("/small")[:10])
    for _ in range(16):
        hoard = [silent(server, "127.0.0.2") for _ in range(2)]
        ripen(server, 3)
        busy(server).reset()
        wait_until(lambda: any(is_closed(c, 0) for c in hoard), "one to be closed")
        for c in hoard:
            c.reset()
        wait_until(lambda: connections(server) == 1, "all others to end")
    slow.send(request("/small")[10:])
    assert slow.response().body == b"small"
    slow.finish()
    server.stop(messages=TOLD)


def test_order_of_eviction(start):  # noqa: F811
    """Of the address that has most what has sent nothing, then the oldest."""
    server = start({"max_connections": 6})
    alone = silent(server, "127.0.0.3")
    begun = silent(server, "127.0.0.2", b"GET /small")
    old, young, last = (silent(server, "127.0.0.2") for _ in range(3))
    other = silent(server, "127.0.0.4", b"G")
    ripen(server, 6)
    held = []
    for c in (old, young, last, alone, begun, other):
        assert c.quiet(0)
        held.append(busy(server))
        assert is_closed(c)
    assert figure(server, OUSTED) == 6
    assert figure(server, "pagewise_connections_reclaimed_total") == 0
    assert limited(server, "max_connections") == 0
    for c in held:
        c.reset()
    server.stop(messages=CLOSED)


@pytest.mark.plain("its clients of TLS are made by hand")
@pytest.mark.http1("the same")
@pytest.mark.parametrize("hello", [tls_peer.hello, tls_peer.hello_13], ids=["1.2", "1.3"])
@pytest.mark.parametrize("more", [b"", b"\x14"], ids=["flight_read", "record_begun"])
def test_a_begun_handshake_is_evicted_last(start, site, free_port, tmp_path, more, hello):  # noqa: F811
    """A client of TLS is longer without a request than one that sends a byte and is closed."""
    tls.make_pair(tmp_path / "pair")
    port = free_port()
    server = start({"max_connections": 4, "listen": ["127.0.0.1:0", "127.0.0.1:%d tls" % port],
                    "certificate": [tmp_path / "pair"]})
    shakes = socket.create_connection(("127.0.0.1", port), PATIENCE, ("127.1.0.3", 0))
    shakes.sendall(tls_peer.record(tls_peer.HANDSHAKE, hello()))
    assert tls_peer.SERVER_HELLO in dict(tls_peer.messages(shakes.recv(1 << 16)))
    shakes.sendall(more)
    begins = socket.create_connection(("127.0.0.1", port), PATIENCE, ("127.2.0.3", 0))
    begins.sendall(b"\x16")
    wait_until(lambda: connections(server) == 2, "it to be accepted")
    others = [silent(server, source, b"GET") for source in ("127.3.0.3", "127.4.0.3")]
    ripen(server, 3)
    held = [busy(server)]
    with pytest.raises(ConnectionResetError):
        begins.recv(1)
    for c in others:
        held.append(busy(server))
        assert is_closed(c)
    assert not readable(shakes, 0)
    held.append(busy(server))
    with pytest.raises(ConnectionResetError):
        shakes.recv(1)
    for c in held:
        c.reset()
    server.stop(messages=TOLD)


@pytest.mark.slow
def test_connections_of_a_trusted_proxy_count_apart(start):  # noqa: F811
    server = start({"max_connections": 5, "trusted_proxies": ["127.0.0.2"]})
    theirs = [silent(server, "127.0.0.2") for _ in range(3)]
    old, young = silent(server, "127.0.0.3"), silent(server, "127.0.0.3")
    ripen(server, 5)
    with busy(server) as c:
        assert is_closed(old)
        assert young.quiet(0) and all(c.quiet(0) for c in theirs)
        c.reset()
    server.stop(messages=CLOSED)


def test_idle_connection_is_evicted_before_one_without_a_request(start):  # noqa: F811
    """It can be opened again for the next request."""
    server = start({"max_connections": 3})
    first, second = silent(server, "127.0.0.2"), silent(server, "127.0.0.2")
    ripen(server, 2)
    idle = server.connect()
    assert idle.ask("/small").body == b"small"
    with busy(server) as c:
        idle.eof()
        assert first.quiet(0) and second.quiet(0)
        assert figure(server, OUSTED) == 0
        c.reset()


@pytest.mark.slow
def test_client_with_a_received_request_is_not_closed(start):  # noqa: F811
    """It was not read yet; the one that was opened later goes in its place."""
    server = start({"max_connections": 2})
    first, second = silent(server, "127.0.0.2"), silent(server, "127.0.0.2")
    ripen(server, 2)
    os.kill(server.pid, signal.SIGSTOP)
    wait_until(lambda: stopped(server), "all threads to stop")
    try:
        new = server.connect(rcvbuf=4096)
        new.send(request("/big"))
        first.send(request("/small"))
    finally:
        os.kill(server.pid, signal.SIGCONT)
    assert first.response().body == b"small"
    new.read_head()
    assert is_closed(second)
    new.reset()
    server.stop(messages=CLOSED)


def test_young_connection_is_not_evicted_at_once(start):  # noqa: F811
    """There is one place: each takes it when the one before has had its time."""
    server = start({"max_connections": 1})
    many = [server.connect(source="127.0.0.2") for _ in range(20)]
    with server.connect(source="127.0.0.3") as c:
        assert c.ask("/small").body == b"small"
    assert all(is_closed(m) for m in many)
    assert figure(server, OUSTED) == 20
    assert limited(server, "max_connections") > 0
    server.stop(messages=TOLD)


def test_slot_of_a_silent_client_of_another_worker_is_freed(start):  # noqa: F811
    """Half of the clients come to the worker that has no connection."""
    server = start({"max_connections": 1, "workers": 2})
    held = []
    for _ in range(12):
        held.append(server.connect())
        with server.connect() as c:
            assert c.ask("/small").body == b"small"
            c.finish()
    server.stop(messages=TOLD)


@pytest.mark.slow
def test_connections_leave_some_descriptors_for_files(start, site):  # noqa: F811
    """Whoever was accepted has the file opened: nothing can be closed for it."""
    (site / "new").write_bytes(b"new")
    server = start({}, becomes=short_of_descriptors())
    first = busy(server)
    first.send(request("/new"))
    held = []
    while "pausing" not in server.messages:
        held.append(server.connect(rcvbuf=4096))
        held[-1].send(request("/big"))
        wait_until(lambda: not held[-1].quiet(0) or "pausing" in server.messages, "an answer")
    assert len(os.listdir("/proc/%d/fd" % server.pid)) > DESCRIPTORS - 16
    while first.fill() and len(first.buf) < 16 << 20:
        pass
    first.read_exactly(16 << 20)
    assert first.response().body == b"new"
    for c in held:
        c.reset()
    server.stop(messages="(%s)+" % SCARCE)


def test_limit_of_descriptors_is_that_of_connections(start):  # noqa: F811
    """Without max_connections; of two numbers the lower one counts."""
    server = start({"max_connections": 5}, becomes=short_of_descriptors())
    held = [busy(server) for _ in range(5)]
    waiting = server.connect()
    wait_until(lambda: limited(server, "max_connections") > 0, "the limit")
    assert resource.prlimit(server.pid, resource.RLIMIT_NOFILE)[0] == DESCRIPTORS
    assert figure(server, "pagewise_accept_failures_total") == 0
    for c in held + [waiting]:
        c.reset()
    server.stop(messages=FULL)
