"""Loop-mounted file systems, to be remounted so that nothing of them is in
memory.  Root only; whoever makes one unmounts it in a finally."""

import contextlib
import ctypes
import errno
import mmap
import os
import shutil
import socket
import subprocess
import tempfile
import time

import pytest

MKFS = {
    "ext4": ["mkfs.ext4", "-q", "-F"],
    "xfs": ["mkfs.xfs", "-q", "-f"],
    "btrfs": ["mkfs.btrfs", "-q", "-f"],
}
NEEDS = {
    "ext4": pytest.mark.needs("mkfs.ext4"),
    "xfs": pytest.mark.needs("mkfs.xfs"),
    "btrfs": pytest.mark.needs("mkfs.btrfs"),
}
PATH = os.environ.get("PATH", "") + ":/usr/sbin:/sbin"
KINDS = [*MKFS, "overlay", "tmpfs"]


CACHESTAT = 451  # the same on every architecture


def has_cachestat():
    """Of a descriptor that is none only a kernel without the call says that there is none."""
    libc = ctypes.CDLL(None, use_errno=True)
    libc.syscall(CACHESTAT, -1, None, None, 0)
    return ctypes.get_errno() != errno.ENOSYS


def why_not(kind):
    """Why it cannot be mounted here, or None."""
    if kind == "tmpfs":
        return None if os.path.isdir("/dev/shm") else "there is no /dev/shm"
    if os.geteuid() != 0:
        return "only root can mount"
    with open("/proc/filesystems") as f:
        if kind not in f.read().split():
            return "the kernel has no " + kind
    return None


def needs(kind):
    """Returns the marks of a test that mounts this kind."""
    return [NEEDS[base_of(kind)]] if base_of(kind) in NEEDS else []


def params(kinds):
    """A module's parameters: each kind is made once."""
    return [pytest.param(kind, marks=[pytest.mark.xdist_group(kind), *needs(kind)]) for kind in kinds]


BUSY = 20  # s that a mount may stay busy without anybody's fault


def base_of(kind):
    return "ext4" if kind == "overlay" else kind


def run(*command):
    env = dict(os.environ, PATH=PATH)
    done = subprocess.run(command, capture_output=True, env=env, check=False)
    assert done.returncode == 0, "%s: %s" % (command, done.stderr.decode())
    return done.stdout.decode()


def unmount(path):
    """The kernel may give up the files of a process that has ended a little later: the last
    read of one that was killed in the middle of it ends with the disk."""
    until = time.monotonic() + BUSY
    while True:
        try:
            return run("umount", path)
        except AssertionError as e:
            if "target is busy" not in str(e) or time.monotonic() > until:
                raise
            time.sleep(0.05)


class Mount:
    """dir is what is served; everybody may read it."""

    def __init__(self, kind, base, size=400 << 20, options=()):
        self.kind = kind
        self.base = base
        self.mounted = []
        self.image = os.path.join(base, "image")
        self.disk = os.path.join(base, "disk")
        self.dir = self.disk
        if kind == "tmpfs":
            self.disk = self.dir = os.path.join("/dev/shm", os.path.basename(base))
        os.mkdir(self.disk)
        os.chmod(self.disk, 0o755)
        if kind == "overlay":
            self.dir = os.path.join(base, "merged")
            os.mkdir(self.dir)
        if kind != "tmpfs":
            with open(self.image, "wb") as f:
                f.truncate(size)
            run(*MKFS[base_of(kind)], *options, self.image)
            self.mount_disk()
            os.chmod(self.disk, 0o755)

    @property
    def files(self):
        """Where files are to be created."""
        path = os.path.join(self.disk, "lower") if self.kind == "overlay" else self.disk
        os.makedirs(path, exist_ok=True)
        return path

    def mount_disk(self):
        run("mount", "-o", "loop", self.image, self.disk)
        self.mounted.append(self.disk)

    def cold(self):
        """Unmounts and mounts: no name, inode or page is left in memory."""
        if self.kind == "tmpfs":
            return
        self.unmount()
        end = time.monotonic() + LET_GO
        while (kept := is_mounted_elsewhere(self.disk)) and time.monotonic() < end:
            time.sleep(0.1)
        self.mount_disk()
        if self.kind == "overlay":
            parts = {p: os.path.join(self.disk, p) for p in ("lower", "upper", "work")}
            for path in parts.values():
                os.makedirs(path, exist_ok=True)
            options = "lowerdir=%(lower)s,upperdir=%(upper)s,workdir=%(work)s" % parts
            run("mount", "-t", "overlay", "-o", options, "overlay", self.dir)
            self.mounted.append(self.dir)
        if kept:
            self.forget_pages()

    def forget_pages(self):
        """Another test's namespace keeps the file system, so its pages are put out of memory one by one."""
        for where, _, names in os.walk(self.dir):
            for name in names:
                path = os.path.join(where, name)
                if os.path.isfile(path) and not os.path.islink(path):
                    forget(path)

    def unmount(self):
        while self.mounted:
            unmount(self.mounted[-1])
            self.mounted.pop()

    def remove(self):
        try:
            self.unmount()
        except AssertionError:
            # Somebody still uses it: at least nobody can find it any more.
            while self.mounted:
                run("umount", "-l", self.mounted.pop())
            raise
        finally:
            if self.kind == "tmpfs":
                shutil.rmtree(self.dir, ignore_errors=True)


LET_GO = 30  # s


def is_mounted_elsewhere(path):
    """In another mount namespace, a copy of all mounts: it keeps the file system with its pages."""
    for pid in filter(str.isdigit, os.listdir("/proc")):
        with contextlib.suppress(OSError), open("/proc/%s/mountinfo" % pid, encoding="utf-8") as f:
            if " %s " % path in f.read():
                return True
    return False


@contextlib.contextmanager
def made(kind, *more):
    """A Mount that is gone afterwards; the test is skipped where there is none.  more: of Mount()."""
    reason = why_not(kind)
    if reason:
        pytest.skip(reason)
    base = tempfile.mkdtemp(prefix="pagewise-mount-")
    os.chmod(base, 0o755)
    mount = None
    try:
        mount = Mount(kind, base, *more)
        yield mount
    finally:
        if mount:
            mount.remove()
        shutil.rmtree(base, ignore_errors=True)


@contextlib.contextmanager
def full(files):
    """An ext4 of 8 MiB with these files, {name: bytes}, and no room for anything more.  An
    attribute takes a block of it, since the inodes have no place for any."""
    with made("ext4", 8 << 20, ["-I", "128", "-m", "0"]) as mount:
        for name, data in files.items():
            with open(os.path.join(mount.dir, name), "wb") as f:
                f.write(data)
        with contextlib.suppress(OSError), open(os.path.join(mount.dir, "rest"), "wb", buffering=0) as f:
            while True:
                f.write(bytes(1024))
        os.sync()
        yield mount.dir


@contextlib.contextmanager
def mapped(path, offset=0, size=None):
    """The C library, the address of the file's bytes, and how many there are."""
    libc = ctypes.CDLL(None, use_errno=True)
    libc.mmap.restype = ctypes.c_void_p
    libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t] + [ctypes.c_int] * 3 + [ctypes.c_long]
    for function in (libc.munmap, libc.mlock):
        function.argtypes = [ctypes.c_void_p, ctypes.c_size_t]
    libc.mincore.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_char_p]
    size = size or os.path.getsize(path) - offset
    fd = os.open(path, os.O_RDONLY)
    try:
        address = libc.mmap(None, size, mmap.PROT_READ, mmap.MAP_SHARED, fd, offset)
    finally:
        os.close(fd)
    try:
        yield libc, address, size
    finally:
        libc.munmap(address, size)


@contextlib.contextmanager
def locked(path):
    """The file's pages are in memory, and stay: a host may page out what it likes,
    and what looks idle."""
    with mapped(path) as (libc, address, size):
        if libc.mlock(address, size) != 0:
            raise OSError(ctypes.get_errno(), "mlock", path)
        yield


def resident(path):
    """How many pages of a file of ours are in memory.

    By mincore, because RWF_NOWAIT has a side effect: it starts to read.
    """
    with mapped(path) as (libc, address, size):
        pages = ctypes.create_string_buffer(-(-size // mmap.PAGESIZE))
        assert libc.mincore(address, size, pages) == 0
        return sum(b & 1 for b in pages.raw)


HOLDS = 0.1  # s that a server does not ask again: RESIDENT_HOLDS_QUIET of lib/file/residency.h


def forget(path):
    """Puts the file's pages out of memory; its name and inode stay."""
    fd = os.open(path, os.O_RDONLY)
    try:
        os.fsync(fd)
        os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_DONTNEED)
    finally:
        os.close(fd)


def drop(path):
    """As forget(), and no server believes afterwards that it has the pages."""
    forget(path)
    time.sleep(HOLDS + 0.02)


def let_go_of_packets():
    """A packet that was freed on another processor than it was made on keeps its
    pages until that one has to do with the network again."""
    mine = os.sched_getaffinity(0)
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as s:
        s.bind(("127.0.0.1", 0))
        for cpu in mine:
            os.sched_setaffinity(0, {cpu})
            s.sendto(b"x", s.getsockname())
    os.sched_setaffinity(0, mine)


def evict(path):
    """As drop(), and True if nothing is left in memory: a page may be in use for a moment."""
    let_go_of_packets()
    drop(path)
    return resident(path) == 0
