"""An ordinary file system on a disk that hangs: ext4 on a loop device whose file
is in slowfs.  Unlike FUSE's own files, its files can be asked about."""

import contextlib
import fcntl
import os
import pathlib
import shutil
import struct

import pytest

import mounts
import tree as t

SIZE = 5 * t.MIB + 5
LATE = 3 * t.MIB  # in a file's second window, and not next to the first
HOT = 70001
MANY = 6


FIBMAP = 1  # linux/fs.h


def block(f, number):
    return struct.unpack("i", fcntl.ioctl(f, FIBMAP, struct.pack("i", number)))[0]


class Disk:
    """dir is what is served; names and inodes are in memory at first, hot.bin always.

    cold-N.bin and hot.bin hold content(N, SIZE) and content(9, HOT).
    """

    def __init__(self, slow, image, base):
        self.slow = slow
        self.dir = os.path.join(base, "disk")
        self.image = os.path.join(slow.dir, "image")
        self.hot = contextlib.ExitStack()
        os.mkdir(self.dir)
        shutil.copy(image, os.path.join(slow.source, "image"))

    def mount(self):
        mounts.run("mount", "-o", "loop,ro", self.image, self.dir)
        for n in range(MANY):
            with open(self.path(n), "rb", buffering=0) as f:
                f.read(1)
        self.hot.enter_context(mounts.locked(os.path.join(self.dir, "hot.bin")))
        return self

    def path(self, n):
        return os.path.join(self.dir, "cold-%d.bin" % n)

    def cold(self, *numbers):
        """Their data leaves memory; names, inodes and block maps stay, and so
        does what lies in a socket."""
        for n in numbers:
            mounts.drop(self.path(n))
        mounts.drop(self.image)

    def read_ahead(self, kib):
        """Below 2048, the server reads large folios."""
        device = os.stat(self.dir).st_dev
        number = "%d:%d" % (os.major(device), os.minor(device))
        with open("/sys/dev/block/%s/queue/read_ahead_kb" % number, "w", encoding="ascii") as f:
            f.write(str(kib))

    def place(self, n, offset):
        """Where the rest of a file lies in the image: offset and length."""
        with open(self.path(n), "rb") as f:
            size = os.fstatvfs(f.fileno()).f_bsize
            first, last = (block(f, at // size) for at in (offset, SIZE - 1))
        assert (last - first) == (SIZE - 1) // size - offset // size, "not in one piece"
        return first * size, SIZE - offset

    def hang(self, n=None, offset=0):
        """All reads, or those of a file's rest."""
        self.slow.hang("read", "image", *([] if n is None else self.place(n, offset)))

    def fail(self, error, n, offset=0):
        self.slow.fail("read", error, "image", *self.place(n, offset))

    def state(self, server):
        """What waits where, for a test that got nothing: the disk, the files, the server's threads, its connections."""
        lines = ["slowfs holds %d reads" % self.slow.held("read")]
        for n in range(MANY):
            lines.append("cold-%d.bin: %d pages in memory" % (n, mounts.resident(self.path(n))))
        for task in sorted(pathlib.Path("/proc/%d/task" % server.pid).iterdir()):
            with contextlib.suppress(OSError):
                lines.append(" ".join((task / name).read_text().strip() for name in ("comm", "wchan", "syscall")))
                lines.append((task / "stack").read_text())
        lines.append(mounts.run("ss", "-tnmio", "sport", "= :%d" % server.address[1]))
        return "\n".join(lines)

    @contextlib.contextmanager
    def explained(self, server):
        try:
            yield
        except TimeoutError as late:
            raise AssertionError("timed out\n" + self.state(server)) from late

    def remove(self):
        self.hot.close()
        if os.path.ismount(self.dir):
            try:
                mounts.unmount(self.dir)
            except AssertionError:
                mounts.run("umount", "-l", self.dir)
                raise


def make_image(base, cold, hot):
    """An ext4 of base/files with hot.bin and the files cold-N.bin, whose contents are cold(N)."""
    reason = mounts.why_not("ext4")
    if reason:
        pytest.skip(reason)
    files = base / "files"
    files.mkdir()
    for n in range(MANY):
        t.write(files / ("cold-%d.bin" % n), cold(n))
    t.write(files / "hot.bin", hot)
    image = base / "image"
    with open(image, "wb") as f:
        f.truncate(64 * t.MIB)
    mounts.run("mkfs.ext4", "-q", "-F", "-b", "4096", "-d", str(files), str(image))
    shutil.rmtree(files)
    return image


@pytest.fixture(scope="session")
def disk_image(tmp_path_factory):
    return make_image(tmp_path_factory.mktemp("image"), lambda n: t.content(n, SIZE),
                      t.content(9, HOT))


@pytest.fixture
def disk(slow, disk_image, tmp_path):
    base = tmp_path / "hung"
    base.mkdir()
    made = Disk(slow, disk_image, str(base))
    try:
        yield made.mount()
    finally:
        slow.release()
        made.remove()
