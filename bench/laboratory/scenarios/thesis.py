"""thesis: chapter 5.2 of the thesis, scaled to the memory that a server is allowed."""

import contextlib
import math
import random
import statistics
import time
from functools import partial

from laboratory import cachemodes, disks, load, sampler, stats
from laboratory.bench import GIB, MIB
from laboratory.limits import Limits
from laboratory.tables import Column, Table, loop_columns, percent

TITLE = "Thesis: random large files from a data set that memory cannot hold"
WHAT = """This is the synthetic benchmark of chapter 5.2 of the thesis, scaled down. The memory
there (64 GiB) corresponds to the memory limit of the server here. The files, there of 50 MB to 1
GB, shrink by the same factor. Over 100 connections wrk draws files from the list of all of
them. There the limit was two network cards (2.4 GB/s), here it is a limited disk, or several, which
share that limit evenly. Traffic and idle CPU time are sampled once per second. The statement of the
thesis is the CPU time saved: the seconds of one server against those of another one, with the
confidence interval of 95 % by Student's t. CPU time is per byte sent, so that a server does not look
thrifty because it sends less; where both send the same it is the figure of the thesis. A dip is a
second with less than 90 % of the median second's traffic."""
NEEDS = ("wrk", "limits")
FULL = {"rounds": 3, "seconds": 30, "connections": 100, "limit_mib": 200, "devices": 1,
        "memory_mib": 512, "data_share": 8, "lead": 5.0, "cache": "keep,drop"}
QUICK = {"rounds": 1, "seconds": 4, "memory_mib": 128, "lead": 1.0}
LONG_FORM = {"rounds": 1, "seconds": 600, "devices": 8, "data_share": 16, "lead": 10.0}
OWNER = True
QUICK_CANDIDATES = ("nodiskio", "nodiskio-owner", "uring", "blocking", "nginx",
                    "nginx-threads")
# What CPU time is compared with; the first one is in the figures.
BASE = "blocking"
BASES = (BASE, "uring", "aio", "pool")
DIP = 0.9          # of the median
NEW = "nodiskio"   # how the names of the default path begin
NOTES = [
    "The thesis compares FreeBSD's new sendfile with nginx on SF_NODISKIO and aio_read, ten "
    "minutes each, and found 11.64 % of the CPU time saved, with SF_NOCACHE 20.99 %; 1.28 "
    "and 1.25 TB were sent. Its new path has no counterpart on Linux: compare the shape.",
    "Linux has no SF_NODISKIO. The nearest to it, together with aio_read, is uring: a check that "
    "does not wait, an asynchronous read of one byte at the end of each step, then sendfile. The "
    "path aio is the thesis' older way (2.3.2): asynchronous reads into a buffer that is then "
    "sent. The path pool is what nginx has on Linux: threads that call sendfile.",
    "The interval is that of the seconds of one round, as there. Seconds that follow each "
    "other are not independent, so it is too narrow; the spread of the rounds is the other "
    "half of the truth.",
    "Idle CPU is the time that the server left of its core, by the counters of its control group:"
    " it does not include work of the kernel's own threads for the server, such as those of loop "
    "devices.",
    "The data set is 8 times the memory here, or 16 times in the long form, and 2400 times in the "
    "thesis: up to an eighth of the requests can be answered from memory here, and none there.",
    "blocking makes no residency query, wakes no thread, and uses the kernel's read-ahead: where "
    "it needs the least CPU time, the scenario storm shows its cost for other clients.",
    "As in the thesis, only the new way is measured without the page cache, too: the other paths and "
    "the peers with keep only.",
]
THERE = 64 * GIB                        # the thesis' memory, ...
SMALLEST, LARGEST = 50 * MIB, GIB       # ... and its files
ASKED = 20_000                          # requests until wrk begins again
DEVICES = 64


def sizes(memory, total):
    """Of the files, drawn evenly as in the thesis, until there is so much in total.  The
    same for the same memory: files are made once, whatever the seed of a run."""
    draw, left = random.Random(memory), total
    while left > 0:
        size = draw.randint(SMALLEST, LARGEST) * memory // THERE
        yield size
        left -= size


def check(s):
    cachemodes.wanted(s)
    if s.devices > DEVICES:
        raise ValueError(f"devices: at most {DEVICES}")


def made(s):
    memory = s.memory_mib * MIB
    return [(f"thesis-{s.memory_mib}M/{i:05d}", size)
            for i, size in enumerate(sizes(memory, s.data_share * memory), 1)]


def files(s):
    """Returns those in the directory of data: none if devices of their own have them."""
    return made(s) if s.devices == 1 else []


@contextlib.contextmanager
def served(bench, cand):
    """Yields root or None, the devices, and the names of all files there."""
    s, wanted = bench.settings, made(bench.settings)
    if s.devices == 1:
        yield None, (), [name for name, _ in wanted]
        return
    with disks.mounted(bench.data, f"thesis-{s.memory_mib}M-{s.data_share}", wanted,
                       s.devices) as (root, devices):
        names = disks.paths(wanted, s.devices)
        bench.host.give([f"{root}/{name}" for name in names],
                        bench.host.user if cand.owner else None)
        yield root, devices, names


def seconds(s):
    return len(cachemodes.wanted(s)) * (s.lead + s.seconds + 1)


def modes(cand, s):
    """Returns the modes of a candidate.  As in the thesis, only the new way is measured with SF_NOCACHE,
    too."""
    return [(mode, options) for mode, options in cachemodes.modes(cand, s)
            if mode == cachemodes.KEEP or cand.name.startswith(NEW)]


def portion(s, cand):
    return len(modes(cand, s)) / len(cachemodes.wanted(s))


def measure(bench, cand):
    s = bench.settings
    with served(bench, cand) as where:
        return {mode: serve(bench, cand, mode, options, *where)
                for mode, options in modes(cand, s)}


def serve(bench, cand, mode, options, root, devices, names):
    s, base = bench.settings, root or bench.data
    bench.host.forget([f"{base}/{name}" for name in names])
    limits = Limits(read_bps=s.limit_mib * MIB // s.devices, memory=s.memory_mib * MIB)
    with bench.serve(cand, limits, root, options, devices) as server:
        with open(f"{base}/{names[0]}", "rb") as first:
            server.warm(f"/{names[0]}", first.read(), times=1)
        wrk = bench.wrk(server, urls=[f"/{bench.draw.choice(names)}" for _ in range(ASKED)],
                        connections=s.connections, seconds=math.ceil(s.lead + s.seconds))
        time.sleep(s.lead)
        with bench.sampled(mode, server) as took:
            result = load.check(wrk.result())
    return {**took, "requests": result["requests"], "round": bench.number, "server": cand.name,
            **{f"{key}_each_second": [rate for _, rate in sampler.rates(bench.samples[mode], key)]
               for key in ("cpu", "sent")}}


# ------------------------------------------------------------------ report


def sent(v):
    return v["sent"] / GIB


def cost(v):
    """CPU seconds for a GiB, second by second; the traffic is that of the whole round,
    for a second in which nothing was sent has no cost by itself."""
    return [cpu * v["t"] / sent(v) for cpu in v["cpu_each_second"]]


def saved(base, v):
    """Difference to one of base in the same round; None where there is none."""
    same = [b for b in base if b["round"] == v["round"] and b is not v]
    return stats.difference(cost(same[0]), cost(v)) if same else None


def saving(base, v):
    found = saved(base, v)
    return found and 0 - found.percent  # not -0.0


def margin(base, v):
    found = saved(base, v)
    return found and found.percent_half


def signed(value):
    return f"{value:+.1f}".replace("-", "−")


def kept(view, name):
    """Its rounds with cache keep."""
    return [v[cachemodes.KEEP] for v in view.values(name) if cachemodes.KEEP in v]


def against_keep(view, get):
    """For a Column: what a mode saves against keep, with the same server."""
    return lambda v: get(kept(view, v["server"]), v)


def idle_margin(v):
    """Returns half the width of the confidence interval of the idle share, by its seconds."""
    each = v["cpu_each_second"]
    return stats.mean_interval(each)[1] if len(each) > 1 else None


def dips(which, v):
    """Returns the share of seconds with less than DIP of the median traffic (which: 0), or the share
    of all traffic that is missing there (1); None where no seconds are known."""
    if not (each := v.get("sent_each_second")):
        return None
    usual = statistics.median(each)
    missing = [usual - rate for rate in each if rate < DIP * usual]
    return (len(missing) / len(each), stats.ratio(sum(missing), usual * len(each)) or 0)[which]


def columns():
    return [
        Column("sent, GiB", "{:.2f}".format, sent, "more"),
        Column("MiB/s", "{:.0f}".format, lambda v: v["sent"] / v["t"] / MIB, "more"),
        Column("seconds in dips", "{:.1%}".format, partial(dips, 0), "less"),
        Column("lost in dips", "{:.1%}".format, partial(dips, 1), "less"),
        Column("CPU idle", percent, lambda v: 1 - v["cpu"] / v["t"], "more"),
        Column("idle ± (95 %)", "{:.1%}".format, idle_margin),
        Column("CPU s/GiB", "{:.3f}".format, lambda v: v["cpu"] / sent(v), "less"),
        Column("disk bytes per byte sent", "{:.2f}".format,
               lambda v: v["disk_bytes"] / v["sent"], "less"),
        *loop_columns(),
    ]


def saved_columns(view):
    """Compares with each base that was measured, and with keep."""
    for name in BASES:
        if base := kept(view, name):
            yield Column(f"against {name}, %", signed, partial(saving, base), "more")
            yield Column("± (95 %)", "{:.1f}".format, partial(margin, base))
    yield Column("against keep, %", signed, against_keep(view, saving), "more")
    yield Column("± (95 %)", "{:.1f}".format, against_keep(view, margin))


def tables(view):
    variants = cachemodes.variants(view)
    return [Table("", columns(), variants=variants),
            Table("CPU time saved per byte sent", list(saved_columns(view)), variants=variants)]


def middle(view, name, mode):
    """Of the rounds, the samples of the one that sent the median amount."""
    done = [r for r in view.rounds
            if r.candidate == name and r.values and mode in r.values]
    done.sort(key=lambda r: sent(r.values[mode]))
    return done[len(done) // 2].samples[mode] if done else []


def figures(view):
    yield ("Traffic over time, MiB/s by seconds (figure 5.3 of the thesis); of the rounds "
           "the one in the middle", over_time(view, "sent", lambda rate: rate / MIB, "MiB/s"))
    yield ("Idle CPU over time, % of the server's core by seconds (figure 5.4); of the "
           "rounds the one in the middle",
           over_time(view, "cpu", lambda rate: 100 * (1 - rate), "% idle", top=100))
    if kept(view, BASE):
        yield (f"CPU time saved against {BASE} per byte sent: each round with its "
               "confidence interval of 95 %", intervals(view))


def over_time(view, key, show, unit, top=None):
    from laboratory import panels, plot
    figure, pairs = panels.each(view)
    base = points(view, BASE, cachemodes.KEEP, key, show)
    for name, ax in pairs:
        if base and name != BASE:
            ax.plot(*zip(*base), color=plot.PEER, linewidth=0.9, label=f"{BASE}, to compare")
        for mode, shade in zip(cachemodes.shown(view), plot.LINES):
            if data := points(view, name, mode, key, show):
                ax.plot(*zip(*data), color=shade, linewidth=1.4, label=f"cache {mode}")
        ax.grid(axis="y")
        ax.set_xlabel("seconds", fontsize=9)
    pairs[0][1].set_ylabel(unit, fontsize=9)
    panels.from_zero([ax for _, ax in pairs], top)
    panels.legend(figure, [ax for _, ax in pairs])
    return figure


def points(view, name, mode, key, show):
    return [(t, show(rate)) for t, rate in sampler.rates(middle(view, name, mode), key)]


def intervals(view):
    from laboratory import panels, plot
    figure, ax = plot.new(view)
    base = kept(view, BASE)
    for mode, shade, shift in zip(cachemodes.shown(view), plot.LINES, (-0.2, 0, 0.2)):
        found = [(i + shift + 0.07 * turn, saved(base, v[mode]))
                 for i, name in enumerate(view.names) if name != BASE
                 for turn, v in enumerate(view.values(name)) if mode in v]
        found = [(y, d) for y, d in found if d]
        if found:
            ax.errorbar([-d.percent for _, d in found], [y for y, _ in found],
                        xerr=[d.percent_half for _, d in found], fmt="o", color=shade,
                        markersize=3.5, elinewidth=1, capsize=2, label=f"cache {mode}")
    ax.axvline(0, color=plot.INK, linewidth=0.8)
    ax.set_yticks(range(len(view.names)), [view.title(n) for n in view.names])
    ax.set_ylim(len(view.names) - 0.5, -0.5)
    ax.set_xlabel(f"% saved (left of 0: took more than {BASE})", fontsize=9)
    panels.legend(figure, [ax])
    return figure
