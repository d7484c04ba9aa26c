"""The clients of the tests of reloads and upgrades notice what they are there for."""

import contextlib
import socket
import threading
import time

import pytest

from harness import plain_server, wait_until
from responses import http_date
from traffic import Traffic

pytestmark = pytest.mark.once

SMALL, LARGE = ("/small", b"small"), ("/large", bytes(range(256)) * 4096)
RATE = 4 << 20


def answer(data, connection="close"):
    head = ("HTTP/1.1 200 OK\r\nDate: %s\r\nContent-Type: text/plain\r\nContent-Length: %d\r\n"
            "Connection: %s\r\n\r\n" % (http_date(time.time()), len(data), connection))
    return head.encode() + data


def fine(conn, target):
    conn.sendall(answer(LARGE[1] if target == "/large" else b"small"))


def keeps(conn, target):
    conn.sendall(answer(b"small", "keep-alive"))


def wrong_byte(conn, target):
    conn.sendall(answer(b"smalL"))


def wrong_status(conn, target):
    conn.sendall(answer(b"small").replace(b"200 OK", b"503 Service Unavailable"))


def short(conn, target):
    conn.sendall(answer(b"small")[:-1])


def silent_end(conn, target):
    pass


def reset(conn, target):
    conn.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")


def hang(conn, target):
    conn.recv(1)


def more(conn, target):
    conn.sendall(answer(b"small") + b"x")


def late(conn, target):
    for byte in answer(b"small"):
        conn.sendall(bytes([byte]))
        time.sleep(0.03)


def torn(conn, target):
    conn.sendall(answer(LARGE[1])[:-1] + b"x" if target == "/large" else answer(b"small"))


def cut(conn, target):
    conn.sendall(answer(LARGE[1])[:-100] if target == "/large" else answer(b"small"))


@contextlib.contextmanager
def serving(behaviour):
    """One request a connection; behaviour(conn, target) answers."""
    def serve(conn):
        with conn, contextlib.suppress(OSError):
            target = conn.recv(65536).split()[1].decode()
            behaviour(conn, target)
            if behaviour is keeps:
                time.sleep(0.05)

    def accept():
        with contextlib.suppress(OSError):
            while True:
                conn = listener.accept()[0]
                conn.settimeout(5)
                threading.Thread(target=serve, args=(conn,), daemon=True).start()

    with plain_server() as listener:
        threading.Thread(target=accept, daemon=True).start()
        yield listener.getsockname()
        listener.shutdown(socket.SHUT_RDWR)


def test_good_answers_are_faultless():
    with serving(fine) as address:
        with Traffic(address, SMALL, LARGE, RATE, single=2, keeping=2) as traffic:
            wait_until(lambda: traffic.busy, "a download")
            traffic.signals += 1
            wait_until(lambda: traffic.downloads_across > 0, "its end")
    traffic.faultless()
    assert traffic.total("begun") == traffic.total("right") > 4


@pytest.mark.parametrize("behaviour", [
    wrong_byte, wrong_status, short, silent_end, reset, hang, more, late, torn, cut])
@pytest.mark.slow
def test_bad_answers_are_failures(behaviour):
    only_large = behaviour in (torn, cut)
    with serving(behaviour) as address:
        with Traffic(address, SMALL, LARGE, RATE, 0.5, single=0 if only_large else 2,
                     keeping=0, downloading=1 if only_large else 0) as traffic:
            wait_until(lambda: traffic.wrong, "a failure")
    assert traffic.total("begun") == len(traffic.failed)
    with pytest.raises(AssertionError, match="failed"):
        traffic.faultless()


def test_connection_that_ends_between_two_requests_is_a_failure():
    with serving(keeps) as address:
        with Traffic(address, SMALL, single=0, keeping=1, late=0.5) as traffic:
            wait_until(lambda: traffic.wrong, "a failure")
    assert traffic.total("right") > 0


def test_missing_server_is_a_failure_unless_announced():
    with plain_server() as listener:
        address = listener.getsockname()
    with Traffic(address, SMALL, late=0.5) as traffic:
        wait_until(lambda: traffic.wrong, "a failure")
    quiet = Traffic(address, SMALL, late=0.5)
    quiet.ends = True
    with quiet:
        wait_until(lambda: not any(c.is_alive() for c in quiet.clients), "the clients to end")
    assert not quiet.failed
