"""film: the start of films whose index is at the end, on a disk that rotates."""

import contextlib
import dataclasses
import signal
import socket
import statistics
import struct
import time

from laboratory import servers, spindle
from laboratory.bench import GIB, MIB
from laboratory.limits import Limits
from laboratory.scenarios.spindle import Moved
from laboratory.tables import Column, Table, share, usec

TITLE = "Film: the start of films whose index is at the end"
WHAT = """The films are on the model of a 7200 rpm disk (tests/fault/spindle), in MP4 with the index
behind the media data. A player requests an uncached film, reads 64 KiB, closes the connection, and
requests the index on another one. Each connection and its request take two round trips of the
network, for which the player waits. Streams of 5 Mbit/s from the same server load the disk.
pagewise is measured without the key mp4_index and with it, by turns."""
NEEDS = ("slow", "limits", "spindle")
# trip_ms: a round trip; lead: seconds until the streams are steady
FULL = {"rounds": 5, "films": 40, "mib": 64, "index_kib": 1536, "trip_ms": 30, "streams": 150,
        "rate": 625_000, "stream_mib": 32, "lead": 6.0, "disk_gib": 16, "memory_mib": 4096}
QUICK = {"rounds": 1, "films": 20, "mib": 16, "streams": 60}
CANDIDATES = QUICK_CANDIDATES = ("nodiskio", "nginx-threads")
START, FILL, EACH = 64 << 10, 350e6, 0.5  # bytes; bytes per second; seconds, about
KEYS = ("false", "true")  # of mp4_index
NOTES = [
    "The time of the index begins when the player has the start of the film, and ends at the last "
    "byte of the index. The time of a film is that of both, with all round trips.",
    "The names and inodes of the films are cached; their contents are not.",
]


def films(s):
    return [f"f{i:04d}.mp4" for i in range(s.films)]


def streams(s):
    return [f"s{i:04d}" for i in range(s.streams)]


def made(s):
    yield from ((name, s.mib * MIB) for name in films(s))
    yield from ((name, s.stream_mib * MIB) for name in streams(s))


def files(s):
    """None in the directory of data: see made."""
    del s
    return []


def seconds(s):
    return (2 * s.lead + s.films * EACH +
            (s.films * s.mib + s.streams * s.stream_mib) * MIB / FILL)


def index(s):
    """Where it begins."""
    return s.mib * MIB - (s.index_kib << 10)


def give_boxes(s, disk):
    for name in films(s):
        with open(f"{disk.dir}/{name}", "r+b") as f:
            f.write(struct.pack(">I4s24xI4sQ", 32, b"ftyp", 1, b"mdat", index(s) - 32))
    spindle.run("sync", "--file-system", disk.dir)


def configured(cand, key):
    if not cand.ours:
        return cand
    argv = ("@PROGRAM@", "-c", "@CONF@", *cand.path, "--admin", servers.ADMIN)
    return dataclasses.replace(cand, argv=argv, conf=("film.conf",), words={"INDEX": key})


def measure(bench, cand):
    s = bench.settings
    keys = KEYS[::-1 if bench.number % 2 else 1] if cand.ours else KEYS[:1]
    drawn = bench.shuffled(films(s))
    with spindle.mounted(bench.data, s.disk_gib * GIB, bench.shuffled(made(s))) as disk:
        give_boxes(s, disk)
        found = {key: begun(bench, configured(cand, key), disk, drawn[KEYS.index(key)::2])
                 for key in keys}
        disk.check()
        return found


def begun(bench, cand, disk, names):
    s = bench.settings
    bench.host.forget([f"{disk.dir}/{name}" for name, _ in made(s)])
    with bench.serve(cand, Limits(memory=s.memory_mib * MIB), root=disk.dir) as server:
        server.accepts()
        others = bench.slow(server, urls=[f"/{name}" for name in bench.shuffled(streams(s))],
                            clients=s.streams, rate=s.rate, more=("--in-order",),
                            seconds=2 * (s.lead + len(names) * EACH))
        time.sleep(s.lead)
        with Moved(disk) as moved:
            took = [play(server, s, name) for name in names]
        others.child.send_signal(signal.SIGINT)
        others.result()
    film, end = (statistics.median(times) for times in zip(*took))
    return {"film": film * 1e6, "index": end * 1e6, "busy": moved.values["busy"]}


def play(server, s, name):
    """Seconds from the first connection to the last byte, and those of the index."""
    begin = time.monotonic()
    fetch(server, s, name, 0, START)
    middle = time.monotonic()
    fetch(server, s, name, index(s), s.index_kib << 10)
    end = time.monotonic()
    return end - begin, end - middle


def fetch(server, s, name, first, size):
    """A small buffer: the server must not read windows ahead that a player would not take."""
    time.sleep(2 * s.trip_ms / 1000)
    with contextlib.closing(socket.socket()) as sock:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, START)
        sock.settimeout(spindle.PATIENCE)
        sock.connect(("127.0.0.1", server.port))
        sock.sendall(f"GET /{name} HTTP/1.1\r\nHost: films\r\n"
                     f"Range: bytes={first}-\r\n\r\n".encode())
        with sock.makefile("rb") as answer:
            if b" 206 " not in answer.readline():
                raise RuntimeError(f"{name}: no range")
            while answer.readline() != b"\r\n":
                pass
            if len(answer.read(size)) != size:
                raise RuntimeError(f"{name}: too short")


# ------------------------------------------------------------------ report


def value(v, key, name):
    return v[key][name] if key in v else None


def tables(view):
    s = view.settings
    return [Table(f"{s['films'] // 2} films beside {s['streams']} streams: medians", [
        column for key, title in zip(KEYS, ("", ", with mp4_index")) for column in (
            Column(f"film{title}", usec, lambda v, key=key: value(v, key, "film"), "less"),
            Column(f"index{title}", usec, lambda v, key=key: value(v, key, "index"), "less"),
            Column(f"head busy{title}", share, lambda v, key=key: value(v, key, "busy")))])]


def figures(view):
    from laboratory import plot
    figure, ax = plot.new(view)
    plot.bars(ax, view, [("film", lambda v: v["false"]["film"] / 1000),
                         ("index", lambda v: v["false"]["index"] / 1000)],
              lambda ms: usec(ms * 1000))
    ax.set_xlabel("until a film begins, ms, without mp4_index")
    yield "Start of a film whose index is at the end (shorter is better)", figure
