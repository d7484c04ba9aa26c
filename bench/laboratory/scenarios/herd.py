"""herd: everybody asks for the same cold file at once."""

from laboratory.bench import MIB
from laboratory.limits import Limits
from laboratory.tables import Column, Table, loop_columns, usec

TITLE = "Herd: all clients request the same uncached file at once"
WHAT = """Several hundred clients request one uncached file within a millisecond. A server that
reads for each client reads the file many times, or reads ahead in many places at once; 1.00
means that the file was read once. The probe that sends the requests also reports when the
first, the median and the last client had the whole file."""
NEEDS = ("probe", "disk")
FULL = {"rounds": 3, "clients": 500, "file_mib": 16, "limit_mib": 100, "memory_mib": 512,
        "timeout": 120}
QUICK = {"rounds": 1, "file_mib": 8}
NOTES = [
    "The clients share one core, so that the time until all have everything is the "
    "generator's more than the server's; what is read from the disk is the server's.",
    "nginx with directio reads around the page cache, for each client anew.",
]


def name_of(s):
    return f"herd-{s.file_mib}M"


def files(s):
    yield name_of(s), s.file_mib * MIB
    yield "hot-16K", 16 << 10


def seconds(s):
    """The generator takes 2 GiB/s."""
    return s.file_mib / s.limit_mib + s.clients * s.file_mib / 2000


def measure(bench, cand):
    s, limits = bench.settings, Limits()
    if "limits" not in bench.host.lacks:
        limits = Limits(read_bps=s.limit_mib * MIB, memory=s.memory_mib * MIB)
    with bench.serve(cand, limits) as server:
        server.warm("/hot-16K", bench.content("hot-16K"))
        bench.forget(name_of(s))
        with bench.sampled("herd", server) as took:
            probe = bench.probe(server, f"/{name_of(s)}", rate=s.clients * 1000,
                                connections=s.clients, seconds=0.001, timeout=s.timeout)
            result = probe.result()
    if result["errors"] or result["statuses"] != {"200": s.clients}:
        raise RuntimeError(f"probe: errors {result['errors']}, answers {result['statuses']}")
    return {**took, "latency_us": result["latency_us"], "size": s.file_mib * MIB,
            "first": result["buckets"][0][0]}


def tables(_view):
    return [Table("", [
        Column("disk bytes per byte of the file", "{:.2f}".format, read, "less"),
        Column("disk requests per MiB of the file", "{:.1f}".format, requests, "less"),
        Column("first client done", usec, lambda v: v["first"], "less"),
        Column("median", usec, lambda v: v["latency_us"]["p50"], "less"),
        Column("last", usec, lambda v: v["latency_us"]["max"], "less"),
        Column("CPU s", "{:.2f}".format, lambda v: v["cpu"], "less"),
        *loop_columns(),
    ])]


def read(v):
    return v["disk_bytes"] / v["size"]


def requests(v):
    return v["disk_requests"] / (v["size"] / MIB)


def figures(view):
    from laboratory import plot
    figure, (asked, last) = plot.new(view, columns=2)
    plot.bars(asked, view, [("", requests)], "{:.1f}".format)
    asked.set_xlabel("disk requests per MiB of the file")
    plot.bars(last, view, [("", lambda v: v["latency_us"]["max"] / 1000)],
              lambda ms: usec(ms * 1000))
    last.set_xlabel("until the last client has the file, ms")
    yield ("How often the disk was asked for one file, and when the last client had all of it "
           "(shorter is better)", figure)
