"""ktls = on: the kernel encrypts what sendfile(2) sends. Each byte is compared by hash."""

import hashlib
import os
import random
import socket
import ssl
import time

import pytest

import tls
from harness import PATIENCE, request

SEED = 20261123
STAT = "/proc/net/tls_stat"


def kernel_can():
    """Has this kernel TLS?  It then wants the socket to be connected."""
    with socket.socket() as sock:
        try:
            sock.setsockopt(socket.IPPROTO_TCP, 31, b"tls")  # TCP_ULP
        except OSError as error:
            return error.errno == 107  # ENOTCONN
    return True


pytestmark = pytest.mark.skipif(not kernel_can(), reason="this kernel has no TLS: modprobe tls")


def count(name):
    with open(STAT, encoding="ascii") as f:
        return {words[0]: int(words[1]) for words in map(str.split, f)}[name]


@pytest.fixture(scope="module")
def pair(tmp_path_factory):
    return tls.make_pair(tmp_path_factory.mktemp("pair") / "pair.pem")


@pytest.fixture
def start(serve_conf, site, pair):
    def start(**top):
        return serve_conf({"workers": 1, "listen": ["127.0.0.1:0 tls"], "certificate": [pair],
                           "ktls": "on", **top}, [("s", {"root": site}, {})])
    return start


def version_of(version):
    of = tls.any_context()
    of.minimum_version = of.maximum_version = getattr(ssl.TLSVersion, version)
    return of


versions = pytest.mark.parametrize("version", ["TLSv1_2", "TLSv1_3"])


def opened(server, version, rcvbuf=None):
    sock = socket.socket()
    if rcvbuf:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, rcvbuf)
    sock.settimeout(PATIENCE)
    sock.connect(server.address)
    return version_of(version).wrap_socket(sock, suppress_ragged_eofs=False)


class Reader:
    def __init__(self, sock, pause=0):
        self.sock, self.data, self.pause = sock, b"", pause

    def more(self):
        got = self.sock.recv(1 << 16)
        assert got, "the server's end"
        self.data += got

    def answer(self):
        """(status, SHA-256 of the body, its length)"""
        while b"\r\n\r\n" not in self.data:
            self.more()
        head, _, self.data = self.data.partition(b"\r\n\r\n")
        length = next(int(line.split(b":")[1]) for line in head.split(b"\r\n")
                      if line.lower().startswith(b"content-length"))
        found, left = hashlib.sha256(), length
        while left:
            if not self.data:
                if self.pause:
                    time.sleep(self.pause)
                self.more()
            part, self.data = self.data[:left], self.data[left:]
            found.update(part)
            left -= len(part)
        return int(head.split()[1]), found.hexdigest(), length


def digest(data):
    return hashlib.sha256(data).hexdigest()


def write(site, name, size):
    data = random.Random("%d %d" % (SEED, size)).randbytes(size)
    (site / name).write_bytes(data)
    return data


@versions
def test_kernel_encrypts(start, site, version):
    data = write(site, "f", 300_000)
    server, before = start(), count("TlsTxSw")
    with opened(server, version) as s:
        s.sendall(request("/f"))
        assert Reader(s).answer() == (200, digest(data), len(data))
    assert count("TlsTxSw") > before


@versions
@pytest.mark.parametrize("hot", [False, True])
def test_sizes_in_odd_steps(start, site, version, hot):
    sizes = [*range(0, 40), *range(16_300, 16_450, 7), *range(64_900, 65_700, 97),
             *range(0, 300_000, 4999)]
    data = {size: write(site, "f%d" % size, size) for size in sorted(set(sizes))}
    server = start(hot_set="16M" if hot else 0)
    with opened(server, version) as s:
        reader = Reader(s)
        for size, content in data.items():
            for _ in range(3 if hot else 1):
                s.sendall(request("/f%d" % size))
                assert reader.answer() == (200, digest(content), size), size


@versions
def test_ranges_at_odd_offsets(start, site, version):
    data, rng = write(site, "f", 1_000_000), random.Random(SEED)
    with opened(start(), version) as s:
        reader = Reader(s)
        for _ in range(60):
            first = rng.randrange(len(data))
            last = min(first + rng.choice([0, 1, 15, 16_384, 65_536, 65_537, 300_000]),
                       len(data) - 1)
            s.sendall(request("/f", fields=[("Range", "bytes=%d-%d" % (first, last))]))
            part = data[first:last + 1]
            assert reader.answer() == (206, digest(part), len(part)), (first, last)


@versions
def test_slow_readers_and_cold_files(start, site, version):
    data = write(site, "f", 3_000_000)
    with open(site / "f", "rb") as f:
        os.fsync(f.fileno())
        os.posix_fadvise(f.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
    server = start()
    socks = [opened(server, version, rcvbuf=4096) for _ in range(3)]
    for s in socks:
        s.sendall(request("/f") * 2)
    for s in socks:
        reader = Reader(s, pause=0.001)
        assert [reader.answer() for _ in range(2)] == [(200, digest(data), len(data))] * 2
        s.close()


@versions
def test_many_requests_at_once(start, site, version):
    data = {n: write(site, "f%d" % n, n) for n in (100, 20_000, 70_000)}
    with opened(start(), version) as s:
        s.sendall(b"".join(request("/f%d" % n) for _ in range(20) for n in data))
        reader = Reader(s)
        for _ in range(20):
            for n, content in data.items():
                assert reader.answer() == (200, digest(content), n)


@versions
def test_close_notify_is_sent(start, site, version):
    data = write(site, "f", 200_000)
    with opened(start(), version) as s:
        s.sendall(request("/f", fields=[("Connection", "close")]))
        assert Reader(s).answer() == (200, digest(data), len(data))
        assert s.recv(1) == b""  # a close_notify: without it this raises


@versions
def test_file_that_becomes_shorter_ends_the_connection(start, site, version):
    data = write(site, "f", 20_000_000)
    server = start()
    with opened(server, version, rcvbuf=4096) as s:
        s.sendall(request("/f"))
        got = s.recv(1000)
        os.truncate(site / "f", 5_000_000)
        with pytest.raises((ssl.SSLError, ConnectionError)):
            while more := s.recv(1 << 16):
                got += more
            raise ConnectionError("a close_notify after a part of an answer")
    body = got.partition(b"\r\n\r\n")[2]
    assert data.startswith(body) and len(body) < len(data)
    server.stop(messages="pagewise: f: changed while it was sent: [^\n]*\n")

