"""knee: p99 of hot requests over load, up to more than the disk can do."""

from laboratory import sampler
from laboratory.bench import MIB
from laboratory.limits import Limits
from laboratory.scenarios import ASKED, listed, storm
from laboratory.stats import ratio
from laboratory.tables import Column, Table, count, loop_columns, percent, usec

TITLE = "Knee: how much load is safe"
WHAT = """The question of chapter 5.1 of the thesis: up to which load is a server safe? Requests of
100 KiB arrive: most for one cached file, the others for ranges of files that are drawn at random
from 8 times as much as memory holds, on a limited disk. Two probes send hot and cold requests, each
at a constant rate, whatever the server does; both rates rise together in steps. At 100 % the cold
requests ask for as many bytes as the disk can read, so all servers have the same rates. Latency
counts from the time when a request should have been sent. The safe load is the last step before the
p99 of the hot requests reaches 10 ms, or 100 ms, or less than 99 % of the cold requests are
answered."""
NEEDS = ("probe", "limits")
# cold: of all requests; loads: percent of the rate at which the disk is full; timeout: of the probes
FULL = {"rounds": 3, "loads": "10 20 30 40 50 60 70 80 90 100 110 120", "cold": 0.1,
        "seconds": 3.0, "connections": 64, "cold_connections": 256,
        "timeout": 1.0, "kib": 100, "limit_mib": 40, "memory_mib": 256}
QUICK = {"rounds": 1, "loads": "10 40 70 90 110", "seconds": 1.0}
QUICK_CANDIDATES = ("nodiskio", "nginx")
CANDIDATES = ("nodiskio", "blocking", "nginx", "nginx-threads", "nginx-threads-64", "h2o",
              "h2o-uring", "lighttpd", "caddy")
SAFE = (10, 100)  # ms, of which the p99 stays below
ANSWERED = 0.99   # of the cold requests
NOTES = [
    "The thesis found that a server was safe up to 80 % of its load with the old sendfile and up "
    "to 95 % with the new one. It had 20 000 to 30 000 clients, and requests of 100 KB in the mean. "
    "It gives no share of requests that miss the cache: here one request of ten is cold.",
    "The thesis counts load in percent of what each server can do; here the rates are the same "
    "for all servers.",
    "Rates are of hot and cold requests together. A safe load of 0 % means that the limit was "
    "reached at the first step, one of 120 % that it was reached at none.",
    "A server that reads more of the disk than a request needs fills the disk below 100 %; one "
    "that finds ranges in memory, above.",
    "The cached file of 100 KiB does not fit into pagewise's hot set, so no response comes from "
    "there.",
    "A cold request that has no response when its probe stops is counted as not answered.",
    "CPU is the time of all of the server's threads at the safe load, as a share of its core; the "
    "busiest second is that of its seconds with the most CPU time.",
    "A p99 of 10 ms is near the probe's own delay (its column has the worst step), so the safe load "
    "below 10 ms tells servers apart only on a quieter machine.",
]


def loads(s):
    return listed(s.loads, int)


def check(s):
    if loads(s) != sorted(set(loads(s))) or loads(s)[0] < 1:
        raise ValueError("loads: percentages from 1, each larger than the one before")
    if not 0 < s.cold < 1:
        raise ValueError("cold: more than 0, less than 1")
    if s.kib << 10 > MIB:
        raise ValueError("kib: at most 1024")


def hot(s):
    return f"hot-{s.kib}K"


def files(s):
    yield hot(s), s.kib << 10
    yield from ((name, MIB) for name in storm.cold(s))


def seconds(s):
    return len(loads(s)) * (s.seconds + 0.2) + s.timeout + 0.5


def full(s):
    """Requests per second, hot and cold, at which the disk is full."""
    return s.limit_mib * MIB / (s.kib << 10) / s.cold


def ranges(draw, s):
    """Ranges of cold files, each as long as the hot file.  Each step needs a list of its own: the
    probe draws in the same order each time, so a second step would find the ranges in memory."""
    size, names = s.kib << 10, storm.cold(s)
    for _ in range(ASKED):
        first = draw.randint(0, MIB - size)
        yield f"/{draw.choice(names)}#{first}-{first + size - 1}"


def measure(bench, cand):
    s = bench.settings
    bench.forget(hot(s), *storm.cold(s))
    with bench.serve(cand, Limits(read_bps=s.limit_mib * MIB,
                                  memory=s.memory_mib * MIB)) as server:
        found = {}
        for part in loads(s):
            # After a step with too much load a server has requests left that nobody waits for.
            server.warm(f"/{hot(s)}", bench.content(hot(s)))
            found[str(part)] = step(bench, server, part)
        return {"steps": found}


def step(bench, server, part):
    s, rate = bench.settings, full(bench.settings) * part / 100
    others = bench.probe(server, urls=list(ranges(bench.draw, s)), rate=rate * s.cold,
                         connections=s.cold_connections, seconds=s.seconds, timeout=s.timeout,
                         first=False)
    probe = bench.probe(server, f"/{hot(s)}", rate=rate * (1 - s.cold),
                        connections=s.connections, seconds=s.seconds, timeout=s.timeout)
    with bench.sampled(str(part), server) as took:
        result = probe.result()
    beside = others.result()
    if set(result["statuses"]) - {"200"}:
        raise RuntimeError(f"probe: answers {result['statuses']}")
    return {**took, "rate": rate, "latency_us": result["latency_us"],
            "own_delay_us": result["own_delay_us"],
            "answered": result["answered"] / result["requested"],
            "cold_answered": ratio(beside["statuses"].get("206", 0), beside["requested"]),
            "cold_latency_us": beside["latency_us"], "busiest": busiest(bench, str(part), took)}


def busiest(bench, label, took):
    """The share of the core in the second with the most CPU time."""
    return max([cpu for _, cpu in sampler.rates(bench.samples[label], "cpu")],
               default=took["cpu"] / took["t"])


# ------------------------------------------------------------------ report


def p99(step_):
    return step_["latency_us"]["p99"]


def safe(v, limit_ms):
    """The last load before one that is not safe, in percent; 0 without any."""
    last = 0
    for part, found in sorted(v["steps"].items(), key=lambda pair: int(pair[0])):
        if p99(found) >= limit_ms * 1000 or (found["cold_answered"] or 0) < ANSWERED:
            break
        last = int(part)
    return last


def at_safe(limit_ms, get):
    """For a Column: a number of the step with the safe load; None where there is none."""
    def at(v):
        found = v["steps"].get(str(safe(v, limit_ms)))
        return found and get(found)
    return at


def tables(view):
    return [Table("", list(columns())), Table("p99 of the hot requests, by load", [
        Column(f"{part} %", usec, lambda v, part=part: p99(v["steps"][part]), "less")
        for part in steps(view)]), Table("Cold requests that are answered, by load", [
            Column(f"{part} %", percent, lambda v, part=part: v["steps"][part]["cold_answered"], "more")
            for part in steps(view)])]


def steps(view):
    return list(map(str, listed(view.settings["loads"], int)))


def columns():
    for ms in SAFE:
        yield Column(f"safe load, p99 below {ms} ms", percent,
                     lambda v, ms=ms: safe(v, ms) / 100, "more")
        yield Column(f"req/s, p99 below {ms} ms", count, at_safe(ms, lambda found: found["rate"]), "more")
        yield Column("CPU", percent, at_safe(ms, lambda found: found["cpu"] / found["t"]))
        yield Column("busiest second", percent, at_safe(ms, lambda found: found["busiest"]))
        yield Column("disk, MB/s", count, at_safe(ms, lambda found: found["disk_bytes"] / found["t"] / 1e6))
    yield Column("probe's own delay, worst p99", usec, lambda v: max(
        found["own_delay_us"]["p99"] for found in v["steps"].values()))
    yield from loop_columns(lambda v: list(v["steps"].values()))


def figures(view):
    from laboratory import panels, plot
    figure, (hot_, cold) = plot.new(columns=2, height=3.4)
    for ax, get, label, log in (
            (hot_, p99, "p99 of hot requests", True),
            (cold, lambda found: 100 * (found["cold_answered"] or 0), "cold requests answered, %", False)):
        plot.lines(ax, view, lambda name, get=get: points(view, name, get), log=log)
        ax.get_legend().remove()
        ax.set_xlabel("requests/s", fontsize=9)
        ax.set_ylabel(label, fontsize=9)
    plot.shown_plainly(hot_.yaxis, usec)
    for ms in SAFE:
        hot_.axhline(ms * 1000, color=plot.INK, linewidth=0.8, linestyle="--")
    panels.legend(figure, [hot_])
    yield "p99 of the hot requests, and answered cold requests, over load (dashed: 10 and 100 ms)", figure


def points(view, name, get):
    """The medians of the rounds, by rate."""
    def at(load, wanted):
        return view.summary(name, lambda v: wanted(v["steps"][load])).median
    return [(at(load, lambda found: found["rate"]), at(load, get)) for load in steps(view)]
