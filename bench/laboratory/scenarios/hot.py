"""hot: files of five sizes that are in memory."""

from operator import itemgetter

from laboratory import load
from laboratory.bench import GIB, MIB
from laboratory.stats import ratio
from laboratory.tables import Column, Table, count, percent

TITLE = "Hot: files in memory, from 1 KiB to 16 MiB"
WHAT = """One file of each size, in memory, is asked for over and over again by wrk. No disk
has a part in it: this is what a way of sending costs by itself. CPU time is that of the
server, from the counters of its control group."""
NEEDS = ("wrk",)
SIZES = {"1 KiB": 1 << 10, "16 KiB": 16 << 10, "64 KiB": 64 << 10, "1 MiB": MIB,
         "16 MiB": 16 * MIB}
FULL = {"rounds": 3, "seconds": 4, "connections": 32}
QUICK = {"rounds": 1, "seconds": 1}
NOTES = [
    "Where the generator's core is busy to 100 %, requests/s are wrk's limit and not the "
    "server's: then CPU time per request tells the servers apart.",
    "nginx with directio reads files of 1 MiB and more from the disk each time: that is "
    "what the option is for.",
]


def name_of(size):
    return f"hot-{size >> 10}K"


def files(_s):
    return [(name_of(size), size) for size in SIZES.values()]


def seconds(s):
    return len(SIZES) * (s.seconds + 0.3)


def measure(bench, cand):
    with bench.serve(cand) as server:
        return {label: one(bench, server, label, size) for label, size in SIZES.items()}


def one(bench, server, label, size):
    s, path = bench.settings, f"/{name_of(size)}"
    server.warm(path, bench.content(name_of(size)))
    wrk = bench.wrk(server, path, connections=s.connections, seconds=s.seconds)
    with bench.sampled(label, server) as took:
        result = load.check(wrk.result())
    return {**result, **took}


COLUMNS = [
    Column("requests/s", count, lambda v: v["rate"], "more"),
    Column("GiB/s", "{:.2f}".format, lambda v: v["bytes"] / v["seconds"] / GIB, "more"),
    Column("CPU µs/request", "{:.1f}".format,
           lambda v: ratio(v["cpu"] * 1e6, v["requests"]), "less"),
    Column("CPU s/GiB", "{:.3f}".format, lambda v: ratio(v["cpu"], v["bytes"] / GIB), "less"),
    Column("server's core", percent, lambda v: v["cpu"] / v["t"]),
    Column("generator's core", percent, lambda v: v["own_cpu"] / v["t"]),
]


def tables(_view):
    return [Table(label, COLUMNS, itemgetter(label)) for label in SIZES]


def figures(view):
    from laboratory import plot
    for title, labels, get, show in (
            ("CPU time per request, µs", list(SIZES)[:3], COLUMNS[2].get, COLUMNS[2].show),
            ("CPU time per GiB, s", list(SIZES)[2:], COLUMNS[3].get, COLUMNS[3].show)):
        figure, axes = plot.new(view, columns=len(labels))
        for ax, label in zip(axes, labels):
            plot.bars(ax, view, [(label, get)], show, pick=itemgetter(label))
            ax.set_title(label, fontsize=10, loc="left")
        yield f"{title} (shorter is better)", figure
