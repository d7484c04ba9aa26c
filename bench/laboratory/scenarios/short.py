"""short: small cold files while others download large ones."""

import signal
import time
import types

from laboratory import load
from laboratory.bench import MIB
from laboratory.limits import Limits
from laboratory.scenarios import download
from laboratory.tables import Column, Table, loop_columns, percent, share, usec

TITLE = "Short: small uncached files beside large downloads"
WHAT = """64 clients download large uncached files from a limited disk. Beside them a probe requests
small uncached files at a fixed rate, each of them seldom more than once: first without the
downloads, then with them. Latency counts from the time when a request should have been sent. A
server that reads for its clients in the order in which they came lets a small file wait for all
of the downloads."""
NEEDS = ("wrk", "probe", "limits")
# mib: of all downloads together; rate: small files a second; lead: seconds that downloads are ahead
FULL = {"rounds": 3, "seconds": 8, "downloads": 64, "mib": 1024, "files": 1000, "file_kib": 16,
        "rate": 20, "connections": 64, "timeout": 5, "limit_mib": 100, "memory_mib": 512,
        "lead": 2.0}
QUICK = {"rounds": 1, "seconds": 3, "timeout": 3, "lead": 1.0}
CANDIDATES = QUICK_CANDIDATES = ("nodiskio", "blocking", "nginx", "nginx-threads-64")
TAIL = 5  # seconds that the downloads would go on after the probe
NOTES = [
    "Only the contents of the files are uncached. Their names and inodes are cached.",
    "The downloads run with the lowest priority (SCHED_IDLE) on the core that they share with the "
    "probe, except with --one-core.",
    "A request without an answer when the probe stopped counts with its wait until then.",
]


def names(s):
    return [f"short-{s.file_kib}K/{i:05d}" for i in range(1, s.files + 1)]


def large(s):
    return download.names(types.SimpleNamespace(mib=s.mib), s.downloads)


def files(s):
    yield download.HOT, 16 << 10
    yield from ((name, s.file_kib << 10) for name in names(s))
    yield from ((name, s.mib // s.downloads * MIB) for name in large(s))


def seconds(s):
    return s.lead + 2 * s.seconds + s.timeout / 2 + 0.5


def measure(bench, cand):
    s = bench.settings
    limits = Limits(read_bps=s.limit_mib * MIB, memory=s.memory_mib * MIB)
    bench.forget(*names(s), *large(s))
    small = bench.shuffled(names(s))
    with bench.serve(cand, limits) as server:
        server.warm(f"/{download.HOT}", bench.content(download.HOT))
        alone = probed(bench, server, "alone", small[::2])
        others = bench.wrk(server, urls=[f"/{name}" for name in bench.shuffled(large(s))],
                           connections=s.downloads, idle=not bench.host.one_core,
                           seconds=round(s.lead + s.seconds + s.timeout + TAIL))
        time.sleep(s.lead)
        beside = probed(bench, server, "beside", small[1::2])
        others.child.send_signal(signal.SIGINT)
        load.check(others.result(), least=0)
    return {"alone": alone, "beside": beside, "limit": s.limit_mib * MIB}


def probed(bench, server, label, small):
    s = bench.settings
    probe = bench.probe(server, urls=[f"/{name}" for name in small], rate=s.rate,
                        connections=s.connections, seconds=s.seconds, timeout=s.timeout)
    with bench.sampled(label, server) as took:
        result = probe.result()
    if set(result["statuses"]) - {"200"}:
        raise RuntimeError(f"probe: answers {result['statuses']}")
    return {**{key: result[key] for key in ("latency_us", "requested", "answered")}, **took}


# ------------------------------------------------------------------ report


def latency(part, which):
    return lambda v: v[part]["latency_us"][which]


def tables(_view):
    return [Table("", [
        Column("p50 alone", usec, latency("alone", "p50")),
        Column("p99 alone", usec, latency("alone", "p99")),
        Column("p50 beside", usec, latency("beside", "p50"), "less"),
        Column("p99 beside", usec, latency("beside", "p99"), "less"),
        Column("worst", usec, latency("beside", "max"), "less"),
        Column("answered", percent, lambda v: v["beside"]["answered"] / v["beside"]["requested"],
               "more"),
        Column("disk read, of limit", share,
               lambda v: v["beside"]["disk_bytes"] / v["beside"]["t"] / v["limit"]),
        *loop_columns(lambda v: [v["beside"]]),
    ])]


def figures(view):
    from laboratory import plot
    figure, ax = plot.new(view)
    plot.bars(ax, view, [("p50", lambda v: latency("beside", "p50")(v) / 1000),
                         ("p99", lambda v: latency("beside", "p99")(v) / 1000)],
              lambda ms: usec(ms * 1000), log=True)
    ax.set_xlabel("until a small file arrives, ms")
    yield "Small uncached files beside large downloads (shorter is better)", figure
