"""With busy_poll a worker looks for events without sleeping, for a while."""

import os
import signal
import time

import pytest

import strace
from harness import wait_until

TICKS = os.sysconf("SC_CLK_TCK")


@pytest.fixture
def start(serve_conf, site):
    (site / "file").write_bytes(b"content")

    def run(busy_poll, **kw):
        return serve_conf(
            {"busy_poll": busy_poll, "workers": 2}, [("s", {"root": site}, {})], **kw
        )

    return run


def cpu_seconds(pid):
    with open("/proc/%d/stat" % pid) as f:
        fields = f.read().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / TICKS


@pytest.mark.parametrize("us", [1, 100, 10000])
def test_requests_are_answered_and_the_server_ends_at_once(start, us):
    server = start(us)
    with server.connect() as c:
        for _ in range(50):
            assert c.ask("/file").body == b"content"
        time.sleep(0.05)
        assert c.ask("/file").body == b"content"
        server.terminate()
        c.eof()
    server.stop()


def test_a_new_root_is_taken_at_sighup(start, site):
    server = start(10000)
    assert server.get("/file").body == b"content"
    os.rename(site, str(site) + ".old")
    site.mkdir()
    (site / "file").write_bytes(b"another")
    server.signal(signal.SIGHUP)
    wait_until(lambda: server.get("/file").body == b"another", "the new root")


@pytest.mark.parametrize("us", [100, 10000])
@pytest.mark.slow
def test_an_idle_server_sleeps(start, us):
    """Also one with idle connections; the least that is spent if one of them does not
    is far more."""
    server = start(us)
    with server.connect() as c:
        c.ask("/file")
        time.sleep(0.1)
        before, begin = cpu_seconds(server.pid), time.monotonic()
        time.sleep(2)
        spent, passed = cpu_seconds(server.pid) - before, time.monotonic() - begin
        assert spent < passed / 10


@pytest.mark.parametrize("us, polls", [(0, False), (10000, True)])
@pytest.mark.needs("strace")
def test_polling_needs_the_key(start, release, tmp_path, us, polls):
    reason = strace.why_not()
    if reason:
        pytest.skip(reason)
    trace = str(tmp_path / "trace")
    server = start(us, binary=release, wrapper=strace.STRACE + [trace])
    # Others may have the CPU until one of these is over, not all.
    for _ in range(50):
        server.get("/file")
    names = strace.thread_names(server.pid)
    server.stop()
    # One may come before a timer that is due: a few.
    in_vain = [
        c
        for c in strace.parse(trace)
        if names.get(c.tid, "").startswith("pw-worker")
        and c.name == "epoll_wait"
        and c.args.endswith(", 0")
        and c.result == 0
    ]
    assert (len(in_vain) > 20) == polls, in_vain
