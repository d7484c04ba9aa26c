"""make demo: what it draws, and that it leaves nothing behind, however it ends."""

import glob
import io
import os
import re
import signal
import time

import lab
import pytest
from laboratory import demo

pytestmark = pytest.mark.xdist_group("laboratory")  # it sets up the whole machine


def loops():
    """Images of a demo that are in use; their names are gone."""
    found = []
    for path in glob.glob("/sys/block/loop*/loop/backing_file"):
        with open(path, encoding="utf-8") as f:
            found += [path] if "pagewise-demo-" in f.read() else []
    return found


def places():
    return glob.glob("/var/tmp/pagewise-demo-*")


def mounts():
    with open("/proc/mounts", encoding="utf-8") as f:
        return [line for line in f if "pagewise-demo-" in line]


def gone(found, patience=20):
    """The kernel gives a loop device up a little later."""
    until = time.monotonic() + patience
    while (left := found()) and time.monotonic() < until:
        time.sleep(0.1)
    return not left


def groups(pid):
    return (glob.glob(f"/sys/fs/cgroup/*/pagewise-lab-{pid}") +
            glob.glob(f"/sys/fs/cgroup/pagewise-lab-{pid}"))


@pytest.fixture
def possible():
    lab.needs("probe", "replay", "limits")
    if lacks := demo.missing():
        pytest.skip("; ".join(lacks))
    if why := demo.servers.peers()[0].unusable():
        pytest.skip(f"nginx: {why}")


def test_a_line_is_drawn_from_the_longest_waits():
    assert [demo.level(us) for us in (0, 999, 1000, 3163, 10000, 31623, 10**5, 316228, 10**6, 10**9)] == [
        0, 0, 1, 2, 3, 4, 5, 6, 7, 7]
    assert demo.columns([1, 5, 2, 3], 2) == [5, 3]
    assert demo.columns([1, 2], 50) == [1, 2]
    assert demo.sparkline([10, 2000, 10**7], demo.BLOCKS) == "▁▂█"
    result = {"latency_us": {"max": 1500}, "timeline": {"interval_ms": 100, "max_us": [1500] * 100}}
    assert demo.line("nginx", result, demo.PLAIN) == f"nginx    {':' * 50}  longest wait 1.5 ms"


@pytest.mark.parametrize("encoding, marks", [("utf-8", demo.BLOCKS), ("ascii", demo.PLAIN)])
def test_characters_are_those_of_the_terminal(encoding, marks):
    assert demo.marks_of(io.TextIOWrapper(io.BytesIO(), encoding=encoding)) == marks


def test_missing_requirements_are_reported(monkeypatch):
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    with pytest.raises(RuntimeError, match="^demo needs root, .*: make demo calls sudo$"):
        demo.run()
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    monkeypatch.setattr(demo.machine, "tool", lambda name: None)
    assert {need.split(":")[0] for need in demo.missing()} >= {"mkfs.ext4", "probe", "replay"}


def test_demo_in_miniature(possible):
    status, out, err = lab.run("demo", "--seconds", 2, "--limit", 10)
    assert (status, err) == (0, ""), err
    lines = re.findall(r"^(nginx|pagewise) +([▁▂▃▄▅▆▇█]{20})  longest wait [0-9.]+ (?:s|ms|µs)$", out, re.M)
    assert [name for name, _ in lines] == ["nginx", "pagewise"], out
    assert "\r" not in out and "\033" not in out
    # What is drawn last is drawn in the storm: nginx waits for the disk there.
    assert max(map(demo.BLOCKS.index, lines[0][1])) > 4
    assert gone(loops) and gone(places) and not mounts()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_nothing_is_left_after_a_signal(possible, number):
    child = lab.start("demo", "--seconds", 20, "--limit", 10)
    while "Longest wait" not in (line := child.stdout.readline()):
        assert line, child.stderr.read()
    time.sleep(3)
    assert loops() and groups(child.pid)
    child.send_signal(number)
    child.communicate(timeout=lab.PATIENCE)
    assert child.returncode == 128 + number
    assert gone(loops) and gone(places) and gone(lambda: groups(child.pid)) and not mounts()
