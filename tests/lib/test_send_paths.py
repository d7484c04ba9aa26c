"""The send paths that `make test` chooses (tests/send_paths.py): no rule and no pair is lost."""

import os
import re
import subprocess
import sys

import pytest

import harness
import send_paths
import tree as t

pytestmark = pytest.mark.once
PATHS = ["nodiskio", *send_paths.COMPARISON]


def cases(module, function, numbers, paths=(*PATHS, "hot")):
    return [("tests/%s::%s[%s-%s]" % (module, function, n, path), {"n": n, "send_path": path})
            for n in numbers for path in paths]


def paths_of(kept):
    return {re.search(r"-(\w+)\]", node).group(1) for node in kept}


def test_all_is_all():
    tests = cases("http/test_a.py", "test_b", range(3))
    assert send_paths.chosen(tests, "all") == {node for node, _ in tests}


def test_default_has_the_default_paths_alone():
    assert paths_of(send_paths.chosen(cases("http/test_a.py", "test_b", range(3)), "default")) == {"nodiskio", "hot"}


@pytest.mark.parametrize("mode", send_paths.MODES)
def test_what_has_no_path_or_no_default_path_always_runs(mode):
    tests = [("tests/http/test_a.py::test_b", {}), ("tests/http/test_a.py::test_c[x]", {"path": "x"}),
             ("tests/http/test_a.py::test_d[splice]", {"other": "splice"}),
             *cases("http/test_a.py", "test_e", [1], ["uring", "aio"])]
    assert send_paths.chosen(tests, mode) == {node for node, _ in tests}


def test_each_case_has_a_comparison_path_and_each_module_all():
    tests = cases("http/test_a.py", "test_b", range(3)) + cases("http/test_a.py", "test_c", range(5))
    kept = send_paths.chosen(tests, "pairs")
    assert len(kept) == 8 * 3
    assert paths_of(kept) == {*PATHS, "hot"}


@pytest.mark.parametrize("module, functions", [("http/test_a.py", 2), ("fault/test_a.py", 16)])
def test_a_few_cases_have_all_comparison_paths(module, functions):
    """In tests/fault each function has, elsewhere all of a module together."""
    tests = cases(module, "test_b", [1]) + cases(module, "test_c", [1])
    kept = send_paths.chosen(tests, "pairs")
    assert len(kept) == 4 + max(functions, 8)
    assert paths_of(kept) == {*PATHS, "hot"}


def test_marked_ones_have_every_path():
    tests = cases("http/test_a.py", "test_b", range(3))
    nodes = {node for node, _ in tests}
    assert send_paths.chosen(tests, "pairs", nodes) == nodes


def collected(protocol, *where):
    """[(function, parameters in the brackets)] of what `make test` runs with this protocol."""
    env = {**os.environ, send_paths.VARIABLE: "pairs", "PAGEWISE": harness.PAGEWISE}
    for name in ("PAGEWISE_TLS", "PAGEWISE_HTTP2", "PAGEWISE_SINK", "PYTEST_XDIST_WORKER"):
        env.pop(name, None)
    if protocol:
        env[protocol] = "1"
    out = subprocess.run([sys.executable, "-m", "pytest", "--collect-only", "-q", "-p", "no:cacheprovider", *where],
                         cwd=harness.TREE, env=env, capture_output=True, text=True, check=True).stdout
    return re.findall(r"^tests/\S+::(\w+)\[(.*)\]$", out, re.M)


@pytest.mark.parametrize("protocol", ["", "PAGEWISE_TLS", "PAGEWISE_HTTP2"])
def test_each_path_and_each_size_occur_with_each_other_and_with_each_protocol(protocol):
    expected = [*(harness.SINK_PATHS if protocol == "PAGEWISE_TLS" else PATHS), "hot"]
    seen = {tuple(words.split("-")) for name, words in collected(protocol, "tests/http/test_methods.py")
            if name == "test_get_sends_the_whole_file"}
    pairs = {(path, size) for words in seen for path in words for size in words}
    missing = [(p, s) for p in expected for s in map(str, t.SIZES) if (p, s) not in pairs]
    assert missing == []
