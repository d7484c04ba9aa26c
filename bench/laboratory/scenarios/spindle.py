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
while small files are requested at a fixed rate; each file is read at most once.  There are as
many addresses as downloads, and small files are requested from all of them."""
NEEDS = ("slow", "probe", "limits", "spindle")
# streams: a list; lead: seconds until the downloads are steady; heads: disks, each with a directory of
# the root; crawl: connections of one more client, which requests ranges of crawl_kib of a file of
# crawl_gib, or as many small files as crawl_names, whose names are not cached, while the others download
FULL = {"rounds": 3, "streams": "40,80,120,160,200", "rate": 625_000, "seconds": 25, "ramp": 5.0,
        "downloads": 64, "lead": 3.0, "probe_rate": 20, "probe_seconds": 10, "probe_timeout": 5,
        "files": 320, "mib": 32, "small": 1600, "disk_gib": 16, "memory_mib": 4096,
        "heads": 1, "crawl": 0, "crawl_kib": 64, "crawl_gib": 2, "crawl_names": 0}
QUICK = {"rounds": 1, "streams": "40,160", "seconds": 15, "probe_seconds": 5, "files": 160,
         "mib": 16, "small": 400, "disk_gib": 4}
CANDIDATES = QUICK_CANDIDATES = ("nodiskio", "nginx-threads", "nginx-threads-64")
SMALL, DIRECTORIES, FILL = 16 << 10, 16, 350e6  # FILL: bytes per second, about
SIBLINGS = 8  # of crawl_names in one directory
FAST = 250_000_000  # bytes per second: of a client that downloads, as much as there is
RCVBUF = 4 << 20  # of a client that downloads: slow reads ten times a second
TAIL = 2  # seconds
OTHERS, CRAWLER = 2, 200  # the last number of their first address
NOTES = [
    "The model has no cache of its own: what follows on the platter takes no seek.",
    "The streams and the downloads count from their first request, with the time until their "
    "buffers are full.",
    "The names and inodes of the files are cached, but those of crawl_names are not; no contents are.",
]


def check(s):
    if any(n > s.files for n in listed(s.streams, int)):
        raise ValueError("more streams than files")
    if s.crawl_names and (s.heads > 1 or not s.crawl):
        raise ValueError("crawl_names needs crawl, and is for one head")
    if s.heads < 1 or s.downloads > CRAWLER - OTHERS:
        raise ValueError("no head, or more downloads than addresses")


def name(s, kind, i):
    head = f"h{i % s.heads}/" if s.heads > 1 else ""
    return f"{head}{kind}{i // s.heads % DIRECTORIES:02d}/{i:04d}"


def large(s):
    return [name(s, "l", i) for i in range(s.files)]


def small(s):
    return [name(s, "s", i) for i in range(s.small)]


def huge(s):
    return name(s, "huge", 0)


def has_huge(s):
    return s.crawl > 0 and s.crawl_names == 0


def crawled_names(s):
    return [f"c{i // SIBLINGS:05d}/{i:06d}" for i in range(s.crawl_names)]


def made(s):
    """In the order of the disk: small files are between the large ones."""
    names, each = small(s), -(-s.small // s.files)
    for i, first in enumerate(large(s)):
        yield first, s.mib * MIB
        yield from ((other, SMALL) for other in names[i * each:(i + 1) * each])
        if has_huge(s) and i == s.files // 2:
            yield huge(s), s.crawl_gib * GIB
    yield from ((other, SMALL) for other in crawled_names(s))


def files(s):
    """None in the directory of data: see made."""
    del s
    return []


def seconds(s):
    return (len(listed(s.streams)) * (s.seconds + 1) + s.lead + s.probe_seconds + TAIL +
            (s.files * s.mib * MIB + (s.crawl_gib * GIB if has_huge(s) else 0)) / FILL)


class Moved:
    """What the head does in a block: per second, and by seek."""

    def __init__(self, disk, heads=1):
        self.disk, self.heads = disk, heads

    def __enter__(self):
        self.before, self.since = self.disk.head(), time.monotonic()
        return self

    def __exit__(self, *exc):
        took, seconds = self.disk.head(), time.monotonic() - self.since
        moved = {name: n - self.before[name] for name, n in took.items()}
        self.values = {"rate": moved["bytes"] / seconds, "busy": moved["busy"] / 1e6 / seconds / self.heads,
                       "per_seek": ratio(moved["bytes"], moved["seeks"])}


def measure(bench, cand):
    s = bench.settings
    with spindle.mounted(bench.data, s.disk_gib * GIB, made(s), s.heads) as disk:
        found = {"streams": {str(n): stream(bench, cand, disk, n)
                             for n in listed(s.streams, int)},
                 "downloads": download(bench, cand, disk)}
        disk.check()
        return found


@contextlib.contextmanager
def serve(bench, cand, disk):
    """With one small file in memory."""
    s = bench.settings
    names = [*large(s), *small(s), *([huge(s)] if has_huge(s) else [])]
    if s.crawl_names:
        bench.host.forget_all()
    bench.host.forget([f"{disk.dir}/{one}" for one in names])
    with bench.serve(cand, Limits(memory=s.memory_mib * MIB), root=disk.dir) as server:
        server.warm(f"/{small(s)[0]}", bytes(SMALL), times=1)
        yield server


def paths(bench, names):
    return [f"/{one}" for one in bench.shuffled(names)]


def stream(bench, cand, disk, n):
    s = bench.settings
    with serve(bench, cand, disk) as server:
        with Moved(disk, s.heads) as moved:
            result = bench.slow(server, urls=paths(bench, large(s)), clients=n, rate=s.rate,
                                seconds=s.seconds,
                                more=("--ramp", s.ramp, "--in-order")).result()
    if result["errors"]:
        raise RuntimeError(f"slow: errors {result['errors']}")
    return {"starved": result["starved"], **moved.values}


def crawled_urls(bench):
    s = bench.settings
    if s.crawl_names:
        return paths(bench, crawled_names(s))
    size = s.crawl_kib << 10
    return [f"/{huge(s)}#{i * size}-{i * size + size - 1}"
            for i in bench.shuffled(range(s.crawl_gib * GIB // size))]


@contextlib.contextmanager
def crawled(bench, server, seconds):
    """Beside one more client, of an address of its own; yields what it gets."""
    s, found = bench.settings, {}
    if not s.crawl:
        yield found
        return
    crawler = bench.slow(server, urls=crawled_urls(bench), clients=s.crawl, rate=FAST, seconds=seconds,
                         more=("--in-order", "--source", CRAWLER))
    yield found
    crawler.child.send_signal(signal.SIGINT)
    result = crawler.result()
    found["ranges"] = result["completed"] / result["seconds"]


def download(bench, cand, disk):
    s = bench.settings
    seconds = s.lead + s.probe_seconds + TAIL
    with serve(bench, cand, disk) as server, crawled(bench, server, seconds) as crawl:
        others = bench.slow(server, urls=paths(bench, large(s)), clients=s.downloads, rate=FAST,
                            seconds=seconds,
                            more=("--in-order", "--rcvbuf", RCVBUF, "--source", OTHERS,
                                  "--sources", s.downloads))
        time.sleep(s.lead)
        with Moved(disk, s.heads) as moved:
            probe = bench.probe(server, urls=paths(bench, small(s)[1:]), rate=s.probe_rate,
                                connections=s.downloads, seconds=s.probe_seconds,
                                timeout=s.probe_timeout,
                                more=("--source", OTHERS, "--sources", s.downloads)).result()
        others.child.send_signal(signal.SIGINT)
        each = others.result()["bytes_each_second"][int(s.lead):][:int(s.probe_seconds)]
    if set(probe["statuses"]) - {"200"}:
        raise RuntimeError(f"probe: answers {probe['statuses']}")
    return {"latency_us": probe["latency_us"], "got": sum(each) / max(1, len(each)), **crawl,
            **moved.values}


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
                Column("downloads, MB/s", "{:.0f}".format,
                       lambda v: v["downloads"]["got"] / 1e6, "more"),
                *([Column("files/s" if s["crawl_names"] else "ranges/s", "{:.0f}".format,
                          lambda v: v["downloads"]["ranges"])] if s["crawl"] else []),
                *(Column(f"small files, {key}", usec,
                         lambda v, key=key: v["downloads"]["latency_us"][key], "less")
                  for key in ("p50", "p99", "max"))])]


def figures(view):
    from laboratory import plot
    figure, ax = plot.new(view)
    plot.bars(ax, view, [(f"{n}", lambda v, n=n: v["streams"][n]["starved"])
                         for n in listed(view.settings["streams"])], "{:.0f}".format)
    yield "Starved streams, by the number of streams", figure
