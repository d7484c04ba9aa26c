"""cold: many clients, files that nobody has read, and a disk with a limit."""

import math
import time
from functools import partial

from laboratory import load
from laboratory.bench import GIB, MIB
from laboratory.limits import Limits
from laboratory.scenarios import listed, picked
from laboratory.stats import ratio
from laboratory.tables import Column, Table, loop_columns, percent, share, under

TITLE = "Cold: many clients request uncached files"
WHAT = """Each of many connections reads uncached 1 MiB files from a disk that is limited in
bytes per second or in requests per second. Each file is read at most once, or files are picked
at random, so that some are picked again when a part of them was evicted. The rate of a server
is compared with that of fio under the same limit and in the same round. Like the servers,
fio reads through the page cache, and each file once: by 128 KiB, which is the kernel's read-ahead, and
by 1 MiB, a whole file. The second figure shows whether a server's requests to the disk are
large enough."""
NEEDS = ("wrk", "fio", "limits")
LIMITS = {"bandwidth": "limited to {} MiB/s", "iops": "limited to {} requests/s"}
RANDOM = ", random"
CASES = {**LIMITS, **{case + RANDOM: f"{said}, files picked at random"
                      for case, said in LIMITS.items()}}
PICKS = ("once", "random")
# lead: seconds until every client has got its first window and it is steady; pick: a list
FULL = {"rounds": 3, "seconds": 6, "connections": 100, "bandwidth": 40, "iops": 150,
        "memory_mib": 512, "files": 2048, "lead": 3.0, "pick": "once,random"}
QUICK = {"rounds": 1, "seconds": 2, "lead": 1.5}
OWNER = True
NOTES = [
    "Delivered bytes are what the loopback interface carried once every client had got "
    "its first window; headers are a few parts in a thousand of it.",
    "Only the contents of the files are uncached. Their names and inodes are cached, for fio too,"
    " which opens all of its files before it reads.",
    "Requests are counted where the limit counts them, before the disk's own queue may "
    "merge or split them.",
    "Some of the files that are picked at random are cached: a server can deliver more than the "
    "disk does.",
    "With a limit in requests, larger requests mean more bytes: a server that leaves read-ahead "
    "to the kernel gets read_ahead_kb in each request.",
]
TOO_FEW = "every file was read, more are needed: --set cold.files=N"
TAIL = 1.0  # seconds that are not counted at the end


def names(s):
    return [f"cold/{i:05d}" for i in range(1, s.files + 1)]


def files(s):
    return [(name, MIB) for name in names(s)]


def check(s):
    listed(s.pick, among=PICKS)


def cases(s):
    return [case for case in CASES if pick(case) in listed(s.pick)]


def seconds(s):
    return len(cases(s)) * (s.lead + s.seconds + 1)


def pick(case):
    return "random" if case.endswith(RANDOM) else "once"


def limits_of(s, case):
    if case.startswith("bandwidth"):
        return Limits(read_bps=s.bandwidth * MIB, memory=s.memory_mib * MIB)
    return Limits(read_iops=s.iops, memory=s.memory_mib * MIB)


def measure(bench, cand):
    return {case: serve(bench, cand, case) for case in cases(bench.settings)}


def serve(bench, cand, case):
    s = bench.settings
    bench.forget(*names(s))
    with bench.serve(cand, limits_of(s, case)) as server:
        server.warm(f"/{names(s)[0]}", bench.content(names(s)[0]), times=1)
        urls = [f"/{n}" for n in picked(bench, names(s)[1:], pick(case))]
        with bench.until_it_reads(server.counters):
            wrk = bench.wrk(server, urls=urls, connections=s.connections,
                            seconds=math.ceil(s.lead + s.seconds + TAIL))
        time.sleep(s.lead)
        with bench.sampled(case, server) as took:
            time.sleep(s.seconds)
        result = load.check(wrk.result(), least=0)
    if pick(case) == "once" and result["requests"] >= len(names(s)) - s.connections:
        raise RuntimeError(TOO_FEW)
    return {**took, "delivered": took["sent"], "requests": result["requests"]}


# --------------------------------------------------------------------- fio


def fio_job(bench, size):
    """A thread for each client, which reads its share of the files one by one."""
    s, order = bench.settings, bench.shuffled(names(bench.settings))
    lines = ["[global]", "rw=read", f"bs={size}", "ioengine=psync", "thread=1",
             f"runtime={s.lead + s.seconds + TAIL}", "file_service_type=sequential",
             "group_reporting=1", "invalidate=0", "fadvise_hint=0"]
    for i in range(min(s.connections, len(order))):
        part = ":".join(f"{bench.data}/{name}" for name in order[i::s.connections])
        lines += [f"[client{i}]", f"filename={part}"]
    path = f"{bench.scratch}/fio-job"
    with open(path, "w", encoding="utf-8") as f:
        f.write("\n".join(lines) + "\n")
    return path


def read_with_fio(size, bench):
    return {case: run_fio(bench, size, case) for case in LIMITS}


def run_fio(bench, size, case):
    s = bench.settings
    bench.forget(*names(s))
    with bench.confined(limits_of(s, case)) as counters:
        with bench.until_it_reads(counters):
            fio = bench.start(counters, ["fio", "--output-format=json", fio_job(bench, size)],
                              s.lead + s.seconds + TAIL)
        time.sleep(s.lead)
        with bench.sampled(case, counters) as took:
            time.sleep(s.seconds)
        if fio.child.poll() is not None:
            raise RuntimeError(f"fio ended: {TOO_FEW}")
        fio.output()
    return {**took, "delivered": took["disk_bytes"]}


REFERENCES = {"fio-128k": ("fio, by 128 KiB", partial(read_with_fio, "128k")),
              "fio-1m": ("fio, by 1 MiB", partial(read_with_fio, "1m"))}


# ------------------------------------------------------------------ report


def rate(v):
    return v["delivered"] / v["t"]


def tables(view):
    return [Table(title(view, case), columns(view, case), under(case))
            for case in view.parts(CASES)]


def title(view, case):
    return CASES[case].format(view.settings[case.removesuffix(RANDOM)])


def of_fio(view, case, name):
    """Throughput as a share of fio's median, by the same limit."""
    fio = view.summary(name, rate, under(case.removesuffix(RANDOM)))
    return lambda v: ratio(rate(v), fio.median if fio else None)


def columns(view, case):
    return [
        Column("delivered, MiB/s", "{:.1f}".format, lambda v: rate(v) / MIB, "more"),
        Column("of fio by 128 KiB", share, of_fio(view, case, "fio-128k"), "more"),
        Column("of fio by 1 MiB", share, of_fio(view, case, "fio-1m"), "more"),
        Column("read from the disk, MiB/s", "{:.1f}".format,
               lambda v: v["disk_bytes"] / v["t"] / MIB),
        Column("disk requests per MiB", "{:.1f}".format,
               lambda v: ratio(v["disk_requests"], v["disk_bytes"] / MIB), "less"),
        Column("CPU s/GiB", "{:.2f}".format,
               lambda v: ratio(v["cpu"], v["delivered"] / GIB), "less"),
        Column("CPU", percent, lambda v: v["cpu"] / v["t"]),
        *loop_columns(),
    ]


def figures(view):
    from laboratory import plot
    figure, axes = plot.new(view, columns=len(LIMITS))
    for ax, case in zip(axes, LIMITS):
        plot.bars(ax, view, [("", of_fio(view, case, "fio-1m"))], share, pick=under(case), line=1)
        plot.title(ax, title(view, case))
    yield "Delivered, as a share of what fio reads through the page cache by 1 MiB", figure
