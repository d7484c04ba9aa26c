"""Several disks, each with a limit of its own: loop devices with ext4, on images that are kept.

The images are beside the other data, and are made once.  Direct I/O keeps their contents out of
the page cache, so that only the file systems on them use it.
"""

import contextlib
import os
import shutil
import subprocess

from laboratory import data
from laboratory import host as machine
from laboratory.limits import read, write
from laboratory.undo import Undo

PATIENCE = 600   # seconds, for sync of what was made
SPARE, LEAST = 1.1, 64 << 20  # bytes of an image for each of its files, and besides
MKFS = ("mkfs.ext4", "-q", "-F", "-O", "^has_journal", "-m", "0", "-E",
        "lazy_itable_init=0,nodiscard")


def run(*argv):
    return subprocess.run(argv, timeout=PATIENCE, check=True, text=True,
                          stdout=subprocess.PIPE).stdout.strip()


def spread(files, count):
    """Deals the files out to the disks in turn.  Returns a list for each disk, of pairs of a name,
    with that of the disk in front, and a size."""
    return [[(f"disk{i}/{name}", size) for name, size in files[i::count]] for i in range(count)]


def paths(files, count):
    """Returns the names on all disks, in the order of the files."""
    return [f"disk{i % count}/{name}" for i, (name, _) in enumerate(files)]


class LoopDisk:
    """Attached and mounted at dir until undo ends.  number: of the device, as in Disk."""

    def __init__(self, undo, image, path, files):
        self.image, self.dir, self.files = image, path, files
        new = not os.path.exists(image)
        if new:
            self.make()
        os.makedirs(path, exist_ok=True)
        loop = run("losetup", "--find", "--show", "--direct-io=on", f"{image}.part" if new else image)
        undo.callback(run, "losetup", "--detach", loop)
        if new:
            run(*MKFS, "-N", str(len(files) + 1024), loop)
        run("mount", "-o", "noatime", loop, path)
        undo.callback(run, "umount", path)
        if new:
            self.fill()
        self.name = os.path.basename(loop)
        self.number = read(f"/sys/block/{self.name}/dev").strip()
        # mkfs.ext4 has the kernel compute read_ahead_kb anew.
        write(f"/sys/block/{self.name}/queue/read_ahead_kb", str(machine.READAHEAD))

    def make(self):
        size = int(sum(size for _, size in self.files) * SPARE) + LEAST
        with open(f"{self.image}.part", "wb") as f:
            f.truncate(-(-size // 4096) * 4096)

    def fill(self):
        for name, size in self.files:
            full = os.path.join(os.path.dirname(self.dir), name)
            os.makedirs(os.path.dirname(full), exist_ok=True)
            data.fill(full, size)
        run("sync", "--file-system", self.dir)
        os.rename(f"{self.image}.part", self.image)


@contextlib.contextmanager
def mounted(where, name, files, count):
    """Mounts `count` LoopDisks below a directory, with the files in turn.  Yields the directory and
    the disks.  where: of the data; name: of the images, which tells one set of files from another."""
    base = f"{where}/disks-{count}-{name}"
    parts = spread(files, count)
    missing = [part for i, part in enumerate(parts) if not os.path.exists(f"{base}/{i}.image")]
    if not os.access("/dev/loop-control", os.R_OK | os.W_OK):
        raise RuntimeError("loop devices are not available")
    for i in range(count):
        if os.path.ismount(path := f"{base}/mounted/disk{i}"):
            raise RuntimeError(f"{path} is mounted, by a run that was killed: unmount it")
    need = int(sum(size for part in missing for _, size in part) * SPARE) + data.SPARE
    os.makedirs(f"{base}/mounted", exist_ok=True)
    if missing and shutil.disk_usage(base).free < need:
        raise RuntimeError(f"{base}: {need >> 20} MiB are needed; --data names another directory")
    with Undo() as undo:
        yield f"{base}/mounted", [
            LoopDisk(undo, f"{base}/{i}.image", f"{base}/mounted/disk{i}", part)
            for i, part in enumerate(parts)]
