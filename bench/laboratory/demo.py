"""demo: the storm in 20 seconds, nginx and pagewise one after the other, a line of each.

The disk is a file system of its own in a file (a loop device), limited for each server by a
control group.  So what the machine's disk can do, and what else uses it, makes no difference.
It is mounted where no other program sees it; its image has no name while it is used.
"""

import ctypes
import math
import os
import shutil
import subprocess
import sys
import tempfile
import time
import types

from laboratory import data, servers
from laboratory import host as machine
from laboratory.bench import MIB, Bench
from laboratory.limits import Limits
from laboratory.tables import usec
from laboratory.undo import Undo, catch_signals

CLONE_NEWNS = 0x20000
CALM = 0.3  # of the time, before the storm
CLIENTS = 48  # that read cold files
HOT, HOT_SIZE, CONNECTIONS = "hot", 16 << 10, 8
RATE = 200  # requests a second for the hot file
TIMEOUT = 2  # seconds that are waited for the last of them
COLUMNS = 50
BLOCKS, PLAIN = "▁▂▃▄▅▆▇█", ".:-=+*%#"
NEEDS = ("probe", "replay")
PLACE, SPACE = "/var/tmp", 1024 * MIB


def level(us):
    """0 is below a millisecond, then two steps for each power of ten."""
    return min(len(BLOCKS) - 1, max(0, 1 + math.floor(2 * math.log10(max(us, 1) / 1000))))


def columns(points, count=COLUMNS):
    """The longest of each part of about the same length; fewer parts if there are fewer points."""
    count = min(count, len(points))
    edges = [i * len(points) // count for i in range(count + 1)]
    return [max(points[a:b]) for a, b in zip(edges, edges[1:])]


def sparkline(points, marks):
    return "".join(marks[level(us)] for us in columns(points))


def marks_of(stream):
    try:
        BLOCKS.encode(stream.encoding or "ascii")
    except UnicodeEncodeError:
        return PLAIN
    return BLOCKS


def line(name, result, marks):
    longest = usec(result["latency_us"]["max"])
    return f"{name:9}{sparkline(result['timeline']['max_us'], marks)}  longest wait {longest}"


def missing():
    """What it needs and is not here, a sentence each."""
    if os.geteuid() != 0:
        return ["root, for a loop device and a control group: make demo calls sudo"]
    lacks = [f"{tool}: conf/install-deps.sh demo" for tool in ("mkfs.ext4", "mount")
             if not machine.tool(tool)]
    lacks += [f"{name}: make bench-tools" for name in NEEDS if not machine.tool(name)]
    if shutil.disk_usage(PLACE).free < SPACE:
        lacks.append(f"{SPACE // MIB} MiB of disk space in {PLACE}")
    if not os.path.exists("/dev/loop-control"):
        lacks.append("loop devices: /dev/loop-control is not there (modprobe loop)")
    return lacks


def candidates():
    """nginx as its manual recommends, and our default path."""
    chosen = [servers.peers()[0], servers.paths()[0]]
    for cand in chosen:
        if why := cand.unusable():
            raise RuntimeError(f"{cand.title}: {why}")
    return chosen


def command(*argv):
    done = subprocess.run(argv, check=False, timeout=120, text=True, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT)
    if done.returncode:
        raise RuntimeError(f"{argv[0]}: {done.stdout.strip()}")


def hide_mounts():
    """From all but this process and its children; the kernel undoes them with the last of these."""
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.unshare(CLONE_NEWNS) == -1:
        raise RuntimeError(f"no mount namespace: {os.strerror(ctypes.get_errno())}")
    command("mount", "--make-rprivate", "/")


def disk(undo, files):
    """Where these files are, on a disk of their own."""
    place = undo.enter_context(tempfile.TemporaryDirectory(prefix="pagewise-demo-", dir=PLACE))
    image, mounted = f"{place}/image", f"{place}/disk"
    os.chmod(place, 0o755)
    os.mkdir(mounted)
    with open(image, "wb") as f:
        f.truncate(sum(size for _, size in files) * 5 // 4 + data.SPARE + 64 * MIB)
    command("mkfs.ext4", "-q", "-F", "-m", "0", "-O", "^has_journal", image)
    command("mount", "-o", "loop,noatime", image, mounted)
    undo.callback(command, "umount", "--lazy", mounted)
    os.unlink(image)
    os.chmod(mounted, 0o755)
    data.make(mounted, files)
    return mounted


def cold(seconds, limit):
    """Names: more than the disk can bring in that time."""
    return [f"cold/{i:04d}" for i in range(2 * CLIENTS + int(limit * seconds) + 1)]


def storm(bench, cand, seconds, limit, names):
    """What the probe found."""
    bench.forget(*names)
    with bench.serve(cand, Limits(read_bps=limit * MIB)) as server:
        server.warm(f"/{HOT}", bench.content(HOT))
        probe = bench.probe(server, f"/{HOT}", rate=RATE, connections=CONNECTIONS, seconds=seconds,
                            timeout=TIMEOUT)
        time.sleep(seconds * CALM)
        bench.replay(server, [f"/{name}" for name in names], connections=CLIENTS)
        return probe.result()


def say(text, end="\n"):
    print(text, end=end, flush=True)


def run(seconds=10, limit=20):
    """seconds: of each server; limit: MiB/s of the disk."""
    if lacks := missing():
        raise RuntimeError("\n".join(f"demo needs {lack}" for lack in lacks))
    catch_signals()
    os.umask(0o022)
    chosen, names, marks = candidates(), cold(seconds, limit), marks_of(sys.stdout)
    hide_mounts()
    with Undo() as undo:
        files = [(HOT, HOT_SIZE), *((name, MIB) for name in names)]
        say(f"Making {len(names)} files of 1 MiB on a disk of its own, limited to {limit} MiB/s ...")
        host = machine.Host(disk(undo, files), one_core=len(os.sched_getaffinity(0)) < 2)
        if "limits" in host.lacks:
            raise RuntimeError(f"demo needs control groups: {host.lacks['limits']}")
        undo.enter_context(data.locked(host.data, host.root))
        host.own_network()
        host.set_readahead(undo)
        os.sched_setaffinity(0, {host.load_core})
        scratch = undo.enter_context(tempfile.TemporaryDirectory(prefix="lab-"))
        say(f"Longest wait for a cached file; after {seconds * CALM:.0f} of {seconds} s, {CLIENTS} clients "
            f"read uncached files.\n{marks[0]} is below 1 ms, {marks[-1]} above 1 s.\n")
        for cand in chosen:
            name = "pagewise" if cand.ours else cand.name
            if sys.stdout.isatty():
                say(f"{name:9}{seconds} s ...", end="")
            bench = Bench(host, types.SimpleNamespace(), 1, 1, scratch)
            result = storm(bench, cand, seconds, limit, names)
            say(("\r\033[K" if sys.stdout.isatty() else "") + line(name, result, marks))
