"""slow: thousands of clients that drain slowly, on cold files."""

import time

from laboratory.bench import GIB, MIB
from laboratory.limits import Limits, number, read
from laboratory.scenarios import storm
from laboratory.stats import ratio
from laboratory.tables import Column, Table, count, loop_columns, percent

TITLE = "Slow: thousands of slow clients, uncached files"
WHAT = """Thousands of clients each take a few KiB per second of uncached 1 MiB files; together
they receive far more files at a time than memory holds. If a server fetches much more than it
can soon send, the kernel evicts the pages before they are sent, and the server reads them
again. This shows in the bytes read from the disk per byte that the clients took: 1.00 means
that each byte is read once. A client is starved if it gets less than half of its rate in any
five seconds."""
NEEDS = ("slow", "limits", "network")
# rate: bytes/s of each client; lead: until all have their first window.  Seconds are
# whole ones: the clients count by them
FULL = {"rounds": 3, "clients": 3000, "rate": 65536, "seconds": 30, "lead": 20,
        "limit_mib": 600, "memory_mib": 512}
QUICK = {"rounds": 1, "clients": 1000, "seconds": 5, "lead": 4, "limit_mib": 200,
         "memory_mib": 256}
OWNER = True
QUICK_CANDIDATES = ("nodiskio", "nodiskio-owner", "uring", "blocking", "nginx", "lighttpd")
TAIL = 1          # second that the clients are there after the measured ones
LISTENING = "0A"  # a state in /proc/net/tcp
NOTES = [
    "The disk delivers several times the rate of all clients together: a server that reads each "
    "byte once needs a part of it.",
    "Pages that were fetched before the measured time and are sent in it, or fetched in it "
    "and sent later, make the ratio a little smaller or larger than it is in the long run.",
    "Resident memory is that of all of the server's processes at the end, with the files "
    "that they have mapped at that moment.",
    "The figure for sockets is payload in the server's send queues, without the kernel's "
    "book-keeping; these pages cannot be evicted.",
    "Reno sizes send buffers as CUBIC does. With BBR a buffer grows to a megabyte for each client "
    "that does not empty it, whatever the server: --congestion bbr.",
    "Apache is measured as bench/peers configures it, with 128 threads.",
]


def files(s):
    return [(name, MIB) for name in storm.cold(s)]


def seconds(s):
    return s.lead + s.seconds + TAIL + 1


def measure(bench, cand):
    names = storm.cold(bench.settings)
    return clients(bench, cand, names, names)


def clients(bench, cand, names, asked, more=()):
    """names: of the files, asked: what the clients ask for, more: options for them."""
    s = bench.settings
    bench.forget(*names)
    with bench.serve(cand, Limits(read_bps=s.limit_mib * MIB, memory=s.memory_mib * MIB)
                     ) as server:
        server.warm(f"/{names[0]}", bench.content(names[0]), times=1)
        slow = bench.slow(server, urls=[f"/{name}" for name in asked], more=more,
                          clients=s.clients, rate=s.rate,
                          seconds=s.lead + s.seconds + TAIL)
        time.sleep(s.lead)
        with bench.sampled("slow", server) as took:
            time.sleep(s.seconds)
            held = {"resident": memory_of(server.counters, "VmRSS"),
                    "peak": memory_of(server.counters, "VmHWM"),
                    "queued": queued(server.port)}
        result = slow.result()
    if not result["bytes"]:
        raise RuntimeError(f"no client got anything: errors {result['errors']}")
    return {**took, **held, "clients": result,
            "taken": sum(result["bytes_each_second"][s.lead:s.lead + s.seconds])}


def memory_of(counters, what):
    """Bytes, of all processes; what: proc(5), status."""
    return sum(number(rf"^{what}:\s*(\d+)", read(f"/proc/{pid}/status")) << 10
               for pid in counters.pids())


def queued(port, table="/proc/net/tcp"):
    """Bytes in the send queues of this port's sockets: proc(5), the fields are local
    address, remote address, state, and the two queues, in hexadecimal."""
    rows = (line.split() for line in read(table).splitlines()[1:])
    return sum(int(row[4].partition(":")[0], 16) for row in rows
               if int(row[1].partition(":")[2], 16) == port and row[3] != LISTENING)


# ------------------------------------------------------------------ report


def amplification(v):
    return ratio(v["disk_bytes"], v["taken"])


def tables(view):
    wanted = view.settings["clients"] * view.settings["rate"]
    return [Table("", [
        Column("disk bytes per byte taken", "{:.2f}".format, amplification, "less"),
        Column("taken, MiB/s", "{:.1f}".format, lambda v: v["taken"] / v["t"] / MIB, "more"),
        Column("of what clients want", percent, lambda v: v["taken"] / v["t"] / wanted, "more"),
        Column("clients starved", percent,
               lambda v: v["clients"]["starved"] / v["clients"]["clients"], "less"),
        Column("connected", count, lambda v: v["clients"]["connected"]),
        Column("resident, MiB", "{:.1f}".format, lambda v: v["resident"] / MIB, "less"),
        Column("at most, MiB", "{:.1f}".format, lambda v: v["peak"] / MIB, "less"),
        Column("in sockets, MiB", "{:.1f}".format, lambda v: v["queued"] / MIB),
        Column("page cache, MiB", count, lambda v: v["cache"] / MIB),
        Column("CPU", percent, lambda v: v["cpu"] / v["t"]),
        Column("CPU s/GiB", "{:.2f}".format, lambda v: ratio(v["cpu"], v["taken"] / GIB), "less"),
        Column("errors", "{:.0f}".format, lambda v: sum(v["clients"]["errors"].values())),
        *loop_columns(),
    ])]


def figures(view):
    from laboratory import plot
    figure, axes = plot.new(view, columns=3, shares=(3, 2, 2))
    plot.bars(axes[0], view, [("", amplification)], "{:.2f}".format, line=1)
    plot.bars(axes[1], view, [("", lambda v: v["resident"] / MIB)], "{:.1f}".format)
    plot.bars(axes[2], view, [("", lambda v: v["queued"] / MIB)], count)
    for ax, title in zip(axes, ("disk bytes per byte that clients took",
                                "resident memory, MiB", "waiting in sockets, MiB")):
        plot.title(ax, title)
    yield "What slow clients cost: reads that are repeated, and memory", figure
