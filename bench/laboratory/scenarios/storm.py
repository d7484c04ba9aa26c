"""storm: hot files while a disk is saturated."""

import signal
import time

from laboratory import load, servers
from laboratory.bench import MIB
from laboratory.limits import Limits
from laboratory.scenarios import PICKS, hot_set_note, listed, picked
from laboratory.tables import Column, Table, count, loop_columns, percent, share, under, usec

TITLE = "Storm: a cached file while other clients read uncached ones"
WHAT = """16 connections request one cached 16 KiB file: first alone, then while 48 other
connections read 1 MiB files from a limited disk. These are picked at random, so that some are
requested when a part of them was evicted, or each is requested at most once. Requests/s are
those of wrk. Latency is measured afterwards, in the same storm, by a probe that sends at a
fixed rate whatever the server does; it counts from the time when a request should have been
sent. Its maximum is the longest stall of the event loop. The time that the event loop slept is
counted in both parts."""
NEEDS = ("wrk", "probe", "limits")
# pick: a list; lead: seconds that the cold clients are ahead of the hot ones
FULL = {"rounds": 3, "seconds": 5, "hot_kib": 16, "hot_connections": 16,
        "cold_connections": 48, "limit_mib": 40, "limit_iops": 0, "memory_mib": 256,
        "probe_rate": 1000, "probe_seconds": 5, "probe_timeout": 10, "lead": 1.5,
        "hot_set": "16M", "pick": "random,once"}
QUICK = {"rounds": 2, "seconds": 2, "probe_seconds": 1, "probe_timeout": 2, "lead": 1.3,
         "pick": "random"}
OWNER = True
NOTES = [
    "The cold clients run with the lowest priority (SCHED_IDLE) on the core that they "
    "share with the hot ones: else the table would show how long they hold that core. With "
    "--one-core they have the usual priority, since the hot ones would leave them nothing.",
    "The probe has the core that it shares whenever it wants it (SCHED_FIFO), if the laboratory "
    "runs as root: else its latency would be that of the other clients and of the laboratory. "
    "How late it was itself is in the table; that is part of the latency.",
    "A request without an answer when the probe stopped counts with its wait until then: the "
    "longest stalls were longer than shown.",
    "The worst stall is measured from outside: it includes delays by the machine and the "
    "generators' core.",
    "Alone, the fastest servers are as fast as wrk; its core is busy all the time: CPU time per "
    "request distinguishes them.",
    hot_set_note("storm"),
]
TAIL = 5  # seconds that the cold clients would go on after the probe


def hot(s):
    return f"hot-{s.hot_kib}K"


def cold(s):
    """Eight times what fits into the page cache."""
    return [f"cold/{i:05d}" for i in range(1, 8 * s.memory_mib + 1)]


def files(s):
    yield hot(s), s.hot_kib << 10
    for name in cold(s):
        yield name, MIB


def parts(s):
    return listed(s.pick, among=PICKS)


check = parts


def seconds(s):
    return s.lead + 2 * (s.seconds + s.probe_seconds) + s.probe_timeout / 2 + 0.3


def throughput(bench, server, label, least):
    s = bench.settings
    load_ = bench.wrk(server, f"/{hot(s)}", connections=s.hot_connections,
                      seconds=s.seconds)
    with bench.sampled(label, server) as took:
        result = load.check(load_.result(), least)
    return {**result, **took}


def latency(bench, server, label):
    s = bench.settings
    probe = bench.probe(server, f"/{hot(s)}", rate=s.probe_rate,
                        connections=s.hot_connections, seconds=s.probe_seconds,
                        timeout=s.probe_timeout)
    with bench.sampled(label, server) as took:
        result = probe.result()
    if set(result["statuses"]) - {"200"}:
        raise RuntimeError(f"probe: answers {result['statuses']}")
    return {**result, **{key: took[key] for key in ("asleep", "sleeps", "turn")}}


def limits(s):
    return Limits(read_bps=s.limit_mib * MIB, read_iops=s.limit_iops, memory=s.memory_mib * MIB)


def measure(bench, cand, pick):
    s = bench.settings
    with bench.serve(cand, limits(s), options=servers.hot_set(cand, s.hot_set)) as server:
        return beside(bench, server, pick, bench.forget)


def beside(bench, server, pick, forget):
    """Alone, and in the storm; forget: has all leave memory between them."""
    s, want = bench.settings, bench.content(hot(bench.settings))
    server.warm(f"/{hot(s)}", want)
    alone = throughput(bench, server, f"{pick}, alone", least=1)
    calm = latency(bench, server, f"{pick}, calm")
    forget()
    server.warm(f"/{hot(s)}", want)
    others = bench.wrk(
        server, urls=[f"/{name}" for name in picked(bench, cold(s), pick)],
        idle=not bench.host.one_core, connections=s.cold_connections,
        seconds=round(s.lead + s.seconds + s.probe_seconds + s.probe_timeout + TAIL))
    time.sleep(s.lead)
    storm = throughput(bench, server, f"{pick}, storm", least=0)
    stormy = latency(bench, server, f"{pick}, stormy")
    others.child.send_signal(signal.SIGINT)
    cold_result = load.check(others.result())
    return {"alone": alone, "calm": calm, "storm": storm, "stormy": stormy,
            "cold": cold_result, "limit": s.limit_mib * MIB}


def tables(view):
    return [Table(f"cold files {PICKS[part]}", columns(), under(part))
            for part in view.parts(PICKS)]


def columns():
    return [
        Column("hot alone, req/s", count, lambda v: v["alone"]["rate"]),
        Column("p99 alone", usec, lambda v: v["calm"]["latency_us"]["p99"]),
        Column("CPU µs/req", "{:.1f}".format,
               lambda v: v["alone"]["cpu"] * 1e6 / v["alone"]["requests"], "less"),
        Column("hot in the storm, req/s", count, lambda v: v["storm"]["rate"], "more"),
        Column("of alone", share, kept, "more"),
        Column("p50", usec, lambda v: v["stormy"]["latency_us"]["p50"], "less"),
        Column("p99", usec, lambda v: v["stormy"]["latency_us"]["p99"], "less"),
        Column("worst stall", usec, stall, "less"),
        Column("probe's own delay, p99", usec, lambda v: v["stormy"]["own_delay_us"]["p99"]),
        Column("cold read, of limit", share,
               lambda v: v["storm"]["disk_bytes"] / v["storm"]["t"] / v["limit"]),
        Column("cold sent, of limit", share,
               lambda v: v["cold"]["bytes"] / v["cold"]["seconds"] / v["limit"]),
        Column("CPU", percent, lambda v: v["storm"]["cpu"] / v["storm"]["t"]),
        *loop_columns(lambda v: [v["storm"], v["stormy"]]),
    ]


def kept(v):
    return v["storm"]["rate"] / v["alone"]["rate"]


def stall(v):
    return v["stormy"]["latency_us"]["max"]


def figures(view):
    from laboratory import plot
    for part in view.parts(PICKS):
        figure, (rate, worst) = plot.new(view, columns=2, shares=(3, 2))
        pick = under(part)
        plot.bars(rate, view, [
            ("alone", lambda v: v["alone"]["rate"]),
            ("in the storm", lambda v: v["storm"]["rate"])], show=count, pick=pick)
        rate.set_xlabel("requests/s for the hot file")
        plot.bars(worst, view, [("in the storm", lambda v: stall(v) / 1000)],
                  show=lambda ms: usec(ms * 1000), log=True, pick=pick)
        worst.set_xlabel("worst stall, ms")
        yield ("Remaining rate of the hot requests, and longest stall of the event loop: cold "
               f"files {PICKS[part]}", figure)
