"""make lint runs clang-tidy on what has changed, and only on that."""

import os
import pathlib
import subprocess
import sys

import pytest

import harness

LINT = os.path.join(harness.TREE, "tests/lint_tidy")
# Both say which they are; what is preprocessed is the file itself; clang-tidy finds a word.
CLANG = '#!/bin/sh\nfor path; do :; done; exec cat "$path"\n'
TIDY = """#!/bin/sh
[ "$1" != --version ] || { echo 14; exit; }
echo "$3" >>"$HOME/run"; ! grep -H wrong "$3"
"""


@pytest.fixture
def lint(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name, text in (("clang", CLANG), ("clang-tidy", TIDY)):
        program = pathlib.Path("bin", name)
        program.parent.mkdir(exist_ok=True)
        program.write_text(text)
        program.chmod(0o755)
    pathlib.Path(".clang-tidy").write_text("Checks: all\n")
    pathlib.Path("one.c").write_text("one\n")
    pathlib.Path("two.c").write_text("two\n")
    env = {**os.environ, "HOME": str(tmp_path), "PATH": "%s/bin:%s" % (tmp_path, os.environ["PATH"])}

    def start(*flags):
        """(exit status, output, the files that clang-tidy has seen)"""
        pathlib.Path("run").write_text("")
        done = subprocess.run([sys.executable, LINT, "one.c", "two.c", "--", *flags], env=env, text=True, check=False,
                              stdout=subprocess.PIPE)
        return done.returncode, done.stdout, sorted(pathlib.Path("run").read_text().split())

    return start


def test_what_was_clean_is_not_looked_at_again(lint):
    assert lint("-I.") == (0, "", ["one.c", "two.c"])
    assert lint("-I.") == (0, "", [])
    pathlib.Path("two.c").write_text("two, and more\n")
    assert lint("-I.") == (0, "", ["two.c"])


def test_other_flags_or_settings_are_another_run(lint):
    lint("-I.")
    assert lint("-DNEW")[2] == ["one.c", "two.c"]
    pathlib.Path(".clang-tidy").write_text("Checks: none\n")
    assert lint("-I.")[2] == ["one.c", "two.c"]


def test_what_was_wrong_is_told_each_time(lint):
    pathlib.Path("two.c").write_text("wrong\n")
    assert lint() == (1, "two.c:wrong\n", ["one.c", "two.c"])
    assert lint() == (1, "two.c:wrong\n", ["two.c"])
