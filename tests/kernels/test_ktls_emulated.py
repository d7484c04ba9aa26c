"""The tests of ktls on a kernel that has it, where this machine's has not: Debian 13's, emulated."""

import os
import platform
import re
import subprocess
import sys

import pytest

HERE = os.path.dirname(os.path.abspath(__file__))
RUN = os.path.join(HERE, "run")
UNIT = os.path.join(HERE, "..", "..", "build", "debug", "unit", "test_sink")  # the runner wants one
SECONDS = 900  # at most; it takes one and a half minutes

pytestmark = [
    pytest.mark.once,
    pytest.mark.plain("each server there has TLS by its own configuration"),
    pytest.mark.skipif(platform.machine() != "x86_64", reason="the kernels are for x86_64"),
    pytest.mark.skipif(os.geteuid() != 0, reason="not root: it may not read all of this machine"),
    pytest.mark.needs("qemu-system-x86_64", "busybox", "cpio", "mkfs.ext4")]


def test_ktls():
    done = subprocess.run(
        [sys.executable, RUN, "--kernel", "6.12", "--paths", "tests/http/test_ktls.py",
         "--seconds", str(SECONDS), UNIT],
        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False)
    text = done.stdout.decode(errors="replace")
    print(text)
    passed, failed = re.search(r"^kernel 6\.12: (\d+) passed, (\d+) failed", text, re.M).groups()
    assert int(passed) > 16 and int(failed) == 0 and done.returncode == 0
