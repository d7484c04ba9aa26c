"""hung: a device that is slower than any disk, and then one that hangs for good."""

import dataclasses
import math
import os
import signal
import time

from laboratory import load, metrics, servers, slowfs
from laboratory.bench import MIB
from laboratory.limits import Limits
from laboratory.stats import ratio
from laboratory.tables import Column, Table, count, loop_columns, share, usec

TITLE = "Hung: a device with a delay of half a second, and a device that hangs"
WHAT = """Two roots on two devices: a disk, and a FUSE file system (tests/fault/slowfs) on which
each lookup, open, read and readdir takes 500 ms. 200 clients request files and listings of the
second device, while a probe requests a cached 16 KiB file of the first one, 1000 times per
second whatever the server does. Then the second device hangs and answers nothing: the same
probe runs again, and 16 connections read uncached files of the first device, which is limited,
as they did before the hang. Requests that wait for the hung device should get 503. nginx, without
libpagewise and with it, is asked for files only."""
NEEDS = ("probe", "replay", "limits", "network", "fuse")
# timeout: disk_timeout of the server, s; lead: until all clients wait for the device
FULL = {"rounds": 3, "clients": 200, "delay_ms": 500, "rate": 1000, "connections": 16,
        "seconds": 10, "lead": 3.0, "cold": 384, "limit_mib": 100, "memory_mib": 256, "timeout": 5,
        "probe_timeout": 10}
QUICK = {"rounds": 1, "seconds": 3, "cold": 128}
OWNER = True
CANDIDATES = QUICK_CANDIDATES = ("nodiskio", "nodiskio-owner", "nginx", "nginx-pagewise")
PEERS = {"nginx": "hung-nginx.conf", "nginx-pagewise": "hung-nginx.conf"}
HOT, HOT_SIZE = "hot-16K", 16 << 10
SLOW = "127.0.0.2"  # the second root's address
NAMES = 8           # asked for by each client of the slow device, at most
LISTINGS = 8        # each so many names a directory's
TAKES = 64 << 10    # bytes of a file there
TURNS = "pagewise_loop_turn_seconds"
LONG = (0.512, 1.024, 4.096)  # ms, bounds of that histogram: powers of two of a microsecond
NOTES = [
    "The probe's latency is counted from when a request should have been sent; generators and "
    "their delays are in it, and the probe's own delay is beside it.",
    "The event-loop iterations are the server's own figures, without the wait for events; delays "
    "that the machine causes during an iteration are included. nginx has no such figures.",
    "A request without an answer when the probe stopped counts with its wait until then.",
    "Files on FUSE have no residency query: a thread of the pool sends them. Other devices have "
    "threads of their own.",
    "The clients of nginx ask for no listings: its autoindex module opens directories itself, "
    "beside libpagewise too. Other peers have no configuration for this scenario.",
]


def names(s, listings):
    return [f"d{i}/" if listings and i % LISTINGS == 0 else f"d{i}/file"
            for i in range(s.clients * NAMES)]


def cold(s):
    return [f"cold/{i:05d}" for i in range(1, s.cold + 1)]


def files(s):
    yield HOT, HOT_SIZE
    for name in cold(s):
        yield name, MIB


def patience(s):
    """For the cold files, when one device hangs."""
    return 3 * s.cold / s.limit_mib + s.timeout


def seconds(s):
    return 3 * s.seconds + 2 * s.lead + 2 * s.cold / s.limit_mib + s.timeout + 4


def configured(cand, **words):
    """With two roots."""
    if cand.ours:
        argv = ("@PROGRAM@", "-c", "@CONF@", *cand.path, "--admin", servers.ADMIN)
        return dataclasses.replace(cand, argv=argv, conf=("hung.conf",), words=words)
    if cand.name in PEERS:
        return dataclasses.replace(cand, conf=(PEERS[cand.name],), words={**cand.words, **words})
    raise RuntimeError("this server has no configuration for two roots")


def measure(bench, cand):
    s = bench.settings
    made = [(f"d{i}/file", TAKES) for i in range(s.clients * NAMES)]
    with slowfs.mounted(bench.data, made) as slow:
        for name, _ in made:  # the kernel looks names in one directory up one by one
            os.stat(os.path.dirname(f"{slow.dir}/{name}"))
        there = configured(cand, SLOW=slow.dir, TIMEOUT=str(s.timeout))
        limits = Limits(read_bps=s.limit_mib * MIB, memory=s.memory_mib * MIB)
        with bench.serve(there, limits) as server:
            server.warm(f"/{HOT}", bench.content(HOT))
            return {**delayed(bench, server, slow), **hangs(bench, server, slow)}


def turns(server):
    """Of the server's loop so far, {bound: how many}; None: it does not tell."""
    return metrics.histogram(server.metrics(), TURNS) if server.cand.ours else None


def turned(before, after):
    """How many meanwhile, and their lengths."""
    if before is None:
        return {"turns": None, "turn_lengths": []}
    past = metrics.difference(before, after)
    return {"turns": past.pop(math.inf), "turn_lengths": sorted(past.items())}


def probed(bench, server, label):
    """With the turns of the server's loop meanwhile, by their lengths."""
    s, before = bench.settings, turns(server)
    probe = bench.probe(server, f"/{HOT}", rate=s.rate, connections=s.connections,
                        seconds=s.seconds, timeout=s.probe_timeout)
    with bench.sampled(label, server) as took:
        result = probe.result()
    if set(result["statuses"]) - {"200"}:
        raise RuntimeError(f"probe: answers {result['statuses']}")
    return {**{key: result[key] for key in ("latency_us", "own_delay_us", "requested",
                                            "answered", "buckets")},
            **turned(before, turns(server)), "asleep": took["asleep"], "turn": took["turn"]}


def crowd(bench, server, which=slice(None)):
    """The clients of the slow device; which: of the names."""
    s = bench.settings
    urls = [f"/{name}" for name in names(s, listings=server.cand.ours)[which]]
    return load.replay(bench.undo, bench.commands, f"http://{SLOW}:{server.port}",
                       bench.list(urls), connections=s.clients,
                       timeout=s.lead + s.seconds + s.timeout + patience(s))


def delayed(bench, server, slow):
    s = bench.settings
    calm = probed(bench, server, "calm")
    slow.set("delay", s.delay_ms)
    others = crowd(bench, server)
    time.sleep(s.lead)
    before, start = slow.seen(), time.monotonic()
    beside = probed(bench, server, "delayed")
    rate = (slow.seen() - before) / (time.monotonic() - start)
    others.child.send_signal(signal.SIGINT)
    answers = others.result()
    slow.release()
    return {"calm": calm, "delayed": {**beside, "operations": rate,
                                      "statuses": answers["statuses"]}}


def hangs(bench, server, slow):
    """Names that nobody has asked for: what is in memory does not hang."""
    s = bench.settings
    alone = read_cold(bench, server, load.check_replay)
    slow.set("hang")
    others = crowd(bench, server, slice(-s.clients, None))
    time.sleep(s.lead)
    beside = read_cold(bench, server, load.check_replay if server.cand.ours else dict)
    found = {"hangs": probed(bench, server, "hangs"), "alone": alone, "beside": beside,
             "statuses": others.result()["statuses"]}
    slow.release()  # a server that waits could not be ended
    return found


def read_cold(bench, server, check):
    """Bytes per second; check: of what replay says."""
    s = bench.settings
    bench.forget(*cold(s))
    result = check(bench.replay(server, [f"/{name}" for name in cold(s)],
                                connections=s.connections, timeout=patience(s)).result())
    return result["body_bytes"] / result["seconds"]


# ------------------------------------------------------------------ report


def probe_columns(part):
    return [
        Column("requests", count, lambda v: v[part]["requested"]),
        Column("answered", count, lambda v: v[part]["answered"]),
        *(Column(key, usec, lambda v, key=key: v[part]["latency_us"][key], "less")
          for key in ("p50", "p99", "p99.9", "max")),
        Column("probe's own delay, p99", usec, lambda v: v[part]["own_delay_us"]["p99"]),
        Column("loop iterations", count, lambda v: v[part]["turns"]),
        *(Column(f"above {ms} ms", "{:.0f}".format, lambda v, ms=ms: longer(v[part], ms), "less")
          for ms in LONG),
        *loop_columns(lambda v: [v[part]]),
    ]


def longer(v, ms):
    """How many turns; None: the server does not tell."""
    if v["turns"] is None:
        return None
    return metrics.above({**dict(v["turn_lengths"]), math.inf: v["turns"]}, ms / 1000)


def tables(view):
    s = view.settings
    return [
        Table("the probe alone", probe_columns("calm")),
        Table(f"{s['clients']} clients on a device on which all takes {s['delay_ms']} ms", [
            *probe_columns("delayed"),
            Column("operations/s there", "{:.0f}".format, lambda v: v["delayed"]["operations"])]),
        Table(f"{s['clients']} clients on a device that hangs", [
            *probe_columns("hangs"),
            Column("503 answers", count, lambda v: v["statuses"].get("503", 0)),
            Column("other answers", "{:.0f}".format, lambda v: sum(v["statuses"].values()) -
                   v["statuses"].get("503", 0))]),
        Table("cold files of the other device", [
            Column("MiB/s before", "{:.1f}".format, lambda v: v["alone"] / MIB),
            Column("while one hangs", "{:.1f}".format, lambda v: v["beside"] / MIB, "more"),
            Column("of before", share, lambda v: ratio(v["beside"], v["alone"]), "more")]),
    ]


PARTS = (("calm", "alone"), ("delayed", "beside clients of the slow device"),
         ("hangs", "beside clients of the device that hangs"))


def figures(view):
    from laboratory import plot
    figure, axes = plot.new(view, columns=2, height=2.8)
    for ax, curve, title in zip(axes, (latencies, turn_lengths), (
            "the probe's requests, ms", "event-loop iterations, ms")):
        for (part, label), shade in zip(PARTS, plot.LINES):
            if points := curve(view.values(view.names[0])[0][part]):
                ax.plot(*zip(*points), color=shade, linewidth=1.4, label=label)
        ax.set_xscale("log")
        ax.set_yscale("log")
        plot.shown_plainly(ax.xaxis)
        plot.shown_plainly(ax.yaxis, lambda share: f"{100 * share:.6g} %")
        ax.grid(axis="both")
        ax.set_xlabel(title, fontsize=9)
    axes[0].set_ylabel("share that took this long or longer", fontsize=9)
    axes[0].legend(fontsize=8, frameon=False)
    yield ("Share of the probe's requests, and of the server's event-loop iterations, that took "
           "this long or longer, in the first round", figure)


def latencies(v):
    """(ms, share that took so long); of the probe's buckets: from, to (µs), how many."""
    total = left = sum(n for *_, n in v["buckets"])
    points = []
    for low, _, n in v["buckets"]:
        points.append((low / 1000, left / total))
        left -= n
    return points


def turn_lengths(v):
    """The same, above each bound, as long as there are any."""
    return [(bound * 1000, 1 - n / v["turns"]) for bound, n in v["turn_lengths"]
            if n < v["turns"]]
