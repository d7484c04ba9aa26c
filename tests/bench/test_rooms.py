"""tests/rooms, which `make lint` runs: what it says of a tree that is not as it should be."""

import os
import shutil
import subprocess
import sys

import pytest

import harness

DESIGN = """# Design

## Rooms

| room | what is in it |
|---|---|
| `server/` | above |
| `lib/` | below |
%s
## Other things
"""

GOOD = {
    "server/a.c": '#include "lib/b.h"\nint a(void);\nint a(void) { return b(); }\n',
    "lib/b.h": "int b(void);\n",
    "lib/b.c": '#include "lib/b.h"\nint b(void) { return 1; }\n',
}


@pytest.fixture
def tree(tmp_path):
    def made(files, more=""):
        (tmp_path / "tests").mkdir()
        shutil.copy(os.path.join(harness.TREE, "tests/rooms"), tmp_path / "tests/rooms")
        (tmp_path / "docs").mkdir()
        (tmp_path / "docs/design.md").write_text(DESIGN % more)
        files = {**GOOD, **files}
        for name, text in files.items():
            path = tmp_path / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        for name in files:
            if name.endswith(".c"):
                made_of = tmp_path / "build" / name
                made_of.parent.mkdir(parents=True, exist_ok=True)
                subprocess.run(["cc", "-I.", "-c", "-o", made_of.with_suffix(".o"), name],
                               cwd=tmp_path, check=True)
        return subprocess.run([sys.executable, "tests/rooms", "build"], cwd=tmp_path,
                              capture_output=True, text=True, check=False)

    return made


def says(run, *lines):
    assert run.stderr.splitlines() == list(lines)
    assert run.returncode == (1 if lines else 0)


def test_tree_in_order_is_passed_in_silence(tree):
    says(tree({}))


def test_include_that_goes_up_is_reported(tree):
    says(tree({"lib/b.h": '#include "server/c.h"\n', "server/c.h": "int b(void);\n"}),
         "lib/b.h: includes server/c.h: up, from lib/ to server/")


def test_call_that_goes_up_is_reported(tree):
    says(tree({"lib/b.c": "int c(void);\nint b(void);\nint b(void) { return c(); }\n",
               "server/c.c": "int c(void);\nint c(void) { return 1; }\n"}),
         "lib/b.c: calls c: up, from lib/ to server/")


def test_listed_exception_is_not_reported(tree):
    says(tree({"lib/b.h": '#include "server/c.h"\n', "server/c.h": "int b(void);\n"},
              "\n- `lib/` uses `server/`\n"))


def test_headers_in_a_circle_are_reported(tree):
    says(tree({"lib/b.h": '#include "lib/c.h"\nint b(void);\n',
               "lib/c.h": '#ifndef C\n#define C\n#include "lib/b.h"\n#endif\n'}),
         "a circle of 2 files:",
         "    lib/b.h: includes lib/c.h (lib/c.h)",
         "    lib/c.h: includes lib/b.h (lib/b.h)")


def test_calls_in_a_circle_are_reported(tree):
    says(tree({"lib/b.c": "int c(void);\nint b(void);\nint b(void) { return c(); }\n",
               "lib/c.c": "int b(void);\nint c(void);\nint c(void) { return b(); }\n"}),
         "a circle of 2 files:",
         "    lib/b.c: calls c (lib/c.c)",
         "    lib/c.c: calls b (lib/b.c)")


def test_folder_that_is_no_room_is_reported(tree):
    says(tree({"lib/new/d.h": "int d(void);\n"}),
         "lib/new/d.h: its folder is not a room of docs/design.md")
