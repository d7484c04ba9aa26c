"""A server with TLS by its own configuration, so not with PAGEWISE_TLS, and clients that speak to it."""

import random
import socket
import subprocess

import pytest

import tls
from harness import PATIENCE, wait_until
from limits import connections

BIG = 20 << 20


@pytest.fixture(scope="module")
def pairs(tmp_path_factory):
    """Files with a certificate and its key, by name."""
    at = tmp_path_factory.mktemp("pairs")
    return {name: tls.make_pair(at / (name + ".pem"), names, kind) for name, names, kind in (
        ("default", ["default.test", "IP:127.0.0.1"], "ecdsa"),
        ("exact", ["a.test"], "ecdsa"),
        ("wild", ["*.w.test"], "ecdsa"),
        ("rsa", ["default.test"], "rsa"))}


@pytest.fixture(scope="module")
def content():
    return random.Random(5).randbytes(BIG)


@pytest.fixture
def start(serve_conf, site, tmp_path, pairs):
    (site / "small").write_bytes(b"small")

    def start(sites=None, listen="127.0.0.1:0 tls", certificate=("default",), **top):
        top = {"workers": 1, "admin": str(tmp_path / "admin"), "listen": [listen], **top}
        if certificate:
            top["certificate"] = [pairs[name] for name in certificate]
        server = serve_conf(top, sites or [("s", {"root": site}, {})])
        server.admin = str(tmp_path / "admin")
        return server

    return start


def served(server):
    """A busy machine may not finish a handshake within a short head_timeout: then the client comes again."""
    def asked():
        try:
            return server.get("/small").body == b"small"
        except ConnectionResetError:
            return False

    wait_until(asked, "a response")


def end(server):
    """No connection is left behind, and it serves."""
    wait_until(lambda: connections(server) == 0, "all connections to end")
    served(server)


def raw(server, source=None):
    sock = socket.create_connection(server.address, PATIENCE,
                                    source_address=(source, 0) if source else None)
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return sock


def all_of(sock):
    """Until the server's end, however it ends."""
    parts = []
    try:
        while data := sock.recv(1 << 16):
            parts.append(data)
    except ConnectionResetError:
        pass
    return b"".join(parts)


def said(server, data):
    """What the server answers to these bytes, when its end has come."""
    with raw(server) as sock:
        sock.sendall(data)
        return all_of(sock)


def context(**settings):
    result = tls.any_context()
    for name, value in settings.items():
        setattr(result, name, value)
    return result


def shake(server, of=None, name=None):
    """A client whose handshake is over."""
    sock = of or context()
    return sock.wrap_socket(raw(server), server_hostname=name, suppress_ragged_eofs=False)


def s_client(server, *args):
    """What openssl has to say of a handshake that it ends at once."""
    done = subprocess.run(
        ["openssl", "s_client", "-connect", "%s:%d" % server.address, *args],
        input=b"", stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=PATIENCE, check=False)
    return done.returncode, done.stdout.decode("latin-1")


def raw_slow(server):
    sock = socket.socket()
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 32 << 10)
    sock.settimeout(PATIENCE)
    sock.connect(server.address)
    return sock


def end_whatever_it_says(server):
    wait_until(lambda: connections(server) == 0, "all connections to end")
    server.stop(messages=True)
