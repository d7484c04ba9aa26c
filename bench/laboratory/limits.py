"""A disk and a page cache of a known size for one server, and what it took.

Cgroups limits and counts with control groups, v1 or v2, and needs root.  Session
limits nothing and counts with /proc, for everybody else.  Both have

    child       the process that is counted, with its children; set by who starts it
    prefix()    what its command must begin with
    pids()      of its processes
    sample()    what was taken so far, see COUNTERS; all but cache only grow
    kill()      ends all of it, and reaps the child
"""

import contextlib
import dataclasses
import glob
import itertools
import os
import re
import signal
import sys
import time

CGROUP = "/sys/fs/cgroup"
CONFINE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "confine.py")
COUNTERS = {
    "t": "seconds of the monotonic clock",
    "cpu": "seconds of CPU time, user and system",
    "disk_bytes": "read from the disk",
    "disk_requests": "read requests, as the limit counts them",
    "cache": "bytes of the page cache, now",
}


@dataclasses.dataclass(frozen=True)
class Limits:
    """What a server may take; 0 is as much as there is."""
    read_bps: int = 0   # bytes a second from the disk
    read_iops: int = 0  # requests a second
    memory: int = 0     # bytes, page cache included

    def any(self):
        return bool(self.read_bps or self.read_iops or self.memory)


def read(path):
    with open(path, encoding="utf-8", errors="replace") as f:
        return f.read()


def write(path, text):
    with open(path, "w", encoding="utf-8") as f:
        f.write(text)


def number(pattern, text):
    """What the pattern found, or 0: a counter that was never touched is not listed."""
    found = re.search(pattern, text, re.M)
    return int(found.group(1)) if found else 0


def _end(child, pids):
    """Until none of them runs: a killed process takes a moment to die."""
    deadline = time.monotonic() + 20
    child.kill()  # it may not be among them yet
    while time.monotonic() < deadline:
        left = pids()
        if child.poll() is not None and not left:
            return
        for pid in left:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        time.sleep(0.05)
    raise RuntimeError(f"processes do not end: {left}")


class Cgroups:
    """disks: those that are limited, each by itself, and counted together."""

    def __init__(self, undo, disks, limits, label=""):
        self.disks = [disk.number for disk in disks if disk]
        self.child = None
        self.v2 = os.path.exists(f"{CGROUP}/cgroup.controllers")
        name = f"pagewise-lab-{os.getpid()}{label and '-'}{label}"
        if self.v2:
            self.enable(undo)
        self.dirs = {c: f"{CGROUP}/{'' if self.v2 else c}/{name}"
                     for c in ("memory", "blkio", "cpuacct")}
        undo.callback(self.remove)
        for path in self.dirs.values():
            os.makedirs(path, exist_ok=True)
        self.limit(limits)

    @staticmethod
    def enable(undo):
        control = f"{CGROUP}/cgroup.subtree_control"
        for name in {"memory", "io"} - set(read(control).split()):
            undo.callback(write, control, f"-{name}")
            write(control, f"+{name}")

    def limit(self, limits):
        memory, throttle = "memory.limit_in_bytes", "blkio.throttle.read_{}_device"
        kinds = {"bps": limits.read_bps, "iops": limits.read_iops}
        if limits.memory:
            self.set("memory", "memory.max" if self.v2 else memory, limits.memory)
        for disk, (kind, value) in itertools.product(self.disks, kinds.items()):
            if value and self.v2:
                self.set("blkio", "io.max", f"{disk} r{kind}={value}")
            elif value:
                self.set("blkio", throttle.format(kind), f"{disk} {value}")

    def set(self, controller, name, value):
        write(f"{self.dirs[controller]}/{name}", str(value))

    def get(self, controller, name):
        return read(f"{self.dirs[controller]}/{name}")

    def prefix(self):
        return [sys.executable, "-I", CONFINE, *{f"--cgroup={d}" for d in self.dirs.values()}]

    def sample(self):
        now = time.monotonic()
        if self.v2:
            stat = self.get("blkio", "io.stat")
            size, count = (self.total(rf"^{{}} .*\b{what}=(\d+)", stat) for what in ("rbytes", "rios"))
            cpu = number(r"usage_usec (\d+)", self.get("cpuacct", "cpu.stat")) / 1e6
            cache = number(r"^file (\d+)", self.get("memory", "memory.stat"))
        else:
            size, count = (self.total(r"^{} Read (\d+)", self.get("blkio", f"blkio.throttle.io_{what}"))
                           for what in ("service_bytes", "serviced"))
            cpu = int(self.get("cpuacct", "cpuacct.usage")) / 1e9
            cache = number(r"^cache (\d+)", self.get("memory", "memory.stat"))
        return {"t": now, "cpu": cpu, "disk_bytes": size, "disk_requests": count,
                "cache": cache}

    def total(self, pattern, text):
        """Returns the sum over the disks; the pattern has {} in place of a disk's number."""
        return sum(number(pattern.format(disk), text) for disk in self.disks)

    def pids(self):
        return [int(pid) for pid in self.get("memory", "cgroup.procs").split()]

    def remove(self):
        """A process on its way out keeps rmdir busy for a moment."""
        left, deadline = set(self.dirs.values()), time.monotonic() + 5
        while left := {path for path in left if os.path.isdir(path)}:
            for path in left:
                with contextlib.suppress(OSError):
                    os.rmdir(path)
            if time.monotonic() > deadline:
                raise RuntimeError(f"cannot remove {left}")
            time.sleep(0.05)

    def kill(self):
        _end(self.child, self.pids)


class Session:
    def __init__(self, disk):
        self.disk = disk.name if disk else "none"
        self.child = None

    def prefix(self):
        return [sys.executable, "-I", CONFINE]

    def pids(self):
        """The server and its own children: the session that it leads."""
        return list(self.found())

    def found(self):
        for path in glob.glob("/proc/[0-9]*/stat"):
            with contextlib.suppress(OSError):
                state, _, _, session = read(path).rsplit(")", 1)[1].split()[:4]
                if self.child and int(session) == self.child.pid and state not in "ZX":
                    yield int(path.split("/")[2])

    def sample(self):
        now, nsec = time.monotonic(), 0
        for pid in self.pids():
            for path in glob.glob(f"/proc/{pid}/task/*/schedstat"):
                with contextlib.suppress(OSError):
                    nsec += int(read(path).split()[0])
        line = re.search(rf"^.* {self.disk} (.*)", read("/proc/diskstats"), re.M)
        fields = line.group(1).split() if line else ["0"] * 3
        return {"t": now, "cpu": nsec / 1e9, "disk_bytes": int(fields[2]) * 512,
                "disk_requests": int(fields[0]),
                "cache": number(r"^Cached: +(\d+)", read("/proc/meminfo")) << 10}

    def kill(self):
        """The leader may be gone, but a session's number is not given away."""
        _end(self.child, self.pids)
