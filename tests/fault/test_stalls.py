"""A loop that stands still is seen, by the log and from outside."""

import re
import time

import pytest

import tree as t
from admin import Admin
from harness import wait_until
from test_slowfs import SIZE, ask_slow, fast, finishes, serve_slow, slow  # fixtures

STALLED = re.compile(
    r"pagewise: warning: worker 0: an event-loop iteration took (\d+) ms: (?:\w+ \d+ ms \(\d+\), )*"
    r"responses (\d+) ms \(\d+\)"
)


@pytest.fixture
def stalling(serve_slow):
    """This send path waits for the disk on the loop."""
    return serve_slow(send_path="blocking", stall_log=100, admin="127.0.0.1:0")


def stall(server, slow, ms):
    slow.hang("read", "cold.bin")
    c = ask_slow(server)
    slow.wait_held("read")
    time.sleep(ms / 1000)
    slow.release()
    finishes(c, t.content(1, SIZE))


def test_slow_iteration_is_logged_with_its_work(stalling, slow):
    stall(stalling, slow, 300)
    match = wait_until(lambda: STALLED.search(stalling.messages), "the message")
    turn, answers = int(match.group(1)), int(match.group(2))
    assert 300 <= answers <= turn
    stalling.stop(messages=True)


def test_slow_iteration_is_counted(stalling, slow):
    admin = Admin(stalling)
    stall(stalling, slow, 300)
    wait_until(lambda: admin.value("pagewise_loop_stalls_total") >= 1, "the count")
    assert admin.value("pagewise_loop_turn_longest_seconds") >= 0.3
    assert admin.value("pagewise_loop_turn_seconds_sum") >= 0.3
    turns = {(s.name, s.labels.get("le")): s.value
             for s in admin.families()["pagewise_loop_turn_seconds"].samples}
    assert (turns["pagewise_loop_turn_seconds_count", None] -
            turns["pagewise_loop_turn_seconds_bucket", "0.262144"] >= 1)
    stalling.stop(messages=True)


def test_admin_responds_while_the_only_worker_hangs(stalling, slow):
    admin = Admin(stalling)
    slow.hang("read", "cold.bin")
    c = ask_slow(stalling)
    slow.wait_held("read")
    assert admin.ask("/").status == 200
    assert admin.value("pagewise_connections") == 1
    slow.release()
    finishes(c, t.content(1, SIZE))
    stalling.stop(messages=True)


def test_waiting_for_a_disk_is_no_stall(serve_slow, slow):
    """With a path that does not wait on the loop, nor is waiting for events."""
    server = serve_slow(admin="127.0.0.1:0")
    admin = Admin(server)
    slow.hang("read", "cold.bin")
    c = ask_slow(server)
    slow.wait_held("read")
    admin.wait("pagewise_connections", 1, state="disk")
    before = admin.value("pagewise_loop_turn_seconds_sum")
    began = time.monotonic()
    time.sleep(2)
    after = admin.value("pagewise_loop_turn_seconds_sum")
    assert after - before < (time.monotonic() - began) / 2
    slow.release()
    finishes(c, t.content(1, SIZE))
    admin.wait("pagewise_connections", 0)
    assert admin.value("pagewise_requests_disk_wait_seconds_total") >= 2


def test_request_aborted_for_a_hung_disk_is_counted(serve_slow, slow):
    server = serve_slow(admin="127.0.0.1:0", disk_timeout=1)
    admin = Admin(server)
    slow.hang("open", "cold.bin")
    c = ask_slow(server)
    assert c.response().status == 503
    assert admin.value("pagewise_timeouts_total", kind="disk") == 1
    assert admin.value("pagewise_timeouts_total") == 1
    assert admin.value("pagewise_requests_total", status="503") == 1
    slow.release()
    server.stop(messages=r'pagewise: request "GET /cold.bin HTTP/1.1" aborted: the disk [^\n]*\n')
