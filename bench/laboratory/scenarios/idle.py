"""idle: a great many connections that nobody uses, and a hot load beside them."""

import resource
import statistics
import time

from laboratory import load
from laboratory.bench import MIB
from laboratory.limits import number, read
from laboratory.scenarios import hot
from laboratory.stats import ratio
from laboratory.tables import Column, Table, count, loop_columns, share

TITLE = "Idle: a hundred thousand idle connections"
WHAT = """Each of these connections fetches 1 KiB and then stays open, idle. Beside them wrk
requests cached files of 1 and 16 KiB. The same load is measured before they are opened and
after they are closed, on the same server: "none" is the mean of both. User memory is the
proportional set size (PSS) of the server's processes; the cost of an idle connection is the
difference that all of them make, divided by their number. With idle.protocol=http2 they speak
HTTP/2; wrk speaks HTTP/1. With idle.streams=N each of these then asks for 1 KiB on N streams whose
window is closed: they wait in the server, which has something to keep for each."""
NEEDS = ("wrk", "idle")
# idle: how many; protocol: theirs; streams: of each, that wait, for less than a server's
# patience; connections: wrk's; quiet: seconds without any request
FULL = {"rounds": 3, "idle": 100_000, "protocol": "http1", "streams": 0, "seconds": 3,
        "connections": 64, "quiet": 5}
PROTOCOLS = ("http1", "http2")
QUICK = {"rounds": 1, "idle": 5000, "seconds": 1, "quiet": 1}
CANDIDATES = QUICK_CANDIDATES = ("nodiskio", "nginx", "h2o", "lighttpd")
SIZES = {"1 KiB": 1 << 10, "16 KiB": 16 << 10}
PHASES = ("before", "idle", "after")
SPARE = 512     # connections that a server can have beside the idle ones
SETTLE = 1      # second, after they have come, or gone
RATE = 10000     # that come in a second, about
NOTES = [
    "The number of idle connections is at most three sevenths of the hard limit of open files "
    "(ulimit -Hn). The reasons: lighttpd needs two descriptors for each connection, and nginx closes idle "
    "connections when less than a sixteenth of its connections is free.",
    "lighttpd stores both settings in 16 bits: larger numbers are cut, and it fails.",
    "nginx allocates its tables at the start, for the configured number of connections: they "
    "count as memory without connections.",
    "Kernel memory is the machine's slabs (Slab in /proc/meminfo), so it includes the generator's"
    " end of the connections.",
]


def name_of(size):
    return f"hot-{size >> 10}K"


def files(_s):
    return [(name_of(size), size) for size in SIZES.values()]


def check(s):
    if s.protocol not in PROTOCOLS:
        raise ValueError(f"protocol {s.protocol}: there are {', '.join(PROTOCOLS)}")
    if s.streams and s.protocol != "http2":
        raise ValueError("streams are HTTP/2's: --set idle.protocol=http2")


def seconds(s):
    each = len(SIZES) * (s.seconds + 0.1) + s.quiet + SETTLE
    return len(PHASES) * each + held(s.idle) / RATE


def held(wanted):
    """As many of them as this machine's limit of descriptors allows."""
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    return max(min(wanted, hard * 3 // 7 - SPARE), 1)


def servers_connections(n):
    """What a server is configured for, to hold n idle ones."""
    return n * 8 // 7 + SPARE


def measure(bench, cand):
    n, path = held(bench.settings.idle), f"/{name_of(SIZES['1 KiB'])}"
    http2 = bench.settings.protocol == "http2"
    with bench.serve(hot.set_up(cand), connections=servers_connections(n), http2=http2) as server:
        before = phase(bench, server, "before")
        kept = bench.idle(server, path, n, http2=http2, streams=bench.settings.streams)
        took = kept.ready()["seconds"]
        beside = phase(bench, server, "idle")
        end = kept.close()
        if end["lost"]:
            raise RuntimeError(f"{end['lost']} of {n} connections were closed by the server")
        return {"before": before, "idle": beside, "after": phase(bench, server, "after"),
                "wanted": bench.settings.idle, "connections": n,
                "streams": bench.settings.streams, "took": took}


def phase(bench, server, name):
    """The load, a while without any, and the memory at its end."""
    time.sleep(SETTLE)
    loads = {label: loaded(bench, server, size, f"{name}, {label}")
             for label, size in SIZES.items()}
    with bench.sampled(f"{name}, quiet", server) as quiet:
        time.sleep(bench.settings.quiet)
    return {"loads": loads, "quiet": quiet, "user": user_memory(server.counters.pids()),
            "kernel": number(r"^Slab: *(\d+)", read("/proc/meminfo")) << 10}


def loaded(bench, server, size, name):
    s, path = bench.settings, f"/{name_of(size)}"
    server.warm(path, bench.content(name_of(size)))
    wrk = bench.wrk(server, path, connections=s.connections, seconds=s.seconds)
    with bench.sampled(name, server) as took:
        result = load.check(wrk.result())
    return {**result, **took}


def user_memory(pids):
    """Bytes: proc(5), smaps_rollup."""
    return sum(number(r"^Pss: *(\d+)", read(f"/proc/{pid}/smaps_rollup")) << 10
               for pid in pids)


# ------------------------------------------------------------------ report


def each(what):
    """Bytes of a kind of memory for one of the connections."""
    return lambda v: (v["idle"][what] - v["before"][what]) / v["connections"]


def of_a_stream(v):
    """Bytes, with its share of what the connection has."""
    return each("user")(v) / v["streams"]


def streams(view):
    return any(v.get("streams") for name in view.names for v in view.values(name))


def none(v, get):
    return statistics.mean((get(v["before"]), get(v["after"])))


def rate(label):
    return lambda part: part["loads"][label]["rate"]


def cost(label):
    """µs of CPU time of a request."""
    return lambda part: ratio(part["loads"][label]["cpu"] * 1e6,
                              part["loads"][label]["requests"])


def quiet(part):
    """ms of CPU time in a second without requests."""
    return part["quiet"]["cpu"] * 1e3 / part["quiet"]["t"]


def compared(title, show, get, better):
    """Three columns: without, with, and what becomes of it."""
    return [Column(f"{title}, none", show, lambda v: none(v, get)),
            Column("with them", show, lambda v: get(v["idle"]), better),
            Column("share", share, lambda v: ratio(get(v["idle"]), none(v, get)), better)]


def how_many(view):
    values = [v for name in view.names for v in view.values(name)]
    held_ = min((v["connections"] for v in values), default=0)
    wanted = view.settings["idle"]
    cut = f", not {count(wanted)}, by the limit of open files" if held_ < wanted else ""
    of = " of HTTP/2" if view.settings.get("protocol") == "http2" else ""
    return f"{count(held_)} idle connections{of}{cut}"


def sampled(v):
    """While there are idle connections."""
    return [v["idle"]["quiet"], *v["idle"]["loads"].values()]


def memory(part):
    return lambda v: v[part]["user"] / MIB


def tables(view):
    one, two = "{:.1f}".format, "{:.2f}".format
    title = how_many(view)
    yield Table(title, [
        Column("user memory, MiB", one, memory("before")),
        Column("with them", one, memory("idle"), "less"),
        Column("after them", one, memory("after")),
        Column("bytes each", count, each("user"), "less"),
        *([Column("a stream's", count, of_a_stream, "less")] if streams(view) else []),
        Column("kernel, KiB each, both ends", two, lambda v: each("kernel")(v) / 1024),
        Column("CPU ms/s without requests", two, lambda v: none(v, quiet)),
        Column("with them", two, lambda v: quiet(v["idle"]), "less"),
        *loop_columns(sampled),
    ])
    for label in SIZES:
        yield Table(f"{label}, beside {title}", [
            *compared("requests/s", count, rate(label), "more"),
            *compared("CPU µs/request", two, cost(label), "less")])


def figures(view):
    from laboratory import plot
    figure, axes = plot.new(view, columns=2)
    plot.bars(axes[0], view, [("", each("user"))], count)
    plot.bars(axes[1], view, [("none", lambda v: none(v, cost("1 KiB"))),
                              ("with them", lambda v: cost("1 KiB")(v["idle"]))], "{:.1f}".format)
    plot.title(axes[0], "user memory, bytes a connection")
    plot.title(axes[1], "CPU µs a request, 1 KiB")
    yield f"What {how_many(view)} cost", figure
