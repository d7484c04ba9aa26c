"""TLS over real sockets: files come through whole, whatever the client's records and the send path.

Not with PAGEWISE_TLS (tls_server.py).
"""

import contextlib
import hashlib
import os
import random
import socket
import ssl
import struct
import sys
import time

import pytest

import hot
import tls
import tls_peer
from harness import request, wait_until
from limits import figure
from tls_server import BIG, content, end, end_whatever_it_says, pairs, raw, raw_slow, start  # noqa: F401

SEND_PATHS = ["nodiskio", "aio", "copy", "hot"]


@pytest.mark.parametrize("send_path", SEND_PATHS)
@pytest.mark.parametrize("version", ["1.2", None])
def test_big_answers_to_slow_readers(start, site, content, send_path, version):
    (site / "big").write_bytes(content)
    server = start(send_path=send_path)
    wanted = hashlib.sha256(content).digest()
    random_size = random.Random(1)
    with tls.Socket(raw_slow(server), tls.client_context(version)) as s:
        s.open().sendall(request("/big", version="1.0"))
        data = bytearray()
        while more := s.recv(random_size.randrange(1, 1 << 17)):
            data += more
            if random_size.randrange(50) == 0:
                time.sleep(0.001)
    head, _, body = bytes(data).partition(b"\r\n\r\n")
    assert b" 200 OK" in head and hashlib.sha256(body).digest() == wanted
    end(server)


@pytest.mark.parametrize("version", [0x0303, 0x0304])
def test_a_client_with_a_record_size_limit(start, site, content, version):
    """max_fragment_length, RFC 6066: longer ones are an error to it."""
    (site / "big").write_bytes(content[:1 << 20])
    server = start()
    for fragment in 1, 4:
        peer = tls_peer.Native(raw(server), version, fragment)
        peer.write(request("/big", fields={"Connection": "close"}))
        received = b""
        while more := peer.read():
            received += more
        assert received.partition(b"\r\n\r\n")[2] == content[:1 << 20]
        peer.close()
    end(server)


@pytest.mark.parametrize("send_path", SEND_PATHS)
def test_ranges_at_odd_places(start, site, content, send_path):
    (site / "f").write_bytes(content[:300007])
    server = start(send_path=send_path)
    rng = random.Random(send_path)
    with server.connect() as c:
        for _ in range(150):
            first = rng.randrange(300007)
            last = min(first + rng.choice((0, 1, 4095, 4096, 16383, 16384, 16385, 70001)), 300006)
            response = c.ask("/f", fields={"Range": "bytes=%d-%d" % (first, last)})
            assert response.status == 206 and response.body == content[first:last + 1]
        c.finish()
    end(server)


@pytest.mark.parametrize("send_path", SEND_PATHS)
def test_many_requests_at_once(start, site, content, send_path):
    sizes = [0, 1, 100, 4096, 16384, 16385, 100001]
    for n in sizes:
        (site / str(n)).write_bytes(content[:n])
    server = start(send_path=send_path)
    rng = random.Random(send_path)
    asked = [rng.choice(sizes) for _ in range(100)]
    with server.connect() as c:
        c.send(b"".join(request("/%d" % n) for n in asked))
        for n in asked:
            assert c.response().body == content[:n]
        c.finish()
    end(server)


@pytest.mark.parametrize("send_path", SEND_PATHS)
def test_cold_files(start, site, content, send_path):
    size = 3 << 20
    server = start(send_path=send_path)
    for i in range(4):
        with open(site / ("f%d" % i), "wb") as f:
            f.write(content[i:i + size])
            f.flush()
            os.fsync(f.fileno())
            os.posix_fadvise(f.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
    with server.connect() as c:
        c.send(b"".join(request("/f%d" % i) for i in range(4)))
        for i in range(4):
            assert c.response().body == content[i:i + size]
        c.finish()
    end(server)


@pytest.mark.parametrize("send_path", SEND_PATHS)
def test_a_file_that_is_cut_meanwhile(start, site, content, send_path):
    """What comes is of the file, and the connection ends; that is not told as an end in order."""
    path = site / "big"
    path.write_bytes(content)
    server = start(send_path=send_path)
    sock = tls.Socket(raw_slow(server)).open()
    sock.sendall(request("/big"))
    data = sock.recv(1000)
    os.truncate(path, 5 << 20)
    with pytest.raises((tls.Truncated, ConnectionResetError)):
        while more := sock.recv(1 << 16):
            data += more
    body = data.partition(b"\r\n\r\n")[2]
    assert len(body) < BIG and content.startswith(body)
    sock.close()
    end_whatever_it_says(server)


@pytest.mark.parametrize("version", ["1.2", None])
def test_a_byte_a_record(start, version):
    server = start()
    with server.connect() as c:
        for _ in range(20):
            for byte in request("/small"):
                c.send(bytes([byte]))
            assert c.response().body == b"small"
        c.finish()
    end(server)


def test_a_head_in_one_segment_of_many_records(start):
    server = start()
    with server.connect() as c:
        for byte in request("/small") * 20:
            c.sock.tls.write(bytes([byte]))
        c.sock.flush()
        for _ in range(20):
            assert c.response().body == b"small"
        c.finish()
    end(server)


SHIFTS = range(1, 3000, 600)


class Pipeline:
    """A client that sends all of its requests before it reads a response: one for /shift, and more for /f."""

    COUNT = 2000  # more responses than the socket has memory for

    def __init__(self, server, warm, shift):
        self.c = server.connect(rcvbuf=32 << 10)
        warm(self.c)
        self.c.send(request("/shift%d" % shift) + request("/f") * self.COUNT)

    def bodies(self):
        """Of complete responses.  The connection ends in order, or without a close_notify."""
        with self.c as c:
            assert c.response().status == 200
            for _ in range(self.COUNT):
                try:
                    last = c.response()
                except ConnectionResetError:
                    return
                assert last.status in (200, 503)
                if last.status == 200:
                    yield last.body
                if last.closes:
                    break
            c.finish(last)


@pytest.mark.parametrize("hot_set", [0, "16M"])
def test_a_file_that_is_rewritten_while_its_record_waits_for_the_socket(start, site, content, hot_set):
    """The session will send the record, so no other response may take its place."""
    # A response is one record, and the file keeps its size, so that nothing is sent before the change is seen.
    old, new = content[:3000], content[8192:8192 + 3000]
    (site / "f").write_bytes(old)
    server = start(hot_set=hot_set, ktls="off")

    def warm(c):
        if hot_set:
            hot.needed()
        wait_until(lambda: c.ask("/f").body == old and
                   (not hot_set or figure(server, "pagewise_hot_requests_total") > 0), "the file to be hot")

    def is_stuck():
        before = figure(server, "pagewise_sent_bytes_total")
        time.sleep(0.3)
        return figure(server, "pagewise_sent_bytes_total") == before

    # Which record of a response waits depends on the bytes before it.
    for shift in SHIFTS:
        (site / ("shift%d" % shift)).write_bytes(content[:shift])
    pipelines = [Pipeline(server, warm, shift) for shift in SHIFTS]
    wait_until(is_stuck, "the sockets to be full")
    with open(site / "f", "r+b") as f:
        f.write(new)
    for pipeline in pipelines:
        bodies = list(pipeline.bodies())
        olds = bodies.count(old)
        assert bodies == [old] * olds + [new] * (len(bodies) - olds)
    end_whatever_it_says(server)


def segments(sock):
    """With data, that have arrived: tcpi_data_segs_in of tcp(7)."""
    return struct.unpack_from("I", sock.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 256), 152)[0]


@pytest.mark.skipif(sys.platform != "linux", reason="MSG_MORE is Linux's")
def test_ticket_and_response_share_a_segment(start, site):
    """If the request comes with the client's Finished."""
    (site / "small").write_bytes(b"small")
    server = start()
    came, going = ssl.MemoryBIO(), ssl.MemoryBIO()
    peer = tls.client_context("1.3").wrap_bio(came, going, server_hostname="localhost")
    with tls.Socket(raw(server), tls.client_context("1.3")) as s:  # the file is in memory
        s.open().sendall(request("/small"))
        assert s.recv(1 << 16).startswith(b"HTTP/1.1 200")
    with raw(server) as sock:
        while True:
            try:
                peer.do_handshake()
                break
            except ssl.SSLWantReadError:
                sock.sendall(going.read())
                came.write(sock.recv(1 << 16))
        before = segments(sock)
        peer.write(request("/small"))
        sock.sendall(going.read())
        response = b""
        while not response.endswith(b"\r\n\r\nsmall"):
            came.write(sock.recv(1 << 16))
            with contextlib.suppress(ssl.SSLWantReadError):
                while data := peer.read(1 << 16):
                    response += data
        assert segments(sock) == before + 1
    end(server)
