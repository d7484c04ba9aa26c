"""Pages of half a MiB, from memory, to a client that reads more slowly than they come."""

import re
import time

import pytest

from harness import request

NAMES = ["file-%06d.txt" % n for n in range(3400)]  # more than a share, and in one piece
ASKED = 40
RATE = 8 << 20  # bytes/s
READ = 64 << 10


class Slow:
    """A socket that is read bit by bit: its other end is full, then takes much at once."""

    def __init__(self, sock):
        self.sock = sock

    def recv(self, size):
        data = self.sock.recv(min(size, READ))
        time.sleep(len(data) / RATE)
        return data

    def __getattr__(self, name):
        return getattr(self.sock, name)


@pytest.mark.slow
def test_pipelined_pages_reach_a_slow_reader(serve, site, send_path):
    (site / "d").mkdir()
    for name in NAMES:
        (site / "d" / name).touch()
    server = serve("--root", site, "--autoindex", "--workers", "1", "--send-path", send_path)
    with server.connect() as c:
        c.sock = Slow(c.sock)
        c.send(request("/d/") * ASKED)
        pages = {c.response().body for _ in range(ASKED)}
        c.finish()
    assert len(pages) == 1
    assert re.findall(r'>(file-[^<]*)</a>', pages.pop().decode()) == NAMES
