"""tests/lint_names: what it lets through, and what not."""

import importlib.machinery
import importlib.util
import pathlib

import pytest

TREE = pathlib.Path(__file__).resolve().parent.parent.parent
PATH = str(TREE / "tests/lint_names")

_loader = importlib.machinery.SourceFileLoader("lint_names", PATH)
lint_names = importlib.util.module_from_spec(importlib.util.spec_from_loader("lint_names", _loader))
_loader.exec_module(lint_names)

FUNCTION = "%sint\n%s(int a)\n{\n\treturn a;\n}\n"


@pytest.mark.parametrize("path, kind, name, good", [
    ("server/worker/hoard.c", "static ", "hoard_find", True),
    ("server/worker/hoard.c", "static ", "find", False),
    ("server/worker/hoard.c", "static ", "hoarder_find", False),
    ("server/worker/hoard.c", "static ", "oust_find", False),
    ("server/worker/hoard.c", "", "worker_find", False),
    ("server/conn/read.c", "static ", "conn_find", True),
    ("server/conn/read.c", "static ", "read_find", True),
    ("server/worker/connection_limits.c", "", "limits_find", True),
    ("server/worker/connection_limits.c", "static ", "limits_find", False),
    ("lib/disk/fetch.c", "", "pw_find", True),
    ("lib/send/path_splice.c", "static ", "splice_find", True),
    ("lib/os/linux_fetch.c", "static ", "linux_fetch_find", True),
])
def test_begin_of_a_name(tmp_path, path, kind, name, good):
    (tmp_path / path).parent.mkdir(parents=True)
    (tmp_path / path).write_text(FUNCTION % (kind, name))
    faults = lint_names.check(tmp_path)
    assert faults == ([] if good else ["%s:2: %s does not begin with its module" % (path, name)])


def test_a_name_that_stands_twice(tmp_path):
    for path in ("server/http/range.c", "server/conf/range.c", "lib/os/linux.c", "lib/os/freebsd.c"):
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
    for path in ("server/http/range.c", "server/conf/range.c"):
        (tmp_path / path).write_text(FUNCTION % ("static ", "range_read"))
    for path in ("lib/os/linux.c", "lib/os/freebsd.c"):
        (tmp_path / path).write_text(FUNCTION % ("", "os_read"))
    (fault,) = lint_names.check(tmp_path)
    assert fault.startswith("range_read stands in ") and fault.count("range.c:2") == 2


def test_it_finds_the_functions_of_the_tree():
    found = sum(len(list(lint_names.functions(TREE / path))) for path in lint_names.sources(TREE))
    assert found > 3000
