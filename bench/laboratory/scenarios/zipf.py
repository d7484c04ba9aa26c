"""zipf: a few files are popular, most are not, and memory holds an eighth of them."""

import bisect
import contextlib
import itertools
import math
from functools import partial
from operator import itemgetter

from laboratory import cachemodes, load
from laboratory.bench import GIB, MIB
from laboratory.limits import Limits
from laboratory.scenarios import listed
from laboratory.stats import ratio
from laboratory.tables import Column, Table, count, loop_columns, percent

TITLE = "Zipf: a few files are popular, and memory holds an eighth of all"
WHAT = """Files of one size, 8 times as much as memory holds, are requested over a few
connections. Popularity follows Zipf's law, as that of real files does: the most popular file is
requested n to the power of s times as often as the nth. The requests are drawn beforehand: every server gets the same list
in the same order. The first part of the list warms up and is not counted; then the disk bytes
are counted until the last answer of the list is complete. The disk is not limited; the result
is bytes, not time."""
NEEDS = ("replay", "limits")
# Warm-up and what is counted are given in multiples of memory, as bytes of requests.  At
# s = 1 a third of them are misses, so a warm-up of 48 turns memory over some 16 times.
# Both begin with empty memory and a new server, for each mode and each s.
FULL = {"rounds": 3, "s": "0.8,1.0,1.2", "cache": "keep,auto", "connections": 8,
        "memory_mib": 128, "file_kib": 256, "warm": 48.0, "counted": 48.0}
QUICK = {"rounds": 1, "s": "1.0", "memory_mib": 64, "warm": 24.0, "counted": 16.0}
OWNER = True
CANDIDATES = QUICK_CANDIDATES = ("nodiskio", "nodiskio-owner", "nginx")
SHARE = 8         # of the files, that memory would hold if it held nothing else
SPEED = 700 * MIB  # bytes a second, for the estimate
NOTES = [
    "A ratio compares two measurements of the same round, with the same requests.",
    "The page cache lacks the memory that the server and its sockets use, and learns popularity "
    "only during the run: it cannot reach the cache that knows all popularities.",
    "cache auto keeps the most popular files, as far as they fit, and drops the rest; cache drop "
    "drops all data that a transfer fetched, popular or not.",
    "blocking and copy prefetch nothing that they could drop, and the peers have no such option: "
    "they are measured as they are.",
    "Data that was read ahead and evicted before it was sent counts as a miss.",
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


def number(s, times=1.0):
    """Of files that are so many times as much as memory."""
    return int(times * s.memory_mib * 1024 / s.file_kib)


def named(s, what):
    return [f"{what}-{s.file_kib}K/{i:05d}" for i in range(1, number(s, SHARE) + 1)]


def files(s):
    return [(name, s.file_kib << 10) for name in named(s, "zipf")]


def check(s):
    listed(s.s, float)
    cachemodes.wanted(s)


def seconds(s):
    """With as many modes as there may be."""
    bytes_ = (s.warm + s.counted) * s.memory_mib * MIB
    return len(listed(s.s)) * len(cachemodes.wanted(s)) * (bytes_ / SPEED + 1)


portion = cachemodes.portion


def measure(bench, cand):
    """Which files are popular is drawn for each round, and the same in all of it."""
    s = bench.settings
    ranked = bench.shuffled(named(s, "zipf"))
    lists = {e: drawn(bench.draw, ranked, float(e), number(s, s.warm) + number(s, s.counted))
             for e in listed(s.s)}
    return {e: {mode: serve(bench, cand, options, names, f"{mode}-{e}")
                for mode, options in cachemodes.modes(cand, s)}
            for e, names in lists.items()}


def serve(bench, cand, options, names, label):
    s, warm = bench.settings, number(bench.settings, bench.settings.warm)
    with warmed_up(bench, cand, options, names[:warm]) as server:
        return {**asked(bench, server, names[warm:], label), "round": bench.number}


@contextlib.contextmanager
def warmed_up(bench, cand, options, names):
    """A server that has begun with nothing in memory and was asked for these."""
    s = bench.settings
    bench.forget(*named(s, "zipf"))
    with bench.serve(cand, Limits(memory=s.memory_mib * MIB), options=options) as server:
        server.warm(f"/{names[0]}", bench.content(names[0]), times=1)
        asked(bench, server, names, "warm-up")
        yield server


def asked(bench, server, names, label):
    """What all of them took."""
    with bench.sampled(label, server) as took:
        result = load.check_replay(bench.replay(
            server, [f"/{name}" for name in names],
            connections=bench.settings.connections).result())
    return {**took, "body": result["body_bytes"], "requests": result["answered"]}


# ------------------------------------------------------------------ report


def missed(v):
    return ratio(v["disk_bytes"], v["body"])


def bases(view):
    """(title, name): those that others are compared with, as they are with keep."""
    for name in ("nodiskio", "nginx"):
        if name in view.names:
            yield view.title(name) + (", keep" if view.ours(name) else ""), name


def compared(view, name, pick, get):
    """A number as a share of that of this server with keep, in the same round."""
    return view.share_of(name, get, lambda values: pick(values).get(cachemodes.KEEP))


def columns(view, pick):
    yield Column("disk bytes per byte served", "{:.3f}".format, missed, "less")
    yield from (Column(f"of those of {title}", "{:.3f}".format,
                       compared(view, name, pick, missed), "less")
                for title, name in bases(view))
    yield from (
        Column("requests", count, lambda v: v["requests"]),
        Column("requests/s", count, lambda v: v["requests"] / v["t"]),
        Column("disk, MiB/s", count, lambda v: v["disk_bytes"] / v["t"] / MIB),
        Column("page cache, MiB", count, lambda v: v["cache"] / MIB),
        Column("CPU", percent, lambda v: v["cpu"] / v["t"]),
        Column("CPU s/GiB", "{:.2f}".format, lambda v: ratio(v["cpu"], v["body"] / GIB), "less"),
        *loop_columns())


def out_of_reach(settings, exponent):
    """The misses of the cache that knows all, and has all of the memory."""
    held = settings["memory_mib"] * 1024 // settings["file_kib"]
    return 1 - best_hit_ratio(SHARE * held, float(exponent), held)


def tables(view):
    return [Table(f"s = {e}", list(columns(view, itemgetter(e))), itemgetter(e),
                  cachemodes.variants(view)) for e in listed(view.settings["s"])]


def figures(view):
    from laboratory import plot
    exponents, modes = listed(view.settings["s"]), cachemodes.shown(view)
    figure, _ = plot.new(view, columns=len(exponents))
    for ax, e in zip(figure.axes, exponents):
        plot.bars(ax, view, [(f"cache {mode}", partial(of_mode, get=missed, mode=mode,
                                                       last=mode == modes[-1]))
                             for mode in modes], "{:.3f}".format, pick=itemgetter(e),
                  line=out_of_reach(view.settings, e))
        plot.title(ax, f"s = {e}")
    yield ("Disk bytes per byte served (shorter is better); dashed: a cache that knows the "
           "popularity of all files in advance and has all of the memory", figure)


def of_mode(values, get, mode, last):
    """Who has one mode only is drawn in full colour."""
    if len(values) == 1:
        return get(*values.values()) if last else None
    return get(values[mode]) if mode in values else None
