"""A loop that sleeps anywhere but in its wait for events says so, and no other does."""

import os
import re
import subprocess
import sys
import threading
import time

import pytest

import harness
import tree as t
from admin import Admin
from harness import request, wait_until
from test_slowfs import SIZE, ask_slow, fast, finishes, serve_slow, slow  # fixtures

TOLD = re.compile(r"pagewise: warning: worker 0: the event loop slept for (\d+) ms: (\w+) (\d+)\.\d ms \((\d+)\)")
# What a busy machine does to any thread: another one has the lock and no processor.
NO_DISK = (r"(pagewise: warning: worker 0: the event loop slept for \d+ ms:"
           r"(,? lock \d+\.\d ms \(\d+\))+\n)*")
WAITING = [p for p in harness.FILE_PATHS if p not in ("blocking", "copy")]
HELD = 0.3  # seconds
# A sink is given memory alone: blocking reads as copy does.
CALLS = {"blocking": "sendfile" if "blocking" in harness.FILE_PATHS else "pread", "copy": "pread"}


def slept(admin):
    """{call: times}, but for those that wait for no disk: for a lock that another thread has."""
    return {s.labels["call"]: s.value
            for s in admin.families()["pagewise_loop_sleeps"].samples
            if s.value and s.labels["call"] != "lock"}


def read_while_it_hangs(server, slow):
    slow.hang("read", "cold.bin")
    c = ask_slow(server)
    slow.wait_held("read")
    time.sleep(HELD)
    slow.release()
    finishes(c, t.content(1, SIZE))


@pytest.mark.parametrize("path_name", CALLS)
def test_loop_that_waits_for_a_disk_is_counted_and_logged_with_the_call(serve_slow, slow, path_name):
    server = serve_slow(send_path=path_name, stall_log=60000, admin="127.0.0.1:0")
    admin = Admin(server)
    read_while_it_hangs(server, slow)
    call = CALLS[path_name]
    wait_until(lambda: slept(admin).get(call, 0) >= 1, "the count")
    assert admin.value("pagewise_loop_asleep_seconds_total", worker="0", call=call) >= HELD
    # On a busy machine the first message may be about a lock; the next one comes 60 s later.
    match = wait_until(lambda: next((m for m in TOLD.finditer(server.messages) if m.group(2) == call), None),
                       "the message", patience=60 + harness.PATIENCE)
    assert HELD * 1000 <= int(match.group(3)) <= int(match.group(1))
    assert 1 <= int(match.group(4)) <= slept(admin)[call]
    server.stop(messages=True)


def test_without_stall_log_a_sleep_is_counted_and_not_logged(serve_slow, slow):
    server = serve_slow(send_path="blocking", stall_log=0, admin="127.0.0.1:0")
    admin = Admin(server)
    read_while_it_hangs(server, slow)
    wait_until(lambda: slept(admin).get(CALLS["blocking"], 0) >= 1, "the count")
    server.stop()


# The release build: sanitizers have locks of their own.


@pytest.mark.once
@pytest.mark.parametrize("path_name", WAITING)
def test_waits_of_disk_threads_are_not_counted(serve_slow, slow, path_name):
    server = serve_slow(send_path=path_name, stall_log=60000, admin="127.0.0.1:0",
                        binary=harness.RELEASE)
    admin = Admin(server)
    read_while_it_hangs(server, slow)
    assert slept(admin) == {}
    server.stop(messages=NO_DISK)


def loop_of(server):
    """/proc of worker 0's thread."""
    for pid in server.processes():
        for tid in os.listdir("/proc/%d/task" % pid):
            path = "/proc/%d/task/%s/" % (pid, tid)
            with open(path + "comm") as f:
                if f.read() == "pw-worker0\n":
                    return path
    raise AssertionError("no worker")


def taken_away(path):
    with open(path + "status") as f:
        return int(re.search(r"^nonvoluntary_ctxt_switches:\s*(\d+)", f.read(), re.M).group(1))


@pytest.mark.once
def test_loop_whose_processor_is_taken_away_is_not_counted(serve, site):
    """Another process computes on the only one that the server has."""
    data = t.content(5, 16 * t.MIB)
    (site / "file").write_bytes(data)
    cpu = min(os.sched_getaffinity(0))
    server = serve("--root", site, "--workers", "1", "--stall-log", "60000",
                   "--admin", "127.0.0.1:0", binary=harness.RELEASE,
                   becomes=["taskset", "-c", str(cpu)])
    admin, loop = Admin(server), loop_of(server)
    hog = subprocess.Popen(["taskset", "-c", str(cpu), sys.executable, "-c", "while True: pass"])
    try:
        before = taken_away(loop)

        def taken():
            with server.connect() as c:
                assert c.ask("/file").body == data
            return (taken_away(loop) >= before + 10 and
                    admin.value("pagewise_loop_turn_longest_seconds") >= 0.002)

        wait_until(taken, "the loop to be preempted in mid-turn")
        assert slept(admin) == {}
    finally:
        hog.kill()
        hog.wait()
    server.stop(messages=NO_DISK)
