"""Control groups with a limit of memory."""

import contextlib
import os

import pytest

from harness import wait_until


def new(name, limit):
    """The directory of a new group with a limit of memory; None: this machine permits none."""
    for mount, file in (("/sys/fs/cgroup/memory", "memory.limit_in_bytes"), ("/sys/fs/cgroup", "memory.max")):
        path = "%s/%s" % (mount, name)
        try:
            os.mkdir(path)
        except OSError:
            continue
        try:
            with open("%s/%s" % (path, file), "w", encoding="ascii") as f:
                f.write(str(limit))
            return path
        except OSError:
            os.rmdir(path)
    return None


@contextlib.contextmanager
def limited(limit):
    """A group for the time of a test."""
    path = new("pagewise-test-%d" % os.getpid(), limit)
    if path is None:
        pytest.skip("no control group with a limit of memory can be made here")
    try:
        yield path
    finally:
        wait_until(lambda: open(path + "/cgroup.procs").read() == "", "the group to be empty")
        os.rmdir(path)


def inside(path):
    """A command that becomes its arguments, in the group."""
    return "sh", "-c", 'echo $$ >"$0/cgroup.procs" && exec "$@"', path
