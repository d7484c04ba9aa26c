"""tests/forked.py: which process runs which test, when, and what is told of it."""

import os
import re
import subprocess
import sys

import pytest

import forked
import harness

pytestmark = pytest.mark.once
CONFTEST = "import sys\nsys.path.insert(0, %r)\nfrom forked import pytest_addoption, pytest_runtestloop\n" % os.path.join(
    harness.TREE, "tests")
HEAD = """
import os
import pytest
import time

def note(name):
    with open(%r, "a") as f:
        f.write("%%s %%s\\n" %% (os.environ.get("PYTEST_XDIST_WORKER", "-"), name))

@pytest.fixture(autouse=True)
def noted(request):
    note(request.node.name)
"""


class Inner:
    """A run of pytest with tests of its own."""

    def __init__(self, top):
        self.top = top
        (top / "conftest.py").write_text(CONFTEST)

    def write(self, name, text):
        path = self.top / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(HEAD % str(self.top / "notes") + text)

    def start(self, *args, **kw):
        return subprocess.Popen(
            [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-c", os.devnull, "--rootdir", self.top,
             "--basetemp", self.top / "files", "--strict-markers", "-o", "markers=xdist_group\n slow", *args, self.top],
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, **kw)

    def run(self, *args):
        with self.start(*args) as process:
            self.output = process.communicate(timeout=harness.PATIENCE)[0]
        self.status = process.returncode
        return self

    def notes(self):
        """[(process, test)] in the order in which they began."""
        path = self.top / "notes"
        return [tuple(line.split()) for line in path.read_text().splitlines()] if path.exists() else []


@pytest.fixture
def inner(tmp_path):
    return Inner(tmp_path)


def test_each_test_runs_once_whichever_process_it_is(inner):
    inner.write("test_a.py", "@pytest.mark.parametrize('n', range(40))\ndef test_a(n): time.sleep(0.01)\n")
    assert "40 passed" in inner.run("--processes=3").output and inner.status == 0
    ran = inner.notes()
    assert sorted(test for _, test in ran) == sorted("test_a[%d]" % n for n in range(40))
    assert {process for process, _ in ran} == {"gw0", "gw1", "gw2"}


def test_a_group_is_of_one_process_and_in_its_order(inner):
    inner.write("test_a.py", "@pytest.mark.parametrize('n', range(20))\ndef test_a(n): time.sleep(0.01)\n"
                "@pytest.mark.xdist_group('g')\n@pytest.mark.parametrize('n', range(5))\n"
                "def test_g(n): time.sleep(0.01)\n")
    ran = inner.run("--processes=3").notes()
    group = [(process, test) for process, test in ran if test.startswith("test_g")]
    assert group == [(group[0][0], "test_g[%d]" % n) for n in range(5)]


def test_what_takes_long_begins_first(inner):
    inner.write("tests/http/test_a.py", "def test_a(): pass\ndef test_b(): pass\n"
                "@pytest.mark.slow\ndef test_slow(): pass\n"
                "@pytest.mark.xdist_group('g')\ndef test_group(): pass\n")
    inner.write("tests/soak/test_s.py", "def test_soak(): pass\n")
    ran = [test for _, test in inner.run("--processes=1").notes()]
    assert ran == ["test_group", "test_slow", "test_soak", "test_a", "test_b"]


def test_a_process_stays_in_its_module_until_another_one_lacks_tests(inner):
    for name in "ab":
        inner.write("tests/http/test_%s.py" % name, "@pytest.mark.parametrize('n', range(20))\n"
                    "def test_%s(n): time.sleep(0.02)\n" % name)
    ran = inner.run("--processes=2").notes()
    first = [{process for process, test in ran[:20] if test.startswith("test_" + name)} for name in "ab"]
    assert sorted(first, key=min) == [{"gw0"}, {"gw1"}]
    assert len(ran) == 40


def test_fixtures_of_a_module_stay_for_its_next_test(inner):
    inner.write("tests/http/test_a.py", """
@pytest.fixture(scope="module")
def made():
    note("made")
    yield
    note("ended")
@pytest.mark.parametrize("n", range(10))
def test_a(made, n): pass
""")
    inner.write("tests/http/test_b.py", "def test_b(): pass\n")
    ran = [test for _, test in inner.run("--processes=1").notes()]
    assert (ran.count("made"), ran.count("ended"), len(ran)) == (1, 1, 13)
    assert ran.index("ended") == 11


def test_a_failure_comes_with_what_was_written_and_into_the_results(inner):
    inner.write("test_a.py", "def test_a():\n    print('seen by nobody')\n"
                "def test_b():\n    print('what it wrote')\n    os.system('echo what its child wrote')\n    assert 1 == 2\n"
                "def test_c(): pytest.skip('not here')\n")
    inner.run("--processes=2", "-rs", "--junitxml=%s" % (inner.top / "results"))
    assert inner.status == 1 and "1 failed, 1 passed, 1 skipped" in inner.output
    assert "assert 1 == 2" in inner.output and "not here" in inner.output
    assert "what it wrote\nwhat its child wrote\n" in inner.output and "seen by nobody" not in inner.output
    results = (inner.top / "results").read_text()
    assert 'errors="0" failures="1" skipped="1" tests="3"' in results and "what its child wrote" in results


def test_a_process_that_crashes_fails_its_test_and_the_others_run(inner):
    inner.write("test_a.py", "@pytest.mark.parametrize('n', range(9))\n"
                "def test_a(n):\n    if n == 3:\n        os._exit(5)\n")
    inner.run("--processes=2")
    assert inner.status == 1 and "1 failed, 8 passed" in inner.output
    assert re.search(r"the process gw\d crashed while running test_a.py::test_a\[3\]", inner.output)


def test_no_test_begins_after_the_last_failure_that_is_allowed(inner):
    inner.write("test_a.py", "@pytest.mark.parametrize('n', range(50))\n"
                "def test_a(n):\n    time.sleep(0.05)\n    assert n != 1\n")
    inner.run("--processes=2", "-x")
    assert inner.status == 1 and "stopping after 1 failures" in inner.output
    assert len(inner.notes()) < 10


def test_a_process_begins_in_its_turn_and_passes_it_on(inner):
    inner.write("test_a.py", "@pytest.mark.parametrize('n', range(%d))\n"
                "def test_a(n): time.sleep(0.01)\n" % (5 * forked.FEW))
    ours, theirs = os.pipe(), os.pipe()
    process = inner.start("--processes=2", "--turn=%d,%d" % (ours[0], theirs[1]), pass_fds=(ours[0], theirs[1]))
    os.close(ours[0])
    os.close(theirs[1])
    with pytest.raises(subprocess.TimeoutExpired):
        process.wait(1 * harness.SLOWER)
    assert inner.notes() == []
    os.write(ours[1], b".")
    assert os.read(theirs[0], 1) == b"."  # few are left
    assert len({process for process, _ in inner.notes()}) == 1
    os.close(ours[1])
    assert "%d passed" % (5 * forked.FEW) in process.communicate(timeout=harness.PATIENCE)[0]
    passed_on = b""
    while more := os.read(theirs[0], 10):
        passed_on += more
    assert passed_on == b".."
    os.close(theirs[0])
