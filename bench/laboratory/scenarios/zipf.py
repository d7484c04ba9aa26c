"""zipf: a few files are popular, most are not, and memory holds an eighth of them."""

import bisect
import itertools
import math
import time

from laboratory import cachemodes, load
from laboratory.bench import MIB
from laboratory.limits import Limits
from laboratory.scenarios import storm
from laboratory.stats import ratio
from laboratory.tables import Column, Table, count, percent, share

TITLE = "Zipf: a few files are popular, and memory holds an eighth of all"
WHAT = """1 MiB files, 8 times as much as memory holds, are asked for as people ask for files: the
most popular one n times as often as the nth, by Zipf's law, over 32 connections. The hit
ratio is the share of the bytes sent that were not read from the disk. The disk is limited,
so whoever keeps the right files in memory sends more. To compare with there is a cache
that knows the popularity of all files beforehand and has all of the memory for them."""
NEEDS = ("wrk", "limits")
# exponent: of Zipf's law; lead: seconds until memory is full and has settled
FULL = {"rounds": 3, "seconds": 15, "connections": 32, "exponent": 1.0, "limit_mib": 100,
        "memory_mib": 256, "lead": 10.0}
QUICK = {"rounds": 1, "seconds": 3, "limit_mib": 200, "memory_mib": 128, "lead": 2.0}
QUICK_CANDIDATES = ("nodiskio", "blocking", "nginx")
MODES = ("keep", "drop", "auto")
ASKED = 100_000  # requests until wrk begins again
NOTES = [
    "The cache of the kernel must do without the memory that the server and its sockets "
    "take, and learns what is popular while it is measured: the cache that knows all is out "
    "of its reach.",
    "cache auto keeps what was asked for most often, as far as it fits into three quarters of "
    "the memory, and gives the rest back.",
    "cache drop gives back what a transmission brought in, popular or not.",
    "blocking and copy fetch nothing ahead that they could drop, and the peers have no such "
    "option: they are measured with keep only.",
    "What was read ahead and evicted before it was sent counts as a miss.",
]


def weights(n, exponent):
    """How much of all requests each of n files gets; the most popular one first."""
    parts = [rank ** -exponent for rank in range(1, n + 1)]
    total = math.fsum(parts)
    return [part / total for part in parts]


def drawn(draw, items, exponent, times):
    """So many of the items, of which the first is the most popular one."""
    until = list(itertools.accumulate(weights(len(items), exponent)))
    return [items[min(bisect.bisect(until, draw.random()), len(items) - 1)]
            for _ in range(times)]


def best_hit_ratio(n, exponent, held):
    """With the most popular ones of n files held."""
    return math.fsum(weights(n, exponent)[:held])


def files(s):
    return [(name, MIB) for name in storm.cold(s)]


def seconds(s):
    return len(MODES) * (s.lead + s.seconds + 1)


def measure(bench, cand):
    """Which files are popular is drawn for each round, and the same in all of it."""
    s = bench.settings
    ranked = bench.shuffled(storm.cold(s))
    urls = [f"/{name}" for name in drawn(bench.draw, ranked, s.exponent, ASKED)]
    return {mode: serve(bench, cand, mode, options, urls)
            for mode, options in cachemodes.modes(cand, MODES)}


def serve(bench, cand, mode, options, urls):
    s, names = bench.settings, storm.cold(bench.settings)
    bench.forget(*names)
    with bench.serve(cand, Limits(read_bps=s.limit_mib * MIB, memory=s.memory_mib * MIB),
                     options=options) as server:
        server.warm(urls[0], bench.content(urls[0][1:]), times=1)
        wrk = bench.wrk(server, urls=urls, connections=s.connections,
                        seconds=math.ceil(s.lead + s.seconds))
        time.sleep(s.lead)
        with bench.sampled(mode, server) as took:
            result = load.check(wrk.result())
    return {**took, "rate": result["rate"]}


# ------------------------------------------------------------------ report


def missed(v):
    return ratio(v["disk_bytes"], v["sent"])


def hits(v):
    return 1 - missed(v)


COLUMNS = [
    Column("hit ratio", share, hits, "more"),
    Column("disk bytes per byte sent", share, missed, "less"),
    Column("requests/s", count, lambda v: v["sent"] / MIB / v["t"], "more"),
    Column("disk, MiB/s", count, lambda v: v["disk_bytes"] / v["t"] / MIB),
    Column("page cache, MiB", count, lambda v: v["cache"] / MIB),
    Column("CPU", percent, lambda v: v["cpu"] / v["t"]),
    Column("CPU s/GiB", "{:.2f}".format,
           lambda v: ratio(v["cpu"] * 1024, v["sent"] / MIB), "less"),
]


def out_of_reach(settings):
    """The hit ratio of the cache that knows all: a MiB of memory is a file."""
    memory = settings["memory_mib"]
    return best_hit_ratio(8 * memory, settings["exponent"], memory)


def tables(view):
    return [Table(f"cache {mode}", COLUMNS, cachemodes.of(mode))
            for mode in cachemodes.measured(view, MODES)]


def figures(view):
    from laboratory import plot
    found = cachemodes.measured(view, MODES)
    figure, _ = plot.new(view, columns=len(found))
    for ax, mode in zip(figure.axes, found):
        plot.bars(ax, view, [("", hits)], share, pick=cachemodes.of(mode),
                  line=out_of_reach(view.settings))
        ax.set_title(f"cache {mode}", fontsize=10, loc="left")
        ax.set_xlim(0, 1)
        ax.set_ylim(len(view.names) - 0.5, -0.5)
    yield ("Hit ratio; dashed: a cache that knows the popularity of all files beforehand",
           figure)
