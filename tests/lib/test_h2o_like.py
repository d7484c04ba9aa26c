"""The example h2o_like: frames by nghttp2 and encryption by OpenSSL, of windows that the library lends."""

import contextlib
import os
import sys

import pytest

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "fault"))

pytest.importorskip("h2")
import h2_client
import test_examples
import tls
import tree as t
from harness import wait_until
from ports import free_port  # a fixture
from test_examples import BIG, HOT, evict, slow_content
from test_slowfs import Slowfs, slow  # a fixture

pytestmark = pytest.mark.once


class Server(test_examples.Example):
    @property
    def address(self):
        return "127.0.0.1", self.port

    def client(self, **how):
        return h2_client.Client(self, over_tls=True, **how)


@pytest.fixture
def start(tmp_path_factory, monkeypatch, free_port):
    monkeypatch.setenv("CERTIFICATE", tls.make_pair(tmp_path_factory.mktemp("pair") / "pem"))
    with contextlib.ExitStack() as undo:
        def started(root):
            server = Server("h2o_like", root, free_port())
            undo.callback(server.stop)
            return server
        yield started


@pytest.fixture
def server(start, tmp_path):
    t.write(tmp_path / "hot", HOT)
    t.write(tmp_path / "big", BIG)
    t.write(tmp_path / "empty", b"")
    return start(tmp_path)


def got(answer):
    return answer.status, bytes(answer.body)


def test_cached_and_uncached_files_are_sent_whole(server, tmp_path):
    with server.client() as c:
        for _ in range(3):
            evict(tmp_path / "big")
            streams = [c.begin(path) for path in ("/big", "/hot", "/none", "/empty", "/big")]
            assert [got(c.answer(s)) for s in streams] == [
                (200, BIG), (200, HOT), (404, b""), (200, b""), (200, BIG)]
        assert got(c.ask("/big", fields=[("range", "bytes=1000000-1100000")])) == (206, BIG[1000000:1100001])
    server.nobody_is_left()


def test_a_client_that_leaves_or_resets_harms_no_other(server, tmp_path):
    for _ in range(5):
        evict(tmp_path / "big")
        with server.client(auto=False) as c:
            streams = [c.begin("/big") for _ in range(4)]
            c.reset(streams[0])
            c.until(lambda: any(c.answers.get(s) and c.answers[s].body for s in streams[1:]), "data")
    with server.client() as c:
        assert got(c.ask("/hot")) == (200, HOT)
    server.nobody_is_left()


@pytest.mark.parametrize("op", ["lookup", "open", "read"])
def test_a_cached_file_is_sent_while_another_waits(slow, start, op):
    """On the same connection, and on others."""
    base = os.path.dirname(slow.dir)
    t.write(os.path.join(base, "hot"), HOT)
    server = start(base)
    slow.hang(op, "cold.bin")
    with server.client() as c, server.client() as other:
        waits, leaves = c.begin("/mnt/cold.bin"), other.begin("/mnt/cold.bin")
        slow.wait_held(op)
        for _ in range(10):
            assert got(c.ask("/hot")) == (200, HOT)
        other.reset(leaves)
        assert got(other.ask("/hot")) == (200, HOT)
        assert not c.answers[waits].done
        other.sock.close()
        slow.release()
        assert got(c.answer(waits)) == (200, slow_content(slow, "cold.bin"))
    server.nobody_is_left()
