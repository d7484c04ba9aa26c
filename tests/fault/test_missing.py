"""Names that do not exist on a file system that cannot be asked on the loop: the disk
hears of each once a second, whoever asks."""

import math
import time

import pytest

import tree as t
from harness import wait_until
from test_slowfs import HOT, ask_slow, fast, fast_requests, serve_slow, server, slow  # fixtures


def lookups(slow, ask, count):
    """How many more reach the file system when count requests come after the first,
    and how many may: one in each second that has begun."""
    ask()
    before, begin = slow.command("seen", "lookup"), time.monotonic()
    for _ in range(count):
        ask()
    allowed = math.ceil(time.monotonic() - begin)
    return slow.command("seen", "lookup") - before, allowed


@pytest.mark.parametrize("target, status", [("/none", 404), ("/none/x", 404), ("/hot.bin/x", 404)])
def test_name_that_is_missing_is_looked_up_once_in_a_second(server, slow, target, status):
    with server.connect() as c:
        def ask():
            assert c.ask(target, host="slow").status == status

        seen, allowed = lookups(slow, ask, 300)
    assert seen <= allowed < 300


def test_index_file_that_is_missing_is_looked_up_once_in_a_second(server, slow):
    with server.connect() as c:
        def ask():
            assert b"file.bin" in c.ask("/dir/", host="slow").body

        seen, allowed = lookups(slow, ask, 300)
    # The directory itself, its index file, and the names in it when it is listed.
    assert seen <= 3 * allowed < 300


def test_requests_for_a_missing_name_share_the_lookup(server, slow):
    slow.hang("lookup", "none")
    before = slow.command("seen", "lookup")
    clients = [ask_slow(server, "/none") for _ in range(5)]
    slow.wait_held("lookup")
    fast_requests(server, 10)
    slow.release()
    for c in clients:
        assert c.response().status == 404
        c.finish()
    assert slow.command("seen", "lookup") == before + 1


def test_created_file_is_served_soon(server, slow):
    assert server.get("/new", host="slow").status == 404
    slow.add("new", b"new")
    wait_until(lambda: server.get("/new", host="slow").status == 200, "the file", 3)


def test_scan_of_missing_names_evicts_no_open_file(serve_slow, slow):
    """As few files as can be remembered, and a hundred times as many names."""
    server = serve_slow(open_files=16)
    assert server.get("/hot.bin", host="slow").body == t.content(3, HOT)
    opens = slow.command("seen", "open")
    with server.connect() as c:
        for n in range(1600):
            assert c.ask("/none-%d" % n, host="slow").status == 404
            if n % 100 == 0:
                assert c.ask("/hot.bin", host="slow").status == 200
        c.finish()
    assert slow.command("seen", "open") == opens
