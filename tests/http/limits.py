"""A server that limits its clients, and what its metrics say of them."""

import re
import socket

import pytest

from harness import PATIENCE, request

QUIET = {"head_timeout": 600, "keepalive_timeout": 600, "send_timeout": 600}


@pytest.fixture
def start(serve_conf, site, tmp_path):
    """A server with admin, for what is counted."""
    (site / "small").write_bytes(b"small")
    (site / "big").write_bytes(bytes(range(256)) * (64 << 10))

    def start(top, **kw):
        top = {"workers": 1, "admin": str(tmp_path / "admin"), **QUIET, **top}
        server = serve_conf(top, [("s", {"root": site}, {})], **kw)
        server.admin = str(tmp_path / "admin")
        return server

    return start


def metrics(server):
    with socket.socket(socket.AF_UNIX) as sock:
        sock.settimeout(PATIENCE)
        sock.connect(server.admin)
        sock.sendall(b"GET /metrics HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
        return b"".join(iter(lambda: sock.recv(1 << 16), b"")).decode()


def figure(server, name, labels=""):
    line = re.search(
        r"^%s%s (\S+)$" % (re.escape(name), re.escape(labels)), metrics(server), re.M)
    return int(line.group(1))


def limited(server, limit):
    return figure(server, "pagewise_limited_total", '{limit="%s"}' % limit)


def connections(server):
    return sum(int(n) for n in re.findall(
        r"^pagewise_connections\{.*\} (\d+)$", metrics(server), re.M))


def timeouts(server):
    """Of each kind that there was."""
    return {kind: int(n) for kind, n in re.findall(
        r'^pagewise_timeouts_total\{kind="(.*)"\} ([1-9]\d*)$', metrics(server), re.M)}


def busy(server, **kw):
    """A connection whose answer is being sent, and will be for long."""
    c = server.connect(rcvbuf=4096, **kw)
    c.send(request("/big"))
    c.read_head()
    return c


def is_refused(server, source):
    """Reset or closed without an answer."""
    try:
        with server.connect(source=source) as c:
            c.send(request("/small"))
            return c.sock.recv(1) == b""
    except (ConnectionResetError, BrokenPipeError):
        return True
