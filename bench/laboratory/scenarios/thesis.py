"""thesis: chapter 5.2 of the thesis, scaled to the memory that a server is allowed."""

import math
import random
import time
from functools import partial

from laboratory import cachemodes, load, sampler, stats
from laboratory.bench import GIB, MIB
from laboratory.limits import Limits
from laboratory.tables import Column, Table, loop_columns, percent

TITLE = "Thesis: random large files from a data set that memory cannot hold"
WHAT = """This is the synthetic benchmark of chapter 5.2 of the thesis, scaled down. The memory
there (64 GiB) corresponds to the memory limit of the server here. The files, there of 50 MB to 1
GB, shrink by the same factor. Over 100 connections wrk draws files from the list of all of
them. There the limit was two network cards (2.4 GB/s), here it is a limited disk.
Traffic and idle CPU time are sampled once per second. The statement of the thesis is the CPU
time saved: the seconds of one server against those of blocking, with the confidence interval of
95 % by Student's t. CPU time is per byte sent, so that a server does not look thrifty because
it sends less; where both send the same it is the figure of the thesis."""
NEEDS = ("wrk", "limits")
FULL = {"rounds": 3, "seconds": 30, "connections": 100, "limit_mib": 200,
        "memory_mib": 512, "data_share": 8, "lead": 5.0, "cache": "keep,drop"}
QUICK = {"rounds": 1, "seconds": 4, "memory_mib": 128, "lead": 1.0}
OWNER = True
QUICK_CANDIDATES = ("nodiskio", "nodiskio-owner", "uring", "blocking", "nginx",
                    "nginx-threads")
BASE = "blocking"  # what CPU time is compared with
NOTES = [
    "The thesis compares FreeBSD's new sendfile with nginx on SF_NODISKIO and aio_read, ten "
    "minutes each, and found 11.64 % of the CPU time saved, with SF_NOCACHE 20.99 %; 1.28 "
    "and 1.25 TB were sent. Its new path has no counterpart on Linux: compare the shape.",
    "The interval is that of the seconds of one round, as there. Seconds that follow each "
    "other are not independent, so it is too narrow; the spread of the rounds is the other "
    "half of the truth.",
    "Idle CPU is the time that the server left of its core, by the counters of its control group:"
    " it does not include work of the kernel's own threads for the server.",
    "The data set is 8 times the memory here, and 2400 times in the thesis: up to an eighth of "
    "the requests can be answered from memory here, and none there.",
    "blocking makes no residency query, wakes no thread, and uses the kernel's read-ahead: where "
    "it needs the least CPU time, the scenario storm shows its cost for other clients.",
    "blocking and copy prefetch nothing that they could drop, and the peers have no such option: "
    "they are measured with keep only.",
]
THERE = 64 * GIB                        # the thesis' memory, ...
SMALLEST, LARGEST = 50 * MIB, GIB       # ... and its files
ASKED = 20_000                          # requests until wrk begins again


def sizes(memory, total):
    """Of the files, drawn evenly as in the thesis, until there is so much in total.  The
    same for the same memory: files are made once, whatever the seed of a run."""
    draw, left = random.Random(memory), total
    while left > 0:
        size = draw.randint(SMALLEST, LARGEST) * memory // THERE
        yield size
        left -= size


def files(s):
    memory = s.memory_mib * MIB
    return [(f"thesis-{s.memory_mib}M/{i:05d}", size)
            for i, size in enumerate(sizes(memory, s.data_share * memory), 1)]


def seconds(s):
    return len(cachemodes.wanted(s)) * (s.lead + s.seconds + 1)


check = cachemodes.wanted


portion = cachemodes.portion


def measure(bench, cand):
    s = bench.settings
    return {mode: serve(bench, cand, mode, options)
            for mode, options in cachemodes.modes(cand, s)}


def serve(bench, cand, mode, options):
    s, names = bench.settings, [name for name, _ in files(bench.settings)]
    bench.forget(*names)
    with bench.serve(cand, Limits(read_bps=s.limit_mib * MIB, memory=s.memory_mib * MIB),
                     options=options) as server:
        server.warm(f"/{names[0]}", bench.content(names[0]), times=1)
        wrk = bench.wrk(server, urls=[f"/{bench.draw.choice(names)}" for _ in range(ASKED)],
                        connections=s.connections, seconds=math.ceil(s.lead + s.seconds))
        time.sleep(s.lead)
        with bench.sampled(mode, server) as took:
            result = load.check(wrk.result())
    return {**took, "requests": result["requests"], "round": bench.number, "server": cand.name,
            "cpu_each_second": [cpu for _, cpu in sampler.rates(bench.samples[mode], "cpu")]}


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


def columns(view):
    base = kept(view, BASE)
    return [
        Column("sent, GiB", "{:.2f}".format, sent, "more"),
        Column("MiB/s", "{:.0f}".format, lambda v: v["sent"] / v["t"] / MIB, "more"),
        Column("CPU idle", percent, lambda v: 1 - v["cpu"] / v["t"], "more"),
        Column("CPU s/GiB", "{:.3f}".format, lambda v: v["cpu"] / sent(v), "less"),
        Column(f"CPU saved against {BASE}, %", signed, partial(saving, base), "more"),
        Column("± (95 %)", "{:.1f}".format, partial(margin, base)),
        Column("CPU saved against keep, %", signed, against_keep(view, saving), "more"),
        Column("± (95 %)", "{:.1f}".format, against_keep(view, margin)),
        Column("disk bytes per byte sent", "{:.2f}".format,
               lambda v: v["disk_bytes"] / v["sent"], "less"),
        *loop_columns(),
    ]


def tables(view):
    return [Table("", columns(view), variants=cachemodes.variants(view))]


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
