"""Persistence, pipelining, request bodies and how connections end
(RFC 9112, section 9)."""

import os
import threading

import pytest

import tree as t
from harness import request, wait_until

FILES = ["/%d.bin" % s for s in t.SIZES if s <= 65537]


# -------------------------------------------------------------- persistence


@pytest.mark.parametrize(
    "version, field, persists",
    [
        ("1.1", None, True),
        ("1.1", "keep-alive", True),
        ("1.1", "close", False),
        ("1.1", "Close", False),
        ("1.1", "foo, close", False),
        ("1.1", "close, keep-alive", False),
        ("1.1", "closed", True),
        ("1.0", None, False),
        ("1.0", "close", False),
        ("1.0", "keep-alive", True),
        ("1.0", "Keep-Alive", True),
        ("1.0", "foo, keep-alive", True),
    ],
)
def test_connection_persists_as_the_client_wishes(server, tree, version, field, persists):
    fields = {"Connection": field} if field else {}
    with server.connect() as c:
        response = c.ask("/4097.bin", version=version, fields=fields)
        assert response.body == tree.files["/4097.bin"]
        if persists:
            if version == "1.0":
                assert response.get("Connection").lower() == "keep-alive"
            else:
                assert not response.closes
            assert c.ask("/4096.bin").body == tree.files["/4096.bin"]
            c.finish()
        else:
            assert response.closes
            c.eof()


@pytest.mark.parametrize(
    "target, fields, status",
    [
        ("/nothing", {}, 404),
        ("/empty/", {}, 403),
        ("/with-index", {}, 301),
        ("/4097.bin", {"If-Match": '"x"'}, 412),
        ("/4097.bin", {"Range": "bytes=9999-"}, 416),
        ("/4097.bin", {"If-None-Match": "*"}, 304),
    ],
)
@pytest.mark.parametrize("method", ["GET", "HEAD"])
def test_errors_that_frame_well_keep_the_connection(plain, tree, method, target, fields, status):
    with plain.connect() as c:
        for _ in range(3):
            response = c.ask(target, method, fields=fields)
            assert response.status == status
            assert not response.closes
        assert c.ask("/4097.bin").body == tree.files["/4097.bin"]
        c.finish()


def test_error_to_a_1_0_client_ends_the_connection(plain):
    with plain.connect() as c:
        response = c.ask("/nothing", version="1.0")
        assert response.status == 404
        assert response.closes
        c.eof()


def test_nothing_is_answered_after_a_closing_request(server, tree):
    with server.connect() as c:
        c.send(request("/4097.bin", fields={"Connection": "close"}) + request("/1.bin") * 5)
        assert c.response().body == tree.files["/4097.bin"]
        c.eof()


def test_hundred_requests_on_one_connection(server, tree):
    with server.connect() as c:
        for i in range(100):
            name = FILES[i % len(FILES)]
            assert c.ask(name).body == tree.files[name]
        c.finish()


# --------------------------------------------------------------- pipelining


def test_twenty_pipelined_requests_are_answered_in_order(server, tree):
    names = [FILES[i * 7 % len(FILES)] for i in range(20)]
    with server.connect() as c:
        c.send(b"".join(request(n) for n in names))
        for name in names:
            assert c.response().body == tree.files[name]
        c.finish()


def test_pipelined_requests_of_every_kind(server, tree):
    plan = [
        ("GET", "/4097.bin", {}, 200),
        ("HEAD", "/5242881.bin", {}, 200),
        ("GET", "/nothing", {}, 404),
        ("GET", "/5242881.bin", {"Range": "bytes=0-9,20-29"}, 206),
        ("GET", "/with-index", {}, 301),
        ("OPTIONS", "*", {}, 200),
        ("GET", "/0.bin", {}, 200),
        ("GET", "/4097.bin", {"If-None-Match": "*"}, 304),
        ("HEAD", "/nothing", {}, 404),
        ("GET", "/5242881.bin", {"Range": "bytes=-1"}, 206),
        ("GET", "/empty/", {}, 403),
        ("GET", "/1048579.bin", {}, 200),
    ]
    raw = b"".join(request(t_, m, fields=f) for m, t_, f, _ in plan)
    with server.connect() as c:
        c.send(raw * 2)
        for method, target, fields, status in plan * 2:
            response = c.response(method)
            assert response.status == status or (method == "OPTIONS" and response.status == 204)
            if status == 200 and method == "GET":
                assert response.body == tree.files[target]
        c.finish()


def test_pipelined_stream_cut_at_every_byte(server, tree):
    names = ["/1.bin", "/0.bin", "/4097.bin"]
    raw = b"".join(request(n) for n in names)
    with server.connect() as c:
        for cut in range(1, len(raw)):
            c.send(raw[:cut])
            c.send(raw[cut:])
            for name in names:
                assert c.response().body == tree.files[name]
        c.finish()


def test_pipelining_behind_a_large_file_with_a_slow_reader(server, tree):
    """The answers that follow wait for the socket, not the reverse."""
    big = "/%d.bin" % t.LARGE
    names = [big, "/4097.bin", big, "/1.bin"]
    with server.connect(rcvbuf=4096) as c:
        c.send(b"".join(request(n) for n in names))
        for name in names:
            assert c.response().body == tree.files[name]
        c.finish()


def test_many_pipelined_requests_of_a_client_that_does_not_read(server, tree):
    """More requests than any buffer holds: written in full before reading."""
    count = 3000
    raw = request("/4097.bin") * count
    with server.connect() as c:
        writer = threading.Thread(target=c.send, args=(raw,))
        writer.start()
        for _ in range(count):
            assert c.response().body == tree.files["/4097.bin"]
        writer.join()
        c.finish()


# ----------------------------------------------------------- request bodies


@pytest.mark.parametrize("size", [1, 16, 1000])
@pytest.mark.parametrize("method", ["GET", "HEAD", "OPTIONS"])
def test_small_request_body_is_drained(server, tree, method, size):
    body = request("/1.bin")[:size].ljust(size, b"x")
    with server.connect() as c:
        for _ in range(3):
            c.send(request("/4097.bin", method, body=body))
            response = c.response(method)
            assert response.status in (200, 204)
            assert not response.closes
        assert c.ask("/4096.bin").body == tree.files["/4096.bin"]
        c.finish()


def test_request_body_that_comes_later_is_drained(server, tree):
    raw = request("/4097.bin", body=b"x" * 100)
    with server.connect() as c:
        c.send(raw[:-100])
        c.send(raw[-100:-40])
        c.send(raw[-40:] + request("/4096.bin"))
        assert c.response().body == tree.files["/4097.bin"]
        assert c.response().body == tree.files["/4096.bin"]
        c.finish()


@pytest.mark.parametrize("method", ["GET", "HEAD"])
def test_request_body_that_is_too_large_is_413_and_close(plain, method):
    with plain.connect() as c:
        c.send(request("/4097.bin", method, fields={"Content-Length": str(1 << 30)}))
        response = c.response(method)
        assert response.status == 413
        assert response.closes
        c.eof()


CHUNKED = {"Transfer-Encoding": "chunked"}
SMUGGLED = request("/0.bin")
CHUNKS = b"5;a=b\r\n12345\r\n%x\r\n%s\r\n0\r\nA: b\r\n\r\n" % (len(SMUGGLED), SMUGGLED)


@pytest.mark.http1("chunks are HTTP/1's framing")
@pytest.mark.parametrize("method, status", [("GET", 200), ("HEAD", 200), ("OPTIONS", 204), ("POST", 405)])
def test_body_in_chunks_is_discarded_as_it_comes(plain, tree, method, status):
    """RFC 9112, 7.1.  The response does not wait for it, and the next request is behind it."""
    with plain.connect() as c:
        for _ in range(3):
            c.send(request("/4097.bin", method, fields=CHUNKED))
            assert c.response(method).status == status
            for i in range(len(CHUNKS)):
                c.send(CHUNKS[i:i + 1])
            c.send(request("/4096.bin"))
            assert c.response().body == tree.files["/4096.bin"]
        c.finish()


@pytest.mark.http1("chunks are HTTP/1's framing")
def test_client_that_ends_with_an_empty_chunk_keeps_its_connection(plain, tree):
    """As HAProxy does for a client of HTTP/2 that ends its request with an empty DATA frame."""
    with plain.connect() as c:
        for _ in range(50):
            c.send(request("/4097.bin", fields=CHUNKED) + b"0\r\n\r\n")
            assert c.response().body == tree.files["/4097.bin"]
        c.finish()


@pytest.mark.http1("chunks are HTTP/1's framing")
@pytest.mark.parametrize("more", [b"x\r\n", b"10001\r\n", b"5\r\n12345678", b"0\n\n"])
def test_nothing_behind_a_malformed_chunk_is_a_request(plain, more):
    with plain.connect() as c:
        c.send(request("/4097.bin", fields=CHUNKED))
        assert c.response().status == 200
        c.send(b"1\r\nx\r\n" + more + request("/4096.bin"))
        c.eof()


@pytest.mark.http1("chunks are HTTP/1's framing")
def test_expect_100_continue_with_chunks_is_not_left_waiting(plain):
    with plain.connect() as c:
        c.send(request("/4097.bin", fields={"Expect": "100-continue", **CHUNKED}))
        response = c.response()
        assert response.status == 200 and response.closes
        c.eof()


@pytest.mark.parametrize("method", ["PUT", "POST", "DELETE"])
@pytest.mark.parametrize("size", [0, 1000, 65537, 1 << 40])
def test_method_is_judged_before_the_size_of_the_body(plain, method, size):
    """As `curl -T bigfile` sends it."""
    fields = {"Content-Length": str(size), "Expect": "100-continue"}
    with plain.connect() as c:
        c.send(request("/4097.bin", method, fields=fields))
        response = c.response()
        assert response.status == 405
        assert response.closes or size < 65537
        if response.closes:
            c.eof()


@pytest.mark.parametrize("method", ["GET", "POST"])
@pytest.mark.parametrize("expect", ["100-continue", "100-Continue"])
def test_expect_100_continue_is_not_left_waiting(plain, method, expect):
    """Either 100 and a drained body, or a final answer."""
    body = b"x" * 50
    with plain.connect() as c:
        c.send(request("/4097.bin", method, fields={"Expect": expect}, body=body)[:-50])
        response = c.read_head(method)
        if response.status == 100:
            c.send(body)
            response = c.read_head(method)
        c.read_body(response)
        assert response.status == {"GET": 200, "POST": 405}[method]
        c.finish(response)


def test_expect_from_a_1_0_client_is_ignored(plain):
    """RFC 9110, 10.1.1."""
    with plain.connect() as c:
        c.send(request("/4097.bin", version="1.0", fields={"Expect": "100-continue"}, body=b"x"))
        response = c.response()
        assert response.status == 200
        c.finish(response)


# ---------------------------------------------------------- ends and resets


@pytest.mark.parametrize(
    "head",
    [
        b"GET / HTTP/1.1\r\nHost: x\r\nBad Name: y\r\n\r\n",
        request("/", fields={"Transfer-Encoding": "gzip"}),
        request("/", fields={"Content-Length": str(1 << 30)}),
        request("/", "POST", fields={"Content-Length": str(1 << 30)}),
        request("/", version="2.0"),
    ],
    ids=["400", "501", "413", "405", "505"],
)
def test_client_that_goes_on_sending_still_reads_the_answer(plain, head):
    """RFC 9112, 9.6: a server that closes at once resets, and the answer is lost."""
    with plain.connect() as c:
        c.send(head)
        for _ in range(256):
            c.send(b"x" * 4096)
        response = c.response()
        assert response.status >= 400
        assert response.closes
        c.half_close()
        c.eof()


def test_half_closed_client_gets_its_whole_answer(server, tree):
    name = "/%d.bin" % t.LARGE
    with server.connect(rcvbuf=4096) as c:
        c.send(request(name) + request("/4097.bin"))
        c.half_close()
        assert c.response().body == tree.files[name]
        assert c.response().body == tree.files["/4097.bin"]
        c.eof()


def test_half_close_within_a_head_ends_the_connection(plain):
    with plain.connect() as c:
        c.send(request("/")[:-2])
        c.half_close()
        rest = c.drain()
        assert rest == b"" or rest.startswith(b"HTTP/1.1 400 ")


def test_client_that_sends_nothing_and_leaves(plain):
    with plain.connect() as c:
        c.finish()


def descriptors(server):
    return len(os.listdir("/proc/%d/fd" % server.pid))


def test_client_that_resets_in_mid_download(server, tree):
    name = "/%d.bin" % t.LARGE
    server.get("/4097.bin")
    for _ in range(10):
        with server.connect(rcvbuf=4096) as c:
            c.send(request(name) * 3)
            c.read_head()
            c.read_exactly(100000)
            c.reset()
    assert server.get(name).body == tree.files[name]


def test_connections_that_ended_are_closed(serve, tree, send_path):
    server = serve("--root", tree.root, "--send-path", send_path, "--workers", "1")
    server.get("/%d.bin" % t.LARGE)
    before = descriptors(server)
    for i in range(50):
        with server.connect() as c:
            c.send(request("/%d.bin" % t.LARGE))
            if i % 2:
                c.reset()
    wait_until(lambda: descriptors(server) <= before, "descriptors to be closed")


def test_slow_reader_gets_every_byte(server, tree):
    name = "/%d.bin" % t.LARGE
    with server.connect(rcvbuf=2048) as c:
        c.send(request(name))
        head = c.read_head()
        body = bytearray()
        while len(body) < head.length:
            chunk = c.sock.recv(min(997, head.length - len(body))) if not c.buf else c.take(997)
            assert chunk
            body += chunk
        assert bytes(body) == tree.files[name]
        c.finish()


def test_two_hundred_connections_at_once(server, tree):
    name = "/524289.bin"
    connections = [server.connect() for _ in range(200)]
    try:
        for c in connections:
            c.send(request("/4097.bin") + request(name))
        for c in connections:
            assert c.response().body == tree.files["/4097.bin"]
        for c in reversed(connections):
            assert c.response().body == tree.files[name]
            c.finish()
    finally:
        for c in connections:
            c.sock.close()


def test_small_requests_are_answered_during_a_big_download(server, tree):
    """One window for a connection per turn."""
    with server.connect() as big:
        big.send(request("/huge.bin"))
        big.read_head()
        stop = threading.Event()
        received = []

        def read():
            while not stop.is_set():
                received.append(len(big.sock.recv(1 << 20)))

        reader = threading.Thread(target=read)
        reader.start()
        try:
            for _ in range(50):
                assert server.get("/4097.bin").body == tree.files["/4097.bin"]
        finally:
            stop.set()
            reader.join()
        assert sum(received) < t.HUGE
        big.reset()


def test_several_workers_serve_the_same(serve, tree, send_path):
    server = serve("--root", tree.root, "--send-path", send_path, "--workers", "3")
    connections = [server.connect() for _ in range(60)]
    for c in connections:
        c.send(request("/65537.bin"))
    for c in connections:
        assert c.response().body == tree.files["/65537.bin"]
        c.finish()
