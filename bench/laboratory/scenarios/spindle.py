"""spindle: streams, downloads and small files on a disk that rotates."""

import contextlib
import signal
import time

from laboratory import spindle
from laboratory.bench import GIB, MIB
from laboratory.limits import Limits
from laboratory.scenarios import listed
from laboratory.stats import ratio
from laboratory.tables import Column, Table, count, share, usec

TITLE = "Spindle: streams, downloads and small files on one rotating disk"
WHAT = """The files are on the model of a 7200 rpm disk (tests/fault/spindle): one head, 8.5 ms of
seek and 4.2 ms of rotation on average, 190 MB/s, a queue of 32 requests; ext4 on a loop device,
mq-deadline. Streams of 5 Mbit/s each read a file of their own; a stream is starved if it gets less
than half of its rate in any five seconds. Then many clients download files as fast as they can,
while small files are requested at a fixed rate; each file is read at most once."""
NEEDS = ("slow", "probe", "limits", "spindle")
# streams: a list; lead: seconds until the downloads are steady
FULL = {"rounds": 3, "streams": "40,80,120,160,200", "rate": 625_000, "seconds": 25, "ramp": 5.0,
        "downloads": 64, "lead": 3.0, "probe_rate": 20, "probe_seconds": 10, "probe_timeout": 5,
        "files": 320, "mib": 32, "small": 1600, "disk_gib": 16, "memory_mib": 4096}
QUICK = {"rounds": 1, "streams": "40,160", "seconds": 15, "probe_seconds": 5, "files": 160,
         "mib": 16, "small": 400, "disk_gib": 4}
CANDIDATES = QUICK_CANDIDATES = ("nodiskio", "nginx-threads", "nginx-threads-64")
SMALL, DIRECTORIES, FILL = 16 << 10, 16, 350e6  # FILL: bytes per second, about
FAST = 250_000_000  # bytes per second: of a client that downloads, as much as there is
RCVBUF = 4 << 20  # of a client that downloads: slow reads ten times a second
TAIL = 2  # seconds
NOTES = [
    "The model has no cache of its own: what follows on the platter takes no seek.",
    "The streams and the downloads count from their first request, with the time until their "
    "buffers are full.",
    "The names and inodes of the files are cached; their contents are not.",
]


def check(s):
    if any(n > s.files for n in listed(s.streams, int)):
        raise ValueError("more streams than files")


def large(s):
    return [f"l{i % DIRECTORIES:02d}/{i:04d}" for i in range(s.files)]


def small(s):
    return [f"s{i % DIRECTORIES:02d}/{i:04d}" for i in range(s.small)]


def made(s):
    """In the order of the disk: small files are between the large ones."""
    names, each = small(s), -(-s.small // s.files)
    for i, name in enumerate(large(s)):
        yield name, s.mib * MIB
        yield from ((other, SMALL) for other in names[i * each:(i + 1) * each])


def files(s):
    """None in the directory of data: see made."""
    del s
    return []


def seconds(s):
    return (len(listed(s.streams)) * (s.seconds + 1) + s.lead + s.probe_seconds + TAIL +
            s.files * s.mib * MIB / FILL)


class Moved:
    """What the head does in a block: per second, and by seek."""

    def __init__(self, disk):
        self.disk = disk

    def __enter__(self):
        self.before, self.since = self.disk.head(), time.monotonic()
        return self

    def __exit__(self, *exc):
        took, seconds = self.disk.head(), time.monotonic() - self.since
        moved = {name: n - self.before[name] for name, n in took.items()}
        self.values = {"rate": moved["bytes"] / seconds, "busy": moved["busy"] / 1e6 / seconds,
                       "per_seek": ratio(moved["bytes"], moved["seeks"])}


def measure(bench, cand):
    s = bench.settings
    with spindle.mounted(bench.data, s.disk_gib * GIB, made(s)) as disk:
        found = {"streams": {str(n): stream(bench, cand, disk, n)
                             for n in listed(s.streams, int)},
                 "downloads": download(bench, cand, disk)}
        disk.check()
        return found


@contextlib.contextmanager
def serve(bench, cand, disk):
    """With one small file in memory."""
    s = bench.settings
    bench.host.forget([f"{disk.dir}/{name}" for name in (*large(s), *small(s))])
    with bench.serve(cand, Limits(memory=s.memory_mib * MIB), root=disk.dir) as server:
        server.warm(f"/{small(s)[0]}", bytes(SMALL), times=1)
        yield server


def paths(bench, names):
    return [f"/{name}" for name in bench.shuffled(names)]


def stream(bench, cand, disk, n):
    s = bench.settings
    with serve(bench, cand, disk) as server:
        with Moved(disk) as moved:
            result = bench.slow(server, urls=paths(bench, large(s)), clients=n, rate=s.rate,
                                seconds=s.seconds,
                                more=("--ramp", s.ramp, "--in-order")).result()
    if result["errors"]:
        raise RuntimeError(f"slow: errors {result['errors']}")
    return {"starved": result["starved"], **moved.values}


def download(bench, cand, disk):
    s = bench.settings
    with serve(bench, cand, disk) as server:
        others = bench.slow(server, urls=paths(bench, large(s)), clients=s.downloads, rate=FAST,
                            seconds=s.lead + s.probe_seconds + TAIL,
                            more=("--in-order", "--rcvbuf", RCVBUF))
        time.sleep(s.lead)
        with Moved(disk) as moved:
            probe = bench.probe(server, urls=paths(bench, small(s)[1:]), rate=s.probe_rate,
                                connections=s.downloads, seconds=s.probe_seconds,
                                timeout=s.probe_timeout).result()
        others.child.send_signal(signal.SIGINT)
        others.result()
    if set(probe["statuses"]) - {"200"}:
        raise RuntimeError(f"probe: answers {probe['statuses']}")
    return {"latency_us": probe["latency_us"], **moved.values}


# ------------------------------------------------------------------ report


def head_columns(part):
    return [
        Column("disk, MB/s", "{:.0f}".format, lambda v: part(v)["rate"] / 1e6, "more"),
        Column("head busy", share, lambda v: part(v)["busy"]),
        Column("KiB per seek", count, lambda v: part(v)["per_seek"] / 1024, "more"),
    ]


def streams_table(n):
    def part(v):
        return v["streams"][n]
    return Table(f"{n} streams of 5 Mbit/s", [
        Column("starved", "{:.0f}".format, lambda v: part(v)["starved"], "less"), *head_columns(part)])


def tables(view):
    s = view.settings
    return [*map(streams_table, listed(s["streams"])),
            Table(f"{s['downloads']} downloads, and small files beside them", [
                *head_columns(lambda v: v["downloads"]),
                *(Column(f"small files, {key}", usec,
                         lambda v, key=key: v["downloads"]["latency_us"][key], "less")
                  for key in ("p50", "p99", "max"))])]


def figures(view):
    from laboratory import plot
    figure, ax = plot.new(view)
    plot.bars(ax, view, [(f"{n}", lambda v, n=n: v["streams"][n]["starved"])
                         for n in listed(view.settings["streams"])], "{:.0f}".format)
    yield "Starved streams, by the number of streams", figure
