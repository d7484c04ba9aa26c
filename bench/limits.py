"""limits: a disk and a page cache of a known size for one server.

Throttles the whole disk below a directory and bounds memory with cgroups, v1 or v2,
and reads their counters.  Everything is undone by the Undo that it was given.
"""

import contextlib
import os
import re
import signal
import subprocess
import time

CGROUP = "/sys/fs/cgroup"
SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class Undo(contextlib.ExitStack):
    """An ExitStack that a signal cannot interrupt while it cleans up."""

    def __exit__(self, *exc):
        mask = signal.pthread_sigmask(signal.SIG_BLOCK, SIGNALS)
        try:
            return super().__exit__(*exc)
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, mask)


def read(path):
    with open(path) as f:
        return f.read()


def write(path, text):
    with open(path, "w") as f:
        f.write(text)


class Disk:
    """The whole disk below a directory: throttles do not take partitions."""

    def __init__(self, path):
        found = subprocess.run(["findmnt", "-no", "SOURCE,FSTYPE", "-T", path],
                               timeout=10, text=True, stdout=subprocess.PIPE)
        source, self.fstype = (found.stdout.split() + ["", ""])[:2]
        source = source.split("[")[0]  # btrfs: /dev/x[/subvolume]
        if not os.path.exists(source):
            raise RuntimeError(f"{path}: {self.fstype} has no disk to throttle")
        dev = os.stat(source).st_rdev
        node = os.path.realpath(f"/sys/dev/block/{os.major(dev)}:{os.minor(dev)}")
        if os.path.exists(f"{node}/partition"):
            node = os.path.dirname(node)
        self.name = os.path.basename(node)
        self.number = read(f"{node}/dev").strip()
        self.readahead = f"{node}/queue/read_ahead_kb"


class Cgroups:
    """The server's limits and counters, in either version of the interface."""

    def __init__(self, undo, disk, limit, memory):
        self.disk = disk.number
        self.v2 = os.path.exists(f"{CGROUP}/cgroup.controllers")
        name = f"pagewise-storm-{os.getpid()}"
        if self.v2:
            self.enable(undo)
        self.dirs = {c: f"{CGROUP}/{'' if self.v2 else c}/{name}"
                     for c in ("memory", "blkio", "cpuacct")}
        undo.callback(self.remove)
        for path in self.dirs.values():
            os.makedirs(path, exist_ok=True)
        if self.v2:
            self.set("memory", "memory.max", memory)
            self.set("blkio", "io.max", f"{self.disk} rbps={limit}")
        else:
            self.set("memory", "memory.limit_in_bytes", memory)
            self.set("blkio", "blkio.throttle.read_bps_device",
                     f"{self.disk} {limit}")

    @staticmethod
    def enable(undo):
        control = f"{CGROUP}/cgroup.subtree_control"
        for name in {"memory", "io"} - set(read(control).split()):
            undo.callback(write, control, f"-{name}")
            write(control, f"+{name}")

    def set(self, controller, name, value):
        write(f"{self.dirs[controller]}/{name}", str(value))

    def get(self, controller, name):
        return read(f"{self.dirs[controller]}/{name}")

    def join(self):
        for path in self.dirs.values():
            write(f"{path}/cgroup.procs", "0")

    def sample(self):
        """Seconds, bytes read from the disk, seconds of CPU: all counting up."""
        if self.v2:
            stat, usage = self.get("blkio", "io.stat"), self.get("cpuacct", "cpu.stat")
            got = re.search(rf"^{self.disk} .*\brbytes=(\d+)", stat, re.M)
            cpu = int(re.search(r"usage_usec (\d+)", usage).group(1)) / 1e6
        else:
            stat = self.get("blkio", "blkio.throttle.io_service_bytes")
            got = re.search(rf"^{self.disk} Read (\d+)", stat, re.M)
            cpu = int(self.get("cpuacct", "cpuacct.usage")) / 1e9
        return time.monotonic(), int(got.group(1)) if got else 0, cpu

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

    def kill(self, child):
        """Ends what is in the cgroups (only the server is) and reaps the child."""
        deadline = time.monotonic() + 20
        while time.monotonic() < deadline:
            pids = self.get("memory", "cgroup.procs").split()
            if not pids and (child is None or child.poll() is not None):
                return
            for pid in map(int, pids):
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
            time.sleep(0.05)
        raise RuntimeError(f"processes do not end: {pids}")
