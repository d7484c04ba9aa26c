"""What a program that links libpagewise sees of it: the functions of pagewise.h."""

import os
import re
import subprocess

import pytest

import harness

HEADER = os.path.join(harness.TREE, "lib/pagewise.h")


def exported(name, *options):
    path = os.path.join(harness.TREE, "build", name)
    done = subprocess.run(["nm", "--defined-only", "-g", *options, path], capture_output=True,
                          text=True, check=True)
    words = [line.split() for line in done.stdout.splitlines()]
    return {w[2].partition("@")[0] for w in words if len(w) == 3 and w[1] != "A"}


@pytest.mark.once
@pytest.mark.parametrize("name, options", [("libpagewise.a", []), ("libpagewise.so", ["-D"])])
def test_library_exports_what_the_header_declares_and_nothing_else(name, options):
    with open(HEADER, encoding="utf-8") as f:
        text = re.sub(r"/\*.*?\*/", "", f.read(), flags=re.S)
    declared = set(re.findall(r"\b(pw_[a-z_]+)(?=\(|\[\];)", text))
    assert exported(name, *options) == declared
