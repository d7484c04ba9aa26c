"""The programs and Python modules that tests need, by the set of conf/install-deps.sh that installs them.

A test that needs more than `make check` installs names that by the marker needs(name, ...), as the table there
has it.  `make check` leaves such a test out, wherever it runs.  Otherwise the test is skipped where a program is
missing.  tests/lint_programs compares the markers with what the tests call.
"""

import collections
import functools
import importlib.util
import os
import re
import shutil

TABLE = os.path.join(os.path.dirname(__file__), "..", "conf", "install-deps.sh")
ROW = re.compile(r"^\t(\w+)\t(?:(?:linux|apt) )*(cmd|pymod) (?:\$\{\w+:-)?([^\s}]+)\}?\t", re.M)
CHECK = frozenset(("build", "check"))
TEST = CHECK | {"test", "nginx"}


def table():
    """Returns {name: sets}."""
    with open(TABLE, encoding="utf-8") as f:
        rows = ROW.findall(f.read())
    found = collections.defaultdict(set)
    for name_of_set, _, name in rows:
        found[name].add(name_of_set)
    return dict(found)


@functools.lru_cache
def installed_by(sets):
    """Returns the names that these sets install."""
    return {name for name, its in table().items() if its & sets}


@functools.lru_cache
def is_here(name):
    path = os.environ.get("PATH", "") + ":/usr/sbin:/sbin"
    return shutil.which(name, path=path) is not None or importlib.util.find_spec(name) is not None
