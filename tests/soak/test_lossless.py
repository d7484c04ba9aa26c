"""Signals under load in short; tests/http/test_traffic.py is about the clients."""

import os
import re
import subprocess
import sys

import pytest

from harness import PAGEWISE

LOSSLESS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "lossless.py")


@pytest.mark.once  # with each sanitizer: test_reload.py, test_upgrade.py, test_systemd.py
@pytest.mark.parametrize("options", [[], ["--tls"], ["--http2"]], ids=["plain", "tls", "http2"])
def test_a_short_run_loses_no_request(options):
    done = subprocess.run(
        [sys.executable, LOSSLESS, "--seconds", "2", "--every", "0.5", "--binary", PAGEWISE,
         *options],
        capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0 and done.stderr == "", done.stdout + done.stderr
    lines = re.findall(r"^(\w+), .*: (\d+) requests, .* (\d+) downloads across a signal, "
                       r"(\d+) signals, .* (\d+) failed$", done.stdout, re.M)
    assert [line[0] for line in lines] == ["SIGHUP", "SIGUSR2", "SIGTERM"], done.stdout
    for _, requests, downloads, signals, failed in lines:
        assert int(requests) > 20 and int(downloads) > 0 and int(signals) > 0 and failed == "0"
