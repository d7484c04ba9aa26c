"""week: requests of a week, of many sizes and with popularity that drifts, as bench/admission
draws them."""

import os
import subprocess
from collections import namedtuple
from operator import itemgetter
from statistics import median

from laboratory import admission, cachemodes, load
from laboratory.bench import GIB, MIB
from laboratory.limits import Limits
from laboratory.scenarios import listed, zipf
from laboratory.stats import ratio
from laboratory.tables import Column, Table, count, loop_columns

TITLE = "Week: files of 4 KiB to 1 GiB, and what is popular changes"
WHAT = """The requests of docs/admission.md, drawn with a fixed seed: sizes, popularity and its
changes as in published traces of content delivery networks. Every server gets the same list in the
same order, some requests being for a range. The first quarter warms up and is not counted; then the
disk bytes are counted until the last answer is complete. The disk is not limited; the result is
bytes, not time. Ours has no hot set: its 16 MiB do not shrink with the memory, and would be a
quarter of it."""
NEEDS = ("replay", "limits")
# scale: one Nth of the requests and of the files, whose sizes stay.
FULL = {"rounds": 1, "trace": "media,mix", "scale": "12,100", "memory_mib": "64,256",
        "cache": "keep,auto", "connections": 8}
QUICK = {"trace": "media", "scale": "50", "memory_mib": "32"}
CANDIDATES = QUICK_CANDIDATES = ("nodiskio", "nginx")
NO_HOT_SET = ("--hot-set", "0")
WARM = 4  # one of so many requests
SPEED = 1200 * MIB  # bytes a second, for the estimate
NOTES = [
    "A ratio compares two measurements of the same round, with the same requests.",
    "Simulated: the same requests and memory in bench/admission, all of it for the page cache. "
    "The best online policy is the one with the memory that the page cache held.",
    "A range that a client asks for is sent, and counted, to the byte; the disk is read by pages.",
]
Request = namedtuple("Request", "file size off len")


def requests(trace, scale):
    argv = [admission.program(), "--scale", scale, "--requests", trace]
    out = subprocess.run(argv, check=True, timeout=60, text=True, stdout=subprocess.PIPE).stdout
    return [Request(*map(int, line.split())) for line in out.splitlines()]


def loads(s):
    """(trace, scale, MiB of memory)"""
    return list(zip(listed(s.trace, among=admission.NAMES), str(s.scale).split(","),
                    str(s.memory_mib).split(","), strict=True))


def name(trace, scale, file):
    return f"week-{trace}-{scale}/{file:06d}"


def files(s):
    return [(name(trace, scale, rq.file), rq.size) for trace, scale, _ in loads(s)
            for rq in requests(trace, scale)]


def check(s):
    for _, *numbers in loads(s):
        list(map(int, numbers))
    cachemodes.wanted(s)


def seconds(s):
    bytes_ = sum(rq.len for trace, scale, _ in loads(s) for rq in requests(trace, scale))
    return len(cachemodes.wanted(s)) * (bytes_ / SPEED + 1)


def path(trace, scale, rq):
    whole = rq.off == 0 and rq.len == rq.size
    part = "" if whole else f"#{rq.off}-{rq.off + rq.len - 1}"
    return f"{name(trace, scale, rq.file)}{part}"


def measure(bench, cand):
    return {trace: {mode: serve(bench, cand, options, (trace, scale, int(mib)), mode)
                    for mode, options in cachemodes.modes(cand, bench.settings)}
            for trace, scale, mib in loads(bench.settings)}


def serve(bench, cand, options, part, mode):
    trace, scale, mib = part
    asked = requests(trace, scale)
    paths = [path(trace, scale, rq) for rq in asked]
    warm = len(paths) // WARM
    bench.forget(*{name(trace, scale, rq.file) for rq in asked})
    options = (*options, *(NO_HOT_SET if cand.ours else ()))
    with bench.serve(cand, Limits(memory=mib * MIB), options=options) as server:
        least = name(trace, scale, min(asked, key=lambda rq: rq.size).file)
        server.warm(f"/{least}", bench.content(least), times=1)
        replay(bench, server, paths[:warm], "warm-up")
        return {**replay(bench, server, paths[warm:], f"{mode}-{trace}"), "round": bench.number}


def replay(bench, server, paths, label):
    with bench.sampled(label, server) as took:
        result = load.check_replay(bench.replay(
            server, [f"/{one}" for one in paths],
            connections=bench.settings.connections).result())
    return {**took, "body": result["body_bytes"], "requests": result["answered"]}


# ------------------------------------------------------------------ report


def columns(view, pick, best):
    yield Column("disk bytes per byte served", "{:.3f}".format, zipf.missed, "less")
    yield Column("of the best online policy's", "{:.2f}".format,
                 lambda v: best and ratio(zipf.missed(v), best), "less")
    yield from (Column(f"of those of {title}", "{:.3f}".format,
                       zipf.compared(view, base, pick, zipf.missed), "less")
                for title, base in zipf.bases(view))
    yield from (
        Column("requests", count, lambda v: v["requests"]),
        Column("GiB served", "{:.1f}".format, lambda v: v["body"] / GIB),
        Column("requests/s", count, lambda v: v["requests"] / v["t"]),
        Column("page cache, MiB", count, lambda v: v["cache"] / MIB),
        Column("CPU s/GiB", "{:.2f}".format, lambda v: ratio(v["cpu"], v["body"] / GIB), "less"),
        *loop_columns())


class Simulated:
    """The same with so many MiB of memory.  best: what the best online policy reads of a byte
    asked for."""

    def __init__(self, trace, scale, mib):
        said = admission.simulate(trace, scale=scale, memory=mib)
        self.mib, self.missed = mib, {p["name"]: p["missed"][0] for p in said["policies"]}
        self.policy = min((p["name"] for p in admission.online(said)), key=self.missed.get)
        self.best = self.missed[self.policy]

    def says(self, *policies):
        named = "".join(f"{one} {self.missed[one]:.3f}, " for one in policies)
        return f"with {self.mib} MiB {named}the best online policy, {self.policy}, {self.best:.3f}"


def held(view, trace):
    """MiB: what the page cache held of the memory, with cache auto; None: not measured, or the
    simulation is not there."""
    if not os.access(admission.path(), os.X_OK):
        return None
    found = [v[trace][cachemodes.AUTO]["cache"] for v in view.values("nodiskio")
             if cachemodes.AUTO in v.get(trace, ())]
    return round(median(found) / MIB) if found else None


def table(view, trace, scale, mib):
    title, best, pages = f"{trace}, {mib} MiB of memory", None, held(view, trace)
    if pages:
        all_, had = Simulated(trace, scale, mib), Simulated(trace, scale, pages)
        title += (f" (simulated: {all_.says('linux-large', 'linux', 'auto')}; {had.says('auto')}, "
                  "as much as the page cache held)")
        best = had.best
    return Table(title, list(columns(view, itemgetter(trace), best)), itemgetter(trace),
                 cachemodes.variants(view))


def tables(view):
    s = view.settings
    return [table(view, *one) for one in zip(listed(s["trace"]), str(s["scale"]).split(","),
                                             str(s["memory_mib"]).split(","))]


def figures(view):
    return ()
