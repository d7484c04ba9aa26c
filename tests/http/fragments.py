"""Sends streams of bytes in pieces, on many connections at once, and takes apart what comes back."""

import socket
import time

import tls
from harness import PATIENCE, Connection, request

TOGETHER = 200  # connections; well below what a server or a client may open
BYTEWISE = 200  # bytes of a stream's begin, and of its end, that are sent one by one

BARRIER = request("/b", host="h")


class Recorded(Connection):
    """What was received, as a connection that has ended.

    asked_at: when the first request was sent, if that may be long ago.
    """

    def __init__(self, data, asked_at=None):
        self.may_be_chunked = False
        self.asked_at = asked_at
        self.buf = bytearray(data)

    def fill(self, size=0):
        return False


def split(stream, cuts):
    """The pieces between cuts; those outside of the stream do not count."""
    places = [0] + sorted({cut for cut in cuts if 0 < cut < len(stream)}) + [len(stream)]
    return [stream[a:b] for a, b in zip(places, places[1:])]


def byte_by_byte(stream):
    cuts = [*range(BYTEWISE), *range(len(stream) - BYTEWISE, len(stream))]
    return split(stream, cuts)


def at_random(rng, stream):
    return split(stream, [rng.randrange(len(stream) + 1) for _ in range(rng.randrange(1, 6))])


def send_in_rounds(server, sockets, streams):
    """A round is a piece on each; it ends once the server has seen them.

    The server has one worker, which has answered on one more connection: what
    was there before is read by then.
    """
    with server.connect() as barrier:
        for i in range(max(len(pieces) for pieces in streams)):
            for sock, pieces in zip(sockets, streams):
                if i < len(pieces):
                    sock.sendall(pieces[i])
            barrier.send(BARRIER)
            barrier.response()


def receive(sock, end):
    """All until the server's end of the connection, and how it ended if that was not in order."""
    parts = []
    try:
        while True:
            sock.settimeout(max(0.1, end - time.monotonic()))
            data = sock.recv(1 << 18)
            if not data:
                return b"".join(parts)
            parts.append(data)
    except OSError as error:
        return b"".join(parts) + b"(%s)" % repr(error).encode()


def ask(server, stream):
    """What the server sends; the client closes its side at the end of the stream."""
    with tls.connect(server.address, PATIENCE) as sock:
        sock.sendall(stream)
        sock.shutdown(socket.SHUT_WR)
        return receive(sock, time.monotonic() + PATIENCE)


def exchange(server, streams, closed=None):
    """The same for each list of pieces, many at once.

    closed: for each whether the server must end the connection; then this side never does.
    """
    results = []
    closed = closed or [False] * len(streams)
    for at in range(0, len(streams), TOGETHER):
        some = streams[at:at + TOGETHER]
        sockets = [tls.connect(server.address, PATIENCE) for _ in some]
        try:
            for sock in sockets:
                sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            send_in_rounds(server, sockets, some)
            for sock, by_server in zip(sockets, closed[at:]):
                if not by_server:
                    sock.shutdown(socket.SHUT_WR)
            end = time.monotonic() + PATIENCE
            results += [receive(sock, end) for sock in sockets]
        finally:
            for sock in sockets:
                sock.close()
    return results
