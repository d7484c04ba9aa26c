"""clients: nine thousand slow clients on cold files, in little memory."""

from laboratory.bench import MIB
from laboratory.scenarios import slow

TITLE = "Clients: nine thousand slow clients, each with an uncached file of its own"
WHAT = """The scenario slow with more and slower clients: each takes 1 Mbit/s, all of them
together 9 Gbit/s. Each fetches 1 MiB of a 4 MiB file that no other client fetches at that
time. The clients go through the list of all files in its order. The list is almost
twice as long as the number of clients, so a file is requested again after some 15 s, when
memory has been filled many times. With 512 MiB of page cache the share of a client is 58 KiB,
and the data in its socket is a part of it. Two cores, one for the server and one for all
clients, carry less through the loopback than the clients could take: the table has the share."""
NEEDS = slow.NEEDS
# rate: bytes/s of each; seconds, lead: as in slow; ramp: seconds until all have come
FULL = {"rounds": 1, "clients": 9000, "rate": 125000, "seconds": 20, "lead": 30,
        "files": 4096,
        "limit_mib": 4000, "memory_mib": 512, "rcvbuf": 16384, "ramp": 20.0}
QUICK = {"clients": 500, "files": 512, "seconds": 5, "lead": 5, "memory_mib": 64,
         "ramp": 2.0}
PARTS = 4  # of a file, each a MiB
CANDIDATES = QUICK_CANDIDATES = ("nodiskio", "nginx")
NOTES = [note for note in slow.NOTES if "Apache" not in note and "several times" not in note] + [
    "The limit of the disk has no effect.",
    "The kernel's read-ahead continues behind the requested part.",
    "nginx has a table of 16 384 connections (bench/peers).",
    "A client takes two descriptors of a server, its own and its file's. Where a process may have "
    "20 000, pagewise has none left with 10 000 clients: then it closes idle connections and answers "
    "503. 161 of the clients met that in one run; with 9000, 0 of 10 262 requests.",
]


def names(s):
    return [f"clients/{i:05d}" for i in range(1, s.files + 1)]


def files(s):
    return [(name, PARTS * MIB) for name in names(s)]


def pieces(s):
    """The first MiB of each, then the second, and so on: as the load generators take it."""
    return [f"{name}#{i * MIB}-{(i + 1) * MIB - 1}" for i in range(PARTS) for name in names(s)]


seconds = slow.seconds


def measure(bench, cand):
    s = bench.settings
    return slow.clients(bench, cand, names(s), pieces(s),
                       ("--in-order", "--rcvbuf", s.rcvbuf, "--ramp", s.ramp))


tables, figures = slow.tables, slow.figures
