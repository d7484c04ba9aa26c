"""handshakes: TLS connections that come and go, and hot clients beside them."""

import signal
import time

from laboratory import load
from laboratory.scenarios import hot, listed
from laboratory.stats import ratio
from laboratory.tables import Column, Table, count, loop_columns, percent, share, under, usec

TITLE = "Handshakes: TLS connections that come and go"
WHAT = """Clients connect, shake hands, request 1 KiB and close, as many as there can be: full
handshakes with a P-256 and with an RSA-2048 certificate, then handshakes that are resumed with a
ticket. CPU time is that of the server for all of it: connection, handshake, tickets, request and
close. At last a probe asks for a cached 16 KiB file at a fixed rate on connections that are kept,
alone and beside RSA-2048 handshakes that come at a fixed rate."""
NEEDS = ("probe", "handshake")
TLS = True
FULL = {"rounds": 5, "seconds": 3, "connections": 64, "cases": "P-256,RSA-2048,resumed,beside",
        "rate": 500, "probe_rate": 1000, "probe_connections": 16, "probe_seconds": 5,
        "probe_timeout": 10, "lead": 0.5}
QUICK = {"rounds": 1, "seconds": 1, "probe_seconds": 2, "probe_timeout": 2}
CANDIDATES = QUICK_CANDIDATES = ("nodiskio-tls", "nginx-tls", "h2o-tls", "lighttpd-tls",
                                 "caddy-tls")
CASES = {
    "P-256": "full handshakes, P-256", "RSA-2048": "full handshakes, RSA-2048",
    "resumed": "resumed handshakes, by a ticket",
    "beside": "a cached file, alone and beside full RSA-2048 handshakes",
}
SMALL, HOT = ("hot-1K", 1 << 10), ("hot-16K", 16 << 10)
TAIL = 2  # seconds that the handshakes would go on after the probe
NOTES = [
    "A client's part of a handshake costs about as much CPU time as the server's, and with P-256 "
    "more. Where the generator's core is busy to 100 %, handshakes/s are the generator's limit, "
    "and CPU time per handshake tells the servers apart.",
    "All clients offer TLS 1.3 with TLS_AES_256_GCM_SHA384 and X25519 only. A ticket is used for "
    "all resumed connections.",
    "Handshakes beside the probe run with the lowest priority (SCHED_IDLE) on the core that they "
    "share with it, except with --one-core.",
]


def parts(s):
    return listed(s.cases, among=CASES)


check = parts


def files(_s):
    return [SMALL, HOT]


def seconds(s):
    """Of one part, on average."""
    return (3 * s.seconds + s.lead + 2 * s.probe_seconds) / len(CASES) + 0.5


# ------------------------------------------------------------- measuring


def measure(bench, cand, part):
    kind = "P-256" if part in ("P-256", "resumed") else "RSA-2048"
    with bench.serve(hot.set_up(cand), kind=kind) as server:
        for name, _ in (SMALL, HOT):
            server.warm(f"/{name}", bench.content(name))
        values = beside(bench, server) if part == "beside" else shaken(bench, server, part)
    return {"server": cand.name, "part": part, "round": bench.number, **values}


def shaken(bench, server, part):
    s = bench.settings
    shaker = bench.handshake(server, f"/{SMALL[0]}", connections=s.connections,
                             seconds=s.seconds, more=["--resume"] if part == "resumed" else [])
    with bench.sampled(part, server) as took:
        result = load.check_handshakes(shaker.result())
    if part == "resumed" and result["resumed"] < result["handshakes"]:
        raise RuntimeError(f"{result['resumed']} of {result['handshakes']} were resumed")
    return {**result, **took}


def beside(bench, server):
    s = bench.settings
    calm = probed(bench, server, "alone")
    shaker = bench.handshake(
        server, f"/{SMALL[0]}", connections=s.connections, idle=not bench.host.one_core,
        seconds=round(s.lead + s.probe_seconds + s.probe_timeout + TAIL),
        more=["--rate", s.rate])
    time.sleep(s.lead)
    stormy = probed(bench, server, "beside")
    shaker.child.send_signal(signal.SIGINT)
    return {"calm": calm, "stormy": stormy, "shaken": load.check_handshakes(shaker.result())}


def probed(bench, server, label):
    s = bench.settings
    probe = bench.probe(server, f"/{HOT[0]}", rate=s.probe_rate, seconds=s.probe_seconds,
                        connections=s.probe_connections, timeout=s.probe_timeout)
    with bench.sampled(label, server) as took:
        result = probe.result()
    if set(result["statuses"]) != {"200"}:
        raise RuntimeError(f"probe: answers {result['statuses']}, errors {result['errors']}")
    return {**result, **took}


# ---------------------------------------------------------------- report


def rate(v):
    return v["handshakes"] / v["seconds"]


def cpu(v):
    """Microseconds of a handshake, with all that its connection took."""
    return v["cpu"] * 1e6 / v["handshakes"]


def p99(which):
    return lambda v: v[which]["latency_us"]["p99"]


def tables(view):
    for part in view.parts(CASES):
        yield Table(CASES[part], columns_beside() if part == "beside" else columns(view, part),
                    under(part))


def columns(view, part):
    by_rate = hot.best(view, part, "peer", rate, max, tls=True)
    by_cpu = hot.best(view, part, "peer", cpu, tls=True)
    return [
        Column("handshakes/s", count, rate, "more"),
        Column("CPU µs each", count, cpu, "less"),
        Column("handshakes/s, of the best peer", share,
               hot.compared(view, rate, lambda *_: (by_rate, part))),
        Column("CPU, of the best peer", share,
               hot.compared(view, cpu, lambda *_: (by_cpu, part))),
        Column("handshake, p50", usec, lambda v: v["handshake_us"]["p50"]),
        Column("p99", usec, lambda v: v["handshake_us"]["p99"]),
        Column("server's core", percent, lambda v: v["cpu"] / v["t"]),
        Column("generator's core", percent, lambda v: v["own_cpu"] / v["t"]),
        *loop_columns(),
    ]


def columns_beside():
    return [
        Column("p50 alone", usec, lambda v: v["calm"]["latency_us"]["p50"]),
        Column("p99 alone", usec, p99("calm")),
        Column("p50 beside", usec, lambda v: v["stormy"]["latency_us"]["p50"], "less"),
        Column("p99 beside", usec, p99("stormy"), "less"),
        Column("of alone", share, lambda v: ratio(p99("stormy")(v), p99("calm")(v)), "less"),
        Column("worst", usec, lambda v: v["stormy"]["latency_us"]["max"], "less"),
        Column("handshakes/s", count, lambda v: rate(v["shaken"])),
        Column("handshake, p99", usec, lambda v: v["shaken"]["handshake_us"]["p99"]),
        Column("CPU", percent, lambda v: v["stormy"]["cpu"] / v["stormy"]["t"]),
        *loop_columns(lambda v: [v["stormy"]]),
    ]


def figures(view):
    from laboratory import plot
    drawn = [part for part in view.parts(CASES) if part != "beside"]
    if not drawn:
        return
    figure, _ = plot.new(view, columns=len(drawn))
    for ax, part in zip(figure.axes, drawn):
        plot.bars(ax, view, [(part, cpu)], count, pick=under(part))
        plot.title(ax, CASES[part])
    yield "CPU time per handshake with its request, µs (shorter is better)", figure
