"""streams: hot and cold files over HTTP/2, on one connection and on two."""

import signal
import time

from laboratory import load, servers
from laboratory.bench import MIB
from laboratory.limits import Limits
from laboratory.scenarios import hot_set_note, listed, storm
from laboratory.stats import ratio
from laboratory.tables import Column, Table, count, loop_columns, percent, share, under, usec

TITLE = "Streams: a cached file over HTTP/2 while other streams read uncached ones"
WHAT = """The scenario storm over HTTP/2. 15 streams of one connection request one cached 16 KiB
file: first alone, then while 48 other streams read 1 MiB files from a limited disk, each file at
most once. These are streams of the same connection ("shared"), or of another one ("apart").
Requests/s are those of build/bench/h2storm. Latency is measured in a second storm, by the same
program at a fixed rate whatever the server does; it counts from the time when a request should
have been sent."""
NEEDS = ("h2storm", "limits")
HTTP2 = True
# where: a list; lead: seconds that the cold streams are ahead of the hot ones
FULL = {"rounds": 3, "seconds": 5, "hot_kib": 16, "hot": 15, "cold": 48, "where": "shared,apart",
        "limit_mib": 40, "limit_iops": 0, "memory_mib": 256, "probe_rate": 1000,
        "probe_seconds": 5, "probe_timeout": 10, "lead": 1.5, "hot_set": "16M"}
QUICK = {"rounds": 1, "seconds": 2, "probe_seconds": 1, "probe_timeout": 2, "lead": 1.3}
CANDIDATES = ("nodiskio", "nodiskio-tls", "nginx", "nginx-threads", "nginx-tls", "h2o-tls",
              "lighttpd-tls", "caddy-tls")
QUICK_CANDIDATES = ("nodiskio-tls", "nginx-tls", "h2o-tls", "lighttpd-tls", "caddy-tls")
WHERE = {"shared": "on the same connection", "apart": "on another connection"}
TAIL = 5  # seconds that cold streams of another connection would go on
NOTES = [
    "Cold streams of another connection belong to another process, with the lowest priority "
    "(SCHED_IDLE) on the core that both share, except with --one-core. On a shared connection one "
    "process takes hot and cold bytes: where its core is busy to 100 %, it is less free for the hot "
    "ones.",
    "Windows are those of a browser (Chromium): 15 MiB for a connection, 6 MiB for a stream.",
    "A server may take fewer streams at once than these; the others wait in the client.",
    "A request without an answer at the end counts with its wait until then.",
    hot_set_note("streams"),
]
files = storm.files


def parts(s):
    return listed(s.where, among=WHERE)


check = parts


def seconds(s):
    return 2 * s.lead + 2 * (s.seconds + s.probe_seconds) + s.probe_timeout / 2 + 0.3


# ------------------------------------------------------------- measuring


class Storm:
    """Of one candidate; where is None, "shared" or "apart"."""

    def __init__(self, bench, server):
        self.bench, self.server, self.s = bench, server, bench.settings
        self.path = f"/{storm.hot(self.s)}"
        self.urls = bench.shuffled(f"/{name}" for name in storm.cold(self.s))

    def fresh(self):
        """Files that nobody has asked for: the other half."""
        half = len(self.urls) // 2
        self.urls = self.urls[half:] + self.urls[:half]
        return self.urls

    def hot(self, label, where=None, **options):
        s, lead = self.s, 0
        if where == "shared":
            lead = s.lead
            options.update(cold=s.cold, urls=self.fresh(), lead=lead)
        asked = self.bench.h2storm(self.server, self.path, hot=s.hot, timeout=s.probe_timeout,
                                   **options)
        time.sleep(lead)
        with self.bench.sampled(label, self.server) as took:
            result = load.check_h2storm(asked.result())
        return {**result, **took}

    def both(self, label, where=None):
        """As fast as they can, then at a rate."""
        s = self.s
        return (self.beside(f"{label}, rate", where, seconds=s.seconds),
                self.beside(f"{label}, latency", where, seconds=s.probe_seconds,
                            rate=s.probe_rate))

    def beside(self, label, where, **options):
        if where != "apart":
            return self.hot(label, where, **options)
        s, bench = self.s, self.bench
        cold = bench.h2storm(
            self.server, self.path, hot=0, cold=s.cold, urls=self.fresh(),
            seconds=round(s.lead + options["seconds"] + s.probe_timeout + TAIL),
            idle=not bench.host.one_core)
        time.sleep(s.lead)
        values = self.hot(label, **options)
        cold.child.send_signal(signal.SIGINT)
        other = load.check_h2storm(cold.result())
        return {**values, "cold_bytes_per_second": other["cold_bytes_per_second"],
                "own_cpu": values["own_cpu"] + other["own_cpu"]}


def measure(bench, cand, where):
    s = bench.settings
    limits = Limits(read_bps=s.limit_mib * MIB, read_iops=s.limit_iops,
                    memory=s.memory_mib * MIB)
    want = bench.content(storm.hot(s))
    with bench.serve(cand, limits, options=servers.hot_set(cand, s.hot_set),
                     http2=True) as server:
        this = Storm(bench, server)
        server.warm(this.path, want)
        alone, calm = this.both(f"{where}, alone")
        if not alone["requests"]:
            raise RuntimeError("h2storm: no answer alone")
        bench.forget()
        server.warm(this.path, want)
        stormed, stormy = this.both(f"{where}, storm", where)
    return {"alone": alone, "calm": calm, "storm": stormed, "stormy": stormy,
            "limit": s.limit_mib * MIB}


# ---------------------------------------------------------------- report


def kept(v):
    return v["storm"]["rate"] / v["alone"]["rate"]


def p99(which):
    return lambda v: v[which]["latency_us"]["p99"]


def tables(view):
    return [Table(f"cold streams {WHERE[where]}", columns(), under(where))
            for where in view.parts(WHERE)]


def columns():
    return [
        Column("hot alone, req/s", count, lambda v: v["alone"]["rate"]),
        Column("CPU µs/req", "{:.1f}".format,
               lambda v: v["alone"]["cpu"] * 1e6 / v["alone"]["requests"], "less"),
        Column("p99 alone", usec, p99("calm")),
        Column("hot in the storm, req/s", count, lambda v: v["storm"]["rate"], "more"),
        Column("of alone", share, kept, "more"),
        Column("p50", usec, lambda v: v["stormy"]["latency_us"]["p50"], "less"),
        Column("p99", usec, p99("stormy"), "less"),
        Column("p99, of alone", "{:.1f}".format,
               lambda v: ratio(p99("stormy")(v), p99("calm")(v)), "less"),
        Column("worst", usec, lambda v: v["stormy"]["latency_us"]["max"], "less"),
        Column("cold sent, of limit", share,
               lambda v: v["storm"]["cold_bytes_per_second"] / v["limit"]),
        Column("beside the rate", share,
               lambda v: v["stormy"]["cold_bytes_per_second"] / v["limit"]),
        Column("server's core", percent, lambda v: v["storm"]["cpu"] / v["storm"]["t"]),
        Column("generators' core, alone", percent,
               lambda v: v["alone"]["own_cpu"] / v["alone"]["seconds"]),
        Column("in the storm", percent, lambda v: v["storm"]["own_cpu"] / v["storm"]["seconds"]),
        *loop_columns(lambda v: [v["storm"], v["stormy"]]),
    ]


def figures(view):
    from laboratory import plot
    for where in view.parts(WHERE):
        figure, (rate, worst) = plot.new(view, columns=2, shares=(3, 2))
        pick = under(where)
        plot.bars(rate, view, [("alone", lambda v: v["alone"]["rate"]),
                               ("in the storm", lambda v: v["storm"]["rate"])],
                  show=count, pick=pick)
        rate.set_xlabel("requests/s for the hot file")
        plot.bars(worst, view, [("alone", lambda v: p99("calm")(v) / 1000),
                                ("in the storm", lambda v: p99("stormy")(v) / 1000)],
                  show=lambda ms: usec(ms * 1000), log=True, pick=pick)
        worst.set_xlabel("p99, ms")
        yield f"The hot file, and its p99 at a fixed rate: cold streams {WHERE[where]}", figure
