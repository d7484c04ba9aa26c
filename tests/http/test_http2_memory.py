"""What a stream of HTTP/2 takes while it waits for its client."""

import os
import re

import pytest

import h2_raw as raw
import harness

pytestmark = pytest.mark.once
CLIENTS, STREAMS = 40, 100
MOST = 4096  # bytes of a stream, with its share of the connection


def memory(server):
    """Bytes that were allocated and are in use: proc(5), smaps_rollup."""
    with open("/proc/%d/smaps_rollup" % server.pid, encoding="ascii") as f:
        return int(re.search(r"^Anonymous: +(\d+) kB", f.read(), re.M).group(1)) << 10


def waiting(server, target):
    """Connections whose streams have their heads, and no window."""
    clients = []
    for _ in range(CLIENTS):
        c = raw.Client(server.address, window=0)
        ids = range(1, 2 * STREAMS, 2)
        c.send(b"".join(raw.get(stream, target) for stream in ids))
        heads = set()
        while len(heads) < STREAMS:
            kind, _, stream, _ = c.read()
            assert kind != raw.RST_STREAM
            if kind == raw.HEADERS:
                heads.add(stream)
        clients.append(c)
    return clients


@pytest.mark.parametrize("size", [1000, 1 << 20])
def test_a_stream_without_a_window_takes_4_kib_at_most(serve, site, size):
    if not os.path.exists(harness.RELEASE):
        pytest.skip("no release build")
    (site / "file").write_bytes(b"x" * size)
    server = serve("--root", site, "--workers", "1", binary=harness.RELEASE)
    # What is kept for later is there after the first of them.
    clients = waiting(server, b"/file")
    before = memory(server)
    clients += waiting(server, b"/file")
    taken = (memory(server) - before) / (CLIENTS * STREAMS)
    for c in clients:
        with c:
            c.send(raw.settings(window=1 << 20) + raw.update(0, 1 << 30))
    assert 500 < taken <= MOST
