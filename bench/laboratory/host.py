"""The machine: cores, disk, what this user may do here, and what a report must say.

Everything that is changed (read-ahead of the disk) is restored by the Undo given.
"""

import contextlib
import ctypes
import fcntl
import mmap
import os
import pwd
import re
import shutil
import socket
import struct
import subprocess
import sys
import time

from laboratory import source
from laboratory.limits import Cgroups, Limits, Session, number, read, write
from laboratory.undo import Undo

READAHEAD = 128  # KiB, the kernel's default
# Smallest free blocks, as a power of two of pages, that a virtual machine gives back to its host.
REPORTING = "/sys/module/page_reporting/parameters/page_reporting_order"
CONGESTION = "/proc/sys/net/ipv4/tcp_congestion_control"
CLONE_NEWNET, SIOCSIFFLAGS, IFF_UP = 0x40000000, 0x8914, 1
# RFS: the table of flows is the machine's, and only its first network namespace has the file; the
# queues are those of an interface, and only a sysfs mounted in its namespace shows them.
FLOW_TABLE = "/proc/sys/net/core/rps_sock_flow_entries"
FLOWS = 32768
STEER = """mount -t sysfs lab /sys && cd /sys/class/net/lo/queues/rx-0 &&
echo "$1" >rps_flow_cnt && echo "$2" >rps_cpus &&
echo "$(cat rps_flow_cnt), rps_cpus $(cat rps_cpus)"
"""
TOUCHED = 128 << 20  # bytes, where nothing limits memory
SBIN = ("/usr/local/sbin", "/usr/sbin", "/sbin")
TREE = source.TREE
TOOLS = os.path.join(TREE, "build", "bench")
SLOWFS = os.path.join(TREE, "build", "tests", "slowfs")
SPINDLE = os.path.join(TREE, "build", "tests", "spindle")
TOOLS_OF_OURS = ("probe", "slow", "replay", "idle", "handshake", "h2storm", "resets",
                 "limit")
os.environ["PATH"] = os.pathsep.join([os.environ.get("PATH", os.defpath), *SBIN])
programs = {}  # name -> path: that of --peer-binary, in place of the installed one


class Disk:
    """The whole disk below a directory: throttles do not take partitions."""

    def __init__(self, path):
        found = subprocess.run(["findmnt", "-no", "SOURCE,FSTYPE", "-T", path], check=False,
                               timeout=10, text=True, stdout=subprocess.PIPE)
        source, self.fstype = (found.stdout.split() + ["", ""])[:2]
        source = source.split("[")[0]  # btrfs: /dev/x[/subvolume]
        if not os.path.exists(source):
            raise RuntimeError(f"{path} is on {self.fstype or 'an unknown file system'}, "
                               "which has no disk of its own")
        dev = os.stat(source).st_rdev
        node = os.path.realpath(f"/sys/dev/block/{os.major(dev)}:{os.minor(dev)}")
        if os.path.exists(f"{node}/partition"):
            node = os.path.dirname(node)
        self.name = os.path.basename(node)
        self.number = read(f"{node}/dev").strip()
        self.queue = f"{node}/queue"
        self.readahead = f"{self.queue}/read_ahead_kb"


def default_data():
    if os.geteuid() == 0:
        return "/var/cache/pagewise-lab"
    cache = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    return os.path.join(cache, "pagewise-lab")


def existing(path):
    """The directory, or the nearest one above it that is there."""
    while not os.path.isdir(path):
        path = os.path.dirname(path)
    return path


def tool(name):
    """A load generator of ours, or a program of the system; None: not there."""
    if name in programs:
        return programs[name]
    own = os.path.join(TOOLS, name)
    return own if os.access(own, os.X_OK) else shutil.which(name)


def mask(*cores):
    """Of these, as sysfs reads it: groups of 32 bits."""
    return re.sub(r"(?<=.)(?=(.{8})+$)", ",", f"{sum(1 << core for core in set(cores)):x}")


class Host:
    """lacks maps what a scenario can need to why it is not to be had here.  one_core: the
    server and the generators share one; then only ratios mean anything."""

    def __init__(self, data, one_core=False):
        self.data = os.path.realpath(data)
        self.root = os.geteuid() == 0
        cores = sorted(os.sched_getaffinity(0))
        if one_core:
            cores = cores[:1] * 2
        if len(cores) < 2:
            raise RuntimeError("one core only: server and generators need one each; "
                               "--one-core lets them share it")
        self.server_core, self.load_core = cores[:2]
        self.one_core = one_core
        self.user = "nobody" if self.root else None
        self.lacks = {}
        try:
            self.disk = Disk(existing(self.data))
        except RuntimeError as why:
            self.disk = None
            self.lacks["disk"] = str(why)
        self.find_out()
        self.readahead = read(self.disk.readahead).strip() if self.disk else "?"
        self.readahead_used = self.readahead
        self.freed = ""     # what becomes of freed memory; "": nothing is done about it
        self.flows = None   # the file FLOW_TABLE, open
        self.steered = "not set"

    def find_out(self):
        for name, cure in (("wrk", "conf/install-deps.sh bench"),
                           ("fio", "conf/install-deps.sh bench"),
                           ("h2load", "conf/install-deps.sh bench"),
                           *((name, "make bench-tools") for name in TOOLS_OF_OURS)):
            if not tool(name):
                self.lacks[name] = f"{name} is not there: {cure}"
        if not os.access("/dev/fuse", os.R_OK | os.W_OK):
            self.lacks["fuse"] = "FUSE is not available: /dev/fuse"
        elif not os.access(SLOWFS, os.X_OK):
            self.lacks["fuse"] = "slowfs is not there: make build/tests/slowfs"
        if not all(os.access(path, os.R_OK | os.W_OK) for path in ("/dev/fuse", "/dev/loop-control")):
            self.lacks["spindle"] = "FUSE or loop devices are not available"
        elif not os.access(SPINDLE, os.X_OK):
            self.lacks["spindle"] = "spindle is not there: make build/tests/spindle"
        if not self.root:
            self.lacks["root"] = "not root"
            self.lacks["limits"] = "not root: no control groups"
        elif not self.disk:
            self.lacks["limits"] = self.lacks["disk"]
        else:
            try:
                with Undo() as undo:
                    Cgroups(undo, [self.disk], Limits(1 << 40, 1 << 20, 1 << 40))
            except (OSError, RuntimeError) as why:
                self.lacks["limits"] = f"control groups cannot be used: {why}"

    def missing(self, needs):
        return [self.lacks[need] for need in needs if need in self.lacks]

    def counters(self, undo, limits, disks=()):
        """Where a server runs: limited and counted as well as this host can.  disks: those that
        it reads, in place of the data's."""
        if self.root and "limits" not in self.lacks:
            return Cgroups(undo, disks or [self.disk], limits)
        if limits.any():
            raise RuntimeError(self.lacks["limits"])
        return Session(self.disk)

    def set_readahead(self, undo, size=READAHEAD):
        """For the time of the run; the page cache is read with so many KiB at most.  Read
        anew: another laboratory may have had it changed before this one's turn."""
        if self.root and self.disk:
            self.readahead = read(self.disk.readahead).strip()
            undo.callback(write, self.disk.readahead, self.readahead)
            write(self.disk.readahead, str(size))
            self.readahead_used = str(size)

    def keep_freed_memory(self, undo):
        """For the time of the run, as set_readahead: where the kernel permits it, nothing is given
        back to a virtual machine's host, and Bench touches what a server may use."""
        self.freed = "touched before each measurement"
        if not os.path.exists(REPORTING):
            self.freed += " and kept (no page reporting)"
            return
        before = now = read(REPORTING).strip()
        for largest in ("11", "10"):  # above the largest block, or as near as the kernel permits
            with contextlib.suppress(OSError):
                write(REPORTING, largest)
                undo.callback(write, REPORTING, before)
                now = largest
                break
        order = f"page_reporting_order {now}, before the run {before}"
        self.freed += f" and kept ({order})" if int(now) >= 10 else f", but may be given back ({order})"

    def touch(self, size):
        """Has the host provide so much memory, or half of what is available, which is free again
        afterwards; see keep_freed_memory."""
        if self.freed:
            size = min(size, number(r"^MemAvailable: +(\d+)", read("/proc/meminfo")) << 9)
            with contextlib.closing(mmap.mmap(-1, size, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)) as pages:
                with contextlib.suppress(OSError):  # a kernel without huge pages
                    pages.madvise(mmap.MADV_HUGEPAGE)
                for at in range(0, size, mmap.PAGESIZE):
                    pages[at] = 1

    def check_readahead(self):
        """Somebody else may set it meanwhile: then a measurement is void."""
        now = read(self.disk.readahead).strip() if self.disk else self.readahead_used
        if now != self.readahead_used:
            raise RuntimeError(f"read_ahead_kb of {self.disk.name} was set to {now} "
                               "meanwhile, not by this laboratory")

    def own_network(self, congestion=None):
        """Nobody else's traffic is counted, and nobody's filters are passed.  To be
        called before a thread is started; ends with this process.  congestion: the
        control of its sockets; None: the machine's."""
        why = "not root" if not self.root else self.leave_network()
        if why:
            self.lacks["network"] = (f"{why}: no network of its own and no RFS: bytes sent are those of "
                                     "the loopback interface of the whole machine, and CPU time of a "
                                     "server lacks the segments that its clients' core sends")
            return
        with socket.socket() as s:
            fcntl.ioctl(s, SIOCSIFFLAGS, struct.pack("16sh14x", b"lo", IFF_UP))
        if congestion:
            try:
                write(CONGESTION, congestion)
            except OSError as why:
                raise RuntimeError(f"congestion control {congestion}: {why.strerror}: "
                                   "sysctl net.ipv4.tcp_allowed_congestion_control names those "
                                   "that can be used") from None

    def leave_network(self):
        """For one that is new; why not, or None."""
        if self.flows is None:
            with contextlib.suppress(OSError):
                self.flows = os.open(FLOW_TABLE, os.O_RDWR)
        libc = ctypes.CDLL(None, use_errno=True)
        return os.strerror(ctypes.get_errno()) if libc.unshare(CLONE_NEWNET) == -1 else None

    def share_flows(self, undo):
        """For the time of the run, as set_readahead: the table of RFS, which is the whole machine's."""
        if self.flows is not None:
            before = os.pread(self.flows, 20, 0)
            undo.callback(os.pwrite, self.flows, before, 0)
            os.pwrite(self.flows, str(max(FLOWS, int(before))).encode(), 0)

    def steer(self, wanted=True):
        """RFS on the loopback interface: a socket's segments are received on the core of the thread
        that reads from it.  Else the core of the client, on which its acknowledgements are
        received, sends for the server what waited for a window.  Returns why it is not set."""
        if not wanted or "network" in self.lacks:
            self.steered = f"not set ({self.lacks['network'].partition(':')[0] if wanted else 'not wanted'})"
            return None
        done = subprocess.run(["unshare", "--mount", "sh", "-c", STEER, "sh", str(FLOWS),
                               mask(self.server_core, self.load_core)], timeout=10,
                              check=False, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        table = os.pread(self.flows, 20, 0).decode().strip() if self.flows is not None else "none"
        if done.returncode or table in ("0", "none"):
            self.steered = f"not set (table of flows: {table}; lo: {' '.join(done.stdout.split())})"
            return f"RFS {self.steered}"
        self.steered = f"rps_sock_flow_entries {table}, lo: rps_flow_cnt {done.stdout.strip()}"
        return None

    def forget_all(self):
        """Takes everything out of memory that the disk has: names, programs, too."""
        subprocess.run(["sync"], check=True, timeout=300)
        write("/proc/sys/vm/drop_caches", "3")

    def forget(self, paths):
        """Takes the contents of these files out of the page cache, nothing else."""
        subprocess.run(["sync"], check=True, timeout=300)
        for path in paths:
            fd = os.open(path, os.O_RDONLY)
            os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_DONTNEED)
            os.close(fd)

    @staticmethod
    def give(paths, user):
        """To a user, None: to this one."""
        uid = pwd.getpwnam(user).pw_uid if user else os.getuid()
        for path in paths:
            os.chown(path, uid, -1)

    def describe(self):
        """For the report: pairs of what and its value."""
        cpu = re.search(r"^model name\s*: (.*)", read("/proc/cpuinfo"), re.M)
        memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / (1 << 30)
        return {
            "date": time.strftime("%Y-%m-%d %H:%M %Z"),
            "commit": source.commit() or "not known: no repository",
            "kernel": " ".join(os.uname()[i] for i in (0, 2, 4)),
            "CPU": f"{os.cpu_count()} × {cpu.group(1) if cpu else '?'}",
            "memory": f"{memory:.0f} GiB",
            "disk": self.describe_disk(),
            "control groups": self.lacks.get("limits") or (
                "v2" if os.path.exists("/sys/fs/cgroup/cgroup.controllers") else "v1"),
            "TCP": read(CONGESTION).strip(),
            "RFS": self.steered,
            "freed memory": self.freed or "not touched, and the machine may give it back",
            "cores": f"server {self.server_core}, generators {self.load_core}",
            "servers run as": self.user or "the user who ran this",
            **{name: version(tool(name)) for name in ("wrk", "fio") if tool(name)},
            **({"h2load": version(tool("h2load"), "--version")} if tool("h2load") else {}),
            "Python": sys.version.split()[0],
        }

    def describe_disk(self):
        if not self.disk:
            return self.lacks["disk"]
        scheduler = read(f"{self.disk.queue}/scheduler")
        chosen = re.search(r"\[(.*?)\]", scheduler)
        return (f"{self.disk.name} ({self.disk.number}), {self.disk.fstype}, scheduler "
                f"{chosen.group(1) if chosen else scheduler.strip()}, read_ahead_kb "
                f"{self.readahead_used} (before the run {self.readahead})")


def output(*argv):
    return subprocess.run(argv, timeout=10, check=False, text=True, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT).stdout


def version(program, option="-v"):
    found = re.search(r"\d+(\.\d+)+", output(program, option))
    return found.group() if found else "?"
