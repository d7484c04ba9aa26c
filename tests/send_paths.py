"""Which send paths the tests run with: PAGEWISE_TEST_PATHS.

all      every test with each of its send paths (the default)
pairs    with the default ones, nodiskio and hot, and the comparison paths by turns: each test of
         tests/http has one of them, and each module all; in tests/fault each function has all.
         With the marker every_path, all.
default  with the default ones alone

A test that has no default path is about a comparison path, and always runs.
"""
import os
import re

VARIABLE = "PAGEWISE_TEST_PATHS"
MODES = ("all", "pairs", "default")
NAMES = {"server", "send_path", "path_name", "path"}  # of the parameters
DEFAULT = {"nodiskio", "hot"}
COMPARISON = ("uring", "ring", "splice", "mlock", "aio", "pool", "blocking", "copy")


def mode():
    value = os.environ.get(VARIABLE, "all")
    if value not in MODES:
        raise ValueError("%s=%s: use one of %s" % (VARIABLE, value, ", ".join(MODES)))
    return value


def case_of(test):
    """(test without its send path, send path or None).  test: (node id, parameters)"""
    node, params = test
    for name, value in params.items():
        if name in NAMES and (value in DEFAULT or value in COMPARISON):
            return re.sub(r"(?<=[\[-])%s(?=[\]-])" % value, "PATH", node, count=1), value
    return node, None


def group_of(node):
    """Tests that share the comparison paths between them."""
    return node.partition("[")[0] if node.startswith("tests/fault/") else node.partition("::")[0]


def chosen(tests, mode, every=()):
    """The node ids to run.  tests: [(node id, parameters)]; every: nodes with the marker."""
    cases = {}  # {case: {send path: node}}
    keep = set()
    for test in tests:
        case, path = case_of(test)
        cases.setdefault(case, {})[path] = test[0]
    groups = {}
    for case, nodes in cases.items():
        default = {path for path in nodes if path is None or path in DEFAULT}
        some = next(iter(nodes.values()))
        if mode == "all" or not default or mode == "pairs" and some in every:
            keep.update(nodes.values())
            continue
        keep.update(nodes[path] for path in default)
        groups.setdefault(group_of(case), []).append(nodes)
    if mode == "pairs":
        for group in groups.values():
            keep.update(by_turns(group))
    return keep


def by_turns(group):
    """A comparison path for each case, another one each time; then those that had no turn."""
    seen, turn = set(), 0
    for nodes in group:
        mine = [path for path in COMPARISON if path in nodes]
        if mine:
            path = min(mine, key=lambda p: (COMPARISON.index(p) - turn) % len(COMPARISON))
            turn = COMPARISON.index(path) + 1
            seen.add(path)
            yield nodes[path]
    for path in COMPARISON:
        if path not in seen:
            yield from [nodes[path] for nodes in group if path in nodes][:1]
