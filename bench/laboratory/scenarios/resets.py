"""resets: a client that asks and resets, a hundred thousand times a second, beside others."""

import signal
import time

from laboratory import load, servers
from laboratory.scenarios import hot_set_note
from laboratory.stats import ratio
from laboratory.tables import Column, Table, count, loop_columns, percent, share, usec

TITLE = "Resets: a client that asks and resets at once, over HTTP/2"
WHAT = """One client sends requests, each with its reset right behind it, at a fixed rate; after a
thousand, or when the server ends its connection, it makes another one (CVE-2023-44487). Others request one cached 16 KiB
file at a fixed rate on 15 streams of one connection: alone, and beside it. Their latency counts from
the time when a request should have been sent."""
NEEDS = ("h2storm", "resets")
HTTP2 = True
# rate: resets/s; lead: seconds that they are ahead
FULL = {"rounds": 5, "rate": 100_000, "hot_kib": 16, "hot": 15, "probe_rate": 1000,
        "probe_seconds": 5, "probe_timeout": 10, "lead": 1.0, "hot_set": "16M"}
QUICK = {"rounds": 1, "probe_seconds": 2, "probe_timeout": 2, "lead": 0.5}
CANDIDATES = ("nodiskio", "nodiskio-tls", "nginx", "nginx-tls", "h2o-tls")
QUICK_CANDIDATES = ("nodiskio", "nodiskio-tls", "nginx-tls", "h2o-tls")
TAIL = 5  # seconds that the resets would go on
NOTES = [
    "The client of the resets runs with the lowest priority (SCHED_IDLE) on the core that it shares "
    "with the others, except with --one-core.",
    "A reset counts when the socket has taken it. Resets behind the one for which a server ended the "
    "connection were read and thrown away, or not read.",
    hot_set_note("resets"),
]


def name_of(s):
    return f"hot-{s.hot_kib}K"


def files(s):
    return [(name_of(s), s.hot_kib << 10)]


def seconds(s):
    return 2 * s.probe_seconds + s.lead + s.probe_timeout / 2 + 1


def measure(bench, cand):
    s = bench.settings
    path = f"/{name_of(s)}"
    with bench.serve(cand, options=servers.hot_set(cand, s.hot_set), http2=True) as server:
        server.warm(path, bench.content(name_of(s)))
        calm = probed(bench, server, "alone", path)
        resetting = bench.resets(server, path, rate=s.rate, idle=not bench.host.one_core,
                                 seconds=round(s.lead + s.probe_seconds + s.probe_timeout + TAIL))
        time.sleep(s.lead)
        stormy = probed(bench, server, "beside", path)
        resetting.child.send_signal(signal.SIGINT)
        return {"calm": calm, "stormy": stormy, "resets": load.check_resets(resetting.result())}


def probed(bench, server, label, path):
    s = bench.settings
    asked = bench.h2storm(server, path, hot=s.hot, rate=s.probe_rate, seconds=s.probe_seconds,
                          timeout=s.probe_timeout)
    with bench.sampled(label, server) as took:
        result = load.check_h2storm(asked.result())
    return {**result, **took}


# ---------------------------------------------------------------- report


def p99(which):
    return lambda v: v[which]["latency_us"]["p99"]


def tables(_view):
    return [Table("a cached file, alone and beside resets", [
        Column("p50 alone", usec, lambda v: v["calm"]["latency_us"]["p50"]),
        Column("p99 alone", usec, p99("calm")),
        Column("p50 beside", usec, lambda v: v["stormy"]["latency_us"]["p50"], "less"),
        Column("p99 beside", usec, p99("stormy"), "less"),
        Column("of alone", "{:.1f}".format, lambda v: ratio(p99("stormy")(v), p99("calm")(v)), "less"),
        Column("worst", usec, lambda v: v["stormy"]["latency_us"]["max"], "less"),
        Column("resets/s", count, lambda v: v["resets"]["rate"]),
        Column("connections/s", count, lambda v: v["resets"]["connections"] / v["resets"]["seconds"]),
        Column("ended with ENHANCE_YOUR_CALM", share,
               lambda v: ratio(v["resets"]["calmed"], v["resets"]["connections"])),
        Column("CPU alone", percent, lambda v: v["calm"]["cpu"] / v["calm"]["t"]),
        Column("CPU beside", percent, lambda v: v["stormy"]["cpu"] / v["stormy"]["t"], "less"),
        *loop_columns(lambda v: [v["stormy"]]),
    ])]


def figures(view):
    from laboratory import plot
    figure, ax = plot.new(view, columns=1)
    plot.bars(ax, view, [("alone", lambda v: p99("calm")(v) / 1000),
                         ("beside resets", lambda v: p99("stormy")(v) / 1000)],
              show=lambda ms: usec(ms * 1000), log=True)
    ax.set_xlabel("p99, ms")
    yield "p99 of a cached file at a fixed rate, alone and beside resets", figure
