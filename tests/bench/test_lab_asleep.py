"""How long an event loop sleeps where it should not: bench/laboratory/asleep.py."""

import contextlib
import os
import subprocess
import sys
import time

import lab
import pytest

from laboratory import asleep, limits, servers, tables

MACHINE = "x86_64"  # whose numbers the tables below have


@pytest.mark.parametrize("text, call", [
    ("running\n", None),
    ("232 0x3 0x7ffe 0x20 0x1 0x0 0x8 0x7ffd 0x7f1e\n", None),
    ("281 0x3 0x7ffe 0x20 0x1 0x0 0x8 0x7ffd 0x7f1e\n", None),
    ("40 0x9 0x8 0x7ffe 0x80000 0x0 0x8 0x7ffd 0x7f1e\n", "sendfile"),
    ("202 0x7f1e 0x80 0x2 0x0 0x0 0x0 0x7ffd 0x7f1e\n", "futex"),
    ("9999 0x0\n", "call 9999"),
    ("-1 0x7ffd 0x7f1e\n", "page fault"),
    ("", None),
])
def test_a_loop_may_sleep_where_it_waits_for_events_and_nowhere_else(text, call):
    assert asleep.call(text, MACHINE) == call


def test_a_stack_is_named_without_its_common_frames():
    assert asleep.chain(
        "[<0>] folio_wait_bit_common+0x12f/0x340\n[<0>] filemap_get_pages+0x5a/0x6c0\n"
        "[<0>] do_syscall_64+0x71/0x280\n[<0>] entry_SYSCALL_64_after_hwframe+0x76/0x7e\n"
    ) == "folio_wait_bit_common < filemap_get_pages"


@contextlib.contextmanager
def process(code):
    """Python that prints a line when it begins to sleep."""
    with subprocess.Popen([sys.executable, "-c", code], stdin=subprocess.PIPE,
                          stdout=subprocess.PIPE, text=True) as child:
        try:
            child.stdout.readline()
            yield child
        finally:
            child.kill()


def looked(child, number=5):
    """What a watch of its thread saw once it slept, in so many looks."""
    deadline = time.monotonic() + lab.PATIENCE
    while limits.read(f"/proc/{child.pid}/syscall").startswith("running"):
        assert time.monotonic() < deadline
        time.sleep(0.01)
    with asleep.Watch(asleep.threads([child.pid], "")) as watch:
        while watch.looks < number:
            assert time.monotonic() < deadline
            time.sleep(0.01)
    return watch.result()


READS = "print(flush=True)\nimport os\nos.read(0, 1)"
POLLS = ("import os, select\ne = select.epoll()\ne.register(0)\nprint(flush=True)\n"
         "e.unregister(0)\ne.poll()")


def test_a_thread_that_waits_for_events_is_not_asleep_and_one_that_reads_is():
    with process(POLLS) as child:
        found = looked(child)
        assert (found["calls"], found["seconds"], found["longest"]) == ({}, 0, 0)
    with process(READS) as child:
        found = looked(child)
        assert list(found["calls"]) == ["read"]
        assert found["seconds"] == found["longest"] > 0


def test_unwatched_threads_have_no_figures():
    with asleep.Watch([]) as watch:
        pass
    assert watch.result() is None
    with asleep.Watch(["/proc/0/task/0"]) as watch:
        pass
    assert watch.result() is None


def test_a_thread_may_end_while_it_is_watched():
    with process(READS) as child:
        with asleep.Watch(asleep.threads([child.pid], "")) as watch:
            child.kill()
            child.wait()
            seen, deadline = watch.looks, time.monotonic() + lab.PATIENCE
            while watch.looks < seen + 3:
                assert time.monotonic() < deadline
                time.sleep(0.01)
        assert watch.result()["loops"] == 1


def test_the_loops_are_named_threads_or_processes_without_children():
    code = "import os\nif os.fork() == 0:\n    print(os.getpid(), flush=True)\nos.read(0, 1)"
    with subprocess.Popen([sys.executable, "-c", code], stdin=subprocess.PIPE,
                          stdout=subprocess.PIPE, text=True) as child:
        worker = int(child.stdout.readline())
        pids = [child.pid, worker]
        name = limits.read(f"/proc/{worker}/comm").strip()
        assert asleep.threads(pids, "") == [f"/proc/{worker}/task/{worker}"]
        assert asleep.threads(pids, name) == [f"/proc/{pid}/task/{pid}" for pid in pids]
        assert asleep.threads(pids, "no such thread") == asleep.threads(pids, None) == []
        child.kill()
        os.kill(worker, 9)


def test_a_helper_of_another_program_is_no_loop():
    """H2O from 2.3 on has one in perl."""
    code = ("import os, subprocess\nprint(subprocess.Popen(['sleep', '60']).pid, flush=True)\n"
            "os.read(0, 1)")
    with subprocess.Popen([sys.executable, "-c", code], stdin=subprocess.PIPE,
                          stdout=subprocess.PIPE, text=True) as child:
        helper = int(child.stdout.readline())
        assert asleep.threads([child.pid, helper], "") == [f"/proc/{child.pid}/task/{child.pid}"]
        os.kill(helper, 9)
        child.kill()


def test_pagewise_has_named_loops_and_apache_and_caddy_have_none():
    loops = {c.name: c.loop for c in servers.peers()}
    assert all(c.loop == "pw-worker" for c in servers.paths())
    assert loops.pop("apache") is None and loops.pop("caddy") is None
    assert loops.pop("caddy-tls") is None
    assert set(loops.values()) == {""}


def test_an_unknown_figure_is_not_zero_in_a_table():
    columns = tables.loop_columns()
    assert [c.get({"asleep": None, "turn": None}) for c in columns] == [None] * 4
    earlier = {"seconds": 1.5, "longest": 0.5}  # of a laboratory that did not ask for waits
    for asleep_, wait in ((earlier, None), ({**earlier, "longest_wait": 0.125}, 0.125e6)):
        assert [c.get({"asleep": asleep_, "turn": 0.25}) for c in columns] == [
            1.5e6, 0.5e6, wait, 0.25e6]


def test_a_loop_that_waits_for_the_cpu_is_not_asleep_in_a_call():
    """Two of them on one core."""
    core = min(os.sched_getaffinity(0))
    code = (f"import os\nos.sched_setaffinity(0, {{{core}}})\nprint(flush=True)\n"
            "while os.getppid() != 1: pass")
    deadline = time.monotonic() + lab.PATIENCE
    with process(code), process(code) as child:
        with asleep.Watch(asleep.threads([child.pid], "")) as watch:
            while not watch.result()["longest_wait"]:
                assert time.monotonic() < deadline
                time.sleep(0.01)
        found = watch.result()
    assert found["waited"] >= found["longest_wait"] > 0 and found["calls"] == {}
