"""tests/lint_programs: a test that calls what its set does not install is found, wherever the call is."""

import os
import subprocess
import sys

import pytest

import harness
import programs

pytestmark = pytest.mark.once
LINT = os.path.join(harness.TREE, "tests/lint_programs")


def lint(tree, **files):
    """Returns what is said of a tree with tests/FOLDER/NAME.py for each FOLDER__NAME."""
    for name, text in files.items():
        path = tree / "tests" / (name.replace("__", "/") + ".py")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("import subprocess\nimport pytest\n" + text)
    done = subprocess.run([sys.executable, LINT, tree], capture_output=True, text=True, check=False, timeout=harness.PATIENCE)
    assert done.returncode == (1 if done.stderr else 0)
    return done.stderr


CALLS = [
    'def test_a():\n    subprocess.run(["zsh", "-c", "true"])\n',
    'def test_a(tmp_path):\n    subprocess.Popen(["zsh"] + [tmp_path])\n',
    'ZSH = ["zsh", "-f"]\ndef test_a():\n    subprocess.run([*ZSH, "x"])\n',
    'def shell(*words):\n    subprocess.run(words)\nclass Case:\n    def run(self):\n        shell("zsh")\n'
    'def test_a():\n    Case().run()\n',
    '@pytest.fixture\ndef shell():\n    return "zsh"\ndef test_a(shell):\n    pass\n',
    '@pytest.mark.parametrize("shell", ["bash", "zsh"])\ndef test_a(shell):\n    pass\n',
]


@pytest.mark.parametrize("text", CALLS)
def test_a_call_needs_the_marker(tmp_path, text):
    assert "test_x.py: test_a: `make check` does not install zsh" in lint(tmp_path, http__test_x=text)
    marked = text.replace("def test_a", '@pytest.mark.needs("zsh")\ndef test_a')
    assert lint(tmp_path, http__test_x=marked) == ""
    assert lint(tmp_path, http__test_x='pytestmark = [pytest.mark.needs("zsh")]\n' + text) == ""


def test_a_helper_is_followed(tmp_path):
    helper = 'def shell():\n    subprocess.run(["zsh"])\ndef other():\n    pass\n'
    for call in ("import shells\ndef test_a():\n    shells.shell()\n", "from shells import shell\ndef test_a():\n    shell()\n"):
        assert "zsh (test_a > shell)" in lint(tmp_path, http__shells=helper, http__test_x=call)
    assert lint(tmp_path, http__shells=helper, http__test_x="import shells\ndef test_a():\n    shells.other()\n") == ""


def test_a_fixture_of_conftest_is_followed(tmp_path):
    fixture = '@pytest.fixture\ndef shell():\n    subprocess.run(["zsh"])\n'
    said = lint(tmp_path, conftest=fixture, http__test_x="def test_a(shell):\n    pass\n")
    assert "zsh (test_a > shell)" in said


def test_only_make_test_installs_more(tmp_path):
    assert lint(tmp_path, lib__test_x='def test_a():\n    subprocess.run(["zsh"])\n') == ""
    assert "`make test` does not install chromium" in lint(tmp_path, lib__test_x='def test_a():\n    subprocess.run(["chromium"])\n')


def test_unknown_programs_and_modules_are_found(tmp_path):
    said = lint(tmp_path, lib__test_x='import numpy\ndef test_a():\n    subprocess.run(["frobnicate", "x"])\n')
    assert "does not install frobnicate" in said and "does not install numpy" in said
    marked = '@pytest.mark.needs("frobnicate")\ndef test_a():\n    subprocess.run(["frobnicate"])\n'
    assert "needs(frobnicate): conf/install-deps.sh does not know it" in lint(tmp_path, lib__test_x=marked)


def test_the_table_has_programs_and_modules():
    table = programs.table()
    assert table["zsh"] == {"test"} and table["cc"] == {"build"} and table["h2"] == {"check", "soak"}
    assert "curl" in programs.installed_by(programs.CHECK) and "zsh" not in programs.installed_by(programs.CHECK)
