"""Peers of TLS that do what no library lets them: messages made by hand, and libssl itself."""

import ctypes
import ctypes.util
import os
import struct

HANDSHAKE, ALERT, APPLICATION, HEARTBEAT = 22, 21, 23, 24
CLIENT_HELLO, SERVER_HELLO, CERTIFICATE = 1, 2, 11

SUITES_12 = (0xC02B, 0xC02F, 0xC02C, 0xC030, 0xCCA9, 0xCCA8)
SUITES_13 = (0x1301, 0x1302, 0x1303)
GROUPS = (0x001D, 0x0017, 0x0018)
SCHEMES = (0x0403, 0x0503, 0x0804, 0x0805, 0x0401)


def vector(size, data):
    return len(data).to_bytes(size, "big") + data


def shorts(numbers):
    return b"".join(struct.pack("!H", n) for n in numbers)


def extension(kind, data):
    return struct.pack("!H", kind) + vector(2, data)


def server_name(name, kind=0):
    return extension(0, vector(2, bytes([kind]) + vector(2, name)))


def record(kind, data, version=0x0301):
    return struct.pack("!BH", kind, version) + vector(2, data)


def message(kind, body):
    return bytes([kind]) + vector(3, body)


def hello(*more, suites=SUITES_12, version=0x0303, session=b""):
    """A ClientHello of TLS 1.2 without its record; more: extensions."""
    extensions = [
        extension(10, vector(2, shorts(GROUPS))),
        extension(11, b"\1\0"),
        extension(13, vector(2, shorts(SCHEMES))),
        *more,
    ]
    body = struct.pack("!H", version) + os.urandom(32) + vector(1, session)
    body += vector(2, shorts(suites)) + b"\1\0" + vector(2, b"".join(extensions))
    return message(CLIENT_HELLO, body)


def hello_13(*more):
    """One of TLS 1.3, whose share of a key is any number: nobody can finish this handshake."""
    return hello(extension(43, vector(1, shorts([0x0304]))),
                 extension(51, vector(2, shorts([0x001D]) + vector(2, os.urandom(32)))),
                 *more, suites=SUITES_13)


def records(data):
    """(kind, content) of each whole record."""
    found = []
    while len(data) >= 5:
        size = int.from_bytes(data[3:5], "big")
        if len(data) < 5 + size:
            break
        found.append((data[0], data[5:5 + size]))
        data = data[5 + size:]
    return found


def messages(data):
    """(kind, body) of each message of a handshake that is not encrypted."""
    text = b"".join(content for kind, content in records(data) if kind == HANDSHAKE)
    found = []
    while len(text) >= 4:
        size = int.from_bytes(text[1:4], "big")
        found.append((text[0], text[4:4 + size]))
        text = text[4 + size:]
    return found


def alerts(data):
    """(level, number) of those that are not encrypted."""
    return [tuple(content) for kind, content in records(data) if kind == ALERT and len(content) == 2]


# --------------------------------------------------------------------- libssl


class Native:
    """A client of libssl's own functions, on a socket that blocks."""

    MODE_AUTO_RETRY, CTRL_MODE, CTRL_SET_MAX_PROTO_VERSION = 4, 33, 124

    def __init__(self, sock, version=None, fragment=0):
        """fragment: the longest record that it takes: 1 for 512 bytes, 2 for 1024 ..."""
        self.lib = ctypes.CDLL(ctypes.util.find_library("ssl"))
        for name in ("SSL_CTX_new", "SSL_new", "TLS_client_method"):
            getattr(self.lib, name).restype = ctypes.c_void_p
        self.sock = sock
        sock.settimeout(None)
        lib = self.lib
        self.context = ctypes.c_void_p(lib.SSL_CTX_new(ctypes.c_void_p(lib.TLS_client_method())))
        if version:
            lib.SSL_CTX_ctrl(self.context, self.CTRL_SET_MAX_PROTO_VERSION,
                             ctypes.c_long(version), None)
        assert not fragment or lib.SSL_CTX_set_tlsext_max_fragment_length(
            self.context, ctypes.c_uint8(fragment)) == 1
        self.ssl = ctypes.c_void_p(lib.SSL_new(self.context))
        lib.SSL_set_fd(self.ssl, sock.fileno())
        assert lib.SSL_connect(self.ssl) == 1

    def write(self, data):
        return self.lib.SSL_write(self.ssl, data, len(data))

    def read(self, size=1 << 16):
        """Bytes; b"" at the end and after an error."""
        to = ctypes.create_string_buffer(size)
        n = self.lib.SSL_read(self.ssl, to, size)
        return to.raw[:max(n, 0)]

    def read_until(self, end):
        data = b""
        while not data.endswith(end):
            more = self.read()
            if not more:
                break
            data += more
        return data

    def update_keys(self, asks=True):
        return self.lib.SSL_key_update(self.ssl, int(asks))

    def shake(self):
        return self.lib.SSL_do_handshake(self.ssl)

    def renegotiate(self):
        assert self.lib.SSL_renegotiate(self.ssl) == 1
        return self.shake()

    def close(self):
        self.lib.SSL_free(self.ssl)
        self.lib.SSL_CTX_free(self.context)
        self.sock.close()
