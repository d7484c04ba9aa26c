"""A disk with a head: tests/fault/spindle, in FUSE, a loop device and ext4 on it."""

import contextlib
import os
import subprocess
import tempfile
import time

from laboratory import host as machine
from laboratory.limits import read, write
from laboratory.undo import Undo, spawn

PATIENCE = 60  # seconds
# As Linux has them for a disk that rotates.
QUEUE = {"rotational": "1", "scheduler": "mq-deadline", "read_ahead_kb": str(machine.READAHEAD)}
PIECE = bytes(4 << 20)


def run(*argv):
    return subprocess.run(argv, timeout=PATIENCE, check=True, text=True,
                          stdout=subprocess.PIPE).stdout.strip()


class Spindle:
    """dir is where its file system is mounted."""

    def __init__(self, base, to):
        self.image, self.fuse, self.dir = f"{base}/image", f"{base}/fuse", to
        for path in (base, self.fuse, self.dir):
            os.makedirs(path, exist_ok=True)

    def start(self, undo, size):
        with open(self.image, "wb") as f:
            f.truncate(size)
        undo.callback(self.unmount, self.fuse)
        child = spawn(undo, [machine.SPINDLE, self.image, self.fuse], stderr=subprocess.PIPE,
                      text=True)
        deadline = time.monotonic() + PATIENCE
        while not os.path.ismount(self.fuse):
            if child.poll() is not None or time.monotonic() > deadline:
                child.kill()
                raise RuntimeError(f"spindle was not mounted: {child.stderr.read().strip()}")
            time.sleep(0.02)
        loop = run("losetup", "--find", "--show", "--direct-io=on", f"{self.fuse}/disk")
        undo.callback(run, "losetup", "--detach", loop)
        run("mkfs.ext4", "-q", "-O", "^has_journal", "-E", "lazy_itable_init=0,nodiscard", loop)
        undo.callback(self.unmount, self.dir)
        run("mount", loop, self.dir)
        # mkfs.ext4 has the kernel compute read_ahead_kb anew.
        for name, value in QUEUE.items():
            write(f"/sys/block/{os.path.basename(loop)}/queue/{name}", value)
        self.readahead = f"/sys/block/{os.path.basename(loop)}/queue/read_ahead_kb"

    def check(self):
        """A measurement is void if the kernel reads ahead by more."""
        if read(self.readahead).strip() != QUEUE["read_ahead_kb"]:
            raise RuntimeError(f"{self.readahead} is {read(self.readahead).strip()}")

    @staticmethod
    def unmount(path):
        if os.path.ismount(path):
            subprocess.run(["umount", "-l", path], timeout=PATIENCE, check=True)

    def fill(self, files):
        """With zeros, which take no memory."""
        for name, size in files:
            os.makedirs(os.path.dirname(f"{self.dir}/{name}"), exist_ok=True)
            with open(f"{self.dir}/{name}", "wb") as f:
                for at in range(0, size, len(PIECE)):
                    f.write(PIECE[:size - at])
        run("sync", "--file-system", self.dir)

    def head(self):
        """The counters of the head since the start, microseconds and numbers."""
        with open(f"{self.fuse}/head", encoding="ascii") as f:
            return {name: float(n) for name, n in map(str.split, f)}


class Spindles:
    """dir has a directory for each disk: h0, h1, ..."""

    def __init__(self, base, heads):
        self.dir = f"{base}/disk"
        self.disks = [Spindle(f"{base}/{i}", f"{self.dir}/h{i}") for i in range(heads)]

    def start(self, undo, size):
        for disk in self.disks:
            disk.start(undo, size)

    def check(self):
        for disk in self.disks:
            disk.check()

    def fill(self, files):
        files = list(files)
        for i, disk in enumerate(self.disks):
            disk.fill((name.partition("/")[2], size) for name, size in files
                      if name.startswith(f"h{i}/"))

    def head(self):
        """The sums of all heads."""
        each = [disk.head() for disk in self.disks]
        return {name: sum(one[name] for one in each) for name in each[0]}


@contextlib.contextmanager
def mounted(where, size, files, heads=1):
    """A Spindle, or several, of this size with these files, pairs of a name and a size.  where: a
    directory that the server's user can enter."""
    with Undo() as undo:
        base = undo.enter_context(tempfile.TemporaryDirectory(prefix="spindle-", dir=where))
        os.chmod(base, 0o755)
        disk = Spindle(base, f"{base}/disk") if heads == 1 else Spindles(base, heads)
        disk.start(undo, size)
        disk.fill(files)
        yield disk
