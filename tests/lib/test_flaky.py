"""tests/run tells a failure under load from a fault."""

import importlib.machinery
import importlib.util
import os

import pytest

import flaky
import harness

pytestmark = pytest.mark.once
CONFTEST = "import sys\nsys.path.insert(0, %r)\nfrom flaky import pytest_runtest_logreport\n" \
    "from forked import pytest_addoption, pytest_runtestloop\n" % os.path.join(
    harness.TREE, "tests")
# The first run of each leaves a file, which the second one finds.
ONCE = """
import os
def first(name):
    path = os.path.join(os.path.dirname(__file__), name)
    if os.path.exists(path):
        return False
    open(path, "w").close()
    return True
"""


@pytest.fixture
def runner(tmp_path, monkeypatch):
    """tests/run as a module, and a function that gives it tests: the Count, and what it kept."""
    loader = importlib.machinery.SourceFileLoader("runner", os.path.join(harness.TREE, "tests/run"))
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader("runner", loader))
    loader.exec_module(module)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "conftest.py").write_text(CONFTEST)
    for name in list(os.environ):
        if name.startswith(("PYTEST_", "PAGEWISE_")):
            monkeypatch.delenv(name)
    monkeypatch.setattr(module, "PROCESSES", 2)
    scratch = module.Scratch()

    def run(text):
        (tmp_path / "test_it.py").write_text(ONCE + text)
        (tmp_path / "build").mkdir(exist_ok=True)
        return module.run_pytest("build", ["test_it.py"], scratch)

    run.scratch, run.module = scratch, module
    yield run
    scratch.keep = False
    scratch.remove()


def test_a_test_that_passes_alone_is_flaky_and_both_outputs_are_kept(runner):
    count = runner("""
def test_a():
    if first("a"):
        print("too slow")
        assert False, "waited in vain"
    print("quick")
def test_b(): pass
""")
    assert (count.passed, count.failed, len(count.flaky)) == (1, 0, 1)
    name, _, path = count.flaky[0].partition(": ")
    assert name == "test_it.py::test_a"
    with open(path.partition(".first")[0] + ".first") as f:
        text = f.read()
    assert "waited in vain" in text and "too slow" in text
    with open(path.partition(".first")[0] + ".again") as f:
        assert "1 passed" in f.read()


def test_a_test_that_fails_again_is_a_failure(runner):
    count = runner("def test_a(): assert False, 'waited in vain'\n")
    assert (count.passed, count.failed, count.flaky) == (0, 1, [])


@pytest.mark.parametrize("fault", [
    "assert b'abd' == b'abc'", "raise OSError('==1==ERROR: AddressSanitizer: heap-use-after-free')",
    "raise OSError('a.c:1:2: runtime error: signed integer overflow')",
    "raise OSError('server process 7 was killed by signal 11 (Segmentation fault)')",
    "assert False, 'exit code -6'", "import sys; sys.stderr.write('WARNING: ThreadSanitizer: data race'); assert False"])
def test_a_fault_is_not_run_again(runner, fault):
    count = runner("def test_a():\n    if first('a'):\n        %s\n" % fault)
    assert (count.failed, count.flaky) == (1, [])


def test_a_fault_that_a_test_only_names_is_none(runner):
    count = runner("def test_a():\n    'AddressSanitizer, ProtocolError'\n    assert not first('a')\n")
    assert (count.failed, len(count.flaky)) == (0, 1)


def test_a_failure_of_the_end_counts_as_well(runner):
    count = runner("""
import pytest
@pytest.fixture
def ends():
    yield
    assert not first("a")
def test_a(ends): pass
""")
    assert (count.failed, len(count.flaky)) == (0, 1)


def test_a_test_of_a_group_is_found_again(runner):
    count = runner("import pytest\n@pytest.mark.xdist_group('g')\ndef test_a(): assert not first('a')\n")
    assert (count.failed, len(count.flaky)) == (0, 1)


def test_many_failures_are_not_the_load(runner):
    count = runner("import pytest\n@pytest.mark.parametrize('n', range(7))\n"
                   "def test_a(n): assert not first(str(n))\n")
    assert (count.failed, count.flaky) == (7, [])


@pytest.mark.parametrize("flaky_ones, status", [(flaky.MOST, 0), (flaky.MOST + 1, 1)])
def test_more_than_a_few_are_failures(runner, monkeypatch, capsys, flaky_ones, status):
    count = runner.module.Count(passed=1)
    count.flaky = ["test %d" % n for n in range(flaky_ones)]
    monkeypatch.setattr(runner.module, "run", lambda *_: count)
    monkeypatch.setattr(runner.module.signal, "signal", lambda *_: None)
    assert runner.module.main([]) == status
    assert capsys.readouterr().out.count("flaky: test") == flaky_ones


def test_without_space_no_test_runs(runner, monkeypatch, capsys):
    monkeypatch.setattr(runner.module, "SPACE", 1 << 60)
    assert runner.module.main(["build/asan/unit/test_none"]) == 1
    said = capsys.readouterr().out
    assert "MiB of free space, the tests need" in said and "passed" not in said
