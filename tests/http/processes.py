"""Processes of a server: its children, and the limit of descriptors that they inherit."""

import contextlib
import os
import resource
import subprocess

PROC = os.path.exists("/proc/self/task")  # Linux


def children(pid):
    if not PROC:
        found = subprocess.run(["pgrep", "-P", str(pid)], stdout=subprocess.PIPE, check=False)
        return [int(n) for n in found.stdout.split()]
    with open("/proc/%d/task/%d/children" % (pid, pid)) as f:
        return [int(n) for n in f.read().split()]


def descendants(pid):
    """The process itself comes first, so that it starts no more."""
    result = [pid]
    for child in children(pid):
        result += descendants(child)
    return result


def is_dead(pid):
    """It has closed its files: all of its threads have ended, even if nobody has waited for it."""
    try:
        if not PROC:
            os.kill(pid, 0)
            return False
        with open("/proc/%d/stat" % pid) as f:
            state = f.read().rsplit(")", 1)[1].split()[0]
        return state in "ZX" and len(os.listdir("/proc/%d/task" % pid)) <= 1
    except (FileNotFoundError, ProcessLookupError):
        return True


def start_time(pid):
    if not PROC:
        return -int(subprocess.check_output(["ps", "-o", "etimes=", "-p", str(pid)])), pid
    try:
        with open("/proc/%d/stat" % pid) as f:
            return int(f.read().rsplit(")", 1)[1].split()[19]), pid
    except OSError:
        return 0, pid  # it has just ended


@contextlib.contextmanager
def descriptors(count):
    """The limit for processes that are started here.  A preexec_fn would copy this process for each
    of them instead of vfork(2): many milliseconds."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(hard, count), hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def stopped(server):
    """By SIGSTOP: all of its threads."""
    where = "/proc/%d/task" % server.pid
    states = []
    for thread in os.listdir(where):
        with open(os.path.join(where, thread, "stat")) as stat:
            states.append(stat.read().rsplit(")", 1)[1].split()[0])
    return set(states) == {"T"}
