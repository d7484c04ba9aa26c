"""A server with its hot set, seen from both sides, for the tests of it."""

import functools
import re
import subprocess
import tempfile

import pytest

from admin import Admin
from harness import request, wait_until
from processes import PROC

DATE = re.compile(rb"\r\nDate: [^\r]*")
BOUNDARY = re.compile(rb"(boundary=|--)[0-9a-f]{16}")


@functools.lru_cache
def file_system():
    return subprocess.check_output(["stat", "-f", "-c", "%T", tempfile.gettempdir()], text=True).strip()


def needed():
    """Skips a test whose files the response cache does not take, as in most containers."""
    if PROC and file_system() == "overlayfs":
        pytest.skip("no response cache on overlayfs: docs/design/residency.md")


class Hot:
    """Nobody else may ask this server: its answers are counted."""

    def __init__(self, server):
        self.server = server
        self.admin = Admin(server)

    def count(self):
        return self.admin.value("pagewise_hot_requests_total")

    def bytes(self):
        return self.admin.value("pagewise_hot_bytes")

    def is_hot(self, c, target, **kw):
        before = self.count()
        assert c.ask(target, **kw).status == 200
        return self.count() > before

    def warm(self, c, *targets, **kw):
        """Until each was answered from the hot set, by this connection's fields."""
        needed()
        for target in targets:
            wait_until(lambda t=target: self.is_hot(c, t, **kw), target + " to be hot")

    def connect(self, *targets, fields=(), host="localhost", **kw):
        """A connection to which these are hot."""
        c = self.server.connect(**kw)
        self.warm(c, *targets, fields=fields, host=host)
        return c


def normalised(raw):
    """Without what is never the same twice."""
    return BOUNDARY.sub(rb"\1BOUNDARY", DATE.sub(b"", raw))


def all_of(c, data):
    """What a connection gets for these bytes, and no more, until its end."""
    c.send(data)
    c.half_close()
    return c.drain()


def plain(server, target, data):
    """The same from a server without a hot set, behind the same first request."""
    with server.connect() as c:
        c.ask(target)
        return normalised(all_of(c, data))


def pipelined(targets, **kw):
    return b"".join(request(t, **kw) for t in targets)
