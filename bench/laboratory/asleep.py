"""How long a server's event loop sleeps anywhere but where it waits for events.

Every few milliseconds /proc/PID/task/TID/syscall says in which system call a thread
sleeps, or that it runs or could run.  A sleep is counted from one look to the next, so what
is shorter than a period is seen by chance only, and as a period: together it adds up right.
The kernel's stack at each of these looks is counted, too, where it may be read.  Linux.
"""

import collections
import contextlib
import glob
import os
import re
import threading
import time

from laboratory.limits import read

PERIOD = 0.005
# <asm/unistd.h>.  The calls in which a loop may sleep, and the names of those in which
# servers of files sleep.
EVENTS = {
    "x86_64": {7, 23, 232, 270, 271, 281, 441},  # poll select epoll_wait pselect6 ppoll ...
    "aarch64": {22, 72, 73, 441},
}
NAMES = {
    "x86_64": {0: "read", 1: "write", 2: "open", 3: "close", 4: "stat", 5: "fstat", 6: "lstat",
               17: "pread", 20: "writev", 40: "sendfile", 44: "sendto", 46: "sendmsg",
               202: "futex", 257: "openat", 262: "newfstatat", 275: "splice", 295: "preadv",
               327: "preadv2", 332: "statx", 426: "io_uring_enter", 437: "openat2",
               451: "cachestat", 209: "io_submit", 208: "io_getevents", 187: "readahead",
               221: "fadvise", 27: "mincore", 149: "mlock"},
    "aarch64": {56: "openat", 57: "close", 63: "read", 64: "write", 66: "writev", 67: "pread",
                69: "preadv", 71: "sendfile", 76: "splice", 79: "newfstatat", 80: "fstat",
                98: "futex", 206: "sendto", 211: "sendmsg", 286: "preadv2", 291: "statx",
                426: "io_uring_enter", 437: "openat2", 451: "cachestat"},
}
MACHINE = os.uname().machine
FAULT = "page fault"


def call(text, machine=MACHINE):
    """Of the file syscall: the name of the call in which the thread sleeps, or None: it
    runs, or waits for events."""
    number = text.split(" ", 1)[0].strip()
    if not re.fullmatch(r"-?\d+", number):
        return None
    if int(number) in EVENTS.get(machine, ()):
        return None
    return FAULT if number == "-1" else NAMES.get(machine, {}).get(int(number), f"call {number}")


def chain(text):
    """Of the file stack: the functions, the innermost first, without what all calls have."""
    functions = re.findall(r"\] (\w+)\+", text)
    return " < ".join(f for f in functions if not f.startswith(("do_syscall", "entry_SYSCALL")))


def threads(pids, loop):
    """Directories of the threads that run an event loop.  loop: what their names begin
    with; "": the first thread of each process that runs the same program as the first one,
    and has no children among these that do; None: the server has no such threads."""
    if loop is None:
        return []
    if loop:
        names = [path for pid in pids for path in glob.glob(f"/proc/{pid}/task/*/comm")]
        return [os.path.dirname(path) for path in names if known(path).startswith(loop)]
    parents = {pid: parent(pid) for pid in pids}
    programs = {program(pid) for pid in pids if parents[pid] not in parents}
    same = [pid for pid in pids if program(pid) in programs]
    above = {parents[pid] for pid in same}
    return [f"/proc/{pid}/task/{pid}" for pid in same if pid not in above]


def program(pid):
    """Its file; "": it has ended."""
    try:
        return os.readlink(f"/proc/{pid}/exe")
    except OSError:
        return ""


def parent(pid):
    fields = known(f"/proc/{pid}/stat").rsplit(")", 1)[-1].split()
    return int(fields[1]) if fields else None


def known(path):
    """The file's text; "" if the thread has ended."""
    try:
        return read(path)
    except OSError:
        return ""


def waited(path):
    """Seconds that a thread has waited for a CPU so far.  The kernel adds a wait when it ends, so
    that even a long one is added within one period."""
    return int(read(f"{path}/schedstat").split()[1]) / 1e9


class Thread:
    """One that is watched.  waited: seconds in which it could have run, but had no CPU."""

    def __init__(self, path):
        self.waited = self.first = waited(path)
        self.longest_wait = 0.0
        self.path, self.fd = path, os.open(f"{path}/syscall", os.O_RDONLY)
        self.calls, self.stacks = collections.Counter(), collections.Counter()
        self.now = self.longest = 0.0

    def look(self, seconds):
        """seconds: since the last look."""
        before, self.waited = self.waited, waited(self.path)
        self.longest_wait = max(self.longest_wait, self.waited - before)
        found = call(os.pread(self.fd, 200, 0).decode())
        if not found:
            self.now = 0.0
            return
        self.calls[found] += seconds
        self.now += seconds
        self.longest = max(self.longest, self.now)
        self.stacks[chain(known(f"{self.path}/stack"))] += 1


class Watch(threading.Thread):
    """`with Watch(threads(...)) as w:`, then w.result()."""

    def __init__(self, paths, period=PERIOD):
        super().__init__(daemon=True)
        self.period, self.ended = period, threading.Event()
        self.seen, self.looks = [], 0
        for path in paths:
            with contextlib.suppress(OSError):  # it has ended, or may not be asked
                self.seen.append(Thread(path))

    def __enter__(self):
        if self.seen:
            self.start()
        return self

    def __exit__(self, *exc):
        self.ended.set()
        if self.seen:
            self.join()
        for one in self.seen:
            os.close(one.fd)

    def run(self):
        last = time.monotonic()
        while not self.ended.wait(self.period):
            now = time.monotonic()
            for one in self.seen:
                with contextlib.suppress(OSError):  # it has ended
                    one.look(now - last)
            last, self.looks = now, self.looks + 1

    def result(self):
        """Seconds asleep, of all loops together; the longest sleep; by calls; stacks; seconds without
        a CPU, and the most between two looks.  None: this host does not tell."""
        if not self.seen:
            return None
        calls, stacks = collections.Counter(), collections.Counter()
        for one in self.seen:
            calls.update(one.calls)
            stacks.update(one.stacks)
        return {"seconds": sum(calls.values()), "longest": max(t.longest for t in self.seen),
                "waited": sum(t.waited - t.first for t in self.seen),
                "longest_wait": max(t.longest_wait for t in self.seen),
                "looks": self.looks, "loops": len(self.seen), "calls": dict(calls),
                "stacks": dict(stacks.most_common(8))}
