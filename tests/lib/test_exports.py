"""What a program that links libpagewise sees of it: the functions of pagewise.h."""

import os
import pathlib
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


@pytest.mark.once
@pytest.mark.parametrize("name", ["pagewise", "pagewise-tool", "libpagewise.so"])
def test_no_wait_ends_by_the_clock_that_can_be_set(name):
    """Such waits have variants by CLOCK_MONOTONIC; conditions have clock_cond_init."""
    done = subprocess.run(["nm", "-D", "--undefined-only", os.path.join(harness.TREE, "build", name)],
                          capture_output=True, text=True, check=True)
    wanted = {line.split()[-1].partition("@")[0] for line in done.stdout.splitlines()}
    assert "pthread_cond_timedwait" in wanted
    assert not wanted & {"sem_timedwait", "pthread_mutex_timedlock", "pthread_rwlock_timedrdlock",
                         "pthread_rwlock_timedwrlock", "mq_timedreceive", "mq_timedsend"}


def test_conditions_with_a_deadline_use_the_clock_that_cannot_be_set():
    """pthread_cond_timedwait reads the clock with which its condition was set up."""
    for path in pathlib.Path(harness.TREE).glob("*/**/*.c"):
        if path.relative_to(harness.TREE).parts[0] in ("lib", "server"):
            text = path.read_text(encoding="utf-8")
            waited = set(re.findall(r"pthread_cond_timedwait\(\s*&(?:\w+->)?(\w+)", text))
            assert waited <= set(re.findall(r"clock_cond_init\(&(?:\w+->)?(\w+)", text)), path
