"""hot: files that are in memory, and how far a server is from the least it could do."""

import dataclasses
import functools
import os
import types

from laboratory import load, servers
from laboratory.bench import MIB
from laboratory.limits import number
from laboratory.run import REFERENCE
from laboratory.scenarios import hot_set_note, listed
from laboratory.stats import ratio
from laboratory.tables import Column, Table, count, loop_columns, percent, share, under

TITLE = "Hot: cached files, from 1 KiB to 16 MiB"
WHAT = """wrk requests cached files repeatedly, first without access logs, then with one in
every server. The disk is not used: the result is the cost of the server itself. CPU time is
that of the server, from the counters of its control group. The limit is bench/limit.c: a loop
that only finds the end of a request's head and sends a prepared answer, without an access log.
It has three ways to send; the one with the least CPU time per request is the limit for all
comparisons. Over TLS the limit is that loop with send and what openssl speed needs for as
many bytes of AES-256-GCM, in pieces of 16 KiB; servers over TLS are compared with each other. Ratios are of two measurements of the same round, and the table shows the
median of the rounds' ratios. The best peer is the one with the best median."""
NEEDS = ("wrk", "replay", "limit")
# seconds: whole ones, which is what wrk takes; cases, log: lists
FULL = {"rounds": 5, "seconds": 2, "connections": 64,
        "cases": "1K,16K,64K,1M,16M,pipelined,spread", "log": "off,on", "hot_set": "128M"}
QUICK = {"rounds": 1, "seconds": 1, "cases": "1K,64K,1M,pipelined", "log": "off"}
CANDIDATES = QUICK_CANDIDATES = ("nodiskio", "nginx", "h2o", "lighttpd")
NOTES = [
    "Where the generator's core is busy to 100 %, requests/s are wrk's limit and not the "
    "server's: then CPU time per request tells the servers apart.",
    "The limit is not a server: it ignores the request target. That of TLS is a sum of two "
    "measurements, and no program: it makes no records, and has no rate. From 1 MiB a server may "
    "need less: it sends what it has just encrypted from the processor's cache, while the loop "
    "sends the file from memory.",
    "Access logs are written to a file in memory or on the disk below TMPDIR, as it is mounted; "
    "the kernel writes it to the disk, which is not counted.",
    "nginx with directio reads files of 1 MiB and more from the disk each time: this is the "
    "purpose of the option.",
    hot_set_note("hot"),
]


@dataclasses.dataclass(frozen=True)
class Case:
    label: str
    size: int
    number: int = 1    # files, asked for in turn
    together: int = 1  # requests that a connection sends at once

    def names(self):
        if self.number == 1:
            return [f"hot-{self.size >> 10}K"]
        return [f"spread/{self.size >> 10}K-{i:04d}" for i in range(1, self.number + 1)]


CASES = {
    "1K": Case("1 KiB", 1 << 10), "16K": Case("16 KiB", 16 << 10),
    "64K": Case("64 KiB", 64 << 10), "256K": Case("256 KiB", 256 << 10), "1M": Case("1 MiB", MIB),
    "10M": Case("10 MiB", 10 * MIB), "16M": Case("16 MiB", 16 * MIB),
    "pipelined": Case("1 KiB, 16 requests at once", 1 << 10, together=16),
    "spread": Case("16 KiB, 4000 files in turn", 16 << 10, number=4000),
}
LOGS = ("off", "on")
WARM = 64 * MIB  # asked for before it counts, if that is neither too few requests nor ...
MOST = 4000      # ... too many; of each of many files: ...
EACH = 4
RECORD = 16 << 10
LIMIT_TLS = "limit" + servers.TLS
CHUNK = 512 << 10  # of the candidates with another largest chunk
LARGE = MIB      # answers of which wrk's count is too coarse


def cases(s):
    return listed(s.cases, among=CASES)


def check(s):
    cases(s)
    listed(s.log, among=LOGS)


def parts(s):
    return [part_of(case, log) for case in cases(s) for log in listed(s.log)]


def measured(name, part):
    """The limit writes no log, and small files are of one chunk."""
    case, log = of_part(part)
    if name.endswith((servers.CHUNK, servers.WHOLE)):
        return case.size > CHUNK
    return name not in REFERENCES or not log


def part_of(case, log):
    return f"{case}, log {log}"


def of_part(part):
    """(Case, whether there is a log)."""
    case, _, log = part.partition(", log ")
    return CASES[case], log == "on"


def without_log(part):
    return part_of(part.partition(",")[0], "off")


def files(s):
    return list(dict.fromkeys((name, CASES[case].size) for case in cases(s)
                              for name in CASES[case].names()))


def seconds(s):
    return s.seconds + 0.2


# ------------------------------------------------------------- measuring


def measure(bench, cand, part):
    case, log = of_part(part)
    options = servers.hot_set(cand, bench.settings.hot_set)
    with bench.serve(set_up(cand), options=options, access_log=log) as server:
        return one(bench, server, case, part)


def set_up(cand):
    """Ours too has a configuration for this load."""
    if not cand.ours:
        return cand
    return servers.configured(cand, "pagewise.conf")


def bare(bench, way, case):
    """The limit as a candidate."""
    names = [f"{bench.data}/{name}" for name in case.names()]
    os.chmod(bench.scratch, 0o755)  # the server, an ordinary user, reads the list
    what = names if len(names) == 1 else ["--files", bench.list(names)]
    return servers.peer(f"limit-{way}", f"limit: {way}",
                        ["limit", "--way", way, "--port", "@PORT@", *what], None)


def limit(way, bench, part):
    case, _ = of_part(part)
    with bench.serve(bare(bench, way, case)) as server:
        return one(bench, server, case, part)


def limit_tls(bench, part):
    """The bare loop, and the CPU time that it takes to encrypt as much."""
    case, _ = of_part(part)
    speed = encryption(bench)
    sent = limit("send", bench, part)
    cpu_ = sent["cpu"] + sent["answers"] * case.size / speed
    return {**sent, "server": LIMIT_TLS, "cpu": cpu_, "bytes_encrypted": speed, "rate": None,
            "t": None}


def encryption(bench):
    """Bytes of a second of CPU time, by openssl, on the server's core."""
    argv = ["openssl", "speed", "-mr", "-seconds", "1", "-bytes", str(RECORD),
            "-evp", "aes-256-gcm"]
    with bench.confined() as counters:
        out = bench.start(counters, argv, 1).output()
    return number(r"^\+F:\d+:[^:]*:(\d+)", out)


REFERENCES = {f"limit-{way}": (f"limit: {way}", functools.partial(limit, way))
              for way in ("send", "sendfile", "memfd")}
REFERENCES[LIMIT_TLS] = ("limit: send + AES-256-GCM", limit_tls)


def referred(name, cand):
    return servers.over_tls(name) == cand.tls


def one(bench, server, case, part):
    s, names = bench.settings, case.names()
    paths = bench.shuffled(f"/{name}" for name in names)
    server.warm(f"/{names[0]}", bench.content(names[0]), times=1)
    times = EACH if case.number > 1 else max(min(WARM // case.size, MOST), s.connections)
    load.check_replay(bench.replay(server, paths * times, connections=s.connections).result())
    wrk = bench.wrk(server, paths[0], urls=paths if case.number > 1 else None,
                    connections=s.connections, seconds=s.seconds, together=case.together)
    with bench.sampled(part, server) as took:
        result = load.check(wrk.result())
    return {"server": server.cand.name, "part": part, "round": bench.number, **result, **took,
            "answers": answers(result, case)}


def answers(result, case):
    """Of large ones, also parts: 64 of some hundreds are not complete at the end."""
    return result["bytes"] / case.size if case.size >= LARGE else result["requests"]


# ---------------------------------------------------------------- report


def rate(v):
    return v["rate"]


def cpu(v):
    """Microseconds of a request."""
    return ratio(v["cpu"] * 1e6, v["answers"])


def shown(view):
    return view.parts(parts(types.SimpleNamespace(**view.settings)))


def best(view, part, kind, get, choose=min, tls=False):
    """Of the candidates of a kind, that with the best median; None without any."""
    medians = {name: view.summary(name, get, under(part)) for name in view.names
               if view.candidates[name]["kind"] == kind and servers.over_tls(name) == tls}
    known = {name: found.median for name, found in medians.items() if found}
    return choose(known, key=known.get) if known else None


class Bases:
    """What a part is compared with, plain or over TLS: names of candidates."""

    def __init__(self, view, part, tls):
        self.limit = best(view, without_log(part), REFERENCE, cpu, tls=tls)
        self.cpu = best(view, part, "peer", cpu, tls=tls)
        self.rate = best(view, part, "peer", rate, max, tls=tls)

    def said(self, view):
        """In words."""
        for what, name in (("", self.limit), ("best peer by CPU time: ", self.cpu),
                           ("by requests/s: ", self.rate)):
            if name:
                yield f"{what}{view.title(name)}"


def compared(view, get, base):
    """A number as a share of another candidate's, which base gives: (its name, the part
    of its values) of a part and a name."""
    known = {}

    def of(v):
        key = base(v["part"], v["server"])
        if key not in known:
            known[key] = view.share_of(key[0], get, under(key[1]))
        return known[key](v)
    return of


def columns(view, log):
    """log: with what makes sense only with one."""
    known = {(part, tls): Bases(view, part, tls)
             for part in shown(view) for tls in (False, True)}

    def bases(part, name):
        return known[part, servers.over_tls(name)]

    own = [
        Column("CPU, of that without log", share, compared(
            view, cpu, lambda part, name: (name, without_log(part)))),
        Column("requests/s, of those without log", share, compared(
            view, rate, lambda part, name: (name, without_log(part)))),
    ]
    return [
        Column("requests/s", count, rate, "more"),
        Column("CPU µs/request", "{:.2f}".format, cpu, "less"),
        Column("CPU, of the limit", share, compared(
            view, cpu, lambda part, name: (bases(part, name).limit, without_log(part)))),
        Column("CPU, of the best peer", share, compared(
            view, cpu, lambda part, name: (bases(part, name).cpu, part))),
        Column("requests/s, of the best peer", share, compared(
            view, rate, lambda part, name: (bases(part, name).rate, part))),
        *(own if log else ()),
        Column("server's core", percent, lambda v: ratio(v["cpu"], v["t"])),
        Column("generator's core", percent, lambda v: ratio(v["own_cpu"], v["t"])),
        *loop_columns(),
    ]


def label(part):
    case, log = of_part(part)
    return case.label + (", access logs on" if log else "")


def title(view, part):
    said = ", ".join(text for tls in sorted({servers.over_tls(name) for name in view.names})
                     for text in Bases(view, part, tls).said(view))
    return f"{label(part)} ({said})" if said else label(part)


def tables(view):
    """First ours, in all parts; then all, in one after the other."""
    drawn, ours = shown(view), [name for name in view.names if view.ours(name)]
    variants = tuple((lambda name, part=part: label(part), under(part)) for part in drawn)
    all_ours = Table("Ours", columns(view, any(of_part(part)[1] for part in drawn)),
                     lambda values: values if is_of(values, ours) else None, variants)
    return [*([all_ours] if ours else ()), *paired(view)]


def paired(view):
    return [Table(title(view, part), columns(view, of_part(part)[1]), under(part))
            for part in shown(view)]


def is_of(values, names):
    return any(v["server"] in names for v in values.values())


def figures(view):
    from laboratory import plot
    drawn = [part for part in shown(view) if not of_part(part)[1]]
    for some in (drawn[:4], drawn[4:]):
        if not some:
            continue
        figure, _ = plot.new(view, columns=len(some))
        for ax, part in zip(figure.axes, some):
            plot.bars(ax, view, [(part, cpu)], "{:.1f}".format, pick=under(part))
            plot.title(ax, label(part))
        yield "CPU time per request, µs, without access logs (shorter is better)", figure
