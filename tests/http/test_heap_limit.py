"""While connections have too much memory of the process, new requests are refused.

How much it has is said by a file of the test's: PAGEWISE_STATM, debug builds.
"""

import os
import socket
import struct
import time

import pytest

import h2_raw as raw
import harness
import tls
from harness import request, wait_until
from limits import QUIET, figure, limited

PAGE = os.sysconf("SC_PAGESIZE")
MACHINE = os.sysconf("SC_PHYS_PAGES") * PAGE
LITTLE, HIGH, MUCH = 10 << 20, MACHINE * 2 // 5, MACHINE - (1 << 20)

WARNING = (r"pagewise: warning: connections use too much memory: the process uses \d+ MiB of the "
           r"(machine|control group)'s \d+ MiB; requests get 503 above \d+ MiB; lower "
           r"max_connections, or add memory\n")
CLOSED = (r"(pagewise: warning: closed a connection from 127\.0\.0\.1 that has sent no request, "
          r"because descriptors ran out or max_connections was reached \(\d+ connections from this address\)\n)?")
STALLED = (r"pagewise: warning: connections use too much memory: aborted a connection from "
           r"127\.0\.0\.1 whose client read nothing of its \d+ responses; lower max_connections, or "
           r"add memory\n")


class Process:
    """Its pages: in memory, and of these of files."""

    def __init__(self, path):
        self.path = path
        self.has(LITTLE)

    def has(self, size):
        fd = os.open(self.path, os.O_WRONLY | os.O_CREAT)
        os.pwrite(fd, b"%012d %012d %012d 0 0 0 0\n" % (2 * size // PAGE, size // PAGE + 100, 100), 0)
        os.close(fd)


@pytest.fixture
def process(tmp_path):
    return Process(tmp_path / "statm")


@pytest.fixture
def start(serve_conf, site, tmp_path, process):
    (site / "small").write_bytes(b"small")
    (site / "big").write_bytes(bytes(8 << 20))

    def start(**top):
        server = serve_conf({"workers": 1, "admin": str(tmp_path / "admin"), **QUIET, **top},
                            [("s", {"root": site}, {})], env={"PAGEWISE_STATM": str(process.path)})
        server.admin = str(tmp_path / "admin")
        return server

    return start


@pytest.fixture
def server(start):
    return start()


def short(server, process, yes=True):
    process.has(MUCH if yes else LITTLE)
    wait_until(lambda: figure(server, "pagewise_heap_pressure") == yes, "the next look")


@pytest.mark.http1("heads are HTTP/1's")
def test_a_request_gets_503_and_its_connection_closes(server, process):
    with server.connect() as c:
        assert c.ask("/big", "HEAD").status == 200
        short(server, process)
        response = c.ask("/small")
        assert response.status == 503 and response.get("retry-after") == "1"
        assert response.get("connection") == "close"
        c.finish()
        response = server.get("/small", "HEAD")
        assert response.status == 503
        assert limited(server, "heap") == 2
        short(server, process, False)
        assert server.get("/small").status == 200
    server.stop(messages=WARNING)


@pytest.mark.http1("heads are HTTP/1's")
def test_a_large_head_is_refused_before_its_end(server, process):
    with server.connect() as c, server.connect() as other:
        begin = b"GET /small HTTP/1.1\r\nHost: x\r\nX: "
        for each in (c, other):
            each.send(begin + 2000 * b"y")
        short(server, process)
        c.send(4000 * b"y")
        assert c.response().status == 503
        c.finish()
        short(server, process, False)
        other.send(4000 * b"y" + b"\r\n\r\n")
        assert other.response().status == 200
    server.stop(messages=WARNING)


def test_responses_that_have_begun_continue(server, process):
    with server.connect(rcvbuf=4096) as c:
        c.send(request("/big"))
        response = c.read_head()
        process.has(MUCH)
        assert len(c.read_body(response).body) == 8 << 20
    assert figure(server, "pagewise_heap_pressure") == 1
    server.stop(messages=WARNING)


def test_a_stream_is_refused_and_a_connection_without_another_one_ends(server, process):
    with raw.Client(server.address, window=0) as c, raw.Client(server.address) as idle:
        c.send(raw.get(1, b"/big"))
        c.until(raw.HEADERS, 1)
        idle.send(raw.get(1))
        assert idle.body(1) == b"small"
        short(server, process)
        c.send(raw.get(3))
        assert struct.unpack(">I", c.until(raw.RST_STREAM, 3)) == (raw.REFUSED_STREAM,)
        idle.send(raw.get(3))
        frames = {}
        with pytest.raises(raw.Closed):
            while True:
                kind, _, _, payload = idle.read()
                frames[kind] = payload
        assert struct.unpack(">I", frames[raw.RST_STREAM]) == (raw.REFUSED_STREAM,)
        assert struct.unpack(">II", frames[raw.GOAWAY]) == (3, raw.NO_ERROR)
        with raw.Client(server.address) as late:
            assert late.goaway() == (0, raw.NO_ERROR)
        short(server, process, False)
        c.send(raw.get(5))
        c.until(raw.HEADERS, 5)
    server.stop(messages=WARNING)


@pytest.mark.once
def test_a_handshake_is_refused(start, process, tmp_path):
    tls.make_pair(tmp_path / "pair")
    server = start(listen=["127.0.0.1:0 tls"], certificate=[tmp_path / "pair"])

    def secure():
        return tls.client_context().wrap_socket(socket.create_connection(server.address, timeout=harness.PATIENCE))

    with secure() as sock:
        sock.sendall(request("/big"))
        sock.recv(1)
        short(server, process)
        with pytest.raises(OSError):
            secure()
        assert limited(server, "heap") == 1
        sock.recv(1)
    short(server, process, False)
    secure().close()
    server.stop(messages=WARNING + CLOSED)


def many(server, count, **kw):
    """A client of so many streams."""
    client = raw.Client(server.address, **kw)
    client.send(raw.update(0, 1 << 30) + b"".join(raw.get(2 * i + 1, b"/big") for i in range(count)))
    client.until(raw.HEADERS)
    return client


def test_a_client_that_reads_nothing_is_closed(server, process):
    """While memory is only high, none with few responses."""
    with server.connect(rcvbuf=4096) as c, many(server, 7, window=0) as few, \
            many(server, 20, window=0) as lot, many(server, 9, window=1 << 30, rcvbuf=4096) as full:
        c.send(request("/big"))
        process.has(HIGH)
        wait_until(lambda: limited(server, "stalled") == 2, "both to end")
        assert lot.goaway()[1] == raw.ENHANCE_YOUR_CALM
        full.goaway()
        few.send(raw.frame(raw.PING, payload=b"12345678"))
        few.until(raw.PING)
        assert limited(server, "stalled") == 2
        process.has(MUCH)
        assert few.goaway()[1] == raw.ENHANCE_YOUR_CALM
        wait_until(lambda: limited(server, "stalled") == 4, "all to end")
        with pytest.raises(ConnectionResetError):
            c.response()
    server.stop(messages="(%s|%s)*" % (WARNING, STALLED))


@pytest.mark.parametrize("protocol", ["HTTP/1", "HTTP/2"])
def test_a_slow_reader_stays(server, process, protocol):
    """Some in each second, though its socket is full all the time."""
    with many(server, 20, window=0) as lot:
        if protocol == "HTTP/2":
            c = many(server, 20, window=1 << 30, rcvbuf=1 << 16).sock
        else:
            c = server.connect(rcvbuf=1 << 16).sock
            c.sendall(request("/big"))
            c.recv(1)
        process.has(MUCH)
        until, got = time.monotonic() + 3, 0
        while time.monotonic() < until:
            data = c.recv(1 << 15)
            assert data, "it was ended"
            got += len(data)
            time.sleep(0.02)
        assert limited(server, "stalled") == 1 and got > 1 << 20
        assert lot.goaway()[1] == raw.ENHANCE_YOUR_CALM
        c.close()
    server.stop(messages="(%s|%s)*" % (WARNING, STALLED))


@pytest.mark.slow
def test_a_new_client_evicts_an_idle_connection(server, process):
    """So that idle connections do not add up meanwhile."""
    clients = [server.connect() for _ in range(3)]
    for c in clients:
        assert c.ask("/small").status == 200
    short(server, process)
    assert server.get("/small").status == 503
    clients[0].finish()
    short(server, process, False)
    assert clients[2].ask("/small").status == 200
    server.stop(messages=WARNING)
