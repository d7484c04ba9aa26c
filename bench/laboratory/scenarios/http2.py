"""http2: files that are in memory, over HTTP/2, with few and with many streams a connection."""

import dataclasses

from laboratory import load, servers
from laboratory.bench import GIB, MIB
from laboratory.scenarios import hot, hot_set_note, listed
from laboratory.stats import ratio
from laboratory.tables import Column, Table, count, loop_columns, percent, share, under

TITLE = "HTTP/2: cached files, with 1 to 100 streams a connection"
WHAT = """h2load requests a cached file repeatedly over HTTP/2, on 4 connections, each with as many
requests at once as the table says: over TLS by ALPN, in clear text with prior knowledge. CPU time
is that of the server, from the counters of its control group, and is divided by the bytes of
bodies that arrived: a request's is that of so many bytes as the file has. Files of 1 MiB and more
are compared with our own HTTP/1 as well, for which h2load has as many connections as there are
streams here: what the client has to do changes what the server's core does for TCP. Ratios are of two measurements of the same round, and the table shows the median of
the rounds' ratios. Servers over TLS are compared with each other, and so are those in clear
text. The best peer is the one with the best median."""
NEEDS = ("h2load",)
HTTP2 = True
# cases, streams, large_streams (of files of 1 MiB and more): lists
FULL = {"rounds": 5, "seconds": 2, "connections": 4, "cases": "1K,16K,64K,1M,16M",
        "streams": "1,10,100", "large_streams": "10"}
QUICK = {"rounds": 1, "seconds": 1, "cases": "1K,64K,1M", "streams": "1,100"}
CANDIDATES = QUICK_CANDIDATES = ("nodiskio", "nodiskio-tls", "nginx", "nginx-tls", "h2o-tls",
                                 "lighttpd-tls", "caddy-tls")
NOTES = [
    "Where the generator's core is busy to 100 %, requests/s are h2load's limit and not the "
    "server's: then CPU time per request tells the servers apart.",
    "h2load's windows are 1 GiB, of streams and of connections: no server waits for a window.",
    "A server may take fewer streams at once than are asked for: the others wait in h2load.",
    hot_set_note("hot").partition(" All paths")[0],
]
CASES = {name: hot.CASES[name] for name in ("1K", "16K", "64K", "1M", "16M")}
HTTP1 = "http1"


@dataclasses.dataclass(frozen=True)
class Part:
    case: hot.Case
    streams: int

    @property
    def large(self):
        return self.case.size >= MIB

    @property
    def label(self):
        return f"{self.case.label}, {self.streams} stream{'s' if self.streams > 1 else ''}"


def parts(s):
    return [f"{case}, {streams}" for case in listed(s.cases, among=CASES)
            for streams in listed(s.large_streams if CASES[case].size >= MIB else s.streams, int)]


def of_part(part):
    case, _, streams = part.partition(", ")
    return Part(CASES[case], int(streams))


def check(s):
    for part in parts(s):
        if not 1 <= of_part(part).streams <= 1000:
            raise ValueError(f"{of_part(part).streams} streams: from 1 to 1000")


def measured(name, part):
    return name not in REFERENCES or of_part(part).large


def files(s):
    return [(CASES[case].names()[0], CASES[case].size) for case in listed(s.cases, among=CASES)]


def seconds(s):
    return s.seconds + 0.2


# ------------------------------------------------------------- measuring


def measure(bench, cand, part):
    s, this = bench.settings, of_part(part)
    with bench.serve(cand, http2=True) as server:
        return one(bench, server, cand.name, part, lambda path: bench.h2load(
            server, path, connections=s.connections, streams=this.streams, seconds=s.seconds))


def own_http1(tls, bench, part):
    """The same bytes by HTTP/1."""
    s, cand = bench.settings, (servers.encrypted() if tls else servers.paths())[0]
    with bench.serve(cand) as server:
        return one(bench, server, HTTP1 + servers.TLS * tls, part, lambda path: bench.h2load(
            server, path, http1=True, connections=s.connections * of_part(part).streams, streams=1,
            seconds=s.seconds))


def one(bench, server, name, part, start):
    case = of_part(part).case
    (file,) = case.names()
    server.warm(f"/{file}", bench.content(file))
    generator = start(f"/{file}")
    with bench.sampled(part, server) as took:
        result = load.check(generator.result(), least=0 if of_part(part).large else 1)
    return {"server": name, "part": part, "round": bench.number, **result, **took,
            "answers": result["bytes"] / case.size}


REFERENCES = {
    HTTP1: ("pagewise, HTTP/1", lambda bench, part: own_http1(False, bench, part)),
    HTTP1 + servers.TLS: ("pagewise, TLS, HTTP/1", lambda bench, part: own_http1(True, bench, part)),
}


def referred(name, cand):
    return servers.over_tls(name) == cand.tls


# ---------------------------------------------------------------- report


def rate(v):
    return v["answers"] / v["t"]


def gib(v):
    """Seconds of CPU time of a GiB."""
    return ratio(v["cpu"], v["bytes"] / GIB)


def best(view, part, tls):
    """Names of the best peers, by CPU time and by requests/s."""
    return (hot.best(view, part, "peer", hot.cpu, tls=tls),
            hot.best(view, part, "peer", rate, max, tls=tls))


def shown(view):
    known = {part for name in view.names for values in view.values(name) for part in values}
    return sorted(known, key=lambda part: (of_part(part).case.size, of_part(part).streams))


def columns(view, part):
    bases = {tls: best(view, part, tls) for tls in (False, True)}

    def of_best(get, which):
        return hot.compared(view, get,
                            lambda _, name: (bases[servers.over_tls(name)][which], part))

    of_http1 = hot.compared(view, gib, lambda _, name: (
        HTTP1 + servers.TLS * servers.over_tls(name), part))
    large = [Column("CPU s/GiB", "{:.3f}".format, gib, "less"),
             Column("of our HTTP/1", share, of_http1)]
    small = [Column("requests/s", count, rate, "more"),
             Column("CPU µs/request", "{:.2f}".format, hot.cpu, "less")]
    return [
        *(large if of_part(part).large else small),
        Column("CPU, of the best peer", share, of_best(hot.cpu, 0)),
        Column("MiB/s" if of_part(part).large else "KiB/s", count,
               lambda v: v["bytes"] / v["t"] / (MIB if of_part(part).large else 1024), "more"),
        Column("rate, of the best peer", share, of_best(rate, 1)),
        Column("server's core", percent, lambda v: ratio(v["cpu"], v["t"])),
        Column("generator's core", percent, lambda v: ratio(v["own_cpu"], v["t"])),
        *loop_columns(),
    ]


def title(view, part):
    said = [f"best peer{', TLS' if tls else ''}: {view.title(name)}" for tls in (False, True)
            if (name := best(view, part, tls)[0])]
    return of_part(part).label + (f" ({'; '.join(said)})" if said else "")


def tables(view):
    return [Table(title(view, part), columns(view, part), under(part)) for part in shown(view)]


def figures(view):
    from laboratory import plot
    drawn = shown(view)
    small, large = ([part for part in drawn if of_part(part).large == is_] for is_ in (False, True))
    for some, get, what in ((small, hot.cpu, "CPU time per request, µs"),
                            (large, gib, "CPU time per GiB, s")):
        for few in (some[:3], some[3:6], some[6:9]):
            if not few:
                continue
            figure, _ = plot.new(view, columns=len(few))
            for ax, part in zip(figure.axes, few):
                plot.bars(ax, view, [(part, get)], "{:.2f}".format, pick=under(part))
                plot.title(ax, of_part(part).label)
            yield f"{what} (shorter is better)", figure
