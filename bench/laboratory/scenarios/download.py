"""download: few large files from a fast disk."""

from laboratory import load
from laboratory.bench import GIB, MIB
from laboratory.scenarios import listed
from laboratory.stats import ratio
from laboratory.tables import Column, Table, loop_columns, percent, share, under

TITLE = "Download: large uncached files, from a disk without a limit"
WHAT = """The same number of bytes is downloaded once: as one file by one client, or as several
files by as many clients at once. The files are uncached, and neither the disk nor the memory is limited: the
result shows how early and how much a server reads ahead. CPU time is that of all of the
server's threads on its core, including prefetch. The best peer is the one with the best median."""
NEEDS = ("replay", "root", "disk")
FULL = {"rounds": 5, "mib": 2048, "streams": "1,8,64"}
QUICK = {"rounds": 1, "mib": 512}
OWNER = True
QUICK_CANDIDATES = ("nodiskio", "nodiskio-owner", "nginx", "h2o-uring", "lighttpd")
CANDIDATES = ("nodiskio", "nodiskio-owner", "blocking", "nginx", "nginx-threads", "h2o",
              "h2o-uring", "lighttpd", "apache", "caddy")
NOTES = [
    "Before each download sync and drop_caches empty the page cache; names and inodes are cold, "
    "too.",
    "The clients discard what arrives, all on one core.",
    "A virtual machine may give memory that drop_caches has freed back to its host. The server "
    "that uses it first pays for that, here 13 µs for each 4 KiB; the large folios of "
    "nodiskio come from such memory first (docs/design/prefetching.md).",
    "A disk that other virtual machines share is not the same from one second to the next: "
    "ratios are of figures of the same round.",
]
SPEED = 800 * MIB  # bytes/s, to say beforehand how long it takes
HOT = "hot-16K"


def streams(s):
    return listed(s.streams, int)


def check(s):
    for n in streams(s):
        if not 1 <= n <= s.mib:
            raise ValueError(f"streams: {n}: from 1 to {s.mib}")


def parts(s):
    return [str(n) for n in streams(s)]


def names(s, n):
    """Of the files for n clients: as much together, however many they are."""
    return [f"download/{s.mib // n}M-{i:02d}" for i in range(1, n + 1)]


def files(s):
    yield HOT, 16 << 10
    yield from {name: (s.mib // n) * MIB for n in streams(s) for name in names(s, n)}.items()


def seconds(s):
    return s.mib * MIB / SPEED + 1


def measure(bench, cand, part):
    s, wanted = bench.settings, names(bench.settings, int(part))
    with bench.serve(cand) as server:
        server.warm(f"/{HOT}", bench.content(HOT))
        bench.forget()
        server.warm(f"/{HOT}", bench.content(HOT), times=1)
        with bench.sampled(part, server) as took:
            result = load.check_replay(bench.replay(
                server, [f"/{name}" for name in wanted], connections=len(wanted)).result())
    if result["body_bytes"] != s.mib // len(wanted) * MIB * len(wanted):
        raise RuntimeError(f"{result['body_bytes']} bytes came")
    return {**took, "round": bench.number, "body": result["body_bytes"],
            "seconds": result["seconds"]}


# ---------------------------------------------------------------- report


def speed(v):
    return v["body"] / v["seconds"] / 1e6


def cost(v):
    return v["cpu"] / (v["body"] / GIB)


def best(view, part, get, choose):
    """Of the peers, that with the best median; None without any."""
    medians = {name: view.summary(name, get, under(part)) for name in view.names
               if not view.ours(name)}
    known = {name: found.median for name, found in medians.items() if found}
    return choose(known, key=known.get) if known else None


def shown(view):
    return view.parts(map(str, listed(view.settings["streams"], int)))


def compared(view, part, get, choose):
    name = best(view, part, get, choose)
    return view.share_of(name, get, under(part)) if name else lambda v: None


def columns(view, part):
    return [
        Column("MB/s", "{:.0f}".format, speed, "more"),
        Column("of the fastest peer", share, compared(view, part, speed, max)),
        Column("CPU s/GiB", "{:.2f}".format, cost, "less"),
        Column("of the thriftiest peer", share, compared(view, part, cost, min)),
        Column("CPU", percent, lambda v: v["cpu"] / v["t"]),
        Column("disk requests per MiB", "{:.1f}".format,
               lambda v: ratio(v["disk_requests"], v["disk_bytes"] / MIB)),
        *loop_columns(),
    ]


def title(view, part):
    peer = best(view, part, speed, max)
    said = f" (fastest peer: {view.title(peer)})" if peer else ""
    return f"{part} × {view.settings['mib'] // int(part)} MiB{said}"


def tables(view):
    return [Table(title(view, part), columns(view, part), under(part))
            for part in shown(view)]


def figures(view):
    from laboratory import plot
    drawn = shown(view)
    figure, _ = plot.new(view, columns=len(drawn))
    for ax, part in zip(figure.axes, drawn):
        plot.bars(ax, view, [("", speed)], "{:.0f}".format, pick=under(part))
        plot.title(ax, f"{part} at once")
    yield "MB/s that all downloads have together (longer is better)", figure
