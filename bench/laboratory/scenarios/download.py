"""download: few large files from a fast disk."""

from laboratory import load
from laboratory.bench import GIB, MIB
from laboratory.limits import Limits
from laboratory.scenarios import listed
from laboratory.stats import ratio
from laboratory.tables import Column, Table, loop_columns, percent, share, under

TITLE = "Download: large uncached files, from a disk without a limit"
WHAT = """The same number of bytes is downloaded once: as one file by one client, or as several
files by as many clients at once. The files are uncached, and the disk is not limited: the
result shows how early and how much a server reads ahead. CPU time is that of all of the
server's threads on its core, including prefetch. The best peer is the one with the best median.

With memory recycled the server's control group is full of other files before the download, so
each new page takes the place of an old one, as on a machine that has served for an hour. With
memory returned neither is limited, and the pages are free ones, as after a start."""
NEEDS = ("replay", "h2load", "root", "disk", "limits")
# memory_mib: of the control group, if memory is recycled; protocol: http1 or http2
FULL = {"rounds": 5, "mib": 2048, "streams": "1,8,64", "memory": "recycled", "memory_mib": 512,
        "protocol": "http1"}
QUICK = {"rounds": 1, "mib": 512}
OWNER = True
QUICK_CANDIDATES = ("nodiskio", "nodiskio-owner", "nginx", "h2o-uring", "lighttpd")
CANDIDATES = ("nodiskio", "nodiskio-owner", "blocking", "nginx", "nginx-threads", "h2o",
              "h2o-uring", "lighttpd", "apache", "caddy")
NOTES = [
    "Before each download sync and drop_caches empty the page cache; names and inodes are cold, "
    "too.",
    "The clients discard what arrives, all on one core.",
    "A virtual machine may give freed blocks of 2 MiB back to its host. The server that uses them "
    "first pays for that, here 13 µs for each 4 KiB: so it is with memory returned. With memory "
    "recycled the machine gives nothing back during the measurements (page_reporting_order).",
    "Over HTTP/2 one connection has all downloads as its streams, and h2load takes them.",
    "A disk that other virtual machines share is not the same from one second to the next: "
    "ratios are of figures of the same round.",
]
SPEED = 800 * MIB  # bytes/s, to say beforehand how long it takes
HOT = "hot-16K"
FILL = 16 * MIB  # bytes of each file that fills memory
PATIENCE = 60    # seconds: some peers stop in the middle


def streams(s):
    return listed(s.streams, int)


def check(s):
    for n in streams(s):
        if not 1 <= n <= s.mib:
            raise ValueError(f"streams: {n}: from 1 to {s.mib}")
    for key, known in (("memory", ("recycled", "returned")), ("protocol", ("http1", "http2"))):
        if getattr(s, key) not in known:
            raise ValueError(f"{key}: {getattr(s, key)}: {' or '.join(known)}")


def parts(s):
    return [str(n) for n in streams(s)]


def names(s, n):
    """Of the files for n clients: as much together, however many they are."""
    return [f"download/{s.mib // n}M-{i:02d}" for i in range(1, n + 1)]


def fill(s):
    """Names of as many files as memory holds, and a quarter more."""
    size = s.memory_mib * MIB * 5 // 4 if s.memory == "recycled" else 0
    return [f"download/fill-{i:03d}" for i in range(-(-size // FILL))]


def files(s):
    yield HOT, 16 << 10
    yield from ((name, FILL) for name in fill(s))
    yield from {name: (s.mib // n) * MIB for n in streams(s) for name in names(s, n)}.items()


def seconds(s):
    return (s.mib * MIB + len(fill(s)) * FILL) / SPEED + 1


def measure(bench, cand, part):
    s, wanted = bench.settings, names(bench.settings, int(part))
    memory = s.memory_mib * MIB if s.memory == "recycled" else 0
    with bench.serve(cand, Limits(memory=memory), http2=s.protocol == "http2") as server:
        server.warm(f"/{HOT}", bench.content(HOT))
        bench.forget()
        if others := fill(s):
            downloaded(bench, server, others, FILL, connections=8)
        server.warm(f"/{HOT}", bench.content(HOT), times=1)
        with bench.sampled(part, server) as took:
            result = downloaded(bench, server, wanted, s.mib // len(wanted) * MIB, len(wanted),
                                s.protocol)
    return {**took, "round": bench.number, **result}


def downloaded(bench, server, wanted, size, connections, protocol="http1"):
    """Each of these files once; the bytes of their bodies, and seconds."""
    urls = [f"/{name}" for name in wanted]
    if protocol == "http2":
        result = load.check(bench.h2load_each(server, urls, streams=connections).result())
        body = result["bytes"]
    else:
        result = load.check_replay(bench.replay(server, urls, connections=connections,
                                                timeout=PATIENCE).result())
        body = result["body_bytes"]
    if body != size * len(wanted):
        raise RuntimeError(f"{body} bytes came instead of {size * len(wanted)}")
    return {"body": body, "seconds": result["seconds"]}


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
        Column("CPU s/GiB", "{:.3f}".format, cost, "less"),
        Column("of the thriftiest peer", share, compared(view, part, cost, min)),
        Column("CPU", percent, lambda v: v["cpu"] / v["t"]),
        Column("disk bytes per byte", "{:.2f}".format, lambda v: v["disk_bytes"] / v["body"]),
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
