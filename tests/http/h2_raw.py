"""Frames of HTTP/2 by hand (RFC 9113, 4.1), for what no library of a client sends."""

import socket
import struct

from harness import PATIENCE

PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
DATA, HEADERS, PRIORITY, RST_STREAM, SETTINGS, PUSH_PROMISE, PING, GOAWAY, WINDOW_UPDATE, \
    CONTINUATION = range(10)
PRIORITY_UPDATE = 0x10
END_STREAM, ACK, END_HEADERS, PADDED = 1, 1, 4, 8
NO_ERROR, PROTOCOL_ERROR, INTERNAL_ERROR, FLOW_CONTROL_ERROR = range(4)
STREAM_CLOSED, REFUSED_STREAM, CANCEL = 5, 7, 8
ENHANCE_YOUR_CALM = 11
HEADER_TABLE_SIZE, INITIAL_WINDOW_SIZE = 1, 4


def frame(kind, flags=0, stream=0, payload=b""):
    return struct.pack(">I", len(payload))[1:] + bytes((kind, flags)) + \
        struct.pack(">I", stream) + payload


def literal(name, value):
    """Not indexed (RFC 7541, 6.2.2); both shorter than 127 bytes."""
    return b"\0" + bytes((len(name),)) + name + bytes((len(value),)) + value


def fields(target=b"/small", method=b"GET", more=()):
    block = b"".join(literal(n, v) for n, v in (
        (b":method", method), (b":scheme", b"http"), (b":path", target),
        (b":authority", b"localhost")))
    return block + b"".join(literal(n, v) for n, v in more)


def get(stream, target=b"/small", flags=END_STREAM | END_HEADERS, **kw):
    return frame(HEADERS, flags, stream, fields(target, **kw))


def settings(**values):
    names = {"table": HEADER_TABLE_SIZE, "window": INITIAL_WINDOW_SIZE}
    return frame(SETTINGS, payload=b"".join(
        struct.pack(">HI", names[name], value) for name, value in values.items()))


def update(stream, by):
    return frame(WINDOW_UPDATE, 0, stream, struct.pack(">I", by))


class Closed(Exception):
    """No more frames come."""


class Client:
    """begin: SETTINGS have been exchanged."""

    def __init__(self, address, begin=True, patience=PATIENCE, rcvbuf=0, **values):
        self.sock = socket.socket(socket.AF_INET)
        self.sock.settimeout(patience)
        if rcvbuf:
            self.sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, rcvbuf)
        self.sock.connect(address)
        self.buf = b""
        if begin:
            self.send(PREFACE + settings(**values) + frame(SETTINGS, ACK))

    def __enter__(self):
        return self

    def __exit__(self, *exc):
        self.sock.close()

    def send(self, data):
        self.sock.sendall(data)

    def _take(self, n):
        while len(self.buf) < n:
            try:
                got = self.sock.recv(1 << 16)
            except ConnectionResetError:
                got = b""
            if not got:
                raise Closed
            self.buf += got
        data, self.buf = self.buf[:n], self.buf[n:]
        return data

    def read(self):
        """(type, flags, stream, payload)"""
        head = self._take(9)
        size = int.from_bytes(head[:3], "big")
        return head[3], head[4], int.from_bytes(head[5:], "big"), self._take(size)

    def until(self, kind, stream=None):
        """The payload of the next such frame; of others it is told nothing."""
        while True:
            got = self.read()
            if got[0] == kind and stream in (None, got[2]):
                return got[3]

    def body(self, stream):
        """All of a stream's DATA to its end."""
        data = b""
        while True:
            kind, flags, of, payload = self.read()
            if of != stream:
                continue
            assert kind in (HEADERS, DATA), (kind, payload)
            if kind == DATA:
                data += payload
            if flags & END_STREAM:
                return data

    def goaway(self):
        """(last stream, error) of the one that ends it; what was sent before is read, and its end."""
        last = error = None
        try:
            while True:
                kind, _, _, payload = self.read()
                if kind == GOAWAY:
                    last, error = struct.unpack(">II", payload[:8])
        except Closed:
            return last, error
