"""What the tests of the laboratory share: its modules, and runs in miniature."""

import json
import os
import shutil
import subprocess
import sys

import pytest

TREE = os.path.abspath(os.path.join(os.path.dirname(__file__), "..", ".."))
LAB = os.path.join(TREE, "bench", "lab")
PATIENCE = 120
sys.path.insert(0, os.path.join(TREE, "bench"))

# Each setting as small as it can be and still mean something.
MINIATURE = {
    "storm": {"seconds": 1, "probe_seconds": 1, "probe_timeout": 1, "memory_mib": 16,
              "limit_mib": 20, "probe_rate": 100, "cold_connections": 4, "lead": 0.3,
              "pick": "ranges"},
    "hot": {"seconds": 1, "connections": 2, "cases": "pipelined,spread"},
    "cold": {"seconds": 1, "connections": 4, "files": 128, "bandwidth": 20,
             "iops": 40, "memory_mib": 32, "lead": 0},
    "download": {"mib": 64, "streams": "1,4", "memory_mib": 64},
    "herd": {"clients": 20, "file_mib": 1, "memory_mib": 32, "timeout": 10},
}


def miniature(*scenarios):
    return [word for name in scenarios for key, value in MINIATURE[name].items()
            for word in ("--set", f"{name}.{key}={value}")]


def start(*args, lab=LAB, **options):
    return subprocess.Popen([lab, *map(str, args)], text=True, stdin=subprocess.DEVNULL,
                            stdout=subprocess.PIPE, stderr=subprocess.PIPE, **options)


def run(*args, **options):
    child = start(*args, **options)
    out, err = child.communicate(timeout=PATIENCE)
    return child.returncode, out, err


def rounds(path):
    """(scenario, candidate) -> the files of its rounds, read."""
    found = {}
    for name in sorted(os.listdir(f"{path}/rounds")):
        with open(f"{path}/rounds/{name}", encoding="utf-8") as f:
            one = json.load(f)
        found.setdefault((one["scenario"], one["candidate"]), []).append(one)
    return found


def needs(*what):
    """Skips the test where the laboratory says that something is missing."""
    from laboratory import host
    try:
        lacks = host.Host(TREE).missing(what)
    except RuntimeError as why:
        lacks = [str(why)]
    if not shutil.which("wrk"):
        lacks.append("no wrk")
    if lacks:
        pytest.skip("; ".join(lacks))
