"""What runs the tests: nothing hangs, nothing stays behind, all of it is counted."""

import importlib.machinery
import importlib.util
import os
import subprocess
import sys

import pytest

import harness

pytestmark = pytest.mark.once

TESTS = os.path.join(harness.TREE, "tests")
ONE_PASSED = '<testsuites><testsuite tests="1" failures="0" errors="0" skipped="0"/></testsuites>'


@pytest.fixture
def run():
    loader = importlib.machinery.SourceFileLoader("run", os.path.join(TESTS, "run"))
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader("run", loader))
    loader.exec_module(module)
    module.ENDING = 0.2
    return module


@pytest.fixture
def scratch(run):
    scratch = run.Scratch()
    yield scratch
    scratch.end()
    scratch.keep = False
    scratch.remove()
    assert not os.path.exists(scratch.dir)


def environment(pid):
    with open("/proc/%d/environ" % pid, "rb") as f:
        return f.read()


def asleep(env):
    """One whose environment can be seen: Popen returns a moment before."""
    process = subprocess.Popen(["sleep", "1000"], env=env, start_new_session=True)
    harness.wait_until(lambda: environment(process.pid), "its environment")
    return process


def test_a_leftover_process_is_reported_and_killed(scratch, capfd):
    with asleep(scratch.env(PYTEST_CURRENT_TEST="a test of ours (call)")) as left:
        assert scratch.end() == 1
        assert left.wait() == -9
    assert "left behind by a test of ours (call): %d sleep 1000\n" % left.pid in capfd.readouterr().out
    assert scratch.end() == 0


def test_a_process_of_another_run_is_left_alone(run, scratch):
    theirs = run.Scratch()
    with asleep(theirs.env()) as process:
        assert scratch.end() == 0
        assert process.poll() is None
        assert theirs.end() == 1
    theirs.remove()


def counted(run, scratch, build, script):
    """What comes of it if this is what pytest does."""
    run.pytest_command = lambda results, files, args: [
        "sh", "-c", "mkdir %s; echo '%s' >%s; %s" % (files, ONE_PASSED, results, script)]
    return str(run.run_pytest(os.fspath(build), [], scratch))


def test_a_leftover_process_fails_the_run(run, scratch, tmp_path):
    assert counted(run, scratch, tmp_path, "true") == "1 passed, 0 failed"
    assert sorted(os.listdir(scratch.dir)) == ["removed", "tmp"]
    assert counted(run, scratch, tmp_path, "setsid sleep 1000 &") == "1 passed, 1 failed"
    scratch.remove()
    assert os.listdir(scratch.dir) == [tmp_path.name]  # for whoever looks


def test_a_pytest_that_does_not_end_fails_the_run(run, scratch, tmp_path, capfd):
    run.PYTEST_TIMEOUT = 0.3
    assert counted(run, scratch, tmp_path, "sleep 1000").startswith("1 passed, ")
    assert scratch.keep and scratch.end() == 0
    assert "exit status none in 0.3 s" in capfd.readouterr().out


HANGS = """
import time

def test_that_ends():
    pass

def test_that_hangs():
    while True:
        time.sleep(1)

def test_that_ends_too():
    pass
"""


def inner(tmp_path, text, processes=0):
    """A run of pytest with our conftest.py and tests of its own."""
    path = tmp_path / "test_inner.py"
    path.write_text(text)
    return subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "conftest",
         "-c", os.devnull, "--rootdir", tmp_path, "--processes=%d" % processes, path],
        env={**os.environ, "PYTHONPATH": TESTS, "PAGEWISE": harness.PAGEWISE,
             "PAGEWISE_TEST_SECONDS": "2" if text == HANGS else "60", "TMPDIR": str(tmp_path)},
        stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=100, check=False)


@pytest.mark.slow
@pytest.mark.parametrize("processes", [0, 1])
def test_a_test_that_hangs_ends_and_it_is_told_where(tmp_path, processes):
    done = inner(tmp_path, HANGS, processes)
    assert done.returncode == 1
    assert "test_inner.py:9: " in done.stdout, done.stdout
    assert "the test took more than 2 s" in done.stdout
    assert "1 failed, 2 passed" in done.stdout


HALF = """
def test_that_passes(tmp_path):
    (tmp_path / "large").write_bytes(bytes(1 << 20))

def test_that_fails(tmp_path):
    (tmp_path / "large").write_bytes(bytes(1 << 20))
    assert False
"""


def test_files_of_a_test_that_failed_stay_and_others_lie_aside_without_their_bytes(tmp_path, monkeypatch):
    monkeypatch.setenv("PAGEWISE_TESTS", str(tmp_path))
    assert "1 failed, 1 passed" in inner(tmp_path, HALF).stdout
    found = {str(path.relative_to(tmp_path)): path.stat().st_size for path in tmp_path.rglob("large")}
    (kept,) = [path for path, size in found.items() if size]
    assert "test_that_fails0" in kept and not kept.startswith("removed/")
    (aside,) = set(found) - {kept}
    assert aside.startswith("removed/")


DIES = """
import os

def test_of_three(serve, tmp_path):
    servers = [serve("--root", tmp_path, "--workers", "1") for _ in range(3)]
    (tmp_path.parent / "pid").write_text(str(servers[1].master))
    for one in servers[0], servers[2]:
        os.kill(one.master, 9)
"""


def test_a_server_that_died_does_not_keep_the_others_from_their_end(tmp_path):
    done = inner(tmp_path, DIES)
    assert "1 passed, 1 error" in done.stdout, done.stdout
    (pid,) = [path.read_text() for path in tmp_path.rglob("pid")]
    assert not os.path.exists("/proc/" + pid)
    assert list(tmp_path.rglob("pagewise-run-*")) == []
