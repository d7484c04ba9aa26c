"""ready: a root whose disk does not answer, or fails, is told of; the others are well."""

import errno
import re
import socket

import pytest

import harness
from harness import wait_until
from hung_disk import disk, disk_image  # fixtures
from test_pending import finishes, hangs, serve_disk
from test_slowfs import fast, serve_slow, slow  # fixtures


def told(server):
    answer = server.get("/ready", host="fast")
    return answer.status, answer.body.decode().splitlines()


def test_hung_root_is_reported_until_it_responds(serve_slow, slow):
    server = serve_slow(live="/live", ready="/ready")
    assert told(server) == (200, ["ready", "fast: ok", "slow: ok"])
    slow.hang("lookup", ".pagewise-ready")
    slow.wait_held("lookup")
    wait_until(lambda: told(server)[0] == 503, "it to be told")
    status, lines = told(server)
    assert lines[0] == "not ready" and lines[1] == "fast: ok"
    assert lines[2].startswith("slow: no response for ") and lines[2].endswith(" s")
    assert server.get("/live", host="slow").body == b"live\n"
    slow.release()
    wait_until(lambda: told(server)[0] == 200, "it to be well again")


def test_failing_root_is_reported(serve_slow, slow):
    server = serve_slow(ready="/ready")
    slow.fail("lookup", errno.EIO, ".pagewise-ready")
    wait_until(lambda: told(server) == (503, ["not ready", "fast: ok", "slow: Input/output error"]),
               "the error")
    slow.release()
    wait_until(lambda: told(server)[0] == 200, "it to be well again")


def test_shutdown_does_not_wait_for_a_hung_root(serve_slow, slow):
    server = serve_slow(ready="/ready")
    slow.hang("lookup", ".pagewise-ready")
    slow.wait_held("lookup")
    server.terminate()
    assert server.wait() == 0
    server.stop(messages=True)


@pytest.mark.waits
def test_local_disk_without_a_free_thread_is_reported(serve_disk, disk):
    """The name is found missing in memory; but nothing could be fetched."""
    server = serve_disk("nodiskio", threads=1, ready="/ready")
    assert told(server)[0] == 200
    (c,) = hangs(disk, server, 1)
    wait_until(lambda: told(server)[0] == 503, "it to be told")
    assert any(": no response for " in line for line in told(server)[1])
    disk.slow.release()
    finishes(c, 1)
    wait_until(lambda: told(server)[0] == 200, "it to be well again")
    server.stop(messages=True)


def said(server):
    host, port = re.search(r"^pagewise: agent at (\S+):(\d+)$", server.output, re.M).groups()
    with socket.create_connection((host, int(port)), timeout=harness.PATIENCE) as s, s.makefile("r") as f:
        return f.read()


def test_agent_is_down_while_a_root_does_not_respond(serve_slow, slow):
    server = serve_slow(agent="127.0.0.1:0")
    assert said(server).startswith("up ")
    slow.hang("lookup", ".pagewise-ready")
    slow.wait_held("lookup")
    wait_until(lambda: re.fullmatch(r"down # slow: no response for \d+ s\n", said(server)), "it to be told")
    slow.release()
    wait_until(lambda: said(server).startswith("up "), "it to be well again")
    slow.fail("lookup", errno.EIO, ".pagewise-ready")
    wait_until(lambda: said(server) == "down # slow: Input/output error\n", "the error")


@pytest.mark.waits
def test_agent_reports_a_lower_weight_while_a_disk_hangs(serve_disk, disk):
    """Threads are left, so that its root is not down."""
    server = serve_disk("nodiskio", agent="127.0.0.1:0")
    (c,) = hangs(disk, server, 1)
    wait_until(lambda: re.fullmatch(r"up (ready )?1%\n", said(server)), "next to nothing")
    disk.slow.release()
    finishes(c, 1)
    wait_until(lambda: said(server).endswith(" 100%\n"), "the whole share again")
    server.stop(messages=True)
