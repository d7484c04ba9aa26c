"""crawler: somebody reads all files once, beside the requests of zipf."""

from operator import itemgetter

from laboratory import cachemodes
from laboratory.bench import GIB, MIB
from laboratory.scenarios import listed, zipf
from laboratory.stats import ratio
from laboratory.tables import Column, Table, count, loop_columns

TITLE = "Crawler: a crawler reads every file once, beside the Zipf load"
WHAT = """The requests of the scenario zipf come first alone, then mixed with those of a
crawler. After every few of them it requests the next file of a second tree, which is as large as
the first, until it has read all of that tree. No other client requests these files, so each of their
bytes is read from the disk at least once; all further bytes are the cost of the Zipf clients'
requests. A server that reads a crawled file twice has a higher cost."""
NEEDS = ("replay", "limits")
# every: requests by Zipf's law for each of the crawler's.  warm: as in zipf
FULL = {"rounds": 3, "s": "1.0", "cache": "keep,auto", "connections": 8, "every": 4,
        "memory_mib": 128, "file_kib": 256, "warm": 48.0}
QUICK = {"rounds": 1, "memory_mib": 64, "warm": 24.0}
CANDIDATES = QUICK_CANDIDATES = ("nodiskio", "nginx")
NOTES = [
    "Both parts have the same requests by Zipf's law, with the same server, one after the other.",
    "A crawler of the first tree itself would find a part of it cached. The second tree makes its"
    " bytes distinguishable from the others, for every server alike.",
]


def files(s):
    return [*zipf.files(s), *((name, s.file_kib << 10) for name in zipf.named(s, "crawled"))]


check = zipf.check


def seconds(s):
    bytes_ = (s.warm + (2 * s.every + 1) * zipf.SHARE) * s.memory_mib * MIB
    return len(listed(s.s)) * len(cachemodes.wanted(s)) * (bytes_ / zipf.SPEED + 1)


def between(names, others, every):
    """One of the others after so many names."""
    for i, name in enumerate(names, 1):
        yield name
        if i % every == 0:
            yield others[i // every - 1]


portion = cachemodes.portion


def measure(bench, cand):
    s = bench.settings
    ranked, crawled = (bench.shuffled(zipf.named(s, what)) for what in ("zipf", "crawled"))
    lists = {e: [zipf.drawn(bench.draw, ranked, float(e), n)
                 for n in (zipf.number(s, s.warm), s.every * len(crawled))]
             for e in listed(s.s)}
    return {e: {mode: serve(bench, cand, options, drawn, crawled)
                for mode, options in cachemodes.modes(cand, s)}
            for e, drawn in lists.items()}


def serve(bench, cand, options, drawn, crawled):
    warm, names = drawn
    both = list(between(names, crawled, bench.settings.every))
    bench.forget(*crawled)
    with zipf.warmed_up(bench, cand, options, warm) as server:
        return {"without": zipf.asked(bench, server, names, "without"),
                "with": zipf.asked(bench, server, both, "with"),
                "crawled": len(crawled) * bench.settings.file_kib << 10,
                "round": bench.number}


# ------------------------------------------------------------------ report


def without(v):
    return zipf.missed(v["without"])


def beside(v):
    """Of the Zipf clients, while the crawler was there."""
    return ratio(v["with"]["disk_bytes"] - v["crawled"], v["with"]["body"] - v["crawled"])


def columns(view, pick):
    return [
        Column("disk bytes per byte served, without", "{:.3f}".format, without, "less"),
        Column("with the crawler", "{:.3f}".format, beside, "less"),
        Column("with, of without", "{:.3f}".format, lambda v: ratio(beside(v), without(v)),
               "less"),
        *(Column(f"with, of those of {title}", "{:.3f}".format,
                 zipf.compared(view, name, pick, beside), "less")
          for title, name in zipf.bases(view)),
        Column("requests, with", count, lambda v: v["with"]["requests"]),
        Column("CPU s/GiB, with", "{:.2f}".format,
               lambda v: ratio(v["with"]["cpu"], v["with"]["body"] / GIB), "less"),
        *loop_columns(lambda v: [v["without"], v["with"]]),
    ]


def tables(view):
    return [Table(f"s = {e}", columns(view, itemgetter(e)), itemgetter(e),
                  cachemodes.variants(view)) for e in listed(view.settings["s"])]


def figures(view):
    from laboratory import plot
    exponents, modes = listed(view.settings["s"]), cachemodes.shown(view)
    figure, _ = plot.new(view, rows=len(exponents), columns=len(modes))
    for ax, (e, mode) in zip(figure.axes, ((e, mode) for e in exponents for mode in modes)):
        plot.bars(ax, view, [("without", without), ("with the crawler", beside)], "{:.3f}".format,
                  pick=lambda values, e=e, mode=mode: values[e].get(mode))
        plot.title(ax, f"s = {e}, cache {mode}")
    yield "Disk bytes per byte that the Zipf clients were sent (shorter is better)", figure
