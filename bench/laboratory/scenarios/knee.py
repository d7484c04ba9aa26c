"""knee: p99 of hot requests over load, up to more than the server can do."""

from laboratory import load, sampler
from laboratory.bench import MIB
from laboratory.limits import Limits
from laboratory.scenarios import ASKED, listed, storm
from laboratory.stats import ratio
from laboratory.tables import Column, Table, count, loop_columns, percent, usec

TITLE = "Knee: how much load is safe"
WHAT = """The question of chapter 5.1 of the thesis: up to which load is a server safe? Requests of
100 KiB arrive: most for one cached file, the others for ranges of files that are drawn at random
from 8 times as much as memory holds, on a limited disk. First wrk sends such requests over 64
connections as fast as the server answers: its rate counts as 100 %. Then two probes send hot and
cold requests, each at a constant rate, whatever the server does; both rates rise together in steps
from 10 % to 110 %. Latency counts from the time when a request should have been sent. The safe
load is the last step before the p99 of the hot requests reaches 10 ms, or 100 ms."""
NEEDS = ("wrk", "probe", "limits")
# cold: of all requests; loads: percent of the rate of wrk; timeout: of the probes
FULL = {"rounds": 3, "loads": "10 20 30 40 50 60 70 80 85 90 95 100 110", "cold": 0.1,
        "seconds": 3.0, "wrk_seconds": 5, "connections": 64, "cold_connections": 256,
        "timeout": 1.0, "kib": 100, "limit_mib": 40, "memory_mib": 256}
QUICK = {"rounds": 1, "loads": "10 40 70 90 110", "seconds": 1.0, "wrk_seconds": 2}
QUICK_CANDIDATES = ("nodiskio", "nginx")
CANDIDATES = ("nodiskio", "blocking", "nginx", "nginx-threads", "nginx-threads-64", "h2o",
              "h2o-uring", "lighttpd", "caddy")
SAFE = (10, 100)  # ms, of which the p99 stays below
NOTES = [
    "The thesis found that a server was safe up to 80 % of its load with the old sendfile and up "
    "to 95 % with the new one, with 20 000 to 30 000 clients and requests of 100 KB in the mean. "
    "It gives no share of requests that miss the cache: here one request of ten is cold.",
    "100 % is what each server itself can do, so a step of one server has another rate than that "
    "of another. The tables have both.",
    "Rates are of hot and cold requests together. A safe load of 0 % means that the p99 reached "
    "the limit at the first step, one of 110 % that it stayed below at each step.",
    "The cached file of 100 KiB does not fit into pagewise's hot set, so no response comes from "
    "there.",
    "A cold request that has no response when its probe stops is counted as not answered.",
    "CPU is the time of all of the server's threads at the safe load, as a share of its core; the "
    "busiest second is that of its seconds with the most CPU time.",
    "Where the probe's own delay is near the p99, the generators' core was too busy.",
]


def loads(s):
    return listed(s.loads, int)


def check(s):
    if loads(s) != sorted(set(loads(s))) or loads(s)[0] < 1:
        raise ValueError("loads: percentages from 1, each larger than the one before")
    if not s.cold < 1:
        raise ValueError("cold: less than 1")
    if s.kib << 10 > MIB:
        raise ValueError("kib: at most 1024")


def hot(s):
    return f"hot-{s.kib}K"


def files(s):
    yield hot(s), s.kib << 10
    yield from ((name, MIB) for name in storm.cold(s))


def seconds(s):
    return s.wrk_seconds + len(loads(s)) * (s.seconds + 0.2) + s.timeout + 0.5


def ranges(draw, s):
    """Ranges of cold files, each as long as the hot file.  Each step needs a list of its own: the
    probe draws in the same order each time, so a second step would find the ranges in memory."""
    size, names = s.kib << 10, storm.cold(s)
    for _ in range(ASKED):
        first = draw.randint(0, MIB - size)
        yield f"/{draw.choice(names)}#{first}-{first + size - 1}"


def mixed(draw, s):
    """What wrk sends: cold requests among hot ones."""
    return [one if draw.random() < s.cold else f"/{hot(s)}" for one in ranges(draw, s)]


def measure(bench, cand):
    s = bench.settings
    bench.forget(hot(s), *storm.cold(s))
    with bench.serve(cand, Limits(read_bps=s.limit_mib * MIB,
                                  memory=s.memory_mib * MIB)) as server:
        server.warm(f"/{hot(s)}", bench.content(hot(s)))
        most = closed(bench, server, mixed(bench.draw, s))
        return {"most": most, "steps": {str(part): step(bench, server, part, most["rate"])
                                        for part in loads(s)}}


def closed(bench, server, urls):
    s = bench.settings
    wrk = bench.wrk(server, urls=urls, connections=s.connections, seconds=s.wrk_seconds)
    with bench.sampled("closed", server) as took:
        result = load.check(wrk.result())
    return {**result, **took}


def step(bench, server, part, most):
    s, rate = bench.settings, most * part / 100
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
    """The last load before the p99 first reaches the limit, in percent; 0 without any."""
    last = 0
    for part, found in sorted(v["steps"].items(), key=lambda pair: int(pair[0])):
        if p99(found) >= limit_ms * 1000:
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
        for part in steps(view)])]


def steps(view):
    return list(map(str, listed(view.settings["loads"], int)))


def columns():
    yield Column("wrk, req/s", count, lambda v: v["most"]["rate"])
    for ms in SAFE:
        yield Column(f"safe load, p99 below {ms} ms", percent,
                     lambda v, ms=ms: safe(v, ms) / 100, "more")
        yield Column("req/s", count, at_safe(ms, lambda found: found["rate"]), "more")
        yield Column("CPU", percent, at_safe(ms, lambda found: found["cpu"] / found["t"]))
        yield Column("busiest second", percent, at_safe(ms, lambda found: found["busiest"]))
        yield Column("cold answered", percent, at_safe(ms, lambda found: found["cold_answered"]))
    yield Column("probe's own delay, worst p99", usec, lambda v: max(
        found["own_delay_us"]["p99"] for found in v["steps"].values()))
    yield from loop_columns(lambda v: list(v["steps"].values()))


def figures(view):
    from laboratory import panels, plot
    figure, (part, rate) = plot.new(columns=2, height=3.4)
    for ax, across, label in (
            (part, lambda found, load_: int(load_), "load, % of the server's rate with wrk"),
            (rate, lambda found, load_: found["rate"], "requests/s")):
        plot.lines(ax, view, lambda name, across=across: points(view, name, across), log=True)
        ax.get_legend().remove()
        ax.set_xlabel(label, fontsize=9)
        plot.shown_plainly(ax.yaxis, usec)
        for ms in SAFE:
            ax.axhline(ms * 1000, color=plot.INK, linewidth=0.8, linestyle="--")
    part.set_ylabel("p99 of hot requests", fontsize=9)
    panels.legend(figure, [part])
    yield "p99 of the hot requests over load (dashed: 10 and 100 ms)", figure


def points(view, name, across):
    """The medians of the rounds, by load."""
    def at(load_, get):
        return view.summary(name, lambda v: get(v["steps"][load_])).median
    return [(at(load_, lambda found, load_=load_: across(found, load_)), at(load_, p99))
            for load_ in steps(view)]
