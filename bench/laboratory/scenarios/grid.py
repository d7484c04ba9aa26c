"""grid: the hot p99 for each hot rate and each cold rate."""

import contextlib
import signal
import time

from laboratory import load, servers
from laboratory.bench import MIB
from laboratory.limits import Limits
from laboratory.scenarios import hot_set_note, listed, picked, storm
from laboratory.tables import Column, Table, loop_columns, percent, share, usec

TITLE = "Grid: hot rate × cold rate"
WHAT = """The storm at many points: requests for a cached file come at a fixed rate, while 48
connections read uncached files as fast as a limited disk allows; each cell is one hot rate at
one limit. The p99 is that of the probe, counted from the time when a request should have been
sent, so a server that stands still does not get fewer requests. Answers that are missing when
the probe stops count with their wait until then."""
NEEDS = ("wrk", "probe", "limits")
# hot: requests/s; cold: MiB/s, 0 for no cold clients
FULL = {"rounds": 3, "hot": "250 1000 4000 16000", "cold": "0 10 40 160 640",
        "seconds": 2.0, "timeout": 2.0, "lead": 1.5, "hot_kib": 16, "hot_connections": 16,
        "cold_connections": 48, "memory_mib": 256, "hot_set": "16M"}
QUICK = {"rounds": 1, "hot": "250 2000 16000", "cold": "0 20 160", "seconds": 1.0,
         "timeout": 1.0, "lead": 1.0}
CANDIDATES = QUICK_CANDIDATES = ("nodiskio", "nginx")
NOTES = [
    "Where the probe's own delay, which is in the tables, is near the p99, the generator's "
    "core was too busy, not the server's.",
    "A p99 as long as a measurement and its timeout together means that almost no request was "
    "answered in time.",
    "A cold rate is the limit of the disk. The tables have the rate that was reached, as a share "
    "of the limit.",
    "The cold files are 8 times as much as memory holds, and picked at random.",
    hot_set_note("grid"),
]


def rates(text):
    return listed(text, int)


def check(s):
    for text in (s.hot, s.cold):
        rates(text)


def files(s):
    return storm.files(s)


def seconds(s):
    probes = len(rates(s.hot)) * (s.seconds + s.timeout / 4)
    return len(rates(s.cold)) * (s.lead + probes + 1)


def measure(bench, cand):
    return {str(cold): row(bench, cand, cold) for cold in rates(bench.settings.cold)}


def row(bench, cand, cold):
    """All hot rates at one cold rate: hot rate -> values."""
    s, path = bench.settings, f"/{storm.hot(bench.settings)}"
    limits = Limits(read_bps=cold * MIB, memory=s.memory_mib * MIB)
    bench.forget()
    with bench.serve(cand, limits, options=servers.hot_set(cand, s.hot_set)) as server:
        server.warm(path, bench.content(path[1:]))
        with others(bench, server, cold):
            return {str(hot): cell(bench, server, path, cold, hot) for hot in rates(s.hot)}


@contextlib.contextmanager
def others(bench, server, cold):
    """The cold clients, who take what they can."""
    s = bench.settings
    if not cold:
        yield
        return
    wrk = bench.wrk(server, urls=[f"/{name}" for name in picked(bench, storm.cold(s), "random")],
                    idle=True, connections=s.cold_connections,
                    seconds=round(s.lead + len(rates(s.hot)) * (s.seconds + s.timeout) + 60))
    time.sleep(s.lead)
    yield
    wrk.child.send_signal(signal.SIGINT)
    load.check(wrk.result(), least=0)


def cell(bench, server, path, cold, hot):
    s = bench.settings
    probe = bench.probe(server, path, rate=hot, connections=s.hot_connections,
                        seconds=s.seconds, timeout=s.timeout)
    with bench.sampled(f"{cold}-{hot}", server) as took:
        result = probe.result()
    if set(result["statuses"]) - {"200"}:
        raise RuntimeError(f"probe: answers {result['statuses']}")
    return {**took, "latency_us": result["latency_us"], "delay_us": result["own_delay_us"],
            "answered": result["answered"] / result["requested"]}


# ------------------------------------------------------------------ report


def at(cold, hot):
    return lambda values: values[str(cold)][str(hot)]


def p99(v):
    return v["latency_us"]["p99"]


def tables(view):
    hots, colds = rates(view.settings["hot"]), rates(view.settings["cold"])
    return [Table(f"cold files at {cold} MiB/s" if cold else "no cold clients",
                  list(columns(cold, hots)), lambda values, cold=cold: values[str(cold)])
            for cold in colds]


def columns(cold, hots):
    yield from (Column(f"p99 at {hot}/s", usec, lambda row, hot=str(hot): p99(row[hot]), "less")
                for hot in hots)
    yield Column("answered, least", percent,
                 lambda row: min(v["answered"] for v in row.values()))
    if cold:
        yield Column("cold read, of limit", share, lambda row: total(row, "disk_bytes") /
                     (total(row, "t") * cold * MIB))
    yield Column("probe's own delay, worst p99", usec,
                 lambda row: max(v["delay_us"]["p99"] for v in row.values()))
    yield from loop_columns(lambda row: list(row.values()))


def total(row, key):
    return sum(v[key] for v in row.values())


def figures(view):
    from laboratory import panels
    hots, colds = rates(view.settings["hot"]), rates(view.settings["cold"])
    maps = {name: [[median(view, name, cold, hot) for hot in hots] for cold in colds]
            for name in view.names}
    known = [c for cells in maps.values() for row in cells for c in row if c]
    if not known:
        return
    figure, pairs = panels.each(view, across=2, height=0.45 * len(colds) + 1.1)
    for name, ax in pairs:
        panels.heat(ax, maps[name], hots, colds, usec, min(known), max(known))
        ax.set_xlabel("hot, requests/s", fontsize=9)
        ax.set_ylabel("cold, MiB/s", fontsize=9)
    yield "p99 of the hot requests", figure


def median(view, name, cold, hot):
    found = view.summary(name, p99, at(cold, hot))
    return found and found.median
