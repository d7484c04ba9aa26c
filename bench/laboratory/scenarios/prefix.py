"""prefix: chapter 4.3.2 of the thesis: the ready prefix is sent at once, or only the whole chain."""

import itertools
import os
import socket
import statistics
import threading
import time

from laboratory.bench import GIB, MIB
from laboratory.limits import Limits
from laboratory.scenarios import listed
from laboratory.tables import Column, Table, count, loop_columns, usec

TITLE = "Prefix: is the ready part of a window sent before the rest arrives?"
WHAT = """The question of chapter 4.3.2 of the thesis. There a chain of pages is sent when all of it
has been read. The alternative is to send at once what stands before the first missing page, in
smaller pieces. Here the chain is a window, and each file is one window of 2 MiB, of which a prefix is
cached. The path nodiskio sends the cached prefix at once, then reads the rest of the window. The path
mlock sends nothing before the whole window is in memory. With readahead 128K both do so in pieces of
128 KiB, so nodiskio also sends what it has just read. First one client fetches half of the files and
notes the time until the first byte of the body and until the last one; then many clients fetch the
other half."""
NEEDS = ("limits",)
# prefix: KiB of each file that are cached, a list; readahead: a list
FULL = {"rounds": 3, "prefix": "0,256,1024", "readahead": "128K,2M", "files": 64, "mib": 2,
        "connections": 32, "limit_mib": 100}
QUICK = {"rounds": 1, "files": 16, "prefix": "0,1024"}
CANDIDATES = QUICK_CANDIDATES = ("nodiskio", "mlock")
TIMEOUT, BUFFER = 30, 256 << 10
NOTES = [
    "nodiskio has two choices that the thesis has not: it sends resident chunks of 128 KiB or more "
    "before it asks the disk, but waits for all of a window that it reads.",
    "mlock maps and locks each window besides, which takes CPU time: compare the times and the rate, "
    "and the CPU time only between readaheads of one path.",
    "The client reads as fast as it can on its own core, in Python: differences below a tenth of a "
    "millisecond are its own.",
    "Files have exactly one window of 2 MiB, so no window is read ahead with readahead 2M.",
]


def prefixes(s):
    return listed(s.prefix, int)


def check(s):
    if any(kib < 0 or kib << 10 >= s.mib * MIB for kib in prefixes(s)):
        raise ValueError("prefix: from 0 to less than a file")
    listed(s.readahead)


def cases(s):
    """Returns pairs of a readahead and a prefix; s: a dict of settings."""
    return list(itertools.product(listed(s["readahead"]), listed(s["prefix"], int)))


def files(s):
    """Returns as many for one client as for many, since a server may keep mapped for a while what it
    has sent, and a first one for the start of the server."""
    return [(f"prefix-{s.mib}M/{i:04d}", s.mib * MIB) for i in range(2 * s.files + 1)]


def seconds(s):
    return sum(2 * s.files * (s.mib - kib / 1024) / s.limit_mib + 0.5
               for _, kib in cases(vars(s)))


def measure(bench, cand):
    s = bench.settings
    return {key(*case): serve(bench, cand, *case) for case in cases(vars(s))}


def key(readahead, kib):
    return f"{readahead}-{kib}"


def serve(bench, cand, readahead, kib):
    s, (warm, *names) = bench.settings, [name for name, _ in files(bench.settings)]
    with bench.serve(cand, Limits(read_bps=s.limit_mib * MIB),
                     options=("--cache", "keep", "--readahead", readahead)) as server:
        server.warm(f"/{warm}", bench.content(warm), times=1)
        prepare(bench, names, kib)
        alone = fetch(server.port, bench.shuffled(names[:s.files]), s.mib * MIB)
        with bench.sampled(key(readahead, kib), server) as took:
            together(server.port, bench.shuffled(names[s.files:]), s.mib * MIB, s.connections)
    return {**took, "first": statistics.median(first for first, _ in alone) * 1e6,
            "whole": statistics.median(whole for _, whole in alone) * 1e6,
            "body": s.files * s.mib * MIB}


def prepare(bench, names, kib):
    """Caches the first kib KiB of each file, and evicts the rest."""
    bench.forget(*names)
    for name in names if kib else ():
        fd = os.open(f"{bench.data}/{name}", os.O_RDONLY)
        try:
            os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_RANDOM)  # no read-ahead behind the prefix
            os.pread(fd, kib << 10, 0)
        finally:
            os.close(fd)


# ------------------------------------------------------------------ client


def fetch(port, names, size):
    """Fetches one after the other over one connection.  Returns pairs of seconds to the first byte and
    to the last; RuntimeError."""
    with socket.create_connection(("127.0.0.1", port), TIMEOUT) as conn:
        return [request(conn, name, size) for name in names]


def request(conn, name, size):
    begun, head, first, got = time.monotonic(), b"", None, 0
    conn.sendall(f"GET /{name} HTTP/1.1\r\nHost: lab\r\n\r\n".encode())
    buffer = memoryview(bytearray(BUFFER))
    while got < size:
        if not (n := conn.recv_into(buffer)):
            raise RuntimeError(f"{name}: the connection ended after {got} bytes")
        if first is None:
            head += buffer[:n]
            if b"\r\n\r\n" not in head:
                continue
            n = len(head.partition(b"\r\n\r\n")[2])
            if not head.startswith(b"HTTP/1.1 200 "):
                raise RuntimeError(f"{name}: {head[:40]!r}")
        if n and first is None:
            first = time.monotonic() - begun
        got += n
    return first, time.monotonic() - begun


def together(port, names, size, connections):
    """Fetches all of the names, each over one of the connections."""
    errors = []

    def client(mine):
        try:
            fetch(port, mine, size)
        except (OSError, RuntimeError) as why:
            errors.append(why)

    threads = [threading.Thread(target=client, args=(names[i::connections],))
               for i in range(connections)]
    for one in threads:
        one.start()
    for one in threads:
        one.join()
    if errors:
        raise RuntimeError(f"{len(errors)} of {connections} clients: {errors[0]}")


# ------------------------------------------------------------------ report


def variants(view):
    """Returns those of a Table: a row for each readahead."""
    def pick(readahead):
        return lambda v: {name.rpartition("-")[2]: part for name, part in v.items()
                          if name.rpartition("-")[0] == readahead} or None

    return tuple((lambda name, readahead=readahead: f"readahead {readahead}", pick(readahead))
                 for readahead in listed(view.settings["readahead"]))


def tables(view):
    return [Table(f"{kib} KiB of each file cached", list(columns(str(kib))),
                  variants=variants(view))
            for kib in listed(view.settings["prefix"], int)]


def columns(kib):
    def of(get):
        return lambda parts: get(parts[kib]) if kib in parts else None

    yield Column(f"first byte, {kib} KiB", usec, of(lambda v: v["first"]), "less")
    yield Column(f"last byte, {kib} KiB", usec, of(lambda v: v["whole"]), "less")
    yield Column("MB/s, many clients", count, of(lambda v: v["body"] / v["t"] / 1e6), "more")
    yield Column("CPU s/GiB", "{:.3f}".format, of(lambda v: v["cpu"] / (v["body"] / GIB)), "less")
    yield Column("disk bytes per byte sent", "{:.2f}".format,
                 of(lambda v: v["disk_bytes"] / v["body"]))
    yield from loop_columns(lambda parts: [parts[kib]] if kib in parts else [])


def figures(view):
    from laboratory import plot
    kibs, sizes = listed(view.settings["prefix"], int), listed(view.settings["readahead"])
    figure, axes = plot.new(view, columns=len(kibs), height=plot.ROW * 2 * len(view.names) + plot.EDGE)
    for kib, ax in zip(kibs, getattr(axes, "flat", [axes])):
        plot.bars(ax, view, [(f"readahead {size}", lambda v, at=key(size, kib): v[at]["first"] / 1000)
                             for size in sizes], lambda ms: usec(ms * 1000))
        ax.set_xlabel("first byte, ms", fontsize=9)
        plot.title(ax, f"{kib} KiB cached")
    yield ("Time until the first byte of a file of which a prefix is cached (shorter is better)",
           figure)
